"""The book's small Sphinx extensions by themselves: their list, equations, stylesheet, fonts."""

import re
import string
import unicodedata
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock
from xml.etree import ElementTree

import pytest
import tinycss2
import yaml
from docutils import nodes
from fontTools.ttLib import TTFont
from pybtex.database import parse_string

from attention.explore.modules import bundle
from book._ext.accessible_html import correct_markup
from book._ext.citation import bibtex
from book._ext.lean_page.styles import keep_used
from book._ext.markdown_pages.translator import PageTranslator
from book._ext.mathml.convert import Untypesettable, to_mathml
from book._ext.mathml.font import used_characters, write_font
from book._ext.search_results import Section, add_sections
from book._ext.static_widgets import slim

ROOT = Path(__file__).resolve().parents[2]
EXTENSIONS = ROOT / "book" / "_ext"
OURS = "book._ext."


def listed():
    """The extensions of _config.yml, ours by their own names."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["sphinx"]["config"]
    return [name.removeprefix(OURS) for name in config["extensions"]]


def readme_rows():
    """The cells of the README's tables, row by row."""
    text = (EXTENSIONS / "README.md").read_text("utf-8")
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows]


def test_the_readme_names_every_extension_and_no_other():
    named = [re.findall("`(.*?)`", row[2 if len(row) == 4 else 0]) for row in readme_rows()]
    assert len(set(listed())) == len(listed())
    assert {name for names in named for name in names} == set(listed())


def test_the_readme_says_on_which_event_each_acts_and_when():
    named = {
        (row[2].strip("`"), row[0].strip("`"), int(row[1] or 500))
        for row in readme_rows()
        if len(row) == 4 and row[0].startswith("`")
    }
    acts = set()

    def connect(event, callback, priority=500):
        name = callback.__module__.removeprefix(OURS).partition(".")[0]
        if name in listed():  # `own_files` is none, and connects for others
            acts.add((name, event, priority))

    for path in EXTENSIONS.iterdir():
        if path.stem in listed():
            import_module(OURS + path.stem).setup(MagicMock(connect=connect))
    assert acts == named


def shown(latex):
    """The words of an equation, with a space where the page shows one."""
    markup = re.sub(r"<mspace[^>]*>", " ", to_mathml(latex, display=False))
    return re.sub(r"<[^>]*>", "", markup)


@pytest.mark.parametrize(
    ("latex", "words"),
    [
        (r"\log a", "log a"),
        (r"a \log b", "a log b"),
        (r"\log(a)", "log(a)"),
        (r"\log_2 a", "log2 a"),
        (r"\operatorname{softmax}(S)", "softmax(S)"),
        (r"\operatorname*{argmax}_i a_i", "argmaxi ai"),
        (r"d_{\mathrm{key}}", "dkey"),
        (r"\boldsymbol{\mu} \mathbf{x} \mathcal{N} \mathbb{R}", "𝝁𝐱𝒩ℝ"),
    ],
)
def test_equations_say(latex, words):
    assert shown(latex) == words


@pytest.mark.parametrize(
    ("command", "alphabet"),
    [
        ("mathbf", "BOLD"),
        ("mathit", "ITALIC"),
        ("boldsymbol", "BOLD ITALIC"),
        ("mathsf", "SANS-SERIF"),
        ("mathtt", "MONOSPACE"),
    ],
)
def test_each_letter_of_an_alphabet_is_that_letter(command, alphabet):
    letters = string.ascii_letters + "αβω" * (command == "boldsymbol")
    drawn = shown(f"\\{command}{{{letters}}}")
    assert unicodedata.normalize("NFKC", drawn) == letters
    names = {unicodedata.name(letter).split(" CAPITAL ")[0].split(" SMALL ")[0] for letter in drawn}
    assert names - {"PLANCK CONSTANT"} == {f"MATHEMATICAL {alphabet}"}  # that is the italic h


@pytest.mark.parametrize(
    ("latex", "is_sign"),
    [
        *(("a - b", False), ("(a) - b", False), ("[a] - b", False), (r"\{a\} - b", False)),
        *(("|a| - b", False), (r"\|a\| - b", False), ("n! - 1", False)),
        *(("(-b)", True), ("a = -b", True), (r"a \cdot -b", True)),
    ],
)
def test_a_minus_behind_a_bracket_is_no_sign(latex, is_sign):
    [minus] = re.findall("<mo([^>]*)>−", to_mathml(latex, display=False))
    assert ('form="prefix"' in minus) == is_sign


