"""Following a journal that another process writes."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from cuggino.errors import StorageError
from cuggino.events import AgentMessage, Note, RunStarted
from cuggino.storage import new_run_id
from cuggino.storage.journal import Journal, JournalTail, read_journal

AT = datetime(2026, 11, 23, 5, tzinfo=UTC)


def _journal(folder: Path) -> Journal:
    started = RunStarted(run_id=new_run_id(), kind="run", command="cuggino run")
    return Journal.create(folder, started, at=AT, sync=False)


def _note(journal: Journal, *texts: str, stage: str | None = None) -> None:
    for text in texts:
        journal.append(Note(content=text), at=AT, stage=stage)


def _seqs(tail: JournalTail) -> list[int]:
    return [entry.seq for entry in tail.read()]


def test_reads_what_was_appended(tmp_path: Path) -> None:
    """Each entry is read once, as it was written; an unchanged file costs one `stat`."""
    journal = _journal(tmp_path)
    tail = JournalTail(journal.path)
    assert tail.has_changed()
    assert [1] == _seqs(tail)
    assert not tail.has_changed()
    _note(journal, "a", "b")
    assert tail.has_changed()
    entries = tail.read()
    assert [Note(content="a"), Note(content="b")] == [entry.event for entry in entries]
    assert 3 == tail.seq
    assert [] == tail.read()
    assert 0 == tail.restarts
    journal.close()


def test_torn_line_waits_until_it_is_whole(tmp_path: Path) -> None:
    """A line without its end is never read, and completed it is read once."""
    journal = _journal(tmp_path)
    tail = JournalTail(journal.path)
    tail.read()
    before = journal.path.read_bytes()
    _note(journal, "torn")
    journal.close()
    whole = journal.path.read_bytes()
    for cut in (len(before) + 1, len(whole) - 20, len(whole) - 1):
        journal.path.write_bytes(whole[:cut])
        assert [] == tail.read()
        assert not tail.has_changed()
    journal.path.write_bytes(whole)
    assert [2] == _seqs(tail)
    assert 0 == tail.restarts


def test_resumed_run_cuts_the_torn_line_off(tmp_path: Path) -> None:
    """The file shrinks when its run is resumed; nothing is read twice or lost."""
    journal = _journal(tmp_path)
    _note(journal, "a")
    journal.close()
    tail = JournalTail(journal.path)
    with journal.path.open("ab") as file:
        file.write(b'{"v":1,"seq":3,"at":"' + b"x" * 5000)
    assert [1, 2] == _seqs(tail)
    resumed = Journal.open(journal.path, sync=False)
    assert [] == tail.read()
    _note(resumed, "b", "c")
    assert [3, 4] == _seqs(tail)
    assert 0 == tail.restarts
    resumed.close()


def test_replaced_journal_is_read_again(tmp_path: Path) -> None:
    """A file with another inode, or with fewer lines, is another journal."""
    journal = _journal(tmp_path)
    _note(journal, "a", "b")
    journal.close()
    tail = JournalTail(journal.path)
    assert [1, 2, 3] == _seqs(tail)
    lines = journal.path.read_bytes().splitlines(keepends=True)
    other = tmp_path / "other"
    other.write_bytes(b"".join(lines))
    other.replace(journal.path)
    assert [1, 2, 3] == _seqs(tail)
    assert 1 == tail.restarts
    os.truncate(journal.path, len(lines[0]))
    assert [1] == _seqs(tail)
    assert 2 == tail.restarts


def test_removed_journal(tmp_path: Path) -> None:
    """A journal that is gone has no entries; one of its name that comes is read."""
    journal = _journal(tmp_path)
    journal.close()
    tail = JournalTail(journal.path)
    assert [1] == _seqs(tail)
    content = journal.path.read_bytes()
    journal.path.unlink()
    assert tail.has_changed()
    assert [] == tail.read()
    assert tail.missing
    assert not tail.has_changed()
    journal.path.write_bytes(content)
    assert tail.has_changed()
    assert [1] == _seqs(tail)
    assert not tail.missing


def test_line_of_5_mb(tmp_path: Path) -> None:
    """A line longer than one read neither stops the tail nor is read in part."""
    journal = _journal(tmp_path)
    tail = JournalTail(journal.path)
    _note(journal, "before", "x" * 5_000_000, "after")
    entries = []
    while read := tail.read():
        entries += read
    journal.close()
    assert [1, 2, 3, 4] == [entry.seq for entry in entries]
    assert Note(content="x" * 5_000_000) == entries[2].event


def test_long_line_that_is_torn(tmp_path: Path) -> None:
    """A long torn line is not searched again and again, and is read when it is whole."""
    journal = _journal(tmp_path)
    tail = JournalTail(journal.path)
    tail.read()
    _note(journal, "x" * 3_000_000)
    journal.close()
    whole = journal.path.read_bytes()
    for cut in (1_500_000, 2_500_000):
        journal.path.write_bytes(whole[:cut])
        assert [] == tail.read()
    journal.path.write_bytes(whole)
    assert [2] == _seqs(tail)


def test_broken_line_is_reported_after_those_before_it(tmp_path: Path) -> None:
    """Entries before a broken line are read, then the line is an error, once."""
    journal = _journal(tmp_path)
    _note(journal, "a")
    journal.close()
    with journal.path.open("ab") as file:
        file.write(b'{"v":2}\n')
    tail = JournalTail(journal.path)
    assert [1, 2] == _seqs(tail)
    assert tail.has_changed()
    with pytest.raises(StorageError, match="version 2 of the journal format"):
        tail.read()
    with journal.path.open("ab") as file:
        file.write(b"garbage\n")
    with pytest.raises(StorageError, match="broken"):
        tail.read()
    assert [] == tail.read()


def test_carriage_returns_end_no_line(tmp_path: Path) -> None:
    """Only line feeds end a line."""
    journal = _journal(tmp_path)
    line = journal.path.read_bytes().replace(b'"cuggino run"', b'"cuggino run"\r')
    journal.close()
    journal.path.write_bytes(line)
    assert [1] == _seqs(JournalTail(journal.path))


def test_long_journal_spares_what_is_old(tmp_path: Path) -> None:
    """Old entries of some tags are left out; all those of a stage can be read again."""
    journal = _journal(tmp_path)
    for number in range(400):
        stage = f"work#{number // 100}"
        journal.append(AgentMessage(text="x" * 3000), at=AT, stage=stage)
        _note(journal, str(number), stage=stage)
    tail = JournalTail(journal.path, spared={"AgentMessage"}, long=100_000)
    tags = [entry.event.tag for entry in tail.read()]
    assert 400 == tags.count("Note")
    assert 50 < tags.count("AgentMessage") < 100
    assert 801 == tail.seq
    first = list(tail.stage("work#0"))
    assert 200 == len(first)
    assert {"work#0"} == {entry.stage for entry in first}
    assert [] == list(tail.stage("work#9"))
    journal.append(AgentMessage(text="new"), at=AT)
    assert [802] == _seqs(tail)
    journal.close()


def test_stages_at_the_same_time(tmp_path: Path) -> None:
    """The entries of a stage are found among those of others."""
    journal = _journal(tmp_path)
    for number in range(6):
        _note(journal, str(number), stage=f"slot#{number % 2}")
    journal.close()
    tail = JournalTail(journal.path)
    tail.read()
    assert [2, 4, 6] == [entry.seq for entry in tail.stage("slot#0")]


@given(st.data())
def test_any_pieces_give_the_same_entries(data: st.DataObject) -> None:
    """However a journal grows, its tail reads what a whole read finds."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        journal = _journal(Path(folder))
        texts = data.draw(st.lists(st.text(max_size=20), max_size=8))
        _note(journal, *texts)
        journal.close()
        whole = journal.path.read_bytes()
        cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
        growing = Path(folder) / "growing.jsonl"
        growing.write_bytes(b"")
        tail = JournalTail(growing)
        entries = []
        for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
            with growing.open("ab") as file:
                file.write(whole[begin:end])
            while read := tail.read(most=data.draw(st.integers(1, 300))):
                entries += read
        assert list(read_journal(journal.path).entries) == entries
        assert 0 == tail.restarts
