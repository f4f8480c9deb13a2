import copy
import math

import pytest
import torch
from torch.nn import functional as F
from torch.profiler import profile

from attention import MultiHeadAttention, causal_mask, padding_mask, split_heads
from attention.positions.linear_bias import LinearBias
from tests.unit.cases import assert_close, assert_gradients_close
from tests.unit.transformer.torchs_layers import IDS, randomised, vectors

LENGTHS = [(6, 6), (2, 6), (1, 6), (6, 2)]
SLOPES = {
    2: [2**-4, 2**-8],
    8: [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256],  # the paper's example
    3: [2**-4, 2**-8, 2**-2],
    12: [2**-h for h in range(1, 9)] + [2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5],
}


def by_hand(slopes, n_queries, n_keys):
    """One number after the other: −slope · |position of the query − position of the key|."""
    return torch.tensor(
        [
            [
                [-slope * abs(i + n_keys - n_queries - j) for j in range(n_keys)]
                for i in range(n_queries)
            ]
            for slope in slopes
        ],
        dtype=torch.float64,
    )


def authors_slopes(n):
    """As the authors' code finds them: by recursion, for any number of heads."""

    def of_a_power(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(n).is_integer():
        return of_a_power(n)
    closest = 2 ** math.floor(math.log2(n))
    return of_a_power(closest) + authors_slopes(2 * closest)[0::2][: n - closest]


def test_the_slopes_of_the_paper_and_of_the_authors_code():
    expected = {n: authors_slopes(n) for n in range(1, 41)} | SLOPES
    for n_heads, slopes in expected.items():
        exact = torch.tensor(slopes, dtype=torch.float64)
        assert_close(LinearBias(n_heads).slopes, exact)
        assert_close(LinearBias(n_heads).double().slopes, exact)


@pytest.mark.parametrize(("n_queries", "n_keys"), LENGTHS)
def test_the_bias_is_the_distance_times_the_slope(n_queries, n_keys):
    """And each distance stands once in the shorter form."""
    bias = LinearBias(3).double()
    expected = by_hand(SLOPES[3], n_queries, n_keys)
    assert_close(bias(n_queries, n_keys), expected)
    once = bias.by_distance(n_queries, n_keys)
    assert_close(once.unfold(-1, n_keys, 1).flip(-2), expected)


def test_no_matrix_of_the_bias_is_made_without_weights():
    """Nor of the mask beside it: 1 MB is a query × key matrix of one head."""
    attention = MultiHeadAttention(8, 2)
    attention.attend.bias = LinearBias(2)
    x = torch.randn(1, 512, 8)
    largest = {}
    for need_weights in (True, False):
        with profile(profile_memory=True) as made, torch.no_grad():
            attention(x, causal=True, need_weights=need_weights)
        largest[need_weights] = max(e.self_cpu_memory_usage for e in made.events())
    assert largest[True] >= 512 * 512 * 4 > 4 * largest[False]


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize("need_weights", [True, False])
def test_a_bias_of_other_heads_is_refused(need_weights):
    attention = MultiHeadAttention(8, 4)
    attention.attend.bias = LinearBias(2)
    message = r"bias must have shape \(heads, \w+.*\) = \(4, .*, got \(2, "
    with pytest.raises(ValueError, match=message):
        attention(torch.randn(1, 3, 8), need_weights=need_weights)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", [None, padding_mask(IDS, 0)], ids=["no padding", "padding"])
@pytest.mark.parametrize(("n_queries", "n_keys"), LENGTHS)
def test_it_equals_torchs_function_under_a_float_mask(
    n_queries, n_keys, mask, causal, need_weights
):
    attention = randomised(MultiHeadAttention(8, 2))
    attention.attend.bias = LinearBias(2).double()
    x, y = vectors(2, n_queries, 8), vectors(2, n_keys, 8, seed=2)
    mask = mask if mask is None else mask[..., :n_keys]
    output, _ = attention(x, y, mask=mask, causal=causal, need_weights=need_weights)

    allowed = torch.ones(2, 1, n_queries, n_keys) == 1
    if causal:
        allowed = allowed & causal_mask(n_queries, n_keys)
    if mask is not None:
        allowed = allowed & mask
    sees = allowed.any(-1, keepdim=True)
    added = by_hand(SLOPES[2], n_queries, n_keys).masked_fill(~(allowed | ~sees), -torch.inf)
    q, k, v = (
        split_heads(w(z), 2)
        for w, z in ((attention.w_q, x), (attention.w_k, y), (attention.w_v, y))
    )
    attended = F.scaled_dot_product_attention(q, k, v, added) * sees
    expected = attention.w_o(attended.transpose(1, 2).flatten(2))
    assert_close(output, expected)
    inputs = [x, y, *attention.parameters()]
    assert_gradients_close(output, expected, inputs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("need_weights", [True, False])
def test_half_precision(need_weights, dtype):
    """300 positions are more than bfloat16 counts."""
    attention = MultiHeadAttention(8, 2)
    attention.attend.bias = LinearBias(2)
    attention = randomised(attention).to(dtype)
    assert torch.equal(attention.attend.bias(300, 300), LinearBias(2)(300, 300))
    x = vectors(1, 300, 8).detach().to(dtype)
    output, _ = attention(x, causal=True, need_weights=need_weights)
    expected, _ = copy.deepcopy(attention).double()(x.double(), causal=True)
    assert output.dtype == dtype
    assert_close(output, expected)


def test_it_holds_nothing_to_learn():
    bias = LinearBias(12)
    assert not list(bias.parameters()) and not bias.state_dict()
    assert torch.equal(copy.deepcopy(bias).double().float()(3, 5), bias(3, 5))
    assert repr(bias) == "LinearBias(n_heads=12)"
