'''A bank of mistakes: functions that go wrong as people do, each with the words that name it.

A mistake is a row of the TOML file beside its check, such as `splitting.toml`:

    [tokens_cut]
    code = """
    batch, seq, d_model = x.shape
    return x.reshape(batch, n_heads, seq // n_heads, d_model)"""
    why = "The tokens are shared out among the heads instead of the columns."
    way_out = "Cut the last axis: {EITHER_WAY}."

`code` is what a learner would write: an expression, or lines with their own `return`. It gets the
arguments of the right function and finds all other names in the check's module. A text above the
first row is shared, and `{EITHER_WAY}` inserts it, so a literal brace is written twice. Where a
number of the learner's own result convinces, `evidence` says it. It is a sentence with expressions
of `yours`, `right` and `inputs` in braces, or the name of a function of the module that makes one.
'''

import inspect
import re
import textwrap
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

# What a function returned (output, and weights where there are any), what the right one returns,
# and the inputs by name -> one sentence.
Evidence = Callable[[tuple[Tensor, ...], tuple[Tensor, ...], dict[str, Any]], str]

ROW = re.compile(r"^\[(\w+)\]", re.MULTILINE)
KEYS = ["code", "why", "way_out", "evidence"]  # the last where there is any
RETURN = re.compile(r"^\s*return\b", re.MULTILINE)


@dataclass(frozen=True)
class Mistake:
    """A function that is wrong, why it is wrong, the way out, and a sentence with numbers."""

    name: str
    function: Callable
    why: str
    way_out: str
    evidence: Evidence | None = None

    def __call__(self, *inputs):
        return self.function(*inputs)


class Bank(list):
    """The mistakes that one check knows."""

    def named(self, name: str) -> Mistake:
        return next(mistake for mistake in self if mistake.name == name)

    @classmethod
    def read(
        cls, check: str, right: Callable, names: dict, made: Callable = lambda function: function
    ) -> "Bank":
        """Read the rows of a check.

        check: the `__file__` of the check, beside which the rows are.
        right: the right function, whose arguments the code of a row gets.
        names: the `globals()` of the check, in which a row finds other names.
        made: makes what is compared of the function that a learner would write.
        """
        path = Path(check).with_suffix(".toml")
        text, at, shared, bank = path.read_text("utf-8"), path.name, {}, cls()
        places = {found[1]: found.start() for found in ROW.finditer(text)}
        arguments = arguments_of(right)

        def mistake(name: str, row: dict[str, str]) -> Mistake:
            if list(row) not in (KEYS, KEYS[:-1]):
                raise ValueError(f"has {', '.join(row)}; due are {', '.join(KEYS)} in this order")
            code = row["code"].strip("\n")
            # A traceback shows the lines of the code as they are in the file.
            above = text.count("\n", 0, text.find(code.split("\n")[0], places[name]))
            body = textwrap.indent(code if RETURN.search(code) else f"return {code}", "    ")
            source = "\n" * (above - 1) + f"def {name}({arguments}):\n{body}"
            exec(compile(source, str(path), "exec"), names, functions := {})
            why, way_out = row["why"].format_map(shared), row["way_out"].format_map(shared)
            evidence = evidence_of(row["evidence"], names) if "evidence" in row else None
            return Mistake(name, made(functions[name]), why, way_out, evidence)

        try:
            for name, row in tomllib.loads(text).items():
                at = f"{path.name}, [{name}]"
                if isinstance(row, str):
                    shared[name] = row.format_map(shared)
                else:
                    bank.append(mistake(name, row))
        except Exception as error:
            raise ValueError(f"{at}: {type(error).__name__}: {error}") from error
        return bank


def arguments_of(right: Callable) -> str:
    """The arguments that a check passes, with their defaults and without types."""
    parameters = inspect.signature(right).parameters.values()
    passed = [each for each in parameters if each.kind is not each.KEYWORD_ONLY]
    return ", ".join(
        each.name if each.default is each.empty else f"{each.name}={each.default!r}"
        for each in passed
    )


def evidence_of(said: str, names: dict) -> Evidence:
    """What a row says of the learner's numbers: a function of the check, or an f-string."""
    if said.isidentifier():
        return names[said]
    return eval(f"lambda yours, right, inputs: rf'''{said}'''", names)
