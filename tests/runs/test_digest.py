"""The digest of a journal: equal to its contents, kept, and never older than it."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cuggino import events as ev
from cuggino.errors import StorageError
from cuggino.runs import RunState
from cuggino.runs.digests import DigestFold, digest_of
from cuggino.storage.journal import Journal, prune, read_journal

AT = datetime(2026, 11, 22, 9, tzinfo=UTC)
STARTED = ev.RunStarted(run_id="0193-a", kind="run", command="cuggino run", focus="login")
STORY: list[ev.Event] = [
    ev.IterationStart(iteration=1, max_iterations=3),
    ev.PlanningStart(iteration=1),
    ev.StageStarted(name="planning"),
    ev.UsageUpdate(usage=ev.Usage(input_tokens=10)),
    ev.AgentMessage(text="words"),
    ev.SessionEnded(outcome="completed", cost_usd=0.25, usage=ev.Usage(input_tokens=20)),
    ev.StageFinished(outcome={"_tag": "Done", "content": "x"}),
    ev.CommitPerformed(iteration=1, commit_hash="abc1234", message="Add it"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".cuggino" / "journal"


def write(folder: Path, *more: ev.Event) -> Path:
    """Write a journal of the story, a second an entry."""
    journal = Journal.create(folder, STARTED, at=AT, sync=False, fold=DigestFold())
    for number, event in enumerate([*STORY, *more], 1):
        journal.append(event, at=AT + timedelta(seconds=number), stage="planning#1")
    journal.close()
    return journal.path


def kept(path: Path) -> Path:
    return path.parent.with_name("digests") / f"{path.stem}.json"


@pytest.mark.parametrize("ended", [(), (ev.RunEnded(state="quota", message="limit"),)])
def test_as_the_journal_says(folder: Path, ended: tuple[ev.Event, ...]) -> None:
    """The writer's digest, a reader's digest and the contents of the journal agree."""
    path = write(folder, *ended)
    written = kept(path).read_text()
    digest = digest_of(path)
    journal = read_journal(path)
    assert RunState.of(journal.entries).totals == digest.totals
    assert 0.25 == digest.totals.cost_usd
    assert (("abc1234", "Add it"),) == digest.totals.commits
    assert (STARTED, journal.ended) == (digest.started, digest.ended)
    assert (journal.state, journal.resumable) == (digest.state, digest.resumable)
    assert (AT, AT, journal.entries[-1].at) == (digest.began, digest.continued, digest.last)
    kept(path).unlink()
    assert digest == digest_of(path)
    assert written == kept(path).read_text()


@pytest.mark.parametrize("last", [ev.RunEnded(state="failed"), ev.AgentMessage(text="killed")])
def test_a_continued_run(folder: Path, last: ev.Event) -> None:
    """The next process adds to the totals, and its beginning is the latest."""
    path = write(folder, last)
    journal = Journal.open(path, sync=False, fold=DigestFold())
    later = AT + timedelta(hours=1)
    journal.append(ev.RunContinued(), at=later)
    journal.append(ev.RunEnded(state="approved"), at=later + timedelta(seconds=2))
    journal.close()
    digest = digest_of(path)
    assert (later, "approved") == (digest.continued, digest.state)
    assert RunState.of(read_journal(path).entries).totals == digest.totals
    assert 11.0 == digest.totals.duration, "9 seconds and 2"


def test_a_kept_digest_is_read_instead(folder: Path) -> None:
    """The journal itself is not read, however long it is."""
    path = write(folder, ev.RunEnded(state="approved"))
    digest, status = digest_of(path), path.stat()
    path.write_bytes(b"x" * status.st_size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert digest == digest_of(path)


def test_a_journal_that_has_changed(folder: Path) -> None:
    """Another size or another time, and the journal is read again."""
    path = write(folder)
    before = digest_of(path)
    journal = Journal.open(path, sync=False, fold=DigestFold())
    journal.append(ev.RunEnded(state="stalled"), at=AT)
    assert ("unfinished", "stalled") == (before.state, digest_of(path).state)
    journal.close()
    os.utime(path, ns=(0, 1))
    path.write_bytes(b"x" * path.stat().st_size)
    with pytest.raises(StorageError, match="no whole line"):
        digest_of(path)


@pytest.mark.parametrize("content", ["", "{", "{}", '{"size": 1}', "\0"])
def test_a_broken_digest(folder: Path, content: str) -> None:
    """It counts as none, and is replaced."""
    path = write(folder)
    digest = digest_of(path)
    kept(path).write_text(content)
    assert digest == digest_of(path)
    assert digest.model_dump_json() == kept(path).read_text().strip()


def test_where_none_can_be_kept(folder: Path, tmp_path: Path) -> None:
    """Without a place for digests the journal is read each time."""
    path = write(folder)
    digest = digest_of(path)
    kept(path).unlink()
    shutil.rmtree(kept(path).parent)
    kept(path).parent.write_text("a file in its place")
    assert digest == digest_of(path)
    elsewhere = tmp_path / "copy.jsonl"
    elsewhere.write_bytes(path.read_bytes())
    assert digest.totals == digest_of(elsewhere).totals


def test_what_cannot_be_written(folder: Path) -> None:
    """Half a surrogate pair does not cause a failure: the digest is not kept."""
    started = STARTED.model_copy(update={"focus": "caf\udce9"})
    journal = Journal.create(folder, started, at=AT, sync=False, fold=DigestFold())
    journal.close()
    assert not kept(journal.path).exists()
    assert digest_of(journal.path).started.run_id == started.run_id


def test_nobody_else_sees_them(folder: Path) -> None:
    """Digests are as private as journals, and git ignores them."""
    path = write(folder)
    assert 0o700 == kept(path).parent.stat().st_mode & 0o777
    assert "*\n" == (kept(path).parent / ".gitignore").read_text()


def test_a_journal_that_is_gone(folder: Path) -> None:
    """Closing it is not an error."""
    journal = Journal.create(folder, STARTED, at=AT, sync=False, fold=DigestFold())
    journal.path.unlink()
    journal.close()
    journal.close()


def test_removed_with_the_journal(folder: Path) -> None:
    """Old journals are removed with their digests."""
    path = write(folder, ev.RunEnded(state="approved"))
    assert kept(path).exists()
    assert [path] == prune(folder, now=AT + timedelta(days=60), days=30, runs=100)
    assert not kept(path).exists()


def test_no_digest_is_written_through_a_link(folder: Path, tmp_path: Path) -> None:
    """A folder of digests that is a link leads to files of another program, which stay."""
    other = tmp_path / "other"
    other.mkdir()
    theirs = other / f"{STARTED.run_id}.json"
    theirs.write_text("theirs")
    folder.parent.mkdir(parents=True)
    folder.with_name("digests").symlink_to(other)
    path = write(folder, ev.RunEnded(state="approved"))
    assert read_journal(path).state == digest_of(path).state
    assert [path] == prune(folder, now=AT + timedelta(days=99), days=1, runs=1)
    assert ["theirs"] == [file.read_text() for file in other.iterdir()]


def test_the_target_of_a_linked_folder_keeps_its_permissions(tmp_path: Path) -> None:
    """The folder of journals is for the user alone, but not one that it is linked to."""
    other = tmp_path / "other"
    other.mkdir(mode=0o755)
    (tmp_path / ".cuggino").mkdir()
    (tmp_path / ".cuggino" / "journal").symlink_to(other)
    write(tmp_path / ".cuggino" / "journal")
    assert 0o755 == other.stat().st_mode & 0o777
