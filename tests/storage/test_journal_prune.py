"""Pruning journals by age and count, resumable ones by age only."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cuggino.events import AgentMessage, Event, KnownState, Note, RunEnded, RunStarted
from cuggino.storage import new_run_id
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


def is_old(path: Path, content: str) -> Path:
    """Write a file that is older than any limit."""
    path.write_text(content)
    when = (NOW - timedelta(days=99)).timestamp()
    os.utime(path, (when, when))
    return path


@pytest.mark.parametrize("content", ["?\n", "", '{"v":', '{"v":1}\n', '{"type":"user"}\n'])
@pytest.mark.parametrize("name", ["notes", "5f0c2b1e-6d1f-4c5e-9d1e-0123456789ab"])
def test_files_of_other_programs_stay(tmp_path: Path, name: str, content: str) -> None:
    """A file that is not a journal stays, however old it is."""
    is_old(tmp_path / f"{name}.jsonl", content)
    assert [] == prune(tmp_path, now=NOW, days=30, runs=1, keep=())


def test_the_journal_of_another_name_stays(tmp_path: Path) -> None:
    """A copy of a journal under another name belongs to a person."""
    path = add(tmp_path, "1", "approved", age=99)
    path.rename(tmp_path / "copy.jsonl")
    assert [] == prune(tmp_path, now=NOW, days=30, runs=1, keep=())


@pytest.mark.parametrize(
    ("content", "is_journal"),
    [
        ("", True),
        ('{"v":1,"seq":0', True),
        ('{"v":1,"seq":0}\n', False),
        ("{", False),
        ("?\n", False),
    ],
)
def test_a_torn_beginning(tmp_path: Path, content: str, is_journal: bool) -> None:
    """The remains of a process killed as it writes the first entry are pruned."""
    path = is_old(tmp_path / f"{new_run_id()}.jsonl", content)
    later = NOW + timedelta(days=99)
    assert ([path] if is_journal else []) == prune(tmp_path, now=later, days=30, runs=1, keep=())


def test_links_stay(tmp_path: Path) -> None:
    """Neither a link nor its target is pruned."""
    elsewhere = add(tmp_path / "elsewhere", "1", "approved", age=99)
    journals = tmp_path / ".cuggino" / "journal"
    journals.mkdir(parents=True)
    (journals / "1.jsonl").symlink_to(elsewhere)
    assert [] == prune(journals, now=NOW, days=30, runs=1, keep=())
    assert (journals / "1.jsonl").exists()


@pytest.mark.parametrize("link", [".cuggino", ".cuggino/journal"])
def test_nothing_is_pruned_through_a_link(tmp_path: Path, link: str) -> None:
    """A folder of journals, or a workspace, may be a link to the journals of another project."""
    other = tmp_path / "other"
    path = add(other / ".cuggino" / "journal", "1", "approved", age=99)
    place = tmp_path / "project" / link
    place.parent.mkdir(parents=True)
    place.symlink_to(other / link)
    folder = tmp_path / "project" / ".cuggino" / "journal"
    assert ["1"] == names(folder)
    assert [] == prune(folder, now=NOW, days=30, runs=1, keep=())
    assert path.exists()


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
    entry = journal.append(Note(content="x" * size), at=NOW)
    journal.close()
    with path.open("ab") as file:
        file.write(torn)
    assert entry == last_entry(path)
