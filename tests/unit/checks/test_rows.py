"""The rows of mistakes: what a bank makes of them and refuses, and what holds for all."""

import builtins
import dis
import importlib
import re
import subprocess
import sys
import textwrap
import tomllib
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType

import pytest
import torch

from attention import checks
from attention.checks.bank import RETURN, Bank

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.usefixtures("as_a_reader")

FILES = sorted(Path(checks.__file__).parent.glob("*.toml"))
ROWS = '''
WAY = "Add `by`, and {{nothing}} else."
EITHER_WAY = "{WAY} Or count."

# A comment.
[added_twice]
code = "add(add(x, by), by)"
why = """It is added \\
twice."""
way_out = "{EITHER_WAY}"
evidence = "Yours is {yours[0].item():.1f} for {inputs['x']}, and {double(right[0])} is {{twice}}."

[taken_away]
code = """
less = by  # a comment
return x - less"""
why = "It is taken away."
way_out = "{WAY}"
evidence = "told"
'''
GOOD = '[one]\ncode = "x"\nwhy = "Why."\nway_out = "Out."\n'


def right(x, by=2.5, *, hidden=None):
    return x + by


NAMES = {
    "add": right,
    "double": lambda part: 2 * part.item(),
    "told": lambda yours, right, inputs: f"Told of {inputs['x']}.",
}


def read(folder: Path, rows: str, **options) -> Bank:
    (folder / "sums.toml").write_text(rows, "utf-8")
    return Bank.read(str(folder / "sums.py"), right, NAMES, **options)


def test_a_row_is_a_function_with_the_arguments_of_the_right_one(tmp_path):
    bank = read(tmp_path, ROWS)
    twice, less = bank
    assert isinstance(bank, Bank)
    assert [mistake.name for mistake in bank] == ["added_twice", "taken_away"]
    assert [twice(1.0), twice(1.0, 2.0), less(1.0), less(1.0, 2.0)] == [6.0, 5.0, -1.5, -1.0]
    assert (twice.why, less.why) == ("It is added twice.", "It is taken away.")
    assert less.way_out == "Add `by`, and {nothing} else."
    assert twice.way_out == f"{less.way_out} Or count."
    with pytest.raises(TypeError, match="hidden"):
        twice.function(1.0, hidden=1)


def test_the_evidence_is_a_sentence_or_a_function_that_makes_one(tmp_path):
    twice, less = read(tmp_path, ROWS)
    says = (torch.tensor(1.234),), (torch.tensor(0.5),), {"x": 7}
    assert twice.evidence(*says) == "Yours is 1.2 for 7, and 1.0 is {twice}."
    assert less.evidence(*says) == "Told of 7."
    assert read(tmp_path, GOOD)[0].evidence is None


def test_what_is_compared_is_made_of_the_functions(tmp_path):
    bank = read(tmp_path, ROWS, made=lambda function: lambda x: function(10 * x))
    assert [mistake(1.0) for mistake in bank] == [15.0, 7.5]
    assert bank.named("taken_away") is bank[1]


@pytest.mark.parametrize(
    ("name", "line"), [("added_twice", 'code = "add('), ("taken_away", "return x - less")]
)
def test_a_traceback_shows_the_line_of_the_row(tmp_path, name, line):
    with pytest.raises(TypeError) as caught:
        read(tmp_path, ROWS).named(name)("1", 1)
    frames = traceback.extract_tb(caught.tb)
    [frame] = [frame for frame in frames if frame.filename == str(tmp_path / "sums.toml")]
    assert frame.name == name
    assert frame.line.startswith(line)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            GOOD.replace('why = "Why."\n', ""),
            "[one].*: has code, way_out; due are code, why, way",
        ),
        (GOOD.replace("way_out", "way_ot"), "[one].*: has code, why, way_ot; due are"),
        (GOOD.replace('"x"', '"x +"'), "[one].*SyntaxError"),
        (GOOD.replace('"x"', '"y = x"'), "[one].*SyntaxError"),
        (GOOD.replace('"x"', "1"), "[one].*AttributeError"),
        (GOOD.replace("Why.", "{WY}"), "[one].*KeyError.*WY"),
        (GOOD.replace("Why.", "{"), "[one].*ValueError"),
        ('WAY = "{WY}"\n' + GOOD, "[WAY].*KeyError.*WY"),
        (GOOD + 'evidence = "tld"', "[one].*KeyError.*tld"),
        (GOOD + 'evidence = "{yours[}."', "[one].*SyntaxError"),
        (GOOD + 'WAY = "Last."', "[one].*: has code, why, way_out, WAY; due are"),
        (GOOD + GOOD, "Cannot declare.*line 5"),
        (GOOD + "code", "Expected '='"),
    ],
)
def test_a_row_that_is_none_is_refused_with_file_and_name(tmp_path, rows, said):
    with pytest.raises(ValueError, match=r"^sums\.toml[:,].*" + said.replace("[", r"\[")):
        read(tmp_path, rows)


