"""The static host: saved widgets, run by `book/_ext/static_widgets` in a built page.

The notebooks are made here, small, with real widgets and without a kernel; Jupyter Book builds them
with the book's own configuration. The pages are opened from files, as a reader without a server
opens them.
"""

import base64
import io
import os
import subprocess
import sys
from pathlib import Path

import anywidget
import ipywidgets
import matplotlib.figure
import nbformat
import pytest
import traitlets
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools.widget_state import WIDGET_STATE, WIDGET_VIEW

pytestmark = pytest.mark.builds

ROOT = Path(__file__).parents[2]
ALT = "A line that rises from the left to the right, four times as steep at the end."


class Probe(anywidget.AnyWidget):
    """Shows `number`, a bar of that length and its bytes; its button asks for ten more."""

    _esm = """
    export default () => ({
      initialize({ model }) {
        model.on("change:number", () => { document.body.dataset.seen = model.get("number"); });
      },
      render({ model, el }) {
        el.innerHTML = `<p role="status"></p><button>ten more</button>
          <svg viewBox="0 0 100 10"><rect height="10"/></svg>`;
        const bytes = model.get("data");
        el.dataset.bytes = `${bytes instanceof DataView} ${bytes.getUint8(0)} ${bytes.getUint8(1)}`;
        const draw = () => {
          el.querySelector("p").textContent = `number ${model.get("number")}`;
          el.querySelector("rect").setAttribute("width", model.get("number"));
        };
        model.on("change:number", draw);
        el.querySelector("button").addEventListener("click", () => {
          model.set("number", model.get("number") + 10);
          model.save_changes();
        });
        draw();
      },
    });
    """
    # As tall as an explorer.
    _css = ".probe-style { color: inherit; } .sw-anywidget { min-height: 60rem; }"
    number = traitlets.Int(3).tag(sync=True)
    data = traitlets.Bytes(b"\x07\x09").tag(sync=True)


class Broken(Probe):
    _esm = "export default { render() { throw new Error('no ink left'); } };"


def png():
    figure = matplotlib.figure.Figure(figsize=(3, 2))
    figure.subplots().plot([0, 1, 4])
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return base64.b64encode(file.getvalue()).decode()


def widget_cell(widget, alt=ALT, picture=True):
    data = {WIDGET_VIEW: {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}}
    if picture:
        data |= {"image/png": png()}
    metadata = {"image/png": {"alt": alt}} if alt else {}
    return new_code_cell(
        "explorer()",
        outputs=[new_output("display_data", data={**data, "text/plain": ""}, metadata=metadata)],
    )


def number_slider(value, name, **more):
    """A slider whose places are the numbers 0 to 90."""
    return ipywidgets.SelectionSlider(options=range(91), value=value, description=name, **more)


def write_notebook(folder, name, cells, *, saved=True):
    notebook = new_notebook(cells=[new_markdown_cell(f"# {name}\n\nA page."), *cells])
    notebook.metadata.language_info = {"name": "python"}
    if saved:
        notebook.metadata.widgets = {WIDGET_STATE: ipywidgets.Widget.get_manager_state()}
    nbformat.write(notebook, folder / f"{name}.ipynb")


def build(folder, *, pages):
    """Build the notebooks of `folder` as the book is built; returns the finished process."""
    (folder / "references.bib").touch()
    (folder / "_toc.yml").write_text(
        "format: jb-book\nroot: index\n"
        + ("chapters:\n" if len(pages) > 1 else "")
        + "".join(f"  - file: {page}\n" for page in pages[1:])
    )
    program = Path(sys.executable).with_name("jupyter-book")
    files = ["--config", ROOT / "_config.yml", "--toc", folder / "_toc.yml"]
    where = ["--path-output", folder / "out"]
    strict = ["-W", "--keep-going", "-n"]
    command = [program, "build", folder, *files, *where, *strict]
    # These notebooks are of no repository, also where GitHub Actions tells of one.
    alone = {key: value for key, value in os.environ.items() if not key.startswith("GITHUB_")}
    return subprocess.run(command, env=alone, capture_output=True, text=True, check=False)


