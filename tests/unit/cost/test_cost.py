"""The counts of `attention.cost` beside masks, modules and torch's FLOP counter."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from attention import MultiHeadAttention, causal_mask
from attention.cached.key_value_cache import KeyValueCache
from attention.cached.latent import LatentAttention, LatentCache
from attention.cached.rolling_cache import RollingCache
from attention.cost import dense, linear, recurrent, sparse
from attention.linear.delta_rule import (
    GatedDeltaNetAttention,
    decayed_linear_attention,
    gated_delta_rule,
)
from attention.linear.linear_transformer import linear_attention, linear_attention_step
from attention.linear.linformer import Linformer
from attention.linear.performer import performer_attention
from attention.linear.random_features import random_feature_attention
from attention.recurrent.additive import AdditiveAttention
from attention.recurrent.luong import LuongAttention
from attention.sparse.compressed import CompressedAttention, compressed_attention
from attention.sparse.fixed import fixed_mask
from attention.sparse.global_tokens import global_mask
from attention.sparse.hashing import ReformerAttention
from attention.sparse.selection import IndexedAttention, moba_attention
from attention.sparse.sinks import sink_mask
from attention.sparse.strided import strided_mask
from attention.sparse.union import sparse_attention
from attention.sparse.window import sliding_window_mask
from attention.tiled import tiled_attention
from tests.unit.refusals import refusals
from tests.unit.sparse.cases import LargestTensor


def flops(call):
    """What torch counts. Its fused kernels on a CPU count nothing, so they are taken apart."""
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter, torch.no_grad():
        call()
    return counter.get_total_flops()


# The layers of table 1 as functions of n and d, and the factors by which mixing grows as n and d
# are doubled.
TABLE_1 = {
    "self-attention, n² · d": (lambda n, d: dense.multi_head(n, d, 8), 4, 2),
    "recurrent, n · d²": (recurrent.recurrent, 2, 4),
    "convolutional, k · n · d²": (lambda n, d: dense.convolutional(n, d, 3), 2, 4),
    "restricted, r · n · d": (lambda n, d: sparse.sliding_window(n, d, 8, 16), 2, 2),
}


@pytest.mark.parametrize(("layer", "with_n", "with_d"), TABLE_1.values(), ids=TABLE_1)
def test_operations_grow_as_table_1_says(layer, with_n, with_d):
    """Exactly; a window loses a few keys at both ends of the sequence, fewer than 1 % of all."""
    once = layer(4096, 64).mixing
    assert layer(4096, 128).mixing == with_d * once
    assert layer(8192, 64).mixing == pytest.approx(with_n * once, rel=0.01)


@pytest.mark.parametrize("n", [1, 2, 9, 10, 28, 1000])
def test_steps_and_paths_are_those_of_table_1(n):
    attention = dense.multi_head(n, 8, 2)
    assert (attention.steps, attention.path) == (1, 1)
    reading = recurrent.recurrent(n, 8)
    assert (reading.steps, reading.path) == (n, n)
    convolutional = dense.convolutional(n, 8, 3)
    log_3 = {1: 1, 2: 1, 9: 2, 10: 3, 28: 4, 1000: 7}
    assert (convolutional.steps, convolutional.path) == (1, log_3[n])
    restricted = sparse.sliding_window(n, 8, 2, 4)
    n_by_2 = {1: 1, 2: 1, 9: 4, 10: 5, 28: 14, 1000: 500}
    assert (restricted.steps, restricted.path) == (1, n_by_2[n])


def longest_path(mask, reaches_all):
    """How many layers under the mask it takes until every query has been reached."""
    reached, layers = mask, 1
    while not (reached | ~reaches_all).all():
        reached, layers = (reached.float() @ mask.float()) > 0, layers + 1
    return layers


SIZES = (1, 2, 3, 5, 9, 10, 16, 23)
W, C = sparse.sliding_window, {"causal": True}
PATTERNS = {  # what is counted of n tokens, the mask, and whether the future is hidden
    "sliding window": (lambda n: W(n, 8, 2, 4), lambda n: sliding_window_mask(n, 4), False),
    "causal window": (lambda n: W(n, 8, 2, 3, **C), lambda n: sliding_window_mask(n, 3, **C), True),
    "sinks": (lambda n: sparse.sinks(n, 8, 2, 3, 2), lambda n: sink_mask(n, 3, 2), True),
    "global": (
        lambda n: sparse.global_tokens(n, 8, 2, 2),
        lambda n: global_mask(n, range(min(2, n))),
        False,
    ),
    "strided": (lambda n: sparse.strided(n, 8, 2, 3), lambda n: strided_mask(n, 3), True),
    "stride 1": (lambda n: sparse.strided(n, 8, 2, 1), lambda n: strided_mask(n, 1), True),
    "fixed": (lambda n: sparse.fixed(n, 8, 2, 3), lambda n: fixed_mask(n, 3), True),
    "two summary keys": (
        lambda n: sparse.fixed(n, 8, 2, 5, 2),
        lambda n: fixed_mask(n, 5, 2),
        True,
    ),
}


@pytest.mark.parametrize(("count", "make", "causal"), PATTERNS.values(), ids=PATTERNS)
def test_a_pattern_costs_its_pairs_and_its_path_is_the_longest_there_is(count, make, causal):
    for n in SIZES:
        mask, counted = make(n), count(n)
        assert counted.mixing == 2 * 8 * mask.sum()
        assert counted.memory == 2 * mask.sum()
        anybody = torch.ones(n, n, dtype=torch.bool)
        others = causal_mask(n) if causal else anybody
        itself = torch.eye(n, dtype=torch.bool)  # a token needs no path to itself
        assert counted.path == longest_path(mask | itself, others)


def test_random_keys_count_as_many_pairs():
    assert sparse.random_keys(100, 8, 2, 7).mixing == 2 * 8 * 700
    assert sparse.random_keys(5, 8, 2, 7) == sparse.random_keys(5, 8, 2, 5)


X = torch.zeros(1, 48, 16)  # (batch, seq, d_model)
HEADS = torch.zeros(1, 4, 48, 4)  # (batch, heads, seq, d_key)
OPTIONS = {"n_buckets": 6, "n_rounds": 3, "chunk_length": 7}
INDEX = {"top_k": 6, "n_index_heads": 3, "d_index": 5}
MODULES = {
    "multi-head": (MultiHeadAttention(16, 4), (X,), dense.multi_head(48, 16, 4)),
    "grouped-query": (
        MultiHeadAttention(16, 4, n_kv_heads=2),
        (X,),
        dense.grouped_query(48, 16, 4, 2),
    ),
    "multi-query": (
        MultiHeadAttention(16, 4, n_kv_heads=1),
        (X,),
        dense.grouped_query(48, 16, 4, 1),
    ),
    "latent": (LatentAttention(16, 4, 6), (X,), dense.latent(48, 16, 4, 6)),
    "latent, whole": (
        LatentAttention(16, 4, 6, d_rotary=2, d_query_latent=9, d_key=5),
        (X,),
        dense.latent(48, 16, 4, 6, d_rotary=2, d_query_latent=9, d_key=5),
    ),
    "convolutional": (
        nn.Conv1d(16, 16, 3, padding="same"),
        (X.mT,),
        dense.convolutional(48, 16, 3),
    ),
    "additive": (
        AdditiveAttention(16, 12, 10),
        (X, X[:, :20, :12]),
        recurrent.additive(48, 20, 16, 12, 10),
    ),
    "luong dot": (
        LuongAttention(16, 16, "dot"),
        (X, X[:, :20]),
        recurrent.luong(48, 20, 16, 16, "dot"),
    ),
    "luong general": (
        LuongAttention(16, 12, "general"),
        (X, X[:, :20, :12]),
        recurrent.luong(48, 20, 16, 12, "general"),
    ),
    "luong concat": (
        LuongAttention(16, 12, "concat"),
        (X, X[:, :20, :12]),
        recurrent.luong(48, 20, 16, 12, "concat"),
    ),
    "linformer": (
        MultiHeadAttention(16, 4, attend=Linformer(max_length=60, proj_len=5)),
        (X,),
        linear.linformer(48, 16, 4, 5, max_length=60),
    ),
    "reformer": (
        ReformerAttention(16, 4, **OPTIONS),
        (X,),
        linear.reformer(48, 16, 4, **OPTIONS),
    ),
    "indexed": (
        IndexedAttention(16, 4, **INDEX),
        (X,),
        sparse.indexed(48, 16, 4, **INDEX),
    ),
    "indexed, all keys": (
        IndexedAttention(16, 4, **INDEX | {"top_k": 99}),
        (X,),
        sparse.indexed(48, 16, 4, **INDEX | {"top_k": 99}),
    ),
}


@pytest.mark.parametrize(("module", "inputs", "counted"), MODULES.values(), ids=MODULES)
def test_parameters_and_flops_are_those_of_the_module(module, inputs, counted):
    assert sum(w.numel() for w in module.parameters()) == counted.parameters
    assert flops(lambda: module(*inputs)) == counted.flops


@pytest.mark.parametrize(("kind", "gates"), [(nn.RNNCell, 1), (nn.GRUCell, 3), (nn.LSTMCell, 4)])
def test_recurrent_cells(kind, gates):
    cell, state = kind(16, 16), None

    def run():
        nonlocal state
        for x in X.unbind(1):
            state = cell(x, state)
            state = state if gates == 4 else state.clone()

    counted = recurrent.recurrent(48, 16, gates)
    assert sum(w.numel() for w in cell.parameters()) == counted.parameters
    assert flops(run) == counted.flops
    stored = state if gates == 4 else [state]
    assert sum(x.numel() for x in stored) == counted.cache


def test_tiles_take_the_operations_of_dense_attention_and_less_memory():
    whole, in_tiles = dense.multi_head(48, 16, 4), dense.tiled(48, 16, 4, tile=20)
    assert flops(lambda: F.scaled_dot_product_attention(HEADS, HEADS, HEADS)) == 2 * whole.mixing
    assert flops(lambda: tiled_attention(HEADS, HEADS, HEADS, tile=20)) == 2 * in_tiles.mixing
    assert in_tiles.memory < whole.memory / 3
    assert in_tiles.steps == 3


def test_a_sliding_window_computed_in_blocks_takes_little_more_than_its_pairs():
    """A block of 4 queries gathers 64 + 4 keys, the ends of the sequence too: 8 % more at most."""
    x = torch.zeros(1, 4, 1024, 4)
    counted = sparse.sliding_window(1024, 16, 4, 64)
    measured = flops(lambda: sparse_attention(x, x, x, window=64, block=4))
    assert 1 <= measured / (2 * counted.mixing) < 1.08


@pytest.mark.parametrize(("block", "n_blocks"), [(8, 2), (7, 3), (48, 1), (16, 9)])
def test_moba_computes_all_keys_of_its_blocks(block, n_blocks):
    counted = sparse.moba(48, 16, 4, block, n_blocks)
    measured = flops(lambda: moba_attention(*[HEADS] * 3, block=block, n_blocks=n_blocks))
    assert measured == 2 * counted.mixing


@pytest.mark.parametrize("window", [1, 2, 3])
def test_the_path_through_entries_is_one_where_no_earlier_token_is_hidden(window):
    torch.manual_seed(0)
    x = torch.randn(3, 1, 1, 12, 2, dtype=torch.double, requires_grad=True)
    gate = torch.zeros(1, 1, 12, 1, dtype=torch.double)
    output = compressed_attention(*x, gate, block=4, window=window).sum(dim=(0, 1, 3))
    heard = [torch.autograd.grad(row, x, retain_graph=True)[0][2].norm(dim=-1) for row in output]
    whole = (torch.stack(heard)[:, 0, 0] > 0).tril().sum() == 12 * 13 // 2
    assert (sparse.compressed(12, 2, 1, 4, window).path == 1) == whole


@pytest.mark.parametrize("top_k", [None, 3])
@pytest.mark.parametrize("window", [4, 12])
def test_compressed_attention_computes_its_entries_and_twice_its_window(window, top_k):
    """48 queries in stretches of a window's length: each is multiplied with 2 · window tokens."""
    counted = sparse.compressed(48, 16, 4, 6, window, top_k)
    selected = None if top_k is None else torch.zeros(1, 1, 48, top_k, dtype=torch.int64)
    gate = HEADS[..., :1]
    options = {"block": 6, "window": window, "selected": selected}
    measured = flops(lambda: compressed_attention(*[HEADS] * 3, gate, **options))
    assert measured == 2 * (counted.mixing + 2 * 48 * (window - 1) * 16)
    layer = MultiHeadAttention(16, 4, attend=CompressedAttention(4, block=6, window=window))
    learned = sum(x.numel() for x in layer.parameters())
    assert learned == sparse.compressed(48, 16, 4, 6, window).parameters


