"""check_pre_norm_layer: what a learner would write, wrong; the bank has other code."""

import pytest
import torch
from torch.nn import functional as F

from attention.checks import check_pre_norm_layer, pre_norm_layer
from attention.checks.inputs import Numbers
from attention.trained import relative_clauses

pytestmark = pytest.mark.usefixtures("as_a_reader")


def written(
    x,
    w,
    n_heads,
    *,
    variance={"correction": 0},  # noqa: B006
    scale=lambda d_model, d_key: d_key**0.5,
    merge=lambda attended: attended.transpose(1, 2).flatten(2),
    turn=lambda weight: weight.T,
    bias=1,
    add=lambda rows, normed: rows,
    relu=F.relu,
    second_norm="feed_forward_norm",
    read=lambda x, h: h,
):
    """The layer as a learner writes it, with a place for each mistake."""

    def norm(rows, name):
        mean = rows.mean(-1, keepdim=True)
        std = (rows.var(-1, keepdim=True, **variance) + 1e-5) ** 0.5
        return (rows - mean) / std * w[name + ".weight"] + w[name + ".bias"]

    batch, seq, d_model = x.shape
    d_key = d_model // n_heads
    normed = norm(x, "self_attention_norm")

    def heads(name):
        weight, b = w[f"self_attention.{name}.weight"], w[f"self_attention.{name}.bias"]
        projected = normed @ turn(weight) + bias * b
        return projected.view(batch, seq, n_heads, d_key).transpose(1, 2)

    q, k, v = heads("w_q"), heads("w_k"), heads("w_v")
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / scale(d_model, d_key)
    merged = merge(F.softmax(scores, dim=-1) @ v)
    output = merged @ turn(w["self_attention.w_o.weight"]) + bias * w["self_attention.w_o.bias"]
    h = add(x, normed) + output
    normed = norm(read(x, h), second_norm)
    hidden = normed @ w["feed_forward.w_1.weight"].T + bias * w["feed_forward.w_1.bias"]
    made = relu(hidden) @ w["feed_forward.w_2.weight"].T + bias * w["feed_forward.w_2.bias"]
    return add(h, normed) + made


NAMED = {
    "variance_of_a_sample": {"variance": {}},
    "divided_by_root_d_model": {"scale": lambda d_model, d_key: d_model**0.5},
    "not_scaled": {"scale": lambda d_model, d_key: 1},
    "merged_without_transpose": {"merge": lambda x: x.reshape(x.shape[0], x.shape[2], -1)},
    "attentions_weights_not_transposed": {"turn": lambda weight: weight},
    "without_biases": {"bias": 0},
    "residuals_from_normed_rows": {"add": lambda rows, normed: normed},
    "without_relu": {"relu": lambda rows: rows},
    "one_norm_for_both": {"second_norm": "self_attention_norm"},
    "feed_forward_reads_x": {"read": lambda x, h: x},
}


@pytest.mark.parametrize("name", NAMED)
def test_a_learners_mistake_is_named(name):
    def function(x, w, n_heads):
        return written(x, w, n_heads, **NAMED[name])

    for seed in range(3):
        assert check_pre_norm_layer(function, seed=seed).mistakes == (name,)


def test_it_passes_without_a_mistake():
    for seed in range(3):
        assert check_pre_norm_layer(written, seed=seed).passed


def test_weights_that_are_changed_in_place_do_not_spoil_the_next_call():
    def function(x, w, n_heads):
        output = written(x, w, n_heads)
        for weight in w.values():
            weight.zero_()
        return output

    assert check_pre_norm_layer(function).passed


def test_the_right_one_has_the_numbers_of_the_trained_layer():
    layer = relative_clauses.load(2).encoder.layers[0]
    x = Numbers(0).tensor(2, 9, 32)
    with torch.no_grad():
        theirs, _ = layer(x)
        ours = pre_norm_layer.pre_norm_layer(x, layer.state_dict(), layer.self_attention.n_heads)
    torch.testing.assert_close(ours, theirs)
