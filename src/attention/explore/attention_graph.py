"""Attention as a weighted graph: tokens are nodes, weights are edges, one graph for each head."""

from collections.abc import Sequence

from ipywidgets import Dropdown

from attention.example import SENTENCES, example_attention, running_example
from attention.explore.controls import D_MODELS, N_HEADS, sentence_menu, size_sliders
from attention.explore.explorer import Explorer, Frame, explorer
from attention.masks import causal_mask, padding_mask
from attention.plots import Picture, plot_matrices


def attention_graph_explorer(
    sentences: Sequence[str] = SENTENCES,
    *,
    d_models: Sequence[int] = D_MODELS[:4],
    n_heads: Sequence[int] = N_HEADS,
    seed: int = 0,
) -> Explorer:
    """Explore a module's attention weights as graphs over the tokens, beside the same as maps.

    Padding is masked; a causal mask can be added. The weights are random, as in a model that has
    not been trained.

    Args:
        sentences: one of them is shown at a time.
        d_models: the widths that the d_model slider offers.
        n_heads: the head counts that the n_heads slider offers. A count that does not divide
            d_model can be chosen: the picture then shows what ``MultiHeadAttention`` says.
        seed: for the embedding table and the module's weights.

    Returns:
        The explorer, with controls ``sentence``, ``mask``, ``asks`` (whose edges are drawn),
        ``d_model`` and ``n_heads``.
    """

    def frame(sentence: int, mask: str, d_model: int, n_heads: int) -> Frame:
        example = running_example(d_model, sentences, seed=seed)
        allowed = padding_mask(example.token_ids, example.vocabulary.pad_id)
        if mask == "causal":
            allowed = allowed & causal_mask(example.token_ids.shape[1])
        module = example_attention(d_model, n_heads, seed=seed)
        _, weights = module(example.x.double(), mask=allowed)
        return {"tokens": example.tokens[sentence], "weights": weights[sentence]}

    def still(frame: Frame) -> Picture:
        return plot_matrices(
            {f"head {i}": weights for i, weights in enumerate(frame["weights"])},
            rows=frame["tokens"],
            columns=frame["tokens"],
            signed=False,
            alt="Attention weights of every head for the first sentence, one matrix for each head. "
            "Read as a graph, each entry is an edge from the row's token to the column's.",
        )

    length = running_example(d_models[0], sentences, seed=seed).token_ids.shape[1]
    controls = {
        "sentence": sentence_menu(sentences),
        "mask": Dropdown(options=["padding", "causal"], description="mask"),
        "asks": Dropdown(
            options=["all tokens", *(f"token {i}" for i in range(length))],
            index=min(3, length),
            description="asks",
        ),
        **size_sliders(d_models, n_heads),
    }
    return explorer("attention_graph", controls, frame, still)
