"""A student's code is denied what is not its own, and a notebook that misbehaves is still run."""

import asyncio
import errno
import os
import platform
import re
import socket
import sys
import sysconfig
from pathlib import Path

import pytest
from jupyter_client.kernelspec import KernelSpec
from nbformat.v4 import new_code_cell, new_notebook

from assignments import landlock, run, seccomp
from assignments.course import ROOT, SOURCE
from assignments.denied import DENIED, LANDLOCK, SECCOMP

pytestmark = pytest.mark.skipif(
    not (landlock.version() and seccomp.available()), reason="this system has no Landlock"
)


def outputs(sources: list[str], mode: str = "full") -> tuple[list[str], list[str]]:
    """What is said about a run of these cells, and each one's error or text."""
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    remarks = asyncio.run(run.run(notebook, mode))
    return remarks, [shown(cell) for cell in notebook.cells]


def shown(cell) -> str:
    text = ""
    for output in cell.outputs:
        if output.output_type == "error":
            return f"{output.ename}: {output.evalue}"
        text += output.get("text", "") or output.get("data", {}).get("text/plain", "")
    return text


def use_landlock(version: int, monkeypatch) -> None:
    """From now on kernels start as on a Linux whose Landlock has this version."""
    start = (
        f"from assignments import kernel, landlock; landlock.version = lambda: {version}; "
        "kernel.main()"
    )
    command = [sys.executable, "-c", start]
    monkeypatch.setattr(
        run.Kernel,
        "kernel_spec",
        property(lambda self: KernelSpec(argv=[*command, self.mode, "-f", "{connection_file}"])),
    )


@pytest.fixture
def outside(tmp_path):
    """What is not the student's: files, a server on this machine, and a socket of a program.

    `packages` is a file that may be read, as the packages are that the student's code imports.
    """
    folder = tmp_path / "outside"
    folder.mkdir()
    (ROOT / "_build").mkdir(exist_ok=True)
    packages = Path(sysconfig.get_path("purelib")) / f"of-a-test-{os.getpid()}.txt"
    for path in (folder / "gradebook.db", folder / "secret", packages):
        path.write_text("marks")
        path.chmod(0o600)
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        # Beside the folder: the path of a socket has 107 characters at most.
        name = f"\0a-program-{os.getpid()}"
        unix.bind(name)
        unix.listen()
        yield {
            "folder": str(folder),
            "packages": str(packages),
            "source": str(next(SOURCE.glob("*/*.ipynb"))),
            "answers": str(ROOT / "tests" / "assignments"),
            "grades": str(ROOT / "_build"),
            "home": str(Path.home()),
            "port": tcp.getsockname()[1],
            "unix": name,
            "grader": os.getpid(),
        }
    packages.unlink()


