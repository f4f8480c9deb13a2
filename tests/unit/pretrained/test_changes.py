"""Fewer turns, fewer numbers, fewer keys: each change against the same by other means."""

import pytest
import torch

from attention import DecoderOnly, Rotary, moba_attention
from attention.masks import causal_mask
from attention.pretrained.changes import (
    bases_of_data,
    bases_of_weights,
    best_blocks,
    best_keys,
    still,
    with_fewer_numbers,
    with_first_value,
)
from attention.pretrained.heads import within_and_across
from attention.pretrained.maps import LEVELS, from_levels, to_levels


@pytest.fixture
def model():
    torch.manual_seed(0)
    return DecoderOnly(50, 16, 4, 32, n_layers=2, n_kv_heads=2, bias=False).eval()


def test_pairs_that_stand_still_do_not_turn_and_the_others_do():
    q = torch.randn(1, 1, 5, 8)
    rotary = Rotary(8, angles=still(slice(2, 4)))
    turned, _ = rotary(q, q)
    whole, _ = Rotary(8)(q, q)
    assert torch.equal(turned[..., 4:], q[..., 4:])
    assert torch.equal(turned[..., :4], whole[..., :4])


@pytest.mark.parametrize(("seq", "count"), [(70, 2), (64, 3), (20, 4)])
def test_best_blocks_are_those_of_moba(seq, count):
    torch.manual_seed(seq)
    q, k, v = torch.randn(3, 2, 3, seq, 8).unbind()
    weights = best_blocks(count, 16)(q @ k.mT / 8**0.5, causal_mask(seq))
    expected = moba_attention(q, k, v, block=16, n_blocks=count, causal=True)
    torch.testing.assert_close(weights @ v, expected)


def test_the_first_block_and_the_first_key_are_always_there():
    torch.manual_seed(0)
    scores, sees = torch.randn(1, 2, 40, 40), causal_mask(40)
    scores[..., :8] -= 9.0  # nobody would choose them
    assert not best_blocks(2, 8)(scores, sees)[:, :, 16:, :8].any()
    assert best_blocks(2, 8, first=True)(scores, sees)[:, :, 8:, 0].all()
    assert not best_keys(3)(scores, sees)[:, :, 20:, 0].any()
    with_first = best_keys(3, first=True)(scores, sees)
    assert with_first[..., 0].all() and ((with_first > 0).sum(-1)[:, :, 2:] == 3).all()


def test_best_keys_share_1_as_softmax_does_over_them():
    torch.manual_seed(0)
    scores = torch.randn(1, 1, 1, 9)
    weights = best_keys(4)(scores, torch.ones(1, 9, dtype=torch.bool))[0, 0, 0]
    best, at = scores[0, 0, 0].topk(4)
    torch.testing.assert_close(weights[at], best.softmax(-1))
    torch.testing.assert_close(weights.sum(), torch.tensor(1.0))


def test_with_fewer_numbers_keys_and_values_lie_in_the_basis(model):
    basis = torch.linalg.qr(torch.randn(16, 5)).Q.T  # 8 numbers of keys and 8 of values
    changed = with_fewer_numbers(model, [basis, torch.eye(16)])
    x, attention = torch.randn(7, 16), model.layers[0].self_attention
    both = torch.cat([attention.w_k(x), attention.w_v(x)], dim=-1)
    other = changed.layers[0].self_attention
    ours = torch.cat([other.w_k(x), other.w_v(x)], dim=-1)
    torch.testing.assert_close(ours, both @ basis.T @ basis)
    before = model.layers[1].self_attention.w_k.weight
    torch.testing.assert_close(changed.layers[1].self_attention.w_k.weight, before)
    assert attention.w_k.weight.shape == (8, 16)  # the model is as it was


def test_bases_leave_the_least_behind(model):
    texts = [torch.arange(40)[None], torch.arange(49, 9, -1)[None]]
    of_data, of_weights = bases_of_data(model, texts, 6), bases_of_weights(model, 6)
    rows = [model.layers[0].self_attention_norm(model.embedding(ids))[0] for ids in texts]
    attention, x = model.layers[0].self_attention, torch.cat(rows)
    both = torch.cat([attention.w_k(x), attention.w_v(x)], dim=-1).T  # (numbers, tokens)
    matrix = torch.cat([attention.w_k.weight, attention.w_v.weight])
    for what, basis, other in (
        (both, of_data[0], of_weights[0]),
        (matrix, of_weights[0], of_data[0]),
    ):
        torch.testing.assert_close(basis @ basis.T, torch.eye(6), atol=1e-5, rtol=0)
        lost = (what - basis.T @ basis @ what).square().sum()
        # What the Eckart–Young theorem says is left, and no other basis loses less.
        torch.testing.assert_close(lost, torch.linalg.svdvals(what)[6:].square().sum())
        assert lost < (what - other.T @ other @ what).square().sum()


@pytest.mark.parametrize("value", ["mean", "nothing"])
def test_what_later_rows_take_from_the_first_token_is_replaced(model, value):
    changed = with_first_value(model, value, from_layer=1)
    x, attention = torch.randn(2, 5, 16), model.layers[1].self_attention
    _, weights = attention(x, causal=True)
    v = attention.w_v(x).unflatten(-1, (2, 4)).transpose(1, 2).repeat_interleave(2, dim=1)
    rows = []
    for query in range(5):  # by hand, row by row
        taken = [weights[:, :, query, key, None] * v[:, :, key] for key in range(query + 1)]
        if query and value == "nothing":
            taken[0] = torch.zeros_like(taken[0])
        elif query:
            taken[0] = weights[:, :, 1:, 0].mean(2)[..., None] * v[:, :, 0]
        rows.append(sum(taken))
    expected = attention.w_o(torch.stack(rows, dim=2).transpose(1, 2).flatten(2))
    ours, same = changed.layers[1].self_attention(x, causal=True)
    torch.testing.assert_close(ours, expected)
    torch.testing.assert_close(same, weights)
    whole, _ = changed.layers[0].self_attention(x, causal=True)
    torch.testing.assert_close(whole, model.layers[0].self_attention(x, causal=True)[0])


def test_cosines_are_those_of_pairs_of_heads():
    torch.manual_seed(0)
    weights = torch.rand(2, 6, 3, 3)
    pairs = {True: [], False: []}
    for a in range(6):
        for b in range(6):
            if a != b:
                one, other = weights[:, a].flatten(), weights[:, b].flatten()
                pairs[a // 3 == b // 3].append((one @ other / one.norm() / other.norm()).item())
    expected = [sum(pairs[same]) / len(pairs[same]) for same in (True, False)]
    assert within_and_across(weights, 3) == pytest.approx(tuple(expected), abs=1e-6)


def test_levels_keep_a_weight_within_half_a_level():
    torch.manual_seed(0)
    scores = torch.randn(2, 3, 9, 9) * 4
    weights = scores.masked_fill(~causal_mask(9), -torch.inf).softmax(-1)
    levels = to_levels(weights)
    assert len(levels) == 2 * 3 * 45 and set(levels) <= set(LEVELS)
    again = from_levels(levels, (2, 3, 9, 9))
    assert (again.sqrt() - weights.sqrt()).abs().max() <= 0.5 / 63 + 1e-6
    assert to_levels(again) == levels
    with pytest.raises(ValueError, match="levels must have shape"):
        from_levels(levels[1:], (2, 3, 9, 9))
