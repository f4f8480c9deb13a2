"""What attends in MultiHeadAttention: a transform of q and k, a bias, and a gate around it."""

import copy
import math
import re
import subprocess
import sys
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from attention import (
    DotProduct,
    EncoderLayer,
    HeadGate,
    Mechanism,
    MultiHeadAttention,
    causal_mask,
    linear_attention,
    split_heads,
)
from attention.dot_product import attend
from attention.fused import attend_fused
from tests.unit.cases import (
    ULPS_OF_GRADIENTS,
    assert_close,
    assert_gradients_close,
    cases,
    gradients,
    randomise,
)

WHICH = [("gate",), ("transform",), ("bias",), ("gate", "transform", "bias")]


class Mix(nn.Module):
    """A learned matrix for the queries of each head, and another one for the keys."""

    def __init__(self, n_heads: int, d_key: int) -> None:
        super().__init__()
        self.for_q, self.for_k = (nn.Parameter(torch.empty(n_heads, d_key, d_key)) for _ in "qk")

    def forward(self, q, k):
        return q @ self.for_q, k @ self.for_k


class Table(nn.Module):
    """A learned number for each head, query and key."""

    def __init__(self, n_heads: int, n_queries: int, n_keys: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(n_heads, n_queries, n_keys))

    def forward(self, n_queries: int, n_keys: int):
        assert (n_queries, n_keys) == self.table.shape[1:]
        return self.table


def head_by_head(module, query, key, value, mask, scale):
    """Every head by itself, its scores written out; what each gives to the output is added up."""
    width, attend = module.d_key, module.attend
    gate = None
    if isinstance(attend, HeadGate):
        gate, attend = attend.gate, attend.attend
    total = torch.zeros_like(query)
    all_weights = []
    for h in range(module.n_heads):
        own = slice(h * width, (h + 1) * width)
        q, k, v = (
            F.linear(x, w.weight[own], None if w.bias is None else w.bias[own])
            for x, w in ((query, module.w_q), (key, module.w_k), (value, module.w_v))
        )
        if attend.transform is not None:
            q = torch.einsum("bqd,de->bqe", q, attend.transform.for_q[h])
            k = torch.einsum("bkd,de->bke", k, attend.transform.for_k[h])
        scores = torch.einsum("bqd,bkd->bqk", q, k) / math.sqrt(width)
        if attend.bias is not None:
            scores = scores + attend.bias.table[h]
        exp = (scores - scores.amax(-1, keepdim=True)).exp()
        if mask is not None:
            exp = exp * mask.expand(scale)[:, h]
        whole = exp.sum(-1, keepdim=True)
        weights = exp / torch.where(whole == 0, 1.0, whole)
        factor = 1.0 if gate is None else gate[h]
        total = total + factor * F.linear(weights @ v, module.w_o.weight[:, own])
        all_weights.append(weights)
    output = total if module.w_o.bias is None else total + module.w_o.bias
    return output, torch.stack(all_weights, dim=1)


@pytest.mark.parametrize("which", WHICH, ids=str)
@settings(max_examples=40)
@given(need_weights=st.booleans(), case=cases(), causal=st.booleans())
def test_each_equals_its_formula_in_values_and_gradients(which, need_weights, case, causal):
    module, shape = case.module, case.scores_shape
    rng = torch.Generator().manual_seed(3)
    if "transform" in which:
        module.attend.transform = Mix(module.n_heads, module.d_key).double()
        randomise(module.attend.transform, rng)
    if "bias" in which:
        module.attend.bias = Table(*shape[1:]).double()
        randomise(module.attend.bias, rng)
    inputs = [*case.inputs, *module.parameters()]
    if "gate" in which:
        gate = torch.randn(module.n_heads, generator=rng).double().requires_grad_()
        module.attend = HeadGate(module.attend, gate)
        inputs.append(gate)
    key = case.query if case.key is None else case.key
    value = key if case.value is None else case.value
    mask = case.mask
    output, weights = module(case.query, key, value, mask, causal=causal, need_weights=need_weights)
    if causal:
        past = causal_mask(*shape[2:])
        mask = past if mask is None else mask & past
    expected, their_weights = head_by_head(module, case.query, key, value, mask, shape)
    assert_close(output, expected)
    if need_weights:
        assert_close(weights, their_weights)
    assert_gradients_close(output, expected, inputs)


