"""The line of counts at the end of `make test` can be trusted."""

import pytest

from tools.check import count


@pytest.mark.parametrize(
    ("status", "output", "counts"),
    [
        (0, "....\n12 passed in 3.41s\n", (12, 0, 0, 0)),
        (
            0,
            "== 12 passed, 2 skipped, 1 xfailed, 3 warnings in 63.41s (0:01:03) ==\n",
            (12, 0, 2, 0),
        ),
        (1, "= 2 failed, 10 passed, 1 error in 3.41s =\n", (10, 3, 0, 0)),
        (0, "11 passed, 1 rerun in 3.41s\n", (11, 0, 0, 1)),
        (5, "no tests ran in 0.01s\n", (0, 1, 0, 0)),
        (2, "ImportError while loading conftest\n", (0, 1, 0, 0)),
        (3, "12 passed in 3.41s\nINTERNALERROR\n", (12, 1, 0, 0)),
        (0, "All checks passed!\n", (1, 0, 0, 0)),
        (1, "Found 3 errors.\n", (0, 1, 0, 0)),
        (-9, "", (0, 1, 0, 0)),
    ],
)
def test_a_step_is_counted(status, output, counts):
    assert tuple(count(status, output).values()) == counts
