"""Time and peak memory of the book's multi-head attention beside torch's, in one run.

    python -m benchmarks.layers

Every layer does self-attention on the same input, forward alone (evaluation, no gradients) and
forward with backward (training, gradients for the input and every weight). Times come in rounds: in
each round every layer runs once, in a new random order, and the ratio is taken within the round, so
that a machine that slows down slows both. Peak memory is what a process that does nothing else
needs above what it held before.
"""

import concurrent.futures
import multiprocessing
import platform
import random
import resource
import statistics
import sys

import torch
import torch.nn.functional as F
from torch import nn

from attention import MultiHeadAttention
from benchmarks.timing import round_by_round

SIZES = ((32, 10, 512), (8, 256, 512), (4, 1024, 512), (1, 4096, 512))  # batch, seq, d_model
N_HEADS = 8
MODES = ("forward", "forward and backward")
ROUNDS = {"least": 7, "most": 41, "seconds": 12.0}  # per size and mode


class FusedLayer(nn.Module):
    """Multi-head attention assembled around torch's fused kernel: one product for q, k and v."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.w_qkv = nn.Linear(d_model, 3 * d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(self, x):
        query, key, value = (
            part.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for part in self.w_qkv(x).chunk(3, dim=-1)
        )
        return self.w_o(
            F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
        )


def ours(d_model, need_weights):
    layer = MultiHeadAttention(d_model, N_HEADS)
    return layer, lambda x: layer(x, need_weights=need_weights)[0]


def torchs(d_model, need_weights, average=True):
    layer = nn.MultiheadAttention(d_model, N_HEADS, batch_first=True)
    return layer, lambda x: layer(x, x, x, need_weights=need_weights, average_attn_weights=average)[
        0
    ]


def fused(d_model):
    layer = FusedLayer(d_model, N_HEADS)
    return layer, layer


LAYERS = {
    "book, weights": lambda d_model: ours(d_model, True),
    "torch, weights per head": lambda d_model: torchs(d_model, True, average=False),
    "torch, mean of the weights": lambda d_model: torchs(d_model, True),
    "book, no weights": lambda d_model: ours(d_model, False),
    "torch, no weights": lambda d_model: torchs(d_model, False),
    "layer around F.scaled_dot_product_attention": fused,
}
COMPARED = (
    ("book, weights", "torch, weights per head"),
    ("book, weights", "torch, mean of the weights"),
    ("book, no weights", "torch, no weights"),
    ("book, no weights", "layer around F.scaled_dot_product_attention"),
)


def prepare(name, mode, size):
    """A function that runs one layer once, on an input of this size."""
    torch.manual_seed(0)
    layer, call = LAYERS[name](size[-1])
    x, gradient = torch.randn(size), torch.randn(size)
    if mode == "forward":
        layer.eval()

        def run():
            with torch.no_grad():
                call(x)
    else:
        layer.train()
        x.requires_grad_()

        def run():
            layer.zero_grad(set_to_none=True)
            x.grad = None
            call(x).backward(gradient)

    return run


def peak_memory(name, mode, size):
    """Megabytes above the baseline that one run needs; call it in a process of its own."""
    run, small = prepare(name, mode, size), prepare(name, mode, (1, 2, size[-1]))
    small()  # so that what is loaded on first use counts as baseline
    unit = 1 if sys.platform == "darwin" else 1024
    baseline = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - baseline) * unit / 1e6


def spread(ratios):
    """The median of the ratios and the range of their middle half."""
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:6.2f}  [{low:.2f}, {high:.2f}]"


def main():
    random.seed(0)
    print(
        f"\ntorch {torch.__version__}, {torch.get_num_threads()} threads, {platform.machine()}, "
        f"float32, {N_HEADS} heads"
    )
    print("\nTime: the book's layer divided by the other, so below 1 the book's is faster.")
    print("Median over the rounds and [middle half]; then the milliseconds of both, medians.")
    for mode in MODES:
        for size in SIZES:
            runs = {name: prepare(name, mode, size) for name in LAYERS}
            for run in runs.values():
                run()
            seconds = round_by_round(runs, **ROUNDS)
            print(
                f"\n{mode}, (batch, seq, d_model) = {size}, {len(seconds[COMPARED[0][0]])} rounds"
            )
            for book, other in COMPARED:
                ratios = [a / b for a, b in zip(seconds[book], seconds[other], strict=True)]
                both = [1000 * statistics.median(seconds[name]) for name in (book, other)]
                print(
                    f"  {book:16} / {other:44}{spread(ratios):24}{both[0]:9.2f}{both[1]:9.2f}",
                    flush=True,
                )

    print("\nPeak memory above the baseline, megabytes, each in its own process")
    jobs = [(name, mode, size) for name in LAYERS for mode in MODES for size in SIZES]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch"])
    with concurrent.futures.ProcessPoolExecutor(1, context, max_tasks_per_child=1) as pool:
        peaks = dict(zip(jobs, pool.map(peak_memory, *zip(*jobs, strict=True)), strict=True))
    for mode in MODES:
        print(f"\n  {mode:44}" + "".join(f"{size!s:>16}" for size in SIZES))
        for name in LAYERS:
            print(f"  {name:44}" + "".join(f"{peaks[name, mode, size]:16.0f}" for size in SIZES))


if __name__ == "__main__":
    main()
