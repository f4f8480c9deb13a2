"""Grouped queries, positions, a free d_key and a cache in one layer."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attention import (
    DotProduct,
    HeadGate,
    LinearBias,
    Linformer,
    Mechanism,
    MultiHeadAttention,
    Performer,
    QKNorm,
    QKSequential,
    RollingCache,
    Rotary,
    causal_mask,
    linear_attention,
    sink_mask,
    tiled_attention,
)
from tests.unit.cases import assert_close, assert_gradients_close, randomise
from tests.unit.refusals import refusals

D_MODEL, HEADS, D_KEY, N = 12, 4, 6, 9  # d_key is not d_model / n_heads

ATTEND = {
    "plain": DotProduct,
    "rotary": lambda: DotProduct(transform=Rotary(D_KEY)),
    "rotary, halves": lambda: DotProduct(transform=Rotary(D_KEY, halves=True)),
    "norms, then rotary": lambda: DotProduct(transform=QKSequential(QKNorm(D_KEY), Rotary(D_KEY))),
    "a bias": lambda: DotProduct(bias=LinearBias(HEADS)),
    "a gate around rotary": lambda: HeadGate(
        DotProduct(transform=Rotary(D_KEY)), torch.tensor([1.0, 0.5, 2.0, 0.0])
    ),
}


def layer(attend, n_kv_heads, bias="qkv"):
    sizes = {"n_kv_heads": n_kv_heads, "d_key": D_KEY}
    module = MultiHeadAttention(D_MODEL, HEADS, **sizes, bias=bias, attend=attend()).double()
    randomise(module, torch.Generator().manual_seed(n_kv_heads))
    return module


def tokens(n=N):
    return torch.randn(
        2, n, D_MODEL, dtype=torch.float64, generator=torch.Generator().manual_seed(3)
    )


def by_torch(module, x):
    """The causal pass through torch's function, with a query, a key and a value for every head."""
    q, k, v = (
        w(x).unflatten(-1, (-1, D_KEY)).transpose(1, 2)
        for w in (module.w_q, module.w_k, module.w_v)
    )
    attend, gate = module.attend, 1.0
    if isinstance(attend, HeadGate):
        attend, gate = attend.attend, attend.gate[:, None, None]
    if attend.transform is not None:
        q, k = attend.transform(q, k)
    bias = torch.zeros(HEADS, x.shape[1], x.shape[1], dtype=x.dtype)
    if attend.bias is not None:
        bias = attend.bias(x.shape[1], x.shape[1]).to(x.dtype)
    bias = bias.masked_fill(~causal_mask(x.shape[1]), -torch.inf)
    heads = torch.arange(HEADS) // (HEADS // module.n_kv_heads)
    output = F.scaled_dot_product_attention(q, k[:, heads], v[:, heads], bias[None])
    return module.w_o((output * gate).transpose(1, 2).flatten(-2))


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
@pytest.mark.parametrize("attend", ATTEND.values(), ids=ATTEND)
def test_the_whole_pass_and_the_cached_one_equal_torchs(attend, n_kv_heads, need_weights):
    module, x = layer(attend, n_kv_heads), tokens().requires_grad_()
    expected = by_torch(module, x)
    output, weights = module(x, causal=True, need_weights=need_weights)
    assert_close(output, expected)
    assert_gradients_close(output, expected, [x, *module.parameters()])
    assert weights is None or weights.shape == (2, HEADS, N, N)

    with torch.no_grad():
        for pieces in ([1] * N, [4, 1, 3, 1]):
            cache = module.new_cache(2, N)
            options = {"causal": True, "cache": cache, "need_weights": need_weights}
            written = [module(piece, **options)[0] for piece in x.split(pieces, dim=1)]
            assert_close(torch.cat(written, dim=1), expected)
            assert cache.keys.shape == (2, n_kv_heads, N, D_KEY)


def test_a_key_is_transformed_once():
    """A step of a decoder transforms the new key, and not those that the cache holds."""
    given = []

    class Watched(Rotary):
        def forward(self, q, k, *, first=0):
            given.append((first, q.shape[2], k.shape[2]))
            return super().forward(q, k, first=first)

    module = layer(lambda: DotProduct(transform=Watched(D_KEY)), 2)
    cache = module.new_cache(2, N)
    with torch.no_grad():
        for piece in tokens().split([4, 1, 3, 1], dim=1):
            module(piece, causal=True, cache=cache)
    assert given == [(0, 4, 4), (4, 1, 1), (5, 3, 3), (8, 1, 1)]


@pytest.mark.parametrize("n_sinks", [0, 2])
def test_a_rolling_cache_holds_keys_turned_by_their_place_in_the_text(n_sinks):
    module, x = layer(ATTEND["rotary"], 2), tokens()
    expected, _ = module(x, mask=sink_mask(N, 3, n_sinks))
    cache = RollingCache(2, 2, window=3, n_sinks=n_sinks, d_key=D_KEY, dtype=torch.float64)
    with torch.no_grad():
        written = [module(token, cache=cache)[0] for token in x.split(1, dim=1)]
    assert_close(torch.cat(written, dim=1), expected)


