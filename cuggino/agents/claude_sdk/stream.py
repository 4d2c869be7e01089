"""A session of the Claude Agent SDK as a stream of agent events: its program, link and end."""

from __future__ import annotations

import threading
from collections.abc import Callable

from reactivex import Observable, abc
from reactivex.disposable import SerialDisposable

from cuggino.agents.base.failure import cut, local_zone
from cuggino.agents.base.guard import Guard, not_live
from cuggino.agents.base.stream import HeldSession, Program, conclude, hear, held
from cuggino.agents.claude.guard import GuardWatch
from cuggino.agents.claude.wire import ClaudeSession
from cuggino.agents.claude_sdk.guard import SdkGate
from cuggino.agents.claude_sdk.link import ClaudeSdkLink, Order
from cuggino.errors import AgentFailed, LineTooLong, LlmSessionError, ProcessFailed
from cuggino.events import LlmAgentEvent
from cuggino.guard import hook
from cuggino.sources import InputPipe, process_duplex

LOST_SECONDS = 30.0
"""Time that the program has to exit once the SDK can no longer reach it."""


Linker = Callable[..., ClaudeSdkLink]
"""Creates the link, like the class."""


def sdk_session(
    program: Program,
    order: Order,
    *,
    guard: Guard | None = None,
    manner: hook.Manner = "allow",
    link: Linker = ClaudeSdkLink,
) -> Observable[LlmAgentEvent]:
    """Start the program, connect the SDK to it, and emit the events of its lines.

    Events and end are as in `stream_json`. The verdicts of the `guard` are read among the lines,
    each before the program gets it; `manner` is the form of an approval. Disposal, and a breach of
    the guard, terminate the program, everything it started, and the link with its thread, and
    return when all of it is gone.
    """
    return held(lambda observer, lane: _Held(program, order, guard, manner, link, observer, lane))


class _Held(HeldSession):
    def __init__(
        self,
        program: Program,
        order: Order,
        guard: Guard | None,
        manner: hook.Manner,
        link: Linker,
        observer: abc.ObserverBase[LlmAgentEvent],
        lane: abc.SchedulerBase,
    ) -> None:
        super().__init__(program, observer, lane)
        self._session = ClaudeSession(
            zone=lambda: local_zone(program.env),
            guard=None if guard is None else GuardWatch(guard.token),
        )
        self._is_guarded = guard is not None
        gate: SdkGate | None = None
        if guard is not None:
            gate = SdkGate(guard=guard, manner=manner, tell=self._told)
        self._stdin = InputPipe()
        self._link = link(
            order,
            gate,
            stdin=self._stdin,
            on_error=lambda error: self._post(lambda: self._on_link_error(error)),
        )
        self._heard = SerialDisposable()
        self._messages = order.messages
        self._lock = threading.Lock()
        """Held while starting, so that nothing starts after a disposal."""

    def start(self) -> None:
        lines = process_duplex(
            self._program.argv,
            cwd=self._program.cwd,
            env=self._program.env,
            stdin=self._stdin,
            enclosure=self._program.enclosure,
        )
        self._process.disposable = lines.subscribe(
            self._on_line, self._on_error, lambda: self._end(0, ""), scheduler=self._lane
        )
        with self._lock:
            if not self._is_over:
                self._link.start()
        self._heard.disposable = hear(self._messages, self._say, self._lane)

    def dispose(self) -> None:
        """Terminate everything and wait for that; callable from any thread, repeatedly."""
        with self._lock:
            self._is_over = True
        self._timer.dispose()
        self._heard.dispose()
        # Close both ends: the program ends what the link waits for.
        self._process.dispose()
        self._link.close()

    def _say(self, text: str) -> None:
        if not (self._is_over or self._session.is_over):
            self._link.say(self._session.message(text))

    def _told(self, verdict: bytes) -> None:
        """Post the verdict from the link's thread, before the lines that result from it."""
        self._post(lambda: self._read(verdict))

    def _on_line(self, line: bytes) -> None:
        if self._is_over:
            return
        self._link.put(line)  # first, as the program may be waiting for an answer
        self._read(line)

    def _read(self, line: bytes) -> None:
        self._emit(self._session.feed(line, now=self._lane.now.timestamp()))
        if self._is_over:
            return
        if breach := self._session.breach:
            self._end(-9, "", breach)
        elif self._messages is not None and self._session.is_over:
            self._messages = None
            self._heard.dispose()
            self._link.finish()

    def _on_link_error(self, error: Exception) -> None:
        """Prefer what the program reports; without its input it ends soon."""
        failure = _named(error, guarded=self._is_guarded)
        if isinstance(error, OSError) or self._session.has_result:
            self._wait(LOST_SECONDS, lambda: self._lost(failure))
        else:
            self._end(-9, "", failure)

    def _lost(self, failure: LlmSessionError) -> None:
        self._end(-9, "", None if self._session.has_result else failure)

    def _crashed(self, error: ProcessFailed | LineTooLong) -> None:
        if isinstance(error, ProcessFailed):
            self._end(error.child_exit_code, error.stderr_tail)
        else:
            self._end(-9, "", AgentFailed(error.message, reason="crash"))

    def _end(
        self, exit_code: int, stderr_tail: str, failure: LlmSessionError | None = None
    ) -> None:
        if self._is_over:
            return
        self.dispose()
        now = self._lane.now
        conclude(
            self._observer,
            lambda: self._session.end(
                exit_code=exit_code,
                stderr_tail=stderr_tail,
                duration=(now - self._started).total_seconds(),
                now=now.timestamp(),
            ),
            limit=lambda: self._session.limit,
            failure=failure,
        )


def _named(error: Exception, *, guarded: bool) -> LlmSessionError:
    """Return the error for a failure of the SDK."""
    told = cut(str(error) or type(error).__name__)
    if guarded and "on_failure" in told:
        return not_live(told)
    return AgentFailed(f"the Claude Agent SDK failed: {told}", reason="crash")
