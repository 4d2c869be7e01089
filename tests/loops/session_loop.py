"""What the scripted loops of sessions share: deliver and plan/build, in virtual time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from reactivex import Observable, abc, concat, defer, from_iterable, throw
from reactivex.subject import ReplaySubject

from cuggino.agents.base import Capabilities, LlmAgent, SpawnOptions
from cuggino.events import Event, LlmAgentEvent, SessionEnded
from cuggino.operators.mapcat import mapcat
from cuggino.storage import Workspace
from cuggino.testing import Marbles, Story

DONE = SessionEnded(outcome="completed", cost_usd=0.01)
E = TypeVar("E")


@dataclass
class TurnAgent(LlmAgent, ABC):
    """An agent that plays a turn per session and records its options."""

    name: str = field(default="memory", kw_only=True)
    can_resume: bool = field(default=False, kw_only=True)
    spawned: list[SpawnOptions] = field(default_factory=list, kw_only=True)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(resume=self.can_resume)

    def check(self) -> str:
        return "in memory"

    @abstractmethod
    def turn(self, options: SpawnOptions) -> Any:
        """Return the turn of the session: its events and error, or its stream."""

    @abstractmethod
    def begin(self, turn: Any, options: SpawnOptions) -> None:
        """Do what the turn does before its first event."""

    @abstractmethod
    def do(self, item: Any) -> list[Event]:
        """Return the event, or nothing for a side effect that is done."""

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        def start(_scheduler: abc.SchedulerBase | None) -> Observable[Any]:
            turn = self.turn(options)
            self.spawned.append(options)
            self.begin(turn, options)
            stream: Observable[Any] = turn.stream or from_iterable(turn.events)
            if turn.stream is None and turn.error is not None:
                stream = concat(stream, throw(turn.error))
            return stream.pipe(mapcat(self.do))

        return defer(start)


class SessionLoop:
    """A project in which a loop of sessions is run."""

    folder: Path
    marbles: Marbles
    workspace: Workspace
    agent: Any
    service: Any
    story: ClassVar[type[SessionStory]]
    _states: Iterator[str]

    def options(self, **given: Any) -> Any:
        """Return the options of a run."""
        raise NotImplementedError

    def replace(self, **services: Any) -> None:
        """Replace services of the loop."""
        self.service = type(self.service)(replace(self.service.services, **services))

    def fingerprint(self, *_args: object, **_options: object) -> Observable[str]:
        """Return the next state of the project."""
        return defer(lambda _scheduler: from_iterable([next(self._states)]))

    def stream(self, *, interrupt: Observable[object] | None = None, **given: Any) -> Any:
        return self.service.run(self.options(**given), interrupt=interrupt)

    def run(
        self,
        *,
        interrupt: Observable[object] | None = None,
        dispose_at: float | None = None,
        **given: Any,
    ) -> Any:
        stream = self.stream(interrupt=interrupt, **given)
        return self.story(self.marbles.record(stream, dispose_at=dispose_at))

    def assert_released(self) -> None:
        """Assert that no timer is left, no file of the run, and another run could begin."""
        assert 0 == pending(self.marbles)
        assert [] == list(self.workspace.wip.iterdir())
        with Workspace(self.folder).lock():
            pass


class SessionStory(Story[Any]):
    """The events of a run of sessions."""

    end: ClassVar[type[Any]]
    session: ClassVar[type[Any]]
    warning: ClassVar[type[Any]]

    @property
    def ended(self) -> Any:
        """The result, which is the last event."""
        assert self.of(self.end) == self.events[-1:]
        return self.last

    @property
    def outcomes(self) -> list[str]:
        """The outcomes of the sessions that work, not of those that judge."""
        return [event.outcome for event in self.of(self.session)]

    @property
    def warnings(self) -> list[str]:
        return [event.message for event in self.of(self.warning)]

    def timed(self, kind: type[E]) -> list[tuple[float, E]]:
        """Return the events of a class, and when they came."""
        return [(when, event) for when, event in self.timeline if isinstance(event, kind)]


def pending(marbles: Marbles) -> int:
    """Timers that would still go off."""
    return sum(1 for item, _ in marbles.scheduler._queue.items if not item.is_cancelled())


def replayed(t: Marbles, at: float) -> ReplaySubject[object]:
    """Return a subject that emits a stop to present and later subscribers."""
    subject: ReplaySubject[object] = ReplaySubject()
    t.scheduler.schedule_absolute(at, lambda *_: subject.on_next("stop"))
    return subject
