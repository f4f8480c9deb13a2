"""Where the heads' results go when they are merged, the right way beside the wrong one."""

from collections.abc import Sequence

import torch

from attention.dot_product import scaled_dot_product_attention
from attention.example import SENTENCES, example_attention, running_example
from attention.explore.controls import D_MODELS, N_HEADS, sentence_menu, size_sliders
from attention.explore.explorer import Explorer, Frame, explorer
from attention.heads import merge_heads, split_heads
from attention.masks import padding_mask
from attention.plots import Picture, plot_matrices


def merging_explorer(
    sentences: Sequence[str] = SENTENCES,
    *,
    d_models: Sequence[int] = D_MODELS[:4],
    n_heads: Sequence[int] = N_HEADS,
    seed: int = 0,
) -> Explorer:
    """Explore ``merge_heads`` and the output projection, beside a merge without the transpose.

    Args:
        sentences: one of them is shown at a time.
        d_models: the widths that the d_model slider offers.
        n_heads: the head counts that the n_heads slider offers. A count that does not divide
            d_model can be chosen: the picture then shows what ``MultiHeadAttention`` says.
        seed: for the embedding table and the module's weights.

    Returns:
        The explorer, with controls ``sentence``, ``d_model`` and ``n_heads``.
    """

    def frame(sentence: int, d_model: int, n_heads: int) -> Frame:
        example = running_example(d_model, sentences, seed=seed)
        module = example_attention(d_model, n_heads, seed=seed)
        x = example.x.double()
        mask = padding_mask(example.token_ids, example.vocabulary.pad_id)
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
        return plot_matrices(
            {"merge_heads": frame["right"], "without the transpose": frame["wrong"]},
            rows=frame["tokens"],
            alt="Two matrices with a row for each token. On the left, merge_heads: every row holds "
            "its own token's results. On the right, a merge without the transpose: the same "
            "numbers, in other rows.",
        )

    controls = {
        "sentence": sentence_menu(sentences),
        **size_sliders(d_models, n_heads),
    }
    return explorer("merging", controls, frame, still)
