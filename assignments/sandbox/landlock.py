"""Landlock: a Linux process gives up the files that it does not need (`man 7 landlock`).

PyPI's packages for it are in alpha or not kept; it is three system calls, which glibc has no
functions for.
"""

import ctypes
import os
import sys
from collections.abc import Iterable
from pathlib import Path

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same on every processor
ASK_VERSION = 1
PATH_BENEATH = 1

WRITE_FILE, READ_FILE, READ_DIR = (1 << bit for bit in (1, 2, 3))
MAKE_DIR, MAKE_FILE, MAKE_SOCKET, MAKE_LINK, TRUNCATE = (1 << bit for bit in (7, 8, 9, 12, 14))
READ = READ_FILE | READ_DIR
# What deletes nothing hides nothing: a deleted file that is still open fills the disk unseen.
WRITE = READ | WRITE_FILE | MAKE_DIR | MAKE_FILE | MAKE_SOCKET | MAKE_LINK | TRUNCATE
# What each version of the kernel's interface can forbid: what is done to files, TCP's bind and
# connect, and signals and abstract sockets to processes outside. What a version lacks seccomp.py
# forbids on all: denied.py.
FILES = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
NET = {4: 0b11}
SCOPE = {6: 0b11}

libc = ctypes.CDLL(None, use_errno=True)


class Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scope", ctypes.c_uint64))


class PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """The version of the interface; 0 where there is none: not Linux, too old, switched off."""
    if sys.platform != "linux":
        return 0
    return max(libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ASK_VERSION), 0)


def restrict(readable: Iterable[Path], writable: Iterable[Path]) -> None:
    """From now on this process reads and writes beneath these paths alone.

    It deletes and renames nothing, not even there, and executes nothing.

    Paths that do not exist are left out. It holds for the calling thread and those it starts, so
    call it before there is another one; nothing takes it back. `no_new_privs` must be set.

    Raises:
        OSError: the kernel refuses.
    """
    handled = newest(FILES)
    ruleset = Ruleset(handled, newest(NET), newest(SCOPE))
    rules = checked(
        CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(ctypes.sizeof(ruleset)), 0
    )
    for path in readable:
        allow(rules, path, READ)
    for path in writable:
        allow(rules, path, WRITE & handled)
    checked(RESTRICT_SELF, rules, 0)
    os.close(rules)


def newest(table: dict[int, int]) -> int:
    return max((rights for since, rights in table.items() if since <= version()), default=0)


def allow(rules: int, path: Path, rights: int) -> None:
    if not path.exists():
        return
    if not path.is_dir():
        rights &= WRITE_FILE | READ_FILE | TRUNCATE
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        checked(ADD_RULE, rules, PATH_BENEATH, ctypes.byref(PathBeneath(rights, fd)), 0)
    finally:
        os.close(fd)


def checked(number: int, *arguments: object) -> int:
    result = libc.syscall(number, *arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"Landlock: {os.strerror(error)}")
    return result
