"""Each format read back and marked, as an LMS does it, by readers that share nothing with it.

No LMS runs here. The readers follow what is documented: Moodle's importer and its grades, the QTI
2.1 specification, and the dialect of QTI 1.2 that Canvas exports.
"""

import io
import re
import zipfile
from xml.etree import ElementTree as ET

import pytest

from assignments.questions.bank import Chapter, Question
from assignments.questions.canvas import canvas_zip
from assignments.questions.moodle import moodle_xml
from assignments.questions.qti21 import qti21_zip
from assignments.questions.text import html, inline

# The parts of a mark that Moodle accepts, from question/engine/bank.php; others it refuses.
MOODLE_GRADES = [100, 90, 83.33333, 80, 75, 70, 66.66667, 60, 50, 40, 33.33333, 30, 25, 20]
MOODLE_GRADES += [16.66667, 14.28571, 12.5, 11.11111, 10, 5, 0]
NCNAME = re.compile(r"[A-Za-z_][\w.-]*")
# What an itemBody takes of XHTML, and the book's questions use.
XHTML = {"p", "code", "pre", "em", "strong", "sup", "sub", "span", "ul", "ol", "li", "blockquote"}
XHTML |= {"table", "thead", "tbody", "tr", "th", "td", "br"}


def unzip(packed):
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert archive.namelist()[0] == "imsmanifest.xml"
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        return {name: archive.read(name) for name in archive.namelist()}


def plain(element):
    """An element's tree without namespaces, so that a path is a path."""
    for each in element.iter():
        each.tag = each.tag.rpartition("}")[2]
    return element


def words(markup):
    return " ".join("".join(ET.fromstring(f"<div>{markup}</div>").itertext()).split())


@pytest.mark.parametrize("write", [moodle_xml, qti21_zip, canvas_zip], ids=lambda f: f.__name__)
def test_the_same_bank_makes_the_same_bytes(bank, write):
    assert write(bank) == write(bank)


@pytest.mark.parametrize("write", [moodle_xml, qti21_zip, canvas_zip], ids=lambda f: f.__name__)
def test_whoever_answers_has_called_no_check(bank, write):
    packed = write(bank)
    text = b"".join(unzip(packed).values()) if packed.startswith(b"PK") else packed
    # Without what stands around it, which would be looked for at every letter of a long line.
    said = re.search(r"(?i)\b(?:checks?\b|check_)", text := text.decode())
    assert not said, text[said.start() - 100 : said.end() + 100]


# Moodle


@pytest.fixture(scope="module")
def moodle(bank):
    return ET.fromstring(moodle_xml(bank))


def test_moodle_gets_a_tolerance_with_all_its_digits():
    question = Question("q", "t", "text", "reason", answer=1.5, tolerance=0.25)
    written = ET.fromstring(moodle_xml([Chapter("1", "t", (question,))]))
    assert written.findtext(".//tolerance") == "0.25"


def test_moodle_has_a_category_for_each_chapter(moodle, bank):
    inside, found = None, {}
    for question in moodle:
        if question.get("type") == "category":
            inside = question.findtext("category/text")
            found[inside] = 0
        else:
            found[inside] += 1
    assert list(found.values()) == [len(chapter.questions) for chapter in bank]
    assert next(iter(found)) == "$course$/top/Attention, Head by Head/1. From tokens to vectors"


def test_moodle_reads_every_question_back(moodle, questions):
    read = [question for question in moodle if question.get("type") != "category"]
    for element, question in zip(read, questions, strict=True):
        assert element.findtext("name/text") == question.title
        assert element.findtext("idnumber") == question.name
        assert element.findtext("questiontext/text") == html(question.text)
        assert element.findtext("generalfeedback/text") == html(question.reason)
        answers = element.findall("answer")
        shares = [float(answer.get("fraction")) for answer in answers]
        assert all(min(abs(abs(share) - g) for g in MOODLE_GRADES) < 0.001 for share in shares)
        assert sum(share for share in shares if share > 0) == pytest.approx(100, abs=0.001)
        feedback = [answer.findtext("feedback/text") for answer in answers]
        if question.choices:
            assert element.get("type") == "multichoice"
            assert element.findtext("single") == ("false" if question.several else "true")
            for answer, share, why, choice in zip(
                answers, shares, feedback, question.choices, strict=True
            ):
                assert answer.findtext("text") == inline(choice.text)
                assert (share > 0) == choice.right and why == inline(choice.why)
            wrong = sum(share for share in shares if share < 0)
            assert wrong == pytest.approx(-100 if question.several else 0, abs=0.001)
        else:
            assert element.get("type") == "numerical"
            assert float(answers[0].findtext("text")) == question.answer and shares[0] == 100
            assert {float(a.findtext("tolerance")) for a in answers} == {question.tolerance}
            assert [float(a.findtext("text")) for a in answers[1:]] == [
                slip.number for slip in question.slips
            ]
            assert feedback[1:] == [inline(slip.why) for slip in question.slips]


