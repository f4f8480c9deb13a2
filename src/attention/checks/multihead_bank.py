"""Mistakes in the whole module: which layer, which input, and those of its parts."""

import torch  # noqa: F401 - rows use it
from torch.nn import functional as F

from attention.dot_product import scaled_dot_product_attention
from attention.heads import merge_heads, split_heads

from .bank import Bank, Mistake
from .dot_product_bank import BANK as ATTENDING
from .merging import BANK as MERGING
from .splitting import BANK as SPLITTING


def project(layer, x):
    """x through one layer: its weight, (d_model, d_model) as nn.Linear stores it, and its bias."""
    return F.linear(x, layer[0], layer[1])


def whole(
    layers,
    n_heads,
    query,
    key,
    value,
    mask,
    *,
    split=split_heads,
    attend=scaled_dot_product_attention,
    merge=merge_heads,
):
    """The module as one function, with parts that can be exchanged -> (output, weights)."""
    q = split(project(layers["w_q"], query), n_heads)
    k = split(project(layers["w_k"], key), n_heads)
    v = split(project(layers["w_v"], value), n_heads)
    attended, weights = attend(q, k, v, mask)
    return project(layers["w_o"], merge(attended)), weights


BANK = Bank.read(__file__, whole, globals())


def within(step: str, part: Mistake) -> Mistake:
    """The whole module with a mistake in one step: "split", "attend" or "merge"."""

    def function(*inputs):
        return whole(*inputs, **{step: part})

    # Evidence speaks of a step's own result. Of these the module returns only the weights.
    evidence = part.evidence if step == "attend" else None
    return Mistake(part.name, function, part.why, part.way_out, evidence)


# Mistakes whose shapes fit the rest of the module, and common ones that end in an error.
BANK += [
    within("split", SPLITTING.named(name))
    for name in (
        "viewed_straight",
        "interleaved",
        "roles_swapped",
        "transposed_before_the_view",
        "d_key_as_a_float",
    )
]
BANK += [
    within("merge", MERGING.named(name))
    for name in (
        "not_transposed",
        "viewed_after_the_transpose",
        "interleaved",
        "wrong_axes",
        "averaged",
    )
]
# Shown by scores that are too large for these inputs, by a value of another width than the key, or
# by the order returned.
SEEN_ELSEWHERE = (
    "divided_by_root_of_d_value",
    "exp_overflows",
    "overflow_turned_into_zero",
    "largest_of_all_subtracted",
    "mask_after_softmax_and_divided",
    "weights_first",
)
BANK += [within("attend", part) for part in ATTENDING if part.name not in SEEN_ELSEWHERE]
