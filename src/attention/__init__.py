"""Multi-head attention in PyTorch, one idea per module: what "Attention, Head by Head" builds."""

from attention.dot_product import scaled_dot_product_attention
from attention.embedding import SinusoidalPositionalEncoding, TokenEmbedding
from attention.example import SENTENCES, RunningExample, running_example
from attention.heads import merge_heads, split_heads
from attention.masks import causal_mask, padding_mask
from attention.multihead import MultiHeadAttention
from attention.per_head import PerHeadAttention
from attention.text import Vocabulary, tokenize

__all__ = [
    "SENTENCES",
    "MultiHeadAttention",
    "PerHeadAttention",
    "RunningExample",
    "SinusoidalPositionalEncoding",
    "TokenEmbedding",
    "Vocabulary",
    "causal_mask",
    "merge_heads",
    "padding_mask",
    "running_example",
    "scaled_dot_product_attention",
    "split_heads",
    "tokenize",
]
