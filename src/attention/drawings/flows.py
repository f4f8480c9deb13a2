"""What flows from word to word, each flow as wide as its weight."""

import math
from collections.abc import Sequence
from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Box, Canvas, Drawing, point, tenth


def two_stories(
    stories: Sequence[Sequence[str]],
    verbs: Sequence[int],
    who: Float[Tensor, "story seq"],
    whom: Float[Tensor, "story seq"],
) -> Drawing:
    """Draw a line from each verb to each word, as wide as the model's probability for it.

    Args:
        stories: the words of each.
        verbs: the place of each verb.
        who: the probability of each word as the answer to who, (story, seq).
        whom: the same for whom.

    Example:
        >>> import torch
        >>> from attention.drawings import two_stories
        >>> one = torch.tensor([[1.0, 0, 0]])
        >>> two_stories([["dogs", "chase", "cats"]], [1], one, one.flip(1))
        Drawing of who 0 (3,), whom 0 (3,)
    """
    values = {}
    for nth in range(len(stories)):
        values |= {f"who {nth}": who[nth], f"whom {nth}": whom[nth]}

    def paint(canvas: Canvas) -> Real:
        across = 1 if canvas.narrow else len(stories)
        share = canvas.width / across
        tall = 172 if canvas.narrow else 154
        for nth, story in enumerate(stories):
            left, line = share * (nth % across), 72 + tall * (nth // across)
            edge = 8 if canvas.narrow else 20
            pitch = (share - 2 * edge) / len(story)
            middles = [left + edge + (i + 0.5) * pitch for i in range(len(story))]
            verb = middles[verbs[nth]]
            for i, (word, x) in enumerate(zip(story, middles, strict=True)):
                canvas.text(x, line + 5, word, "bold" if i == verbs[nth] else "", size=14)
            for question, up in (("who", -1), ("whom", 1)):
                answers = values[f"{question} {nth}"].tolist()
                foot, height = line + (-12 if up < 0 else 16), 46
                arcs = [
                    f"M{point(verb, foot)}C{point(verb, foot + up * height)} "
                    f"{point(x, foot + up * height)} {point(x, foot)}"
                    for x in middles
                ]
                canvas.flows(f"{question} {nth}", answers, arcs, "output", widest=10)
                for x, share_of in zip(middles, answers, strict=True):
                    if share_of > 0.02:
                        # Beside the first or the last word it would stand outside.
                        at = min(max(x, left + 40), left + share - 40), foot + up * (height + 4) + 5
                        said = f"{question} {share_of:.2f}"
                        canvas.text(*at, said, "output of bold", size=12)
        return tall * math.ceil(len(stories) / across)

    told = []
    for nth, story in enumerate(stories):
        answers = [
            f"{question}: "
            + " or ".join(
                f"{word} {p:.2f}"
                for word, p in zip(story, values[f"{question} {nth}"].tolist(), strict=True)
                if p > 0.02
            )
            for question in ("who", "whom")
        ]
        told.append(f"“{' '.join(story)}”: from “{story[verbs[nth]]}” to {', '.join(answers)}.")
    return Drawing(paint, " ".join(told), values)


GAP = 26  # of a row and the space below it, at least the width of all flows together


def weighted_sum(
    weights: Float[Tensor, " key"],
    values: Float[Tensor, "key d_key"],
    tokens: Sequence[str],
    query: int,
    head: str = "",
) -> Drawing:
    """Draw the value rows, a flow from each as wide as its weight, and the row that they make.

    Together the flows are as wide as that row is high: the weights sum to 1.

    Args:
        weights: of one query, (key,).
        values: of one head, (key, d_key).
        tokens: of the keys.
        query: its position.
        head: what to call the head, "head 0".

    Example:
        >>> import torch
        >>> from attention.drawings import weighted_sum
        >>> shares = torch.tensor([0.75, 0.25])
        >>> weighted_sum(shares, torch.eye(2), ["birds", "sing"], 1)
        Drawing of values (2, 2), weights (2,), sum (2,)
    """
    total = weights @ values
    largest = float(values.abs().max())
    whose = f" in {head}" if head else ""

    def paint(canvas: Canvas) -> Real:
        across = values.shape[1]
        cell = (min(40, 228 // across), GAP + 8) if canvas.narrow else (min(44, 240 // across), GAP)
        narrow = cell[0] < 34
        x, y = 44, 34
        look = {"cell": cell, "largest": largest, "digits": 1 if narrow else 2}
        canvas.text(x, 18, "value rows", "v of bold", anchor="start")
        names = [] if canvas.narrow else tokens
        box = canvas.matrix("values", x, y, values, "v", rows=names, **look)
        before, paths = 0.0, []
        place = (x, box.bottom + 34) if canvas.narrow else (canvas.width - 8 - cell[0] * across,)
        if not canvas.narrow:
            place = (*place, y + (box.height - GAP) / 2)
        for r, weight in enumerate(weights.tolist()):
            middle = y + r * cell[1] + (cell[1] - 1) / 2
            lane = before + weight * GAP / 2
            before += weight * GAP
            if canvas.narrow:
                canvas.text(x - 6, middle - 2, tokens[r], size=12, anchor="end")
                canvas.text(
                    x - 6, middle + 12, f"{weight:.2f}", "weights of", size=11, anchor="end"
                )
                out, end = box.right + 10 + GAP - lane, place[1] + GAP - lane
                paths.append(
                    f"M{box.right + 2},{tenth(middle)}H{tenth(out)}V{tenth(end)}H{box.right + 2}"
                )
            else:
                canvas.text(box.right + 24, middle + 4, f"{weight:.2f}", "weights of", size=12)
                left, right, end = box.right + 44, place[0] - 22, tenth(place[1] + lane)
                bend = tenth((left + right) / 2)
                start = f"M{left},{tenth(middle)}"
                paths.append(f"{start}C{bend},{tenth(middle)} {bend},{end} {right},{end}h20")
        canvas.flows("weights", weights.tolist(), paths, "weights", widest=GAP)
        row_look = {**look, "cell": (cell[0], GAP)}
        sum_box = canvas.matrix("sum", *place, total[None], "v", **row_look)
        title = f"what “{tokens[query]}” gets{whose}"
        if canvas.narrow:
            # Above the row the flows would cross it.
            canvas.text(x, sum_box.bottom + 20, title, "v of bold", anchor="start")
            return sum_box.bottom + 30
        canvas.text(sum_box.right, place[1] - 10, title, "v of bold", anchor="end")
        return max(box.bottom, sum_box.bottom) + 12

    parts = ", ".join(
        f"{weight:.2f} of “{token}”" for token, weight in zip(tokens, weights.tolist(), strict=True)
    )
    numbers = ", ".join(f"{number + 0.0:.2f}" for number in total.tolist())
    alt = (
        f"The value row of each token. From each a flow, as wide as its weight, leads into the row "
        f"that “{tokens[query]}” gets{whose}: {parts}. Together they make {numbers}."
    )
    return Drawing(paint, alt, {"values": values, "weights": weights, "sum": total})


def readers_and_writer(
    letters: Sequence[str],
    encoded: Float[Tensor, "key key_dim"],
    signs: Sequence[str],
    answer: Sequence[str],
    weights: Float[Tensor, " key"] | None = None,
    step: int = 0,
) -> Drawing:
    """Draw what two recurrent networks have read at each letter, and what a third one gets of it.

    Without weights every step of the writer gets the last states. With weights one of its steps
    gets a flow from every letter, as wide as its weight.

    Args:
        letters: of the text.
        encoded: (key, key_dim), the reader from the left in the first half of the columns.
        signs: what the writer writes, one for each step.
        answer: what it should write.
        weights: of one step, (key,).
        step: which one, from 0.

    Example:
        >>> import torch
        >>> from attention.drawings import readers_and_writer
        >>> readers_and_writer("may", torch.ones(3, 2), ["0", "5"], ["0", "5"])
        Drawing of from the left (1, 3), from the right (1, 3), last states (2,)
    """
    half = encoded.shape[1] // 2
    readers = {"from the left": encoded[:, :half].T, "from the right": encoded[:, half:].T}
    # In the order in which they stand: the reader from the right ends at the first letter.
    last = encoded.new_tensor([*encoded[0, half:].tolist(), *encoded[-1, :half].tolist()])
    values = {**readers, **({"last states": last} if weights is None else {"weights": weights})}
    largest = float(encoded.abs().max())
    wrong = [sign != right for sign, right in zip(signs, answer, strict=True)]

    def paint(canvas: Canvas) -> Real:
        left = 6 if canvas.narrow else 104
        across = (canvas.width - left - 6) / len(letters)
        columns = [left + (j + 0.5) * across for j in range(len(letters))]
        y = 18
        for x, letter in zip(columns, letters, strict=True):
            canvas.text(x, y, letter, size=11 if canvas.narrow else 14)
        ends = []
        for name, states in readers.items():
            forwards = name == "from the left"
            if canvas.narrow:
                y += 22
                x, anchor = (left, "start") if forwards else (canvas.width - 6, "end")
                canvas.text(x, y, f"reader {name}", "quiet", size=12, anchor=anchor)
            else:
                y += 12
                canvas.text(8, y + 38, "reader", "quiet", size=12, anchor="start")
                canvas.text(8, y + 54, name, "quiet", size=12, anchor="start")
            start, tip = (left + 4, canvas.width - 10)[:: 1 if forwards else -1]
            canvas.arrow(start, y + 10, tip, y + 10)
            shades = {"cell": (across, 8), "largest": largest, "digits": None}
            box = canvas.matrix(name, left, y + 18, states, **shades)
            end = box.right - across + 1 if forwards else left
            ends.append(Box(end, box.y, across - 1, box.height))
            y = box.bottom
        if weights is None:
            y = paint_neck(canvas, last, largest, *ends)
        return paint_writer(canvas, signs, wrong, y, columns, weights, step)

    return Drawing(paint, told(letters, signs, answer, len(last), weights, step), values)


def paint_neck(
    canvas: Canvas, last: Float[Tensor, " key_dim"], largest: Real, from_left: Box, from_right: Box
) -> Real:
    """Paint the last states, side by side, and where they come from; returns where they end."""
    y, cell = from_right.bottom, 22 if canvas.narrow else 26
    begin = (canvas.width - cell * len(last)) / 2
    shades = {"cell": (cell, 24), "largest": largest, "digits": None}
    box = canvas.matrix("last states", begin, y + 56, last[None], **shades)
    for each in (from_left, from_right, box):
        canvas.rectangle(*each, "x stroke", stroke_width=2)
    ways = {
        box.x + box.width * 0.75: f"M{point(from_left.right, from_left.bottom - 4)}h3",
        box.x + box.width * 0.25: f"M{point(from_right.middle[0], y + 1)}",
    }
    for x, way in ways.items():
        canvas.path(f"{way}V{tenth(y + 30)}H{tenth(x)}", "x stroke", stroke_width=1.5)
        canvas.arrow(x, y + 30, x, box.y - 3)
    canvas.text(canvas.width / 2, y + 22, f"{len(last)} numbers, and nothing else", "bold")
    return box.bottom


def paint_writer(
    canvas: Canvas,
    signs: Sequence[str],
    wrong: Sequence[bool],
    y: Real,
    columns: Sequence[Real],
    weights: Float[Tensor, " key"] | None,
    step: int,
) -> Real:
    """Paint the steps of the writer below y, and what they get; returns the drawing's height."""
    pitch = min(58, (canvas.width - 12) / len(signs))
    wide, begin = pitch - (8 if canvas.narrow else 16), (canvas.width - pitch * len(signs)) / 2
    middles = [begin + (t + 0.5) * pitch for t in range(len(signs))]
    top = y + (56 if weights is None else 94)
    if weights is None:
        for x in middles:
            canvas.arrow(canvas.width / 2, y + 2, x, top - 3, "x faint", width=1)
    else:
        paths = []
        for nth, x in enumerate(columns):
            aside = wide * 0.7 * ((nth + 0.5) / len(columns) - 0.5)
            start, end, bend = tenth(x), tenth(middles[step] + aside), tenth((y + top) / 2)
            paths.append(
                f"M{start},{tenth(y + 2)}C{start},{bend} {end},{bend} {end},{tenth(top - 2)}"
            )
        canvas.flows("weights", weights.tolist(), paths, "weights", widest=18)
    canvas.text(begin, y + 18 if weights is None else top - 8, "writer", "quiet", anchor="start")
    for t, (x, sign) in enumerate(zip(middles, signs, strict=True)):
        lit = weights is None or t == step
        look = "weights stroke" if weights is not None and lit else "edge"
        canvas.rectangle(x - wide / 2, top, wide, 28, look)
        if t:
            canvas.arrow(middles[t - 1] + wide / 2 + 1, top + 14, x - wide / 2 - 1, top + 14)
        if t == 0 or (weights is not None and t in (step - 1, step)):
            canvas.text(x, top + 18, f"s{subscript(t + 1)}", "" if lit else "quiet", size=12)
        canvas.text(x, top + 48, sign, "mistake of bold" if wrong[t] else "bold" if lit else "")
        if wrong[t]:
            canvas.mistake(x, top + 64)
    if weights is not None and step:
        x = middles[step - 1]
        canvas.text(x - 4, top - 14, "asks", "q of bold", size=12, anchor="end")
        canvas.arrow(x, top - 2, x, top - 26, "q", width=2)
    return top + (80 if any(wrong) else 60)


def subscript(number: int) -> str:
    return "".join("₀₁₂₃₄₅₆₇₈₉"[int(digit)] for digit in str(number))


def told(
    letters: Sequence[str],
    signs: Sequence[str],
    answer: Sequence[str],
    count: int,
    weights: Tensor | None,
    step: int,
) -> str:
    """What is drawn, in the order of its arrows."""
    read = (
        f"Two readers go along “{''.join(letters)}”, one from the left and one from the right, and "
        "have a state at every letter."
    )
    if weights is None:
        wrong = sum(sign != right for sign, right in zip(signs, answer, strict=True))
        return (
            f"{read} Where each of them ends, its last state is taken: together {count} numbers. "
            f"They alone reach the writer, the same at each of its {len(signs)} steps. It writes "
            f"{''.join(signs)}, which is wrong at {wrong} of {len(signs)}."
        )
    parts = ", ".join(
        f"{weight:.2f} from letter {j}, “{letters[j]}”"
        for j, weight in enumerate(weights.tolist())
        if weight >= 0.05
    )
    asks = f"State {step} asks. " if step else ""
    return (
        f"{read} {asks}To step {step + 1} of the writer, which writes “{signs[step]}”, a flow "
        f"comes from every letter, as wide as its weight: {parts}."
    )


LETTERS, ENCODER, MEMORY, DECODER, SIGNS = 18, 30, 84, 196, 250  # where each line begins
HIGH = 34  # of a tower
MUCH = 0.1  # the weight from which a letter is named


def writing_steps(
    letters: Sequence[str], signs: Sequence[str], weights: Float[Tensor, "target key"]
) -> dict[str, Drawing]:
    """Draw an encoder that reads, then each step of a decoder that writes.

    Into every step flows what cross-attention takes from the letters, as wide as their weights.

    Args:
        letters: that are read.
        signs: that are written, one in each step.
        weights: of cross-attention in each step, (target, key).

    Example:
        >>> import torch
        >>> from attention.drawings import writing_steps
        >>> steps = writing_steps("may", ["0", "5"], torch.eye(3)[:2])
        >>> list(steps)
        ['0: reads', '1: writes 0', '2: writes 5']
        >>> steps["2: writes 5"]
        Drawing of weights (3,)
    """

    def draw(step: int) -> Drawing:
        row = weights[step - 1] if step else None
        looks = most_looked_at(letters, row) if step else ""

        def paint(canvas: Canvas) -> Real:
            left = 6 if canvas.narrow else 90
            across = (canvas.width - left - 6) / len(letters)
            columns = [left + (j + 0.5) * across for j in range(len(letters))]
            paint_reading(canvas, letters, columns, lit=not step)
            places = sign_places(canvas, left, len(signs))
            paint_writing(canvas, left, signs, step, places)
            if row is not None:
                y, end, bend = MEMORY + 21, places[step], (MEMORY + 21 + DECODER) / 2
                paths = [
                    f"M{point(x, y)}C{point(x, bend)} {point(end, bend)} {point(end, DECODER - 2)}"
                    for x in columns
                ]
                canvas.flows("weights", row.tolist(), paths, "weights", widest=26)
                words = left, SIGNS + 66, f"looks {looks}", "weights of"
                canvas.text(*words, size=12, anchor="start")
            return SIGNS + 82

        if not step:
            alt = (
                f"The encoder reads “{''.join(letters)}”, once, and leaves a row for each of the "
                f"{len(letters)} letters: the memory. The decoder has written nothing."
            )
            return Drawing(paint, alt, {})
        read = "".join(signs[: step - 1])
        alt = (
            f"The decoder reads <start>{f' and {read}' if read else ''}, looks at the rows of the "
            f"letters, {looks}, and writes {signs[step - 1]}."
        )
        return Drawing(paint, alt, {"weights": row})

    steps = [f"{nth}: writes {sign}" for nth, sign in enumerate(signs, start=1)]
    return {name: draw(nth) for nth, name in enumerate(["0: reads", *steps])}


def most_looked_at(letters: Sequence[str], row: Float[Tensor, " key"]) -> str:
    """The letters with much weight, in the order in which they stand."""
    much = [(letter, weight) for letter, weight in zip(letters, row, strict=True) if weight >= MUCH]
    named = ", ".join(
        f"{'space' if letter == ' ' else letter} {weight:.2f}" for letter, weight in much
    )
    return f"most at {named}" if much else "at no letter much"


def sign_places(canvas: Canvas, left: Real, count: int) -> list[Real]:
    """Where <start> and each sign stand: the first needs more room."""
    first = 46
    pitch = min(44, (canvas.width - left - 6 - first) / count)
    return [left + first / 2, *(left + first + (t + 0.5) * pitch for t in range(count))]


def paint_reading(
    canvas: Canvas, letters: Sequence[str], columns: Sequence[Real], *, lit: bool
) -> None:
    """Paint the letters, the encoder, and the rows that it leaves."""
    half = (columns[1] - columns[0]) / 2
    begin, wide = columns[0] - half, columns[-1] - columns[0] + 2 * half
    middle = begin + wide / 2
    for x, letter in zip(columns, letters, strict=True):
        canvas.text(x, LETTERS, letter, size=11 if canvas.narrow else 14)
    look = "output stroke" if lit else "edge"
    canvas.rectangle(begin, ENCODER, wide, HIGH, look, stroke_width=2 if lit else 1, rx=4)
    words = f"encoder: {'reads' if lit else 'has read'}, once"
    canvas.text(middle, ENCODER + 22, words, "output of bold" if lit else "quiet")
    canvas.arrow(middle, ENCODER + HIGH + 1, middle, MEMORY - 3, "output" if lit else "x")
    canvas.rectangle(begin, MEMORY, wide, 18, "v fill", fill_opacity=0.16)
    lines = "".join(f"M{point(x + half, MEMORY)}v18" for x in columns[:-1])
    canvas.path(f"M{point(begin, MEMORY)}h{tenth(wide)}v18h{tenth(-wide)}z{lines}", "v stroke")
    if canvas.narrow:
        beside = (middle + 14, ENCODER + HIGH + 14, "start")
    else:
        beside = (8, MEMORY + 14, "start")
    canvas.text(*beside[:2], "memory", "v of bold", size=12, anchor=beside[2])


def paint_writing(
    canvas: Canvas, left: Real, signs: Sequence[str], step: int, places: Sequence[Real]
) -> None:
    """Paint the decoder, the signs that it reads and the one that it writes."""
    wide = canvas.width - left - 6
    look = "output stroke" if step else "edge"
    canvas.rectangle(left, DECODER, wide, HIGH, look, stroke_width=2 if step else 1, rx=4)
    words = f"decoder: step {step} of {len(signs)}" if step else "decoder: waits"
    canvas.text(left + wide / 2, DECODER + 22, words, "output of bold" if step else "quiet")
    if not canvas.narrow:
        canvas.text(8, SIGNS + 22, "signs", "quiet", size=12, anchor="start")
    for nth, (x, sign) in enumerate(zip(places, ["<start>", *signs], strict=True)):
        if nth < step:
            canvas.arrow(x, SIGNS + 8, x, DECODER + HIGH + 2, "q", width=1)
            canvas.text(x, SIGNS + 24, sign, size=12)
    if step:
        x = places[step]
        canvas.arrow(x, DECODER + HIGH + 2, x, SIGNS + 8, "output", width=2)
        canvas.text(x, SIGNS + 24, signs[step - 1], "output of bold", size=14)
        canvas.text(places[0], SIGNS + 42, "reads", "q of", size=12)
        canvas.text(x, SIGNS + 42, "writes", "output of", size=12)


TOKENS, ROWS, NEXT = 42, 152, 258  # the middles of the three lines
WIDEST = 15  # of a flow


def write_match_copy(
    tokens: Sequence[str],
    previous: Float[Tensor, "query key"],
    scores: Float[Tensor, " key"],
    answer: str,
) -> Drawing:
    """Draw how the last token finds what followed it last time: writes, matches, copies.

    Args:
        tokens: of the sequence.
        previous: the weights of the previous-token head, (query, key).
        scores: of the induction head, of the last token with each key, (key,).
        answer: the token that the model says comes next.

    Source:
        Elhage et al. 2021, "Induction Heads".

    Example:
        >>> import torch
        >>> from attention.drawings import write_match_copy
        >>> back = torch.tensor([[1.0, 0, 0], [1, 0, 0], [0, 1, 0]])
        >>> write_match_copy("kxk", back, torch.tensor([0.0, 9, 0]), "x")
        Drawing of writes (3,), writes elsewhere (2, 3), copies (3,)
    """
    weights = scores.softmax(dim=-1)
    found, last = int(weights.argmax()), len(tokens) - 1
    written = [tokens[int(row.argmax())] for row in previous]
    elsewhere = previous[[i for i in range(len(tokens)) if i != found]]
    writes, copies = f"{previous[found].max():.2f}", f"{weights[found]:.2f}"
    matches = f"{scores[found]:.1f}"

    def paint(canvas: Canvas) -> Real:
        left, wide = (18, 38) if canvas.narrow else (104, 54)
        pitch = (canvas.width - left - 6) / len(tokens)
        columns = [left + (j + 0.5) * pitch for j in range(len(tokens))]
        for y, words in ((TOKENS, "tokens"), (ROWS, "after layer 0"), (NEXT, "comes next")):
            if canvas.narrow:
                canvas.upright(12, y, words, "quiet")
            else:
                canvas.text(8, y + 5, words, "quiet", size=12, anchor="start")
        lines = [
            [f"M{point(x, TOKENS + 17)}L{point(end + wide / 4, ROWS - 17)}" for x in columns]
            for end in columns
        ]
        others = [path for i, line in enumerate(lines) if i != found for path in line]
        flat = elsewhere.flatten().tolist()
        canvas.flows("writes elsewhere", flat, others, "x", widest=WIDEST / 7)
        canvas.flows("writes", previous[found].tolist(), lines[found], "k", widest=WIDEST)
        floor, end = tenth(NEXT - 30), tenth(columns[last] - 15)
        paths = [
            f"M{point(x, ROWS + 15)}V{floor}Q{point(x, NEXT)} {point(x + 30, NEXT)}H{end}"
            for x in (column - wide / 4 for column in columns)
        ]
        canvas.flows("copies", weights.tolist(), paths, "weights", widest=WIDEST)
        begin, end = columns[last] - wide / 4, columns[found] + wide / 4
        dip = ROWS + 56
        canvas.path(
            f"M{point(begin, ROWS + 17)}C{point(begin, dip)} {point(end, dip)} "
            f"{point(end, ROWS + 30)}",
            "q stroke",
            stroke_width=2,
        )
        canvas.arrow(end, ROWS + 31, end, ROWS + 18, "q", width=2)
        for x, token, copy in zip(columns, tokens, written, strict=True):
            canvas.rectangle(x - 14, TOKENS - 15, 28, 30, "ground")
            canvas.rectangle(x - 14, TOKENS - 15, 28, 30, "edge")
            canvas.text(x, TOKENS + 5, token, "bold", size=14)
            canvas.rectangle(x - wide / 2, ROWS - 15, wide, 30, "ground")
            lit = copy == tokens[last]
            shade = 0.3 if lit else 0.1
            canvas.rectangle(x, ROWS - 15, wide / 2, 30, "k fill", fill_opacity=shade)
            canvas.rectangle(x - wide / 2, ROWS - 15, wide, 30, "edge")
            canvas.text(x - wide / 4, ROWS + 5, token, "bold", size=14)
            canvas.text(x + wide / 4, ROWS + 5, copy, "k of bold" if lit else "quiet", size=13)
        x = columns[last]
        canvas.rectangle(x - 14, NEXT - 15, 28, 30, "output stroke", stroke_width=2)
        canvas.text(x, NEXT + 5, answer, "output of bold", size=14)
        middle = (begin + end) / 2
        beside = columns[found] + pitch / 2 + wide / 8
        canvas.rectangle(beside - 20, TOKENS + 36, 40, 34, "ground")
        canvas.text(beside, TOKENS + 50, "writes", "k of bold", size=12)
        canvas.text(beside, TOKENS + 65, writes, "k of", size=12)
        canvas.text(middle, ROWS + 36, f"matches, score {matches}", "q of bold", size=12)
        canvas.text(middle, NEXT - 16, f"copies {copies}", "weights of bold", size=12)
        return NEXT + 34

    alt = (
        f"The tokens {' '.join(tokens)} and, below them, their rows after layer 0. Each row holds "
        "its token and what the previous-token head wrote into it. "
        f"That head writes {written[found]} into the row of {tokens[found]}, with a weight of "
        f"{writes}. In layer 1 the last {tokens[last]} matches that row, with a score of "
        f"{matches}, and copies {tokens[found]} from it, with a weight of {copies}. The model says "
        f"{answer}."
    )
    values = {"writes": previous[found], "writes elsewhere": elsewhere, "copies": weights}
    return Drawing(paint, alt, values)
