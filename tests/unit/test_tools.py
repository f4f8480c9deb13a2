"""What torch's tools do with every module: one compiled graph, an exported program, copies.

Where a tool cannot work, the module's docstring says so, and here its row does.
"""

import copy
import importlib
import inspect
import io
import pickle
import sys

import pytest
import torch
from torch import nn

import attention
from attention import (
    EncoderDecoder,
    SinusoidalPositionalEncoding,
    elu_plus_one,
    fused_attention,
    linear_attention,
    scaled_dot_product_attention,
    tiled_attention,
)
from tests.unit.cases import ULPS_OF_GRADIENTS, assert_close
from tests.unit.mechanisms import D_KEY, FUNCTIONS, HEADS, MODULES, N

pytestmark = pytest.mark.usefixtures("as_a_reader")


@pytest.fixture(scope="module")
def unchecked():
    """The same rows over a package that no import hook has touched, as a reader's is.

    The hook's wrappers are not what the compiler is to be tried on.
    """

    def imported():
        return {x: sys.modules.pop(x) for x in list(sys.modules) if x.split(".")[0] in OURS}

    hooks = [finder for finder in sys.meta_path if "jaxtyping" in type(finder).__module__]
    assert hooks
    kept = imported()
    for hook in hooks:
        sys.meta_path.remove(hook)
    yield importlib.import_module("tests.unit.mechanisms")
    imported()
    sys.modules.update(kept)
    sys.meta_path[:0] = hooks


OURS = ("attention", "tests")
ONE_GRAPH = [name for name, row in MODULES.items() if row.one_graph]
MORE = N + 9  # tokens; another number of blocks, chunks and tiles


@pytest.fixture(autouse=True)
def _fresh():
    torch.compiler.reset()
    torch.manual_seed(0)


def gradients_of(output, leaves):
    """Those of a sum of squares; None where a leaf is not read."""
    return torch.autograd.grad(output.square().sum(), leaves, allow_unused=True)


def assert_alike(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert_close(one, other, ulps=ULPS_OF_GRADIENTS)


@pytest.mark.one_in(6)
@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_GRAPH)
def test_a_module_compiles_to_one_graph_with_the_same_gradients(unchecked, name):
    """For one length and, in the same program, for another."""
    row = unchecked.MODULES[name]
    module, inputs = row.make(), row.inputs(N)
    leaves = [p for p in module.parameters() if p.requires_grad]
    leaves += [x.requires_grad_() for x in inputs if x.is_floating_point()]
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    outputs = [row.output(each, *inputs) for each in (compiled, module)]
    assert_close(*outputs)
    assert_alike(*(gradients_of(output, leaves) for output in outputs))
    longer = row.inputs(MORE)
    assert_close(row.output(compiled, *longer), row.output(module, *longer))


@pytest.mark.one_in(6)
@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_compiles_to_one_graph_with_the_same_gradients(unchecked, name):
    call = unchecked.FUNCTIONS[name].call
    leaves = list(torch.randn(3, 2, HEADS, N, D_KEY).requires_grad_().unbind())
    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    outputs = [each(*leaves) for each in (compiled, call)]
    assert_close(*outputs)
    assert_alike(*(gradients_of(output, leaves) for output in outputs))