# The best known calls that the filter does not name, on x86-64 and on aarch64.
NUMBERS = {
    "acct": (163, 89), "add_key": (248, 217), "adjtimex": (159, 171), "bpf": (321, 280),
    "capset": (126, 91), "chroot": (161, 51), "clock_adjtime": (305, 266),
    "clock_settime": (227, 112), "connect": (42, 203), "delete_module": (176, 106),
    "execve": (59, 221), "execveat": (322, 281), "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263), "fchmodat2": (452, 452), "finit_module": (313, 273),
    "flock": (73, 32), "fork": (57, None), "fremovexattr": (199, 16), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fsopen": (430, 430), "fspick": (433, 433),
    "get_robust_list": (274, 100), "init_module": (175, 105), "inotify_add_watch": (254, 27),
    "inotify_init": (253, None), "inotify_init1": (294, 26), "io_setup": (206, 0),
    "io_submit": (209, 2), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425), "ioperm": (173, None), "iopl": (172, None),
    "ioprio_set": (251, 30), "kcmp": (312, 272), "kexec_load": (246, 104), "keyctl": (250, 219),
    "lremovexattr": (198, 15), "memfd_create": (319, 279), "memfd_secret": (447, 447),
    "migrate_pages": (256, 238), "mknod": (133, None), "mknodat": (259, 33),
    "modify_ldt": (154, None), "mount": (165, 40), "mount_setattr": (442, 442),
    "move_mount": (429, 429), "move_pages": (279, 239), "mq_getsetattr": (245, 185),
    "mq_notify": (244, 184), "mq_open": (240, 180), "mq_timedreceive": (243, 183),
    "mq_timedsend": (242, 182), "mq_unlink": (241, 181), "msgctl": (71, 187), "msgget": (68, 186),
    "msgrcv": (70, 188), "msgsnd": (69, 189), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265), "open_tree": (428, 428), "perf_event_open": (298, 241),
    "personality": (135, 92), "pidfd_getfd": (438, 438), "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424), "pivot_root": (155, 41), "process_madvise": (440, 440),
    "process_mrelease": (448, 448), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "ptrace": (101, 117), "quotactl": (179, 60), "quotactl_fd": (443, 443), "reboot": (169, 142),
    "removexattr": (197, 14), "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276),
    "request_key": (249, 218), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "seccomp": (317, 277), "semctl": (66, 191), "semget": (64, 190), "semop": (65, 193),
    "semtimedop": (220, 192), "sendfile": (40, 71), "setdomainname": (171, 162),
    "setfsgid": (123, 152), "setfsuid": (122, 151), "setgid": (106, 144), "setgroups": (116, 159),
    "sethostname": (170, 161), "setns": (308, 268), "setpgid": (109, 154),
    "setpriority": (141, 140), "setregid": (114, 143), "setresgid": (119, 149),
    "setresuid": (117, 147), "setreuid": (113, 145), "setsid": (112, 157),
    "settimeofday": (164, 170), "setuid": (105, 146), "setxattrat": (463, 463), "shmat": (30, 196),
    "shmctl": (31, 195), "shmdt": (67, 197), "shmget": (29, 194), "splice": (275, 76),
    "swapoff": (168, 225), "swapon": (167, 224), "sync": (162, 81), "syncfs": (306, 267),
    "syslog": (103, 116), "tee": (276, 77), "tkill": (200, 130), "truncate": (76, 45),
    "umount2": (166, 39), "unshare": (272, 97), "userfaultfd": (323, 282), "vfork": (58, None),
    "vhangup": (153, 58), "vmsplice": (278, 75),
}  # fmt: skip
REFUSED = NUMBERS | seccomp.IGNORED | seccomp.ABSENT
SET_UP = """
import ctypes, fcntl, os, platform, resource, signal, socket, struct, subprocess, torch
libc = ctypes.CDLL(None, use_errno=True)
here = ["x86_64", "aarch64"].index(platform.machine())
inside, beside = packages, folder + "/gradebook.db"
def denied(result):
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def call(numbers, *arguments):
    if numbers[here] is None:
        raise PermissionError("Operation not permitted: this processor has no such call")
    denied(libc.syscall(numbers[here], *arguments))
def empty_open(path):
    try:
        os.ftruncate(os.open(path, os.O_RDONLY), 0)
    except OSError as error:
        assert error.errno == 22  # of any Linux: it is open to be read
        raise PermissionError("Operation not permitted: it is open to be read")
def all_denied(calls):
    # arguments that each of them would take for wrong
    for name, numbers in calls.items():
        ctypes.set_errno(0)
        if numbers[here] is not None and libc.syscall(numbers[here], *6 * [ctypes.c_long(-1)]) != 0:
            assert ctypes.get_errno() in (1, 38), (name, os.strerror(ctypes.get_errno()))
    raise PermissionError("Operation not permitted: all of them")
"""
OPEN_HOW = "struct.pack('QQQ', {}, 0, 0), 24"
# Each row of the table is tried in these ways. A way that changes files is tried with one outside
# and with one that may be read; that they are unchanged is looked at afterwards.
ATTEMPTS = {
    "read a file": [
        "open(source).read()",
        "open(beside).read()",
        "os.symlink(folder, 'link'); open('link/secret').read()",
        "open('/etc/passwd').read()",
        "open(f'/proc/{grader}/mem', 'rb')",
        "open(f'/proc/{grader}/environ').read()",
        "os.link(folder + '/secret', 'linked')",
    ],
    "list a folder": [
        "os.listdir(os.path.dirname(source))",
        "os.listdir(answers)",
        "os.listdir(grades)",
        "os.listdir(home)",
    ],
    "write to a file": [
        *("open(beside, 'a')", "open(beside, 'r+')", "open(inside, 'a')", "open(inside, 'r+')"),
        "open(torch.__file__, 'a')",
        "empty_open(inside)",
    ],
    "empty a file that is opened to be written": [
        f"{way.format(path)}"
        for path in ("beside", "inside")
        for way in (
            "open({}, 'w')",
            "os.open({}, os.O_WRONLY | os.O_TRUNC)",
            "os.open({}, os.O_RDWR | os.O_TRUNC)",
            "os.open({}, os.O_WRONLY | os.O_TRUNC | os.O_CREAT)",
            "denied(libc.creat({}.encode(), 0o600))",
            "call((85, None), {}.encode(), 0o600)",
        )
    ],
    "empty a file that is opened to be read": [
        f"{way.format(path)}"
        for path in ("beside", "inside")
        for way in (
            "os.open({}, os.O_RDONLY | os.O_TRUNC)",
            "call((2, None), {}.encode(), os.O_TRUNC)",
            "call((257, 56), -100, {}.encode(), os.O_TRUNC)",
            "call((437, 437), -100, {}.encode(), struct.pack('QQQ', os.O_TRUNC, 0, 0), 24)",
        )
    ],
    "empty a file that is opened in the fourth mode": [
        f"os.open({path}, {mode})"
        for path in ("beside", "inside")
        for mode in ("3", "3 | os.O_TRUNC", "3 | os.O_TRUNC | os.O_CREAT")
    ],
    "empty a file by its path": [
        f"{way.format(path)}"
        for path in ("beside", "inside")
        for way in (
            "os.truncate({}, 0)",
            "denied(libc.truncate({}.encode(), 0))",
            "call((76, 45), {}.encode(), 0)",
        )
    ],
    "make a file, folder, link or socket": [
        "open(folder + '/new', 'w')",
        "open(grades + '/new', 'w')",
        "os.mkdir(folder + '/new')",
        "os.symlink('a', folder + '/new')",
        "os.link(inside, folder + '/new')",
        "os.mkfifo(folder + '/new')",
        "socket.socket(socket.AF_UNIX).bind(folder + '/new')",
    ],
    "make a file without a name": [
        "os.open('.', os.O_TMPFILE | os.O_RDWR)",
        "os.open(folder, os.O_TMPFILE | os.O_RDWR)",
        "os.memfd_create('x')",
    ],
    "delete or rename, in its own folder too": [
        "os.rename(folder + '/secret', 'mine')",
        "open('mine', 'w').close(); os.rename('mine', folder + '/mine')",
        "os.rename('mine', 'yours')",
        "os.replace('mine', inside)",
    ],
    "change a file's flags, make a subvolume, call a device": [
        # FS_IOC_GETFLAGS, BTRFS_IOC_SUBVOL_CREATE, TIOCSTI, FIOSETOWN
        *("fcntl.ioctl(os.open(inside, 0), 0x80086601, bytes(8))",),
        "fcntl.ioctl(os.open(os.path.dirname(inside), 0), 0x5000940E, bytearray(4096))",
        "fcntl.ioctl(0, 0x5412, b'x')",
        "fcntl.ioctl(socket.socket(socket.AF_UNIX), 0x8901, struct.pack('i', grader))",
    ],
    "start a process": [
        # denied once is denied without end, and harmless where it is not
        "os.fork()",
        "denied(libc.fork())",
        "subprocess.run(['true'])",
        "import multiprocessing as m; m.Process(target=print).start()",
        "call((56, 220), 17, 0, 0, 0, 0)",
        "call((56, 220), 0x10000 | 0x800 | 0x100 | 0x10000000, 0, 0, 0, 0)",  # CLONE_NEWUSER
    ],
    "execute a program": ["os.execv('/bin/sh', ['sh', '-c', 'true'])"],
    "enter a namespace": ["denied(libc.unshare(0x10000000))"],
    "read or change another process": ["denied(libc.ptrace(16, grader, 0, 0))"],
    "signal another process": ["os.kill(grader, 0)", "os.kill(-1, 0)", "os.kill(0, 0)"],
    "signal another process as the owner of a file": [
        "fcntl.fcntl(0, fcntl.F_SETOWN, grader)",
        "fcntl.fcntl(0, 15, struct.pack('ii', 1, grader))",
        "fcntl.fcntl(0, fcntl.F_SETSIG, signal.SIGKILL)",
        "fcntl.fcntl(os.open(inside, 0), fcntl.F_SETLEASE, fcntl.F_RDLCK)",
    ],
    "change another's limits and priority": [
        "resource.prlimit(grader, resource.RLIMIT_CPU, (1, 1))",
        "os.setpriority(os.PRIO_PROCESS, grader, 19)",
    ],
    "use the network": [
        "socket.create_connection(('127.0.0.1', port))",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
        "socket.create_server(('127.0.0.1', 0))",
        "import urllib.request as u; u.urlopen('http://127.0.0.1')",
        *(
            f"socket.socket({family}, 3)" for family in (10, 16, 17, 40)
        ),  # 6, netlink, packet, vsock
    ],
    "send a datagram to a program": [
        "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)",
        "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', unix)",
        "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)",
    ],
    "connect to a program": ["socket.socket(socket.AF_UNIX).connect(unix)"],
    "call it by another interface": ["denied(libc.syscall(0x40000000 | 76, inside.encode(), 0))"],
}
DANGEROUS = {"fork", "vfork"}  # are tried with care above
for row in DENIED:
    calls = {name: REFUSED[name] for name in row.calls.split() if name not in DANGEROUS}
    if calls:
        ATTEMPTS.setdefault(row.what, []).append(f"all_denied({calls})")
