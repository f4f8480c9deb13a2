"""LaTeX to MathML: latex2mathml, and what it does not do by itself.

Browsers implement MathML Core. latex2mathml writes some of the older MathML 3, and knows no
`aligned`. The passes below close the gap for what the book uses; a command that nobody knows is an
error instead of red text on the page.
"""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree

from latex2mathml.converter import convert

# Environments that differ only in how TeX numbers or nests them.
ALIGNED = re.compile(
    r"\\(begin|end)\{(?:aligned|align|split|gathered|gather\*?|multline\*?|equation\*?)\}"
)
STARRED_OPERATOR = re.compile(r"\\operatorname\*")
# The first letters of the mathematical alphabets (upper case, lower case): MathML Core has no other
# mathvariant than "normal".
ALPHABETS = {
    "bold": (0x1D400, 0x1D41A),
    "italic": (0x1D434, 0x1D44E),
    "bold-italic": (0x1D468, 0x1D482),
    "sans-serif": (0x1D5A0, 0x1D5BA),
    "monospace": (0x1D670, 0x1D68A),
}
BOLD_ITALIC_GREEK = 0x1D736 - ord("α")


class UnknownCommand(ValueError):
    pass


def to_mathml(latex: str, display: bool) -> str:
    latex = STARRED_OPERATOR.sub(r"\\operatorname", ALIGNED.sub(r"\\\1{align*}", latex))
    markup = convert(latex.strip(), display="block" if display else "inline")
    try:
        root = ElementTree.fromstring(markup)
    except ElementTree.ParseError as error:
        raise UnknownCommand(f"cannot be read ({error}): {latex}") from None
    strip_namespace(root)
    refuse_unknown(root, latex)
    join_upright_letters(root)
    for element in root.iter():
        name_functions(element)
        use_alphabet(element)
        style_by_css(element)
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)


def strip_namespace(root: ElementTree.Element) -> None:
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]


def refuse_unknown(root: ElementTree.Element, latex: str) -> None:
    for element in root.iter():
        if element.text and ("\\" in element.text or element.text == "&"):
            raise UnknownCommand(f"{element.text} is not known, in {latex}")


def join_upright_letters(root: ElementTree.Element) -> None:
    r"""\mathrm{key} comes as three upright letters: one identifier of three letters is upright by
    itself.
    """
    for parent in root.iter():
        children = list(parent)
        for first, second in itertools.pairwise(children):
            if all(
                each.tag == "mi" and each.get("mathvariant") == "normal" for each in (first, second)
            ):
                second.text = first.text + second.text
                parent.remove(first)


def name_functions(element: ElementTree.Element) -> None:
    r"""\operatorname, \infty and \top come as operators, with an operator's space on both sides:
    they are names.
    """
    if element.tag == "mo" and element.text and (element.text.isalpha() or element.text in "∞⊤⊥∅"):
        element.tag = "mi"


def use_alphabet(element: ElementTree.Element) -> None:
    variant = element.get("mathvariant")
    if variant == "normal" and element.text and len(element.text) > 1:
        del element.attrib["mathvariant"]
    if variant in ALPHABETS:
        upper, lower = ALPHABETS[variant]
        element.text = "".join(
            in_alphabet(letter, variant, upper, lower) for letter in element.text
        )
        del element.attrib["mathvariant"]


def in_alphabet(letter: str, variant: str, upper: int, lower: int) -> str:
    if "A" <= letter <= "Z":
        return chr(upper + ord(letter) - ord("A"))
    if "a" <= letter <= "z":
        return chr(lower + ord(letter) - ord("a"))
    if variant == "bold-italic" and "α" <= letter <= "ω":
        return chr(BOLD_ITALIC_GREEK + ord(letter))
    return letter


def style_by_css(element: ElementTree.Element) -> None:
    """MathML Core leaves the look of tables to CSS: `math.css` aligns cells by these classes."""
    if element.tag == "mtable":
        if element.get("columnspacing", "").startswith(
            "0em"
        ):  # align: nothing between a term and its "="
            element.set("class", "aligned")
        for attribute in ("rowspacing", "columnspacing", "columnalign", "rowlines", "columnlines"):
            element.attrib.pop(attribute, None)
    if element.tag == "mtd" and element.get("columnalign"):
        element.set("class", element.attrib.pop("columnalign"))