def test_the_importance_of_a_head_for_each_sentence():
    """|∂loss/∂gate| of every sentence at once (Michel et al. 2019), and of one after the other."""
    layer, x = EncoderLayer(8, 4, 16).double(), torch.randn(5, 6, 8).double()
    gated = layer.self_attention.attend = HeadGate(layer.self_attention.attend, torch.ones(4))

    def loss(gate, sentence):
        gated.gate = gate
        return layer(sentence[None])[0].square().sum().sin()

    at_once = torch.func.vmap(torch.func.grad(loss), (None, 0))(torch.ones(4).double(), x)
    for i in range(5):
        gate = torch.ones(4).double().requires_grad_()
        (one,) = torch.autograd.grad(loss(gate, x[i]), gate)
        assert_close(at_once[i], one)


def test_what_a_module_takes_with_it():
    names = list(MultiHeadAttention(8, 2).state_dict())
    assert names == [f"w_{w}.{part}" for w in "qkvo" for part in ("weight", "bias")]
    module, x = MultiHeadAttention(8, 2), torch.randn(1, 3, 8)
    plain = module.attend
    module.attend = HeadGate(plain, torch.tensor([1.0, 0.5]))
    assert list(module.state_dict()) == names
    plain.transform, plain.bias = Mix(2, 4), Table(2, 3, 3)
    randomise(module, torch.Generator().manual_seed(0))
    more = ["transform.for_q", "transform.for_k", "bias.table"]
    assert list(module.state_dict()) == [*names, *(f"attend.attend.{name}" for name in more)]
    output, _ = module(x)
    other = copy.deepcopy(module)
    assert torch.equal(other(x)[0], output)
    assert other.attend.gate is not module.attend.gate
    assert module.double().attend.gate.dtype == torch.float64
    module.attend = plain
    plain.transform = plain.bias = None
    assert list(module.state_dict()) == names


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("fused", [True, False])
def test_a_query_that_may_attend_to_nothing_beside_a_bias(fused, dtype):
    """Also where keys fill more than one block of the fused kernel (512 keys on a CPU)."""
    rng = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(1, 2, n, 4, generator=rng).to(dtype).requires_grad_() for n in (5, 600, 600)
    )
    bias = torch.randn(2, 5, 600, generator=rng)
    mask = torch.rand(5, 600, generator=rng) < 0.5
    mask[2] = False
    mask[3] = torch.arange(600) == 599  # sees one key only, in the last block
    with torch.autograd.detect_anomaly(check_nan=True):
        if fused:
            output = attend_fused(q, k, v, mask, bias=bias)
        else:
            output, _ = attend(q, k, v, mask, bias=bias)
        found = gradients([output], [q, k, v])
    assert output.dtype == dtype
    assert not output[:, :, 2].any()
    assert torch.equal(output[:, :, 3], v[:, :, 599])
    assert not found[0][:, :, 2].any()
    wide = [x.detach().double().requires_grad_() for x in (q, k, v)]
    rows = mask.clone()
    rows[2] = True
    added = bias.double().masked_fill(~rows, -torch.inf)[None]
    expected = F.scaled_dot_product_attention(*wide, added) * mask.any(-1)[:, None]
    assert_close(output, expected)
    wanted = gradients([expected], wide)
    for actual, gradient in zip(found, wanted, strict=True):
        assert_close(actual, gradient, ulps=ULPS_OF_GRADIENTS)


@pytest.mark.parametrize("mask", [None, causal_mask(50)])
def test_weights_are_dropped_beside_a_bias(mask):
    """Each output is a mean of ones over the weights that are left, doubled: seldom 1."""
    x, ones, bias = torch.zeros(1, 1, 50, 4), torch.ones(1, 1, 50, 1), torch.zeros(1, 50, 50)
    torch.manual_seed(0)
    for output in (
        attend_fused(x, x, ones, mask, bias=bias, dropout=0.5),
        attend(x, x, ones, mask, bias=bias, dropout=0.5)[0],
    ):
        assert len(output.unique()) > 5


def test_scores_are_what_softmax_gets():
    module, x, y = MultiHeadAttention(8, 2).double(), torch.randn(3, 4, 8), torch.randn(3, 5, 8)
    module.attend = DotProduct(transform=Mix(2, 4), bias=Table(2, 4, 5)).double()
    randomise(module.attend, torch.Generator().manual_seed(0))
    q, k = split_heads(module.w_q(x.double()), 2), split_heads(module.w_k(y.double()), 2)
    scores, (_, weights) = module.attend.scores(q, k), module(x.double(), y.double())
    assert_close(scores.softmax(-1), weights)
    by_hand = (q @ module.attend.transform.for_q) @ (k @ module.attend.transform.for_k).mT / 2
    assert_close(scores, by_hand + module.attend.bias.table)


