"""The contract of every operator: disposal, errors, bursts, and who misbehaves on either side."""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import Observable, abc, operators as ops
from reactivex.disposable import (
    BooleanDisposable,
    CompositeDisposable,
    Disposable,
    SerialDisposable,
)
from reactivex.subject import Subject

import cuggino
from cuggino import events as ev, operators
from cuggino.domain.spending import Budget
from cuggino.errors import AgentFailed, QuotaExceeded
from cuggino.events import AgentMessage, Usage, UsageUpdate
from cuggino.folders import watch_file_count
from cuggino.operators import (
    Flow,
    Schedule,
    Scope,
    acquire_release,
    ask,
    catch_tag,
    emit,
    extract_markers,
    flow,
    forward,
    idle_timeout,
    interrupt_when,
    managed,
    marker_tags,
    merge_at_most,
    on_loop,
    only,
    pause,
    race_until,
    repeat_on,
    repetition_limit,
    retry_session,
    scoped,
    stage_timeout,
    until_terminal,
    wait_for_quota,
    within_budget,
)
from cuggino.operators.alongside import alongside
from cuggino.operators.mapcat import mapcat
from cuggino.operators.markers import join_split_messages
from cuggino.operators.merge_now import merge_now
from cuggino.operators.supervision import RETRIES, liveness
from cuggino.testing import Marbles, VirtualClock
from tests.limits import LIMIT
from tests.operators.policies import pending

Operator = Callable[[Observable[Any]], Observable[Any]]


def _within_a_flow(source: Observable[Any]) -> Observable[Any]:
    def story() -> Any:
        with Scope() as scope:
            scope.defer(lambda: None)
            yield from forward(source)

    return flow(story)


def _at_once(value: Any) -> Observable[Any]:
    """Return a stream of this one value that needs no scheduler."""

    def subscribe(observer: Any, _scheduler: Any = None) -> Disposable:
        observer.on_next(value)
        observer.on_completed()
        return Disposable()

    return Observable(subscribe)


def _counted(source: Observable[Any]) -> Observable[Any]:
    return watch_file_count(Path("x"), changes=lambda _: source, count=lambda _: 1)


SYNCHRONOUS: MappingProxyType[str, Operator] = MappingProxyType(
    {
        "acquire_release": lambda source: acquire_release(int, lambda _: source, lambda _: None),
        "alongside": lambda source: source.pipe(alongside(rx.never())),
        "alongside, other": lambda source: rx.never().pipe(alongside(source)),
        "catch_tag": lambda source: source.pipe(catch_tag(AgentFailed, lambda _: rx.empty())),
        "catch_tag, handled": lambda source: rx.throw(AgentFailed("x", reason="crash")).pipe(
            catch_tag(AgentFailed, lambda _: source)
        ),
        "extract_markers": lambda source: source.pipe(extract_markers({})),
        "flow": _within_a_flow,
        "interrupt_when": lambda source: source.pipe(interrupt_when(rx.never())),
        "interrupt_when, notifier": lambda source: rx.never().pipe(interrupt_when(source, "X")),
        "join_split_messages": lambda source: source.pipe(join_split_messages(["DONE"])),
        "managed": lambda source: managed(lambda o, s: source.subscribe(o, scheduler=s)),
        "mapcat": lambda source: source.pipe(mapcat(lambda event: [event])),
        "merge_at_most": lambda source: _at_once(source).pipe(merge_at_most(1)),
        "merge_at_most, source": lambda source: source.pipe(ops.map(_at_once), merge_at_most(1)),
        "merge_now": lambda source: merge_now(source, source),
        "only": lambda source: source.pipe(only(AgentMessage)),
        "race_until": lambda source: _at_once(source).pipe(race_until(lambda _: False)),
        "race_until, won": lambda source: _at_once(source).pipe(race_until(lambda _: True)),
        "repeat_on": lambda source: source.pipe(repeat_on(Schedule.constant(1).times(1))),
        "retry_session": lambda source: source.pipe(
            retry_session(RETRIES, transient=lambda _: True)
        ),
        "scoped": lambda source: scoped(lambda _: source),
        "until_terminal": lambda source: source.pipe(until_terminal(lambda _: False, linger=1)),
        "until_terminal, terminal": lambda source: source.pipe(
            until_terminal(lambda _: True, linger=5)
        ),
        "within_budget": lambda source: source.pipe(within_budget(Budget(cost_usd=1.0))),
    }
)
ON_A_LANE: MappingProxyType[str, Operator] = MappingProxyType(
    {
        "liveness": lambda source: source.pipe(liveness(idle=500, stage=500, times=500)),
        "idle_timeout": lambda source: source.pipe(idle_timeout(idle=500)),
        "on_loop": on_loop,
        "repetition_limit": lambda source: source.pipe(repetition_limit(20)),
        "stage_timeout": lambda source: source.pipe(stage_timeout(500)),
        "wait_for_quota": lambda source: source.pipe(wait_for_quota()),
    }
)
EVERY = SYNCHRONOUS | ON_A_LANE


