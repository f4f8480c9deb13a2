"""Train the models of recall again, and store what they reach.

`python -m attention.trained.recall [MECHANISM …] [--processes 2] [--dry-run]` trains some of them
or all; `make train` trains all of them along with the other tasks.

`python -m attention.trained.recall --fair [--processes 16] [--to PATH]` makes the fair comparison,
which takes about two hours of one processor's time; what the file holds already is not trained
again.
"""

import argparse
from pathlib import Path

from attention.trained.recall import fair
from attention.trained.recall.mechanisms import MECHANISMS, require_mechanism
from attention.trained.recall.table import train_table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mechanisms", nargs="*", help="all of them unless named")
    parser.add_argument("--processes", type=int, default=2, help="how many at a time")
    parser.add_argument("--dry-run", action="store_true", help="print, and store nothing")
    parser.add_argument("--fair", action="store_true", help="search every rate, train stacks")
    parser.add_argument("--to", type=Path, default=fair.STORED, help="where --fair writes")
    parser.add_argument("--steps", type=int, default=fair.STEPS, help="batches, with --fair")
    options = parser.parse_args()
    if options.fair:
        fair.compare(options.to, processes=options.processes, steps=options.steps)
        return
    for name in options.mechanisms:
        require_mechanism(name)
    mechanisms = options.mechanisms or list(MECHANISMS)
    train_table(mechanisms, processes=options.processes, dry_run=options.dry_run)


if __name__ == "__main__":
    main()
