"""The kernel that runs a student's notebook: it limits itself, then becomes ipykernel.

    python -m assignments.sandbox.kernel full -f connection.json
    python -m assignments.sandbox.kernel limits -f connection.json
    python -m assignments.sandbox.kernel template 3     is forked for each kernel, see template.py

`limits`, on every system: processor time, the size of a file, open files, no core dump, and on
Linux memory. It stops accidents, not intent.

`full`, on Linux, is that and: files are read beneath Python, its packages, the system's libraries
and the folder of `attention` alone, and made and written, not deleted, in the kernel's own folder
alone (Landlock); no process is started, no program executed, no connection opened, no process
outside signalled, no file emptied by its path, no mode or owner changed (seccomp); root's
capabilities are dropped. denied.py is the table of it.

What this does not protect from. The student's code shares a process with the tests, so it can read
the hidden tests while they run, rebind what they call and fake their outcome: a grade by machine is
an aid, and replaces no look at code with a surprising one. It can take a core until its time is
over, fill the grader's memory with messages of many parts, read the machine's tables of connections
and mounts, learn the names, sizes and attributes of files that it knows where to look for, wait for
connections under a name that another program may look for (an abstract socket's), and use a flaw of
the Linux kernel or of a library. Against those, grade in a container without a network.
"""

import os
import resource
import sys
import sysconfig
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from assignments.sandbox import landlock, seccomp, template

REPOSITORY = Path(__file__).resolve().parents[2]
SOLUTIONS = REPOSITORY / "assignments"
CPU_SECONDS = 300
MEMORY = 2 * 2**30  # bytes, beyond what Python and torch have mapped
FILE_SIZE = 16 * 2**20
OPEN_FILES = 256
SYSTEM = [
    *("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/share/zoneinfo", "/usr/share/fonts"),
    *("/etc/ld.so.cache", "/etc/localtime", "/etc/fonts", "/etc/mime.types", "/dev/urandom"),
    *("/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/sys/devices/system/cpu"),
]


def readable() -> Iterator[Path]:
    """Python, its packages, the system's libraries, and where `attention` lies."""
    yield from map(Path, SYSTEM)
    for prefix in (sys.prefix, sys.base_prefix):
        # The prefix of a system's own Python is /usr, beside which the administrator keeps more.
        if Path(prefix) not in (Path("/usr"), Path("/usr/local")):
            yield Path(prefix).resolve()
    for name in ("stdlib", "platstdlib", "purelib", "platlib"):
        yield Path(sysconfig.get_path(name)).resolve()
    yield Path(find_spec("attention").origin).resolve().parents[1]


def limit() -> None:
    for what, most in [
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_FSIZE, FILE_SIZE),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
    ]:
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


def limit_memory() -> None:
    """Count from what torch has mapped, which is a gigabyte or twelve with its build."""
    mapped = Path("/proc/self/statm")
    if mapped.exists():
        most = int(mapped.read_text().split()[0]) * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def restrict(folder: Path) -> None:
    """Raises OSError where the system refuses, ValueError where it would not help."""
    paths = list(readable())
    if around := [path for path in paths if SOLUTIONS.is_relative_to(path)]:
        raise ValueError(
            f"Python's packages are in {around[0]}, and so are the solutions in {SOLUTIONS}: the "
            "sandbox cannot open one without the other. Put the environment in .venv."
        )
    seccomp.give_up_privileges()
    landlock.restrict(paths, [folder, Path("/dev/null")])
    seccomp.restrict()


def main() -> None:
    """Import what every kernel imports, then become one, here or in a fork for each order."""
    mode, *arguments = sys.argv[1:]
    sys.path[:] = [path for path in sys.path if path not in ("", os.getcwd(), str(REPOSITORY))]
    # ipykernel says so to a matplotlib that is imported behind it
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    import anywidget  # noqa: F401
    import drawsvg  # noqa: F401
    import ipywidgets  # noqa: F401
    import matplotlib.font_manager  # noqa: F401
    import torch  # noqa: F401
    import zmq
    from ipykernel import kernelapp, zmqshell

    if mode == "template":
        mode, *arguments = template.serve(int(arguments[0]))
    os.environ.pop("PYTHONPATH", None)
    limit()
    if mode == "full":
        restrict(Path(os.environ["HOME"]))
    limit_memory()

    class Output(kernelapp.IOPubThread):
        """Opens no TCP port for the output of child processes, since there are none."""

        def __init__(self, *arguments: object, **settings: object) -> None:
            super().__init__(*arguments, **{**settings, "pipe": False})

    class App(kernelapp.IPKernelApp):
        """Lets output wait in this process until it is read, where else some of it is dropped."""

        def init_iopub(self, context: zmq.Context) -> None:
            context.sndhwm = 0
            super().init_iopub(context)

    kernelapp.IOPubThread = Output
    # IPython's own exit() and quit() would end the kernel, and with it what other cells have made
    zmqshell.ZMQInteractiveShell.ask_exit = lambda shell: sys.exit()
    sys.argv[1:] = arguments
    App.launch_instance()


if __name__ == "__main__":
    main()
