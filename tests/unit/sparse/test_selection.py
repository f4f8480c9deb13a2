import math
from unittest import mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention import MultiHeadAttention, causal_mask, padding_mask, scaled_dot_product_attention
from attention.sparse.selection import (
    IndexedAttention,
    indexer_loss,
    moba_attention,
    selected_attention,
)
from tests.unit.cases import assert_close, assert_gradients_close, gradients, randomise
from tests.unit.refusals import refusals
from tests.unit.sparse.cases import LargestTensor, qkv


def seen_mask(selected, n_keys, block):
    """(batch, heads, query, key), True for the keys of the blocks that are listed, one by one."""
    batch, listed_heads, n_queries, _ = selected.shape
    mask = torch.zeros(batch, listed_heads, n_queries, n_keys, dtype=torch.bool)
    for b, h, i in torch.cartesian_prod(*map(torch.arange, selected.shape[:3])).tolist():
        for number in selected[b, h, i].tolist():
            mask[b, h, i, number * block : (number + 1) * block] = True
    return mask


def random_choice(shape, n_blocks, n_selected, seed=0):
    """Different blocks for each query, in any order."""
    rng = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, n_blocks, generator=rng).argsort(-1)[..., :n_selected]


@settings(max_examples=50)
@given(
    st.tuples(*[st.integers(1, most) for most in (2, 3, 9, 12, 4)]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_equals_dense_attention_under_a_mask_of_what_is_selected(sizes, causal, alike, seed):
    """Any number of queries and keys, a last block that is not full, and padding."""
    batch, heads, n_queries, n_keys, block = sizes
    rng = torch.Generator().manual_seed(seed)
    query, key, value = (
        torch.randn(batch, heads, n, width, dtype=torch.float64, generator=rng).requires_grad_()
        for n, width in ((n_queries, 3), (n_keys, 3), (n_keys, 4))
    )
    n_blocks = math.ceil(n_keys / block)
    shape = (batch, 1 if alike else heads, n_queries)
    selected = random_choice(shape, n_blocks, 1 + seed % n_blocks, seed)
    mask = torch.rand(batch, 1, 1, n_keys, generator=rng) < 0.7 if seed % 2 else None
    arguments = (query, key, value, selected, mask)
    before = [x.detach().clone() for x in arguments[:4]]
    output = selected_attention(*arguments, block=block, causal=causal)
    seen = seen_mask(selected, n_keys, block)
    if causal:
        seen = seen & causal_mask(n_queries, n_keys)
    if mask is not None:
        seen = seen & mask
    expected, _ = scaled_dot_product_attention(query, key, value, seen)
    assert_close(output, expected)
    assert_gradients_close(output, expected, [query, key, value])
    for numbers in (1, 200):  # without gradients in pieces
        with torch.no_grad(), mock.patch("attention.sparse.blocks.NUMBERS_AT_ONCE", numbers):
            assert_close(selected_attention(*arguments, block=block, causal=causal), expected)
    assert all(map(torch.equal, (query, key, value, selected), before))


def mobas_blocks(query, key, block, n_blocks, *, causal, kept):
    """The blocks of each query, found one query after the other: the paper's rule in a loop."""
    batch, heads, seq, _ = query.shape
    mask = torch.zeros(batch, heads, seq, seq, dtype=torch.bool)
    for b, h, i in torch.cartesian_prod(*map(torch.arange, (batch, heads, seq))).tolist():
        scores = {}
        for start in range(0, seq, block):
            keys = [j for j in range(start, min(start + block, seq)) if kept[b, j]]
            if start <= i < start + block:
                scores[start] = math.inf
            elif keys and not (causal and start > i):
                mean = sum(key[b, h, j] for j in keys) / len(keys)
                scores[start] = (query[b, h, i] @ mean).item()
        for start in sorted(scores, key=scores.get)[-n_blocks:]:
            mask[b, h, i, start : start + block] = True
    return mask


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n_blocks", [1, 2, 9])
@pytest.mark.parametrize(("seq", "block"), [(12, 3), (13, 4), (5, 8)])
def test_moba_takes_its_own_block_and_those_of_best_mean(seq, block, n_blocks, causal):
    query, key, value = inputs = qkv(seq, seed=seq)
    padded = torch.arange(seq) < torch.tensor([seq, seq - 3])[:, None]
    for kept in (padded, torch.ones(2, seq, dtype=torch.bool)):
        mask = kept[:, None, None]
        seen = mobas_blocks(query, key, block, n_blocks, causal=causal, kept=kept) & mask
        if causal:
            seen = seen & causal_mask(seq)
        expected, _ = scaled_dot_product_attention(query, key, value, seen)
        output = moba_attention(
            *inputs, mask if kept is padded else None, block=block, n_blocks=n_blocks, causal=causal
        )
        assert_close(output, expected)
        assert_gradients_close(output, expected, inputs)


def a_layer(top_k):
    layer = IndexedAttention(8, 2, n_index_heads=8, d_index=4, top_k=top_k).double()
    randomise(layer, torch.Generator().manual_seed(1))
    return layer


def dense_layer(layer):
    dense = MultiHeadAttention(8, 2).double()
    missing = dense.load_state_dict(layer.state_dict(), strict=False)
    assert not missing.missing_keys
    return dense


def index_scores(indexer, x):
    """Equation 1 as it is written: for each query and key a sum over the index heads."""
    heads, width = indexer.n_index_heads, indexer.w_k.weight.shape[0]
    q = x @ indexer.w_q.weight.T
    k = x @ indexer.w_k.weight.T
    w = x @ indexer.w_w.weight.T
    scores = torch.zeros(len(x), x.shape[1], x.shape[1], dtype=x.dtype)
    for j in range(heads):
        products = q[..., j * width : (j + 1) * width] @ k.mT
        scores = scores + w[..., j, None] * products.clamp(min=0)
    return scores


X = torch.randn(2, 11, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
PADDED = padding_mask((torch.arange(11) < torch.tensor([[11], [7]])).long(), 0)


def test_the_indexer_scores_as_equation_1_says():
    indexer, x = a_layer(3).indexer, X.clone().requires_grad_()
    expected = index_scores(indexer, x)
    assert_close(indexer(x), expected)
    assert_gradients_close(indexer(x), expected, [x, *indexer.parameters()])
    hidden = ~(causal_mask(11) & PADDED)[:, 0]
    scores = indexer(x, PADDED, causal=True)
    assert_close(scores[~hidden], expected[~hidden])
    assert (scores[hidden] == torch.finfo(torch.float64).min).all()


@pytest.mark.parametrize("mask", [None, PADDED], ids=["whole", "padded"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("top_k", [1, 4, 50])
def test_the_layer_is_dense_attention_under_a_mask_of_the_best_keys(top_k, causal, mask):
    layer, x = a_layer(top_k), X.clone().requires_grad_()
    may = torch.ones(2, 11, 11, dtype=torch.bool)
    may = may & causal_mask(11) if causal else may
    may = may if mask is None else may & mask[:, 0]
    scores = index_scores(layer.indexer, X).masked_fill(~may, -torch.inf)
    assert all(len(row.unique()) == 11 for row in scores[may.all(-1)])  # or a choice were open
    best = torch.zeros_like(may)
    for b, i in torch.cartesian_prod(torch.arange(2), torch.arange(11)).tolist():
        best[b, i, scores[b, i].argsort(descending=True)[:top_k]] = True
    dense = dense_layer(layer)
    expected, _ = dense(x, mask=(best & may)[:, None])
    output, weights = layer(x, mask, causal=causal)
    assert weights is None
    assert_close(output, expected)
    names = ("w_q", "w_k", "w_v", "w_o")
    ours = [w for name in names for w in getattr(layer, name).parameters()]
    theirs = [w for name in names for w in getattr(dense, name).parameters()]
    wanted = gradients([expected], [x, *theirs])
    for actual, gradient in zip(gradients([output], [x, *ours]), wanted, strict=True):
        assert_close(actual, gradient)
    layer(X)[0].sum().backward()
    assert all(w.grad is None for w in layer.indexer.parameters())  # a choice has none


def test_the_loss_is_the_divergence_from_the_heads_mean_weights():
    torch.manual_seed(0)
    scores = torch.randn(2, 5, 7).double().requires_grad_()
    weights = torch.rand(2, 3, 5, 7).double().softmax(-1).requires_grad_()
    p, q = weights.detach().mean(1), scores.softmax(-1)
    expected = (p * (p / q).log()).sum(-1).mean()
    loss = indexer_loss(scores, weights)
    assert_close(loss, expected)
    assert_gradients_close(loss, expected, [scores])
    assert loss.grad_fn is not None
    assert torch.autograd.grad(loss, weights, allow_unused=True) == (None,)
    assert_close(indexer_loss(p.log(), weights), torch.zeros(()).double())


def test_the_loss_of_hidden_keys_and_of_queries_that_see_nothing_is_finite():
    indexer, dense = a_layer(3).indexer, MultiHeadAttention(8, 2).double()
    mask = PADDED & (torch.arange(11) > 2) & causal_mask(11)  # the first three see nothing
    _, weights = dense(X, mask=mask)
    scores = indexer(X).masked_fill(~mask[:, 0], torch.finfo(torch.float64).min)
    loss = indexer_loss(scores, weights)
    back = torch.autograd.grad(loss, list(indexer.parameters()))
    assert loss.isfinite() and all(gradient.isfinite().all() for gradient in back)


def test_no_tensor_has_an_entry_for_every_pair_of_tokens():
    seq, top_k = 2048, 8
    layer = IndexedAttention(8, 1, n_index_heads=1, d_index=2, top_k=top_k)
    x = torch.randn(1, seq, 8)
    with torch.no_grad(), LargestTensor() as watch:
        layer(x, causal=True)
    assert watch.numel <= 2**20 < seq * seq
    query = torch.randn(1, 1, seq, 4, requires_grad=True)
    with LargestTensor() as watch:
        moba_attention(query, query, query, block=16, n_blocks=2).sum().backward()
    assert watch.numel <= seq * 2 * 16 * 4


S = torch.zeros(1, 2, 6, 3, dtype=torch.int64)
Q = torch.zeros(1, 2, 6, 4)
SHAPE = "selected must have shape (batch, heads or 1, query, n_selected) = (1, 2 or 1, 6, "
WRONG = {
    "selected: three axes": (lambda: selected_attention(Q, Q, Q, S[0]), SHAPE),
    "selected: too far": (
        lambda: selected_attention(Q, Q, Q, S + 2, block=3),
        "selected has block 2, and the blocks go from 0 to 1",
    ),
    "loss: other keys": (
        lambda: indexer_loss(torch.zeros(1, 6, 5), torch.zeros(1, 2, 6, 6)),
        "scores must have shape (batch, query, key), those of weights",
    ),
}


test_bad_input = refusals(WRONG)
