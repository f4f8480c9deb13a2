"""Time and peak memory of every attention mechanism as the sequence grows, beside dense attention.

    python -m benchmarks.family [SIZE …] [--device cuda] [--json PATH] [--page]

Forward without gradients on random numbers, batch 1, 8 heads, d_key 64, float32; additive and Luong
attention have no heads and take one of 512 columns. Hashing is timed, the projections to queries,
keys and values are not. Times come in rounds: in each round every mechanism runs once, in a new
random order, so that a machine that slows down slows all; medians are printed, and ratios to fused
dense attention are taken within the round. Peak memory is what a process of its own needs above
inputs, masks and random matrices. A mechanism skips a size for which it is expected to need more
than 60 seconds or 12 GB, going on as between the two sizes before. `--page` puts the run on the
book's page and into the chapters: it writes src/attention/cost/measured.json, and from it
book/measured.inc and book/measured.png.
"""

import argparse
import concurrent.futures
import json
import math
import multiprocessing
import platform
import random
import resource
import statistics
import sys
from pathlib import Path

import torch
import torch.nn.functional as F

from attention.cached.grouped_query import grouped_attention
from attention.dot_product import scaled_dot_product_attention
from attention.heads import merge_heads
from attention.linear.delta_rule import gated_delta_rule
from attention.linear.linear_transformer import linear_attention
from attention.linear.linformer import linformer_attention
from attention.linear.performer import orthogonal_projection, performer_attention
from attention.linear.random_features import random_feature_attention
from attention.recurrent.additive import AdditiveAttention
from attention.recurrent.local import LocalAttention
from attention.recurrent.luong import LuongAttention
from attention.sparse.fixed import fixed_attention
from attention.sparse.hashing import lsh_attention, lsh_buckets
from attention.sparse.random_keys import draw_random_keys
from attention.sparse.strided import strided_attention
from attention.sparse.union import sparse_attention
from attention.sparse.window import sliding_window_mask
from attention.tiled import tiled_attention
from benchmarks import page
from benchmarks.timing import round_by_round, sample

SIZES = (1024, 2048, 4096, 8192, 16384, 65536)
N_HEADS, D_KEY = 8, 64
SECONDS, BYTES = 60, 12e9  # what a mechanism may need for a size
ROUNDS = {"least": 3, "most": 21, "seconds": 20.0}  # per size
FITTED = 3  # sizes, the last ones, that the exponents are fitted to


def masked(query, key, value):
    """The window's pattern as a mask on a dense product: no cheaper than without it."""
    mask = sliding_window_mask(query.shape[2], 256).to(query.device)
    return lambda: scaled_dot_product_attention(query, key, value, mask)


def grouped(query, key, value):
    key, value = key[:, :2].contiguous(), value[:, :2].contiguous()
    return lambda: grouped_attention(query, key, value, need_weights=False)


def one_head(module, query, key, **options):
    module, query, key = module.to(query.device), merge_heads(query), merge_heads(key)
    return lambda: module(query, key, **options)


def sparse(query, key, value, *, n_random=0, **options):
    if n_random:
        drawn = draw_random_keys(query.shape[2], n_random, block=min(128, query.shape[2]))
        options["random_keys"] = drawn.to(query.device)
    return lambda: sparse_attention(query, key, value, **options)


def rows(attend):
    """The patterns of the Sparse Transformer, with a stride of √n."""

    def prepare(query, key, value):
        stride = math.isqrt(query.shape[2])
        return lambda: attend(query, key, value, stride=stride)

    return prepare


def features(attend, n_rows):
    def prepare(query, key, value):
        projection = orthogonal_projection(n_rows, D_KEY).to(query.device)
        return lambda: attend(query, key, value, projection)

    return prepare


def delta(query, key, value):
    """Keys of length 1, and gates of every token between 1/2 and 1."""
    key = F.normalize(key, dim=-1)
    beta, alpha = 0.5 + torch.rand(2, *query.shape[:-1], device=query.device) / 2
    return lambda: gated_delta_rule(query, key, value, beta, alpha)


