"""The first code cell finds the package, or says in one sentence why it does not."""

import json
import os
import subprocess
import sys
import sysconfig

import nbformat
import pytest

from tools.refresh import chapters

PUBLISHED = "https://github.com/someone/fork@0123456789abcdef0123456789abcdef01234567"
[SOURCE] = [
    cell.source for cell in nbformat.read(chapters()[0], as_version=4).cells if cell.id == "setup"
]
FILLED = SOURCE.replace('PUBLISHED = ""', f'PUBLISHED = "{PUBLISHED}"')

# Runs the cell as a kernel does, in a Python that finds nothing installed: the folders it looks
# into are the notebook's and those of the test. Tells what the cell left behind.
RUN = """
import json, sys
sys.path[:0] = ["", *json.loads(sys.argv[2])]
namespace = {{"__name__": "__main__"}}
before = list(sys.path)
{before}
for _ in range(2):  # a reader runs it twice
    exec(compile(sys.argv[1], "the cell", "exec"), namespace)
{after}
left = sorted(namespace.keys() - {{"__name__", "__builtins__"}})
added = [place for place in sys.path if place not in before]
print(json.dumps({{"left": left, "added": added, "attention": sys.modules["attention"].__file__}}))
"""

PIP = """
import os, sys
from pathlib import Path
with open({calls!r}, "a") as calls:
    print(*sys.argv[1:], sep=chr(9), file=calls)
print("Collecting attention")
{then}
"""

COLAB = """
import types
colab, output = types.ModuleType("google.colab"), types.ModuleType("google.colab.output")
switched = []
output.enable_custom_widget_manager = lambda: switched.append(True)
colab.output = output
sys.modules |= {"google": types.ModuleType("google"), "google.colab": colab}
"""


def run(source, folder, *places, before="", after=""):
    code = RUN.format(before=before, after=after)
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, source, json.dumps([str(p) for p in places])],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder / "pip-is-here")},  # for the pip it may start
        capture_output=True,
        text=True,
    )


def package(folder, explore=""):
    """A package that is imported as the book's is."""
    (folder / "attention").mkdir(parents=True)
    (folder / "attention" / "__init__.py").touch()
    (folder / "attention" / "explore.py").write_text(explore)
    return folder


def output(finished):
    """What a run that went well printed, which is the test's own line."""
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
    return json.loads(finished.stdout)


def sentence(finished):
    """The last line of a run that failed: all that it says beside one short traceback."""
    assert finished.returncode == 1
    assert finished.stdout == ""
    *traceback, last = finished.stderr.splitlines()
    assert len(traceback) <= 5, finished.stderr
    assert "During handling" not in finished.stderr
    kind, _, words = last.partition(": ")
    assert kind == "ImportError"
    assert words.endswith(".")
    assert ". " not in words
    return words


@pytest.fixture
def alone(tmp_path):
    """A folder with nothing but the notebook."""
    folder = tmp_path / "folder"
    folder.mkdir()
    return folder


@pytest.fixture
def pip(alone):
    """Put a pip there that writes down what it is asked and does as told; returns what it was
    asked.
    """
    calls = alone / "calls"
    calls.touch()
    (alone / "pip-is-here").mkdir()

    def that(then):
        text = PIP.format(calls=str(calls), then=then)
        (alone / "pip-is-here" / "pip.py").write_text(text)
        return lambda: [line.split("\t") for line in calls.read_text().splitlines()]

    return that


@pytest.mark.parametrize("source", [SOURCE, FILLED], ids=["source", "published"])
def test_an_installed_package_is_used(alone, tmp_path, pip, source):
    asked = pip("")
    installed = package(tmp_path / "installed")
    package(tmp_path / "src")  # the notebook's folder stands in a checkout, too
    found = output(run(source, alone, installed))
    assert found["attention"].startswith(str(installed))
    assert found["added"] == []
    assert found["left"] == []
    assert asked() == []


@pytest.mark.parametrize("source", [SOURCE, FILLED], ids=["source", "published"])
def test_in_a_checkout_its_source_is_used(alone, tmp_path, pip, source):
    asked = pip("")
    found = output(run(source, alone, package(tmp_path / "src").parent))
    assert found["added"] == [str(tmp_path / "src")]
    assert found["left"] == []
    assert asked() == []


@pytest.mark.parametrize("folder", [".", "..", "../assignments/source"])
def test_in_this_checkout_the_explorers_are_found(folder):
    """Wherever in it the kernel was started."""
    book = chapters()[0].parent
    libraries = sysconfig.get_paths()["purelib"]  # and not what its .pth files add
    found = output(run(SOURCE, book / folder, libraries))
    assert found["added"] == [str(book.parent / "src")]


def test_a_readers_own_attention_py_hides_no_checkout(alone, tmp_path):
    (alone / "attention.py").write_text("x = 1")
    found = output(run(SOURCE, alone, package(tmp_path / "src").parent))
    assert found["attention"] == str(tmp_path / "src/attention/__init__.py")


def test_a_readers_own_attention_py_that_hides_the_package_is_named(alone, tmp_path, pip):
    asked = pip("")
    (alone / "attention.py").write_text("x = 1")
    words = sentence(run(FILLED, alone, package(tmp_path / "installed")))
    assert words.startswith(f"{alone / 'attention.py'} hides the book's package")
    assert asked() == []


@pytest.mark.parametrize("folder", [None, "attention"], ids=["empty", "beside-a-clone"])
def test_elsewhere_the_published_commit_is_installed(alone, tmp_path, pip, folder):
    if folder:
        (alone / folder / "src").mkdir(parents=True)
    ready, place = package(tmp_path / "ready"), tmp_path / "installed"
    place.mkdir()
    asked = pip(f"Path({str(ready / 'attention')!r}).rename({str(place / 'attention')!r})")
    found = output(run(FILLED, alone, place))
    assert asked() == [["install", "--quiet", f"attention[explore] @ git+{PUBLISHED}"]]
    assert found["attention"].startswith(str(place))
    assert found["left"] == []


@pytest.mark.parametrize(
    "then", ["sys.exit('Could not resolve host')", ""], ids=["no-network", "installed-elsewhere"]
)
def test_what_cannot_be_installed_is_told(alone, pip, then):
    pip(then)
    words = sentence(run(FILLED, alone))
    assert PUBLISHED in words
    assert "reaches that address" in words


def test_a_notebook_on_its_own_tells_where_it_belongs(alone, pip):
    asked = pip("")
    assert "the folder `book`" in sentence(run(SOURCE, alone))
    assert asked() == []


def test_a_library_that_is_missing_is_named(alone, tmp_path):
    package(tmp_path / "src", explore="import anywidget")
    assert "No module named 'anywidget'" in sentence(run(SOURCE, alone))


def test_colab_lets_custom_widgets_run(alone, tmp_path):
    installed = package(tmp_path / "installed")
    output(run(SOURCE, alone, installed, before=COLAB, after="assert switched"))


def test_nowhere_else_it_is_asked_to(alone, tmp_path):
    installed = package(tmp_path / "installed")
    (installed / "google" / "colab").mkdir(parents=True)  # installed, and yet not Colab
    (installed / "google" / "colab" / "__init__.py").write_text("raise SystemExit('imported')")
    output(run(SOURCE, alone, installed))