def test_a_word_is_one_upright_identifier():
    for latex in (r"\mathrm{key}", r"\operatorname{key}"):
        [identifier] = ElementTree.fromstring(to_mathml(latex, display=False)).iter("mi")
        assert (identifier.text, identifier.attrib) == ("key", {})


def test_aligned_equations_are_a_table():
    latex = r"\begin{aligned} a &= b + c \\ &= d \end{aligned}"
    root = ElementTree.fromstring(to_mathml(latex, display=True))
    assert root.get("display") == "block"
    cells = [[cell.get("class") for cell in row] for row in root.iter("mtr")]
    assert cells == [["right", "left"]] * 2


def test_an_equation_carries_its_tex():
    """As it was written, in one line: for an e-reader that cannot show MathML."""
    latex = r"""
\begin{gathered}
a &< b \\
\operatorname*{argmax} a
\end{gathered}"""
    root = ElementTree.fromstring(to_mathml(latex, display=True))
    tex = r"\begin{gathered} a &< b \\ \operatorname*{argmax} a \end{gathered}"
    assert root.get("alttext") == tex


def test_only_mathml_core_is_left():
    matrix = r"\begin{bmatrix} 1 & 2 \\ 3 & 4 \end{bmatrix}"
    latex = matrix + r"\mathrm{T} \mathsf{T} \begin{cases} a & b \end{cases}"
    for element in ElementTree.fromstring(to_mathml(latex, display=True)).iter():
        assert element.get("mathvariant") in (None, "normal")
        assert element.get("columnalign") is None


@pytest.mark.parametrize("latex", [r"\sofmax x", r"a & b", r"\frac{1}", r"x^a^b", r"\left( x"])
def test_what_cannot_be_typeset_is_refused(latex):
    with pytest.raises(Untypesettable):
        to_mathml(latex, display=False)


def test_the_font_holds_what_the_equations_show_and_its_licence(tmp_path):
    equation = to_mathml(r"\sqrt{d_k} \sum_i \alpha_i \in \mathbb{R}", display=True)
    (tmp_path / "page.html").write_text(f"<p>not ζ</p>{equation}", encoding="utf-8")
    write_font(SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(format="html")), None)
    font = TTFont(tmp_path / "_static" / "mathml" / "math.woff2")
    characters = set(map(chr, font.getBestCmap()))
    assert {"√", "∑", "∈", "ℝ", "𝑑", "𝛼"} <= characters
    assert used_characters(tmp_path) >= characters - {"∋"}  # the mirror image of ∈ comes with it
    assert "ζ" not in characters
    assert "MATH" in font
    assert "SIL Open Font License" in font["name"].getDebugName(13)
    variants = font["MATH"].table.MathVariants
    radical = variants.VertGlyphCoverage.glyphs.index(font.getBestCmap()[ord("√")])
    signs = variants.VertGlyphConstruction[radical].MathGlyphVariantRecord
    widths = {font["hmtx"][sign.VariantGlyph][0] for sign in signs}
    assert len(signs) > 2 and len(widths) == 1, "a wider radical leaves a gap behind every root"


@pytest.mark.parametrize(
    ("css", "stays"),
    [
        (".on{a:b}.off{a:b}", ".on{a:b}"),
        (".on,.off p{a:b}", ".on{a:b}"),
        ("#on.on:not(.off){a:b}", "#on.on:not(.off){a:b}"),
        ("p > .off, a[href]{a:b}", "a[href]{a:b}"),
        ("@media print{.off{a:b}}", ""),
        ("@media print{.on{a:b}}", "@media print{.on{a:b}}"),
    ],
)
def test_a_rule_stays_where_something_can_match_it(css, stays):
    assert keep_used(tinycss2.parse_stylesheet(css), {"on"}) == stays


