"""Static pictures: matrices drawn with their tokens, and the numbers behind them."""

import base64
import io
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Int64
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor

PLUS, MINUS = to_rgb("#5548b8"), to_rgb("#7d6200")
COLOURS = 128  # of a picture's file
# A colour for each token of a sentence, and for each head; a head has a kind of line, too.
TOKENS = tuple(map(to_rgb, ("#1f5fbf", "#b3470b", "#0f7b4f", "#8a2fb0", "#8f6b00", "#c01f63")))
LINES = tuple(zip(TOKENS, ("-", "--", ":", "-.", "-", "--"), strict=True))


class Picture:
    """A figure with words for those who cannot see it, and the numbers that it shows.

    It is displayed as a PNG with a transparent background. The output's metadata carries
    ``alt`` and ``values``, so that a stored picture can be compared with a fresh one number by
    number.

    Args:
        figure: the matplotlib figure.
        alt: what the picture shows, in a sentence or two.
        values: the tensors drawn, by name.

    """

    def __init__(self, figure: Figure, alt: str, values: Mapping[str, Tensor]):
        self.figure, self.alt, self.values = figure, alt, dict(values)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {tuple(value.shape)}" for name, value in self.values.items())
        return f"Picture of {shapes}"

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        drawn, png = io.BytesIO(), io.BytesIO()
        self.figure.savefig(drawn, dpi=110, transparent=True, bbox_inches="tight")
        # This takes a quarter of the bytes.
        in_few_colours(Image.open(drawn)).save(png, "PNG", optimize=True)
        values = {
            # + 0.0 turns -0.0 into 0.0
            name: (value.detach().double().round(decimals=4) + 0.0).tolist()
            for name, value in self.values.items()
        }
        data = {"image/png": base64.b64encode(png.getvalue()).decode(), "text/plain": repr(self)}
        return data, {"image/png": {"alt": self.alt, "values": values}}


def in_few_colours(picture: Image.Image) -> Image.Image:
    """Paint an RGBA picture in its commonest colours, each other colour as the nearest of them.

    Cells keep their shades, since they are large. Pillow's own quantising leaves eight opacities,
    so that a weight of 0.15 looked like one of 0.01.
    """
    pixels = torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8).view(-1, 4)
    colours, which, counts = pixels.unique(dim=0, return_inverse=True, return_counts=True)
    palette = colours[counts.argsort(descending=True, stable=True)[:COLOURS]]
    nearest = torch.cdist(colours.double(), palette.double()).argmin(dim=1)
    painted = Image.frombytes("P", picture.size, bytes(nearest[which].to(torch.uint8).tolist()))
    painted.putpalette(bytes(palette.flatten().tolist()), "RGBA")
    return painted