def _handled(order: list[str]) -> Callable[[Exception], Observable[Any]]:
    def handle(_error: Exception) -> Observable[Any]:
        order.append("handled")
        return rx.empty()

    return handle


Follow = tuple[AgentMessage | UsageUpdate | Exception, Callable[[list[str]], Any], str]
FOLLOWED: dict[str, Follow] = {
    "catch_tag": (
        QuotaExceeded("x"),
        lambda order: catch_tag(QuotaExceeded, _handled(order)),
        "handled",
    ),
    "retry_session": (
        AgentFailed("x", reason="overloaded"),
        lambda _: retry_session(RETRIES.times(1)),
        "AgentRetry",
    ),
    "wait_for_quota": (QuotaExceeded("x"), lambda _: wait_for_quota(), "QuotaWaiting"),
    "within_budget": (
        UsageUpdate(usage=Usage(output_tokens=101)),
        lambda _: within_budget(Budget(tokens=100)),
        "BudgetExceeded",
    ),
}
"""Operators that do something when their source has ended, or end it: the cause, and what follows.

The operator is given the list in which the steps are noted.
"""

PLUMBING = {
    "alongside": alongside,
    "join_split_messages": join_split_messages,
    "liveness": liveness,
    "mapcat": mapcat,
    "merge_now": merge_now,
}
"""Operators that only cuggino itself uses."""


def test_every_operator_is_in_the_table() -> None:
    """A new operator is added to the table, and with it to every law below."""
    functions = [getattr(operators, name) for name in operators.__all__]
    streams = {
        function.__name__
        for function in functions
        if inspect.isfunction(function)
        and "Observable" in str(inspect.signature(function).return_annotation)
    }
    assert not streams & PLUMBING.keys()
    assert streams | PLUMBING.keys() == {name.partition(",")[0] for name in EVERY}


@pytest.mark.parametrize("name", [*EVERY, "watch_file_count"])
@pytest.mark.parametrize("ending", ["a-a|", "a-a"])
def test_a_subscribers_exception_reaches_on_error(name: str, ending: str) -> None:
    """It releases everything first, and is neither raised, retried, handled nor waited for.

    The exceptions look like failures of an agent, so that an operator may mistake them.
    """
    for failure in (AgentFailed("mine", reason="overloaded"), QuotaExceeded("mine")):
        t = Marbles(a=AgentMessage(text="a"))
        source = t.cold(ending)
        errors: list[tuple[Exception, bool]] = []

        def fail(_: Any, failure: Exception = failure) -> None:
            raise failure

        def on_error(
            error: Exception, errors: list[tuple[Exception, bool]] = errors, source: Any = source
        ) -> None:
            errors.append((error, all(end is not None for _, end in source.subscriptions)))

        stream = _counted(source) if name == "watch_file_count" else EVERY[name](source)
        stream.subscribe(fail, on_error, scheduler=t.scheduler)
        t.scheduler.advance_to(1000.0)
        assert [(failure, True)] == errors
        assert 1 >= sum(end is None or end >= 0 for _, end in source.subscriptions) or (
            name == "merge_now"
        )
        assert 0 == pending(t)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("ending", ["none", "completion", "error"])
