"""Lists in the guide for instructors, filled from the first cells of chapters and assignments.

    ```{chapter-table}       minutes, what a chapter builds on, its exercises
    ```{chapter-objectives}  what a reader can do after each chapter
    ```{assignment-table}    chapters and minutes
    ```{assignment-rubrics}  what earns the points that no test gives

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


def chapter_row(path: Path) -> str:
    minutes = stated(r"About (\d+) minutes", path)
    builds_on = stated(r"It builds on (.*?)\. The code", path)
    before = ", ".join(str(int(number)) for number in re.findall(r"\((\d\d)-", builds_on))
    before = "all before" if "all chapters" in builds_on else before
    exercises = "\n".join(markdown(path)).partition("\n## Exercises\n")[2].partition("\n## ")[0]
    titles = ", ".join(f"*{title}*" for title in re.findall(r"^### (.*)", exercises, re.M))
    return f"| [{int(path.name[:2])}]({path.name}) | {minutes} | {before} | {titles} |"


def objectives(path: Path) -> list[str]:
    lead = f"**After [chapter {int(path.name[:2])}]({path.name})** you can"
    return [lead, "", *stated(r"you can\n\n((?:- .*\n)+)", path).splitlines(), ""]


def assignment_row(path: Path) -> str:
    number, title = stated(r"# Assignment (\d+: .*)", path).split(": ")
    chapters = re.sub(r", \*[^*]*\*,?", "", stated(r"It builds on (.*)\.", path))
    minutes = stated(r"About (\d+) minutes", path)
    return f"| {number} {title} | {chapters.replace('and on', 'and')} | {minutes} |"


def rubrics(path: Path) -> list[str]:
    """What an assignment tells the grader below its answers, each under the title of its task."""
    number = stated(r"# Assignment (\d+):", path)
    lines, task = [], ""
    for text in markdown(path):
        titles = re.findall(r"^## \d+\. (.*) \(\d+ points\)$", text, re.M)
        task = titles[-1] if titles else task
        notes = re.search(
            r"^\*\*For the grader, (.*)\.\*\*\n(.*)^### END SOLUTION", text, re.M | re.S
        )
        if notes is not None:
            lines += [f"Assignment {number}, *{task}*, {notes[1]}:", *notes[2].splitlines()]
    return lines


class GuideList(SphinxDirective):
    """Parse the lines that the notebooks of `folder` give, as if they stood in the page."""

    folder, pattern = "book", "[0-9]*.ipynb"

    def run(self) -> list[Node]:
        found = (Path(self.env.srcdir).parent / self.folder).glob(self.pattern)
        paths = sorted(found, key=lambda path: int(path.stem.split("-")[0]))
        for path in paths:
            self.env.note_dependency(str(path))
        content = Element()
        self.state.nested_parse(StringList(self.lines(paths), self.env.docname), 0, content)
        return content.children


class ChapterTable(GuideList):
    def lines(self, paths: list[Path]) -> list[str]:
        head = ["| Chapter | Minutes | Builds on | Exercises |", "|:--|--:|:--|:--|"]
        return head + [chapter_row(path) for path in paths]


class ChapterObjectives(GuideList):
    def lines(self, paths: list[Path]) -> list[str]:
        return [line for path in paths for line in objectives(path)]


class AssignmentTable(GuideList):
    folder, pattern = "assignments/source", "*/*.ipynb"

    def lines(self, paths: list[Path]) -> list[str]:
        head = ["| Assignment | Builds on | Minutes |", "|:--|:--|--:|"]
        return head + [assignment_row(path) for path in paths]


class AssignmentRubrics(GuideList):
    folder, pattern = "assignments/source", "*/*.ipynb"

    def lines(self, paths: list[Path]) -> list[str]:
        return [line for path in paths for line in rubrics(path)]


def setup(app: Sphinx) -> dict[str, object]:
    app.add_directive("chapter-table", ChapterTable)
    app.add_directive("chapter-objectives", ChapterObjectives)
    app.add_directive("assignment-table", AssignmentTable)
    app.add_directive("assignment-rubrics", AssignmentRubrics)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
