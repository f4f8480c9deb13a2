import itertools
import math
import weakref

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from attention import MultiHeadAttention, causal_mask, padding_mask, scaled_dot_product_attention
from attention.sparse.hashing import ReformerAttention, lsh_attention, lsh_buckets
from tests.unit.cases import (
    ULPS_OF_GRADIENTS,
    assert_close,
    assert_gradients_close,
    gradients,
    randomise,
)
from tests.unit.refusals import refusals


class Memory(TorchDispatchMode):
    """Watches what is made: the numbers of the largest tensor, and the bytes held at a time."""

    def __init__(self):
        super().__init__()
        self.largest = self.peak = 0
        self.held = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self.largest = max(self.largest, tensor.numel())
                storage = tensor.untyped_storage()
                if storage._cdata not in self.held:
                    self.held[storage._cdata] = storage.nbytes()
                    weakref.finalize(storage, self.held.pop, storage._cdata)
                    self.peak = max(self.peak, sum(self.held.values()))
        return result


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


def test_vectors_share_a_bucket_as_often_as_the_angle_between_them_says():
    """With two buckets the hash is the sign of one product: chance 1 - angle / π (Charikar 2002).

    40 rounds of 100 pairs, each pair turned by another angle: the standard deviation of the share
    is below 0.008, and four of them are allowed.
    """
    rng = torch.Generator().manual_seed(0)
    rotations = torch.randn(40, 2, 1, generator=rng)
    turn = 2 * math.pi * torch.rand(100, generator=rng)
    for angle in (0.1, 0.8, 1.5, 2.5, math.pi):
        turns = torch.stack([turn, turn + angle])  # (of the pair, 100)
        x = torch.stack([turns.cos(), turns.sin()], dim=-1)[None]
        first, second = lsh_buckets(x, rotations)[0]
        share = (first == second).float().mean().item()
        assert share == pytest.approx(1 - angle / math.pi, abs=0.032)


def test_buckets_hold_the_products_of_one_round_at_a_time():
    seq, half = 1024, 64
    x, peak = torch.randn(1, 1, seq, 4), {}
    for rounds in (1, 4):
        with Memory() as memory:
            lsh_buckets(x, torch.randn(rounds, 4, half))
        peak[rounds] = memory.peak
    products = seq * half * 4
    assert products < peak[1] < 2 * products
    assert peak[4] < peak[1] + products / 2


def seen(buckets, chunk_length):
    """(batch, heads, query, key): which tokens a token sees, counted token by token."""
    batch, heads, rounds, seq = buckets.shape
    mask = torch.zeros(batch, heads, seq, seq, dtype=torch.bool)
    for b in range(batch):
        for h in range(heads):
            for r in range(rounds):
                bucket = buckets[b, h, r].tolist()
                order = sorted(range(seq), key=lambda i: (bucket[i], i))
                chunk = {i: rank // chunk_length for rank, i in enumerate(order)}
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
    assert_gradients_close(output, expected, inputs, ulps=ULPS_OF_GRADIENTS)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("seq", "rounds"), [(1, 1), (2, 1), (9, 1), (9, 3), (40, 1)])
def test_one_bucket_and_one_chunk_is_full_attention(seq, rounds, causal):
    query, value = query_and_value(2, 3, seq)
    buckets = torch.zeros(2, 3, rounds, seq, dtype=torch.int64)
    output = lsh_attention(query, value, buckets, chunk_length=seq, causal=causal)
    all_tokens = torch.ones(seq, seq, dtype=torch.bool)
    assert_same(output, dense(query, value, all_tokens, causal=causal), [query, value])


@settings(max_examples=60)
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
    may = seen(buckets, chunk_length)
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


def test_what_two_rounds_show_counts_once():
    """Token 0 sees token 1 twice and token 2 once; all scores are equal."""
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
    expected = dense(*wide, seen(buckets, 8), causal=True, mask=mask)
    assert output.dtype == dtype
    # A score is as large as its query is long. It is rounded three times on the way (key, product,
    # times), by half an eps each, and an output is off by its weights' errors times the values.
    largest = wide[0].norm(dim=-1).max() * wide[1].abs().max()
    atol = 1.5 * torch.finfo(dtype).eps * largest.item()
    torch.testing.assert_close(output.double(), expected, rtol=0, atol=atol)
    assert all(gradient.isfinite().all() for gradient in gradients([output], [query, value]))


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_a_token_that_sees_nothing_gets_zeros_and_finite_gradients():
    query, value = query_and_value(1, 1, 6)
    mask = torch.tensor([1, 1, 0, 1, 0, 0])[None, None, None] == 1
    buckets = torch.tensor([[0, 0, 1, 1, 2, 3]])[None, None]
    with torch.autograd.detect_anomaly(check_nan=True):
        output = lsh_attention(query, value, buckets, mask, chunk_length=6)
        back = gradients([output], [query, value])
    assert not output[0, 0, 4:].any()
    assert output[0, 0, :4].all()
    assert torch.equal(output[0, 0, 2], value[0, 0, 3])
    assert all(gradient.isfinite().all() for gradient in back)
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


