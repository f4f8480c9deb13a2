"""What is cut into heads, what is merged again, and what a cache keeps of them."""

from collections.abc import Mapping, Sequence
from functools import partial
from numbers import Real

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from attention.drawings.drawing import SHADE, Box, Canvas, Drawing, point, tenth


def cut_into_heads(
    q: Float[Tensor, "seq d_model"], tokens: Sequence[str], n_heads: int, *, lit: int
) -> Drawing:
    """Draw Q with a cut between the columns of its heads, and the heads beside it.

    Args:
        q: (seq, d_model).
        tokens: seq words.
        n_heads: how many heads; a divisor of d_model.
        lit: the token whose row is outlined, in Q and in every head.

    Example:
        >>> import torch
        >>> from attention.drawings import cut_into_heads
        >>> cut_into_heads(torch.eye(2), ["the", "cat"], 2, lit=1)
        Drawing of Q (2, 2), head 0 (2, 1), head 1 (2, 1)
    """
    seq, d_model = q.shape
    d_key = d_model // n_heads
    values = {"Q": q} | {f"head {r}": q[:, d_key * r : d_key * (r + 1)] for r in range(n_heads)}
    largest = float(q.abs().max())

    def paint(canvas: Canvas) -> Real:
        wide, high, gap = (30, 20, 18) if canvas.narrow else (31, 22, 20)
        look = {"cell": (wide, high), "largest": largest, "digits": 1}
        left, top = 56, 46

        def outline(x: Real, y: Real, columns: int) -> None:
            place = x - 1, y + lit * high - 1, columns * wide + 1, high + 1
            canvas.rectangle(*place, "x stroke", stroke_width=2)

        columns = [str(c) for c in range(d_model)]
        box = canvas.matrix("Q", left, top, q, "q", rows=tokens, columns=columns, **look)
        outline(left, top, d_model)
        for r in range(1, n_heads):
            cut = left + wide * d_key * r - 0.5
            canvas.path(f"M{point(cut, 24)}V{box.bottom + 6:g}", "cut")
            scissors(canvas, cut, 24)
        canvas.text(left, 16, "Q", "q of bold", size=13, anchor="start")

        if canvas.narrow:
            x, y, rows = left, box.bottom + 54, tokens
            canvas.arrow(box.middle[0], box.bottom + 16, box.middle[0], y - 24)
        else:
            x, y, rows = box.right + 60, top, ()
            canvas.arrow(box.right + 14, box.middle[1], x - 14, box.middle[1])
        for r in range(n_heads):
            name = f"head {r}"
            head = canvas.matrix(name, x, y, values[name], f"head-{r}", rows=rows, **look)
            canvas.text(head.middle[0], y - 8, name, f"head-{r} of bold")
            outline(x, y, d_key)
            rows = ()
            x = head.right + gap
        return head.bottom + 12

    owns = "; ".join(
        f"head {r} gets columns {d_key * r} to {d_key * (r + 1) - 1}" for r in range(n_heads)
    )
    alt = (
        f"Q, {seq} rows, one for each token, by {d_model} columns, cut between its columns: "
        f"{owns}, of every token. The row of “{tokens[lit]}” is outlined: each "
        "head has a part of it."
    )
    return Drawing(paint, alt, values)


def scissors(canvas: Canvas, x: Real, y: Real) -> None:
    """Paint open scissors about x that cut downwards from y."""
    for side in (-1, 1):
        canvas.path(
            f"M{point(x - 5 * side, y + 8)}L{point(x + 4 * side, y - 9)}",
            "x stroke",
            stroke_width=2,
        )
        ring = f"M{point(x + 4 * side, y - 9)}a4,4 0 1 {int(side < 0)} {3 * side},-7"
        canvas.path(f"{ring}a4,4 0 1 {int(side < 0)} {-3 * side},7", "x stroke", stroke_width=1.5)


Place = tuple[int, int, int]  # row, column and how many gaps lie above


