import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from attention import MultiHeadAttention, PerHeadAttention, causal_mask
from tests.unit.cases import (
    ULPS_OF_GRADIENTS,
    Case,
    assert_close,
    cases,
    gradients,
    in_one_einsum,
    randomise,
)

NARROW = [torch.float32, torch.float16, torch.bfloat16]
NO_EMPTY_ROW = cases(empty_rows=False)


def to_torch(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    """Make torch's module with the same weights, which `from_torch` must give back."""
    bias = ours.w_q.bias is not None
    theirs = nn.MultiheadAttention(ours.d_model, ours.n_heads, bias=bias, batch_first=True)
    state = {"in_proj_weight": [ours.w_q.weight, ours.w_k.weight, ours.w_v.weight]}
    if bias:
        state["in_proj_bias"] = [ours.w_q.bias, ours.w_k.bias, ours.w_v.bias]
    state = {name: torch.cat(parts).detach() for name, parts in state.items()}
    out = {f"out_proj.{name}": tensor for name, tensor in ours.w_o.state_dict().items()}
    theirs.load_state_dict(state | out)
    return theirs.to(ours.w_q.weight)


def run_torch(case: Case, theirs: nn.MultiheadAttention, *, need_weights: bool):
    key = case.query if case.key is None else case.key
    value = key if case.value is None else case.value
    mask = case.mask
    if mask is not None:  # torch's module wants the opposite, one matrix per sentence and head
        mask = ~mask.expand(case.scores_shape).flatten(0, 1)
    return theirs(
        case.query,
        key,
        value,
        attn_mask=mask,
        need_weights=need_weights,
        average_attn_weights=False,
    )


def compare(case: Case, ours, theirs, our_parameters, their_parameters) -> None:
    """Compare (output, weights) and the gradients of inputs and parameters."""
    ours, theirs = [[y for y in pair if y is not None] for pair in (ours, theirs)]
    for actual, expected in zip(ours, theirs, strict=True):
        assert_close(actual, expected)
    n = len(case.inputs)
    ours = gradients(ours, case.inputs + our_parameters)
    theirs = gradients(theirs, case.inputs + their_parameters)
    for actual, expected in zip(ours[:n], theirs[:n], strict=True):
        assert_close(actual, expected)
    ours, theirs = (torch.cat([g.flatten() for g in grads[n:]]) for grads in (ours, theirs))
    assert_close(ours, theirs)


def in_torchs_order(module: MultiHeadAttention) -> list[nn.Parameter]:
    """q, k and v weights, then their biases, then w_o: as torch's module lists its own."""
    weights = [module.w_q.weight, module.w_k.weight, module.w_v.weight]
    biases = [module.w_q.bias, module.w_k.bias, module.w_v.bias]
    return [p for p in weights + biases + [module.w_o.weight, module.w_o.bias] if p is not None]


@given(NO_EMPTY_ROW, st.booleans())
def test_equals_torchs_module_in_values_and_gradients(case, need_weights):
    theirs = to_torch(case.module)
    ours = MultiHeadAttention.from_torch(theirs)
    compare(
        case,
        ours(case.query, case.key, case.value, case.mask, need_weights=need_weights),
        run_torch(case, theirs, need_weights=need_weights),
        in_torchs_order(ours),
        list(theirs.parameters()),
    )


@given(cases(), st.booleans())
def test_equals_one_einsum_in_values_and_gradients(case, need_weights):
    parameters = list(case.module.parameters())
    arguments = (case.query, case.key, case.value, case.mask)
    ours = case.module(*arguments, need_weights=need_weights)
    theirs = in_one_einsum(case.module, *arguments)
    assert (ours[1] is not None) == need_weights
    compare(case, ours, theirs[: 1 + need_weights], parameters, parameters)


@settings(max_examples=40)
@given(cases())
def test_equals_one_module_per_head_in_values_and_gradients(case):
    per_head = PerHeadAttention.from_multi_head(case.module)
    arguments = (case.query, case.key, case.value, case.mask)
    parameters = [getattr(head, w) for w in ("w_q", "w_k", "w_v") for head in per_head.heads]
    compare(
        case,
        case.module(*arguments),
        per_head(*arguments),
        in_torchs_order(case.module),
        [w.weight for w in parameters]
        + [w.bias for w in parameters if w.bias is not None]
        + list(per_head.w_o.parameters()),
    )


@pytest.mark.parametrize("dtype", NARROW)
@settings(max_examples=30)
@given(case=NO_EMPTY_ROW, need_weights=st.booleans())
def test_every_type_is_as_exact_as_it_can_be(case, dtype, need_weights):
    """Against float64 on the same rounded numbers, and against torch's module in the same type."""
    case = case.to(dtype)
    exact = case.to(torch.float64)
    arguments = (case.query, case.key, case.value, case.mask)
    parameters, exact_parameters = list(case.module.parameters()), list(exact.module.parameters())
    output, weights = case.module(*arguments, need_weights=need_weights)
    expected, expected_weights = exact.module(exact.query, exact.key, exact.value, exact.mask)
    assert output.dtype == dtype
    assert_close(output, expected)
    if need_weights:
        assert weights.dtype == dtype
        assert_close(weights, expected_weights)
    ours = gradients([output], case.inputs + parameters)
    theirs = gradients([expected], exact.inputs + exact_parameters)
    largest = max(g.abs().max().item() for g in theirs)
    for actual, wanted in zip(ours, theirs, strict=True):
        assert_close(actual / largest, wanted / largest, ulps=ULPS_OF_GRADIENTS)
    torchs, _ = run_torch(case, to_torch(case.module), need_weights=need_weights)
    assert_close(output, torchs)


def test_by_hand():
    """Two heads of one column each, both with their own weights, merged and mixed by w_o."""
    module = MultiHeadAttention(2, 2)
    ln2, ln3 = math.log(2), math.log(3)
    state = {
        "w_q.weight": [[1, 0], [0, 1]],
        "w_q.bias": [0, 1],
        "w_k.weight": [[ln3, 0], [0, ln2]],
        "w_k.bias": [0, 0],
        "w_v.weight": [[4, 0], [0, 3]],
        "w_v.bias": [0, 0],
        "w_o.weight": [[1, 10], [0, 1]],
        "w_o.bias": [100, 0],
    }
    module.load_state_dict({name: torch.tensor(numbers).float() for name, numbers in state.items()})
    x = torch.tensor([[[1.0, 0], [0, 1]]])
    output, weights = module(x)
    # Head 0: queries 1, 0; keys ln 3, 0; values 4, 0.
    # Head 1: queries 1, 2; keys 0, ln 2; values 0, 3.
    expected = torch.tensor([[[[3 / 4, 1 / 4], [1 / 2, 1 / 2]], [[1 / 3, 2 / 3], [1 / 5, 4 / 5]]]])
    torch.testing.assert_close(weights, expected)
    # Head 0 gives 3 and 2, head 1 gives 2 and 12/5.
    torch.testing.assert_close(output, torch.tensor([[[123.0, 2], [126, 2.4]]]))


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, *NARROW])
def test_a_query_that_may_attend_to_nothing_gets_the_bias_of_w_o(dtype, need_weights):
    module = MultiHeadAttention(8, 2).to(dtype)
    randomise(module, torch.Generator().manual_seed(0))
    x = torch.randn(2, 4, 8).to(dtype).requires_grad_()
    mask = torch.ones(2, 1, 4, 4, dtype=torch.bool)
    mask[0] = False
    mask[1, 0, 2] = False
    output, weights = module(x, mask=mask, need_weights=need_weights)
    assert torch.equal(output[0], module.w_o.bias.expand(4, 8))
    assert torch.equal(output[1, 2], module.w_o.bias)
    if need_weights:
        assert not weights[0].any()
        assert not weights[1, :, 2].any()
    found = gradients([output], [x, *module.parameters()])
    assert all(gradient.isfinite().all() for gradient in found)
    assert not found[0][0].any()  # the first sentence reached nothing but a constant


