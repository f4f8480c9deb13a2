import copy
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attention.positions import rotary
from attention.positions.rotary import Rotary
from tests.unit.cases import ULPS_OF_GRADIENTS, assert_close, gradients
from tests.unit.refusals import refusals
from tests.unit.transformer.torchs_layers import vectors

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


@pytest.mark.parametrize("lies", ["at an odd place", "one token", "by columns", "by positions"])
def test_components_lie_in_memory_as_they_like(lies):
    """Pairs are looked at as complex numbers; where they do not lie so, they are copied."""
    x = torch.randn(2, 3, 5, 8, dtype=torch.float64)
    if lies == "one token":  # of packed rows, with nothing between: contiguous, and still odd
        x = torch.randn(1, 1, 1, 8, dtype=torch.float64)
    same = {
        "at an odd place": F.pad(x, (1, 0))[..., 1:],
        "one token": F.pad(x.flatten(), (1, 0))[1:].view(x.shape),
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


def test_it_holds_nothing_to_learn():
    rotary = Rotary(4)
    assert not list(rotary.parameters()) and not rotary.state_dict()
    assert torch.equal(copy.deepcopy(rotary).double().float().kept, rotary.kept)
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
