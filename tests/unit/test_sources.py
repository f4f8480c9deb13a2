"""Every paper that a docstring names stands in the bibliography, under the year that it names."""

import re
from pathlib import Path

import pytest
from pybtex.database import parse_file

import attention

ENTRIES = parse_file(Path(__file__).resolve().parents[2] / "book" / "references.bib").entries
MODULES = sorted(Path(attention.__file__).parent.rglob("*.py"))
# "Dao 2023", "Peng et al. 2021", "Rahimi and Recht 2007", "Luong, Pham and Manning 2015"
PAPER = re.compile(
    r"\b([A-Z][\w-]+)(?: et al\.|(?:, [A-Z][\w-]+)* and [A-Z][\w-]+)? ((?:19|20)\d\d)\b"
)


def test_the_papers_that_docstrings_name_are_in_the_bibliography():
    named = set()
    for module in MODULES:
        named |= set(PAPER.findall(" ".join(module.read_text(encoding="utf-8").split())))
    listed = {
        (str(entry.persons["author"][0].rich_last_names[-1]), entry.fields["year"])
        for entry in ENTRIES.values()
    }
    assert ("Vaswani", "2017") in named
    missing = named - listed
    assert not missing


@pytest.mark.parametrize("key", ENTRIES)
def test_no_year_lies_before_the_first_version(key):
    year, number = (ENTRIES[key].fields.get(name, "") for name in ("year", "eprint"))
    assert number == "" or int("20" + number[:2]) <= int(year)
