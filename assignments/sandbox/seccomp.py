"""seccomp: a Linux process gives up the system calls that it does not need (`man 2 seccomp`).

The filter allows what ALLOWED names and refuses the rest, so that a call that nobody thought of is
refused, too. denied.py says what that keeps a student's code from. libseccomp would write the
filter, but is not on every machine. bubblewrap takes a filter that others have written; without
one it denies 5 of that table's 38 rows for files, processes, programs and the kernel, all that is
tried of them, and it cannot start a kernel by a fork, as template.py does.
"""

import ctypes
import errno
import os
import platform
import socket
from typing import NamedTuple

NO_NEW_PRIVS, SET_SECCOMP, FILTER = 38, 22, 2
CAPABILITIES_VERSION = 0x20080522

# linux/bpf_common.h: load a word of the call's data, keep some of its bits, jump, return
LOAD, AND, EQUAL, AT_LEAST, RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16  # offsets in the call's data
ALLOW, ERROR, KILL = 0x7FFF0000, 0x00050000, 0x80000000
ALL_BITS = 0xFFFFFFFF

# The processors, in the order of the columns below, and the kernel's names for them.
PROCESSORS = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# Landlock's last call of Linux 5.13. A program that knows a younger one can do without it, and so
# it is told that there is none. The numbers of x86-64's other interface, x32, are larger, too.
LAST = 446

