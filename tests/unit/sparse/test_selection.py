import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention import MultiHeadAttention, causal_mask, padding_mask, scaled_dot_product_attention
from attention.sparse.selection import (
    IndexedAttention,
    LightningIndexer,
    indexer_loss,
    moba_attention,
    selected_attention,
)
from tests.unit.cases import assert_close, assert_gradients_close, randomise
from tests.unit.refusals import refusals
from tests.unit.sparse.cases import LargestTensor, assert_equals_dense, paddings, qkv


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


@settings(max_examples=60)
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
    before = [x.detach().clone() for x in (query, key, value, selected)]
    output = selected_attention(query, key, value, selected, mask, block=block, causal=causal)
    seen = seen_mask(selected, n_keys, block)
    if causal:
        seen = seen & causal_mask(n_queries, n_keys)
    if mask is not None:
        seen = seen & mask
    expected, _ = scaled_dot_product_attention(query, key, value, seen)
    assert_close(output, expected)
    assert_gradients_close(output, expected, [query, key, value])
    assert all(map(torch.equal, (query, key, value, selected), before))


@pytest.mark.parametrize("padding", paddings(13))
@pytest.mark.parametrize("block", [1, 4, 13, 20])
def test_all_keys_selected_are_dense_attention(block, padding):
    selected = torch.arange(math.ceil(13 / block)).expand(2, 1, 13, -1)

    def attend(query, key, value, mask):
        return selected_attention(query, key, value, selected, mask, block=block)

    everything = torch.ones(13, 13, dtype=torch.bool)
    assert_equals_dense(attend, everything, qkv(13), paddings(13)[padding])


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
@pytest.mark.parametrize("n_blocks", [1, 2, 3, 9])
@pytest.mark.parametrize(("seq", "block"), [(12, 3), (13, 4), (5, 8), (1, 1)])
def test_moba_takes_its_own_block_and_those_of_best_mean(seq, block, n_blocks, causal):
    kept = torch.arange(seq) < torch.tensor([seq, max(1, seq - 3)])[:, None]
    inputs = qkv(seq, seed=seq)
    query, key, value = inputs
    mask = kept[:, None, None]
    output = moba_attention(query, key, value, mask, block=block, n_blocks=n_blocks, causal=causal)
    seen = mobas_blocks(query, key, block, n_blocks, causal=causal, kept=kept) & mask
    if causal:
        seen = seen & causal_mask(seq)
    expected, _ = scaled_dot_product_attention(query, key, value, seen)
    assert_close(output, expected)
    assert_gradients_close(output, expected, inputs)
    unpadded = torch.ones(2, seq, dtype=torch.bool)
    seen = mobas_blocks(query, key, block, n_blocks, causal=causal, kept=unpadded)
    seen = seen & causal_mask(seq) if causal else seen
    expected, _ = scaled_dot_product_attention(query, key, value, seen)
    output = moba_attention(query, key, value, block=block, n_blocks=n_blocks, causal=causal)
    assert_close(output, expected)


@pytest.mark.parametrize("causal", [False, True])
def test_moba_with_all_blocks_is_dense_attention(causal):
    def attend(query, key, value, mask):
        return moba_attention(query, key, value, mask, block=4, n_blocks=4, causal=causal)

    pattern = causal_mask(13) if causal else torch.ones(13, 13, dtype=torch.bool)
    for padding in paddings(13).values():
        assert_equals_dense(attend, pattern, qkv(13), padding)


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
@pytest.mark.parametrize("top_k", [1, 4, 11, 50])
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
    pull = torch.randn(output.shape, generator=torch.Generator().manual_seed(0)).double()
    back = torch.autograd.grad(output, [x, *ours], pull)
    wanted = torch.autograd.grad(expected, [x, *theirs], pull)
    for actual, gradient in zip(back, wanted, strict=True):
        assert_close(actual, gradient)


def test_a_choice_has_no_gradient():
    layer = a_layer(4)
    layer(X)[0].sum().backward()
    assert all(w.grad is None for w in layer.indexer.parameters())


