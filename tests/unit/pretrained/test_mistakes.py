"""Each mistake is the one that its name says: computed once more, head by head and row by row."""

import math

import pytest
import torch

from attention import DecoderOnly, DotProduct, MultiHeadAttention, Rotary
from attention.pretrained import cache_bits, mistakes
from attention.pretrained.cache_bits import COLUMN, ROW, asymmetric, symmetric, with_bits
from attention.pretrained.measured import loss_range
from attention.pretrained.mistakes import MISTAKES, price, sharing_weights

SEQ = 7


def small_model():
    torch.manual_seed(0)
    sizes = {"d_key": 64, "n_kv_heads": 3, "bias": False, "n_layers": 2, "norm": torch.nn.RMSNorm}
    return DecoderOnly(
        29, 576, 9, 32, attend=lambda: DotProduct(transform=Rotary(64, 100_000.0)), **sizes
    ).eval()


@pytest.fixture
def qkv():
    torch.manual_seed(1)
    return torch.randn(1, 9, SEQ, 64), *torch.randn(2, 1, 3, SEQ, 64)


def by_hand(q, k, v, name):
    """One sentence, (9, seq, 64) for each head, by loops over what a step goes wrong with."""
    q, k, v = q[0], k[0], v[0]
    if name == "split by view":  # rows of d_model, read as (heads, seq, d_key)
        q, k, v = (x.permute(1, 0, 2).reshape(SEQ, -1).view(x.shape) for x in (q, k, v))
    base = 10_000 if name == "base 10,000" else 100_000
    if name != "no positions":
        q, k = (turned(x, base, name == "pairs from halves") for x in (q, k))
    if name == "one query for all":
        q = torch.stack([head.mean(0).repeat(SEQ, 1) for head in q])
    of = {"KV heads dealt out": lambda h: h % 3}.get(name, lambda h: h // 3)
    keys, values = [k[of(h)] for h in range(9)], [v[of(h)] for h in range(9)]
    if name == "one KV head":
        keys, values = [k.mean(0)] * 9, [v.mean(0)] * 9
    divisor = {"no divisor": 1, "divided by d_key": 64}.get(name, 8)
    heads = []
    for head, key, value in zip(q, keys, values, strict=True):
        scores = head @ key.T / divisor
        e = torch.tensor(
            [[math.exp(scores[i, j]) for j in range(SEQ)] for i in range(SEQ)], dtype=torch.float64
        )
        if name == "all weights equal":
            e = torch.ones_like(e)
        seen = torch.tensor([[j <= i for j in range(SEQ)] for i in range(SEQ)])
        if name == "mask hides itself":
            seen = torch.tensor([[j < i or i == j == 0 for j in range(SEQ)] for i in range(SEQ)])
        if name == "softmax over queries":
            e = e * seen
            weights = e / e.sum(0)
        elif name == "mask after softmax":
            weights = e / e.sum(1, keepdim=True) * seen
        elif name == "no mask":
            weights = e / e.sum(1, keepdim=True)
        else:  # "mask after, renewed" among them
            weights = e * seen / (e * seen).sum(1, keepdim=True)
        heads.append(weights.float() @ value)
    rows = torch.cat(heads[::-1] if name == "heads reversed" else heads, dim=1)
    return torch.stack(heads).reshape(SEQ, -1) if name == "merge by view" else rows


def turned(x, base, halves):
    pairs = [(i, i + 32) if halves else (2 * i, 2 * i + 1) for i in range(32)]
    out = torch.empty_like(x)
    for i, (a, b) in enumerate(pairs):
        angle = torch.arange(SEQ) * base ** (-2 * i / 64)
        out[..., a] = x[..., a] * angle.cos() - x[..., b] * angle.sin()
        out[..., b] = x[..., a] * angle.sin() + x[..., b] * angle.cos()
    return out


@pytest.mark.parametrize("name", [name for name in MISTAKES if name != "no W_O"])
def test_a_mistake_is_what_its_name_says(qkv, name):
    attend = MISTAKES[name](small_model()).layers[0].self_attention.attend
    heads, _ = attend(*qkv, causal=True)
    rows = heads[0].permute(1, 0, 2).reshape(SEQ, -1)
    torch.testing.assert_close(rows, by_hand(*qkv, name), atol=1e-4, rtol=1e-4)


def test_without_a_mistake_it_is_the_model_in_values_and_gradients():
    model, ids = small_model(), torch.tensor([[3, 1, 4, 1, 5, 9, 2]])
    same, (right, weights) = MISTAKES["none"](model), model(ids)
    ours, our_weights = same(ids)
    torch.testing.assert_close(ours, right, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(our_weights[1], weights[1], atol=1e-4, rtol=1e-4)
    asked = list(model.parameters())
    grads = [torch.autograd.grad(x.square().mean(), asked) for x in (ours, right)]
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-3)


def test_without_w_o_the_merged_heads_are_the_output():
    model = small_model()
    layer, x = MISTAKES["no W_O"](model).layers[0].self_attention, torch.randn(1, SEQ, 576)
    whole = model.layers[0].self_attention
    assert isinstance(whole, MultiHeadAttention) and isinstance(whole.w_o, torch.nn.Linear)
    torch.testing.assert_close(whole.w_o(layer(x, causal=True)[0]), whole(x, causal=True)[0])


def test_a_changed_copy_leaves_the_model_and_shares_its_weights():
    model, ids = small_model(), torch.tensor([[3, 1, 4, 1, 5]])
    before = model(ids)[0]
    copy = MISTAKES["no divisor"](model)
    assert not torch.allclose(copy(ids)[0], before) and torch.equal(model(ids)[0], before)
    assert all(map(lambda a, b: a is b, copy.parameters(), model.parameters()))
    assert sharing_weights(model) is not model


def test_a_price_is_the_cross_entropy_and_the_share_of_likeliest(monkeypatch):
    model, ids = small_model(), torch.tensor([[3, 1, 4, 1, 5, 9, 2]])
    logits = model(ids)[0][0, :-1]
    loss = torch.nn.functional.cross_entropy(logits, ids[0, 1:]).item()
    right = (logits.argmax(-1) == ids[0, 1:]).double().mean().item()
    for piece in (2, 128):
        monkeypatch.setattr(mistakes, "PIECE", piece)
        assert price(model, ids) == pytest.approx((loss, right))


@pytest.mark.parametrize("axis", [ROW, COLUMN])
@pytest.mark.parametrize("bits", [2, 3, 4, 8])
def test_rounding_takes_the_nearest_of_its_levels(axis, bits):
    torch.manual_seed(0)
    x = torch.randn(2, 5, 6)
    for line in range(len(x)):
        lines = x[line] if axis == ROW else x[line].T
        kept = symmetric(x, bits, axis)[line], asymmetric(x, bits, axis)[line]
        for i, row in enumerate(lines):
            most = 2 ** (bits - 1) - 1
            steps = torch.arange(-most, most + 1) * (row.abs().max() / most)
            low, high = row.min(), row.max()
            levels = low + torch.arange(2**bits) * ((high - low) / (2**bits - 1))
            for of, ours in zip((steps, levels), kept, strict=True):
                nearest = of[(row[:, None] - of).abs().argmin(dim=1)]
                got = (ours if axis == ROW else ours.T)[i]
                torch.testing.assert_close(got, nearest, atol=1e-5, rtol=1e-5)


def test_a_cache_of_few_bits_rounds_turned_keys_and_values(monkeypatch):
    monkeypatch.setattr(cache_bits, "TOGETHER", 3)
    model, ids = small_model(), torch.tensor([[3, 1, 4, 1, 5, 9, 2]])
    right = model(ids)[0]
    fine = with_bits(model, 16, "keys by column")(ids)[0]
    torch.testing.assert_close(fine, right, atol=1e-2, rtol=1e-2)
    q, k, v = torch.randn(1, 9, SEQ, 64), *torch.randn(2, 1, 3, SEQ, 64)
    attend = with_bits(model, 3, "keys by column").layers[0].self_attention.attend
    turn = Rotary(64, 100_000.0)
    turned_q, turned_k = turn(q, k)
    closed = [asymmetric(turned_k[:, :, i : i + 3], 3, COLUMN) for i in (0, 3)]
    keys, values = torch.cat([*closed, turned_k[:, :, 6:]], dim=2), asymmetric(v, 3, ROW)
    expected = torch.nn.functional.scaled_dot_product_attention(
        turned_q, *(x.repeat_interleave(3, 1) for x in (keys, values)), is_causal=True
    )
    torch.testing.assert_close(attend(q, k, v, causal=True)[0], expected, atol=1e-5, rtol=1e-4)


def test_what_is_not_there_is_refused():
    with pytest.raises(ValueError, match="scales='columns' must be one of 'rows, symmetric'"):
        with_bits(small_model(), 4, "columns")
    with pytest.raises(ValueError, match="mistake='no head' must be one of 'none', 'no divisor'"):
        loss_range("no head")


def test_what_attends_instead_has_the_models_dtype():
    """A turn that was rounded to float32 would move what a double rounds to a few bits."""
    attend = with_bits(small_model().double(), 4, "rows, symmetric").layers[0].self_attention.attend
    assert attend.turn.kept.dtype == torch.float64


def test_few_bits_are_refused():
    with pytest.raises(ValueError, match=r"bits must be at least 2, got 1"):
        symmetric(torch.ones(2, 2), 1, ROW)
    with pytest.raises(ValueError, match=r"bits must be at least 2, got 1"):
        asymmetric(torch.ones(2, 2), 1, ROW)
