import itertools
import math
import re

import pytest
import torch
from torch.nn import functional as F

from attention import MultiHeadAttention, causal_mask, padding_mask, scaled_dot_product_attention
from attention.sparse.hashing import ReformerAttention, lsh_attention, lsh_buckets
from tests.unit.cases import assert_close, gradients, randomise


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


def test_vectors_share_a_bucket_as_often_as_the_angle_between_them_says():
    """With two buckets the hash is the sign of one product: chance 1 - angle / π (Charikar 2002).

    4000 rounds: the standard deviation of the share is below 0.008, and four of them are allowed.
    """
    rotations = torch.randn(4000, 2, 1, generator=torch.Generator().manual_seed(0))
    for angle in (0.1, 0.8, 1.5, 2.5, math.pi):
        x = torch.tensor([[1.0, 0], [math.cos(angle), math.sin(angle)]])[None, None]
        first, second = lsh_buckets(x, rotations)[0, 0].unbind(-1)
        share = (first == second).float().mean().item()
        assert share == pytest.approx(1 - angle / math.pi, abs=0.032)


def test_the_error_against_full_attention_falls_with_the_rounds():
    """Clustered queries, as training makes them; the mean over 8 heads, and the same hashes.

    Each further round adds to what is found, since the first rounds' rotations stay.
    """
    rng = torch.Generator().manual_seed(0)
    centres = 4 * torch.randn(16, 16, generator=rng)
    query = centres[torch.randint(0, 16, (1, 8, 256), generator=rng)]
    query = query + torch.randn(query.shape, generator=rng)
    value = torch.randn(1, 8, 256, 16, generator=rng)
    key, nobody = F.normalize(query, dim=-1), torch.eye(256, dtype=torch.bool)
    full, _ = scaled_dot_product_attention(query, key, value, ~nobody, scale=1.0)
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
    module, x = a_module(causal=causal, chunk_length=9), torch.randn(2, 9, 8).double()
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
    output, inputs = module(x), [x, *module.parameters()]
    assert_close(output, expected)
    for ours, theirs in zip(
        gradients([output], inputs), gradients([expected], inputs), strict=True
    ):
        assert_close(ours, theirs)


@pytest.mark.parametrize("changed", [5, 12])
def test_causal_a_changed_token_changes_no_earlier_one(changed):
    """Its bucket changes with it, and so does the order of all that are sorted."""
    torch.manual_seed(0)
    module, x = a_module(causal=True, chunk_length=20), torch.randn(2, 13, 8).double()
    other = x.clone()
    other[:, changed] = 5 * torch.randn(2, 8)
    assert_close(module(other)[:, :changed], module(x)[:, :changed])
    assert not torch.allclose(module(other)[:, changed:], module(x)[:, changed:])


def test_what_padding_holds_does_not_matter():
    torch.manual_seed(0)
    module = a_module(chunk_length=20)
    mask = padding_mask(torch.tensor([[3, 4, 5, 0, 0], [6, 7, 8, 9, 0]]), 0)
    x = torch.randn(2, 5, 8).double()
    tokens = mask[:, 0, 0]
    other = torch.where(tokens[..., None], x, 5 * torch.randn(2, 5, 8))
    assert_close(module(x, mask)[tokens], module(other, mask)[tokens])
    assert not torch.allclose(module(x)[tokens], module(other)[tokens])


def test_the_rotations_come_from_the_generator_and_are_saved():
    first, second = (a_module(generator=torch.Generator().manual_seed(5)) for _ in range(2))
    other = a_module(generator=torch.Generator().manual_seed(6))
    assert first.rotations.shape == (2, 4, 2)
    assert torch.equal(first.rotations, second.rotations)
    assert not torch.equal(first.rotations, other.rotations)
    other.load_state_dict(first.state_dict())
    x = torch.randn(1, 30, 8).double()
    assert torch.equal(other(x), first(x))


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
    assert_close(module(x), module.w_o(attended.transpose(1, 2).flatten(2)))


def test_it_has_one_projection_less_than_multi_head_attention():
    ours, theirs = a_module(), MultiHeadAttention(8, 2)
    count = [sum(w.numel() for w in module.parameters()) for module in (ours, theirs)]
    assert count == [3 * 72, 4 * 72]


OPTIONS = {"n_buckets": 4, "n_rounds": 2, "chunk_length": 8}
WRONG = {
    "an odd number of buckets": (
        lambda: ReformerAttention(8, 2, **{**OPTIONS, "n_buckets": 5}),
        ValueError,
        "n_buckets must be even, one for each direction and one for its opposite, got 5",
    ),
    "an odd number of two": (
        lambda: ReformerAttention(8, 2, **{**OPTIONS, "n_buckets": (4, 3)}),
        ValueError,
        "n_buckets must be even, one for each direction and one for its opposite, got 3",
    ),
    "no rounds": (
        lambda: ReformerAttention(8, 2, **{**OPTIONS, "n_rounds": 0}),
        ValueError,
        "n_rounds must be at least 1, got 0",
    ),
    "a causal mask": (
        lambda: ReformerAttention(8, 2, **OPTIONS)(torch.zeros(1, 5, 8), causal_mask(5)),
        ValueError,
        "LSH attention can leave out keys for all queries alike, not for single queries: mask must"
        " have size 1 on its query axis, as padding_mask makes it, got (5, 5)",
    ),
    "rotations for another width": (
        lambda: lsh_buckets(torch.zeros(1, 2, 5, 4), torch.zeros(2, 3, 6)),
        ValueError,
        "rotations must have shape (rounds, d_key, half) with d_key=4, got (2, 3, 6)",
    ),
    "heads that do not divide": (
        lambda: ReformerAttention(8, 3, **OPTIONS),
        ValueError,
        "n_heads=3 does not divide d_model=8; it can be 1, 2, 4 or 8",
    ),
}


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(("call", "error", "says"), WRONG.values(), ids=WRONG)
def test_bad_input(call, error, says):
    with pytest.raises(error, match=f"^{re.escape(says)}$"):
        call()
