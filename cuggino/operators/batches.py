"""Batches: plain events of an agent that came at once travel through the operators as one.

A program that prints hundreds of lines at once would otherwise pass each of its events through
some thirty operators. A `Batched` stream carries `EventBatch`es to the operators that know them,
and single events, in order, to every other subscriber. So a batch is opened at the edge of the
code that knows batches, wherever that is, and no subscriber has to.

Only plain events (texts, tool calls and results, usage, pings) are in a batch. Everything that an
operator ends, waits for or announces travels alone, in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

from reactivex import Observable, abc, throw

from cuggino.events import kind_of
from cuggino.operators.managed import Managed, Stream, Subscription, attach, managed

T = TypeVar("T")
Operator: TypeAlias = Callable[[Observable[Any]], Observable[Any]]


class EventBatch:
    """Plain events of one session that came at once, in order; never empty.

    `is_cut` returns whether the session has been disposed since; then the rest is ignored.
    """

    __slots__ = ("events", "is_cut")

    def __init__(self, events: Sequence[Any], is_cut: Callable[[], bool] = lambda: False) -> None:
        self.events = events
        self.is_cut = is_cut

    def __repr__(self) -> str:
        return f"EventBatch({list(self.events)!r})"


class Batched(Stream[T]):
    """A stream that carries batches to `unopened` operators, and single events to all others.

    The subscription is checked before each event: after a disposal in the middle of a batch,
    nothing more is emitted.
    """

    def __init__(self, carrier: Observable[Any]) -> None:
        super().__init__(self._open)
        self.carrier = carrier
        """The same stream with its batches."""

    def _open(
        self, observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        # RxPY puts an observer before this one that drops what comes after the end or a disposal.
        deliver = observer.on_next

        def on_next(value: Any) -> None:
            if type(value) is EventBatch:
                for event in value.events:
                    if value.is_cut():  # by an operator between the session and this
                        return
                    deliver(event)
            else:
                deliver(value)

        return attach(
            self.carrier, on_next, observer.on_error, observer.on_completed, scheduler=scheduler
        )


PLAIN = frozenset(
    {
        *("AgentMessage", "GuardDenied", "MessageDelta", "PingEvent", "SystemMessage"),
        *("Thinking", "ToolCall", "ToolResult", "UsageUpdate", "UserMessage"),
    }
)
"""The tags of the events that may be in a batch; no operator ends, waits for or announces one."""


def batched(events: Iterable[Any], is_cut: Callable[[], bool] = lambda: False) -> Iterator[Any]:
    """Yield the events in order, several plain ones in a row as a batch.

    An exception of `events` is raised after the events that precede it.
    """
    plain: list[Any] = []
    try:
        for event in events:
            if kind_of(type(event)) in PLAIN:
                plain.append(event)
                continue
            if plain:
                before, plain = plain, []
                yield _as_one(before, is_cut)
            yield event
    except Exception:  # of `events`: those before it come first
        if plain:
            yield _as_one(plain, is_cut)
        raise
    if plain:
        yield _as_one(plain, is_cut)


def _as_one(plain: list[Any], is_cut: Callable[[], bool]) -> Any:
    return plain[0] if len(plain) == 1 else EventBatch(plain, is_cut)


def carrier(stream: Observable[T]) -> Observable[Any]:
    """Return the stream with its batches, for a subscriber that knows them."""
    if type(stream) is Managed:  # most are; another check of an abstract class takes long
        return stream
    return stream.carrier if isinstance(stream, Batched) else stream


def deferred(make: Callable[[], Observable[T]]) -> Observable[T]:
    """Return a stream that calls `make` for each subscription.

    ::

        made:       -a-b|
        deferred:   -a-b|

    An exception of `make` is the stream's error. (RxPY's `defer` does not support batches.)
    """

    def subscribe(
        observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        try:
            stream = make()
        except Exception as error:
            stream = throw(error)
        return same_subscription(stream, observer, scheduler)

    return Batched(Managed(subscribe))


def same_subscription(
    stream: Observable[T], observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None
) -> abc.DisposableBase:
    """Subscribe an observer to the stream, with its batches, in place of the stream around it.

    For a stream that only chooses another one when it is subscribed: no event passes it.
    """
    source = carrier(stream)
    kept = source if isinstance(source, Managed) else managed(lambda o, s: o.follow(source, s))
    return kept._subscribe_core(observer, scheduler)


def unopened(operator: Operator) -> Operator:
    """Return the operator for streams of batches; it takes a batch for an unknown event."""

    def apply(source: Observable[Any]) -> Observable[Any]:
        bare = carrier(source)
        return operator(source) if bare is source else Batched(operator(bare))

    return apply


def events_in(value: Any) -> Sequence[Any]:
    """Return the events of a batch, or the one event."""
    return value.events if type(value) is EventBatch else (value,)


def each(look: Callable[[Any], object]) -> Operator:
    """Call `look` with every event before it is passed on; an exception is the stream's error."""

    def look_at(value: Any) -> None:
        if type(value) is EventBatch:
            for event in value.events:
                look(event)
        else:
            look(value)

    return _peek(look_at)


def each_alone(look: Callable[[Any], object]) -> Operator:
    """Call `look` with every event that is not plain, and so never in a batch."""

    def look_at(value: Any) -> None:
        if type(value) is not EventBatch and kind_of(type(value)) not in PLAIN:
            look(value)

    return _peek(look_at)


def _peek(look: Callable[[Any], object]) -> Operator:
    def operator(source: Observable[Any]) -> Observable[Any]:
        def subscribe(
            observer: Subscription[Any], scheduler: abc.SchedulerBase | None
        ) -> abc.DisposableBase:
            def on_next(value: Any) -> None:
                try:
                    look(value)
                except Exception as error:
                    observer.on_error(error)
                    return
                observer.on_next(value)

            return attach(
                source, on_next, observer.on_error, observer.on_completed, scheduler=scheduler
            )

        return managed(subscribe)

    return unopened(operator)


def in_batches(source: Observable[T]) -> Observable[Sequence[T]]:
    """Emit the events that came at once as one sequence, for a subscriber that writes many at once.

    Every event is in exactly one sequence, in order, and none is empty. How many come at once is
    up to the agent and the system; most events come alone.
    """

    def subscribe(
        observer: Subscription[Sequence[T]], scheduler: abc.SchedulerBase | None
    ) -> abc.DisposableBase:
        return attach(
            carrier(source),
            lambda value: observer.on_next(events_in(value)),
            observer.on_error,
            observer.on_completed,
            scheduler=scheduler,
        )

    return managed(subscribe)
