"""X beside its three projections, and what the projections weigh for every d_model and n_heads."""

from collections.abc import Sequence

import torch
from ipywidgets import Checkbox

from attention.example import SENTENCES, running_example
from attention.explore.controls import D_MODELS, N_HEADS, sentence_menu, size_sliders
from attention.explore.explorer import Explorer, Frame, explorer
from attention.multihead import MultiHeadAttention
from attention.per_head import Head
from attention.plots import Picture, plot_matrices


def projection_explorer(
    sentences: Sequence[str] = SENTENCES,
    *,
    d_models: Sequence[int] = D_MODELS,
    n_heads: Sequence[int] = N_HEADS,
    seed: int = 0,
) -> Explorer:
    """Explore Q, K and V: their shapes, the columns of each head, and the number of parameters.

    Args:
        sentences: one of them is shown at a time.
        d_models: the widths that the d_model slider offers.
        n_heads: the head counts that the n_heads slider offers. A count that does not divide
            d_model can be chosen: the picture then shows what ``MultiHeadAttention`` says.
        seed: for the embedding table and for the projections.

    Returns:
        The explorer, with controls ``sentence``, ``d_model``, ``n_heads`` and ``bias``.

    """

    def frame(sentence: int, d_model: int, n_heads: int, bias: bool) -> Frame:
        example = running_example(d_model, sentences, seed=seed)
        x = example.x[sentence].double()
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(seed)
            drawn = MultiHeadAttention(d_model, n_heads)
            module = MultiHeadAttention(d_model, n_heads, bias=bias)
            # The same matrices with and without bias, so that nothing but the bias differs.
            module.load_state_dict(drawn.state_dict(), strict=bias)
            head = Head(d_model, module.d_key, bias=bias)
            module.double()
            projections = {"q": module.w_q, "k": module.w_k, "v": module.w_v}
            projected = {name: linear(x) for name, linear in projections.items()}
        biases = {f"b_{name}": linear.bias[None] for name, linear in projections.items() if bias}
        return {
            "tokens": example.tokens[sentence],
            "x": x,
            **projected,
            **biases,
            "d_key": module.d_key,
            "weights": module.w_q.weight.numel(),
            "parameters": sum(p.numel() for w in projections.values() for p in w.parameters()),
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
    return explorer("projection", controls, frame, still)
