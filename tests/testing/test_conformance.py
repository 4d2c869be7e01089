"""The conformance suites: a good agent passes every rule, each broken one fails the right ones."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path
from types import MappingProxyType

import psutil
import pytest
import reactivex as rx

from cuggino.testing import (
    AgentConformance,
    FailureConformance,
    GuardConformance,
    Verdict,
    rules_of,
    try_agent,
)
from cuggino.testing.conformance import SUITES, arena
from cuggino.testing.conformance.arena import Running
from cuggino.testing.conformance.rules import Rules
from tests.limits import LIMIT
from tests.testing.broken_agents import BROKEN, AsksSomebody, LeavesItsTools
from tests.testing.plain_agent import GuardedPlainAgent, GuardedPlainArena, PlainAgent, PlainArena


class TestPlain(AgentConformance):
    """A good in-process agent, run by pytest."""

    @pytest.fixture
    def arena(self, tmp_path: Path) -> PlainArena:
        """Return an arena for one rule."""
        return PlainArena(tmp_path)


def verdicts(
    agent: type[PlainAgent], suite: type[Rules], *, patience: float = GuardedPlainArena.patience
) -> tuple[Verdict, ...]:
    given = patience

    class Arena(GuardedPlainArena):
        made = agent
        patience = given

    return try_agent(Arena, suite)


def only(suite: type[Rules], rules: Collection[str]) -> type[Rules]:
    """Return the suite with an exemption from all rules but these."""
    names = {name.removeprefix("test_"): name for name in rules_of(suite)}
    others = {name: "not tried" for rule, name in names.items() if rule not in rules}
    return type(suite.__name__, (suite,), {"exempt": {**suite.exempt, **others}})


NO_SUB_AGENTS = "it has no sub-agents and no servers of tools"
SKIPPED: dict[type[Rules], dict[str, str]] = {
    AgentConformance: {
        "unknown_output": "the arena cannot add a line to the output of the agent's program",
        "mcp_server": "not claimed by the agent: MCP",
        "mcp_tool": "not claimed by the agent: MCP",
        "sub_agent": NO_SUB_AGENTS,
    },
    FailureConformance: {"killed_program": "it has no program but its tools"},
    GuardConformance: {
        "sub_agent": NO_SUB_AGENTS,
        "mcp_tool": "not claimed by the agent: MCP",
        "rewriting_hook": "users cannot add hooks to the program",
    },
}


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.__name__)
def test_good_agent(suite: type[Rules]) -> None:
    """A good agent fails no rule and skips only unclaimed or missing features."""
    found = verdicts(GuardedPlainAgent, suite)
    assert [name.removeprefix("test_") for name in rules_of(suite)] == [v.rule for v in found]
    assert {} == {v.rule: v.message for v in found if v.outcome == "failed"}
    assert SKIPPED[suite] == {v.rule: v.message for v in found if v.outcome == "skipped"}


def test_agent_without_a_guard() -> None:
    """Every rule for guards is skipped for an agent that does not claim one."""
    found = verdicts(PlainAgent, GuardConformance)
    assert {"skipped"} == {verdict.outcome for verdict in found}


def test_exemption_from_an_unknown_rule() -> None:
    """An exemption from an unknown rule is an error."""
    with pytest.raises(TypeError, match=r"Mine.exempt names no rule: test_words"):
        type("Mine", (AgentConformance,), {"exempt": {"test_words": "it is silent"}})


def test_exemption() -> None:
    """A rule from which an agent is exempt is skipped with the reason."""

    class Lenient(AgentConformance):
        exempt = MappingProxyType({"test_asks_nobody": "it answers itself"})

    (found,) = [v for v in verdicts(AsksSomebody, Lenient) if v.rule == "asks_nobody"]
    assert Verdict(rule="asks_nobody", outcome="skipped", message="it answers itself") == found


@pytest.mark.parametrize(
    "all_rules", [False, pytest.param(True, marks=pytest.mark.real_agent)], ids=["its own", "all"]
)
@pytest.mark.parametrize("agent", BROKEN, ids=lambda agent: agent.__name__)
def test_broken_agent(agent: type[PlainAgent], all_rules: bool) -> None:
    """A broken agent fails the rules that it breaks, with their docstrings, and no other.

    The second command tries all rules, half a minute of them.
    """
    suite, broken = BROKEN[agent]
    tried = suite if all_rules else only(suite, broken)
    # Rules that it breaks may wait for all of it; those that it keeps need it on a busy machine.
    patience = 30.0 if all_rules else 1.0
    found = verdicts(agent, tried, patience=patience)
    failed = [verdict for verdict in found if verdict.outcome == "failed"]
    for process in LeavesItsTools.left:
        process.wait(LIMIT)
    LeavesItsTools.left.clear()
    assert sorted(broken) == sorted(verdict.rule for verdict in failed)
    for verdict in failed:
        first, _, rest = verdict.message.partition("\n")
        assert getattr(suite, f"test_{verdict.rule}").__doc__ == first
        assert rest.strip()


def test_process_ends_as_the_session_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ends while a session looks for processes left does not count."""
    program = psutil.Popen([sys.executable, "-c", ""])
    ending = iter([{}, {program.pid: program}])
    monkeypatch.setattr(arena, "child_processes", lambda: next(ending))
    program.wait(LIMIT)
    running = Running(
        rx.empty(), folder=tmp_path, requests=list, usage=lambda: None, patience=LIMIT
    )
    with running:
        assert () == running.outcome().left