# QTI 2.1


@pytest.fixture(scope="module")
def qti21(bank):
    return unzip(qti21_zip(bank))


def test_the_manifest_of_qti21_lists_its_files_and_no_others(qti21, bank):
    manifest = plain(ET.fromstring(qti21["imsmanifest.xml"]))
    assert [child.tag for child in manifest] == ["metadata", "organizations", "resources"]
    resources = {r.get("identifier"): r for r in manifest.find("resources")}
    assert all(NCNAME.fullmatch(name) for name in resources)
    listed = {file.get("href") for r in resources.values() for file in r.findall("file")}
    assert listed == set(qti21) - {"imsmanifest.xml"}
    assert all(r.get("href") == r.find("file").get("href") for r in resources.values())
    tests = [r for r in resources.values() if r.get("type") == "imsqti_test_xmlv2p1"]
    for resource, chapter in zip(tests, bank, strict=True):
        test = plain(ET.fromstring(qti21[resource.get("href")]))
        items = [ref.get("href") for ref in test.iter("assessmentItemRef")]
        wanted = [f"../items/{question.name}.xml" for question in chapter.questions]
        assert items == wanted
        needed = [d.get("identifierref") for d in resource.findall("dependency")]
        assert needed == [question.name for question in chapter.questions]


def test_qti21_has_the_elements_of_the_schema_in_its_order(qti21, questions):
    order = ["responseDeclaration", *["outcomeDeclaration"] * 4, "itemBody", "responseProcessing"]
    for question in questions:
        item = plain(ET.fromstring(qti21[f"items/{question.name}.xml"]))
        assert item.get("identifier") == question.name and NCNAME.fullmatch(question.name)
        tags = [child.tag for child in item]
        assert tags[:7] == order and set(tags[7:]) == {"modalFeedback"}
        interactions = {"choiceInteraction", "simpleChoice", "textEntryInteraction"}
        assert {e.tag for e in item.find("itemBody").iter()} <= XHTML | interactions | {"itemBody"}
        # The interactions of an itemBody stand in blocks, and text stands in none of its own.
        assert not (item.find("itemBody").text or "").strip()


def respond(item, response):
    """Run an item's response processing; returns its outcomes and the feedback it shows."""
    declared = {d.get("identifier"): d for d in item.iter("outcomeDeclaration")}
    outcomes = {name: d.findtext("defaultValue/value") for name, d in declared.items()}
    [declaration] = item.findall("responseDeclaration")

    def value(e):
        if e.tag == "variable":
            assert e.get("identifier") == "RESPONSE"
            return response
        if e.tag == "baseValue":
            return e.text
        if e.tag == "multiple":
            return value(e[0]) if isinstance(value(e[0]), set) else {value(e[0])}
        if e.tag == "correct":
            right = {v.text for v in declaration.findall("correctResponse/value")}
            return right if declaration.get("cardinality") == "multiple" else right.pop()
        if e.tag == "mapResponse":
            mapping = declaration.find("mapping")
            mapped = {m.get("mapKey"): float(m.get("mappedValue")) for m in mapping}
            total = sum(mapped[name] for name in response)
            return max(0.0, min(1.0, total))
        if e.tag == "match":
            return value(e[0]) == value(e[1])
        assert e.tag == "equal" and e.get("toleranceMode") == "absolute"
        below, above = map(float, e.get("tolerance").split())
        middle = float(value(e[1]))
        return middle - below - 1e-9 <= float(value(e[0])) <= middle + above + 1e-9

    def run(rule):
        if rule.tag == "setOutcomeValue":
            outcomes[rule.get("identifier")] = value(rule[0])
        elif value(rule.find("responseIf")[0]):
            run(rule.find("responseIf")[1])

    for rule in item.find("responseProcessing"):
        run(rule)
    shown = []
    for feedback in item.findall("modalFeedback"):
        outcome = outcomes[feedback.get("outcomeIdentifier")]
        among = outcome if isinstance(outcome, set) else {outcome}
        if feedback.get("identifier") in among:
            shown.append(" ".join("".join(feedback.itertext()).split()))
    return float(outcomes["SCORE"]), shown


