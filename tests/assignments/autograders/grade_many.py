"""Run in a bundle, by its Python: grade many submissions, and print what each platform is told.

python -P grade_many.py folder, in which every folder is a submission
"""

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path

import assignments
from assignments.autograders import classroom50, gradescope
from assignments.autograders.one import COURSE, grade_student, open_course, sandbox_mode


async def grade_all(folders: list[Path], root: Path) -> dict[str, dict]:
    course, mode = open_course(COURSE, root), sandbox_mode()
    cores = asyncio.Semaphore(os.cpu_count() or 1)

    async def one(folder: Path) -> dict:
        async with cores:
            outcome = await grade_student(folder, course, mode, folder.name)
        return {
            "gradescope": gradescope.results(outcome),
            "classroom50": classroom50.result(outcome, os.environ),
            "body": classroom50.body(outcome),
        }

    results = await asyncio.gather(*map(one, folders))
    return {folder.name: each for folder, each in zip(folders, results, strict=True)}


with tempfile.TemporaryDirectory() as root:
    results = asyncio.run(grade_all(sorted(Path(sys.argv[1]).iterdir()), Path(root)))
print(json.dumps({"code": assignments.__file__, "results": results}))
