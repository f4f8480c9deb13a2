"""The running example and the trained model's answers, in float64, from which frames are made."""

import copy
from collections.abc import Sequence
from typing import Any

import torch

from attention.embedding import sines_and_cosines
from attention.example import RunningExample, running_example
from attention.masks import padding_mask
from attention.text import tokenize
from attention.trained.who_and_whom import ALL_VERBS, WhoAndWhom, find_verbs, load


def trained_example(d_model: int, n_heads: int, sentences: Sequence[str]) -> RunningExample:
    """Make the running example in float64: see `running_example` for the arguments and errors."""
    example = running_example(d_model, n_heads, sentences)
    model = load(d_model, n_heads).requires_grad_(False).double()
    # Positions as float64 from the start: scores of hundreds would show what float32 has rounded.
    places = sines_and_cosines(example.token_ids.shape[1], d_model)
    x = model.embedding(example.token_ids) + places
    return example._replace(x=x, attention=model.attention)


def tokens_with_verb(sentence: str, verbs: Sequence[str] = ALL_VERBS) -> list[str]:
    """Split a sentence that has one of the verbs that a model knows.

    Raises:
        ValueError: it has none of them.
    """
    tokens = tokenize(sentence)
    if not find_verbs(tokens, verbs):
        raise ValueError(
            f"the sentence has no verb that the model knows: {sentence!r}; "
            f"it knows {', '.join(verbs)}: write a sentence with one of them"
        )
    return tokens


@torch.no_grad()
def answered(
    tokens: list[str], model: WhoAndWhom, verbs: Sequence[str] = ALL_VERBS
) -> dict[str, Any]:
    """What the model answers at a sentence's first verb, and what each head looks at.

    The names are those that `arcs.js` draws by.

    Args:
        tokens: a sentence with a verb that the model knows.
        model: it is left as it is.
        verbs: those that it knows, the book's unless given.
    """
    model = copy.deepcopy(model).double()
    token_ids, verb = model.vocabulary.encode_batch([tokens]), find_verbs(tokens, verbs)[0]
    mask = padding_mask(token_ids, model.vocabulary.pad_id)
    output, weights = model.attention(model.embed(token_ids), mask=mask)
    who, whom = model.read(output, torch.tensor([verb]))
    return {
        "tokens": tokens,
        "verb": verb,
        "weights": weights[0],
        "who": who.softmax(-1)[0],
        "whom": whom.softmax(-1)[0],
        "verbs": list(verbs),
        "vocabulary": list(model.vocabulary.tokens),
    }
