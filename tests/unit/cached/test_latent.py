import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from attention import KeyValueCache, causal_mask
from attention.cached.latent import LatentAttention, LatentCache
from attention.cost.caches import MODELS
from tests.unit.cases import assert_close, randomise
from tests.unit.refusals import refusals
from tests.unit.sparse.cases import LargestTensor


@st.composite
def layers(draw):
    """Draw a layer, tokens for it, and a mask that differs in none, some or all of its axes."""
    batch, n_heads, d_key, d_latent = (draw(st.integers(1, n)) for n in (3, 4, 4, 9))
    seq, rng = draw(st.integers(1, 6)), torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    options = {
        "bias": draw(st.booleans()),
        "d_rotary": draw(st.sampled_from((0, 2, 4))),
        "d_query_latent": draw(st.sampled_from((None, 3))),
        "d_key": draw(st.sampled_from((None, 5))),
        "norm": draw(st.booleans()),
    }
    module = LatentAttention(n_heads * d_key, n_heads, d_latent, **options).double()
    randomise(module, rng)
    x = torch.randn(batch, seq, module.d_model, dtype=torch.float64, generator=rng)
    shape = [batch, n_heads, seq, seq][draw(st.sampled_from((0, 2))) :]
    mask = torch.rand([draw(st.sampled_from((1, size))) for size in shape], generator=rng) < 0.6
    return module, x.requires_grad_(), draw(st.sampled_from([None, mask]))


