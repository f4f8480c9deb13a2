"""check_add_and_norm: what a learner would write, right and wrong; the bank has other code."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attention.checks import check_add_and_norm

pytestmark = pytest.mark.usefixtures("as_a_reader")


def with_torch(x, output, gain, bias):
    return F.layer_norm(x + output, x.shape[-1:], gain, bias)


def row_by_row(x, output, gain, bias):
    rows = torch.empty_like(x)
    for i, sentence in enumerate(x + output):
        for j, row in enumerate(sentence):
            mean = row.sum() / len(row)
            variance = ((row - mean) ** 2).sum() / len(row)
            rows[i, j] = gain * (row - mean) / torch.sqrt(variance + 1e-5) + bias
    return rows


def with_the_module(x, output, gain, bias):
    norm = nn.LayerNorm(x.shape[-1])
    norm.load_state_dict({"weight": gain, "bias": bias})
    return norm(output + x).detach()


@pytest.mark.parametrize("function", [with_torch, row_by_row, with_the_module])
def test_a_right_variant_passes(function):
    for seed in range(5):
        assert check_add_and_norm(function, seed=seed).passed


def test_a_learners_mistake_is_named():
    def std(x, output, gain, bias):
        x = x + output
        return gain * (x - x.mean(-1, True)) / (x.std(-1, keepdim=True) + 1e-5) + bias

    def over(dim):
        def function(x, output, gain, bias):
            rows = (x + output).transpose(dim, -1)
            return F.layer_norm(rows, rows.shape[-1:]).transpose(dim, -1) * gain + bias

        return function

    def of_a_sentence(x, output, gain, bias):
        return F.layer_norm(x + output, x.shape[1:]) * gain + bias

    def pre(x, output, gain, bias):
        return x + F.layer_norm(output, output.shape[-1:], gain, bias)

    def rms(x, output, gain, bias):
        return F.rms_norm(x + output, x.shape[-1:], gain, eps=1e-5) + bias

    def of_all(x, output, gain, bias):
        x = x + output
        return gain * (x - x.mean()) / torch.sqrt(x.var() + 1e-5) + bias

    def no_keepdim(x, output, gain, bias):
        x = x + output
        variance = (x - x.mean(-1, keepdim=True)).square().mean(-1)
        return gain * (x - x.mean(-1, keepdim=True)) / (variance + 1e-5).sqrt() + bias

    named = {
        "over_everything_of_a_sample": of_all,
        "without_keepdim": no_keepdim,
        "over_the_sequence": over(1),
        "over_the_batch": over(0),
        "over_a_sentence": of_a_sentence,
        "residual_after_the_norm": pre,
        "root_mean_square": rms,
        "without_the_residual": lambda x, output, gain, bias: with_torch(0 * x, output, gain, bias),
    }
    for seed in range(5):
        for name, function in named.items():
            assert check_add_and_norm(function, seed=seed).mistakes == (name,)
        # Two mistakes at once: of rows that are not small the larger one is seen alone.
        assert check_add_and_norm(std, seed=seed).mistakes == ("variance_of_a_sample",)
