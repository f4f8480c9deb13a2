"""Vectors as arrows: a query and its keys, hands of clocks, directions on a circle."""

import math
from collections.abc import Sequence
from numbers import Real

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing, bent, number, point, tenth


def query_and_keys(
    query: Float[Tensor, "d_key"],
    keys: Float[Tensor, "key d_key"],
    asker: str,
    tokens: Sequence[str],
) -> Drawing:
    """Draw a query to the right, and each key at its own angle with it.

    Every key is turned about the query until it lies in the plane of the drawing: its length and
    its angle with the query stay what they are, and so does its dot product with the query.

    Args:
        query: (d_key,).
        keys: (key, d_key).
        asker: the word whose query it is.
        tokens: the words whose keys they are.

    Example:
        >>> import torch
        >>> from attention.drawings import query_and_keys
        >>> query_and_keys(torch.tensor([3.0, 4, 0]), torch.eye(3)[:2], "saw", ["cat", "dog"])
        Drawing of query (1, 2), keys (2, 2)
    """
    query, keys = query.double(), keys.double()
    length = query.norm()
    along = keys @ query / length  # (key,)
    aside = (keys - along[:, None] * query / length).norm(dim=-1)  # (key,)
    values = {
        "query": torch.tensor([[length, 0.0]], dtype=torch.float64),
        "keys": torch.stack((along, aside), dim=-1),
    }
    scores = (keys @ query).tolist()
    highest = float(aside.max())
    behind, ahead = max(-float(along.min()), 0), max(float(along.max()), float(length))

    def paint(canvas: Canvas) -> Real:
        room, words_wide = (24, 148) if canvas.narrow else (60, 210)
        across = (canvas.width - room - words_wide) / (behind + ahead)
        unit = min(across, 190 / highest) if highest else across
        above = highest * unit
        x, y = room + behind * unit, 26 + above
        canvas.vectors("query", [(x, y)], values["query"], "q", unit=unit, width=4)
        canvas.vectors("keys", [(x, y)] * len(keys), values["keys"], "k", unit=unit, width=3)
        canvas.text(x, y + 18, f"query of {asker}", "q of bold", anchor="start")
        ends = values["keys"].tolist()
        for nth, (token, score, (reach, off)) in enumerate(zip(tokens, scores, ends, strict=True)):
            end, top = x + reach * unit, y - off * unit
            canvas.path(f"M{point(end, top + 4)}V{y:.1f}", "cut")
            canvas.text(max(end, 46), top - 8, f"key of {token}", "k of bold")
            bar = y + 36 + 24 * nth
            canvas.path(f"M{point(x, bar)}H{tenth(end)}", "scores stroke", stroke_width=6)
            way = "" if canvas.narrow else f" points {direction(reach, off)}"
            words = f"{token}{way}: score {number(score)}"
            right = x + max(float(along.max()), 0) * unit + 12
            canvas.text(right, bar + 5, words, "scores of bold", anchor="start")
        return y + 36 + 24 * len(keys)

    told = " ".join(
        f"The key of {token} points {direction(reach, off)}: it goes {abs(reach):.2f} "
        f"{'forwards' if reach > 0 else 'backwards'} along the query, and times the query's "
        f"length that is its score, {score:.2f}."
        for token, score, (reach, off) in zip(tokens, scores, values["keys"].tolist(), strict=True)
    )
    alt = f"The query of {asker} is an arrow to the right, {float(length):.2f} long. {told}"
    return Drawing(paint, alt, values)


def direction(along: Real, aside: Real) -> str:
    """Where a key points, seen from the query."""
    if abs(along) < aside:
        return "aside"
    return "along" if along > 0 else "away"


def circle(x: Real, y: Real, radius: Real) -> str:
    """The path of a circle about (x, y)."""
    r = tenth(radius)
    return f"M{point(x - r, y)}a{r:g},{r:g} 0 1 1 {2 * r:g},0a{r:g},{r:g} 0 1 1 {-2 * r:g},0"


