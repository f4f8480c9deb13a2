"""Training, prefill and decode: what the book's causal mechanisms take in each, side by side.

    python -m benchmarks.situations [--device cuda] [--runs 5] [--json PATH] [--store]

Batch 1, 8 heads, d_key 64; float32 on a processor, bfloat16 on a GPU. *Training* is the forward and
the backward pass, *prefill* the forward pass without gradients, *decode* one token's query against
so many cached tokens. What is timed is attention alone, from queries, keys and values to each
head's output, without the projections. In each run every mechanism goes once, in a new random
order; a run's number is a ratio to torch's fused kernel over all pairs in the same run. The median,
the least and the largest of the runs are printed. torch's kernel is compiled and tuned, the book's
mechanisms are plain torch: what one of them loses to it on a GPU says little of a kernel written
for it. `--store` writes src/attention/cost/situations.json, which chapter 20 reads.
"""

import argparse
import json
import math
import platform
import random
import statistics
from pathlib import Path

import torch
import torch.nn.functional as F

from attention.cached.grouped_query import attend_in_groups
from attention.cost.situations import ALL_PAIRS, STORED
from attention.heads import merge_heads
from attention.linear.delta_rule import gated_delta_rule, gated_delta_rule_step
from attention.linear.linear_transformer import linear_attention_step
from attention.sparse.selection import (
    LightningIndexer,
    attend_selected,
    hide,
    index_scores,
    moba_attention,
)
from attention.sparse.strided import strided_attention
from benchmarks.family import D_KEY, MECHANISMS, N_HEADS, lsh, plain, rows
from benchmarks.timing import round_by_round

N_KV_HEADS, WINDOW, N_SINKS = 2, 256, 4
D_LATENT, D_ROTARY = 4 * D_KEY, D_KEY // 2  # as DeepSeek-V2 has them
N_INDEX_HEADS, D_INDEX, TOP_K = 4, 32, 256
LENGTHS = {
    "training": (1024, 4096, 16384),
    "prefill": (1024, 4096, 16384, 65536),
    "decode": (1024, 4096, 16384, 65536),
}
SECONDS = 16.0  # what is expected to take longer is left out


def leaf(x, trained):
    """A tensor of its own, which gets a gradient where the mechanism is trained."""
    return x.detach().clone(memory_format=torch.contiguous_format).requires_grad_(trained)


def gates(query):
    """β and α of the gated delta rule, (batch, heads, seq) each, between 1/2 and 1."""
    return 0.5 + torch.rand(2, *query.shape[:-1], device=query.device, dtype=query.dtype) / 2


def grouped(query, key, value):
    key, value = (leaf(x[:, :N_KV_HEADS], x.requires_grad) for x in (key, value))
    return lambda: F.scaled_dot_product_attention(
        query, key, value, is_causal=True, enable_gqa=True
    )


def delta(query, key, value):
    beta, alpha = gates(query)
    key = leaf(F.normalize(key, dim=-1), key.requires_grad)
    return lambda: gated_delta_rule(query, key, value, beta, alpha)[0]


def new_indexer(query):
    indexer = LightningIndexer(N_HEADS * D_KEY, N_INDEX_HEADS, D_INDEX)
    return indexer.to(query.device, query.dtype)


def indexed(query, key, value):
    """The indexer's projections are timed with it: it has queries and keys of its own."""
    indexer, x = new_indexer(query), merge_heads(query.detach())

    def attend():
        best = indexer.best_keys(x, TOP_K, None, causal=True)
        return attend_selected(query, key, value, best[:, None], None, block=1, causal=True)

    return attend


# Each takes queries, keys and values and returns a function that attends once.
WHOLE = {
    ALL_PAIRS: plain(F.scaled_dot_product_attention, is_causal=True),
    "grouped-query, 2 KV heads": grouped,
    "window 256 and 4 sinks": MECHANISMS["causal window, 256, and 4 sinks"],
    "strided, √n": rows(strided_attention),
    "LSH, 4 rounds": lsh(4, causal=True),
    "MoBA, 4 blocks of 64": plain(moba_attention, block=64, n_blocks=4, causal=True),
    "indexer, best 256": indexed,
    "linear": MECHANISMS["linear, causal"],
    "gated delta rule": delta,
}


def step_over(kept, kv_heads):
    """A decode step over so many cached keys and values."""

    def prepare(query, key, value):
        last = query[:, :, -1:]
        key, value = (x[:, :kv_heads, -kept(x.shape[2]) :].contiguous() for x in (key, value))
        return lambda: F.scaled_dot_product_attention(last, key, value, enable_gqa=True)

    return prepare


def linear_step(query, key, value):
    q, k, v = (x[:, :, -1:] for x in (query, key, value))
    _, state = linear_attention_step(q, k, v)
    return lambda: linear_attention_step(q, k, v, state)


