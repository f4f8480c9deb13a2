import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from attention import causal_mask, scaled_dot_product_attention
from attention.sparse.hashing import lsh_attention
from tests.unit.cases import ULPS_OF_GRADIENTS, assert_close, gradients


def found(buckets, chunk_length):
    """(batch, heads, query, key): which tokens a token finds, counted token by token."""
    batch, heads, rounds, seq = buckets.shape
    mask = torch.zeros(batch, heads, seq, seq, dtype=torch.bool)
    for b in range(batch):
        for h in range(heads):
            for r in range(rounds):
                bucket = buckets[b, h, r].tolist()
                order = sorted(range(seq), key=lambda i: (bucket[i], i))
                chunk = {i: place // chunk_length for place, i in enumerate(order)}
                for i in range(seq):
                    for j in range(seq):
                        if bucket[i] == bucket[j] and chunk[i] - 1 <= chunk[j] <= chunk[i]:
                            mask[b, h, i, j] = True
    return mask


def reformers_mask(may, *, causal, mask=None):
    """Itself only where there is nothing else."""
    seq, itself = may.shape[-1], torch.eye(may.shape[-1], dtype=torch.bool)
    if causal:
        may = may & causal_mask(seq)
    if mask is not None:
        may = may & mask
    others = may & ~itself
    return others | (may & ~others.any(-1, keepdim=True))


def dense(query, value, may, **options):
    """Full attention with shared queries and keys, the n × n matrix of scores and all."""
    may = reformers_mask(may, **options)
    return scaled_dot_product_attention(query, F.normalize(query, dim=-1), value, may, scale=1.0)[0]


def query_and_value(batch, heads, seq, d_key=4, d_value=3, seed=0, dtype=torch.float64):
    rng = torch.Generator().manual_seed(seed)
    return (
        (3 * torch.randn(batch, heads, seq, width, generator=rng)).to(dtype).requires_grad_()
        for width in (d_key, d_value)
    )


def assert_same(output, expected, inputs):
    assert_close(output, expected)
    ours, theirs = gradients([output], inputs), gradients([expected], inputs)
    for actual, wanted in zip(ours, theirs, strict=True):
        assert_close(actual, wanted, ulps=ULPS_OF_GRADIENTS)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("seq", "rounds"), [(1, 1), (2, 1), (9, 1), (9, 3), (40, 1)])
def test_one_bucket_and_one_chunk_is_full_attention(seq, rounds, causal):
    query, value = query_and_value(2, 3, seq)
    buckets = torch.zeros(2, 3, rounds, seq, dtype=torch.int64)
    output = lsh_attention(query, value, buckets, chunk_length=seq, causal=causal)
    everybody = torch.ones(seq, seq, dtype=torch.bool)
    assert_same(output, dense(query, value, everybody, causal=causal), [query, value])