def plot_matrices(
    matrices: Mapping[str, Float[Tensor, "row column"]],
    *,
    rows: Sequence[str],
    columns: Sequence[str] | None = None,
    alt: str,
    signed: bool = True,
    per_line: int = 4,
    origins: Mapping[str, Int64[Tensor, "row column"]] | None = None,
    numbers: bool = True,
) -> Picture:
    """Draw matrices side by side on one colour scale, each entry with its number.

    Args:
        matrices: (row, column) tensors by title.
        rows: a label for each row, the same for all matrices.
        columns: a label for each column; its index where none is given.
        alt: what the picture shows, for those who cannot see it.
        signed: True for numbers of either sign (a colour for each sign), False for weights
            between 0 and 1.
        per_line: how many matrices are drawn side by side.
        origins: by title, the number of the token that each entry comes from, which gives the cell
            its colour and its digit instead of the entry.
        numbers: False draws smaller cells without their numbers, for matrices with many entries.

    Returns:
        The picture; it keeps the matrices as ``values``.

    """
    matrices = {title: matrix.detach().double() for title, matrix in matrices.items()}
    shapes = [matrix.shape for matrix in matrices.values()]
    across = min(per_line, len(shapes))
    down = -(-len(shapes) // across)
    widest, tallest = max(c for _, c in shapes), max(r for r, _ in shapes)
    largest = max(float(matrix.abs().max()) for matrix in matrices.values()) or 1.0
    wide, high = (0.44, 0.36) if numbers else (0.22, 0.22)
    width = across * (wide * widest + 0.9)
    figure = Figure(figsize=(width, down * (high * tallest + 0.75)))
    # A phone shows every picture 3.4 inches wide, so a wide one appears in small letters.
    size = 8 * min(1.6, max(1.0, width / 5)) if not numbers else 8
    panels = figure.subplots(down, across, squeeze=False).flatten()
    for spare in panels[len(shapes) :]:
        spare.remove()
    for panel, (title, matrix) in zip(panels, matrices.items(), strict=False):
        # Opacity, not lightness, carries the size, so that a page's own background shows through.
        opacity = 0.7 * matrix.abs() / (largest if signed else 1.0)
        hue = torch.where(matrix[..., None] < 0, torch.tensor(MINUS), torch.tensor(PLUS))
        if origins is not None:
            hue = torch.tensor(TOKENS)[origins[title] % len(TOKENS)]
            opacity = torch.full_like(opacity, 0.5)
        panel.imshow(torch.cat([hue, opacity[..., None]], -1).numpy(), aspect="auto")
        cells = torch.cartesian_prod(*map(torch.arange, matrix.shape)).tolist()
        for row, column in cells if numbers else []:
            number = f"{matrix[row, column].item() + 0.0:.2f}"
            if origins is not None:
                number = str(origins[title][row, column].item())
            panel.text(column, row, number, ha="center", va="center", fontsize=8)
        names = columns if columns is not None else [str(i) for i in range(matrix.shape[1])]
        upright = columns is None or all(len(name) == 1 for name in names)
        panel.set_xticks(
            range(matrix.shape[1]), names, fontsize=size, rotation=0 if upright else 90
        )
        panel.set_yticks(range(matrix.shape[0]), rows, fontsize=size)
        panel.set_title(title, fontsize=size + 1)
        panel.tick_params(length=0)
        for edge in panel.spines.values():
            edge.set_color("#888888")
    figure.tight_layout()
    return Picture(figure, alt, matrices)


def plot_heads(
    tokens: Sequence[str], verb: int, weights: Float[Tensor, "heads query key"], *, alt: str
) -> Picture:
    """Draw a sentence with arcs from its verb to the words that each head looks at.

    Args:
        tokens: the words, seq of them.
        verb: the position of the verb.
        weights: (heads, query, key), the attention weights of the sentence.
        alt: what the picture shows, for those who cannot see it.

    Returns:
        The picture; it keeps the verb's weights as ``values``.

    """
    figure = Figure(figsize=(7, 2.4))
    panel = figure.subplots()
    ends = torch.tensor([0.0, *(0.5 + 0.16 * len(token) for token in tokens)]).cumsum(0)
    centre = ((ends[:-1] + ends[1:]) / 2).tolist()
    for token, x in zip(tokens, centre, strict=True):
        panel.text(x, -0.25, token, ha="center", fontsize=12, fontweight="bold")
    looks = weights[:, verb].detach().double()
    looked_at = (looks >= 0.05).any(dim=0).nonzero()[:, 0].tolist()
    for head, row in enumerate(looks):
        colour, dash = LINES[head % len(LINES)]
        for key in (row >= 0.05).nonzero()[:, 0].tolist():
            weight, reach = row[key].item(), abs(centre[key] - centre[verb])
            angle = torch.linspace(0, torch.pi, 40)
            x = (centre[verb] + centre[key]) / 2 + (centre[verb] - centre[key]) / 2 * angle.cos()
            y = (0.3 + 0.3 * reach + (0.4 + 0.08 * reach) * head) * angle.sin()
            panel.plot(x, y, dash, color=colour, linewidth=1 + 4 * weight)
            at, align = (x[20], y[20] + 0.1), "center"
            # Longer arcs end at the verb too, and would cross a label above a short one.
            side = 1 if key > verb else -1
            further = [k for k in looked_at if (k - key) * side > 0]
            if abs(key - verb) == 1 and further:
                at, align = (x[-1] + side * 0.1, 0.6 * y[20]), "right" if side < 0 else "left"
            label = f"head {head}: {weight:.2f}"
            panel.text(*at, label, ha=align, fontsize=9, color=colour)
    panel.set_axis_off()
    panel.margins(0.02, 0.15)
    return Picture(figure, alt, {"weights of the verb": looks})


def plot_curves(
    curves: Mapping[str, Float[Tensor, " points"]],
    *,
    every: int = 1,
    label: str = "loss",
    along: str = "step",
    shaded: int = 0,
    alt: str,
) -> Picture:
    """Draw numbers over the steps of training, or along something else, one line for each curve.

    Args:
        curves: (points,) tensors by name.
        every: how many steps lie between two points.
        label: what the numbers are.
        along: what the points are counted in. A point of training is the mean of its steps and is
            drawn in their middle; other points are drawn at 0, 1, 2 and so on.
        shaded: how many points, counted from the first, have a shaded background.
        alt: what the picture shows, for those who cannot see it.

    Returns:
        The picture; it keeps the curves as ``values``.

    """
    figure = Figure(figsize=(4.4, 2.5))  # on a phone its words are 10 pixels high
    panel = figure.subplots()
    for (name, curve), (colour, dash) in zip(curves.items(), LINES, strict=False):
        points = every * (torch.arange(len(curve)) + (0.5 if along == "step" else 0.0))
        panel.plot(points, curve.detach(), dash, color=colour, label=name)
    if shaded:
        panel.axvspan(0, every * (shaded - 1), color="#888888", alpha=0.25, linewidth=0)
    panel.set_xlabel(along)
    panel.set_ylabel(label)
    # Above the axes, where no line can run through it.
    panel.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)
    panel.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    return Picture(figure, alt, curves)
