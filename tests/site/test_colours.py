"""One hue for one meaning, and digits that can be read on a cell, from the stylesheets."""

import colorsys
import re
from itertools import combinations

import pytest

from attention.drawings.drawing import SHADE
from tests.site.conftest import ROOT

SYMBOLS = ROOT / "book/_ext/symbols/static/symbols/symbols.css"
EXPLORER = ROOT / "src/attention/explore/explorer.css"
DRAWINGS = ROOT / "book/_ext/drawings/static/drawings/drawings.css"
MATRIX = ROOT / "src/attention/explore/matrix.js"
# The theme's ground and ink.
THEMES = {"light": ("#ffffff", "#222832"), "dark": ("#14181e", "#ced6dd")}
NAMES = ("sym-q", "sym-k", "sym-v", "sym-scores", "sym-weights", "sym-output", "plus", "minus")


def colours(theme):
    found = {}
    for path in (SYMBOLS, EXPLORER):
        light, _, dark = path.read_text("utf-8").partition('html[data-theme="dark"]')
        part = dark.split("}")[0] if theme == "dark" else light
        found |= dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", part))
    return {name: found[name] for name in NAMES}


def channels(colour):
    return [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]


def luminance(rgb):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def over(colour, ground, opacity):
    return [opacity * c + (1 - opacity) * g for c, g in zip(colour, ground, strict=True)]


@pytest.mark.parametrize("theme", THEMES)
def test_no_two_meanings_share_a_hue(theme):
    hues = {
        name: 360 * colorsys.rgb_to_hls(*channels(colour))[0]
        for name, colour in colours(theme).items()
    }
    for one, other in combinations(hues, 2):
        apart = abs(hues[one] - hues[other])
        assert min(apart, 360 - apart) > 20, (one, other)


@pytest.mark.parametrize("theme", THEMES)
def test_digits_on_the_fullest_cell_and_bars_on_the_ground_can_be_seen(theme):
    ground, ink = map(channels, THEMES[theme])
    full = float(re.search(r"FULL = ([\d.]+);", MATRIX.read_text("utf-8"))[1])
    for sign in ("plus", "minus"):
        colour = channels(colours(theme)[sign])
        assert contrast(ink, over(colour, ground, full)) >= 4.5, sign
        assert contrast(colour, ground) >= 3, sign


@pytest.mark.parametrize(("theme", "towards"), [("light", 1.0), ("dark", 0.0)])
def test_digits_on_a_cell_of_a_drawing_can_be_read(theme, towards):
    ground, ink = map(channels, THEMES[theme])
    css = DRAWINGS.read_text("utf-8")
    for sign, colour in re.findall(r"--(plus|minus): (#[0-9a-f]{6});", css):
        assert colour == colours("dark")[sign], "a sign has one colour in explorers and drawings"
    mixed = dict(re.findall(r"var\(--of\) (\d+)%, (white|black)", css))
    share = next(int(part) for part, end in mixed.items() if (end == "white") == bool(towards))
    for name, colour in colours(theme).items():
        fill = over(channels(colour), [towards] * 3, share / 100)
        assert contrast(ink, over(fill, ground, SHADE)) >= 4.5, name
