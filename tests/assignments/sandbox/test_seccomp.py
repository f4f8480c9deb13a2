"""The filter, for either processor, on whichever this is."""

import errno
import re
from pathlib import Path

import pytest

from assignments.sandbox import seccomp
from assignments.sandbox.denied import DENIED
from tests.assignments.sandbox.conftest import NUMBERS, REFUSED

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
    ours = {name: n[column] for name, n in calls.items() if n[column] is not None}
    wrong = {name: number for name, number in ours.items() if theirs.get(name, number) != number}
    assert wrong == {}
    assert ours.keys() - theirs.keys() <= {"fchmodat2", "setxattrat"}  # younger than some headers
