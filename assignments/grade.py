"""Grade a class: a folder of notebooks goes in, feedback pages and one CSV come out.

    python -m assignments.grade submissions [--assignment 1-projection] [--roster export.csv]

writes to `_build/grades/`: `grades.csv`, a row for every file; `grades-canvas.csv` and
`grades-moodle.csv`, which these import; `feedback/`, a page for every graded notebook; and
nbgrader's own `gradebook.db`, `submitted/` and `autograded/`, on which its formgrader
opens for what is graded by hand. Marks that were given there stay when this is run again.

A submission goes through intake, repair, sandbox, gradebook and report, in this order. Each
notebook runs in a kernel of its own, as many at a time as there are cores, and can do there what
sandbox/kernel.py says.
"""

import argparse
import asyncio
import os
import resource
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic

import nbformat
from nbformat import NotebookNode

from assignments import gradebook, report
from assignments.course import ROOT, SOURCE, make_course, title
from assignments.errors import GradingError
from assignments.intake.notebooks import Submission, class_seed, identify, take_in
from assignments.lms.account import Mark
from assignments.lms.files import write_marks
from assignments.lms.roster import WORKSHEET, Roster, read_roster
from assignments.repair import repair
from assignments.sandbox import landlock, seccomp, template
from assignments.sandbox.run import run

GRADES = ROOT / "_build" / "grades"
ASIDE = ThreadPoolExecutor(1)  # for one thing at a time: the gradebook is one file


def grade(
    folder: Path,
    root: Path = GRADES,
    *,
    only: str | None = None,
    seed: int | None = None,
    roster: Roster | None = None,
    mode: str = "full",
    source: Path = SOURCE,
) -> list[dict[str, str]]:
    """Grade what lies in a folder or a zip. Returns the rows of the CSV.

    root: the folder that is written to.
    only: the one assignment that is graded; the others are recognised, and left.
    seed: the class's, where it is not the one of most notebooks.
    roster: the class as the LMS exports it, to which the marks are to go.
    """
    submissions = take_in(folder)
    root.mkdir(parents=True, exist_ok=True)
    names, _ = make_course(root, class_seed(submissions) if seed is None else seed, source)
    if only and only not in names:
        raise GradingError(f"there is no assignment {only}; there are {', '.join(names)}")
    gradebook.write_settings(root)
    releases = {
        name: nbformat.read(root / "release" / name / f"{name}.ipynb", as_version=4)
        for name in names
    }
    submissions = identify(submissions, releases, only)
    marks = asyncio.run(grade_all(submissions, root, releases, mode))
    marks.sort(key=lambda mark: [mark.row[key] for key in ("student", "assignment", "file")])
    rows = [mark.row for mark in marks]
    report.write_csv(rows, root / "grades.csv")
    handed_in = {only} if only else {mark.submission.assignment for mark in marks}
    titles = {name: title(releases[name]) for name in names if name in handed_in}
    report.tell(*write_marks(marks, titles, roster, root))
    return rows


async def grade_all(
    submissions: list[Submission], root: Path, releases: dict[str, NotebookNode], mode: str
) -> list[Mark]:
    """Grade side by side, and print a line for each when it is done."""
    cores = asyncio.Semaphore(os.cpu_count() or 1)
    done = 0

    async def one(submission: Submission) -> Mark:
        nonlocal done
        results = {}
        async with cores:
            if submission.notebook:
                try:
                    release = releases[submission.assignment]
                    notebook = await grade_one(submission, root, release, mode)
                    results = await aside(report.results_of, submission, release, root)
                    await aside(report.write_page, submission, notebook, release, results, root)
                except Exception as error:  # the others are graded all the same
                    report.tell(*traceback.format_exc().splitlines(), to=sys.stderr)
                    why = report.on_one_line(f"{type(error).__name__}: {error}")
                    submission.remarks.append(
                        f"its grading did not come to its end, look at it by hand ({why})"
                    )
        row = await aside(report.row_of, submission, root)
        done += 1
        result = f"{row['points']} of {row['out_of']}" if submission.graded else "not graded"
        reason = f" ({submission.reason})" if submission.remarks else ""
        report.tell(f"[{done}/{len(submissions)}] {submission.file.name}: {result}{reason}")
        return Mark(submission, row, report.comment(submission, results))

    try:
        return await asyncio.gather(*map(one, submissions))
    finally:
        template.end_all()


