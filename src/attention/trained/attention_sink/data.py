"""Sequences of random tokens after a start mark, in which a part comes twice."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from attention.arguments import require_size

VOCAB_SIZE = 32  # besides the start mark, whose id is the next one
START = VOCAB_SIZE
LENGTH = 32  # tokens after the start mark
SHORTEST, LONGEST = 6, 12  # tokens of the part that comes twice


class Sequences(NamedTuple):
    """Sequences of tokens in which a part comes twice.

    Attributes:
        token_ids: (batch, seq), the start mark first.
        determined: (batch, seq), True where the next token is known from the first time around.
            What follows anywhere else is one of 32 tokens, all equally likely.
    """

    token_ids: Int64[Tensor, "batch seq"]
    determined: Bool[Tensor, "batch seq"]


def draw_sequences(count: int, generator: torch.Generator) -> Sequences:
    """Draw sequences of a start mark and 32 tokens in which a part of 6 to 12 tokens comes twice.

    All other tokens are drawn one by one, so that what follows them can only be guessed. The part's
    length and the positions of its two copies are drawn afresh for each sequence.

    Args:
        count: how many.
        generator: where the random numbers come from.

    Source:
        This book's own, after the bigram-backcopy task of Guo et al. 2024 (§2), whose heads are
        dormant on most tokens too.

    Example:
        >>> import torch
        >>> from attention.trained.attention_sink import START, draw_sequences
        >>> sequences = draw_sequences(100, torch.Generator().manual_seed(0))
        >>> sequences.token_ids.shape, (sequences.token_ids[:, 0] == START).all().item()
        (torch.Size([100, 33]), True)
    """
    require_size("count", count)

    def up_to(most: Tensor | int) -> Int64[Tensor, "count 1"]:
        share = torch.rand(count, 1, generator=generator, dtype=torch.float32)
        return (share * (most + 1)).long()

    tokens = torch.randint(VOCAB_SIZE, (count, LENGTH), generator=generator)
    part = SHORTEST + up_to(LONGEST - SHORTEST)
    first = up_to(LENGTH - 2 * part)  # where each copy begins
    second = first + part + up_to(LENGTH - 2 * part - first)
    place = torch.arange(LENGTH)
    in_second = (place >= second) & (place < second + part)
    tokens = tokens.gather(1, torch.where(in_second, place - second + first, place))
    start = torch.full((count, 1), START)
    determined = in_second & (place < second + part - 1)
    return Sequences(
        torch.cat((start, tokens), dim=1), torch.cat((start != START, determined), dim=1)
    )


def new_sequences(count: int = 2000) -> Sequences:
    """Draw new sequences to measure on, the same at every call.

    Example:
        >>> from attention.trained.attention_sink import new_sequences
        >>> new_sequences(50).token_ids.shape
        torch.Size([50, 33])
    """
    return draw_sequences(count, torch.Generator().manual_seed(10**6))
