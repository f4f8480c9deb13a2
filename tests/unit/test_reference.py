"""What the book's reference promises of every name in it: a place, shapes, a source, an example.

The examples run with the tests (`tools/check.py`), each among the names of its module. That they
run where a reader pastes them too is checked here, by the names they use.
"""

import ast
import builtins
import doctest
import importlib
import inspect
import re
import typing
from pathlib import Path

import pytest
from jaxtyping import AbstractArray

import attention

BOOK = Path(__file__).resolve().parents[2] / "book"
PAGES = "\n".join(path.read_text("utf-8") for path in sorted(BOOK.glob("api-*.md")))
LISTED = re.findall(r"^\.\. auto(?:class|function):: (\S+)$", PAGES, re.M)
RESULTS = {  # what a function returns
    "attention.RunningExample",
    "attention.TransformerOutput",
    "attention.cost.caches.CacheSizes",
    "attention.cost.measured.Measured",
    "attention.cost.situations.Situations",
    "attention.cost.situations.TimesAsQuick",
    "attention.cost.on_a_gpu.OnAGpu",
    "attention.cost.on_a_gpu.Pass",
    "attention.cost.on_a_gpu.Step",
    "attention.pretrained.Pretrained",
    "attention.trained.fitting.Recipe",
    "attention.trained.task.Task",
    "attention.trained.who_and_whom.Batch",
    "attention.trained.who_and_whom.Sentence",
    "attention.trained.who_and_whom.Answer",
    "attention.trained.who_and_whom.Accuracy",
    "attention.trained.who_and_whom.Head",
    "attention.trained.who_and_whom.Checkpoint",
    "attention.trained.dates.Measured",
    "attention.trained.dates.Alignment",
    "attention.trained.dates.WrittenDate",
    "attention.trained.attention_sink.Sequences",
    "attention.trained.attention_sink.Loss",
    "attention.trained.induction.Sequences",
    "attention.trained.induction.Progress",
    "attention.trained.last_speaker.Talks",
    "attention.trained.recall.Pairs",
    "attention.trained.relative_clauses.ClauseAnswer",
    "attention.trained.relative_clauses.ClauseBatch",
    "attention.trained.relative_clauses.Clauses",
    "attention.trained.relative_clauses.Verb",
}
BASE = {
    "attention.recurrent.encoder_decoder.RecurrentDecoder"
}  # does nothing without the step of its children
NAMES = [name for name in LISTED if name not in RESULTS | BASE]


def find(name):
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


def section(name, title):
    text = inspect.getdoc(find(name)) + "\n"
    lines = re.search(rf"^{title}:\n((?:(?: {{4}}.*)?\n)+)", text, re.M)
    assert lines, f"{name} has no section {title}"
    return inspect.cleandoc(lines[1])


def test_every_public_name_is_in_the_reference_once():
    assert len(LISTED) == len(set(LISTED))
    assert {f"attention.{name}" for name in attention.__all__ if name != "SENTENCES"} <= set(LISTED)


def test_every_module_has_its_section():
    """With its docstring, which says what it is, what it changes and what it costs."""
    described = set(re.findall(r"^\.\. automodule:: attention\.(\S+)$", PAGES, re.M))
    package = Path(attention.__file__).parent
    modules = {
        ".".join(path.relative_to(package).with_suffix("").parts)
        for path in package.rglob("[!_]*.py")
        if path.parent.name not in ("checks", "drawings", "explore")
    }
    assert modules - described == {"arguments", "plots", "precision"}


FAMILY = ("recurrent", "positions", "transformer", "cached", "sparse", "linear")
OF_A_PAPER = [
    name
    for name in NAMES
    if find(name).__module__.split(".")[1] in FAMILY and name != "attention.QKSequential"
]


@pytest.mark.parametrize("name", OF_A_PAPER)
def test_what_comes_from_a_paper_names_it(name):
    assert section(name, "Source")


def called(name):
    """What takes the tensors: the function itself, or the `forward` that the class brings."""
    documented = find(name)
    return documented if inspect.isroutine(documented) else vars(documented).get("forward")


def is_tensor(annotation):
    parts = typing.get_args(annotation) or (annotation,)
    return any(isinstance(part, type) and issubclass(part, AbstractArray) for part in parts)


@pytest.mark.parametrize("name", [name for name in NAMES if called(name)])
def test_it_says_the_shape_of_every_tensor(name):
    text = inspect.getdoc(called(name))
    takes = inspect.signature(called(name)).parameters.values()
    for tensor in [each.name for each in takes if is_tensor(each.annotation)]:
        # The axes in brackets, or what takes the same: in an entry, or in a sentence.
        entry = re.search(rf"^ +{tensor}: ((?:.|\n {{8}})*)", text, re.M)
        description = entry[1] if entry else text.partition(tensor)[2]
        shaped = re.search(r"\(.*[,\d].*\)|\bas `|as (in|for) `|any shape", description[:400], re.S)
        assert shaped, f"{tensor}: {description}"


@pytest.mark.parametrize("name", NAMES)
def test_its_example_stands_alone(name):
    examples = doctest.DocTestParser().get_examples(section(name, "Example"))
    assert any(example.want for example in examples)
    nodes = list(ast.walk(ast.parse("".join(example.source for example in examples))))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    made = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    made |= {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
    assert {node.id for node in names} <= made | set(dir(builtins))