def test_a_subscribers_exception_within_subscribe(name: str, ending: str) -> None:
    """The same holds within `subscribe`, where a source goes on: nothing more is seen of it."""
    released: list[bool] = []
    received: list[Any] = []
    ends: list[Exception | None] = []
    failure = QuotaExceeded("mine")

    def subscribe(observer: Any, _scheduler: Any = None) -> Disposable:
        observer.on_next(AgentMessage(text="a"))
        observer.on_next(AgentMessage(text="b"))
        if ending == "completion":
            observer.on_completed()
        if ending == "error":
            observer.on_error(AgentFailed("of the source", reason="overloaded"))
        return Disposable(lambda: released.append(True))

    def fail(event: Any) -> None:
        received.append(event)
        raise failure

    clock = VirtualClock()
    EVERY[name](Observable(subscribe)).subscribe(
        fail, ends.append, lambda: ends.append(None), scheduler=clock
    )
    clock.advance_to(clock.at(100))
    assert [failure] == ends
    assert 1 == len(received)
    assert released


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("ending", ["-a-|", "-a-#"])
def test_everything_is_released_before_the_end(name: str, ending: str) -> None:
    """When `on_completed` or `on_error` is called, the source has been released."""
    t = Marbles(a=AgentMessage(text="a"))
    order: list[str] = []
    source = t.cold(ending).pipe(ops.finally_action(lambda: order.append("released")))
    t.scheduler.advance_to(1.0)
    transient = {"retry_session": source.pipe(retry_session(transient=lambda _: False))}
    stream = transient.get(name) or EVERY[name](source)

    def end(_: Any = None) -> None:
        order.append("ended")

    stream.subscribe(on_error=end, on_completed=end, scheduler=t.scheduler)
    t.scheduler.advance_to(1000.0)
    if "ended" in order:
        assert order.index("released") < order.index("ended")
    else:
        assert name == "alongside, other", "it waits for its source"


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("fails", [False, True])
def test_a_source_that_ends_within_subscribe(name: str, fails: bool) -> None:
    """It is released before the end, too, although it has not returned what it holds."""
    clock, order = VirtualClock(), list[str]()

    def subscribe(observer: Any, _scheduler: Any = None) -> Disposable:
        if fails:
            observer.on_error(LookupError("x"))
        else:
            observer.on_completed()
        return Disposable(lambda: order.append("released"))

    def end(_: Any = None) -> None:
        order.append("ended")

    stream = EVERY[name](Observable(subscribe))
    stream.subscribe(on_error=end, on_completed=end, scheduler=clock)
    clock.advance_to(1000.0)
    assert order
    assert order[-1] == "ended" or "ended" not in order


@pytest.mark.parametrize("name", [name for name in EVERY if name.partition(",")[0] not in PLUMBING])
@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("error", [None, LookupError("of the source")])
def test_a_release_that_fails(name: str, at_once: bool, error: Exception | None) -> None:
    """Its exception ends the stream, once, with the error of the source as its context."""
    clock, ends = VirtualClock(), list[Exception | None]()
    failures: list[ZeroDivisionError] = []

    def release() -> None:
        failures.append(ZeroDivisionError("of the release"))
        raise failures[-1]

    def subscribe(observer: Any, scheduler: Any = None) -> abc.DisposableBase:
        def end(*_: object) -> None:
            observer.on_next(AgentMessage(text="a"))
            if error is not None:
                observer.on_error(error)
            else:
                observer.on_completed()

        held = Disposable(release)
        if at_once:
            end()
            return held
        return CompositeDisposable(scheduler.schedule_relative(1.0, end), held)

    stream = EVERY[name](Observable(subscribe))
    stream.subscribe(on_error=ends.append, on_completed=lambda: ends.append(None), scheduler=clock)
    clock.advance_to(1000.0)
    (end,) = ends
    assert end in failures
    if error is not None and name not in {"interrupt_when, notifier", "until_terminal, terminal"}:
        assert error is end.__context__


def _raise(*_: object) -> Any:
    raise ZeroDivisionError("of the function")


BOTH: MappingProxyType[str, Callable[[Observable[Any], Observable[Any]], Observable[Any]]] = (
    MappingProxyType(
        {
            "acquire_release": lambda one, other: acquire_release(
                other.subscribe, lambda _: one, lambda held: held.dispose()
            ),
            "alongside": lambda one, other: one.pipe(alongside(other)),
            "interrupt_when": lambda one, other: one.pipe(interrupt_when(other)),
            "merge_at_most": lambda one, other: rx.of(one, other).pipe(merge_at_most(2)),
            "merge_at_most, source": lambda one, other: one.pipe(
                ops.start_with(other), merge_at_most(2)
            ),
            "merge_now": merge_now,
        }
    )
)
"""What holds two streams at a time."""


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("first", [True, False])
def test_one_of_two_releases_fails(name: str, first: bool) -> None:
    """A disposal releases the other one too, before it raises the error."""
    released: list[None] = []
    fails = acquire_release(int, lambda _: rx.never(), _raise)
    works = acquire_release(int, lambda _: rx.never(), lambda _: released.append(None))
    held = BOTH[name](*((fails, works) if first else (works, fails))).subscribe()
    with pytest.raises(ZeroDivisionError):
        held.dispose()
    assert [None] == released


