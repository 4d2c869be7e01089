"""The hours of a watch, its recurring audits, items whose time comes, and its journal.

The clock begins at midnight UTC of 1 January 1970, a Thursday.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, never, operators as ops, timer

from cuggino import events as ev
from cuggino.domain.attempts import Attempts
from cuggino.errors import ConfigError
from cuggino.loops import LoopRunOptions, WatchRunOptions, WatchService
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
from cuggino.testing import Marbles
from tests.loops.coding_loop import drawn, marbles
from tests.loops.watching import Watching, line, times_and_tags

HOUR = 3600


def lasting(seconds: float) -> Observable[Any]:
    """Return an audit that finds nothing."""
    return timer(seconds).pipe(ops.ignore_elements())


def drawing(commands: dict[str, Any]) -> Marbles:
    """Return marbles in which digits are commands."""
    return Marbles(**commands)


class TestHours:
    def test_nothing_begins_before_them(self, tmp_path: Path) -> None:
        """The watch waits, goes on by itself, and takes no other item once they are over."""
        loops: list[tuple[float, Any]] = [(1.5 * HOUR, "approved"), (5, "approved")]
        watching = Watching(tmp_path, loops=loops, hours="1-2 UTC")
        watching.write(0, "001.md")
        watching.write(0, "002.md")
        assert [
            (0, "RunPaused"),
            (HOUR, "PauseEnded"),
            (HOUR, "WatchProcessingItem", "001.md"),
            (2.5 * HOUR, "LoopApproved"),
            (2.5 * HOUR, "WatchItemCompleted", "001.md"),
            (2.5 * HOUR, "RunPaused"),
            (25 * HOUR, "PauseEnded"),
            (25 * HOUR, "WatchProcessingItem", "002.md"),
        ] == watching.story(25 * HOUR)

    def test_several(self, tmp_path: Path) -> None:
        """One of several windows is enough, and none is closed where two meet."""
        loops: list[tuple[float, Any]] = [(1.5 * HOUR, "approved"), (5, "approved")]
        hours = ["1-2 UTC", "2-3 UTC", "* 5 * * 4 UTC"]
        watching = Watching(tmp_path, loops=loops, hours=hours)
        watching.write(0, "001.md")
        watching.write(0, "002.md")
        story = watching.story(2.6 * HOUR)
        assert (2.5 * HOUR, "WatchProcessingItem", "002.md") in story
        assert 1 == sum(entry[1] == "RunPaused" for entry in story)

    def test_an_idle_watch_takes_what_comes_in_its_hours(self, tmp_path: Path) -> None:
        """An item that comes outside of the hours waits for them."""
        watching = Watching(tmp_path, loops=[(5, "approved")], hours="0-1 UTC", settle_seconds=1)
        watching.write(2 * HOUR, "001.md")
        assert [
            (0, "WatchBacklogWaiting"),
            (2 * HOUR + 1, "RunPaused"),
            (24 * HOUR, "PauseEnded"),
            (24 * HOUR, "WatchProcessingItem", "001.md"),
        ] == watching.story(24 * HOUR)

    def test_a_person_pauses_and_continues_meanwhile(self, tmp_path: Path) -> None:
        """Both must be over; the wait that is shown has the end of the hours, or none."""
        watching = Watching(tmp_path, loops=[(5, "approved")], hours="1-2 UTC")
        watching.t = drawing({"1": ev.PauseAsked(), "2": ev.ContinueAsked()})
        watching.obey(watching.t.hot("- 10m 1 20m 2 10m 1 40m 2"))
        watching.write(0, "001.md")
        seen = watching.play(1.6 * HOUR)
        waits = [(at, event.until) for at, _, event in seen if isinstance(event, ev.RunPaused)]
        opening = watching.t.at(HOUR)
        assert [(0, opening), (601, None), (1802, opening), (2403, None)] == waits
        assert (4804, "WatchProcessingItem", "001.md") in times_and_tags(seen)

    def test_a_stop_ends_the_wait(self, tmp_path: Path) -> None:
        watching = Watching(tmp_path, hours="1-2 UTC")
        watching.t = drawing({"3": ev.StopAsked()})
        watching.obey(watching.t.hot("---3"))
        assert (3, "Interrupted") == watching.story(10)[-1]

    def test_the_stage_at_work_ends_first(self, tmp_path: Path) -> None:
        """A stage that runs when the hours end is not cut; the next one waits."""
        t = marbles()
        loop = drawn(tmp_path, t, [t.cold("- 61s c|")], "-d|", "-y|")
        service = WatchService(loop.service.services)
        loop.service.services.workspace.open()
        (loop.service.services.workspace.backlog / "001.md").write_text("task")
        options = WatchRunOptions(cwd=tmp_path, hours=["0:00-0:01 UTC", "0:10-1 UTC"])
        story = list(times_and_tags(t.record(service.run(options), until=605)))
        wanted = ("PlanningStart", "RunPaused", "PauseEnded", "ReviewingStart", "LoopApproved")
        assert (
            "0 PlanningStart, 63 RunPaused, 600 PauseEnded, 602 ReviewingStart, 604 LoopApproved"
        ) == line([entry for entry in story if entry[1] in wanted])

    def test_the_next_process_knows_them(self, tmp_path: Path) -> None:
        """A watch that ends while it waits, and starts again, waits for the same time."""
        for _process in range(2):
            watching = Watching(tmp_path, hours="1-2 UTC", journal=True)
            seen = watching.play(60)
            opening = watching.t.at(HOUR)
            assert [opening] == [one.until for _, _, one in seen if isinstance(one, ev.RunPaused)]

    @pytest.mark.parametrize("hours", ["25-7", "22-22", "22-7 Mars/Base"])
    def test_bad_ones(self, tmp_path: Path, hours: Any) -> None:
        with pytest.raises((ConfigError, ValueError)):
            WatchRunOptions(cwd=tmp_path, hours=hours)


class TestItems:
    @pytest.mark.parametrize("more", [{}, {"settle_seconds": 1}])
    def test_an_item_begins_when_its_time_comes(self, tmp_path: Path, more: dict[str, Any]) -> None:
        """It is held until then; others, and those after it, are not affected or wait for it."""
        watching = Watching(tmp_path, loops=[(5, "approved")] * 3, **more)
        watching.write(0, "001.md", "---\nafter: 1970-01-01 02:00 UTC\n---\ntask")
        watching.write(0, "002.md", "---\nafter: 001\n---\ntask")
        watching.write(0, "003.md")
        seen = watching.play(2 * HOUR + 10)
        begun = [entry for entry in times_and_tags(seen) if entry[1] == "WatchProcessingItem"]
        assert [
            (0, "WatchProcessingItem", "003.md"),
            (2 * HOUR, "WatchProcessingItem", "001.md"),
            (2 * HOUR + 5, "WatchProcessingItem", "002.md"),
        ] == begun
        held = [
            (event.filename, event.reason)
            for _, _, event in seen
            if isinstance(event, ev.WatchItemHeld)
        ]
        assert [("001.md", "until 1970-01-01 02:00 UTC")] == held

    def test_a_time_that_is_none(self, tmp_path: Path) -> None:
        """An item with a bad time is held for a person; one that is corrected begins."""
        watching = Watching(tmp_path, loops=[(5, "approved")], settle_seconds=1)
        watching.write(0, "001.md", "---\nafter: 1970-13-01\n---\ntask")
        watching.write(60, "001.md", "---\nafter: 1970-01-01 UTC\n---\ntask")
        seen = watching.play(61)
        reasons = [event.reason for _, _, event in seen if isinstance(event, ev.WatchItemHeld)]
        assert ["comes after 1970-13-01, which is not a time: month must be in 1..12"] == reasons
        assert (61, "WatchProcessingItem", "001.md") in times_and_tags(seen)


class TestAudits:
    def audits(self, watching: Watching, until: float) -> list[tuple[float, str]]:
        story = watching.story(until)
        return [(at, tag) for at, tag, *_ in story if tag.startswith("WatchAudit")]

    def test_again_and_again(self, tmp_path: Path) -> None:
        """The first begins at once, each other one six hours after the one before it."""
        watching = Watching(tmp_path, audits=[lasting(60)] * 3, audit_every="6h")
        assert [0, 60, 6 * HOUR, 6 * HOUR + 60, 12 * HOUR] == [
            at for at, _ in self.audits(watching, 12 * HOUR)
        ]

    def test_at_the_times_of_a_cron_expression(self, tmp_path: Path) -> None:
        """The first one waits for its time, too."""
        watching = Watching(tmp_path, audits=[lasting(60)] * 2, audit_every="0 3 * * * UTC")
        started = [at for at, tag in self.audits(watching, 28 * HOUR) if tag.endswith("Started")]
        assert [3 * HOUR, 27 * HOUR] == started

    def test_one_at_a_time(self, tmp_path: Path) -> None:
        """An audit that takes longer than the time between two is not doubled."""
        watching = Watching(tmp_path, audits=[lasting(90), lasting(5)], audit_every="1m")
        assert [0, 90, 120, 125] == [at for at, _ in self.audits(watching, 130)]

    def test_at_most_one_in_that_time(self, tmp_path: Path) -> None:
        """One that work has interrupted counts; work that comes in between interrupts none."""
        watching = Watching(
            tmp_path,
            audits=[never(), lasting(5)],
            audit_every="1h",
            loops=[(5, "approved")] * 2,
            settle_seconds=1,
        )
        watching.write(10, "001.md")
        watching.write(600, "002.md")
        assert [
            (0, "WatchAuditStarted"),
            (11, "WatchAuditInterrupted"),
            (HOUR, "WatchAuditStarted"),
            (HOUR + 5, "WatchAuditEnded"),
        ] == self.audits(watching, HOUR + 10)

    def test_the_next_process_counts_the_last_one(self, tmp_path: Path) -> None:
        """A watch that starts anew does not audit again before the time has come."""
        first = Watching(tmp_path, audits=[lasting(5)], audit_every="1h", journal=True)
        assert [0, 5] == [at for at, _ in self.audits(first, 60)]
        second = Watching(tmp_path, audits=[lasting(5)], audit_every="1h", journal=True)
        assert [HOUR, HOUR + 5] == [at for at, _ in self.audits(second, HOUR + 10)]

    def test_none_begins_outside_of_the_hours(self, tmp_path: Path) -> None:
        """An audit that is due outside of them begins with them; one at work ends."""
        watching = Watching(
            tmp_path, audits=[lasting(2 * HOUR)] * 2, audit_every="2h", hours="0-1 UTC"
        )
        assert [(0, "Started"), (2 * HOUR, "Ended"), (24 * HOUR, "Started")] == [
            (at, tag.removeprefix("WatchAudit")) for at, tag in self.audits(watching, 25 * HOUR)
        ]

    def test_it_needs_the_audit(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match='"auditEvery" requires "audit": true'):
            WatchRunOptions(cwd=tmp_path, audit_every="6h")


# -- the journal of a watch, as the next one reads it


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
