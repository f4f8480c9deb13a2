"""What a run of a chapter may take, in time and in memory."""

import re
import subprocess
import sys
from pathlib import Path

import psutil

# Readers run a chapter on two cores, and in half of the 2 GB that Binder gives. From the eighth on
# chapters train something. The seconds are those of a machine that takes REFERENCE for PIECE, which
# is work of the kind that chapters do; a slower one has more of them.
SECONDS, SECONDS_TO_TRAIN = 30, 60
MEMORY = 10**9
MEMORY_OF_A_MODEL = 15 * 10**8  # chapters that open a published model, 540 MB in float32
PIECE = """
import time, torch
from attention.trained.who_and_whom import train
torch.set_num_threads(1)
train(8, 2, seed=0, steps=10)  # what only the first step takes is no measure
start = time.process_time()
train(8, 2, seed=0, steps=300)
print(time.process_time() - start)
"""
REFERENCE = 3.5  # seconds of the processor, idle, the second of three: 3.2, 3.5, 3.7


class Taken:
    """What the kernel of a run has taken; `look` is called after every cell."""

    memory = seconds = 0.0

    def look(self, client) -> None:
        kernel = client.km.provisioner.pid
        self.memory = peak_memory(kernel)
        # Of the processor, which is what it takes on a machine that does nothing else.
        self.seconds = sum(psutil.Process(kernel).cpu_times()[:2])

    def told(self, path: Path) -> str:
        return f"{self.memory / 1e6:5.0f} MB {self.seconds:5.1f} s  {path.name}"

    def assert_allowed(self, path: Path) -> None:
        taken = self.told(path)
        limit = SECONDS_TO_TRAIN if trains(path) else SECONDS
        if self.seconds >= limit:  # on the reference machine too?
            piece = time_of_piece()
            limit = allowed(limit, piece)
            taken += f" of {limit:.1f} s, where the piece takes {piece:.1f} s"
        assert self.seconds < limit, taken
        assert self.memory < (MEMORY_OF_A_MODEL if opens_a_model(path) else MEMORY), taken


def trains(path: Path) -> bool:
    return path.stem[:2].isdecimal() and int(path.stem[:2]) >= 8


def opens_a_model(path: Path) -> bool:
    return trains(path) and int(path.stem[:2]) >= 21


def time_of_piece() -> float:
    """What this machine's processor takes for PIECE, in a process without the signature checks."""
    run = subprocess.run([sys.executable, "-c", PIECE], capture_output=True, text=True, check=True)
    return float(run.stdout)


def allowed(seconds: float, piece: float) -> float:
    """A limit of the reference machine's on one that takes so long for the piece; never a lower."""
    return seconds * max(1, piece / REFERENCE)


def peak_memory(pid: int) -> int:
    """The most bytes that a process has held so far; 0 on a system that does not tell, as macOS."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return 0
    return 1024 * int(re.search(r"^VmHWM:\s+(\d+) kB$", status.read_text(), re.MULTILINE)[1])
