"""One version: of the package, of what is cited, and of what the changelog tells last."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def test_the_package_the_citation_and_the_changelog_have_one_version():
    package = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    newest = re.search(r"\b\d+\.\d+\.\d+\b(?!/)", changelog)[0]
    assert package == citation == newest


def test_the_changelog_is_newest_first_in_the_groups_of_keep_a_changelog():
    lines = (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines()
    versions = [line for line in lines if line.startswith("## ")]
    dated = [re.fullmatch(r"## (\d+\.\d+\.\d+) - (\d{4}-\d\d-\d\d)", line) for line in versions]
    released = [version[2] for version in dated if version]
    assert [line for line, version in zip(versions, dated, strict=True) if not version] in (
        [],
        ["## Unreleased"],
    )
    assert released == sorted(released, reverse=True)
    groups = {line for line in lines if line.startswith("### ")}
    known = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
    assert groups and groups <= {f"### {group}" for group in known}
