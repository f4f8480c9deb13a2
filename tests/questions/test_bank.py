"""What stands in the bank: all that the book asks, right, and fair to who answers."""

import json
import math
import re
import tomllib
from collections import Counter
from functools import reduce

import pytest
import torch

import attention.checks
import attention.cost.sparse
from assignments.questions.bank import BANK, make_question, stale_quotes
from assignments.questions.sources import (
    BOOK,
    CHAPTERS,
    Told,
    chapter_questions,
    chapter_text,
    mistakes,
)

ENTRIES = [
    (path, entry)
    for path in CHAPTERS
    for entry in tomllib.loads((BANK / f"{path.stem}.toml").read_text("utf-8"))["question"]
]
NUMBERS = [entry for _, entry in ENTRIES if "answer" in entry]
# Written with a point, or with three digits and more.
MEASURED = re.compile(r"(?<![\w.])(\d[\d,]*\.\d+|\d{1,3}(?:,\d{3})+|\d{3,})(?!\w)")


def compute(expression):
    names = {"math": math, "torch": torch, "attention": attention, "reduce": reduce}
    return float(eval(expression, names))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_every_question_and_every_mistake_of_the_book_is_asked_once(chapter):
    entries = [entry for path, entry in ENTRIES if path == chapter]
    asked = Counter(entry["chapter"] for entry in entries if "chapter" in entry)
    assert asked == Counter(chapter_questions(chapter).keys())
    named = Counter(entry["mistake"] for entry in entries if "mistake" in entry)
    assert named == Counter(mistakes()[int(chapter.stem[:2])].keys())


def test_no_question_and_no_mistake_is_overlooked():
    for chapter in CHAPTERS:
        _, _, questions = chapter_text(chapter).partition("## Questions\n")
        numbers = [
            int(number) for number in re.findall(r"^\*\*(\d+)\.\*\*", questions, re.MULTILINE)
        ]
        assert list(chapter_questions(chapter)) == numbers == [*range(1, len(numbers) + 1)]
    page = (BOOK / "misunderstandings.md").read_text("utf-8")
    checks = re.findall(r"^check_\w+\(", page, re.MULTILINE)
    assert sum(map(len, mistakes().values())) == len(checks)


def test_all_checks_are_there():
    page = (BOOK / "misunderstandings.md").read_text("utf-8")
    named = set(re.findall(r"^(check_\w+)\(", page, re.MULTILINE))
    assert named == {name for name in attention.checks.__all__ if name.startswith("check_")}


def test_there_are_enough_of_each_kind(bank, questions):
    assert len(questions) >= 80
    assert all(5 <= len(chapter.questions) <= 8 for chapter in bank)
    assert sum(bool(question.several) for question in questions) >= 10
    assert sum(question.answer is not None for question in questions) >= 20


def test_the_guide_says_how_many_there_are(questions):
    page = (BOOK / "assignments.md").read_text("utf-8")
    assert f"\n{len(questions)} questions on {len(CHAPTERS)} chapters." in page


def test_the_guide_says_how_many_there_are_of_each_kind(questions):
    page = in_one_line((BOOK / "assignments.md").read_text("utf-8"))
    several = sum(question.several for question in questions)
    numbers = sum(question.answer is not None for question in questions)
    single = len(questions) - several - numbers
    assert (
        f"{single} with one choice of four, {numbers} with a number and a tolerance, "
        f"and {several} with several choices."
    ) in page


def test_the_guide_shows_one_of_each_kind_as_it_stands_in_the_bank(bank):
    page = (BOOK / "assignments.md").read_text("utf-8")
    shown = re.findall(
        r"^\*\*Chapter (\d+), (.*?)\.\*\* ((?:.+\n)+\n(?:.+\n)+\n.+(?:\n.+)*)", page, re.M
    )
    kinds = set()
    for number, title, text in shown:
        [question] = [each for each in bank[int(number) - 1].questions if each.title == title]
        kinds.add((question.several, question.answer is None))
        assert in_one_line(text) == in_one_line(as_in_the_guide(question)), (
            f"{title}: book/assignments.md shows another wording than the chapter and its bank"
        )
    assert len(shown) == len(kinds) == 3


