"""Train every model again, print what each seed reaches, and store one of each: `make train`.

The tasks are the folders beside this file. `python -m attention.trained dates recall` trains the
models of two of them.
"""

import argparse

import torch

from attention.trained.task import find_tasks, train_all


def main() -> None:
    tasks = find_tasks()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"of {', '.join(tasks)}; or all")
    parser.add_argument("--dry-run", action="store_true", help="print, and store nothing")
    options = parser.parse_args()
    if unknown := [name for name in options.tasks if name not in tasks]:
        parser.error(f"there is no task {unknown[0]!r}; it can be one of: {', '.join(tasks)}")
    torch.set_num_threads(1)  # the tensors are small
    for name in options.tasks or tasks:
        print(f"\n{name}", flush=True)
        train_all(tasks[name], dry_run=options.dry_run)


if __name__ == "__main__":
    main()