def view_then_transpose(
    q: Float[Tensor, "seq d_model"], tokens: Sequence[str], n_heads: int
) -> dict[str, Drawing]:
    """Draw Q, `view` of it and `transpose` of that, by the names of these steps.

    The same pieces, each a token's part of a head, are drawn in every step: only their places
    change.

    Args:
        q: (seq, d_model).
        tokens: seq words.
        n_heads: how many heads; a divisor of d_model.

    Example:
        >>> import torch
        >>> from attention.drawings import view_then_transpose
        >>> list(view_then_transpose(torch.eye(4), ["the", "cat", "saw", "it"], 2))
        ['Q', 'view', 'transpose']
    """
    seq, d_model = q.shape
    d_key = d_model // n_heads
    pieces = {
        f"{tokens[t]} {t}, head {r}": q[None, t, d_key * r : d_key * (r + 1)]
        for t in range(seq)
        for r in range(n_heads)
    }
    largest = float(q.abs().max())
    rows = seq * n_heads

    def draw(
        axes: str,
        holds: str,
        place: dict[tuple[int, int], Place],
        groups: Sequence[tuple[str, int, int]],
        by_head: bool,
        alt: str,
    ) -> Drawing:
        """Draw the pieces; `groups` are words and the first and last row that they stand beside."""

        def paint(canvas: Canvas) -> Real:
            wide, high = 29, 18
            left, top = (72 if canvas.narrow else 220), 52
            size = {"cell": (wide, high), "largest": largest, "digits": 1}
            y = {}
            for (t, r), (row, column, gaps) in place.items():
                y[row] = top + high * row + 7 * gaps
                x = left + wide * column
                piece = f"{tokens[t]} {t}, head {r}"
                canvas.matrix(piece, x, y[row], pieces[piece], f"head-{r}", **size)
                if groups:
                    said = (tokens[t], "") if by_head else (f"head {r}", f"head-{r} of")
                    right = left + wide * d_key + 8
                    canvas.text(right, y[row] + 13, *said, size=12, anchor="start")
            canvas.text(canvas.width / 2, 16, axes, "bold", size=13)
            canvas.text(canvas.width / 2, 34, holds, "quiet", size=12)
            for nth, (words, first, last) in enumerate(groups):
                edge = f"M{point(left - 6, y[first])}H{left - 11}V{y[last] + high - 1:g}H{left - 6}"
                canvas.path(edge, "quiet edge")
                look = f"head-{nth} of bold" if by_head else ""
                middle = (y[first] + y[last] + high) / 2 + 4
                canvas.text(left - 17, middle, words, look, size=12, anchor="end")
            if not groups:
                for t, token in enumerate(tokens):
                    canvas.text(left - 6, y[n_heads * t] + 13, token, size=12, anchor="end")
                below = y[n_heads * (seq - 1)] + high + 15
                for r in range(n_heads):
                    x = left + wide * d_key * (r + 0.5)
                    canvas.text(x, below, f"head {r}", f"head-{r} of bold", size=12)
            # Equally high at every step, so that the page below stays where it is.
            return top + high * rows + 7 * (seq - 1) + 8

        return Drawing(paint, alt, pieces)

    both = [(t, r) for t in range(seq) for r in range(n_heads)]
    sizes = f"{seq}, {n_heads}, {d_key}"
    return {
        "Q": draw(
            f"(seq, d_model) = ({seq}, {d_model})",
            "a row for each token",
            {(t, r): (n_heads * t, d_key * r, t) for t, r in both},
            (),
            False,
            f"Q: a row of {d_model} for each of {seq} tokens, {d_key} of them for each head.",
        ),
        "view": draw(
            f"(seq, heads, d_key) = ({sizes})",
            "a table for each token, with a row for each head",
            {(t, r): (n_heads * t + r, 0, t) for t, r in both},
            [(token, n_heads * t, n_heads * t + n_heads - 1) for t, token in enumerate(tokens)],
            False,
            f"After view: {seq} tables, one for each token, with a row of {d_key} for each head.",
        ),
        "transpose": draw(
            f"(heads, seq, d_key) = ({n_heads}, {seq}, {d_key})",
            "a table for each head, with a row for each token",
            {(t, r): (seq * r + t, 0, 2 * r) for t, r in both},
            [(f"head {r}", seq * r, seq * r + seq - 1) for r in range(n_heads)],
            True,
            f"After transpose: {n_heads} tables, one for each head, with a row of {d_key} for each "
            "token, in the order of the sentence.",
        ),
    }


