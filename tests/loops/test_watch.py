"""The watch beyond the scenarios, in virtual time with real folders."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from reactivex import never

from cuggino import errors, events as ev
from cuggino.loops.watch.waiting import Situation, waiting_phase
from cuggino.storage import Backlog, Survey, Workspace
from cuggino.storage.moving import visible_entries
from cuggino.testing import Marbles
from tests.loops.watching import Watching, line

FAILED = errors.LoopError("implementing", "the connection was lost")


def values(watching: Watching, until: float, kind: type[Any]) -> list[Any]:
    return [event for _, _, event in watching.play(until) if isinstance(event, kind)]


class TestLargeBacklogs:
    def test_listed_now_and_then(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A large backlog is listed again only after ten times as long as that takes."""
        monkeypatch.setattr("cuggino.loops.watch.items._FEW", 2)
        monkeypatch.setattr("cuggino.loops.watch.items._EACH", timedelta(seconds=3))
        listed: list[int] = []
        survey = Backlog.survey

        def noted(backlog: Backlog) -> Survey:
            listed.append(1)
            return survey(backlog)

        monkeypatch.setattr(Backlog, "survey", noted)
        watching = Watching(tmp_path, loops=[(4, "approved")] * 6)
        for number in range(2, 7):
            watching.write(0, f"{number:03}.md")
        watching.write(5, "001.md")  # before all others, but not seen until second 16
        backlog = watching.workspace.backlog
        watching.at(6, (backlog / "005.md").unlink, backlog)
        processed = [
            (when, event.filename)
            for when, _, event in watching.play(19)
            if isinstance(event, ev.WatchProcessingItem)
        ]
        assert "0 002.md, 4 003.md, 8 004.md, 12 006.md, 16 001.md" == line(processed)
        assert 2 == len(listed)


class TestRetries:
    def test_growing_pauses_then_parked(self, tmp_path: Path) -> None:
        """An item that fails is tried again after 60 and 120 s, then parked with the reason."""
        watching = Watching(tmp_path, loops=[(5, FAILED)] * 3, max_attempts=3, retry_seconds=60)
        watching.write(0, "001.md")
        seen = watching.play(1000)
        assert (
            "0 ProcessingItem, 5 ItemRetry, 65 ProcessingItem, 70 ItemRetry, "
            "190 ProcessingItem, 195 ItemParked, 195 BacklogWaiting"
        ) == line([(when, event.tag) for when, _, event in seen])
        retries = [event for _, _, event in seen if isinstance(event, ev.WatchItemRetry)]
        assert [(1, 60), (2, 120)] == [(event.attempt, event.retry_in) for event in retries]
        assert [] == watching.backlog
        parked = watching.workspace.parked / "001.md"
        assert "task" == parked.read_text()
        reason = next(event for _, _, event in seen if isinstance(event, ev.WatchItemParked)).reason
        assert "Loop error in implementing phase: the connection was lost" == reason

    def test_a_poisoned_item_does_not_block_the_others(self, tmp_path: Path) -> None:
        """While one item waits for its next attempt, the next one is worked on."""
        watching = Watching(
            tmp_path, loops=[(5, FAILED), (3, "approved"), (4, "approved")], retry_seconds=60
        )
        watching.write(0, "001.md")
        watching.write(0, "002.md")
        assert (
            "0 ProcessingItem 001.md, 5 ItemRetry 001.md, 5 ProcessingItem 002.md, "
            "8 LoopApproved, 8 ItemCompleted 002.md, 65 ProcessingItem 001.md, "
            "69 LoopApproved, 69 ItemCompleted 001.md, 69 BacklogWaiting"
        ) == line(watching.story(500))

    def test_a_new_item_is_taken_during_a_pause(self, tmp_path: Path) -> None:
        """An item that arrives while another one is paused is taken when it has settled."""
        watching = Watching(
            tmp_path, loops=[(5, FAILED), (1, "approved"), (1e9, "approved")], retry_seconds=100
        )
        watching.write(0, "002.md")
        watching.write(20, "003.md")
        assert (50, "WatchProcessingItem", "003.md") in watching.story(60)

    def test_a_usage_limit_costs_no_attempt(self, tmp_path: Path) -> None:
        """Nothing is tried until a minute after a usage limit is lifted, and nothing is parked."""
        watching = Watching(tmp_path, max_attempts=1)
        lifted = watching.t.scheduler.now + timedelta(hours=2)
        limit = errors.LoopError(
            "planning", "limit", cause=errors.QuotaExceeded("limit", resets_at=lifted)
        )
        watching.loop._runs = iter([(5, limit), (5, "approved"), (5, "approved")])
        watching.write(0, "001.md")
        watching.write(0, "002.md")
        story = watching.story(8000)
        assert [
            (0, "WatchProcessingItem", "001.md"),
            (5, "WatchItemRetry", "001.md"),
            (7260, "WatchProcessingItem", "001.md"),
        ] == story[:3]
        assert "WatchItemParked" not in {tag for _, tag, *_ in story}

    def test_an_expired_login_waits_for_a_person(self, tmp_path: Path) -> None:
        """Nothing is parked, the person is notified once, and work continues after the login."""
        expired = errors.AgentFailed("Invalid API key", reason="auth", hint="log in")
        error = errors.LoopError("planning", "Invalid API key", cause=expired)
        loops: list[tuple[float, Any]] = [*[(5, error)] * 30, (5, "approved"), (5, "approved")]
        watching = Watching(tmp_path, max_attempts=1, loops=loops)
        watching.write(0, "001.md")
        watching.write(0, "002.md")
        retries = values(watching, 900 * 40, ev.WatchItemRetry)
        assert [True] + [False] * 29 == [retry.login for retry in retries]
        assert {900.0} == {retry.retry_in for retry in retries}
        assert {"001.md"} == {retry.filename for retry in retries}
        assert retries[0].message.endswith("Invalid API key; log in")
        assert [] == list(_names(watching.workspace.parked))
        assert 32 == len(watching.loop.options)

    def test_a_login_that_expires_again_is_reported_again(self, tmp_path: Path) -> None:
        """The person has logged in, and work continued, in between."""
        error = errors.LoopError("p", "no", cause=errors.AgentFailed("no", reason="auth"))
        loops: list[tuple[float, Any]] = [(5, error), (5, "approved"), (5, error), (5, "approved")]
        watching = Watching(tmp_path, loops=loops)
        watching.write(0, "001.md")
        watching.write(0, "002.md")
        retries = values(watching, 900 * 4, ev.WatchItemRetry)
        assert [("001.md", True), ("002.md", True)] == [
            (retry.filename, retry.login) for retry in retries
        ]

    def test_an_item_that_is_gone_when_its_run_fails(self, tmp_path: Path) -> None:
        """An item deleted during a failing run is neither tried again nor parked."""
        watching = Watching(tmp_path, loops=[(5, FAILED)])
        watching.write(0, "001.md")
        watching.at(2, lambda: (watching.workspace.backlog / "001.md").unlink())
        assert [(0, "WatchProcessingItem", "001.md"), (5, "WatchBacklogWaiting")] == watching.story(
            100
        )