def test_attention_through_features():
    """Random Feature Attention makes two features of each of the random matrix's 10 rows.

    Performer multiplies the keys with its 20 rows once more than that. The sums of the features are
    counted as products with ones, and torch does not count sums.
    """

    def sums(n_features):
        return 2 * 48 * 4 * n_features

    counted = linear.linear(48, 16, 4)
    assert flops(lambda: linear_attention(HEADS, HEADS, HEADS)) + sums(4) == 2 * counted.mixing
    _, state = linear_attention_step(*[HEADS[:, :, :1]] * 3)
    assert state.numel() == counted.cache

    counted, rows = linear.random_features(48, 16, 4, 20), torch.zeros(20, 4)
    measured = flops(lambda: performer_attention(HEADS, HEADS, HEADS, rows))
    assert measured + sums(20) == 2 * counted.mixing
    measured = flops(lambda: random_feature_attention(HEADS, HEADS, HEADS, rows[:10]))
    assert measured + sums(20) == 2 * (counted.mixing - 2 * 48 * 16 * 20)


@pytest.mark.parametrize("chunk", [1, 20, 64])
def test_decay_and_the_delta_rule(chunk):
    """torch does not count the triangular systems: row i of a chunk takes i rows off."""
    one, counted = torch.ones(1, 1, 1), linear.decay(48, 16, 4, chunk)
    _, state = decayed_linear_attention(*[HEADS] * 3, one, chunk=chunk)
    assert state.numel() == counted.cache
    measured = flops(lambda: decayed_linear_attention(*[HEADS] * 3, one, chunk=chunk))
    assert measured == 2 * counted.mixing
    counted = linear.gated_delta_rule(48, 16, 4, chunk)
    solved = sum(t % chunk for t in range(48)) * 16
    measured = flops(lambda: gated_delta_rule(*[HEADS] * 3, one, chunk=chunk))
    assert measured + 2 * solved == 2 * counted.mixing
    assert counted.cache == state.numel()


