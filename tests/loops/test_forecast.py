"""The forecast at the start of a run or watch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.storage.journal import Journal, JournalFile, list_journals, read_journal
from tests.loops.crashes import LOOPS, WATCH, Scenario
from tests.loops.durable_runs import CodingProcess, Process

AT = datetime(2026, 11, 22, 9, tzinfo=UTC)


def record(process: Process, kind: str, *, item: str | None = None, runs: int = 3) -> None:
    """Record earlier runs, of which each took ten seconds longer, and cost a dollar more."""
    for number in range(1, runs + 1):
        started = ev.RunStarted.model_validate(
            {"run_id": f"0000-{number}", "kind": kind, "command": "c", "item": item}
        )
        journal = Journal.create(process.workspace.journal, started, at=AT, sync=False)
        spent = ev.SessionEnded(outcome="completed", cost_usd=float(number))
        journal.append(spent, at=AT)
        journal.append(ev.RunEnded(state="approved"), at=AT + timedelta(seconds=10 * number))
        journal.close()


def latest(process: Process) -> JournalFile:
    return read_journal(list_journals(process.workspace.journal)[0])


def forecasts(journal: JournalFile) -> list[ev.Event]:
    return [entry.event for entry in journal.entries if isinstance(entry.event, ev.Forecast)]


@pytest.mark.parametrize("loop", LOOPS)
def test_before_the_first_agent(loop: str, tmp_path: Path) -> None:
    """The forecast is the first event of a run, and in its journal."""
    process = LOOPS[loop].process(tmp_path)
    record(process, process.kind)
    process.prepare()
    story = process.run(**LOOPS[loop].options)
    assert story.completed, story
    first, *others = story.events
    assert process.kind != "watch"
    assert first == ev.Forecast(
        loop=process.kind, runs=3, duration=20, worst_duration=30, cost_usd=2, worst_cost_usd=3
    )
    assert [] == [event for event in others if isinstance(event, ev.Forecast)]
    assert [first] == forecasts(latest(process))


def test_before_a_watch(tmp_path: Path) -> None:
    """A watch forecasts its items once, and the runs of the items do not repeat it."""
    process = WATCH.process(tmp_path)
    record(process, "run", item="old.md 1")
    process.prepare()
    items = len(list(process.workspace.backlog.iterdir()))
    story = process.run(**WATCH.options)
    (made,) = story.of(ev.Forecast)
    assert ("item", 3, 20.0, items) == (made.loop, made.runs, made.duration, made.items)
    assert items > 0
    of_kind = {
        run.started.kind: forecasts(run) for run in process.journals if run.run_id[:5] != "0000-"
    }
    assert {"watch": [made], "run": []} == of_kind


def record_others(process: Process) -> None:
    """Record runs of items, which are not compared with a run."""
    for number in range(4):
        started = ev.RunStarted(run_id=f"0001-{number}", kind="run", command="c", item="a.md 1")
        journal = Journal.create(process.workspace.journal, started, at=AT, sync=False)
        journal.append(ev.RunEnded(state="approved"), at=AT)
        journal.close()


def test_journals_that_cannot_be_read(tmp_path: Path) -> None:
    """Broken journals of earlier runs never stop a run."""
    process = LOOPS["coding"].process(tmp_path)
    record(process, "run")
    (process.workspace.journal / "0000-4.jsonl").write_text("{\n\n")
    (process.workspace.journal / "0000-3.jsonl").write_bytes(b"\xff\n\xff\n")
    story = process.run()
    assert story.completed, story
    assert [] == story.of(ev.Forecast)


WEAK: dict[str, Any] = {"check_command": "true", "gate": "context", "baseline": "skip"}
NOTICES: list[tuple[str, int, dict[str, Any], str]] = [
    *((loop, 3, {}, "Forecast") for loop in LOOPS),
    ("coding", 0, WEAK, "CheckCannotFail CheckDoesNotDecide"),
    ("coding", 3, WEAK, "Forecast CheckCannotFail CheckDoesNotDecide"),
]


@pytest.mark.parametrize(("loop", "runs", "options", "notices"), NOTICES)
def test_a_resumed_run(
    loop: str, runs: int, options: dict[str, Any], notices: str, tmp_path: Path
) -> None:
    """Each process reports its notices, without itself; no other event is lost or repeated."""
    scenario: Scenario = LOOPS[loop]
    whole = scenario.process(tmp_path / "whole")
    whole.run(**options)
    process = scenario.process(tmp_path / "cut")
    record(process, process.kind, runs=runs)
    process.run(dispose_at=3.5, **options)
    again = scenario.process(tmp_path / "cut")
    story = again.resume(known=latest(process), **options)
    assert story.completed, story
    tags = notices.split()
    assert ["RunResumed", *tags] == [event.tag for event in story.events[: len(tags) + 1]]
    expected = [tag for tag in unstaged(whole) if tag not in tags]
    found = unstaged(again)
    assert expected == [tag for tag in found if tag not in tags]
    assert [2] * len(tags) == [found.count(tag) for tag in tags]


def unstaged(process: Process) -> list[str]:
    """Return the tags of the events of the loop itself in the latest journal."""
    return [
        entry.event.tag
        for entry in latest(process).entries
        if entry.stage is None and not ev.is_journal_event(entry.event)
    ]


def test_the_version_of_the_prompts(tmp_path: Path) -> None:
    """A journal names the version of the prompts, which own templates change."""
    versions: list[str] = []
    for text in (None, None, "# Plan it: {{ focus }}"):
        process = CodingProcess(tmp_path / str(len(versions)), LOOPS["coding"].turns)
        if text is not None:
            process.workspace.prompts.mkdir(parents=True)
            (process.workspace.prompts / "planning.md").write_text(text)
        process.run()
        versions.append(latest(process).started.prompts)
    first, same, other = versions
    assert 8 == len(first)
    assert first == same != other
