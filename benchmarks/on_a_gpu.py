"""Attention in the open, torch's flash kernel and its math backend, on one GPU; then decode steps.

    python -m benchmarks.on_a_gpu [--seconds 52] > src/attention/cost/on_a_gpu.json

Chapter 16 reads that file. Plain torch, bfloat16, batch 1. Prints one JSON object to stdout, a line
per measurement to stderr.
Training and prefill: 16 heads of 128, n = 1,024 to 32,768 tokens, causal and not, forward, and
forward with backward. FLOPs are those of the definition: 4 n^2 d per head for the two products of
the forward pass, 2.5 times that for the five of the backward pass (one of them recomputes the
scores), half of it under a causal mask, whatever an implementation really computes. Peak memory is
beyond the inputs (q, k, v, the gradient of the output and, in the open, the mask).
Decode: one query of 32 heads of 128 against 1k to 128k cached tokens with 8 or 32 KV heads. The
bytes are those of the cached keys and values, read once. Copies of the cache are taken in turn, so
that no step finds its cache in the L2 cache; the steps are recorded in a CUDA graph, so that no
time goes to launching them from Python.
A measurement that runs out of memory or time says so in its "error".
"""

import argparse
import json
import math
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from attention.cost.decode import H100

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
HEADS, D = (16, 128) if CUDA else (2, 16)
LENGTHS = [2**i for i in range(10, 16)] if CUDA else [64, 128]
CACHED = [2**i for i in range(10, 18)] if CUDA else [64, 256]
KV_HEADS = (8, 32)
QUERY_HEADS = 32
DTYPE = torch.bfloat16
START = time.perf_counter()


def synchronize():
    if CUDA:
        torch.cuda.synchronize()


