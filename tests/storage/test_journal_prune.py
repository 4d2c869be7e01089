"""Pruning journals by age and count, resumable ones by age only."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cuggino.events import AgentMessage, Event, KnownState, RunEnded, RunStarted
from cuggino.storage.journal import Journal, last_entry, list_journals, prune

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def add(folder: Path, run_id: str, state: KnownState, *, age: float = 0) -> Path:
    """Return a journal whose last entry is this many days old."""
    started = RunStarted(run_id=run_id, kind="run", command="cuggino run")
    journal = Journal.create(folder, started, at=NOW - timedelta(days=age + 1), sync=False)
    last: Event = AgentMessage(text="x")
    if state != "unfinished":
        last = RunEnded(state=state)
    journal.append(last, at=NOW - timedelta(days=age))
    journal.close()
    return journal.path


def names(folder: Path) -> list[str]:
    return [path.stem for path in list_journals(folder)]


def test_by_count(tmp_path: Path) -> None:
    """The newest finished runs stay; unfinished ones do not count and all stay."""
    states: list[KnownState] = ["approved", "failed", "stalled", "unfinished", "ended", "quota"]
    paths = [add(tmp_path, str(number), state) for number, state in enumerate(states)]
    assert [paths[0]] == prune(tmp_path, now=NOW, days=30, runs=2, keep=())
    assert ["5", "4", "3", "2", "1"] == names(tmp_path)
    assert [] == prune(tmp_path, now=NOW, days=30, runs=2, keep=())


def test_by_age(tmp_path: Path) -> None:
    """Runs are pruned by the age of their last entry, even resumable ones."""
    states: list[KnownState] = ["approved", "unfinished"]
    for state in states:
        add(tmp_path, f"{state}-29", state, age=29.9)
        add(tmp_path, f"{state}-31", state, age=31)
    prune(tmp_path, now=NOW.replace(tzinfo=None), days=30, runs=100, keep=())
    assert ["unfinished-29", "approved-29"] == names(tmp_path)


def test_a_named_run_is_kept(tmp_path: Path) -> None:
    """A run that is named is kept despite its age and the count."""
    add(tmp_path, "1", "approved", age=99)
    add(tmp_path, "2", "approved", age=99)
    add(tmp_path, "3", "approved")
    prune(tmp_path, now=NOW, days=30, runs=1, keep={"1"})
    assert ["3", "1"] == names(tmp_path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A file that is no journal is pruned by its own age; other files are ignored."""
    for name in ("new.jsonl", "old.jsonl", "old.txt", ".old.jsonl"):
        (tmp_path / name).write_text("?\n")
        when = (NOW - timedelta(days=31 if "old" in name else 1)).timestamp()
        os.utime(tmp_path / name, (when, when))
    (tmp_path / "folder.jsonl").mkdir()
    assert [tmp_path / "old.jsonl"] == prune(tmp_path, now=NOW, days=30, runs=1, keep=())
    assert [tmp_path / "new.jsonl"] == list_journals(tmp_path)


def test_errors_do_not_stop_pruning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be removed stays, and others go; a missing folder is fine."""
    stuck, gone = add(tmp_path, "2", "approved", age=99), add(tmp_path, "1", "approved", age=99)
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path == stuck:
            raise PermissionError
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    assert [gone] == prune(tmp_path, now=NOW, days=30, runs=1, keep=())
    assert ["2"] == names(tmp_path)
    assert [] == prune(tmp_path / "missing", now=NOW, days=30, runs=1, keep=())
    assert [] == prune(stuck, now=NOW, days=30, runs=1, keep=())


@pytest.mark.parametrize("size", [10, 70_000, 1_000_000])
@pytest.mark.parametrize("torn", [b"", b'{"v":1', b"x" * 70_000])
def test_the_last_entry(tmp_path: Path, size: int, torn: bytes) -> None:
    """The last whole entry is found from the end, for any length of it and of a torn line."""
    path = add(tmp_path, "1", "unfinished")
    journal = Journal.open(path)
    entry = journal.append(AgentMessage(text="x" * size), at=NOW)
    journal.close()
    with path.open("ab") as file:
        file.write(torn)
    assert entry == last_entry(path)
