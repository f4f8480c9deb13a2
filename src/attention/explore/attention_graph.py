"""Attention as a weighted graph: tokens are nodes, weights are edges, one graph for each head."""

from collections.abc import Sequence

from ipywidgets import Dropdown

from attention.example import SENTENCES, running_example
from attention.explore.controls import D_MODELS, N_HEADS, sentence_menu, size_sliders
from attention.explore.explorer import Explorer, Frame, explorer
from attention.explore.trained_example import trained_example
from attention.masks import causal_mask, padding_mask
from attention.plots import Picture, plot_heads


def attention_graph_explorer(
    sentences: Sequence[str] = SENTENCES,
    *,
    d_models: Sequence[int] = D_MODELS,
    n_heads: Sequence[int] = N_HEADS,
) -> Explorer:
    """Explore a module's attention weights as graphs over the tokens, beside the weights as maps.

    Padding is masked; a causal mask can be added. The weights are those of the
    trained model.

    Args:
        sentences: one of them is shown at a time.
        d_models: the widths that the d_model slider offers.
        n_heads: the head counts that the n_heads slider offers. Where no model of a size was
            trained, the picture says why.

    Returns:
        The explorer, with controls ``sentence``, ``mask``, ``query`` (whose edges are drawn),
        ``d_model`` and ``n_heads``.
    """
    length = running_example(sentences=sentences).token_ids.shape[1]
    query = min(2, length - 1)  # whose edges are drawn at first

    def frame(sentence: int, mask: str, d_model: int, n_heads: int) -> Frame:
        example = trained_example(d_model, n_heads, sentences)
        allowed = padding_mask(example.token_ids, example.vocabulary.pad_id)
        if mask == "causal":
            allowed = allowed & causal_mask(example.token_ids.shape[1])
        _, weights = example.attention(example.x, mask=allowed)
        return {"tokens": example.tokens[sentence], "weights": weights[sentence]}

    def still(frame: Frame) -> Picture:
        return plot_heads(
            frame["tokens"],
            query,
            frame["weights"],
            alt=f"The words of the first sentence, and a line for each head from "
            f"“{frame['tokens'][query]}” to the words it attends to, as wide as the weight.",
        )

    controls = {
        "sentence": sentence_menu(sentences),
        "mask": Dropdown(options=["padding", "causal"], description="mask"),
        "query": Dropdown(
            options=["all", *map(str, range(length))], index=query + 1, description="query"
        ),
        **size_sliders(d_models, n_heads),
    }
    return explorer("attention_graph", "Who attends to whom, as graphs", controls, frame, still)
