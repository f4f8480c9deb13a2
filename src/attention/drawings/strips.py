"""Sums as strips: the parts of a weight, a score, a logit or a time, end to end."""

import math
from collections.abc import Mapping, Sequence
from numbers import Real

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from attention.drawings.drawing import Box, Canvas, Drawing, number


def name_strip(
    canvas: Canvas, x: Real, y: Real, words: str, look: str, *, away: Real = 12, above: Real
) -> None:
    """Name the strip that begins at (x, y): to its left, or above it on a phone."""
    if canvas.narrow:
        canvas.text(x, y - above, words, look, anchor="start")
    else:
        canvas.text(x - away, y + 17, words, look, anchor="end")


def name_parts(
    canvas: Canvas, parts: Sequence[Box], names: Sequence[Sequence[str]], *, size: Real = 12
) -> None:
    """Write on each part the first of its names that has room."""
    for part, words in zip(parts, names, strict=True):
        fitting = [each for each in words if part.width > 6.6 * len(each)]
        if fitting:
            x, y = part.middle
            canvas.text(x, y + 4, fitting[0], size=size)


def weight_on_pads(
    weights: Sequence[Float[Tensor, "_"]], tokens: Sequence[str], query: int, head: int
) -> Drawing:
    """Draw the weights of one query as one strip for each length of the padded sentence.

    The more pads, the less is left for the words.

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
        start, line, y, foot = (6, 84, 62, 4) if canvas.narrow else (84, 66, 34, 8)
        unit = canvas.width - start - 14
        words = title.split()
        cut = 7 if canvas.narrow else len(words)
        canvas.text(start, 18, " ".join(words[:cut]), "weights of bold", anchor="start")
        canvas.text(start, 35, " ".join(words[cut:]), "weights of bold", anchor="start")
        for name, row in values.items():
            name_strip(canvas, start, y, name, "quiet", away=10, above=6)
            n_pads = len(row) - n_words
            looks = ["weights"] * n_words + ["x faint"] * n_pads
            parts = canvas.strip(name, start, y, row.tolist(), looks, unit=unit)
            shares = zip(tokens, row[:n_words].tolist(), strict=True)
            names = [[f"{token} {share:.2f}"] for token, share in shares]
            name_parts(canvas, parts[:n_words], names)
            if n_pads:
                x, right = parts[n_words].x, parts[-1].right
                canvas.path(f"M{x + 1},{y + 28}v5H{right - 1:.1f}v-5", "mistake stroke")
                middle, said = (x + right) / 2, f"on {n_pads} pads: {on_pads[name]:.2f}"
                canvas.mistake(middle - 62, y + 45)
                canvas.text(middle - 48, y + 49, said, "bold", anchor="start")
            y += line if n_pads else line - 24
        return y - foot

    told = "; ".join(
        f"{name}: {share:.2f} of it on {len(values[name]) - n_words} pads"
        if len(values[name]) > n_words
        else f"{name}: all of it on words"
        for name, share in on_pads.items()
    )
    return Drawing(paint, f"{title.capitalize()}, a strip for each length. {told}.", values)


def mask_after_softmax(
    scores: Float[Tensor, " key"], mask: Bool[Tensor, " key"], tokens: Sequence[str]
) -> Drawing:
    """Draw the weight of the key with the largest allowed score, masked first and masked late.

    Each is a fraction: a mask that comes late strikes out a key above the line but not below it.

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
    names = [(f"{token} {power:.2f}", token) for token, power in zip(tokens, powers, strict=True)]

    def paint(canvas: Canvas) -> Real:
        start, high, y, after = (8, 112, 30, 74) if canvas.narrow else (184, 96, 14, 110)
        room = canvas.width - start - after
        unit = room / float(powers.sum())
        for name, heading in (("first", "mask, then softmax"), ("late", "softmax, then mask")):
            is_late, weight = name == "late", late if name == "late" else first
            at = (start + 24 * is_late, y - 10) if canvas.narrow else (30, y + 33)
            if is_late:
                canvas.mistake(16, at[1] - 5)
            canvas.text(*at, heading, "bold", size=12.5, anchor="start")
            above = canvas.strip(f"top {name}", start, y, top.tolist(), ["weights"], unit=unit)
            name_parts(canvas, above, names[best : best + 1])
            canvas.path(f"M{start - 4},{y + 29}H{start + room + 4:.1f}", "edge")
            below = values[f"sum {name}"].tolist()
            parts = canvas.strip(f"sum {name}", start, y + 34, below, looks, unit=unit)
            name_parts(canvas, parts, names)
            said = f"= {weight:.2f}"
            canvas.text(start + room + 12, y + 34, said, "bold", size=15, anchor="start")
            if is_late:
                hidden = [part for part, may in zip(parts, mask.tolist(), strict=True) if not may]
                for part in hidden:
                    canvas.rectangle(part.x, y, part.width, 24, "edge", stroke_dasharray="3 3")
                x = (hidden[0].x + hidden[-1].right) / 2
                canvas.text(x, y + 16, "struck here …", "quiet", size=12)
                canvas.text(x, y + 74, "… and still in the sum", "mistake of bold", size=12)
            y += high
        said = "each strip is as long as e to the power of its key’s score"
        canvas.text(start, y, said, "quiet", size=11, anchor="start")
        return y + 12

    def told(below: Float[Tensor, " key"]) -> str:
        return " + ".join(f"{power:.2f}" for power in below.tolist() if power > 0.005)

    alt = (
        f"The weight of “{tokens[best]}” as a fraction of strips, powers of e. Mask, then softmax: "
        f"{float(top):.2f} over {told(allowed)} = {first:.2f}. Softmax, then mask, a mistake: "
        f"{float(top):.2f} over {told(powers)} = {late:.2f}, for the hidden keys are struck above "
        "the line and stay in the sum below it."
    )
    return Drawing(paint, alt, values)


