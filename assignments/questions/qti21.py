"""QTI 2.1: a file for each question, a test for each chapter, and the manifest that lists them.

The elements stand in the order of 1EdTech's schema imsqti_v2p1.xsd. A response is marked by rules
of the item's own and not by one of the standard's templates, since no template gives feedback.
"""

from xml.etree import ElementTree as ET

from assignments.questions.bank import Chapter, Question
from assignments.questions.packing import MANIFEST, document, manifest_of, package, root
from assignments.questions.text import html, inline

QTI = "http://www.imsglobal.org/xsd/imsqti_v2p1"
QTI_SCHEMA = "http://www.imsglobal.org/xsd/qti/qtiv2p1/imsqti_v2p1.xsd"
CP = "http://www.imsglobal.org/xsd/imscp_v1p1"
CP_SCHEMA = "http://www.imsglobal.org/xsd/qti/qtiv2p1/qtiv2p1_imscpv1p2_v1p0.xsd"


def qti21_zip(chapters: list[Chapter]) -> bytes:
    manifest, resources = manifest_of(CP, CP_SCHEMA, "QTIv2.1 Package", "1.0.0")
    files = {}
    for chapter in chapters:
        test = add_resource(resources, f"test-{chapter.name}", "imsqti_test_xmlv2p1", "tests")
        files[test.get("href")] = document(chapter_test(chapter))
        for question in chapter.questions:
            item = add_resource(resources, question.name, "imsqti_item_xmlv2p1", "items")
            ET.SubElement(test, "dependency", identifierref=question.name)
            files[item.get("href")] = document(assessment_item(question))
    return package(files | {MANIFEST: document(manifest)})


def add_resource(resources: ET.Element, name: str, kind: str, folder: str) -> ET.Element:
    href = f"{folder}/{name}.xml"
    resource = ET.SubElement(resources, "resource", identifier=name, type=kind, href=href)
    ET.SubElement(resource, "file", href=href)
    return resource


def chapter_test(chapter: Chapter) -> ET.Element:
    name = f"test-{chapter.name}"
    test = root("assessmentTest", QTI, QTI_SCHEMA, identifier=name, title=chapter.title)
    part = ET.SubElement(test, "testPart", identifier="part")
    part.attrib |= {"navigationMode": "nonlinear", "submissionMode": "simultaneous"}
    section = ET.SubElement(part, "assessmentSection", identifier="section", title=chapter.title)
    section.set("visible", "true")
    for question in chapter.questions:
        href = f"../items/{question.name}.xml"
        ET.SubElement(section, "assessmentItemRef", identifier=question.name, href=href)
    return test


def assessment_item(question: Question) -> ET.Element:
    item = root(
        *("assessmentItem", QTI, QTI_SCHEMA),
        identifier=question.name,
        title=question.title,
        adaptive="false",
        timeDependent="false",
    )
    declare_response(item, question)
    declare(item, "outcomeDeclaration", "SCORE", "single", "float", "0")
    declare(item, "outcomeDeclaration", "MAXSCORE", "single", "float", "1")
    declare(item, "outcomeDeclaration", "FEEDBACK", "multiple", "identifier")
    declare(item, "outcomeDeclaration", "REASON", "single", "identifier", "reason")
    body = ET.SubElement(item, "itemBody")
    body.extend(blocks(html(question.text)))
    processing = ET.Element("responseProcessing")
    if question.choices:
        add_choices(body, question)
        mark_choices(processing, question)
        feedback = [(id_of(i), choice.why) for i, choice in enumerate(question.choices)]
    else:
        ET.SubElement(
            ET.SubElement(body, "p"), "textEntryInteraction", responseIdentifier="RESPONSE"
        )
        feedback = mark_number(processing, question)
    item.append(processing)
    for name, why in feedback:
        if why:
            add_feedback(item, "FEEDBACK", name, f"<p>{inline(why)}</p>")
    add_feedback(item, "REASON", "reason", html(question.reason))
    return item


def id_of(index: int) -> str:
    return f"choice-{index + 1}"


def blocks(xhtml: str) -> list[ET.Element]:
    """Elements of XHTML, which QTI takes into its own namespace."""
    return list(ET.fromstring(f"<div>{xhtml}</div>"))