@pytest.fixture
def widgets():
    """Only the widgets of this test are saved with its notebook."""
    ipywidgets.Widget.close_all()
    yield
    ipywidgets.Widget.close_all()


# ------------------------------------------------------------------------------------- built pages


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    """A small book: `index` has two linked probes, far apart, `controls` one of each control."""
    folder = tmp_path_factory.mktemp("host")
    ipywidgets.Widget.close_all()

    probe, below = Probe(), Probe(number=50)
    choice = ipywidgets.SelectionSlider(
        options=["one", "two", "four"], value="two", description="n_heads"
    )
    slider, second_slider = number_slider(5, "number"), number_slider(50, "below")
    ipywidgets.jslink((slider, "index"), (probe, "number"))
    first = ipywidgets.VBox([ipywidgets.Box([choice, slider]), probe])
    ipywidgets.jslink((second_slider, "index"), (below, "number"))
    second = ipywidgets.VBox([second_slider, below])
    unused = Probe()
    unused.data = b"not on any page"
    prose = new_markdown_cell("\n\n".join(f"Paragraph {i}." for i in range(120)))
    last = widget_cell(second)
    last.metadata.tags = ["remove-input"]  # no button above it that the Tab key would stop at
    write_notebook(folder, "index", [widget_cell(first), prose, last])

    ipywidgets.Widget.close_all()
    kinds = [
        number_slider(50, "dropout"),
        ipywidgets.Dropdown(
            options=["none", "causal", "padding"], value="causal", description="mask"
        ),
        ipywidgets.Checkbox(value=True, description="scale"),
    ]
    twins = [
        number_slider(1, "dropout twin"),
        ipywidgets.Dropdown(options=["none", "causal", "padding"], description="mask twin"),
        ipywidgets.Checkbox(description="scale twin"),
    ]
    for kind, twin, trait in zip(kinds, twins, ["index", "index", "value"], strict=True):
        ipywidgets.jslink((kind, trait), (twin, trait))
    locked = number_slider(2, "locked", disabled=True)
    write_notebook(folder, "controls", [widget_cell(ipywidgets.Box([*kinds, *twins, locked]))])

    ipywidgets.Widget.close_all()
    write_notebook(folder, "broken", [widget_cell(Broken()), widget_cell(Probe())])
    ipywidgets.Widget.close_all()

    result = build(folder, pages=["index", "controls", "broken"])
    assert result.returncode == 0, result.stdout + result.stderr
    return folder / "out" / "_build" / "html"


@pytest.fixture
def open_page(browser, html):
    """Open a page from its file: it may ask nothing of another host and log no error."""
    context = browser.new_context(viewport={"width": 1000, "height": 800})
    requests, errors = [], []

    def open_it(name, *, quiet=True, lost=None, **options):
        nonlocal context
        if options:
            context.close()
            context = browser.new_context(viewport={"width": 1000, "height": 800}, **options)
        page = context.new_page()
        if lost:
            page.route(lost, lambda route: route.abort())
        page.on("request", lambda request: requests.append(request.url))
        if quiet:
            page.on(
                "console", lambda message: message.type == "error" and errors.append(message.text)
            )
            page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((html / f"{name}.html").as_uri())
        return page

    yield open_it
    context.close()
    assert not [url for url in requests if not url.startswith(("file:", "blob:", "data:"))]
    assert not errors


def mounted(page, nth=0):
    page.wait_for_function(
        "n => document.querySelectorAll('.static-widget')[n].dataset.mounted", arg=nth
    )
    return page.locator(".static-widget").nth(nth)


def test_link_holds_in_both_directions(open_page):
    page = open_page("index")
    widget = mounted(page)
    slider, status = widget.get_by_label("number"), widget.locator("p[role=status]")
    assert status.text_content() == "number 5", (
        "the slider's value counts at the start, as in Jupyter"
    )
    slider.fill("40")
    assert status.text_content() == "number 40"
    assert widget.locator("rect").get_attribute("width") == "40"
    widget.get_by_role("button", name="ten more").click()
    assert slider.input_value() == "50"
    assert status.text_content() == "number 50"


