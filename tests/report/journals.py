"""Journals for the tests: those in `tests/data/journals`, and ones built in one line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cuggino.events import Event, RunStarted, StageStarted
from cuggino.report import RunReport, build_report
from cuggino.storage.journal import Entry, read_journal

FOLDER = Path(__file__).parent.parent / "data" / "journals"
NAMES = sorted(path.stem for path in FOLDER.glob("*.jsonl"))
START = datetime(2026, 11, 20, 21, 0, tzinfo=UTC)
STARTED = RunStarted(run_id="the-id", kind="run", command="cuggino run")


def after(seconds: float) -> datetime:
    """Return the time this long after the start."""
    return START + timedelta(seconds=seconds)


def report_of(name: str, **options: Any) -> RunReport:
    """Return the report on a journal of the folder."""
    journal = read_journal(FOLDER / f"{name}.jsonl")
    return build_report(journal.entries, torn=journal.torn, **options)


def entries_of(*said: Event | tuple[str | None, Event], every: float = 1.0) -> tuple[Entry, ...]:
    """Return entries at intervals of `every` seconds, `STARTED` first; a pair adds the stage."""
    pairs = [(None, event) if isinstance(event, Event) else event for event in (STARTED, *said)]
    return tuple(
        Entry(seq=n, at=after((n - 1) * every), stage=stage, event=event)
        for n, (stage, event) in enumerate(pairs, start=1)
    )


def begin(stage: str) -> tuple[str, StageStarted]:
    """Return the start of the stage."""
    return stage, StageStarted(name=stage.partition("#")[0])
