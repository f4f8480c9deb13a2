"""The mathematical font of the pages: STIX Two Math, cut down to the characters they use."""

from __future__ import annotations

import html
import re
from importlib.resources import files
from pathlib import Path

from sphinx.application import Sphinx

from font_subset import write_subset

MATH = re.compile(r"<math\b.*?</math>", re.DOTALL)
TAG = re.compile(r"<[^>]*>")
RADICAL = "√"  # drawn for <msqrt> and <mroot>, which hold no such character
SCRIPT_FORMS = ["ssty"]  # the font's shapes for subscripts and superscripts


def write_font(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    # files() finds the font wherever the package lies; the subset needs a real path.
    source = Path(str(files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf"))
    target = Path(app.outdir) / "_static" / "mathml" / "math.woff2"
    write_subset(source, used_characters(Path(app.outdir)), target, SCRIPT_FORMS)


def used_characters(outdir: Path) -> set[str]:
    """Every character of every equation, and what it becomes: one letter alone is drawn as
    mathematical italic.
    """
    used = {RADICAL, "ℎ"}
    for page in outdir.glob("**/*.html"):
        for equation in MATH.findall(page.read_text(encoding="utf-8")):
            used |= set(html.unescape(TAG.sub("", equation)))
    for first, last, italic in (("A", "Z", 0x1D434), ("a", "z", 0x1D44E), ("α", "ω", 0x1D6FC)):
        used |= {
            chr(italic + ord(letter) - ord(first)) for letter in used if first <= letter <= last
        }
    return used