def seconds_of(run, budget):
    """Median, least and number of the times of one run, after a warm-up of two."""
    for _ in range(2):
        run()
    synchronize()
    start = time.perf_counter()
    run()
    synchronize()
    once = time.perf_counter() - start
    times = []
    for _ in range(max(3, min(30, int(budget / max(once, 1e-6))))):
        if CUDA:
            a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            a.record()
            run()
            b.record()
            b.synchronize()
            times.append(a.elapsed_time(b) / 1e3)
        else:
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
    times.sort()
    return times[len(times) // 2], times[0], len(times)


def in_the_open(q, k, v, mask):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(-1) @ v


def backend(which):
    def attend(q, k, v, mask):
        with sdpa_kernel(which):
            return F.scaled_dot_product_attention(q, k, v, is_causal=mask is not None)

    return attend


WAYS = {
    "in the open": in_the_open,
    "math": backend(SDPBackend.MATH),
    "flash": backend(SDPBackend.FLASH_ATTENTION),
}
if CUDA:  # beside flash, where torch has it: FlashAttention-3's ideas in cuDNN's own kernel
    WAYS["cudnn"] = backend(SDPBackend.CUDNN_ATTENTION)


def free():
    if CUDA:
        torch.cuda.empty_cache()


def failed(error):
    out = "out of memory" in str(error).lower() or isinstance(error, MemoryError)
    return "out of memory" if out else f"{type(error).__name__}: {str(error)[:150]}"


def whole_pass(way, n, causal, backward, budget):
    row = {"way": way, "n": n, "causal": causal, "backward": backward}
    try:
        free()
        inputs = [torch.randn(1, HEADS, n, D, device=DEVICE, dtype=DTYPE) for _ in range(4)]
        *inputs, grad = inputs
        # Only the open form looks at its entries: the kernels get is_causal.
        mask = None
        if causal:
            size = n if way == "in the open" else 1
            mask = torch.ones(size, size, device=DEVICE, dtype=torch.bool).tril()
        if backward:
            for x in inputs:
                x.requires_grad_()

        def run():
            if backward:
                output = WAYS[way](*inputs, mask)
                return torch.autograd.grad(output, inputs, grad)
            with torch.no_grad():
                return WAYS[way](*inputs, mask)

        if CUDA:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            run()
            torch.cuda.synchronize()
            row["peak_bytes"] = torch.cuda.max_memory_allocated() - before
        median, least, count = seconds_of(run, budget)
        flops = 4 * n * n * D * HEADS * (3.5 if backward else 1) / (2 if causal else 1)
        row |= {"seconds": median, "least": least, "runs": count, "tflops": flops / median / 1e12}
    except Exception as error:  # out of memory above all
        row["error"] = failed(error)
    return row


def equal():
    """How far each way lies from float32 in the open, n = 1,024: values, and gradients of q."""
    torch.manual_seed(0)
    n, rows = LENGTHS[0], {}
    *inputs, grad = (torch.randn(1, HEADS, n, D, device=DEVICE, dtype=DTYPE) for _ in range(4))
    mask = torch.ones(n, n, device=DEVICE, dtype=torch.bool).tril()

    def made(attend, dtype):
        leaves = [x.to(dtype).requires_grad_() for x in inputs]
        output = attend(*leaves, mask)
        return output, *torch.autograd.grad(output, leaves, grad.to(dtype))

    exact = made(in_the_open, torch.float32)
    for way, attend in WAYS.items():
        try:
            ours = made(attend, DTYPE)
            apart = [(a.float() - b).abs().max().item() for a, b in zip(ours, exact, strict=True)]
            rows[way] = dict(zip(("output", "grad_q", "grad_k", "grad_v"), apart, strict=True))
        except Exception as error:
            rows[way] = {"error": failed(error)}
    return rows


def decode_open(q, k, v):
    """Each group of query heads beside its KV head: keys and values are read once."""
    groups = q.unflatten(1, (k.shape[1], -1)).squeeze(3)  # (1, kv, group, d)
    scores = groups @ k.mT / math.sqrt(q.shape[-1])
    return (scores.softmax(-1) @ v).flatten(1, 2).unsqueeze(2)


def decode_sdpa(which):
    def attend(q, k, v):
        with sdpa_kernel(which):
            return F.scaled_dot_product_attention(q, k, v, enable_gqa=q.shape[1] != k.shape[1])

    return attend


STEPS = {"in the open": decode_open, "flash": decode_sdpa(SDPBackend.FLASH_ATTENTION)}


def decode_step(way, n, kv_heads, budget):
    row = {"way": way, "cached": n, "heads": QUERY_HEADS, "kv_heads": kv_heads}
    row["cache_bytes"] = cache = 2 * n * kv_heads * D * 2
    try:
        free()
        copies = max(2, min(32, math.ceil(256e6 / cache))) if CUDA else 2
        q = torch.randn(1, QUERY_HEADS, 1, D, device=DEVICE, dtype=DTYPE)
        caches = [
            torch.randn(2, 1, kv_heads, n, D, device=DEVICE, dtype=DTYPE) for _ in range(copies)
        ]

        def steps():
            with torch.no_grad():
                for k, v in caches:
                    STEPS[way](q, k, v)

        run, row["graph"] = steps, False
        if CUDA:
            try:
                side = torch.cuda.Stream()
                with torch.cuda.stream(side):
                    steps()
                torch.cuda.current_stream().wait_stream(side)
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    steps()
                run, row["graph"] = graph.replay, True
            except Exception as error:
                row["graph_error"] = failed(error)
        median, least, count = seconds_of(run, budget)
        row |= {"seconds": median / copies, "least": least / copies, "runs": count}
        row |= {"copies": copies, "bytes_per_second": cache * copies / median}
        row["share_of_peak"] = row["bytes_per_second"] / H100.bandwidth
    except Exception as error:
        row["error"] = failed(error)
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=52.0, help="no new row starts after these")
    options = parser.parse_args()
    torch.manual_seed(0)
    late = {"error": "no time left"}

    def take(rows, call, *arguments):
        left = options.seconds - (time.perf_counter() - START)
        row = call(*arguments, min(0.12, left / 40)) if left > 0 else {"row": arguments} | late
        rows.append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)

    found = {
        "device": torch.cuda.get_device_name() if CUDA else "cpu",
        "torch": torch.__version__,
        "setting": f"bfloat16, batch 1, {HEADS} heads, d_key {D}",
        "peak_flops": H100.peak,
        "peak_bytes_per_second": H100.bandwidth,
        "apart_from_float32": equal(),
        "decode": [],
        "passes": [],
    }
    for n in CACHED:  # first: it is fast
        for kv_heads in KV_HEADS:
            for way in STEPS:
                take(found["decode"], decode_step, way, n, kv_heads)
    for n in LENGTHS:
        for causal in (False, True):
            for backward in (False, True):
                for way in WAYS:
                    take(found["passes"], whole_pass, way, n, causal, backward)
    found["seconds_in_all"] = time.perf_counter() - START
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