def test_keys_move_the_slider_and_its_picture(open_page):
    page = open_page("index")
    widget = mounted(page)
    widget.get_by_label("number").focus()
    page.keyboard.press("ArrowRight")
    assert widget.locator("rect").get_attribute("width") == "6"
    page.keyboard.press("End")
    assert widget.locator("rect").get_attribute("width") == "90"


def test_pointer_moves_the_slider_and_its_picture(open_page):
    page = open_page("index")
    widget = mounted(page)
    box = widget.get_by_label("number").bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 20, middle)
    page.mouse.down()
    widths = set()
    for step in range(20, int(box["width"]) - 10, 12):
        page.mouse.move(box["x"] + step, middle)
        widths.add(widget.locator("rect").get_attribute("width"))
    assert len(widths) > 5, "the picture follows the drag, not only its end"
    page.mouse.up()


def test_selection_slider_says_its_option(open_page):
    page = open_page("index")
    slider = mounted(page).get_by_label("n_heads")
    assert slider.get_attribute("aria-valuetext") == "two"
    slider.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "four"
    assert slider.locator("xpath=following-sibling::output").text_content() == "four"


def test_bytes_arrive_as_a_data_view(open_page):
    page = open_page("index")
    assert mounted(page).locator(".sw-anywidget").get_attribute("data-bytes") == "true 7 9"


def test_initialize_runs_before_render(open_page):
    page = open_page("index")
    mounted(page).get_by_label("number").fill("12")
    assert page.locator("body").get_attribute("data-seen") == "12"


def test_a_widget_out_of_sight_waits(open_page):
    page = open_page("index")
    mounted(page, 0)
    page.wait_for_timeout(300)
    second = page.locator(".static-widget").nth(1)
    assert second.get_attribute("data-mounted") is None
    assert second.locator("input").count() == 0
    second.scroll_into_view_if_needed()
    assert mounted(page, 1).locator("p[role=status]").text_content() == "number 50"


def test_tab_reaches_a_widget_out_of_sight(open_page):
    page = open_page("index")
    mounted(page, 0).get_by_role("button", name="ten more").focus()
    page.keyboard.press("Tab")
    mounted(page, 1)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.labels[0].textContent") == "below"


def test_widgets_do_not_share_their_state(open_page):
    page = open_page("index")
    mounted(page, 0).get_by_label("number").fill("20")
    page.locator(".static-widget").nth(1).scroll_into_view_if_needed()
    second = mounted(page, 1)
    assert second.locator("rect").get_attribute("width") == "50"
    second.get_by_label("below").fill("60")
    assert page.locator(".static-widget rect").first.get_attribute("width") == "20"


def test_a_page_holds_a_shared_module_once_and_no_stranger(html):
    page = (html / "index.html").read_text("utf-8")
    saved = (html / "_static" / "saved_widgets" / "index.js").read_text("utf-8")
    assert saved.count("ten more") == 1 and "ten more" not in page
    assert saved.count("probe-style") == 1
    assert base64.b64encode(b"not on any page").decode() not in page + saved
    assert "LayoutModel" not in saved and "StyleModel" not in saved
    assert page.count('class="static-widget"') == 2


def test_mounting_moves_nothing_that_can_be_seen(open_page):
    page = open_page("index")
    page.evaluate("""
        new PerformanceObserver(list => {
          for (const { value } of list.getEntries()) window.shifted = (window.shifted ?? 0) + value;
        }).observe({type: "layout-shift", buffered: true});
    """)
    mounted(page, 0)
    for y in range(0, page.evaluate("document.documentElement.scrollHeight"), 300):
        page.evaluate("y => window.scrollTo(0, y)", y)
        page.wait_for_timeout(30)
    mounted(page, 1)
    assert page.evaluate("window.shifted ?? 0") < 0.01


def test_every_kind_of_control_is_native_and_labelled(open_page):
    page = open_page("controls")
    widget = mounted(page)
    widget.get_by_role("slider", name="dropout", exact=True).press("ArrowRight")
    assert widget.get_by_label("dropout twin").get_attribute("aria-valuetext") == "51"
    widget.get_by_role("combobox", name="mask", exact=True).select_option("padding")
    assert widget.get_by_label("mask twin").input_value() == "padding"
    widget.get_by_role("checkbox", name="scale", exact=True).press("Space")
    assert not widget.get_by_label("scale twin").is_checked()
    assert widget.get_by_label("locked").is_disabled()


