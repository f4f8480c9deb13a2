"""Every public mechanism, called in one way: what tests of hostile inputs and of tools go through.

A function takes query, key, value and a mask, with four heads; a module takes the tensors that its
row makes. All sizes are small, and `N` tokens are no multiple of any block, chunk or tile.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

import attention as a

BATCH, HEADS, N, D_KEY = 2, 4, 11, 6
D_MODEL = HEADS * D_KEY


@dataclass
class Function:
    """`call(query, key, value, mask)` -> output (batch, heads, query, d_value)."""

    call: Callable[..., Tensor]
    causal: bool = False
    reads: tuple[int, ...] = (0, 1, 2)  # of query, key and value; no other gets a gradient


def well_formed(x: object) -> Tensor:
    """x, or a tensor with the axes that it should have: what the other arguments are made for."""
    fits = isinstance(x, Tensor) and x.is_floating_point() and x.ndim == 4 and x.shape[-1] > 0
    return x if fits else torch.zeros(BATCH, HEADS, N, D_KEY)


# Made once, as a module keeps them: a compiled graph makes no generator.
PROJECTION = a.orthogonal_projection(8, D_KEY, generator=torch.Generator().manual_seed(0))
E_AND_F = torch.randn(2, 5, 60, generator=torch.Generator().manual_seed(0)) / 60**0.5


def mixtures(x: object) -> Tensor:
    """Linformer's E and F, of the dtype of x."""
    return E_AND_F.to(well_formed(x).dtype)


