"""What a resumed run takes from the journal: outcomes of stages, and what the run came to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cuggino.errors import StorageError
from cuggino.events import (
    AgentRetry,
    CommitPerformed,
    Done,
    Event,
    ImplementingStart,
    IterationStart,
    PlanningStart,
    Progress,
    RateLimited,
    RunContinued,
    RunEnded,
    RunResumed,
    RunStarted,
    SessionEnded,
    StageFinished,
    StageStarted,
    UnknownEvent,
    Usage,
    UsageUpdate,
    WatchItemRetry,
    WatchProcessingItem,
)
from cuggino.storage.journal import (
    FinishedStage,
    Journal,
    decode_outcome,
    encode_outcome,
    finished_stages,
    read_journal,
    run_totals,
)
from tests.events.generated import EVENTS, events_of, json_values

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
STARTED = RunStarted(run_id="0193-a", kind="run", command="cuggino run")


def journal_of(folder: Path, *entries: tuple[float, str | None, Event]) -> Path:
    """A journal whose entries come so many seconds after its beginning."""
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
def test_outcomes_come_back(value: object) -> None:
    """An event, a time with or without a zone, and whatever JSON can hold come back the same."""
    back = decode_outcome(encode_outcome(value))
    assert value == back
    assert type(value) is type(back)


def test_outcomes_as_they_are_written() -> None:
    """The form says what it is: a tag, a time, a value."""
    assert {"_tag": "Progress", "content": "x"} == encode_outcome(Progress(content="x"))
    assert {"time": "2026-11-21T12:00:00+00:00"} == encode_outcome(AT)
    assert {"value": {"time": "x"}} == encode_outcome({"time": "x"})
    assert {"value": None} == encode_outcome(None)
    assert UnknownEvent(raw={"_tag": "New"}) == decode_outcome({"_tag": "New"})


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Path("a"), "PosixPath"),
        (("a",), "tuple"),
        ([b"a"], "bytes"),
        ({1: "a"}, "dict"),
        (Colour.RED, "Colour"),
        ({"a": [Usage()]}, "Usage"),
    ],
)
def test_outcomes_that_would_not_come_back(value: object, name: str) -> None:
    """A value that JSON does not give back the same is refused, and its type named."""
    with pytest.raises(TypeError, match=f"outcome of type {name}$"):
        encode_outcome(value)


@pytest.mark.parametrize("encoded", [None, 3, {}, {"value": 1, "time": "x"}, {"_tag": 3}])
def test_outcomes_that_are_none(encoded: Any) -> None:
    """What is none of the three forms is no outcome."""
    with pytest.raises(ValueError, match="no event, no time and no value"):
        decode_outcome(encoded)


def test_finished_stages(tmp_path: Path) -> None:
    """They come in the order of their ends, with name and outcome; a stage without an end is not
    among them."""
    plan = Progress(content="x")
    path = journal_of(
        tmp_path,
        (1, "plan#1", StageStarted(name="plan")),
        (2, "clock#2", StageStarted(name="clock")),
        (3, "clock#2", StageFinished(outcome=encode_outcome(AT))),
        (4, "plan#1", StageFinished(outcome=encode_outcome(plan))),
        (5, "commit#3", StageStarted(name="commit")),
    )
    assert (
        FinishedStage(stage="clock#2", name="clock", outcome=AT),
        FinishedStage(stage="plan#1", name="plan", outcome=plan),
    ) == finished_stages(read_journal(path))


@pytest.mark.parametrize("outcome", [{"a": 1}, {"_tag": "Progress"}, {"time": "soon"}])
def test_an_outcome_that_cannot_be_read(tmp_path: Path, outcome: Any) -> None:
    """It is an error that names the run, the entry and the stage."""
    path = journal_of(tmp_path, (1, "plan#1", StageFinished(outcome=outcome)))
    with pytest.raises(StorageError, match="run 0193-a: entry 2: the outcome of plan#1"):
        finished_stages(read_journal(path))


def ended(cost: float | None, tokens: int | None = None) -> SessionEnded:
    usage = None if tokens is None else Usage(input_tokens=tokens)
    return SessionEnded(outcome="completed", cost_usd=cost, usage=usage)


def test_totals_of_a_run_that_was_killed_and_resumed(tmp_path: Path) -> None:
    """Cost and agents count for each attempt; tasks, rounds and commits once; time at work."""
    task = encode_outcome(Progress(content="x"))
    commit = CommitPerformed(iteration=1, commit_hash="abc", message="Do it\n\nwell")
    totals = run_totals(
        read_journal(
            journal_of(
                tmp_path,
                (1, None, IterationStart(iteration=1, max_iterations=9)),
                (1, None, PlanningStart(iteration=1)),
                (2, "planning#1", StageStarted(name="planning")),
                (3, "planning#1", ended(0.5, 10)),
                (3, "planning#1", StageFinished(outcome=encode_outcome(Done(content="")))),
                (4, None, ImplementingStart(iteration=1)),
                (5, "implementing#2", StageStarted(name="implementing")),
                (6, "implementing#2", Progress(content="x")),
                (7, "implementing#2", ended(0.25, 5)),
                (10, "implementing#2", StageStarted(name="implementing")),
                (100, None, RunContinued()),
                (101, None, IterationStart(iteration=1, max_iterations=9)),
                (101, None, ImplementingStart(iteration=1)),
                (102, "implementing#2", StageStarted(name="implementing")),
                (103, "implementing#2", Progress(content="x")),
                (104, "implementing#2", ended(0.125)),
                (105, "implementing#2", StageFinished(outcome=task)),
                (106, "commit#3", commit),
                (107, None, RunEnded(state="interrupted")),
                (200, None, RunContinued()),
                (201, "commit#3", commit),
                (202, "commit#3", StageFinished(outcome=encode_outcome(commit))),
                (203, None, IterationStart(iteration=2, max_iterations=9)),
            )
        )
    )
    assert (
        RunResumed(
            run_id="0193-a",
            stages=3,
            rounds=2,
            tasks=2,
            agents=3,
            commits=(("abc", "Do it"),),
            cost_usd=0.875,
            usage=Usage(input_tokens=15),
            duration=10 + 7 + 3,
        )
        == totals
    )


def told(cost: float | None, tokens: int) -> UsageUpdate:
    return UsageUpdate(usage=Usage(output_tokens=tokens), cost_usd=cost)


@pytest.mark.parametrize(
    ("entries", "cost", "tokens"),
    [
        ([], None, None),
        ([("a#1", told(0.25, 1)), ("a#1", told(0.5, 2))], 0.5, 2),
        ([("a#1", told(0.25, 1)), ("a#1", ended(0.5))], 0.5, 1),
        ([("a#1", told(0.25, 1)), ("a#1", ended(None))], 0.25, 1),
        ([("a#1", told(0.25, 1)), (None, RunContinued()), ("a#1", told(0.5, 2))], 0.75, 3),
        ([("a#1", told(0.25, 1)), ("a#1", StageStarted(name="a")), ("a#1", ended(1.0))], 1.25, 1),
        ([("a#1", told(0.25, 1)), ("b#2", ended(0.5)), ("a#1", told(0.5, 2))], 1.0, 2),
        (
            [
                ("a#1", told(0.25, 1)),
                (
                    "a#1",
                    AgentRetry(reason="crash", message="", attempt=1, max_retries=3, retry_in=1),
                ),
                ("a#1", told(0.5, 2)),
                ("a#1", RateLimited(status="allowed")),
                ("a#1", StageFinished(outcome={"value": None})),
            ],
            0.75,
            3,
        ),
    ],
)
def test_the_cost_of_agents_that_were_cut_off(
    tmp_path: Path, entries: list[tuple[str | None, Event]], cost: float | None, tokens: int | None
) -> None:
    """An agent that never told its cost at its end counts with what it told last."""
    path = journal_of(tmp_path, *[(1.0, stage, event) for stage, event in entries])
    totals = run_totals(read_journal(path))
    usage = None if tokens is None else Usage(output_tokens=tokens)
    assert (cost, usage) == (totals.cost_usd, totals.usage)


def test_rounds_of_a_watch(tmp_path: Path) -> None:
    """Each attempt at an item counts its rounds from 1; a resumed one does not begin anew."""
    first = IterationStart(iteration=1, max_iterations=9)
    retry = WatchItemRetry(filename="a", message="", attempt=1, max_attempts=3, retry_in=1)
    item = WatchProcessingItem(filename="a")
    said = [item, first, RunContinued(), item, first, retry, item, first]
    path = journal_of(tmp_path, *[(1.0, None, event) for event in said])
    assert 2 == run_totals(read_journal(path)).rounds
