"""Markdown of the book becomes XHTML that an LMS shows without the book."""

from xml.etree import ElementTree as ET

import pytest

from assignments.questions.text import formula, html, inline


@pytest.mark.parametrize(
    ("tex", "shown"),
    [
        (r"e^5 \approx 148", "e<sup>5</sup> ≈ 148"),
        (r"10000^{-62/64} = 0.000133", "10000<sup>−62/64</sup> = 0.000133"),
        (r"2\pi / 0.000133 \approx 47{,}000", "2π / 0.000133 ≈ 47,000"),
        (r"\sqrt{d_\text{model}}", "√d<sub>model</sub>"),
        (r"\sqrt n", "√n"),
        ("W^V_r", "W<sup>V</sup><sub>r</sub>"),
        (r"\beta = \tfrac{1}{2}", "β = 1/2"),
        (r"2 \cdot 30^2 \cdot 64", "2 · 30<sup>2</sup> · 64"),
        (r"2\,d_\text{model}", "2 d<sub>model</sub>"),
    ],
)
def test_formulas_are_in_unicode(tex, shown):
    assert formula(tex) == shown


def test_a_command_that_nobody_translated_is_refused():
    with pytest.raises(ValueError, match="write it in Unicode, or translate"):
        formula(r"\frac{1}{2}")


def test_links_roles_and_tags_leave_their_words():
    text = (
        "{term}`heads <head>`, {cite:t}`vaswani2017attention`, [chapter 5](05-masking.ipynb), <x>"
    )
    assert inline(text) == "heads, Vaswani et al. (2017), chapter 5, &lt;x&gt;"


def test_what_the_book_says_is_well_formed_and_has_nothing_of_the_book_left(questions):
    for question in questions:
        parts = [question.text, question.reason]
        parts += [part for choice in question.choices for part in (choice.text, choice.why)]
        for part in parts:
            made = ET.fromstring(f"<div>{html(part)}</div>")
            for code in made.iter("code"):
                code.text = ""
            shown = "".join(made.itertext())
            for sign in ("$", "`", "**", "{", "](", "\\", "\ufffd"):
                assert sign not in shown, (question.name, sign, shown)
