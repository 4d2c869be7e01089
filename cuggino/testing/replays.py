"""Recorded runs as tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from reactivex import Observable

from cuggino.agents.cassettes import replay_of
from cuggino.config import Config
from cuggino.edges import run
from cuggino.runtime import Runtime

T = TypeVar("T")


def replay(
    cassette: str | os.PathLike[str],
    start: Callable[[Runtime], Observable[T]],
    *,
    cwd: str | os.PathLike[str],
    config: Config | None = None,
) -> list[T]:
    """Play a cassette through a loop in the project at `cwd` and return all events.

    `start` begins the loop: `lambda runtime: runtime.run(focus="...")`. The project must be in the
    state in which the recording began. Sessions are played without pauses; the loop's own commands
    and waits take their usual time.

    Raises:
        ReplayDiverged: a prompt, a policy or the order of the sessions differs from the recording.
        CassetteError: the cassette is missing, broken, or of a newer version.
        AssertionError: the run ended before all recorded sessions were played.
    """
    agent = replay_of(cassette)
    runtime = Runtime.live(cwd=cwd, config=config, agent=agent)
    events: list[T] = []
    run(start(runtime), events.append)
    assert not agent.unplayed, f"the recording has more: {', '.join(agent.unplayed)}"
    return events
