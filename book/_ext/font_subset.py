"""Cut a font down to the characters that the book shows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont


def write_subset(
    source: Path, characters: Iterable[str], target: Path, features: Iterable[str] = ()
) -> None:
    """Write `source` with only these characters to `target` (woff2), unless that is what `target`
    holds already.
    """
    text = "".join(sorted(set(characters)))
    stamp = hashlib.sha256(source.read_bytes() + text.encode()).hexdigest()
    stamp_file = target.with_suffix(".sha256")
    if target.exists() and stamp_file.exists() and stamp_file.read_text() == stamp:
        return
    options = subset.Options(flavor="woff2", layout_features=list(features), hinting=False)
    font = TTFont(source)
    subsetter = subset.Subsetter(options)
    subsetter.populate(text=text)
    subsetter.subset(font)
    target.parent.mkdir(parents=True, exist_ok=True)
    subset.save_font(font, str(target), options)
    stamp_file.write_text(stamp)
