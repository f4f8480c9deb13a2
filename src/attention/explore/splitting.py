"""Where every entry of Q goes when the heads are split, the right way beside the wrong one."""

from collections.abc import Sequence

import torch

from attention.example import SENTENCES
from attention.explore.controls import D_MODELS, N_HEADS, sentence_menu, size_sliders
from attention.explore.explorer import Explorer, Frame, explorer
from attention.explore.trained_example import trained_example
from attention.heads import split_heads
from attention.plots import Picture, plot_matrices


def splitting_explorer(
    sentences: Sequence[str] = SENTENCES,
    *,
    d_models: Sequence[int] = D_MODELS,
    n_heads: Sequence[int] = N_HEADS,
) -> Explorer:
    """Explore ``split_heads``: which entry of Q lands in which head, for every d_model and n_heads.

    Args:
        sentences: one of them is shown at a time.
        d_models: the widths that the d_model slider offers.
        n_heads: the head counts that the n_heads slider offers. A count that does not divide
            d_model can be chosen: the picture then shows what ``split_heads`` says.

    Returns:
        The explorer, with controls ``sentence``, ``d_model`` and ``n_heads``.

    """

    def frame(sentence: int, d_model: int, n_heads: int) -> Frame:
        example = trained_example(d_model, n_heads, sentences)
        q = example.attention.w_q(example.x[[sentence]])
        # The same two operations on the positions 0, 1, 2, … of Q show where each entry goes.
        index = torch.arange(q.numel(), dtype=q.dtype).view(q.shape)
        wrong = (1, n_heads, q.shape[1], d_model // n_heads)
        return {
            "tokens": example.tokens[sentence],
            "q": q[0],
            "right": split_heads(q, n_heads)[0],
            "wrong": q.view(wrong)[0],
            "right_from": split_heads(index, n_heads)[0],
            "wrong_from": index.view(wrong)[0],
        }

    def still(frame: Frame) -> Picture:
        parts = {
            f"{title}head {i}": (frame[name][i], frame[f"{name}_from"][i])
            for title, name in (("", "right"), ("view only, ", "wrong"))
            for i in range(len(frame["right"]))
        }
        width = frame["q"].shape[1]
        return plot_matrices(
            {title: q for title, (q, _) in parts.items()},
            rows=[f"{token} {i}" for i, token in enumerate(frame["tokens"])],
            per_line=len(frame["right"]),
            origins={title: (index // width).long() for title, (_, index) in parts.items()},
            alt="Two rows of matrices, one matrix for each head; colour and digit say which token "
            "an entry comes from. Above, split_heads: every row holds its own token's entries. "
            "Below, view alone: most rows hold those of another token.",
        )

    controls = {
        "sentence": sentence_menu(sentences),
        **size_sliders(d_models, n_heads),
    }
    return explorer("splitting", "Splitting heads, right and wrong", controls, frame, still)
