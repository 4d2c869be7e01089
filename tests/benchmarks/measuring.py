"""How things are measured: the floor and what is compared with it in turns, in one run."""

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
    """One line of the table."""

    name: str
    value: float
    unit: Unit
    floor: float | None = None
    """What the least that could do it takes, measured beside it; in the same unit."""
    floor_name: str = ""
    ratio: float | None = None
    """Of the value to the floor, or of the large to the small input; its aim is `most`."""
    most: float | None = None
    """What the ratio, or the value where there is none, should not exceed."""

    @property
    def judged(self) -> float:
        """What `most` is about."""
        return self.value if self.ratio is None else self.ratio

    @property
    def holds(self) -> bool | None:
        """Whether the aim is met; None without one."""
        return None if self.most is None else self.judged <= self.most

    def as_json(self) -> dict[str, Any]:
        """The line as an object, its verdict included."""
        return {**asdict(self), "holds": self.holds}


class Took(NamedTuple):
    """What a process took, with all of its children that it has waited for."""

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
    """Run the program with no input, its output thrown away."""
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
    # Not `ru_maxrss`, which is also that of the process from which this one was made.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 2**10
"""
"""Source of a function that gives the MiB that a process had resident at most."""


def seconds(act: Callable[[], object]) -> float:
    """How long it takes once."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def in_turns(
    rounds: int, *acts: Callable[[], float], warm: int = 1, best: bool = False
) -> list[float]:
    """What each comes to: the median (or the least) of rounds in which they follow each other.

    In turns, so that all meet the same load of the machine.
    """
    for _ in range(warm):
        for act in acts:
            act()
    found: list[list[float]] = [[] for _ in acts]
    for _ in range(rounds):
        for act, into in zip(acts, found, strict=True):
            into.append(act())
    return [min(values) if best else statistics.median(values) for values in found]
