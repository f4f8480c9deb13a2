"""Sums as strips: the parts of a weight, a score, a logit, a time, end to end."""

import math
from collections.abc import Mapping, Sequence
from numbers import Real

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from attention.drawings.drawing import Box, Canvas, Drawing


def weight_on_pads(
    weights: Sequence[Float[Tensor, "_"]], tokens: Sequence[str], query: int, head: int
) -> Drawing:
    """Draw the weights of one query as one strip for each length of the padded sentence.

    Args:
        weights: (key,) for each length, the shortest first; keys beyond the tokens are pads.
        tokens: the words of the sentence.
        query: the position of the word whose weights they are.
        head: whose weights they are.

    Example:
        >>> import torch
        >>> from attention.drawings import weight_on_pads
        >>> weight_on_pads([torch.tensor([0.5, 0.5, 0.0])], ["birds", "sing"], 1, 0)
        Drawing of 3 tokens (3,)
    """
    n_words = len(tokens)
    values = {f"{len(row)} tokens": row.detach() for row in weights}
    on_pads = {name: float(row[n_words:].sum()) for name, row in values.items()}
    title = f"what “{tokens[query]}” gives to its keys in head {head}, without a mask"

    def paint(canvas: Canvas) -> Real:
        start, line = (6, 84) if canvas.narrow else (84, 66)
        unit = canvas.width - start - 14
        words = ["what", *title.split()[1:]]
        cut = 7 if canvas.narrow else len(words)
        canvas.text(start, 18, " ".join(words[:cut]), "weights of bold", anchor="start")
        canvas.text(start, 35, " ".join(words[cut:]), "weights of bold", anchor="start")
        top = 62 if canvas.narrow else 34
        for name, row in values.items():
            if canvas.narrow:
                canvas.text(start, top - 6, name, "quiet", anchor="start")
            else:
                canvas.text(start - 10, top + 17, name, "quiet", anchor="end")
            looks = ["weights"] * n_words + ["x faint"] * (len(row) - n_words)
            parts = canvas.strip(name, start, top, row.tolist(), looks, unit=unit)
            paint_names(canvas, parts[:n_words], tokens, row)
            if len(row) > n_words:
                first, last = parts[n_words], parts[-1]
                paint_bracket(canvas, first.x, last.right, top + 28, len(row) - n_words, row)
            top += line if len(row) > n_words else line - 24
        return top - 4 if canvas.narrow else top - 8

    def paint_bracket(
        canvas: Canvas, x: Real, right: Real, y: Real, n_pads: int, row: Float[Tensor, "_"]
    ) -> None:
        canvas.path(f"M{x + 1},{y}v5H{right - 1:.1f}v-5", "mistake stroke")
        middle = (x + right) / 2
        share = float(row[n_words:].sum())
        canvas.mistake(middle - 62, y + 17)
        canvas.text(middle - 48, y + 21, f"on {n_pads} pads: {share:.2f}", "bold", anchor="start")

    told = "; ".join(
        f"{name}: {share:.2f} of it on {len(values[name]) - n_words} pads"
        if len(values[name]) > n_words
        else f"{name}: all of it on words"
        for name, share in on_pads.items()
    )
    return Drawing(paint, f"{title.capitalize()}, a strip for each length. {told}.", values)


def paint_names(
    canvas: Canvas, parts: Sequence[Box], tokens: Sequence[str], row: Float[Tensor, "_"]
) -> None:
    """Name the parts that are wide enough for it."""
    for part, token, weight in zip(parts, tokens, row[: len(tokens)].tolist(), strict=True):
        name = f"{token} {weight:.2f}"
        if part.width > 6.2 * len(name):
            canvas.text(part.middle[0], part.y + 16, name, size=12)