def logit_by_head(
    parts: Float[Tensor, "answer part"], answers: Sequence[tuple[str, str, str]]
) -> Drawing:
    """Draw the logit of each answer as the parts that it is the sum of.

    Args:
        parts: what each head brings, then what the biases bring.
        answers: (verb, question, word) of each row.

    Example:
        >>> import torch
        >>> from attention.drawings import logit_by_head
        >>> logit_by_head(torch.tensor([[2.0, 1.0, -0.5]]), [("sing", "who", "birds")])
        Drawing of sing who (3,)
    """
    n_heads = parts.shape[1] - 1
    looks = [f"head-{r}" for r in range(n_heads)] + ["x"]

    def paint(canvas: Canvas) -> Real:
        edge, line, y, foot = (6, 62, 36, 12) if canvas.narrow else (168, 42, 14, 0)
        before = float(-parts.cumsum(dim=1).min().clamp(max=0))  # where a strip runs back at first
        unit = (canvas.width - edge - 60) / (float(parts.clamp(min=0).sum(dim=1).max()) + before)
        start = edge + before * unit
        for (verb, question, word), row in zip(answers, parts, strict=True):
            name_strip(canvas, edge, y, f"{verb}, {question}: {word}", "bold", above=8)
            strip = f"{verb} {question}", start, y, row.tolist(), looks
            boxes = canvas.strip(*strip, unit=unit)
            names = [(f"head {r} {row[r]:.2f}", f"{row[r]:.2f}") for r in range(n_heads)]
            name_parts(canvas, boxes[:n_heads], names)
            end = max(box.right for box in boxes)
            canvas.text(end + 6, y + 17, f"{row.sum():.2f}", "bold", anchor="start")
            y += line
        canvas.text(edge, y - foot, "grey: the biases", "quiet", size=11, anchor="start")
        return y - foot + 12

    told = "; ".join(
        f"{verb}, {question}: {word} {row.sum():.2f}, of it "
        + ", ".join(f"head {r} {row[r]:.2f}" for r in range(n_heads))
        for (verb, question, word), row in zip(answers, parts, strict=True)
    )
    alt = f"The logit of each answer as a strip: the heads’ parts, and that of the biases. {told}."
    rows = zip(answers, parts, strict=True)
    return Drawing(paint, alt, {f"{verb} {question}": row for (verb, question, _), row in rows})


LOOKS = ("x", "head-1", "head-0")  # of the token's own row, of what the heads wrote into it


