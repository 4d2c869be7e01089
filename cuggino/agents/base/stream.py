"""Sessions as streams: a program that prints JSON lines, and a base for sessions with a link."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from functools import cache
from pathlib import Path
from typing import cast

from reactivex import Observable, abc
from reactivex.disposable import (
    BooleanDisposable,
    CompositeDisposable,
    Disposable,
    SerialDisposable,
    SingleAssignmentDisposable,
)

from cuggino.agents.base.reader import LineReader, Listener, Session
from cuggino.domain import local_zone
from cuggino.errors import (
    AgentFailed,
    AgentNotFound,
    LineTooLong,
    LlmSessionError,
    ProcessFailed,
    QuotaExceeded,
    SpawnFailed,
)
from cuggino.events import (
    AgentMessage,
    LlmAgentEvent,
    MessageDelta,
    PingEvent,
    RateLimited,
    SessionEnded,
)
from cuggino.operators.scheduler import serial
from cuggino.processes import OpenInput, process_batches
from cuggino.sandbox import Enclosure


def conclude(
    observer: abc.ObserverBase[LlmAgentEvent],
    end: Callable[[], tuple[SessionEnded, LlmSessionError | None]],
    *,
    limit: Callable[[], RateLimited | None] = lambda: None,
    failure: LlmSessionError | None = None,
) -> None:
    """Emit how the session ended: `SessionEnded`, then the error or completion.

    An exception in `end` is a defect and becomes the stream's error. A usage limit that the program
    did not report itself (`limit` is its last report) is emitted first. `failure` takes precedence
    over the error that `end` returns.
    """
    try:
        ended, error = end()
    except Exception as defect:
        observer.on_error(defect)
        return
    told = limit()
    is_told = told is not None and told.status == "rejected" and not told.overage
    if isinstance(error, QuotaExceeded) and not is_told:
        observer.on_next(RateLimited(status="rejected", resets_at=error.resets_at))
    observer.on_next(ended)
    if error := failure or error:
        observer.on_error(error)
    else:
        observer.on_completed()


def not_started(error: SpawnFailed) -> AgentNotFound:
    """Return the error of a program that could not be started; no event precedes it."""
    return AgentNotFound(error.message, hint=error.hint or "check that the program is installed")


@dataclass(frozen=True, kw_only=True)
class Program:
    """The program of one session."""

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    enclosure: Enclosure | None = None


class HeldSession(ABC):
    """A subscription to a program whose link runs on its own thread.

    Its methods run on the lane, except `_post` and `dispose`.
    """

    def __init__(
        self,
        program: Program,
        session: Session,
        observer: abc.ObserverBase[LlmAgentEvent],
        lane: abc.SchedulerBase,
        *,
        drafts: bool = True,
    ) -> None:
        self._program, self._session = program, session
        self._observer, self._lane = observer, lane
        self._coalescer = Coalescer(drafts=drafts)
        self._started = lane.now
        self._is_over = False
        self._process = SerialDisposable()
        self._timer = SerialDisposable()

    @abstractmethod
    def start(self) -> None:
        """Start the program."""

    @abstractmethod
    def dispose(self) -> None:
        """Terminate everything and wait for that; callable from any thread, repeatedly."""

    def _wait(self, seconds: float, action: Callable[[], None]) -> None:
        """Run the action later, instead of any that waits."""
        self._timer.disposable = self._lane.schedule_relative(
            seconds, lambda *_: self._guarded(action)
        )

    def _emit(self, events: Iterable[LlmAgentEvent]) -> None:
        """Emit the events that came at once, coalesced, until a subscriber has left."""
        for event in events:
            self._coalescer.add(event)
        for event in self._coalescer.events(self._lane.now.timestamp()):
            if self._is_over:
                return
            self._observer.on_next(event)

    def _post(self, action: Callable[[], None]) -> None:
        """Run an action of the other thread on the lane."""
        if self._is_over:
            return
        try:
            self._lane.schedule(lambda *_: self._guarded(action))
        except Exception:  # the scheduler is closed
            self._is_over = True

    def _guarded(self, action: Callable[[], None]) -> None:
        """End the session if a subscriber raises, and report the exception to its `on_error`."""
        if self._is_over:
            return
        try:
            action()
        except BaseException as error:
            self.dispose()
            if not isinstance(error, Exception):
                raise
            self._observer.on_error(error)

    def _on_error(self, error: Exception) -> None:
        """Handle the error of the process."""
        match error:
            case ProcessFailed():
                self._guarded(lambda: self._exited(error.child_exit_code, error.stderr_tail))
            case LineTooLong():
                self._guarded(lambda: self._fail(error.message))
            case SpawnFailed():
                self.dispose()
                self._observer.on_error(not_started(error))
            case _:
                self.dispose()
                self._observer.on_error(error)

    def _exited(self, exit_code: int = 0, stderr_tail: str = "") -> None:
        """Conclude a session whose program has ended."""
        ending = self._session.ending(
            exit_code=exit_code, stderr_tail=stderr_tail, now=self._lane.now.timestamp()
        )
        self._conclude(ending.without_result())

    def _fail(self, message: str) -> None:
        self._conclude(AgentFailed(message, reason="crash"))

    def _conclude(self, failure: LlmSessionError | None = None) -> None:
        """End the session; `failure` counts unless the program has reported its end."""
        if self._is_over:
            return
        for event in self._session.rest():
            self._observer.on_next(event)
        self.dispose()
        now = self._lane.now
        duration = (now - self._started).total_seconds()
        conclude(
            self._observer,
            lambda: self._session.end(failure=failure, duration=duration, now=now.timestamp()),
        )


def held(
    make: Callable[[abc.ObserverBase[LlmAgentEvent], abc.SchedulerBase], HeldSession],
) -> Observable[LlmAgentEvent]:
    """Start a new session for each subscription, and dispose of it with that."""

    def subscribe(
        observer: abc.ObserverBase[LlmAgentEvent], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        session = make(observer, serial(scheduler))
        try:
            session.start()
        except BaseException:
            session.dispose()
            raise
        return Disposable(session.dispose)

    return Observable(subscribe)


def hear(
    messages: Observable[str] | None, say: Callable[[str], None], lane: abc.SchedulerBase
) -> abc.DisposableBase:
    """Call `say` on the lane with each message, whichever thread sends it.

    An error of `messages` ends them, and not the session.
    """
    if messages is None:
        return Disposable()
    closed = BooleanDisposable()

    def post(text: str) -> None:
        lane.schedule(lambda *_: None if closed.is_disposed else say(text))

    ignore = lambda *_: None  # noqa: E731
    return CompositeDisposable(closed, messages.subscribe(post, ignore, ignore, scheduler=lane))


_PATIENCE = 30.0
"""Seconds without any output after which a program may be waiting for the end of its input."""


class _Talk:
    """The input of a running program, the prompt and a person's messages; used on the lane.

    If the program prints nothing at first, its input is closed early, as a wrapper may read all of
    it before starting the program. Later messages are then ignored.
    """

    def __init__(
        self, messages: Observable[str], reader: Callable[[], Listener], prompt: bytes
    ) -> None:
        self._messages, self._reader = messages, reader
        self._heard = SingleAssignmentDisposable()
        self._patience = SingleAssignmentDisposable()
        self.input = OpenInput()
        self.input.add(prompt)

    def start(self, lane: abc.SchedulerBase) -> None:
        self._heard.disposable = hear(self._messages, self._say, lane)
        self._patience.disposable = lane.schedule_relative(_PATIENCE, lambda *_: self._end())

    def _say(self, text: str) -> None:
        if not self._reader().is_over:
            self.input.add(self._reader().say(text))

    def look(self) -> None:
        """Answer the program, and end its input if it waits for that."""
        self._patience.dispose()
        reader = self._reader()
        if answers := reader.answers():
            self.input.add(answers)
        if reader.is_over:
            self._end()

    def _end(self) -> None:
        self._heard.dispose()
        self.input.end()

    def close(self) -> None:
        self._patience.dispose()
        self._heard.dispose()
        self.input.close()


def stream_json(
    argv: Sequence[str],
    *,
    program: str,
    cwd: Path,
    env: Mapping[str, str],
    stdin: str,
    session: Callable[..., LineReader],
    messages: Observable[str] | None = None,
    enclosure: Enclosure | None = None,
    drafts: bool = True,
) -> Observable[LlmAgentEvent]:
    """Run the program and emit the events of its lines, `SessionEnded` last.

    `program` is its name in messages. `session` creates the reader of the lines, from `program` and
    `zone`, which returns the time zone for times without one. It is called on the first output, so
    that its imports do not delay the program. A usage limit that appears only in the program's
    messages is emitted as `RateLimited` before `SessionEnded`. `enclosure` confines the program.

    With `messages` the reader is a `Listener`, which encodes each message. The program's input then
    stays open after `stdin` until the program reports its end. Later messages are ignored.

    For lines that arrive together, consecutive deltas of a message are joined, and a ping is
    emitted only if there is no other event. Without `drafts`, deltas are emitted only while they
    may contain a marker (see `Coalescer`).

    Completes when the process has ended, not on its result, as background tasks may still run.
    Fails with an `LlmSessionError` after `SessionEnded`, or with `AgentNotFound` alone if nothing
    was started. A breach of the guard, and disposal, first terminate the process and everything it
    started.
    """

    def subscribe(
        observer: abc.ObserverBase[LlmAgentEvent], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        def zone() -> tzinfo:
            return local_zone(env)

        lane = serial(scheduler)
        reader = cache(lambda: session(program=program, zone=zone))
        coalescer = Coalescer(drafts=drafts)
        started = lane.now

        def on_next(lines: list[bytes]) -> None:
            for event in read_lines(reader(), lines, coalescer, now=lane.now.timestamp()):
                if subscription.is_disposed:
                    return
                observer.on_next(event)
            if talk is not None:
                talk.look()
            if breach := reader().breach:
                subscription.dispose()
                end(-9, "", breach)

        def end(exit_code: int, stderr_tail: str, failure: LlmSessionError | None = None) -> None:
            if talk is not None:
                talk.close()
            now = lane.now
            conclude(
                observer,
                lambda: _with_exit_code(
                    exit_code,
                    *reader().end(
                        exit_code=exit_code,
                        stderr_tail=stderr_tail,
                        duration=(now - started).total_seconds(),
                        now=now.timestamp(),
                    ),
                ),
                limit=lambda: reader().known.limit,
                failure=failure,
            )

        def on_error(error: Exception) -> None:
            if talk is not None:
                talk.close()
            match error:
                case ProcessFailed():
                    end(error.child_exit_code, error.stderr_tail)
                case LineTooLong():
                    end(-9, "", AgentFailed(error.message, reason="crash"))
                case SpawnFailed():
                    observer.on_error(not_started(error))
                case _:
                    observer.on_error(error)

        # Lone surrogates (from a command line that is not UTF-8) cannot be encoded.
        words = stdin.encode("utf-8", "replace")
        talk = None
        if messages is not None:
            talk = _Talk(messages, cast("Callable[[], Listener]", reader), words)
        source = words if talk is None else talk.input
        subscription = SingleAssignmentDisposable()
        subscription.disposable = process_batches(
            argv, cwd=cwd, env=env, stdin=source, enclosure=enclosure
        ).subscribe(on_next, on_error, lambda: end(0, ""), scheduler=lane)
        if talk is None:
            return subscription
        talk.start(lane)
        return CompositeDisposable(subscription, Disposable(talk.close))

    return Observable(subscribe)


def _with_exit_code(
    exit_code: int, ended: SessionEnded, error: LlmSessionError | None
) -> tuple[SessionEnded, LlmSessionError | None]:
    """Add the exit code of a program that failed after a good result."""
    if exit_code and error is None:
        ended = ended.model_copy(update={"exit_code": exit_code})
    return ended, error


def read_lines(
    reader: LineReader, lines: Sequence[bytes], coalescer: Coalescer, *, now: float
) -> Iterator[LlmAgentEvent]:
    """Feed lines that came at once to the reader and yield their events, coalesced.

    Stops at a breach. An exception in the reader is a defect; it is raised after the events of
    earlier lines.
    """
    try:
        for event in reader.feed_all(lines, now=now):
            coalescer.add(event)
    finally:
        yield from coalescer.events(now)


LIFE_PERIOD = 0.2
"""Fewest seconds between two signs of life."""


class Coalescer:
    """The events of a session with fewer drafts and signs of life, as each passes all operators.

    Consecutive deltas of a message in lines that came at once are joined. A ping is emitted only
    without another event, and at most every `LIFE_PERIOD` seconds.

    Without `drafts` nobody reads a message before it is complete. Then its deltas are held back
    until one contains `<`, which may begin a marker, and dropped when the message is complete.
    """

    def __init__(self, *, drafts: bool = True) -> None:
        self._drafts = drafts
        self._events: list[LlmAgentEvent] = []
        self._is_alive = False
        self._last = -math.inf
        """The time of the last event, in seconds since the epoch."""
        self._delta: MessageDelta | None = None
        self._texts: list[str] = []
        """The texts of consecutive deltas, of which `_delta` is the first."""
        self._holds = not drafts
        """True if these deltas are held back."""

    def add(self, event: LlmAgentEvent) -> None:
        """Add the next event of the session."""
        match event:
            case PingEvent():
                self._is_alive = True
            case MessageDelta():
                self._is_alive = True
                self._add_delta(event)
            case AgentMessage() if not self._drafts and event.parent_tool_use_id is None:
                if self._holds:
                    self._delta, self._texts = None, []
                self._flush()
                self._holds = True
                self._events.append(event)
            case _:
                self._flush()
                self._events.append(event)

    def _add_delta(self, delta: MessageDelta) -> None:
        if not self._drafts and delta.parent_tool_use_id is not None:
            return
        if self._delta is not None and not _of_one_text(self._delta, delta):
            if self._holds:  # that message is discarded
                self._delta, self._texts = None, []
            self._flush()
            self._holds = not self._drafts
        self._delta = self._delta or delta
        self._texts.append(delta.text)
        if "<" in delta.text:
            self._holds = False

    def _flush(self) -> None:
        delta, texts = self._delta, self._texts
        if delta is not None and not self._holds:
            self._delta, self._texts = None, []
            joined = delta.model_copy(update={"text": "".join(texts)})
            self._events.append(joined if len(texts) > 1 else delta)

    def events(self, now: float) -> list[LlmAgentEvent]:
        """Return the events since the last call; `now` is in seconds since the epoch."""
        self._flush()
        events, self._events = self._events, []
        is_alive, self._is_alive = self._is_alive, False
        if not events and is_alive and not 0 <= now - self._last < LIFE_PERIOD:
            events = [PingEvent(timestamp=now)]
        if events:
            self._last = now
        return events


def _of_one_text(one: MessageDelta, other: MessageDelta) -> bool:
    return (one.message_id, one.parent_tool_use_id) == (other.message_id, other.parent_tool_use_id)