def mask_after_softmax(
    scores: Float[Tensor, " key"], mask: Bool[Tensor, " key"], tokens: Sequence[str]
) -> Drawing:
    """Draw the weight of the key with the largest allowed score, masked first and masked late.

    Args:
        scores: of one query, (key,).
        mask: True = may attend.
        tokens: of the keys.

    Example:
        >>> import torch
        >>> from attention.drawings import mask_after_softmax
        >>> mask = torch.tensor([True, False])
        >>> mask_after_softmax(torch.zeros(2), mask, ["birds", "<pad>"])
        Drawing of top first (1,), sum first (2,), top late (1,), sum late (2,)
    """
    powers = (scores - scores.max()).exp()
    allowed = powers * mask
    best = int(allowed.argmax())
    top = powers[best : best + 1]
    values = {"top first": top, "sum first": allowed, "top late": top, "sum late": powers}
    looks = ["weights" if may else "x faint" for may in mask.tolist()]
    first, late = (float(top / below.sum()) for below in (allowed, powers))

    def paint(canvas: Canvas) -> Real:
        start, high = (8, 112) if canvas.narrow else (184, 96)
        room = canvas.width - start - (74 if canvas.narrow else 110)
        unit = room / float(powers.sum())
        y = 30 if canvas.narrow else 14
        for name, below, weight in (("first", allowed, first), ("late", powers, late)):
            heading = "mask, then softmax" if name == "first" else "softmax, then mask"
            if name == "late":
                canvas.mistake(
                    start + 8 if canvas.narrow else 16, y + (-15 if canvas.narrow else 28)
                )
            left = 24 if name == "late" and canvas.narrow else 0
            at = (start + left, y - 10) if canvas.narrow else (30, y + 33)
            canvas.text(*at, heading, "bold", size=12.5, anchor="start")
            above = canvas.strip(f"top {name}", start, y, top.tolist(), ["weights"], unit=unit)
            name_parts(canvas, above, [tokens[best]], top)
            canvas.path(f"M{start - 4},{y + 29}H{start + room + 4:.1f}", "edge")
            parts = canvas.strip(f"sum {name}", start, y + 34, below.tolist(), looks, unit=unit)
            name_parts(canvas, parts, tokens, below)
            canvas.text(
                start + room + 12, y + 34, f"= {weight:.2f}", "bold", size=15, anchor="start"
            )
            if name == "late":
                hidden = [part for part, may in zip(parts, mask.tolist(), strict=True) if not may]
                paint_struck(canvas, hidden, y)
            y += high
        said = "each strip is as long as e to the power of its key’s score"
        canvas.text(start, y, said, "quiet", size=11, anchor="start")
        return y + 12

    def paint_struck(canvas: Canvas, hidden: Sequence[Box], y: Real) -> None:
        for part in hidden:
            canvas.rectangle(part.x, y, part.width, 24, "edge", stroke_dasharray="3 3")
        x, right = hidden[0].x, hidden[-1].right
        canvas.text((x + right) / 2, y + 16, "struck here …", "quiet", size=12)
        words = "… and still in the sum"
        canvas.text((x + right) / 2, y + 74, words, "mistake of bold", size=12)

    def told(below: Float[Tensor, " key"]) -> str:
        return " + ".join(f"{power:.2f}" for power in below.tolist() if power > 0.005)

    alt = (
        f"The weight of “{tokens[best]}” as a fraction of strips, powers of e. Mask, then softmax: "
        f"{float(top):.2f} over {told(allowed)} = {first:.2f}. Softmax, then mask, a mistake: "
        f"{float(top):.2f} over {told(powers)} = {late:.2f}, for the hidden keys are struck above "
        "the line and stay in the sum below it."
    )
    return Drawing(paint, alt, values)


def name_parts(
    canvas: Canvas, parts: Sequence[Box], names: Sequence[str], powers: Float[Tensor, " part"]
) -> None:
    """Name the parts that are wide enough for it, with their numbers where there is room."""
    for part, name, power in zip(parts, names, powers.tolist(), strict=True):
        full = f"{name} {power:.2f}"
        fitting = [words for words in (full, name) if part.width > 6.6 * len(words)]
        if fitting:
            canvas.text(part.middle[0], part.y + 16, fitting[0], size=12)


