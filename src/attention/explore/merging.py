"""Where the heads' results go when they are merged, the right way beside the wrong one."""

from collections.abc import Sequence

import torch

from attention.dot_product import scaled_dot_product_attention
from attention.example import SENTENCES
from attention.explore.controls import D_MODELS, N_HEADS, sentence_menu, size_sliders
from attention.explore.explorer import Explorer, Frame, explorer
from attention.explore.trained_example import trained_example
from attention.heads import merge_heads, split_heads
from attention.masks import padding_mask
from attention.plots import Picture, plot_matrices


def merging_explorer(
    sentences: Sequence[str] = SENTENCES,
    *,
    d_models: Sequence[int] = D_MODELS,
    n_heads: Sequence[int] = N_HEADS,
) -> Explorer:
    """Explore ``merge_heads`` and the output projection, beside a merge without the transpose.

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
        x = example.x
        mask = padding_mask(example.token_ids, example.vocabulary.pad_id)
        module = example.attention
        q, k, v = (
            split_heads(project(x), n_heads) for project in (module.w_q, module.w_k, module.w_v)
        )
        heads, _ = scaled_dot_product_attention(q, k, v, mask)
        merged, unmoved = merge_heads(heads), heads.reshape(x.shape)
        output, wrong_output = module.w_o(merged), module.w_o(unmoved)
        # The same two operations on the positions 0, 1, 2, … show where each entry comes from.
        index = torch.arange(heads[0].numel(), dtype=heads.dtype).view(heads[:1].shape)
        return {
            "tokens": example.tokens[sentence],
            "heads": heads[sentence],
            "right": merged[sentence],
            "wrong": unmoved[sentence],
            "right_from": merge_heads(index)[0],
            "wrong_from": index.reshape(x[:1].shape)[0],
            "right_output": output[sentence],
            "wrong_output": wrong_output[sentence],
        }

    def still(frame: Frame) -> Picture:
        _, length, d_key = frame["heads"].shape
        return plot_matrices(
            {"merge_heads": frame["right"], "without the transpose": frame["wrong"]},
            rows=[f"{token} {i}" for i, token in enumerate(frame["tokens"])],
            origins={
                title: (frame[name].long() // d_key % length)
                for title, name in (
                    ("merge_heads", "right_from"),
                    ("without the transpose", "wrong_from"),
                )
            },
            alt="Two matrices with a row for each token; colour and digit say whose result an "
            "entry is. On the left, merge_heads: every row holds its own token's results. On the "
            "right, a merge without the transpose: a row holds the results of two tokens.",
        )

    controls = {
        "sentence": sentence_menu(sentences),
        **size_sliders(d_models, n_heads),
    }
    return explorer("merging", "Merging heads, right and wrong", controls, frame, still)
