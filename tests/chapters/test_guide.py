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


def row_of(chapter):
    """The chapter's row of the guide's table: minutes, builds on, exercises."""
    number = int(chapter.stem[:2])
    return re.search(rf"^\| \[{number}\]\({chapter.name}\) \| (.*) \|$", TEXT, re.MULTILINE)[1]


def test_the_table_has_the_chapters_own_words(chapter):
    minutes, builds_on, exercises = row_of(chapter).split("|")
    head = markdown(chapter)[0]
    assert int(minutes) == int(re.search(r"About (\d+) minutes", head)[1])
    told = re.search(r"It builds on (.*?)\. The code", head)[1]
    named = {int(number) for number in re.findall(r"\((\d\d)-", told)}
    assert {int(number) for number in re.findall(r"\d", builds_on)} == named
    assert ("all" in builds_on) == ("all" in told)
    after = "\n".join(markdown(chapter)).partition("\n## Exercises\n")[2].partition("\n## ")[0]
    assert re.findall(r"\*([^*]+)\*", exercises) == re.findall(r"^### (.*)", after, re.MULTILINE)


def test_the_objectives_are_the_chapters(chapter):
    head = markdown(chapter)[0]
    objectives = re.search(r"After this chapter you can\n\n((?:- .*\n)+)", head)[1].splitlines()
    lead = rf"\*\*After \[[^]]*\]\({chapter.name}\)\*\* you can\n\n((?:[- ] .*\n)+)"
    given = re.search(lead, TEXT)[1]
    assert in_one_line(given) == in_one_line(" ".join(objectives))


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
    sections = re.findall(r"^### Chapter (\d).*\n((?:(?!##).*\n?)*)", TEXT, re.MULTILINE)
    shown = {int(number): len(re.findall(r"^check_", text, re.M)) for number, text in sections}
    assert set(shown) == {2, 3, 4, 5, 6, 7}
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