# What is done to the machine's share: the cell, and what becomes of it.
LIMITED = {
    "take the processor without end": (
        "import resource; resource.setrlimit(resource.RLIMIT_CPU, (301, 301))",
        "ValueError: not allowed to raise maximum limit",
    ),
    "take more memory": ("kept = bytearray(8 * 2**30)", "MemoryError"),
    "write a large file": ("open('large', 'wb').write(bytes(17 * 2**20))", "OSError: [Errno 27]"),
    "open many files": ("kept = [open('/dev/null') for _ in range(2000)]", "OSError: [Errno 24]"),
}
LITTER = "for i in range({}):\n    open(f'f{{i}}', 'wb').write(bytes({}))"
WATCHED = {
    "fill the disk with small files": [
        (LITTER.format(20, 8 * 2**20), "wrote more than 64 MB"),
        (LITTER.format(3000, 1), "made more than 2000 files"),
    ],
    "hide what fills the disk": [
        (
            "import os\nfor i in range(9):\n"
            "    with open(f'f{i}', 'wb') as file:\n"
            "        os.remove(f'f{i}')\n        file.write(bytes(8 * 2**20))",
            "wrote more than 64 MB",
        ),
        (
            "import os\nfor i in range(20):\n    os.mkdir('x' * 250)\n    os.chdir('x' * 250)",
            "made a folder that cannot be listed",
        ),
    ],
    "start threads without end": [
        (
            "import threading, time\nthreading.stack_size(65536)\nfor i in range(1000):\n"
            "    threading.Thread(target=time.sleep, args=(100,)).start()\ntime.sleep(3)",
            "started more than 500 threads",
        )
    ],
}