RAISING: MappingProxyType[str, Operator] = MappingProxyType(
    {
        "is_terminal": until_terminal(_raise, linger=1),
        "on_terminal": until_terminal(lambda _: True, linger=1, on_terminal=_raise),
        "choose": until_terminal(lambda _: True, linger=1, choose=_raise),
        "settle": until_terminal(lambda event: event == "a", linger=5, settle=_raise),
        "reopen": until_terminal(lambda event: event == "a", linger=5, reopen=_raise),
        "handle": lambda source: source.pipe(
            ops.concat(rx.throw(LookupError("x"))), catch_tag(LookupError, _raise)
        ),
        "on_release": lambda source: rx.of(source, rx.throw(LookupError("x"))).pipe(
            merge_at_most(2, on_release=_raise)
        ),
        "on_release, won": lambda source: rx.of(source, rx.never()).pipe(
            race_until(lambda _: True, on_release=_raise)
        ),
        "replace": lambda source: source.pipe(
            ops.concat(rx.never()), idle_timeout(idle=5, replace=_raise)
        ),
        "remind": liveness(ends=lambda _: False, remind=_raise),
        "the function of a tag, at the end of a message": lambda source: source.pipe(
            ops.take(1),
            ops.map(lambda _: AgentMessage(text="<A><B></B>", message_id="m")),
            extract_markers({"A": _raise, "B": _raise}),
        ),
    }
)


@pytest.mark.parametrize("name", RAISING)
def test_a_function_that_raises(name: str) -> None:
    """Its exception ends the stream; raised into the source, it would end nothing."""
    clock, ends = VirtualClock(), list[Exception | None]()
    source: Observable[str] = rx.timer(1.0).pipe(
        ops.map(lambda _: "a"), ops.concat(rx.timer(1.0).pipe(ops.map(lambda _: "b")))
    )
    RAISING[name](source).subscribe(
        on_error=ends.append, on_completed=lambda: ends.append(None), scheduler=clock
    )
    clock.advance_to(100.0)
    assert ["of the function"] == [str(error) for error in ends]


def test_a_generator_is_closed_before_the_error_of_a_subscriber() -> None:
    """What a flow has acquired is released when `on_error` is called, within `emit` too."""
    order: list[str] = []

    def story() -> Flow[None]:
        with Scope() as scope:
            scope.defer(lambda: order.append("released"))
            yield from emit("a")

    flow(story).subscribe(_raise, lambda _: order.append("ended"))
    assert ["released", "ended"] == order


def test_a_generator_is_closed_when_its_stage_cannot_be_released() -> None:
    """Disposal raises the error, and releases the rest all the same."""
    order: list[str] = []

    def story() -> Flow[None]:
        with Scope() as scope:
            scope.defer(lambda: order.append("released"))
            yield from forward(acquire_release(int, lambda _: rx.never(), _raise))

    held = flow(story).subscribe()
    with pytest.raises(ZeroDivisionError):
        held.dispose()
    assert ["released"] == order


@pytest.mark.parametrize("name", FOLLOWED)
@pytest.mark.parametrize("at_once", [False, True])
def test_the_source_is_released_before_what_follows(name: str, at_once: bool) -> None:
    """An agent is gone before its retry, its wait or its failure is announced."""
    cause, operator, follows = FOLLOWED[name]
    clock, order = VirtualClock(), list[str]()

    def subscribe(observer: Any, scheduler: Any = None) -> abc.DisposableBase:
        def end(*_: object) -> None:
            if isinstance(cause, Exception):
                observer.on_error(cause)
            else:
                observer.on_next(cause)

        held = Disposable(lambda: order.append("released"))
        if at_once:
            end()
            return held
        return CompositeDisposable(scheduler.schedule_relative(1.0, end), held)

    Observable(subscribe).pipe(operator(order)).subscribe(
        lambda event: order.append(event.tag),
        lambda error: order.append(type(error).__name__),
        scheduler=clock,
    )
    clock.advance_to(10.0)
    assert order.index("released") == order.index(follows) - 1