def test_qti21_marks_every_answer_and_gives_its_reason(qti21, questions):
    for question in questions:
        item = plain(ET.fromstring(qti21[f"items/{question.name}.xml"]))
        reason = words(html(question.reason))
        shown = item.findall("itemBody/choiceInteraction/simpleChoice")
        assert ["".join(e.itertext()) for e in shown] == [
            words(inline(choice.text)) for choice in question.choices
        ]
        names = {
            choice: e.get("identifier") for choice, e in zip(question.choices, shown, strict=True)
        }
        right = {names[choice] for choice in question.choices if choice.right}
        if question.several:
            assert respond(item, right) == (pytest.approx(1, abs=1e-6), [reason])
            assert respond(item, set())[0] == 0
            # To choose everything gains nothing.
            assert respond(item, set(names.values()))[0] == pytest.approx(0, abs=1e-5)
        for choice, name in names.items():
            score, said = respond(item, {name} if question.several else name)
            if question.several:
                assert score == pytest.approx(1 / len(right) if choice.right else 0, abs=1e-6)
            else:
                assert score == choice.right
            assert said == [words(inline(choice.why))] * (not choice.right) + [reason]
        if question.answer is not None:
            for number in (0, question.tolerance, -question.tolerance):
                assert respond(item, question.answer + number) == (1, [reason])
            assert respond(item, question.answer * 3 + 7) == (0, [reason])
            for slip in question.slips:
                assert respond(item, slip.number) == (0, [words(inline(slip.why)), reason])


# Canvas


@pytest.fixture(scope="module")
def canvas(bank):
    files = unzip(canvas_zip(bank))
    manifest = plain(ET.fromstring(files["imsmanifest.xml"]))
    listed = [file.get("href") for file in manifest.iter("file")]
    assert set(listed) == set(files) - {"imsmanifest.xml"}
    quizzes = [plain(ET.fromstring(files[href])) for href in listed]
    titles = [quiz.find("assessment").get("title") for quiz in quizzes]
    assert titles == [chapter.title for chapter in bank]
    return {item.get("ident"): item for quiz in quizzes for item in quiz.iter("item")}


def canvas_marks(item, response):
    """Go through the conditions of an item; returns percent of the mark and the feedback."""
    score, shown = 0.0, []
    outcome = item.find("resprocessing/outcomes/decvar")
    assert (outcome.get("varname"), outcome.get("minvalue")) == ("SCORE", "0")
    largest = float(outcome.get("maxvalue"))
    texts = {f.get("ident"): f.findtext(".//mattext") for f in item.findall("itemfeedback")}

    def holds(e):
        if e.tag == "other":
            return True
        if e.tag in ("and", "conditionvar"):
            return all(map(holds, e))
        if e.tag == "or":
            return any(map(holds, e))
        if e.tag == "not":
            return not holds(e[0])
        assert e.get("respident") == "response1"
        if e.tag == "varequal":
            return e.text in response if isinstance(response, set) else float(e.text) == response
        above = e.tag == "vargte"
        return response >= float(e.text) if above else response <= float(e.text)

    for condition in item.findall("resprocessing/respcondition"):
        if holds(condition.find("conditionvar")):
            if condition.find("setvar") is not None:
                score = float(condition.findtext("setvar"))
            if condition.find("displayfeedback") is not None:
                shown.append(words(texts[condition.find("displayfeedback").get("linkrefid")]))
            if condition.get("continue") == "No":
                break
    return 100 * score / largest, shown


def test_canvas_marks_every_answer_and_gives_its_reason(canvas, questions):
    kinds = {"multiple_choice_question", "multiple_answers_question", "numerical_question"}
    found = set()
    for question in questions:
        item = canvas[question.name]
        assert item.get("title") == question.title
        fields = {
            field.findtext("fieldlabel"): field.findtext("fieldentry")
            for field in item.iter("qtimetadatafield")
        }
        found.add(fields["question_type"])
        assert item.findtext("presentation/material/mattext") == html(question.text)
        reason = words(html(question.reason))
        labels = item.findall(".//render_choice/response_label")
        names = {}
        for choice, label in zip(question.choices, labels, strict=True):
            assert label.findtext(".//mattext") == inline(choice.text)
            names[choice] = label.get("ident")
        assert fields["original_answer_ids"] == ",".join(names.values())
        right = {names[choice] for choice in question.choices if choice.right}
        if question.several:
            assert canvas_marks(item, right) == (100, [reason])
            assert canvas_marks(item, set(names.values()))[0] == 0
        for choice, name in names.items():
            score, said = canvas_marks(item, {name})
            assert score == (100 if {name} == right else 0)
            assert said == [reason] + [words(inline(choice.why))] * (not choice.right)
        if question.answer is not None:
            for number in (0, question.tolerance, -question.tolerance):
                assert canvas_marks(item, round(question.answer + number, 9)) == (100, [reason])
            assert canvas_marks(item, question.answer * 3 + 7) == (0, [reason])
    assert found == kinds
