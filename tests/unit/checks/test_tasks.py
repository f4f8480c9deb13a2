"""The words in which a test of one's own ends."""

import pytest
import torch

from attention import checks
from attention.checks import NotYet, tasks
from attention.checks.tasks import ask, call, expect, not_yet

X = torch.tensor([[1.0, 2.0], [3.0, 4.0]])


def test_an_assignment_finds_every_check_in_it():
    wanted = {name for name in checks.__all__ if name.startswith("check_")}
    assert wanted == {name for name in tasks.__all__ if name.startswith("check_")}
    assert all(getattr(tasks, name) is getattr(checks, name) for name in wanted)


def test_a_test_ends_in_its_own_words():
    with pytest.raises(NotYet, match="my_mask: not yet") as raised:
        not_yet("my_mask", "The last row still sees padding.")
    assert "still sees padding" in str(raised.value)


def test_a_call_returns_or_tells_the_error():
    assert call("count", lambda a, b: a + b, 2, b=3) == 5
    with pytest.raises(NotYet, match="ZeroDivisionError"):
        call("count", lambda a: 1 / a, 0)

    def unwritten():
        raise NotImplementedError

    with pytest.raises(NotYet, match="still to be written"):
        call("count", unwritten)


def test_what_is_asked_for_is_a_tensor():
    def turned(x):
        return x.T

    assert ask(turned, x=X).tolist() == X.T.tolist()

    def nothing(x):
        pass

    with pytest.raises(NotYet, match="None came back"):
        ask(nothing, x=X)

    def broken(x):
        return x.view(3, 3)

    with pytest.raises(NotYet, match="RuntimeError"):
        ask(broken, x=X)


def test_a_mistake_is_named_and_a_right_answer_passes():
    mistakes = [(X.T, "Rows and columns have changed places.", "Leave out `.T`.")]
    inputs = {"right": 2 * X, "mistakes": mistakes, "axes": "row column", "x": X}
    assert expect("double", lambda x: x + x, **inputs) is None
    with pytest.raises(NotYet, match="changed places"):
        expect("double", lambda x: x.T, **inputs)
    with pytest.raises(NotYet, match="first entry of your result that differs") as raised:
        expect("double", lambda x: 3 * x, **inputs)
    assert "changed places" not in str(raised.value)


def test_the_way_out_of_an_error_is_told():
    errors = [("expected m1 and m2", "Unused."), ("NoneType", "b may be None.")]
    inputs = {"right": 2 * X, "mistakes": [], "axes": "row column", "x": X, "b": None}
    with pytest.raises(NotYet, match="b may be None") as raised:
        expect("double", lambda x, b: x + b, errors=errors, **inputs)
    assert "Unused" not in str(raised.value)
    assert expect("double", lambda x, b: x + x, errors=errors, **inputs) is None
