"""The mechanisms that are trained on recall, in one table, and how much each caches.

Widths are chosen so that all models have the same number of parameters, within 5 percent of
softmax's 7,168.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.arguments import require_size
from attention.cached.latent import LatentAttention
from attention.cost import dense, linear, sparse
from attention.fused import fused_attention
from attention.linear.delta_rule import (
    GatedDeltaNetAttention,
    decayed_linear_attention,
    of_length_1,
)
from attention.linear.linear_transformer import linear_attention
from attention.linear.linformer import Linformer
from attention.linear.performer import Performer
from attention.linear.random_features import random_feature_attention
from attention.mechanism import Mechanism
from attention.multihead import MultiHeadAttention
from attention.sparse.compressed import CompressedAttention
from attention.sparse.hashing import ReformerAttention
from attention.sparse.strided import strided_attention
from attention.sparse.union import sparse_attention
from attention.trained.recall.data import MOST
from attention.trained.recall.model import RecallModel

D_MODEL, N_HEADS = 32, 2
HASHED = {"n_buckets": 8, "n_rounds": 1, "chunk_length": 8}


def multi_head(function: Callable[..., Tensor], d_model: int = D_MODEL) -> MultiHeadAttention:
    """`MultiHeadAttention` that attends with a function which hides the future by itself."""
    attend = Mechanism(function, hides_future=True)
    return MultiHeadAttention(d_model, N_HEADS, bias=False, attend=attend)


def decaying(*alphas: float) -> MultiHeadAttention:
    """Linear attention in which each head's state keeps the share α of itself at every token."""
    alpha = torch.tensor(alphas)[None, :, None]

    def decay(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        output, _ = decayed_linear_attention(query, key, value, alpha.to(query), mask)
        return output

    return multi_head(decay)


def sum_after_silu() -> MultiHeadAttention:
    """The delta layer with a plain sum for a rule: SiLU, queries and keys of length 1, no gate."""

    def plain(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        query, key, value = (F.silu(y) for y in (query, key, value))
        query, key = of_length_1(query), of_length_1(key)
        output, _ = decayed_linear_attention(query, key, value, key.new_ones(1, 1, 1), mask)
        return output

    return multi_head(plain)


def delta_rule() -> GatedDeltaNetAttention:
    """The gated delta rule without its decay: α = exp(-exp(log_rate) · …) = 1."""
    attention = GatedDeltaNetAttention(D_MODEL, N_HEADS, bias=False)
    attention.log_rate.requires_grad_(False).fill_(-math.inf)
    return attention


def random_features() -> MultiHeadAttention:
    """Random Feature Attention with 32 random rows, a sine and a cosine of each."""
    projection = torch.randn(32, D_MODEL // N_HEADS)

    def mechanism(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        rows = projection.to(query)
        return random_feature_attention(query, key, value, rows, mask, causal=True, scale=2.0)

    return multi_head(mechanism)


def keys_for_values() -> MultiHeadAttention:
    """One projection for keys and values, so that the keys are what is summed."""

    def one_row(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        return fused_attention(query, key, key, mask, causal=True)

    attention = multi_head(one_row, 36)
    attention.w_v = nn.Identity()
    return attention


class Contender(NamedTuple):
    """How a model with the mechanism is made, and how many numbers it caches of n pairs."""

    make: Callable[[], RecallModel]
    cache: Callable[[int], int]


def drawn_last(make: Callable[[int], nn.Module], d_model: int = D_MODEL) -> MultiHeadAttention:
    """`MultiHeadAttention` with an `attend` that is made from d_key.

    A seed draws the projections first, as it did for the stored table.
    """
    attention = MultiHeadAttention(d_model, N_HEADS, bias=False)
    attention.attend = make(attention.d_key)
    return attention


def performer(n_features: int) -> Contender:
    """`Performer` with its features drawn once."""
    make = partial(Performer, n_features=n_features)
    return Contender(
        lambda: RecallModel(drawn_last(make), causal=True),
        lambda n: linear.random_features(n, D_MODEL, N_HEADS, n_features).cache,
    )


def state_alone(make: Callable[[], nn.Module]) -> Contender:
    """A layer that keeps one matrix of d_key × d_key numbers for each head."""
    return Contender(lambda: RecallModel(make()), lambda n: linear.decay(n, D_MODEL, N_HEADS).cache)


def in_window(window: int, n_sinks: int = 0) -> Contender:
    """The last `window` tokens and the first n_sinks."""
    attend = partial(
        sparse_attention, window=window, global_tokens=range(n_sinks), causal=True, block=16
    )
    return Contender(
        lambda: RecallModel(multi_head(attend)),
        lambda n: sparse.sinks(n, D_MODEL, N_HEADS, window, n_sinks).cache,
    )


def in_entries(block: int, d_model: int = D_MODEL, window: int = 8) -> Contender:
    """An entry for each `block` pairs, and the last `window` tokens as they are."""
    make = partial(CompressedAttention, block=block, window=window)
    return Contender(
        lambda: RecallModel(drawn_last(make, d_model)),
        lambda n: sparse.compressed(n, d_model, N_HEADS, block, window).cache,
    )


# A mechanism that costs fewer parameters than four square matrices is made wider, and one that
# costs more is made narrower.
MECHANISMS = {
    "softmax": Contender(
        lambda: RecallModel(multi_head(partial(fused_attention, causal=True))),
        lambda n: dense.multi_head(n, D_MODEL, N_HEADS).cache,
    ),
    "softmax, learned positions": Contender(
        lambda: RecallModel(multi_head(partial(fused_attention, causal=True), 26), positions=True),
        lambda n: dense.multi_head(n, 26, N_HEADS).cache,
    ),
    "grouped-query, 1 key head": Contender(
        lambda: RecallModel(MultiHeadAttention(36, N_HEADS, n_kv_heads=1, bias=False), causal=True),
        lambda n: dense.grouped_query(n, 36, N_HEADS, 1).cache,
    ),
    "keys for values": Contender(
        lambda: RecallModel(keys_for_values()),
        lambda n: dense.multi_head(n, 36, N_HEADS).cache // 2,
    ),
    "latent, 8 numbers": Contender(
        lambda: RecallModel(LatentAttention(36, N_HEADS, 8, bias=False), causal=True),
        lambda n: dense.latent(n, 36, N_HEADS, 8).cache,
    ),
    "window 8": in_window(8),
    "window 16": in_window(16),
    "window 12, 4 sinks": in_window(12, n_sinks=4),
    "strided 8": Contender(
        lambda: RecallModel(multi_head(partial(strided_attention, stride=8))),
        lambda n: sparse.strided(n, D_MODEL, N_HEADS, 8).cache,
    ),
    "compressed by 4, window 8": in_entries(4),
    "compressed by 16, window 8": in_entries(16, 30),
    "LSH, 8 buckets": Contender(
        lambda: RecallModel(ReformerAttention(36, N_HEADS, **HASHED, bias=False), causal=True),
        lambda n: linear.reformer(n, 36, N_HEADS, **HASHED).cache,
    ),
    "linear": Contender(
        lambda: RecallModel(multi_head(partial(linear_attention, causal=True))),
        lambda n: linear.linear(n, D_MODEL, N_HEADS).cache,
    ),
    "Performer, 16 features": performer(16),
    "Performer, 64 features": performer(64),
    "random features, 64": Contender(
        lambda: RecallModel(random_features()),
        lambda n: linear.random_features(n, D_MODEL, N_HEADS, 64).cache,
    ),
    # Linformer is not causal, so no model that writes could have it. Here it reads no answer from
    # ahead.
    "Linformer, 16 mixtures": Contender(
        lambda: RecallModel(drawn_last(lambda _: Linformer(max_length=MOST, proj_len=16), 24)),
        lambda n: linear.linformer(n, 24, N_HEADS, 16, max_length=MOST).cache,
    ),
    "sum after SiLU": state_alone(sum_after_silu),
    "decay": state_alone(lambda: decaying(1 - 1 / 32, 1 - 1 / 64)),  # RetNet's first two heads
    "fast decay": state_alone(lambda: decaying(1 - 1 / 8, 1 - 1 / 16)),
    "delta rule": state_alone(delta_rule),
    "gated delta rule": state_alone(lambda: GatedDeltaNetAttention(D_MODEL, N_HEADS, bias=False)),
}


def cache_size(mechanism: str, n_pairs: int) -> int:
    """How many numbers the layer must cache of n_pairs to answer what comes after them.

    Args:
        mechanism: one of `MECHANISMS`.
        n_pairs: how many pairs were written.

    Raises:
        ValueError: there is no such mechanism.

    Source:
        `attention.cost`, each mechanism's `Cost.cache`.

    Example:
        >>> from attention.trained.recall import cache_size
        >>> [cache_size(each, 64) for each in ("softmax", "latent, 8 numbers", "linear")]
        [4096, 512, 544]
    """
    require_mechanism(mechanism)
    require_size("n_pairs", n_pairs)
    return MECHANISMS[mechanism].cache(n_pairs)


def require_mechanism(mechanism: str) -> None:
    if mechanism not in MECHANISMS:
        can_be = "; ".join(MECHANISMS)
        raise ValueError(f"there is no mechanism {mechanism!r}; it can be one of: {can_be}")
