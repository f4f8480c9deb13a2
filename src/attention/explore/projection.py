"""X beside its three projections, and their parameters for every d_model and n_heads."""

from collections.abc import Sequence

import torch
from ipywidgets import Checkbox

from attention.example import SENTENCES
from attention.explore.controls import D_MODELS, N_HEADS, sentence_menu, size_sliders
from attention.explore.explorer import Explorer, Frame, explorer, page_weights
from attention.explore.trained_example import trained_example
from attention.per_head import Head
from attention.plots import Picture, plot_matrices
from attention.trained import who_and_whom
from attention.trained.who_and_whom import SIZES


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

    def frame(sentence: int, d_model: int, n_heads: int) -> Frame:
        """The frame with biases; the page computes the one without, which halves what is stored."""
        example = trained_example(d_model, n_heads, sentences)
        module = example.attention
        projections = {"q": module.w_q, "k": module.w_k, "v": module.w_v}
        with torch.device("meta"):  # the head is counted, and holds no numbers
            head = Head(d_model, module.d_key)
        return {
            "tokens": example.tokens[sentence],
            "x": example.x[sentence],
            **{name: linear(example.x[sentence]) for name, linear in projections.items()},
            **{f"b_{name}": linear.bias[None] for name, linear in projections.items()},
            "d_key": module.d_key,
            "weights": module.w_q.weight.numel(),
            "parameters": 3 * (module.w_q.weight.numel() + d_model),
            "head_weights": head.w_q.weight.numel(),
            "head_parameters": sum(p.numel() for p in head.parameters()),
            "setting": {"bias": "on"},
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
    models = {
        f"{size[0]},{size[1]}": {
            name: value
            for name, value in page_weights(who_and_whom.load(*size)).items()
            if not name.endswith("_o")  # the projection of the heads' outputs is not shown
        }
        for size in SIZES
        if size[0] in d_models and size[1] in n_heads
    }
    title = "X and its three projections"
    return explorer("projection", title, controls, frame, still, models=models)