def score_in_parts(
    parts: Mapping[str, Float[Tensor, " part"]], names: Sequence[str], key: str
) -> Drawing:
    """Draw the score that one key gets in each of a few sequences, as the sum of its parts.

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

    def paint(canvas: Canvas) -> Real:
        edge, line, y, foot = (6, 114, 40, 26) if canvas.narrow else (104, 92, 24, 8)
        longest = max(float(values.clamp(min=0).sum()) for values in parts.values())
        unit = (canvas.width - edge - 56) / longest
        for text, values in parts.items():
            name_strip(canvas, edge, y, text, "bold", above=10)
            boxes = canvas.strip(text, edge, y, values.tolist(), looks, unit=unit)
            end = max(box.right for box in boxes)
            canvas.text(end + 6, y + 17, f"{values.sum():.1f}", "scores of bold", anchor="start")
            for nth, (name, look, value) in enumerate(zip(names, looks, values, strict=True)):
                said = f"{name} {number(value, 1)}"
                canvas.text(edge, y + 42 + 16 * nth, said, f"{look} of", size=12, anchor="start")
            y += line
        return y - foot

    told = "; ".join(
        f"in {text} {values.sum():.1f}, of which "
        + ", ".join(f"{name} {value:.1f}" for name, value in zip(names, values, strict=True))
        for text, values in parts.items()
    )
    return Drawing(paint, f"The score of {key} as a strip of its parts: {told}.", parts)


PARTS = {"weights": "x", "cache": "k"}  # and their looks
DOWN = 132  # from a step to the next


def decode_step(
    bytes_read: Int64[Tensor, "step 2"],
    flops: Int64[Tensor, "step 2"],
    steps: Sequence[str],
    *,
    bandwidth: Real,
    peak: Real,
) -> Drawing:
    """Draw each step's time of reading weights and cache above its time of computing.

    Both go on at the same time, so that a step takes as long as the longer of its two strips.

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
    values, waits, told = {}, [], []
    for nth in range(len(steps)):
        values |= {f"read {nth}": reading[nth], f"compute {nth}": computing[nth]}
        times = float(reading[nth].sum()), float(computing[nth].sum())
        waits.append("the memory" if times[0] > times[1] else "the arithmetic")
        read = zip(PARTS, bytes_read[nth].tolist(), strict=True)
        read = " and ".join(f"{prefixed(size, 'B')} of {part}" for part, size in read if size)
        computes = f"computes {prefixed(int(flops[nth].sum()), 'FLOP')}: {times[1]:.2f} ms"
        told.append((f"reads {read}: {times[0]:.2f} ms", computes))

    def paint(canvas: Canvas) -> Real:
        left, right = 10, canvas.width - 10
        unit = (right - left) / longest
        # On a phone a line of its own says what a step waits for.
        x, anchor, below, start, foot = right, "end", 0, 22, 0
        if canvas.narrow:
            x, anchor, below, start, foot = left, "start", 16, 36, 12
        for nth, step in enumerate(steps):
            y = 20 + DOWN * nth
            canvas.text(left, y, step, "bold", anchor="start")
            canvas.text(x, y + below, f"waits for {waits[nth]}", size=12, anchor=anchor)
            y += start
            for key, words in zip(("read", "compute"), told[nth], strict=True):
                size = 12
                if canvas.narrow:
                    words, size = words.replace(" and ", ", ").replace(" of ", " "), 11
                canvas.text(left, y, words, "quiet", size=size, anchor="start")
                strip = f"{key} {nth}", left, y + 5, values[f"{key} {nth}"].tolist()
                boxes = canvas.strip(*strip, list(PARTS.values()), unit=unit, high=18)
                name_parts(canvas, boxes, [[part] for part in PARTS])
                y += 40
        return DOWN * len(steps) + foot

    alt = " ".join(
        f"{step[0].upper()}{step[1:]}: it {' and '.join(words)}, so it waits for {what}."
        for step, words, what in zip(steps, told, waits, strict=True)
    )
    return Drawing(paint, alt, values)


