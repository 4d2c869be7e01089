"""The follower: subscribes to a run, prints it, handles Ctrl-C, returns the exit code."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

from cuggino_cli import startup
from cuggino_cli.follow.exporting import exporting
from cuggino_cli.follow.output import OutputOptions, stdout_terminal
from cuggino_cli.screen.standard_output import give_up_soon

if TYPE_CHECKING:
    from reactivex import Observable

    from cuggino import Runtime
    from cuggino.events import Event, RunResult
    from cuggino_cli.screen.terminal import Terminal

INTERRUPTED = 130
STOPPING = "cuggino: stopping; Ctrl-C once more ends it at once"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The end of a followed run."""

    begun: bool
    """Whether the run has emitted anything."""
    result: RunResult | None
    """The last event, when it is a result."""
    error: BaseException | None
    """The error of the run, or what a signal raised."""
    seconds: float
    """How long it was followed."""

    @property
    def is_reported(self) -> bool:
        """Return whether the result reports the error too, so that it need not be printed again."""
        return self.result is not None and self.result.is_resumable


class View(Protocol):
    """The output of a run."""

    @property
    def output(self) -> OutputOptions:
        """The output options of the command."""

    @property
    def quietly(self) -> bool:
        """Return whether nothing is drawn below the lines."""

    @property
    def acknowledgment(self) -> str:
        """The line of this loop for a first Ctrl-C, on standard output; empty for none."""

    def operator(self, terminal: Terminal) -> Callable[[Observable[Any]], Observable[Any]]:
        """Return the operator that prints each event and passes it on."""

    def add(self, event: Event) -> None:
        """Count the event, if the view sums up."""

    def conclude(self, terminal: Terminal, ending: Ending) -> None:
        """Print the end: a summary, or how to resume."""

    def exit_code(self, ending: Ending) -> int:
        """Return the exit code of a run whose error, if any, need not be raised."""


def exit_code_of(ending: Ending) -> int:
    """Return the exit code of the result or, if the run failed, that of its error."""
    from cuggino.errors import CugginoError, Interrupted

    result, error = ending.result, ending.error
    failed = result is None or result.outcome == "failed" or isinstance(error, Interrupted)
    if failed and isinstance(error, CugginoError):
        return error.code
    return result.exit_code if result is not None else 1


def follow(
    start: Callable[[Observable[object]], Observable[Any]], view: View, runtime: Runtime
) -> int:
    """Follow a run to its end and return the exit code.

    `start` builds the run of the runtime from the Observable that interrupts it. The first Ctrl-C
    interrupts the run, which then ends its agent and reports how far it came. A second one ends the
    process at once; the guardian terminates everything it started.

    Errors are raised again after the conclusion, unless the result has reported them.
    """
    with exporting(runtime) as export:
        follower = _Follower(lambda stop: export(start(stop)), view)
        startup.end()
        with _interrupting(follower.interrupt):
            return follower.follow()


class _Follower:
    def __init__(self, start: Callable[[Observable[object]], Observable[Any]], view: View) -> None:
        from reactivex.subject import ReplaySubject

        from cuggino import LoopScheduler

        self._view = view
        self._lane = LoopScheduler()
        self._started = self._lane.now
        self._stop: ReplaySubject[object] = ReplaySubject(1)
        self._stream = start(self._stop)
        self._terminal: Terminal | None = None
        self._last: Event | None = None

    def interrupt(self) -> None:
        """Interrupt the run on its lane; called on another thread."""
        from reactivex.internal.exceptions import DisposedException

        with contextlib.suppress(DisposedException):  # the run is over
            self._lane.schedule(self._interrupt)

    def _interrupt(self, *_: object) -> None:
        from cuggino_cli.screen.fragments import Fragment

        if self._terminal is not None:
            with contextlib.suppress(OSError):  # the window was closed
                self._terminal.be_still()
                if text := self._view.acknowledgment:
                    self._terminal.print([Fragment("info", f"\n{text}")])
                self._terminal.print([Fragment("plain", STOPPING)], is_complaint=True)
        self._stop.on_next(None)

    def follow(self) -> int:
        from cuggino.errors import CugginoError, Interrupted

        error: BaseException | None = None
        try:
            self._run()
        except BaseException as failure:
            error = failure
        finally:
            self._lane.dispose()
        ending = self._ending(error)
        if self._terminal is not None and not isinstance(error, BrokenPipeError):
            with contextlib.suppress(OSError) if error else contextlib.nullcontext():
                self._view.conclude(self._terminal, ending)
        if error is None or isinstance(error, Interrupted):
            return self._view.exit_code(ending)
        if isinstance(error, CugginoError) and ending.is_reported and self._terminal is not None:
            return self._view.exit_code(ending)
        raise error

    def _ending(self, error: BaseException | None) -> Ending:
        from cuggino.events import RunResult

        last = self._last
        return Ending(
            begun=last is not None,
            result=last if isinstance(last, RunResult) else None,
            error=error,
            seconds=(self._lane.now - self._started).total_seconds(),
        )

    def _run(self) -> None:
        from cuggino import run
        from cuggino.operators import in_batches

        output = self._view.output
        if output.json:
            run(in_batches(self._stream), self._write, scheduler=self._lane)
            return
        self._terminal = stdout_terminal(output, quietly=self._view.quietly)
        shown = self._view.operator(self._terminal)
        run(in_batches(self._stream.pipe(shown)), self._note, scheduler=self._lane)

    def _note(self, events: Sequence[Event]) -> None:
        self._last = events[-1]
        for event in events:
            self._view.add(event)

    def _write(self, events: Sequence[Event]) -> None:
        self._last = events[-1]
        self._view.output.write_json(*events)


@contextlib.contextmanager
def _interrupting(interrupt: Callable[[], None]) -> Iterator[None]:
    """Call `interrupt` at the first SIGINT within the block; end the process at the second."""
    interrupted = False

    def handle(_signum: int, _frame: FrameType | None) -> None:
        nonlocal interrupted
        if interrupted:
            os._exit(INTERRUPTED)
        interrupted = True
        give_up_soon()
        # On another thread: the interrupted code may hold the locks that are needed for it.
        threading.Thread(target=interrupt, name="cuggino-interrupt", daemon=True).start()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
