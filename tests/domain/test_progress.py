"""Agents that change nothing, the slots at work, and usage windows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import TypeAlias

import pytest
from hypothesis import given, strategies as st

from cuggino.domain import Overage, QuotaPlan, QuotaWindows, SlotLimit, is_overload
from cuggino.domain.progress import ProgressWatch, Standstill
from cuggino.errors import AgentFailed, LoopError, QuotaExceeded
from cuggino.events import AgentRetry, QuotaUsed
from tests.vectors import each

STATES = st.lists(st.sampled_from("ABCD"), max_size=40)
PATIENCE = st.integers(1, 5)

Step: TypeAlias = tuple[str, str | None]
"""The state that an agent leaves, and its trace."""
STEPS = st.lists(st.tuples(st.sampled_from("ABC"), st.none() | st.sampled_from("xyz")))


def watches(states: str | list[str], *, patience: int = 3) -> list[ProgressWatch]:
    """Return the watch after each agent; the first state is the initial one."""
    steps = accumulate(states, ProgressWatch.after, initial=ProgressWatch(patience))
    return list(steps)[2:]


def answers(states: str | list[str], *, patience: int = 3) -> list[Standstill | None]:
    """Return the answer of the watch for each agent; the first state is the initial one."""
    return [watch.standstill for watch in watches(states, patience=patience)]


def standstills(states: str, *, patience: int = 3) -> dict[int, Standstill]:
    """Return the standstills by agent, counted from 1."""
    told = enumerate(answers(states, patience=patience), start=1)
    return {number: answer for number, answer in told if answer is not None}


@each(
    "patience, states, expected",
    [
        (3, "A", {}),
        (3, "ABCDEFGH", {}),
        (3, "AAA", {}),
        (3, "AAAA", {3: "unchanged"}),
        (3, "ABBBB", {4: "unchanged"}),
        (3, "ABBCCDDEE", {}),
        (1, "AA", {1: "unchanged"}),
        (3, "AAAAAAA", {3: "unchanged", 6: "unchanged"}),
        (3, "ABA", {}),
        (3, "ABAC", {}),
        (3, "ABACDCE", {}),
        (3, "ABABA", {4: "oscillating"}),
        (3, "ABCABC", {5: "oscillating"}),
        (3, "ABAAB", {4: "oscillating"}),
        (3, "ABAAA", {}),
        (3, "ABAAAA", {5: "unchanged"}),
        (2, "ABAB", {3: "oscillating"}),
        (2, "ABAA", {}),
        (1, "ABA", {}),
        (1, "ABAB", {3: "oscillating"}),
        (3, "ABABABABABA", {4: "oscillating", 7: "oscillating", 10: "oscillating"}),
        (3, "ABABACABA", {4: "oscillating", 8: "oscillating"}),
    ],
)
def test_standstills_in_a_series(
    patience: int, states: str, expected: dict[int, Standstill]
) -> None:
    """Idle agents and agents that undo each other are distinguished from productive ones."""
    assert expected == standstills(states, patience=patience)


def test_the_number_of_agents() -> None:
    """The answer includes the number of agents in a row, or 0."""
    assert [0, 0, 0, 3, 0, 0, 0] == [watch.agents for watch in watches("ABABAACC")]


def test_a_start_resets() -> None:
    """After `started` earlier states count as new, and the counts are 0."""
    (*_, watch) = watches("ABAB", patience=2)
    assert ProgressWatch(2).after("A") == watch.started("A")
    assert "oscillating" == watch.standstill


def test_patience_is_positive() -> None:
    """A patience below one agent is rejected."""
    with pytest.raises(ValueError, match="at least 1"):
        ProgressWatch(0)


@given(st.integers(2, 5), st.lists(st.booleans(), max_size=30))
def test_single_reverts_are_no_standstill(patience: int, reverts: list[bool]) -> None:
    """Any number of reverts is accepted if each is followed by something new."""
    states = ["0"]
    for number, revert in enumerate(reverts, start=1):
        states += [str(number), states[-1], f"{number}+"] if revert else [str(number)]
    assert {None} >= set(answers(states, patience=patience))


@given(STATES, PATIENCE)
def test_agents_without_anything_new_are_always_detected(states: list[str], patience: int) -> None:
    """For any history, known states alone soon lead to an answer."""
    known = sorted({*states, "A"})
    tail = [known[n % len(known)] for n in range(patience + 3)]
    assert {None} != set(answers([*states, "A", *tail], patience=patience)[-len(tail) :])


@given(STATES, PATIENCE)
def test_only_equality_of_states_counts(states: list[str], patience: int) -> None:
    """Renaming the states changes no answer."""
    renamed = [f"<{ord(state) ^ 3}>" for state in states]
    assert answers(states, patience=patience) == answers(renamed, patience=patience)


def after_all(steps: list[Step], patience: int = 3, *, tasks: int = 0) -> list[ProgressWatch]:
    """Return the watch after each agent of a project whose state was A."""
    watches = [ProgressWatch(patience).started("A")]
    for state, trace in steps:
        watches.append(watches[-1].after(state, trace=trace, tasks=tasks))
    return watches[1:]


@each(
    "traces, tasks, expected",
    [
        # Tasks that only look, each with another report.
        ("wxyz", 0, {}),
        ("abcdefg", 0, {7: "unchanged"}),
        ("abcdefg", 6, {}),
        ("abcdefghij", 6, {10: "unchanged"}),
        # The same report again and again, or two by turns.
        ("xxxxxx", 9, {3: "unchanged", 6: "unchanged"}),
        ("xyxyxy", 9, {5: "unchanged"}),
        ("xx-xx", 9, {3: "unchanged"}),
        # After a standstill other words do not help.
        ("xxxabcd", 9, {3: "unchanged", 6: "unchanged"}),
        # A change allows as many reports again.
        ("abcdB-efg", 0, {}),
        ("abcdB-efghij", 0, {11: "unchanged"}),
        # Busy agents do not hide that they undo each other.
        ("BaAbcBdAe", 0, {5: "oscillating"}),
    ],
)
def test_reports_of_agents_that_change_nothing(
    traces: str, tasks: int, expected: dict[int, Standstill]
) -> None:
    """A new report counts as a task done, up to the tasks of the plan or the patience."""
    state, steps = "A", list[Step]()
    for trace in traces:
        if trace.isupper():
            state = trace
        else:
            steps.append((state, None if trace == "-" else trace))
    told = enumerate(after_all(steps, tasks=tasks), start=1)
    assert expected == {n: watch.standstill for n, watch in told if watch.standstill}


@given(STEPS, PATIENCE, st.integers(0, 6))
def test_agents_without_a_change_are_always_stopped(
    steps: list[Step], patience: int, tasks: int
) -> None:
    """However many reports an agent invents, the plan bounds the agents without a change."""
    rest: list[Step] = [("A", f"report {n}") for n in range(max(tasks, patience) + patience + 2)]
    answers = after_all([*steps, ("A", None), *rest], patience, tasks=tasks)[-len(rest) :]
    assert {None} != {watch.standstill for watch in answers}


@given(STATES, PATIENCE)
def test_without_traces_tasks_count_for_nothing(states: list[str], patience: int) -> None:
    """A run that an earlier version began is judged as that version judged it."""
    steps: list[Step] = [(state, None) for state in states]
    assert after_all(steps, patience) == after_all(steps, patience, tasks=9)


NOW = datetime(2026, 11, 23, tzinfo=UTC)


def test_an_overload_halves_the_limit_and_items_raise_it_by_one() -> None:
    """It falls to one at least, and recovers up to all slots."""
    limit = SlotLimit(slots=8)
    seen = [limit.active]
    for n in range(5):
        limit = limit.overloaded("a", NOW + timedelta(minutes=n))
        seen.append(limit.active)
    assert [8, 4, 2, 1, 1, 1] == seen
    for n in range(8):
        limit = limit.ended(f"{n}")
        seen.append(limit.active)
    assert [2, 3, 4, 5, 6, 7, 8, 8] == seen[6:]


def test_an_overload_of_all_slots_halves_once() -> None:
    """Seven agents that are refused within seconds are one reason."""
    limit = SlotLimit(slots=7)
    for n in range(7):
        limit = limit.overloaded(f"{n}", NOW + timedelta(seconds=4 * n))
    assert 3 == limit.active
    assert 1 == limit.overloaded("0", NOW + timedelta(minutes=2)).active


def test_an_item_that_met_an_overload_does_not_raise_the_limit() -> None:
    """Nor does one that failed; the next attempt of the item can raise it."""
    limit = SlotLimit(slots=4).overloaded("a", NOW).overloaded("b", NOW)
    limit = limit.ended("a")
    assert 2 == limit.active
    assert 2 == limit.ended("c", succeeded=False).active
    assert 3 == limit.ended("a").active
    assert frozenset() == limit.ended("b", succeeded=False).met


@pytest.mark.parametrize(
    ("reason", "expected"), [("overloaded", True), ("rate_limit", True), ("crash", False)]
)
def test_overloads(reason: str, expected: bool) -> None:
    """A retry, and a session or loop that failed, for the load of the service; no usage limit."""
    retry = AgentRetry(reason=reason, message="", attempt=1, max_retries=2, retry_in=1)
    failed = AgentFailed("x", reason=reason)  # type: ignore[arg-type]
    wrapped = LoopError("planning", "x", cause=failed)
    assert [expected] * 3 == [is_overload(x) for x in (retry, failed, wrapped)]
    assert not is_overload(QuotaExceeded("limit")) and not is_overload(None)


NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
ONE = NOON + timedelta(hours=1)
TWO = NOON + timedelta(hours=2)


def used(
    share: float, resets_at: datetime | None = ONE, *, window: str = "five_hour", agent: str = "a"
) -> QuotaUsed:
    return QuotaUsed(window=window, used=share, resets_at=resets_at, agent=agent)


WEEK = used(0.9, TWO, window="seven_day")


@pytest.mark.parametrize(
    ("reports", "reserve", "overage", "until"),
    [
        # Nothing is known, or nothing is planned.
        ([], 0.2, "pay", None),
        ([used(1)], 0, "pay", None),
        # The reserve.
        ([used(0.79)], 0.2, "pay", None),
        ([used(0.8)], 0.2, "pay", ONE),
        ([used(0.3)], 0.7, "pay", ONE),
        ([used(0.9)], 0.1, "pay", ONE),
        ([used(0.5), used(0.85)], 0.2, "pay", ONE),
        ([used(0.85), used(0.5)], 0.2, "pay", None),
        ([used(0.85), WEEK], 0.2, "pay", TWO),
        ([used(0.5), WEEK], 0.2, "pay", TWO),
        ([used(0.85, agent="b")], 0.2, "pay", None),
        # A window that was reset, or that nobody can wait for.
        ([used(1, NOON)], 0.2, "pay", None),
        ([used(1, None)], 0.2, "stop", None),
        # Overage.
        ([used(0.99)], 0, "stop", None),
        ([used(1)], 0, "stop", ONE),
        ([used(0.85)], 0.2, "stop", ONE),
    ],
)
def test_when_nothing_new_starts(
    reports: list[QuotaUsed], reserve: float, overage: Overage, until: datetime | None
) -> None:
    """The last reset of the windows that are used up to the reserve is waited for."""
    plan = QuotaPlan(reserve=reserve, overage=overage)
    for report in reports:
        plan.windows.add(report)
    refusal = plan.refusal("a", NOON)
    assert until == (refusal.resets_at if refusal is not None else None)
    assert refusal is None or refusal.planned


@pytest.mark.parametrize(
    ("reserve", "message"),
    [
        (0.2, "a: five_hour 100 % used, and quotaReserve keeps 20 % of it"),
        (0, 'a: five_hour 100 % used, and overage is "stop"'),
    ],
)
def test_the_reason(reserve: float, message: str) -> None:
    """The message names agent, window, share and setting."""
    plan = QuotaPlan(reserve=reserve, overage="stop")
    plan.windows.add(used(1))
    assert message == str(plan.refusal("a", NOON))


@pytest.mark.parametrize(
    ("after", "changes"),
    [
        (used(0.5), False),
        (used(0.5049), False),
        (used(0.51), True),
        (used(0.49), True),
        (used(0.5, ONE + timedelta(seconds=30)), False),
        (used(0.5, TWO), True),
        (used(0.5, None), True),
        (used(0.5, agent="b"), True),
        (used(0.5, window="seven_day"), True),
    ],
)
def test_changes(after: QuotaUsed, changes: bool) -> None:
    """A report changes what is known by a percent or by another reset."""
    windows = QuotaWindows()
    assert used(0.5) == windows.add(used(0.5))
    assert (after if changes else None) == windows.add(after)
    assert after in windows.at(NOON)


@pytest.mark.parametrize(
    ("reports", "nearly"),
    [
        ([used(share) for share in (0.5, 0.79, 0.8, 0.9, 1)], [False, False, True, False, False]),
        ([used(share) for share in (0.9, 0.95, 0.5, 0.85)], [True, False, False, True]),
        ([used(0.7999), used(0.8)], [False, True]),
        ([used(0.9, ONE), used(0.9, TWO)], [True, True]),  # the next window
    ],
)
def test_windows_that_are_nearly_used_up(reports: list[QuotaUsed], nearly: list[bool]) -> None:
    """The report of a window that passes four fifths says so, once."""
    windows = QuotaWindows()
    changes = [windows.add(report) for report in reports]
    assert nearly == [change is not None and change.nearly for change in changes]


def test_windows_of_another_process() -> None:
    """Of each window, the later reset counts, and then the larger share."""
    windows = QuotaWindows()
    for report in (used(0.5), used(0.1, TWO, agent="b"), used(0.2, agent="c")):
        windows.add(report)
    windows.merge([used(0.4), used(0.9, agent="b"), used(0.3, agent="c"), used(0.6, agent="d")])
    known = {one.agent: (one.used, one.resets_at) for one in windows.at(NOON)}
    assert {"a": (0.5, ONE), "b": (0.1, TWO), "c": (0.3, ONE), "d": (0.6, ONE)} == known
