"""Exercises as learners write them pass, and what goes wrong in them is named."""

from functools import partial

import pytest

from tests.unit.checks.written import WRITTEN, Module

TRAINS = {"two_heads", "training_loop", "training_step"}  # each answer of these is dear
pytestmark = pytest.mark.usefixtures("as_a_reader")


@pytest.mark.parametrize(
    ("check", "written"), [pytest.param(*row[:2], id=row[1].__name__) for row in WRITTEN]
)
def test_it_passes_as_it_stands(check, written):
    for seed in (0, 1, 2):
        result = check(written, seed=seed)
        assert result.passed, result
        assert result.mistakes == ()
        assert repr(result).startswith(f"{check.__name__}: passed.\n")


@pytest.mark.parametrize(
    ("check", "written", "changes", "name"),
    [
        pytest.param(
            check,
            written,
            changes,
            name,
            id=f"{written.__name__}-{name}",
            marks=[pytest.mark.slow] * (written.__name__ in TRAINS),
        )
        for check, written, table in WRITTEN
        for name, changes in table.items()
    ],
)
def test_a_mistake_in_it_is_named(check, written, changes, name):
    wrong = partial(written, **changes)
    if written is Module:
        wrong = type("Changed", (Module,), changes)
    for seed in (0, 1):
        result = check(wrong, seed=seed)
        assert not result.passed
        assert result.mistakes == (name,), result
