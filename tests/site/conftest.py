"""What the tests of the built pages share: a browser, a server, and a visit that notices trouble.

The pages come from `_build/html`, which `make book` makes. A test that takes `page_name` runs once
for every page, one that takes `explorer_cell` once for every explorer.

A test that opens a page is left to `make everything` unless it is marked `quick`, and of the pages
`make test` opens the few that `FEW_PAGES` names.
"""

import base64
import functools
import http.server
import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import nbformat
import pytest
from filelock import FileLock
from playwright.sync_api import sync_playwright

from tools.chromium import CHROMIUM_ARGUMENTS, find_chromium
from tools.widget_state import WIDGET_STATE, WIDGET_VIEW, reached, views

ROOT = Path(__file__).resolve().parents[2]
BOOK = Path(os.environ.get("BOOK", ROOT / "book"))
HTML = Path(os.environ.get("BOOK_HTML", ROOT / "_build" / "html"))
# The landing page, with answers; a chapter with formulas, code, figures and an explorer; Markdown
# with tables and the longest text; and the page that shows nothing before a script has filled it.
FEW_PAGES = ("index.html", "04-scores-scaling-softmax.html", "glossary.html", "search.html")
NO_BUILD = f"there are no built pages in {HTML}: run `make book` first"


# All of a page is laid out, so that what is too wide is found far below, too.
WHOLE = """
document.addEventListener("DOMContentLoaded",
                          () => document.documentElement.classList.add("whole"));
"""


def page_names():
    """The files of the built pages, the landing page first. 404.html is shown at other addresses
    than its own.
    """
    names = sorted(path.name for path in HTML.glob("*.html") if path.name != "404.html")
    return sorted(names, key=lambda name: name != "index.html")


@functools.cache  # every test function of these folders is asked which it takes
def explorer_cells():
    """Every explorer: (page without its ending, place on the page, source of its cell). One that a
    page shows a second time counts once.
    """
    cells = []
    for path in sorted(BOOK.glob("*.ipynb"), key=lambda path: (path.stem != "index", path.stem)):
        shown = [
            ("".join(cell["source"]), output["data"][WIDGET_VIEW]["model_id"])
            for cell in json.loads(path.read_text("utf-8"))["cells"]
            for output in cell.get("outputs", [])
            if WIDGET_VIEW in output.get("data", {})
        ]
        before = set()
        for nth, (source, model_id) in enumerate(shown):
            if model_id not in before:
                cells.append((path.stem, nth, source))
            before.add(model_id)
    return cells


@functools.cache
def stored_views(stem):
    """The view of each explorer of a page, in their order: its traits, as the chapter has them."""
    notebook = nbformat.read(BOOK / f"{stem}.ipynb", as_version=4)
    models = notebook.metadata.widgets[WIDGET_STATE]["state"]
    found = []
    for shown in views(notebook):
        [model] = [m for m in map(models.get, reached(models, [shown])) if "frames" in m["state"]]
        buffers = {b["path"][0]: base64.b64decode(b["data"]) for b in model["buffers"]}
        found.append(SimpleNamespace(**model["state"] | buffers))
    return found


def pytest_generate_tests(metafunc):
    if "page_name" in metafunc.fixturenames:
        names = page_names()
        metafunc.parametrize("page_name", names or [None], ids=names or ["no-build"])
    cells = explorer_cells()
    if "explorer_page" in metafunc.fixturenames:
        metafunc.parametrize("explorer_page", dict.fromkeys(f"{stem}.html" for stem, *_ in cells))
    if "explorer_cell" in metafunc.fixturenames:
        # Of module scope, so that the tests of one explorer follow each other and share its page.
        ids = [f"{stem}-{nth}" for stem, nth, _ in cells]
        metafunc.parametrize("explorer_cell", cells, ids=ids, scope="module")


def pytest_itemcollected(item):
    """Mark as slow what opens a page, but for the few tests that `make test` has the time for."""
    if "browser" not in item.fixturenames or item.get_closest_marker("builds"):
        return
    page_name = item.callspec.params.get("page_name") if hasattr(item, "callspec") else None
    if not item.get_closest_marker("quick") or page_name not in (None, *FEW_PAGES):
        item.add_marker("slow")


@pytest.fixture(scope="session")
def explorer_stems():
    """The sources of the cells that show explorers, by page."""
    stems = {}
    for stem, _, source in explorer_cells():
        stems.setdefault(stem, []).append(source)
    return stems


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=CHROMIUM_ARGUMENTS
        )
        yield browser
        browser.close()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass


