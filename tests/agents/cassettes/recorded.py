"""Helpers that record scripted agents and replay them in virtual time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cuggino.agents import SpawnOptions
from cuggino.agents.cassettes import record_to, replay_of
from cuggino.agents.cassettes.cassette import RecordedSession, read_cassette
from cuggino.errors import ReplayDiverged
from cuggino.events import AgentMessage, SessionEnded
from cuggino.testing import InMemoryAgent, Marbles
from cuggino.testing.marbles import Seen

HELLO = AgentMessage(text="hello", message_id="m1")
ENDED = SessionEnded(outcome="completed", cost_usd=0.5, session_id="s1")


def options(folder: Path, **given: Any) -> SpawnOptions:
    """Return options for a session in this folder, with default prompt, role and turn."""
    usual = {"prompt": "Go.", "role": "implementing", "turn": 1}
    return SpawnOptions(cwd=folder, **{**usual, **given})


def recorded(
    path: Path,
    folder: Path,
    t: Marbles,
    diagram: str,
    *,
    env: Mapping[str, str] | None = None,
    env_of: Mapping[str, str] | None = None,
    dispose_at: float | None = None,
    **given: Any,
) -> list[Seen]:
    """Record one scripted session and return its notifications.

    `env` is where secrets are looked up, `env_of` the environment of the session.
    """
    role = given.get("role", "implementing")
    agent = InMemoryAgent({role: [t.cold(diagram)]}, can_resume=True)
    stream = record_to(path, agent, env=env or {}).spawn(options(folder, env=env_of or {}, **given))
    return t.record(stream, dispose_at=dispose_at)


def played(
    path: Path, folder: Path, *, speed: float = 1, until: float = 1e6, **given: Any
) -> list[Seen]:
    """Replay the session with these options and return its notifications by virtual time."""
    agent = replay_of(path, speed=speed)
    return Marbles().record(agent.spawn(options(folder, **given)), until=until)


def sessions(path: Path) -> list[RecordedSession]:
    return read_cassette(path).sessions


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def kinds(path: Path) -> list[str]:
    return [line["kind"] for line in lines(path)]


def diverged(path: Path, folder: Path, **given: Any) -> str:
    """Return the message of the divergence that fails the session before its first event."""
    ((_, kind, error),) = played(path, folder, **given)
    assert "error" == kind
    assert isinstance(error, ReplayDiverged)
    assert error.hint
    assert 1 == error.code
    return str(error)


def later(t: Marbles, second: float, do: Callable[[], None]) -> None:
    """Schedule the action at that virtual second."""
    t.scheduler.schedule_absolute(second, lambda *_: do())
