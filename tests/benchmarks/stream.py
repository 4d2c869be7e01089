"""From an agent's line to a printed line: CPU compared with `json.loads` alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.measuring import Figure, in_turns
from tests.benchmarks.project import (
    HERE,
    Project,
    Tool,
    Tree,
    prints,
    prints_alone,
    prints_file,
    prints_lines,
    project,
)
from tests.benchmarks.sessions import (
    TURN,
    long_lines,
    session,
    talk,
    whole_messages,
    write_session,
)

_FLOOR = """
import json, subprocess, sys
with subprocess.Popen(["claude", "-p"], stdout=subprocess.PIPE) as process:
    for line in process.stdout:
        json.loads(line)
"""
FLOOR = Tool("pipe and json.loads", (sys.executable, "-c", _FLOOR), (0,))
MODES = {"default": (), "verbose": ("--verbose",), "json": ("--json",)}

PAUSE = 0.001
"""Seconds between two lines that come alone."""


class Shape(NamedTuple):
    """A kind of session."""

    name: str
    lines: Callable[[int], Iterator[bytes]]
    turn: int
    """Lines of one of its turns."""


SHAPES = {
    "mixed": Shape("all kinds of lines", session, TURN),
    "text": Shape("parts of text", talk, 203),
    "whole": Shape("no partial messages", whole_messages, 7),
}
"""Sessions whose lines cost differently: their sizes, and how many of them are shown."""


class _Stream:
    """A project whose first agent prints a long session, and all others a short one."""

    def __init__(self, here: Project, lines: Iterable[bytes]) -> None:
        self._here = here
        self._file = here.folder.parent / "session.jsonl"
        self.size = write_session(self._file, lines)
        with self._file.open("rb") as file:
            self.count = sum(1 for _ in file)

    def net_cpu(
        self,
        rounds: int,
        tools: Sequence[Tool],
        *,
        printed: Callable[[Path], str] = prints_file,
    ) -> list[float]:
        """Return the CPU of each tool on the session, more than on a short one.

        That of the agents does not count.
        """
        short = prints(session())
        long = printed(self._file)

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


def lines(
    *,
    turns: int = 3175,
    rounds: int = 5,
    peers: Sequence[str] = (),
    trees: Sequence[Tree] = (HERE,),
) -> Iterator[Figure]:
    """Measure 200,000 lines of an agent, at once and with a `write` each.

    The CPU is without that of the agent, and without that of the same run on a short session.
    """
    ours = {
        tree.key(f"stream.{name}"): Tool.cuggino(*words, tree=tree)
        for name, words in MODES.items()
        for tree in trees
    }
    others = [Tool.peer(peer) for peer in peers]
    with _stream(session(turns)) as here:
        said = f"{here.count:,} lines ({here.size / 2**20:.0f} MiB)"
        keys = [*ours, *("stream.peer" for _ in others)]
        tools = [*ours.values(), *others]
        least, *taken = here.net_cpu(rounds, [FLOOR, *tools])
        for key, tool, cpu in zip(keys, tools, taken, strict=True):
            yield _figure(key, f"{tool.name}: {said}", cpu, least)
        ours = {tree.key("stream.one-by-one"): Tool.cuggino(tree=tree) for tree in trees}
        keys = [*ours, *("stream.one-by-one.peer" for _ in others)]
        tools = [*ours.values(), *others]
        least, *taken = here.net_cpu(rounds, [FLOOR, *tools], printed=prints_lines)
        for key, tool, cpu in zip(keys, tools, taken, strict=True):
            yield _figure(key, f"{tool.name}: the same, one write a line", cpu, least)


def shapes(
    *, count: int = 100_000, rounds: int = 3, trees: Sequence[Tree] = (HERE,)
) -> Iterator[Figure]:
    """Measure bursts of about `count` lines of the other kinds of sessions."""
    tools = {tree: Tool.cuggino(tree=tree) for tree in trees}
    for name, shape in SHAPES.items():
        if name == "mixed":
            continue  # that of `lines`
        with _stream(shape.lines(count // shape.turn)) as here:
            least, *taken = here.net_cpu(rounds, [FLOOR, *tools.values()])
            for tree, cpu in zip(tools, taken, strict=True):
                said = f"{tools[tree].name}: {here.count:,} lines, {shape.name}"
                yield _figure(tree.key(f"shape.{name}"), said, cpu, least)


def alone(
    *, count: int = 3_000, rounds: int = 3, pause: float = PAUSE, trees: Sequence[Tree] = (HERE,)
) -> Iterator[Figure]:
    """Measure each of `count` lines that come alone, as a real agent prints them.

    For each kind of session; a burst, of which many lines are read at once, is cheaper.
    """
    tools = {tree: Tool.cuggino(tree=tree) for tree in trees}
    for name, shape in SHAPES.items():
        with _stream(shape.lines(count // shape.turn)) as here:
            taken = here.net_cpu(
                rounds, [FLOOR, *tools.values()], printed=partial(prints_alone, pause=pause)
            )
            least, *ours = (cpu / here.count * 1e6 for cpu in taken)
            for tree, each in zip(tools, ours, strict=True):
                yield Figure(
                    key=tree.key(f"alone.{name}"),
                    name=f"{tools[tree].name}: a line alone, {shape.name}, CPU",
                    value=each,
                    unit="us",
                    floor=least,
                    floor_name=FLOOR.name,
                )


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
