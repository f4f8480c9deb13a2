"""Stacks of layers for the fair comparison: all alike but for what is done to the state.

A layer is pre-normalised and added to its input. It attends with softmax, with linear attention, or
through a state under one of four rules; the four share SiLU, queries and keys of length 1, and the
width of a head. So what differs between them is what the state does before the next token is
written: it does nothing, it fades, it corrects what is stored under the key, or it does both.
"""

import math
from collections.abc import Sequence
from functools import partial

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from attention.cost import dense, linear
from attention.fused import fused_attention
from attention.heads import merge, split
from attention.linear.delta_rule import carry_state, of_length_1
from attention.linear.linear_transformer import linear_attention
from attention.trained.recall.mechanisms import D_MODEL, N_HEADS, multi_head
from attention.trained.recall.model import RecallModel

RULES = {  # whether a token corrects what is stored under its key, and whether the state fades
    "sum": (False, False),
    "gated decay": (False, True),
    "delta rule": (True, False),
    "gated delta rule": (True, True),
}
LAYERS = ("softmax", "linear", *RULES)
WIDTH = 4  # tokens that a short convolution sees


class StateAttention(nn.Module):
    """Causal attention through one matrix for each head, under one of `RULES`.

    Parameters by name: `w_q`, `w_k`, `w_v`, `w_o`; `w_beta` where the rule corrects, `w_alpha`
    where the state fades, as in `GatedDeltaNetAttention`, whose rates are learned from 1 here.
    """

    def __init__(self, rule: str, d_model: int) -> None:
        super().__init__()
        corrects, fades = RULES[rule]
        self.w_q, self.w_k, self.w_v, self.w_o = (
            nn.Linear(d_model, d_model, bias=False) for _ in range(4)
        )
        self.w_beta = nn.Linear(d_model, N_HEADS) if corrects else None
        self.w_alpha = nn.Linear(d_model, N_HEADS) if fades else None
        if fades:  # at the start a state keeps from 0.9 to 0.999 of itself at a token
            steps = torch.empty(N_HEADS).uniform_(math.log(0.001), math.log(0.1)).exp()
            with torch.no_grad():
                self.w_alpha.bias.copy_(steps.expm1().log())

    def forward(
        self, x: Float[Tensor, "batch seq d_model"], *, causal: bool = True
    ) -> tuple[Float[Tensor, "batch seq d_model"], None]:
        """Attend from every token to those up to it."""
        q, k, v = (F.silu(split(w(x), N_HEADS)) for w in (self.w_q, self.w_k, self.w_v))
        beta = None if self.w_beta is None else self.w_beta(x).sigmoid().mT
        alpha = None if self.w_alpha is None else (-F.softplus(self.w_alpha(x).mT)).exp()
        output, _ = carry_state(of_length_1(q), of_length_1(k), v, beta, alpha, None, None)
        return self.w_o(merge(output)), None


class ShortConvolution(nn.Module):
    """Each number of a row becomes a learned sum of its values in this row and the three before.

    At the start it changes nothing.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(d_model, 1, WIDTH))
        with torch.no_grad():
            self.weight[..., -1] = 1.0

    def forward(self, x: Float[Tensor, "batch seq d_model"]) -> Float[Tensor, "batch seq d_model"]:
        return F.conv1d(F.pad(x.mT, (WIDTH - 1, 0)), self.weight, groups=len(self.weight)).mT


class Stack(nn.Module):
    """Layers in a stack: x + attention(convolution(norm(x))), each applied to what is below.

    Args:
        layers: what attends in each, from the lowest; some of `LAYERS`.
        d_model: the width of a row, of 2 heads.
        convolution: whether each has a short convolution before it.
    """

    def __init__(
        self, layers: Sequence[str], *, d_model: int = D_MODEL, convolution: bool = False
    ) -> None:
        super().__init__()
        self.d_model = d_model
        self.layers = nn.ModuleList(make_layer(name, d_model) for name in layers)
        self.norms = nn.ModuleList(nn.RMSNorm(d_model) for _ in layers)
        self.convolutions = nn.ModuleList(
            ShortConvolution(d_model) if convolution else nn.Identity() for _ in layers
        )

    def forward(
        self, x: Float[Tensor, "batch seq d_model"], *, causal: bool = True
    ) -> tuple[Float[Tensor, "batch seq d_model"], None]:
        """What all layers add to x; every one hides the future by itself."""
        below = x
        for norm, convolution, layer in zip(
            self.norms, self.convolutions, self.layers, strict=True
        ):
            below = below + layer(convolution(norm(below)))[0]
        return below - x, None


def make_layer(name: str, d_model: int) -> nn.Module:
    if name in RULES:
        return StateAttention(name, d_model)
    function = {"softmax": fused_attention, "linear": linear_attention}[name]
    return multi_head(partial(function, causal=True), d_model)


class TokensApart(RecallModel):
    """`RecallModel` in which a key and its value are two tokens, one after the other.

    Source:
        Arora et al. 2023: their task has this form, and a layer that is to answer must first join
        each value to the key before it.
    """

    def embed(
        self,
        keys: Int64[Tensor, "batch pairs"],
        values: Int64[Tensor, "batch pairs"],
        asked: Int64[Tensor, "batch questions"],
    ) -> Float[Tensor, "batch seq d_model"]:
        """The rows as attention sees them, (batch, 2 · pairs + questions, d_model)."""
        written = torch.stack((self.key(keys), self.value(values)), dim=2).flatten(1, 2)
        return torch.cat((written, self.key(asked)), dim=1)


def numbers_kept(
    layers: Sequence[str], n_tokens: int, *, d_model: int = D_MODEL, convolution: bool = False
) -> int:
    """How many numbers a stack keeps of n_tokens, including those of its convolutions.

    Source:
        `attention.cost`, as `cache_size` of one layer.

    Example:
        >>> from attention.trained.recall.stack import numbers_kept
        >>> numbers_kept(["delta rule"] * 2, 64)
        1024
        >>> numbers_kept(["softmax"] * 2, 64)
        8192
    """
    count = {"softmax": dense.multi_head, "linear": linear.linear}
    kept = sum(count.get(name, linear.decay)(n_tokens, d_model, N_HEADS).cache for name in layers)
    return kept + convolution * len(layers) * (WIDTH - 1) * d_model
