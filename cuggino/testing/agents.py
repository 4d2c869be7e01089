"""An agent without a process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from reactivex import Observable, abc

from cuggino.agents.base import Capabilities, InteractiveOptions, LlmAgent, Role, SpawnOptions
from cuggino.agents.scripted import ScriptedAgent
from cuggino.errors import AgentFailed
from cuggino.events import LlmAgentEvent
from cuggino.testing.acts import Item, session_of

__all__ = ["AgentRun", "InMemoryAgent", "Played", "ScriptedAgent"]


@dataclass(frozen=True, slots=True)
class AgentRun:
    """One session of an `InMemoryAgent`: its stream and the files it writes."""

    stream: Observable[Any] | Iterable[Any]
    """A stream, such as a cold one of `Marbles`, or a list of `Item`s."""
    plan: str | None = None
    """Written to the plan file before the first event."""
    review: str | None = None
    """Written to the review file before the first event."""


Played: TypeAlias = AgentRun | Observable[Any] | Iterable[Item]
"""One session: a list of items, a drawn stream, or either with files."""


@dataclass(slots=True)
class InMemoryAgent(LlmAgent):
    """An agent without a process: each spawned session plays the next run of its role.

    ::

        agent = InMemoryAgent(
            {
                "planning": [
                    AgentRun([Say("<PLAN_COMPLETE>One task.</PLAN_COMPLETE>")], plan="# Plan")
                ],
                "implementing": [
                    [Say("I begin."), QuotaExceeded("limit", resets_at=clock.at("5h"))],
                    [Write("page.html", "<h1>"), Wait("20m"), Say("<DONE>The page</DONE>")],
                ],
                "reviewing": [[Say("<APPROVED>Fine.</APPROVED>")]],
            }
        )

    `spawned` records the options of every session. When all sessions of a role have been played,
    the next one fails with `AgentFailed`, which reports how many there were.
    """

    runs: Mapping[Role, Iterable[Played]]
    name: str = "memory"
    can_resume: bool = False
    spawned: list[SpawnOptions] = field(default_factory=list)
    _queues: dict[str, Iterator[Played]] = field(default_factory=dict)

    @property
    def capabilities(self) -> Capabilities:
        """Return what its events can report; resuming, if it was constructed so."""
        return Capabilities(resume=self.can_resume, cost="dollars")

    def check(self) -> str:
        """Succeed: the agent is always installed."""
        return "in memory"

    def sessions(self, role: Role) -> list[SpawnOptions]:
        """Return the options of the role's sessions, in order."""
        return [options for options in self.spawned if options.role == role]

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Play the next run of the role. Cold: the run is taken at subscription."""

        def subscribe(
            observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            self.spawned.append(options)
            role = options.role or "planning"
            queue = self._queues.setdefault(role, iter(self.runs.get(role, ())))
            run = next(queue, None)
            if run is None:
                run = AgentRun([self._one_too_many(role)])
            elif not isinstance(run, AgentRun):
                run = AgentRun(run)
            for text, variable in (
                (run.plan, "CUGGINO_PLAN_FILE"),
                (run.review, "CUGGINO_REVIEW_FILE"),
            ):
                if text is not None:
                    Path(options.env[variable]).write_text(text, encoding="utf-8")
            stream = run.stream
            if not isinstance(stream, Observable):
                stream = session_of(stream, options)
            return stream.subscribe(observer, scheduler=scheduler)

        return Observable(subscribe)

    def _one_too_many(self, role: Role) -> AgentFailed:
        number = len(self.sessions(role)) or len(self.spawned)
        return AgentFailed(
            f"the agent in memory has no session {number} of the role {role}: all are played",
            reason="bad_request",
        )

    def interactive(self, options: InteractiveOptions) -> int:
        """Return at once; there is nothing to talk to."""
        return 0
