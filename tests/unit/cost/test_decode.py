"""A decode step beside torch's FLOP counter, and beside the bytes that tensors take."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from attention import LatentAttention, MultiHeadAttention
from attention.cost.caches import MODELS, CacheSizes
from attention.cost.decode import H100, Processor, Work, decode_step_cost


def flops(call):
    """What torch counts. Its fused kernels on a CPU count nothing, so they are taken apart."""
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter, torch.no_grad():
        call()
    return counter.get_total_flops()


@pytest.mark.parametrize("name", MODELS)
def test_operations_and_bytes_are_those_of_tensors(name):
    """One layer's products of one query, written out, on tensors without numbers."""
    model, n = MODELS[name]._replace(beside=None), 1000
    half = {"dtype": torch.float16, "device": "meta"}
    if model.d_latent:
        rows = torch.empty(n, model.d_latent + model.d_rotary, **half)
        query = torch.empty(model.n_heads, rows.shape[1], **half)
        read, values = rows.nbytes, rows[:, : model.d_latent]

        def step():
            return (query @ rows.T).softmax(-1) @ values
    else:
        keys, values = torch.empty(2, model.n_kv_heads, n, model.d_key, **half)
        group = model.n_heads // model.n_kv_heads
        query = torch.empty(model.n_kv_heads, group, model.d_key, **half)
        read = keys.nbytes + values.nbytes

        def step():
            return (query @ keys.mT).softmax(-1) @ values

    assert decode_step_cost(model, n) == (model.layers * flops(step), model.layers * read)


@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
def test_a_step_of_grouped_query_attention(n_kv_heads):
    """What the module computes beyond its four projections, and what its cache takes."""
    module = MultiHeadAttention(16, 4, n_kv_heads=n_kv_heads).half()
    cache = module.new_cache(1, max_length=10)
    row = torch.zeros(1, 1, 16, dtype=torch.float16)
    with torch.no_grad():
        module(row.expand(1, 9, 16), causal=True, cache=cache)
    matrices = (module.w_q, module.w_k, module.w_v, module.w_o)
    projections = 2 * sum(w.weight.numel() for w in matrices)
    counted = decode_step_cost(CacheSizes(1, 4, n_kv_heads, 4, "this book"), 10)
    assert flops(lambda: module(row, cache=cache)) == projections + counted.flops
    assert cache.nbytes == counted.bytes
    assert counted.intensity == 4 / n_kv_heads


def test_a_step_that_checks_a_draft():
    """Two more tokens in the step: three times the products, and the same bytes."""
    module = MultiHeadAttention(16, 4, n_kv_heads=2)
    matrices = (module.w_q, module.w_k, module.w_v, module.w_o)
    projections = 2 * sum(w.weight.numel() for w in matrices)
    cache = module.new_cache(1, max_length=10)
    with torch.no_grad():
        module(torch.zeros(1, 7, 16), causal=True, cache=cache)
        counted = decode_step_cost(CacheSizes(1, 4, 2, 4, "this book"), 10, queries=3)
        done = flops(lambda: module(torch.zeros(1, 3, 16), causal=True, cache=cache))
    assert done == 3 * projections + counted.flops
    one = decode_step_cost(CacheSizes(1, 4, 2, 4, "this book"), 10)
    assert counted == Work(3 * one.flops, one.bytes)


def test_a_step_of_latent_attention():
    """Its matrices for keys and values are absorbed: each is passed once."""
    module = LatentAttention(16, 4, 6).half()
    cache = module.new_cache(1, max_length=10)
    row = torch.zeros(1, 1, 16, dtype=torch.float16)
    with torch.no_grad():
        module(row.expand(1, 9, 16), causal=True, cache=cache)
    matrices = (module.w_q, module.w_down, module.w_k, module.w_v, module.w_o)
    projections = 2 * sum(w.weight.numel() for w in matrices)
    counted = decode_step_cost(CacheSizes(1, 4, 0, 4, "this book", d_latent=6), 10)
    assert flops(lambda: module(row, cache=cache)) == projections + counted.flops
    assert cache.nbytes == counted.bytes


def test_intensities_that_papers_and_configurations_give():
    """As many as query heads share a key; DeepSeek-V2: 128 · (576 + 512) · 2 on 1,152 bytes."""
    shared = {name: decode_step_cost(MODELS[name], 777).intensity for name in MODELS}
    assert shared["GPT-2"] == shared["Llama 2 7B"] == 1
    assert shared["Llama 2 70B"] == 8 and shared["Llama 3 8B"] == 4
    assert shared["Falcon 7B"] == 71
    assert shared["DeepSeek-V2"] == 278_528 / 1_152


def test_intensity_is_the_same_at_any_length_and_halves_with_bytes_twice_as_many():
    model = MODELS["Llama 3 8B"]
    assert decode_step_cost(model, 1).intensity == decode_step_cost(model, 9999).intensity
    assert decode_step_cost(model, 5, bytes_per_number=4).intensity == 2


def test_a_window_reads_no_more():
    model = MODELS["Mistral 7B"]
    assert decode_step_cost(model, 32768) == decode_step_cost(model, 4096)
    assert decode_step_cost(model, 4095) != decode_step_cost(model, 4096)


def test_the_roofline_bends_at_the_ridge():
    assert round(H100.ridge) == 295
    processor = Processor(peak=100.0, bandwidth=4.0, source="made up")
    assert processor.ridge == 25
    assert [processor.attainable(i) for i in (0.5, 24, 25, 26)] == [2, 96, 100, 100]
    # The time of what is read and of what is computed, one after the other and side by side.
    for work in (Work(50, 40), Work(5000, 40)):
        longer = max(work.bytes / processor.bandwidth, work.flops / processor.peak)
        assert work.flops / processor.attainable(work.intensity) == longer