@contextmanager
def serve(folder):
    """Serve a folder on a free port of the loopback address; yields the address."""
    handler = functools.partial(QuietHandler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def site():
    """The address of a server over the built pages."""
    if not page_names():
        pytest.fail(NO_BUILD)
    with serve(HTML) as address:
        yield address


@pytest.fixture(scope="session")
def html_folder():
    if not page_names():
        pytest.fail(NO_BUILD)
    return HTML


@pytest.fixture(scope="module")
def module_page(visit, site):
    """A page in which the module of a view can be run: see `in_page`."""
    with visit(f"{site}/index.html") as v:
        yield v.page


# What GitHub Actions tells about a fork that publishes itself.
FORK = {
    "GITHUB_REPOSITORY": "someone/fork",
    "GITHUB_SHA": "0123456789abcdef0123456789abcdef01234567",
    "GITHUB_REF_NAME": "main",
    "JUPYTERHUB_URL": "https://hub.example.edu",
}
OF_ACTIONS = ("GITHUB_", "BOOK_URL", "JUPYTERHUB_URL")


@pytest.fixture(scope="session")
def build():
    """A function that builds the book into a folder, as `make book` does, and returns the pages'.

    The environment tells of a repository what the function is given, and nothing else.
    """

    def into(folder, **variables):
        kept = {key: value for key, value in os.environ.items() if not key.startswith(OF_ACTIONS)}
        command = [Path(sys.executable).with_name("jupyter-book"), "build", BOOK]
        command += ["--config", ROOT / "_config.yml", "--toc", ROOT / "_toc.yml"]
        command += ["--path-output", folder, "-W", "--keep-going", "-n"]
        done = subprocess.run(command, env=kept | variables, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return folder / "_build" / "html"

    return into


@pytest.fixture(scope="session")
def fork_site(build, tmp_path_factory, worker_id):
    """The folder of the pages as the fork of `FORK` builds them: made once for all tests."""
    shared = tmp_path_factory.getbasetemp()
    if worker_id != "master":  # under xdist: the folder above, which all workers share
        shared = shared.parent
    folder = shared / "fork"
    with FileLock(shared / "fork.lock"):
        if not (folder / "built").exists():
            build(folder, **FORK)
            (folder / "built").touch()
    return folder / "_build" / "html"


@pytest.fixture(scope="session")
def made_once(tmp_path_factory, worker_id):
    """A function that makes a file by its name, once for all tests."""
    shared = tmp_path_factory.getbasetemp()
    if worker_id != "master":
        shared = shared.parent

    def path_of(name, make):
        path = shared / name
        with FileLock(shared / f"{name}.lock"):
            if not path.exists():
                written = shared / f"{name}.new"
                make(written)
                written.rename(path)
        return path

    return path_of


@pytest.fixture(scope="session")
def fork_address(fork_site):
    with serve(fork_site) as address:
        yield address


# Scrolls through the page, a screen at a time, then to every explorer until it is mounted.
MOUNT_ALL = """
async () => {
  const frame = () => new Promise(resolve => requestAnimationFrame(resolve));
  const screen = document.documentElement.clientHeight;
  for (let y = 0; y < document.scrollingElement.scrollHeight; y += screen) {
    window.scrollTo({top: y, behavior: "instant"});
    await frame();
  }
  const deadline = performance.now() + 5000;
  for (const widget of document.querySelectorAll(".static-widget")) {
    while (!widget.dataset.mounted && performance.now() < deadline) {
      widget.scrollIntoView({block: "center", behavior: "instant"});
      await frame();
    }
  }
  window.scrollTo({top: 0, behavior: "instant"});
  await frame();
  const widgets = [...document.querySelectorAll(".static-widget")];
  const drawn = widget => widget.querySelector("[data-picture]")?.childElementCount;
  return widgets.map(widget => drawn(widget) ? widget.dataset.mounted : "nothing is drawn");
}
"""


class Visit:
    """One page, opened: `page` is Playwright's, `trouble` is what went wrong since then."""

    def __init__(self, page, host):
        self.page = page
        self.host = host
        self.trouble = []
        self.responses = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.trouble.append(f"uncaught error: {error}"))
        page.on("request", self._request)
        page.on("requestfailed", self._failed)
        page.on("websocket", lambda socket: self.trouble.append(f"web socket: {socket.url}"))
        page.on("response", self._response)

    def _console(self, message):
        if message.type in ("error", "assert"):
            self.trouble.append(f"console: {message.text} ({message.location.get('url')})")

    def _request(self, request):
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.netloc != self.host:
            self.trouble.append(f"request to another host: {request.url}")

    def _failed(self, request):
        # A page that is left for another may still be fetching its icon: it aborts that itself.
        if request.failure != "net::ERR_ABORTED":
            self.trouble.append(f"failed request: {request.url} ({request.failure})")

    def _response(self, response):
        self.responses.append(response)
        if response.status >= 400:
            self.trouble.append(f"status {response.status}: {response.url}")

    def assert_no_trouble(self):
        assert not self.trouble, "\n".join(self.trouble)

    def mount_all(self):
        """Scroll through the page, mount every explorer of it and return how many there are."""
        states = self.page.evaluate(MOUNT_ALL)
        assert set(states) <= {"true"}, "\n".join([f"explorers mounted: {states}", *self.trouble])
        return len(states)


@pytest.fixture(scope="session")
def visit(browser):
    """A context manager: `with visit(address, …) as v:` opens a page in a fresh browser context."""

    @contextmanager
    def open_page(address, *, theme="light", width=1280, height=900, **context_options):
        context = browser.new_context(
            color_scheme=theme,
            viewport={"width": width, "height": height},
            reduced_motion="reduce",
            service_workers="block",
            **context_options,
        )
        context.add_init_script(WHOLE)
        try:
            page = context.new_page()
            page.set_default_timeout(10_000)
            opened = Visit(page, urlsplit(address).netloc)
            page.goto(address, wait_until="load")
            yield opened
        finally:
            context.close()

    return open_page


def pytest_terminal_summary(terminalreporter):
    """Print what the pages weigh, wherever their tests ran."""
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.getreports(kind)]
    weights = [text for r in reports for name, text in r.user_properties if name == "weight"]
    if weights:
        terminalreporter.section("weight of every page and all it loads, gzip -6")
        for line in sorted(weights, key=lambda line: line.rsplit(maxsplit=1)[-1]):
            terminalreporter.write_line(line)
