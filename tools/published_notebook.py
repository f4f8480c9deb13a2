"""How a notebook is made to run by itself: it learns where its package can be installed from."""

from __future__ import annotations

import json

from tools.repository import Repository

EMPTY = 'PUBLISHED = ""\n'


def published_notebook(text: str, repository: Repository) -> str:
    """The notebook with the repository and its commit in the line of the setup cell that asks for
    them.

    Args:
        text: the notebook's JSON. Nothing else in it changes.
        repository: where the notebook's package can be installed from.

    Raises:
        ValueError: the line `PUBLISHED = ""` is not in the notebook exactly once.
    """
    empty = json.dumps(EMPTY)
    if (times := text.count(empty)) != 1:
        raise ValueError(
            f"a notebook has the line {EMPTY.strip()} once, in the setup cell, and this one has it "
            f"{times} times. Copy the cell from another chapter."
        )
    return text.replace(empty, json.dumps(f'PUBLISHED = "{repository.url}@{repository.commit}"\n'))
