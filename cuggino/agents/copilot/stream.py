"""A session of GitHub Copilot as a stream of agent events: its program, link and end."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import replace

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SerialDisposable

from cuggino.agents.base.stream import HeldSession, Program, hear, held
from cuggino.agents.base.wire import Json, plain_text
from cuggino.agents.copilot.failure import connection_failure
from cuggino.agents.copilot.guard import Gate
from cuggino.agents.copilot.link import CopilotLink, Order
from cuggino.agents.copilot.wire import PROGRAM, CopilotSession
from cuggino.domain import local_zone
from cuggino.errors import GuardNotLive, LlmSessionError
from cuggino.events import LlmAgentEvent
from cuggino.processes import process_lines

START_SECONDS = 120.0
"""Time for the program to start listening; its very first start unpacks a quarter of a gigabyte."""

LOST_SECONDS = 30.0
"""Time for the program to end after its connection is lost."""

_LISTENING = re.compile(r"listening on port (\d+)", re.IGNORECASE)


Linker = Callable[..., CopilotLink]
"""Creates the link, like the class."""


def copilot_session(
    program: Program,
    order: Order,
    gate: Gate,
    *,
    link: Linker = CopilotLink,
    drafts: bool = True,
) -> Observable[LlmAgentEvent]:
    """Start the program, run the session, and emit its events, `SessionEnded` last.

    All events are emitted on the scheduler given to `subscribe`. A usage limit is emitted as
    `RateLimited` before `SessionEnded`. Completes when the connection is closed and the program and
    everything it started has ended. Fails with an `LlmSessionError` after `SessionEnded`;
    `AgentNotFound` comes alone, as nothing was started. A breach of the guard terminates everything
    first, and so does disposal, which returns when all of it is gone.
    """
    return held(
        lambda observer, lane: _Held(program, order, gate, link, observer, lane, drafts=drafts)
    )


class _Held(HeldSession):
    """One subscription; `_told` runs on the link's thread."""

    def __init__(
        self,
        program: Program,
        order: Order,
        gate: Gate,
        link: Linker,
        observer: abc.ObserverBase[LlmAgentEvent],
        lane: abc.SchedulerBase,
        *,
        drafts: bool,
    ) -> None:
        session = CopilotSession(
            servers=tuple(order.mcp_servers),
            resumed=order.resume_session_id,
            zone=lambda: local_zone(program.env),
        )
        super().__init__(program, session, observer, lane, drafts=drafts)
        self._talk = session
        self._order, self._link_of = order, link
        # A gate must not outlive its session.
        self._gate = replace(gate, tell=lambda event: self._post(lambda: self._emit([event])))
        self._heard = SerialDisposable()
        self._unsent: list[str] = []
        """A person's messages, kept until the program listens."""
        self._link: CopilotLink | None = None
        self._lock = threading.Lock()
        """Held while the link starts, so that none starts after a disposal."""

    def start(self) -> None:
        late = f"{PROGRAM} did not listen within {START_SECONDS:g} seconds"
        self._wait(START_SECONDS, lambda: self._fail(late))
        self._process.disposable = process_lines(
            self._program.argv,
            cwd=self._program.cwd,
            env=self._program.env,
            enclosure=self._program.enclosure,
        ).subscribe(
            self._on_line,
            self._on_error,
            lambda: self._guarded(self._exited),
            scheduler=self._lane,
        )
        self._heard.disposable = hear(self._order.messages, self._say, self._lane)

    def _say(self, text: str) -> None:
        if self._is_over or self._session.is_over:
            return
        self._talk.say(text)
        if self._link is None:
            self._unsent.append(text)
        else:
            self._link.say(text)

    def dispose(self) -> None:
        """Terminate everything and wait for that; callable from any thread, repeatedly."""
        with self._lock:
            self._is_over = True
            link = self._link
        self._timer.dispose()
        self._heard.dispose()
        # Close both ends: the program ends what the link waits for.
        self._process.dispose()
        if link is not None:
            link.close()

    def _on_line(self, line: bytes) -> None:
        found = _LISTENING.search(plain_text(line))
        if found is None:
            self._session.plain.add(line)
        with self._lock:
            if found is None or self._link is not None or self._is_over:
                return
            self._timer.disposable = Disposable()
            self._link = self._link_of(
                self._order,
                self._gate,
                port=int(found[1]),
                on_event=self._told,
                on_end=lambda error: self._post(lambda: self._on_link_end(error)),
            )
            for text in self._unsent:
                self._link.say(text)
            self._link.start()

    def _told(self, raw: Json) -> None:
        """Post an event from the link's thread, with the breach known at that time."""
        breach = self._gate.breach
        self._post(lambda: self._on_event(raw, breach))

    def _on_event(self, raw: Json, breach: GuardNotLive | None) -> None:
        self._emit(self._talk.feed(raw, now=self._lane.now.timestamp()))
        if breach is not None:
            self._conclude(breach)
        elif self._session.is_over and self._link is not None:
            self._link.finish()

    def _on_link_end(self, error: Exception | None) -> None:
        if error is None or self._session.is_over:
            self._conclude(None)
        elif type(error).__name__ == "ProcessExitedError":
            # The program is ending and reports how, unless it keeps running.
            self._wait(LOST_SECONDS, lambda: self._conclude(self._broken(error)))
        else:
            self._conclude(self._broken(error))

    def _broken(self, error: Exception) -> LlmSessionError:
        zone = local_zone(self._program.env)
        return connection_failure(PROGRAM, error, now=self._lane.now, zone=zone)