def turned(vector, position):
    """Each pair of neighbours, turned by its 2 × 2 matrix."""
    pairs = []
    for i in range(len(vector) // 2):
        angle = torch.tensor(position * 10000.0 ** (-2 * i / len(vector)), dtype=torch.float64)
        rotation = torch.stack((angle.cos(), -angle.sin(), angle.sin(), angle.cos())).view(2, 2)
        pairs.append(rotation @ vector[2 * i : 2 * i + 2])
    return torch.cat(pairs)


def rms_normed(vector, gain):
    return gain * vector / (vector.square().mean(-1, keepdim=True) + 1e-6).sqrt()


@settings(max_examples=30)
@given(layers(), st.booleans(), st.booleans())
def test_equals_the_papers_formulas_in_a_loop(case, causal, need_weights):
    """Equations 37 to 47, for one token, one head and one earlier token after the other."""
    module, x, mask = case
    output, weights = module(x, mask, causal=causal, need_weights=need_weights)
    batch, seq, _ = x.shape
    w = {name: value.detach() for name, value in module.named_parameters()}
    d_key, d_rotary = module.d_key, module.d_rotary
    allowed = torch.ones(batch, module.n_heads, seq, seq, dtype=torch.bool)
    allowed = allowed if mask is None else mask.expand_as(allowed)

    def linear(name, vector):
        return w[f"{name}.weight"] @ vector + w.get(f"{name}.bias", 0)

    for b in range(batch):
        h = x[b].detach()
        c_q, c_kv = h, [linear("w_down", row) for row in h]
        if module.d_query_latent:
            c_q = [linear("w_q_down", row) for row in h]
        if "q_norm.weight" in w:
            c_q = [rms_normed(row, w["q_norm.weight"]) for row in c_q]
        if "norm.weight" in w:
            c_kv = [rms_normed(row, w["norm.weight"]) for row in c_kv]
        for t in range(seq):
            heads = []
            for i in range(module.n_heads):
                rows = slice(i * d_key, (i + 1) * d_key)
                q = linear("w_q", c_q[t])[rows]
                total, head = 0.0, torch.zeros(d_key, dtype=torch.float64)
                exps = torch.zeros(seq, dtype=torch.float64)
                for j in range(seq):
                    if allowed[b, i, t, j] and not (causal and j > t):
                        key, value = linear("w_k", c_kv[j])[rows], linear("w_v", c_kv[j])[rows]
                        score = q @ key
                        if d_rotary:
                            own = slice(i * d_rotary, (i + 1) * d_rotary)
                            q_rotary = turned(linear("w_q_rotary", c_q[t])[own], t)
                            score = score + q_rotary @ turned(linear("w_k_rotary", h[j]), j)
                        exps[j] = (score / (d_key + d_rotary) ** 0.5).exp()
                        total, head = total + exps[j], head + exps[j] * value
                heads.append(head / total if total else head)
                if need_weights:
                    assert_close(weights[b, i, t], exps / total if total else exps)
            assert_close(output[b, t], linear("w_o", torch.cat(heads)))
    assert (weights is not None) == need_weights


def published_weights(rng, *, d_query=7, d_model=12, n_heads=3, d_latent=6, d_key=4, d_rotary=2):
    """The tensors of a layer by their names in DeepSeek's checkpoints."""
    shapes = {
        "q_a_proj": (d_query, d_model),
        "q_a_layernorm": (d_query,),
        "q_b_proj": (n_heads * (d_key + d_rotary), d_query),
        "kv_a_proj_with_mqa": (d_latent + d_rotary, d_model),
        "kv_a_layernorm": (d_latent,),
        "kv_b_proj": (n_heads * 2 * d_key, d_latent),
        "o_proj": (d_model, n_heads * d_key),
    }
    if not d_query:
        del shapes["q_a_proj"], shapes["q_a_layernorm"], shapes["q_b_proj"]
        shapes["q_proj"] = (n_heads * (d_key + d_rotary), d_model)
    return {
        f"{name}.weight": torch.randn(shape, generator=rng, dtype=torch.float64) / 2
        for name, shape in shapes.items()
    }


def published_attention(w, x, n_heads):
    """The plain form in the order of the published code, which pairs neighbours.

    Axes: b (batch), s and t (tokens), h (heads).
    """
    w = {name.removesuffix(".weight"): value for name, value in w.items()}
    d_latent, d_key = len(w["kv_a_layernorm"]), w["o_proj"].shape[1] // n_heads
    d_rotary = len(w["kv_a_proj_with_mqa"]) - d_latent
    if "q_proj" in w:
        q = x @ w["q_proj"].T
    else:
        q = rms_normed(x @ w["q_a_proj"].T, w["q_a_layernorm"]) @ w["q_b_proj"].T
    q = q.reshape(*x.shape[:2], n_heads, d_key + d_rotary)
    kv = x @ w["kv_a_proj_with_mqa"].T
    latent = rms_normed(kv[..., :d_latent], w["kv_a_layernorm"])
    kv_of_heads = (latent @ w["kv_b_proj"].T).reshape(*x.shape[:2], n_heads, 2 * d_key)
    keys, values = kv_of_heads[..., :d_key], kv_of_heads[..., d_key:]

    theta = 10000.0 ** (-torch.arange(0, d_rotary, 2, dtype=torch.float64) / d_rotary)
    angles = torch.arange(x.shape[1])[:, None] * theta  # (s, pairs)
    numbers = torch.polar(torch.ones_like(angles), angles)

    def rotate(part):  # (b, s, h, d_rotary)
        pairs = torch.complex(part[..., 0::2], part[..., 1::2]) * numbers[:, None]
        return torch.view_as_real(pairs).flatten(-2)

    q_rotary = rotate(q[..., d_key:])
    k_rotary = rotate(kv[:, :, None, d_latent:])[:, :, 0]
    scores = torch.einsum("bshd,bthd->bhst", q[..., :d_key], keys)
    scores = scores + torch.einsum("bshr,btr->bhst", q_rotary, k_rotary)
    future = torch.ones(x.shape[1], x.shape[1]).triu(1) == 1
    weights = (scores * (d_key + d_rotary) ** -0.5).masked_fill(future, -torch.inf).softmax(-1)
    heads = torch.einsum("bhst,bthd->bshd", weights, values)
    return heads.flatten(2) @ w["o_proj"].T, weights


def in_published_order(parts, n_heads):
    """Tensors shaped as the parameters of `LatentAttention`, put together as published."""

    def by_head(*names):
        heads = [parts[f"{name}.weight"].unflatten(0, (n_heads, -1)) for name in names]
        return torch.cat(heads, dim=1).flatten(0, 1)

    whole = {
        "kv_a_proj_with_mqa": torch.cat((parts["w_down.weight"], parts["w_k_rotary.weight"])),
        "kv_a_layernorm": parts["norm.weight"],
        "kv_b_proj": by_head("w_k", "w_v"),
        "o_proj": parts["w_o.weight"],
    }
    if "w_q_down.weight" in parts:
        whole |= {"q_a_proj": parts["w_q_down.weight"], "q_a_layernorm": parts["q_norm.weight"]}
    whole["q_b_proj" if "q_a_proj" in whole else "q_proj"] = by_head("w_q", "w_q_rotary")
    return {f"{name}.weight": tensor for name, tensor in whole.items()}


@pytest.mark.parametrize("d_query", [7, 0], ids=["queries compressed", "queries whole"])
@pytest.mark.parametrize("need_weights", [True, False])
def test_equals_the_published_layer_on_its_weights(d_query, need_weights):
    """In values and in the gradients of every published tensor and of the tokens."""
    rng = torch.Generator().manual_seed(d_query)
    weights = published_weights(rng, d_query=d_query)
    theirs = {name: value.requires_grad_() for name, value in weights.items()}
    x = torch.randn(2, 9, 12, generator=rng, dtype=torch.float64, requires_grad=True)
    expected, expected_weights = published_attention(theirs, x, 3)

    module = LatentAttention.from_deepseek(weights, n_heads=3)
    output, seen = module(x, causal=True, need_weights=need_weights)
    assert_close(output, expected)
    assert not need_weights or torch.allclose(seen, expected_weights)

    direction = torch.randn(output.shape, generator=rng, dtype=torch.float64)
    names = [name for name, _ in module.named_parameters()]
    ours = torch.autograd.grad((output * direction).sum(), [x, *module.parameters()])
    wanted = torch.autograd.grad((expected * direction).sum(), [x, *theirs.values()])
    assert_close(ours[0], wanted[0])
    found = in_published_order(dict(zip(names, ours[1:], strict=True)), n_heads=3)
    assert found.keys() == theirs.keys()
    for name, gradient in zip(theirs, wanted[1:], strict=True):
        assert_close(found[name], gradient)

    cache = module.new_cache(batch=2, max_length=9)
    with torch.no_grad():
        steps = [module(part, causal=True, cache=cache)[0] for part in x.split([4, 1, 1, 3], dim=1)]
    assert_close(torch.cat(steps, dim=1), expected)


WHOLE = {"d_rotary": 4, "d_query_latent": 7, "norm": True}


@pytest.mark.parametrize("d_latent", [1, 16])
@pytest.mark.parametrize("options", [{}, WHOLE], ids=["rows", "whole"])
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("pieces", [[1] * 9, [4, 1, 3, 1]], ids=str)
def test_the_absorbed_form_equals_the_plain_one(d_latent, options, need_weights, pieces):
    """Three layers, token by token and several at a time, weights too."""
    rng = torch.Generator().manual_seed(d_latent)
    modules = [LatentAttention(12, 3, d_latent, **options).double() for _ in range(3)]
    for module in modules:
        randomise(module, rng)
    x = expected = torch.randn(2, 9, 12, generator=rng).double()
    caches = [module.new_cache(batch=2, max_length=9) for module in modules]
    with torch.no_grad():
        plain = []
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
                    assert_close(seen, weights[:, :, start : cache.length, : cache.length])
            outputs.append(y)
    assert_close(torch.cat(outputs, dim=1), expected)
    assert [cache.length for cache in caches] == [9] * 3


@settings(max_examples=30)
@given(layers())
def test_the_absorbed_form_takes_any_mask(case):
    """All tokens behind one that they cannot see; rows that see nothing included."""
    module, x, mask = case
    if mask is None:
        mask = torch.ones(1, 1) == 1
    mask = mask.expand(*mask.shape[:-1], x.shape[1])
    hidden = torch.cat((torch.zeros_like(mask[..., :1]), mask), dim=-1)
    before = torch.zeros_like(x[:, :1])
    for causal in (False, True):
        for need_weights in (False, True):
            options = {"causal": causal, "need_weights": need_weights}
            with torch.no_grad():
                cache = module.new_cache(x.shape[0], x.shape[1] + 1)
                module(before, cache=cache)
                output, weights = module(x, hidden, cache=cache, **options)
                expected, expected_weights = module(x, mask, **options)
            assert_close(output, expected)
            assert not need_weights or torch.allclose(weights[..., 1:], expected_weights)


@pytest.mark.parametrize("need_weights", [True, False])
def test_keys_and_values_are_never_made_while_writing(need_weights):
    """No tensor is larger than the kept rows, or than the scores; the keys would be 6 times."""
    module = LatentAttention(d_model=64, n_heads=8, d_latent=8, d_rotary=2)
    cache = module.new_cache(batch=1, max_length=1001)
    with torch.no_grad():
        for part in torch.randn(1, 1000, 64).split(100, dim=1):
            module(part, causal=True, cache=cache)
        with LargestTensor() as largest:
            module(torch.randn(1, 1, 64), cache=cache, need_weights=need_weights)
    assert largest.numel <= 1001 * 10


def flops_of(module, x, cache=None):
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        module(x, causal=x.shape[1] > 1, cache=cache)
    return counter.get_total_flops()


def test_a_token_takes_the_multiplications_that_the_docstring_counts():
    d_model, n_heads, d_latent, d_rotary, n = 64, 8, 12, 4, 101
    module = LatentAttention(d_model, n_heads, d_latent, d_rotary=d_rotary)
    cache = module.new_cache(batch=1, max_length=n)
    with torch.no_grad():
        module(torch.randn(1, n - 1, d_model), causal=True, cache=cache)
    projections = 2 * d_model * d_model + 3 * d_model * d_latent
    projections += d_model * (n_heads + 1) * d_rotary
    mixing = n * n_heads * (2 * d_latent + d_rotary)
    assert flops_of(module, torch.randn(1, 1, d_model), cache) == 2 * (projections + mixing)


def test_a_prompt_takes_the_plain_form_and_what_follows_the_absorbed_one():
    module = LatentAttention(64, 8, 12, d_rotary=4)
    x, cache = torch.randn(1, 20, 64), module.new_cache(1, 40)
    assert flops_of(module, x, cache) == flops_of(module, x)
    assert flops_of(module, x, cache) > flops_of(module, x)


def test_a_token_of_deepseek_v2_takes_the_bytes_that_the_paper_says():
    """512 numbers of the latent row and 64 of the rotary key in each layer, in 16 bits."""
    module = LatentAttention(40, 8, 512, d_rotary=64, d_key=128).bfloat16()
    cache = module.new_cache(batch=1, max_length=10)
    assert cache.nbytes == 10 * (512 + 64) * 2 == 10 * 2 * MODELS["DeepSeek-V2"].numbers
    assert cache.latents.shape == (1, 10, 512) and cache.rotary_keys.shape == (1, 10, 64)


def test_what_is_kept_are_the_latent_row_and_the_turned_key():
    module = LatentAttention(8, 2, 3, d_rotary=2, norm=True).double()
    x, cache = torch.randn(1, 6, 8, dtype=torch.float64), module.new_cache(1, 6)
    with torch.no_grad():
        for part in x.split([2, 1, 3], dim=1):
            module(part, causal=True, cache=cache)
        for t in range(6):
            row = rms_normed(module.w_down.weight @ x[0, t], module.norm.weight)
            assert_close(cache.latents[0, t], row)
            assert_close(cache.rotary_keys[0, t], turned(module.w_k_rotary.weight @ x[0, t], t))


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
    module = LatentAttention(24, 4, 16, d_rotary=4, norm=True).to(dtype)
    x = torch.randn(2, 30, 24).to(dtype)
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
    module, x = LatentAttention(8, 2, 3, d_rotary=2), torch.randn(1, 3, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        cache = module.new_cache(1, max_length=3)
        assert cache.latents.dtype == torch.bfloat16
        steps = [module(token, cache=cache)[0] for token in x.split(1, dim=1)]
        assert_close(torch.cat(steps, 1), module(x, causal=True)[0], ulps=16)


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
    whole = LatentAttention(12, 3, 5, d_key=6, bias=False, **WHOLE)
    assert {name: tuple(x.shape) for name, x in whole.state_dict().items()} == {
        "w_q_down.weight": (7, 12),
        "q_norm.weight": (7,),
        "w_q.weight": (18, 7),
        "w_q_rotary.weight": (12, 7),
        "w_down.weight": (5, 12),
        "norm.weight": (5,),
        "w_k.weight": (18, 5),
        "w_v.weight": (18, 5),
        "w_k_rotary.weight": (4, 12),
        "w_o.weight": (12, 18),
    }
    assert "n_heads=3, d_latent=5, d_rotary=4, d_query_latent=7, d_key=6" in repr(whole)


@pytest.mark.usefixtures("as_a_reader")
def test_a_refused_call_leaves_the_cache_as_it_was():
    module, x = LatentAttention(8, 4, 3), torch.randn(2, 3, 8)
    with torch.no_grad():
        expected, _ = module(x, causal=True)
        cache = module.new_cache(batch=2, max_length=4)
        module(x[:, :2], causal=True, cache=cache)
        stored, last = cache.rows.clone(), x[:, 2:]
        wrong = [(last, m) for m in (causal_mask(1, 2), causal_mask(1, 3).float(), stored[0] > 0)]
        wrong += [(y, None) for y in (last.double(), last[:1], last[..., :5], x, x[:, :0])]
        for y, mask in wrong:
            with pytest.raises((ValueError, TypeError)):
                module(y, mask, cache=cache)
        assert cache.length == 2
        assert torch.equal(cache.rows, stored)
        assert_close(module(last, causal_mask(1, 3), cache=cache)[0], expected[:, 2:])


X, ROWS, MLA = torch.zeros(2, 5, 8), torch.zeros(2, 1, 3), LatentAttention(8, 4, 3)


def filled():
    cache = LatentCache(2, 5, 3)
    cache.append(ROWS.expand(2, 4, 3))
    return cache


WANTED = "and this cache takes (2, 1, 3); a cache belongs to one layer and one batch"
PUBLISHED = published_weights(torch.Generator().manual_seed(0))


REFUSED = {
    "an odd rotary key": (
        lambda: LatentAttention(8, 4, 4, d_rotary=3),
        ValueError,
        "d_rotary=3 is odd, and components turn in pairs",
    ),
    "a checkpoint without a tensor": (
        lambda: LatentAttention.from_deepseek({"q_proj.weight": torch.ones(2, 2)}, n_heads=1),
        ValueError,
        "weights must be kv_a_layernorm.weight, kv_a_proj_with_mqa.weight, kv_b_proj.weight, "
        "o_proj.weight, q_proj.weight, got q_proj.weight",
    ),
    "a checkpoint with a bias": (
        lambda: LatentAttention.from_deepseek(PUBLISHED | {"o_proj.bias": X[0, 0]}, n_heads=3),
        ValueError,
        "weights must be kv_a_layernorm.weight, kv_a_proj_with_mqa.weight, kv_b_proj.weight, "
        "o_proj.weight, q_a_layernorm.weight, q_a_proj.weight, q_b_proj.weight, got ",
    ),
    "a checkpoint of another number of heads": (
        lambda: LatentAttention.from_deepseek(PUBLISHED, n_heads=2),
        ValueError,
        "q_b_proj.weight must have shape (16, 7) beside the others and with n_heads=2, got (18, 7)",
    ),
    "a cache of keys and values": (
        lambda: MLA(X, cache=KeyValueCache(2, 4, 5, 2)),
        TypeError,
        "cache must be a LatentCache or None, got KeyValueCache; "
        "new_cache(batch, max_length) makes one",
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
        f"row has shape (batch, new, d_latent + d_rotary) = (1, 1, 3), {WANTED}",
    ),
    "gradients": (
        lambda: filled().append(ROWS.clone().requires_grad_()),
        ValueError,
        "row asks for gradients, which a cache cannot give; decode inside torch.no_grad()",
    ),
    "rows of another dtype": (
        lambda: filled().append(ROWS.half()),
        TypeError,
        "row is torch.float16, and this cache holds torch.float32; "
        "make it with dtype=torch.float16",
    ),
}


test_bad_input_is_refused = refusals(REFUSED)