def test_controls_are_large_enough_for_a_finger(open_page):
    page = open_page("controls")
    for control in mounted(page).locator("input, select").all():
        size = control.bounding_box()
        assert size["height"] >= 24 and size["width"] >= 24, control.evaluate("e => e.outerHTML")


def test_a_page_whose_numbers_are_lost_says_so_in_the_widgets_place(open_page):
    page = open_page("index", quiet=False, lost="**/saved_widgets/*")
    widget = mounted(page, 0)
    assert "what it shows could not be loaded" in widget.get_by_role("alert").text_content()
    assert widget.get_by_role("img", name=ALT).is_visible()


def test_a_widget_that_fails_says_so_in_its_place(open_page):
    page = open_page("broken", quiet=False)
    widget = mounted(page, 0)
    assert "no ink left" in widget.get_by_role("alert").text_content()
    assert widget.get_by_role("img", name=ALT).is_visible()
    page.locator(".static-widget").nth(1).scroll_into_view_if_needed()
    assert mounted(page, 1).locator("p[role=status]").text_content() == "number 3"


def test_without_javascript_there_is_a_picture(open_page):
    page = open_page("index", java_script_enabled=False)
    pictures = page.get_by_role("img", name=ALT)
    assert pictures.count() == 2
    assert pictures.first.is_visible()


def test_with_javascript_the_picture_is_not_fetched(browser, html):
    page = browser.new_page()
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto((html / "controls.html").as_uri())
    mounted(page)
    page.wait_for_timeout(200)
    page.close()
    assert not [url for url in requests if url.endswith(".png")]


# ---------------------------------------------------------------------------------- failing builds


def assert_build_fails(folder, *messages):
    result = build(folder, pages=["index"])
    output = result.stdout + result.stderr
    assert result.returncode != 0, output
    for message in messages:
        assert message in output, output


def test_unknown_type_fails_the_build(tmp_path, widgets):
    box = ipywidgets.VBox([number_slider(1, "number"), ipywidgets.IntSlider()])
    write_notebook(tmp_path, "index", [new_code_cell("1"), widget_cell(box)])
    assert_build_fails(tmp_path, "index.ipynb, cell 3", "IntSliderModel")


def test_unknown_type_behind_a_link_fails_the_build(tmp_path, widgets):
    slider = number_slider(1, "number")
    ipywidgets.jslink((slider, "index"), (ipywidgets.IntProgress(), "value"))
    write_notebook(tmp_path, "index", [widget_cell(slider)])
    assert_build_fails(tmp_path, "index.ipynb, cell 2", "IntProgressModel")


def test_a_link_one_way_fails_the_build(tmp_path, widgets):
    slider = number_slider(1, "number")
    ipywidgets.jsdlink((slider, "index"), (number_slider(1, "follower"), "index"))
    write_notebook(tmp_path, "index", [widget_cell(slider)])
    assert_build_fails(tmp_path, "index.ipynb, cell 2", "DirectionalLinkModel")


def test_view_without_state_fails_the_build(tmp_path, widgets):
    write_notebook(tmp_path, "index", [widget_cell(number_slider(1, "number"))], saved=False)
    assert_build_fails(tmp_path, "index.ipynb, cell 2", "no saved state")


def test_picture_without_alternative_text_fails_the_build(tmp_path, widgets):
    write_notebook(tmp_path, "index", [widget_cell(number_slider(1, "number"), alt=None)])
    assert_build_fails(tmp_path, "index.ipynb, cell 2", "no alternative text")


def test_widget_without_picture_fails_the_build(tmp_path, widgets):
    write_notebook(tmp_path, "index", [widget_cell(number_slider(1, "number"), picture=False)])
    assert_build_fails(tmp_path, "index.ipynb, cell 2", "no static picture")


def test_equation_that_cannot_be_typeset_fails_the_build(tmp_path, widgets):
    write_notebook(tmp_path, "index", [new_markdown_cell(r"$\sofmax(x)$")])
    assert_build_fails(tmp_path, "index.ipynb", r"\sofmax is not known")
