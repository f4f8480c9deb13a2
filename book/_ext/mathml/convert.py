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

from book._ext.symbols import css_class

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
FUNCTIONS = (
    "arg",
    "cos",
    "det",
    "exp",
    "inf",
    "lim",
    "ln",
    "log",
    "max",
    "min",
    "sin",
    "sup",
    "tan",
)
THIN_SPACE = "0.1667em"
# Written as operators by latex2mathml, with an operator's space on both sides.
NAMES = "∞⊤⊥∅…"


# Elements whose children are their parts, not a row, and how many parts they have.
PARTS = {"mfrac": 2, "mroot": 2, "msub": 2, "msup": 2, "msubsup": 3}
PARTS |= {"munder": 2, "mover": 2, "munderover": 3}


class Untypesettable(ValueError):
    """LaTeX that does not become an equation."""


def to_mathml(latex: str, display: bool) -> str:
    known = STARRED_OPERATOR.sub(r"\\operatorname", ALIGNED.sub(r"\\\1{align*}", latex))
    try:
        markup = convert(known.strip(), display="block" if display else "inline")
        root = ElementTree.fromstring(markup)
    except Exception as error:  # the errors of latex2mathml share no class of their own
        raise Untypesettable(f"{type(error).__name__} {error} in {latex}") from error
    strip_namespace(root)
    refuse_unknown(root, latex)
    root.set("alttext", " ".join(latex.split()))  # for a reader that cannot show MathML
    join_upright_letters(root)
    functions = name_functions(root)
    for element in root.iter():
        use_alphabet(element)
        style_by_css(element)
        set_apart(element, functions)
        sign(element)
        mark_symbols(element)
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)


def strip_namespace(root: ElementTree.Element) -> None:
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]


def refuse_unknown(root: ElementTree.Element, latex: str) -> None:
    for element in root.iter():
        if element.text and ("\\" in element.text or element.text == "&"):
            raise Untypesettable(f"{element.text} is not known, in {latex}")
        if len(element) != PARTS.get(element.tag, len(element)):
            raise Untypesettable(f"<{element.tag}> lacks a part, in {latex}")


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


def name_functions(root: ElementTree.Element) -> set[ElementTree.Element]:
    r"""Names are identifiers, also those that come as operators. Returns the names of functions."""
    functions = set()
    for element in root.iter():
        word = element.text or ""
        if element.tag == "mo" and word and (word.isalpha() or word in NAMES):
            element.tag = "mi"
            if word.isalpha():  # from \operatorname
                functions.add(element)
        elif element.tag == "mi" and word in FUNCTIONS:
            functions.add(element)
    return functions


def set_apart(element: ElementTree.Element, functions: set[ElementTree.Element]) -> None:
    """A thin space between a function's name and what stands beside it, unless that is an operator
    or a bracket: log a, but log(a).
    """
    children = list(element)
    if element.tag in PARTS:
        return
    for first, second in itertools.pairwise(children):
        named = is_function(first, functions) or is_function(second, functions)
        if named and not {"mo", "mspace"} & {first.tag, second.tag} and is_shown(first):
            space = ElementTree.Element("mspace", width=THIN_SPACE)
            element.insert(list(element).index(second), space)


def is_function(element: ElementTree.Element, functions: set[ElementTree.Element]) -> bool:
    """The name itself, or with its subscript: log₂."""
    base = element[0] if element.tag.startswith(("msu", "munder")) and len(element) else element
    return base in functions


def is_shown(element: ElementTree.Element) -> bool:
    return bool(element.text or len(element))


def sign(element: ElementTree.Element) -> None:
    """A minus after another operator is a sign: no space follows it."""
    for first, second in itertools.pairwise(element):
        if first.tag == second.tag == "mo" and second.text in "−+±" and first.text not in ")]}|‖!":
            second.set("form", "prefix")


def mark_symbols(element: ElementTree.Element) -> None:
    """Give Q, K, V … their classes; as an index, as in W^Q, they name another letter."""
    parts = list(element)[:1] if element.tag.startswith(("msu", "mo", "mu")) else list(element)
    for part in parts:
        if part.tag == "mi" and (marked := css_class(part.text or "")):
            part.set("class", marked)


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
    if variant == "italic" and letter == "h":
        return "ℎ"  # older than the alphabet, which leaves its place empty
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
        # Of the environment align: nothing stands between a term and its "=".
        if element.get("columnspacing", "").startswith("0em"):
            element.set("class", "aligned")
        for attribute in ("rowspacing", "columnspacing", "columnalign", "rowlines", "columnlines"):
            element.attrib.pop(attribute, None)
    if element.tag == "mtd" and element.get("columnalign"):
        element.set("class", element.attrib.pop("columnalign"))