def declare(
    item: ET.Element, tag: str, name: str, cardinality: str, base: str, value: str = ""
) -> ET.Element:
    made = ET.SubElement(item, tag, identifier=name, cardinality=cardinality, baseType=base)
    if value:
        ET.SubElement(ET.SubElement(made, "defaultValue"), "value").text = value
    return made


def declare_response(item: ET.Element, question: Question) -> None:
    cardinality = "multiple" if question.several else "single"
    base = "identifier" if question.choices else "float"
    made = declare(item, "responseDeclaration", "RESPONSE", cardinality, base)
    correct = ET.SubElement(made, "correctResponse")
    if not question.choices:
        ET.SubElement(correct, "value").text = f"{question.answer:.10g}"
    for index, choice in enumerate(question.choices):
        if choice.right:
            ET.SubElement(correct, "value").text = id_of(index)
    if question.several:
        # The right ones share the mark, the wrong ones take as much away, and 0 is the least.
        mapping = ET.SubElement(made, "mapping", lowerBound="0", upperBound="1", defaultValue="0")
        for index, choice in enumerate(question.choices):
            alike = sum(other.right == choice.right for other in question.choices)
            value = f"{(1 if choice.right else -1) / alike:.7g}"
            ET.SubElement(mapping, "mapEntry", mapKey=id_of(index), mappedValue=value)


def add_choices(body: ET.Element, question: Question) -> None:
    most = "0" if question.several else "1"  # 0: as many as you like
    shown = ET.SubElement(body, "choiceInteraction", responseIdentifier="RESPONSE")
    shown.attrib |= {"shuffle": "true", "maxChoices": most}
    for index, choice in enumerate(question.choices):
        markup = f'<simpleChoice identifier="{id_of(index)}">{inline(choice.text)}</simpleChoice>'
        shown.append(ET.fromstring(markup))


def mark_choices(processing: ET.Element, question: Question) -> None:
    if question.several:
        score = ET.SubElement(processing, "setOutcomeValue", identifier="SCORE")
        ET.SubElement(score, "mapResponse", identifier="RESPONSE")
        chosen = ET.SubElement(processing, "setOutcomeValue", identifier="FEEDBACK")
        ET.SubElement(chosen, "variable", identifier="RESPONSE")
        return
    match = ET.Element("match")
    ET.SubElement(match, "variable", identifier="RESPONSE")
    ET.SubElement(match, "correct", identifier="RESPONSE")
    add_rule(processing, match, "SCORE", "float", "1")
    chosen = ET.SubElement(processing, "setOutcomeValue", identifier="FEEDBACK")
    ET.SubElement(ET.SubElement(chosen, "multiple"), "variable", identifier="RESPONSE")


def mark_number(processing: ET.Element, question: Question) -> list[tuple[str, str]]:
    """Rules for the answer and for each slip, and the feedback that the slips get."""
    add_rule(processing, near(question.answer, question.tolerance), "SCORE", "float", "1")
    for index, slip in enumerate(question.slips):
        test = near(slip.number, question.tolerance)
        add_rule(processing, test, "FEEDBACK", "identifier", f"slip-{index + 1}")
    return [(f"slip-{index + 1}", slip.why) for index, slip in enumerate(question.slips)]


def near(number: float, tolerance: float) -> ET.Element:
    width = f"{tolerance:.10g}"
    test = ET.Element("equal", toleranceMode="absolute", tolerance=f"{width} {width}")
    ET.SubElement(test, "variable", identifier="RESPONSE")
    ET.SubElement(test, "baseValue", baseType="float").text = f"{number:.10g}"
    return test


def add_rule(processing: ET.Element, test: ET.Element, outcome: str, base: str, value: str) -> None:
    rule = ET.SubElement(ET.SubElement(processing, "responseCondition"), "responseIf")
    rule.append(test)
    target = ET.SubElement(rule, "setOutcomeValue", identifier=outcome)
    if base == "identifier":
        target = ET.SubElement(target, "multiple")
    ET.SubElement(target, "baseValue", baseType=base).text = value


def add_feedback(item: ET.Element, outcome: str, name: str, xhtml: str) -> None:
    shown = ET.SubElement(item, "modalFeedback", outcomeIdentifier=outcome, identifier=name)
    shown.set("showHide", "show")
    shown.extend(blocks(xhtml))