def test_an_empty_header_cell_gets_a_name():
    context = {"body": '<tr><th class="head"><p></p></th><th class="head"><p>here</p></th></tr>'}
    correct_markup(None, "page", "page.html", context, None)
    corner, here = re.findall(r"<th.*?</th>", context["body"])
    assert corner == '<th class="head"><span class="visually-hidden">row</span></th>'
    assert here == '<th class="head"><p>here</p></th>'


def test_a_folded_cell_is_named_as_it_reads():
    context = {"body": '<summary aria-label="Toggle hidden content">Show the code</summary>'}
    correct_markup(None, "page", "page.html", context, None)
    assert context["body"] == "<summary>Show the code</summary>"


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        ("DropdownModel", {"_options_labels": ["none", "causal"], "index": 0}),
        ("SelectionSliderModel", {"_options_labels": ["0", "1"], "index": 0, "readout": False}),
        ("CheckboxModel", {"description": "causal", "value": False}),
    ],
)
def test_a_first_choice_and_an_unticked_box_reach_the_page(kind, state):
    assert slim({"model_name": kind, "state": state}, [])["state"] == state


def test_what_two_views_have_in_common_a_page_has_once():
    views = [bundle("projection"), bundle("who_and_whom")]
    sources = []
    models = [{"model_name": "AnyModel", "state": {"_esm": view}} for view in views]
    places = [slim(model, sources)["state"]["_esm"] for model in models]
    assert ["\n".join(sources[place] for place in each) for each in places] == views
    modules = re.findall(r"^const (\w+_js) = \(", "\n".join(sources), re.MULTILINE)
    assert len(modules) > 5 and len(modules) == len(set(modules))


@pytest.mark.parametrize(("of_class", "level"), [("", 3), ("Rotary", 4)])
def test_on_a_markdown_page_a_method_stands_below_its_class(of_class, level):
    signature = nodes.inline("", "forward(q, k)", **{"class": of_class})
    page = MagicMock(status=SimpleNamespace(section_level=2))
    PageTranslator.visit_desc_signature(page, signature)
    page.paragraph.assert_called_once_with(f"{'#' * level} `forward(q, k)`")


def test_a_word_leads_to_the_section_it_calls_else_to_the_one_that_says_it_most():
    page = [
        Section("heads", Counter(["head"]), Counter(["head", "mask"])),
        Section("causal-mask", Counter(["mask"]), Counter(["mask", "row"])),
        Section("cost", Counter(["cost"]), Counter(["mask"] * 5 + ["row"] * 2 + ["cost"])),
    ]
    titles = {"Heads": [[0, None]], "Causal mask": [[0, "causal-mask"]], "Cost": [[0, "cost"]]}
    index = {"alltitles": titles, "terms": {"head": 0, "mask": [0], "row": 0}, "titleterms": {}}
    add_sections(index, [page])
    assert index["sections"] == "012"  # the page itself, the one of that name, the one of two rows


def cited(citation, address=""):
    [entry] = parse_string(bibtex(citation, address), "bibtex").entries.values()
    return entry


def test_the_book_is_cited_as_its_citation_file_says(html_folder):
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    entry = cited(citation)
    assert entry.type == "book"
    assert entry.fields["title"] == citation["preferred-citation"]["title"]
    assert citation["version"] in entry.fields["note"] and "url" not in entry.fields
    assert [str(author) for author in entry.persons["author"]] == [
        "{" + citation["authors"][0]["name"] + "}"
    ]
    page = (html_folder / "bibliography.md").read_text("utf-8")
    assert bibtex(citation, "").removesuffix("\n}") in page  # an address may follow


def test_people_are_cited_by_both_their_names_and_the_book_by_its_address():
    ada = {"given-names": "Ada", "family-names": "Núñez de la Torre"}
    book = {
        "type": "book",
        "title": "A Title, Here",
        "year": 2026,
        "authors": [ada, {"name": "A, B"}],
    }
    entry = cited(
        {"version": "1.2.3", "license": ["MIT"], "preferred-citation": book},
        "https://someone.github.io/fork/",
    )
    assert entry.key == "a-title-here"
    assert entry.fields["url"] == "https://someone.github.io/fork/"
    assert [str(author) for author in entry.persons["author"]] == [
        "Núñez de la Torre, Ada",
        "{A, B}",
    ]