async def grade_one(
    submission: Submission, root: Path, release: NotebookNode, mode: str
) -> NotebookNode:
    """Grade a notebook: its marks are in the gradebook afterwards. Returns it as it is kept."""
    again = await aside(gradebook.register, submission, root)
    submission.remarks += repair(submission.notebook, release)
    notebook = await aside(gradebook.with_hidden_tests, submission, root)
    submission.remarks += await run(notebook, mode)
    submission.remarks += report.unlike_setup(notebook, release) + report.raised(notebook)
    submission.feedback = report.failed(notebook)
    return await aside(gradebook.keep_marks, submission, notebook, root, again)


def aside(function: Callable, *arguments: object) -> Awaitable:
    """Do what can take seconds while the loop goes on timing the kernels of the others."""
    return asyncio.get_running_loop().run_in_executor(ASIDE, function, *arguments)


def require_sandbox(mode: str) -> str:
    """The mode of the kernels. Raises GradingError where this system cannot keep it."""
    if mode == "limits":
        print("Sandbox: limits alone. Students' code can read and write what you can.")
    elif landlock.version() and seccomp.available():
        print(f"Sandbox: limits, Landlock {landlock.version()}, seccomp.")
    else:
        raise GradingError(
            "This system has no Landlock (Linux 5.13 or later has it, on x86-64 and Arm "
            "processors), so students' code could read and write whatever you can. Grade in a "
            "container on Linux; or, if you trust the code, say so: make grade SANDBOX=limits …"
        )
    return mode


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m assignments.grade")
    parser.add_argument("submissions", type=Path, help="a folder or a zip of notebooks")
    parser.add_argument("--assignment", help="grade this one alone")
    parser.add_argument("--seed", type=int, help="the class's, if it is not in the notebooks")
    parser.add_argument("--roster", type=Path, help="the class, as Canvas or Moodle exports it")
    parser.add_argument("--sandbox", choices=["full", "limits"], default="full")
    given = parser.parse_args(arguments)
    start = monotonic()
    sys.stdout.reconfigure(errors="backslashreplace")  # a name may hold what cannot be printed
    warnings.filterwarnings("ignore", module="nbgrader")  # of its database's library, not of ours
    try:
        if not given.submissions.exists():
            raise GradingError(f"there is no {given.submissions}")
        roster = read_roster(given.roster) if given.roster else None
        if roster and roster.format is WORKSHEET and not given.assignment:
            raise GradingError(
                f"{roster.name} is {WORKSHEET.told}, which is for one assignment. Say for which: "
                "make grade ASSIGNMENT=1-projection …"
            )
        rows = grade(
            given.submissions.resolve(),
            only=given.assignment,
            seed=given.seed,
            roster=roster,
            mode=require_sandbox(given.sandbox),
        )
    except GradingError as error:
        print(error)
        return 2
    counts = Counter(row["status"] for row in rows)
    print(", ".join(f"{number} {status}" for status, number in counts.items()) or "no files")
    print(f"{monotonic() - start:.0f} s; {peak_memory()}")
    print(f"{(GRADES / 'grades.csv').relative_to(ROOT)} and the pages in feedback/ beside it")
    return 0


def peak_memory() -> str:
    unit = 2**20 if sys.platform == "darwin" else 2**10  # of ru_maxrss: bytes on a Mac
    here, kernels = (
        resource.getrusage(who).ru_maxrss / unit
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return f"at most {here:.0f} MB here and {kernels:.0f} MB in a kernel"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