def prefixed(count: int, unit: str) -> str:
    """A number in three digits with its unit: 16,000,000,000 and "B" as "16 GB"."""
    thousands = min(int(math.log10(max(count, 1))) // 3, 4)
    return f"{count / 1000**thousands:.3g} {' kMGT'[thousands].strip()}{unit}"


# What crosses with each of the two methods, in this order: its name and its look.
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
    """Draw a large slow memory and a small fast one, and count the bytes that cross.

    Each tile of queries stays in the small memory until all tiles of keys and values have passed.
    Standard attention writes scores and weights to the large memory and reads each of them again.

    Args:
        q: of one head, (query, d_key); its numbers are not read, only their size.
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
    queries, both, outputs = map(megabytes, (tiled[0], tiled[1:3].sum(), tiled[3:].sum()))

    def paint(canvas: Canvas) -> Real:
        paint_large(canvas)
        small = paint_small(canvas)
        crossing = (
            ("q", "Q", f"once, {queries}"),
            ("k", "K and V", f"{passes:,} times, {both}"),
            ("output", "output, L", f"once, {outputs}"),
        )
        for nth, words in enumerate(crossing):
            paint_crossing(canvas, small, nth, *words)
        y = small.bottom
        unit = (canvas.width - 8) / float(max(standard.sum(), tiled.sum()))
        for title, name, parts, kinds in (
            ("standard attention", "standard", standard, STANDARD),
            (f"in tiles of {tile} queries", "in tiles", tiled, TILED),
        ):
            y += 34
            said = f"{title}: {megabytes(parts.sum())} cross"
            canvas.text(4, y, said, size=12, anchor="start")
            strip = name, 4, y + 8, parts.tolist(), list(kinds.values())
            boxes = canvas.strip(*strip, unit=unit, high=22)
            name_parts(canvas, boxes, [[kind] for kind in kinds], size=11)
            y += 30
        return y + 8

    def paint_large(canvas: Canvas) -> None:
        """Paint the large memory, and in it the tiles that are in hand."""
        wide = canvas.width - 8 if canvas.narrow else 316
        canvas.rectangle(4, 28, wide, 182, "edge")
        canvas.text(4, 18, "large memory, slow", "bold", anchor="start")
        tensors = ("Q", q, "q"), ("K", k, "k"), ("V", v, "v"), ("output", q, "output")
        for nth, (name, x, look) in enumerate(tensors):
            box = canvas.tensor(wide / 4 * (nth + 0.5) - 3, 56, (12, 3), look, unit=10)
            canvas.text(box.middle[0], 47, name, f"{look} of bold", size=12)
            canvas.text(box.middle[0], 193, f"{x.shape[0]:,}", "quiet", size=11)
            top = box.y if look in "kv" else box.y + 40  # of six tiles that stand for all
            canvas.rectangle(box.x, top, box.width, 20, f"{look} fill", fill_opacity=0.6)
            if look in "qk":
                canvas.arrow(box.x - 8, box.y, box.x - 8, box.bottom, width=1)
                loop = "outer loop" if look == "q" else "inner loop"
                canvas.upright(box.x - 14, box.middle[1], loop, "quiet")

    def paint_small(canvas: Canvas) -> Box:
        place = (4, 330, canvas.width - 8, 116) if canvas.narrow else (476, 28, 180, 182)
        small = canvas.rectangle(*place, "edge")
        canvas.text(small.x, small.y - 10, "small memory, quick", "bold", anchor="start")
        parts = (
            (f"{tile} queries", "q"),
            ("some keys and values", "k"),
            ("their scores: never leave", "scores"),
            ("maximum, sum, output so far", "output"),
        )
        pitch = (small.height - 12) / len(parts)
        for nth, (words, look) in enumerate(parts):
            box = Box(small.x + 8, small.y + 8 + pitch * nth, small.width - 16, pitch - 6)
            canvas.rectangle(*box, f"{look} fill", fill_opacity=0.16)
            canvas.rectangle(*box, f"{look} stroke")
            canvas.text(box.middle[0], box.middle[1] + 4, words, size=11)
        return small

    def paint_crossing(
        canvas: Canvas, small: Box, nth: int, look: str, name: str, amount: str
    ) -> None:
        """Paint what crosses from one memory to the other; the output goes back."""
        width, back = 4 if look == "k" else 1.5, -1 if look == "output" else 1
        if canvas.narrow:
            x, y = canvas.width * (nth + 0.5) / 3, 214
            start, end = (y, small.y - 28)[::back]
            canvas.arrow(x - 44, start, x - 44, end, look, width=width)
            canvas.text(x - 34, y + 26, name, f"{look} of bold", size=12, anchor="start")
            for row, words in enumerate(amount.split(", ")):
                canvas.text(x - 34, y + 44 + 16 * row, words, size=11, anchor="start")
        else:
            y = small.y + small.height * (nth + 0.5) / 3
            start, end = (328, small.x - 8)[::back]
            canvas.arrow(start, y, end, y, look, width=width)
            canvas.text((start + end) / 2, y - 8, name, f"{look} of bold", size=12)
            canvas.text((start + end) / 2, y + 18, amount, size=11)

    alt = (
        f"Two memories. In the large and slow one lie Q, K, V and the output, {q.shape[0]:,} rows "
        f"each. An outer loop takes {tile} queries at a time into the small and quick memory, "
        f"{queries} in all. For each of these {passes:,} tiles an inner loop brings "
        f"all keys and values, tile by tile: {both}. Scores are made there "
        f"and never leave. Output and log-sum-exp go back once, {outputs}. In all "
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


def megabytes(size: Float[Tensor, ""]) -> str:
    return f"{float(size):,.0f} MB" if size >= 1 else f"{float(size):.2f} MB"
