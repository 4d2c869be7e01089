"""Third-party agents: a class with `name` and `spawn` is enough."""

from __future__ import annotations

from pathlib import Path

import pytest
from reactivex import Observable, empty, throw

from cuggino.agents import (
    Capabilities,
    DelegatingAgent,
    InteractiveOptions,
    LlmAgent,
    SpawnOptions,
    adopt,
    is_guarded,
    make_agent,
)
from cuggino.errors import AgentFailed, GuardNotLive
from cuggino.events import LlmAgentEvent
from cuggino.guard.policy import Policy
from cuggino.testing import InMemoryAgent


class Least:
    """A minimal agent."""

    name = "least"

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        return empty()


class Guarded(Least):
    """A foreign agent with some optional members."""

    capabilities = Capabilities(guard="calls", sandbox=True)
    environments = ({"KEY": "value"},)
    own_files = (Path("/recording"),)

    def check(self) -> str:
        return "7.1"

    def check_guard(self, policy: Policy) -> None:
        raise GuardNotLive("not today")

    def interactive(self, options: InteractiveOptions) -> int:
        return 3


def test_defaults(tmp_path: Path) -> None:
    """Members that a foreign agent lacks have the defaults of `LlmAgent`."""
    agent = adopt(Least())
    assert ("least", "", Capabilities()) == (agent.name, agent.check(), agent.capabilities)
    assert ((), (), False) == (agent.environments, agent.own_files, agent.is_router)
    assert (agent,) == agent.agents_for("planning")
    assert not is_guarded(agent, "planning")
    assert "least has no sandbox" == agent.sandbox_unavailable()
    agent.check_roles(["planning"], guarded=True)
    agent.restore_cooldowns(())
    with pytest.raises(GuardNotLive, match="least has no guard"):
        agent.check_guard(Policy(project=str(tmp_path)))
    with pytest.raises(AgentFailed, match="least has no interactive session"):
        agent.interactive(InteractiveOptions(cwd=tmp_path))
    errors: list[Exception] = []
    agent.fall_back("planning", ValueError("lost")).subscribe(on_error=errors.append)
    assert ["lost"] == [str(error) for error in errors]


def test_own_members_win(tmp_path: Path) -> None:
    """A foreign agent's own members are used."""
    agent = adopt(Guarded())
    assert is_guarded(agent, "planning")
    assert ("7.1", "") == (agent.check(), agent.sandbox_unavailable())
    assert 3 == agent.interactive(InteractiveOptions(cwd=tmp_path))
    assert (({"KEY": "value"},), (Path("/recording"),)) == (agent.environments, agent.own_files)
    with pytest.raises(GuardNotLive, match="not today"):
        agent.check_guard(Policy(project=str(tmp_path)))


def test_an_agent_is_not_wrapped() -> None:
    """A subclass of `LlmAgent` is returned unchanged."""
    agent = InMemoryAgent({})
    assert adopt(agent) is agent


def test_by_import_path(tmp_path: Path) -> None:
    """The configuration accepts a minimal class."""
    assert "least" == make_agent(f"{__name__}:Least", cwd=tmp_path).name


def test_a_wrapper_delegates(tmp_path: Path) -> None:
    """A wrapper delegates everything that it does not override."""

    class Broken(DelegatingAgent):
        def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
            return throw(AgentFailed("broken", reason="crash"))

    inner: LlmAgent = adopt(Guarded())
    agent = Broken(inner)
    assert ("least", inner.capabilities) == (agent.name, agent.capabilities)
    assert (inner.environments, inner.own_files) == (agent.environments, agent.own_files)
    assert (False, (inner,)) == (agent.is_router, agent.agents_for("planning"))
    assert ("7.1", "") == (agent.check(), agent.sandbox_unavailable())
    assert 3 == agent.interactive(InteractiveOptions(cwd=tmp_path))
    agent.check_roles(["planning"], guarded=True)
    agent.restore_cooldowns(())
    with pytest.raises(GuardNotLive):
        agent.check_guard(Policy(project=str(tmp_path)))
    errors: list[Exception] = []
    agent.fall_back(None, ValueError("lost")).subscribe(on_error=errors.append)
    agent.spawn(SpawnOptions(prompt="Go.", cwd=tmp_path)).subscribe(on_error=errors.append)
    assert ["lost", "broken"] == [str(error) for error in errors]
