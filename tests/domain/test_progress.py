"""When agents change nothing, or undo each other."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from cuggino.domain.progress import ProgressWatch, Standstill

STATES = st.lists(st.sampled_from("ABCD"), max_size=40)
PATIENCE = st.integers(1, 5)


def answers(states: str | list[str], *, patience: int = 3) -> list[Standstill | None]:
    """What the watch says after each agent; the first state is the one before them."""
    watch = ProgressWatch(patience)
    return [watch.observe(state) for state in states][1:]


def said(states: str, *, patience: int = 3) -> dict[int, Standstill]:
    """What is said after which agent, counted from 1."""
    told = enumerate(answers(states, patience=patience), start=1)
    return {number: answer for number, answer in told if answer is not None}


@pytest.mark.parametrize(
    ("patience", "states", "expected"),
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
def test_what_is_said_of_a_series(
    patience: int, states: str, expected: dict[int, Standstill]
) -> None:
    """Idle agents and agents that undo each other are told from those that bring something new."""
    assert expected == said(states, patience=patience)


def test_how_many_agents_it_was() -> None:
    """The number of agents in a row is known with the answer, and 0 without one."""
    watch = ProgressWatch(3)
    watch.start("A")
    counts = []
    for state in "BABAACC":
        watch.observe(state)
        counts.append(watch.agents)
    assert [0, 0, 0, 3, 0, 0, 0] == counts


def test_a_start_forgets() -> None:
    """After another `start` earlier states are new ones, and no agent has been counted."""
    watch = ProgressWatch(2)
    for state in "ABA":
        watch.observe(state)
    watch.start("A")
    assert [None, None, "oscillating"] == [watch.observe(state) for state in "BAB"]
    watch.observe("B")
    watch.start("B")
    assert [None, "unchanged"] == [watch.observe(state) for state in "BB"]


def test_patience_is_a_number_of_agents() -> None:
    """Less than one agent is no patience."""
    with pytest.raises(ValueError, match="at least 1"):
        ProgressWatch(0)


@given(st.lists(st.integers(), unique=True), PATIENCE)
def test_something_new_is_no_standstill(states: list[int], patience: int) -> None:
    """Nothing is said while every agent leaves a state that was never there."""
    assert {None} >= set(answers([str(state) for state in states], patience=patience))


@given(st.integers(2, 5), st.lists(st.booleans(), max_size=30))
def test_single_reverts_are_no_standstill(patience: int, reverts: list[bool]) -> None:
    """Any number of reverts is fine, as long as each is followed by something new."""
    states = ["0"]
    for number, revert in enumerate(reverts, start=1):
        states += [str(number), states[-1], f"{number}+"] if revert else [str(number)]
    assert {None} >= set(answers(states, patience=patience))


@given(STATES, PATIENCE)
def test_agents_without_anything_new_are_always_noticed(states: list[str], patience: int) -> None:
    """Whatever came before, known states alone lead to an answer soon."""
    known = sorted({*states, "A"})
    tail = [known[n % len(known)] for n in range(patience + 3)]
    assert {None} != set(answers([*states, "A", *tail], patience=patience)[-len(tail) :])


@given(STATES, PATIENCE, st.integers(0, 40))
def test_a_replay_gives_the_same_watch(states: list[str], patience: int, cut: int) -> None:
    """A watch that was fed with the recorded states goes on as the one that recorded them."""
    first = ProgressWatch(patience)
    rest = [first.observe(state) for state in states][cut:]
    second = ProgressWatch(patience)
    for state in states[:cut]:
        second.observe(state)
    assert rest == [second.observe(state) for state in states[cut:]]
    assert first == second


@given(STATES, PATIENCE)
def test_the_names_of_the_states_are_no_matter(states: list[str], patience: int) -> None:
    """Only whether two states are equal counts."""
    renamed = [f"<{ord(state) ^ 3}>" for state in states]
    assert answers(states, patience=patience) == answers(renamed, patience=patience)
