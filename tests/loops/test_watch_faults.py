"""Failures that are not caused by an item: a full disk, no login, unreadable files."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino import errors
from cuggino.storage.backlog import Backlog
from cuggino.storage.moving import digest_of
from tests.loops.watching import Outcome, Watching


@pytest.mark.parametrize(
    "cause",
    [
        errors.AgentNotFound("the agent program claude was not found"),
        errors.AgentFailed("no credit is left", reason="billing"),
        errors.ConfigError("the prompt cannot be read"),
        errors.WorkNotCommitted("hook"),
    ],
    ids=lambda cause: type(cause).__name__,
)
def test_a_failure_of_every_item_parks_none(tmp_path: Path, cause: errors.CugginoError) -> None:
    """A failure that every item would meet parks none; all wait with growing pauses."""
    failure = errors.LoopError("planning", cause.message, cause=cause)
    loops: list[tuple[float, Outcome]] = [(0, failure), (0, failure), (1, "approved")]
    watching = Watching(tmp_path, loops=loops, max_attempts=1)
    watching.write(0, "001.md")
    watching.write(0, "002.md")
    assert [
        (0, "WatchProcessingItem", "001.md"),
        (0, "WatchItemRetry", "001.md"),
        (900, "WatchProcessingItem", "001.md"),
        (900, "WatchItemRetry", "001.md"),
        (2700, "WatchProcessingItem", "001.md"),
        (2701, "LoopApproved"),
        (2701, "WatchItemCompleted", "001.md"),
        (2701, "WatchProcessingItem", "002.md"),
    ] == watching.story(2702)


def test_a_full_disk_while_agents_work(tmp_path: Path) -> None:
    """A run whose own files cannot be written ends the watch at its first item."""
    full = errors.StorageError("append marker", "no space left")
    watching = Watching(tmp_path, loops=[(5, full)] * 3)
    watching.write(0, "001.md")
    watching.write(0, "002.md")
    seen = watching.play(1000)
    assert [(0, "next"), (5, "error")] == [entry[:2] for entry in seen]
    assert "no space left" == str(seen[-1][2])
    assert ["001.md", "002.md"] == watching.backlog


def test_no_plan_is_an_agents_fault(tmp_path: Path) -> None:
    """A session without a plan file is retried, although its error is a storage error."""
    no_plan = errors.SessionError("commitTempPlan", "a session")
    watching = Watching(tmp_path, loops=[(5, no_plan), (5, "approved")])
    watching.write(0, "001.md")
    assert (65, "WatchProcessingItem", "001.md") in watching.story(100)


def test_unreadable_when_its_run_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An item that is unreadable at its start is retried, and the next one is processed."""
    _forbid_reading(monkeypatch, "001.md")
    watching = Watching(tmp_path, loops=[(1, "approved")], max_attempts=2)
    watching.write(0, "001.md")
    watching.write(0, "002.md")
    assert [
        (0, "WatchProcessingItem", "001.md"),
        (0, "WatchItemRetry", "001.md"),
        (0, "WatchProcessingItem", "002.md"),
        (1, "LoopApproved"),
        (1, "WatchItemCompleted", "002.md"),
        (60, "WatchProcessingItem", "001.md"),
        (60, "WatchItemParked", "001.md"),
    ] == watching.story(65)[:7]


def test_gone_when_its_run_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An item that vanished since the backlog was read is skipped without a failure."""
    watching = Watching(tmp_path, loops=[(1, "approved")])
    monkeypatch.setattr(
        Backlog, "digest", lambda _self, name: (watching.workspace.backlog / name).unlink()
    )
    watching.write(0, "001.md")
    assert [(0, "WatchProcessingItem", "001.md"), (0, "WatchBacklogWaiting")] == watching.story(100)
    assert [] == watching.loop.options


def test_unreadable_when_its_run_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An item that is unreadable after its run stays, and the watch continues."""
    watching = Watching(tmp_path, loops=[(5, "approved")])
    watching.write(0, "001.md")
    watching.at(3, lambda: _forbid_reading(monkeypatch, "001.md"))
    assert (5, "WatchItemRetained", "001.md") in watching.story(20)
    assert ["001.md"] == watching.backlog


def _forbid_reading(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """From now on the system refuses to read the file's bytes, as root it never does."""

    def refuse(path: Path) -> str | None:
        if path.name == name:
            raise PermissionError(13, "Permission denied")
        return digest_of(path)

    monkeypatch.setattr("cuggino.storage.backlog.digest_of", refuse)
