"""The result of a run: outcome, exit code and resumability, none of it serialized."""

from __future__ import annotations

from typing import get_args

from cuggino import events as ev
from tests.vectors import each

LOOP_RESULTS = (
    ev.LoopApproved(iteration=1),
    ev.LoopSpecIssue(iteration=1, content="unclear", filename="a.md"),
    ev.LoopMaxIterations(iteration=3, max_iterations=3),
    ev.LoopStalled(iteration=2, reason="no_progress", message="3 agents in a row changed nothing"),
)
RESULTS: tuple[ev.RunResult, ...] = (
    *LOOP_RESULTS,
    *(ev.DeliverEnded(reason=reason, error="why") for reason in get_args(ev.DeliverExit)),
    *(ev.PlanBuildEnded(reason=reason, error="why") for reason in get_args(ev.PlanBuildExit)),
)
CODES: dict[ev.RunOutcome, int] = {
    "approved": 0,
    "planned": 0,
    "failed": 1,
    "spec_issue": 10,
    "max_iterations": 11,
    "quota": 12,
    "budget": 13,
    "stalled": 14,
    "blocked": 15,
    "interrupted": 130,
}


@each("result", RESULTS)
def test_exit_code_state_and_resumability(result: ev.RunResult) -> None:
    """Every result of every loop has an outcome, which decides everything else."""
    assert CODES[result.outcome] == result.exit_code
    assert (result.outcome in {"failed", "quota", "budget", "interrupted"}) == result.is_resumable
    expected = "ended" if result.outcome in {"planned", "blocked"} else result.outcome
    assert expected == result.state


@each("result", RESULTS)
def test_only_fields_are_serialized(result: ev.RunResult) -> None:
    """No property of a result is serialized, and a line round-trips."""
    line = ev.dump_event(result)
    assert not {"outcome", "state", "exit_code", "is_resumable"} & set(result.model_dump())
    assert result == ev.parse_event(line)


def test_every_outcome_occurs() -> None:
    """Every outcome has a result, and every registered result is tested here."""
    assert set(get_args(ev.RunOutcome)) == {result.outcome for result in RESULTS}
    known = {cls for cls in ev.event_types().values() if issubclass(cls, ev.RunResult)}
    assert known == {type(result) for result in RESULTS}


def test_messages() -> None:
    """The message has the reason if the outcome does not."""
    assert [
        "",
        "spec issue a.md",
        "not approved within 3 iterations",
        "3 agents in a row changed nothing",
    ] == [result.message for result in LOOP_RESULTS]
    assert {"why"} == {result.message for result in RESULTS[4:]}