def names(n_heads: int, seq: int, d_key: int) -> Int64[Tensor, "2 heads query d_key"]:
    """Two names for each number of the heads' results: its head, and its token."""
    heads, tokens = torch.arange(n_heads)[:, None, None], torch.arange(seq)[:, None]
    return torch.stack([each.expand(n_heads, seq, d_key) for each in (heads, tokens)])


def merging(shape: tuple[int, int, int], tokens: Sequence[str]) -> dict[str, Drawing]:
    """Draw the merge: the heads, each token's heads side by side, and one row for each token.

    Args:
        shape: (heads, query, d_key) of the heads' results.
        tokens: of the queries.

    Returns:
        The drawings by step, for `steps_explorer`.

    Example:
        >>> from attention.drawings import merging
        >>> list(merging((2, 2, 2), ["birds", "sing"]))
        ['1: heads', '2: transpose', '3: copy']
    """
    n_heads, seq, d_key = shape
    cells = names(*shape)
    memory, copied = cells.flatten(1), cells.transpose(1, 2).flatten(1)

    def step(title: str, size: str, by_head: bool, gap: Real, line: Tensor, below: str) -> Drawing:
        def paint(canvas: Canvas) -> Real:
            x, wide, high, large = (50, 24, 22, 12) if canvas.narrow else (160, 30, 24, 14)
            canvas.text(6, 18, title, "bold", size=large, anchor="start")
            canvas.text(6, 36, size, "quiet", size=12, anchor="start")
            y, apart = 66, 0 if by_head else 6  # a token has a row of its own now
            for h in range(n_heads):
                left = x + h * (d_key * wide + gap)
                size_of = {"cell": (wide, high), "apart": apart}
                box = paint_cells(canvas, f"head {h}", left, y, cells[:, h], **size_of)
                canvas.text(box.middle[0], y - 8, f"head {h}", f"head-{h} of bold", size=12)
                if h == 0 or (by_head and not canvas.narrow):
                    name_rows(canvas, left, y, tokens, high, apart)
            bottom = y + seq * (high + 6) + 24  # the steps are equally high
            canvas.text(6, bottom, below, size=12, anchor="start")
            cell = (canvas.width - 12) / memory.shape[1], 20
            paint_cells(canvas, "memory", 6, bottom + 8, line[:, None], cell=cell)
            return bottom + 38

        kept = {f"head {h}": cells[1, h] + 1 for h in range(n_heads)}
        first = line[:, : 3 * d_key : d_key].T.tolist()
        order = ", ".join(f"head {h} of “{tokens[t]}”" for h, t in first)
        alt = f"{title[0].upper()}{title[1:]}, {size}. {below} {order}, and so on."
        return Drawing(paint, alt, {**kept, "memory": line[1] + 1})

    return {
        "1: heads": step(
            "each head has a block of rows",
            f"(heads, query, d_key) = ({n_heads}, {seq}, {d_key})",
            True,
            72,
            memory,
            "In memory, head after head:",
        ),
        "2: transpose": step(
            "transpose: a token’s heads in one line",
            f"(query, heads, d_key) = ({seq}, {n_heads}, {d_key})",
            False,
            14,
            memory,
            "In memory no number has moved:",
        ),
        "3: copy": step(
            "copy, then view: one row for each token",
            f"(query, d_model) = ({seq}, {n_heads * d_key})",
            False,
            0,
            copied,
            "In memory, copied token after token:",
        ),
    }


