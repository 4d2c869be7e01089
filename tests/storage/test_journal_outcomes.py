"""Outcomes and totals restored from the journal, and following one that is being written."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cuggino import events as ev
from cuggino.errors import StorageError
from cuggino.events import AgentMessage, Note, RunStarted
from cuggino.runs import RunState
from cuggino.storage import new_run_id
from cuggino.storage.journal import (
    FinishedStage,
    Journal,
    JournalTail,
    decode_outcome,
    encode_outcome,
    finished_stages,
    read_journal,
)
from tests.events.generated import EVENTS, events_of, json_values
from tests.vectors import each

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
STARTED = ev.RunStarted(run_id="0193-a", kind="run", command="cuggino run")


def journal_of(folder: Path, *entries: tuple[float, str | None, ev.Event]) -> Path:
    """Return a journal whose entries follow its start after these seconds."""
    journal = Journal.create(folder, STARTED, at=AT, sync=False)
    for seconds, stage, event in entries:
        journal.append(event, at=AT + timedelta(seconds=seconds), stage=stage)
    journal.close()
    return journal.path


@given(
    st.sampled_from(EVENTS).flatmap(events_of)
    | st.datetimes()
    | st.datetimes(timezones=st.just(UTC))
    | json_values
)
def test_outcomes_round_trip(value: object) -> None:
    """Events, times with or without a zone, and JSON values are restored."""
    back = decode_outcome(encode_outcome(value))
    assert value == back
    assert type(value) is type(back)


def test_the_form_of_outcomes() -> None:
    """The form is a tag, a time or a value."""
    assert {"_tag": "Progress", "content": "x"} == encode_outcome(ev.Progress(content="x"))
    assert {"time": "2026-11-21T12:00:00+00:00"} == encode_outcome(AT)
    assert {"value": {"time": "x"}} == encode_outcome({"time": "x"})
    assert {"value": None} == encode_outcome(None)
    assert ev.UnknownEvent(raw={"_tag": "New"}) == decode_outcome({"_tag": "New"})


class Colour(StrEnum):
    RED = "red"


@each(
    "value, name",
    [
        (Path("a"), "PosixPath"),
        (("a",), "tuple"),
        ([b"a"], "bytes"),
        ({1: "a"}, "dict"),
        (Colour.RED, "Colour"),
        ({"a": [ev.Usage()]}, "Usage"),
    ],
)
def test_outcomes_that_would_not_round_trip(value: object, name: str) -> None:
    """A value that JSON would change is rejected with its type."""
    with pytest.raises(TypeError, match=f"outcome of type {name}$"):
        encode_outcome(value)


@each("encoded", [None, 3, {}, {"value": 1, "time": "x"}, {"_tag": 3}])
def test_invalid_outcomes(encoded: Any) -> None:
    """Any other form is rejected."""
    with pytest.raises(ValueError, match="neither an event, nor a time, nor a value"):
        decode_outcome(encoded)


def test_finished_stages(tmp_path: Path) -> None:
    """Finished stages come in the order of their ends, with name and outcome.

    A stage without an end is not among them.
    """
    plan = ev.Progress(content="x")
    path = journal_of(
        tmp_path,
        (1, "plan#1", ev.StageStarted(name="plan")),
        (2, "clock#2", ev.StageStarted(name="clock")),
        (3, "clock#2", ev.StageFinished(outcome=encode_outcome(AT))),
        (4, "plan#1", ev.StageFinished(outcome=encode_outcome(plan))),
        (5, "commit#3", ev.StageStarted(name="commit")),
    )
    assert (
        FinishedStage(stage="clock#2", name="clock", outcome=AT),
        FinishedStage(stage="plan#1", name="plan", outcome=plan),
    ) == finished_stages(read_journal(path))


@pytest.mark.parametrize("outcome", [{"a": 1}, {"_tag": "Progress"}, {"time": "soon"}])
def test_an_unreadable_outcome(tmp_path: Path, outcome: Any) -> None:
    """The error names the run, the entry and the stage."""
    path = journal_of(tmp_path, (1, "plan#1", ev.StageFinished(outcome=outcome)))
    with pytest.raises(StorageError, match="run 0193-a: entry 2: the outcome of plan#1"):
        finished_stages(read_journal(path))


def ended(cost: float | None, tokens: int | None = None) -> ev.SessionEnded:
    usage = None if tokens is None else ev.Usage(input_tokens=tokens)
    return ev.SessionEnded(outcome="completed", cost_usd=cost, usage=usage)


def test_totals_of_a_run_that_was_killed_and_resumed(tmp_path: Path) -> None:
    """Cost, agents and time add up over attempts; tasks, iterations and commits count once."""
    task = encode_outcome(ev.Progress(content="x"))
    commit = ev.CommitPerformed(iteration=1, commit_hash="abc", message="Do it\n\nwell")
    totals = RunState.of(
        read_journal(
            journal_of(
                tmp_path,
                (1, None, ev.IterationStart(iteration=1, max_iterations=9)),
                (1, None, ev.PlanningStart(iteration=1)),
                (2, "planning#1", ev.StageStarted(name="planning")),
                (3, "planning#1", ended(0.5, 10)),
                (3, "planning#1", ev.Done(content="")),
                (3, "planning#1", ev.StageFinished(outcome=encode_outcome(ev.Done(content="")))),
                (4, None, ev.ImplementingStart(iteration=1)),
                (5, "implementing#2", ev.StageStarted(name="implementing")),
                (6, "implementing#2", ev.Progress(content="x")),
                (7, "implementing#2", ended(0.25, 5)),
                (10, "implementing#2", ev.StageStarted(name="implementing")),
                (100, None, ev.RunContinued()),
                (101, None, ev.IterationStart(iteration=1, max_iterations=9)),
                (101, None, ev.ImplementingStart(iteration=1)),
                (102, "implementing#2", ev.StageStarted(name="implementing")),
                (103, "implementing#2", ev.Progress(content="x")),
                (104, "implementing#2", ended(0.125)),
                (105, "implementing#2", ev.StageFinished(outcome=task)),
                (106, "commit#3", commit),
                (107, None, ev.RunEnded(state="interrupted")),
                (200, None, ev.RunContinued()),
                (201, "commit#3", commit),
                (202, "commit#3", ev.StageFinished(outcome=encode_outcome(commit))),
                (203, None, ev.IterationStart(iteration=2, max_iterations=9)),
            )
        ).entries
    ).totals
    assert (
        ev.RunResumed(
            run_id="0193-a",
            stages=3,
            rounds=2,
            tasks=2,
            agents=3,
            commits=(("abc", "Do it"),),
            cost_usd=0.875,
            usage=ev.Usage(input_tokens=15),
            duration=10 + 7 + 3,
        )
        == totals
    )


WRITTEN_AT = datetime(2026, 11, 23, 5, tzinfo=UTC)


def _journal(folder: Path) -> Journal:
    started = RunStarted(run_id=new_run_id(), kind="run", command="cuggino run")
    return Journal.create(folder, started, at=WRITTEN_AT, sync=False)


def _note(journal: Journal, *texts: str, stage: str | None = None) -> None:
    for text in texts:
        journal.append(Note(content=text), at=WRITTEN_AT, stage=stage)


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
        journal.append(AgentMessage(text="x" * 3000), at=WRITTEN_AT, stage=stage)
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
    journal.append(AgentMessage(text="new"), at=WRITTEN_AT)
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
