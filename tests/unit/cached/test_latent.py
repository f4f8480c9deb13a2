import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from attention import KeyValueCache, MultiHeadAttention, causal_mask, padding_mask
from attention.cached.latent import LatentAttention, LatentCache
from tests.unit.cases import assert_close, gradients, randomise
from tests.unit.refusals import refusals
from tests.unit.sparse.cases import LargestTensor


@st.composite
def layers(draw):
    """Draw a layer, tokens for it, and a mask that differs in none, some or all of its axes."""
    batch, n_heads, d_key, d_latent = (draw(st.integers(1, n)) for n in (3, 4, 4, 9))
    seq, rng = draw(st.integers(1, 6)), torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    module = LatentAttention(n_heads * d_key, n_heads, d_latent, bias=draw(st.booleans())).double()
    randomise(module, rng)
    x = torch.randn(batch, seq, module.d_model, dtype=torch.float64, generator=rng)
    shape = [batch, n_heads, seq, seq][draw(st.sampled_from((0, 2))) :]
    mask = torch.rand([draw(st.sampled_from((1, size))) for size in shape], generator=rng) < 0.6
    return module, x.requires_grad_(), draw(st.sampled_from([None, mask]))


@given(layers(), st.booleans(), st.booleans())
def test_equals_the_papers_formulas_in_a_loop(case, causal, need_weights):
    """Equations 7 to 11, for one token, one head and one earlier token after the other."""
    module, x, mask = case
    output, weights = module(x, mask, causal=causal, need_weights=need_weights)
    batch, seq, _ = x.shape
    w = {name: part.weight.detach() for name, part in module.named_children()}
    allowed = torch.ones(batch, module.n_heads, seq, seq, dtype=torch.bool)
    allowed = allowed if mask is None else mask.expand_as(allowed)
    for b in range(batch):
        c = [w["w_down"] @ h for h in x[b].detach()]
        for t in range(seq):
            q, heads = w["w_q"] @ x[b, t].detach(), []
            q = q if module.w_q.bias is None else q + module.w_q.bias.detach()
            for i in range(module.n_heads):
                rows = slice(i * module.d_key, (i + 1) * module.d_key)
                total, head = 0.0, torch.zeros(module.d_key, dtype=torch.float64)
                exps = torch.zeros(seq, dtype=torch.float64)
                for j in range(seq):
                    if allowed[b, i, t, j] and not (causal and j > t):
                        key, value = w["w_k"][rows] @ c[j], w["w_v"][rows] @ c[j]
                        exps[j] = (q[rows] @ key / module.d_key**0.5).exp()
                        total, head = total + exps[j], head + exps[j] * value
                heads.append(head / total if total else head)
                if need_weights:
                    assert_close(weights[b, i, t], exps / total if total else exps)
            u = w["w_o"] @ torch.cat(heads)
            u = u if module.w_o.bias is None else u + module.w_o.bias.detach()
            assert_close(output[b, t], u)
    assert (weights is not None) == need_weights


def multiplied_out(module):
    """`MultiHeadAttention` whose keys and values take two matrices in one, and no bias."""
    whole = MultiHeadAttention(module.d_model, module.n_heads).double()
    with torch.no_grad():
        for w in (whole.w_q, whole.w_k, whole.w_v, whole.w_o):
            w.bias.zero_()
        for name in ("w_q", "w_o"):
            getattr(whole, name).load_state_dict(getattr(module, name).state_dict(), strict=False)
        whole.w_k.weight.copy_(module.w_k.weight @ module.w_down.weight)
        whole.w_v.weight.copy_(module.w_v.weight @ module.w_down.weight)
    return whole


@given(layers(), st.booleans(), st.booleans())
def test_is_multi_head_attention_with_the_matrices_multiplied_out(case, causal, need_weights):
    """In values and gradients; those of a product are told by hand."""
    module, x, mask = case
    whole = multiplied_out(module)
    options = {"causal": causal, "need_weights": need_weights}
    output, weights = module(x, mask, **options)
    expected, expected_weights = whole(x, mask=mask, **options)
    assert_close(output, expected)
    if need_weights:
        assert_close(weights, expected_weights)
    names = [name for name, _ in module.named_parameters()]
    ours = gradients([output], [x, *module.parameters()])
    theirs = gradients([expected], [x, *whole.parameters()])
    assert_close(ours[0], theirs[0])
    actual = dict(zip(names, ours[1:], strict=True))
    wanted = dict(zip([name for name, _ in whole.named_parameters()], theirs[1:], strict=True))
    down, up_k, up_v = module.w_down.weight, module.w_k.weight, module.w_v.weight
    keys, values = wanted.pop("w_k.weight"), wanted.pop("w_v.weight")
    wanted["w_k.weight"], wanted["w_v.weight"] = keys @ down.T, values @ down.T
    wanted["w_down.weight"] = up_k.T @ keys + up_v.T @ values
    for name in names:
        assert_close(actual[name], wanted[name])


