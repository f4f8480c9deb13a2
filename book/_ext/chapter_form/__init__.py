"""The form of a chapter's page: the question and the live picture first, the rest in its place.

A notebook begins with what it is about, what its reader will be able to do and what it builds on.
On the page the minutes alone stand there, and the rest below the first picture, so that a reader
meets the question first. A cell of text with the tag `caption` is the caption of the picture above
it; of one with the tag `finding` the first paragraph is what the chapter has found, set as such, at
`#finding`. The code of a chapter is folded until its reader wants to build (`code_mode.js`);
without JavaScript, on paper and in the exercises it is open. What is far below the window is laid
out late, and a link arrives all the same (`heights.js`).
"""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from book._ext.notebook_outputs import cell_of, read_notebook
from book._ext.own_files import add_own_files
from book._ext.static_widgets import static_widget

AIMS = "After this chapter you can"
MINUTES = "About "
LEAD = "says-what-about"
SUMMARY = "the-chapter-in-five-lines"


def give_form(app: Sphinx, doctree: nodes.document) -> None:
    notebook = read_notebook(app)
    if notebook is None or SUMMARY not in doctree.ids:
        return
    tags = [cell.metadata.get("tags", []) for cell in notebook.cells]
    blocks = [
        (node, tags[cell_of(node)])
        for node in doctree.findall(nodes.paragraph)
        if isinstance(node.parent, nodes.section) and cell_of(node) >= 0
    ]
    captions = [paragraph for paragraph, of_cell in blocks if "caption" in of_cell]
    for nth, caption in enumerate(captions, 1):
        put_below_picture(caption, f"figure-{nth}", app.env.docname)
    put_aims_below(doctree)
    finding = next((node for node, of_cell in blocks if "finding" in of_cell), None)
    if finding is not None:
        box = nodes.container("", classes=["finding"], ids=["finding"])
        finding.replace_self(box)
        box += finding


def put_aims_below(doctree: nodes.document) -> None:
    """Leave the minutes at the top, and move what else stands above the question below the first
    picture that a reader can move, which is as wide as the page.
    """
    chapter = next(doctree.findall(nodes.section))
    question = next(node for node in chapter.children if isinstance(node, nodes.section))
    aims = chapter[1 : chapter.index(question)]
    if not any(node.astext().startswith(AIMS) for node in aims):
        raise ExtensionError(f"{chapter[0].astext()}: no paragraph begins with {AIMS!r}")
    minutes = next(node for node in aims if node.astext().startswith(MINUTES))
    first, rest = minutes[0].astext().split(". ", 1)
    minutes[0] = nodes.Text(rest)
    glance = nodes.paragraph("", f"{first}. In a hurry: ", classes=["at-a-glance"])
    glance += [
        nodes.reference("", "the chapter in five lines", internal=True, refid=SUMMARY),
        nodes.Text("."),
    ]
    aims[0]["classes"].append(LEAD)
    box = nodes.container("", classes=["aims"])
    for node in aims:
        chapter.remove(node)
    box += aims
    chapter.insert(1, glance)
    own = [node for node in question.children if not isinstance(node, nodes.section)]
    live = next(node for node in own if any(node.findall(static_widget)))
    live["classes"].append("full-width")  # the theme folds its contents away from beside it
    question.insert(question.index(live) + 1, box)


def lead_of(doctree: nodes.document) -> nodes.paragraph | None:
    """The paragraph that says what a page is about: of a chapter its lead, else its first one."""
    paragraphs = list(doctree.findall(nodes.paragraph))
    leads = [paragraph for paragraph in paragraphs if LEAD in paragraph["classes"]]
    return next(iter([*leads, *paragraphs]), None)


def put_below_picture(paragraph: nodes.paragraph, name: str, page: str) -> None:
    section = paragraph.parent
    above = section[section.index(paragraph) - 1]
    if "cell_index" not in above and not isinstance(above, nodes.figure):
        raise ExtensionError(f"{page}: no picture stands above the caption {paragraph.astext()!r}")
    section.remove(paragraph)
    figure = nodes.figure("", classes=["captioned"], ids=[name])
    above.replace_self(figure)
    caption = nodes.caption("", "", *paragraph.children)
    figure += [above, caption]


def add_script(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    context["is_chapter"] = doctree is not None and SUMMARY in doctree.ids
    if context["is_chapter"]:
        app.add_js_file("chapter_form/code_mode.js", loading_method="defer")
    if context["is_chapter"] or pagename == app.config.root_doc:
        app.add_js_file("chapter_form/heights.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, object]:
    add_own_files(app, __file__, "chapter_form/chapter_form.css")
    app.connect("doctree-read", give_form)
    app.connect("html-page-context", add_script)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
