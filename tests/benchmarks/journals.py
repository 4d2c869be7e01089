"""The journal: an entry, the list of many long runs, and the resuming of one."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from shutil import copytree, rmtree

from cuggino.events import AgentMessage, Event, RunEnded, RunStarted, ToolCall, ToolResult
from cuggino.storage.journal import Journal, last_entry
from tests.benchmarks.measuring import Figure, Took, in_turns, run, seconds, took_in_turns
from tests.benchmarks.project import Peak, Tool, calling, iterations, project

_AT = datetime(2026, 1, 1, tzinfo=UTC)
_CALL = ToolCall(name="Bash", input={"command": "python3 -m pytest -q"}, id="t")


def entries(*, count: int = 2000) -> Iterator[Figure]:
    """Measure a journal entry, with and without waiting for the disk."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)

        def appended(count: int, said: Event, *, sync: bool) -> float:
            started = RunStarted(run_id="bench", kind="run", command="bench")
            written = Journal.create(folder, started, at=_AT, sync=sync)
            try:
                spent = seconds(lambda: [written.append(said, at=_AT) for _ in range(count)])
            finally:
                written.close()
                written.path.unlink()
            return spent / count * 1e6

        line = b"x" * 300 + b"\n"

        def plain() -> float:
            with (folder / "plain").open("wb", buffering=0) as file:
                return seconds(lambda: [file.write(line) for _ in range(count)]) / count * 1e6

        least, taken = in_turns(5, plain, partial(appended, count, _CALL, sync=False))
        yield Figure(
            key="journal.entry",
            name="an entry of the journal",
            value=taken,
            unit="us",
            floor=least,
            floor_name="a write of 300 bytes",
        )
        few, decides = max(count // 40, 1), RunEnded(state="failed")
        (synced,) = in_turns(3, partial(appended, few, decides, sync=True), warm=0)
        yield Figure(
            key="journal.synced",
            name="an entry that waits for the disk (fsync)",
            value=synced,
            unit="us",
            floor=taken,
            floor_name="an entry that does not",
        )


def runs(*, journals: int = 200, events: int = 1_000_000, rounds: int = 5) -> Iterator[Figure]:
    """Measure `cuggino runs`, with digests and without."""
    with tempfile.TemporaryDirectory() as few, tempfile.TemporaryDirectory() as many:
        _write_journals(Path(few), 1, 10)
        _write_journals(Path(many), journals, events // journals)
        argv = [sys.executable, "-m", "cuggino_cli", "runs"]

        def listed(folder: str) -> Took:
            return run(argv, cwd=Path(folder))

        least, taken = took_in_turns(rounds, partial(listed, few), partial(listed, many))
        name = f"cuggino runs: {journals} journals, {events:,} events"
        floor_name = "one journal of 10 events"
        yield Figure(
            key="runs.list",
            name=f"{name}, CPU",
            value=taken.cpu,
            unit="s",
            floor=least.cpu,
            floor_name=floor_name,
        )
        for digest in (Path(many) / ".cuggino" / "digests").iterdir():
            digest.unlink()
        yield Figure(
            key="runs.undigested",
            name=f"{name} without their digests, CPU",
            value=listed(many).cpu,
            unit="s",
            floor=least.cpu,
            floor_name=floor_name,
        )


def long_run(*, events: int = 1_000_000) -> Iterator[Figure]:
    """Measure commands that read an unfinished run's journal, with `events` events and with few."""
    commands = {
        "show": ("cuggino runs show", ("runs", "show", "0")),
        "report": ("cuggino report", ("report",)),
        "resume": ("cuggino run --resume", ("run", "--resume")),
    }
    with project(maxTokens=10**12) as here:
        plan, work, review = iterations(1)
        pid, kept = here.folder.parent / "pid", here.folder.parent / "kept"
        here.plays(plan, f"read -r pid <'{pid}'\nkill -9 $pid\n")
        killed = f"import os; open({str(pid)!r}, 'w').write(f'{{os.getpid()}}\\n')\n"
        killed += calling("run", "--focus", "x")
        here.run(Tool("", (sys.executable, "-c", killed), (-9,)))
        here.plays(work, review)
        (here.folder / ".cuggino").rename(kept)

        def measured() -> Iterator[Peak]:
            for _, words in commands.values():
                rmtree(here.folder / ".cuggino", ignore_errors=True)
                copytree(kept, here.folder / ".cuggino")
                here.reset_calls()
                yield here.run_python(calling(*words))

        few = list(measured())
        (file,) = (kept / "journal").glob("*.jsonl")
        _continue(file, events)
        taken = measured()
        for (key, (name, _)), least in zip(commands.items(), few, strict=True):
            used = next(taken)
            yield Figure(
                key=f"long.{key}.memory",
                name=f"{name} after {events:,} events, peak memory more than the floor",
                value=used.peak - least.peak,
                unit="MiB",
                floor=least.peak,
                floor_name="after some events",
            )
            yield Figure(
                key=f"long.{key}.cpu",
                name=f"{name} after {events:,} events, CPU",
                value=used.cpu,
                unit="s",
                floor=least.cpu,
                floor_name="after some events",
            )


def _continue(file: Path, events: int) -> None:
    """Add events to the last stage of an unfinished run."""
    last = last_entry(file)
    journal = Journal.open(file, sync=False)
    for event in islice(cycle(_EVENTS), events):
        journal.append(event, at=_AT, stage=last.stage if last else None)
    journal.close()


_EVENTS: tuple[Event, ...] = (
    AgentMessage(text="I look at this part of it now. " * 5, message_id="m"),
    _CALL,
    ToolResult(name="t", output="    value = compute()\n" * 5),
)


def _write_journals(folder: Path, count: int, events: int) -> None:
    """Write `count` journals of runs with `events` events each."""
    for number in range(count):
        started = RunStarted(
            run_id=f"20260101-0000{number:04}", kind="run", command="run", focus="x"
        )
        journal = Journal.create(folder / ".cuggino" / "journal", started, at=_AT, sync=False)
        for event in islice(cycle(_EVENTS), events):
            journal.append(event, at=_AT, stage="1")
        journal.append(RunEnded(state="failed"), at=_AT)
        journal.close()
