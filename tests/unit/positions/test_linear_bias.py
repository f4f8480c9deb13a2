import copy
import math
import re

import pytest
import torch
from torch.nn import functional as F
from torch.profiler import profile

from attention import MultiHeadAttention, causal_mask, padding_mask, split_heads
from attention.positions.linear_bias import LinearBias
from tests.unit.cases import assert_close, assert_gradients_close
from tests.unit.transformer.torchs_layers import IDS, randomised, vectors

LENGTHS = [(6, 6), (2, 6), (1, 6), (6, 2)]
PADDING = padding_mask(IDS, 0)


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


SLOPES = {
    1: [2**-8],
    2: [2**-4, 2**-8],
    8: [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256],  # the paper's example
    16: [2 ** (-h / 2) for h in range(1, 17)],
    3: [2**-4, 2**-8, 2**-2],
    6: [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3],
    12: [2**-h for h in range(1, 9)] + [2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5],
}


@pytest.mark.parametrize("n_heads", SLOPES)
def test_the_slopes_of_the_paper(n_heads):
    exact = torch.tensor(SLOPES[n_heads], dtype=torch.float64)
    assert_close(LinearBias(n_heads).slopes, exact)
    assert_close(LinearBias(n_heads).double().slopes, exact)


def authors_slopes(n):
    """As the authors' code finds them: by recursion, for any number of heads."""

    def of_a_power(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(n).is_integer():
        return of_a_power(n)
    closest = 2 ** math.floor(math.log2(n))
    return of_a_power(closest) + authors_slopes(2 * closest)[0::2][: n - closest]


@pytest.mark.parametrize("n_heads", range(1, 41))
def test_the_slopes_of_the_authors_code(n_heads):
    expected = torch.tensor(authors_slopes(n_heads), dtype=torch.float64)
    assert_close(LinearBias(n_heads).double().slopes, expected)


@pytest.mark.parametrize("n_heads", [2, 3])
@pytest.mark.parametrize(("n_queries", "n_keys"), LENGTHS)
def test_the_bias_is_the_distance_times_the_slope(n_queries, n_keys, n_heads):
    bias = LinearBias(n_heads).double()
    expected = by_hand(SLOPES[n_heads], n_queries, n_keys)
    assert_close(bias(n_queries, n_keys), expected)


@pytest.mark.parametrize(("n_queries", "n_keys"), LENGTHS)
def test_each_distance_once(n_queries, n_keys):
    distances = torch.arange(n_keys - 1, -n_queries, -1)
    expected = torch.stack([-slope * distances.abs() for slope in SLOPES[3]])
    bias = LinearBias(3)
    once = bias.by_distance(n_queries, n_keys)
    assert_close(once, expected)
    assert torch.equal(once.unfold(-1, n_keys, 1).flip(-2), bias(n_queries, n_keys))


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
@pytest.mark.parametrize("mask", [None, PADDING], ids=["no padding", "padding"])
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


def test_without_scores_a_head_prefers_what_is_near():
    """By hand: with q = 0 the weights of the past are powers of e^(−slope)."""
    attention = MultiHeadAttention(4, 2).double()
    torch.nn.init.zeros_(attention.w_q.weight)
    torch.nn.init.zeros_(attention.w_q.bias)
    attention.attend.bias = LinearBias(2).double()
    _, weights = attention(torch.randn(1, 3, 4).double(), causal=True)
    for head, slope in enumerate((2**-4, 2**-8)):
        powers = torch.tensor([math.exp(-slope * d) for d in (2, 1, 0)], dtype=torch.float64)
        assert_close(weights[0, head, 2], powers / powers.sum())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("need_weights", [True, False])
def test_half_precision(need_weights, dtype):
    """300 positions are more than bfloat16 counts."""
    attention = MultiHeadAttention(8, 2)
    attention.attend.bias = LinearBias(2)
    attention = randomised(attention).to(dtype)
    assert attention.attend.bias(3, 3).dtype == torch.float32
    assert torch.equal(attention.attend.bias(300, 300), LinearBias(2)(300, 300))
    x = vectors(1, 300, 8).detach().to(dtype)
    output, _ = attention(x, causal=True, need_weights=need_weights)
    exact = copy.deepcopy(attention).double()
    expected, _ = exact(x.double(), causal=True)
    assert output.dtype == dtype
    assert_close(output, expected)


@pytest.mark.parametrize("need_weights", [True, False])
def test_autocast(need_weights):
    torch.manual_seed(0)
    attention, x = MultiHeadAttention(8, 2), torch.randn(2, 5, 8)
    attention.attend.bias = LinearBias(2)
    expected, _ = attention(x, causal=True)
    for context in (torch.enable_grad, torch.no_grad):
        with context(), torch.autocast("cpu", dtype=torch.bfloat16):
            output, _ = attention(x, causal=True, need_weights=need_weights)
        assert output.dtype == torch.bfloat16
        assert_close(output, expected)


@pytest.mark.parametrize("need_weights", [True, False])
def test_the_last_queries_alone_give_the_last_rows(need_weights):
    attention, x = randomised(MultiHeadAttention(8, 2)), vectors(2, 7, 8)
    attention.attend.bias = LinearBias(2).double()
    whole, _ = attention(x, causal=True, need_weights=need_weights)
    for n in (1, 3):
        last, _ = attention(x[:, -n:], x, causal=True, need_weights=need_weights)
        assert_close(last, whole[:, -n:])


def test_it_holds_nothing_to_learn_and_comes_back_from_the_meta_device():
    bias = LinearBias(12)
    assert not list(bias.parameters()) and not bias.state_dict()
    expected = bias(3, 5)
    with torch.device("meta"):
        empty = LinearBias(12)
    assert empty.slopes.is_meta
    for other in (empty.to_empty(device="cpu"), copy.deepcopy(bias), bias.double().float()):
        assert torch.equal(other(3, 5), expected)
    assert repr(bias) == "LinearBias(n_heads=12)"


@pytest.mark.usefixtures("as_a_reader")
def test_bad_input_is_refused_with_a_reason():
    with pytest.raises(ValueError, match=re.escape("n_heads must be at least 1, got 0")):
        LinearBias(0)
