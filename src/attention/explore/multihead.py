"""The whole module at work: a sentence goes in, every head's attention weights come out."""

from collections.abc import Sequence

from attention.example import SENTENCES
from attention.explore.controls import D_MODELS, N_HEADS, sentence_menu, size_sliders
from attention.explore.explorer import Explorer, Frame, explorer
from attention.explore.trained_example import trained_example
from attention.masks import padding_mask
from attention.plots import Picture, plot_matrices


def multihead_explorer(
    sentences: Sequence[str] = SENTENCES,
    *,
    d_models: Sequence[int] = D_MODELS,
    n_heads: Sequence[int] = N_HEADS,
) -> Explorer:
    """Explore ``MultiHeadAttention`` on whole sentences: the weights of every head, and the output.

    Padding is masked. The weights are those of the trained model.

    Args:
        sentences: one of them is shown at a time.
        d_models: the widths that the d_model slider offers.
        n_heads: the head counts that the n_heads slider offers. Where no model of a size was
            trained, the picture says why.

    Returns:
        The explorer, with controls ``sentence``, ``d_model`` and ``n_heads``.
    """

    def frame(sentence: int, d_model: int, n_heads: int) -> Frame:
        example = trained_example(d_model, n_heads, sentences)
        mask = padding_mask(example.token_ids, example.vocabulary.pad_id)
        output, weights = example.attention(example.x, mask=mask)
        return {
            "tokens": example.tokens[sentence],
            "weights": weights[sentence],
            "output": output[sentence],
        }

    def still(frame: Frame) -> Picture:
        return plot_matrices(
            {f"head {i}": weights for i, weights in enumerate(frame["weights"])},
            rows=frame["tokens"],
            columns=frame["tokens"],
            signed=False,
            alt="Attention weights of every head for the first sentence: one matrix for each head, "
            "a row for each token that asks and a column for each token it attends to.",
        )

    controls = {
        "sentence": sentence_menu(sentences),
        **size_sliders(d_models, n_heads),
    }
    return explorer("multihead", "Every head's weights, and the output", controls, frame, still)