def logit_by_head(
    parts: Float[Tensor, "answer part"], answers: Sequence[tuple[str, str, str]]
) -> Drawing:
    """Draw the logit of each answer as the parts that it is the sum of.

    Args:
        parts: what each head brings, and last the biases.
        answers: (verb, question, word) of each row.

    Example:
        >>> import torch
        >>> from attention.drawings import logit_by_head
        >>> logit_by_head(torch.tensor([[2.0, 1.0, -0.5]]), [("sing", "who", "birds")])
        Drawing of sing who (3,)
    """
    values = {
        f"{verb} {question}": row for (verb, question, _), row in zip(answers, parts, strict=True)
    }
    n_heads = parts.shape[1] - 1
    looks = [f"head-{r}" for r in range(n_heads)] + ["x"]

    def paint(canvas: Canvas) -> Real:
        edge, line = (6, 62) if canvas.narrow else (168, 42)
        before = float(-parts.cumsum(dim=1).min().clamp(max=0))  # where a strip runs back at first
        unit = (canvas.width - edge - 60) / (float(parts.clamp(min=0).sum(dim=1).max()) + before)
        start = edge + before * unit
        y = 36 if canvas.narrow else 14
        for (verb, question, word), (name, row) in zip(answers, values.items(), strict=True):
            asked = f"{verb}, {question}: {word}"
            if canvas.narrow:
                canvas.text(edge, y - 8, asked, "bold", anchor="start")
            else:
                canvas.text(edge - 12, y + 17, asked, "bold", anchor="end")
            boxes = canvas.strip(name, start, y, row.tolist(), looks, unit=unit)
            for r, (box, value) in enumerate(zip(boxes, row.tolist(), strict=True)):
                full = f"head {r} {value:.2f}"
                if r < n_heads:
                    words = full if box.width > 7.5 * len(full) else f"{value:.2f}"
                    if box.width > 6.8 * len(words):
                        canvas.text(box.middle[0], y + 16, words, size=12)
            end = max(box.right for box in boxes)
            canvas.text(end + 6, y + 17, f"{float(row.sum()):.2f}", "bold", anchor="start")
            y += line
        under = y - 12 if canvas.narrow else y
        canvas.text(edge, under, "grey: the biases", "quiet", size=11, anchor="start")
        return under + 12

    told = "; ".join(
        f"{verb}, {question}: {word} {float(row.sum()):.2f}, of it "
        + ", ".join(f"head {r} {value:.2f}" for r, value in enumerate(row.tolist()[:n_heads]))
        for (verb, question, word), row in zip(answers, parts, strict=True)
    )
    alt = f"The logit of each answer as a strip: the heads’ parts, and that of the biases. {told}."
    return Drawing(paint, alt, values)


LOOKS = ("x", "head-1", "head-0")  # of the token's own row, of what the heads wrote into it


def score_in_parts(
    parts: Mapping[str, Float[Tensor, " part"]], names: Sequence[str], key: str
) -> Drawing:
    """Draw the score that one key gets in each of a few sequences, as the parts it is the sum of.

    Without a norm between the layers a key is a sum, and so is its score.

    Args:
        parts: by the sequence, the part of the token's own row first, then those of what the
            heads wrote into it, that of head 1 before that of head 0, (part,).
        names: of the parts, three at most.
        key: the token whose score it is.

    Example:
        >>> import torch
        >>> from attention.drawings import score_in_parts
        >>> names = ["own row", "written by 0.1", "written by 0.0"]
        >>> score_in_parts({"kxk": torch.tensor([2.0, 13, -0.3])}, names, "x")
        Drawing of kxk (3,)
    """
    looks = LOOKS[: len(names)]
    totals = {text: float(values.sum()) for text, values in parts.items()}

    def paint(canvas: Canvas) -> Real:
        edge, down = (6, 114) if canvas.narrow else (104, 92)
        longest = max(float(values.clamp(min=0).sum()) for values in parts.values())
        unit = (canvas.width - edge - 56) / longest
        y = 40 if canvas.narrow else 24
        for text, values in parts.items():
            if canvas.narrow:
                canvas.text(edge, y - 10, text, "bold", anchor="start")
            else:
                canvas.text(edge - 12, y + 17, text, "bold", anchor="end")
            boxes = canvas.strip(text, edge, y, values.tolist(), looks, unit=unit)
            end = max(box.right for box in boxes)
            canvas.text(end + 6, y + 17, f"{totals[text]:.1f}", "scores of bold", anchor="start")
            for nth, (name, look, value) in enumerate(
                zip(names, looks, values.tolist(), strict=True)
            ):
                number = f"{value:.1f}".replace("-", "−")
                words = edge, y + 42 + 16 * nth, f"{name} {number}", f"{look} of"
                canvas.text(*words, size=12, anchor="start")
            y += down
        return y - (26 if canvas.narrow else 8)

    told = "; ".join(
        f"in {text} {totals[text]:.1f}, of which "
        + ", ".join(
            f"{name} {value:.1f}" for name, value in zip(names, values.tolist(), strict=True)
        )
        for text, values in parts.items()
    )
    alt = f"The score of {key} as a strip of its parts: {told}."
    return Drawing(paint, alt, parts)


