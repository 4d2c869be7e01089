"""Stage outcomes and totals that a resumed run restores from the journal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cuggino import events as ev
from cuggino.errors import StorageError
from cuggino.runs import RunState
from cuggino.storage.journal import (
    FinishedStage,
    Journal,
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


def usage(cost: float | None, tokens: int) -> ev.UsageUpdate:
    return ev.UsageUpdate(usage=ev.Usage(output_tokens=tokens), cost_usd=cost)


@pytest.mark.parametrize(
    ("entries", "cost", "tokens"),
    [
        ([], None, None),
        ([("a#1", usage(0.25, 1)), ("a#1", usage(0.5, 2))], 0.5, 2),
        ([("a#1", usage(0.25, 1)), ("a#1", ended(0.5))], 0.5, 1),
        ([("a#1", usage(0.25, 1)), ("a#1", ended(None))], 0.25, 1),
        ([("a#1", usage(0.25, 1)), (None, ev.RunContinued()), ("a#1", usage(0.5, 2))], 0.75, 3),
        (
            [("a#1", usage(0.25, 1)), ("a#1", ev.StageStarted(name="a")), ("a#1", ended(1.0))],
            1.25,
            1,
        ),
        ([("a#1", usage(0.25, 1)), ("b#2", ended(0.5)), ("a#1", usage(0.5, 2))], 1.0, 2),
        (
            [
                ("a#1", usage(0.25, 1)),
                (
                    "a#1",
                    ev.AgentRetry(reason="crash", message="", attempt=1, max_retries=3, retry_in=1),
                ),
                ("a#1", usage(0.5, 2)),
                ("a#1", ev.RateLimited(status="allowed")),
                ("a#1", ev.StageFinished(outcome={"value": None})),
            ],
            0.75,
            3,
        ),
    ],
)
def test_the_cost_of_interrupted_agents(
    tmp_path: Path,
    entries: list[tuple[str | None, ev.Event]],
    cost: float | None,
    tokens: int | None,
) -> None:
    """An agent without a final cost counts with its last report."""
    path = journal_of(tmp_path, *[(1.0, stage, event) for stage, event in entries])
    totals = RunState.of(read_journal(path).entries).totals
    usage = None if tokens is None else ev.Usage(output_tokens=tokens)
    assert (cost, usage) == (totals.cost_usd, totals.usage)


def test_iterations_of_a_watch(tmp_path: Path) -> None:
    """Each attempt at an item counts its iterations from 1; a resumed one continues."""
    first = ev.IterationStart(iteration=1, max_iterations=9)
    retry = ev.WatchItemRetry(filename="a", message="", attempt=1, max_attempts=3, retry_in=1)
    item = ev.WatchProcessingItem(filename="a")
    said = [item, first, ev.RunContinued(), item, first, retry, item, first]
    path = journal_of(tmp_path, *[(1.0, None, event) for event in said])
    assert 2 == RunState.of(read_journal(path).entries).totals.rounds
