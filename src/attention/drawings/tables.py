"""Tensors as tables, and what leads from one to the next."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Real

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, inf, nn

from attention.drawings.drawing import Box, Canvas, Drawing, number, point


def word_and_place(
    words: Float[Tensor, "seq d_model"],
    pe: Float[Tensor, "seq d_model"],
    tokens: Sequence[str],
    positions: Sequence[int],
) -> Drawing:
    """Draw how the rows at some positions are added up.

    Args:
        words: the rows of a sentence's words, (seq, d_model).
        pe: those of its positions, (seq, d_model).
        tokens: its words.
        positions: those to draw.

    Example:
        >>> import torch
        >>> from attention.drawings import word_and_place
        >>> words, pe = torch.ones(2, 2), torch.eye(2)
        >>> word_and_place(words, pe, ["the", "the"], [1])
        Drawing of word 1 (1, 2), place 1 (1, 2), X 1 (1, 2)
    """
    values = {}
    for pos in positions:
        values[f"word {pos}"] = words[[pos]]
        values[f"place {pos}"] = pe[[pos]]
        values[f"X {pos}"] = words[[pos]] + pe[[pos]]
    largest = max(float(value.abs().max()) for value in values.values())

    def paint(canvas: Canvas) -> Real:
        digits, so = (1, "") if canvas.narrow else (2, ": another row")
        left, wide = 90, min((canvas.width - 94) / words.shape[1], 68)
        look = {"cell": (wide, 22), "largest": largest, "digits": digits}
        y = 8
        for pos in positions:
            if pos != positions[0] and torch.allclose(words[pos], words[positions[0]]):
                said = f"the same word, another position{so}"
                canvas.text(left, y - 9, said, "bold", size=12, anchor="start")
            for kind, down, label, sign, weight in (
                ("word", 0, f"“{tokens[pos]}”", "", ""),
                ("place", 26, f"position {pos}", "+", ""),
                ("X", 60, f"X row {pos}", "=", "bold"),
            ):
                name = f"{kind} {pos}"
                canvas.matrix(name, left, y + down, values[name], **look)
                canvas.text(left - 8, y + down + 15, label, weight, size=12, anchor="end")
                canvas.text(9, y + down + 15, sign, "bold", size=14)
            canvas.path(f"M{left},{y + 54}h{round(wide * words.shape[1])}", "edge")
            y += 122
        return y - 28

    sums = " ".join(
        f"“{tokens[pos]}” at position {pos}: its word begins {begin(values[f'word {pos}'])}, its "
        f"position {begin(values[f'place {pos}'])}, and their sum, row {pos} of X, "
        f"{begin(values[f'X {pos}'])}."
        for pos in positions
    )
    return Drawing(
        paint, f"The row of a word plus the row of its position is a row of X. {sums}", values
    )


def begin(row: Float[Tensor, "1 d_model"]) -> str:
    """The first two numbers of a row."""
    return ", ".join(f"{value + 0.0:.2f}" for value in row[0, :2].tolist())


def same_average(
    sentences: Sequence[str],
    at: Sequence[int],
    words: Float[Tensor, "2 d_model"],
    positions: Float[Tensor, "2 d_model"],
) -> Drawing:
    """Draw the average of two rows of X, for a sentence and for the same with two words exchanged.

    Args:
        sentences: two, alike but for the words at the two positions, which are exchanged.
        at: the two positions.
        words: (word, d_model), what the words add to X, in the first sentence's order.
        positions: (position, d_model), what the positions add.

    Example:
        >>> import torch
        >>> from attention.drawings import same_average
        >>> same_average(["dog saw cat", "cat saw dog"], [0, 2], torch.eye(2), torch.ones(2, 2))
        Drawing of first (4, 2), first average (1, 2), second (4, 2), second average (1, 2)
    """
    named = [[sentence.split()[position] for position in at] for sentence in sentences]
    # In each sentence's order: a word, its position, the other word, its position.
    terms = [(words[i], positions[0], words[1 - i], positions[1]) for i in range(2)]
    labels = [
        [f"½ {one}", f"½ position {at[0]}", f"½ {other}", f"½ position {at[1]}"]
        for one, other in named
    ]
    values = {}
    for which, four in zip(("first", "second"), terms, strict=True):
        values[which] = 0.5 * words.new_tensor([term.tolist() for term in four])
        values[f"{which} average"] = values[which].sum(dim=0, keepdim=True)
    largest = max(float(value.abs().max()) for value in values.values())

    def paint(canvas: Canvas) -> Real:
        def half(nth: int, x: Real, y: Real) -> Box:
            """Paint one sentence: four rows and, below them, their average."""
            which = ("first", "second")[nth]
            canvas.text(x + wide / 2, y - 12, sentences[nth], "bold")
            box = canvas.matrix(which, x, y, values[which], **look)
            average = f"{which} average"
            below = canvas.matrix(average, x, y + 5.2 * 22, values[average], **look)
            # The right half has room on its right.
            side, anchor = (box.right + 8, "start") if x > margin else (x - 6, "end")
            for r, label in enumerate(labels[nth]):
                canvas.text(side, y + 22 * r + 15, label, size=12, anchor=anchor)
            canvas.text(side, below.y + 15, "average", "bold", size=12, anchor=anchor)
            return Box(x, y, box.width, below.bottom - y)

        cell, margin = 29, 84  # the names stand in the margins
        wide = cell * words.shape[1]
        look = {"cell": (cell, 22), "largest": largest, "digits": 1}
        apart = canvas.width - 2 * (margin + wide)
        halves = [partial(half, nth) for nth in range(2)]
        left, right = canvas.beside(margin, 32, halves, across=apart, down=72.6)
        if canvas.narrow:
            canvas.text(left.middle[0], left.bottom + 22, "= the same numbers as", "bold")
        else:
            for row, other in enumerate((2, 1, 0, 3)):
                y1, y2 = (left.y + 22 * r + 11 for r in (row, other))
                d = f"M{point(left.right + 6, y1)}L{point(right.x - 6, y2)}"
                canvas.path(d, "quiet edge" if row % 2 else "x stroke", stroke_width=1.5)
            canvas.text(canvas.width / 2, left.bottom - 3.5, "=", "bold", size=22)
        return right.bottom + 8

    sides = "; ".join(
        f"“{sentence}”: {', '.join(four)}" for sentence, four in zip(sentences, labels, strict=True)
    )
    numbers = ", ".join(f"{value:z.1f}" for value in values["first average"][0].tolist())
    alt = (
        f"Two averages, each of four rows. {sides}. The same four rows stand in both, two of them "
        f"exchanged, so that both averages are the same: "
        f"{numbers.replace('-', '−')}."
    )
    return Drawing(paint, alt, values)


CELL = 11  # as high as wide
ROLES = {"Q": "what it looks for", "K": "what it offers", "V": "what it passes on"}


def three_projections(
    x: Float[Tensor, "seq d_model"],
    layers: Mapping[str, nn.Linear],
    tokens: Sequence[str],
    lit: int,
) -> Drawing:
    """Draw X, the three matrices, and Q, K and V that come out; one row is marked all the way.

    Args:
        x: of one sentence, (seq, d_model).
        layers: those that make "Q", "K" and "V".
        tokens: the words of the sentence.
        lit: the row to mark.

    Example:
        >>> import torch
        >>> from attention.drawings import three_projections
        >>> layers = {name: torch.nn.Linear(2, 2) for name in "QKV"}
        >>> three_projections(torch.ones(3, 2), layers, ["a", "b", "c"], 1)
        Drawing of X (3, 2), W_Q (2, 2), Q (3, 2), W_K (2, 2), K (3, 2), W_V (2, 2), V (3, 2)
    """
    seq, d_model = x.shape
    values = {"X": x}
    for name, layer in layers.items():
        values |= {f"W_{name}": layer.weight.T.detach(), name: layer(x).detach()}

    def paint(canvas: Canvas) -> Real:
        wide, high, square = d_model * CELL, seq * CELL, d_model * CELL

        def draw(name: str, left: Real, top: Real, look: str) -> Box:
            box = canvas.matrix(name, left, top, values[name], look, cell=(CELL, CELL), digits=None)
            if not name.startswith("W"):
                row = box.x - 2, box.y + lit * CELL - 2, wide + 3, CELL + 3
                canvas.rectangle(*row, "x stroke", stroke_width=2)
            return box

        def draw_x(left: Real, top: Real, title: Real) -> Box:
            box = draw("X", left, top, "x")
            canvas.text(title, top - 10, "X", "bold", size=15)
            canvas.text(left - 8, top + (lit + 0.5) * CELL + 4, tokens[lit], "bold", anchor="end")
            return box

        if canvas.narrow:
            first = draw_x(160 - wide / 2, 30, 160)
            fan = first.bottom + 46
            for nth, name in enumerate(layers):
                middle, look = canvas.width / 3 * (nth + 0.5), name.lower()
                canvas.arrow(160, first.bottom + 6, middle, fan, look, width=2)
                times(canvas, middle, fan + 22, name)
                draw(f"W_{name}", middle - wide / 2, fan + 30, look)
                under = fan + 30 + square
                canvas.arrow(middle, under + 4, middle, under + 28, look, width=2)
                draw(name, middle - wide / 2, under + 32, look)
                canvas.text(middle, under + 32 + high + 20, name, f"{look} of bold", size=15)
                canvas.text(middle, under + 32 + high + 37, ROLES[name], f"{look} of", size=12)
                canvas.text(middle + 8, under + 20, "+ bias", "quiet", size=11, anchor="start")
            return under + 32 + high + 46
        step = square + 38
        middle = 28 + step + square / 2
        first = draw_x(66, middle - high / 2, 66 + (wide - 1) / 2)
        for nth, name in enumerate(layers):
            y, look = 28 + step * nth + square / 2, name.lower()
            canvas.arrow(first.right + 8, middle, 262, y, look, width=2)
            times(canvas, 270 + wide / 2, y - square / 2 - 8, name)
            draw(f"W_{name}", 270, y - square / 2, look)
            canvas.arrow(270 + wide + 8, y, 440, y, look, width=2)
            made = draw(name, 448, y - high / 2, look)
            canvas.text(made.middle[0], made.y - 8, name, f"{look} of bold", size=15)
            canvas.text(405, y - 6, "+ bias", "quiet", size=11)
            role = made.right + 10, made.y + (lit + 0.5) * CELL + 4
            canvas.text(*role, ROLES[name], f"{look} of", size=12, anchor="start")
        return 28 + 3 * step - 24

    alt = (
        f"One X, {seq} by {d_model}, goes three ways, through three matrices of {d_model} by "
        f"{d_model}: through that of Q, plus a bias, it becomes Q, through that of K it becomes K, "
        f"and through that of V it becomes V, {seq} by {d_model} each. The row of “{tokens[lit]}” "
        "is marked: it becomes that word's row of Q, of K and of V. The stronger a cell, the "
        "larger its number, whatever the sign."
    )
    return Drawing(paint, alt, values)


def times(canvas: Canvas, x: Real, y: Real, name: str) -> None:
    """Write the name of a matrix, its letter raised."""
    look = f"{name.lower()} of bold"
    canvas.text(x - 4, y, "W", look, size=15)
    canvas.text(x + 9, y - 6, name, look, size=11)


def mask_before_softmax(
    scores: Float[Tensor, "query key"], mask: Bool[Tensor, "query key"], tokens: Sequence[str]
) -> Drawing:
    """Draw the scores with the mask over them, then the weights.

    Args:
        scores: of one head, (query, key).
        mask: True = may attend.
        tokens: of the queries and of the keys.

    Example:
        >>> import torch
        >>> from attention import causal_mask
        >>> from attention.drawings import mask_before_softmax
        >>> mask_before_softmax(torch.zeros(2, 2), causal_mask(2), ["birds", "sing"])
        Drawing of scores (2, 2), weights (2, 2)
    """
    weights = scores.masked_fill(~mask, -inf).softmax(dim=-1)

    def paint(canvas: Canvas) -> Real:
        x, wide = (48, 40) if canvas.narrow else (46, 37)
        high = 24

        def name(x: Real, y: Real, words: str, said: str) -> None:
            canvas.text(x, y - 48, words, f"{words} of bold", size=14, anchor="start")
            canvas.text(x, y - 30, said, "quiet", size=12, anchor="start")

        def stairs(box: Box) -> None:
            """Paint the border between the earlier words and the later ones."""
            edge = "".join(
                f"V{box.y + (r + 1) * high - 0.5}H{box.x + (r + 2) * wide - 0.5}"
                for r in range(len(tokens) - 1)
            )
            canvas.path(f"M{box.x + wide - 0.5},{box.y}{edge}", "cut")

        def before(x: Real, y: Real) -> Box:
            name(x, y, "scores", "and over them the triangle of −∞")
            box = canvas.matrix("scores", x, y, scores, digits=None, rows=tokens, **labels)
            for r, row in enumerate(mask.tolist()):
                for c, allowed in enumerate(row):
                    left, top = x + c * wide, y + r * high
                    if allowed:
                        words = number(scores[r, c], 0)
                        canvas.text(left + wide / 2, top + high / 2 + 4, words, size=11)
                    else:
                        place = left, top, wide - 1, high - 1
                        canvas.rectangle(*place, "ground", fill_opacity=0.55)
                        canvas.text(left + wide / 2, top + high / 2 + 4, "−∞", "bold", size=12)
            stairs(box)
            middle = box.middle
            if canvas.narrow:
                canvas.arrow(middle[0], box.bottom + 6, middle[0], box.bottom + 38, width=2)
                said = middle[0] + 12, box.bottom + 27, "softmax, row by row"
                canvas.text(*said, anchor="start")
            else:
                canvas.arrow(box.right + 10, middle[1], box.right + 66, middle[1], width=2)
                canvas.text(box.right + 38, middle[1] - 22, "softmax,", size=12)
                canvas.text(box.right + 38, middle[1] - 8, "row by row", size=12)
            return box

        def after(x: Real, y: Real) -> Box:
            name(x, y, "weights", "each row sums to 1")
            rows = tokens if canvas.narrow else ()  # side by side, the scores' labels are in sight
            box = canvas.matrix("weights", x, y, weights, "weights", rows=rows, **labels)
            stairs(box)
            return box

        labels = {"columns": tokens, "cell": (wide, high)}
        return canvas.beside(x, 66, [before, after], across=84, down=106)[1].bottom + 12

    rows = "; ".join(
        f"{token}: " + ", ".join(f"{weight:.2f}" for weight in weights[r][mask[r]].tolist())
        for r, token in enumerate(tokens)
    )
    alt = (
        "The scores of each word with every word. Over those with later words lies a triangle of "
        f"−∞. An arrow, softmax row by row, leads to the weights: no later word has any. {rows}."
    )
    return Drawing(paint, alt, {"scores": scores, "weights": weights})


def teacher_forcing(
    reads: Int64[Tensor, " target"],
    asked_for: Int64[Tensor, " target"],
    mask: Bool[Tensor, "target target"],
    name: Callable[[int], str],
) -> Drawing:
    """Draw one pass over a right answer: a row per question, what it sees and what it is asked for.

    Args:
        reads: the ids that go in, (target,).
        asked_for: the ids that the rows are compared with, (target,).
        mask: True = may attend, (target, target).
        name: of an id.

    Example:
        >>> import torch
        >>> from attention import causal_mask
        >>> from attention.drawings import teacher_forcing
        >>> ids = torch.tensor([0, 3, 1, 2])
        >>> teacher_forcing(ids[:-1], ids[1:], causal_mask(3), str)
        Drawing of sees (3, 3)
    """
    goes_in, compared = ([name(int(i)) for i in ids] for ids in (reads, asked_for))
    sees = mask.double()
    size = len(goes_in)

    def paint(canvas: Canvas) -> Real:
        left, right, gap = (6, 48, 8) if canvas.narrow else (90, 150, 14)
        wide, high = (canvas.width - left - right) / size, 22
        beside, top = left + size * wide + gap, 62
        canvas.text(left, 18, "what goes in", "bold", size=12, anchor="start")
        canvas.text(beside + 38, 18, "compared", "output of bold", size=12, anchor="end")
        shades = {"cell": (wide, high), "largest": 2.5, "digits": None}
        canvas.matrix("sees", left, top, sees, "weights", **shades)
        canvas.text(left + size * wide - 12, top + 36, "hidden", "quiet", size=12, anchor="end")
        for t, (sign, answer) in enumerate(zip(goes_in, compared, strict=True)):
            x, y = left + t * wide, top + t * high
            canvas.rectangle(x, 28, wide - 1, high, "edge")
            canvas.text(x + wide / 2, 43, sign, size=11)
            for s in mask[t].nonzero()[:, 0].tolist():
                canvas.text(left + (s + 0.5) * wide, y + 15, goes_in[s], size=11)
            if t + 1 < size and not mask[t, t + 1]:
                canvas.rectangle(x + wide, y, wide - 1, high - 1, "edge", stroke_dasharray="3 3")
                canvas.text(x + 1.5 * wide, y + 15, goes_in[t + 1], "quiet", size=11)
            canvas.rectangle(beside, y, 38, high - 1, "output stroke")
            canvas.text(beside + 19, y + 15, answer, "output of bold", size=11)
        return top + size * high + 10

    told = "; ".join(
        f"the row that sees {' '.join(goes_in[s] for s in row.nonzero()[:, 0].tolist())} is "
        f"compared with {answer}"
        for row, answer in zip(mask, compared, strict=True)
    )
    alt = f"What goes in: {' '.join(goes_in)}. One pass answers {size} questions: {told}."
    return Drawing(paint, alt, {"sees": sees})


WORDS = {"state": "x", "erase": "mistake", "write": "v", "new": "x"}  # by what is drawn, its look


def erase_then_write(
    state: Float[Tensor, "d_key d_value"],
    key: Float[Tensor, " d_key"],
    value: Float[Tensor, " d_value"],
    beta: float = 1.0,
) -> Drawing:
    """Draw how one pair is written into a state, by a sum and by the delta rule.

    Args:
        state: what was written before, (d_key, d_value).
        key: of the new pair, of length 1, (d_key,).
        value: of the new pair, (d_value,).
        beta: what part of the error the delta rule corrects. The sum writes all of it.

    Source:
        Schlag et al. 2021, §4.2; multiplied out, Zhang et al. 2025, §2.2.

    Example:
        >>> import torch
        >>> from attention.drawings import erase_then_write
        >>> drawing = erase_then_write(torch.eye(2), torch.tensor([1.0, 0]), torch.tensor([0.0, 3]))
        >>> drawing.values["delta new"].tolist()
        [[0.0, 3.0], [0.0, 1.0]]
    """
    written = key[:, None] * value
    erased = beta * key[:, None] * (key @ state)
    rules = {
        "sum": {"state": state, "write": written, "new": state + written},
        "delta": {
            "state": state,
            "erase": erased,
            "write": beta * written,
            "new": state - erased + beta * written,
        },
    }
    values = {
        f"{rule} {part}": tensor for rule, each in rules.items() for part, tensor in each.items()
    }
    largest = max(float(each.abs().max()) for each in values.values())
    titles = {"sum": "a sum writes on top", "delta": "the delta rule erases along k first"}
    signs = {"erase": "−", "write": "+", "new": "="}

    def paint(canvas: Canvas) -> Real:
        wide, gap, digits = (20, 22, 0) if canvas.narrow else (34, 56, 1)
        look = {"cell": (wide, 22), "largest": largest, "digits": digits}
        y = 20
        for rule, parts in rules.items():
            canvas.text(8, y, titles[rule], "bold", anchor="start")
            for name, part in parts.items():
                x = 8 + list(WORDS).index(name) * (state.shape[1] * wide + gap)
                box = canvas.matrix(f"{rule} {name}", x, y + 30, part, WORDS[name], **look)
                canvas.text(box.middle[0], y + 22, name, f"{WORDS[name]} of", size=12)
                if name in signs:
                    canvas.text(x - gap / 2, box.middle[1] + 5, signs[name], "bold", size=16)
            y = box.bottom + 32
        return y - 20

    def told(row: Tensor) -> str:
        return ", ".join(number(entry, 1) for entry in row)

    answers = {rule: key @ each["new"] for rule, each in rules.items()}
    alt = (
        "A state as a matrix, into which one pair is written, twice. A sum adds key times value, "
        f"and then answers the key with {told(answers['sum'])}. The delta rule first takes away "
        f"what the state answers to the key, {told(key @ state)}, then adds, and answers "
        f"{told(answers['delta'])}; the value was {told(value)}."
    )
    return Drawing(paint, alt, values)


def chunk_by_chunk(
    query: Float[Tensor, "seq d_key"],
    key: Float[Tensor, "seq d_key"],
    value: Float[Tensor, "seq d_value"],
    tokens: Sequence[str],
    chunk: int,
) -> Drawing:
    """Draw causal linear attention in chunks: a triangle of weights in each, a state between them.

    Args:
        query: features of the queries, (seq, d_key).
        key: features of the keys, (seq, d_key).
        value: (seq, d_value).
        tokens: one for each row.
        chunk: how many tokens are taken at once.

    Source:
        Hua et al. 2022; Sun et al. 2023, §2.1.

    Example:
        >>> import torch
        >>> from attention.drawings import chunk_by_chunk
        >>> chunk_by_chunk(torch.eye(4), torch.eye(4), torch.ones(4, 2), ["a", "b", "c", "d"], 2)
        Drawing of chunk 1 (2, 2), state 1 (4, 2), chunk 2 (2, 2), state 2 (4, 2)
    """
    values, state = {}, query.new_zeros(key.shape[1], value.shape[1])
    pieces = zip(*(x.split(chunk) for x in (query, key, value)), strict=True)
    for nth, (q, k, v) in enumerate(pieces, start=1):
        values[f"chunk {nth}"] = (q @ k.T).tril()
        state = state + k.T @ v
        values[f"state {nth}"] = state
    largest = {
        kind: max(float(each.abs().max()) for name, each in values.items() if kind in name)
        for kind in ("chunk", "state")
    }
    n_chunks = len(values) // 2

    def paint(canvas: Canvas) -> Real:
        high, small = 24, 14  # of a row of weights; of a state, whose cells carry no numbers
        tall = max(chunk * high, len(state) * small) - 1
        x, y, across, down, foot = 60, 36, (canvas.width - 20) / n_chunks, 0, 34
        if canvas.narrow:
            x, y, across, down, foot = 76, 36, 0, tall + 71, 10
        for nth in range(n_chunks):
            name, words = f"chunk {nth + 1}", tokens[nth * chunk : (nth + 1) * chunk]
            look = {"cell": (34, high), "largest": largest["chunk"], "digits": 1}
            box = canvas.matrix(name, x, y, values[name], "weights", rows=words, **look)
            canvas.text(box.middle[0], y - 10, name, "weights of bold")
            name = f"state {nth + 1}"
            look = {"cell": (small, small), "largest": largest["state"], "digits": None}
            held = canvas.matrix(name, box.right + 44, y, values[name], **look)
            canvas.text(held.middle[0], y - 10, name, "bold")
            canvas.arrow(box.right + 8, box.middle[1], held.x - 8, box.middle[1])
            if nth + 1 == n_chunks:
                break
            x, y = x + across, y + down
            if canvas.narrow:
                canvas.arrow(held.middle[0], held.bottom + 8, box.right + 12, y + 8)
                canvas.text(canvas.width - 6, y - 24, "handed on", "quiet", anchor="end")
            else:
                middle, level = x + box.width / 2, box.bottom + 26
                below = f"M{held.middle[0]},{held.bottom + 8}V{level}H{middle}"
                canvas.path(below, "x stroke", stroke_width=1.5)
                canvas.arrow(middle, level, middle, box.bottom + 6)
                canvas.text((held.right + middle) / 2, level - 6, "handed on", "quiet")
        return y + tall + foot

    cut = [", ".join(tokens[i : i + chunk]) for i in range(0, len(tokens), chunk)]
    alt = (
        f"{len(tokens)} tokens in chunks of {chunk}: {'; '.join(cut)}. Within each chunk a "
        "triangle holds the weights of every query on the keys up to its own. No weight goes from "
        f"chunk to chunk: each hands on one state of {state.numel()} numbers, the sum of what was "
        "written so far."
    )
    return Drawing(paint, alt, values)


def two_readers(
    key: Float[Tensor, "seq d_key"],
    value: Float[Tensor, "seq d_value"],
    tokens: Sequence[str],
    shared: int,
) -> Drawing:
    """Draw what two readers keep: they begin with the same tokens and go on with one of their own.

    The upper part shows a cache, which is a row of key and value for each token; the lower part
    shows a state, which is the sum of key · valueᵀ.

    Args:
        key: of the shared tokens, then one of each reader, (shared + 2, d_key).
        value: (shared + 2, d_value).
        tokens: one for each row.
        shared: how many tokens both readers begin with.

    Raises:
        ValueError: there are not two tokens after the shared ones.

    Example:
        >>> import torch
        >>> from attention.drawings import two_readers
        >>> drawing = two_readers(torch.eye(4), torch.ones(4, 2), ["a", "b", "c", "d"], 2)
        >>> list(drawing.values)
        ['rows', 'row of A', 'row of B', 'state', 'state of A', 'state of B']
    """
    if len(tokens) != shared + 2 or len(key) != len(tokens):
        raise ValueError(
            f"two_readers draws one token of each reader after {shared} shared ones, got "
            f"{len(tokens)} tokens and keys of shape {tuple(key.shape)}; shared can be "
            f"{len(tokens) - 2}"
        )
    rows = torch.cat((key, value), dim=-1)
    state = key[:shared].T @ value[:shared]
    own_rows = {f"row of {name}": rows[shared + i, None] for i, name in enumerate("AB")}
    own_states = {
        f"state of {name}": state + key[shared + i, :, None] * value[shared + i]
        for i, name in enumerate("AB")
    }
    kept = {"rows": rows[:shared], **own_rows}, {"state": state, **own_states}

    def paint(canvas: Canvas) -> Real:
        size, gap = (14, 28) if canvas.narrow else (20, 110)
        y = 20
        for tensors, words, title in zip(
            kept,
            (tokens[:shared], ()),
            ("a cache: shared; each adds a row", "a state: copied, then changed"),
            strict=True,
        ):
            largest = max(float(each.abs().max()) for each in tensors.values())
            look = {"cell": (size, size), "largest": largest, "digits": None}
            canvas.text(4, y, title, "bold", anchor="start")
            (whole, shares), *own = tensors.items()
            box = canvas.matrix(whole, 52, y + 12, shares, rows=words, **look)
            x = box.right + gap
            for nth, (name, tensor) in enumerate(own):
                top = y + 12 + nth * (len(tensor) * size + 26)
                held = canvas.matrix(name, x, top + 14, tensor, **look)
                said = f"{'AB'[nth]}: “{tokens[shared + nth]}”"
                canvas.text(x, top + 9, said, size=11, anchor="start")
                canvas.arrow(box.right + 6, box.middle[1], x - 6, held.middle[1])
            y = max(box.bottom, held.bottom) + 34
        return y - 20

    start = " ".join(tokens[:shared])
    alt = (
        f"Two readers begin with “{start}”. A cache has {shared} rows of {rows.shape[1]} numbers "
        f"for it, which both use, and one row more for each reader: {len(rows)} rows in all. A "
        f"state has {state.numel()} numbers for the beginning, and each reader needs a copy of all "
        f"of them, to which “{tokens[shared]}” or “{tokens[shared + 1]}” is added."
    )
    return Drawing(paint, alt, kept[0] | kept[1])
