"""Interleaved measurements of a figure and its floor in one run."""

from __future__ import annotations

import os
import resource
import signal
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tests.benchmarks.targets import TARGETS, Target, Unit

T = TypeVar("T")


class Skipped(Exception):
    """A measurement that is impossible here, with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One row of the table."""

    key: str
    """Its stable name, by which `TARGETS` has its target."""
    name: str
    value: float
    unit: Unit
    floor: float | None = None
    """The value of a bare minimum, interleaved with it, in the same unit."""
    floor_name: str = ""

    @property
    def ratio(self) -> float | None:
        """Return the value as a multiple of the floor."""
        return self.value / self.floor if self.floor else None

    @property
    def target(self) -> Target | None:
        """Return the target, if there is one."""
        return TARGETS.get(self.key)

    @property
    def holds(self) -> bool | None:
        """Return True if the target is met, None without one."""
        if self.target is None:
            return None
        judged = self.ratio if self.target.unit == "x" else self.value
        return judged is not None and judged <= self.target.most

    def as_json(self) -> dict[str, Any]:
        """Return the row as an object with its verdict."""
        return {
            "key": self.key,
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "floor": self.floor,
            "floor_name": self.floor_name,
            "ratio": self.ratio,
            "target": self.target and self.target._asdict(),
            "holds": self.holds,
        }


class Took(NamedTuple):
    """The resources used by a process and its reaped children."""

    wall: float
    """Seconds."""
    cpu: float
    """Seconds, user and system."""

    def plus(self, other: Took) -> Took:
        """Return the sum of both."""
        return Took(self.wall + other.wall, self.cpu + other.cpu)

    def minus(self, other: Took) -> Took:
        """Return the difference to the other."""
        return Took(self.wall - other.wall, self.cpu - other.cpu)

    def each(self, count: int) -> Took:
        """Return the share of one of `count`."""
        return Took(self.wall / count, self.cpu / count)


def wall_and_cpu(
    key: str, name: str, taken: Took, least: Took, floor_name: str, *, unit: Unit = "s"
) -> Iterator[Figure]:
    """Yield the row of the wall time and the row of the CPU."""
    factor = 1e3 if unit == "ms" else 1.0
    for kind, title in (("wall", "wall time"), ("cpu", "CPU")):
        yield Figure(
            key=f"{key}.{kind}",
            name=f"{name}, {title}",
            value=getattr(taken, kind) * factor,
            unit=unit,
            floor=getattr(least, kind) * factor,
            floor_name=floor_name,
        )


def run(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    codes: Sequence[int] | None = (0,),
    limit: float | None = None,
) -> Took:
    """Run the program without input and discard its output; `codes` are the expected ones.

    Raises:
        Skipped: it has not ended after `limit` seconds, and was killed with its group.
    """
    began = time.perf_counter()
    with subprocess.Popen(
        argv,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=limit is not None,
    ) as process:
        assert process.stderr is not None
        with _killed_after(limit, process.pid) as killed:
            said = process.stderr.read()
            _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
    if killed.is_set():
        raise Skipped(f"{argv[-1]} has not ended after {limit:g} s")
    if codes is not None:
        code = process.returncode
        assert code in codes, (list(argv), code, said.decode(errors="replace")[-2000:])
    return Took(wall, used.ru_utime + used.ru_stime)


@contextmanager
def _killed_after(limit: float | None, group: int) -> Iterator[threading.Event]:
    """Kill the group if the block takes longer; the event is set then."""
    killed = threading.Event()

    def kill() -> None:
        killed.set()
        os.killpg(group, signal.SIGKILL)

    timer = None if limit is None else threading.Timer(limit, kill)
    if timer is not None:
        timer.start()
    try:
        yield killed
    finally:
        if timer is not None:
            timer.cancel()
            timer.join()


def seconds(act: Callable[[], object]) -> float:
    """Return the duration of one call."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def took(act: Callable[[], object]) -> Took:
    """Return what one call used, in this process and in the children that it reaped."""
    before, began = _cpu(), time.perf_counter()
    act()
    return Took(time.perf_counter() - began, _cpu() - before)


def _cpu() -> float:
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def in_turns(
    rounds: int, *acts: Callable[[], float], warm: int = 1, best: bool = False
) -> list[float]:
    """Return the median (or the minimum) of each over interleaved rounds.

    Interleaving exposes all of them to the same load of the machine. A single round judges
    nothing, so there are no calls to warm up.
    """
    found = _in_turns(rounds, acts, warm)
    return [min(values) if best else statistics.median(values) for values in found]


def took_in_turns(rounds: int, *acts: Callable[[], Took], warm: int = 1) -> list[Took]:
    """Return the medians of each over interleaved rounds."""
    found = _in_turns(rounds, acts, warm)
    return [Took(*map(statistics.median, zip(*values, strict=True))) for values in found]


def _in_turns(rounds: int, acts: Sequence[Callable[[], T]], warm: int) -> list[list[T]]:
    for _ in range(warm if rounds > 1 else 0):
        for act in acts:
            act()
    found: list[list[T]] = [[] for _ in acts]
    for _ in range(rounds):
        for act, into in zip(acts, found, strict=True):
            into.append(act())
    return found
