"""What flows from word to word, each flow as wide as its weight."""

from collections.abc import Sequence
from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Box, Canvas, Drawing, bent, point, tenth


def write_letters(canvas: Canvas, letters: Sequence[str], left: Real) -> list[Real]:
    """Write letters in a line, each in the middle of its column; returns the middles."""
    across = (canvas.width - left - 6) / len(letters)
    columns = [left + (j + 0.5) * across for j in range(len(letters))]
    for x, letter in zip(columns, letters, strict=True):
        canvas.text(x, 18, letter, size=11 if canvas.narrow else 14)
    return columns


def two_stories(
    stories: Sequence[Sequence[str]],
    verbs: Sequence[int],
    who: Float[Tensor, "story seq"],
    whom: Float[Tensor, "story seq"],
) -> Drawing:
    """Draw a line from each verb to each word, as wide as the model's probability for it.

    Args:
        stories: the words of each.
        verbs: the position of each verb.
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
        tall, edge = (172, 8) if canvas.narrow else (154, 20)
        panels = canvas.panels(len(stories), tall, across=len(stories))
        for nth, (story, panel) in enumerate(zip(stories, panels, strict=True)):
            line, pitch = panel.y + 72, (panel.width - 2 * edge) / len(story)
            middles = [panel.x + edge + (i + 0.5) * pitch for i in range(len(story))]
            verb = middles[verbs[nth]]
            for word, x in zip(story, middles, strict=True):
                canvas.text(x, line + 5, word, "bold" if x == verb else "", size=14)
            for question, foot, level in (("who", line - 12, -46), ("whom", line + 16, 46)):
                name = f"{question} {nth}"
                shares = values[name].tolist()
                arcs = [bent(verb, foot, foot + level, x, foot) for x in middles]
                canvas.flows(name, shares, arcs, "output", widest=10)
                for x, share in zip(middles, shares, strict=True):
                    if share > 0.02:
                        # Centred on the first or the last word, the text would leave the panel.
                        at = min(max(x, panel.x + 40), panel.right - 40)
                        y = foot + (level - 4 if level < 0 else level + 4) + 5
                        said = f"{question} {share:.2f}"
                        canvas.text(at, y, said, "output of bold", size=12)
        return panel.bottom

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
    gets = f"“{tokens[query]}” gets{f' in {head}' if head else ''}"
    lanes = GAP * (weights.cumsum(0) - weights / 2)  # the middle of each flow, within all of them
    flowing = list(zip(tokens, weights.tolist(), lanes.tolist(), strict=True))

    def paint(canvas: Canvas) -> Real:
        across = values.shape[1]
        wide, high, rows = min(44, 240 // across), GAP, tokens
        if canvas.narrow:
            wide, high, rows = min(40, 228 // across), GAP + 8, ()
        look = {"largest": largest, "digits": 1 if wide < 34 else 2}
        x, y = 44, 34
        canvas.text(x, 18, "value rows", "v of bold", anchor="start")
        box = canvas.matrix("values", x, y, values, "v", cell=(wide, high), rows=rows, **look)
        middles = [y + r * high + (high - 1) / 2 for r in range(len(tokens))]
        paths = []
        if canvas.narrow:  # down to a row below, past all the others
            end_x, end_y = x, box.bottom + 34
            # Above the row, the flows would cross the title.
            title, anchor, foot = (x, end_y + GAP + 19), "start", 30
            for (token, weight, lane), middle in zip(flowing, middles, strict=True):
                canvas.text(x - 6, middle - 2, token, size=12, anchor="end")
                said = f"{weight:.2f}", "weights of"
                canvas.text(x - 6, middle + 12, *said, size=11, anchor="end")
                out, end = box.right + 10 + GAP - lane, end_y + GAP - lane
                way = f"H{tenth(out)}V{tenth(end)}H{box.right + 2}"
                paths.append(f"M{box.right + 2},{tenth(middle)}{way}")
        else:
            end_x, end_y = canvas.width - 8 - wide * across, y + (box.height - GAP) / 2
            title, anchor, foot = (canvas.width - 9, end_y - 10), "end", 12
            left, right = box.right + 44, end_x - 22
            bend = tenth((left + right) / 2)
            for (_, weight, lane), middle in zip(flowing, middles, strict=True):
                canvas.text(box.right + 24, middle + 4, f"{weight:.2f}", "weights of", size=12)
                start, end = tenth(middle), tenth(end_y + lane)
                paths.append(f"M{left},{start}C{bend},{start} {bend},{end} {right},{end}h20")
        canvas.flows("weights", weights.tolist(), paths, "weights", widest=GAP)
        made = canvas.matrix("sum", end_x, end_y, total[None], "v", cell=(wide, GAP), **look)
        canvas.text(*title, f"what {gets}", "v of bold", anchor=anchor)
        return max(box.bottom, made.bottom) + foot

    parts = ", ".join(f"{weight:.2f} of “{token}”" for token, weight, _ in flowing)
    numbers = ", ".join(f"{entry + 0.0:.2f}" for entry in total.tolist())
    alt = (
        f"The value row of each token. From each a flow, as wide as its weight, leads into the row "
        f"that {gets}: {parts}. Together they make {numbers}."
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
    """Draw what two recurrent networks have read at each letter, and what a third gets from it.

    Without weights every step of the writer gets the last states. With weights one of its steps
    gets a flow from every letter, as wide as the letter's weight.

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
    # From left to right: the reader from the right ends at the first letter.
    last = encoded.new_tensor([*encoded[0, half:].tolist(), *encoded[-1, :half].tolist()])
    shades = {"largest": float(encoded.abs().max()), "digits": None}
    wrong = [sign != right for sign, right in zip(signs, answer, strict=True)]

    def paint(canvas: Canvas) -> Real:
        left, y = 6 if canvas.narrow else 104, 18
        columns = write_letters(canvas, letters, left)
        across = (canvas.width - left - 6) / len(letters)
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
            box = canvas.matrix(name, left, y + 18, states, cell=(across, 8), **shades)
            end = box.right - across + 1 if forwards else left
            ends.append(Box(end, box.y, across - 1, box.height))
            y = box.bottom
        if weights is None:
            y = paint_neck(canvas, *ends)
        return paint_writer(canvas, y, columns)

    def paint_neck(canvas: Canvas, from_left: Box, from_right: Box) -> Real:
        """Paint the last states side by side and where they come from; returns where they end."""
        y, cell = from_right.bottom, 22 if canvas.narrow else 26
        begin = (canvas.width - cell * len(last)) / 2
        box = canvas.matrix("last states", begin, y + 56, last[None], cell=(cell, 24), **shades)
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

    def paint_writer(canvas: Canvas, y: Real, columns: Sequence[Real]) -> Real:
        """Paint the writer's steps below y and what they get; returns the drawing's height."""
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
                curve = f"C{start},{bend} {end},{bend} {end},{tenth(top - 2)}"
                paths.append(f"M{start},{tenth(y + 2)}{curve}")
            canvas.flows("weights", weights.tolist(), paths, "weights", widest=18)
        above = y + 18 if weights is None else top - 8
        canvas.text(begin, above, "writer", "quiet", anchor="start")
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

    read = (
        f"Two readers go along “{''.join(letters)}”, one from the left and one from the right, and "
        "have a state at every letter."
    )
    if weights is None:
        alt = (
            f"{read} Where each of them ends, its last state is taken: together {len(last)} "
            f"numbers. They alone reach the writer, the same at each of its {len(signs)} steps. It "
            f"writes {''.join(signs)}, which is wrong at {sum(wrong)} of {len(signs)}."
        )
        return Drawing(paint, alt, {**readers, "last states": last})
    parts = ", ".join(
        f"{weight:.2f} from letter {j}, “{letters[j]}”"
        for j, weight in enumerate(weights.tolist())
        if weight >= 0.05
    )
    asks = f"State {step} asks. " if step else ""
    alt = (
        f"{read} {asks}To step {step + 1} of the writer, which writes “{signs[step]}”, a flow "
        f"comes from every letter, as wide as its weight: {parts}."
    )
    return Drawing(paint, alt, {**readers, "weights": weights})


