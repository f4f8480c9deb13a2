"""The guide for instructors says of the chapters and of the checks what is so."""

import ast
import re
from pathlib import Path

import nbformat
import pytest

from tools.refresh import chapters

BOOK = Path(__file__).parents[2] / "book"
GUIDE = BOOK / "for-instructors.md"
TEXT = GUIDE.read_text("utf-8")
NUMBERED = [path for path in chapters() if path.stem != "index"]
# A block whose last line is a check, and the quotation below it.
CHECKED = re.findall(r"```python\n((?:(?!```).*\n)*check_\w+\(.*\)\n)```\n\n((?:>.*\n)+)", TEXT)


@pytest.fixture(params=NUMBERED, ids=lambda path: path.stem)
def chapter(request):
    return request.param


def markdown(path):
    notebook = nbformat.read(path, as_version=4)
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def in_one_line(text):
    return " ".join(text.split())


def test_the_plan_names_sections_and_answers_of_the_chapter(chapter):
    plan = re.search(
        rf"^- \*\*\[.*\]\({chapter.name}\)\.\*\* (.*\n(?:  .*\n)*)", TEXT, re.MULTILINE
    )
    plan, text = in_one_line(plan[1]), "\n".join(markdown(chapter))
    headings = re.findall(r"^##+ (.*)", text, re.MULTILINE)
    for section in re.findall(r"(?<!\*)\*([^*]+)\*(?!\*)", plan):
        assert section in headings
    for answer in re.findall(r"\*\*[^*]+\*\*", plan):
        assert answer in text


def test_every_chapter_with_a_check_has_two_misunderstandings():
    sections = re.findall(r"^### Chapter (\d+).*\n((?:(?!##).*\n?)*)", TEXT, re.MULTILINE)
    shown = {int(number): len(re.findall(r"^check_", text, re.M)) for number, text in sections}
    assert set(shown) == {int(path.stem[:2]) for path in NUMBERED}
    assert min(shown.values()) >= 2
    assert sum(shown.values()) == len(CHECKED)


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(("code", "quoted"), CHECKED)
def test_the_guide_quotes_what_the_check_answers(code, quoted):
    *before, last = ast.parse(code).body
    names = {}
    exec(compile(ast.Module(before, []), "<guide>", "exec"), names)
    result = eval(compile(ast.Expression(last.value), "<guide>", "eval"), names)
    assert not result.passed and len(result.mistakes) == 1
    said = re.sub("^>", "", quoted, flags=re.MULTILINE)
    assert in_one_line(said) == in_one_line(" ".join(result.paragraphs))