def merges(shape: tuple[int, int, int], tokens: Sequence[str], query: int) -> Drawing:
    """Draw the merge beside a reshape without the transpose, with one row of each lit.

    Args:
        shape: (heads, query, d_key) of the heads' results.
        tokens: of the queries.
        query: the position of the row that is lit.

    Example:
        >>> from attention.drawings import merges
        >>> merges((2, 2, 2), ["birds", "sing"], 1)
        Drawing of transpose, then reshape (2, 4), reshape alone (2, 4)
    """
    n_heads, seq, d_key = shape
    cells = names(*shape)
    right, wrong = "transpose, then reshape", "reshape alone"
    panels = {right: cells.transpose(1, 2).reshape(2, seq, -1), wrong: cells.reshape(2, seq, -1)}

    def holds(panel: Int64[Tensor, "2 query d_model"]) -> str:
        found = dict.fromkeys(zip(*panel[:, query].tolist(), strict=True))
        return " and ".join(f"token {t}, “{tokens[t]}”, of head {h}" for h, t in found)

    def paint(canvas: Canvas) -> Real:
        def part(name: str, x: Real, y: Real) -> Box:
            stroke, look, indent = "x stroke", "bold", 0
            if name == wrong:
                stroke, look, indent = "mistake stroke", "mistake of bold", 24
                canvas.mistake(x + 8, y - 25)
            canvas.text(x + indent, y - 20, name, look, anchor="start")
            box = paint_cells(canvas, name, x, y, panels[name], cell=(30, 24))
            name_rows(canvas, x, y, tokens, 24)
            canvas.rectangle(x - 2, y + 24 * query - 2, box.width + 4, 27, stroke, stroke_width=2.5)
            canvas.text(x, box.bottom + 20, f"“{tokens[query]}” holds", size=12, anchor="start")
            words = holds(panels[name]).replace(" and ", "\nand ").split("\n")
            for line, each in enumerate(words):
                canvas.text(x, box.bottom + 36 + 16 * line, each, look, size=12, anchor="start")
            return Box(x, y, box.width, box.height + 64)

        parts = [partial(part, name) for name in panels]
        return canvas.beside(50, 50, parts, across=87, down=40)[-1].bottom

    told = ". ".join(f"{name}: “{tokens[query]}” holds {holds(p)}" for name, p in panels.items())
    alt = f"Two merges of the same shape, ({seq}, {n_heads * d_key}). {told}: a mistake."
    return Drawing(paint, alt, {name: panel[1] + 1 for name, panel in panels.items()})


def paint_cells(
    canvas: Canvas,
    name: str,
    x: Real,
    y: Real,
    cells: Int64[Tensor, "2 row column"],
    *,
    cell: tuple[Real, Real],
    apart: Real = 0,
) -> Box:
    """Paint cells in the colour of their head, darker for later tokens, with the token's number.

    The shade of the first token is 1 / seq and not 0, so that it has a colour too.
    """
    wide, high = cell
    (_, n_rows, n_columns), seq = cells.shape, int(cells[1].max()) + 1
    places = [
        (x + c * wide, y + r * (high + apart)) for r in range(n_rows) for c in range(n_columns)
    ]
    heads, tokens = cells.flatten(1).tolist()
    with canvas.group(data_tensor=name, data_kind="shades", data_scale=seq):
        for place, head, token in zip(places, heads, tokens, strict=True):
            shade = {"fill_opacity": round(SHADE * (token + 1) / seq, 4), "data_sign": 1}
            size = wide - min(1, wide / 12), high - 1
            canvas.rectangle(*place, *size, f"head-{head} fill", **shade)
    if wide > 9:
        for (left, top), token in zip(places, tokens, strict=True):
            canvas.text(left + wide / 2, top + high / 2 + 4, str(token), size=11)
    return Box(x, y, wide * n_columns - 1, high * n_rows - 1)


def name_rows(
    canvas: Canvas, x: Real, y: Real, tokens: Sequence[str], high: Real, apart: Real = 0
) -> None:
    for t, token in enumerate(tokens):
        middle = y + t * (high + apart) + high / 2
        canvas.text(x - 8, middle + 4, token, size=12, anchor="end")