class TestEndings:
    def test_the_archive_keeps_the_item_with_its_outcome(self, tmp_path: Path) -> None:
        """A finished item is in the archive, as it was, with its outcome in the name."""
        loops: list[Any] = [(1, "approved"), (1, "max_iterations")]
        watching = Watching(tmp_path, loops=loops, on_max_iterations="complete")
        watching.write(0, "001.md", "one")
        watching.write(0, "002.md", "two")
        watching.play(100)
        archived = sorted(watching.workspace.archive.iterdir(), key=lambda path: path.name[-6:])
        assert ["one", "two"] == [path.read_text() for path in archived]
        assert ["-approved-001.md", "-max-iterations-002.md"] == [p.name[36:] for p in archived]

    def test_unapproved_work_is_parked(self, tmp_path: Path) -> None:
        """An item that was not approved waits for a person."""
        watching = Watching(tmp_path, loops=[(1, "max_iterations")])
        watching.write(0, "001.md")
        parked = values(watching, 100, ev.WatchItemParked)
        assert [("001.md", "not approved within 3 iterations")] == [
            (event.filename, event.reason) for event in parked
        ]
        assert ["001.md"] == list(map(str, _names(watching.workspace.parked)))

    def test_a_stalled_item_is_tried_once_more(self, tmp_path: Path) -> None:
        """A stalled run is repeated once, with its findings; then the item waits for a person."""
        watching = Watching(tmp_path, loops=[(1, "stalled"), (1, "stalled")])
        watching.write(0, "001.md")
        story = [entry[:2] for entry in watching.story(100) if entry[1].startswith("Watch")]
        assert "0 ProcessingItem, 1 ItemRetry, 1 ProcessingItem, 2 ItemParked" == line(story[:4])
        first, second = watching.loop.options
        assert (None, False) == (first.review, first.store_findings)
        assert "made no progress: no progress." in (second.review or "")
        assert "- the title is missing" in (second.review or "")
        assert second.store_findings

    def test_a_stalled_item_that_is_done_at_last(self, tmp_path: Path) -> None:
        """The second run may be approved; a later item of that name starts over."""
        loops: list[tuple[float, Any]] = [(1, "stalled"), (1, "approved"), (1, "stalled")]
        watching = Watching(tmp_path, loops=loops)
        watching.write(0, "001.md")
        watching.write(10, "001.md")
        tags = [entry[1] for entry in watching.story(100)]
        assert 1 == tags.count("WatchItemCompleted")
        assert 2 == tags.count("WatchItemRetry")
        assert [None, True, None] == [
            options.review and True for options in watching.loop.options[:3]
        ]

    def test_an_item_edited_again_and_again_is_parked(self, tmp_path: Path) -> None:
        """An item that changes during each of three runs is parked."""
        watching = Watching(tmp_path, loops=[(10, "approved")] * 5, max_attempts=3)
        watching.write(0, "001.md")
        for n in range(3):
            watching.write(5 + 10 * n, "001.md", f"text {n}")
        assert [(10, "WatchItemRetained"), (20, "WatchItemRetained"), (30, "WatchItemParked")] == [
            entry[:2] for entry in watching.story(100) if entry[1].startswith("WatchItem")
        ]

    def test_a_full_disk_while_archiving(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An item that cannot be moved stays, and the watch ends with one message."""

        def full(*_args: Any, **_kwargs: Any) -> Any:
            raise errors.StorageError("archive", "no space left")

        monkeypatch.setattr("cuggino.storage.backlog.move_to_archive", full)
        watching = Watching(tmp_path, loops=[(5, "approved")])
        watching.write(0, "001.md")
        seen = watching.play(100)
        assert (5, "error") == seen[-1][:2]
        assert "no space left" == str(seen[-1][2])
        assert ["001.md"] == watching.backlog

    def test_stopped_while_working(self, tmp_path: Path) -> None:
        """A watch that is stopped has ended the loop, freed the lock, and kept the item."""
        watching = Watching(tmp_path, loops=[(500, "approved")])
        watching.write(0, "001.md")
        watching.play(30, dispose_at=20)
        assert 1 == watching.loop.disposed
        assert ["001.md"] == watching.backlog
        with Workspace(tmp_path).lock():
            assert [] == watching.watched


class TestDependencies:
    def test_an_item_begins_after_those_before_it(self, tmp_path: Path) -> None:
        """`after` in its front matter goes before the order of names, and is not in the focus."""
        watching = Watching(tmp_path, loops=[(2, FAILED)] + [(5, "approved")] * 3, retry_seconds=60)
        watching.write(0, "a.md", "---\nafter: [b, c]\n---\ntask a")
        watching.write(0, "b.md", "task b")
        watching.write(0, "c.md", "task c")
        story = watching.story(200)
        assert "0 b.md, 2 c.md, 62 b.md, 67 a.md" == line(
            [(when, name[0]) for when, tag, *name in story if tag == "WatchProcessingItem"]
        )
        assert watching.loop.options[-1].focus.endswith("with this content:\n\ntask a")
        assert [] == watching.backlog

    def test_held_items_are_reported_once(self, tmp_path: Path) -> None:
        """The others go on, and a held one begins when its reason is gone."""
        watching = Watching(tmp_path, loops=[(5, "approved")] * 3)
        watching.write(0, "a.md", "---\nafter: a\n---\ntask")
        watching.write(0, "b.md", "---\nafter: c\n---\ntask")
        watching.write(0, "d.md")
        watching.write(50, "c.md")
        seen = watching.play(200)
        assert [
            ("a.md", "comes after itself: a.md -> a.md"),
            ("b.md", "comes after c, which is not in the backlog"),
        ] == [
            (event.filename, event.reason)
            for _, _, event in seen
            if isinstance(event, ev.WatchItemHeld)
        ]
        assert [(0, "d.md"), (80, "c.md"), (85, "b.md")] == [
            (when, event.filename)
            for when, _, event in seen
            if isinstance(event, ev.WatchProcessingItem)
        ]
        assert ["a.md"] == watching.backlog


class TestProblems:
    def test_other_files_are_reported_once(self, tmp_path: Path) -> None:
        """A folder and an empty file are reported once each."""
        watching = Watching(tmp_path, loops=[(1, "approved")])
        (watching.workspace.backlog / "folder").mkdir()
        watching.write(0, "empty.md", "")
        watching.write(10, "001.md")
        seen = watching.play(200)
        skipped = [event for _, _, event in seen if isinstance(event, ev.WatchItemSkipped)]
        assert [("empty.md", "empty"), ("folder", "a folder")] == [
            (event.filename, event.reason) for event in skipped
        ]
        assert "WatchItemCompleted" in {event.tag for _, _, event in seen}

    def test_an_empty_file_that_is_filled_becomes_an_item(self, tmp_path: Path) -> None:
        """The number of files stays the same, and the item is noticed all the same."""
        watching = Watching(tmp_path, loops=[(1, "approved")])
        watching.write(0, "001.md", "")
        watching.write(10, "001.md", "now there is something to do")
        assert (40, "WatchProcessingItem", "001.md") in watching.story(100)

    def test_polling_is_reported_at_once(self, tmp_path: Path) -> None:
        """Polling is reported once per folder, before anything changes."""
        watching = Watching(tmp_path, loops=[(1, "approved")])
        for folder in (watching.workspace.backlog, watching.workspace.spec_issues):
            watching.polled(folder)
        watching.write(10, "001.md")
        assert (
            "0 BacklogWaiting, 0 Polling, 0 Polling, 40 ProcessingItem 001.md, "
            "41 LoopApproved, 41 ItemCompleted 001.md, 41 BacklogWaiting"
        ) == line(watching.story(100))

    def test_a_second_watch_is_refused(self, tmp_path: Path) -> None:
        """The error names the owner of the workspace."""
        watching = Watching(tmp_path)
        with Workspace(tmp_path).lock(command="cuggino run"):
            ((_, kind, error),) = watching.play(10)
        assert "error" == kind
        assert isinstance(error, errors.WorkspaceLocked)
        assert "cuggino run" in str(error)


def test_an_idle_hour_wakes_nobody(tmp_path: Path) -> None:
    """An idle watch schedules nothing."""
    watching = Watching(tmp_path)
    scheduler = watching.t.scheduler
    subscription = watching.stream.subscribe(scheduler=scheduler)
    scheduler.advance_to(10)
    assert 0 == len(scheduler._queue)
    scheduler.advance_to(3610)
    assert 0 == len(scheduler._queue)
    subscription.dispose()


def test_a_thousand_items_are_counted_once(tmp_path: Path) -> None:
    """Items that arrive one after the other are counted together and taken in order."""
    watching = Watching(tmp_path, loops=[(1, "approved"), (1e9, "approved")])
    for n in range(1000):
        watching.write(10, f"{n:03}.md", "x")
    story = watching.story(45)
    assert (
        "0 BacklogWaiting, 40 ProcessingItem 000.md, 41 LoopApproved, "
        "41 ItemCompleted 000.md, 41 ProcessingItem 001.md"
    ) == line(story)


@pytest.mark.parametrize("item_at", [10, 12, 14])
def test_an_item_and_a_spec_issue_are_seen_together(tmp_path: Path, item_at: int) -> None:
    """CUG-104: if they arrive within one debounce, in either order, the item waits for a person."""
    watching = Watching(tmp_path, loops=[(1, "approved")])
    issues = watching.workspace.spec_issues
    watching.write(item_at, "001.md")
    watching.at(12, lambda: (issues / "1.md").write_text("unclear"), issues)
    watching.at(100, (issues / "1.md").unlink, issues)
    assert [
        (0, "WatchBacklogWaiting"),
        (max(item_at, 12) + 30, "WatchSpecIssueWaiting"),
        (130, "WatchProcessingItem", "001.md"),
    ] == watching.story(130.5)


def test_folders_that_change_at_one_instant_are_judged_once() -> None:
    """An item whose issue is resolved while it is removed does not end the wait, nor the audit."""
    t = Marbles(o=1, z=0)
    phase = waiting_phase(
        spec_issues=t.cold("o---z"),
        backlog=t.cold("o---z"),
        situation=lambda issues, ready, _now: Situation(issues=issues, ready=ready),
        audit=never(),
    )
    assert [(0, "WatchSpecIssueWaiting"), (4, "WatchBacklogWaiting")] == [
        (when, value.tag) for when, _, value in t.record(phase, until=20)
    ]


def test_a_file_that_never_rests_keeps_nothing_waiting(tmp_path: Path) -> None:
    """A log in the backlog that is written all the time: the watch looks after the longest wait."""
    watching = Watching(tmp_path, loops=[(1e9, "approved")])
    backlog = watching.workspace.backlog
    for when in range(5, 1000, 10):
        watching.at(when, lambda: (backlog / ".log").write_text("more"), backlog)
    watching.write(7, "001.md")
    assert (305, "WatchProcessingItem", "001.md") in watching.story(1000)


def test_a_round_looks_at_the_backlog_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While there is work, the folder is listed once for each item."""
    looked: list[Path] = []

    def note(folder: Path) -> list[os.DirEntry[str]]:
        looked.append(folder)
        return visible_entries(folder)

    monkeypatch.setattr("cuggino.storage.backlog.visible_entries", note)
    watching = Watching(tmp_path, loops=[(1, "approved")] * 9)
    for n in range(9):
        watching.write(0, f"{n}.md")
    watching.play(8.5)
    assert [watching.workspace.backlog] * 9 == looked


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".reason.txt"))
