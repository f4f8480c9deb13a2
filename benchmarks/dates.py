"""Recurrent decoders learn to turn dates written out into ISO dates, letter by letter.

    python -m benchmarks.dates

"sunday, the fourth of march, nineteen seventy-three" becomes "1973-03-04". The task, the models and
their training are those of `attention.trained`: a `BahdanauDecoder` and a `LuongDecoder` learn from
the same dates, seeded. What is reported is the exact match on 2000 days that occur in training in
no form: the share of dates with every sign right.
"""

import platform
import random
import time

import torch

from attention.trained.dates import BATCH, RECIPES, accuracy, draw_dates, held_out_dates, train

DECODERS = {"additive": "BahdanauDecoder", "general": "LuongDecoder"}


def main():
    torch.set_num_threads(1)
    print(f"\ntorch {torch.__version__}, 1 thread, {platform.machine()}")
    print(f"{RECIPES['additive'].steps * BATCH} dates to learn from; two of them:")
    for date in draw_dates(2, random.Random(0)):
        print(f"  {date.text!r} -> {date.iso!r}")
    for name, decoder in DECODERS.items():
        start = time.perf_counter()
        model = train(name, seed=0)
        seconds = time.perf_counter() - start
        share = accuracy(model, held_out_dates())
        print(f"{decoder}: {seconds:.0f} s; held out: exact match {share:.2%}", flush=True)
        if share < 0.99:
            raise SystemExit(f"{decoder} stays below 99 %")


if __name__ == "__main__":
    main()
