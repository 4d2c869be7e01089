"""CI of commits and pull requests: its state, when it is settled, and its changes over time."""

from __future__ import annotations

from typing import Any

import pytest

from cuggino.domain import Schedule
from cuggino.errors import ForgeRefused, ForgeUnreachable
from cuggino.events import WatchForgeWaiting
from cuggino.forge import Ci, Job, ci_of, ci_state
from cuggino.forge.model import JobState
from cuggino.testing import CiRun, InMemoryForge, Marbles

STATES: dict[str, JobState] = {"p": "pending", "o": "passed", "f": "failed", "s": "skipped"}


def jobs(drawn: str) -> tuple[Job, ...]:
    """Return one job per letter: pending, `o` for passed, failed, skipped."""
    return tuple(Job(id=str(at), name=one, state=STATES[one]) for at, one in enumerate(drawn))


@pytest.mark.parametrize(
    ("drawn", "state"),
    [("", "none"), ("o", "passed"), ("os", "passed"), ("op", "pending"), ("opf", "failed")],
)
def test_the_state_of_several_jobs(drawn: str, state: str) -> None:
    """A failure decides, then a pending job."""
    assert ci_state(jobs(drawn)) == state


@pytest.mark.parametrize(
    ("polls", "settled"),
    [
        (["a:o"], "1"),
        (["a:p", "a:po", "a:oo"], "001"),
        (["a:f"], "1"),
        (["a:fp", "a:fp"], "01"),
        (["a:p", "a:fp", "b:fp", "b:fp"], "0001"),
        (["a:", "a:", "a:"], "001"),
        (["a:", "a:", "b:", "a:"], "0000"),
        (["a:", "a:", "a:p", "a:"], "0000"),
    ],
)
def test_when_it_is_settled(polls: list[str], settled: str) -> None:
    """Jobs may still appear, and those beside a failed one are waited for during one poll."""
    ci, seen = Ci(), ""
    for poll in polls:
        commit, _, drawn = poll.partition(":")
        ci = ci.after(commit, jobs(drawn))
        seen += str(int(ci.is_settled))
    assert seen == settled


def opened(*ci: CiRun | tuple[CiRun, ...]) -> tuple[Marbles, InMemoryForge]:
    """Return a forge with the pull request 1 of the branch `b`, at the commit `c1`."""
    t = Marbles()
    forge = InMemoryForge(t.clock, ci=ci)
    forge.push("b", "c1")
    opening = forge.open_pull_request(branch="b", target="main", title="T", body="")
    opening.subscribe(scheduler=t.clock)
    return t, forge


def drawn(seen: list[tuple[float, str, Any]]) -> list[tuple[float, object]]:
    """Return what was emitted: the commit and state of CI, with `!` once it is settled."""
    shown: list[tuple[float, object]] = []
    for at, kind, value in seen:
        if isinstance(value, Ci):
            shown.append((at, f"{value.commit} {value.state}{'!' if value.is_settled else ''}"))
        else:
            shown.append((at, type(value).__name__ if value is not None else kind))
    return shown


RED = CiRun(state="failed", takes=60.0)


@pytest.mark.parametrize("of", [1, "c1"], ids=["pull request", "commit"])
@pytest.mark.parametrize(
    ("ci", "expected"),
    [
        ((CiRun(takes=150.0),), [(0, "c1 pending"), (180, "c1 passed!")]),
        ((RED,), [(0, "c1 pending"), (60, "c1 failed!")]),
        (
            ((RED, CiRun(takes="9h")),),
            [(0, "c1 pending"), (60, "c1 failed"), (120, "c1 failed!")],
        ),
        ((), [(0, "c1 none"), (120, "c1 none!")]),
    ],
    ids=["passes", "fails", "fails beside a long job", "has no jobs"],
)
def test_changes_are_emitted(of: int | str, ci: Any, expected: list[Any]) -> None:
    """An unchanged answer emits nothing."""
    t, forge = opened(*ci)
    assert drawn(t.record(ci_of(forge, of), until=600)) == expected


def test_another_push_begins_anew() -> None:
    """The head of a pull request is followed."""
    t, forge = opened(RED, CiRun(takes=90.0))
    forge.at(100, lambda: forge.push("b", "c2"))
    seen = drawn(t.record(ci_of(forge, 1), until=600))
    assert seen[-2:] == [(120, "c2 pending"), (240, "c2 passed!")]


def test_it_ends_with_its_schedule() -> None:
    t, forge = opened(CiRun(takes=600.0))
    seen = t.record(ci_of(forge, 1, schedule=Schedule.constant("10s").times(2)), until=600)
    assert drawn(seen) == [(0, "c1 pending"), (20, "completed")]


def test_an_outage_is_waited_for() -> None:
    t, forge = opened(CiRun(takes=30.0))
    forge.fail("pull_request", ForgeUnreachable("no connection"), times=2)
    seen = drawn(t.record(ci_of(forge, 1), until=70))
    assert seen == [(0, WatchForgeWaiting.__name__)] * 1 + [
        (5, WatchForgeWaiting.__name__),
        (15, "c1 pending"),
    ]


def test_one_that_does_not_exist_is_refused() -> None:
    t, forge = opened()
    ((at, kind, error),) = t.record(ci_of(forge, 99), until=9)
    assert (at, kind, type(error)) == (0, "error", ForgeRefused)


def test_a_disposed_wait_costs_nothing() -> None:
    """Neither a timer nor a call is left."""
    t, forge = opened(CiRun(takes=0.0))
    t.record(ci_of(forge, 1), until=9, dispose_at=5)
    calls = len(forge.calls)
    t.clock.advance_to(t.clock.after("1d"))
    assert len(forge.calls) == calls
    assert t.clock.pending == 0
