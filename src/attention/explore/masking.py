"""What masks do to scores and weights: padding, the future, both, another sentence's keys."""

from collections.abc import Sequence

import torch
from ipywidgets import Dropdown, SelectionSlider

from attention.example import SENTENCES, running_example
from attention.explore.controls import D_MODELS, N_HEADS, size_sliders
from attention.explore.explorer import Explorer, Frame, explorer
from attention.explore.trained_example import trained_example
from attention.heads import split_heads
from attention.masks import causal_mask, padding_mask
from attention.plots import Picture, plot_matrices

KINDS = ("none", "padding", "causal", "padding and causal", "cross-attention")


def masking_explorer(
    sentences: Sequence[str] = SENTENCES,
    *,
    d_models: Sequence[int] = D_MODELS,
    n_heads: Sequence[int] = N_HEADS,
) -> Explorer:
    """Explore masks: the mask, head 0's scores with and without it, and the weights it leaves.

    Below them are the weights of one query in every head.

    Args:
        sentences: the keys come from the first one with padding, or from the first where none has
            any. So do the queries, except in cross-attention, where they come from the first other
            sentence.
        d_models: the widths that the d_model slider offers.
        n_heads: the head counts that the n_heads slider offers. Where no model of a size was
            trained, the picture says why.

    Returns:
        The explorer, with controls ``mask``, ``query``, ``d_model`` and ``n_heads``.

    """
    first = running_example(sentences=sentences)
    padded = (first.token_ids == first.vocabulary.pad_id).any(dim=1).tolist()
    keys_of = padded.index(True) if True in padded else 0
    other = next((i for i in range(len(sentences)) if i != keys_of), keys_of)

    def frame(mask: str, d_model: int, n_heads: int) -> Frame:
        example = trained_example(d_model, n_heads, sentences)
        queries_of = other if mask == "cross-attention" else keys_of
        x = example.x
        q = split_heads(example.attention.w_q(x[[queries_of]]), n_heads)  # (1, heads, query, d_key)
        k = split_heads(example.attention.w_k(x[[keys_of]]), n_heads)  # (1, heads, key, d_key)
        length = x.shape[1]
        padding = padding_mask(example.token_ids[[keys_of]], example.vocabulary.pad_id)
        may = {
            "none": None,
            "padding": padding,
            "causal": causal_mask(length),
            "padding and causal": padding & causal_mask(length),
            "cross-attention": padding,
        }[mask]
        # Only the weights are asked for here, so the keys stand in as values.
        _, weights = example.attention.attend(q, k, k, may)
        scores = example.attention.attend.scores(q, k)[0, 0]
        everyone = torch.ones(1, 1, length, length, dtype=torch.bool)
        allowed = (everyone if may is None else everyone & may)[0, 0]  # (query, key)
        return {
            "queries": example.tokens[queries_of],
            "keys": example.tokens[keys_of],
            "shape": None if may is None else list(may.shape),
            "mask": allowed.double(),
            "scores": scores,
            "masked": scores.masked_fill(~allowed, -torch.inf),
            "weights": weights[0, 0],
            "every": weights[0].transpose(0, 1),  # (query, heads, key)
        }

    def still(frame: Frame) -> Picture:
        return plot_matrices(
            {"mask, 1 = may attend": frame["mask"], "weights of head 0": frame["weights"]},
            rows=frame["queries"],
            columns=frame["keys"],
            signed=False,
            alt="Left, the mask: a row for each query, a column for each key, 1 where the query "
            "may attend. It allows no later key and no padding. Right, the weights of head 0: 0 "
            "wherever the mask is 0, and every row sums to 1.",
        )

    length = first.token_ids.shape[1]
    controls = {
        "mask": Dropdown(options=KINDS, value="padding and causal", description="mask"),
        "query": SelectionSlider(options=range(length), value=length // 2, description="query"),
        **size_sliders(d_models, n_heads),
    }
    return explorer("masking", "Masks, scores and weights", controls, frame, still)