def test_the_layer_of_the_delta_rule():
    module, counted = GatedDeltaNetAttention(16, 4), linear.gated_delta_rule(48, 16, 4)
    assert sum(w.numel() for w in module.parameters()) == counted.parameters
    assert flops(lambda: module(X)) + 2 * 16 * 48 * 47 // 2 == counted.flops


def test_a_cache_is_as_large_as_its_class_makes_it():
    half = {"dtype": torch.float16}
    for n_kv_heads in (1, 2, 4):
        cache = KeyValueCache(1, n_kv_heads, 48, 4, **half)
        assert 2 * dense.grouped_query(48, 16, 4, n_kv_heads).cache == cache.nbytes
    for n_sinks in (0, 4):  # a rolling cache has room for the new token too
        cache = RollingCache(1, 4, window=9, n_sinks=n_sinks, d_key=4, **half)
        assert 2 * (sparse.sinks(48, 16, 4, 9, n_sinks).cache + 2 * 16) == cache.nbytes
    for d_rotary in (0, 2):
        cache = LatentCache(1, 48, 6, d_rotary=d_rotary, **half)
        assert 2 * dense.latent(48, 16, 4, 6, d_rotary=d_rotary).cache == cache.nbytes


@pytest.mark.parametrize("new", [1, 7, 48])
@pytest.mark.parametrize("absorbed", [True, False])
def test_both_forms_of_latent_attention_take_the_products_counted(new, absorbed):
    """Each form by itself in a few products: from latent rows to what each head has summed."""
    heads, d_key, d_latent, d_rotary, n = 4, 5, 6, 2, 48
    rows, turned = torch.ones(n, d_latent), torch.ones(n, d_rotary)
    w_k, w_v = torch.ones(2, heads, d_key, d_latent)
    q, q_rotary = torch.ones(heads, new, d_key), torch.ones(heads, new, d_rotary)
    with FlopCounterMode(display=False) as counter:
        if absorbed:
            weights = (q @ w_k) @ rows.T + q_rotary @ turned.T
            summed = (weights @ rows) @ w_v.mT
        else:
            keys, values = rows @ w_k.mT, rows @ w_v.mT
            weights = q @ keys.mT + q_rotary @ turned.T
            summed = weights @ values
    assert summed.shape == q.shape
    sizes = {"n_heads": heads, "d_latent": d_latent, "d_key": d_key, "d_rotary": d_rotary}
    counted = dense.latent_step(new, n, **sizes, absorbed=absorbed)
    assert counter.get_total_flops() == 2 * counted


