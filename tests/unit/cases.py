"""Random cases of attention, and the reference that they are compared with."""

import math
from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import Tensor, nn

from attention import MultiHeadAttention, causal_mask, padding_mask

# How far two computations of the same numbers may lie apart, in units of the largest of them.
#
# In float64 the book promises 1e-6; rounding leaves less than 1e-12, so that 1e-10 is strict and
# never flickers. In the other types every stored number is rounded by up to eps/2 of itself. Six
# are stored on the way (projection, scaled query, score, weight, weighted sum, output). A sum adds
# what came in, and softmax turns an error of the score into the same relative error of the weight,
# so that the output is off by a handful of eps: 8 are allowed. The way back is as long again: 16.
ULPS, ULPS_OF_GRADIENTS = 8, 16


def assert_close(actual: Tensor, expected: Tensor, *, ulps: int = ULPS) -> None:
    """Compare with the tolerance of actual's type, relative to the largest expected number."""
    assert actual.shape == expected.shape
    assert actual.isfinite().all()
    eps = torch.finfo(actual.dtype).eps
    tolerance = 1e-10 if actual.dtype == torch.float64 else ulps * eps
    largest = max(1.0, expected.abs().max().item()) if expected.numel() else 1.0
    torch.testing.assert_close(
        actual.double(), expected.double(), rtol=0.0, atol=tolerance * largest
    )


@dataclass
class Case:
    """Inputs of multi-head attention; key and value are None where they default."""

    module: MultiHeadAttention
    query: Tensor
    key: Tensor | None
    value: Tensor | None
    mask: Tensor | None

    @property
    def inputs(self) -> list[Tensor]:
        return [x for x in (self.query, self.key, self.value) if x is not None]

    @property
    def scores_shape(self) -> tuple[int, int, int, int]:
        batch, n_queries, _ = self.query.shape
        n_keys = n_queries if self.key is None else self.key.shape[1]
        return batch, self.module.n_heads, n_queries, n_keys

    def to(self, dtype: torch.dtype) -> "Case":
        inputs = [
            x if x is None else x.detach().to(dtype) for x in (self.query, self.key, self.value)
        ]
        module = MultiHeadAttention(
            self.module.d_model, self.module.n_heads, bias=self.module.w_q.bias is not None
        )
        module.load_state_dict(self.module.state_dict())
        return Case(
            module.to(dtype), *(x if x is None else x.requires_grad_() for x in inputs), self.mask
        )


MASKS = ("none", "padding", "causal", "padding and causal", "matrix", "every head its own")


@st.composite
def cases(draw, *, empty_rows: bool = True, masks: tuple[str, ...] = MASKS) -> Case:
    """Draw random sizes, head counts, biases and masks; self-attention and cross-attention.

    empty_rows: whether some queries may have nothing to attend to.
    """
    batch, n_heads = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    d_model = n_heads * draw(st.integers(1, 4))
    n_queries = draw(st.integers(1, 6))
    kind = draw(st.sampled_from(("self", "cross", "cross, values apart")))
    n_keys = n_queries if kind == "self" else draw(st.integers(1, 6))
    bias, mask = draw(st.booleans()), draw(st.sampled_from(masks))
    rng = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))

    def vectors(length: int) -> Tensor:
        x = torch.randn(batch, length, d_model, dtype=torch.float64, generator=rng)
        return x.requires_grad_()

    query = vectors(n_queries)
    key = None if kind == "self" else vectors(n_keys)
    value = vectors(n_keys) if kind == "cross, values apart" else None
    module = MultiHeadAttention(d_model, n_heads, bias=bias).double()
    randomise(module, rng)
    mask = _mask(mask, batch, n_heads, n_queries, n_keys, rng)
    if mask is not None and not empty_rows:
        mask = mask.clone()
        mask[..., 0] |= ~mask.any(-1)
    return Case(module, query, key, value, mask)


def randomise(module: nn.Module, rng: torch.Generator) -> None:
    """Give every parameter, biases too, a size at which forgetting it cannot go unnoticed."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(generator=rng).div_(math.sqrt(parameter.shape[-1]))


def _mask(
    kind: str, batch: int, n_heads: int, n_queries: int, n_keys: int, rng: torch.Generator
) -> Tensor | None:
    lengths = torch.randint(0, n_keys + 1, (batch, 1), generator=rng)
    padding = padding_mask((torch.arange(n_keys) < lengths).long(), 0)
    causal = causal_mask(n_queries, n_keys)
    matrix = torch.rand(batch, n_heads, n_queries, n_keys, generator=rng) < 0.6
    return {
        "none": None,
        "padding": padding,
        "causal": causal,
        "padding and causal": padding & causal,
        "matrix": matrix[0, 0],
        "every head its own": matrix,
    }[kind]


def in_one_einsum(module: MultiHeadAttention, query, key=None, value=None, mask=None):
    """Multi-head attention without a split, a merge or a transpose: axes have names instead.

    b batch, h heads, q query, k key, m and n d_model, d d_key.
    """
    key = query if key is None else key
    value = key if value is None else value
    heads, width = module.n_heads, module.d_model

    def project(x: Tensor, w: nn.Linear) -> Tensor:
        y = torch.einsum("bsm,hdm->bhsd", x, w.weight.view(heads, -1, width))
        return y if w.bias is None else y + w.bias.view(heads, 1, -1)

    q, k, v = project(query, module.w_q), project(key, module.w_k), project(value, module.w_v)
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(width / heads)
    exp = (scores - scores.amax(-1, keepdim=True)).exp()
    if mask is not None:
        exp = exp * mask
    total = exp.sum(-1, keepdim=True)
    weights = exp / torch.where(total == 0, 1.0, total)
    output = torch.einsum(
        "bhqk,bhkd,nhd->bqn", weights, v, module.w_o.weight.view(width, heads, -1)
    )
    return output if module.w_o.bias is None else output + module.w_o.bias, weights


def gradients(outputs: list[Tensor], inputs: list[Tensor]) -> list[Tensor]:
    """The gradients of a random weighted sum of the outputs, the same weights for equal shapes."""
    rng = torch.Generator().manual_seed(7)
    pull = [torch.randn(y.shape, dtype=torch.float64, generator=rng).to(y.dtype) for y in outputs]
    return list(torch.autograd.grad(outputs, inputs, pull))


def assert_gradients_close(
    output: Tensor, expected: Tensor, inputs: list[Tensor], *, ulps: int = ULPS
) -> None:
    """Compare what two outputs send back to the same inputs."""
    ours, theirs = gradients([output], inputs), gradients([expected], inputs)
    for actual, wanted in zip(ours, theirs, strict=True):
        assert_close(actual, wanted, ulps=ulps)
