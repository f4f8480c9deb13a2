"""Cut a font down to the characters that the book shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

COPYRIGHT, LICENCE, LICENCE_ADDRESS = 0, 13, 14  # the font's own record of its terms stays in it


def write_subset(
    source: Path,
    characters: Iterable[str],
    target: Path,
    features: Iterable[str] = (),
    change: Callable[[TTFont], None] | None = None,
) -> None:
    """Write `source` with only these characters to `target`, as woff2."""
    font = TTFont(source, recalcTimestamp=False)  # the same file from every build
    if change:
        change(font)
    options = subset.Options(flavor="woff2", layout_features=list(features), hinting=False)
    options.name_IDs = [*options.name_IDs, COPYRIGHT, LICENCE, LICENCE_ADDRESS]
    subsetter = subset.Subsetter(options)
    subsetter.populate(text="".join(sorted(set(characters))))
    subsetter.subset(font)
    target.parent.mkdir(parents=True, exist_ok=True)
    subset.save_font(font, str(target), options)
