"""Reading only part of a journal, quickly."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from cuggino.events import (
    AgentMessage,
    Event,
    MessageDelta,
    PingEvent,
    RunContinued,
    RunEnded,
    RunStarted,
    event_types,
)
from cuggino.runs import RunState
from cuggino.runs.digests import DIGESTED
from cuggino.storage.journal import (
    Journal,
    iter_entries,
    read_journal,
)
from tests.events.generated import EVENTS, events_of

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
STARTED = RunStarted(run_id="0193-a", kind="run", command="cuggino run")
WORDS = [AgentMessage(text=text) for text in "abcdefg"]
RECORDED = [kind for kind in EVENTS if kind not in (MessageDelta, PingEvent)]
KINDS = [event_types()[tag] for tag in sorted(DIGESTED)]


def journal_of(folder: Path, *events: Event, stage: str | None = "a#1") -> Path:
    """Return a journal with one entry per second."""
    journal = Journal.create(folder, STARTED, at=AT, sync=False)
    for seconds, event in zip(itertools.count(1), events, strict=False):
        journal.append(event, at=AT + timedelta(seconds=seconds), stage=stage)
    journal.close()
    return journal.path


@pytest.mark.parametrize("stage", ["a#1", '"event":{"_tag": "RunEnded"', "x" * 500])
def test_wanted_tags_and_process_boundaries(tmp_path: Path, stage: str) -> None:
    """The given tags are read, plus the first and last entry of each process."""
    a, b, c, d, e, f, g = WORDS
    path = journal_of(tmp_path, a, b, RunContinued(), c, RunContinued(), d, e, f, g, stage=stage)
    seqs = {
        wanted: [entry.seq for entry in iter_entries(path, only=wanted)]
        for wanted in (("RunEnded",), ("AgentMessage",), ())
    }
    assert {("RunEnded",): [1, 3, 4, 5, 6, 10], ("AgentMessage",): list(range(1, 11))} | {
        (): [1, 3, 4, 5, 6, 10]
    } == seqs
    assert list(iter_entries(path, only=()))[-1].event == g


def test_the_end_and_a_torn_line(tmp_path: Path) -> None:
    """A partial read knows the end of the run and whether its last line is torn."""
    path = journal_of(tmp_path, *WORDS, RunEnded(state="approved"))
    with path.open("ab") as file:
        file.write(b'{"v":1')
    found = read_journal(path, only=())
    assert ("approved", True, 2) == (found.state, found.torn, len(found.entries))


def test_lines_with_other_whitespace(tmp_path: Path) -> None:
    """A journal rewritten by another program, with other whitespace, reads the same."""
    path = journal_of(tmp_path, *WORDS, RunContinued(), *WORDS)
    expected = [list(iter_entries(path, only=only)) for only in (None, (), DIGESTED)]
    for old, new in ((b'"event":', b'"event" : '), (b'"_tag": ', b'"_tag":')):
        path.write_bytes(path.read_bytes().replace(old, new))
        assert expected == [list(iter_entries(path, only=only)) for only in (None, (), DIGESTED)]


@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(st.lists(st.sampled_from([*KINDS, *RECORDED]).flatmap(events_of), max_size=30))
def test_a_partial_read_gives_the_totals(
    tmp_path_factory: pytest.TempPathFactory, events: list[Event]
) -> None:
    """The totals of any run are the same from a partial read as from a full one."""
    path = journal_of(tmp_path_factory.mktemp("journal"), *events)
    assert (
        RunState.of(read_journal(path).entries).totals
        == RunState.of(iter_entries(path, only=DIGESTED)).totals
    )
