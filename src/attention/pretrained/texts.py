"""Four texts of about 680 tokens, written for this book: no model has been trained on them."""

from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

TEXTS = Path(__file__).with_name("texts")


def token_ids_of_texts(tokenizer: Any, longest: int) -> dict[str, Int[Tensor, "1 seq"]]:
    """The first tokens of each text, by its name.

    Args:
        tokenizer: a tokenizer of the package tokenizers, as `load` returns it.
        longest: how many tokens of each text.

    Example:
        >>> from attention.pretrained import load
        >>> from attention.pretrained.texts import token_ids_of_texts
        >>> ids = token_ids_of_texts(load().tokenizer, longest=200)
        >>> list(ids), ids["bread"].shape
        (['bread', 'letter', 'report', 'story'], torch.Size([1, 200]))
    """
    texts = {path.stem: path.read_text("utf-8") for path in sorted(TEXTS.glob("*.txt"))}
    return {
        name: torch.tensor([tokenizer.encode(text).ids[:longest]]) for name, text in texts.items()
    }
