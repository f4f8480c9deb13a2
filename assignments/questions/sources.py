"""What the chapters and the guide say already: stems and reasons, by where they stand."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

BOOK = Path(__file__).resolve().parents[2] / "book"
CHAPTERS = sorted(BOOK.glob("[0-9][0-9]-*.ipynb"))

QUESTION = re.compile(
    r"^\*\*(\d+)\.\*\* (.*?)\n\n<details>\n<summary>Answer</summary>\n\n(.*?)\n\n</details>",
    re.MULTILINE | re.DOTALL,
)
SECTION = re.compile(r"^## Chapter (\d+),.*\n((?:(?!##).*\n?)*)", re.MULTILINE)
MISTAKE = re.compile(
    r"^\*([^*\n]+)\* .*\n(?:.+\n)*\n"  # its title, and a remark to the instructor
    r"```python\n((?:(?!```).*\n)*)check_\w+\(.*\)\n```\n\n"  # the code, and the check
    r"((?:>.*\n?)+)",  # what the check answers
    re.MULTILINE,
)


@dataclass(frozen=True)
class Told:
    """A question as the book has it, in Markdown."""

    stem: str
    reason: str


def chapter_title(chapter: Path) -> str:
    """The title of a chapter's notebook, such as "1. From tokens to vectors"."""
    return re.search(r"^# (.+)", chapter_text(chapter), re.MULTILINE)[1]


def chapter_text(chapter: Path) -> str:
    """All Markdown of a chapter's notebook."""
    cells = json.loads(chapter.read_text("utf-8"))["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def chapter_questions(chapter: Path) -> dict[int, Told]:
    """The questions below `## Questions`, by their number, with their folded answers."""
    _, _, questions = chapter_text(chapter).partition("## Questions\n")
    return {int(number): Told(stem, answer) for number, stem, answer in QUESTION.findall(questions)}


def mistakes() -> dict[int, dict[str, Told]]:
    """The typical misunderstandings that a check names: chapter, then title."""
    page = (BOOK / "misunderstandings.md").read_text("utf-8")
    return {
        int(chapter): {
            title.rstrip("."): Told(code_alone(code), words_of(quoted))
            for title, code, quoted in MISTAKE.findall(text)
        }
        for chapter, text in SECTION.findall(page)
    }


def code_alone(code: str) -> str:
    """The student's code as a Markdown block, without the import of the check."""
    own = re.sub(r"\n*^from attention\.checks import .*", "", code, flags=re.MULTILINE)
    return f"```python\n{own.strip()}\n```"


def words_of(quoted: str) -> str:
    """What the check answers the one who wrote the code, without what it says of its own inputs."""
    paragraphs = re.sub("^> ?", "", quoted, flags=re.MULTILINE).strip().split("\n\n")
    said = [text for text in paragraphs if not text.startswith(("With ", "That was with "))]
    return "\n\n".join(["To the author of this code:", *(" ".join(text.split()) for text in said)])
