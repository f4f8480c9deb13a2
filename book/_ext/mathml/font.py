"""The mathematical font of the pages: STIX Two Math, cut down to the characters they use."""

from __future__ import annotations

import hashlib
import html
import re
from importlib.resources import files
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont
from sphinx.application import Sphinx

MATH = re.compile(r"<math\b.*?</math>", re.DOTALL)
TAG = re.compile(r"<[^>]*>")
# Always there, so that a new digit or letter in an equation does not change the font's look or its name.
ALWAYS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789()[]{}|,.=+-−×/ "


def write_font(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    out = Path(app.outdir) / "_static" / "mathml"
    if not out.is_dir():
        return
    characters = "".join(sorted(used_characters(Path(app.outdir)) | set(ALWAYS)))
    source = files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf"
    stamp = hashlib.sha256((characters + str(source.stat().st_mtime)).encode()).hexdigest()
    stamp_file = out / "math.woff2.sha256"
    if stamp_file.exists() and stamp_file.read_text() == stamp:
        return
    cut_down(source, characters, out / "math.woff2")
    stamp_file.write_text(stamp)


def used_characters(outdir: Path) -> set[str]:
    """Every character of every equation, and what it becomes: one letter alone is drawn as mathematical italic."""
    used = set()
    for page in outdir.glob("**/*.html"):
        for equation in MATH.findall(page.read_text(encoding="utf-8")):
            used |= set(html.unescape(TAG.sub("", equation)))
    italic = {chr(0x1D434 + ord(c) - 65) for c in used | set(ALWAYS) if "A" <= c <= "Z"}
    italic |= {chr(0x1D44E + ord(c) - 97) for c in used | set(ALWAYS) if "a" <= c <= "z"}
    italic |= {chr(0x1D6FC + ord(c) - 0x3B1) for c in used if "α" <= c <= "ω"}
    return used | italic | {"ℎ"}


def cut_down(source: Path, characters: str, target: Path) -> None:
    options = subset.Options(flavor="woff2", layout_features=["ssty", "dtls", "ccmp", "kern"], hinting=False)
    font = TTFont(source)
    subsetter = subset.Subsetter(options)
    subsetter.populate(text=characters)
    subsetter.subset(font)
    subset.save_font(font, str(target), options)
