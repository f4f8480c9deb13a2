"""The guide's pages on assignments: commands, paths, figures and examples are what there is."""

import re
from pathlib import Path

import nbformat
import pytest
import torch

from assignments.course import SOURCE
from assignments.sandbox.process import ENTRIES, FOLDER
from assignments.sandbox.run import CELL_SECONDS, NOTEBOOK_SECONDS
from attention import split_heads
from attention.checks import check_split_heads, splitting
from attention.checks.bank import Bank
from tests.assignments.submissions import answer
from tools.check import STEPS

ROOT = Path(__file__).parents[2]
PAGES = (
    "for-instructors.md",
    "assignments.md",
    "misunderstandings.md",
    "changing-assignments.md",
    "marked-by-hand.md",
)
GUIDES = [ROOT / "book" / name for name in PAGES]
TEXT, CHANGING = (GUIDES[index].read_text("utf-8") for index in (1, 3))
ASSIGNMENTS = sorted(SOURCE.glob("*/*.ipynb"))
EXAMPLES = re.findall(r"```python\n(.*?)```", CHANGING, re.DOTALL)
[ROW] = re.findall(r"```toml\n(.*?)```", CHANGING, re.DOTALL)
COMMANDS = [
    command.replace("\\\n", " ")
    for guide in GUIDES
    for block, span in re.findall(r"```sh\n(.*?)```|`(make [^`]*)`", guide.read_text("utf-8"), re.S)
    for command in re.findall(r"\bmake (?:.*\\\n)*.*", block or span)
]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")

pytestmark = pytest.mark.usefixtures("as_a_reader")


@pytest.mark.parametrize("assignment", ASSIGNMENTS, ids=lambda path: path.stem)
def test_the_points_of_the_tests_are_those_that_are_promised(assignment):
    cells = nbformat.read(assignment, as_version=4).cells
    points = int(re.search(r"(\d+) points", cells[0].source)[1])
    assert points == sum(cell.metadata.get("nbgrader", {}).get("points", 0) for cell in cells)
    assert f"Each gives {points} points." in TEXT


@pytest.mark.parametrize("command", COMMANDS)
def test_the_makefile_knows_the_command(command):
    for word in command.split()[1:]:
        variable, _, value = word.partition("=")
        if variable == "ONLY":
            assert value in STEPS
        elif "=" in word:
            assert f"$({variable})" in MAKEFILE
        elif word != "_build/container/installed":  # $(VENV)/installed, where VENV is that folder
            assert re.search(rf"^{word}:.*## ", MAKEFILE, re.MULTILINE)


@pytest.mark.parametrize(
    "guide",
    [*GUIDES, ROOT / "book/your-own-copy.md", ROOT / "CONTRIBUTING.md", ROOT / "README.md"],
    ids=lambda guide: guide.stem,
)
def test_every_file_that_is_named_exists(guide):
    tops = "|".join(path.name for path in ROOT.iterdir() if not path.name.startswith((".", "_")))
    for name in re.findall(rf"`((?:{tops})(?:/[\w./-]*)?)`", guide.read_text("utf-8")):
        path = ROOT / name.replace("NAME", ASSIGNMENTS[0].stem)
        assert path.exists() or ("NAME" in name and path.parent.is_dir()), name


def test_the_limits_are_those_of_the_kernel():
    assert f"run for {CELL_SECONDS} seconds and a notebook for {NOTEBOOK_SECONDS};" in TEXT
    assert f"more than {FOLDER // 2**20} MB\nor {ENTRIES:,} files into its folder" in CHANGING


def test_the_example_of_an_assignment_runs():
    names = {"CLASS_SEED": 2027, "check_split_heads": check_split_heads}
    for example in EXAMPLES[:2]:
        assert re.findall(r"### (\w+) (?:SOLUTION|HIDDEN TESTS)", example) == ["BEGIN", "END"]
        exec(example, names)
    rows = {}
    exec(EXAMPLES[2], rows)
    for row in rows["MISTAKES"] + rows["RIGHT"]:
        written = answer({"my-split": EXAMPLES[0]}, *row)
        names = {"torch": torch}
        exec(written.code, names)
        result = check_split_heads(names["my_split"])
        assert result.passed == (row in rows["RIGHT"])
        assert result.passed or written.says in repr(result)


def test_the_mistake_that_is_taught_is_new_and_named(tmp_path):
    def mine(x, n_heads):
        d_key = x.shape[-1] // n_heads
        return torch.stack([x[..., :d_key] for _ in range(n_heads)], dim=1)

    assert not check_split_heads(mine).mistakes
    (tmp_path / "splitting.toml").write_text(ROW, "utf-8")
    [taught] = Bank.read(str(tmp_path / "splitting.py"), split_heads, vars(splitting))
    splitting.BANK.append(taught)
    try:
        result = check_split_heads(mine)
        assert result.mistakes == (taught.name,)
        assert result.paragraphs[0] == f"{taught.why} {taught.way_out}"
    finally:
        splitting.BANK.remove(taught)
