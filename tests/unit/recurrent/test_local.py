import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.recurrent.local import LocalAttention
from tests.unit.cases import assert_close, randomise
from tests.unit.recurrent.luong_cases import SCORES, compare, double_loop, everywhere, inputs
from tests.unit.refusals import refusals


def windows_and_favour(module, query, key, allowed, first_query):
    """Equations 9 and 10, one pair at a time: which keys are in the window, and the Gaussian."""
    reach, n_keys = module.half_width, key.shape[1]
    inside, favour = torch.zeros_like(allowed), []
    for b in range(query.shape[0]):
        for t in range(query.shape[1]):
            p = torch.tensor(float(first_query + t), dtype=query.dtype)
            if module.alignment == "predictive":
                length = max((s + 1 for s in range(n_keys) if allowed[b, t, s]), default=0)
                hidden = torch.tanh(module.w_p.weight @ query[b, t])
                p = length * torch.sigmoid(module.v_p.weight[0] @ hidden)
            for s in range(n_keys):
                inside[b, t, s] = allowed[b, t, s] and p - reach <= s <= p + reach
                sigma = reach / 2
                gaussian = torch.exp(-((s - p) ** 2) / (2 * sigma**2))
                favour.append(gaussian if module.alignment == "predictive" else torch.ones_like(p))
    return inside, torch.stack(favour).view(allowed.shape)


@settings(max_examples=60)
@given(
    inputs(most_keys=9),
    st.integers(1, 4),
    st.sampled_from(["monotonic", "predictive"]),
    st.integers(0, 4),
)
def test_local_equals_a_double_loop_in_values_and_gradients(case, reach, alignment, first_query):
    score, query, key, _, mask, rng = case
    module = LocalAttention(
        query.shape[-1], key.shape[-1], reach, score=score, alignment=alignment
    ).double()
    randomise(module, rng)
    if alignment == "predictive":
        with torch.no_grad():
            module.v_p.weight.mul_(3)  # spread p over the whole sequence
    allowed = everywhere(mask, query, key)
    inside, favour = windows_and_favour(module, query, key, allowed, first_query)
    ours = list(module(query, key, mask, first_query=first_query))
    theirs = list(double_loop(module.attention, query, key, key, inside, favour))
    compare(ours, theirs, [query, key, *module.parameters()])
    without, none = module(query, key, mask, first_query=first_query, need_weights=False)
    assert torch.equal(without, ours[0])
    assert none is None


@pytest.mark.parametrize("alignment", ["monotonic", "predictive"])
@pytest.mark.parametrize("score", SCORES)
def test_local_attention_does_not_see_padding(alignment, score):
    """Neither as keys nor as length: p of a padded sentence is p of the sentence alone."""
    module = LocalAttention(4, 4, 2, score=score, alignment=alignment).double()
    query, key = torch.randn(2, 3, 4).double(), torch.randn(2, 8, 4).double()
    mask = torch.arange(8) < torch.tensor([8, 5])[:, None, None]
    context, weights = module(query, key, mask)
    assert not weights[1, :, 5:].any()
    alone, their_weights = module(query[1:], key[1:, :5])
    assert_close(context[1:], alone)
    assert_close(weights[1:, :, :5], their_weights)
    torch.testing.assert_close(module(query, key.where(mask.mT, 1e9), mask)[0], context)


def test_the_gaussian_teaches_the_position():
    module = LocalAttention(4, 4, 2, score="dot")
    context, _ = module(torch.randn(1, 3, 4), torch.randn(1, 9, 4))
    context.sum().backward()
    assert module.w_p.weight.grad.any()
    assert module.v_p.weight.grad.any()


def test_a_window_has_at_most_2d_plus_1_keys_and_its_weights_sum_to_one():
    module = LocalAttention(4, 4, 3, score="dot", alignment="monotonic")
    _, weights = module(torch.randn(1, 20, 4), torch.randn(1, 20, 4))
    assert (weights > 0).sum(-1).tolist() == [[4, 5, 6, *[7] * 14, 6, 5, 4]]
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, 20))


@pytest.mark.parametrize("alignment", ["monotonic", "predictive"])
def test_nothing_in_the_window_gives_zero_and_finite_gradients(alignment):
    module = LocalAttention(4, 4, 2, alignment=alignment)
    query, key = torch.randn(1, 2, 4, requires_grad=True), torch.randn(1, 6, 4, requires_grad=True)
    mask = torch.tensor([[False] * 6, [True] * 6])
    context, weights = module(query, key, mask)
    assert not context[0, 0].any()
    assert not weights[0, 0].any()
    for gradient in torch.autograd.grad(context.sum(), [query, key, *module.parameters()]):
        assert gradient.isfinite().all()
    beyond, _ = LocalAttention(4, 4, 2, alignment="monotonic")(query, key, first_query=20)
    assert not beyond.any()


def test_local_attention_without_weights_makes_no_query_times_key_tensor():
    sizes = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            if isinstance(out, torch.Tensor):
                sizes.append(out.untyped_storage().nbytes() // out.element_size())
            return out

    n, mask = 500, (torch.arange(500) < 400)[None, None]
    query, key = torch.randn(1, n, 4, requires_grad=True), torch.randn(1, n, 4)
    for alignment in ("monotonic", "predictive"):
        module = LocalAttention(4, 4, 2, alignment=alignment)
        with Watch():
            module(query, key, mask, need_weights=False)[0].sum().backward()
    assert n * 5 * 4 <= max(sizes) < n * n / 10  # the gathered keys are the largest


QUERY, KEY = torch.zeros(2, 3, 8), torch.zeros(2, 5, 6)
MODULE = LocalAttention(8, 6, 2)
REFUSED = {
    "no such alignment": (
        lambda: LocalAttention(8, 8, 2, alignment="local-p"),
        'alignment must be "monotonic" or "predictive", got \'local-p\'',
    ),
    "another batch": (
        lambda: MODULE(QUERY, KEY[:1]),
        "query and key must agree in every axis before the last two (the batch)",
    ),
    "a mask of another length": (
        lambda: MODULE(QUERY, KEY, torch.ones(3, 4) == 1),
        "mask of shape (3, 4) does not broadcast to the scores = (2, 3, 5)",
    ),
}


test_bad_input_is_refused_with_a_reason = refusals(REFUSED)