@settings(max_examples=60)
@given(
    st.tuples(*[st.integers(1, most) for most in (2, 2, 13, 3, 4, 6)]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_equals_full_attention_over_all_that_the_rounds_find(sizes, causal, padding, seed):
    """Buckets that overflow their chunks, sequences that fill no chunk, empty rows and all."""
    batch, heads, seq, rounds, n_buckets, chunk_length = sizes
    query, value = query_and_value(batch, heads, seq, seed=seed)
    rng = torch.Generator().manual_seed(seed)
    buckets = torch.randint(0, n_buckets, (batch, heads, rounds, seq), generator=rng)
    mask = torch.rand(batch, 1, 1, seq, generator=rng) < 0.7 if padding else None
    before = [x.detach().clone() for x in (query, value, buckets)]
    output = lsh_attention(query, value, buckets, mask, chunk_length=chunk_length, causal=causal)
    may = found(buckets, chunk_length)
    assert_same(output, dense(query, value, may, causal=causal, mask=mask), [query, value])
    assert all(map(torch.equal, (query, value, buckets), before))


@pytest.mark.parametrize("length", [1.0, 1e7])
def test_a_token_attends_to_itself_only_where_there_is_nothing_else(length):
    """Also where queries are so long that a score of -10⁵ would not stand out any more."""
    query = length * torch.tensor([[1.0, 0], [0, 1], [-1, 0], [0, -1]])[None, None]
    value = torch.tensor([[1.0], [2], [3], [4]])[None, None]
    buckets = torch.tensor([[0, 1, 0, 2], [0, 1, 2, 3]])[None, None]
    output = lsh_attention(query, value, buckets, chunk_length=4)
    assert output.flatten().tolist() == [3, 2, 1, 4]
    output = lsh_attention(query, value, buckets, chunk_length=4, causal=True)
    assert output.flatten().tolist() == [1, 2, 1, 4]


def test_what_two_rounds_find_counts_once():
    """Token 0 finds token 1 twice and token 2 once; all scores are equal."""
    query, value = torch.ones(1, 1, 3, 1), torch.tensor([0.0, 10, 20])[None, None, :, None]
    buckets = torch.tensor([[0, 0, 0], [0, 0, 1]])[None, None]
    output = lsh_attention(query, value, buckets, chunk_length=3)
    torch.testing.assert_close(output.flatten(), torch.tensor([15.0, 10, 5]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_other_types(dtype):
    query, value = query_and_value(1, 2, 21, dtype=dtype)
    buckets = torch.randint(0, 3, (1, 2, 2, 21), generator=torch.Generator().manual_seed(0))
    mask = (torch.arange(21) < 17)[None, None, None]
    output = lsh_attention(query, value, buckets, mask, chunk_length=8, causal=True)
    wide = [x.detach().double() for x in (query, value)]
    expected = dense(*wide, found(buckets, 8), causal=True, mask=mask)
    assert output.dtype == dtype
    # A score is as large as its query is long. It is rounded three times on the way (key, product,
    # times), by half an eps each, and an output is off by its weights' errors times the values.
    largest = wide[0].norm(dim=-1).max() * wide[1].abs().max()
    atol = 1.5 * torch.finfo(dtype).eps * largest.item()
    torch.testing.assert_close(output.double(), expected, rtol=0, atol=atol)
    assert all(gradient.isfinite().all() for gradient in gradients([output], [query, value]))


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_a_token_that_finds_nothing_gets_zeros_and_finite_gradients():
    query, value = query_and_value(1, 1, 6)
    mask = torch.tensor([1, 1, 0, 1, 0, 0])[None, None, None] == 1
    buckets = torch.tensor([[0, 0, 1, 1, 2, 3]])[None, None]
    with torch.autograd.detect_anomaly(check_nan=True):
        output = lsh_attention(query, value, buckets, mask, chunk_length=6)
        found_gradients = gradients([output], [query, value])
    assert not output[0, 0, 4:].any()
    assert output[0, 0, :4].all()
    assert torch.equal(output[0, 0, 2], value[0, 0, 3])
    assert all(gradient.isfinite().all() for gradient in found_gradients)
    assert not lsh_attention(query, value, buckets, mask & False, chunk_length=6).any()


@pytest.mark.parametrize("seq", [16, 21])
def test_causal_perturbed_last_token_changes_no_other(seq):
    """With fixed buckets; the module's test perturbs what makes the buckets too."""
    query, value = (x.detach() for x in query_and_value(1, 2, seq))
    buckets = torch.randint(0, 2, (1, 2, 2, seq), generator=torch.Generator().manual_seed(0))
    first = lsh_attention(query, value, buckets, chunk_length=4, causal=True)
    query[:, :, -1], value[:, :, -1] = 7.0, -7.0
    second = lsh_attention(query, value, buckets, chunk_length=4, causal=True)
    assert torch.equal(first[:, :, :-1], second[:, :, :-1])


class Sizes(TorchDispatchMode):
    largest = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self.largest = max(self.largest, result.numel())
        return result


def test_no_tensor_has_an_entry_for_every_pair_of_tokens():
    seq = 512
    query, value = query_and_value(1, 1, seq)
    buckets = torch.arange(seq)[None, None, None].expand(1, 1, 2, -1) // 8
    with Sizes() as sizes:
        lsh_attention(query, value, buckets, chunk_length=16).sum().backward()
    assert sizes.largest == 2 * 16 * seq


X, B = torch.zeros(1, 2, 5, 4), torch.zeros(1, 2, 3, 5, dtype=torch.int64)
WRONG = {
    "a causal mask": (
        lambda: lsh_attention(X, X, B, causal_mask(5), chunk_length=4),
        ValueError,
        "LSH attention can leave out keys for all queries alike, not for single queries: mask must"
        " have size 1 on its query axis, as padding_mask makes it, got (5, 5)",
    ),
    "buckets without rounds": (
        lambda: lsh_attention(X, X, B[:, :, 0], chunk_length=4),
        ValueError,
        "buckets must have shape (batch, heads, rounds, seq) = (1, 2, rounds, 5), got (1, 2, 5); "
        "lsh_buckets(query, rotations) makes them",
    ),
    "buckets of another length": (
        lambda: lsh_attention(X, X, B[..., :4], chunk_length=4),
        ValueError,
        "buckets must have shape (batch, heads, rounds, seq) = (1, 2, rounds, 5), got (1, 2, 3, 4);"
        " lsh_buckets(query, rotations) makes them",
    ),
    "no chunk": (
        lambda: lsh_attention(X, X, B, chunk_length=0),
        ValueError,
        "chunk_length must be at least 1, got 0",
    ),
    "values of another length": (
        lambda: lsh_attention(X, X[:, :, :4], B, chunk_length=4),
        ValueError,
        "key and value must have the same length, one value for each key, "
        "got key (1, 2, 5, 4) and value (1, 2, 4, 4)",
    ),
}


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(("call", "error", "says"), WRONG.values(), ids=WRONG)
def test_bad_input(call, error, says):
    with pytest.raises(error, match=f"^{re.escape(says)}$"):
        call()
