"""`flow`: a loop written as a generator over streams (do-notation, as in Effect.gen)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from reactivex import Observable, Observer, abc, defer, timer

from cuggino.domain import Duration, parse_duration
from cuggino.operators.managed import Held, released
from cuggino.operators.mistakes import not_a_stage, not_a_story, require_story, require_stream
from cuggino.operators.scheduler import serial, turns_of

T = TypeVar("T")
R = TypeVar("R")

_STEPS = 64
"""Steps of a generator in one turn of the scheduler, which may have to dispose the flow."""


class Stage(Generic[T]):
    """A stream to run, yielded by `forward` and `ask`."""

    __slots__ = ("forwarded", "name", "stream")

    def __init__(self, stream: Observable[T], *, forwarded: bool, name: str) -> None:
        self.stream = stream
        self.forwarded = forwarded
        self.name = name


class Emit:
    """Events to emit, yielded by `emit`."""

    __slots__ = ("events",)

    def __init__(self, events: tuple[Any, ...]) -> None:
        self.events = events


Flow: TypeAlias = Generator[Stage[Any] | Emit, Any, R]
"""A generator that `flow` can run; `R` is the value of `yield from`."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The outcome of a stage that ended in an earlier process."""

    outcome: Any


class Recorder(Protocol):
    """The journal of a durable flow: written as it runs, replayed when it is resumed.

    An exception of any method is the stream's error: nothing happens that cannot be recorded.
    """

    def replay(self, name: str) -> Recorded | None:
        """Return the recorded outcome of the next stage; None when it must run.

        Raises when the recorded stage has another name.
        """

    def started(self, name: str, *, at: datetime) -> None:
        """Record that the stage is about to run."""

    def event(self, event: Any, *, staged: bool, at: datetime) -> bool:
        """Record an event about to be emitted, by the running stage or the generator itself.

        Returns False when an earlier process has emitted it.
        """

    def finished(self, outcome: Any, *, at: datetime) -> None:
        """Record that the running stage has completed with this last event."""

    def failed(self, error: Exception) -> None:
        """Record that the running stage has failed; the error is thrown into the generator."""


def forward(stream: Observable[T], *, name: str = "stage") -> Flow[T | None]:
    """Run the stream and emit its events; return its last one, or None without any.

    `name` is the stage's name in the journal of a durable flow.
    """
    require_stream(stream, "forward")
    last: T | None = yield Stage(stream, forwarded=True, name=name)
    return last


def ask(stream: Observable[T], *, name: str = "stage") -> Flow[T | None]:
    """Run the stream without emitting its events; return its last one, or None without any."""
    require_stream(stream, "ask")
    last: T | None = yield Stage(stream, forwarded=False, name=name)
    return last


def pause(duration: Duration, *, name: str = "pause") -> Flow[None]:
    """Wait on the scheduler of the flow."""
    seconds = parse_duration(duration)
    yield from ask(defer(lambda scheduler: timer(seconds, scheduler=serial(scheduler))), name=name)


def emit(*events: Any) -> Flow[None]:
    """Emit the events."""
    yield Emit(events)