def test_every_row_of_the_table_is_tried():
    walls = {row.what for row in DENIED if row.by in (LANDLOCK, SECCOMP)}
    shares = {row.what for row in DENIED} - walls
    assert ATTEMPTS.keys() == walls and LIMITED.keys() | WATCHED.keys() == shares
    assert len({row.what for row in DENIED}) == len(DENIED)


@pytest.mark.parametrize("version", [None, 1], ids=["this kernel", "the oldest accepted"])
def test_what_is_not_the_students_is_denied(outside, monkeypatch, version):
    if version is not None:
        use_landlock(version, monkeypatch)
    names = "\n".join(f"{name} = {value!r}" for name, value in outside.items())
    tried = [(what, attempt) for what, attempts in ATTEMPTS.items() for attempt in attempts]
    remarks, (first, *rest) = outputs([names + SET_UP, *(attempt for _, attempt in tried)])
    assert remarks == [] and first == ""
    for (what, attempt), said in zip(tried, rest, strict=True):
        print(f"{what}: {attempt}: {said[:90]}")
    refusal = (
        "Operation not permitted|Permission denied|Function not implemented|"
        "Invalid cross-device link"
    )
    for (what, attempt), said in zip(tried, rest, strict=True):
        assert re.search(refusal, said), f"{what}: {attempt}: {said}"
    folder, packages = Path(outside["folder"]), Path(outside["packages"])
    assert sorted(path.name for path in folder.iterdir()) == ["gradebook.db", "secret"]
    for path in (*folder.iterdir(), packages):
        assert path.read_text() == "marks" and path.stat().st_mode & 0o777 == 0o600


