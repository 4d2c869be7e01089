"""A session of the Agent Client Protocol as a stream of events: its program and its end."""

from __future__ import annotations

from collections.abc import Callable

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from cuggino.agents.acp.wire import AcpSession
from cuggino.agents.base.stream import HeldSession, Program, held
from cuggino.events import LlmAgentEvent
from cuggino.processes import OpenInput, process_batches

START_SECONDS = 120.0
"""Time for the program to start on its prompt; a first start may build a cache."""

LEAVE_SECONDS = 2.0
"""Time for the program to exit after its session; some never do while a tool is running."""


def acp_session(
    program: Program, session: Callable[[], AcpSession], *, drafts: bool = True
) -> Observable[LlmAgentEvent]:
    """Start the program, run the session, and emit its events, `SessionEnded` last.

    Completes when the program and everything it started has ended. Fails with an `LlmSessionError`
    after `SessionEnded`; `AgentNotFound` comes alone, as nothing was started. A breach of the guard
    terminates everything first, and so does disposal.
    """
    return held(lambda observer, lane: _Held(program, session(), observer, lane, drafts=drafts))


class _Held(HeldSession):
    """One subscription."""

    def __init__(
        self,
        program: Program,
        session: AcpSession,
        observer: abc.ObserverBase[LlmAgentEvent],
        lane: abc.SchedulerBase,
        *,
        drafts: bool,
    ) -> None:
        super().__init__(program, session, observer, lane, drafts=drafts)
        self._talk = session
        self._input = OpenInput()
        self._is_leaving = False

    def start(self) -> None:
        late = f"{self._program.argv[0]} did not begin within {START_SECONDS:g} seconds"
        self._wait(START_SECONDS, lambda: self._fail(late))
        self._process.disposable = process_batches(
            self._program.argv,
            cwd=self._program.cwd,
            env=self._program.env,
            stdin=self._input,
            enclosure=self._program.enclosure,
        ).subscribe(
            self._on_lines,
            self._on_error,
            lambda: self._guarded(self._exited),
            scheduler=self._lane,
        )
        self._input.add(self._talk.output())

    def dispose(self) -> None:
        self._is_over = True
        self._timer.dispose()
        self._process.dispose()
        self._input.close()

    def _on_lines(self, lines: list[bytes]) -> None:
        """Feed the lines to the session, emit their events, and answer the program."""
        session = self._talk
        events: list[LlmAgentEvent] = []
        for line in lines:
            if session.is_over or session.breach is not None:
                break
            events += session.feed(line, now=self._lane.now.timestamp())
        self._emit(events)
        if self._is_over:
            return
        if session.breach is not None:
            self._conclude()
            return
        self._input.add(session.output())
        if session.is_over and not self._is_leaving:
            self._is_leaving = True
            self._input.end()
            self._wait(LEAVE_SECONDS, self._conclude)
        elif session.has_begun and not self._is_leaving:
            self._timer.disposable = Disposable()
