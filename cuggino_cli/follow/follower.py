"""The follower: subscribes to a run, prints it, handles Ctrl-C, returns the exit code."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from reactivex import Observable
from reactivex.internal.exceptions import DisposedException
from reactivex.subject import ReplaySubject

from cuggino import LoopScheduler, Runtime, run
from cuggino.errors import CugginoError, Interrupted
from cuggino.events import Event, RunResult, RunStarted
from cuggino_cli.follow.exporting import exporting
from cuggino_cli.follow.output import plain_lines
from cuggino_cli.follow.views import Ending, View
from cuggino_cli.screen.area import KeyActions
from cuggino_cli.screen.console import INTERRUPTED
from cuggino_cli.screen.controls import Controls
from cuggino_cli.screen.fragments import Fragment
from cuggino_cli.screen.live import LiveScreen
from cuggino_cli.screen.render import with_printer
from cuggino_cli.screen.standard_output import give_up_soon
from cuggino_cli.screen.terminal import Lines, choose_live

STOPPING = "cuggino: stopping; Ctrl-C once more ends it at once"


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
        follower = _Follower(lambda stop: export(start(stop)), view, runtime)
        with _interrupting(follower.interrupt, follower.abandon):
            return follower.follow()


class _Follower:
    def __init__(
        self,
        start: Callable[[Observable[object]], Observable[Any]],
        view: View,
        runtime: Runtime,
    ) -> None:
        self._view = view
        self._lane = LoopScheduler()
        self._started = self._lane.now
        self._stop: ReplaySubject[object] = ReplaySubject(1)
        self._stream = start(self._stop)
        self._runtime = runtime
        self._plain: Lines | None = None
        self._live: LiveScreen | None = None
        self._controls: Controls | None = None
        self._last: Event | None = None

    def interrupt(self) -> None:
        """Interrupt the run on its lane; called on another thread."""
        with contextlib.suppress(DisposedException):  # the run is over
            self._lane.schedule(self._interrupt)

    def _interrupt(self, *_: object) -> None:
        if self._controls is not None:
            lines = self._controls.lines
            with contextlib.suppress(OSError):  # the window was closed
                self._controls.be_still()
                if text := self._view.acknowledgment:
                    lines.print([Fragment("info", f"\n{text}")])
                lines.print([Fragment("plain", STOPPING)], is_complaint=True)
        self._stop.on_next(None)

    def abandon(self) -> None:
        """Give the terminal back at once."""
        if self._live is not None:
            self._live.abandon()

    def follow(self) -> int:
        error: BaseException | None = None
        try:
            self._run()
        except BaseException as failure:
            error = failure
        finally:
            self._lane.dispose()
            if self._live is not None:
                with contextlib.suppress(OSError):  # the window was closed
                    self._live.stop()
        ending = self._ending(error)
        if self._plain is not None and not isinstance(error, BrokenPipeError):
            with contextlib.suppress(OSError) if error else contextlib.nullcontext():
                self._view.conclude(self._plain, ending)
                if self._rings_at(ending):
                    self._plain.append([Fragment("bell", "")])
        if error is None or isinstance(error, Interrupted):
            return self._view.exit_code(ending)
        if isinstance(error, CugginoError) and ending.is_reported and self._plain is not None:
            return self._view.exit_code(ending)
        raise error

    def _rings_at(self, ending: Ending) -> bool:
        """Return whether the bell calls for somebody at the end: whoever interrupts is there."""
        config, result = self._runtime.config, ending.result
        if not (config.rings and ending.begun):
            return False
        if ending.error is not None and not isinstance(ending.error, Exception):
            return False
        if isinstance(ending.error, Interrupted) or (result and result.outcome == "interrupted"):
            return False
        on = config.notifications.on
        return "end" in on or ("failed" in on and not (result and result.exit_code == 0))

    def _ending(self, error: BaseException | None) -> Ending:
        last = self._last
        return Ending(
            begun=last is not None,
            result=last if isinstance(last, RunResult) else None,
            error=error,
            seconds=(self._lane.now - self._started).total_seconds(),
        )

    def _run(self) -> None:
        output = self._view.output
        if output.json:
            run(self._stream, self._write, scheduler=self._lane)
            return
        self._plain = plain_lines(output.color)
        with self._opened(self._plain) as controls:
            view, cwd = self._view, self._runtime.cwd
            shown = with_printer(
                controls,
                lambda: view.printer(cwd),
                status=view.status(cwd),
                stamps=view.stamps,
                bell=view.bell,
            )
            run(self._stream.pipe(shown), self._note, scheduler=self._lane)

    @contextlib.contextmanager
    def _opened(self, plain: Lines) -> Iterator[Controls]:
        """Yield what is printed on: with a status area where the terminal can show one."""
        verbosity = self._view.output.verbosity
        if self._view.quietly or not choose_live(sys.stdout, os.environ):
            self._controls = Controls(plain, verbosity=verbosity)
            yield self._controls
            return
        has_keys = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
        actions = KeyActions(
            press=lambda key: self._soon(lambda c: c.press(key, self._lane.now)),
            steer=lambda text: self._soon(lambda c: c.steer(text, self._lane.now)),
        )
        live = self._live = LiveScreen(
            plain,
            clock=lambda: self._lane.now,
            stdin=sys.stdin if has_keys else None,
            actions=actions if has_keys else None,
            term=os.environ.get("TERM"),
        )
        self._controls = Controls(
            live,
            verbosity=verbosity,
            send=getattr(self._runtime, "send", None),
            opening=self._opening(),
            has_keys=has_keys,
        )
        with live.handling_signals():
            live.start()
            yield self._controls

    def _opening(self) -> Event:
        """Return the event that describes the run, as its journal has it."""
        config = self._runtime.config
        return RunStarted(
            run_id="",
            kind=self._view.kind,
            command="",
            focus=self._view.focus,
            agent=self._runtime.agent_name,
            options={"model": config.model, "budget": config.budget, "slots": config.slots},
        )

    def _soon(self, call: Callable[[Controls], None]) -> None:
        """Call on the lane with the controls; called on another thread."""

        def on_lane(*_: object) -> None:
            if self._controls is not None:
                call(self._controls)

        with contextlib.suppress(DisposedException):  # the run is over
            self._lane.schedule(on_lane)

    def _note(self, event: Event) -> None:
        if self._last is None:  # the programs were looked at before, the run begins with this
            self._started = self._lane.now
        self._last = event
        self._view.add(event)

    def _write(self, event: Event) -> None:
        self._last = event
        self._view.output.write_json(event)


@contextlib.contextmanager
def _interrupting(interrupt: Callable[[], None], abandon: Callable[[], None]) -> Iterator[None]:
    """Call `interrupt` at the first SIGINT within the block; end the process at the second.

    `abandon` is called just before the process ends.
    """
    interrupted = False

    def handle(_signum: int, _frame: FrameType | None) -> None:
        nonlocal interrupted
        if interrupted:
            abandon()
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
