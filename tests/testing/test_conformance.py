"""The rules for agents: a good one keeps them all, and each broken one fails the one it breaks."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import pytest

from cuggino.testing import AgentConformance, Verdict, rules_of, try_agent
from tests.testing.broken_agents import BROKEN, AsksSomebody, LeavesItsTools
from tests.testing.plain_agent import PlainAgent, PlainArena


class TestPlain(AgentConformance):
    """A good agent in this process, by pytest."""

    @pytest.fixture
    def arena(self, tmp_path: Path) -> PlainArena:
        """An arena for one rule."""
        return PlainArena(tmp_path)


def verdicts(agent: type[PlainAgent]) -> tuple[Verdict, ...]:
    class Arena(PlainArena):
        made = agent

    return try_agent(Arena)


def test_a_good_agent() -> None:
    """A good agent fails no rule, and skips only what it does not claim, or has not."""
    found = verdicts(PlainAgent)
    assert [name.removeprefix("test_") for name in rules_of()] == [v.rule for v in found]
    assert {} == {v.rule: v.words for v in found if v.outcome == "failed"}
    assert {
        "what_is_not_known_is_ignored": "the arena cannot put a line into what the agent's "
        "program prints",
        "servers_of_tools_are_started": "not claimed by the agent: MCP",
        "a_policy_is_held": "not claimed by the agent: a guard that judges calls",
        "a_program_that_is_killed": "it has no program but its tools",
    } == {v.rule: v.words for v in found if v.outcome == "skipped"}


def test_an_exemption_is_for_a_rule() -> None:
    """Who is exempt from a rule that there is not, is told so."""
    with pytest.raises(TypeError, match="Mine is exempt from what is no rule: test_text"):
        type("Mine", (AgentConformance,), {"exempt": {"test_text": "it says nothing"}})


def test_an_exempt_agent() -> None:
    """A rule from which an agent is exempt is skipped, with the reason."""

    class Arena(PlainArena):
        made = AsksSomebody

    class Lenient(AgentConformance):
        exempt = MappingProxyType({"test_nobody_is_asked": "it answers itself"})

    (found,) = [v for v in try_agent(Arena, Lenient) if v.rule == "nobody_is_asked"]
    assert Verdict(rule="nobody_is_asked", outcome="skipped", words="it answers itself") == found


@pytest.mark.parametrize("agent", BROKEN, ids=lambda agent: agent.__name__)
def test_a_broken_agent(agent: type[PlainAgent]) -> None:
    """A broken agent fails the rule that it breaks, which says so, and no other."""
    failed = [verdict for verdict in verdicts(agent) if verdict.outcome == "failed"]
    for process in LeavesItsTools.left:
        process.wait(10)
    assert [BROKEN[agent]] == [verdict.rule for verdict in failed]
    rule = getattr(AgentConformance, f"test_{BROKEN[agent]}")
    first, _, rest = failed[0].words.partition("\n")
    assert rule.__doc__ == first
    assert rest.strip()
