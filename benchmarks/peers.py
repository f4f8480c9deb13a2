"""The book's mechanisms beside those of other packages, in one run: `python -m benchmarks.peers`.

The packages are the dependency group `peers`, in an environment of its own; nothing else needs it.

    pip install --group peers . && python -m benchmarks.peers [SIZE …]

Random numbers, batch 1, 8 heads of 64 columns, float32, one thread; forward without gradients, and
forward with backward. Where both compute the same, the outputs are compared first. Times come in
rounds (`benchmarks.timing`): the ratio ours / peer is taken within the round, and its median and
quartiles are printed. A ratio above 1.05 has its reason in the docstring that the row names.
"""

import argparse
import platform
import statistics
import warnings

import torch
import torch.nn.functional as F
from linear_attention_transformer.linear_attention_transformer import causal_linear_attn
from linformer import LinformerSelfAttention
from local_attention import LocalAttention as LocalWindow
from performer_pytorch.performer_pytorch import FastAttention
from performer_pytorch.performer_pytorch import linear_attention as sums_of_features
from reformer_pytorch import LSHAttention
from torch import nn

from attention import (
    DecoderLayer,
    DotProduct,
    EncoderLayer,
    LinearBias,
    Linformer,
    MultiHeadAttention,
    Rotary,
    causal_mask,
    fused_attention,
    grouped_attention,
    linear_attention,
    lsh_attention,
    lsh_buckets,
    performer_attention,
    sparse_attention,
    tiled_attention,
)
from benchmarks.timing import round_by_round

SIZES = (1024, 4096)
N_HEADS, D_KEY = 8, 64
D_MODEL = N_HEADS * D_KEY
ROUNDS = {"least": 5, "most": 31, "seconds": 4.0}  # per row and mode
SAME = 1e-4  # how far outputs of the same definition lie apart at most


def heads(n, kv_heads=N_HEADS):
    query = torch.randn(1, N_HEADS, n, D_KEY)
    return [query, *torch.randn(2, 1, kv_heads, n, D_KEY).unbind(0)]


def multi_head(*, need_weights, causal):
    """torch.nn.MultiheadAttention, weights per head."""

    def prepare(n):
        peer = nn.MultiheadAttention(D_MODEL, N_HEADS, batch_first=True)
        ours = MultiHeadAttention.from_torch(peer)
        # As torch's module wants it: additive, and the flag beside it.
        mask = nn.Transformer.generate_square_subsequent_mask(n) if causal else None
        options = {"need_weights": need_weights, "average_attn_weights": False}
        return (
            lambda x: ours(x, causal=causal, need_weights=need_weights)[0],
            lambda x: peer(x, x, x, attn_mask=mask, is_causal=causal, **options)[0],
            [torch.randn(1, n, D_MODEL)],
            *(ours, peer),
        )

    return prepare


def fused(*, causal, as_a_mask=False):
    """F.scaled_dot_product_attention."""

    def prepare(n):
        mask = causal_mask(n) if as_a_mask else None
        return (
            lambda q, k, v: fused_attention(q, k, v, mask, causal=causal and mask is None),
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
            heads(n),
        )

    return prepare


def grouped(n):
    """F.scaled_dot_product_attention, enable_gqa and is_causal."""
    return (
        lambda q, k, v: grouped_attention(q, k, v, causal=True, need_weights=False)[0],
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True),
        heads(n, kv_heads=2),
    )


def encoder_layer(n):
    """torch.nn.TransformerEncoderLayer."""
    peer = nn.TransformerEncoderLayer(D_MODEL, N_HEADS, 2048, dropout=0.0, batch_first=True)
    ours = EncoderLayer.from_torch(peer)
    return (
        lambda x: ours(x, need_weights=False)[0],
        peer,
        [torch.randn(1, n, D_MODEL)],
        *(ours, peer),
    )


