"""Lines above a status area, drawn by a thread of its own that alone uses the terminal."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from types import FrameType
from typing import Any, TextIO

from cuggino_cli.screen.area import KeyActions, Shown, StatusArea
from cuggino_cli.screen.fragments import Fragment, paint
from cuggino_cli.screen.terminal import Lines, Status
from cuggino_cli.screen.waiting import WaitingLines

_START_S = 5.0
_STOP_S = 3.0
_PARK_S = 1.0
_ABANDON_S = 0.2


class LiveScreen(Lines):
    """Lines above a status area.

    Printing only queues; a thread draws. If that thread ends, for whatever reason, the lines are
    plain.

    Args:
        plain: the lines of the terminal.
        clock: the current time.
        stdin: the keyboard; None without one.
        actions: what its keys do.
        term: the kind of the terminal.
    """

    def __init__(
        self,
        plain: Lines,
        *,
        clock: Callable[[], datetime],
        stdin: TextIO | None,
        actions: KeyActions | None,
        term: str | None = None,
    ) -> None:
        super().__init__(
            plain.stream,
            color=plain.color,
            bell=plain.bell,
            is_terminal=True,
            errors=plain.errors,
            error_color=plain.error_color,
        )
        self._shown = Shown()
        self._waiting = WaitingLines(lambda: self._in_area(StatusArea.flush))
        self._leaving = threading.Event()
        self._started = threading.Event()
        self._area: StatusArea | None = None
        self._open_area: Callable[[], StatusArea] = lambda: StatusArea(
            plain,
            stdin=stdin if actions is not None else None,
            actions=actions,
            term=term,
            clock=clock,
            shown=lambda: self._shown,
            take=self._waiting.take,
            leaving=self._leaving,
        )
        self._thread = threading.Thread(target=self._run, name="cuggino-screen", daemon=True)
        self.problem: BaseException | None = None
        """The exception that ended the thread."""

    # The output, called on any thread

    @property
    def is_live(self) -> bool:
        return not self._waiting.is_closed

    def print(self, fragments: Iterable[Fragment], *, is_complaint: bool = False) -> None:
        if is_complaint and not self.complains_on_stream():
            self.complain(fragments)
            return
        self.end_line()
        self._put(paint(fragments, color=self.color, bell=self.bell) + "\n")

    def append(self, fragments: Iterable[Fragment]) -> None:
        painted = paint(fragments, color=self.color, bell=False)
        lines, newline, tail = (self._shown.tail + painted).rpartition("\n")
        self._shown = replace(self._shown, tail=tail)
        if newline:
            self._put(lines + newline)
        else:
            self._in_area(StatusArea.draw)

    def end_line(self) -> None:
        if tail := self._shown.tail:
            self._shown = replace(self._shown, tail="")
            self._put(f"{tail}\n")

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        with self._waiting.at_once():
            yield

    def show(self, status: Status | None) -> None:
        self._shown = replace(self._shown, status=status)
        self._in_area(StatusArea.draw)

    def _put(self, text: str) -> None:
        if not self._waiting.put(text):
            self._print_rest()
            self.write(text)

    def _print_rest(self) -> None:
        """Print what the thread has not come to draw."""
        if text := self._waiting.take():
            self.write(text)

    def _in_area(self, call: Callable[[StatusArea], Any]) -> None:
        """Call with the area, in its thread; there is nothing to call before it starts."""
        if (area := self._area) is not None:
            area.soon(lambda: call(area))

    # The course, in the main thread

    def start(self) -> None:
        """Start the thread; the first rows are drawn when it is ready."""
        self._thread.start()
        atexit.register(self.restore)

    def stop(self) -> None:
        """Erase the status, print the rest, and give the terminal back."""
        self._leaving.set()
        self.end_line()
        if self._thread.is_alive():
            self._started.wait(_START_S)
            self._leave(_STOP_S)
        self._waiting.close()
        self.restore()
        atexit.unregister(self.restore)
        self._print_rest()

    def abandon(self) -> None:
        """Give the terminal back at once: the process is about to exit."""
        self._leaving.set()
        if self._thread.is_alive() and self._area is not None:
            self._leave(_ABANDON_S)
        self.restore()

    def _leave(self, limit_s: float) -> None:
        self._in_area(lambda area: asyncio.ensure_future(area.leave()))
        self._thread.join(limit_s)

    def restore(self) -> None:
        """Set the terminal's mode from before the run."""
        if self._area is not None:
            self._area.restore()

    @contextlib.contextmanager
    def handling_signals(self) -> Iterator[None]:
        """Within it, the process can be suspended, and resizes of the terminal are followed."""
        before = {
            signal.SIGTSTP: signal.signal(signal.SIGTSTP, self._suspend),
            signal.SIGWINCH: signal.signal(
                signal.SIGWINCH, lambda *_: self._in_area(StatusArea.resize)
            ),
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _suspend(self, _number: int, _frame: FrameType | None) -> None:
        """Erase the status, suspend the process, and draw again when it is in the foreground."""
        parked = threading.Event()
        self._in_area(lambda area: area.park(parked))
        if self._thread.is_alive():
            parked.wait(_PARK_S)
        before = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, before)
        self._in_area(lambda area: area.resume())

    # The thread

    def _run(self) -> None:
        try:
            asyncio.run(self._draw())
        except BaseException as error:  # whatever it is, the run goes on with plain lines
            self.problem = self.problem or error
        finally:
            self._waiting.close()
            self._started.set()
            self.restore()
            with contextlib.suppress(OSError):
                self._print_rest()
                self._report()

    async def _draw(self) -> None:
        self._area = self._open_area()
        asyncio.get_running_loop().set_exception_handler(self._failed)
        self._started.set()
        await self._area.run()

    def _failed(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """End the thread after an error in one of its callbacks."""
        error = context.get("exception")
        if self.problem is None and isinstance(error, BaseException):
            self.problem = error
            if self._area is not None:
                self._area.fail(error)

    def _report(self) -> None:
        """Report what ended the thread, unless the terminal is gone or the run has ended."""
        problem = self.problem
        if problem is not None and not isinstance(problem, OSError | EOFError):
            text = f"cuggino: the status area has ended: {type(problem).__name__}: {problem}"
            self.complain([Fragment("warning", text)])