@pytest.mark.parametrize("name", EVERY)
def test_disposal_releases_everything(name: str) -> None:
    """When `dispose` returns, no source is subscribed and no timer is pending."""
    t = Marbles(a=AgentMessage(text="a"))
    source = t.cold("-a---a---")
    stream = EVERY[name](source)
    held = stream.subscribe(scheduler=t.scheduler)
    t.scheduler.advance_to(2.5)
    held.dispose()
    assert source.subscriptions
    assert None not in [end for _, end in source.subscriptions]
    assert 0 == pending(t)


@pytest.mark.parametrize("name", EVERY)
def test_the_scheduler_is_passed_on(name: str) -> None:
    """The sources of an operator get the scheduler of its subscriber."""
    given: list[object] = []

    def subscribe(_observer: Any, scheduler: Any = None) -> Disposable:
        given.append(scheduler)
        return Disposable()

    clock = VirtualClock()
    held = EVERY[name](Observable(subscribe)).subscribe(scheduler=clock)
    clock.advance_to(clock.at(1))
    held.dispose()
    assert {clock} == set(given)


@pytest.mark.parametrize("name", ON_A_LANE)
def test_without_a_scheduler_events_come_on_the_default_lane(name: str) -> None:
    """An operator that needs a lane uses the default one without a scheduler."""
    seen: list[object] = []
    ended = threading.Event()
    event = AgentMessage(text="hi")

    def subscribe(observer: Any, _scheduler: Any = None) -> Disposable:
        observer.on_next(event)
        observer.on_completed()
        return Disposable()

    ON_A_LANE[name](Observable(subscribe)).subscribe(seen.append, seen.append, ended.set)
    assert ended.wait(LIMIT)
    assert [event] == seen


def test_a_pause_needs_no_scheduler() -> None:
    """A flow subscribed without a scheduler waits on the default lane."""
    ended = threading.Event()
    flow(lambda: pause(0)).subscribe(on_completed=ended.set)
    assert ended.wait(LIMIT)


@pytest.mark.parametrize("name", ["merge_now", "alongside"])
def test_an_immediate_failure_starts_nothing_else(name: str) -> None:
    """After a source that fails within its subscription no other one is subscribed."""
    t = Marbles(a="a")

    def at_once(observer: Any, _scheduler: Any = None) -> Disposable:
        observer.on_error(t.error)
        return Disposable()

    last = t.cold("a|")
    sources = (t.cold("a|"), Observable(at_once), last)
    together = merge_now(*sources) if name == "merge_now" else last.pipe(alongside(*sources))
    t.check(together, "#")
    assert [] == last.subscriptions


def test_operators_give_a_reason() -> None:
    """Every operator says why RxPY's does not serve."""
    for name in {name.partition(",")[0] for name in EVERY}:
        function = PLUMBING.get(name) or getattr(operators, name)
        assert re.search(r"\(RxPY('s)?\s", inspect.getdoc(function) or ""), name


