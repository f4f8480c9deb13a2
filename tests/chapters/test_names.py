"""The book has one name for one thing: the list of other names is `NAMES` of tools/prose.py."""

import pytest

from tools.prose import ROOT, misnamed, pages


@pytest.mark.parametrize(
    "page", [*pages(), ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.stem
)
def test_a_page_calls_things_by_the_names_of_the_book(page):
    told = [f"“{phrase}”: say “{word}”, in: {said}" for phrase, word, said in misnamed(page)]
    assert not told, "\n".join([page.name, *told])