def as_in_the_guide(question):
    if question.answer is None:
        lines = [
            f"- {each.text} {'**Right.**' if each.right else f'*{each.why}*'}"
            for each in question.choices
        ]
    else:
        lines = [f"- {question.answer:g}, within {question.tolerance:g}. **Right.**"]
        lines += [f"- {slip.number:g}: *{slip.why}*" for slip in question.slips]
    return "\n".join([question.text, *lines, f"Reason: {question.reason}"])


def in_one_line(text):
    return " ".join(text.split())


def test_names_and_titles_are_unique(questions):
    assert len({question.name for question in questions}) == len(questions)
    assert len({question.title for question in questions}) == len(questions)


def test_every_question_has_a_reason_and_every_wrong_answer_one_of_its_own(questions):
    for question in questions:
        assert question.reason, question.name
        wrong = [*question.slips, *(choice for choice in question.choices if not choice.right)]
        assert len(wrong) >= 2, question.name
        assert all(re.search(r"[.?]$", answer.why) for answer in wrong), question.name


def test_choices_are_four_and_differ(questions):
    for question in questions:
        if question.choices:
            right = sum(choice.right for choice in question.choices)
            texts = [choice.text for choice in question.choices]
            assert len(set(texts)) == len(texts), question.name
            if question.several:
                assert 4 <= len(texts) <= 7 and 1 <= right < len(texts), question.name
            else:
                assert (right, len(texts)) == (1, 4), question.name
            assert not any(re.search(r"(?i)\b(all|none|both) of the", text) for text in texts)


def test_place_and_length_do_not_give_the_answer_away(questions):
    single = [question for question in questions if question.choices and not question.several]
    places, longest, shortest = Counter(), 0, 0
    for question in single:
        lengths = [len(choice.text) for choice in question.choices]
        place = [choice.right for choice in question.choices].index(True)
        places[place] += 1
        longest += lengths.count(max(lengths)) == 1 and lengths[place] == max(lengths)
        shortest += lengths.count(min(lengths)) == 1 and lengths[place] == min(lengths)
    share = {place: count / len(single) for place, count in places.items()}
    assert set(share) == {0, 1, 2, 3} and max(share.values()) < 0.35 and min(share.values()) > 0.15
    assert longest / len(single) < 0.35
    assert shortest / len(single) < 0.35


@pytest.mark.parametrize("entry", NUMBERS, ids=lambda entry: entry["title"])
def test_a_number_is_what_its_expression_says(entry):
    computed = compute(entry["expression"])
    assert abs(computed - entry["answer"]) <= entry["tolerance"]
    for slip, _ in entry["wrong"]:
        # No answer is right and a slip at once.
        assert abs(slip - entry["answer"]) > 2 * entry["tolerance"]