class Attends(nn.Module):
    """A function as a module, which torch.export asks for."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, query, key, value):
        return self.function(query, key, value)


@pytest.mark.one_in(6)
@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_exported_with_an_open_length_or_says_why_not(unchecked, name):
    call = unchecked.FUNCTIONS[name].call
    docstring = inspect.getdoc(getattr(attention, name.split(",")[0]))
    length = torch.export.Dim("length", min=2, max=59)
    shorter, longer = (list(torch.randn(3, 2, HEADS, n, D_KEY).unbind()) for n in (N, MORE))
    try:
        program = torch.export.export(
            Attends(call), tuple(shorter), dynamic_shapes=({2: length},) * 3
        )
    except torch._dynamo.exc.UserError:
        assert "torch.export takes one length at a time" in docstring
    else:
        assert "torch.export" not in docstring
        assert_close(program.module()(*longer), call(*longer))


@pytest.mark.one_in(6)
@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_GRAPH)
def test_a_module_is_exported_with_an_open_length(unchecked, name):
    row = unchecked.MODULES[name]
    module = row.make().eval()
    inputs = row.inputs(N)
    length = torch.export.Dim("length", min=2, max=59)
    # The inputs whose length the row's number of tokens is.
    longer = row.inputs(MORE)
    open_axes = [
        {1: length} if x.shape[1] != y.shape[1] else None
        for x, y in zip(inputs, longer, strict=True)
    ]
    names = list(inspect.signature(module.forward).parameters)
    shapes = dict(zip(names, open_axes, strict=False)) | dict.fromkeys(row.options)
    program = torch.export.export(
        module,
        tuple(inputs),
        row.options,
        dynamic_shapes=shapes,
        # Whether a length fits is checked as the program runs: torch cannot prove it for all.
        prefer_deferred_runtime_asserts_over_guards=True,
    )
    assert_close(row.output(program.module(), *longer), row.output(module, *longer))


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ["MultiHeadAttention", "DecoderLayer", "Linformer"])
def test_a_module_is_traced_with_an_open_length(unchecked, name):
    """By torch.jit, whose sizes are tensors, and which can return no None beside the output."""
    row = unchecked.MODULES[name]
    module = row.make().eval().requires_grad_(False)

    def output(*inputs):
        return row.output(module, *inputs)

    traced = torch.jit.trace(output, tuple(row.inputs(N)), check_trace=False)
    longer = row.inputs(MORE)
    assert_close(traced(*longer), output(*longer))


@pytest.mark.parametrize("name", MODULES)
def test_copies_compute_the_same(unchecked, name):
    row = unchecked.MODULES[name]
    module, inputs = row.make(), row.inputs(N)
    expected = row.output(module, *inputs)
    saved = io.BytesIO()
    torch.save(module.state_dict(), saved)
    saved.seek(0)
    loaded = row.make()
    loaded.load_state_dict(torch.load(saved))
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module)), loaded):
        assert torch.equal(row.output(other, *inputs), expected)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_made_without_memory_is_filled_from_its_state(unchecked, name):
    """On the meta device a module has shapes alone; what its state lacks is computed again."""
    row = unchecked.MODULES[name]
    module, inputs = row.make(), row.inputs(N)
    with torch.device("meta"):
        empty = row.make()
    empty.to_empty(device="cpu").load_state_dict(module.state_dict())
    assert torch.equal(row.output(empty, *inputs), row.output(module, *inputs))


def test_the_sines_come_back_in_their_own_dtype():
    with torch.device("meta"):
        empty = SinusoidalPositionalEncoding(6, max_length=9).half()
    assert empty.table.is_meta
    filled = empty.to_empty(device="cpu")
    assert torch.equal(filled.table, SinusoidalPositionalEncoding(6, max_length=9).half().table)


def test_a_state_assigned_to_a_model_without_memory():
    """load_state_dict(assign=True) brings parameters alone; the docstring says what is missing."""
    whole = MODULES["EncoderDecoder"].make()
    with torch.device("meta"):
        empty = MODULES["EncoderDecoder"].make()
    empty.load_state_dict(whole.state_dict(), assign=True)
    empty.positional_encoding.to_empty(device="cpu")
    inputs = MODULES["EncoderDecoder"].inputs(N)
    assert isinstance(empty, EncoderDecoder)
    assert torch.equal(empty(*inputs).logits, whole(*inputs).logits)


def differentiable_gradient(call):
    inputs = [torch.randn(1, 1, 5, 4, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    (gradient,) = torch.autograd.grad(call(*inputs).sum(), inputs[0], create_graph=True)
    return gradient


TWICE = {
    "scaled_dot_product_attention": lambda *x: scaled_dot_product_attention(*x)[0],
    "linear_attention": linear_attention,
    "linear_attention, causal": lambda *x: linear_attention(*x, causal=True),
}


@pytest.mark.parametrize("name", TWICE)
def test_gradients_of_gradients(name):
    inputs = [torch.randn(1, 1, 5, 4, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    assert torch.autograd.gradgradcheck(TWICE[name], inputs)


def test_gradients_of_gradients_are_refused_where_there_are_none():
    refused = pytest.raises(RuntimeError, match="tiled_attention has no gradients of gradients")
    with refused:
        differentiable_gradient(tiled_attention)
    with refused:
        torch.func.grad(lambda x: tiled_attention(x, x, x).sum())(torch.randn(1, 1, 5, 4))
    gradient = differentiable_gradient(fused_attention)
    with pytest.raises(RuntimeError, match="flash_attention"):
        gradient.sum().backward()


PER_EXAMPLE = {
    "scaled_dot_product_attention": lambda *x: scaled_dot_product_attention(*x)[0],
    "fused_attention": fused_attention,
    "linear_attention": linear_attention,
    "gated_delta_rule": FUNCTIONS["gated_delta_rule"].call,
}


@pytest.mark.parametrize("name", PER_EXAMPLE)
def test_gradients_by_torch_func(name):
    call = PER_EXAMPLE[name]
    inputs = torch.randn(3, 1, 2, 5, 4, dtype=torch.float64)
    ours = torch.func.grad(lambda q: call(q, *inputs[1:]).sin().sum())(inputs[0])
    query = inputs[0].clone().requires_grad_()
    (expected,) = torch.autograd.grad(call(query, *inputs[1:]).sin().sum(), query)
    assert_close(ours, expected)


def test_the_feature_map_has_its_gradients_at_zero_too():
    x = torch.tensor([-30.0, -1.0, 0.0, 2.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(elu_plus_one, x.detach()[[0, 1, 3]].requires_grad_())
    (gradient,) = torch.autograd.grad(elu_plus_one(x).sum(), x)
    assert_close(gradient, torch.cat([x.detach()[:2].exp(), torch.ones(2).double()]))
    rows = torch.randn(3, 4, dtype=torch.float64)
    assert_close(torch.func.vmap(elu_plus_one)(rows), nn.functional.elu(rows) + 1)
