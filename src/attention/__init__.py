"""Attention in PyTorch, one idea per module: what "Attention, Head by Head" builds and teaches."""

from attention.additive import AdditiveAttention
from attention.blocks import attend_in_blocks
from attention.decoder import Decoder
from attention.decoder_layer import DecoderLayer
from attention.dot_product import fused_attention, scaled_dot_product_attention
from attention.embedding import SinusoidalPositionalEncoding, TokenEmbedding
from attention.encoder import Encoder
from attention.encoder_layer import EncoderLayer
from attention.example import SENTENCES, RunningExample, running_example
from attention.feed_forward import FeedForward
from attention.fixed import fixed_attention, fixed_mask
from attention.grouped import GroupedQueryAttention
from attention.heads import merge_heads, split_heads
from attention.kernel import kernel_attention
from attention.key_value_cache import KeyValueCache
from attention.linear import elu_plus_one, linear_attention, linear_attention_step
from attention.linformer import LinformerAttention, linformer_attention
from attention.local_attention import LocalAttention
from attention.lsh import lsh_attention
from attention.luong import LuongAttention
from attention.masks import causal_mask, padding_mask
from attention.multihead import MultiHeadAttention
from attention.online import tiled_attention
from attention.per_head import PerHeadAttention
from attention.performer import orthogonal_projection, performer_attention, positive_features
from attention.random_feature import fourier_features, random_feature_attention
from attention.random_keys import draw_random_keys, random_mask
from attention.recurrent import BidirectionalEncoder
from attention.recurrent_decoders import BahdanauDecoder, LuongDecoder
from attention.reformer import ReformerAttention, lsh_buckets
from attention.shared_heads import grouped_attention
from attention.sparse import sparse_attention
from attention.sparse_patterns import global_mask, sliding_window_mask
from attention.strided import strided_attention, strided_mask
from attention.text import Vocabulary, tokenize
from attention.transformer import EncoderDecoder, TransformerOutput

__all__ = [
    "SENTENCES",
    "AdditiveAttention",
    "BahdanauDecoder",
    "BidirectionalEncoder",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderDecoder",
    "EncoderLayer",
    "FeedForward",
    "GroupedQueryAttention",
    "KeyValueCache",
    "LinformerAttention",
    "LocalAttention",
    "LuongAttention",
    "LuongDecoder",
    "MultiHeadAttention",
    "PerHeadAttention",
    "ReformerAttention",
    "RunningExample",
    "SinusoidalPositionalEncoding",
    "TokenEmbedding",
    "TransformerOutput",
    "Vocabulary",
    "attend_in_blocks",
    "causal_mask",
    "draw_random_keys",
    "elu_plus_one",
    "fixed_attention",
    "fixed_mask",
    "fourier_features",
    "fused_attention",
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
    "sliding_window_mask",
    "sparse_attention",
    "split_heads",
    "strided_attention",
    "strided_mask",
    "tiled_attention",
    "tokenize",
]