def flow(make: Callable[[], Flow[Any]], *, recorder: Recorder | None = None) -> Observable[Any]:
    """Run a generator whose stages are streams, one after the other.

    ::

        def story():
            last = yield from forward(a)
            yield from emit(last)
            yield from forward(b)

        a:          -x-y|
        b:              --z|
        flow:       -x-y(y)-z|

    Events are emitted in order, without a queue. A finished stage is released (its process reaped,
    its `finally_action` run) before the generator continues. A stage's error is thrown into the
    generator at its `yield`, so `try`, `except`, `finally` and `with` work; an uncaught one is the
    stream's error. Disposal disposes the running stage and then closes the generator, even while
    the generator's body runs; a `finally` block can therefore not run another stream. The stack
    stays constant over any number of stages, and an endless generator that never waits can be
    disposed: after every few dozen steps it continues in another turn of the scheduler.

    (RxPY's `expand` exhausts the stack, and `concat` begins a stage before the one before it is
    released.)

    Each subscription makes a new generator. The scheduler given to `subscribe` is passed to every
    stage. A flow runs on one thread: put `on_loop` after it where stages use others.

    With a `recorder` the flow is durable: each stage's start, events and outcome are recorded
    before anything acts on them, and a stage with a recorded outcome is not run again but returns
    that outcome. The generator must then be a pure function of its stages' outcomes: clocks, random
    values and file reads that influence it must be stages too. A failed stage has no outcome: a
    resumed run continues with it. A recorder serves one subscription.

    ::

        killed in a:        -x-             recorded: x
        resumed:            -x-y(y)-z|      a runs again

        killed in b:        -x-y(y)-        recorded: x y, the outcome of a, y
        resumed:            --z|            only b runs
    """
    require_story(make)

    def subscribe(
        observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        generator = make()
        if not isinstance(generator, Generator):
            raise not_a_story(generator)
        driver = _Driver(generator, observer, scheduler, recorder)
        driver.resume(None, None)
        return driver

    return Observable(subscribe)


class _Driver(abc.DisposableBase):
    """The driver of one generator. A trampoline: the end of a stage only leaves a note for it."""

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
        """The lane whose time is recorded with every event."""
        self._recorder = recorder
        self._stage: Held | None = None
        self._note: tuple[Any, Exception | None] | None = None
        self._driving = False
        self._inside = False
        """True while the body of the generator runs."""
        self._disposed = False

    def resume(self, value: Any, error: Exception | None) -> None:
        self._note = (value, error)
        if not self._driving:
            self._drive()

    def _drive(self, *_: object) -> None:
        self._driving = True
        try:
            for _turn in range(_STEPS):
                if self._note is None or self._disposed:
                    return
                (value, error), self._note = self._note, None
                self._go_on(value, error)
        finally:
            self._driving = False
            if self._disposed:
                self._close()
        if self._note is not None and not self._disposed:
            turns_of(self._scheduler).schedule(self._drive)

    def _go_on(self, value: Any, error: Exception | None) -> None:
        """Run the generator to its next yield, and what that asks for."""
        step = self._step(value, error)
        if self._disposed:  # by its end, or while its body ran
            return
        if isinstance(step, Stage):
            self._begin(step)
            return
        if not isinstance(step, Emit):
            self._note = (None, not_a_stage(step))
            return
        self._note = (None, None)
        for event in step.events:
            self._send(event, staged=False)

    def _step(self, value: Any, error: Exception | None) -> object:
        """Run the generator to its next yield; its end disposes the flow."""
        self._inside = True
        try:
            try:
                if error is not None:
                    return self._generator.throw(error)
                return self._generator.send(value)
            finally:
                self._inside = False
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
        """Run the stage, or return its recorded outcome."""
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
        stage = self._stage = Held()
        last: Any = None

        def on_next(value: Any) -> None:
            nonlocal last
            last = value
            if forwarded and self._stage is stage:
                self._send(value, staged=True)

        def ended(error: Exception | None) -> None:
            if self._stage is stage:
                self._stage = None
                if self._recorded(last, error):
                    self.resume(last, error)

        after = Observer[Any](on_error=ended, on_completed=lambda: ended(None))
        stage.hold(
            lambda: stream.subscribe(
                on_next,
                lambda error: stage.end(after, error),
                lambda: stage.end(after),
                scheduler=self._scheduler,
            )
        )

    def _recorded(self, outcome: Any, error: Exception | None) -> bool:
        """Record the end of the stage; return False when that fails."""
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
        except Exception as error:  # the subscriber failed, not the stage
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if not self._disposed:
            self._observer.on_error(released(self, error) or error)

    def _now(self) -> datetime:
        if self._lane is None:
            self._lane = serial(self._scheduler)
        return self._lane.now

    def dispose(self) -> None:
        self._disposed = True
        stage, self._stage = self._stage, None
        try:
            if stage is not None:
                stage.dispose()
        finally:
            self._close()

    def _close(self) -> None:
        """Close the generator; one whose body runs is closed when that has returned."""
        if self._inside:
            return
        self._inside = True  # a `finally` block may dispose the flow again
        try:
            self._generator.close()
        finally:
            self._inside = False
