"""Recording routed agents: fallbacks are replayed as they happened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reactivex import from_iterable

import cuggino
from cuggino.agents import Candidate, LlmAgent, RoutedAgent, is_guarded
from cuggino.agents.cassettes import record_to, replay_of
from cuggino.agents.cassettes.cassette import FellBack
from cuggino.agents.scripted import ScriptedAgent
from cuggino.errors import AgentFailed
from cuggino.events import AgentFellBack, AgentMessage, Event, SessionEnded
from cuggino.testing import AgentRun, InMemoryAgent
from tests.agents.cassettes.recorded import kinds, options, sessions

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def failing(error: Exception) -> AgentRun:
    def events() -> Iterator[Event]:
        yield SessionEnded(outcome="failed")
        raise error

    return AgentRun(from_iterable(events()))


def routed(error: Exception) -> RoutedAgent:
    """Return a failing agent with a fallback."""
    one = InMemoryAgent({"implementing": [failing(error)]}, name="one")
    said = [AgentMessage(text="I do it."), SessionEnded(outcome="completed")]
    two = InMemoryAgent({"implementing": [AgentRun(said)]}, name="two")
    return RoutedAgent([Candidate(agent=each, name=each.name) for each in (one, two)])


def events_of(stream: Any) -> list[Event]:
    events: list[Event] = []
    cuggino.run(stream, events.append)
    return events


def test_a_fallback_within_a_session(tmp_path: Path) -> None:
    """A session with a fallback is recorded and replayed as one session."""
    agent = record_to(tmp_path / "c", routed(AgentFailed("no", reason="auth")), env={})
    recorded = events_of(agent.spawn(options(tmp_path)))
    played = events_of(replay_of(tmp_path / "c").spawn(options(tmp_path)))
    assert recorded == played
    assert ["SessionEnded", "AgentFellBack", "AgentMessage", "SessionEnded"] == [
        event.tag for event in played
    ]
    assert 1 == kinds(tmp_path / "c").count("session")


def fallen_back(agent: LlmAgent, folder: Path, error: Exception) -> AgentFellBack:
    """Run a failing session and its fallback, and return the recorded switch."""
    assert agent.is_router
    with pytest.raises(AgentFailed):
        events_of(agent.spawn(options(folder)))
    (event,) = events_of(agent.fall_back("implementing", error))
    assert isinstance(event, AgentFellBack)
    assert AgentMessage(text="I do it.") == events_of(agent.spawn(options(folder)))[0]
    return event


def test_a_fallback_after_retries(tmp_path: Path) -> None:
    """A fallback after failed retries happens in the replay too."""
    error = AgentFailed("no", reason="overloaded")
    agent = record_to(tmp_path / "c", routed(error), env={})
    recorded = fallen_back(agent, tmp_path, error)
    assert ("one", "two") == (recorded.from_agent, recorded.to_agent)
    assert recorded == fallen_back(replay_of(tmp_path / "c"), tmp_path, error)
    first, second = sessions(tmp_path / "c")
    assert isinstance(first.fell_back, FellBack)
    assert second.fell_back is None


def test_no_fallback(tmp_path: Path) -> None:
    """Without a fallback the replay fails with the recorded error."""
    error = AgentFailed("no", reason="overloaded")
    alone = RoutedAgent(
        [Candidate(agent=InMemoryAgent({"implementing": [AgentRun(())]}), name="one")]
    )
    events_of(record_to(tmp_path / "c", alone, env={}).spawn(options(tmp_path)))
    replay = replay_of(tmp_path / "c")
    events_of(replay.spawn(options(tmp_path)))
    with pytest.raises(AgentFailed, match="no"):
        events_of(replay.fall_back("implementing", error))
    with pytest.raises(AgentFailed, match="no"):
        events_of(replay.fall_back("planning", error))


def test_capabilities_per_role(tmp_path: Path) -> None:
    """A recording keeps the guard and sandbox support of each role's agents."""
    scripted = ScriptedAgent(Path(__file__).parents[3] / "examples" / "one_agent.toml")
    usual = [Candidate(agent=InMemoryAgent({"implementing": [AgentRun(())]}), name="one")]
    router = RoutedAgent(usual, {"reviewing": [Candidate(agent=scripted, name="scripted")]})
    agent = record_to(tmp_path / "c", router, env={})
    assert not is_guarded(agent, "implementing")
    assert is_guarded(agent, "reviewing")
    events_of(agent.spawn(options(tmp_path)))
    with pytest.raises(AgentFailed):
        events_of(agent.spawn(options(tmp_path, role="reviewing")))
    assert ["none", "calls"] == [session.began.held for session in sessions(tmp_path / "c")]
    assert replay_of(tmp_path / "c").capabilities.guard != "none"
