"""seccomp: a Linux process gives up the system calls that it does not need (`man 2 seccomp`).

What Landlock leaves open is closed here: starting processes, reaching another one by a socket or a
signal, and changing the modes and owners of files. libseccomp would write the filter, but is not on
every machine.
"""

import ctypes
import errno
import os
import platform
import socket

NO_NEW_PRIVS, SET_SECCOMP, FILTER = 38, 22, 2
CAPABILITIES_VERSION = 0x20080522
CLONE_THREAD = 0x10000
X32 = 0x40000000  # numbers from here on are another interface of the same processor

# linux/bpf_common.h: load a word of the call's data, jump, return
LOAD, EQUAL, AT_LEAST, HAS_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16  # places in the call's data
ALLOW, ERROR, KILL = 0x7FFF0000, 0x00050000, 0x80000000

NUMBERS = {
    "x86_64": {
        "architecture": 0xC000003E,
        "clone": 56, "fork": 57, "vfork": 58, "clone3": 435, "execve": 59, "execveat": 322,
        "socket": 41, "connect": 42, "io_uring_setup": 425,
        "kill": 62, "tkill": 200, "tgkill": 234, "rt_sigqueueinfo": 129,
        "rt_tgsigqueueinfo": 297, "pidfd_send_signal": 424, "ptrace": 101, "bpf": 321,
        "chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452, "chown": 92, "fchown": 93,
        "lchown": 94, "fchownat": 260, "utime": 132, "utimes": 235, "futimesat": 261,
        "utimensat": 280, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "setxattrat": 463,
        "shmget": 29, "memfd_create": 319,
    },
    "aarch64": {
        "architecture": 0xC00000B7,
        "clone": 220, "clone3": 435, "execve": 221, "execveat": 281,
        "socket": 198, "connect": 203, "io_uring_setup": 425,
        "kill": 129, "tkill": 130, "tgkill": 131, "rt_sigqueueinfo": 138,
        "rt_tgsigqueueinfo": 240, "pidfd_send_signal": 424, "ptrace": 117, "bpf": 280,
        "fchmod": 52, "fchmodat": 53, "fchmodat2": 452, "fchown": 55, "fchownat": 54,
        "utimensat": 88, "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "setxattrat": 463,
        "shmget": 194, "memfd_create": 279,
    },
}  # fmt: skip
CONDITIONAL = {"architecture", "clone", "clone3", "socket", "kill", "tgkill"}
# IPython sets the modes of its own files. Where these seem to work and do nothing, it starts.
IGNORED = {
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
    *("utime", "utimes", "futimesat", "utimensat"),
    *("setxattr", "lsetxattr", "fsetxattr", "setxattrat"),
}

libc = ctypes.CDLL(None, use_errno=True)


class Instruction(ctypes.Structure):
    _fields_ = (
        *(("code", ctypes.c_uint16), ("if_so", ctypes.c_uint8), ("if_not", ctypes.c_uint8)),
        ("value", ctypes.c_uint32),
    )


class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(Instruction)))


def available() -> bool:
    return platform.system() == "Linux" and platform.machine() in NUMBERS


def give_up_privileges() -> None:
    """Drop root's capabilities, if this is root, and never gain any."""
    header = (ctypes.c_uint32 * 2)(CAPABILITIES_VERSION, 0)
    done(libc.capset(header, (ctypes.c_uint32 * 6)()))
    done(libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0))


def restrict() -> None:
    """From now on this process starts none, reaches none, and changes no file's mode or owner.

    Threads are still started, Unix sockets still opened to be connected to, and signals still sent
    to itself. A change of a mode or an owner does nothing; the rest is refused with
    PermissionError. `no_new_privs` must be set.
    """
    numbers = NUMBERS[platform.machine()]
    steps = [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, numbers["architecture"]),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
        (AT_LEAST, 0, 1, X32),
        (RETURN, 0, 0, ERROR | errno.ENOSYS),
        # glibc then starts a thread by clone, whose flags can be looked at
        *refused(numbers["clone3"], errno.ENOSYS),
        *only_where(HAS_BIT, CLONE_THREAD, numbers["clone"]),
        *only_where(EQUAL, socket.AF_UNIX, numbers["socket"]),
        *only_where(EQUAL, os.getpid(), numbers["kill"]),
        *only_where(EQUAL, os.getpid(), numbers["tgkill"]),
    ]
    for name in numbers.keys() - CONDITIONAL:
        steps += refused(numbers[name], 0 if name in IGNORED else errno.EPERM)
    steps.append((RETURN, 0, 0, ALLOW))
    instructions = (Instruction * len(steps))(*steps)
    done(libc.prctl(SET_SECCOMP, FILTER, ctypes.byref(Program(len(steps), instructions)), 0, 0))


def refused(number: int, error: int) -> list[tuple[int, int, int, int]]:
    return [(EQUAL, 0, 1, number), (RETURN, 0, 0, ERROR | error)]


def only_where(condition: int, value: int, number: int) -> list[tuple[int, int, int, int]]:
    """The call is allowed where its first argument meets the condition."""
    return [
        (EQUAL, 0, 4, number),
        (LOAD, 0, 0, FIRST_ARGUMENT),
        (condition, 1, 0, value),
        (RETURN, 0, 0, ERROR | errno.EPERM),
        (RETURN, 0, 0, ALLOW),
    ]


def done(result: int) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"seccomp: {os.strerror(error)}")