def everything(path):
    """A chapter with its code and its outputs."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    printed = [
        output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs
    ]
    return "\n".join("".join(text) for text in [*(cell["source"] for cell in cells), *printed])


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_numbers_stand_in_the_chapter_or_are_computed(chapter):
    known = set(MEASURED.findall(everything(chapter)))
    for path, entry in ENTRIES:
        if path != chapter:
            continue
        right = entry.get("right", [])
        said = [entry.get("before", ""), entry.get("ask", ""), entry.get("reason", "")]
        said += [right] if isinstance(right, str) else right
        said += [why for _, why in entry["wrong"]]
        own = entry.get("numbers", {})
        for number, expression in own.items():
            assert compute(expression) == pytest.approx(float(number.replace(",", "")), rel=0.01)
        missing = set(MEASURED.findall(" ".join(said))) - known - set(own)
        if "answer" in entry:
            missing -= {f"{entry['answer']:,}"}
        assert not missing, f"{entry['title']}: {missing} is neither in the chapter nor computed"


def test_a_field_that_nobody_reads_is_refused():
    questions = {1: Told("Why?", "Because.")}
    with pytest.raises(ValueError, match=r"'Why'.*wright is not one of answer, ask"):
        make_question("01-x", {"title": "Why", "chapter": 1, "wright": "x"}, questions, {})


def test_what_is_left_out_of_an_answer_must_be_in_it():
    questions = {1: Told("Why?", "Because. See the table.")}
    entry = {"title": "Why", "chapter": 1, "right": "x", "wrong": []}
    question = make_question("01-x", entry | {"without": " See the table."}, questions, {})
    assert question.reason == "Because."


def test_what_is_quoted_of_an_answer_is_in_it():
    assert not stale_quotes(), "\n".join(stale_quotes())


def test_a_reworded_answer_is_told_once(tmp_path):
    for path in BANK.glob("*.toml"):
        text = path.read_text("utf-8").replace('says = "Rows 3, 4', 'says = "Rows 2, 3, 4')
        text = text.replace('title = "A clean triangle"', 'title = "x"\nwithout = "See it."')
        (tmp_path / path.name).write_text(text, "utf-8")
    line, other = sorted(set(stale_quotes(tmp_path)) - set(stale_quotes(BANK)))
    assert other == "bank/05-masking.toml, question 2: its answer has no 'See it.' to leave out"
    assert line.startswith("bank/05-masking.toml, question 1: its answer does not say 'Rows 2, 3")


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_the_answer_in_the_chapter_is_the_right_one(chapter):
    """The number that is asked for stands in it, or the words that say which choice is right."""
    told = chapter_questions(chapter)
    for path, entry in ENTRIES:
        if path != chapter or "chapter" not in entry:
            continue
        if "answer" in entry and "says" not in entry:
            answer = told[entry["chapter"]].reason.replace("{,}", "").replace(",", "")
            numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", answer)]
            assert entry["answer"] in numbers, entry["title"]
        else:
            assert entry["says"], entry["title"]


def test_nothing_leans_on_what_only_the_chapter_shows(bank):
    leans = re.compile(
        r"(?i)\b(the|this) (table|exercise|figure|picture|explorer|slider|cell|notebook|section)\b"
        r"|\bthe chapter\b|\bmistake \d|\bof the (two questions|\w+ mistakes)\b"
    )
    for path, chapter in zip(CHAPTERS, bank, strict=True):
        headings = set(re.findall(r"^#+ (.+)", chapter_text(path), re.MULTILINE))
        for question in chapter.questions:
            parts = [question.text, question.reason]
            parts += [part for choice in question.choices for part in (choice.text, choice.why)]
            for part in parts:
                assert not leans.search(part), (question.name, part)
                assert not headings & set(re.findall(r"\*([^*\n]+)\*", part)), question.name


def test_a_mistakes_reason_has_no_numbers_of_inputs_that_nobody_sees(questions):
    """A check says them too, of the inputs that it tries."""
    reasons = [each for each in questions if each.reason.startswith("To the author of this code:")]
    assert len(reasons) == sum(map(len, mistakes().values()))
    for question in reasons:
        prose = re.sub("`[^`]*`", "", question.reason)
        numbers = set(re.findall(r"\d+\.\d+|\d{2,}", prose))
        assert numbers <= set(re.findall(r"\d+\.\d+|\d{2,}", question.text)), question.name
        assert not re.search(r"\[\d+, \d+|RuntimeError", prose), question.name


def test_a_question_that_the_chapter_does_not_have_is_refused():
    questions = {1: Told("Why?", "Because.")}
    with pytest.raises(ValueError, match="9 is not among the questions of the chapter: 1"):
        make_question("01-x", {"title": "Why", "chapter": 9}, questions, {})