def test_the_layer_takes_the_form_and_the_products_that_are_counted():
    """What a step takes, less the projections that both forms share."""
    layer = LatentAttention(16, 4, 6, d_rotary=2, d_key=5)
    sizes = {"n_heads": 4, "d_latent": 6, "d_key": 5, "d_rotary": 2}
    shared = 16 * 4 * (5 + 2) + 16 * (6 + 2) + 4 * 5 * 16  # queries, rows, w_o
    cache, kept = layer.new_cache(1, 48), 0
    for new, absorbed in ((41, False), (1, True), (6, True)):
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            layer(X[:, :new], causal=new > 1, cache=cache)
        kept += new
        counted = dense.latent_step(new, kept, **sizes, absorbed=absorbed)
        assert counter.get_total_flops() == 2 * (new * shared + counted)


def test_deepseek_v2_does_242_operations_for_each_byte_of_its_cache():
    sizes = {"n_heads": 128, "d_latent": 512, "d_key": 128, "d_rotary": 64}
    more = dense.latent_step(1, 1001, **sizes) - dense.latent_step(1, 1000, **sizes)
    assert 2 * more == 278_528 == 128 * (576 + 512) * 2
    assert round(2 * more / (2 * dense.latent(1, 5120, **sizes).cache)) == 242


