"""`flow`: a loop written as a generator over streams (do-notation, as in Effect.gen)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SingleAssignmentDisposable

from cuggino.operators.scheduler import serial

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Stage(Generic[T]):
    """What a generator yields to run a stream; made by `forward` and `ask`."""

    stream: Observable[T]
    forwarded: bool
    name: str = "stage"


@dataclass(frozen=True, slots=True)
class Emit:
    """What a generator yields to send events; made by `emit`."""

    events: tuple[Any, ...]


Flow: TypeAlias = Generator[Stage[Any] | Emit, Any, R]
"""A generator that `flow` can run; `R` is what `yield from` gives to a caller."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The outcome of a stage that ended in an earlier process."""

    outcome: Any


class Recorder(Protocol):
    """Where a durable flow writes what happens, and finds what has happened.

    An exception of any of them ends the stream with it: what cannot be written down is not done.
    """

    def replay(self, name: str) -> Recorded | None:
        """The outcome of the next stage, if it has ended before; None when it is to be run.

        Raises when the stage that was recorded in its place has another name.
        """

    def started(self, name: str, *, at: datetime) -> None:
        """The stage is about to run."""

    def event(self, event: Any, *, staged: bool, at: datetime) -> bool:
        """The event is about to be sent, by the running stage or by the generator itself.

        False when it need not be: an earlier process has sent it.
        """

    def finished(self, outcome: Any, *, at: datetime) -> None:
        """The running stage has ended without an error, with this last event."""

    def failed(self, error: Exception) -> None:
        """The running stage has ended with an error, which is thrown into the generator."""


def forward(stream: Observable[T], *, name: str = "stage") -> Flow[T | None]:
    """Run the stream, send its events downstream; gives its last event (None if it had none).

    `name` is the stage's in the journal of a durable flow.
    """
    return cast("T | None", (yield Stage(stream, forwarded=True, name=name)))


def ask(stream: Observable[T], *, name: str = "stage") -> Flow[T | None]:
    """Run the stream and keep its events here; gives its last event (None if it had none)."""
    return cast("T | None", (yield Stage(stream, forwarded=False, name=name)))


def emit(*events: Any) -> Flow[None]:
    """Send the events downstream."""
    yield Emit(events)


