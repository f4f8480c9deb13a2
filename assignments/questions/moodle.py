"""Moodle XML: one file, a category for each chapter.

The elements are those of Moodle's own importer, question/format/xml/format.php.
"""

from xml.etree import ElementTree as ET

from assignments.questions.bank import Chapter, Choice, Question
from assignments.questions.text import html, inline

TOP = "$course$/top/Attention, Head by Head"
LICENCE = "From Attention, Head by Head. CC BY 4.0: change what you like, and say where it is from."


def moodle_xml(chapters: list[Chapter]) -> bytes:
    quiz = ET.Element("quiz")
    for chapter in chapters:
        category = ET.SubElement(quiz, "question", type="category")
        # A slash would begin a category in the category.
        with_text(category, "category", f"{TOP}/{chapter.title.replace('/', '//')}")
        with_text(category, "info", LICENCE, format="html")
        for question in chapter.questions:
            add_question(quiz, question)
    ET.indent(quiz)
    return ET.tostring(quiz, "UTF-8", xml_declaration=True) + b"\n"


def with_text(parent: ET.Element, tag: str, text: str, **attributes: str) -> ET.Element:
    element = ET.SubElement(parent, tag, attributes)
    ET.SubElement(element, "text").text = text
    return element


def add_question(quiz: ET.Element, question: Question) -> None:
    kind = "multichoice" if question.choices else "numerical"
    element = ET.SubElement(quiz, "question", type=kind)
    with_text(element, "name", question.title)
    with_text(element, "questiontext", html(question.text), format="html")
    with_text(element, "generalfeedback", html(question.reason), format="html")
    ET.SubElement(element, "defaultgrade").text = "1"
    ET.SubElement(element, "penalty").text = "0.3333333"
    ET.SubElement(element, "hidden").text = "0"
    ET.SubElement(element, "idnumber").text = question.name
    if question.choices:
        ET.SubElement(element, "single").text = "false" if question.several else "true"
        ET.SubElement(element, "shuffleanswers").text = "true"
        ET.SubElement(element, "answernumbering").text = "abc"
        for choice in question.choices:
            add_answer(element, inline(choice.text), share(question, choice), choice.why)
    else:
        tolerance = f"{question.tolerance:.10g}"
        right = add_answer(element, f"{question.answer:.10g}", "100", "")
        ET.SubElement(right, "tolerance").text = tolerance
        for slip in question.slips:
            wrong = add_answer(element, f"{slip.number:.10g}", "0", slip.why)
            ET.SubElement(wrong, "tolerance").text = tolerance


def add_answer(question: ET.Element, text: str, fraction: str, why: str) -> ET.Element:
    form = "html" if question.get("type") == "multichoice" else "moodle_auto_format"
    answer = with_text(question, "answer", text, fraction=fraction, format=form)
    with_text(answer, "feedback", inline(why), format="html")
    return answer


def share(question: Question, choice: Choice) -> str:
    """Percent of the mark: the right ones share it, and the wrong ones take as much away."""
    if not question.several:
        return "100" if choice.right else "0"
    alike = sum(other.right == choice.right for other in question.choices)
    return f"{100 / alike if choice.right else -100 / alike:.7g}"
