"""A recorded run as a test."""

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
    """Play a cassette through a loop in the project at `cwd`; gives all events.

    `start` begins the loop: `lambda runtime: runtime.run(focus="...")`. The project must be as it
    was when the recording began. The sessions come without pauses; the loop's own commands and
    waits take their time.

    Raises:
        ReplayDiverged: a prompt, a policy or the course of the run is not that of the recording.
        CassetteError: the cassette is missing, broken, or of a newer version.
        AssertionError: the run has ended before all recorded sessions were played.
    """
    agent = replay_of(cassette)
    runtime = Runtime.live(cwd=cwd, config=config, agent=agent)
    events: list[T] = []
    run(start(runtime), events.append)
    assert not agent.unplayed, f"the recording has more: {', '.join(agent.unplayed)}"
    return events
