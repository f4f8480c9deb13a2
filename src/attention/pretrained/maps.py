"""Where each head of a published model looks in a few short sentences, small enough for a page.

A page carries a map for each of 270 heads and a dozen sentences. It needs only the shade of a
weight, so each weight is one of 64 levels, written as one character, and what the causal mask hides
is left out.
"""

from collections.abc import Sequence
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from attention.arguments import require_shape, require_vectors
from attention.transformer.decoder_only import DecoderOnly

SENTENCES = (
    "Once upon a time the dog near the river chased the cat.",
    "Once upon a time the dog chased the cat.",
    "Once upon a time the cat that the dog saw chased the fox.",
    "Once upon a time the cat was chased by the dog.",
    "The cat saw the other cat.",
    "The keys near the cabinet are old.",
    "She gave him the book because he had asked.",
    "red blue green pink red blue green pink",
    "Anna, Ben, Clara, Anna, Ben, Clara",
    "for i in range(10): print(i)",
    "The bread was in the oven when I came home.",
    "Marta was late again. She ran along the quay.",
)
LEVELS = ascii_uppercase + ascii_lowercase + digits + "+/"


def to_levels(weights: Float[Tensor, "layers heads seq seq"]) -> str:
    """Write causal weights as one character each, row by row up to the diagonal.

    The levels are those of the square root, so that small weights are told apart: a weight of .8
    is off by at most .015, and one of .01 by at most .002.

    Args:
        weights: (layers, heads, query, key), 0 where the key comes after the query.

    Example:
        >>> import torch
        >>> from attention.pretrained.maps import from_levels, to_levels
        >>> levels = to_levels(torch.tensor([[[[1.0, 0.0], [0.25, 0.75]]]]))
        >>> levels, from_levels(levels, (1, 1, 2, 2))[0, 0, 1]
        ('/g3', tensor([0.2580, 0.7622]))
    """
    require_vectors("weights", weights, "layers heads seq seq")
    seen = torch.ones(weights.shape[-2:], dtype=torch.bool).tril()
    levels = (weights.clamp(0, 1).sqrt() * (len(LEVELS) - 1)).round().int()
    return "".join(LEVELS[each] for each in levels[..., seen].flatten().tolist())


def from_levels(levels: str, shape: Sequence[int]) -> Float[Tensor, "layers heads seq seq"]:
    """Read what `to_levels` wrote.

    Args:
        levels: its text.
        shape: of the weights, (layers, heads, query, key).

    Raises:
        ValueError: the text has more or fewer characters than such weights.

    Example:
        >>> from attention.pretrained.maps import from_levels
        >>> from_levels("/A/", (1, 1, 2, 2))[0, 0]
        tensor([[1., 0.],
                [0., 1.]])
    """
    seen = torch.ones(shape[-2:], dtype=torch.bool).tril()
    roots = torch.tensor([LEVELS.index(each) for each in levels]) / (len(LEVELS) - 1)
    expected = (shape[0] * shape[1] * int(seen.sum()),)
    require_shape("levels", roots, expected, "weights up to the diagonal")
    weights = torch.zeros(shape)
    weights[..., seen] = roots.square().reshape(*shape[:2], -1)
    return weights


@torch.no_grad()
def map_of(model: DecoderOnly, tokenizer: Any, sentence: str) -> dict[str, Any]:
    """Where all heads look in one sentence.

    Args:
        model: the model.
        tokenizer: as `attention.pretrained.load` returns it.
        sentence: any text.

    Returns:
        A dict of "tokens", their texts, "levels", as `to_levels` writes them, and "shape".

    Example:
        >>> from attention.pretrained import load
        >>> from attention.pretrained.maps import from_levels, map_of
        >>> model, tokenizer, _ = load()
        >>> held = map_of(model, tokenizer, "Once upon a time the dog chased the cat.")
        >>> weights = from_levels(held["levels"], held["shape"])
        >>> verb, subject = held["tokens"].index(" chased"), held["tokens"].index(" dog")
        >>> bool(weights[13, 8, verb, subject] > 0.7)
        True
    """
    ids = tokenizer.encode(sentence).ids
    _, weights = model.read(torch.tensor([ids]))
    of_heads = torch.stack(weights)[:, 0]  # (layers, heads, query, key)
    return {
        "tokens": [tokenizer.decode([each]) for each in ids],
        "levels": to_levels(of_heads),
        "shape": list(of_heads.shape),
    }
