"""Time and peak memory of every attention mechanism as the sequence grows, beside dense attention.

    python -m benchmarks.family [SIZE …] [--device cuda] [--json PATH] [--figure PATH]

Forward without gradients on random numbers, batch 1, 8 heads, d_key 64, float32; additive and Luong
attention have no heads and take one of 512 columns. Hashing is timed, the projections to queries,
keys and values are not. Times come in rounds: in each round every mechanism runs once, in a new
random order, so that a machine that slows down slows all; medians are printed, and ratios to fused
dense attention are taken within the round. Peak memory is what a process of its own needs above
inputs, masks and random matrices. A mechanism skips a size for which it is expected to need more
than 60 seconds or 12 GB, going on as between the two sizes before.
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
import time
from pathlib import Path

import torch
import torch.nn.functional as F

from attention.additive import AdditiveAttention
from attention.dot_product import scaled_dot_product_attention
from attention.fixed import fixed_attention
from attention.heads import merge_heads
from attention.linear import linear_attention
from attention.linformer import linformer_attention
from attention.local_attention import LocalAttention
from attention.lsh import lsh_attention
from attention.luong import LuongAttention
from attention.online import tiled_attention
from attention.performer import orthogonal_projection, performer_attention
from attention.random_feature import random_feature_attention
from attention.reformer import lsh_buckets
from attention.shared_heads import grouped_attention
from attention.sparse import sparse_attention
from attention.sparse_patterns import draw_random_keys, sliding_window_mask
from attention.strided import strided_attention

SIZES = (512, 1024, 2048, 4096, 8192, 16384, 65536)
N_HEADS, D_KEY = 8, 64
SECONDS, BYTES = 60, 12e9  # what a mechanism may need for a size
ROUNDS = (3, 21)  # at least and at most
SECONDS_OF_ROUNDS = 20.0  # per size, once the least number of rounds is done
SECONDS_OF_SAMPLE = 0.02  # a mechanism that is quicker runs several times per sample
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


def linformer(query, key, value):
    mixes = torch.randn(2, 256, query.shape[2], device=query.device) / math.sqrt(query.shape[2])
    return lambda: linformer_attention(query, key, value, *mixes)


def lsh(n_rounds):
    """Chunks of 64 and buckets half as large, numbered by two hashes of √n_buckets each."""

    def prepare(query, key, value):
        digits = max(2, (query.shape[2] // 32 - 1).bit_length())
        n_tens, n_ones = 2 ** (digits - digits // 2), 2 ** (digits // 2)
        rotations = [
            torch.randn(n_rounds, D_KEY, n // 2, device=query.device) for n in (n_tens, n_ones)
        ]

        def run():
            tens, ones = (lsh_buckets(query, rotation) for rotation in rotations)
            return lsh_attention(query, value, tens * n_ones + ones, chunk_length=64)

        return run

    return prepare


def plain(attend, **options):
    return lambda query, key, value: lambda: attend(query, key, value, **options)


DENSE = "dense, torch's fused kernel"
# Each takes query, key and value and returns a function that attends once.
MECHANISMS = {
    DENSE: plain(F.scaled_dot_product_attention),
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
    "global, 16": plain(sparse_attention, global_tokens=range(16)),
    "random, 64": lambda *qkv: sparse(*qkv, n_random=64),
    "window, global and random": lambda *qkv: sparse(
        *qkv, window=256, global_tokens=range(16), n_random=64
    ),
    "strided, √n": rows(strided_attention),
    "fixed, √n": rows(fixed_attention),
    "linear": plain(linear_attention),
    "linear, causal": plain(linear_attention, causal=True),
    "Performer, 256 features": features(performer_attention, 256),
    "random features, 256": features(random_feature_attention, 128),
    "Linformer, 256 mixtures": linformer,
    "LSH, 1 round": lsh(1),
    "LSH, 4 rounds": lsh(4),
}
# What the figure shows, with the marker and the dashes by which a line is known without colour.
DRAWN = {
    DENSE: ("o", "-"),
    "dense under a window's mask": ("s", "-"),
    "tiled": ("D", ":"),
    "strided, √n": ("v", "--"),
    "fixed, √n": ("^", "--"),
    "LSH, 1 round": ("P", "-."),
    "sliding window, 256": ("X", "-"),
    "Performer, 256 features": ("<", ":"),
    "Linformer, 256 mixtures": (">", "-."),
    "linear": ("*", "-"),
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


def sample(run, times):
    start = time.perf_counter()
    for _ in range(times):
        run()
    return (time.perf_counter() - start) / times


def peak_and_seconds(name, n, device):
    """Bytes above the baseline that one run needs, and its time; for a process of its own."""
    run, small = (prepare(name, *inputs(length, device)) for length in (n, 64))
    small()  # so that what is loaded on first use counts as baseline
    if device == "cuda":
        baseline = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        seconds = sample(run, 1)
        return torch.cuda.max_memory_allocated() - baseline, seconds
    unit = 1 if sys.platform == "darwin" else 1024
    baseline = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = sample(run, 1)
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


def time_round_by_round(names, n, device):
    """Seconds of every round for every mechanism."""
    qkv = inputs(n, device)
    runs = {name: prepare(name, *qkv) for name in names}
    # The first run of each is the warm-up too: at the largest sizes a round takes half a minute.
    times = {name: int(SECONDS_OF_SAMPLE / sample(run, 1)) + 1 for name, run in runs.items()}
    seconds = {name: [] for name in names}
    order, start = list(names), time.perf_counter()
    for done in range(ROUNDS[1]):
        if done >= ROUNDS[0] and time.perf_counter() - start > SECONDS_OF_ROUNDS:
            break
        random.shuffle(order)
        for name in order:
            seconds[name].append(sample(runs[name], times[name]))
    return seconds


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


def draw(path, medians, exponents, device):
    """Time over n, both logarithmic; each line ends in its name and its slope."""
    from matplotlib.figure import Figure  # not needed on a machine that only measures

    figure = Figure(figsize=(9, 6))
    axes = figure.subplots()
    ends = []
    for name, (marker, dashes) in DRAWN.items():
        ns = sorted(medians[name])
        axes.loglog(ns, [medians[name][n] for n in ns], dashes, marker=marker, label=name)
        ends.append((medians[name][ns[-1]], ns[-1], name))
    largest = max(n for _, n, _ in ends)
    axes.set_xlim(right=largest * 1.15)
    low, high = (math.log(y) for y in axes.get_ylim())
    # Names stand to the right, in the order of the lines' ends and a line of text apart.
    gap, place = (high - low) / 22, -math.inf
    for y, n, name in sorted(ends):
        place = max(math.log(y), place + gap)
        axes.annotate(
            f"{name}: $n^{{{exponents[name]:.2f}}}$",
            xy=(n, y),
            xytext=(largest * 1.25, math.exp(place)),
            annotation_clip=False,
            va="center",
            fontsize=9,
            arrowprops={"arrowstyle": "-", "color": "#888888", "linewidth": 0.6},
        )
    axes.set_xlabel("n, tokens")
    axes.set_ylabel(f"seconds, forward, {'GPU' if device == 'cuda' else 'CPU'}")
    axes.set_xticks(sorted({n for name in DRAWN for n in medians[name]}))
    axes.xaxis.set_major_formatter(lambda n, _: f"{n:.0f}")
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=130, bbox_inches="tight", transparent=True)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES, metavar="SIZE")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--json", type=Path, metavar="PATH")
    parser.add_argument("--figure", type=Path, metavar="PATH")
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
    rounds = {
        n: time_round_by_round([x for x in MECHANISMS if n in peaks[x]], n, device) for n in sizes
    }
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
        f"{FITTED} sizes, and how\nmany times as quick as fused dense attention at n = {compared}",
        sizes,
        {name: {n: 1000 * s for n, s in each.items()} for name, each in medians.items()},
        skipped,
        1,
        ends,
    )
    megabytes = {name: {n: b / 1e6 for n, b in each.items()} for name, each in peaks.items()}
    print_table("Peak memory above the inputs, megabytes", sizes, megabytes, skipped, 0)
    if options.json:
        numbers = {
            "setting": setting,
            "seconds": medians,
            "rounds": {n: len(next(iter(each.values()))) for n, each in rounds.items()},
            "peak_bytes": peaks,
            "skipped": skipped,
            "exponent_of_time": exponents,
            "times_as_quick_as_dense": {str(compared): ratios},
        }
        options.json.write_text(json.dumps(numbers, indent=1, ensure_ascii=False) + "\n", "utf-8")
    if options.figure:
        draw(options.figure, medians, exponents, device)


if __name__ == "__main__":
    main()
