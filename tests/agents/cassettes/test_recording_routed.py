"""Several agents in one recording: who took over from whom is played as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reactivex import from_iterable

import cuggino
from cuggino.agents import Candidate, GuardedAgent, LlmAgent, RoutedAgent, is_guarded
from cuggino.agents.cassettes import record_to, replay_of
from cuggino.agents.cassettes.cassette import GaveWay
from cuggino.agents.protocol import RoutingAgent
from cuggino.errors import AgentFailed
from cuggino.events import AgentFellBack, AgentMessage, Event, SessionEnded
from cuggino.testing import AgentRun, InMemoryAgent, no_leaks
from tests.agents.cassettes.recorded import kinds, options, sessions


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Every test ends without a process, thread or file of its own."""
    with no_leaks():
        yield


def failing(error: Exception) -> AgentRun:
    def events() -> Iterator[Event]:
        yield SessionEnded(outcome="failed")
        raise error

    return AgentRun(from_iterable(events()))


def routed(error: Exception) -> RoutedAgent:
    """An agent that fails, and another one that takes over."""
    one = InMemoryAgent({"implementing": [failing(error)]}, name="one")
    said = [AgentMessage(text="I do it."), SessionEnded(outcome="completed")]
    two = InMemoryAgent({"implementing": [AgentRun(said)]}, name="two")
    return RoutedAgent([Candidate(agent=each, name=each.name) for each in (one, two)])


def told(stream: Any) -> list[Event]:
    events: list[Event] = []
    cuggino.run(stream, events.append)
    return events


def test_who_takes_over_in_a_session(tmp_path: Path) -> None:
    """A session in which another agent takes over is one session, and is played as such."""
    agent = record_to(tmp_path / "c", routed(AgentFailed("no", reason="auth")), env={})
    recorded = told(agent.spawn(options(tmp_path)))
    played = told(replay_of(tmp_path / "c").spawn(options(tmp_path)))
    assert recorded == played
    assert ["SessionEnded", "AgentFellBack", "AgentMessage", "SessionEnded"] == [
        event.tag for event in played
    ]
    assert 1 == kinds(tmp_path / "c").count("session")


def fallen_back(agent: LlmAgent, folder: Path, error: Exception) -> AgentFellBack:
    """Who takes over behind a session that fails, and then does the work."""
    assert isinstance(agent, RoutingAgent)
    with pytest.raises(AgentFailed):
        told(agent.spawn(options(folder)))
    (event,) = told(agent.give_way("implementing", error))
    assert isinstance(event, AgentFellBack)
    assert AgentMessage(text="I do it.") == told(agent.spawn(options(folder)))[0]
    return event


def test_who_takes_over_behind_a_session(tmp_path: Path) -> None:
    """Where retries were of no use and another agent took over, it does so in the replay."""
    error = AgentFailed("no", reason="overloaded")
    agent = record_to(tmp_path / "c", routed(error), env={})
    recorded = fallen_back(agent, tmp_path, error)
    assert ("one", "two") == (recorded.from_agent, recorded.to_agent)
    assert recorded == fallen_back(replay_of(tmp_path / "c"), tmp_path, error)
    first, second = sessions(tmp_path / "c")
    assert isinstance(first.gave_way, GaveWay)
    assert second.gave_way is None


def test_nobody_takes_over(tmp_path: Path) -> None:
    """Where nobody took over, the error is what is left."""
    error = AgentFailed("no", reason="overloaded")
    alone = RoutedAgent(
        [Candidate(agent=InMemoryAgent({"implementing": [AgentRun(())]}), name="one")]
    )
    told(record_to(tmp_path / "c", alone, env={}).spawn(options(tmp_path)))
    replay = replay_of(tmp_path / "c")
    told(replay.spawn(options(tmp_path)))
    with pytest.raises(AgentFailed, match="no"):
        told(replay.give_way("implementing", error))
    with pytest.raises(AgentFailed, match="no"):
        told(replay.give_way("planning", error))


def test_each_role_is_held_as_its_own_agents_are(tmp_path: Path) -> None:
    """What the recorded agents of a role can be held to is known of the recording."""
    scripted = cuggino.ScriptedAgent(Path(__file__).parents[3] / "examples" / "one_agent.toml")
    usual = [Candidate(agent=InMemoryAgent({"implementing": [AgentRun(())]}), name="one")]
    router = RoutedAgent(usual, {"reviewing": [Candidate(agent=scripted, name="scripted")]})
    agent = record_to(tmp_path / "c", router, env={})
    assert not is_guarded(agent, "implementing")
    assert is_guarded(agent, "reviewing")
    told(agent.spawn(options(tmp_path)))
    with pytest.raises(AgentFailed):
        told(agent.spawn(options(tmp_path, role="reviewing")))
    assert ["none", "calls"] == [session.began.held for session in sessions(tmp_path / "c")]
    assert isinstance(replay_of(tmp_path / "c"), GuardedAgent)