PARTS = {"weights": "x", "cache": "k"}  # and their looks
HIGH = 18  # of a strip
DOWN = 132  # from a step to the next


def decode_step(
    bytes_read: Int64[Tensor, "step 2"],
    flops: Int64[Tensor, "step 2"],
    steps: Sequence[str],
    *,
    bandwidth: Real,
    peak: Real,
) -> Drawing:
    """Draw for each step the time of reading weights and cache above the time of computing.

    Both go on side by side, so that a step takes as long as the longer of its two strips.

    Args:
        bytes_read: of the weights and of the cache, (step, 2).
        flops: with the weights and with the cache, (step, 2).
        steps: what each is called.
        bandwidth: bytes a second.
        peak: FLOPs a second.

    Example:
        >>> import torch
        >>> from attention.drawings import decode_step
        >>> read, flops = torch.tensor([[6000, 3000]]), torch.tensor([[8000, 2000]])
        >>> decode_step(read, flops, ["decode, one text"], bandwidth=1e6, peak=1e7)
        Drawing of read 0 (2,), compute 0 (2,)
    """
    reading, computing = 1000 * bytes_read.double() / bandwidth, 1000 * flops.double() / peak  # ms
    longest = float(torch.stack([reading, computing]).sum(-1).max())
    waits, told, briefly = [], [], []
    for nth in range(len(steps)):
        times = float(reading[nth].sum()), float(computing[nth].sum())
        waits.append("the memory" if times[0] > times[1] else "the arithmetic")
        read = zip(PARTS, bytes_read[nth].tolist(), strict=True)
        read = [(prefixed(size, "B"), part) for part, size in read if size]
        computes = f"computes {prefixed(int(flops[nth].sum()), 'FLOP')}: {times[1]:.2f} ms"
        for lines, what in (
            (told, " and ".join(f"{size} of {part}" for size, part in read)),
            (briefly, ", ".join(f"{size} {part}" for size, part in read)),
        ):
            lines.append((f"reads {what}: {times[0]:.2f} ms", computes))

    def paint(canvas: Canvas) -> Real:
        x = 10
        lines, size = (briefly, 11) if canvas.narrow else (told, 12)
        unit = (canvas.width - 2 * x) / longest
        for nth, step in enumerate(steps):
            y = 20 + DOWN * nth
            canvas.text(x, y, step, "bold", anchor="start")
            if canvas.narrow:
                canvas.text(x, y + 16, f"waits for {waits[nth]}", size=12, anchor="start")
            else:
                right = canvas.width - x
                canvas.text(right, y, f"waits for {waits[nth]}", size=12, anchor="end")
            y += 36 if canvas.narrow else 22
            for key, times, words in (
                ("read", reading[nth], lines[nth][0]),
                ("compute", computing[nth], lines[nth][1]),
            ):
                canvas.text(x, y, words, "quiet", size=size, anchor="start")
                strip = canvas.strip(
                    *(f"{key} {nth}", x, y + 5, times.tolist(), list(PARTS.values())),
                    unit=unit,
                    high=HIGH,
                )
                for part, box in zip(PARTS, strip, strict=True):
                    if box.width > 52:
                        canvas.text(box.middle[0], box.y + 13, part, size=12)
                y += HIGH + 22
        return DOWN * len(steps) + (12 if canvas.narrow else 0)

    alt = " ".join(
        f"{step[0].upper()}{step[1:]}: it {' and '.join(words)}, so it waits for {what}."
        for step, words, what in zip(steps, told, waits, strict=True)
    )
    values = {
        f"{key} {nth}": times[nth]
        for nth in range(len(steps))
        for key, times in (("read", reading), ("compute", computing))
    }
    return Drawing(paint, alt, values)


