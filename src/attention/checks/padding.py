"""check_padding_mask (chapter 5): True for every key that is a token, (batch, 1, 1, key)."""

import math  # noqa: F401 - rows use it
from collections.abc import Callable

import torch

from attention.masks import padding_mask

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result


def tokens_masked(yours, right, inputs):
    tokens = right[0][:, 0, 0]
    mine = yours[0].expand_as(right[0])[:, 0, 0]
    return (
        f"Of {int(tokens.sum())} tokens yours leaves {int((mine & tokens).sum())} visible, and of "
        f"{int((~tokens).sum())} paddings {int((mine & ~tokens).sum())}."
    )


BANK = Bank.read(__file__, padding_mask, globals())


def cases(numbers: Numbers) -> list[Case]:
    def case(pad_id, *, left):
        batch, seq = numbers.sizes(2, least=3)
        ids = torch.randint(0, 7, (batch, seq), generator=numbers.numbers_from)
        ids = ids + (ids >= pad_id)  # any id but pad_id, on both sides of it
        tokens = numbers.padding(batch, seq)
        ids = ids.masked_fill(~(tokens.flip(1) if left else tokens), pad_id)
        return Case({"token_ids": ids, "pad_id": pad_id})

    return [case(3, left=False), case(5, left=True), case(0, left=False)]


TASK = Task("padding_mask", padding_mask, BANK, cases, {"mask": "batch 1 1 key"})


def check_padding_mask(function: Callable, *, seed: int = 0) -> Result:
    """Check padding_mask(token_ids, pad_id): ids (batch, key) -> boolean (batch, 1, 1, key)."""
    return examine(TASK, function, seed)