def test_values_default_to_keys_and_keys_to_queries():
    module, x, y = MultiHeadAttention(4, 2), torch.randn(1, 3, 4), torch.randn(1, 5, 4)
    assert torch.equal(module(x)[0], module(x, x, x)[0])
    assert torch.equal(module(x, y)[0], module(x, y, y)[0])
    z = torch.randn(1, 3, 4)
    assert torch.equal(module(x, value=z)[0], module(x, x, z)[0])


@pytest.mark.parametrize("need_weights", [True, False])
def test_dropout_keeps_the_mean_and_acts_in_training_only(need_weights):
    torch.manual_seed(0)
    module, x = MultiHeadAttention(4, 2, dropout=0.3), torch.randn(1, 5, 4).expand(4000, 5, 4)
    arguments = {"mask": causal_mask(5), "need_weights": need_weights}
    with torch.no_grad():
        output, weights = module(x, **arguments)
        expected, _ = module.eval()(x[:2], **arguments)
    assert not torch.allclose(output[0], output[1])
    assert torch.equal(expected[0], expected[1])
    torch.testing.assert_close(output.mean(0), expected[0], rtol=0, atol=0.03)
    if need_weights:  # the last query sees all five keys
        assert (weights[:, :, 4] == 0).float().mean().item() == pytest.approx(0.3, abs=0.01)