def heads_add(
    results: Float[Tensor, "heads d_key"],
    wrote: Float[Tensor, "heads d_model"],
    bias: Float[Tensor, " d_model"],
    token: str,
) -> Drawing:
    """Draw one token's merged row, what each head writes through W_o, and their sum.

    Args:
        results: of each head.
        wrote: each head's result times its own rows of W_o.
        bias: of W_o.
        token: whose row it is.

    Example:
        >>> import torch
        >>> from attention.drawings import heads_add
        >>> result, wrote = torch.ones(1, 1), torch.ones(1, 2)
        >>> heads_add(result, wrote, torch.zeros(2), "saw")
        Drawing of head 0 (1,), head 0 wrote (2,), bias (2,), sum (2,)
    """
    n_heads, d_key = results.shape
    d_model = wrote.shape[1]
    # For each row: its name, its label, its look and its numbers.
    rows = [
        (f"head {r} wrote", f"{'+ ' if r else ''}head {r} writes", f"head-{r}", wrote[r])
        for r in range(n_heads)
    ]
    rows.append(("bias", "+ the bias", "x", bias))
    rows.append(("sum", f"= the row of “{token}”", "output", wrote.sum(dim=0) + bias))

    def paint(canvas: Canvas) -> Real:
        x, digits = (8, 1) if canvas.narrow else (128, 2)
        column = (canvas.width - x - 8) / d_model
        unit = 52 / float(max(row.abs().max() for *_, row in rows))
        canvas.text(x, 16, f"the merged row of “{token}”", "bold", anchor="start")
        for r in range(n_heads):
            at = x + r * d_key * column
            cell = {"cell": (column, 24), "largest": float(results.abs().max()), "digits": digits}
            canvas.matrix(f"head {r}", at, 28, results[r : r + 1], f"head-{r}", **cell)
            middle = at + d_key * column / 2
            canvas.text(middle, 69, f"head {r}", f"head-{r} of bold", size=12)
            right, whole = at + d_key * column, x + d_model * column
            fan = f"M{tenth(at)},76H{tenth(right)}L{tenth(whole)},112H{x}Z"
            canvas.path(fan, f"head-{r} fill", fill_opacity=0.2)
        canvas.text(x + d_model * column / 2, 99, "each through its rows of W_o", "bold", size=12)
        y = 116
        for name, label, look, row in rows:
            up, down = (float(part.clamp(min=0).max()) * unit for part in (row, -row))
            if canvas.narrow:
                y += 20
                canvas.text(x, y, label, f"{look} of bold", size=12, anchor="start")
            y += up + 22
            if not canvas.narrow:
                # Two lines, where the words are long.
                words = label.split(" of ")
                canvas.text(x - 12, y + 4, words[0], f"{look} of bold", size=12.5, anchor="end")
                for rest in words[1:]:
                    canvas.text(x - 12, y + 20, f"of {rest}", f"{look} of bold", anchor="end")
            bars = {"unit": unit, "wide": column, "digits": 1}
            canvas.bars(name, x + column * 0.15, y, row.tolist(), look, **bars)
            y += down + 18
        return y + 4

    def told(row: Float[Tensor, " d_model"]) -> str:
        return ", ".join(f"{number + 0.0:.1f}" for number in row.tolist())

    writes = "; ".join(f"{name}: {told(row)}" for name, *_, row in rows)
    alt = (
        f"The merged row of “{token}”: {d_key} columns of each head, side by side. Through W_o "
        f"each spreads to all {d_model} columns, and has a bar in each. Column by column they add. "
        f"{writes}."
    )
    own = {f"head {r}": results[r] for r in range(n_heads)}
    return Drawing(paint, alt, own | {name: row for name, *_, row in rows})


HEAD, UNIT = 34, 6  # the size of a head, and of a number