def in_blocks(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
    """Two blocks, each of which lists all keys."""
    n = well_formed(query).shape[2]
    block = (n + 1) // 2
    listed = torch.arange(n).expand(2, n)
    return a.attend_in_blocks(query, key, value, listed, torch.ones(2, block, n) == 1, mask)


def hashed(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
    """Buckets by position; the keys are the queries, so that `key` stands for nothing."""
    batch, heads, n, _ = well_formed(query).shape
    buckets = torch.arange(n).expand(batch, heads, 2, n) // torch.tensor([[3], [4]])
    return a.lsh_attention(query, value, buckets, mask, chunk_length=4)


def chosen(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
    """Three blocks of two keys for each query: before its own, its own, and after it."""
    batch, heads, n, _ = well_formed(query).shape
    last = (well_formed(key).shape[2] - 1) // 2
    own = torch.arange(n)[:, None] // 2 + torch.tensor([-1, 0, 1])
    # None twice: at the ends a block far away takes the place of one that is not there.
    own = torch.where(own < 0, 2, torch.where(own > last, last - 2, own))
    selected = own.expand(batch, heads, n, 3)
    return a.selected_attention(query, key, value, selected, mask, block=2)


def compressed(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
    """Entries of three tokens, each their mean, and a window of two."""
    gate = torch.zeros_like(well_formed(key)[..., :1])
    return a.compressed_attention(query, key, value, gate, mask, block=3, window=2)


def gates(query: object) -> tuple[Tensor, Tensor]:
    """β and α of the delta rule, numbers that every dtype holds exactly."""
    x = well_formed(query)
    beta, alpha = torch.tensor([[0.125, 0.25, 0.0625], [1.0, 0.5, 0.875]], dtype=x.dtype)
    tokens = torch.arange(x.shape[2]) % 3
    return beta[tokens][None, None], alpha[tokens][None, None]


def one_token(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
    """The recurrent form of linear attention, token by token."""
    state, outputs = None, []
    for token in zip(*(x.split(1, dim=2) for x in (query, key, value)), strict=True):
        output, state = a.linear_attention_step(*token, state)
        outputs.append(output)
    return torch.cat(outputs, dim=2)


FUNCTIONS = {
    "scaled_dot_product_attention": Function(
        lambda *qkvm: a.scaled_dot_product_attention(*qkvm)[0]
    ),
    "fused_attention": Function(a.fused_attention),
    "fused_attention, causal": Function(
        lambda *qkvm: a.fused_attention(*qkvm, causal=True), causal=True
    ),
    "grouped_attention": Function(lambda *qkvm: a.grouped_attention(*qkvm)[0]),
    "grouped_attention, fused": Function(
        lambda *qkvm: a.grouped_attention(*qkvm, need_weights=False)[0]
    ),
    "grouped_attention, fused, causal": Function(
        lambda *qkvm: a.grouped_attention(*qkvm, causal=True, need_weights=False)[0], causal=True
    ),
    "tiled_attention": Function(lambda *qkvm: a.tiled_attention(*qkvm, tile=4)),
    "tiled_attention, causal": Function(
        lambda *qkvm: a.tiled_attention(*qkvm, tile=4, causal=True), causal=True
    ),
    "kernel_attention": Function(
        lambda *qkvm: a.kernel_attention(*qkvm, feature_map=a.elu_plus_one, chunk=4)
    ),
    "linear_attention": Function(lambda *qkvm: a.linear_attention(*qkvm, chunk=4)),
    "linear_attention, causal": Function(
        lambda *qkvm: a.linear_attention(*qkvm, causal=True, chunk=4),
        causal=True,
    ),
    "performer_attention": Function(
        lambda q, k, v, mask=None: a.performer_attention(q, k, v, PROJECTION, mask),
    ),
    "performer_attention, causal": Function(
        lambda q, k, v, mask=None: a.performer_attention(q, k, v, PROJECTION, mask, causal=True),
        causal=True,
    ),
    "random_feature_attention": Function(
        lambda q, k, v, mask=None: a.random_feature_attention(q, k, v, PROJECTION, mask),
    ),
    "decayed_linear_attention": Function(
        lambda q, k, v, mask=None: a.decayed_linear_attention(q, k, v, gates(q)[1], mask, chunk=4)[
            0
        ],
        causal=True,
    ),
    "gated_delta_rule": Function(
        lambda q, k, v, mask=None: a.gated_delta_rule(q, k, v, *gates(q), mask, chunk=4)[0],
        causal=True,
    ),
    "linformer_attention": Function(
        lambda q, k, v, mask=None: a.linformer_attention(q, k, v, *mixtures(q), mask),
    ),
    "sparse_attention": Function(
        lambda *qkvm: a.sparse_attention(*qkvm, window=4, global_tokens=[2], block=4),
    ),
    "sparse_attention, sinks": Function(
        lambda *qkvm: a.sparse_attention(
            *qkvm, window=3, global_tokens=range(2), causal=True, block=4
        ),
        causal=True,
    ),
    "strided_attention": Function(
        lambda *qkvm: a.strided_attention(*qkvm, stride=3),
        causal=True,
    ),
    "fixed_attention": Function(
        lambda *qkvm: a.fixed_attention(*qkvm, stride=3),
        causal=True,
    ),
    "attend_in_blocks": Function(in_blocks),
    "selected_attention": Function(chosen),
    "moba_attention": Function(lambda *qkvm: a.moba_attention(*qkvm, block=3, n_blocks=2)),
    "moba_attention, causal": Function(
        lambda *qkvm: a.moba_attention(*qkvm, block=3, n_blocks=2, causal=True), causal=True
    ),
    "compressed_attention": Function(compressed, causal=True),
    "lsh_attention": Function(hashed, reads=(0, 2)),
}


@dataclass
class Module:
    """`make()` and the tensors of one call; the first output is what tests compare."""

    make: Callable[[], nn.Module]
    inputs: Callable[[int], list[Tensor]]  # of a number of tokens
    options: dict = field(default_factory=dict)  # of the call
    one_graph: bool = True  # compiled, and exported with an open length; else its docstring says so

    def output(self, module: nn.Module, *inputs: Tensor) -> Tensor:
        output = module(*inputs, **self.options)
        return output[0] if isinstance(output, tuple) else output


def vectors(n: int, width: int = D_MODEL, seed: int = 0) -> Tensor:
    return torch.randn(BATCH, n, width, generator=torch.Generator().manual_seed(seed))


def ids(n: int) -> Tensor:
    return torch.randint(1, 9, (BATCH, n), generator=torch.Generator().manual_seed(0))


def tokens(n: int) -> list[Tensor]:
    return [vectors(n)]


def two_sequences(n: int) -> list[Tensor]:
    return [vectors(n), vectors(7, seed=1)]


FUSED = {"need_weights": False}
SIZES = {"d_model": D_MODEL, "n_heads": HEADS}
LAYER = SIZES | {"d_ff": 16}


def by_position() -> nn.Module:
    """Queries and keys turned, and scores biased."""
    attend = a.DotProduct(transform=a.Rotary(D_KEY), bias=a.LinearBias(HEADS))
    return a.MultiHeadAttention(**SIZES, attend=attend)


MODULES = {
    "TokenEmbedding": Module(lambda: a.TokenEmbedding(9, D_MODEL), lambda n: [ids(n)]),
    "SinusoidalPositionalEncoding": Module(
        lambda: a.SinusoidalPositionalEncoding(D_MODEL, max_length=60), tokens
    ),
    "LearnedPositions": Module(lambda: a.LearnedPositions(D_MODEL, max_length=60), tokens),
    "MultiHeadAttention": Module(lambda: a.MultiHeadAttention(**SIZES), two_sequences),
    "MultiHeadAttention, fused": Module(
        lambda: a.MultiHeadAttention(**SIZES), two_sequences, FUSED
    ),
    "MultiHeadAttention, causal": Module(
        lambda: a.MultiHeadAttention(**SIZES), tokens, FUSED | {"causal": True}
    ),
    "MultiHeadAttention, by position": Module(by_position, two_sequences),
    "MultiHeadAttention, by position, fused": Module(by_position, tokens, FUSED | {"causal": True}),
    "PerHeadAttention": Module(lambda: a.PerHeadAttention(**SIZES), two_sequences),
    "MultiHeadAttention, grouped": Module(
        lambda: a.MultiHeadAttention(**SIZES, n_kv_heads=2), two_sequences
    ),
    "MultiHeadAttention, grouped, causal": Module(
        lambda: a.MultiHeadAttention(**SIZES, n_kv_heads=2), tokens, FUSED | {"causal": True}
    ),
    "LatentAttention": Module(lambda: a.LatentAttention(**SIZES, d_latent=5), tokens),
    "LatentAttention, causal": Module(
        lambda: a.LatentAttention(**SIZES, d_latent=5), tokens, FUSED | {"causal": True}
    ),
    "LatentAttention, whole": Module(
        lambda: a.LatentAttention(
            **SIZES, d_latent=5, d_rotary=2, d_query_latent=6, d_key=4, norm=True
        ),
        tokens,
    ),
    "DecoderOnly": Module(
        lambda: a.DecoderOnly(
            9,
            **LAYER,
            n_layers=2,
            n_kv_heads=2,
            bias=False,
            gated=True,
            norm=nn.RMSNorm,
            attend=lambda: a.DotProduct(transform=a.Rotary(D_KEY)),
        ),
        lambda n: [ids(n)],
    ),
    "FeedForward": Module(lambda: a.FeedForward(D_MODEL, 16), tokens),
    "EncoderLayer": Module(lambda: a.EncoderLayer(**LAYER), tokens),
    "Encoder": Module(lambda: a.Encoder(**LAYER, n_layers=2, norm_first=True), tokens),
    "DecoderLayer": Module(lambda: a.DecoderLayer(**LAYER), two_sequences),
    "Decoder": Module(lambda: a.Decoder(**LAYER, n_layers=2), two_sequences, FUSED),
    "EncoderDecoder": Module(
        lambda: a.EncoderDecoder(9, 9, **LAYER, n_layers=1, max_length=60),
        lambda n: [ids(n), ids(7)],
    ),
    "Linformer": Module(
        lambda: a.MultiHeadAttention(**SIZES, attend=a.Linformer(max_length=60, proj_len=5)),
        tokens,
    ),
    "CompressedAttention": Module(
        lambda: a.MultiHeadAttention(
            **SIZES, attend=a.CompressedAttention(D_KEY, block=3, window=2)
        ),
        tokens,
        {"causal": True},
        one_graph=False,
    ),
    "Performer": Module(
        lambda: a.MultiHeadAttention(**SIZES, attend=a.Performer(D_KEY, n_features=8)),
        tokens,
        {"causal": True},
    ),
    "Mechanism": Module(
        lambda: a.MultiHeadAttention(**SIZES, attend=a.Mechanism(a.linear_attention)),
        two_sequences,
    ),
    "GatedDeltaNetAttention": Module(lambda: a.GatedDeltaNetAttention(**SIZES), tokens),
    "ReformerAttention": Module(
        lambda: a.ReformerAttention(**SIZES, n_buckets=4, n_rounds=2, chunk_length=4), tokens
    ),
    "LightningIndexer": Module(
        lambda: a.LightningIndexer(D_MODEL, n_index_heads=2, d_index=4), tokens
    ),
    "IndexedAttention": Module(
        lambda: a.IndexedAttention(**SIZES, n_index_heads=2, d_index=4, top_k=5),
        tokens,
        one_graph=False,
    ),
    "AdditiveAttention": Module(
        lambda: a.AdditiveAttention(D_MODEL, D_MODEL, hidden_dim=5), two_sequences
    ),
    "LuongAttention": Module(lambda: a.LuongAttention(D_MODEL, D_MODEL), two_sequences),
    "LuongAttention, dot": Module(
        lambda: a.LuongAttention(D_MODEL, D_MODEL, score="dot"), two_sequences
    ),
    "LocalAttention": Module(
        lambda: a.LocalAttention(D_MODEL, D_MODEL, half_width=2), two_sequences
    ),
    "BidirectionalEncoder": Module(
        lambda: a.BidirectionalEncoder(9, 5, 12), lambda n: [ids(n)], one_graph=False
    ),
    "BahdanauDecoder": Module(
        lambda: a.BahdanauDecoder(9, 5, D_MODEL, 6), lambda n: [ids(4), vectors(n)]
    ),
    "LuongDecoder": Module(
        lambda: a.LuongDecoder(9, 5, D_MODEL, 6), lambda n: [ids(4), vectors(n)]
    ),
}

# What takes no queries and keys. `KeyValueCache` and the step of linear attention are tried apart.
OTHERS = {
    *("KeyValueCache", "RunningExample", "SENTENCES", "TransformerOutput", "Vocabulary"),
    *("LatentCache", "RollingCache", "sink_mask"),
    *("causal_mask", "draw_random_keys", "elu_plus_one", "fixed_mask", "fourier_features"),
    *("global_mask", "lsh_buckets", "merge_heads", "orthogonal_projection", "padding_mask"),
    *("positive_features", "random_mask", "running_example", "sliding_window_mask"),
    *("DotProduct", "HeadGate"),  # parts of MultiHeadAttention; no state holds a gate
    *("LinearBias", "QKNorm", "QKSequential", "Rotary"),  # parts of DotProduct
    *("indexer_loss", "split_heads", "strided_mask", "tokenize", "linear_attention_step"),
    *("gated_delta_rule_step", "pool_kv_heads"),
}