def test_parameters_have_the_promised_names():
    names = [f"{w}.{part}" for w in ("w_q", "w_k", "w_v", "w_o") for part in ("weight", "bias")]
    assert list(MultiHeadAttention(8, 4).state_dict()) == names
    assert list(MultiHeadAttention(8, 4, bias=False).state_dict()) == names[::2]
    shapes = [{p.shape for p in MultiHeadAttention(8, n).parameters()} for n in (1, 2, 4, 8)]
    assert shapes == [{(8, 8), (8,)}] * 4  # n_heads changes no parameter
    text = repr(MultiHeadAttention(8, 4, dropout=0.1))
    assert "d_model=8, n_heads=4" in text and "(attend): DotProduct(dropout=0.1)" in text


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_from_torch_keeps_everything(batch_first, bias, training, dtype):
    theirs = nn.MultiheadAttention(
        12, 3, dropout=0.25, bias=bias, batch_first=batch_first, dtype=dtype
    ).train(training)
    randomise(theirs, torch.Generator().manual_seed(1))
    ours = MultiHeadAttention.from_torch(theirs)
    assert (ours.d_model, ours.n_heads, ours.training) == (12, 3, training)
    assert ours.attend.dropout == 0.25
    assert all(module.training == training for module in ours.modules())
    assert (ours.w_o.bias is not None) == bias
    assert {p.dtype for p in ours.parameters()} == {dtype}
    x, y = torch.randn(2, 5, 12).to(dtype), torch.randn(2, 4, 12).to(dtype)
    theirs.eval()
    if batch_first:
        expected, _ = theirs(x, y, y)
    else:
        expected = theirs(*(z.transpose(0, 1) for z in (x, y, y)))[0].transpose(0, 1)
    assert_close(ours.eval()(x, y)[0], expected)
    with torch.no_grad():  # a copy: what happens to one does not happen to the other
        theirs.in_proj_weight.zero_()
    assert all(p.any() for p in ours.parameters())
    assert all(p.requires_grad and p.is_leaf for p in ours.parameters())


@pytest.mark.parametrize("need_weights", [True, False])
def test_autocast(need_weights):
    torch.manual_seed(0)
    module, x = MultiHeadAttention(8, 2), torch.randn(2, 5, 8)
    mask = causal_mask(5)
    mask[1] = False
    expected, _ = module(x, mask=mask)
    for context in (torch.enable_grad, torch.no_grad):
        with context(), torch.autocast("cpu", dtype=torch.bfloat16):
            output, _ = module(x, mask=mask, need_weights=need_weights)
        assert output.dtype == torch.bfloat16
        assert_close(output, expected)


def test_vmap_over_a_batch():
    module, x = MultiHeadAttention(8, 2), torch.randn(3, 2, 5, 8)
    output, weights = torch.func.vmap(module)(x)
    for i in range(3):
        expected, expected_weights = module(x[i])
        assert_close(output[i], expected)
        assert_close(weights[i], expected_weights)
