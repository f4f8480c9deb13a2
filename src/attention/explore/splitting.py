"""Where every entry of Q goes when the heads are split, the right way beside the wrong one."""

from collections.abc import Sequence

import torch

from attention.example import SENTENCES, example_attention, running_example
from attention.explore.controls import D_MODELS, N_HEADS, sentence_menu, size_sliders
from attention.explore.explorer import Explorer, Frame, explorer
from attention.heads import split_heads
from attention.plots import Picture, plot_matrices


def splitting_explorer(
    sentences: Sequence[str] = SENTENCES,
    *,
    d_models: Sequence[int] = D_MODELS,
    n_heads: Sequence[int] = N_HEADS,
    seed: int = 0,
) -> Explorer:
    """Explore ``split_heads``: which entry of Q lands in which head, for every d_model and n_heads.

    Args:
        sentences: one of them is shown at a time.
        d_models: the widths that the d_model slider offers.
        n_heads: the head counts that the n_heads slider offers. A count that does not divide
            d_model can be chosen: the picture then shows what ``split_heads`` says.
        seed: for the embedding table and for W_q.

    Returns:
        The explorer, with controls ``sentence``, ``d_model`` and ``n_heads``.

    """

    def frame(sentence: int, d_model: int, n_heads: int) -> Frame:
        example = running_example(d_model, sentences, seed=seed)
        # One head, so that the message for a forbidden pair is that of split_heads.
        q = example_attention(d_model, 1, seed=seed).w_q(example.x[[sentence]].double())
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
        heads = {f"head {i}": q for i, q in enumerate(frame["right"])}
        mixed = {f"view only, head {i}": q for i, q in enumerate(frame["wrong"])}
        return plot_matrices(
            heads | mixed,
            rows=frame["tokens"],
            per_line=len(heads),
            alt="Two rows of matrices, one matrix for each head. Above, split_heads: the rows of "
            "every head are tokens. Below, view alone: the same numbers, in other rows.",
        )

    controls = {
        "sentence": sentence_menu(sentences),
        **size_sliders(d_models, n_heads),
    }
    return explorer("splitting", controls, frame, still)
