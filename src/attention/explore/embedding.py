"""From words to X: embedding plus position, which rows are equal, and how positions compare."""

from collections.abc import Sequence

from ipywidgets import Checkbox, SelectionSlider

from attention.example import SENTENCES
from attention.explore.controls import D_MODELS, sentence_menu
from attention.explore.explorer import Explorer, Frame, explorer
from attention.plots import Picture, plot_matrices
from attention.trained import who_and_whom
from attention.trained.who_and_whom import VOCABULARY


def embedding_explorer(
    sentences: Sequence[str] = SENTENCES,
    *,
    d_models: Sequence[int] = D_MODELS,
) -> Explorer:
    """Explore X: the rows of a sentence with and without positions, and their dot products.

    Args:
        sentences: one of them is shown at a time.
        d_models: the widths that the d_model slider offers.

    Returns:
        The explorer, with controls ``sentence``, ``d_model`` and ``positions``.

    Raises:
        ValueError: the sentences hold no token at all.

    """
    token_ids = VOCABULARY.encode_batch(sentences)
    n_positions = max(12, token_ids.shape[1])  # more than a short sentence has, to show the pattern

    def frame(sentence: int, d_model: int, positions: bool) -> Frame:
        model = who_and_whom.load(d_model).requires_grad_(False).double()
        words = model.embedding(token_ids[[sentence]])
        x = (model.positional_encoding(words) if positions else words)[0]
        pe = model.positional_encoding.table[:n_positions]
        equal = (x[:, None] == x).all(-1).fill_diagonal_(False)
        return {
            "tokens": VOCABULARY.decode(token_ids[sentence]),
            "words": words[0],
            "pe": pe[: len(x)],
            "x": x,
            "dots": x @ x.T,
            "pe_dots": pe @ pe.T,
            # For each row the first other row that equals it, or -1.
            "twin": [int(row.int().argmax()) if row.any() else -1 for row in equal],
        }

    def still(frame: Frame) -> Picture:
        parts = {"embedding · √d_model": "words", "positional encoding": "pe", "X, their sum": "x"}
        return plot_matrices(
            {title: frame[name] for title, name in parts.items()},
            rows=frame["tokens"],
            per_line=2,
            alt="Three matrices with a row for each token: the scaled embedding, in which the rows "
            "of a repeated word are equal, the positional encoding, and their sum X, in which "
            "they differ.",
        )

    controls = {
        "sentence": sentence_menu(sentences),
        "d_model": SelectionSlider(
            options=d_models, value=8 if 8 in d_models else d_models[0], description="d_model"
        ),
        "positions": Checkbox(value=True, description="positions", indent=False),
    }
    return explorer("embedding", "Tokens and positions as vectors", controls, frame, still)
