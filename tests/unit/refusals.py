"""One test for every call that is refused."""

import re
from collections.abc import Callable, Mapping, Sequence

import pytest


def refusals(cases: Mapping[str, tuple] | Sequence[tuple], *, whole: bool = False) -> Callable:
    """A test that each call is refused as a reader sees it, and told why.

    cases: (call, error, message) for each, or (call, message) where it is a ValueError; by a name,
        or in a list, where the messages are the names.
    whole: whether the messages say all that the error says, and not how it begins.
    """
    if isinstance(cases, Mapping):
        names, cases = list(cases), list(cases.values())
    else:
        names = [message for *_, message in cases]

    @pytest.mark.usefixtures("as_a_reader")
    @pytest.mark.parametrize("case", cases, ids=names)
    def test(case):
        call, *error, message = case
        with pytest.raises(*error or [ValueError], match=f"^{re.escape(message)}{'$' * whole}"):
            call()

    return test
