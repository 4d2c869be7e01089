"""`RoutedAgent` in a resumed run: cooldowns are restored."""

from __future__ import annotations

from pathlib import Path

from cuggino.agents import RoutedAgent
from cuggino.agents.cassettes import record_to
from cuggino.domain.fallback import AgentCooldown, Cooldown
from tests.agents.routed import FULL, Drawn, candidate, chain, memory, options, values
from tests.loops.supervised_loop import HOUR, second


def cooldown(agent: str = "A", until: float = HOUR, role: str = "coding") -> AgentCooldown:
    return AgentCooldown(
        role, agent, Cooldown(second(until), "limit met", second(until), is_quota=True)
    )


def test_sessions_go_to_the_next(tmp_path: Path) -> None:
    """Sessions go to the fallback until the cooldown ends, also in a recording."""
    for record in (False, True):
        t = Drawn()
        one, other = memory(t.cold("s|")), memory(t.cold("s|"))
        routed = RoutedAgent(chain(one, other))
        agent = record_to(tmp_path / "c", routed, env={}) if record else routed
        agent.restore_cooldowns([cooldown()])
        told = [values(t, agent.spawn(options(cwd=tmp_path)), HOUR) for _ in range(2)]
        assert [[FULL], [FULL]] == told
        assert (1, 1) == (len(one.spawned), len(other.spawned))


def test_cooldowns_apply_in_all_roles() -> None:
    """A candidate with two roles has a single account."""
    t = Drawn()
    one, other = memory(t.cold("s|")), memory(t.cold("s|"))
    shared, rest = chain(one, other)
    routed = RoutedAgent([shared, rest], {"plan": [shared]})
    routed.restore_cooldowns([cooldown(role="plan")])
    values(t, routed.spawn(options()))
    assert (0, 1) == (len(one.spawned), len(other.spawned))


def test_unknown_and_ambiguous_names() -> None:
    """A name that matches no agent of the role, or several, restores no cooldown."""
    t = Drawn()
    one, other = memory(t.cold("s|")), memory()
    routed = RoutedAgent(
        [candidate(one, "A"), candidate(other, "A")], {"plan": [candidate(other, "B")]}
    )
    routed.restore_cooldowns(
        [
            cooldown("A"),
            cooldown("B"),
            cooldown("C"),
            cooldown("A", role="plan"),
            cooldown(role="x"),
        ]
    )
    assert [FULL] == values(t, routed.spawn(options()))
    assert 1 == len(one.spawned)