# Each call's number on x86-64 and on aarch64, None where it has none: asm/unistd_64.h of the one,
# asm-generic/unistd.h for the other.
ALLOWED = {
    # open files, which Landlock decides on
    "open": (2, None), "openat": (257, 56), "creat": (85, None), "close": (3, 57),
    "close_range": (436, 436), "read": (0, 63), "readv": (19, 65), "pread64": (17, 67),
    "preadv": (295, 69), "preadv2": (327, 286), "write": (1, 64), "writev": (20, 66),
    "pwrite64": (18, 68), "pwritev": (296, 70), "pwritev2": (328, 287), "lseek": (8, 62),
    "fcntl": (72, 25), "ioctl": (16, 29), "dup": (32, 23), "dup2": (33, None), "dup3": (292, 24),
    "pipe": (22, None), "pipe2": (293, 59), "fsync": (74, 82), "fdatasync": (75, 83),
    "fadvise64": (221, 223), "readahead": (187, 213), "ftruncate": (77, 46),
    "copy_file_range": (326, 285),
    # names in a file system; Landlock decides which are made
    "stat": (4, None), "fstat": (5, 80), "lstat": (6, None), "newfstatat": (262, 79),
    "statx": (332, 291), "access": (21, None), "faccessat": (269, 48), "faccessat2": (439, 439),
    "readlink": (89, None), "readlinkat": (267, 78), "getdents": (78, None),
    "getdents64": (217, 61), "getcwd": (79, 17), "chdir": (80, 49), "fchdir": (81, 50),
    "statfs": (137, 43), "fstatfs": (138, 44), "getxattr": (191, 8), "lgetxattr": (192, 9),
    "fgetxattr": (193, 10), "listxattr": (194, 11), "llistxattr": (195, 12),
    "flistxattr": (196, 13), "link": (86, None), "linkat": (265, 37), "symlink": (88, None),
    "symlinkat": (266, 36), "mkdir": (83, None), "mkdirat": (258, 34), "umask": (95, 166),
    # memory of its own
    "brk": (12, 214), "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215),
    "mremap": (25, 216), "madvise": (28, 233), "msync": (26, 227), "membarrier": (324, 283),
    # threads of its own
    "clone": (56, 220), "set_tid_address": (218, 96), "set_robust_list": (273, 99),
    "rseq": (334, 293), "futex": (202, 98), "arch_prctl": (158, None), "prctl": (157, 167),
    "exit": (60, 93), "exit_group": (231, 94), "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123), "sched_getparam": (143, 121), "sched_getscheduler": (145, 120),
    "sched_get_priority_max": (146, 125), "sched_get_priority_min": (147, 126),
    "sched_rr_get_interval": (148, 127), "getcpu": (309, 168), "gettid": (186, 178),
    "wait4": (61, 260), "waitid": (247, 95),
    # signals and limits of its own
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139),
    "rt_sigsuspend": (130, 133), "rt_sigpending": (127, 136), "rt_sigtimedwait": (128, 137),
    "sigaltstack": (131, 132), "restart_syscall": (219, 128), "pause": (34, None),
    "kill": (62, 129), "tgkill": (234, 131), "getrlimit": (97, 163), "setrlimit": (160, 164),
    "prlimit64": (302, 261),
    # time
    "nanosleep": (35, 101), "clock_nanosleep": (230, 115), "clock_gettime": (228, 113),
    "clock_getres": (229, 114), "gettimeofday": (96, 169), "time": (201, None), "times": (100, 153),
    "alarm": (37, None), "getitimer": (36, 102), "setitimer": (38, 103), "timer_create": (222, 107),
    "timer_settime": (223, 110), "timer_gettime": (224, 108), "timer_getoverrun": (225, 109),
    "timer_delete": (226, 111), "timerfd_create": (283, 85), "timerfd_settime": (286, 86),
    "timerfd_gettime": (287, 87),
    # waiting
    "select": (23, None), "pselect6": (270, 72), "poll": (7, None), "ppoll": (271, 73),
    "epoll_create": (213, None), "epoll_create1": (291, 20), "epoll_ctl": (233, 21),
    "epoll_wait": (232, None), "epoll_pwait": (281, 22), "epoll_pwait2": (441, 441),
    "eventfd": (284, None), "eventfd2": (290, 19),
    # sockets that the grader connects to
    "socket": (41, 198), "socketpair": (53, 199), "bind": (49, 200), "listen": (50, 201),
    "accept": (43, 202), "accept4": (288, 242), "getsockname": (51, 204), "getpeername": (52, 205),
    "getsockopt": (55, 209), "shutdown": (48, 210), "sendto": (44, 206),
    "sendmsg": (46, 211), "sendmmsg": (307, 269), "recvfrom": (45, 207), "recvmsg": (47, 212),
    "recvmmsg": (299, 243),
    # who and where it is
    "getpid": (39, 172), "getppid": (110, 173), "getpgrp": (111, None), "getpgid": (121, 155),
    "getsid": (124, 156), "getuid": (102, 174), "geteuid": (107, 175), "getresuid": (118, 148),
    "getgid": (104, 176), "getegid": (108, 177), "getresgid": (120, 150), "getgroups": (115, 158),
    "capget": (125, 90), "uname": (63, 160), "sysinfo": (99, 179), "getrusage": (98, 165),
    "getpriority": (140, 141), "getrandom": (318, 278),
}  # fmt: skip
# They do nothing and seem to work. IPython sets the modes of its own files, ZeroMQ asks how its
# threads are scheduled, and tempfile deletes what it has made: a deleted file that is still open
# could not be counted.
IGNORED = {
    "unlink": (87, None), "unlinkat": (263, 35), "rmdir": (84, None), "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119), "sched_setaffinity": (203, 122), "sched_setattr": (314, 274),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "chown": (92, None),
    "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54), "utime": (132, None),
    "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88), "setxattr": (188, 5),
    "lsetxattr": (189, 6), "fsetxattr": (190, 7),
}  # fmt: skip
# glibc then starts a thread by clone, and opens a file by openat, whose arguments can be looked at.
ABSENT = {"clone3": (435, 435), "openat2": (437, 437)}

# Of these calls an argument decides, too: (its index, the bits of it that count, the values that
# those may have) must hold for each. A filter sees no more of an argument than a number.
TRUNC, TMPFILE, ACCESS_MODE = 0o1000, 0o20000000, 0b11  # asm-generic/fcntl.h
READ_ONLY, WRITE_ONLY, READ_AND_WRITE = 0, 1, 2
THREAD, NAMESPACES = 0x10000, 0x7E020000  # linux/sched.h: CLONE_…
SOCKET_TYPE = 0b1111  # beside it stand SOCK_CLOEXEC and SOCK_NONBLOCK


class Condition(NamedTuple):
    argument: int
    bits: int
    values: tuple[int, ...]


