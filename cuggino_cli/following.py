"""Following a loop that a person may interrupt: its lines, Ctrl-C, and the exit code."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from cuggino_cli.follow import INTERRUPTED, OutputOptions, stdout_terminal

if TYPE_CHECKING:
    from reactivex import Observable

    from cuggino.errors import CugginoError
    from cuggino_cli.output.terminal import Terminal


class Ended(Protocol):
    """The last event of such a loop."""

    @property
    def reason(self) -> str:
        """Why it is over."""


Last = TypeVar("Last", bound=Ended)

_RESUMABLE = frozenset({"interrupted", "quota_exceeded", "budget_exceeded", "failed"})
"""The ends from which a run can go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways(Generic[Last]):
    """How a run is followed."""

    output: OutputOptions
    quietly: bool
    """Draw nothing below the lines."""
    shown: Callable[[Terminal], Callable[[Observable[Any]], Observable[Any]]]
    """Shows each event on the terminal, and passes it on."""
    last: type[Last]
    exit_code: Callable[[Last, CugginoError | None], int]
    hint: Callable[[CugginoError], str | None] = lambda error: error.hint
    """What a person can do about an error that has ended the run."""
    go_on: str = ""
    """What goes on with the run when it was cut off; empty when nothing does."""


def follow_run(start: Callable[[Observable[object]], Observable[Any]], ways: Ways[Last]) -> int:
    """Subscribe, show every event, and say how to go on; gives the exit code.

    `start` makes the run from what interrupts it. The first Ctrl-C ends the running session and
    the loop, which then tells how far it came; a second one leaves at once. Errors are raised
    again unless the run has told them as its end.
    """
    following = _Following(start, ways)
    with _interrupting(following.interrupt):
        return following.follow()


class _Following(Generic[Last]):
    def __init__(
        self, start: Callable[[Observable[object]], Observable[Any]], ways: Ways[Last]
    ) -> None:
        from reactivex.subject import ReplaySubject

        from cuggino import LoopScheduler

        self._ways = ways
        self._lane = LoopScheduler()
        self._stop: ReplaySubject[object] = ReplaySubject(1)
        self._stream = start(self._stop)
        self._terminal: Terminal | None = None
        self._begun = False
        self._ended: Last | None = None

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
        return self._ways.exit_code(self._ended, error)

    def _run(self) -> None:
        from cuggino import run

        if self._ways.output.json:
            run(self._stream, self._write, scheduler=self._lane)
            return
        self._terminal = stdout_terminal(self._ways.output, quietly=self._ways.quietly)
        shown = self._ways.shown(self._terminal)
        run(self._stream.pipe(shown), self._note, scheduler=self._lane)

    def _note(self, event: Any) -> None:
        self._begun = True
        if isinstance(event, self._ways.last):
            self._ended = event

    def _write(self, event: Any) -> None:
        self._note(event)
        self._ways.output.write_json(event)

    def _say_how_to_go_on(self, error: CugginoError | None = None) -> None:
        """Once, at the very end; what ended the run has been told."""
        if self._terminal is None:
            return
        from cuggino_cli.output.theme import Fragment

        with contextlib.suppress(OSError):  # the window was closed
            if error is not None and (hint := self._ways.hint(error)):
                self._terminal.print([Fragment("plain", f"  {hint}")], is_complaint=True)
            if self._ways.go_on:
                self._terminal.print([Fragment("round", self._ways.go_on)])


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
