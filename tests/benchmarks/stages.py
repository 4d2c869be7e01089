"""Overhead between agents: stages, starts and ends of processes, the journal, a full backlog."""

from __future__ import annotations

import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import repeat
from pathlib import Path

from cuggino import Config, Runtime
from cuggino.edges import iterate, run as run_stream
from cuggino.events import (
    AgentMessage,
    Event,
    Note,
    RunEnded,
    RunStarted,
    ToolCall,
    WatchItemCompleted,
    WatchProcessingItem,
)
from cuggino.operators import Flow, LoopScheduler, emit, flow, forward
from cuggino.sources.process import process_lines
from cuggino.storage.journal import Journal
from cuggino.testing import AgentRun, InMemoryAgent
from tests.benchmarks.measuring import Figure, in_turns, seconds
from tests.limits import LIMIT


def overhead(*, stages: int = 50, many: int = 10_000) -> Iterator[Figure]:
    """Compare a stage that runs a process with the process alone; measure empty stages."""
    argv = ["/bin/sh", "-c", "echo said"]

    def told() -> Flow[None]:
        for _ in range(stages):
            yield from forward(process_lines(argv))

    def plain() -> float:
        def act() -> None:
            for _ in range(stages):
                subprocess.run(argv, stdout=subprocess.PIPE, check=True)

        return seconds(act) / stages * 1e3

    def ours() -> float:
        return seconds(lambda: run_stream(flow(told))) / stages * 1e3

    least, taken = in_turns(7, plain, ours)
    yield Figure(
        name="a stage over a plain subprocess",
        value=taken - least,
        unit="ms",
        floor=least,
        floor_name="subprocess.run",
        most=3.0,
    )

    def empty() -> Flow[None]:
        for _ in range(many):
            yield from forward(flow(lambda: emit(Note(content=""))))

    (took,) = in_turns(3, lambda: seconds(lambda: run_stream(flow(empty))), best=True)
    yield Figure(name=f"{many:,} stages without a process", value=took, unit="s", most=2.0)


def processes(*, rounds: int = 15) -> Iterator[Figure]:
    """Measure from subscription to the first line, and from disposal to the process's end."""
    argv = ["/bin/sh", "-c", "echo said; exec sleep 600"]

    def plain() -> tuple[float, float]:
        began = time.perf_counter()
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            first = time.perf_counter()
            process.kill()
            process.wait()
        return (first - began) * 1e3, (time.perf_counter() - first) * 1e3

    lane = LoopScheduler()

    def ours() -> tuple[float, float]:
        said = threading.Event()
        began = time.perf_counter()
        subscription = process_lines(argv).subscribe(lambda _: said.set(), scheduler=lane)
        said.wait(LIMIT)
        first = time.perf_counter()
        subscription.dispose()
        return (first - began) * 1e3, (time.perf_counter() - first) * 1e3

    try:
        starts = in_turns(rounds, lambda: plain()[0], lambda: ours()[0])
        ends = in_turns(rounds, lambda: plain()[1], lambda: ours()[1])
    finally:
        lane.close()
    for name, (least, taken) in (
        ("subscription to first line", starts),
        ("disposal to reaped tree", ends),
    ):
        yield Figure(
            name=name,
            value=taken,
            unit="ms",
            floor=least,
            floor_name="Popen, readline" if name.startswith("sub") else "kill, wait",
            ratio=taken / least,
        )


def journal(*, entries: int = 2000) -> Iterator[Figure]:
    """Measure a journal entry, with and without waiting for the disk at decisions."""
    event = ToolCall(name="Bash", input={"command": "python3 -m pytest -q"}, id="t")
    at = datetime(2026, 1, 1, tzinfo=UTC)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)

        def appended(count: int, said: Event, run_id: str, *, sync: bool) -> float:
            began_with = RunStarted(run_id=run_id, kind="run", command="bench")
            written = Journal.create(folder, began_with, at=at, sync=sync)
            try:
                return seconds(lambda: [written.append(said, at=at) for _ in range(count)])
            finally:
                written.close()
                written.path.unlink()

        line = b"x" * 300 + b"\n"

        def plain() -> float:
            with (folder / "plain").open("wb", buffering=0) as file:
                return seconds(lambda: [file.write(line) for _ in range(entries)]) / entries * 1e6

        least, taken = in_turns(
            5,
            plain,
            lambda: appended(entries, event, "bench", sync=False) / entries * 1e6,
        )
        yield Figure(
            name="an entry of the journal",
            value=taken,
            unit="us",
            floor=least,
            floor_name="write of 300 bytes",
            ratio=taken / least,
        )
        decides = RunEnded(state="failed")
        few = max(entries // 40, 1)
        (synced,) = in_turns(
            3, lambda: appended(few, decides, "bench", sync=True) / few * 1e6, warm=0
        )
        yield Figure(
            name="an entry that waits for the disk (fsync)",
            value=synced,
            unit="us",
            floor=taken,
            floor_name="an entry that does not",
            ratio=synced / taken,
        )


def backlog(*, items: int = 10_000, worked: int = 50) -> Iterator[Figure]:
    """Measure a watch on a full backlog: until the first item, and for each further one."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / ".specs").mkdir()
        (folder / ".specs" / "a.md").write_text("A specification.\n")
        (folder / ".cuggino" / "backlog").mkdir(parents=True)

        def played(count: int) -> tuple[float, float]:
            for number in range(count):
                (folder / ".cuggino" / "backlog" / f"{number:05}.md").write_text("Do it.\n")
            began = time.perf_counter()
            first = last = 0.0
            done = 0
            config = Config(settle_seconds=0.05, guard="off")
            for event in iterate(Runtime.live(cwd=folder, config=config, agent=_agent()).watch()):
                match event:
                    case WatchProcessingItem() if not first:
                        first = time.perf_counter() - began
                    case WatchItemCompleted():
                        done += 1
                        if done == min(worked, count):
                            last = time.perf_counter() - began
                            break
                    case _:
                        pass
            return first, (last - first) / done * 1e3

        few_first, few_each = played(worked)
        many_first, many_each = played(items)
    yield Figure(
        name=f"watch: first of {items:,} items",
        value=many_first,
        unit="s",
        floor=few_first,
        floor_name=f"first of {worked}",
    )
    yield Figure(
        name=f"watch: an item of {items:,}",
        value=many_each,
        unit="ms",
        floor=few_each,
        floor_name=f"an item of {worked}",
        ratio=many_each / few_each,
    )


def _agent() -> InMemoryAgent:
    """Return an agent that plans, implements and approves immediately, without a process."""

    def says(text: str, plan: str | None = None) -> Iterator[AgentRun]:
        return repeat(AgentRun([AgentMessage(text=text)], plan=plan))

    return InMemoryAgent(
        {
            "planning": says("<PLAN_COMPLETE>x</PLAN_COMPLETE>", "# Plan\n\n## Task 1: x\n"),
            "implementing": says("<DONE>x</DONE>"),
            "reviewing": says("<APPROVED>x</APPROVED>"),
        }
    )
