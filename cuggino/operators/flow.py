"""`flow`: a loop written as a generator over streams (do-notation, as in Effect.gen)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar, cast

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SingleAssignmentDisposable

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Stage(Generic[T]):
    """What a generator yields to run a stream; made by `forward` and `ask`."""

    stream: Observable[T]
    forwarded: bool


@dataclass(frozen=True, slots=True)
class Emit:
    """What a generator yields to send events; made by `emit`."""

    events: tuple[Any, ...]


Flow: TypeAlias = Generator[Stage[Any] | Emit, Any, R]
"""A generator that `flow` can run; `R` is what `yield from` gives to a caller."""


def forward(stream: Observable[T]) -> Flow[T | None]:
    """Run the stream, send its events downstream; gives its last event (None if it had none)."""
    return cast("T | None", (yield Stage(stream, forwarded=True)))


def ask(stream: Observable[T]) -> Flow[T | None]:
    """Run the stream and keep its events here; gives its last event (None if it had none)."""
    return cast("T | None", (yield Stage(stream, forwarded=False)))


def emit(*events: Any) -> Flow[None]:
    """Send the events downstream."""
    yield Emit(events)


def flow(make: Callable[[], Flow[Any]]) -> Observable[Any]:
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
    """

    def subscribe(
        observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        driver = _Driver(make(), observer, scheduler)
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
    ) -> None:
        self._generator = generator
        self._observer = observer
        self._scheduler = scheduler
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
                            self._send(event)
                    case Stage(stream, forwarded):
                        self._run(stream, forwarded=forwarded)
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

    def _run(self, stream: Observable[Any], *, forwarded: bool) -> None:
        stage = self._stage = SingleAssignmentDisposable()
        last: Any = None

        def on_next(value: Any) -> None:
            nonlocal last
            last = value
            if forwarded and self._stage is stage:
                self._send(value)

        def ended(error: Exception | None) -> None:
            if self._stage is stage:
                self._stage = None
                stage.dispose()
                self.resume(last, error)

        stage.disposable = stream.subscribe(
            on_next, ended, lambda: ended(None), scheduler=self._scheduler
        )

    def _send(self, event: Any) -> None:
        if self._disposed:
            return
        try:
            self._observer.on_next(event)
        except Exception as error:  # the subscriber's failure is no stage's failure
            self.dispose()
            self._observer.on_error(error)

    def dispose(self) -> None:
        self._disposed = True
        stage, self._stage = self._stage, None
        if stage is not None:
            stage.dispose()
        if not self._driving:
            self._generator.close()
