"""From an agent's line to a printed line: CPU compared with `json.loads` alone."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from tests.benchmarks.measuring import Figure, in_turns
from tests.benchmarks.project import Project, Tool, prints, prints_file, prints_lines, project
from tests.benchmarks.sessions import TURN, long_lines, session, write_session

_FLOOR = """
import json, subprocess, sys
with subprocess.Popen(["claude", "-p"], stdout=subprocess.PIPE) as process:
    for line in process.stdout:
        json.loads(line)
"""
FLOOR = Tool("pipe and json.loads", (sys.executable, "-c", _FLOOR), (0,))
MODES = {"default": (), "verbose": ("--verbose",), "json": ("--json",)}


class _Stream:
    """A project whose first agent prints a long session, and all others a short one."""

    def __init__(self, here: Project, lines: Iterable[bytes]) -> None:
        self._here = here
        self._file = here.folder.parent / "session.jsonl"
        self.size = write_session(self._file, lines)

    def net_cpu(
        self, rounds: int, tools: Sequence[Tool], *, one_by_one: bool = False
    ) -> list[float]:
        """Return the CPU of each tool on the session, more than on a short one.

        That of the agents does not count.
        """
        short = prints(session())
        long = prints_lines(self._file) if one_by_one else prints_file(self._file)

        def cpu(tool: Tool, first: str) -> float:
            self._here.plays(first, short)
            used = self._here.run(tool).cpu
            return used - self._here.agents_cpu()

        starts = in_turns(rounds, *(partial(cpu, tool, short) for tool in tools))
        wholes = in_turns(rounds, *(partial(cpu, tool, long) for tool in tools), warm=0)
        return [whole - start for whole, start in zip(wholes, starts, strict=True)]


@contextmanager
def _stream(lines: Iterable[bytes]) -> Iterator[_Stream]:
    with project(maxTokens=10**12) as here:
        yield _Stream(here, lines)


def lines(*, turns: int = 3175, rounds: int = 5, peers: Sequence[str] = ()) -> Iterator[Figure]:
    """Measure 200,000 lines of an agent, at once and with a `write` each.

    The CPU is without that of the agent, and without that of the same run on a short session.
    """
    ours = {name: Tool.cuggino(*words) for name, words in MODES.items()}
    others = [Tool.peer(peer) for peer in peers]
    with _stream(session(turns)) as here:
        size = here.size / 2**20
        said = f"{turns * TURN + 4:,} lines ({size:.0f} MiB)"
        least, *taken = here.net_cpu(rounds, [FLOOR, *ours.values(), *others])
        for name, tool, cpu in zip(ours, ours.values(), taken, strict=False):
            yield _figure(f"stream.{name}", f"{tool.name}: {said}", cpu, least)
        for tool, cpu in zip(others, taken[len(ours) :], strict=True):
            yield _figure("stream.peer", f"{tool.name}: {said}", cpu, least)
        one_by_one = [FLOOR, ours["default"], *others]
        least, *taken = here.net_cpu(rounds, one_by_one, one_by_one=True)
        for tool, cpu in zip(one_by_one[1:], taken, strict=True):
            key = "stream.one-by-one" + (".peer" if tool in others else "")
            yield _figure(key, f"{tool.name}: the same, one write a line", cpu, least)


def lengths(
    *, of: Sequence[int] = (1, 64, 1024, 20 * 1024), size: int = 60 * 2**20, rounds: int = 3
) -> Iterator[Figure]:
    """Measure sessions of about the same size, for each line length in KiB."""
    for length in of:
        with _stream(long_lines(length * 2**10, size=size)) as here:
            least, taken = here.net_cpu(rounds, [FLOOR, Tool.cuggino()])
            name = f"cuggino run: {here.size / 2**20:.0f} MiB in lines of {_size(length)}"
            yield _figure(f"length.{length}", name, taken, least)


def _size(kibibytes: int) -> str:
    return f"{kibibytes} KiB" if kibibytes < 1024 else f"{kibibytes // 1024} MiB"


def _figure(key: str, name: str, cpu: float, floor: float) -> Figure:
    return Figure(
        key=key,
        name=f"{name}, CPU",
        value=cpu,
        unit="s",
        floor=floor,
        floor_name=FLOOR.name,
    )