class Source:
    """A managed stream whose observer is kept, to be called at the wrong time."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.observer: abc.ObserverBase[Any] | None = None

    def subscribe(self, start: Callable[[Any], None] = lambda _: None) -> abc.DisposableBase:
        def subscribe(
            observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None
        ) -> abc.DisposableBase:
            self.observer = observer
            start(observer)
            return Disposable(lambda: self.log.append("released"))

        return managed(subscribe).subscribe(
            self.log.append,
            lambda error: self.log.append(str(error)),
            lambda: self.log.append("completed"),
        )


ENDINGS: dict[str, Callable[[Any], None]] = {
    "completed": lambda observer: observer.on_completed(),
    "oh": lambda observer: observer.on_error(LookupError("oh")),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("is_within", [True, False])
def test_nothing_follows_the_end(ending: str, is_within: bool) -> None:
    """The end comes once, after the release, also if it came within `subscribe`."""
    source = Source()
    end = ENDINGS[ending]
    source.subscribe(end if is_within else lambda _: None)
    assert source.observer is not None
    source.observer.on_next(1)
    if not is_within:
        end(source.observer)
    source.observer.on_next(2)
    for again in ENDINGS.values():
        again(source.observer)
    assert (["released", ending] if is_within else [1, "released", ending]) == source.log


def test_nothing_follows_disposal() -> None:
    """A source that has not noticed it yet emits to nobody."""
    source = Source()
    source.subscribe().dispose()
    assert source.observer is not None
    source.observer.on_next(1)
    source.observer.on_completed()
    assert ["released"] == source.log


def test_a_subscription_that_raises() -> None:
    """It is the error of the stream; after the end it is raised."""
    source = Source()

    def fail(_observer: object) -> None:
        raise LookupError("no source")

    source.subscribe(fail)
    assert ["no source"] == source.log


def test_disposal_while_a_resource_is_acquired() -> None:
    """A resource acquired after the disposal is released at once."""
    log: list[str] = []
    held: list[abc.DisposableBase] = []
    t = Marbles()

    def acquire() -> int:
        held[0].dispose()
        return 1

    late = acquire_release(acquire, lambda _: rx.just(1), lambda _: log.append("released"))
    waiting: Observable[int] = rx.timer(1).pipe(mapcat(lambda _: [1]))

    def story() -> Flow[None]:
        yield from forward(waiting)
        yield from forward(late)

    held.append(flow(story).subscribe(lambda _: log.append("event"), scheduler=t.clock))
    t.clock.advance_by(5)
    assert ["event", "released"] == log


def story() -> Flow[None]:
    yield from emit(1)


async def _collected(stream: Any) -> list[Any]:
    return [event async for event in cuggino.aiterate(stream)]


def _yielded(stage: Callable[[Any], Flow[Any]], stream: Any) -> None:
    def outer() -> Flow[None]:
        yield from stage(stream)

    cuggino.run(flow(outer))


DOORS: dict[str, Callable[[Any], object]] = {
    "run": lambda stream: cuggino.run(stream, print),
    "iterate": lambda stream: list(cuggino.iterate(stream)),
    "aiterate": lambda stream: asyncio.run(_collected(stream)),
    "on_loop": on_loop,
    "forward": lambda stream: _yielded(forward, stream),
    "ask": lambda stream: _yielded(ask, stream),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (story, "not a generator function: write {door}(flow(story)) instead of {door}(story)"),
        (story(), "write {door}(flow(story)), with the function itself, instead of story()"),
        ("story", "{door}() needs an Observable, not str"),
        (None, "{door}() needs an Observable, not NoneType"),
    ],
    ids=["function", "generator", "text", "nothing"],
)
def test_what_is_not_a_stream(door: str, value: Any, advice: str) -> None:
    """The error names the function and what to write instead."""
    with pytest.raises(TypeError) as raised:
        DOORS[door](value)
    assert advice.format(door=door) in str(raised.value)


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (story(), "write flow(story) instead of flow(story())"),
        (rx.never(), "this is an Observable already"),
        (None, "flow() needs a generator function, not NoneType"),
    ],
    ids=["generator", "stream", "nothing"],
)
def test_a_flow_of_something_else(value: Any, advice: str) -> None:
    """The error comes where the flow is made."""
    with pytest.raises(TypeError) as raised:
        flow(value)
    assert advice in str(raised.value)


def _failing() -> Observable[Any]:
    return rx.timer(0.0).pipe(ops.concat(rx.throw(AgentFailed("x", reason="crash"))))


MISUSED: dict[str, tuple[Callable[[Any], object], str]] = {
    "merge_at_most": (
        lambda it: cuggino.run(rx.timer(0.0).pipe(ops.map(lambda _: it), merge_at_most(2))),
        "merge_at_most() needs an Observable, not int",
    ),
    "race_until": (
        lambda it: cuggino.run(rx.timer(0.0).pipe(ops.map(lambda _: it), race_until(bool))),
        "race_until() needs an Observable, not int",
    ),
    "interrupt_when": (interrupt_when, "interrupt_when() needs an Observable, not int"),
    "catch_tag": (
        lambda it: catch_tag(it, lambda _: rx.empty()),
        "catch_tag() needs a class, or several, not 3",
    ),
    "catch_tag, handled": (
        lambda it: cuggino.run(_failing().pipe(catch_tag(AgentFailed, lambda _: it))),
        "`handle` of catch_tag() returned int, not an Observable",
    ),
    "only": (only, "only() needs a class, or several, not 3"),
    "acquire_release": (
        lambda it: cuggino.run(acquire_release(int, lambda _: it, lambda _: None)),
        "returned int, not an Observable",
    ),
    "managed": (
        lambda it: cuggino.run(managed(lambda _observer, _scheduler: it)),
        "the function of managed() must return a disposable",
    ),
    "retry_session": (retry_session, "retry_session() needs a Schedule, not 3"),
    "retry_session, again": (
        lambda it: cuggino.run(
            _failing().pipe(retry_session(Schedule.constant(0), again=lambda _: it))
        ),
        "`again` of retry_session() returned int, not an Observable",
    ),
    "repeat_on": (repeat_on, "repeat_on() needs a Schedule, not 3"),
    "idle_timeout, replace": (
        lambda it: cuggino.run(rx.never().pipe(idle_timeout(idle=0.01, replace=lambda _: it))),
        "returned int, not an Observable",
    ),
    "marker_tags": (marker_tags, "marker_tags() needs classes of markers, such as Done, not 3"),
    "extract_markers": (extract_markers, "needs a table of tags, marker_tags(Done), not 3"),
}


@pytest.mark.parametrize("name", MISUSED)
def test_what_an_operator_cannot_use(name: str) -> None:
    """It is a sentence at once, or the error of the stream, which does not hang."""
    use, sentence = MISUSED[name]
    with pytest.raises(TypeError) as raised:
        use(3)
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    "use",
    [
        lambda: idle_timeout(idle="5m"),  # type: ignore[arg-type]
        lambda: stage_timeout("5m"),  # type: ignore[arg-type]
        lambda: repetition_limit("5"),  # type: ignore[arg-type]
        lambda: merge_at_most("5"),  # type: ignore[arg-type]
        lambda: until_terminal(bool, linger="5s"),  # type: ignore[arg-type]
    ],
)
def test_a_number_that_is_none(use: Callable[[], object]) -> None:
    """The error names the parameter."""
    with pytest.raises(TypeError, match=r"\w+ must be a number, not '5"):
        use()


def test_tags_in_one_text() -> None:
    """Its characters would be taken for tags."""
    with pytest.raises(TypeError, match="at_line_start needs a collection of tags"):
        extract_markers(marker_tags(ev.Done), at_line_start="DONE")


def test_a_function_without_a_yield() -> None:
    """What it returns is known at subscription: the error is the stream's."""
    with pytest.raises(TypeError, match="it returned NoneType"):
        cuggino.run(flow(lambda: None))  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(("step", "what"), [(rx.of(1), "a stream"), (1, "int"), (None, "NoneType")])
