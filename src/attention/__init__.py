"""Attention in PyTorch, one idea per module: what "Attention, Head by Head" builds and teaches."""

from typing import TYPE_CHECKING, Any

from attention.cached.grouped_query import grouped_attention, pool_kv_heads
from attention.cached.key_value_cache import KeyValueCache
from attention.cached.latent import LatentAttention, LatentCache
from attention.cached.rolling_cache import RollingCache
from attention.dot_product import DotProduct, scaled_dot_product_attention
from attention.embedding import SinusoidalPositionalEncoding, TokenEmbedding
from attention.fused import fused_attention
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
from attention.sparse.compressed import CompressedAttention, compressed_attention
from attention.sparse.fixed import fixed_attention, fixed_mask
from attention.sparse.global_tokens import global_mask
from attention.sparse.hashing import ReformerAttention, lsh_attention, lsh_buckets
from attention.sparse.random_keys import draw_random_keys, random_mask
from attention.sparse.selection import (
    IndexedAttention,
    LightningIndexer,
    indexer_loss,
    moba_attention,
    selected_attention,
)
from attention.sparse.sinks import sink_mask
from attention.sparse.strided import strided_attention, strided_mask
from attention.sparse.union import sparse_attention
from attention.sparse.window import sliding_window_mask
from attention.text import Vocabulary, tokenize
from attention.tiled import tiled_attention
from attention.transformer.decoder import Decoder, DecoderLayer
from attention.transformer.decoder_only import DecoderOnly
from attention.transformer.encoder import Encoder, EncoderLayer
from attention.transformer.encoder_decoder import EncoderDecoder, TransformerOutput
from attention.transformer.feed_forward import FeedForward
from attention.transformer.qk_norm import QKNorm, QKSequential

if TYPE_CHECKING:
    from attention.example import SENTENCES, RunningExample, running_example

# The running example, and what the modules above define.
EXAMPLE = ("SENTENCES", "RunningExample", "running_example")
__all__ = sorted(
    {
        name
        for name, value in globals().items()
        if "attention." in str(getattr(value, "__module__", ""))
    }
    | set(EXAMPLE)
)


def __getattr__(name: str) -> Any:
    """Import the running example only when it is asked for: it brings the trained model with it."""
    if name in EXAMPLE:
        from attention import example

        return getattr(example, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
