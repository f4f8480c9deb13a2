"""Make what students get: their notebooks, without solutions and hidden tests, a zip each.

    python -m assignments.release 2027 [--for gradescope]

writes every assignment with the class's seed in it, the year where none is given, to
`_build/assignments/`. The same seed and the same commit make the same bytes. What nbgrader needs
for it lies in `_build/course/`, solutions included: hand out nothing from there.

With `--for` it writes an autograder for each, too, to `_build/autograders/`: these hold the hidden
tests, and are for the platform alone.
"""

import argparse
import re
import shutil
import sys
from datetime import date
from pathlib import Path

from assignments.autograders.bundle import PLATFORMS, write_bundle
from assignments.course import LARGEST_SEED, ROOT, SOURCE, make_course
from tools.zips import write_zip

BUILD = ROOT / "_build"


def release(target: Path, work: Path, seed: int, source: Path = SOURCE) -> tuple[list[Path], str]:
    """Write `name.ipynb` and `name.zip` for every assignment into the folder `target`.

    Returns:
        The zips, and the address that the notebooks install the package from, or "".
    """
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(target, ignore_errors=True)
    names, published = make_course(work, seed, source)
    target.mkdir(parents=True)
    zips = []
    for name in names:
        notebook = (work / "release" / name / f"{name}.ipynb").read_bytes()
        (target / f"{name}.ipynb").write_bytes(notebook)
        zips.append(target / f"{name}.zip")
        write_zip(zips[-1], {f"{name}.ipynb": notebook})
    return zips, published


def autograders(platform: str, names: list[str]) -> list[Path]:
    """Write the autograders of a class that was released. Returns the zips."""
    target = BUILD / "autograders" / platform
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    return [write_bundle(platform, name, BUILD / "course", target) for name in names]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m assignments.release")
    parser.add_argument("seed", nargs="?", default=str(date.today().year), help="the class's own")
    parser.add_argument("--for", dest="platform", choices=PLATFORMS, help="an autograder for each")
    given = parser.parse_args(arguments)
    if not re.fullmatch(r"[0-9]{1,19}", given.seed) or not 1 <= int(given.seed) <= LARGEST_SEED:
        print(
            f"CLASS_SEED={given.seed} is no number from 1 to {LARGEST_SEED}: "
            "make assignments CLASS_SEED=2027"
        )
        return 2
    seed = int(given.seed)
    zips, published = release(BUILD / "assignments", BUILD / "course", seed)
    if given.platform:
        try:
            zips += autograders(given.platform, [path.stem for path in zips])
        except ValueError as error:
            print(error)
            return 2
    for path in zips:
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1e3:.0f} kB")
    print(f"The class's seed is {seed}; `make grade` finds it again in what comes back.")
    if published:
        print(f"In Colab they install the package from {published}.")
    else:
        print(
            "No repository on GitHub is known here, so that they run only where `attention` is "
            "installed: set GITHUB_REPOSITORY=you/your-fork, or release from a clone of it."
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
