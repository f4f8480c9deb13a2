"""Gradescope: `submission/` in, `results/results.json` out.

    python -m assignments.autograders.gradescope /autograder

The contract is https://gradescope-autograders.readthedocs.io/en/latest/specs/. Students see the
points and the words of every test, as on the feedback page of `make grade`, and neither the hidden
tests nor what is printed here.
"""

import asyncio
import json
import sys
import tempfile
from pathlib import Path

from assignments.autograders.one import (
    COURSE,
    Outcome,
    grade_student,
    open_course,
    sandbox_mode,
)

VISIBILITY = "visible"  # or after_due_date, after_published: when students see what is in the file


def results(outcome: Outcome) -> dict:
    """What results.json holds; Gradescope adds the scores up."""
    return {
        "output": "\n".join(outcome.notes),
        "output_format": "text",  # what it quotes is a student's, and would be read as HTML
        "visibility": VISIBILITY,
        "stdout_visibility": "hidden",
        "tests": [
            {
                "name": row.task,
                "score": row.points,
                "max_score": row.out_of,
                "output": row.words,
            }
            for row in outcome.rows
        ],
    }


def main(folder: Path) -> None:
    """Where something other than the student's code fails there is no file: that is no zero."""
    with tempfile.TemporaryDirectory() as root:
        course = open_course(COURSE, Path(root))
        outcome = asyncio.run(grade_student(folder / "submission", course, sandbox_mode()))
    (folder / "results").mkdir(exist_ok=True)
    text = json.dumps(results(outcome), indent=2, ensure_ascii=False)
    (folder / "results" / "results.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
