"""Canvas's classic QTI (1.2): a quiz for each chapter, in the dialect that Canvas exports.

The elements are those that Canvas writes when it exports a quiz, and that `text2qti` writes for it.
"""

from xml.etree import ElementTree as ET

from assignments.questions.bank import Chapter, Question
from assignments.questions.packing import MANIFEST, document, manifest_of, package, root
from assignments.questions.text import html, inline

QTI = "http://www.imsglobal.org/xsd/ims_qtiasiv1p2"
QTI_SCHEMA = "http://www.imsglobal.org/xsd/ims_qtiasiv1p2p1.xsd"
CP = "http://www.imsglobal.org/xsd/imsccv1p1/imscp_v1p1"
CP_SCHEMA = "http://www.imsglobal.org/xsd/imscp_v1p1.xsd"


def canvas_zip(chapters: list[Chapter]) -> bytes:
    manifest, resources = manifest_of(CP, CP_SCHEMA, "IMS Content", "1.1.3")
    files = {}
    for chapter in chapters:
        name = f"quiz-{chapter.name}"
        href = f"{name}/{name}.xml"
        resource = ET.SubElement(resources, "resource", identifier=name, type="imsqti_xmlv1p2")
        ET.SubElement(resource, "file", href=href)
        files[href] = document(quiz(name, chapter))
    return package(files | {MANIFEST: document(manifest)})


def quiz(name: str, chapter: Chapter) -> ET.Element:
    whole = root("questestinterop", QTI, QTI_SCHEMA)
    assessment = ET.SubElement(whole, "assessment", ident=name, title=chapter.title)
    add_fields(assessment, cc_maxattempts="1")
    section = ET.SubElement(assessment, "section", ident="root_section")
    for question in chapter.questions:
        add_item(section, question)
    return whole


def add_fields(parent: ET.Element, **fields: str) -> None:
    metadata = ET.SubElement(parent, "qtimetadata")
    for label, entry in fields.items():
        field = ET.SubElement(metadata, "qtimetadatafield")
        ET.SubElement(field, "fieldlabel").text = label
        ET.SubElement(field, "fieldentry").text = entry


def add_item(section: ET.Element, question: Question) -> None:
    item = ET.SubElement(section, "item", ident=question.name, title=question.title)
    # Canvas wants numbers for the choices, and looks them up by these.
    names = [str(1001 + index) for index, _ in enumerate(question.choices)]
    if question.choices:
        kind = "multiple_answers_question" if question.several else "multiple_choice_question"
    else:
        kind = "numerical_question"
    add_fields(
        ET.SubElement(item, "itemmetadata"),
        question_type=kind,
        points_possible="1",
        original_answer_ids=",".join(names),
        assessment_question_identifierref=f"bank-{question.name}",
    )
    presentation = ET.SubElement(item, "presentation")
    add_material(presentation, html(question.text))
    processing = ET.SubElement(item, "resprocessing")
    outcomes = ET.SubElement(processing, "outcomes")
    score = {"maxvalue": "100", "minvalue": "0", "varname": "SCORE", "vartype": "Decimal"}
    ET.SubElement(outcomes, "decvar", score)
    ET.SubElement(add_condition(processing, "general_fb"), "other")
    if question.choices:
        add_choices(presentation, processing, question, names)
    else:
        add_number(presentation, processing, question)
    feedback = {"general_fb": html(question.reason)}
    for name, choice in zip(names, question.choices, strict=True):
        if choice.why:
            feedback[f"{name}_fb"] = inline(choice.why)
    for name, text in feedback.items():
        shown = ET.SubElement(item, "itemfeedback", ident=name)
        add_material(ET.SubElement(shown, "flow_mat"), text)


def add_material(parent: ET.Element, xhtml: str) -> None:
    material = ET.SubElement(parent, "material")
    ET.SubElement(material, "mattext", texttype="text/html").text = xhtml


def add_condition(processing: ET.Element, feedback: str) -> ET.Element:
    """A condition that is looked at and passed by, and what it shows; returns where it is put."""
    condition = ET.SubElement(processing, "respcondition", {"continue": "Yes"})
    tested = ET.SubElement(condition, "conditionvar")
    ET.SubElement(condition, "displayfeedback", feedbacktype="Response", linkrefid=feedback)
    return tested


def add_right(processing: ET.Element) -> ET.Element:
    """The condition that gives the mark; returns where it is put."""
    condition = ET.SubElement(processing, "respcondition", {"continue": "No"})
    tested = ET.SubElement(condition, "conditionvar")
    ET.SubElement(condition, "setvar", action="Set", varname="SCORE").text = "100"
    return tested


def equal(parent: ET.Element, value: str) -> None:
    ET.SubElement(parent, "varequal", respident="response1").text = value


def add_choices(
    presentation: ET.Element, processing: ET.Element, question: Question, names: list[str]
) -> None:
    cardinality = "Multiple" if question.several else "Single"
    response = ET.SubElement(presentation, "response_lid", ident="response1")
    response.set("rcardinality", cardinality)
    shown = ET.SubElement(response, "render_choice")
    choices = list(zip(names, question.choices, strict=True))
    for name, choice in choices:
        add_material(ET.SubElement(shown, "response_label", ident=name), inline(choice.text))
        if choice.why:
            equal(add_condition(processing, f"{name}_fb"), name)
    right = add_right(processing)
    if question.several:
        right = ET.SubElement(right, "and")
    for name, choice in choices:
        if choice.right:
            equal(right, name)
        elif question.several:
            equal(ET.SubElement(right, "not"), name)


def add_number(presentation: ET.Element, processing: ET.Element, question: Question) -> None:
    response = ET.SubElement(presentation, "response_str", ident="response1", rcardinality="Single")
    ET.SubElement(
        ET.SubElement(response, "render_fib", fibtype="Decimal"), "response_label", ident="answer1"
    )
    either = ET.SubElement(add_right(processing), "or")
    equal(either, f"{question.answer:.10g}")
    between = ET.SubElement(either, "and")
    for tag, bound in (("vargte", -question.tolerance), ("varlte", question.tolerance)):
        limit = f"{question.answer + bound:.10g}"
        ET.SubElement(between, tag, respident="response1").text = limit
