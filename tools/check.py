"""Run checks, all of them even if one fails, and end with one line of counts.

    python -m tools.check                     what a person waits for: `make test`
    python -m tools.check unit lint           these two steps
    python -m tools.check ci                  every step once: `.ci/run`
    python -m tools.check everything          every step, in every way: before a release
    python -m tools.check everything pages    this step, in every way

Once means that of a test with many rows, such as the pages, some are run: conftest.py.
"""

import os
import re
import subprocess
import sys
import time
from glob import glob
from math import inf
from pathlib import Path

from tools import touched
from tools.chromium import find_chromium

ROOT = Path(__file__).resolve().parents[1]
CODE = ["src", "tests", "tools", "benchmarks", "assignments", "book"]
WORKFLOWS = sorted(glob(".github/workflows/*.yml", root_dir=ROOT))
ACTIONS = sorted(glob(".github/actions/*/action.yml", root_dir=ROOT))


def python(*arguments: str) -> list[str]:
    return [sys.executable, "-m", *arguments]


def script(name: str, *arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name(name)), *arguments]


# The processor time of a container in each period: "200000 100000" is two cores, "max 100000" all.
CONTAINER = Path("/sys/fs/cgroup/cpu.max")


def cores(container: Path = CONTAINER) -> int:
    """As many as this process may use, which `taskset` or a container can make fewer."""
    on_linux = hasattr(os, "sched_getaffinity")
    count = len(os.sched_getaffinity(0)) if on_linux else os.cpu_count() or 1
    quota, period = container.read_text("ascii").split() if container.exists() else ("max", "")
    return count if quota == "max" else max(1, min(count, int(quota) // int(period)))


# As many workers as `main` tells pytest-xdist. Each begins with a run of neighbours, which share
# what is made for them, and takes from the others when it has none left.
ALL_CORES = ["-q", "-n", "auto", "--dist", "worksteal", "--sampled"]
# A machine that stalls for a moment fails a test that waits for a browser, a server or a kernel: it
# is tried once more. The summary counts it as rerun, and the step's output names it.
ONCE_MORE = ["--reruns", "1", "-raR"]


def notebooks(chapters: list[Path]) -> list[str]:
    names = (str(chapter.relative_to(ROOT)) for chapter in chapters)
    return python("pytest", "--nbval", *names, *ALL_CORES, "--dist", "loadfile")


STEPS = {
    "lint": python("ruff", "check", *CODE),
    "format": python("ruff", "format", "--check", *CODE),
    "imports": python("deptry", *CODE),
    "js-lint": script("deno", "lint", "--quiet"),  # deno.json says which files, and the rules
    "js-format": script("deno", "fmt", "--check", "--quiet"),
    "workflows": python(
        "check_jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS
    ),
    "actions": python("check_jsonschema", "--builtin-schema", "vendor.github-actions", *ACTIONS),
    "zizmor": script("zizmor", "--offline", "--no-progress", ".github"),
    "dependabot": python(
        "check_jsonschema", "--builtin-schema", "vendor.dependabot", ".github/dependabot.yml"
    ),
    "citation": python(
        "check_jsonschema", "--builtin-schema", "vendor.citation-file-format", "CITATION.cff"
    ),
    "unit": python(
        *("pytest", "tests/unit", "tests/tools", "tests/questions", "-m", "not slow"),
        *("--doctest-modules", "src/attention", "--ignore=src/attention/explore", *ALL_CORES),
    ),
    "chapters": python("pytest", "tests/chapters", "-m", "not slow", *ALL_CORES),
    "notebooks": notebooks(touched.CHAPTERS),
    "book": ["make", "--no-print-directory", "book", "--assume-new=_config.yml"],
    "site": python("pytest", "tests/site", "-m", "not builds and not slow", *ALL_CORES, *ONCE_MORE),
    "slow": python("pytest", "tests", "--ignore=tests/site", "-m", "slow", *ALL_CORES, *ONCE_MORE),
    "pages": python("pytest", "tests/site", "-m", "slow", *ALL_CORES, *ONCE_MORE),
    "builds": python("pytest", "tests/site", "-m", "builds", *ALL_CORES, *ONCE_MORE),
    "clients": python("pytest", "tests/clients", *ALL_CORES, *ONCE_MORE),
    # what one worker has graded the next test of its group needs: conftest.py
    "assignments": python(
        "pytest", "tests/assignments", *ALL_CORES, "--dist", "loadgroup", *ONCE_MORE
    ),
}
# Take minutes: one trains from nothing, one tries every page in every way, one builds the book for
# a fork and offline, one fills an environment of its own and starts servers, one grades a class.
SLOW = ("slow", "pages", "builds", "clients", "assignments")

# How long all steps may take on two quiet cores, in minutes; installing comes before, with two.
CLOCK = {"test": 4, "ci": 23}

OUTCOMES = ("passed", "failed", "skipped", "rerun")


def main(wanted: list[str]) -> int:
    environment = {"PYTEST_XDIST_AUTO_NUM_WORKERS": str(cores())} | os.environ
    environment |= {"PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}
    totals = dict.fromkeys(OUTCOMES, 0)
    reports, left = [], []
    whole, named = "everything" in wanted, [name for name in wanted if name in STEPS]
    if unknown := set(wanted) - STEPS.keys() - {"ci", "everything"}:
        print(f"no step is called {', '.join(unknown)}; there are {', '.join(STEPS)}")
        return 2
    steps = dict(STEPS)
    if not wanted:
        steps = {name: command for name, command in STEPS.items() if name not in SLOW}
        chapters = touched.touched(touched.changed())
        steps["notebooks"] = notebooks(chapters)
        untouched = len(touched.CHAPTERS) - len(chapters)
        left = [*SLOW, *([f"notebooks of {untouched} chapters"] if untouched else [])]
        if not chapters:
            del steps["notebooks"]
    began = time.monotonic()
    for name in named or steps:
        command = [part for part in steps[name] if part != "--sampled" or not whole]
        print(f"\n== {name}: {' '.join(command[1:])}", flush=True)
        start = time.monotonic()
        if name in ("site", "pages", "builds", "clients"):
            try:
                environment["CHROMIUM"] = find_chromium()
            except RuntimeError as error:
                print(error)
        status, output = run(command, environment)
        counts = count(status, output)
        for outcome, number in counts.items():
            totals[outcome] += number
        tally = ", ".join(f"{number} {outcome}" for outcome, number in counts.items() if number)
        reports.append((counts["failed"], f"{name}: {tally} in {time.monotonic() - start:.0f} s"))
        if rows := re.findall(r"^(\d+) tests left to `make everything`", output, re.MULTILINE):
            left.append(f"{rows[-1]} rows of {name}")

    print("\n== summary")
    for failed, report in reports:
        print("FAILED" if failed else "ok    ", report)
    if left:
        print(f"left to `make everything`: {', '.join(left)}")
    minutes, most = (time.monotonic() - began) / 60, CLOCK.get(" ".join(wanted) or "test", inf)
    if minutes > most:
        print(f"over the clock: {minutes:.0f} min, of {most} on two quiet cores (CONTRIBUTING.md)")
    skipped = f", {totals['skipped']} skipped" if totals["skipped"] else ""
    print(f"{totals['passed']} passed, {totals['failed']} failed{skipped}", flush=True)
    return 1 if totals["failed"] else 0


def run(command: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Run a step, showing what it prints while it prints it."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    lines = []
    for line in process.stdout:
        print(line, end="", flush=True)
        lines.append(line)
    return process.wait(), "".join(lines)


def count(status: int, output: str) -> dict[str, int]:
    """What a step passed and failed: pytest's last line, or one for any other command."""
    counts = dict.fromkeys(OUTCOMES, 0)
    endings = re.findall(r"^=* ?(\d+ \w+(?:, \d+ \w+)*) in [\d.]+s", output, re.MULTILINE)
    if endings:
        for number, outcome in re.findall(r"(\d+) (\w+)", endings[-1]):
            outcome = "failed" if outcome.startswith("error") else outcome
            if outcome in counts:
                counts[outcome] += int(number)
    elif status == 0:
        counts["passed"] = 1
    if status != 0:
        # A step that broke before it could count, or that found no test, has failed.
        counts["failed"] = max(counts["failed"], 1)
    return counts


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
