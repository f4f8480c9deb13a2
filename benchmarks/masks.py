"""One causal window, asked for in five ways: `python -m benchmarks.masks [--store]`.

A mask on torch's kernel; blocks in a Python loop, as they are and compiled; FlexAttention, as it is
and compiled. All give one output, which is compared first.
"""

import argparse
import json
import platform
import random
from functools import partial

import torch
from torch.nn import functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from attention import sliding_window_mask, sparse_attention
from attention.cost.masks import ALL_PAIRS, STORED
from benchmarks.timing import round_by_round

SIZES, WINDOW, N_HEADS, D_KEY = (2048, 8192, 16384), 256, 8, 64
HELD = 4096  # what holds all scores of eight heads is timed up to here
ROUNDS = {"least": 5, "most": 9, "seconds": 60}


def prepare(n):
    torch.manual_seed(0)
    torch._dynamo.reset()
    qkv = torch.randn(3, 1, N_HEADS, n, D_KEY).unbind(0)
    mask = sliding_window_mask(n, WINDOW, causal=True)

    def near(batch, head, i, j):
        return (i >= j) & (i - j <= WINDOW)

    tiles = create_block_mask(near, None, None, n, n, device="cpu")
    in_blocks = partial(sparse_attention, window=WINDOW, causal=True)
    attend = F.scaled_dot_product_attention
    runs = {
        ALL_PAIRS: partial(attend, *qkv, is_causal=True),
        "the same kernel, under the mask": partial(attend, *qkv, mask),
        "blocks, a loop in Python": partial(in_blocks, *qkv),
        "blocks, compiled": partial(torch.compile(in_blocks), *qkv),
        "FlexAttention": partial(flex_attention, *qkv, block_mask=tiles),
        "FlexAttention, compiled": partial(torch.compile(flex_attention), *qkv, block_mask=tiles),
    }
    if n > HELD:
        del runs["FlexAttention"]
    under_the_mask = runs["the same kernel, under the mask"]()
    for name, run in runs.items():
        if name != ALL_PAIRS:
            torch.testing.assert_close(run(), under_the_mask, atol=1e-5, rtol=1e-4)
    return runs


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", action="store_true", help=f"write {STORED.name}")
    options = parser.parse_args()
    random.seed(0)
    setting = (
        f"torch {torch.__version__}, {platform.machine()}, {torch.get_num_threads()} threads, "
        f"forward, float32, batch 1, {N_HEADS} heads, d_key {D_KEY}, window {WINDOW}"
    )
    print(setting)
    seconds = {n: round_by_round(prepare(n), **ROUNDS) for n in SIZES}
    for n, each in seconds.items():
        for name, times in each.items():
            print(f"{n:6} {name:32} {1000 * min(times):8.1f} to {1000 * max(times):8.1f} ms")
    if options.store:
        text = json.dumps({"setting": setting, "seconds": seconds}, ensure_ascii=False, indent=1)
        STORED.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
