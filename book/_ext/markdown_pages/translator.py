"""A page's tree as Markdown: what the book has and `sphinx_markdown_builder` does not know, or
writes in a way that only its own pages need.
"""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urljoin

from docutils import nodes
from sphinx_markdown_builder.contexts import (
    IndentContext,
    SubContextParams,
    TableContext,
    TitleContext,
    WrappedContext,
)
from sphinx_markdown_builder.escape import escape_markdown_chars
from sphinx_markdown_builder.translator import MarkdownTranslator

PARAGRAPH = SubContextParams(2, 2)
# Markdown has these of its own; a fold stays HTML, and of other elements the words are kept.
OWN_MARKS = (("</?strong>", "**"), ("</?code>", "`"), ("</p>", "\n\n"))
OTHER_TAGS = re.compile(r"<(?!/?(?:details|summary|code)\b)[^>]*>")
SUMMARY = re.compile(r"<summary>.*?</summary>", re.DOTALL)
MARKED_CODE = re.compile(r"`([^`]*)`")
TEXT = ("myst-ansi", "none")  # the languages of what a cell prints


class Table(TableContext):
    """A table whose cells stay as they are: the library's own writes 1.00 as 1, and a bar in a cell
    ends it.
    """

    def make(self) -> str:
        head, *rows = [
            [cell.replace("|", "\\|") for cell in self.make_row(row)]
            for row in [*self.headers, *self.body]
        ]
        lines = [f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows]]
        return "\n".join([self.internal_context.make(), "", *lines])  # its title, if it has one


class PageTranslator(MarkdownTranslator):
    """Writes one page; `address` is its own, which links are relative to."""

    def __init__(self, document: nodes.document, builder, address: str) -> None:
        super().__init__(document, builder)
        self.address = address

    def paragraph(self, text: str) -> None:
        self.add(text, prefix_eol=2, suffix_eol=2)
        raise nodes.SkipNode

    def visit_Text(self, node: nodes.Text) -> None:
        text = node.astext()
        if self.status.escape_text:
            text = re.sub(r"([<$])", r"\\\1", escape_markdown_chars(text))
            text = re.sub(r"\n([-+#])(?= )", r"\n\\\1", text)  # a sign that begins a line, no list
        self.add(text)

    def visit_comment(self, node: nodes.comment) -> None:
        raise nodes.SkipNode

    # Links and pictures

    def visit_reference(self, node: nodes.reference) -> None:
        place = node.get("refuri") or f"#{node['refid']}"
        self._push_context(WrappedContext("[", f"]({urljoin(self.address, place)})"))

    depart_reference = MarkdownTranslator._pop_context

    def visit_target(self, node: nodes.target) -> None:
        raise nodes.SkipNode  # links lead to the page, which has the anchor

    def visit_image(self, node: nodes.image) -> None:
        words = re.sub(r"([\[\]])", r"\\\1", " ".join(node["alt"].split()))
        self.paragraph(f"![{words}]({urljoin(self.address, node['uri'])})")

    def visit_drawing(self, node: nodes.Element) -> None:
        told = f"*Drawing: {escape_markdown_chars(' '.join(node['alt'].split()))}*"
        leads = ", ".join(
            f"[{words}]({urljoin(self.address, place)})" for words, place in node["leads"].items()
        )
        self.paragraph(f"{told} Its pieces lead to {leads}." if leads else told)

    def visit_static_widget(self, node: nodes.Element) -> None:
        page = f"[the page]({self.address})"
        self.add(f"On {page} this is an explorer. Its first picture:", prefix_eol=2, suffix_eol=2)

    def visit_caption(self, node: nodes.caption) -> None:
        self.visit_paragraph(node)

    depart_caption = MarkdownTranslator._pop_context

    # Equations

    def visit_math(self, node: nodes.math) -> None:
        self.add(f"${' '.join(node.astext().split())}$")
        raise nodes.SkipNode

    def visit_math_block(self, node: nodes.math_block) -> None:
        self.paragraph(f"$$\n{node.astext().strip()}\n$$")

    # Code and what it prints, tables

    def visit_literal_block(self, node: nodes.literal_block) -> None:
        language = node.get("language", "")
        self.paragraph(fenced(node.astext(), "text" if language in TEXT else language))

    def visit_doctest_block(self, node: nodes.doctest_block) -> None:
        self.paragraph(fenced(node.astext(), "pycon"))

    def visit_HideCodeCellNode(self, node: nodes.Element) -> None:
        pass  # what is folded on the page stands open

    def visit_raw(self, node: nodes.raw) -> None:
        text = node.astext()
        for tag, mark in OWN_MARKS:
            text = re.sub(tag, mark, text)
        # Markdown's own marks would stand in a summary as they are.
        text = SUMMARY.sub(lambda found: MARKED_CODE.sub(r"<code>\1</code>", found[0]), text)
        self.paragraph(unescape(OTHER_TAGS.sub("", text)).strip())

    def visit_table(self, node: nodes.table) -> None:
        self._push_context(Table(params=PARAGRAPH))

    depart_table = MarkdownTranslator._pop_context

    def visit_title(self, node: nodes.title) -> None:
        of_table = isinstance(node.parent, nodes.table)
        title = WrappedContext("**") if of_table else TitleContext(self.status.section_level)
        self._push_context(title)

    depart_title = MarkdownTranslator._pop_context

    # The glossary, the bibliography and the reference

    def visit_term(self, node: nodes.term) -> None:
        self._push_context(WrappedContext("**", params=SubContextParams(2, 1)))

    depart_term = MarkdownTranslator._pop_context

    def visit_definition(self, node: nodes.definition) -> None:
        self._push_context(IndentContext(": ", only_first=True, params=SubContextParams(1, 2)))

    depart_definition = MarkdownTranslator._pop_context

    def visit_citation(self, node: nodes.citation) -> None:
        self._push_context(IndentContext("- ", only_first=True))

    depart_citation = MarkdownTranslator._pop_context

    def visit_label(self, node: nodes.label) -> None:
        raise nodes.SkipNode  # citations name authors and year

    def visit_desc_signature(self, node: nodes.Element) -> None:
        level = self.status.section_level + (2 if node.get("class") else 1)
        self.paragraph(f"{'#' * level} `{node.astext()}`")

    def visit_literal_strong(self, node: nodes.Element) -> None:
        # Between two errors Sphinx prints a comma as strongly as their names.
        mark = "" if node.astext() == ", " else "**"
        self._push_context(WrappedContext(mark))

    depart_literal_strong = MarkdownTranslator._pop_context

    def visit_rubric(self, node: nodes.rubric) -> None:
        self.paragraph(f"**{node.astext()}**")


def fenced(text: str, language: str) -> str:
    """Code between fences that are longer than any in it."""
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
