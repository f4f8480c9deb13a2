"""What every drawing is made of: tensors as boxes, operations as arrows, weights as widths.

A drawing is an SVG, painted twice: once for a page and once, narrower but not smaller, for a phone.
Each is painted from tensors, and whatever shows a number of a tensor is in a group that names the
tensor (`data-tensor`), so that what is drawn can be read back and compared.
"""

import html
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Real
from typing import NamedTuple

import drawsvg
from jaxtyping import Float
from torch import Tensor

WIDE, NARROW = 660, 320  # user units, which a page shows as pixels
SHADE = 0.7  # the opacity of the largest entry

# A page defines colours under these names, in its light and in its dark theme; elsewhere the second
# value is used, on a ground of its own. A look is a class: what a symbol, head or mistake wears.
STYLE = """
.drawing{font-family:var(--pst-font-family-base,sans-serif);--ink:var(--pst-color-text-base,#1c1c1c);
--quiet:var(--pst-color-text-muted,#555);--ground:var(--pst-color-background,#fff);--line:
var(--pst-color-border,#999)}
.drawing text{fill:var(--ink)}
.drawing .ground{fill:var(--ground)}
.drawing .quiet,.drawing text.quiet{fill:var(--quiet)}
.drawing .bold{font-weight:700}
.drawing .link{text-decoration:underline}
.drawing .edge{fill:none;stroke:var(--quiet)}
.drawing .cut{fill:none;stroke:var(--ink);stroke-width:2;stroke-dasharray:5 4}
.drawing .faint{opacity:.8}
.drawing .x{--of:var(--ink)}
.drawing .q{--of:var(--sym-q,#1f5fbf)}
.drawing .k{--of:var(--sym-k,#a34708)}
.drawing .v{--of:var(--sym-v,#0b6e46)}
.drawing .scores{--of:var(--sym-scores,#8a2fb0)}
.drawing .weights{--of:var(--sym-weights,#b01a59)}
.drawing .output{--of:var(--sym-output,#006a7c)}
.drawing .head-0{--of:var(--head-0,#46515e)}
.drawing .head-1{--of:var(--head-1,#7d6a58)}
.drawing .mistake{--of:var(--mistake,#a3140c)}
.drawing .plus{--of:var(--plus,#5548b8)}
.drawing .minus{--of:var(--minus,#7d6200)}
.drawing .fill{fill:var(--of)}
.drawing .stroke{stroke:var(--of);fill:none}
.drawing text.of{fill:var(--of)}
.drawing text.on-mistake{fill:var(--ground)}
""".replace("\n", "")


class Drawing:
    """An SVG for a page, one for a phone, and the same in words.

    It is displayed as the first; the output's metadata carries the second, the words (``alt``) and
    the tensors drawn (``values``).

    Args:
        paint: called with a `Canvas` of each width; what it returns is the height.
        alt: what the drawing shows, in the order of its arrows.
        values: the tensors drawn, by the names that the canvas was given.
    """

    def __init__(
        self,
        paint: Callable[["Canvas"], Real],
        alt: str,
        values: Mapping[str, Tensor],
    ) -> None:
        self.alt = alt
        self.values = {name: value.detach().double() for name, value in values.items()}
        self.wide, self.narrow = (svg(paint, width, alt) for width in (WIDE, NARROW))

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {tuple(value.shape)}" for name, value in self.values.items())
        return f"Drawing of {shapes or 'no numbers'}"

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        values = {
            name: (value.round(decimals=4) + 0.0).tolist() for name, value in self.values.items()
        }
        about = {"alt": self.alt, "narrow": self.narrow, "values": values}
        return {"image/svg+xml": self.wide, "text/plain": repr(self)}, {"image/svg+xml": about}


def svg(paint: Callable[["Canvas"], Real], width: int, alt: str) -> str:
    """Paint for one width; returns the text of an SVG."""
    canvas = Canvas(width)
    height = round(paint(canvas))
    # What is inside an image is hidden from a screen reader, including links.
    role = "group" if canvas.has_links else "img"
    kind = "narrow" if canvas.narrow else "wide"
    about = {"class_": f"drawing {kind}", "role": role, "aria_label": html.escape(alt)}
    drawn = drawsvg.Drawing(width, height, **about)
    drawn.append_css(STYLE)
    drawn.append(drawsvg.Rectangle(0, 0, width, height, class_="ground"))
    drawn.extend(canvas.groups[0].children)
    return drawn.as_svg(header="").replace("\n", "")


