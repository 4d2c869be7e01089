"""An agent without a process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reactivex import Observable, abc, from_iterable

from cuggino.agents.protocol import Capabilities, InteractiveOptions, Role, SpawnOptions
from cuggino.events import LlmAgentEvent


@dataclass(frozen=True, slots=True)
class AgentRun:
    """One session of an `InMemoryAgent`: what it says, and the files it leaves."""

    stream: Observable[Any] | Iterable[Any]
    """Its events: a stream (such as a cold one of `Marbles`), or the events at once."""
    plan: str | None = None
    """Written to the plan file before the first event."""
    review: str | None = None
    """Written to the review file before the first event."""


@dataclass(slots=True)
class InMemoryAgent:
    """An agent that is not there: each spawned session takes the next `AgentRun` of its role.

    `spawned` keeps what every session was started with. A role without a further run gives a
    session that says nothing.
    """

    runs: Mapping[Role, Iterable[AgentRun | Observable[Any]]]
    name: str = "memory"
    can_resume: bool = False
    spawned: list[SpawnOptions] = field(default_factory=list)
    _queues: dict[str, Iterator[AgentRun | Observable[Any]]] = field(default_factory=dict)

    @property
    def capabilities(self) -> Capabilities:
        """Nothing but what its streams hold, and to be gone on with if it is said to be so."""
        return Capabilities(resume=self.can_resume)

    def check(self) -> str:
        """Always there."""
        return "in memory"

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Play the next run of the role. Cold: the run is taken at subscription."""

        def subscribe(
            observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            self.spawned.append(options)
            role = options.role or "planning"
            queue = self._queues.setdefault(role, iter(self.runs.get(role, ())))
            run = next(queue, AgentRun(()))
            if isinstance(run, Observable):
                run = AgentRun(run)
            for text, variable in (
                (run.plan, "CUGGINO_PLAN_FILE"),
                (run.review, "CUGGINO_REVIEW_FILE"),
            ):
                if text is not None:
                    Path(options.env[variable]).write_text(text, encoding="utf-8")
            stream = run.stream if isinstance(run.stream, Observable) else from_iterable(run.stream)
            return stream.subscribe(observer, scheduler=scheduler)

        return Observable(subscribe)

    def interactive(self, options: InteractiveOptions) -> int:
        """Nothing to talk to: ends at once."""
        return 0
