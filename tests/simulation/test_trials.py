"""The loops with agents and checks that fail by chance: determinism, and laws that must hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cuggino.events import StageCost
from cuggino.simulation import STRATEGIES, Odds, Strategy, Summary, summary, trial, trials
from cuggino.simulation.trials import played, wilson, world_of
from tests.git_project import isolate_git

NEVER_WRONG = Odds(
    right=1, breaks=0, admits=1, forgets=0, approves_wrong=0, rejects_right=0, flakes=0, covers=1
)
BY_NAME = {strategy.name: strategy for strategy in STRATEGIES}
EACH = pytest.mark.parametrize(
    "strategy",
    [pytest.param(one, id=one.name) for one in STRATEGIES if not one.in_clones],
)
GATED = pytest.mark.parametrize("name", ["check", "check and review"])


def of(strategy: Strategy, seeds: int, **odds: Any) -> Summary:
    """Return the figures of a strategy; what is not given never fails."""
    return summary(trials(strategy, NEVER_WRONG.model_copy(update=odds), range(seeds)))


@EACH
def test_a_seed_gives_one_trial(strategy: Strategy) -> None:
    """A trial depends on nothing but strategy, odds and seed."""
    odds = Odds(right=0.4, breaks=0.3, forgets=0.3, flakes=0.3)
    first = [*trials(strategy, odds, range(6))]
    assert first == [trial(strategy, odds, seed) for seed in range(6)]
    assert len({(one.right, one.done, one.cost_usd) for one in first}) > 1


@EACH
def test_without_failures_all_is_done(strategy: Strategy) -> None:
    """Where nothing fails, every loop ends after its first sessions, and is right."""
    found = of(strategy, 3)
    assert (found.trials, found.done, found.true, found.missed) == (3, 3, 3, 0)
    expected = 0.6 if strategy.loop == "loop" else 0.15 + strategy.tasks * 0.6 + 0.25
    assert found.cost_usd == pytest.approx(expected)


@EACH
def test_an_agent_that_is_never_right(strategy: Strategy) -> None:
    """What no agent can do is never truly done, whatever the loop believes."""
    found = of(strategy, 6, right=0, admits=0, approves_wrong=0.5, covers=0.5)
    assert (found.true, found.missed) == (0, 0)


@pytest.mark.real_agent
@GATED
def test_a_check_that_finds_everything(name: str) -> None:
    """A check without a gap lets no false "done" through, however careless the reviewer is."""
    found = of(BY_NAME[name], 25, right=0.4, breaks=0.3, admits=0, approves_wrong=1)
    assert found.done
    assert found.false == 0


@pytest.mark.real_agent
def test_without_a_gate_the_word_counts() -> None:
    """An agent that always reports that all is done is believed where nothing checks it."""
    for name in ("one session", "repeat until done"):
        found = of(BY_NAME[name], 40, right=0.5, admits=0)
        assert found.done == 40
        assert 10 <= found.true <= 30, name


@pytest.mark.real_agent
def test_a_better_check_lets_less_through() -> None:
    """The more a check finds, the less often "done" is false; the draws are the same."""
    odds = {"right": 0.5, "breaks": 0.2, "admits": 0, "approves_wrong": 0.6}
    false = [
        of(BY_NAME["check and review"], 30, covers=covers, **odds).false
        for covers in (0.0, 0.5, 1.0)
    ]
    assert false == sorted(false, reverse=True)
    assert false[0] > false[-1] == 0


@pytest.mark.real_agent
def test_a_flaky_check_costs_but_does_not_lie() -> None:
    """The gate repeats a red check: a flake sends back little work, and lets nothing through."""
    gate = BY_NAME["check and review"]
    calm, flaky = of(gate, 20, right=0.6), of(gate, 20, right=0.6, flakes=0.3)
    assert flaky.true == flaky.done == 20
    assert calm.cost_usd <= flaky.cost_usd < 2 * calm.cost_usd


@pytest.mark.real_agent
def test_a_forgotten_report_is_asked_for() -> None:
    """The coding loop reminds an agent; a single session is lost with its report."""
    single, run = BY_NAME["one session"], BY_NAME["check and review"]
    lost, asked = of(single, 20, forgets=0.5), of(run, 20, forgets=0.5)
    assert lost.missed == 20 - lost.done > 0
    assert asked.true == 20
    assert asked.sessions < 4.5


@pytest.mark.real_agent
def test_best_of_three_in_clones(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One of three attempts lands, through the gate; a seed gives one trial here, too."""
    isolate_git(monkeypatch, tmp_path / "home")
    odds = NEVER_WRONG.model_copy(update={"right": 0.5, "breaks": 0.2, "approves_wrong": 1})
    found = [*trials(BY_NAME["best of three"], odds, range(4))]
    assert found == [*trials(BY_NAME["best of three"], odds, range(4))]
    assert all(one.done and one.right for one in found)
    assert all(one.sessions > 3 for one in found)


@pytest.mark.real_agent
def test_hands_save_time_not_money(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where nothing fails, three hands do the sessions of one, in less time."""
    isolate_git(monkeypatch, tmp_path / "home")
    one, three = of(BY_NAME["three tasks"], 3), of(BY_NAME["three hands"], 3)
    assert one.true == three.true == 3
    assert one.cost_usd == pytest.approx(three.cost_usd)
    assert one.sessions == three.sessions
    assert three.hours < one.hours


@EACH
def test_costs_are_those_of_the_loop(strategy: Strategy) -> None:
    """The dollars of a trial are those that the loop itself has counted."""
    with world_of(Odds(right=0.3, forgets=0.3), seed=4, tasks=strategy.tasks) as world:
        story = played(strategy, world)
    last: Any = story.last
    total = last.cost_usd if strategy.loop == "loop" else story.of(StageCost)[-1].total_cost
    assert total == pytest.approx(world.cost)


@pytest.mark.parametrize(
    ("successes", "of_all", "low", "high"),
    [(0, 10, 0.0, 0.278), (5, 10, 0.237, 0.763), (10, 10, 0.722, 1.0)],
)
def test_interval(successes: int, of_all: int, low: float, high: float) -> None:
    """The interval of a share is Wilson's, also for none and for all."""
    assert wilson(successes, of_all) == pytest.approx((low, high), abs=0.001)
