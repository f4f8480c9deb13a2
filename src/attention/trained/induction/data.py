"""Sequences of random tokens in which a part comes twice."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from attention.arguments import require_size

SYMBOLS = "abcdefghijklmnopqrstuvwxyz012345"  # how the tokens are shown, in the order of their ids
VOCAB_SIZE = len(SYMBOLS)
LENGTH = 32  # tokens of a sequence
SHORTEST, LONGEST = 4, 12  # tokens of the part that comes twice


class Sequences(NamedTuple):
    """Sequences of tokens in which a part comes twice.

    Attributes:
        token_ids: (batch, seq).
        determined: (batch, seq), True where the next token is known from the first time around: at
            the tokens of the second copy, except its last.
    """

    token_ids: Int64[Tensor, "batch seq"]
    determined: Bool[Tensor, "batch seq"]


def draw_sequences(count: int, generator: torch.Generator) -> Sequences:
    """Draw sequences of 32 tokens in which a part of 4 to 12 tokens comes twice.

    Apart from that part no token comes twice, so a token that has come before says where to look.
    The part's length and the positions of its copies are drawn afresh for each sequence, so that no
    single distance leads from the second copy to the first.

    Args:
        count: how many.
        generator: where the random numbers come from.

    Source:
        This book's own, after the repeated random tokens of Olsson et al. 2022.

    Example:
        >>> import torch
        >>> from attention.trained.induction import draw_sequences
        >>> sequences = draw_sequences(100, torch.Generator().manual_seed(0))
        >>> sequences.token_ids.shape, sequences.determined.sum(1).aminmax()
        (torch.Size([100, 32]), torch.return_types.aminmax(
        min=tensor(3),
        max=tensor(11)))
    """
    require_size("count", count)

    def up_to(most: Tensor) -> Int64[Tensor, "count 1"]:
        return (torch.rand(count, 1, generator=generator) * (most + 1)).long()

    part = SHORTEST + up_to(torch.tensor(LONGEST - SHORTEST))
    first = up_to(LENGTH - 2 * part)  # where each copy begins
    second = first + part + up_to(LENGTH - 2 * part - first)
    place = torch.arange(LENGTH)
    in_second = (place >= second) & (place < second + part)
    # The tokens of a shuffled vocabulary in turn; the second copy interrupts them.
    source = torch.where(in_second, place - second + first, place - part * (place >= second))
    shuffled = torch.rand(count, VOCAB_SIZE, generator=generator).argsort(1)
    return Sequences(shuffled.gather(1, source), in_second & (place < second + part - 1))


def encode(text: str) -> Int64[Tensor, "1 seq"]:
    """Read symbols as tokens: a to z are 0 to 25, and the digits 0 to 5 are 26 to 31.

    Args:
        text: at least one symbol, at most 32.

    Returns:
        Token ids, (1, seq).

    Raises:
        ValueError: the text has another symbol in it, or the number of symbols does not fit.

    Example:
        >>> from attention.trained.induction import decode, encode
        >>> encode("cab5"), decode(encode("cab5")[0])
        (tensor([[ 2,  0,  1, 31]]), 'cab5')
    """
    if not 1 <= len(text) <= LENGTH:
        raise ValueError(f"text must have 1 to {LENGTH} symbols, got {len(text)}")
    if unknown := [symbol for symbol in text if symbol not in SYMBOLS]:
        raise ValueError(
            f"text holds {unknown[0]!r}, which is no token; the tokens are a to z and 0 to 5"
        )
    return torch.tensor([[SYMBOLS.index(symbol) for symbol in text]])


def decode(token_ids: Int64[Tensor, " seq"]) -> str:
    """Show tokens as symbols.

    Args:
        token_ids: (seq,), each below 32.

    Example:
        >>> import torch
        >>> from attention.trained.induction import decode
        >>> decode(torch.tensor([7, 8]))
        'hi'
    """
    return "".join(SYMBOLS[i] for i in token_ids.tolist())


def new_sequences(count: int = 4000) -> Sequences:
    """Draw new sequences to measure on, the same at every call.

    Example:
        >>> from attention.trained.induction import new_sequences
        >>> new_sequences(50).token_ids.shape
        torch.Size([50, 32])
    """
    return draw_sequences(count, torch.Generator().manual_seed(10**6))