def test_without_the_sandbox_they_are_not_denied(outside):
    """The attempts are real ones: a kernel with limits alone lets them through."""
    harmless = {
        *("read a file", "list a folder", "write to a file", "connect to a program"),
        *("empty a file that is opened to be read", "empty a file by its path"),
        *("empty a file that is opened to be written", "make a file without a name"),
        *("empty a file that is opened in the fourth mode", "send a datagram to a program"),
    }
    names = "\n".join(f"{name} = {value!r}" for name, value in outside.items())
    tried = [
        attempt
        for what in harmless
        for attempt in ATTEMPTS[what]
        if not re.search("/mem|all_denied|empty_open|DGRAM.*sendto|open.torch", attempt)
        and not (platform.machine() == "aarch64" and "None" in attempt)
    ]
    _, (_, *rest) = outputs([names + SET_UP, *tried], "limits")
    refused = [pair for pair in zip(tried, rest, strict=True) if re.match(r"\w+Error: ", pair[1])]
    assert refused == []
    assert Path(outside["packages"]).read_text() == ""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="its other interface")
def test_the_interface_of_32_bits_ends_the_kernel(outside):
    """truncate(path, 0) by `int 0x80`, from memory whose address has 32 bits."""
    remarks, _ = outputs(
        [
            f"path = {outside['packages']!r}.encode() + bytes(1)\n"
            "import ctypes, mmap\n"
            "memory = mmap.mmap(-1, 4096, 0x22 | 0x40, 7)\n"  # MAP_32BIT
            "start = ctypes.addressof(ctypes.c_char.from_buffer(memory))\n"
            "code = b'\\x53\\xb8\\x5c\\0\\0\\0\\xbb' + (start + 64).to_bytes(4, 'little')\n"
            "code += b'\\x31\\xc9\\xcd\\x80\\x5b\\xc3'\n"
            "memory[: len(code)] = code\n"
            "memory[64 : 64 + len(path)] = path\n",
            "ctypes.CFUNCTYPE(ctypes.c_int)(start)()",
        ]
    )
    assert remarks == ["cell 2 ended its kernel"]
    assert Path(outside["packages"]).read_text() == "marks"


def verdict(processor: str, number: int, arguments=(), architecture: int | None = None) -> int:
    """What the filter says to a call: linux/filter.h's machine, as far as the filter uses it."""
    data = {seccomp.NUMBER: number, seccomp.ARCHITECTURE: seccomp.PROCESSORS[processor]}
    if architecture is not None:
        data[seccomp.ARCHITECTURE] = architecture
    for index, argument in enumerate([*arguments, *6 * [0]][:6]):
        data[seccomp.FIRST_ARGUMENT + 8 * index] = argument & 0xFFFFFFFF
    steps, at, word = seccomp.filter_for(processor, PID), 0, 0
    while True:
        code, if_so, if_not, value = steps[at]
        at += 1
        if code == seccomp.RETURN:
            return value
        if code == seccomp.LOAD:
            word = data[value]
        elif code == seccomp.AND:
            word &= value
        else:
            holds = {seccomp.EQUAL: word == value, seccomp.AT_LEAST: word >= value}[code]
            at += if_so if holds else if_not


