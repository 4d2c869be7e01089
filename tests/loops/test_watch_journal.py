"""The journal of a watch, as the next one reads it."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cuggino import events as ev
from cuggino.domain.attempts import Attempts
from cuggino.loops import LoopRunOptions, WatchRunOptions
from cuggino.loops.frame.journal import open_journal
from cuggino.loops.watch.journal import (
    ITEM,
    SLOTS,
    WatchRecorder,
    conclude_runs,
    restore_attempts,
    settled_run,
)
from cuggino.storage import JournalFile, Workspace, list_journals, new_run_id, read_journal

AT = datetime(2026, 1, 2, tzinfo=UTC)
END = ev.LoopApproved(iteration=1)
MOST = ev.LoopMaxIterations(iteration=1, max_iterations=1)
ISSUE = ev.LoopSpecIssue(iteration=1, content="unclear", filename="i.md")
ONE, TWO = ev.WatchProcessingItem(filename="1.md"), ev.WatchProcessingItem(filename="2.md")
RETRY = ev.WatchItemRetry(
    filename="1.md", message="it failed", attempt=1, max_attempts=3, retry_in=60.0
)


def watch_of(folder: Path, *events: ev.Event) -> JournalFile:
    """Return the journal of a watch with these events."""
    workspace = Workspace(folder)
    options = WatchRunOptions(cwd=folder)
    journal = open_journal(workspace, options, new_run_id(), None, at=AT)
    for event in events:
        journal.append(event, at=AT, stage=ITEM if event in (END, ISSUE) else None)
    journal.close()
    (path,) = list_journals(workspace.journal)
    return read_journal(path)


@pytest.mark.parametrize(
    ("told", "settled"),
    [
        ((ONE, END), "1.md"),
        ((ONE, END, ONE), "1.md"),
        ((ONE, END, ev.WatchItemCompleted(filename="1.md"), TWO, END), "2.md"),
        ((ONE, END, TWO), None),
        ((ONE,), None),
        ((ONE, ISSUE), None),
        *(
            ((ONE, END, acted), None)
            for acted in (
                ev.WatchItemCompleted(filename="1.md"),
                ev.WatchItemRetained(filename="1.md"),
                ev.WatchItemParked(filename="1.md", reason="no"),
                RETRY,
            )
        ),
        ((ONE, END, ev.WatchItemRetained(filename="1.md"), ONE), None),
    ],
)
def test_a_run_that_had_ended(
    told: tuple[ev.Event, ...], settled: str | None, tmp_path: Path
) -> None:
    """The result of a run counts for its own item only, until the watch has acted on it."""
    found = settled_run(watch_of(tmp_path, *told))
    assert (None if settled is None else (settled, END)) == found


@pytest.mark.parametrize(
    ("events", "text", "state"),
    [
        ((END,), None, "approved"),
        ((END, ev.RunContinued()), None, "approved"),
        ((END,), "edited", "approved"),
        ((END,), "task", "unfinished"),  # the watch resumes it
        ((ISSUE,), "task", "spec_issue"),
        ((), None, "unfinished"),
        ((ev.RunContinued(),), None, "unfinished"),
        ((MOST, ev.RunEnded(state="max_iterations"), ev.RunContinued()), None, "unfinished"),
        (
            (MOST, ev.RunContinued(), ev.IterationStart(iteration=2, max_iterations=2)),
            None,
            "unfinished",
        ),
    ],
)
def test_an_end_that_was_not_recorded(
    events: tuple[ev.Event, ...], text: str | None, state: str, tmp_path: Path
) -> None:
    """The end of a run that was killed behind its result is recorded, unless it is resumed."""
    workspace = Workspace(tmp_path)
    workspace.open()
    if text is not None:
        (workspace.backlog / "my item.md").write_text(text)
    digest = hashlib.sha256(b"task").hexdigest()
    options = LoopRunOptions(cwd=tmp_path, focus="f", item=f"my item.md {digest}")
    journal = open_journal(workspace, options, new_run_id(), None, at=AT)
    for event in events:
        journal.append(event, at=AT)
    journal.close()
    conclude_runs(workspace)
    (path,) = list_journals(workspace.journal)
    run = read_journal(path)
    assert (state, AT) == (run.state, run.entries[-1].at)
    conclude_runs(workspace)
    assert run == read_journal(path)


def test_stalled_runs_are_restored(tmp_path: Path) -> None:
    """A killed watch's repetition of a stalled run is not repeated again."""
    stalled = RETRY.model_copy(update={"counted": False, "review": "why", "retry_in": 0.0})
    other = stalled.model_copy(update={"filename": "2.md"})
    done = ev.WatchItemCompleted(filename="2.md")
    attempts = Attempts(max_attempts=3, retry_seconds=60.0)
    restore_attempts(attempts, watch_of(tmp_path, stalled, other, done))
    assert ["why", None] == [attempts.review(name) for name in ("1.md", "2.md")]
    assert not attempts.stalled("1.md", "again")
    assert ["1.md", "2.md"] == [*attempts.due(["1.md", "2.md"], AT)]