def test_no_tensor_has_an_entry_for_every_pair_of_tokens():
    seq = 512
    query, value = query_and_value(1, 1, seq)
    buckets = torch.arange(seq)[None, None, None].expand(1, 1, 2, -1) // 8
    with Memory() as memory:
        lsh_attention(query, value, buckets, chunk_length=16).sum().backward()
    assert memory.largest <= 2 * 16 * seq


def test_a_round_does_not_hold_what_the_other_rounds_show():
    """A byte for each of seq · 2 · chunk_length pairs, and these for each round, would show."""
    seq, chunk_length, peak = 1024, 128, {}
    query, value = (x.detach() for x in query_and_value(1, 1, seq, dtype=torch.float32))
    for rounds in (2, 6):
        buckets = torch.randint(0, 8, (1, 1, rounds, seq))
        with Memory() as memory:
            lsh_attention(query, value, buckets, chunk_length=chunk_length)
        peak[rounds] = memory.peak
    pairs = seq * 2 * chunk_length
    assert peak[2] > 4 * pairs
    assert peak[6] < peak[2] + 4 * pairs


def test_the_error_against_full_attention_falls_with_the_rounds():
    """Clustered queries, as training makes them; the mean over 8 heads, and the same hashes.

    Each further round adds to what a token sees, since the first rounds' rotations stay.
    """
    rng = torch.Generator().manual_seed(0)
    centres = 4 * torch.randn(16, 16, generator=rng)
    query = centres[torch.randint(0, 16, (1, 8, 256), generator=rng)]
    query = query + torch.randn(query.shape, generator=rng)
    value = torch.randn(1, 8, 256, 16, generator=rng)
    key, itself = F.normalize(query, dim=-1), torch.eye(256, dtype=torch.bool)
    full, _ = scaled_dot_product_attention(query, key, value, ~itself, scale=1.0)
    buckets = lsh_buckets(query, torch.randn(16, 16, 8, generator=rng))
    errors = [
        (lsh_attention(query, value, buckets[:, :, :rounds], chunk_length=32) - full).norm().item()
        for rounds in (1, 2, 4, 8, 16)
    ]
    errors = [error / full.norm().item() for error in errors]
    assert all(later < 0.9 * earlier for earlier, later in itertools.pairwise(errors))
    assert errors[0] > 0.3
    assert errors[-1] < 0.1


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
    q = module.w_qk(x).unflatten(-1, (2, 4)).transpose(1, 2)
    v = module.w_v(x).unflatten(-1, (2, 4)).transpose(1, 2)
    attended, _ = scaled_dot_product_attention(q, F.normalize(q, dim=-1), v, mask, scale=1.0)
    expected = module.w_o(attended.transpose(1, 2).flatten(2))
    (output, _), inputs = module(x, causal=causal), [x, *module.parameters()]
    assert_close(output, expected)
    assert_gradients_close(output, expected, inputs)


@pytest.mark.parametrize("changed", [5, 12])
def test_causal_a_changed_token_changes_no_earlier_one(changed):
    """Its bucket changes with it, and so does the order of all that are sorted."""
    torch.manual_seed(0)
    module, x = a_module(chunk_length=20), torch.randn(2, 13, 8).double()
    other = x.clone()
    other[:, changed] = 5 * torch.randn(2, 8)
    (after, _), (before, _) = module(other, causal=True), module(x, causal=True)
    assert_close(after[:, :changed], before[:, :changed])
    assert not torch.allclose(after[:, changed:], before[:, changed:])


def test_what_padding_holds_does_not_matter():
    torch.manual_seed(0)
    module = a_module(chunk_length=20)
    mask = padding_mask(torch.tensor([[3, 4, 5, 0, 0], [6, 7, 8, 9, 0]]), 0)
    x = torch.randn(2, 5, 8).double()
    tokens = mask[:, 0, 0]
    other = torch.where(tokens[..., None], x, 5 * torch.randn(2, 5, 8))
    assert_close(module(x, mask)[0][tokens], module(other, mask)[0][tokens])
    assert not torch.allclose(module(x)[0][tokens], module(other)[0][tokens])


