"""The mathematical font of the pages: STIX Two Math, cut down to the characters they use."""

from __future__ import annotations

import html
import re
from importlib.metadata import distribution
from pathlib import Path

from fontTools.ttLib import TTFont
from sphinx.application import Sphinx

from book._ext.font_subset import write_subset

MATH = re.compile(r"<math\b.*?</math>", re.DOTALL)
TAG = re.compile(r"<[^>]*>")
RADICAL = "√"  # drawn for <msqrt> and <mroot>, which hold no such character
PRIME = "′"
SCRIPT_FORMS = ["ssty"]  # the font's shapes for subscripts and superscripts


def write_font(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    package = distribution("ziamath")  # found without being imported
    source = Path(package.locate_file("ziamath/fonts/STIXTwoMath-Regular.ttf"))
    target = Path(app.outdir) / "_static" / "mathml" / "math.woff2"
    characters = used_characters(Path(app.outdir))
    write_subset(source, characters, target, SCRIPT_FORMS, change)


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


def change(font: TTFont) -> None:
    narrow_radicals(font)
    keep_script_form_of_prime(font)


def keep_script_form_of_prime(font: TTFont) -> None:
    """Leave out the other letters' shapes for scripts, a little wider: they are half of the bytes.

    The prime needs its own, which stands at another height.
    """
    prime = font.getBestCmap()[ord(PRIME)]
    table = font["GSUB"].table
    forms = [each.Feature for each in table.FeatureList.FeatureRecord if each.FeatureTag == "ssty"]
    for place in {place for form in forms for place in form.LookupListIndex}:
        for subtable in table.LookupList.Lookup[place].SubTable:
            alternates = subtable.alternates
            subtable.alternates = {k: v for k, v in alternates.items() if k == prime}


def narrow_radicals(font: TTFont) -> None:
    """Make the tall radical signs as wide as the small one.

    Chromium gives every root the width of the font's widest radical, whichever it draws: in STIX
    Two Math that leaves a gap of 0.4 em behind each √.
    """
    variants = font["MATH"].table.MathVariants
    small = font.getBestCmap()[ord(RADICAL)]
    construction = variants.VertGlyphConstruction[variants.VertGlyphCoverage.glyphs.index(small)]
    tall = {record.VariantGlyph for record in construction.MathGlyphVariantRecord}
    tall |= {record.glyph for record in construction.GlyphAssembly.PartRecords}
    width = font["hmtx"][small][0]
    for name in tall - {small}:
        advance, left = font["hmtx"][name]
        glyph = font["glyf"][name]
        glyph.coordinates.scale((width / advance, 1))
        glyph.recalcBounds(font["glyf"])
        font["hmtx"][name] = (width, round(left * width / advance))
