"""Talks: rows of names, other words and question marks, and who spoke last at each position."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from attention.arguments import require_size

NAMES = ("ann", "ben", "cara", "dan", "eva", "finn", "gus", "hana")
OTHERS = ("yes", "no", "well", "so", "maybe", "right", "fine", "hm")
QUESTION = "?"
WORDS = (*NAMES, *OTHERS, QUESTION)  # a word's token id is its index here
LENGTH = 16  # words of a talk in training
LENGTHS = (16, 24, 32, 48, 64, 128)  # words of the talks that a model is measured on


class Talks(NamedTuple):
    """Talks of one length, each of which ends with a question mark.

    Attributes:
        token_ids: (batch, seq).
        asked: (batch, seq), True at the question marks.
        speaker: (batch, seq), who spoke last, as a token id: the nearest name, the position itself
            included.
    """

    token_ids: Int64[Tensor, "batch seq"]
    asked: Bool[Tensor, "batch seq"]
    speaker: Int64[Tensor, "batch seq"]


def draw_talks(count: int, length: int, generator: torch.Generator) -> Talks:
    """Draw talks: a name first, a question mark last, and anything between them.

    Of the words between, a quarter are names and a quarter question marks.

    Args:
        count: how many.
        length: words of a talk, at least 2.
        generator: where the random numbers come from.

    Example:
        >>> import torch
        >>> from attention.trained.last_speaker import WORDS, draw_talks
        >>> talks = draw_talks(1, 6, torch.Generator().manual_seed(7))
        >>> " ".join(WORDS[i] for i in talks.token_ids[0])
        'hana eva ? ? fine ?'
        >>> WORDS[talks.speaker[0, -1]]
        'eva'
    """
    require_size("count", count)
    require_size("length", length, least=2)

    def words(among: tuple[str, ...]) -> Int64[Tensor, "count length"]:
        first = WORDS.index(among[0])
        return torch.randint(first, first + len(among), (count, length), generator=generator)

    names, others = words(NAMES), words(OTHERS)
    kind = torch.rand(count, length, generator=generator)
    kind[:, 0], kind[:, -1] = 0, 0.3  # a name, and a question mark
    question = torch.tensor(WORDS.index(QUESTION))
    token_ids = torch.where(kind < 0.25, names, torch.where(kind < 0.5, question, others))
    place = torch.where(token_ids < len(NAMES), torch.arange(length), 0).cummax(1).values
    return Talks(token_ids, token_ids == question, token_ids.gather(1, place))


def new_talks(length: int, count: int = 1000) -> Talks:
    """Draw new talks of some length to measure on, the same at every call.

    Example:
        >>> from attention.trained.last_speaker import new_talks
        >>> new_talks(64, 50).token_ids.shape
        torch.Size([50, 64])
    """
    return draw_talks(count, length, torch.Generator().manual_seed(10**6 + length))
