"""Recurrent decoders learn to turn dates written out into ISO dates, letter by letter.

    python -m benchmarks.dates

"sunday, the fourth of march nineteen seventy-three" becomes "1973-03-04". The days are drawn from
1900 to 2099, each is written in one of many ways, and no day that is used for measuring occurs in
training in any form. A `BahdanauDecoder` and a `LuongDecoder` are trained on the same sentences,
seeded, until they write 99.5 % of 500 days right that are held out for this decision. What is
reported is the exact match on 2000 others: the share of dates with every letter right.
"""

import datetime
import platform
import random
import time

import torch
import torch.nn.functional as F
from torch import nn

from attention import Vocabulary, padding_mask
from attention.recurrent.encoder_decoder import BahdanauDecoder, BidirectionalEncoder, LuongDecoder

FIRST, LAST = datetime.date(1900, 1, 1), datetime.date(2099, 12, 31)
TRAINING, DECIDING, MEASURING = 20000, 500, 2000  # days
WANTED = 0.995  # exact match on the days that decide when to stop
MAX_EPOCHS, BATCH, LEARNING_RATE, LARGEST_GRADIENT = 20, 64, 3e-3, 1.0
D_EMBEDDING, HIDDEN_DIM = 32, 64

WORDS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
    fifteen sixteen seventeen eighteen nineteen"""
SMALL = WORDS.split()
TENS = (None, None, "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
ORDINAL = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
    "twenty": "twentieth",
    "thirty": "thirtieth",
}


def in_words(number):
    """A number below 100, in words."""
    if number < 20:
        return SMALL[number]
    tens, ones = divmod(number, 10)
    return TENS[tens] + (f"-{SMALL[ones]}" if ones else "")


def ordinal_in_words(number):
    *tens, last = in_words(number).split("-")
    return "-".join([*tens, ORDINAL.get(last, last + "th")])


def year_in_words(year):
    century, rest = divmod(year, 100)
    if century == 20 and rest < 10:
        return "two thousand" + (f" and {SMALL[rest]}" if rest else "")
    if rest == 0:
        return f"{SMALL[century]} hundred"
    return f"{in_words(century)} {'oh ' if rest < 10 else ''}{in_words(rest)}"


def write_out(day, rng):
    """One of the ways in which people write a day, lower-case."""
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10 if day.day // 10 != 1 else 0, "th")
    month = day.strftime("%B").lower()
    number = rng.choice([str(day.day), f"{day.day}{suffix}", ordinal_in_words(day.day)])
    month = rng.choice([month, month, month[:3]])
    year = rng.choice([str(day.year), year_in_words(day.year)])
    date = rng.choice(
        [
            f"{number} {month} {year}",
            f"the {number} of {month}, {year}",
            f"{month} {number}, {year}",
            f"{month} the {number} {year}",
        ]
    )
    return rng.choice(["", day.strftime("%A, ").lower(), day.strftime("%a ").lower()]) + date


def examples():
    """(written out, ISO) for training, deciding and measuring, no day twice."""
    rng = random.Random(0)
    days = [FIRST + datetime.timedelta(i) for i in range((LAST - FIRST).days + 1)]
    days = rng.sample(days, TRAINING + DECIDING + MEASURING)
    pairs = [(write_out(day, rng), day.isoformat()) for day in days]
    return pairs[:TRAINING], pairs[TRAINING:-MEASURING], pairs[-MEASURING:]


LETTERS = Vocabulary([list("abcdefghijklmnopqrstuvwxyz0123456789 ,-")], unknown=False)
SIGNS = Vocabulary([["<start>", "<end>", *"0123456789-"]], unknown=False)
START, END = SIGNS.ids["<start>"], SIGNS.ids["<end>"]


def encode(pairs):
    """Letters (batch, key) and signs (batch, target), from <start> to <end>."""
    texts, dates = zip(*pairs, strict=True)
    return (
        LETTERS.encode_batch([list(text) for text in texts]),
        SIGNS.encode_batch([["<start>", *date, "<end>"] for date in dates]),
    )


def exact_match(encoder, decoder, pairs):
    letters, signs = encode(pairs)
    mask, longest = padding_mask(letters, LETTERS.pad_id)[:, 0], signs.shape[1] - 1
    with torch.no_grad():
        written, _ = decoder.greedy(
            encoder(letters), mask, start_id=START, end_id=END, max_length=longest
        )
    # Where every sentence ended early, there are fewer signs, and an <end> too soon in each.
    wanted = signs[:, 1 : 1 + written.shape[1]]
    return (written == wanted).all(1).double().mean().item()


def train(decoder_class, training, deciding):
    """Encoder, decoder and the epochs that they took."""
    torch.manual_seed(0)
    rng = random.Random(0)
    encoder = BidirectionalEncoder(len(LETTERS), D_EMBEDDING, HIDDEN_DIM)
    decoder = decoder_class(len(SIGNS), D_EMBEDDING, 2 * HIDDEN_DIM, HIDDEN_DIM)
    model = nn.ModuleList([encoder, decoder])
    optimiser = torch.optim.Adam(model.parameters(), LEARNING_RATE)
    for epoch in range(1, MAX_EPOCHS + 1):
        losses = []
        for pairs in batches(training, rng):
            letters, signs = encode(pairs)
            mask = padding_mask(letters, LETTERS.pad_id)[:, 0]
            logits, _ = decoder(signs[:, :-1], encoder(letters), mask)
            loss = F.cross_entropy(logits.flatten(0, 1), signs[:, 1:].flatten())
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), LARGEST_GRADIENT)
            optimiser.step()
            losses.append(loss.item())
        share = exact_match(encoder, decoder, deciding)
        mean = sum(losses) / len(losses)
        print(f"  epoch {epoch:2}  loss {mean:.4f}  exact match {share:.1%}", flush=True)
        if share >= WANTED:
            break
    return encoder, decoder, epoch


def batches(pairs, rng):
    """Every pair once, in a new order, with sentences of like length in one batch."""
    pairs = sorted(pairs, key=lambda pair: (len(pair[0]), rng.random()))
    groups = [pairs[i : i + BATCH] for i in range(0, len(pairs), BATCH)]
    rng.shuffle(groups)
    return groups


def main():
    torch.set_num_threads(1)
    training, deciding, measuring = examples()
    print(f"\ntorch {torch.__version__}, 1 thread, {platform.machine()}")
    print(f"{TRAINING} days to learn from; two of them:")
    for text, date in training[:2]:
        print(f"  {text!r} -> {date!r}")
    for decoder_class in (BahdanauDecoder, LuongDecoder):
        print(f"\n{decoder_class.__name__}")
        start = time.perf_counter()
        encoder, decoder, epochs = train(decoder_class, training, deciding)
        seconds = time.perf_counter() - start
        share = exact_match(encoder, decoder, measuring)
        print(f"  {epochs} epochs, {seconds:.0f} s; held out: exact match {share:.2%}", flush=True)
        if share < 0.99:
            raise SystemExit(f"{decoder_class.__name__} stays below 99 %")


if __name__ == "__main__":
    main()