def test_the_rotations_come_from_the_generator_and_are_saved():
    first, second = (a_module(generator=torch.Generator().manual_seed(5)) for _ in range(2))
    other = a_module(generator=torch.Generator().manual_seed(6))
    assert first.rotations.shape == (2, 4, 2)
    assert torch.equal(first.rotations, second.rotations)
    assert not torch.equal(first.rotations, other.rotations)
    other.load_state_dict(first.state_dict())
    x = torch.randn(1, 30, 8).double()
    assert torch.equal(other(x)[0], first(x)[0])


def test_two_numbers_of_buckets_are_the_digits_of_one():
    torch.manual_seed(0)
    module, x = a_module(n_buckets=(4, 6)), torch.randn(2, 40, 8).double()
    assert module.rotations.shape == (2, 4, 2 + 3)
    qk, v = (w(x).unflatten(-1, (2, 4)).transpose(1, 2) for w in (module.w_qk, module.w_v))
    tens, ones = (
        lsh_buckets(qk, r) for r in (module.rotations[..., :2], module.rotations[..., 2:])
    )
    buckets = 6 * tens + ones
    assert len(buckets.unique()) > 12  # more than the 4 + 6 that are computed
    attended = lsh_attention(qk, v, buckets, chunk_length=8)
    assert_close(module(x)[0], module.w_o(attended.transpose(1, 2).flatten(2)))


def test_it_has_one_projection_less_than_multi_head_attention():
    ours, theirs = a_module(), MultiHeadAttention(8, 2)
    count = [sum(w.numel() for w in module.parameters()) for module in (ours, theirs)]
    assert count == [3 * 72, 4 * 72]


X, B = torch.zeros(1, 2, 5, 4), torch.zeros(1, 2, 3, 5, dtype=torch.int64)
OPTIONS = {"n_buckets": 4, "n_rounds": 2, "chunk_length": 8}
EVEN = "n_buckets must be even, one for each direction and one for its opposite, got "
SHAPE = "buckets must have shape (batch, heads, rounds, seq) = (1, 2, rounds, 5), got "


def reformer(**options):
    return ReformerAttention(**{"d_model": 8, "n_heads": 2, **OPTIONS, **options})


WRONG = {
    "hash: rotations of another width": (
        lambda: lsh_buckets(X, torch.zeros(2, 3, 6)),
        "rotations must have shape (rounds, d_key, half) with d_key=4, got (2, 3, 6)",
    ),
    "attention: values": (
        lambda: lsh_attention(X, X[0], B, chunk_length=4),
        "value must have shape (batch, heads, seq, d_value)",
    ),
    "attention: buckets without rounds": (
        lambda: lsh_attention(X, X, B[:, :, 0], chunk_length=4),
        SHAPE + "(1, 2, 5); lsh_buckets(query, rotations) makes them",
    ),
    "attention: buckets of another length": (
        lambda: lsh_attention(X, X, B[..., :4], chunk_length=4),
        SHAPE + "(1, 2, 3, 4); lsh_buckets(query, rotations) makes them",
    ),
    "attention: a causal mask": (
        lambda: lsh_attention(X, X, B, causal_mask(5), chunk_length=4),
        "LSH attention can leave out keys for all queries alike",
    ),
    "layer: heads": (lambda: reformer(n_heads=3), "n_heads=3 does not divide d_model=8"),
    "layer: an odd number": (lambda: reformer(n_buckets=5), EVEN + "5"),
    "layer: an odd number of two": (lambda: reformer(n_buckets=(4, 3)), EVEN + "3"),
    "layer: no buckets": (lambda: reformer(n_buckets=0), "n_buckets must be at least 2, got 0"),
    "layer: a causal mask": (
        lambda: reformer()(torch.zeros(1, 5, 8), causal_mask(5)),
        "LSH attention can leave out keys for all queries alike",
    ),
}


test_bad_input = refusals(WRONG)


def test_buckets_of_any_size_are_apart():
    """In int32 a bucket times the number of chunks came out as another one's address."""
    query, value = torch.randn(2, 1, 1, 8, 4, generator=torch.Generator().manual_seed(0))
    buckets = torch.tensor([0, 1, 0, 1, 0, 1, 0, 1], dtype=torch.int32).expand(1, 1, 1, 8)
    apart = lsh_attention(query, value, buckets, chunk_length=8)
    assert torch.equal(lsh_attention(query, value, buckets * 2**30, chunk_length=8), apart)