OTHERS = {
    "tiles": lambda: Mechanism(partial(tiled_attention, causal=True), hides_future=True),
    "linear, turned": lambda: Mechanism(linear_attention, transform=Rotary(D_KEY)),
    "Performer": lambda: Performer(D_KEY, n_features=8, generator=torch.Generator().manual_seed(0)),
    "Linformer": lambda: Linformer(max_length=N, proj_len=4),
}


@pytest.mark.parametrize("attend", OTHERS.values(), ids=OTHERS)
def test_a_mechanism_takes_fewer_heads_of_keys(attend):
    """It gives what a layer does that has a KV head for each query head, equal in a group."""
    grouped, x = layer(attend, 2), tokens()
    whole = layer(attend, HEADS)
    with torch.no_grad():
        for mine, its in zip(whole.parameters(), grouped.parameters(), strict=True):
            rows = its.unflatten(0, (2, D_KEY)) if len(its) == 2 * D_KEY else its
            mine.copy_(
                its if mine.shape == its.shape else rows.repeat_interleave(2, 0).flatten(0, 1)
            )
    assert_close(grouped(x)[0], whole(x)[0])


def test_the_letters_say_which_projections_add_a_bias():
    def of(bias):
        state = MultiHeadAttention(8, 2, bias=bias).state_dict()
        return {name[2] for name in state if name.endswith("bias")}

    assert [of(True), of(False), of("qkv"), of("")] == [set("qkvo"), set(), set("qkv"), set()]


X = torch.zeros(2, 1, D_MODEL)
ROTARY = layer(ATTEND["rotary"], 2).float()
REFUSED = {
    "a mechanism that keeps nothing": (
        lambda: MultiHeadAttention(12, 4, attend=Mechanism(linear_attention))(
            X, cache=ROTARY.new_cache(2, 3)
        ),
        ValueError,
        "Mechanism takes no cache of keys and values; call without cache, or with an attend that "
        "takes one, such as DotProduct",
    ),
    "a gate around one": (
        lambda: MultiHeadAttention(
            12, 4, attend=HeadGate(Mechanism(linear_attention), torch.ones(4))
        )(X, cache=ROTARY.new_cache(2, 3)),
        ValueError,
        "Mechanism takes no cache of keys and values",
    ),
    "a bias beside a ring": (
        lambda: layer(ATTEND["a bias"], 2).float()(X, cache=RollingCache(2, 2, 3, 1, D_KEY)),
        ValueError,
        "a RollingCache takes no bias: its keys are in no order",
    ),
    "letters of nothing": (
        lambda: MultiHeadAttention(12, 4, bias="qx"),
        ValueError,
        "bias must be True, False or letters of \"qkvo\", got 'qx'",
    ),
    "a mask of the new keys alone": (
        lambda: filled()(torch.ones(1, 1, dtype=torch.bool).expand(1, 2)),
        ValueError,
        "mask of shape (1, 2) does not broadcast to (batch, heads, query, key) = (2, 4, 1, 4)",
    ),
}


def filled():
    """A call of a layer with one token and a mask, beside a cache that holds three."""
    cache = ROTARY.new_cache(2, 8)
    with torch.no_grad():
        ROTARY(X.expand(2, 3, D_MODEL), causal=True, cache=cache)
    return lambda mask: ROTARY(X, mask=mask, cache=cache)


test_bad_input_is_refused = refusals(REFUSED)


def test_a_transform_that_fails_leaves_the_cache_as_it_was():
    class Halved(nn.Module):
        def forward(self, q, k, *, first=0):
            return q[..., :3], k

    module = layer(lambda: DotProduct(transform=Halved()), 2).float()
    cache = module.new_cache(2, 3)
    with pytest.raises(ValueError, match="the q of transform"):
        module(X, cache=cache)
    assert cache.length == 0


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("n_kv_heads", [2, 4])
@pytest.mark.parametrize("need_weights", [True, False])
def test_a_bias_that_hides_every_key_gives_0(need_weights, n_kv_heads, masked):
    """As a mask does, with weights and without, and with gradients that are numbers."""

    class Hides(nn.Module):
        def forward(self, n_queries, n_keys):
            bias = torch.zeros(HEADS, n_queries, n_keys)
            bias[1, 2], bias[3, 0], bias[:, :, 1] = -torch.inf, -torch.inf, -torch.inf
            return bias

    module, x = layer(lambda: DotProduct(bias=Hides()), n_kv_heads), tokens(5).requires_grad_()
    mask = torch.ones(2, 1, 1, 5, dtype=torch.bool) if masked else None
    seen = Hides()(5, 5) == 0
    expected = layer(DotProduct, n_kv_heads)(x, mask=seen[None])[0]
    output, weights = module(x, mask=mask, need_weights=need_weights)
    assert_close(output, expected)
    assert_gradients_close(output, expected, [x])
    assert weights is None or not weights[:, 1, 2].any()
