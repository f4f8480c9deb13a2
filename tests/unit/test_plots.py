"""A cell is as opaque as its weight is large, in the bytes that a page gets, too."""

import base64
import io

import torch
from PIL import Image

from attention.plots import PLUS, plot_matrices


def seen(picture):
    """How many pixels have each colour, in the bytes that a notebook stores."""
    data, _ = picture._repr_mimebundle_()
    png = Image.open(io.BytesIO(base64.b64decode(data["image/png"]))).convert("RGBA")
    return {colour: count for count, colour in png.getcolors(png.width * png.height)}


def test_every_weight_has_a_shade_of_its_own():
    weights = torch.cat([torch.tensor([0.01, 0.15, 0.17]), torch.linspace(0.05, 1.0, 20)])
    picture = plot_matrices(
        {"map": weights[None]}, rows=["a"], alt="Weights.", signed=False, numbers=False
    )
    cell = 24 * 24 // 2  # pixels at the least
    large = {a for (*_, a), count in seen(picture).items() if count > cell}
    for weight in weights.tolist():
        assert min(abs(a - 0.7 * 255 * weight) for a in large) <= 2, weight
    assert len(large) >= len(set(weights.tolist()))


def test_shades_survive_many_colours_of_letters():
    torch.manual_seed(0)
    matrices = {name: torch.rand(6, 6) for name in "abcd"}
    picture = plot_matrices(matrices, rows=list("abcdef"), alt="Weights.", signed=False)
    shown = seen(picture)
    assert len(shown) <= 128
    blue = [round(255 * part) for part in PLUS]
    for weight in torch.cat([each.flatten() for each in matrices.values()]).tolist():
        wanted = round(0.7 * 255 * weight)
        nearest = min(
            abs(a - wanted)
            for *colour, a in shown
            if a < 30 or max(abs(x - y) for x, y in zip(colour, blue, strict=True)) < 10
        )
        assert nearest <= 4, weight
