"""Detection of agents that change nothing or undo each other."""

from __future__ import annotations

from itertools import accumulate
from typing import TypeAlias

import pytest
from hypothesis import given, strategies as st

from cuggino.domain.progress import ProgressWatch, Standstill
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


@given(st.lists(st.integers(), unique=True), PATIENCE)
def test_something_new_is_no_standstill(states: list[int], patience: int) -> None:
    """Nothing is reported while every agent leaves a new state."""
    assert {None} >= set(answers([str(state) for state in states], patience=patience))


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


@given(STEPS, PATIENCE)
def test_a_replay_gives_the_same_watch(steps: list[Step], patience: int) -> None:
    """The same steps lead to equal watches, and a step changes no earlier watch."""
    first, second = after_all(steps, patience), after_all(steps, patience)
    assert first == second
    assert [watch.standstill for watch in first] == [watch.standstill for watch in second]


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
    ],
)
def test_reports_of_agents_that_change_nothing(
    traces: str, tasks: int, expected: dict[int, Standstill]
) -> None:
    """A new report counts as a task done, up to the tasks of the plan or the patience."""
    steps: list[Step] = [("A", None if trace == "-" else trace) for trace in traces]
    told = enumerate(after_all(steps, tasks=tasks), start=1)
    assert expected == {n: watch.standstill for n, watch in told if watch.standstill}


def test_a_change_allows_as_many_reports_again() -> None:
    """Only agents since the latest new state count against the tasks of the plan."""
    before: list[Step] = [("A", trace) for trace in "abcd"]
    after: list[Step] = [("B", None), *(("B", trace) for trace in "efg")]
    assert {None} == {watch.standstill for watch in after_all([*before, *after])}
    more: list[Step] = [("B", trace) for trace in "hij"]
    assert "unchanged" == after_all([*before, *after, *more])[-1].standstill


def test_busy_agents_do_not_hide_oscillation() -> None:
    """Agents that undo each other are detected, whatever they and others report."""
    steps: list[Step] = [("B", "a"), ("A", "b"), ("A", "c"), ("B", "d"), ("A", "e")]
    assert "oscillating" == after_all(steps)[-1].standstill


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
