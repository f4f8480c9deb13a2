import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from attention import causal_mask, merge_heads, scaled_dot_product_attention, split_heads
from attention.sparse.hashing import ReformerAttention, lsh_attention, lsh_buckets
from tests.unit.cases import (
    ULPS_OF_GRADIENTS,
    assert_close,
    assert_gradients_close,
    gradients,
    randomise,
)
from tests.unit.refusals import refusals
from tests.unit.sparse.cases import LargestTensor


def test_a_bucket_is_the_nearest_direction():
    torch.manual_seed(0)
    x, rotations = torch.randn(2, 3, 50, 4), torch.randn(5, 4, 6)
    buckets = lsh_buckets(x, rotations)
    assert buckets.shape == (2, 3, 5, 50)
    for b, h, r, i in torch.cartesian_prod(*map(torch.arange, buckets.shape)).tolist():
        scores = [float(x[b, h, i] @ rotations[r, :, d]) for d in range(6)]
        nearest = max(range(6), key=lambda d: abs(scores[d]))
        assert buckets[b, h, r, i] == nearest + 6 * (scores[nearest] < 0)
    assert torch.equal(lsh_buckets(7 * x, rotations), buckets)
    assert torch.equal(lsh_buckets(-x, rotations), (buckets + 6) % 12)
    assert not lsh_buckets(0 * x, rotations).any()  # of equal products the first counts


def test_buckets_hold_the_products_of_one_round_at_a_time():
    seq, half = 1024, 64
    x, peak = torch.randn(1, 1, seq, 4), {}
    for rounds in (1, 4):
        with LargestTensor() as memory:
            lsh_buckets(x, torch.randn(rounds, 4, half))
        peak[rounds] = memory.peak
    products = seq * half * 4
    assert products < peak[1] < 2 * products
    assert peak[4] < peak[1] + products / 2