class Link(drawsvg.DrawingParentElement):
    """An element of SVG that drawsvg lacks."""

    TAG_NAME = "a"


class Box(NamedTuple):
    """Where something was drawn."""

    x: Real
    y: Real
    width: Real
    height: Real

    @property
    def right(self) -> Real:
        return self.x + self.width

    @property
    def bottom(self) -> Real:
        return self.y + self.height

    @property
    def middle(self) -> tuple[Real, Real]:
        return self.x + self.width / 2, self.y + self.height / 2


class Canvas:
    """What a drawing is painted on: `width` user units wide, `narrow` for a phone.

    A look is one or more classes of `STYLE`: a symbol ("q", "weights"), "head-0", "mistake",
    "quiet", "bold", "faint", "lit".
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.narrow = width < WIDE
        self.groups = [drawsvg.Group()]
        self.has_links = False

    @contextmanager
    def group(self, look: str = "", **attributes: str | Real) -> Iterator[None]:
        """Group what is drawn inside, with attributes such as ``data_tensor="weights"``.

        Numbers have four digits: processors differ in the seventh of a float32.
        """
        told = {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in attributes.items()}
        yield from self._within(drawsvg.Group(**classes(look), **told))

    @contextmanager
    def link(self, address: str, name: str = "") -> Iterator[None]:
        """Turn what is drawn inside into a link.

        Args:
            address: "#chapter-3" leads to chapter 3, whatever its page is called.
            name: what a screen reader calls it, which includes the words in it; without a name,
                the words alone.
        """
        self.has_links = True
        named = {"aria_label": html.escape(name)} if name else {}
        yield from self._within(Link(href=address, **named))

    def _within(self, group: drawsvg.DrawingParentElement) -> Iterator[None]:
        self.groups.append(group)
        yield
        self.groups.pop()
        self.add(group)

    def add(self, element: drawsvg.DrawingBasicElement) -> None:
        self.groups[-1].append(element)

    def panels(self, count: int, high: Real, *, across: int, on_phone: int = 1) -> list[Box]:
        """Where panels of one size go: `across` or `on_phone` side by side, the others below."""
        columns = on_phone if self.narrow else across
        wide = self.width / columns
        return [Box(wide * (i % columns), high * (i // columns), wide, high) for i in range(count)]

    def beside(
        self,
        x: Real,
        y: Real,
        parts: Sequence[Callable[[Real, Real], Box]],
        *,
        across: Real,
        down: Real,
    ) -> list[Box]:
        """Paint parts of any size side by side, or one below another on a phone.

        Args:
            x: the left edge of the first.
            y: its top.
            parts: each called with its left edge and its top; what it returns is where it is.
            across: from one to the next beside it.
            down: from one to the next below it.

        Returns:
            Where each part is.
        """
        boxes = []
        for part in parts:
            boxes.append(part(x, y))
            if self.narrow:
                y = boxes[-1].bottom + down
            else:
                x = boxes[-1].right + across
        return boxes

    def text(
        self,
        x: Real,
        y: Real,
        words: str,
        look: str = "",
        *,
        size: Real = 13,
        anchor: str = "middle",
    ) -> None:
        """Write words; `anchor` is "start", "middle" or "end"."""
        self.add(drawsvg.Text(words, size, tenth(x), tenth(y), text_anchor=anchor, **classes(look)))

    def upright(self, x: Real, y: Real, words: str, look: str) -> None:
        """Write words upwards, their middle at y."""
        at = f"rotate(-90 {point(x, y)})".replace(",", " ")
        how = {"text_anchor": "middle", "transform": at, **classes(look)}
        self.add(drawsvg.Text(words, 11, tenth(x), tenth(y), **how))

    def path(self, d: str, look: str = "stroke", **attributes: str | Real) -> None:
        """Draw a path."""
        # The last digits of a float32 differ from processor to processor; no eye sees them.
        d = re.sub(r"\d+\.\d{2,}", lambda number: str(tenth(float(number[0]))), d)
        self.add(drawsvg.Path(d, **classes(look), **attributes))

    def curve(
        self, places: Iterable[tuple[Real, Real]], look: str, **attributes: str | Real
    ) -> None:
        """Draw a line through places."""
        self.path("M" + "L".join(point(x, y) for x, y in places), look, **attributes)

    def rectangle(
        self, x: Real, y: Real, width: Real, height: Real, look: str, **attributes: str | Real
    ) -> Box:
        """Draw a rectangle; "fill" in its look fills it, "stroke" outlines it."""
        self.add(
            drawsvg.Rectangle(*map(tenth, (x, y, width, height)), **classes(look), **attributes)
        )
        return Box(x, y, width, height)

    def arrow(
        self, x1: Real, y1: Real, x2: Real, y2: Real, look: str = "x", *, width: Real = 1.5
    ) -> None:
        """Draw an arrow: an operation, or a vector."""
        angle = math.atan2(y2 - y1, x2 - x1)
        head = 4 + 2 * width
        ends = [
            (x2 - head * math.cos(angle + turn), y2 - head * math.sin(angle + turn))
            for turn in (-0.45, 0.45)
        ]
        foot = x2 - 0.7 * head * math.cos(angle), y2 - 0.7 * head * math.sin(angle)
        self.path(f"M{point(x1, y1)}L{point(*foot)}", f"{look} stroke", stroke_width=width)
        self.path(f"M{point(x2, y2)}L{point(*ends[0])}L{point(*ends[1])}Z", f"{look} fill")

    def flows(
        self,
        name: str,
        weights: Sequence[Real],
        paths: Sequence[str],
        look: str,
        *,
        widest: Real = 16,
    ) -> None:
        """Draw a line for each weight, as wide as the weight: 1 is `widest` wide."""
        with self.group(look, data_tensor=name, data_kind="flows", data_scale=1 / widest):
            for weight, d in zip(weights, paths, strict=True):
                width = round(widest * float(weight), 2)
                self.path(d, "stroke", stroke_width=width, stroke_opacity=0.55)

    def vectors(
        self,
        name: str,
        feet: Sequence[tuple[Real, Real]],
        tensor: Float[Tensor, "vector 2"],
        look: str,
        *,
        unit: Real,
        width: Real = 2,
    ) -> None:
        """Draw each row of a tensor as an arrow, its second number upwards.

        Args:
            name: of the tensor.
            feet: where each arrow begins.
            tensor: (vector, 2).
            look: of the arrows.
            unit: the length of 1.
            width: of a shaft.
        """
        head, half = 4 + 2 * width, width / 2
        with self.group(look, data_tensor=name, data_kind="vectors", data_scale=1 / unit):
            for foot, (right, up) in zip(feet, tensor.tolist(), strict=True):
                along = unit * complex(right, -up)
                length = abs(along)
                side = [(head, 0.45 * head), (0.7 * head, half), (length, half)]
                outline = [(0, 0), *side, *((back, -aside) for back, aside in reversed(side))]
                places = [
                    complex(*foot) + along + along / length * complex(-back, aside)
                    for back, aside in outline
                ]
                self.path("M" + "L".join(point(at.real, at.imag) for at in places) + "Z", "fill")

    def matrix(
        self,
        name: str,
        x: Real,
        y: Real,
        tensor: Float[Tensor, "row column"],
        look: str = "",
        *,
        cell: tuple[Real, Real] = (34, 22),
        rows: Sequence[str] = (),
        columns: Sequence[str] = (),
        largest: Real | None = None,
        digits: int | None = 2,
    ) -> Box:
        """Draw a matrix, each entry as dark as it is large, with its number.

        Args:
            name: of the tensor.
            x: where its first cell begins; the labels of rows are to the left.
            y: its top; the labels of columns are above.
            tensor: (row, column).
            look: of its cells; without one, a colour for each sign.
            cell: width and height of one.
            rows: the labels of the rows.
            columns: the labels of the columns.
            largest: the size that is darkest; the largest in the tensor unless given.
            digits: of each number after the point, fewer where they do not fit; None for no
                numbers.
        """
        wide, high = cell
        largest = largest or float(tensor.abs().max()) or 1.0
        with self.group(look, data_tensor=name, data_kind="shades", data_scale=largest):
            for r, row in enumerate(tensor.tolist()):
                for c, value in enumerate(row):
                    own = "" if look else "minus " if value < 0 else "plus "
                    shade = round(abs(value) / largest, 3)
                    self.rectangle(
                        *(x + c * wide, y + r * high, wide - 1, high - 1),
                        f"{own}fill",
                        # Black or white digits stay legible on it, in either theme.
                        fill_opacity=round(SHADE * shade, 4),
                        data_sign=-1 if value < 0 else 1,
                    )
        for r, row in enumerate(tensor.tolist() if digits is not None else []):
            for c, value in enumerate(row):
                words = fitting(value, digits, wide)
                self.text(x + (c + 0.5) * wide, y + r * high + high / 2 + 4, words, size=11)
        for r, words in enumerate(rows):
            self.text(x - 6, y + r * high + high / 2 + 4, words, size=12, anchor="end")
        for c, words in enumerate(columns):
            self.text(x + (c + 0.5) * wide, y - 6, words, size=12)
        box = Box(x, y, wide * tensor.shape[1] - 1, high * tensor.shape[0] - 1)
        self.rectangle(*box, "edge")
        return box

    def bars(
        self,
        name: str,
        x: Real,
        y: Real,
        values: Sequence[Real],
        look: str = "",
        *,
        unit: Real,
        wide: Real = 34,
        labels: Sequence[str] = (),
        digits: int | None = 2,
    ) -> None:
        """Draw upright bars on the line at y, those below zero downwards.

        Args:
            name: of the tensor.
            x: where the first begins.
            y: the line that they stand on.
            values: one for each bar.
            look: of the bars; without one, a colour for each sign.
            unit: the height of 1.
            wide: of a bar and the gap after it.
            labels: below each.
            digits: of the number over each; None for no numbers.
        """
        with self.group(look, data_tensor=name, data_kind="bars", data_scale=1 / unit):
            for i, value in enumerate(map(float, values)):
                own = "" if look else "minus " if value < 0 else "plus "
                top, high = (y - value * unit, value * unit) if value > 0 else (y, -value * unit)
                sign = -1 if value < 0 else 1
                self.add(
                    drawsvg.Rectangle(
                        *(tenth(x + i * wide), round(top, 2), tenth(wide * 0.7), round(high, 2)),
                        **classes(f"{own}fill"),
                        data_sign=sign,
                    )
                )
        for i, value in enumerate(map(float, values)):
            middle = x + i * wide + wide * 0.35
            if digits is not None:
                at = y - value * unit - 4 if value >= 0 else y - value * unit + 13
                self.text(middle, at, number(value, digits), size=11)
            if i < len(labels):
                below = y + 16 if min(map(float, values)) >= 0 else y - 4 if value < 0 else y + 16
                self.text(middle, below, labels[i], size=12)
        self.path(f"M{point(x - 4, y)}H{tenth(x + len(values) * wide)}", "edge")

    def points(
        self,
        name: str,
        xs: Sequence[Real],
        y: Real,
        values: Sequence[Real],
        look: str,
        *,
        unit: Real,
        radius: Real = 4,
    ) -> None:
        """Draw a dot for each value, that much above the line at y.

        Args:
            name: of the tensor.
            xs: where each stands.
            y: the line of 0.
            values: one for each dot.
            look: of the dots; "fill" in it fills them, "stroke" makes rings.
            unit: the height of 1.
            radius: of a dot.
        """
        above = {"data_tensor": name, "data_kind": "points", "data_scale": 1 / unit}
        with self.group(look, transform=f"translate(0 {tenth(y):g})", **above):
            for x, value in zip(xs, map(float, values), strict=True):
                self.add(drawsvg.Circle(tenth(x), round(-unit * value, 2), radius, class_=look))

    def strip(
        self,
        name: str,
        x: Real,
        y: Real,
        values: Sequence[Real],
        looks: Sequence[str],
        *,
        unit: Real,
        high: Real = 24,
    ) -> list[Box]:
        """Draw the parts of a sum end to end; one below zero runs back, and is outlined.

        Args:
            name: of the tensor.
            x: where the first begins.
            y: their top.
            values: one for each part.
            looks: one for each.
            unit: the length of 1.
            high: of each.

        Returns:
            Where each part is.
        """
        parts = []
        with self.group(data_tensor=name, data_kind="strip", data_scale=1 / unit):
            for value, look in zip(map(float, values), looks, strict=True):
                long = value * unit
                parts.append(Box(min(x, x + long), y, abs(long), high))
                x += long
                rectangle = drawsvg.Rectangle(
                    *(round(size, 2) for size in parts[-1]),
                    **classes(f"{look} {'stroke' if value < 0 else 'fill'}"),
                    fill_opacity=0.5,
                    data_sign=-1 if value < 0 else 1,
                )
                self.add(rectangle)
        return parts

    def tensor(
        self,
        x: Real,
        y: Real,
        shape: tuple[int, int],
        look: str | Sequence[str] = "x",
        *,
        unit: Real = 5,
        axes: tuple[str, str] = ("", ""),
        copies: int = 1,
        label: str = "",
    ) -> Box:
        """Draw a tensor as a box to scale: `shape` cells of `unit`, its axes named at its edges.

        Args:
            x: its left edge.
            y: its top.
            shape: (rows, columns).
            look: its colour, or that of each copy, the foremost first.
            unit: of a cell.
            axes: the names of the rows' axis, written upwards, and of the columns'.
            copies: one behind another, a head each.
            label: below.
        """
        high, wide = (size * unit for size in shape)
        looks = [look] * copies if isinstance(look, str) else look
        for nth, look in reversed(list(enumerate(looks))):
            self.rectangle(x + 4 * nth, y - 4 * nth, wide, high, "ground")
            self.rectangle(x + 4 * nth, y - 4 * nth, wide, high, f"{look} fill", fill_opacity=0.16)
            self.rectangle(x + 4 * nth, y - 4 * nth, wide, high, f"{look} stroke")
        rows, columns = axes
        if columns:
            self.text(x + wide / 2, y - 5 - 4 * (copies - 1), columns, "quiet", size=11)
        if rows:
            self.upright(x - 4, y + high / 2, rows, "quiet")
        if label:
            self.text(x + wide / 2, y + high + 16, label, f"{look} of bold")
        return Box(x, y, wide + 4 * (copies - 1), high)

    def mistake(self, x: Real, y: Real, number: int | str = "×") -> None:
        """Draw the sign of a mistake, with its number where there are several."""
        self.add(drawsvg.Circle(tenth(x), tenth(y), 8.5, **classes("mistake fill")))
        self.text(x, y + 4, str(number), "on-mistake bold", size=11)


def fitting(value: float, digits: int, wide: Real) -> str:
    """A number of size 11 with this many digits after the point, or with fewer so that it fits."""
    words = number(value, digits)
    # A digit is 7 wide in the widest of the usual fonts, a point 3.5 and a minus 9.2.
    needed = 7 * len(words) - 3.5 * ("." in words) + 2.2 * ("−" in words)
    return words if needed <= wide or not digits else fitting(value, digits - 1, wide)


def number(value: Real | Tensor, digits: int = 2) -> str:
    """A number in words: with a minus sign, and zero without one."""
    return f"{value:z.{digits}f}".replace("-", "−")


def classes(look: str) -> dict[str, str]:
    """The attribute that an element's look becomes."""
    return {"class_": look} if look else {}


def tenth(value: Real) -> Real:
    return round(float(value), 1) + 0.0


def point(x: Real, y: Real) -> str:
    return f"{tenth(x):g},{tenth(y):g}"


def bent(x: Real, y: Real, level: Real, to_x: Real, to_y: Real) -> str:
    """The path of a curve from (x, y) to (to_x, to_y) that bends at a level."""
    return f"M{point(x, y)}C{point(x, level)} {point(to_x, level)} {point(to_x, to_y)}"