def test_a_bare_yield(step: Any, what: str) -> None:
    """The error is thrown where the `yield` stands."""
    seen: list[str] = []

    def bare() -> Flow[None]:
        try:
            yield step
        except TypeError as error:
            seen.append(str(error))
            raise

    with pytest.raises(TypeError, match="yield from forward"):
        cuggino.run(flow(bare))
    assert what in seen[0]


def test_a_bare_yield_can_be_survived() -> None:
    """A flow that catches the error goes on."""
    t = Marbles(a="a", x="x")

    def bare() -> Flow[None]:
        try:
            yield t.cold("a|")  # type: ignore[misc]
        except TypeError:
            yield from emit("x")

    t.check(flow(bare), "(x|)")


ENDED = ev.SessionEnded(outcome="completed", cost_usd=0.5, usage=ev.Usage(input_tokens=900))
TAGS = marker_tags(ev.Note, ev.Done, ev.Approved)


def tokens(count: int) -> ev.UsageUpdate:
    return ev.UsageUpdate(usage=ev.Usage(input_tokens=count))


WORK: list[ev.Event] = [
    ev.AgentMessage(text="one", message_id="m1"),
    ev.MessageDelta(text="two", message_id="m2"),
    ev.ToolCall(name="Bash", input={}, id="t"),
    tokens(10),
    ev.ToolResult(name="t", output="out"),
]