MIXINGS = {
    "multi-head": (
        lambda: MultiHeadAttention(16, 4)(X),
        lambda: dense.multi_head(48, 16, 4).memory,
    ),
    "additive": (
        lambda: AdditiveAttention(16, 16, 10)(X, X),
        lambda: recurrent.additive(48, 48, 16, 16, 10).memory,
    ),
    "general": (
        lambda: LuongAttention(16, 16)(X, X),
        lambda: recurrent.luong(48, 48, 16, 16).memory,
    ),
    "in tiles": (
        lambda: tiled_attention(HEADS, HEADS, HEADS, tile=20),
        lambda: dense.tiled(48, 16, 4, tile=20).memory,
    ),
    "LSH": (
        lambda: ReformerAttention(16, 4, n_buckets=4, n_rounds=3, chunk_length=16)(X),
        lambda: linear.reformer(48, 16, 4, n_buckets=4, n_rounds=3, chunk_length=16).memory,
    ),
    "Linformer": (
        lambda: MultiHeadAttention(16, 4, attend=Linformer(max_length=48, proj_len=20))(X),
        lambda: linear.linformer(48, 16, 4, proj_len=20).memory,
    ),
}


@pytest.mark.parametrize(("call", "memory"), MIXINGS.values(), ids=MIXINGS)
def test_memory_is_the_largest_tensor_of_the_mixing_and_little_more(call, memory):
    """Little more are the sums beside a tile, and the mixtures of Linformer."""
    with sdpa_kernel(SDPBackend.MATH), torch.no_grad(), LargestTensor() as largest:
        call()
    assert 0.8 * memory() <= largest.numel <= memory()