@pytest.mark.parametrize("where", ["w_down", "w_k", "w_v"])
def test_a_bias_that_is_left_out_would_change_nothing_or_what_the_bias_of_w_o_does(where):
    module = LatentAttention(12, 3, 5).double()
    randomise(module, torch.Generator().manual_seed(0))
    x = torch.randn(2, 7, 12, dtype=torch.float64)
    whole = multiplied_out(module)
    part = getattr(module, where).weight
    bias = torch.randn(part.shape[0], dtype=torch.float64)
    with torch.no_grad():
        if where != "w_v":
            whole.w_k.bias.copy_(module.w_k.weight @ bias if where == "w_down" else bias)
        if where != "w_k":
            whole.w_v.bias.copy_(module.w_v.weight @ bias if where == "w_down" else bias)
        output = module(x)[0] + whole.w_o.weight @ whole.w_v.bias
    assert_close(whole(x)[0], output)


@pytest.mark.parametrize("d_latent", [1, 5, 16, 24])
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("pieces", [[1] * 9, [9], [4, 1, 3, 1], [1, 8]], ids=str)
def test_the_absorbed_form_equals_the_plain_one(d_latent, need_weights, dtype, pieces):
    """Three layers, token by token and several at a time, weights too."""
    rng = torch.Generator().manual_seed(d_latent)
    modules = [LatentAttention(12, 3, d_latent).to(dtype) for _ in range(3)]
    for module in modules:
        randomise(module, rng)
    x = torch.randn(2, 9, 12, generator=rng).to(dtype)
    caches = [module.new_cache(batch=2, max_length=9) for module in modules]
    with torch.no_grad():
        expected, plain = x, []
        for module in modules:
            attended, weights = module(expected, mask=causal_mask(9))
            expected = expected + attended
            plain.append(weights)
        outputs = []
        for new in x.split(pieces, dim=1):
            y, start = new, caches[0].length
            for module, cache, weights in zip(modules, caches, plain, strict=True):
                attended, seen = module(
                    y, causal=new.shape[1] > 1, cache=cache, need_weights=need_weights
                )
                y = y + attended
                if need_weights:
                    assert_close(seen, weights[:, :, start : cache.length, : cache.length], ulps=64)
            outputs.append(y)
    assert_close(torch.cat(outputs, dim=1), expected, ulps=64)
    assert [cache.length for cache in caches] == [9] * 3


@given(layers())
def test_the_absorbed_form_takes_any_mask(case):
    """All tokens at once, so that the mask is the plain form's; rows that see nothing included."""
    module, x, mask = case
    for causal in (False, True):
        for need_weights in (False, True):
            options = {"causal": causal, "need_weights": need_weights}
            with torch.no_grad():
                cache = module.new_cache(x.shape[0], x.shape[1])
                output, weights = module(x, mask, cache=cache, **options)
                expected, expected_weights = module(x, mask, **options)
            assert_close(output, expected)
            assert not need_weights or torch.allclose(weights, expected_weights)


def test_a_padding_mask_counts_the_cached_tokens():
    module = LatentAttention(8, 4, 3).double()
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    ids = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]])  # padding in front, as in decoding
    expected, _ = module(x, padding_mask(ids, 0), causal=True)
    cache = module.new_cache(2, 5)
    with torch.no_grad():
        for i in range(5):
            output, _ = module(x[:, i : i + 1], padding_mask(ids[:, : i + 1], 0), cache=cache)
            assert_close(output, expected[:, i : i + 1])


def test_a_token_that_may_attend_to_nothing_gets_the_bias_of_w_o():
    module, x = LatentAttention(8, 4, 3), torch.randn(2, 3, 8, requires_grad=True)
    mask = torch.ones(3, 3) == 1
    mask[1] = False
    for need_weights in (True, False):
        output, weights = module(x, mask, need_weights=need_weights)
        assert torch.equal(output[:, 1], module.w_o.bias.expand(2, 8))
        assert weights is None or not weights[:, :, 1].any()
        assert all(g.isfinite().all() for g in gradients([output], [x, *module.parameters()]))