def linformer(query, key, value):
    E_and_F = torch.randn(2, 256, query.shape[2], device=query.device) / math.sqrt(query.shape[2])
    return lambda: linformer_attention(query, key, value, *E_and_F)


def lsh(n_rounds, **options):
    """Chunks of 64 and buckets half as large, numbered by two hashes of √n_buckets each."""

    def prepare(query, key, value):
        digits = max(2, (query.shape[2] // 32 - 1).bit_length())
        n_tens, n_ones = 2 ** (digits - digits // 2), 2 ** (digits // 2)
        rotations = [
            torch.randn(n_rounds, D_KEY, n // 2, device=query.device, dtype=query.dtype)
            for n in (n_tens, n_ones)
        ]

        def run():
            tens, ones = (lsh_buckets(query, rotation) for rotation in rotations)
            buckets = tens * n_ones + ones
            return lsh_attention(query, value, buckets, chunk_length=64, **options)

        return run

    return prepare


def plain(attend, **options):
    return lambda query, key, value: lambda: attend(query, key, value, **options)


DENSE = "dense, torch's fused kernel"
# Each takes query, key and value and returns a function that attends once.
MECHANISMS = {
    DENSE: plain(F.scaled_dot_product_attention),
    "dense, weights held": plain(scaled_dot_product_attention),
    "dense under a window's mask": masked,
    "tiled": plain(tiled_attention),
    "grouped, 2 heads of keys": grouped,
    "additive, 64 hidden units": lambda query, key, value: one_head(
        AdditiveAttention(512, 512, 64), query, key
    ),
    "Luong, general": lambda query, key, value: one_head(LuongAttention(512, 512), query, key),
    "Luong, local, 256": lambda query, key, value: one_head(
        LocalAttention(512, 512, 128, alignment="monotonic"), query, key, need_weights=False
    ),
    "sliding window, 256": plain(sparse_attention, window=256),
    "causal window, 256, and 4 sinks": plain(
        sparse_attention, window=256, global_tokens=range(4), causal=True
    ),
    "global, 16": plain(sparse_attention, global_tokens=range(16)),
    "random, 64": lambda *qkv: sparse(*qkv, n_random=64),
    "window, global and random": lambda *qkv: sparse(
        *qkv, window=256, global_tokens=range(16), n_random=64
    ),
    "strided, √n": rows(strided_attention),
    "fixed, √n": rows(fixed_attention),
    "linear": plain(linear_attention),
    "linear, causal": plain(linear_attention, causal=True),
    "gated delta rule": delta,
    "Performer, 256 features": features(performer_attention, 256),
    "random features, 256": features(random_feature_attention, 128),
    "Linformer, 256 mixtures": linformer,
    "LSH, 1 round": lsh(1),
    "LSH, 4 rounds": lsh(4),
}


def inputs(n, device):
    torch.manual_seed(0)
    return torch.randn(3, 1, N_HEADS, n, D_KEY, device=device).unbind(0)


def prepare(name, query, key, value):
    """A function that runs one mechanism once and waits for the result."""
    attend = MECHANISMS[name](query, key, value)

    def run():
        with torch.no_grad():
            attend()
        if query.is_cuda:
            torch.cuda.synchronize()

    return run


def peak_and_seconds(name, n, device):
    """Bytes above the baseline that one run needs, and its time; for a process of its own."""
    run, small = (prepare(name, *inputs(length, device)) for length in (n, 64))
    small()  # so that what is loaded on first use counts as baseline
    if device == "cuda":
        baseline = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        seconds = sample(run)
        return torch.cuda.max_memory_allocated() - baseline, seconds
    unit = 1 if sys.platform == "darwin" else 1024
    baseline = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = sample(run)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - baseline) * unit, seconds


def expected(known, n):
    """The number for n tokens: the power law through the last two sizes, n² after a single one."""
    if not known:
        return 0.0
    *before, last = sorted(known)
    power = 2.0
    if before and known[before[-1]] > 0 < known[last]:
        power = math.log(known[last] / known[before[-1]], last / before[-1])
    return known[last] * (n / last) ** power


def measure_peaks(sizes, device):
    """{name: {n: bytes}}, and {name: {n: why}} for what is skipped."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch"])
    peaks, skipped = ({name: {} for name in MECHANISMS} for _ in range(2))
    with concurrent.futures.ProcessPoolExecutor(1, context, max_tasks_per_child=1) as pool:
        for name in MECHANISMS:
            seconds = {}
            for n in sizes:
                if expected(seconds, n) > SECONDS:
                    skipped[name][n] = f"> {SECONDS} s"
                elif expected(peaks[name], n) > BYTES:
                    skipped[name][n] = f"> {BYTES / 1e9:.0f} GB"
                else:
                    peaks[name][n], seconds[n] = pool.submit(
                        peak_and_seconds, name, n, device
                    ).result()
    return peaks, skipped


def exponent(seconds):
    """The slope of log time over log n, by least squares over the last sizes."""
    last = sorted(seconds)[-FITTED:]
    if len(last) < 2:
        return math.nan
    return statistics.linear_regression(
        [math.log(n) for n in last], [math.log(seconds[n]) for n in last]
    ).slope


def print_table(title, sizes, measured, skipped, digits, ends=None):
    ends = ends or dict.fromkeys(MECHANISMS, "")
    print(f"\n{title}\n{'':28}" + "".join(f"{n:>10}" for n in sizes))
    for name in MECHANISMS:
        cells = [
            f"{measured[name][n]:10.{digits}f}"
            if n in measured[name]
            else f"{skipped[name][n]:>10}"
            for n in sizes
        ]
        print(f"{name:28}{''.join(cells)}{ends[name]}")


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES, metavar="SIZE")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--json", type=Path, metavar="PATH")
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args(arguments)
    sizes, device = sorted(options.sizes), options.device
    random.seed(0)
    machine = torch.cuda.get_device_name() if device == "cuda" else platform.machine()
    setting = (
        f"torch {torch.__version__}, {machine}, {torch.get_num_threads()} threads, forward, "
        f"float32, batch 1, {N_HEADS} heads, d_key {D_KEY}"
    )
    print(f"\n{setting}")

    peaks, skipped = measure_peaks(sizes, device)
    rounds = {}
    for n in sizes:
        qkv = inputs(n, device)
        runs = {name: prepare(name, *qkv) for name in MECHANISMS if n in peaks[name]}
        rounds[n] = round_by_round(runs, **ROUNDS)
    medians = {
        name: {n: statistics.median(rounds[n][name]) for n in sizes if n in peaks[name]}
        for name in MECHANISMS
    }
    exponents = {name: exponent(medians[name]) for name in MECHANISMS}
    compared = max(medians[DENSE])
    ratios = {
        name: statistics.median(
            dense / own
            for dense, own in zip(rounds[compared][DENSE], rounds[compared][name], strict=True)
        )
        for name in rounds[compared]
    }
    ends = {
        name: f"{exponents[name]:10.2f}" + (f"{ratios[name]:12.1f}" if name in ratios else "")
        for name in MECHANISMS
    }
    print_table(
        "Time, milliseconds, medians; then the exponent of time in n over the last "
        f"{FITTED} sizes, and how\nmany times as fast as fused dense attention at n = {compared}",
        sizes,
        {name: {n: 1000 * s for n, s in each.items()} for name, each in medians.items()},
        skipped,
        1,
        ends,
    )
    megabytes = {name: {n: b / 1e6 for n, b in each.items()} for name, each in peaks.items()}
    print_table("Peak memory above the inputs, megabytes", sizes, megabytes, skipped, 0)
    numbers = {
        "setting": setting,
        "seconds": medians,
        "rounds": {n: len(next(iter(each.values()))) for n, each in rounds.items()},
        "peak_bytes": peaks,
        "skipped": skipped,
        "exponent_of_time": exponents,
        "times_as_quick_as_dense": {str(compared): ratios},
    }
    text = json.dumps(numbers, indent=1, ensure_ascii=False) + "\n"
    if options.json:
        options.json.write_text(text, "utf-8")
    if options.page:
        page.NUMBERS.write_text(text, "utf-8")
        page.write(json.loads(text))


if __name__ == "__main__":
    main()
