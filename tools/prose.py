"""How the prose of a page reads, in numbers, beside what CONTRIBUTING.md aims at.

    python -m tools.prose                          every page of the book
    python -m tools.prose book/05-masking.ipynb    this one

A report, and no gate: a sentence that reads well need not meet a number.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# Names and turns that the book does not use, and what it says instead. A word that has a legitimate
# sense, such as "place" or "stands", is not listed.
NAMES = {
    r"\bseats?\b": "position",
    r"\b(?<!bottle)necks?\b": "bottleneck",
    r"\b(?:no|more|less|enough|takes?|has|have|needs?|the) room\b": "memory",
    r"\bthe word before\b(?! (?:it|the|that|an?)\b)": "the previous word",
    r"\bas many numbers\b": "as many parameters",
    r"\bsome \d[\d,.]{2,}\b": "about",
    r"\b(?:comes?|came) to (?=[\d.$]|an? share)": "reaches, or is",
    r"(?:^|[.?!] )torch(?=[ ']|’)": "PyTorch",
    r"\banew\b": "again",
    r"\bin (?:the )?place of\b": "instead of",
    r"\bwhoever\b": "if you, or those who",
}
GOALS = {
    "words": "16-18",
    "≤6w": "≤6%",
    ">30w": "≤4%",
    "paragraph": "50-90",
    "one": "≤8%",
    "colon": "≤8%",
    "2 numbers": "≤6%",
    "we": "10-20%",
}


def pages() -> list[Path]:
    book = ROOT / "book"
    return [*sorted(book.glob("*.ipynb")), *sorted(book.glob("*.md"))]


def texts(path: Path) -> Iterator[str]:
    """The Markdown of a page, a cell at a time."""
    text = path.read_text("utf-8")
    if path.suffix != ".ipynb":
        yield text
        return
    for cell in json.loads(text)["cells"]:
        if cell["cell_type"] == "markdown":
            yield "".join(cell["source"])


def paragraphs(path: Path) -> Iterator[str]:
    """Its paragraphs and items of lists, without code, equations, tables, headings, quotations."""
    for text in texts(path):
        text = re.sub(r"^ *(`{3,}|:{3,})\S*[^`\n]*\n[\s\S]*?^ *\1 *$", "", text, flags=re.M)
        text = re.sub(r"^\$\$[\s\S]*?^\$\$", "", text, flags=re.M)
        for block in re.split(r"\n\s*\n", text):
            skipped = r"\s*(#|>|:{3,}|`{3,}|\||<|\(\S+\)=|:\w+:|---)"
            lines = [line for line in block.split("\n") if not re.match(skipped, line)]
            for item in re.split(r"\n(?=\s*(?:[-*]|\d+\.|:) )", "\n".join(lines)):
                item = " ".join(re.sub(r"^\s*(?:[-*:]|\d+\.) ", "", item).split())
                item = re.sub(r"\{\w+:?\w*\}`([^`<]*)(<[^`]*>)?`", r"\1", item)
                item = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", item)
                if len(item.split()) > 2:
                    yield item


def sentences(paragraph: str) -> list[str]:
    parts = re.split(r"(?<=[.?!])[\"”*)]*\s+(?=[A-Z“\"*`$(0-9\[])", paragraph)
    return [part for part in parts if len(part.split()) > 1]


def misnamed(path: Path) -> Iterator[tuple[str, str, str]]:
    """What a page calls by another name: the phrase, what to say instead, and the sentence."""
    for paragraph in paragraphs(path):
        for sentence in sentences(re.sub(r"`[^`]*`|\$[^$]*\$", "0", paragraph)):
            for phrase, word in NAMES.items():
                if found := re.search(phrase, sentence, re.I if "torch" not in phrase else 0):
                    yield found[0].strip(), word, sentence


def measured(path: Path) -> dict[str, str]:
    """The measures of `GOALS`, and how many words there are."""
    long = [p for p in paragraphs(path) if len(p.split()) > 8]
    said = [sentence for p in paragraphs(path) for sentence in sentences(p)]
    lengths = [len(sentence.split()) for sentence in said]
    plain = [re.sub(r"[$`][^$`]*[$`]", "", sentence) for sentence in said]

    def share(of: list, which) -> str:
        return f"{100 * sum(map(bool, map(which, of))) / max(1, len(of)):.0f}%"

    def mean(of: list[int]) -> float:
        return sum(of) / max(1, len(of))

    return {
        "words": f"{mean(lengths):.1f}",
        "≤6w": share(lengths, lambda n: n <= 6),
        ">30w": share(lengths, lambda n: n > 30),
        "paragraph": f"{mean([len(p.split()) for p in long]):.0f}",
        "one": share(long, lambda p: len(sentences(p)) == 1),
        "colon": share(said, lambda s: ":" in s),
        "2 numbers": share(plain, lambda s: len(re.findall(r"(?<![A-Za-z_])[\d.,]*\d", s)) > 1),
        "we": share(said, lambda s: re.search(r"\b(we|us|our)\b", s, re.I)),
        "all words": f"{sum(lengths):,}",
    }


def main(names: list[str]) -> None:
    rows = [(path.stem, measured(path)) for path in [*map(Path, names)] or pages()]
    print(f"{'':34}" + "".join(f"{name:>10}" for name in [*GOALS, "all words"]))
    print(f"{'goal':34}" + "".join(f"{goal:>10}" for goal in GOALS.values()))
    for name, values in rows:
        print(f"{name[:33]:34}" + "".join(f"{value:>10}" for value in values.values()))


if __name__ == "__main__":
    main(sys.argv[1:])