@pytest.mark.parametrize("need_weights", [True, False])
def test_keys_and_values_are_never_made_while_writing(need_weights):
    """No tensor is larger than the latent rows, or than the scores; the keys would be 8 times."""
    module = LatentAttention(d_model=64, n_heads=8, d_latent=8)
    cache = module.new_cache(batch=1, max_length=1001)
    with torch.no_grad():
        for part in torch.randn(1, 1000, 64).split(100, dim=1):
            module(part, causal=True, cache=cache)
        with LargestTensor() as largest:
            module(torch.randn(1, 1, 64), cache=cache, need_weights=need_weights)
    assert largest.numel <= 1001 * 8


def test_a_token_takes_the_multiplications_that_the_docstring_counts():
    d_model, n_heads, d_latent, n = 64, 8, 12, 101
    module = LatentAttention(d_model, n_heads, d_latent)
    cache = module.new_cache(batch=1, max_length=n)
    with torch.no_grad():
        module(torch.randn(1, n - 1, d_model), causal=True, cache=cache)
        with FlopCounterMode(display=False) as counter:
            module(torch.randn(1, 1, d_model), cache=cache)
    projections = 2 * d_model * d_model + 3 * d_model * d_latent
    assert counter.get_total_flops() == 2 * (projections + 2 * n * n_heads * d_latent)


@pytest.mark.parametrize(("dtype", "size"), [(torch.float32, 4), (torch.bfloat16, 2)])
def test_bytes_are_what_the_formula_says(dtype, size):
    """layers · d_latent · length · bytes, for each sequence of the batch; heads do not count."""
    modules = [LatentAttention(32, n_heads, 12).to(dtype) for n_heads in (1, 4, 16)]
    caches = [module.new_cache(batch=2, max_length=100) for module in modules]
    assert sum(cache.nbytes for cache in caches) == 3 * 12 * 100 * size * 2
    assert [cache.latents.untyped_storage().nbytes() for cache in caches] == [
        12 * 100 * size * 2
    ] * 3


