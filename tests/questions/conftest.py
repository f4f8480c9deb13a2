"""The bank, read once."""

import pytest

from assignments.questions.bank import load_bank


@pytest.fixture(scope="session")
def bank():
    return load_bank()


@pytest.fixture(scope="session")
def questions(bank):
    return [question for chapter in bank for question in chapter.questions]
