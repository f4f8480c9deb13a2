import copy
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attention import Encoder, MultiHeadAttention, causal_mask, padding_mask
from attention.positions import rotary
from attention.positions.rotary import Rotary
from tests.unit.cases import ULPS_OF_GRADIENTS, assert_close, assert_gradients_close, gradients
from tests.unit.refusals import refusals
from tests.unit.transformer.torchs_layers import IDS, randomised, vectors

LENGTHS = [(6, 6), (2, 6), (1, 6), (6, 2), (1, 1)]


def by_complex_numbers(x, positions, *, base=10000.0, halves=False):
    """Each pair of components as one complex number, times e^(i·m·θ)."""
    width = x.shape[-1]
    pairs = range(width // 2)
    if halves:
        first, second = [list(pairs), [i + width // 2 for i in pairs]]
    else:
        first, second = [[2 * i for i in pairs], [2 * i + 1 for i in pairs]]
    theta = torch.tensor([base ** (-2 * i / width) for i in pairs], dtype=torch.float64)
    points = torch.complex(x[..., first], x[..., second])
    points = points * torch.exp(1j * positions[:, None] * theta)
    turned = torch.empty_like(x)
    turned[..., first], turned[..., second] = points.real, points.imag
    return turned


def places(n_queries, n_keys):
    """The positions of the queries, the last of n_keys, and those of the keys."""
    whole = torch.arange(max(n_queries, n_keys), dtype=torch.float64)
    return whole[-n_queries:], whole[-n_keys:]


@pytest.mark.parametrize("base", [10000.0, 50.0])
@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize(("n_queries", "n_keys"), LENGTHS)
def test_it_multiplies_by_complex_numbers_in_values_and_gradients(n_queries, n_keys, halves, base):
    rotary = Rotary(6, base, halves=halves).double()
    q, k = vectors(2, 3, n_queries, 6), vectors(2, 3, n_keys, 6, seed=2)
    ours = rotary(q, k)
    theirs = [
        by_complex_numbers(x, at, base=base, halves=halves)
        for x, at in zip((q, k), places(n_queries, n_keys), strict=True)
    ]
    for actual, expected in zip(ours, theirs, strict=True):
        assert_close(actual, expected)
    for actual, expected in zip(
        gradients(list(ours), [q, k]), gradients(theirs, [q, k]), strict=True
    ):
        assert_close(actual, expected)


def test_the_matrix_of_the_paper():
    """§3.2.2: a matrix of blocks [[cos, −sin], [sin, cos]] on neighbouring components."""
    x, m = vectors(1, 1, 8, 4), 7
    blocks = []
    for theta in (1.0, 1 / 100):
        cos, sin = math.cos(m * theta), math.sin(m * theta)
        blocks.append(torch.tensor([[cos, -sin], [sin, cos]], dtype=torch.float64))
    _, turned = Rotary(4).double()(x, x)
    assert_close(turned[0, 0, m], torch.block_diag(*blocks) @ x[0, 0, m])
    assert torch.equal(turned[0, 0, 0], x[0, 0, 0])


@pytest.mark.parametrize("halves", [False, True])
def test_scores_depend_on_the_distance_alone(halves):
    rotary = Rotary(8, halves=halves).double()
    q, k = (vectors(1, 1, 1, 8, seed=seed).detach().expand(1, 1, 9, 8) for seed in (1, 2))
    turned_q, turned_k = rotary(q, k)  # the same query and the same key at every position
    scores = (turned_q @ turned_k.mT)[0, 0]
    for distance in range(-8, 9):
        diagonal = scores.diagonal(distance)
        assert_close(diagonal, diagonal[:1].expand_as(diagonal))
    assert len({round(s.item(), 6) for s in (*scores[0], *scores[:, 0])}) == 17
    assert_close(turned_q.norm(dim=-1), q.norm(dim=-1))


def test_the_conventions_differ_until_the_rows_are_permuted():
    """The weights of one give other scores in the other, and equal ones in its order of rows."""
    d_key, n_heads = 6, 2
    attention, x = randomised(MultiHeadAttention(12, n_heads)), vectors(2, 5, 12)
    attention.attend.transform = Rotary(d_key).double()
    expected, weights = attention(x)
    attention.attend.transform = Rotary(d_key, halves=True).double()
    _, other = attention(x)
    assert (other - weights).abs().max() > 0.01
    head = [*range(0, d_key, 2), *range(1, d_key, 2)]  # 0 2 4 1 3 5: pairs become i, i + 3
    rows = [h * d_key + i for h in range(n_heads) for i in head]
    with torch.no_grad():
        for w in (attention.w_q, attention.w_k):
            w.weight.copy_(w.weight[rows])
            w.bias.copy_(w.bias[rows])
    output, same = attention(x)
    assert_close(same, weights)
    assert_close(output, expected)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("halves", [False, True])
def test_the_last_queries_alone_give_the_last_rows(halves, need_weights):
    attention, x = randomised(MultiHeadAttention(8, 2)), vectors(2, 7, 8)
    attention.attend.transform = Rotary(4, halves=halves).double()
    whole, _ = attention(x, causal=True, need_weights=need_weights)
    for n in (1, 3):
        last, _ = attention(x[:, -n:], x, causal=True, need_weights=need_weights)
        assert_close(last, whole[:, -n:])


@pytest.mark.parametrize("first", [0, 5, rotary.KEPT])
def test_a_part_that_begins_later_is_turned_as_it_is_in_the_whole(first):
    x, turn = vectors(2, 3, first + 4, 6), Rotary(6).double()
    assert_close(turn.turn_from(x[:, :, first:], first), turn(x, x)[0][:, :, first:])


@pytest.mark.parametrize("kept", [4, 5, 7, 8, 9])
def test_beyond_the_kept_positions(kept, monkeypatch):
    """Five queries and nine keys: some lie beyond, one alone does, or none."""
    q, k = vectors(1, 1, 5, 4), vectors(1, 1, 9, 4, seed=2)
    expected = Rotary(4).double()(q, k)
    monkeypatch.setattr(rotary, "KEPT", kept)
    few = Rotary(4).double()
    assert few.kept.shape == (kept, 4)
    for actual, whole in zip(few(q, k), expected, strict=True):
        assert torch.equal(actual, whole)
    # Kept from now on: at most twice as many positions as the longest input had.
    longer = few.kept
    assert len(longer) == max(kept, 16 if kept < 9 else 9)
    few(q[:, :, :1], k)
    assert few.kept is longer
    assert len(few.float().kept) == len(longer) and few.kept.dtype == torch.float32


def test_angles_kept_in_inference_serve_training(monkeypatch):
    monkeypatch.setattr(rotary, "KEPT", 4)
    module, (q, k) = Rotary(4), torch.randn(2, 1, 1, 9, 4)
    with torch.inference_mode():
        expected = module(q, k)
    leaves = [x.clone().requires_grad_() for x in (q, k)]
    ours = module(*leaves)
    assert all(map(torch.equal, ours, expected))
    assert len(torch.autograd.grad(sum(x.sum() for x in ours), leaves)) == 2


@pytest.mark.parametrize("lies", ["at an odd place", "by columns", "by positions"])
def test_components_lie_in_memory_as_they_like(lies):
    """Pairs are looked at as complex numbers; where they do not lie so, they are copied."""
    x = torch.randn(2, 3, 5, 8, dtype=torch.float64)
    same = {
        "at an odd place": F.pad(x, (1, 0))[..., 1:],
        "by columns": x.mT.contiguous().mT,
        "by positions": x.transpose(1, 2).contiguous().transpose(1, 2),
    }[lies]
    leaf = same.detach().requires_grad_()
    module = Rotary(8).double()
    turned, _ = module(leaf, leaf)
    assert torch.equal(turned, module(x, x)[0])
    back = torch.autograd.grad(turned, leaf, turned)[0]  # turned back by the same angle
    assert_close(back, x)


def test_far_positions_are_exact_in_float32():
    x = torch.zeros(1, 1, 5000, 64)
    x[..., ::2] = 1
    angle = 4999 / 10000 ** (2 / 64)  # in float32 this number is off by up to 2e-4
    _, turned = Rotary(64)(x, x)
    assert turned[0, 0, -1, 2].item() == pytest.approx(math.cos(angle), abs=1e-7)
    assert turned[0, 0, -1, 3].item() == pytest.approx(math.sin(angle), abs=1e-7)


@pytest.mark.parametrize("convert", [True, False])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_turn_is_rounded_once(dtype, convert):
    """Nearly every number is the exact one, rounded, whether or not the module is converted."""
    module = Rotary(8).to(dtype) if convert else Rotary(8)
    q, k = (vectors(2, 2, 300, 8, seed=s).detach().to(dtype).requires_grad_() for s in (1, 2))
    wide = [x.detach().double().requires_grad_() for x in (q, k)]
    ours = module(q, k)
    theirs = [by_complex_numbers(x, torch.arange(300.0).double()) for x in wide]
    for actual, expected in zip(ours, theirs, strict=True):
        assert (actual == expected.to(dtype)).float().mean() > 0.99
    for actual, expected in zip(
        gradients(list(ours), [q, k]), gradients(theirs, wide), strict=True
    ):
        assert_close(actual, expected, ulps=ULPS_OF_GRADIENTS)


@pytest.mark.parametrize("need_weights", [True, False])
def test_autocast(need_weights):
    torch.manual_seed(0)
    attention, x = MultiHeadAttention(8, 2), torch.randn(2, 5, 8)
    attention.attend.transform = Rotary(4)
    expected, _ = attention(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, _ = attention(x, need_weights=need_weights)
    assert output.dtype == torch.bfloat16
    assert_close(output, expected)


def encode(encoder, x, mask, halves):
    """Pre-norm, with torch's functions alone: an encoder whose attention turns q and k."""

    def linear(x, w):
        return F.linear(x, w.weight, w.bias)

    def norm(x, w):
        return F.layer_norm(x, x.shape[-1:], w.weight, w.bias)

    at = torch.arange(x.shape[1], dtype=torch.float64)
    for layer in encoder.layers:
        attention, y = layer.self_attention, norm(x, layer.self_attention_norm)
        q, k, v = (
            linear(y, w).view(*y.shape[:2], attention.n_heads, -1).transpose(1, 2)
            for w in (attention.w_q, attention.w_k, attention.w_v)
        )
        q, k = (by_complex_numbers(z, at, halves=halves) for z in (q, k))
        attended = F.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).flatten(2)
        x = x + linear(attended, attention.w_o)
        y = norm(x, layer.feed_forward_norm)
        x = x + linear(F.relu(linear(y, layer.feed_forward.w_1)), layer.feed_forward.w_2)
    return norm(x, encoder.norm)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize(
    "mask", [None, padding_mask(IDS, 0), padding_mask(IDS, 0) & causal_mask(6)]
)
def test_an_encoder_equals_torchs_functions_in_values_and_gradients(mask, halves, need_weights):
    encoder, x = randomised(Encoder(8, 2, 16, n_layers=3, norm_first=True)), vectors(2, 6, 8)
    plain, _ = encoder(x, mask, need_weights=need_weights)
    one_for_all = Rotary(4, halves=halves).double()
    for layer in encoder.layers:
        layer.self_attention.attend.transform = one_for_all
    output, _ = encoder(x, mask, need_weights=need_weights)
    expected = encode(encoder, x, mask, halves)
    assert not torch.allclose(output, plain)
    assert_close(output, expected)
    inputs = [x, *encoder.parameters()]
    assert_gradients_close(output, expected, inputs)


def test_it_holds_nothing_to_learn_and_comes_back_from_the_meta_device():
    rotary, (q, k) = Rotary(4), torch.randn(2, 1, 2, 5, 4)
    assert not list(rotary.parameters()) and not rotary.state_dict()
    expected = rotary(q, k)
    with torch.device("meta"):
        empty = Rotary(4)
    assert empty.kept.is_meta
    for other in (empty.to_empty(device="cpu"), copy.deepcopy(rotary), rotary.double().float()):
        for actual, wanted in zip(other(q, k), expected, strict=True):
            assert torch.equal(actual, wanted)
    assert "d_key=4, base=10000.0, halves=False" in repr(nn.Sequential(rotary))


REFUSED = {
    "an odd width": (
        lambda: Rotary(5),
        "d_key=5 is odd, and components turn in pairs: one would be left over; "
        "choose n_heads so that d_key = d_model / n_heads is even",
    ),
    "a base of zero": (lambda: Rotary(4, 0.0), "base must be above 0, got 0.0"),
}


test_bad_input_is_refused_with_a_reason = refusals(REFUSED)
