"""The guide for instructors says of the chapters and of the checks what is so."""

import ast
import re
from pathlib import Path

import nbformat
import pytest

from assignments.course import SOURCE
from tools.refresh import chapters

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "book"
TEXT = (BOOK / "for-instructors.md").read_text("utf-8")
MISTAKES = (BOOK / "misunderstandings.md").read_text("utf-8")
NUMBERED = [path for path in chapters() if path.stem != "index"]
# What stands in front of the parts of a class, as against an answer, which is bold too.
PARTS = r"^\*\*(Answer|In the open|Explorer|In pairs|At home)\.\*\*"
# A block whose last line is a check, and the quotation below it.
CHECKED = re.findall(r"```python\n((?:(?!```).*\n)*check_\w+\(.*\)\n)```\n\n((?:>.*\n)+)", MISTAKES)


@pytest.fixture(params=NUMBERED, ids=lambda path: path.stem)
def chapter(request):
    return request.param


def markdown(path):
    notebook = nbformat.read(path, as_version=4)
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def in_one_line(text):
    return " ".join(text.split())


def integers(text):
    return [int(digits) for digits in re.findall(r"\d+", text)]


def number(path):
    return int(path.stem.partition("-")[0])


def minutes(path):
    return int(re.search(r"About (\d+) minutes", markdown(path)[0])[1])


def after(assignment):
    """The last chapter that an assignment builds on."""
    [path] = SOURCE.glob(f"{assignment}-*/*.ipynb")
    return max(integers(re.search(r"It builds on (.*)\.", markdown(path)[0])[1]))


def test_the_plan_names_sections_and_answers_of_the_chapter(chapter):
    text = "\n".join(markdown(chapter))
    number, title = re.search(r"^# (\d+)\. (.*)", text, re.MULTILINE).groups()
    below = TEXT.partition(f"\n(chapter-{number})=\n### Chapter {number}: {title}\n")[2]
    plan = below.partition("\n#")[0].partition("\n(")[0]
    assert f"```{{chapter-facts}} {chapter.stem}\n```" in plan
    parts = re.findall(PARTS, plan, re.MULTILINE)
    assert [*parts, "At home"][:5] == ["Answer", "In the open", "Explorer", "In pairs", "At home"]
    plan = in_one_line(re.sub(PARTS, "", plan, flags=re.MULTILINE))
    headings = re.findall(r"^##+ (.*)", text, re.MULTILINE)
    for section in re.findall(r"(?<!\*)\*([^*]+)\*(?!\*)", plan):
        assert section in headings
    answers = re.findall(r"\*\*[^*]+\*\*", plan)
    assert answers
    for answer in answers:
        assert answer in text


def test_the_minutes_at_home_are_those_of_chapters_and_assignments():
    """Reading of this week, and the assignments that were handed out the week before."""
    reading = {number(path): minutes(path) for path in NUMBERED}
    work = {number(path): minutes(path) for path in SOURCE.glob("*/*.ipynb")}
    plans = re.findall(r"^### (\w+) weeks\n\n.*\n\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    assert [name for name, _ in plans] == ["Three", "Six", "Twelve"]
    for name, table in plans:
        due, taught, handed_out = [], [], []
        for row in table.splitlines()[2:]:
            _, chapters_of, out, home = (cell.strip() for cell in row.strip("|").split("|"))
            read = integers(re.sub(r"assignment \d+", "", chapters_of))
            assert int(home) == sum(reading[n] for n in read) + sum(work[n] for n in due), row
            due, taught = integers(out), taught + read
            handed_out += due
            assert all(after(n) <= max(taught) for n in due), row
        assert not due, f"{name} weeks end before the last assignment is due"
        assert len(set(handed_out)) == len(handed_out)


@pytest.mark.parametrize(
    "page", ["book/for-instructors.md", "book/index.ipynb", "README.md"], ids=lambda page: page
)
def test_every_chapter_takes_the_minutes_that_are_said(page):
    said = re.findall(
        r"(\d+) to (\d+)(?: minutes|, with its cells)", (ROOT / page).read_text("utf-8")
    )
    assert said
    for least, most in said:
        assert all(int(least) <= minutes(path) <= int(most) for path in NUMBERED)


def test_the_chapters_that_train_for_long_are_named():
    long = [number(path) for path in NUMBERED if "half a minute of training" in markdown(path)[0]]
    named = re.search(r"In chapters (.*) cells train for half a minute", TEXT)
    assert integers(named[1]) == long


def test_no_heading_stands_in_a_fold():
    assert "</details>" in TEXT
    assert not re.search(r"</details>\n[^\n]", TEXT)


def test_what_can_be_left_out():
    builders = {number(path): [] for path in NUMBERED}
    for path in NUMBERED:
        builds_on = re.search(r"It builds on (.*?)\. The code", markdown(path)[0])
        assert builds_on, f"{path.stem}: its first cell says 'It builds on …. The code …'"
        for before in re.findall(r"\((\d\d)-", builds_on[1]):
            builders[int(before)].append(number(path))
    nobody = [n for n, builds in builders.items() if 7 < n < max(builders) and not builds]
    left_out = re.search(r"no chapter builds on ([^;]*), only ([^;]*);", in_one_line(TEXT))
    assert integers(left_out[1]) == nobody
    builder, built_on, other_builder, built_on_too = integers(left_out[2])
    assert builders[built_on] == [builder]
    assert builders[built_on_too] == [other_builder]


def test_every_chapter_with_a_check_has_two_misunderstandings():
    sections = re.findall(r"^## Chapter (\d+).*\n((?:(?!##).*\n?)*)", MISTAKES, re.MULTILINE)
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