REFUSED = {
    "a gate for all heads": (
        lambda plain: HeadGate(plain, torch.ones(1)),
        "gate must have shape (heads) = (4,), got (1,)",
    ),
    "a bias for another length": (
        lambda plain: DotProduct(bias=Table(4, 3, 3)),
        "bias must have shape (heads, query, key) = (4, 3, 5), got (4, 3, 3)",
    ),
    "a bias for one head": (
        lambda plain: DotProduct(bias=Table(1, 3, 5)),
        "bias must have shape (heads, query, key) = (4, 3, 5), got (1, 3, 5)",
    ),
}


class OneForAll(nn.Module):
    """The first head's queries, which every head would get."""

    def forward(self, q, k):
        return q[:, :1], k


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize("attend", [DotProduct, partial(Mechanism, linear_attention)])
def test_a_transform_that_would_be_broadcast_is_refused(attend):
    module = MultiHeadAttention(8, 4, attend=attend(transform=OneForAll()))
    message = "the q of transform must have shape (batch, heads, query, d_key) = (2, 4, 3, 2), got"
    with pytest.raises(ValueError, match=re.escape(message)):
        module(torch.randn(2, 3, 8))


@pytest.mark.usefixtures("as_a_reader")
def test_a_bias_of_booleans_is_refused():
    """True would add 1, where a mask hides."""
    table = Table(4, 3, 5)
    table.table = nn.Parameter(torch.ones(4, 3, 5, dtype=torch.bool), requires_grad=False)
    module = MultiHeadAttention(8, 4, attend=DotProduct(bias=table))
    with pytest.raises(TypeError, match="bias must return floating-point numbers"):
        module(torch.randn(2, 3, 8), torch.randn(2, 5, 8))


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("need_weights", [True, False])
def test_what_would_be_broadcast_is_refused(name, need_weights, monkeypatch):
    attending, message = REFUSED[name]
    monkeypatch.setattr(Table, "forward", lambda self, n_queries, n_keys: self.table)
    module = MultiHeadAttention(8, 4)
    module.attend = attending(module.attend)
    with pytest.raises(ValueError, match=re.escape(message)):
        module(torch.randn(2, 3, 8), torch.randn(2, 5, 8), need_weights=need_weights)


@pytest.mark.one_in(2)
@pytest.mark.slow
@pytest.mark.parametrize("need_weights", [True, False])
def test_compiled_and_exported_with_all_three(need_weights):
    """In an interpreter of its own: the signature checks of these tests are not compiled."""
    code = f"""
import torch
from attention import DotProduct, Encoder, HeadGate, MultiHeadAttention
from attention.positions.linear_bias import LinearBias
from attention.positions.rotary import Rotary
from attention.transformer.qk_norm import QKNorm, QKSequential
torch.manual_seed(0)
torch.set_num_threads(1)

def all_three(attention):
    inside = DotProduct(transform=QKSequential(QKNorm(4), Rotary(4)), bias=LinearBias(2))
    attention.attend = HeadGate(inside, torch.tensor([1.0, 0.5]))

encoder = Encoder(8, 2, 16, n_layers=2)
for layer in encoder.layers:
    all_three(layer.self_attention)
fast = torch.compile(encoder, fullgraph=True, backend="eager")
for n in (5, 9, 12):
    x = torch.randn(2, n, 8)
    torch.testing.assert_close(
        fast(x, need_weights={need_weights})[0], encoder(x, need_weights={need_weights})[0]
    )

cross = MultiHeadAttention(8, 2)
all_three(cross)
lengths = [torch.export.Dim(name, min=2, max=59) for name in ("queries", "keys")]
program = torch.export.export(
    cross.eval(),
    (torch.randn(2, 5, 8), torch.randn(2, 7, 8)),
    {{"need_weights": {need_weights}}},
    dynamic_shapes={{"query": {{1: lengths[0]}}, "key": {{1: lengths[1]}}, "need_weights": None}},
    prefer_deferred_runtime_asserts_over_guards=True,
)
for n, m in ((6, 11), (12, 3), (4, 4)):
    x, y = torch.randn(2, n, 8), torch.randn(2, m, 8)
    torch.testing.assert_close(
        program.module()(x, y, need_weights={need_weights})[0],
        cross(x, y, need_weights={need_weights})[0],
    )
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
