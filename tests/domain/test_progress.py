"""Detection of agents that change nothing or undo each other."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from cuggino.domain.progress import ProgressWatch, Standstill
from tests.vectors import each

STATES = st.lists(st.sampled_from("ABCD"), max_size=40)
PATIENCE = st.integers(1, 5)


def answers(states: str | list[str], *, patience: int = 3) -> list[Standstill | None]:
    """Return the answer of the watch for each agent; the first state is the initial one."""
    watch = ProgressWatch(patience)
    return [watch.observe(state) for state in states][1:]


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
    watch = ProgressWatch(3)
    watch.start("A")
    counts = []
    for state in "BABAACC":
        watch.observe(state)
        counts.append(watch.agents)
    assert [0, 0, 0, 3, 0, 0, 0] == counts


def test_a_start_resets() -> None:
    """After another `start` earlier states count as new, and the count is 0."""
    watch = ProgressWatch(2)
    for state in "ABA":
        watch.observe(state)
    watch.start("A")
    assert [None, None, "oscillating"] == [watch.observe(state) for state in "BAB"]
    watch.observe("B")
    watch.start("B")
    assert [None, "unchanged"] == [watch.observe(state) for state in "BB"]


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


@given(STATES, PATIENCE, st.integers(0, 40))
def test_a_replay_gives_the_same_watch(states: list[str], patience: int, cut: int) -> None:
    """A watch restored from recorded states behaves like the original."""
    first = ProgressWatch(patience)
    rest = [first.observe(state) for state in states][cut:]
    second = ProgressWatch(patience)
    for state in states[:cut]:
        second.observe(state)
    assert rest == [second.observe(state) for state in states[cut:]]
    assert first == second


@given(STATES, PATIENCE)
def test_only_equality_of_states_counts(states: list[str], patience: int) -> None:
    """Renaming the states changes no answer."""
    renamed = [f"<{ord(state) ^ 3}>" for state in states]
    assert answers(states, patience=patience) == answers(renamed, patience=patience)
