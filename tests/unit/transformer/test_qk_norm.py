import pytest
import torch

from attention import MultiHeadAttention
from attention.positions.rotary import Rotary
from attention.transformer.qk_norm import QKNorm, QKSequential
from tests.unit.cases import ULPS_OF_GRADIENTS, assert_close, gradients
from tests.unit.transformer.torchs_layers import randomised, vectors

EPS = 1e-6


def by_hand(x, gain):
    """x / √(mean of its squares) · gain."""
    mean = x.square().sum(-1, keepdim=True) / x.shape[-1]
    return x * (mean + EPS).pow(-0.5) * gain


def test_it_equals_the_formula_in_values_and_gradients():
    norm = randomised(QKNorm(6))
    q, k = vectors(2, 3, 5, 6), vectors(2, 3, 4, 6, seed=2)
    inputs = [q, k, norm.q_norm.weight, norm.k_norm.weight]
    ours = norm(q, k)
    theirs = by_hand(q, norm.q_norm.weight), by_hand(k, norm.k_norm.weight)
    for actual, expected in zip(ours, theirs, strict=True):
        assert_close(actual, expected)
    for actual, expected in zip(
        gradients(list(ours), inputs), gradients(list(theirs), inputs), strict=True
    ):
        assert_close(actual, expected)
    state = {name: tuple(x.shape) for name, x in norm.state_dict().items()}
    assert state == {"q_norm.weight": (6,), "k_norm.weight": (6,)}


def test_the_scores_have_a_bound():
    """However large queries and keys become: ±√d_key, reached where query and key are parallel."""
    q = vectors(1, 1, 3, 4).detach()
    same, scaled = QKNorm(4, eps=0.0).double()(q, 1000 * q)
    scores = same @ scaled.mT / 4**0.5
    torch.testing.assert_close(scores.diagonal(0, -2, -1), torch.full((1, 1, 3), 2.0).double())
    assert scores.abs().max() < 2 + 1e-9


def scores_of_one_pair(transform):
    """The scores of the same query and the same key, put at every position."""
    q, k = (vectors(1, 1, 1, 4, seed=seed).detach().expand(1, 1, 7, 4) for seed in (1, 2))
    q, k = transform(q, k)
    return (q @ k.mT)[0, 0]


def test_first_normalise_then_rotate():
    """Then the scores depend on the distance alone. In the other order they do not."""
    norm, rotary = randomised(QKNorm(4)), Rotary(4).double()
    scores = scores_of_one_pair(QKSequential(norm, rotary))
    q, k = (vectors(1, 1, 1, 4, seed=seed).detach().expand(1, 1, 7, 4) for seed in (1, 2))
    by_steps = rotary(by_hand(q, norm.q_norm.weight), by_hand(k, norm.k_norm.weight))
    assert_close(scores, (by_steps[0] @ by_steps[1].mT)[0, 0].detach())
    for distance in range(-6, 7):
        diagonal = scores.diagonal(distance)
        assert_close(diagonal, diagonal[:1].expand_as(diagonal))
    wrong = scores_of_one_pair(QKSequential(rotary, norm))
    assert wrong.diagonal().std() > 0.01


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_half_precision(dtype):
    norm = randomised(QKNorm(8)).to(dtype)
    q, k = (vectors(2, 2, 5, 8, seed=s).detach().to(dtype).requires_grad_() for s in (1, 2))
    wide = [x.detach().double().requires_grad_() for x in (q, k)]
    ours = norm(q, k)
    theirs = [
        by_hand(x, w.weight.detach().double())
        for x, w in zip(wide, (norm.q_norm, norm.k_norm), strict=True)
    ]
    for actual, expected in zip(ours, theirs, strict=True):
        assert actual.dtype == dtype
        assert_close(actual, expected)
    for actual, expected in zip(
        gradients(list(ours), [q, k]), gradients(theirs, wide), strict=True
    ):
        assert_close(actual, expected, ulps=ULPS_OF_GRADIENTS)


@pytest.mark.filterwarnings(
    "ignore:Mismatch dtype"
)  # torch says that its RMSNorm is not fused then
@pytest.mark.parametrize("need_weights", [True, False])
def test_autocast(need_weights):
    torch.manual_seed(0)
    attention, x = MultiHeadAttention(8, 2), torch.randn(2, 5, 8)
    attention.attend.transform = QKSequential(QKNorm(4), Rotary(4))
    expected, _ = attention(x)
    for context in (torch.enable_grad, torch.no_grad):
        with context(), torch.autocast("cpu", dtype=torch.bfloat16):
            output, _ = attention(x, need_weights=need_weights)
        assert output.dtype == torch.bfloat16
        assert_close(output, expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_short_vectors_are_normalised_alike_in_half_precision(dtype):
    """Vectors of length 10⁻³ at d_key 64: torch's own eps of the dtype made them 6 % shorter."""
    q = (1e-3 * vectors(1, 2, 5, 64)).to(dtype)
    half, _ = QKNorm(64).to(dtype)(q, q)
    double, _ = QKNorm(64).double()(q.double(), q.double())
    torch.testing.assert_close(half.double(), double, rtol=2 * torch.finfo(dtype).eps, atol=0.0)