def subscript(number: int) -> str:
    return "".join("₀₁₂₃₄₅₆₇₈₉"[int(digit)] for digit in str(number))


ENCODER, MEMORY, DECODER, SIGNS = 30, 84, 196, 250  # where each line begins
HIGH = 34  # of a tower
MUCH = 0.1  # the weight from which a letter is named


def writing_steps(
    letters: Sequence[str], signs: Sequence[str], weights: Float[Tensor, "target key"]
) -> dict[str, Drawing]:
    """Draw an encoder that reads, then each step of a decoder that writes.

    What cross-attention takes from the letters flows into every step, as wide as their weights.

    Args:
        letters: those that are read.
        signs: those that are written, one in each step.
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

        def paint(canvas: Canvas) -> Real:
            left = 6 if canvas.narrow else 90
            columns = write_letters(canvas, letters, left)
            paint_reading(canvas, columns, left, lit=not step)
            # The middles of <start> and of each sign: <start> needs more room.
            pitch = min(44, (canvas.width - left - 52) / len(signs))
            places = [left + 23, *(left + 46 + (t + 0.5) * pitch for t in range(len(signs)))]
            paint_writing(canvas, left, step, places)
            if step:
                y, end = MEMORY + 21, places[step]
                paths = [bent(x, y, (y + DECODER) / 2, end, DECODER - 2) for x in columns]
                canvas.flows("weights", row.tolist(), paths, "weights", widest=26)
                words = left, SIGNS + 66, f"looks {most_looked_at(letters, row)}", "weights of"
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
            f"letters, {most_looked_at(letters, row)}, and writes {signs[step - 1]}."
        )
        return Drawing(paint, alt, {"weights": row})

    def paint_reading(canvas: Canvas, columns: Sequence[Real], left: Real, *, lit: bool) -> None:
        """Paint the encoder, and the rows that it leaves."""
        wide, half = canvas.width - left - 6, (columns[1] - columns[0]) / 2
        middle = left + wide / 2
        stroke, look, does = ("edge", "quiet", "has read")
        if lit:
            stroke, look, does = ("output stroke", "output of bold", "reads")
        canvas.rectangle(left, ENCODER, wide, HIGH, stroke, stroke_width=2 if lit else 1, rx=4)
        canvas.text(middle, ENCODER + 22, f"encoder: {does}, once", look)
        canvas.arrow(middle, ENCODER + HIGH + 1, middle, MEMORY - 3, "output" if lit else "x")
        canvas.rectangle(left, MEMORY, wide, 18, "v fill", fill_opacity=0.16)
        lines = "".join(f"M{point(x + half, MEMORY)}v18" for x in columns[:-1])
        canvas.path(f"M{point(left, MEMORY)}h{tenth(wide)}v18h{tenth(-wide)}z{lines}", "v stroke")
        at = (middle + 14, ENCODER + HIGH + 14) if canvas.narrow else (8, MEMORY + 14)
        canvas.text(*at, "memory", "v of bold", size=12, anchor="start")

    def paint_writing(canvas: Canvas, left: Real, step: int, places: Sequence[Real]) -> None:
        """Paint the decoder, the signs that it reads and the one that it writes."""
        wide = canvas.width - left - 6
        stroke, look, does = ("edge", "quiet", "waits")
        if step:
            stroke, look, does = ("output stroke", "output of bold", f"step {step} of {len(signs)}")
        canvas.rectangle(left, DECODER, wide, HIGH, stroke, stroke_width=2 if step else 1, rx=4)
        canvas.text(left + wide / 2, DECODER + 22, f"decoder: {does}", look)
        if not canvas.narrow:
            canvas.text(8, SIGNS + 22, "signs", "quiet", size=12, anchor="start")
        for x, sign in zip(places[:step], ["<start>", *signs], strict=False):
            canvas.arrow(x, SIGNS + 8, x, DECODER + HIGH + 2, "q", width=1)
            canvas.text(x, SIGNS + 24, sign, size=12)
        if step:
            x = places[step]
            canvas.arrow(x, DECODER + HIGH + 2, x, SIGNS + 8, "output", width=2)
            canvas.text(x, SIGNS + 24, signs[step - 1], "output of bold", size=14)
            canvas.text(places[0], SIGNS + 42, "reads", "q of", size=12)
            canvas.text(x, SIGNS + 42, "writes", "output of", size=12)

    steps = [f"{nth}: writes {sign}" for nth, sign in enumerate(signs, start=1)]
    return {name: draw(nth) for nth, name in enumerate(["0: reads", *steps])}


def most_looked_at(letters: Sequence[str], row: Float[Tensor, " key"]) -> str:
    """The letters with much weight, in the order of the text."""
    named = ", ".join(
        f"{'space' if letter == ' ' else letter} {weight:.2f}"
        for letter, weight in zip(letters, row, strict=True)
        if weight >= MUCH
    )
    return f"most at {named}" if named else "at no letter much"


TOKENS, ROWS, NEXT = 42, 152, 258  # the middles of the three lines
WIDEST = 15  # of a flow


def write_match_copy(
    tokens: Sequence[str],
    previous: Float[Tensor, "query key"],
    scores: Float[Tensor, " key"],
    answer: str,
) -> Drawing:
    """Draw how the last token finds what followed it last time: writes, matches, copies.

    One head of the first layer writes into each row what came before it, and one head of the second
    layer finds what was written.

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
        for y, words in ((TOKENS, "tokens"), (ROWS, "after layer 1"), (NEXT, "comes next")):
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
        way = bent(begin, ROWS + 17, ROWS + 56, end, ROWS + 30)
        canvas.path(way, "q stroke", stroke_width=2)
        canvas.arrow(end, ROWS + 31, end, ROWS + 18, "q", width=2)
        for x, token, copy in zip(columns, tokens, written, strict=True):
            canvas.rectangle(x - 14, TOKENS - 15, 28, 30, "ground")
            canvas.rectangle(x - 14, TOKENS - 15, 28, 30, "edge")
            canvas.text(x, TOKENS + 5, token, "bold", size=14)
            canvas.rectangle(x - wide / 2, ROWS - 15, wide, 30, "ground")
            shade, look = (0.3, "k of bold") if copy == tokens[last] else (0.1, "quiet")
            canvas.rectangle(x, ROWS - 15, wide / 2, 30, "k fill", fill_opacity=shade)
            canvas.rectangle(x - wide / 2, ROWS - 15, wide, 30, "edge")
            canvas.text(x - wide / 4, ROWS + 5, token, "bold", size=14)
            canvas.text(x + wide / 4, ROWS + 5, copy, look)
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
        f"The tokens {' '.join(tokens)} and, below them, their rows after layer 1. Each row holds "
        "its token and what the previous-token head wrote into it. "
        f"That head writes {written[found]} into the row of {tokens[found]}, with a weight of "
        f"{writes}. In layer 2 the last {tokens[last]} matches that row, with a score of "
        f"{matches}, and copies {tokens[found]} from it, with a weight of {copies}. The model says "
        f"{answer}."
    )
    values = {"writes": previous[found], "writes elsewhere": elsewhere, "copies": weights}
    return Drawing(paint, alt, values)
