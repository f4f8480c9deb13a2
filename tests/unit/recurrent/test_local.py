import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.recurrent.local import LocalAttention
from tests.unit.cases import randomise
from tests.unit.recurrent.luong_cases import compare, double_loop, everywhere, inputs
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


@settings(max_examples=40)
@given(
    inputs(most_keys=9),
    st.integers(1, 4),
    st.sampled_from(["monotonic", "predictive"]),
    st.sampled_from([0, 1, 2, 4, 20]),  # with 20 no key is in the window
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


def test_local_attention_without_weights_makes_no_query_times_key_tensor():
    sizes = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            if isinstance(out, torch.Tensor):
                sizes.append(out.untyped_storage().nbytes() // out.element_size())
            return out

    n, mask = 300, (torch.arange(300) < 200)[None, None]
    query, key = torch.randn(1, n, 4, requires_grad=True), torch.randn(1, n, 4)
    for alignment in ("monotonic", "predictive"):
        module = LocalAttention(4, 4, 2, alignment=alignment)
        with Watch():
            module(query, key, mask, need_weights=False)[0].sum().backward()
    assert n * 5 * 4 <= max(sizes) < n * n / 10  # the gathered keys are the largest


test_bad_input_is_refused_with_a_reason = refusals(
    [
        (
            lambda: LocalAttention(8, 8, 2, alignment="local-p"),
            'alignment must be "monotonic" or "predictive", got \'local-p\'',
        )
    ]
)
