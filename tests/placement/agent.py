"""An agent of workers in this process: it plays sessions by item and role, and records them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from reactivex import Observable

from cuggino.agents.base import SpawnOptions
from cuggino.domain import item_name
from cuggino.events import LlmAgentEvent
from cuggino.storage import Workspace, attempt_of
from cuggino.testing import InMemoryAgent, Item, Say, Use, Write
from cuggino.testing.acts import session_of

Play = Callable[[SpawnOptions], Sequence[Item] | Observable[Any]]


class Session(NamedTuple):
    """A session that an agent has begun."""

    item: str
    role: str
    cwd: Path
    prompt: str


SESSIONS: list[Session] = []
"""All sessions of a test, in order."""
PLAYS: dict[tuple[str, str], list[Play]] = {}
"""The next sessions by item and role; then those of every item."""


def agent_reset() -> None:
    """Forget what an earlier test has played."""
    SESSIONS.clear()
    PLAYS.clear()


def sessions(item: str) -> list[str]:
    """Return the roles of the sessions of an item, in order."""
    return [session.role for session in SESSIONS if session.item == item]


class ItemAgent(InMemoryAgent):
    """Plans, writes a file named after its item, and approves; the run itself is the item ""."""

    def __init__(self) -> None:
        super().__init__({})

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        at_work = attempt_of(Workspace(options.cwd)).readable()
        item = item_name(at_work.item).removesuffix(".md") if at_work is not None else ""
        role = options.role or ""
        SESSIONS.append(Session(item, role, options.cwd, options.prompt))
        plays = PLAYS.get((item, role))
        play = plays.pop(0) if plays else usual(item)
        played = play(options)
        return played if isinstance(played, Observable) else session_of(played, options)


def usual(item: str) -> Play:
    """Return an agent's default plays for an item."""

    def play(options: SpawnOptions) -> Sequence[Item]:
        match options.role:
            case "planning":
                plan = "# Plan\n\n- [ ] Write it\n"
                return [
                    Write("$CUGGINO_PLAN_FILE", plan),
                    Say("<PLAN_COMPLETE>One task.</PLAN_COMPLETE>"),
                ]
            case "implementing":
                return [Write(f"{item}.txt", f"{item}\n"), Say(f"<DONE>Do {item}</DONE>")]
            case _:
                return [Use("Read"), Say("<APPROVED>As specified.</APPROVED>")]

    return play