def test_counted_failures_are_restored(tmp_path: Path) -> None:
    """A killed watch's failures count until the item is put away; limits never do."""
    limited = RETRY.model_copy(update={"filename": "2.md", "counted": False})
    parked = RETRY.model_copy(update={"filename": "3.md"})
    away = ev.WatchItemParked(filename="3.md", reason="no")
    attempts = Attempts(max_attempts=3, retry_seconds=60.0)
    restore_attempts(attempts, watch_of(tmp_path, RETRY, limited, parked, away))
    names = ["1.md", "2.md", "3.md"]
    assert [1, 0, 0] == [attempts.count(name) for name in names]
    assert ["2.md", "3.md"] == [*attempts.due(names, AT)]
    assert 60.0 == attempts.next_due(names, AT)


def test_what_a_person_said_is_in_the_journal_of_the_watch(tmp_path: Path) -> None:
    """The watch also records messages to an item's run, but not the agent's own words."""
    journal = open_journal(
        Workspace(tmp_path), WatchRunOptions(cwd=tmp_path), new_run_id(), None, at=AT
    )
    recorder = WatchRecorder(journal)
    recorder.replay(ITEM)
    said = (ev.SteerAsked(text="use A4"), ev.Steered(text="use A4", to="prompt"))
    for event in (*said, ev.AgentMessage(text="I do.")):
        recorder.event(event, staged=True, at=AT)
    journal.close()
    (path,) = list_journals(tmp_path / ".cuggino/journal")
    assert list(said) == [entry.event for entry in read_journal(path).entries][1:]


def test_the_commands_of_a_landing_are_in_the_journal_of_the_watch(tmp_path: Path) -> None:
    """The commands of an attempt are in the journal of its run."""
    journal = open_journal(
        Workspace(tmp_path), WatchRunOptions(cwd=tmp_path), new_run_id(), None, at=AT
    )
    recorder = WatchRecorder(journal)
    recorder.replay(SLOTS)
    check = ev.CheckCommandStarted(iteration=1, command="make", item="1.md")
    landing = (
        ev.WatchLanding(filename="1.md", commit="c", trunk="b", item="1.md"),
        check,
        ev.CheckCommandOutput(iteration=1, exit_code=0, item="1.md"),
        ev.WatchLanded(filename="1.md", commit="m", trunk_was="b", item="1.md"),
    )
    others = check.model_copy(update={"item": "2.md"})
    for event in (check, *landing[:2], others, *landing[2:], check):
        recorder.event(event, staged=True, at=AT)
    journal.close()
    (path,) = list_journals(tmp_path / ".cuggino/journal")
    assert list(landing) == [entry.event for entry in read_journal(path).entries][1:]
