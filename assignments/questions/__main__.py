"""Write the question bank in three formats to dist/questions (`make questions`)."""

import sys
from pathlib import Path

from assignments.questions.bank import load_bank, stale_quotes
from assignments.questions.canvas import canvas_zip
from assignments.questions.moodle import moodle_xml
from assignments.questions.qti21 import qti21_zip

ROOT = Path(__file__).resolve().parents[2]
FORMATS = {"moodle.xml": moodle_xml, "qti21.zip": qti21_zip, "canvas-qti.zip": canvas_zip}


def main() -> None:
    if stale := stale_quotes():
        sys.exit("\n".join(stale))
    chapters = load_bank()
    target = ROOT / "dist" / "questions"
    target.mkdir(parents=True, exist_ok=True)
    for name, write in FORMATS.items():
        (target / name).write_bytes(write(chapters))
        size = (target / name).stat().st_size / 1e3
        print(f"{(target / name).relative_to(ROOT)}: {size:.0f} kB")
    count = sum(len(chapter.questions) for chapter in chapters)
    print(f"{count} questions on {len(chapters)} chapters. Their answers are public, in the book.")


if __name__ == "__main__":
    main()