PID = 4321
ABSENT = seccomp.ERROR | errno.ENOSYS
PERMISSION = seccomp.ERROR | errno.EPERM
TRUNC = seccomp.TRUNC
CONDITIONS = {  # arguments with which a call is allowed, and some with which it is not
    "open": (
        [(0, 0), (0, 1), (0, 2), (0, 1 | TRUNC), (0, 0o2 | 0o100 | TRUNC)],
        [(0, TRUNC), (0, 3), (0, 3 | TRUNC), (0, seccomp.TMPFILE | 2), (0, TRUNC | 0o100)],
    ),
    "openat": (
        [(-100, 0, 0), (-100, 0, 1 | TRUNC | 0o100)],
        [(-100, 0, TRUNC), (-100, 0, 3 | TRUNC), (-100, 0, seccomp.TMPFILE | 2)],
    ),
    "fcntl": ([(0, 0), (0, 4), (0, 1030)], [(0, 8), (0, 10), (0, 15), (0, 1024), (0, 1026)]),
    "ioctl": ([(0, 0x5401), (0, 0x5421)], [(0, 0x5412), (0, 0x8901), (0, 0x40086602)]),
    "prctl": ([(15,)], [(4,), (22,), (38,), (47,), (0x59616D61,)]),
    "clone": ([(0x3D0F00,)], [(17,), (0x3D0F00 | 1 << 28,), (0x3D0F00 | 1 << 17,), (0x4111,)]),
    "socket": ([(1, 1), (1, 1 | 0o2004000)], [(1, 2), (1, 5), (2, 1), (10, 1), (16, 3), (40, 1)]),
    "socketpair": ([(1, 1)], [(1, 2), (1, 2 | 0o2000000), (1, 5), (2, 1)]),
    "kill": ([(PID, 9)], [(PID + 1, 9), (0, 9), (-1, 9), (-PID, 9)]),
    "tgkill": ([(PID, 1, 9)], [(PID + 1, 1, 9), (-1, 1, 9)]),
    "prlimit64": ([(0, 7)], [(PID + 1, 7), (1, 7)]),
}


@pytest.mark.parametrize("processor", seccomp.PROCESSORS)
def test_the_filter_allows_what_it_names(processor):
    """The filter for either processor, on whichever this is, and for every number there is."""
    column = list(seccomp.PROCESSORS).index(processor)
    number = {name: n[column] for name, n in seccomp.ALLOWED.items() if n[column] is not None}
    assert CONDITIONS.keys() == seccomp.conditions(PID).keys()
    for name in number.keys() & CONDITIONS.keys():
        allowed, refused = CONDITIONS[name]
        for arguments in allowed:
            assert verdict(processor, number[name], arguments) == seccomp.ALLOW, (name, arguments)
        for arguments in refused:
            assert verdict(processor, number[name], arguments) == PERMISSION, (name, arguments)
    plain = {number[name] for name in number.keys() - CONDITIONS.keys()}
    ignored = {n[column] for n in seccomp.IGNORED.values()}
    absent = {n[column] for n in seccomp.ABSENT.values()}
    for other in {*range(600), *(0x40000000 | n for n in range(600))} - {
        number[name] for name in number.keys() & CONDITIONS.keys()
    }:
        expected = (
            seccomp.ALLOW if other in plain
            else seccomp.ERROR if other in ignored
            else ABSENT if other in absent or other > seccomp.LAST
            else PERMISSION
        )  # fmt: skip
        assert verdict(processor, other) == expected, other
    for name in {name for row in DENIED for name in row.calls.split()}:
        if REFUSED[name][column] is not None:
            answer = verdict(processor, REFUSED[name][column])
            assert answer in (PERMISSION, ABSENT, seccomp.ERROR), name
    assert verdict(processor, 0, architecture=0x40000003) == seccomp.KILL


@pytest.mark.parametrize(
    ("column", "header"),
    [(0, "x86_64-linux-gnu/asm/unistd_64.h"), (1, "asm-generic/unistd.h")],
)
def test_the_numbers_are_linuxs(column, header):
    path = Path("/usr/include") / header
    if not path.exists():
        pytest.skip(f"Linux's headers are not here: {path}")
    text = path.read_text()
    theirs = {
        name.removesuffix("64") if name in ("fcntl64", "lseek64") else name: int(number)
        for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)
    }
    theirs |= {"newfstatat": theirs.get("fstatat", theirs.get("newfstatat"))}
    calls = seccomp.ALLOWED | seccomp.IGNORED | seccomp.ABSENT | NUMBERS
    known = {name: numbers[column] for name, numbers in calls.items() if name in theirs}
    assert known == {name: theirs[name] for name in known}
    missing = {
        name for name, numbers in calls.items() if numbers[column] is not None
    } - known.keys()
    assert missing <= {"fchmodat2", "setxattrat"}  # younger than some headers


