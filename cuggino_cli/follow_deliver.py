"""Following a deliverables run to its end: its lines, Ctrl-C, and the exit code."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

from cuggino_cli.follow import INTERRUPTED, OutputOptions, stdout_terminal

if TYPE_CHECKING:
    from reactivex import Observable

    from cuggino.errors import CugginoError
    from cuggino.events import DeliverEnded, DeliverExit, DeliverStreamEvent
    from cuggino_cli.output.deliver_screen import Wording
    from cuggino_cli.output.terminal import Terminal

EXIT_CODES: Mapping[DeliverExit, int] = {
    "all_passed": 0,
    "all_verified": 0,
    "max_iterations": 11,
    "quota_exceeded": 12,
    "budget_exceeded": 13,
    "stalled": 14,
    "max_retries_exceeded": 14,
    "all_blocked": 15,
    "interrupted": INTERRUPTED,
    "failed": 1,
}
"""Exit codes by why the loop ended; that of `failed` is the error's, where there is one."""

COMPATIBLE: frozenset[DeliverExit] = frozenset(
    {"all_passed", "all_verified", "interrupted", "max_iterations"}
)
"""The ends that are 0 with `--compat-exit-codes`, as Autonoe has it; all else is 1 (AUT-244)."""

_RESUMABLE: frozenset[DeliverExit] = frozenset(
    {"interrupted", "quota_exceeded", "budget_exceeded", "failed"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """How a run is followed."""

    output: OutputOptions
    wording: Wording
    """What is shown of it."""
    debug: bool = False
    compat: bool = False
    """End with Autonoe's exit codes."""
    go_on: str = ""
    """What goes on with the run when it was cut off; empty when nothing does."""


def follow_deliver(
    start: Callable[[Observable[object]], Observable[DeliverStreamEvent]], ways: Ways
) -> int:
    """Subscribe, show every event, and say how to go on; gives the exit code.

    `start` makes the run from what interrupts it. The first Ctrl-C ends the running session and
    the loop, which then tells how far it came; a second one leaves at once. Errors are raised
    again unless the run has told them as its end.
    """
    following = _Following(start, ways)
    with _interrupting(following.interrupt):
        return following.follow()


class _Following:
    def __init__(
        self,
        start: Callable[[Observable[object]], Observable[DeliverStreamEvent]],
        ways: Ways,
    ) -> None:
        from reactivex.subject import ReplaySubject

        from cuggino import LoopScheduler

        self._ways = ways
        self._lane = LoopScheduler()
        self._stop: ReplaySubject[object] = ReplaySubject(1)
        self._stream = start(self._stop)
        self._terminal: Terminal | None = None
        self._begun = False
        self._ended: DeliverEnded | None = None

    def interrupt(self) -> None:
        """Called on a thread of its own: lets the loop end."""
        from reactivex.internal.exceptions import DisposedException

        with contextlib.suppress(DisposedException):  # it is over already
            self._lane.schedule(self._interrupt)

    def _interrupt(self, *_: object) -> None:
        if self._terminal is not None:
            from cuggino_cli.output.theme import Fragment

            with contextlib.suppress(OSError):  # the window was closed
                self._terminal.be_still()
                self._terminal.print([Fragment("info", "\nReceived SIGINT, stopping...")])
        self._stop.on_next(None)

    def follow(self) -> int:
        from cuggino.errors import CugginoError

        error: CugginoError | None = None
        try:
            self._run()
        except CugginoError as failure:
            if self._ended is None or self._terminal is None:
                raise
            error = failure
        except BaseException:
            if self._begun and self._ended is None:
                self._say_how_to_go_on()
            raise
        finally:
            self._lane.dispose()
        if self._ended is None:
            return 1
        if self._ended.reason in _RESUMABLE:
            self._say_how_to_go_on(error)
        return exit_code(self._ended.reason, error, compat=self._ways.compat)

    def _run(self) -> None:
        from cuggino import run

        if self._ways.output.json:
            run(self._stream, self._write, scheduler=self._lane)
            return
        from cuggino_cli.output.deliver_screen import with_deliver_output

        self._terminal = stdout_terminal(
            self._ways.output, quietly=self._ways.output.quiet or self._ways.debug
        )
        shown = with_deliver_output(self._terminal, self._ways.wording)
        run(self._stream.pipe(shown), self._note, scheduler=self._lane)

    def _note(self, event: DeliverStreamEvent) -> None:
        from cuggino.events import DeliverEnded

        self._begun = True
        if isinstance(event, DeliverEnded):
            self._ended = event

    def _write(self, event: DeliverStreamEvent) -> None:
        from cuggino import dump_event

        self._note(event)
        sys.stdout.write(dump_event(event) + "\n")
        sys.stdout.flush()

    def _say_how_to_go_on(self, error: CugginoError | None = None) -> None:
        """Once, at the very end; what ended the run has been told."""
        if self._terminal is None:
            return
        from cuggino_cli.output.theme import Fragment

        with contextlib.suppress(OSError):  # the window was closed
            if error is not None and error.hint:
                self._terminal.print([Fragment("plain", f"  {error.hint}")], is_complaint=True)
            if self._ways.go_on:
                self._terminal.print([Fragment("round", self._ways.go_on)])


def exit_code(
    reason: DeliverExit, error: CugginoError | None = None, *, compat: bool = False
) -> int:
    """What a command ends with whose loop ended so."""
    if compat:
        return 0 if reason in COMPATIBLE else 1
    if reason == "failed" and error is not None:
        return error.code
    return EXIT_CODES[reason]


@contextlib.contextmanager
def _interrupting(interrupt: Callable[[], None]) -> Iterator[None]:
    """Within it, the first SIGINT calls `interrupt`, and a second one ends the process.

    What the process had started is ended by the guardian then, as after any sudden death.
    """
    interrupted = False

    def handle(_signum: int, _frame: FrameType | None) -> None:
        nonlocal interrupted
        if interrupted:
            os._exit(INTERRUPTED)
        interrupted = True
        # Not here: the interrupted code may be in the midst of what would have to be locked.
        threading.Thread(target=interrupt, name="cuggino-interrupt", daemon=True).start()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