def flow(make: Callable[[], Flow[Any]], *, recorder: Recorder | None = None) -> Observable[Any]:
    """A stream that is told by a generator: its stages run one after the other.

    ::

        def story():                            a:      -x-y|
            last = yield from forward(a)        b:           --z|
            yield from emit(last)               flow:   -x-y(y)--z|
            yield from forward(b)

    Events are forwarded in order, with no queue. A finished stage is released (its process
    reaped, its `finally_action` run) before the generator goes on. A stage's error is thrown into
    the generator at its `yield`, so `try`, `except`, `finally` and `with` work; one that is not
    caught ends the stream with that error. Disposal disposes the running stage first and then
    closes the generator, also when it arrives while the generator's body runs; a `finally` block
    can therefore not run another stream. The stack stays constant over any number of stages.

    A subscription makes a new generator. The scheduler given to `subscribe` is passed to every
    stage. It runs on one thread: put `on_loop` after it where stages use others.

    With a `recorder` the flow is durable: each stage's start and outcome and each event is given
    to it before anybody acts on it, and a stage whose outcome it knows is not run, but its
    outcome fed back at once. The generator must then be a pure function of its stages' outcomes:
    clocks, random values and file reads that steer it are stages too. A stage that failed has no
    outcome: it is where a resumed run goes on.
    A recorder serves one subscription.

    ::

        flow, killed in a:   -x-                    recorded: x
        flow, resumed:       -x-y(y)--z|            a runs again

        flow, killed in b:   -x-y(y)--              recorded: x y, the outcome of a, y
        flow, resumed:       --z|                   only b runs
    """

    def subscribe(
        observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        driver = _Driver(make(), observer, scheduler, recorder)
        driver.resume(None, None)
        return Disposable(driver.dispose)

    return Observable(subscribe)


class _Driver:
    """Drives one generator. A trampoline: whoever ends a stage only leaves a note for the loop."""

    def __init__(
        self,
        generator: Flow[Any],
        observer: abc.ObserverBase[Any],
        scheduler: abc.SchedulerBase | None,
        recorder: Recorder | None,
    ) -> None:
        self._generator = generator
        self._observer = observer
        self._scheduler = scheduler
        self._lane: abc.SchedulerBase | None = None
        """Whose time is written down; asked for at every event."""
        self._recorder = recorder
        self._stage: SingleAssignmentDisposable | None = None
        self._note: tuple[Any, Exception | None] | None = None
        self._driving = False
        self._disposed = False

    def resume(self, value: Any, error: Exception | None) -> None:
        self._note = (value, error)
        if self._driving:
            return
        self._driving = True
        try:
            while self._note is not None and not self._disposed:
                (value, error), self._note = self._note, None
                step = self._step(value, error)
                if self._disposed:  # while the generator's body ran, or by its end
                    return
                match step:
                    case Emit(events):
                        self._note = (None, None)
                        for event in events:
                            self._send(event, staged=False)
                    case Stage():
                        self._begin(step)
                    case None:
                        return
        finally:
            self._driving = False
            if self._disposed:
                self._generator.close()

    def _step(self, value: Any, error: Exception | None) -> Stage[Any] | Emit | None:
        """Let the generator run up to its next yield; None when it has ended."""
        try:
            if error is not None:
                return self._generator.throw(error)
            return self._generator.send(value)
        except StopIteration:
            if not self._disposed:
                self._disposed = True
                self._observer.on_completed()
        except Exception as failure:
            if self._disposed:
                raise
            self._disposed = True
            self._observer.on_error(failure)
        return None

    def _begin(self, step: Stage[Any]) -> None:
        """Run the stage, or feed back what is recorded of it."""
        if self._recorder is not None:
            try:
                recorded = self._recorder.replay(step.name)
                if recorded is not None:
                    self._note = (recorded.outcome, None)
                    return
                self._recorder.started(step.name, at=self._now())
            except Exception as error:
                self._fail(error)
                return
        self._run(step.stream, forwarded=step.forwarded)

    def _run(self, stream: Observable[Any], *, forwarded: bool) -> None:
        stage = self._stage = SingleAssignmentDisposable()
        last: Any = None

        def on_next(value: Any) -> None:
            nonlocal last
            last = value
            if forwarded and self._stage is stage:
                self._send(value, staged=True)

        def ended(error: Exception | None) -> None:
            if self._stage is stage:
                self._stage = None
                stage.dispose()
                if self._recorded(last, error):
                    self.resume(last, error)

        stage.disposable = stream.subscribe(
            on_next, ended, lambda: ended(None), scheduler=self._scheduler
        )

    def _recorded(self, outcome: Any, error: Exception | None) -> bool:
        """Note how the stage ended; False when that could not be written down."""
        if self._recorder is None:
            return True
        try:
            if error is not None:
                self._recorder.failed(error)
            else:
                self._recorder.finished(outcome, at=self._now())
        except Exception as failure:
            self._fail(failure)
            return False
        return True

    def _send(self, event: Any, *, staged: bool) -> None:
        if self._disposed:
            return
        try:
            if self._recorder is None or self._recorder.event(event, staged=staged, at=self._now()):
                self._observer.on_next(event)
        except Exception as error:  # the subscriber's failure is no stage's failure
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.dispose()
        self._observer.on_error(error)

    def _now(self) -> datetime:
        if self._lane is None:
            self._lane = serial(self._scheduler)
        return self._lane.now

    def dispose(self) -> None:
        self._disposed = True
        stage, self._stage = self._stage, None
        if stage is not None:
            stage.dispose()
        if not self._driving:
            self._generator.close()
