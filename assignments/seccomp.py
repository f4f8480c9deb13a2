"""seccomp: a Linux process gives up the system calls that it does not need (`man 2 seccomp`).

What Landlock leaves open is closed here: starting processes, reaching another one by a socket, a
signal, its limits or shared memory, and changing the modes and owners of files. libseccomp would
write the filter, but is not on every machine.
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
        "prlimit64": 302, "setpriority": 141, "sched_setparam": 142, "sched_setscheduler": 144,
        "sched_setaffinity": 203, "sched_setattr": 314, "ioprio_set": 251,
        "shmget": 29, "shmat": 30, "shmctl": 31, "semget": 64, "semop": 65, "semctl": 66,
        "semtimedop": 220, "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71, "mq_open": 240,
        "add_key": 248, "request_key": 249, "keyctl": 250,
        "memfd_create": 319, "userfaultfd": 323, "perf_event_open": 298,
        "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155,
    },
    "aarch64": {
        "architecture": 0xC00000B7,
        "clone": 220, "clone3": 435, "execve": 221, "execveat": 281,
        "socket": 198, "connect": 203, "io_uring_setup": 425,
        "kill": 129, "tkill": 130, "tgkill": 131, "rt_sigqueueinfo": 138,
        "rt_tgsigqueueinfo": 240, "pidfd_send_signal": 424, "ptrace": 117, "bpf": 280,
        "fchmod": 52, "fchmodat": 53, "fchmodat2": 452, "fchown": 55, "fchownat": 54,
        "utimensat": 88, "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "setxattrat": 463,
        "prlimit64": 261, "setpriority": 140, "sched_setparam": 118, "sched_setscheduler": 119,
        "sched_setaffinity": 122, "sched_setattr": 274, "ioprio_set": 30,
        "shmget": 194, "shmat": 196, "shmctl": 195, "semget": 190, "semop": 193, "semctl": 191,
        "semtimedop": 192, "msgget": 186, "msgsnd": 189, "msgrcv": 188, "msgctl": 187,
        "mq_open": 180, "add_key": 217, "request_key": 218, "keyctl": 219,
        "memfd_create": 279, "userfaultfd": 282, "perf_event_open": 241,
        "unshare": 97, "setns": 268, "mount": 40, "umount2": 39, "pivot_root": 41,
    },
}  # fmt: skip
CONDITIONAL = {"architecture", "clone", "clone3", "socket", "kill", "tgkill", "prlimit64"}
# IPython sets the modes of its own files, and ZeroMQ asks how its threads are scheduled. Both start
# where these seem to work and do nothing.
IGNORED = {
    *("sched_setparam", "sched_setscheduler", "sched_setaffinity", "sched_setattr"),
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
    to itself. A change of a mode, an owner or of scheduling does nothing; the rest is refused with
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
        *only_where(EQUAL, 0, numbers["prlimit64"]),  # its own limits
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
