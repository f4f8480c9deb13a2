"""Classroom 50: the checkout that it is started in in, `result.json` and `release-body.md` out.

    python -m assignments.autograders.classroom50

The contract is https://github.com/foundation50/classroom50/wiki/Advanced-Autograding. The body is
what students see; without one Classroom 50 lists points alone. The owner, the kind of assignment
and the time of the submission are Classroom 50's to write.
"""

import asyncio
import json
import os
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from textwrap import indent

from assignments.autograders.one import (
    COURSE,
    Outcome,
    grade_student,
    open_course,
    sandbox_mode,
)


def result(outcome: Outcome, environment: Mapping[str, str]) -> dict:
    """What result.json holds. `message` is our own field, which Classroom 50 keeps."""
    tests = [
        {
            "test-name": row.task,
            "passed": row.points == row.out_of,
            "score": int(row.points),
            "max-score": int(row.out_of),
            "message": row.words,
        }
        for row in outcome.rows
    ]
    return {
        "schema": "classroom50/result/v1",
        "classroom": environment["CLASSROOM"],
        "assignment": environment["ASSIGNMENT"],
        "submission": environment["SUBMISSION_TAG"],
        "commit": environment["COMMIT_URL"],
        "release": environment["RELEASE_URL"],
        "review": environment.get("REVIEW_URL") or environment["COMMIT_URL"],
        "datetime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "score": sum(test["score"] for test in tests),
        "max-score": sum(test["max-score"] for test in tests),
        "tests": tests,
    }


def body(outcome: Outcome) -> str:
    """The points and the words as Markdown. Words are indented: what they quote is a student's."""
    points, out_of = (sum(getattr(r, n) for r in outcome.rows) for n in ("points", "out_of"))
    parts = [f"### {points:g} of {out_of:g} points", "| Task | Points |\n|:--|:--|\n"]
    parts[-1] += "\n".join(f"| {r.task} | {r.points:g} of {r.out_of:g} |" for r in outcome.rows)
    for row in outcome.rows:
        if row.words:
            parts += [f"#### {row.task}", indent(row.words, "    ")]
    if outcome.notes:
        parts += ["#### About what you handed in", indent("\n".join(outcome.notes), "    ")]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Where something other than the student's code fails this fails, too: that is no zero."""
    with tempfile.TemporaryDirectory() as root:
        course = open_course(COURSE, Path(root))
        outcome = asyncio.run(grade_student(Path.cwd(), course, sandbox_mode()))
    text = json.dumps(result(outcome, os.environ), indent=2)
    Path("release-body.md").write_text(body(outcome), "utf-8")
    Path("result.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
