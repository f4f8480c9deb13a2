"""What the guide for instructors says of chapters and assignments, from their own first cells.

    ```{chapter-table}            what each builds on, the minutes of its exercises
    ```{chapter-facts} 05-masking that, what a reader can do after it, and its question
    ```{assignment-table}         after which chapter each is handed out, and its minutes
    ```{assignment-folded} 4-masks  what students practise; its content is put below
    ```{assignment-rubrics}       what earns the points that no test gives

What a notebook says of itself stands there alone, so the guide cannot say something else.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from docutils.nodes import Element, Node
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective


def markdown(path: Path) -> list[str]:
    """The text cells of a notebook."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]


def stated(pattern: str, path: Path) -> str:
    """What the first cell of a notebook says in the group of this pattern."""
    match = re.search(pattern, markdown(path)[0])
    if match is None:
        raise ExtensionError(f"{path.name}: its first cell must match {pattern!r}; see the guide")
    return match[1]


def number(path: Path) -> int:
    return int(path.stem.partition("-")[0])


def builds_on(path: Path) -> str:
    sentence = stated(r"It builds on (.*?)\. The code", path)
    chapters = sorted({int(chapter) for chapter in re.findall(r"\((\d\d)-", sentence)})
    return "all before" if "all chapters" in sentence else ", ".join(map(str, chapters))


def exercise_minutes(path: Path) -> str:
    return stated(r"plus (\d+) for the exercises?", path)


def opening(path: Path) -> str:
    """The words with which the landing page opens a chapter."""
    landing = "\n".join(markdown(path.with_name("index.ipynb")))
    row = re.search(rf"^\| \[\]\({path.name}\) \| (.*?) \|", landing, re.MULTILINE)
    if row is None:
        raise ExtensionError(f"{path.name} has no row in a table of index.ipynb")
    return row[1]


def guess(path: Path) -> str:
    """What a chapter asks its reader to guess: the last words in bold before the field."""
    before, field, _ = "\n".join(markdown(path)).partition('<p class="guess"')
    if not field:
        raise ExtensionError(f"{path.name} asks for no guess")
    return re.findall(r"\*\*((?:(?!\*\*).)+)\*\*", before)[-1]


def folded(title: str, text: str) -> list[str]:
    return [
        "<details>",
        f"<summary>{title}</summary>",
        "",
        *text.splitlines(),
        "",
        "</details>",
        "",
    ]


def rubrics(path: Path) -> list[str]:
    """What an assignment tells the grader below its answers, each under the title of its task."""
    lines, task = [], ""
    for text in markdown(path):
        titles = re.findall(r"^## \d+\. (.*) \(\d+ points\)$", text, re.M)
        task = titles[-1] if titles else task
        notes = re.search(
            r"^\*\*For the grader, (.*)\.\*\*\n(.*)^### END SOLUTION", text, re.M | re.S
        )
        if notes is not None:
            lines += [f"Assignment {number(path)}, *{task}*, {notes[1]}:", *notes[2].splitlines()]
    return lines


class GuideList(SphinxDirective):
    """Parse the lines that notebooks of `folder` give, as if they stood in the page."""

    folder, pattern = "book", "[0-9]*.ipynb"

    def run(self) -> list[Node]:
        found = (Path(self.env.srcdir).parent / self.folder).glob(self.pattern)
        paths = sorted(found, key=number)
        for path in paths:
            self.env.note_dependency(str(path))
        content = Element()
        self.state.nested_parse(StringList(self.lines(paths), self.env.docname), 0, content)
        return content.children


class ChapterTable(GuideList):
    def lines(self, paths: list[Path]) -> list[str]:
        rows = [
            f"| {{ref}}`chapter-{number(path)}` | {builds_on(path)} | {exercise_minutes(path)} |"
            for path in paths
        ]
        return ["| Chapter | Builds on | Exercises |", "|:--|:--|--:|", *rows]


class OfOne(GuideList):
    """Lines of the one notebook that the argument names."""

    required_arguments = 1

    def lines(self, paths: list[Path]) -> list[str]:
        chosen = [path for path in paths if path.stem == self.arguments[0]]
        if not chosen:
            raise ExtensionError(f"there is no {self.arguments[0]} in {self.folder}")
        return self.of_one(chosen[0])


class ChapterFacts(OfOne):
    def of_one(self, path: Path) -> list[str]:
        before = builds_on(path)
        after = f"It builds on {before}" if before else "It builds on no other"
        return [
            f"[The chapter]({path.name}). {after}. Its exercises take {exercise_minutes(path)} "
            f"minutes. {{ref}}`Typical misunderstandings <mistakes-{number(path)}>`.",
            "",
            *folded("What they can do afterwards", stated(r"you can\n\n((?:- .*\n)+)", path)),
            f"**Question.** {opening(path)} *The guess:* {guess(path)}",
        ]


class AssignmentTable(GuideList):
    folder, pattern = "assignments/source", "*/*.ipynb"

    def lines(self, paths: list[Path]) -> list[str]:
        return [
            "| Assignment | After chapter | Minutes |",
            "|:--|--:|--:|",
            *map(assignment_row, paths),
        ]


def assignment_row(path: Path) -> str:
    title = stated(r"# Assignment (\d+: .*)", path).replace(": ", ". ", 1)
    last = max(map(int, re.findall(r"\d+", stated(r"It builds on (.*)\.", path))))
    minutes = stated(r"About (\d+) minutes", path)
    return f"| {title} | {last} | {minutes} |"


class AssignmentFolded(OfOne):
    folder, pattern = "assignments/source", "*/*.ipynb"
    has_content = True

    def of_one(self, path: Path) -> list[str]:
        title = stated(r"# Assignment (\d+: .*)", path)
        before = stated(r"It builds on (.*)\.", path)
        practised = stated(r"practise\n\n((?:- .*\n)+)", path)
        text = f"`{path.stem}` builds on {before}. Students practise\n\n{practised}\n"
        return folded(title, text + "\n".join(self.content))


class AssignmentRubrics(GuideList):
    folder, pattern = "assignments/source", "*/*.ipynb"

    def lines(self, paths: list[Path]) -> list[str]:
        return [line for path in paths for line in rubrics(path)]


def setup(app: Sphinx) -> dict[str, object]:
    app.add_directive("chapter-table", ChapterTable)
    app.add_directive("chapter-facts", ChapterFacts)
    app.add_directive("assignment-table", AssignmentTable)
    app.add_directive("assignment-folded", AssignmentFolded)
    app.add_directive("assignment-rubrics", AssignmentRubrics)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
