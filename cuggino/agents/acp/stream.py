"""A session of the Agent Client Protocol as a stream of events: its program, judge and end."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from cuggino.agents.acp.guard import Judge
from cuggino.agents.acp.profiles import Profile
from cuggino.agents.acp.wire import AcpSession, Order, Question
from cuggino.agents.base.failure import local_zone
from cuggino.agents.base.stream import HeldSession, Program, conclude, held
from cuggino.agents.base.watch import Verdict
from cuggino.errors import AgentFailed, LineTooLong, LlmSessionError, ProcessFailed
from cuggino.events import LlmAgentEvent
from cuggino.processes import OpenInput, process_batches

START_SECONDS = 120.0
"""Time for the program to start on its prompt; a first start may build a cache."""

LEAVE_SECONDS = 2.0
"""Time for the program to exit after its session; some never do while a tool is running."""


def acp_session(
    program: Program, profile: Profile, order: Order, judge: Judge, *, drafts: bool = True
) -> Observable[LlmAgentEvent]:
    """Start the program, run the session, and emit its events, `SessionEnded` last.

    Completes when the program and everything it started has ended. Fails with an `LlmSessionError`
    after `SessionEnded`; `AgentNotFound` comes alone, as nothing was started. A breach of the guard
    terminates everything first, and so does disposal.
    """
    return held(
        lambda observer, lane: _Held(program, profile, order, judge, observer, lane, drafts=drafts)
    )


class _Held(HeldSession):
    """One subscription. Calls are judged on a thread; lines that come meanwhile wait."""

    def __init__(
        self,
        program: Program,
        profile: Profile,
        order: Order,
        judge: Judge,
        observer: abc.ObserverBase[LlmAgentEvent],
        lane: abc.SchedulerBase,
        *,
        drafts: bool,
    ) -> None:
        super().__init__(program, observer, lane, drafts=drafts)
        self._judge = judge
        self._session = AcpSession(profile, order, zone=local_zone(program.env))
        self._input = OpenInput()
        self._lines: deque[bytes] = deque()
        self._judging: threading.Thread | None = None
        self._is_leaving = False
        self._exit: Callable[[], None] | None = None
        """Handles the exit of the process, if it came while a call was being checked."""

    def start(self) -> None:
        self._wait(START_SECONDS, self._late)
        self._process.disposable = process_batches(
            self._program.argv,
            cwd=self._program.cwd,
            env=self._program.env,
            stdin=self._input,
            enclosure=self._program.enclosure,
        ).subscribe(
            self._on_lines,
            self._on_error,
            lambda: self._exited(0, "", None),
            scheduler=self._lane,
        )
        self._input.add(self._session.output())

    def dispose(self) -> None:
        """Terminate everything and wait for that; callable from any thread, repeatedly."""
        self._is_over = True
        self._timer.dispose()
        self._process.dispose()
        self._input.close()
        judging = self._judging
        if judging is not None and judging is not threading.current_thread():
            judging.join()

    def _on_lines(self, lines: list[bytes]) -> None:
        self._lines += lines
        if self._judging is None:
            self._work()

    def _work(self) -> None:
        """Feed the lines to the session until a call has to be judged, or it is over."""
        session = self._session
        events: list[LlmAgentEvent] = []
        while self._lines and session.question is None and not self._is_done:
            has_begun = session.has_begun
            events += session.feed(self._lines.popleft(), now=self._lane.now.timestamp())
            if session.has_begun and not has_begun:
                self._timer.disposable = Disposable()
        self._settle(events)

    @property
    def _is_done(self) -> bool:
        return self._session.is_over or self._session.breach is not None

    def _settle(self, events: Iterable[LlmAgentEvent]) -> None:
        """Emit the events, answer the program, and go on with what the session needs."""
        session = self._session
        self._emit(events)
        if self._is_over:
            return
        if session.breach is not None:
            self._conclude(0, "", None)
            return
        self._input.add(session.output())
        if session.question is not None:
            self._ask(session.question)
        elif session.is_over and not self._is_leaving:
            self._is_leaving = True
            self._input.end()
            self._wait(LEAVE_SECONDS, lambda: self._conclude(0, "", None))
        if self._exit is not None and session.question is None:
            self._exit()

    def _ask(self, question: Question) -> None:
        def judge() -> None:
            verdict = self._judge.verdict(question)
            self._post(lambda: self._answered(verdict))

        self._judging = threading.Thread(target=judge, name="cuggino-acp-guard", daemon=True)
        self._judging.start()

    def _answered(self, verdict: Verdict) -> None:
        self._judging = None
        self._settle(self._session.answer(verdict))
        if not self._is_over and not self._is_done:
            self._work()

    def _crashed(self, error: ProcessFailed | LineTooLong) -> None:
        if isinstance(error, ProcessFailed):
            self._exited(error.child_exit_code, error.stderr_tail, None)
        else:
            self._exited(-9, "", AgentFailed(error.message, reason="crash"))

    def _late(self) -> None:
        what = f"{self._program.argv[0]} did not begin within {START_SECONDS:g} seconds"
        self._conclude(0, "", AgentFailed(what, reason="crash"))

    def _exited(self, code: int, stderr_tail: str, failure: LlmSessionError | None) -> None:
        """End the session, once everything that the program printed was judged."""
        self._exit = lambda: self._conclude(code, stderr_tail, failure)
        if self._session.question is None:
            self._guarded(self._exit)

    def _conclude(self, code: int, stderr_tail: str, failure: LlmSessionError | None) -> None:
        if self._is_over:
            return
        for event in self._session.rest():
            self._observer.on_next(event)
        self.dispose()
        duration = (self._lane.now - self._started).total_seconds()
        conclude(
            self._observer,
            lambda: self._session.end(
                failure, exit_code=code, stderr_tail=stderr_tail, duration=duration
            ),
        )
