"""Attention in PyTorch, one idea per module: what "Attention, Head by Head" builds and teaches."""

from typing import TYPE_CHECKING, Any

from attention.cached.grouped_query import GroupedQueryAttention, grouped_attention
from attention.cached.key_value_cache import KeyValueCache
from attention.cached.latent import LatentAttention, LatentCache
from attention.cached.rolling_cache import RollingCache
from attention.dot_product import DotProduct, fused_attention, scaled_dot_product_attention
from attention.embedding import SinusoidalPositionalEncoding, TokenEmbedding
from attention.heads import merge_heads, split_heads
from attention.linear.delta_rule import (
    GatedDeltaNetAttention,
    decayed_linear_attention,
    gated_delta_rule,
    gated_delta_rule_step,
)
from attention.linear.feature_maps import kernel_attention
from attention.linear.linear_transformer import (
    elu_plus_one,
    linear_attention,
    linear_attention_step,
)
from attention.linear.linformer import Linformer, linformer_attention
from attention.linear.performer import (
    Performer,
    orthogonal_projection,
    performer_attention,
    positive_features,
)
from attention.linear.random_features import fourier_features, random_feature_attention
from attention.masks import causal_mask, padding_mask
from attention.mechanism import HeadGate, Mechanism
from attention.multihead import MultiHeadAttention
from attention.per_head import PerHeadAttention
from attention.positions.learned import LearnedPositions
from attention.positions.linear_bias import LinearBias
from attention.positions.rotary import Rotary
from attention.recurrent.additive import AdditiveAttention
from attention.recurrent.encoder_decoder import BahdanauDecoder, BidirectionalEncoder, LuongDecoder
from attention.recurrent.local import LocalAttention
from attention.recurrent.luong import LuongAttention
from attention.sparse.blocks import attend_in_blocks
from attention.sparse.fixed import fixed_attention, fixed_mask
from attention.sparse.global_tokens import global_mask
from attention.sparse.hashing import ReformerAttention, lsh_attention, lsh_buckets
from attention.sparse.random_keys import draw_random_keys, random_mask
from attention.sparse.sinks import sink_mask
from attention.sparse.strided import strided_attention, strided_mask
from attention.sparse.union import sparse_attention
from attention.sparse.window import sliding_window_mask
from attention.text import Vocabulary, tokenize
from attention.tiled import tiled_attention
from attention.transformer.decoder import Decoder, DecoderLayer
from attention.transformer.encoder import Encoder, EncoderLayer
from attention.transformer.encoder_decoder import EncoderDecoder, TransformerOutput
from attention.transformer.feed_forward import FeedForward
from attention.transformer.qk_norm import QKNorm, QKSequential

if TYPE_CHECKING:
    from attention.example import SENTENCES, RunningExample, running_example

__all__ = [
    "SENTENCES",
    "AdditiveAttention",
    "BahdanauDecoder",
    "BidirectionalEncoder",
    "Decoder",
    "DecoderLayer",
    "DotProduct",
    "Encoder",
    "EncoderDecoder",
    "EncoderLayer",
    "FeedForward",
    "GatedDeltaNetAttention",
    "GroupedQueryAttention",
    "HeadGate",
    "KeyValueCache",
    "LatentAttention",
    "LatentCache",
    "LearnedPositions",
    "LinearBias",
    "Linformer",
    "LocalAttention",
    "LuongAttention",
    "LuongDecoder",
    "Mechanism",
    "MultiHeadAttention",
    "PerHeadAttention",
    "Performer",
    "QKNorm",
    "QKSequential",
    "ReformerAttention",
    "RollingCache",
    "Rotary",
    "RunningExample",
    "SinusoidalPositionalEncoding",
    "TokenEmbedding",
    "TransformerOutput",
    "Vocabulary",
    "attend_in_blocks",
    "causal_mask",
    "decayed_linear_attention",
    "draw_random_keys",
    "elu_plus_one",
    "fixed_attention",
    "fixed_mask",
    "fourier_features",
    "fused_attention",
    "gated_delta_rule",
    "gated_delta_rule_step",
    "global_mask",
    "grouped_attention",
    "kernel_attention",
    "linear_attention",
    "linear_attention_step",
    "linformer_attention",
    "lsh_attention",
    "lsh_buckets",
    "merge_heads",
    "orthogonal_projection",
    "padding_mask",
    "performer_attention",
    "positive_features",
    "random_feature_attention",
    "random_mask",
    "running_example",
    "scaled_dot_product_attention",
    "sink_mask",
    "sliding_window_mask",
    "sparse_attention",
    "split_heads",
    "strided_attention",
    "strided_mask",
    "tiled_attention",
    "tokenize",
]


def __getattr__(name: str) -> Any:
    """Import the running example when it is asked for: the trained model comes with it."""
    if name in ("SENTENCES", "RunningExample", "running_example"):
        from attention import example

        return getattr(example, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