def delta_step(query, key, value):
    q, k, v = (x[:, :, -1:] for x in (query, F.normalize(key, dim=-1), value))
    beta, alpha = gates(q)
    _, state = gated_delta_rule_step(q, k, v, beta, alpha)
    return lambda: gated_delta_rule_step(q, k, v, beta, alpha, state)


def latent_step(query, key, value):
    """The absorbed form: one row for all heads, which is key and value."""
    row = D_LATENT + D_ROTARY
    asked, rows = (
        torch.randn(1, *x, device=query.device, dtype=query.dtype)
        for x in ((N_HEADS, 1, row), (1, key.shape[2], row))
    )
    options = {"dropout": 0.0, "causal": False, "need_weights": False}
    return lambda: attend_in_groups(asked, rows, rows[..., :D_LATENT], None, **options)[0]


def indexed_step(query, key, value):
    last = query[:, :, -1:]
    asked, keys, weight = new_indexer(query).project(merge_heads(key))
    asked, weight = asked[:, -1:], weight[:, -1:]

    def attend():
        scores = hide(index_scores(asked, keys, weight), None, None)
        best = scores.topk(TOP_K, dim=-1, sorted=False).indices
        return attend_selected(last, key, value, best[:, None], None, block=1, causal=False)

    return attend


STEP = {
    ALL_PAIRS: step_over(lambda n: n, N_HEADS),
    "grouped-query, 2 KV heads": step_over(lambda n: n, N_KV_HEADS),
    "latent rows, 256 + 32": latent_step,
    "window 256 and 4 sinks": step_over(lambda n: min(n, WINDOW + N_SINKS + 1), N_HEADS),
    "indexer, best 256": indexed_step,
    "linear": linear_step,
    "gated delta rule": delta_step,
}


def prepare(situation, name, n, device):
    """A function that runs one mechanism once and waits for the result."""
    torch.manual_seed(0)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    qkv = torch.randn(3, 1, N_HEADS, n, D_KEY, device=device, dtype=dtype).unbind(0)
    training = situation == "training"
    if training:
        qkv = [leaf(x, True) for x in qkv]
    attend = (STEP if situation == "decode" else WHOLE)[name](*qkv)
    gradient = torch.randn_like(qkv[2])

    def run():
        with torch.set_grad_enabled(training):
            output = attend()
            if training:
                output.backward(gradient)
        if device == "cuda":
            torch.cuda.synchronize()

    return run


def measure(situation, n, device, runs, before):
    """{name: seconds of every run}; `before` holds what a quarter of the tokens took."""
    made = {}
    for name in STEP if situation == "decode" else WHOLE:
        if 16 * before.get(name, 0.0) * (situation != "decode") > SECONDS and name != ALL_PAIRS:
            continue
        run = prepare(situation, name, n, device)
        try:
            run()
        except RuntimeError as error:  # cuDNN refuses half a million queries that stand alone
            print(f"left out: {name}, {n:,} tokens: {str(error).splitlines()[0][:100]}")
            continue
        made[name] = run
    return round_by_round(made, least=runs, most=runs, seconds=math.inf)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="PATH")
    parser.add_argument("--store", action="store_true")
    options = parser.parse_args(arguments)
    random.seed(0)
    cuda = options.device == "cuda"
    machine = torch.cuda.get_device_name() if cuda else platform.machine()
    setting = (
        f"torch {torch.__version__}, {machine}, "
        + ("bfloat16" if cuda else f"{torch.get_num_threads()} threads, float32")
        + f", batch 1, {N_HEADS} heads, d_key {D_KEY}, {options.runs} runs"
    )
    print(setting, flush=True)
    measured = {}
    for situation, lengths in LENGTHS.items():
        measured[situation], before = {}, {}
        for n in lengths:
            seconds = measure(situation, n, options.device, options.runs, before)
            before = {name: statistics.median(each) for name, each in seconds.items()}
            measured[situation][str(n)] = seconds
            print(f"\n{situation}, {n:,} tokens: milliseconds; times as fast as all pairs (range)")
            for name, each in seconds.items():
                times = [a / b for a, b in zip(seconds[ALL_PAIRS], each, strict=True)]
                print(
                    f"{name:28}{1000 * before[name]:10.3f}{statistics.median(times):10.2f} "
                    f"({min(times):.2f} to {max(times):.2f})",
                    flush=True,
                )
            text = {"setting": setting, "seconds": measured}
            if options.json:
                options.json.write_text(json.dumps(text, indent=1, ensure_ascii=False), "utf-8")
    if options.store:
        known = json.loads(STORED.read_text("utf-8")) if STORED.exists() else {}
        known[options.device] = {"setting": setting, "seconds": measured}
        STORED.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