@pytest.mark.parametrize("top_k", [1, 3])
@pytest.mark.parametrize("changed", [5, 10])
def test_causal_a_changed_token_changes_no_earlier_one(changed, top_k):
    """Not by its score, nor by taking the place of another in the choice."""
    layer, other = a_layer(top_k), X.clone()
    other[:, changed] = 5 * torch.randn(2, 8, generator=torch.Generator().manual_seed(0)).double()
    (before, _), (after, _) = layer(X, causal=True), layer(other, causal=True)
    assert_close(after[:, :changed], before[:, :changed])
    assert not torch.allclose(after[:, changed:], before[:, changed:])
    query, key, value = (x.detach() for x in qkv(11))
    before = moba_attention(query, key, value, block=3, n_blocks=2, causal=True)
    for x in (query, key, value):
        x[:, :, changed] = 9.0
    after = moba_attention(query, key, value, block=3, n_blocks=2, causal=True)
    assert_close(after[:, :, :changed], before[:, :, :changed])


def test_what_padding_holds_does_not_matter():
    tokens = PADDED[:, 0, 0]
    other = torch.where(tokens[..., None], X, 5 * X + 1)
    layer = a_layer(3)
    assert_close(layer(X, PADDED)[0][tokens], layer(other, PADDED)[0][tokens])


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


def test_the_loss_teaches_the_indexer_where_attention_looks():
    """Before and after: how much of the attention's weight the best 3 of 11 keys hold."""
    torch.manual_seed(0)
    indexer, dense = LightningIndexer(8, 3, 4).double(), MultiHeadAttention(8, 2).double()
    with torch.no_grad():
        dense.w_q.weight.mul_(6)
        _, weights = dense(X)

    def held():
        best = indexer(X).topk(3).indices
        return weights.sum(1).gather(2, best).sum(-1).mean().item() / 2

    before, optimiser = held(), torch.optim.Adam(indexer.parameters(), lr=0.03)
    for _ in range(150):
        loss = indexer_loss(indexer(X), weights)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    best_possible = weights.mean(1).topk(3).values.sum(-1).mean().item()
    assert before < 0.7 * best_possible
    assert held() > 0.95 * best_possible


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
    "selected: no tensor": (
        lambda: selected_attention(Q, Q, Q, [0]),
        TypeError,
        "selected must be a tensor, got list",
    ),
    "selected: floats": (
        lambda: selected_attention(Q, Q, Q, S.float()),
        TypeError,
        "selected must hold numbers of blocks in int64, got torch.float32",
    ),
    "selected: three axes": (lambda: selected_attention(Q, Q, Q, S[0]), SHAPE),
    "selected: of other queries": (lambda: selected_attention(Q, Q, Q, S[:, :, :5]), SHAPE),
    "selected: nothing": (lambda: selected_attention(Q, Q, Q, S[..., :0]), SHAPE),
    "selected: too far": (
        lambda: selected_attention(Q, Q, Q, S + 2, block=3),
        "selected has block 2, and the blocks go from 0 to 1",
    ),
    "selected: a causal mask": (
        lambda: selected_attention(Q, Q, Q, S, causal_mask(6)),
        "selected attention can leave out keys for all queries alike",
    ),
    "moba: fewer keys": (
        lambda: moba_attention(Q, Q[:, :, :5], Q[:, :, :5], block=2, n_blocks=1),
        "MoBA is self-attention",
    ),
    "moba: no block": (
        lambda: moba_attention(Q, Q, Q, block=2, n_blocks=0),
        "n_blocks must be at least 1, got 0",
    ),
    "loss: other keys": (
        lambda: indexer_loss(torch.zeros(1, 6, 5), torch.zeros(1, 2, 6, 6)),
        "scores must have shape (batch, query, key), those of weights",
    ),
    "layer: heads": (
        lambda: IndexedAttention(8, 3, n_index_heads=1, d_index=1, top_k=1),
        "n_heads=3 does not divide d_model=8",
    ),
    "layer: a causal mask": (
        lambda: a_layer(2).float()(torch.zeros(1, 5, 8), causal_mask(5)),
        "indexed attention can leave out keys for all queries alike",
    ),
}


test_bad_input = refusals(WRONG)