def test_the_share_of_the_machine_has_an_end():
    _, said = outputs([cell for cell, _ in LIMITED.values()])
    print(said)
    for (row, (_, expected)), text in zip(LIMITED.items(), said, strict=True):
        assert text.startswith(expected), f"{row}: {text}"


@pytest.mark.parametrize("half", [0, 1])
def test_a_kernel_that_takes_too_much_is_ended(half):
    cases = [case for cases in WATCHED.values() for case in cases][half::2]  # it starts four times
    remarks, said = outputs([*(cell for cell, _ in cases), "1 + 1"])
    assert remarks == [
        f"cell {number} {expected}, so that its kernel was ended"
        for number, (_, expected) in enumerate(cases, start=1)
    ]
    assert all(text.startswith("NotGraded") for text in said[:-1]) and said[-1] == "2"


def test_what_it_may(outside, monkeypatch):
    """Compute, keep files of its own, start threads; of the grader's environment it has nothing."""
    monkeypatch.setenv("TOKEN", "secret")
    secret = Path(outside["folder"]) / "secret"
    remarks, said = outputs(
        [
            "import attention.explore, torch\nfrom attention.checks import check_split_heads\n"
            "check_split_heads(attention.split_heads).passed",
            "open('mine', 'w').write('text'), open('mine').read()",
            "import threading\nthread = threading.Thread(target=print, args=('thread',))\n"
            "thread.start(); thread.join()",
            "import os; 'TOKEN' in os.environ, os.environ['HOME'] == os.getcwd()",
            f"os.chmod({str(secret)!r}, 0o777)",
            "torch.randn(500, 500).matmul(torch.randn(500, 500)).shape",
        ]
    )
    assert remarks == []
    assert said == [
        *("True", "(4, 'text')", "thread\n", "(False, True)", "", "torch.Size([500, 500])"),
    ]
    assert secret.stat().st_mode & 0o777 == 0o600


def test_a_cell_that_ends_its_kernel_loses_no_other(monkeypatch):
    monkeypatch.setattr(run, "CELL_SECONDS", 3)
    remarks, said = outputs(
        [
            "x = 1",
            "import os; os._exit(0)",
            "while True: pass",
            "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
            "x + 1",
        ]
    )
    print(remarks)
    assert remarks == [
        "cell 2 ended its kernel",
        "cell 3 was stopped after 3 s",
        "cell 4 could not be stopped, so that its kernel was ended",
    ]
    assert [text.split(":")[0] for text in said[1:4]] == ["NotGraded"] * 3
    assert said[4] == "2"


def test_kernel_after_kernel():
    remarks, said = outputs(["import os; os._exit(0)"] * 6 + ["1"])
    assert len(remarks) == 7
    assert sum("ended its kernel" in remark for remark in remarks) == run.STARTS
    assert all(text.startswith("NotGraded") for text in said)


def test_the_notebooks_time_is_over(monkeypatch):
    monkeypatch.setattr(run, "NOTEBOOK_SECONDS", 8)
    monkeypatch.setattr(run, "CELL_SECONDS", 6)
    remarks, said = outputs(["while True: pass", "while True: pass", "1"])
    print(remarks)
    assert len(remarks) == 3 and all(text.startswith("NotGraded") for text in said)


def test_a_flood_is_cut_off():
    remarks, said = outputs(
        [
            "for i in range(300): print('x' * 10_000)",
            "print('x' * 40_000_000)",
            "raise ValueError('y' * 1_000_000)",
            "1",
        ]
    )
    sizes = [len(text) for text in said]
    print(remarks, sizes)
    assert sizes[0] < 2 * run.OUTPUT and said[0].endswith("(the rest is cut off)\n")
    assert sizes[1] < 2 * run.OUTPUT and sizes[2] < 2 * run.ERROR
    assert said[3] == "1"
