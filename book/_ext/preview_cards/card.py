"""The picture that a preview of a page shows: its title, its explorer and its description."""

from __future__ import annotations

from pathlib import Path

from matplotlib import get_data_path
from PIL import Image, ImageDraw, ImageFont

WIDTH, HEIGHT = 1200, 630  # what previews are made for
MARGIN, GAP = 56, 28
COLUMN = 360  # the narrowest column that text reads well in
INK, QUIET, PAPER = "#1f2328", "#59636e", "#ffffff"
LOGO = Path(__file__).parents[1] / "book_style" / "static" / "book_style" / "logo.png"
FONTS = Path(get_data_path()) / "fonts" / "ttf"
REGULAR, BOLD = FONTS / "DejaVuSans.ttf", FONTS / "DejaVuSans-Bold.ttf"


def draw_card(path: Path, book: str, title: str, description: str, picture: Path | None) -> None:
    """Write the card as PNG. A page without an explorer shows the logo in its place."""
    card = Image.new("RGB", (WIDTH, HEIGHT), PAPER)
    pen = ImageDraw.Draw(card)
    right, bottom = WIDTH - MARGIN, HEIGHT - MARGIN

    mark = fitted(LOGO, 56, 56)
    card.paste(mark, (MARGIN, MARGIN - 8), mark)
    above = "Multi-head attention" if title == book else book
    pen.text((MARGIN + 56 + GAP // 2, MARGIN + 20), above, QUIET, font(REGULAR, 30), "lm")
    top = MARGIN + 56 + GAP // 2
    for size in (68, 58, 48):
        bold = font(BOLD, size)
        lines = wrapped(title, bold, right - MARGIN)
        if len(lines) <= 2:
            break
    top = write(pen, lines, bold, INK, MARGIN, top) + GAP

    shown = fitted(picture or LOGO, right - MARGIN, bottom - top)
    card.paste(shown, (MARGIN, top), shown)
    left = MARGIN + shown.width + 2 * GAP
    if right - left < COLUMN:  # the text goes below the picture, not beside it
        left, top = MARGIN, top + shown.height + GAP
    regular = font(REGULAR, 30)
    lines = wrapped(description, regular, right - left)
    fit = (bottom - top) // line_height(regular)
    if len(lines) > fit:
        lines = [*lines[: fit - 1], f"{lines[fit - 1].rsplit(' ', 1)[0]} …"] if fit > 0 else []
    write(pen, lines, regular, QUIET, left, top)

    path.parent.mkdir(parents=True, exist_ok=True)
    colours = card.quantize(method=Image.Quantize.MAXCOVERAGE)  # the logo's too, not the many greys
    colours.save(path, optimize=True)


def font(path: Path, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(path, size)


def line_height(font: ImageFont.FreeTypeFont) -> int:
    return round(1.35 * font.size)


def wrapped(text: str, font: ImageFont.FreeTypeFont, width: int) -> list[str]:
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if font.getlength(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def write(pen: ImageDraw.ImageDraw, lines, font, colour: str, left: int, top: int) -> int:
    """Write the lines below each other; returns where the next one would begin."""
    for line in lines:
        pen.text((left, top), line, colour, font)
        top += line_height(font)
    return top


def fitted(path: Path, width: int, height: int) -> Image.Image:
    """A picture as large as it fits, at most half as large again as it is."""
    picture = Image.open(path).convert("RGBA")
    scale = min(width / picture.width, height / picture.height, 1.5)
    size = (round(picture.width * scale), round(picture.height * scale))
    return picture.resize(size, Image.Resampling.LANCZOS)