def decoder_layer(n):
    """torch.nn.TransformerDecoderLayer with its causal flag."""
    peer = nn.TransformerDecoderLayer(D_MODEL, N_HEADS, 2048, dropout=0.0, batch_first=True)
    ours = DecoderLayer.from_torch(peer)
    mask = nn.Transformer.generate_square_subsequent_mask(n)
    return (
        lambda x, memory: ours(x, memory, need_weights=False)[0],
        lambda x, memory: peer(x, memory, tgt_mask=mask, tgt_is_causal=True),
        [torch.randn(1, n, D_MODEL), torch.randn(1, n, D_MODEL)],
        *(ours, peer),
    )


def tiled(*, causal):
    """F.scaled_dot_product_attention."""
    return lambda n: (
        lambda q, k, v: tiled_attention(q, k, v, causal=causal),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
        heads(n),
    )


def rotary(*, halves):
    """The product of complex numbers in Meta's code of Llama, or the halves of Hugging Face's."""

    def prepare(n):
        ours = Rotary(D_KEY, halves=halves)
        ours(*[torch.zeros(1, 1, n, D_KEY)] * 2)  # a longer table of angles is made once
        cos, sin = (
            ours.turns(n)
            .float()
            .unflatten(-1, (2, -1) if halves else (-1, 2))
            .unbind(-2 if halves else -1)
        )
        turn, twice = torch.complex(cos, sin), (cos.repeat(1, 2), sin.repeat(1, 2))

        def complex_product(x):
            turned = torch.view_as_complex(x.unflatten(-1, (-1, 2))) * turn
            return torch.view_as_real(turned).flatten(-2)

        def two_halves(x):
            a, b = x.chunk(2, dim=-1)
            return x * twice[0] + torch.cat((-b, a), dim=-1) * twice[1]

        peer = two_halves if halves else complex_product
        return (
            lambda q, k: torch.cat(ours(q, k)),
            lambda q, k: torch.cat((peer(q), peer(k))),
            heads(n)[:2],
        )

    return prepare


def linear_bias(n):
    """F.scaled_dot_product_attention under a matrix of bias and mask that was made before."""
    bias = LinearBias(N_HEADS)
    ours = DotProduct(bias=bias)
    matrix = bias(n, n).masked_fill(~causal_mask(n), -torch.inf)[None]
    return (
        lambda q, k, v: ours(q, k, v, causal=True, need_weights=False)[0],
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, matrix),
        heads(n),
    )


def window(n):
    """local-attention's LocalAttention, exact windows of 128 keys before the query."""
    peer = LocalWindow(
        128, causal=True, look_backward=1, exact_windowsize=True, use_rotary_pos_emb=False
    )
    return lambda q, k, v: sparse_attention(q, k, v, window=128, causal=True), peer, heads(n)


def features(n):
    """performer-pytorch's linear_attention over elu(x) + 1."""
    return (
        linear_attention,
        lambda q, k, v: sums_of_features(F.elu(q) + 1, F.elu(k) + 1, v),
        heads(n),
    )


def causal_features(n):
    """linear-attention-transformer's causal_linear_attn, which leaves out a token's own bucket."""
    return (
        lambda q, k, v: linear_attention(q, k, v, causal=True),
        lambda q, k, v: causal_linear_attn(F.elu(q) + 1, F.elu(k) + 1, v, bucket_size=64),
        heads(n),
    )


def performer(*, causal):
    """performer-pytorch's FastAttention, which adds 1e-4 to each feature."""

    def prepare(n):
        peer = FastAttention(D_KEY, nb_features=256, causal=causal)
        projection = peer.projection_matrix
        return (
            lambda q, k, v: performer_attention(q, k, v, projection, causal=causal),
            peer,
            heads(n),
        )

    return prepare


def linformer(n):
    """linformer's LinformerSelfAttention."""
    peer = LinformerSelfAttention(D_MODEL, n, k=256, heads=N_HEADS)
    attend = Linformer(max_length=n, proj_len=256)
    ours = MultiHeadAttention(D_MODEL, N_HEADS, attend=attend)
    state = {
        **{f"w_{x}.weight": getattr(peer, f"to_{x}").weight for x in "qkv"},
        **{f"w_{x}.bias": torch.zeros(D_MODEL) for x in "qkv"},
        "w_o.weight": peer.to_out.weight,
        "w_o.bias": peer.to_out.bias,
        "attend.E": peer.proj_k.T,
        "attend.F": peer.proj_v.T,
    }
    ours.load_state_dict(state)
    return lambda x: ours(x)[0], peer, [torch.randn(1, n, D_MODEL)]


