"""What each divisor of the scores does to the weights of real tokens, for every d_key."""

import math
from collections.abc import Sequence

import torch
from ipywidgets import Dropdown, SelectionSlider
from torch import Tensor

from attention.dot_product import scaled_dot_product_attention
from attention.example import SENTENCES, running_example
from attention.explore.controls import D_MODELS, N_HEADS, sentence_menu, size_sliders
from attention.explore.explorer import Explorer, Frame, explorer
from attention.explore.trained_example import trained_example
from attention.heads import split_heads
from attention.plots import Picture, plot_matrices

DIVISORS = ("nothing", "√d_key", "d_key", "√d_model")


def scaling_explorer(
    sentences: Sequence[str] = SENTENCES,
    *,
    d_models: Sequence[int] = D_MODELS,
    n_heads: Sequence[int] = N_HEADS,
) -> Explorer:
    """Explore the scaling of scores: weights with the chosen divisor beside weights without one.

    Below the weights of one query in every head, bars compare four divisors (none, √d_key, d_key,
    √d_model) over all heads and queries of the sentence: the spread of the scores within a row (the
    root of their mean variance), and the means of the largest weight, of the entropy in nats, and
    of the gradient norm, which is the Frobenius norm of diag(a) - a·aᵀ, the derivative of the
    weights a with respect to the scores.

    Args:
        sentences: one of them is shown at a time.
        d_models: the widths that the d_model slider offers.
        n_heads: the head counts that the n_heads slider offers. Where no model of a size was
            trained, the picture says why.

    Returns:
        The explorer, with controls ``sentence``, ``query``, ``d_model``, ``n_heads`` and
        ``divisor``.

    """
    length = len(running_example(sentences=sentences).tokens[0])
    query = min(2, length - 1)  # the one that is shown at first

    def frame(sentence: int, d_model: int, n_heads: int) -> Frame:
        example = trained_example(d_model, n_heads, sentences)
        x = example.x[[sentence]]
        q = split_heads(example.attention.w_q(x), n_heads)
        k = split_heads(example.attention.w_k(x), n_heads)
        d_key = q.shape[-1]
        divisors = (1.0, math.sqrt(d_key), float(d_key), math.sqrt(d_model))
        unscaled = (q @ k.transpose(-2, -1))[0]  # (heads, query, key)
        # Only the weights are asked for here, so the keys stand in as values.
        weights = [scaled_dot_product_attention(q, k, k, scale=1 / by)[1][0] for by in divisors]
        measured = [statistics(unscaled / by, a) for by, a in zip(divisors, weights, strict=True)]
        length = len(example.tokens[sentence])
        return {
            "tokens": example.tokens[sentence],
            "divisors": divisors,
            # What each measure is where all keys get the same weight.
            "equal": [0.0, 1 / length, math.log(length), math.sqrt(length - 1) / length],
            # (query, heads, key): the picture shows one query in every head.
            "unscaled": unscaled.transpose(0, 1),
            **{f"weights{i}": a.transpose(0, 1) for i, a in enumerate(weights)},
            "measured": torch.stack(measured, dim=1)[..., None],  # (measure, divisor, 1)
        }

    def still(frame: Frame) -> Picture:
        tokens, (_, by, *_) = frame["tokens"], frame["divisors"]
        alone, scaled = frame["weights0"][query], frame["weights1"][query]
        return plot_matrices(
            {"divided by nothing": alone, f"divided by √d_key = {by:.2f}": scaled},
            rows=[f"head {i}" for i in range(len(alone))],
            columns=tokens,
            signed=False,
            alt=f"The weights that the query {tokens[query]} gives to its {len(tokens)} keys, one "
            "row for each head: left without scaling, right divided by the root of d_key.",
        )

    controls = {
        "sentence": sentence_menu(sentences),
        "query": SelectionSlider(options=range(length), value=query, description="query"),
        **size_sliders(d_models, n_heads),
        "divisor": Dropdown(options=DIVISORS[1:], value="√d_key", description="divide by"),
    }
    return explorer("scaling", "Scores and their divisor", controls, frame, still)


def statistics(scores: Tensor, weights: Tensor) -> Tensor:
    """Spread of the scores; means of the largest weight, the entropy and the gradient norm."""
    jacobian = torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]
    measured = (
        # Within a row, because what all keys of a query share does not reach the weights.
        scores.var(dim=-1, correction=0).mean().sqrt(),
        weights.amax(dim=-1).mean(),
        torch.special.entr(weights).sum(dim=-1).mean(),
        torch.linalg.matrix_norm(jacobian).mean(),
    )
    return torch.stack(measured)