def code_of(function, path: Path) -> CodeType:
    """The code of the row behind what a bank compares."""
    if function.__code__.co_filename == str(path):
        return function.__code__
    inside = (cell.cell_contents for cell in function.__closure__)
    return next(code_of(each, path) for each in inside if hasattr(each, "__code__"))


def looked_up(code: CodeType) -> Iterator[str]:
    """The names that a piece of code takes from its module, or from Python."""
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield step.argval
    for inside in code.co_consts:
        if isinstance(inside, CodeType):
            yield from looked_up(inside)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_row_finds_every_name_in_its_check(path):
    """A learner who makes the mistake would be the first to run into one that is misspelt."""
    module, rows, _ = rows_of(path)
    known = vars(module).keys() | vars(builtins).keys()
    for name, row in rows.items():
        mistake = module.BANK.named(name)
        codes = [code_of(mistake.function, path)]
        if not row.get("evidence", "none").isidentifier():
            codes.append(mistake.evidence.__code__)
        unknown = {each for code in codes for each in looked_up(code)} - known
        assert not unknown, f"{path.name}, [{name}]: {module.__name__} has no {unknown}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_words_of_a_row_are_one_line_of_text(path):
    _, rows, shared = rows_of(path)
    texts = [*shared.values()]
    for name, row in rows.items():
        words = [text for key, text in row.items() if key != "code"]
        assert not re.search(r"\n|  |^ | $", "|".join(words)), f"{path.name}, [{name}]"
        texts += words
    assert [name for name in shared if not any(f"{{{name}}}" in text for text in texts)] == []
    assert [line for line in path.read_text("utf-8").splitlines() if len(line) > 120] == []


def test_the_code_of_the_rows_is_linted_and_formatted_as_other_code_is(tmp_path):
    for path in FILES:
        module, rows, _ = rows_of(path)
        written = [f"from {module.__name__} import *  # noqa: F403"]
        for name, row in rows.items():
            code = code_of(module.BANK.named(name).function, path)
            arguments = ", ".join(code.co_varnames[: code.co_argcount])
            body = row["code"].strip("\n")
            body = body if RETURN.search(body) else f"return {body}"
            written.append(f"def {name}({arguments}):\n{textwrap.indent(body, '    ')}")
        (tmp_path / f"{path.stem}.py").write_text("\n\n\n".join(written) + "\n", "utf-8")
    for command in (["check", "--ignore=D,F405", "--quiet"], ["format", "--diff", "--quiet"]):
        ruff = [sys.executable, "-m", "ruff", *command, f"--config={ROOT / 'pyproject.toml'}", "."]
        run = subprocess.run(ruff, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout + run.stderr


def rows_of(path: Path) -> tuple[ModuleType, dict[str, dict], dict[str, str]]:
    """The check's module, its rows, and the texts that they share."""
    tables = tomllib.loads(path.read_text("utf-8"))
    shared = {name: tables.pop(name) for name in list(tables) if isinstance(tables[name], str)}
    return importlib.import_module(f"{checks.__name__}.{path.stem}"), tables, shared