def clock_hands(pe: Float[Tensor, "position d_model"]) -> Drawing:
    """Draw each pair of columns as the hand of a clock, at every position.

    A sine is how far its hand reaches to the right, and the cosine after it is how far it reaches
    up: at angle 0 a hand points to twelve.

    Args:
        pe: the positional encoding, (position, d_model).

    Example:
        >>> from attention.drawings import clock_hands
        >>> from attention.embedding import sines_and_cosines
        >>> clock_hands(sines_and_cosines(6, 8))
        Drawing of hand 0 (6, 2), hand 1 (6, 2), hand 2 (6, 2), hand 3 (6, 2)
    """
    length, d_model = pe.shape
    hands = {f"hand {i}": pe[:, 2 * i : 2 * i + 2] for i in range(d_model // 2)}

    turns = [round(math.atan2(*hand[1].tolist()), 4) for hand in hands.values()]

    def paint(canvas: Canvas) -> Real:
        left, top, above = (0, 40, 26) if canvas.narrow else (130, 28, 0)
        line, at = (32, "") if canvas.narrow else (16, "position ")
        across = (canvas.width - left) / length
        radius = 0.39 * min(across, 76)
        xs = [left + (pos + 0.5) * across for pos in range(length)]
        for pos, x in enumerate(xs):
            canvas.text(x, line, f"{at}{pos}", size=12)
        if canvas.narrow:
            canvas.text(canvas.width / 2, 14, "position", "quiet", size=12)
        for i, (name, hand) in enumerate(hands.items()):
            top += above
            middle = top + radius
            columns, speed = f"columns {2 * i} and {2 * i + 1}", f"{turns[i]:g} radian a step"
            if canvas.narrow:
                canvas.text(8, top - 9, name, "bold", size=12, anchor="start")
                canvas.text(58, top - 9, f"{columns}, {speed}", "quiet", size=12, anchor="start")
            else:
                canvas.text(8, middle - 12, name, "bold", anchor="start")
                canvas.text(8, middle + 5, columns, "quiet", size=12, anchor="start")
                canvas.text(8, middle + 21, speed, "quiet", size=12, anchor="start")
            for x in xs:
                twelve = f"M{point(x, middle - tenth(radius))}v4"
                canvas.path(circle(x, middle, radius) + twelve, "edge")
            canvas.vectors(name, [(x, middle) for x in xs], hand, "x", unit=0.9 * radius)
            top += 2 * radius + 14
        return top

    ends = "; ".join(
        f"{name}, which turns by {turn:g} radian a step, has sine {hand[-1, 0]:.2f} and cosine "
        f"{hand[-1, 1]:.2f}"
        for turn, (name, hand) in zip(turns, hands.items(), strict=True)
    )
    alt = (
        f"A row of clocks for each pair of columns, a clock for each position from 0 to "
        f"{length - 1}. At position 0 every hand stands at twelve. At position {length - 1} {ends}."
    )
    return Drawing(paint, alt, hands)


CLOCK = 66


def two_clocks(
    q: Float[Tensor, " 2"],
    k: Float[Tensor, " 2"],
    theta: float,
    places: Sequence[tuple[int, int]],
) -> dict[str, Drawing]:
    """Draw one pair of a query and of a key, turned by their positions, then laid on each other.

    The dashed hand shows where each of them would be at position 0.

    Args:
        q: one pair of components of a query.
        k: the same pair of a key.
        theta: by how much a hand turns from one position to the next, in radians.
        places: positions of the query and of the key, one step for each pair of them.

    Example:
        >>> import torch
        >>> from attention.drawings import two_clocks
        >>> q, k = torch.tensor([2.0, 1.0]), torch.tensor([1.0, 3.0])
        >>> two_clocks(q, k, 0.1, [(5, 3), (7, 5)])["query at 7, key at 5"]
        Drawing of query (1, 2), key (1, 2), query again (1, 2), key again (1, 2)
    """
    unit = 0.92 * CLOCK / max(float(q.norm()), float(k.norm()))

    def draw(m: int, n: int) -> Drawing:
        query, key = turned(q, m * theta), turned(k, n * theta)
        product = number(query @ key, 4)
        ends = math.atan2(query[1], query[0]), math.atan2(key[1], key[0])
        turn = math.remainder(ends[1] - ends[0], 2 * math.pi)
        back = m - n
        distance = f"{abs(back)} places {'back' if back > 0 else 'ahead'}" if back else "here"

        def paint(canvas: Canvas) -> Real:
            share = canvas.width / (2 if canvas.narrow else 3)
            first, second = (share / 2, 112), (share * 1.5, 112)
            third = (canvas.width / 2, 342) if canvas.narrow else (share * 2.5, 112)
            for (x, y), title, look in (
                (first, f"query at {m}", "q of bold"),
                (second, f"key at {n}", "k of bold"),
                (third, "laid on each other", "bold"),
            ):
                canvas.text(x, y - CLOCK - 18, title, look)
                canvas.path(circle(x, y, CLOCK), "edge")
            for (x, y), hand in ((first, q), (second, k)):
                tip = x + unit * float(hand[0]), y - unit * float(hand[1])
                canvas.path(f"M{point(x, y)}L{point(*tip)}", "edge", stroke_dasharray="4 4")
            canvas.vectors("query", [first], query[None], "q", unit=unit)
            canvas.vectors("key", [second], key[None], "k", unit=unit)
            x, y = third
            r = 0.45 * CLOCK
            start, end = (point(x + r * math.cos(angle), y - r * math.sin(angle)) for angle in ends)
            arc = f"A{tenth(r)},{tenth(r)} 0 0 {0 if turn > 0 else 1} {end}"
            canvas.path(f"M{point(x, y)}L{start}{arc}Z", "scores fill", fill_opacity=0.3)
            canvas.vectors("query again", [third], query[None], "q", unit=unit)
            canvas.vectors("key again", [third], key[None], "k", unit=unit)
            said = f"angle between: {abs(turn):.3f}", f"product: {product}"
            for row, words in enumerate(said):
                canvas.text(x, y + CLOCK + 24 + 18 * row, words, "scores of bold")
            below = 112 + CLOCK + 24
            canvas.text(first[0], below, f"turned by {m * theta:.1f}", "quiet", size=12)
            canvas.text(second[0], below, f"turned by {n * theta:.1f}", "quiet", size=12)
            canvas.text(second[0], below + 18, distance, "quiet", size=12)
            return y + CLOCK + 54

        alt = (
            f"Two clocks. The query, at place {m}, is turned by {m * theta:.1f} radians against "
            f"the clock, and the key, at place {n}, by {n * theta:.1f}. Laid on each other their "
            f"hands are {abs(turn):.3f} radians apart, and their product is {product}."
        )
        values = {"query": query, "key": key, "query again": query, "key again": key}
        return Drawing(paint, alt, {name: hand[None] for name, hand in values.items()})

    return {f"query at {m}, key at {n}": draw(m, n) for m, n in places}


def turned(hand: Float[Tensor, " 2"], angle: float) -> Float[Tensor, " 2"]:
    a, b = hand.double()
    cos, sin = math.cos(angle), math.sin(angle)
    return torch.stack((a * cos - b * sin, a * sin + b * cos))


STEPS = ("1: hash", "2: sort", "3: cut", "4: look")
RADIUS, CELL, HIGH = 88, 36, 28


def sort_cut_look(
    x: Float[Tensor, "seq 2"],
    rotation: Float[Tensor, "2 2"],
    buckets: Int[Tensor, " seq"],
    *,
    chunk_length: int,
    asks: int,
) -> dict[str, Drawing]:
    """Draw the circle with its four sectors, and what the Reformer does with the tokens in them.

    Args:
        x: the tokens' vectors, (seq, 2).
        rotation: whose columns are the middles of sectors 0 and 1; 2 and 3 lie opposite.
        buckets: the sector of each token, (seq,), as `lsh_buckets` numbers them.
        chunk_length: how many sorted tokens make a chunk.
        asks: the token whose look is drawn.

    Example:
        >>> import torch
        >>> from attention import lsh_buckets
        >>> from attention.drawings import sort_cut_look
        >>> x, turn = torch.tensor([[1.0, 0.2], [-1, 0.1], [1, 0.4]]), torch.eye(2)
        >>> buckets = lsh_buckets(x[None, None], turn[None])[0, 0, 0]
        >>> steps = sort_cut_look(x, turn, buckets, chunk_length=2, asks=2)
        >>> steps["4: look"]
        Drawing of x (3, 2)
    """
    bucket_of = buckets.tolist()
    order = sorted(range(len(bucket_of)), key=lambda i: (bucket_of[i], i))
    chunk = {token: rank // chunk_length for rank, token in enumerate(order)}
    seen = [
        j
        for j in order
        if j != asks and bucket_of[j] == bucket_of[asks] and 0 <= chunk[asks] - chunk[j] <= 1
    ]
    middle = math.degrees(math.atan2(rotation[1, 0], rotation[0, 0]))
    directions = x / x.norm(dim=-1, keepdim=True)

    def draw(step: int) -> Drawing:
        row = order if step else list(range(len(bucket_of)))

        def paint(canvas: Canvas) -> Real:
            centre, left, top, foot = 132, 300, 108, 114
            if canvas.narrow:
                centre, top, foot = canvas.width / 2, 296, 132
                left = centre - CELL * len(row) / 2
            paint_circle(canvas, centre, 116, lit=not step)
            words = "tokens, by position" if not step else "sorted by bucket, then by position"
            canvas.text(left, top - 48, words, "bold" if step < 2 else "", anchor="start")
            for rank, token in enumerate(row):
                at, look = left + rank * CELL, "q" if token == asks else "k"
                canvas.rectangle(at, top, CELL - 2, HIGH, f"{look} stroke", stroke_width=1)
                if step == 3 and token in [asks, *seen]:
                    canvas.rectangle(at, top, CELL - 2, HIGH, f"{look} fill", fill_opacity=0.3)
                canvas.text(at + CELL / 2 - 1, top + 19, str(token), f"{look} of bold")
                canvas.text(at + CELL / 2 - 1, top + HIGH + 17, str(bucket_of[token]), "quiet")
            canvas.text(left, top + HIGH + 36, "bucket", "quiet", size=12, anchor="start")
            if step >= 2:
                for rank in range(chunk_length, len(row), chunk_length):
                    at = left + rank * CELL - 1
                    canvas.path(f"M{point(at, top - 12)}v{HIGH + 38}", "cut")
                said = f"cut into chunks of {chunk_length}", "bold" if step == 2 else ""
                canvas.text(left, top + HIGH + 60, *said, anchor="start")
            if step == 3:
                begin = left + (order.index(asks) + 0.5) * CELL - 1
                for token in seen:
                    end = left + (order.index(token) + 0.5) * CELL - 1
                    rise = top - 12 - 0.14 * abs(begin - end)
                    way = bent(begin, top - 2, rise, end, top - 2)
                    canvas.path(way, "q stroke", stroke_width=2)
                its = ["its bucket,", "in its chunk and the one before"]
                lines = its if canvas.narrow else [" ".join(its)]
                for nth, line in enumerate([f"{asks} looks at {listed(seen)}", *lines]):
                    canvas.text(left, top + HIGH + 84 + 18 * nth, line, "bold", anchor="start")
            return top + HIGH + foot

        return Drawing(paint, told(step, row), {"x": directions})

    def paint_circle(canvas: Canvas, x: Real, y: Real, *, lit: bool) -> None:
        """Paint the borders of the sectors, their numbers, and an arrow for each token."""

        def at(degrees: Real, length: Real) -> tuple[Real, Real]:
            angle = math.radians(degrees)
            return x + length * math.cos(angle), y - length * math.sin(angle)

        canvas.path(circle(x, y, RADIUS), "edge")
        for sector in range(4):
            border = point(*at(middle + 45 + 90 * sector, RADIUS))
            canvas.path(f"M{point(x, y)}L{border}", "cut" if lit else "edge")
            look = "quiet bold" if lit else "quiet"
            canvas.text(*at(middle + 90 * sector, 42), str(sector), look)
        feet = [(x, y)] * len(directions)
        canvas.vectors("x", feet, directions, "k", unit=0.82 * RADIUS, width=1.5)
        for token, (right, up) in enumerate(directions.tolist()):
            look = "q of bold" if token == asks else "k of bold"
            canvas.text(x + 102 * right, y - 102 * up + 4, str(token), look)

    def told(step: int, row: list[int]) -> str:
        sectors = "A circle with four sectors. " + " ".join(
            f"In sector {b}: {listed([i for i in range(len(bucket_of)) if bucket_of[i] == b])}."
            for b in range(4)
        )
        chunks = [row[i : i + chunk_length] for i in range(0, len(row), chunk_length)]
        return [
            f"{sectors} The tokens stand in a row by their positions, each with its bucket.",
            f"The tokens stand sorted by bucket: {listed(row)}.",
            f"The sorted row is cut into chunks: {'; '.join(map(listed, chunks))}.",
            f"Token {asks} looks at {listed(seen)}: those of its bucket in its own chunk and "
            "in the one before.",
        ][step]

    return {name: draw(step) for step, name in enumerate(STEPS)}


def listed(tokens: list[int]) -> str:
    return ", ".join(map(str, tokens)) or "none"
