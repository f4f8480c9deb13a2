"""The limit of a chapter's time grows on a slower machine, and not by more than it is slower."""

import pytest

from tests.chapters.limits import REFERENCE, SECONDS, allowed


@pytest.mark.parametrize("slowness", [1, 2, 4])
def test_twice_the_work_is_over_the_limit_on_every_machine(slowness):
    """What keeps within it on the reference machine does so on a slower one, and nothing more."""
    limit = allowed(SECONDS, slowness * REFERENCE)
    assert 0.9 * SECONDS * slowness < limit <= 1.1 * SECONDS * slowness


def test_a_quicker_machine_has_no_less_time():
    assert allowed(SECONDS, REFERENCE / 2) == SECONDS
