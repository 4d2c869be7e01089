"""Interleaved measurements of a figure and its floor in one run."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

Unit = Literal["s", "ms", "us", "MiB", "MiB/s", "lines/s", "x"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One row of the table."""

    name: str
    value: float
    unit: Unit
    floor: float | None = None
    """The value of a bare minimum, interleaved with it, in the same unit."""
    floor_name: str = ""
    ratio: float | None = None
    """The ratio of value to floor, or of large to small input; its target is `most`."""
    most: float | None = None
    """The target: a maximum of the ratio, or of the value without a ratio."""

    @property
    def judged(self) -> float:
        """Return the number that `most` limits."""
        return self.value if self.ratio is None else self.ratio

    @property
    def holds(self) -> bool | None:
        """Return True if the target is met, None without one."""
        return None if self.most is None else self.judged <= self.most

    def as_json(self) -> dict[str, Any]:
        """Return the row as an object with its verdict."""
        return {**asdict(self), "holds": self.holds}


class Took(NamedTuple):
    """The resources used by a process and its reaped children."""

    wall: float
    """Seconds."""
    cpu: float
    """Seconds, user and system."""


def run(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    codes: Sequence[int] = (0,),
) -> Took:
    """Run the program without input and discard its output."""
    with subprocess.Popen(
        argv,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        began = time.perf_counter()
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in codes, (list(argv), process.returncode, said.decode()[-2000:])
    return Took(wall, used.ru_utime + used.ru_stime)


PEAK = """
def peak():
    import resource, sys
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    # Not `ru_maxrss`, which includes the peak of the parent process.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 2**10
"""
"""Source of a function that returns the peak resident memory of a process in MiB."""


def seconds(act: Callable[[], object]) -> float:
    """Return the duration of one call."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def in_turns(
    rounds: int, *acts: Callable[[], float], warm: int = 1, best: bool = False
) -> list[float]:
    """Return the median (or the minimum) of each over interleaved rounds.

    Interleaving exposes all of them to the same load of the machine.
    """
    for _ in range(warm):
        for act in acts:
            act()
    found: list[list[float]] = [[] for _ in acts]
    for _ in range(rounds):
        for act, into in zip(acts, found, strict=True):
            into.append(act())
    return [min(values) if best else statistics.median(values) for values in found]
