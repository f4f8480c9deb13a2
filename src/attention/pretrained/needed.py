"""Needed here, needed only elsewhere: what four trained models lose without each of their parts.

A part is taken away everywhere in a model at once, everything else is left as it is, and nothing is
trained again. So a price says what this model relies on, not what its task needs.
"""

from collections.abc import Callable
from functools import partial
from math import inf, isnan
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attention.dot_product import DotProduct
from attention.embedding import SinusoidalPositionalEncoding
from attention.multihead import MultiHeadAttention
from attention.positions.rotary import Rotary
from attention.pretrained.loading import Pretrained
from attention.pretrained.mistakes import (
    BASE,
    D_KEY,
    MISTAKES,
    mean_of_queries,
    price,
    sharing_weights,
    wrong,
)
from attention.pretrained.texts import token_ids_of_texts
from attention.trained import dates, relative_clauses, who_and_whom
from attention.transformer.decoder import DecoderLayer
from attention.transformer.decoder_only import DecoderOnly
from attention.transformer.feed_forward import FeedForward
from attention.transformer.residual import ResidualLayer

SHORT = 200  # tokens of a text

# The parts that one of `MISTAKES` takes away from SmolLM2, whose positions, for example, are in
# what attends.
OF_MISTAKES = {
    "divisor": "no divisor",
    "scores": "all weights equal",
    "mask": "no mask",
    "positions": "no positions",
    "W_O": "no W_O",
}


def all_of(*kinds: type[nn.Module]) -> Callable[[nn.Module], list[nn.Module]]:
    return lambda model: [each for each in model.modules() if isinstance(each, kinds)]


def what_hides(model: nn.Module) -> list[nn.Module]:
    """What hides the future in a decoder or, in a model without one, all that hides padding."""
    decoders = all_of(DecoderLayer)(model)
    return [layer.self_attention.attend for layer in decoders] or all_of(DotProduct)(model)


def see_all(attend: DotProduct) -> None:
    def changed(module: nn.Module, inputs: tuple, options: dict) -> tuple[tuple, dict]:
        return (*inputs[:3], None), options | {"causal": False}

    attend.register_forward_pre_hook(changed, with_kwargs=True)


def ask(change: Callable[[Tensor, Tensor | None], Tensor], attend: DotProduct) -> None:
    """Attend with other queries, made from the queries and the mask."""

    def changed(module: nn.Module, inputs: tuple) -> tuple:
        q, k, v, mask = inputs
        return change(q, mask), k, v, mask

    attend.register_forward_pre_hook(changed)


def mean_query(
    q: Float[Tensor, "batch heads query d_key"], mask: Bool[Tensor, "..."] | None
) -> Float[Tensor, "batch heads query d_key"]:
    """Replace each query by the mean of its sentence's queries, leaving out those of padding."""
    # A mask that is as long as the queries is their own. The mask of cross-attention is longer,
    # because a date has more letters than signs, and no sign is padding.
    own = mask is not None and mask.shape[-1] == q.shape[2]
    counts = mask.mT.to(q.dtype) if own else q.new_ones(1, 1, q.shape[2], 1)
    return ((q * counts).sum(2, keepdim=True) / counts.sum(2, keepdim=True)).expand_as(q)


