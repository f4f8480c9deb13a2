"""Merging step by step, as cells that keep their colour: and what a reshape alone makes of them."""

from collections.abc import Sequence
from numbers import Real

import torch
from jaxtyping import Int64
from torch import Tensor

from attention.drawings.drawing import SHADE, Box, Canvas, Drawing

Cells = Int64[Tensor, "heads query d_key"]


def names(n_heads: int, seq: int, d_key: int) -> tuple[Cells, Cells]:
    """Two names for each number of the heads' results: its head, and its token."""
    shape = n_heads, seq, d_key
    heads = torch.arange(n_heads)[:, None, None].expand(shape).contiguous()
    tokens = torch.arange(seq)[:, None].expand(shape).contiguous()
    return heads, tokens


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
    head_of, token_of = names(*shape)
    memory = head_of.flatten(), token_of.flatten()
    turned = head_of.transpose(0, 1), token_of.transpose(0, 1)
    copied = tuple(part.contiguous().flatten() for part in turned)

    def step(title: str, size: str, by_head: bool, gap: Real, line: tuple, below: str) -> Drawing:
        def paint(canvas: Canvas) -> Real:
            cell = (24, 22) if canvas.narrow else (30, 24)
            canvas.text(6, 18, title, "bold", size=12 if canvas.narrow else 14, anchor="start")
            canvas.text(6, 36, size, "quiet", size=12, anchor="start")
            x, y = (50, 66) if canvas.narrow else (160, 66)
            apart = 0 if by_head else 6  # a token has a row of its own now
            for h in range(n_heads):
                left = x + h * (d_key * cell[0] + gap)
                parts = (head_of[h], token_of[h]) if by_head else (turned[0][:, h], turned[1][:, h])
                box = paint_cells(canvas, f"head {h}", left, y, *parts, seq, cell, apart)
                canvas.text(box.middle[0], y - 8, f"head {h}", f"head-{h} of bold", size=12)
                if h == 0 or (by_head and not canvas.narrow):
                    name_rows(canvas, left, y, tokens, cell[1], apart)
            bottom = y + seq * (cell[1] + 6) + 24  # the steps are equally high
            canvas.text(6, bottom, below, size=12, anchor="start")
            long = (canvas.width - 12) / head_of.numel()
            high = 20
            one = tuple(part[None] for part in line)
            paint_cells(canvas, "memory", 6, bottom + 8, *one, seq, (long, high))
            return bottom + 8 + high + 10

        kept = {f"head {h}": token_of[h] + 1 for h in range(n_heads)}
        order = ", ".join(
            f"head {h} of “{tokens[t]}”"
            for h, t in list(zip(*(part.tolist() for part in line), strict=True))[::d_key][:3]
        )
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
    """Draw the merge beside a reshape without the transpose, and one row of each lit.

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
    right = tuple(part.transpose(0, 1).reshape(seq, -1) for part in cells)
    wrong = tuple(part.reshape(seq, -1) for part in cells)
    panels = {"transpose, then reshape": right, "reshape alone": wrong}

    def holds(panel: tuple[Tensor, Tensor]) -> str:
        head_of, token_of = (part[query].tolist() for part in panel)
        found = dict.fromkeys(zip(head_of, token_of, strict=True))
        return " and ".join(f"token {t}, “{tokens[t]}”, of head {h}" for h, t in found)

    def paint(canvas: Canvas) -> Real:
        x = y = bottom = 50
        for nth, (name, panel) in enumerate(panels.items()):
            mistaken = nth > 0
            if mistaken:
                canvas.mistake(x + 8, y - 25)
            look = "mistake of bold" if mistaken else "bold"
            canvas.text(x + 24 * mistaken, y - 20, name, look, anchor="start")
            box = paint_cells(canvas, name, x, y, *panel, seq, (30, 24))
            name_rows(canvas, x, y, tokens, 24)
            lit = x - 2, y + 24 * query - 2, box.width + 4, 27
            canvas.rectangle(*lit, "mistake stroke" if mistaken else "x stroke", stroke_width=2.5)
            canvas.text(x, box.bottom + 20, f"“{tokens[query]}” holds", size=12, anchor="start")
            for line, words in enumerate(holds(panel).split(" and ")):
                joined = f"and {words}" if line else words
                canvas.text(x, box.bottom + 36 + 16 * line, joined, look, size=12, anchor="start")
            bottom = box.bottom + 64
            if canvas.narrow:
                y = bottom + 40
            else:
                x += 326
        return bottom

    told = ". ".join(f"{name}: “{tokens[query]}” holds {holds(p)}" for name, p in panels.items())
    alt = f"Two merges of the same shape, ({seq}, {n_heads * d_key}). {told}: a mistake."
    return Drawing(paint, alt, {name: panel[1] + 1 for name, panel in panels.items()})


def paint_cells(
    canvas: Canvas,
    name: str,
    x: Real,
    y: Real,
    head_of: Int64[Tensor, "row column"],
    token_of: Int64[Tensor, "row column"],
    seq: int,
    cell: tuple[Real, Real],
    apart: Real = 0,
) -> Box:
    """Paint cells in the colour of their head, the darker the later their token, with its number.

    The shade of the first token is 1 / seq and not 0, so that it has a colour too.
    """
    wide, high = cell
    with canvas.group(data_tensor=name, data_kind="shades", data_scale=seq):
        for r, (heads, tokens) in enumerate(zip(head_of.tolist(), token_of.tolist(), strict=True)):
            for c, (head, token) in enumerate(zip(heads, tokens, strict=True)):
                shade = round(SHADE * (token + 1) / seq, 4)
                gap = min(1, wide / 12)
                place = x + c * wide, y + r * (high + apart), wide - gap, high - 1
                look = f"head-{head} fill"
                canvas.rectangle(*place, look, fill_opacity=shade, data_sign=1)
    if wide > 9:
        for r, tokens in enumerate(token_of.tolist()):
            for c, token in enumerate(tokens):
                at = x + (c + 0.5) * wide, y + r * (high + apart) + high / 2 + 4
                canvas.text(*at, str(token), size=11)
    return Box(x, y, wide * head_of.shape[1] - 1, high * head_of.shape[0] - 1)


def name_rows(
    canvas: Canvas, x: Real, y: Real, tokens: Sequence[str], high: Real, apart: Real = 0
) -> None:
    for t, token in enumerate(tokens):
        middle = y + t * (high + apart) + high / 2
        canvas.text(x - 8, middle + 4, token, size=12, anchor="end")