def test_the_cache_holds_what_was_written_in_order_and_keeps_copies():
    cache, rows = LatentCache(2, 7, 4, dtype=torch.float64), torch.randn(2, 6, 4).double()
    before = rows.clone()
    for start, stop in ((0, 1), (1, 4), (4, 6)):
        held = cache.append(rows[:, start:stop])
        assert cache.length == stop
        assert torch.equal(held, rows[:, :stop])
        assert held.data_ptr() == cache.latents.data_ptr()
    rows.zero_()
    assert torch.equal(cache.latents[:, :6], before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_absorbed_form_is_as_exact_as_its_type(dtype):
    """Two numbers more are rounded than in the plain form: the absorbed query and its scale."""
    torch.manual_seed(0)
    module, x = LatentAttention(24, 4, 16).to(dtype), torch.randn(2, 30, 24).to(dtype)
    expected, _ = copy.deepcopy(module).double()(x.double(), causal=True)
    for need_weights in (True, False):
        with torch.no_grad():
            cache = module.new_cache(2, 30)
            steps = [
                module(part, causal=True, cache=cache, need_weights=need_weights)[0]
                for part in x.split([20, *[1] * 10], dim=1)
            ]
        assert cache.latents.dtype == dtype
        assert_close(torch.cat(steps, dim=1), expected, ulps=16)


def test_a_cache_made_under_autocast_takes_its_rows():
    module, x = LatentAttention(8, 2, 3), torch.randn(1, 3, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        cache = module.new_cache(1, max_length=3)
        assert cache.latents.dtype == torch.bfloat16
        steps = [module(token, cache=cache)[0] for token in x.split(1, dim=1)]
        assert_close(torch.cat(steps, 1), module(x, causal=True)[0], ulps=16)


def test_no_input_is_modified():
    module, x, mask = LatentAttention(8, 2, 3), torch.randn(2, 5, 8), causal_mask(5)
    state = copy.deepcopy(module.state_dict())
    inputs, before = (x, mask), (x.clone(), mask.clone())
    with torch.no_grad():
        for cache in (None, module.new_cache(2, 5)):
            module(x, mask, cache=cache)
    assert all(torch.equal(x, y) for x, y in zip(inputs, before, strict=True))
    assert all(torch.equal(x, state[name]) for name, x in module.state_dict().items())


def test_parameters_have_the_promised_names_and_shapes():
    shapes = {name: tuple(x.shape) for name, x in LatentAttention(12, 3, 5).state_dict().items()}
    assert shapes == {
        "w_q.weight": (12, 12),
        "w_q.bias": (12,),
        "w_down.weight": (5, 12),
        "w_k.weight": (12, 5),
        "w_v.weight": (12, 5),
        "w_o.weight": (12, 12),
        "w_o.bias": (12,),
    }
    without = LatentAttention(12, 3, 5, bias=False).state_dict()
    assert list(without) == [name for name in shapes if not name.endswith("bias")]
    assert "n_heads=3, d_latent=5" in repr(LatentAttention(12, 3, 5))


@pytest.mark.usefixtures("as_a_reader")
def test_a_refused_call_leaves_the_cache_as_it_was():
    module, x = LatentAttention(8, 4, 3), torch.randn(2, 3, 8)
    with torch.no_grad():
        expected, _ = module(x, causal=True)
        cache = module.new_cache(batch=2, max_length=4)
        module(x[:, :2], causal=True, cache=cache)
        stored, last = cache.latents.clone(), x[:, 2:]
        wrong = [(last, m) for m in (causal_mask(1, 2), causal_mask(1, 3).float(), stored[0] > 0)]
        wrong += [(y, None) for y in (last.double(), last[:1], last[..., :5], x, x[:, :0])]
        for y, mask in wrong:
            with pytest.raises((ValueError, TypeError)):
                module(y, mask, cache=cache)
        assert cache.length == 2
        assert torch.equal(cache.latents, stored)
        assert_close(module(last, causal_mask(1, 3), cache=cache)[0], expected[:, 2:])


X, ROWS, MLA = torch.zeros(2, 5, 8), torch.zeros(2, 1, 3), LatentAttention(8, 4, 3)


def filled():
    cache = LatentCache(2, 5, 3)
    cache.append(ROWS.expand(2, 4, 3))
    return cache


WANTED = "and this cache takes (2, 1, 3); a cache belongs to one layer and one batch"
REFUSED = {
    "heads that do not divide d_model": (
        lambda: LatentAttention(8, 3, 4),
        ValueError,
        "n_heads=3 does not divide d_model=8; it can be 1, 2, 4 or 8",
    ),
    "a mask of another length": (
        lambda: MLA(X, causal_mask(5, 6)),
        ValueError,
        "mask of shape (5, 6) does not broadcast to (batch, heads, query, key) = (2, 4, 5, 5)",
    ),
    "a cache of keys and values": (
        lambda: MLA(X, cache=KeyValueCache(2, 4, 5, 2)),
        TypeError,
        "cache must be a LatentCache or None, got KeyValueCache; "
        "new_cache(batch, max_length) makes one",
    ),
    "a cache of another batch": (
        lambda: MLA(X[:1], cache=MLA.new_cache(2, 5)),
        ValueError,
        "latent has shape (batch, new, d_latent) = (1, 5, 3), and this cache takes (2, 5, 3)",
    ),
    "training with a cache": (
        lambda: MLA(X, cache=MLA.new_cache(2, 5)),
        ValueError,
        "latent asks for gradients, which a cache cannot give; decode inside torch.no_grad()",
    ),
    "too many tokens": (
        lambda: filled().append(ROWS.expand(2, 2, 3)),
        ValueError,
        "the cache holds 4 of max_length=5 tokens, and 2 more do not fit; "
        "make it with max_length=6 or more",
    ),
    "rows of another batch": (
        lambda: filled().append(ROWS[:1]),
        ValueError,
        f"latent has shape (batch, new, d_latent) = (1, 1, 3), {WANTED}",
    ),
    "rows of another width": (
        lambda: filled().append(ROWS[..., :2]),
        ValueError,
        f"latent has shape (batch, new, d_latent) = (2, 1, 2), {WANTED}",
    ),
    "rows of another dtype": (
        lambda: filled().append(ROWS.half()),
        TypeError,
        "latent is torch.float16, and this cache holds torch.float32; "
        "make it with dtype=torch.float16",
    ),
}


test_bad_input_is_refused = refusals(REFUSED)