def burst(events: Iterable[Any], *, ends: bool = True) -> Observable[Any]:
    """A source that emits all events in one action of its lane, unless it is disposed."""
    given = list(events)

    def subscribe(
        observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        is_cut = BooleanDisposable()

        def act(*_: object) -> None:
            for event in given:
                if is_cut.is_disposed:
                    return
                observer.on_next(event)
            if ends:
                observer.on_completed()

        assert scheduler is not None
        return rx.disposable.CompositeDisposable(is_cut, scheduler.schedule(act))

    return Observable(subscribe)


def one_by_one(events: Sequence[Any]) -> Observable[Any]:
    """The same events, each in an action of its own."""

    def subscribe(
        observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        return rx.from_iterable(events, scheduler).subscribe(observer, scheduler=scheduler)

    return Observable(subscribe)


def seen_of(stream: Observable[Any]) -> list[tuple[str, Any]]:
    """Return the notifications, errors as text."""
    return [
        (kind, str(value) if isinstance(value, Exception) else value)
        for _, kind, value in Marbles().record(stream)
    ]


PASSING = {
    name: operator
    for name, operator in {**EVERY, "merge_now": merge_now}.items()
    if "," not in name and name not in ("only", "repeat_on")
}
"""Operators that pass every event on once; these two choose and repeat."""


@pytest.mark.parametrize("name", PASSING)
def test_events_at_once_stay_in_order(name: str) -> None:
    """Every operator passes the events on one by one, in order."""
    expected = [("next", event) for event in [*WORK, ENDED]]
    assert [*expected, ("completed", None)] == seen_of(PASSING[name](burst([*WORK, ENDED])))


@pytest.mark.parametrize("name", PASSING)
@pytest.mark.parametrize("position", [0, 2])
def test_disposal_between_two_events_at_once(name: str, position: int) -> None:
    """Nothing comes after the event whose subscriber disposes the subscription."""
    seen: list[ev.Event] = []
    held = SerialDisposable()

    def take(event: ev.Event) -> None:
        seen.append(event)
        if event == WORK[position]:
            held.dispose()

    t = Marbles()
    stream = PASSING[name](burst([*WORK, ENDED]))
    held.disposable = stream.subscribe(take, scheduler=t.clock)
    t.clock.advance_by(1)
    assert WORK[: position + 1] == seen


def supervised(agent: Observable[Any]) -> Observable[Any]:
    """The agent with all that is around it in a stage."""
    policies: list[Any] = [
        extract_markers(TAGS, at_end=lambda e: isinstance(e, ev.Approved)),
        until_terminal(
            lambda e: isinstance(e, ev.Approved),
            linger=1,
            settle=lambda e: isinstance(e, ev.SessionEnded),
        ),
        idle_timeout(idle=60, tool=120),
        stage_timeout(3600),
        retry_session(Schedule.exponential("1s").times(1)),
        wait_for_quota(wait=False),
        within_budget(Budget(tokens=100)),
    ]
    for policy in policies:
        agent = policy(agent)
    return agent


EVENTS = st.one_of(
    st.sampled_from(
        [
            *WORK,
            ev.MessageDelta(text="Look <NOTE>", message_id="m3"),
            ev.MessageDelta(text="n</NOTE> on.", message_id="m3"),
            ev.AgentMessage(text="Look <NOTE>n</NOTE> on.", message_id="m3"),
            ev.AgentMessage(text="<DONE>d</DONE>", message_id="m4"),
            ev.AgentMessage(text="a <APPROVED>yes</APPROVED>", message_id="m5"),
            ENDED,
        ]
    ),
    st.integers(0, 120).map(tokens),
)


@given(events=st.lists(EVENTS, max_size=20))
def test_a_supervised_agent_is_the_same(events: Sequence[ev.Event]) -> None:
    """Markers, budget and endings fall on the same events, at once as one by one."""
    assert seen_of(supervised(one_by_one(events))) == seen_of(supervised(burst(events)))


def test_a_session_that_is_cut_by_its_subscriber() -> None:
    """Nothing of it follows, though the stream goes on."""
    stop: Subject[None] = Subject()
    agent = burst(WORK, ends=False)

    def story() -> Flow[None]:
        yield from forward(agent.pipe(interrupt_when(stop)))
        yield from emit(ENDED)

    seen: list[ev.Event] = []

    def take(event: ev.Event) -> None:
        seen.append(event)
        if event is WORK[1]:
            stop.on_next(None)

    t = Marbles()
    flow(story).subscribe(take, scheduler=t.clock)
    t.clock.advance_by(1)
    assert [*WORK[:2], ENDED] == seen