def four_caches(
    kept: Mapping[str, Float[Tensor, "2 _ d_key"]],
    latent: Float[Tensor, " d_latent"],
    rotary_key: Float[Tensor, " d_rotary"],
    n_heads: int,
) -> Drawing:
    """Draw the keys and values that a token leaves in a cache, or its latent row and rotary key.

    What is kept is shaded, each number by its size. What is made from it again is dashed.

    Args:
        kept: for each kind of attention (2, kv_heads, d_key), the token's keys and its values.
        latent: (d_latent,), the token's latent row.
        rotary_key: (d_rotary,), its rotary key.
        n_heads: how many query heads; kv_heads divides it.

    Example:
        >>> import torch
        >>> from attention.drawings import four_caches
        >>> kept = {"multi-head": torch.ones(2, 4, 3), "multi-query": torch.ones(2, 1, 3)}
        >>> drawing = four_caches(kept, torch.ones(4), torch.ones(2), n_heads=4)
        >>> len(drawing.values), "multi-query, 1 KV head, each read by 4 of them" in drawing.alt
        (12, True)
    """
    values = {
        f"{what} of KV head {i}, {kind}": heads[i][:, None]
        for kind, both in kept.items()
        for what, heads in zip(("key", "value"), both, strict=True)
        for i in range(len(heads))
    }
    values |= {"latent row": latent[None], "rotary key": rotary_key[None]}
    d_key = next(iter(kept.values())).shape[-1]
    counts = {kind: both.numel() for kind, both in kept.items()}
    d_latent, d_rotary = len(latent), len(rotary_key)

    def paint(canvas: Canvas) -> Real:
        kinds, high = [*counts, "latent"], 128 + UNIT * d_key
        panels = canvas.panels(len(kinds), high, across=len(kinds), on_phone=2)
        for kind, panel in zip(kinds, panels, strict=True):
            x, y = panel.middle[0], panel.y
            canvas.text(x, y + 18, kind, "bold")
            places = [x + HEAD * (i - (n_heads - 1) / 2) for i in range(n_heads)]
            for i, place in enumerate(places):
                canvas.rectangle(place - 12, y + 28, 24, 18, "q fill", fill_opacity=0.16)
                canvas.rectangle(place - 12, y + 28, 24, 18, "q stroke")
                canvas.text(place, y + 41, f"q {i}", size=11)
            if kind == "latent":
                draw_latent(canvas, x, y, places)
            else:
                draw_heads(canvas, kind, y, places)
            total = counts.get(kind, f"{d_latent} + {d_rotary}")
            canvas.text(x, y + high - 14, f"kept: {total} numbers", "bold", size=12)
        return panel.bottom

    def draw_heads(canvas: Canvas, kind: str, y: Real, places: list[Real]) -> None:
        n_kv_heads = kept[kind].shape[1]
        group = n_heads // n_kv_heads
        size = {"cell": (12, UNIT), "digits": None}
        for i in range(n_kv_heads):
            readers = places[i * group : (i + 1) * group]
            middle = sum(readers) / group
            for place in readers:
                canvas.path(f"M{point(place, y + 46)}L{point(middle, y + 66)}", "edge")
            for what, left in (("key", middle - 13), ("value", middle + 1)):
                name = f"{what} of KV head {i}, {kind}"
                box = canvas.matrix(name, left, y + 66, values[name], what[0], **size)
                canvas.text(box.middle[0], box.bottom + 14, what[0], f"{what[0]} of", size=11)

    def draw_latent(canvas: Canvas, x: Real, y: Real, places: list[Real]) -> None:
        long = UNIT * (d_latent + d_rotary)
        left, row = x - long / 2, y + 118
        for place in places:
            canvas.path(f"M{point(place, y + 46)}V{y + 66}", "edge")
            for look, start in (("k", place - 13), ("v", place + 1)):
                canvas.rectangle(start, y + 66, 12, 24, f"{look} stroke", stroke_dasharray="3 3")
            end = left + UNIT * d_latent * (0.5 + 0.2 * (place - x) / HEAD)
            canvas.path(f"M{point(place, y + 90)}L{point(end, row)}", "edge")
        size = {"cell": (UNIT, 12), "digits": None}
        box = canvas.matrix("latent row", left, row, latent[None], "x", **size)
        canvas.text(box.middle[0], row + 27, "latent row", size=11)
        box = canvas.matrix("rotary key", box.right + 4, row, rotary_key[None], "k", **size)
        canvas.text(box.right, row + 42, "rotary key of all", "k of", size=11, anchor="end")

    told = []
    for kind, (keys, _) in kept.items():
        group = n_heads // len(keys)
        shared = f"each read by {group} of them" if group > 1 else "one for each of them"
        heads = "1 KV head" if len(keys) == 1 else f"{len(keys)} KV heads"
        told.append(f"{kind}, {heads}, {shared}: {counts[kind]} numbers kept")
    alt = (
        f"What one token leaves in the cache, for {n_heads} heads of queries. {'; '.join(told)}; "
        f"latent, a row of {d_latent} of which every head's own key and value are made, and a "
        f"rotary key of {d_rotary} that all heads read: {d_latent + d_rotary} numbers kept."
    )
    return Drawing(paint, alt, values)
