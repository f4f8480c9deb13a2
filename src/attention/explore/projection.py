"""X beside its three projections, and what the projections weigh for every d_model and n_heads."""

from collections.abc import Sequence

import torch
from ipywidgets import Checkbox
from torch.nn import functional as F

from attention.example import SENTENCES
from attention.explore.controls import D_MODELS, N_HEADS, sentence_menu, size_sliders
from attention.explore.explorer import Explorer, Frame, explorer
from attention.explore.trained_example import trained_example
from attention.per_head import Head
from attention.plots import Picture, plot_matrices


def projection_explorer(
    sentences: Sequence[str] = SENTENCES,
    *,
    d_models: Sequence[int] = D_MODELS,
    n_heads: Sequence[int] = N_HEADS,
) -> Explorer:
    """Explore Q, K and V: their shapes, the columns of each head, and the number of parameters.

    Args:
        sentences: one of them is shown at a time.
        d_models: the widths that the d_model slider offers.
        n_heads: the head counts that the n_heads slider offers. Where no model of a size was
            trained, the picture says why.

    Returns:
        The explorer, with controls ``sentence``, ``d_model``, ``n_heads`` and ``bias``.

    """

    def frame(sentence: int, d_model: int, n_heads: int, bias: bool) -> Frame:
        example = trained_example(d_model, n_heads, sentences)
        module = example.attention
        projections = {"q": module.w_q, "k": module.w_k, "v": module.w_v}
        projected = {
            name: F.linear(example.x[sentence], linear.weight, linear.bias if bias else None)
            for name, linear in projections.items()
        }
        with torch.device("meta"):  # it is counted, and holds no numbers
            head = Head(d_model, module.d_key, bias=bias)
        biases = {f"b_{name}": linear.bias[None] for name, linear in projections.items() if bias}
        return {
            "tokens": example.tokens[sentence],
            "x": example.x[sentence],
            **projected,
            **biases,
            "d_key": module.d_key,
            "weights": module.w_q.weight.numel(),
            "parameters": 3 * (module.w_q.weight.numel() + bias * d_model),
            "head_weights": head.w_q.weight.numel(),
            "head_parameters": sum(p.numel() for p in head.parameters()),
        }

    def still(frame: Frame) -> Picture:
        return plot_matrices(
            {name.upper(): frame[name] for name in "xqkv"},
            rows=frame["tokens"],
            per_line=2,
            alt="Four matrices of one shape, a row for each token: X, and the three projections "
            "Q, K and V that are made of it. They hold different numbers.",
        )

    controls = {
        "sentence": sentence_menu(sentences),
        **size_sliders(d_models, n_heads),
        "bias": Checkbox(value=True, description="bias", indent=False),
    }
    return explorer("projection", "X and its three projections", controls, frame, still)
