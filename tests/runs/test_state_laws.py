"""Laws of the state of a run, on recorded journals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given, settings, strategies as st

from cuggino import events as ev
from cuggino.runs import DIGESTED, RunState
from cuggino.storage.journal import Entry, JournalTail, iter_entries, read_journal, skim
from tests.report.journals import FOLDER, NAMES

ALL = {name: tuple(read_journal(FOLDER / f"{name}.jsonl").entries) for name in NAMES}
WHOLE = {
    name: entries
    for name, entries in ALL.items()
    if len(entries) > 3
    if not any(isinstance(e.event, ev.RunContinued | ev.WatchLoopEvent) for e in entries)
}
"""The journals of runs that one process went through."""


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_folding_in_parts(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Who follows a journal as it grows, byte by byte, has the state of who reads all of it."""
    path = FOLDER / f"{name}.jsonl"
    raw = path.read_bytes()
    sizes = data.draw(st.lists(st.integers(1, len(raw)), max_size=5))
    copy = tmp_path_factory.mktemp("tail") / path.name
    tail, state = JournalTail(copy), RunState()
    for size in (*sorted(sizes), len(raw)):
        copy.write_bytes(raw[:size])
        for entry in tail.read():
            state = state.add(entry.event, at=entry.at, stage=entry.stage)
    assert RunState.of(iter_entries(path)) == state


PASSING = ("words", "tools", "wait", "is_idle", "last", "items")


@pytest.mark.parametrize("name", NAMES)
def test_a_partial_read(name: str) -> None:
    """Who reads only the entries that last has the same state, but for what passes."""
    path = FOLDER / f"{name}.jsonl"
    whole = RunState.of(iter_entries(path))
    passing = {field: getattr(whole, field) for field in PASSING}
    for partial in (iter_entries(path, only=DIGESTED), skim(path, DIGESTED, recent=0)):
        assert whole == replace(RunState.of(partial), **passing)


@pytest.mark.parametrize("name", WHOLE)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_a_kill_and_a_resume(name: str, data: st.DataObject) -> None:
    """A run that was killed at any entry and resumed has done what the undisturbed one has."""
    whole = WHOLE[name]
    killed = data.draw(st.integers(2, len(whole) - 1))
    assert done(whole) == done(resumed(whole, killed))


def resumed(whole: Sequence[Entry], killed: int) -> list[Entry]:
    """Return the journal of the run, killed after so many entries: its stage begins again."""
    stage = whole[killed].stage
    began = killed
    while began and stage is not None and whole[began - 1].stage == stage:
        began -= 1
    events = [
        *((entry.stage, entry.event) for entry in whole[:killed]),
        (None, ev.RunContinued(command="cuggino run --resume")),
        *((entry.stage, entry.event) for entry in whole[began:]),
    ]
    times = [*(entry.at for entry in whole), *(whole[-1].at for _ in range(len(events)))]
    return [
        Entry(seq=seq, at=at, stage=stage, event=event)
        for seq, at, (stage, event) in zip(count(1), times, events, strict=False)
    ]


def done(entries: Sequence[Entry]) -> tuple[object, ...]:
    """Return what a run has done: all but times, tries and what its agents cost."""
    state = RunState.of(entries)
    return (
        *(state.kind, state.run_id, state.focus, state.outcome, state.message, state.result),
        *(state.commits, state.tally.tasks, state.tally.rounds, state.stages.finished),
        *(state.goals, state.goals_met, state.questions, state.iteration, state.tasks),
        *(state.failed_commits, state.gate_changed, state.lost_base, state.is_stopping),
        [(one.stage, one.outcome, one.ending) for one in state.stages.last_tries],
        [(one.id, one.status, one.verified) for one in state.delivery.deliverables],
        [(one.session, one.instruction) for one in state.delivery.sessions],
        [(one.id, one.state, one.issues) for one in state.jobs],
    )