def seen(buckets, chunk_length, hidden=None):
    """(batch, heads, query, key): which tokens a token sees, counted token by token.

    hidden: (batch, seq), which tokens are sorted behind all others.
    """
    batch, heads, rounds, seq = buckets.shape
    hidden = torch.zeros(batch, seq) if hidden is None else hidden
    mask = torch.zeros(batch, heads, seq, seq, dtype=torch.bool)
    for b in range(batch):
        for h in range(heads):
            for r in range(rounds):
                bucket = buckets[b, h, r].tolist()
                last = hidden[b].tolist()
                order = sorted(range(seq), key=lambda i: (last[i], bucket[i], i))
                chunk = {i: rank // chunk_length for rank, i in enumerate(order)}
                for i in range(seq):
                    for j in range(seq):
                        if bucket[i] == bucket[j] and chunk[i] - 1 <= chunk[j] <= chunk[i]:
                            mask[b, h, i, j] = True
    return mask


def dense(query, value, may, *, causal, mask=None):
    """Full attention with shared queries and keys, itself only where there is nothing else."""
    seq, itself = may.shape[-1], torch.eye(may.shape[-1], dtype=torch.bool)
    may = may & causal_mask(seq) if causal else may
    may = may if mask is None else may & mask
    others = may & ~itself
    may = others | (may & ~others.any(-1, keepdim=True))
    return scaled_dot_product_attention(query, F.normalize(query, dim=-1), value, may, scale=1.0)[0]


def query_and_value(batch, heads, seq, d_key=4, d_value=3, seed=0, dtype=torch.float64):
    rng = torch.Generator().manual_seed(seed)
    return (
        (3 * torch.randn(batch, heads, seq, width, generator=rng)).to(dtype).requires_grad_()
        for width in (d_key, d_value)
    )


@settings(max_examples=50)
@given(
    st.tuples(*[st.integers(1, most) for most in (2, 2, 13, 3, 4, 6)]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_equals_full_attention_over_all_that_the_rounds_show(sizes, causal, padding, seed):
    """Buckets that overflow their chunks, sequences that fill no chunk, empty rows and all."""
    batch, heads, seq, rounds, n_buckets, chunk_length = sizes
    query, value = query_and_value(batch, heads, seq, seed=seed)
    rng = torch.Generator().manual_seed(seed)
    buckets = torch.randint(0, n_buckets, (batch, heads, rounds, seq), generator=rng)
    mask = torch.rand(batch, 1, 1, seq, generator=rng) < 0.7 if padding else None
    before = [x.detach().clone() for x in (query, value, buckets)]
    output = lsh_attention(query, value, buckets, mask, chunk_length=chunk_length, causal=causal)
    may = seen(buckets, chunk_length, None if mask is None else ~mask[:, 0, 0])
    expected = dense(query, value, may, causal=causal, mask=mask)
    assert_close(output, expected)
    assert_gradients_close(output, expected, [query, value], ulps=ULPS_OF_GRADIENTS)
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


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_under_a_mask(dtype):
    """A score is as large as its query is long, and rounded three times by half an eps each."""
    query, value = query_and_value(1, 2, 21, dtype=dtype)
    buckets = torch.randint(0, 3, (1, 2, 2, 21), generator=torch.Generator().manual_seed(0))
    mask = (torch.arange(21) < 17)[None, None, None]
    output = lsh_attention(query, value, buckets, mask, chunk_length=8, causal=True)
    wide = [x.detach().double() for x in (query, value)]
    expected = dense(*wide, seen(buckets, 8, ~mask[0, 0]), causal=True, mask=mask)
    atol = 1.5 * torch.finfo(dtype).eps * (wide[0].norm(dim=-1).max() * wide[1].abs().max()).item()
    torch.testing.assert_close(output.double(), expected, rtol=0, atol=atol)
    assert all(gradient.isfinite().all() for gradient in gradients([output], [query, value]))


def test_memory_grows_with_neither_the_pairs_of_tokens_nor_the_rounds():
    """A byte for each of seq · 2 · chunk_length pairs, and these for each round, would show."""
    seq, chunk_length, peak = 512, 64, {}
    query, value = query_and_value(1, 1, seq, dtype=torch.float32)
    for rounds in (2, 6):
        buckets = torch.randint(0, 8, (1, 1, rounds, seq))
        with LargestTensor() as memory, torch.no_grad():
            lsh_attention(query, value, buckets, chunk_length=chunk_length)
        peak[rounds] = memory.peak
    pairs = seq * 2 * chunk_length
    assert peak[2] > 4 * pairs
    assert peak[6] < peak[2] + 4 * pairs
    with LargestTensor() as memory:
        lsh_attention(query, value, buckets, chunk_length=16).sum().backward()
    assert memory.numel <= 2 * 16 * seq


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("chunk_length", [2, 3, 4])
def test_padding_changes_no_output(causal, chunk_length):
    """Wherever it stands, and whatever it holds: as if it were not there, in every chunk."""
    rng = torch.Generator().manual_seed(0)
    query, value = query_and_value(1, 2, 7)
    buckets = torch.randint(0, 3, (1, 2, 2, 7), generator=rng)
    expected = lsh_attention(query, value, buckets, chunk_length=chunk_length, causal=causal)
    kept = torch.tensor([1, 2, 3, 5, 6, 8, 9])
    mask = torch.zeros(1, 1, 1, 11, dtype=torch.bool)
    mask[..., kept] = True
    longer = [
        torch.randn(1, 2, 11, x.shape[-1], dtype=x.dtype, generator=rng) for x in (query, value)
    ]
    padded = torch.randint(0, 3, (1, 2, 2, 11), generator=rng)
    for x, part in zip(longer, (query, value), strict=True):
        x[:, :, kept] = part.detach()
    padded[..., kept] = buckets
    output = lsh_attention(*longer, padded, mask, chunk_length=chunk_length, causal=causal)
    assert_close(output[:, :, kept], expected)


def a_module(**options):
    options = {"n_buckets": 4, "n_rounds": 2, "chunk_length": 8, **options}
    module = ReformerAttention(8, 2, **options).double()
    randomise(module, torch.Generator().manual_seed(1))
    return module


@pytest.mark.parametrize("causal", [False, True])
def test_the_layer_around_one_bucket_is_full_attention_with_shared_queries_and_keys(causal):
    """Equal rotations of 0 put every token into bucket 0. The mask keeps tokens from themselves."""
    torch.manual_seed(0)
    module, x = a_module(chunk_length=9), torch.randn(2, 9, 8).double()
    module.rotations.zero_()
    x.requires_grad_()
    mask = ~torch.eye(9, dtype=torch.bool)
    if causal:
        mask &= causal_mask(9)
        mask[0, 0] = True
    q, v = (split_heads(w(x), 2) for w in (module.w_qk, module.w_v))
    attended, _ = scaled_dot_product_attention(q, F.normalize(q, dim=-1), v, mask, scale=1.0)
    expected = module.w_o(merge_heads(attended))
    (output, _), inputs = module(x, causal=causal), [x, *module.parameters()]
    assert sum(w.numel() for w in inputs[1:]) == 3 * 72  # one projection less than usual
    assert_close(output, expected)
    assert_gradients_close(output, expected, inputs)


@pytest.mark.parametrize("causal", [False, True])
def test_the_layer_projects_around_two_digits_of_buckets_under_a_mask(causal):
    torch.manual_seed(0)
    module, x = a_module(n_buckets=(4, 6)), torch.randn(2, 40, 8).double()
    assert module.rotations.shape == (2, 4, 2 + 3)
    mask = (torch.arange(40) < torch.tensor([[33], [40]]))[:, None, None]
    qk, v = (split_heads(w(x), 2) for w in (module.w_qk, module.w_v))
    tens, ones = (
        lsh_buckets(qk, r) for r in (module.rotations[..., :2], module.rotations[..., 2:])
    )
    buckets = 6 * tens + ones
    assert len(buckets.unique()) > 12  # more than the 4 + 6 that are computed
    attended = lsh_attention(qk, v, buckets, mask, chunk_length=8, causal=causal)
    assert_close(module(x, mask, causal=causal)[0], module.w_o(merge_heads(attended)))


def test_the_rotations_come_from_the_generator_and_are_saved():
    first, second = (a_module(generator=torch.Generator().manual_seed(5)) for _ in range(2))
    other = a_module(generator=torch.Generator().manual_seed(6))
    assert first.rotations.shape == (2, 4, 2)
    assert torch.equal(first.rotations, second.rotations)
    assert not torch.equal(first.rotations, other.rotations)
    other.load_state_dict(first.state_dict())
    x = torch.randn(1, 30, 8).double()
    assert torch.equal(other(x)[0], first(x)[0])


X, B = torch.zeros(1, 2, 5, 4), torch.zeros(1, 2, 3, 5, dtype=torch.int64)
EVEN = "n_buckets must be even, one for each direction and one for its opposite, got "
SHAPE = "buckets must have shape (batch, heads, rounds, seq) = (1, 2, rounds, 5), got "


WRONG = {
    "hash: rotations of another width": (
        lambda: lsh_buckets(X, torch.zeros(2, 3, 6)),
        "rotations must have shape (rounds, d_key, half) with d_key=4, got (2, 3, 6)",
    ),
    "attention: buckets without rounds": (
        lambda: lsh_attention(X, X, B[:, :, 0], chunk_length=4),
        SHAPE + "(1, 2, 5); lsh_buckets(query, rotations) makes them",
    ),
    "layer: an odd number": (lambda: a_module(n_buckets=(4, 3)), EVEN + "3"),
}


test_bad_input = refusals(WRONG)


def test_buckets_of_any_size_are_apart():
    """In int32 a bucket times the number of chunks came out as another one's address."""
    query, value = torch.randn(2, 1, 1, 8, 4, generator=torch.Generator().manual_seed(0))
    buckets = torch.tensor([0, 1, 0, 1, 0, 1, 0, 1], dtype=torch.int32).expand(1, 1, 1, 8)
    apart = lsh_attention(query, value, buckets, chunk_length=8)
    assert torch.equal(lsh_attention(query, value, buckets * 2**30, chunk_length=8), apart)