def test_approximations_grow_as_they_say():
    """Doubling n doubles the mixing of what is linear; √n-patterns grow by 2√2."""

    def grows(count):
        return count(16384).mixing / count(8192).mixing

    assert grows(lambda n: linear.linear(n, 512, 8)) == 2
    assert grows(lambda n: linear.decay(n, 512, 8)) == 2
    assert grows(lambda n: linear.gated_delta_rule(n, 512, 8)) == 2
    assert grows(lambda n: linear.random_features(n, 512, 8, 256)) == 2
    assert grows(lambda n: linear.linformer(n, 512, 8, 256)) == 2
    fixed = {"n_buckets": 64, "n_rounds": 2, "chunk_length": 64}
    assert grows(lambda n: linear.reformer(n, 512, 8, **fixed)) == 2
    for pattern in (sparse.strided, sparse.fixed):
        assert pattern(16384, 512, 8, 128).mixing / pattern(4096, 512, 8, 64).mixing == (
            pytest.approx(8, rel=0.02)
        )


test_bad_input = refusals(
    [
        (
            lambda: dense.multi_head(10, 8, 3),
            "n_heads=3 does not divide d_model=8; it can be 1, 2, 4 or 8",
        ),
        (
            lambda: dense.grouped_query(10, 8, 4, 3),
            "n_kv_heads=3 does not divide n_heads=4; it can be 1, 2 or 4",
        ),
        (
            lambda: dense.convolutional(10, 8, 1),
            "kernel_size must be at least 2, got 1",
        ),
        (
            lambda: recurrent.luong(2, 2, 4, 4, "cosine"),
            'score must be "dot", "general" or "concat", got \'cosine\'',
        ),
        (
            lambda: recurrent.luong(2, 2, 4, 3, "dot"),
            'score="dot" needs queries and keys of one width, got query_dim=4 and key_dim=3; '
            'use score="general" or score="concat"',
        ),
        (
            lambda: sparse.sliding_window(10, 8, 2, 3),
            "window=3 is odd, and half of it lies on each side of the query; take 2 or 4, or "
            "causal=True, where all of it lies before",
        ),
        (
            lambda: sparse.fixed(10, 8, 2, stride=3, summary=4),
            "summary=4 keys do not fit in a row of stride=3 keys",
        ),
        (
            lambda: linear.linformer(10, 8, 2, 4, max_length=9),
            "max_length must be at least 10, got 9",
        ),
    ],
    whole=True,
)


def test_a_recurrent_decoder_keeps_values_and_projected_keys():
    module, key = AdditiveAttention(16, 12, 10), torch.zeros(1, 48, 12)
    stored = module.w_k(key).numel() + key.numel()
    assert recurrent.additive(1, 48, 16, 12, 10).cache == stored
    for score in ("dot", "general"):  # which keep the keys alone
        assert recurrent.luong(1, 48, 12, 12, score).cache == key.numel()


@pytest.mark.parametrize("n", [5, 48])
def test_a_window_keeps_the_keys_and_values_of_the_past_that_the_next_token_sees(n):
    seen = sliding_window_mask(n + 1, 9, causal=True)[-1, :-1].sum().item()
    assert sparse.sliding_window(n, 16, 4, 9, causal=True).cache == seen * 2 * 16


def test_a_convolution_keeps_the_inputs_of_the_past_that_the_next_output_reads():
    x = torch.randn(1, 12, 20, requires_grad=True)  # (batch, d_model, seq)
    nn.Conv1d(12, 12, 5)(x)[..., -1].sum().backward()
    read = (x.grad[0] != 0).all(0)  # (seq)
    assert dense.convolutional(20, 12, 5).cache == read[:-1].sum().item() * 12