# Before version 3 Landlock takes emptying a file for reading it where it is opened to be read, and
# for nothing at all where it is opened in the fourth mode, which has no name. A file without a name
# could not be counted.
OPEN = TRUNC | TMPFILE | ACCESS_MODE
OPENED = (READ_ONLY, WRITE_ONLY, READ_AND_WRITE, TRUNC | WRITE_ONLY, TRUNC | READ_AND_WRITE)
# No leases, no signals to the owner of a file: F_DUPFD to F_SETLKW, F_OFD_…LK, F_DUPFD_CLOEXEC.
FCNTL = (*range(8), 36, 37, 38, 1030)
# No flags of files, no subvolumes, no terminals but to ask whether one is there: TCGETS, TCGETS2,
# TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX, and FICLONE, a copy of a file.
IOCTL = (0x5401, 0x802C542A, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451, 0x40049409)
# PR_SET_NAME, PR_GET_NAME, PR_SET_VMA, PR_SVE_GET_VL: names of threads and memory, a vector's size.
PRCTL = (15, 16, 0x53564D41, 51)
# A stream reaches only one who has accepted it, a datagram anyone who has a name.
UNIX_STREAM = (
    Condition(0, ALL_BITS, (socket.AF_UNIX,)),
    Condition(1, SOCKET_TYPE, (socket.SOCK_STREAM,)),
)


def conditions(pid: int) -> dict[str, tuple[Condition, ...]]:
    return {
        "open": (Condition(1, OPEN, OPENED),),
        "openat": (Condition(2, OPEN, OPENED),),
        "fcntl": (Condition(1, ALL_BITS, FCNTL),),
        "ioctl": (Condition(1, ALL_BITS, IOCTL),),
        "prctl": (Condition(0, ALL_BITS, PRCTL),),
        "clone": (Condition(0, THREAD | NAMESPACES, (THREAD,)),),
        "socket": UNIX_STREAM,
        "socketpair": UNIX_STREAM,
        "kill": (Condition(0, ALL_BITS, (pid,)),),
        "tgkill": (Condition(0, ALL_BITS, (pid,)),),
        "prlimit64": (Condition(0, ALL_BITS, (0,)),),
    }


libc = ctypes.CDLL(None, use_errno=True)


class Instruction(ctypes.Structure):
    _fields_ = (
        *(("code", ctypes.c_uint16), ("if_so", ctypes.c_uint8), ("if_not", ctypes.c_uint8)),
        ("value", ctypes.c_uint32),
    )


class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(Instruction)))


Step = tuple[int, int, int, int]  # an Instruction's fields


def available() -> bool:
    return platform.system() == "Linux" and platform.machine() in PROCESSORS


def give_up_privileges() -> None:
    """Drop root's capabilities, if this is root, and never gain any."""
    header = (ctypes.c_uint32 * 2)(CAPABILITIES_VERSION, 0)
    require_zero(libc.capset(header, (ctypes.c_uint32 * 6)()))
    require_zero(libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0))


def restrict() -> None:
    """From now on this process can make no other calls than these.

    `no_new_privs` must be set.

    Raises:
        OSError: the kernel refuses.
    """
    steps = filter_for(platform.machine(), os.getpid())
    instructions = (Instruction * len(steps))(*steps)
    program = Program(len(steps), instructions)
    require_zero(libc.prctl(SET_SECCOMP, FILTER, ctypes.byref(program), 0, 0))


def filter_for(processor: str, pid: int) -> list[Step]:
    """The filter's steps. What it refuses raises PermissionError in Python."""
    column = list(PROCESSORS).index(processor)
    conditional = conditions(pid)
    steps = [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, PROCESSORS[processor]),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
        (AT_LEAST, 0, 1, LAST + 1),
        (RETURN, 0, 0, ERROR | errno.ENOSYS),
    ]
    for calls, verdict in [
        (ALLOWED, ALLOW),
        (IGNORED, ERROR | 0),
        (ABSENT, ERROR | errno.ENOSYS),
    ]:
        for name, numbers in calls.items():
            if numbers[column] is not None:
                then = [*where(conditional.get(name, ())), (RETURN, 0, 0, verdict)]
                steps += [(EQUAL, 0, len(then), numbers[column]), *then]
    return [*steps, (RETURN, 0, 0, ERROR | errno.EPERM)]


def where(conditions: tuple[Condition, ...]) -> list[Step]:
    """Go on behind these steps where the conditions hold, and refuse the call where not."""
    steps = []
    for argument, bits, values in conditions:
        steps += [(LOAD, 0, 0, FIRST_ARGUMENT + 8 * argument), (AND, 0, 0, bits)]
        for left, value in zip(reversed(range(len(values))), values, strict=True):
            steps.append((EQUAL, left + 1, 0, value))
        steps.append((RETURN, 0, 0, ERROR | errno.EPERM))
    return steps


def require_zero(result: int) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"seccomp: {os.strerror(error)}")