def mean_turned(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    return Rotary(D_KEY, BASE)(mean_of_queries(q), k)


def let_through(module: nn.Module) -> None:
    module.register_forward_hook(lambda module, inputs, output: inputs[0])


def silence(module: nn.Module) -> None:
    module.register_forward_hook(lambda module, inputs, output: torch.zeros_like(output))


def add_nothing(layer: ResidualLayer) -> None:
    """Pass on the sublayer's output alone: all models with a residual have pre-norm order."""
    layer.residual = lambda x, sublayer, norm: sublayer(norm(x))


# By name: a function that finds a part's places in a model, and one that takes the part away from
# one of these places.
PARTS: dict[str, tuple[Callable[[nn.Module], list[nn.Module]], Callable[[Any], None]]] = {
    "divisor": (all_of(DotProduct), partial(ask, lambda q, mask: q * q.shape[-1] ** 0.5)),
    "queries": (all_of(DotProduct), partial(ask, mean_query)),
    "scores": (all_of(DotProduct), partial(ask, lambda q, mask: 0 * q)),
    "mask": (what_hides, see_all),
    "positions": (all_of(SinusoidalPositionalEncoding), let_through),
    "W_O": (all_of(MultiHeadAttention), lambda attention: let_through(attention.w_o)),
    "residual": (all_of(ResidualLayer), add_nothing),
    "norm": (all_of(nn.LayerNorm, nn.RMSNorm), let_through),
    "feed-forward": (all_of(FeedForward), silence),
}


def without(model: nn.Module, part: str) -> nn.Module | None:
    """Copy a model without one of its parts; the weights are shared.

    Args:
        model: one of the four, in evaluation mode. It stays as it is.
        part: of `PARTS`. Without "queries" all the queries of a head are replaced by one, their
            mean; without "scores" all weights are equal; without "mask" a decoder sees the future,
            and an encoder sees padding.

    Returns:
        The copy, or None where the model has no such part.

    Raises:
        ValueError: there is no such part.

    Example:
        >>> from attention.pretrained.needed import without
        >>> from attention.trained import who_and_whom
        >>> model = who_and_whom.load()
        >>> batch = who_and_whom.encode(who_and_whom.new_sentences(count=500))
        >>> who_and_whom.accuracy(without(model, "positions"), batch).both < 0.2
        True
        >>> without(model, "residual") is None
        True
    """
    if part not in PARTS:
        raise ValueError(f"part={part!r} must be one of {', '.join(map(repr, PARTS))}")
    if isinstance(model, DecoderOnly) and part in OF_MISTAKES:
        return MISTAKES[OF_MISTAKES[part]](model)
    if isinstance(model, DecoderOnly) and part == "queries":  # before the turn: positions stay
        return wrong(turn=mean_turned)(model)
    model = sharing_weights(model)
    find, take_away = PARTS[part]
    places = find(model)
    for place in places:
        take_away(place)
    return model if places else None


def needed(smol: Pretrained) -> dict[str, dict[str, float | list[float] | None]]:
    """Measure four models without each of their parts.

    Args:
        smol: SmolLM2, as `load` returns it.

    Returns:
        By model, and by "none" and each of `PARTS`: the share of verbs with both answers right for
        "who and whom" and "two layers", that of dates written whole for "dates", and for "SmolLM2"
        the loss on each of four texts, in nats. None where a model has no such part. A loss is inf
        where the numbers outgrow float32, as SmolLM2's do without norms.

    Example:
        >>> from attention.pretrained.measured import load_measured
        >>> table = load_measured("needed")  # what it returned
        >>> table["two layers"]["feed-forward"] > 0.9, table["two layers"]["norm"] < 0.1
        (True, True)
        >>> table["who and whom"]["feed-forward"] is None, len(table["SmolLM2"]["none"])
        (True, 4)
    """
    verbs, days = who_and_whom.encode(who_and_whom.new_sentences()), dates.held_out_dates()
    clauses = relative_clauses.new_clauses()
    texts = token_ids_of_texts(smol.tokenizer, SHORT).values()
    measures: dict[str, tuple[nn.Module, Callable[[Any], float | list[float]]]] = {
        "who and whom": (who_and_whom.load(), lambda x: who_and_whom.accuracy(x, verbs).both),
        "two layers": (relative_clauses.load(2), lambda x: relative_clauses.accuracy(x, clauses)),
        "dates": (dates.load("transformer"), lambda x: dates.accuracy(x, days)),
        "SmolLM2": (smol.model, lambda x: [loss_on(x, ids) for ids in texts]),
    }
    table = {}
    for name, (model, measure) in measures.items():
        lacking = {"none": model} | {part: without(model, part) for part in PARTS}
        table[name] = {part: x if x is None else measure(x) for part, x in lacking.items()}
    return table


def loss_on(model: DecoderOnly, token_ids: Tensor) -> float:
    loss = price(model, token_ids).loss
    return inf if isnan(loss) else loss
