"""A student's code is denied what is not its own: every row of the sandbox's table is tried."""

import os
import platform
import re
import socket
import sys
import sysconfig
from pathlib import Path

import pytest

from assignments.course import ROOT, SOURCE
from assignments.sandbox import landlock, run, seccomp
from assignments.sandbox.denied import DENIED, LANDLOCK, LIMIT, SECCOMP, WATCH
from tests.assignments.sandbox.conftest import REFUSED, outputs

pytestmark = pytest.mark.skipif(
    not (landlock.version() and seccomp.available()), reason="this system has no Landlock"
)


def use_landlock(version: int, monkeypatch) -> None:
    """From now on kernels start as on a Linux whose Landlock has this version."""
    start = (
        f"from assignments.sandbox import kernel, landlock; landlock.version = lambda: {version}; "
        "kernel.main()"
    )
    monkeypatch.setattr(run.Kernel, "command", (sys.executable, "-c", start))


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
    "take space on the disk without writing, in a log too": [
        "os.posix_fallocate(os.open('own', os.O_WRONLY | os.O_CREAT), 0, 1000)",
        "denied(libc.fallocate(1, 1, ctypes.c_long(0), ctypes.c_long(1000)))",
    ],
    "hold memory in the buffers of sockets": [
        "socket.socketpair()[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)",
    ],
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
    tried = {(LANDLOCK, SECCOMP): ATTEMPTS, (LIMIT,): LIMITED, (WATCH,): WATCHED}
    for walls, rows in tried.items():
        assert rows.keys() == {row.what for row in DENIED if row.by in walls}
    assert sum(map(len, tried.values())) == len(DENIED)


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
