"""A filter of system calls (Linux): what no view of files can prevent.

No program in a view makes a file that runs as its owner (set-user-ID), or reads the kernel's keys.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Mapping
from typing import NamedTuple


class _Calls(NamedTuple):
    """Numbers of system calls, in the order of `_MODES` and `_OPENS`; -1 for a missing one."""

    audit: int
    modes: tuple[int, ...]
    opens: tuple[int, ...]
    never: tuple[int, ...]


_MODES = (
    *(("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("fchmodat2", 2)),
    *(("mknod", 1), ("mknodat", 2), ("creat", 1)),
)
"""Calls that set a mode, with the position of its argument."""
_OPENS = (("open", 1, 2), ("openat", 2, 3))
"""Calls that set one if they create a file, with the positions of flags and mode."""

_X86 = _Calls(0xC000003E, (90, 91, 268, 452, 133, 259, 85), (2, 257), (248, 249, 250))
_I386 = _Calls(0x40000003, (15, 94, 306, 452, 14, 297, 8), (5, 295), (286, 287, 288))
_ARM64 = _Calls(0xC00000B7, (-1, 52, 53, 452, -1, 33, -1), (-1, 56), (217, 218, 219))
_ARM = _Calls(0x40000028, (15, 94, 333, 452, 14, 324, 8), (5, 322), (309, 310, 311))
_OPENAT2 = 437
"""A call whose mode is out of reach: programs fall back to `openat` without it."""
_MACHINES: Mapping[str, tuple[_Calls, ...]] = {"x86_64": (_X86, _I386), "aarch64": (_ARM64, _ARM)}

_SET_USER_ID, _CREATES = 0o4000, 0o100
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_LOAD, _EQUAL, _SET, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _EPERM, _ENOSYS = 0x7FFF0000, 0x00050000 | 1, 0x00050000 | 38

Instruction = tuple[int, int, int, int]


def system_call_filter(machine: str | None = None) -> bytes:
    """Return the filter as a program for the kernel; empty for a machine without one."""
    kinds = _MACHINES.get(machine or platform.machine(), ())
    program: list[Instruction] = []
    for calls in kinds:
        rules = _rules(calls)
        program += [(_LOAD, 0, 0, _ARCH), (_EQUAL, 0, len(rules), calls.audit), *rules]
    if program:
        program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *one) for one in program)


def _rules(calls: _Calls) -> list[Instruction]:
    rules: list[Instruction] = []
    for (_, position), number in zip(_MODES, calls.modes, strict=True):
        rules += _rule(number, [(_mode(position), _SET_USER_ID)], _EPERM)
    for (_, flags, mode), number in zip(_OPENS, calls.opens, strict=True):
        rules += _rule(number, [(_mode(flags), _CREATES), (_mode(mode), _SET_USER_ID)], _EPERM)
    rules += _rule(_OPENAT2, [], _ENOSYS)
    for number in calls.never:
        rules += _rule(number, [], _EPERM)
    return [*rules, (_RETURN, 0, 0, _ALLOW)]


def _mode(position: int) -> int:
    """Return the place of the low half of an argument."""
    return _ARGUMENTS + 8 * position


def _rule(number: int, bits: list[tuple[int, int]], result: int) -> list[Instruction]:
    """Return the result for a call if all of these bits of its arguments are set."""
    if number < 0:
        return []
    tests = [one for place, bit in bits for one in ((_LOAD, 0, 0, place), (_SET, 0, 0, bit))]
    body: list[Instruction] = [*tests, (_RETURN, 0, 0, result)]
    for index, (code, _, _, value) in enumerate(body):
        if code == _SET:  # skip the rest of the rule
            body[index] = (code, 0, len(body) - index - 1, value)
    return [(_LOAD, 0, 0, _NUMBER), (_EQUAL, 0, len(body), number), *body]