def prefixed(number: int, unit: str) -> str:
    """A number in three digits with its unit: 16,000,000,000 and "B" as "16 GB"."""
    thousands = min(int(math.log10(max(number, 1))) // 3, 4)
    return f"{number / 1000**thousands:.3g} {' kMGT'[thousands].strip()}{unit}"


# What crosses on each way, in this order: its name and its look.
STANDARD = {
    "Q": "q",
    "K": "k",
    "scores out": "scores",
    "scores in": "scores",
    "weights out": "weights",
    "weights in": "weights",
    "V": "v",
    "output": "output",
}
TILED = {"Q": "q", "K": "k", "V": "v", "output": "output", "L": "x"}
NUMBER_OF_L = 4  # bytes: the log-sum-exp is kept in float32


def two_memories(
    q: Float[Tensor, "query d_key"],
    k: Float[Tensor, "key d_key"],
    v: Float[Tensor, "key d_value"],
    tile: int,
) -> Drawing:
    """Draw a large slow memory and a small quick one, and count the bytes that cross.

    Each tile of queries stays in the small memory until all tiles of keys and values have passed.
    Standard attention writes scores and weights to the large memory and reads each of them again.

    Args:
        q: of one head, (query, d_key); its numbers are not read, their size is.
        k: (key, d_key).
        v: (key, d_value).
        tile: how many queries a tile has.

    Example:
        >>> import torch
        >>> from attention.drawings import two_memories
        >>> x = torch.zeros(1024, 64, dtype=torch.float16)
        >>> two_memories(x, x, x, tile=64)
        Drawing of standard (8,), in tiles (5,)
    """
    passes = -(-q.shape[0] // tile)  # of all keys and values: one for each tile of queries
    standard, tiled = moved(q, k, v, passes)
    outputs = float(tiled[3:].sum())

    def paint(canvas: Canvas) -> Real:
        crossing = (
            ("q", "Q", f"once, {megabytes(tiled[0])}"),
            ("k", "K and V", f"{passes:,} times, {megabytes(tiled[1:3].sum())}"),
            ("output", "output, L", f"once, {megabytes(outputs)}"),
        )
        small = paint_memories(canvas, q, k, v, tile)
        y = paint_crossing(canvas, crossing, small)
        whole = float(max(standard.sum(), tiled.sum()))
        for title, name, parts, kinds in (
            ("standard attention", "standard", standard, STANDARD),
            (f"in tiles of {tile} queries", "in tiles", tiled, TILED),
        ):
            y += 34
            said = f"{title}: {megabytes(parts.sum())} cross"
            canvas.text(4, y, said, size=12, anchor="start")
            unit = (canvas.width - 8) / whole
            strip = canvas.strip(
                name, 4, y + 8, parts.tolist(), list(kinds.values()), unit=unit, high=22
            )
            for box, part in zip(strip, kinds, strict=True):
                if box.width > 6.6 * len(part):
                    canvas.text(box.middle[0], box.y + 15, part, size=11)
            y += 30
        return y + 8

    alt = (
        f"Two memories. In the large and slow one lie Q, K, V and the output, {q.shape[0]:,} rows "
        f"each. An outer loop takes {tile} queries at a time into the small and quick memory, "
        f"{megabytes(tiled[0])} in all. For each of these {passes:,} tiles an inner loop brings "
        f"all keys and values, tile by tile: {megabytes(tiled[1:3].sum())}. Scores are made there "
        f"and never leave. Output and log-sum-exp go back once, {megabytes(outputs)}. In all "
        f"{megabytes(tiled.sum())} cross; standard attention, which writes and reads scores and "
        f"weights, moves {megabytes(standard.sum())}."
    )
    return Drawing(paint, alt, {"standard": standard, "in tiles": tiled})


def moved(
    q: Tensor, k: Tensor, v: Tensor, passes: int
) -> tuple[Float[Tensor, " 8"], Float[Tensor, " 5"]]:
    """Megabytes that cross for each of `STANDARD` and of `TILED`."""
    queries, keys, values = (x.numel() * x.element_size() for x in (q, k, v))
    pairs = q.shape[0] * k.shape[0] * q.element_size()
    output = q.shape[0] * v.shape[1] * q.element_size()
    standard = [queries, keys, *[pairs] * 4, values, output]
    tiled = [queries, passes * keys, passes * values, output, q.shape[0] * NUMBER_OF_L]
    return tuple(torch.tensor(bytes_, dtype=torch.float64) / 1e6 for bytes_ in (standard, tiled))


def megabytes(size: Real | Tensor) -> str:
    return f"{float(size):,.0f} MB" if size >= 1 else f"{float(size):.2f} MB"


def paint_memories(canvas: Canvas, q: Tensor, k: Tensor, v: Tensor, tile: int) -> Box:
    """Paint both memories and the tiles in hand; returns where the small one is."""
    wide = canvas.width - 8 if canvas.narrow else 316
    large = canvas.rectangle(4, 28, wide, 182, "edge")
    canvas.text(large.x, 18, "large memory, slow", "bold", anchor="start")
    step = wide / 4
    for nth, (name, x, look) in enumerate(
        (("Q", q, "q"), ("K", k, "k"), ("V", v, "v"), ("output", q, "output"))
    ):
        left = large.x + step * nth + (step - 30) / 2 + 8
        box = canvas.tensor(left, 56, (12, 3), look, unit=10)
        canvas.text(box.middle[0], 47, name, f"{look} of bold", size=12)
        canvas.text(box.middle[0], 193, f"{x.shape[0]:,}", "quiet", size=11)
        row = 0 if look in "kv" else 2  # of six tiles that stand for all
        canvas.rectangle(box.x, box.y + 20 * row, box.width, 20, f"{look} fill", fill_opacity=0.6)
        if look in "qk":
            canvas.arrow(box.x - 8, box.y, box.x - 8, box.bottom, width=1)
            loop = "outer loop" if look == "q" else "inner loop"
            canvas.upright(box.x - 14, box.middle[1], loop, "quiet")
    x, y = (4, 330) if canvas.narrow else (canvas.width - 184, 28)
    wide = canvas.width - 8 if canvas.narrow else 180
    small = canvas.rectangle(x, y, wide, 116 if canvas.narrow else 182, "edge")
    canvas.text(x, y - 10, "small memory, quick", "bold", anchor="start")
    parts = (
        (f"{tile} queries", "q"),
        ("some keys and values", "k"),
        ("their scores: never leave", "scores"),
        ("maximum, sum, output so far", "output"),
    )
    pitch = (small.height - 12) / len(parts)
    for nth, (words, look) in enumerate(parts):
        box = Box(x + 8, y + 8 + pitch * nth, wide - 16, pitch - 6)
        canvas.rectangle(*box, f"{look} fill", fill_opacity=0.16)
        canvas.rectangle(*box, f"{look} stroke")
        canvas.text(box.middle[0], box.middle[1] + 4, words, size=11)
    return small


def paint_crossing(canvas: Canvas, crossing: Sequence[tuple[str, str, str]], small: Box) -> Real:
    """Paint what crosses between the memories; returns where the drawing ends so far."""
    for nth, (look, name, amount) in enumerate(crossing):
        width = 4 if look == "k" else 1.5
        if canvas.narrow:
            x, y = canvas.width * (nth + 0.5) / 3, 214
            ends = (small.y - 28, y) if look == "output" else (y, small.y - 28)
            canvas.arrow(x - 44, ends[0], x - 44, ends[1], look, width=width)
            canvas.text(x - 34, y + 26, name, f"{look} of bold", size=12, anchor="start")
            for row, words in enumerate(amount.split(", ")):
                canvas.text(x - 34, y + 44 + 16 * row, words, size=11, anchor="start")
        else:
            y = small.y + small.height * (nth + 0.5) / 3
            left, right = 328, small.x - 8
            ends = (right, left) if look == "output" else (left, right)
            canvas.arrow(ends[0], y, ends[1], y, look, width=width)
            canvas.text((left + right) / 2, y - 8, name, f"{look} of bold", size=12)
            canvas.text((left + right) / 2, y + 18, amount, size=11)
    return small.bottom