def hashing(*, n_rounds):
    """reformer-pytorch's LSHAttention, which counts a pair twice that meets in two rounds."""

    def prepare(n):
        peer = LSHAttention(bucket_size=64, n_hashes=n_rounds)
        rotations = torch.randn(n_rounds, D_KEY, n // 64 // 2)

        def ours(query, value):
            buckets = lsh_buckets(query, rotations)
            return lsh_attention(query, value, buckets, chunk_length=64)

        query, _, value = heads(n)
        return (
            ours,
            lambda q, v: peer(q.flatten(0, 1), v.flatten(0, 1))[0].unflatten(0, (1, N_HEADS)),
            [query, value],
        )

    return prepare


# name: what to prepare (ours, the peer's, inputs, and modules with a training mode), whether both
# compute the same, and where a ratio above 1.05 has its reason
ROWS = {
    "MHA, weights": (multi_head(need_weights=True, causal=False), True, "MultiHeadAttention"),
    "MHA, weights, causal": (
        multi_head(need_weights=True, causal=True),
        True,
        "MultiHeadAttention",
    ),
    "MHA": (multi_head(need_weights=False, causal=False), True, ""),
    "MHA, causal": (multi_head(need_weights=False, causal=True), True, ""),
    "fused, causal": (fused(causal=True), True, ""),
    "fused, causal as a mask": (fused(causal=True, as_a_mask=True), True, "fused_attention"),
    "grouped-query, causal": (grouped, True, ""),
    "encoder layer": (encoder_layer, True, ""),
    "decoder layer": (decoder_layer, True, ""),
    "tiled": (tiled(causal=False), True, "attention.tiled"),
    "tiled, causal": (tiled(causal=True), True, "attention.tiled"),
    "rotary, neighbours": (rotary(halves=False), True, ""),
    "rotary, halves": (rotary(halves=True), True, ""),
    "linear bias, causal": (linear_bias, True, ""),
    "sliding window": (window, True, ""),
    "linear": (features, True, "elu_plus_one"),
    "linear, causal": (causal_features, False, "linear_attention"),
    "Performer": (performer(causal=False), False, ""),
    "Performer, causal": (performer(causal=True), False, ""),
    "Linformer": (linformer, True, ""),
    "LSH, 1 round": (hashing(n_rounds=1), False, "lsh_attention"),
    "LSH, 4 rounds": (hashing(n_rounds=4), False, "lsh_attention"),
}


def forward(call, inputs):
    def run():
        with torch.no_grad():
            call(*inputs)

    return run


def forward_and_backward(call, inputs):
    inputs = [x.clone().requires_grad_() for x in inputs]

    def run():
        call(*inputs).sum().backward()

    return run


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--only", help="rows whose name contains this")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    print(f"torch {torch.__version__}, {platform.machine()}, 1 thread, float32; ours / peer")
    for name, (prepare, same, reason) in ROWS.items():
        if options.only and options.only not in name:
            continue
        for n in options.sizes:
            torch.manual_seed(0)
            ours, peer, inputs, *modules = prepare(n)
            if same:
                with torch.no_grad():
                    apart = (ours(*inputs) - peer(*inputs)).abs().max().item()
                assert apart < SAME, f"{name}: the outputs are {apart} apart"
            ratios = []
            for mode in (forward, forward_and_backward):
                for module in modules:  # in evaluation, torch's modules have a way of their own
                    module.train(mode is forward_and_backward)
                runs = {"ours": mode(ours, inputs), "peer": mode(peer, inputs)}
                measured = round_by_round(runs, **ROUNDS)
                each = [x / y for x, y in zip(measured["ours"], measured["peer"], strict=True)]
                low, middle, high = statistics.quantiles(each, n=4)
                ratios.append(f"{middle:5.2f} [{low:.2f}, {high:.2f}]")
            print(f"{name:25s} n = {n:5d}  {ratios[0]}  {ratios[1]}  {reason}", flush=True)


if __name__ == "__main__":
    main()
