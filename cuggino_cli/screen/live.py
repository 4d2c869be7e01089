"""Lines above a status area, drawn by a thread of its own that alone uses the terminal."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import re
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from types import FrameType
from typing import Any, TextIO

from prompt_toolkit.application import Application
from prompt_toolkit.application.run_in_terminal import in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.input import Input, create_pipe_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import ConditionalContainer, HSplit, Layout, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

from cuggino_cli.screen.columns import cut
from cuggino_cli.screen.fragments import Fragment, paint
from cuggino_cli.screen.terminal import Lines, Status
from cuggino_cli.screen.text import flat, inert
from cuggino_cli.screen.tty import KeysInput, Mode

_LIMIT = 5_000
"""Lines that wait to be drawn; then the run waits for the terminal, as for a slow one."""
_REFRESH_S = 0.5
_START_S = 5.0
_STOP_S = 3.0
_PARK_S = 1.0
_POLL_S = 0.2
_ESCAPE_S = 0.05
"""Seconds after which Escape is a key, not the beginning of another one."""

_WIDE = 70
"""Columns from which the prompt names its keys."""

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""Synchronized output: the terminal shows everything between them at once."""
_KEEP_TITLE, _GIVE_BACK_TITLE = "\x1b[22;2t", "\x1b[23;2t"
_NO_TITLE = frozenset({"linux", "eterm-color"})


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyActions:
    """What the keys do. They are called in the thread of the screen and return at once."""

    press: Callable[[str], None]
    """`p`, `q` or `v` was pressed."""
    steer: Callable[[str], None]
    """A message for the agent was entered."""


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
        self._clock = clock
        self._stdin = stdin if actions is not None and stdin is not None else None
        self._actions = actions
        self._term = term
        self._status: Status | None = None
        self._title = ""
        self._tail = ""
        """The unfinished line of `append`, painted."""
        self._lines: deque[str] = deque()
        self._room = threading.Condition()
        self._holding = 0
        self._is_woken = False
        self._is_over = False
        self._is_leaving = False
        self._is_parked = False
        self._is_asking = False
        self._drawn_rows = 0
        self._started = threading.Event()
        self._resume: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._app: Application[None] | None = None
        self._mode: Mode | None = None
        self._thread = threading.Thread(target=self._run, name="cuggino-screen", daemon=True)
        self.problem: BaseException | None = None
        """The exception that ended the thread."""

    # The output, called on any thread

    @property
    def is_live(self) -> bool:
        return not self._is_over

    def print(self, fragments: Iterable[Fragment], *, is_complaint: bool = False) -> None:
        if is_complaint and not self.complains_on_stream():
            self.complain(fragments)
            return
        self.end_line()
        self._queue(paint(fragments, color=self.color, bell=self.bell) + "\n")

    def append(self, fragments: Iterable[Fragment]) -> None:
        lines, newline, self._tail = (
            self._tail + paint(fragments, color=self.color, bell=False)
        ).rpartition("\n")
        if newline:
            self._queue(lines + newline)
        else:
            self._invalidate()

    def end_line(self) -> None:
        if self._tail:
            tail, self._tail = self._tail, ""
            self._queue(f"{tail}\n")

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        self._holding += 1
        try:
            yield
        finally:
            self._holding -= 1
            self._wake()

    def show(self, status: Status | None) -> None:
        self._status = status
        self._invalidate()

    def _queue(self, text: str) -> None:
        with self._room:
            while len(self._lines) >= _LIMIT and not self._is_over:
                self._wake()
                self._room.wait(_POLL_S)
            if not self._is_over:
                self._lines.append(text)
                text = ""
        if text:
            self._print_rest()
            self.write(text)
        else:
            self._wake()

    def _wake(self) -> None:
        with self._room:
            if self._holding and len(self._lines) < _LIMIT:
                return
            if self._is_woken or not self._lines:
                return
            self._is_woken = True
        self._soon(self._flush)

    def _invalidate(self) -> None:
        if self._app is not None:
            self._soon(self._app.invalidate)

    def _soon(self, call: Callable[[], Any]) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it is closed
                self._loop.call_soon_threadsafe(call)

    def _take(self) -> str:
        with self._room:
            text = "".join(self._lines)
            self._lines.clear()
            self._is_woken = False
            self._room.notify_all()
        return text

    def _print_rest(self) -> None:
        """Print what the thread has not come to draw."""
        if text := self._take():
            self.write(text)

    # The course, in the main thread

    def start(self) -> None:
        """Start the thread; the first rows are drawn when it is ready."""
        self._thread.start()
        atexit.register(self.restore)

    def stop(self) -> None:
        """Erase the status, print the rest, and give the terminal back."""
        self._is_leaving = True
        self.end_line()
        if self._thread.is_alive():
            self._started.wait(_START_S)
            self._soon(lambda: asyncio.ensure_future(self._leave()))
            self._thread.join(_STOP_S)
        self._is_over = True
        self.restore()
        atexit.unregister(self.restore)
        self._print_rest()

    def restore(self) -> None:
        """Set the terminal's mode from before the run."""
        if self._mode is not None:
            self._mode.restore()

    def abandon(self) -> None:
        """Give the terminal back at once: the process is about to exit."""
        self._is_leaving = True
        if self._thread.is_alive() and self._loop is not None:
            self._soon(lambda: asyncio.ensure_future(self._leave()))
            self._thread.join(_POLL_S)
        self.restore()

    @contextlib.contextmanager
    def handling_signals(self) -> Iterator[None]:
        """Within it, the process can be suspended, and resizes of the terminal are followed."""
        before = {
            signal.SIGTSTP: signal.signal(signal.SIGTSTP, self._suspend),
            signal.SIGWINCH: signal.signal(signal.SIGWINCH, lambda *_: self._soon(self._resized)),
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _suspend(self, _number: int, _frame: FrameType | None) -> None:
        """Erase the status, suspend the process, and draw again when it is in the foreground."""
        parked = threading.Event()
        self._soon(lambda: self._park(parked))
        if self._thread.is_alive():
            parked.wait(_PARK_S)
        before = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, before)
        self._soon(lambda: self._resume.set() if self._resume is not None else None)

    # The thread

    def _run(self) -> None:
        try:
            asyncio.run(self._draw())
        except BaseException as error:  # whatever it is, the run goes on with plain lines
            self.problem = self.problem or error
        finally:
            with self._room:
                self._is_over = True
                self._room.notify_all()
            self._started.set()
            self.restore()
            with contextlib.suppress(OSError):
                self._print_rest()
                self._report()

    def _report(self) -> None:
        """Report what ended the thread, unless the terminal is gone or the run has ended."""
        problem = self.problem
        if problem is not None and not isinstance(problem, OSError | EOFError):
            text = f"cuggino: the status area has ended: {type(problem).__name__}: {problem}"
            self.complain([Fragment("warning", text)])

    def _failed(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """End the thread after an error in one of its callbacks."""
        error = context.get("exception")
        if self.problem is None and isinstance(error, BaseException):
            self.problem = error
            if self._app is not None and self._app.is_running:
                self._app.exit(exception=error)

    async def _draw(self) -> None:
        self._mode = Mode(self._stdin or self.stream)
        self._app = app = self._application()
        self._resume = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._failed)
        self._started.set()
        self._flush()
        await self._foreground()
        if self._is_leaving:
            return
        self._set_title(_KEEP_TITLE)
        try:
            await app.run_async(handle_sigint=False, set_exception_handler=False)
        finally:
            self._set_title(_GIVE_BACK_TITLE)

    async def _foreground(self) -> None:
        """Wait until the process is in the foreground; lines are printed without a status."""
        assert self._mode is not None
        self._is_parked = True
        while not self._is_leaving and not self._mode.is_foreground():
            await asyncio.sleep(_POLL_S)
        self._is_parked = False

    def _application(self) -> Application[None]:
        output = Vt100_Output.from_pty(
            self.stream,
            term=self._term,
            default_color_depth=None if self.color else ColorDepth.DEPTH_1_BIT,
        )
        output.enable_cpr = False  # its answers would come as keys
        is_asking = Condition(lambda: self._is_asking)
        self._output = output
        self._buffer: Buffer = Buffer(multiline=False)
        self._prompt: Window = Window(
            BufferControl(self._buffer, input_processors=[BeforeInput(self._prompt_text)]), height=1
        )
        self._rows: Window = Window(
            FormattedTextControl(self._status_text, focusable=True, show_cursor=False),
            wrap_lines=False,
            dont_extend_height=True,
        )
        app: Application[None] = Application(
            layout=Layout(
                HSplit([self._rows, ConditionalContainer(self._prompt, is_asking)]),
                focused_element=self._rows,
            ),
            key_bindings=self._bindings(),
            output=output,
            input=self._input(),
            refresh_interval=_REFRESH_S,
            terminal_size_polling_interval=0.25,
            min_redraw_interval=0.05,
            erase_when_done=True,
            enable_page_navigation_bindings=False,
        )
        app.ttimeoutlen = _ESCAPE_S
        app.before_render += lambda _app: self._before_drawing()
        return app

    def _input(self) -> Input:
        if self._stdin is not None:
            return KeysInput(self._stdin)

        # A `DummyInput` would end the application at once.
        self._no_keys = create_pipe_input()
        return self._no_keys.__enter__()

    def _bindings(self) -> Any:
        bindings = KeyBindings()
        actions = self._actions
        if actions is None:
            return bindings
        is_asking = Condition(lambda: self._is_asking)

        def press(key: str) -> Callable[[KeyPressEvent], None]:
            return lambda _event: actions.press(key)

        for key in "pqv":
            bindings.add(key, filter=~is_asking)(press(key))

        @bindings.add("s", filter=~is_asking)
        def _open(event: KeyPressEvent) -> None:
            self._is_asking = True
            event.app.layout.focus(self._prompt)

        @bindings.add("enter", filter=is_asking)
        def _enter(event: KeyPressEvent) -> None:
            text = self._buffer.text.strip()
            self._close_prompt(event)
            if text:
                actions.steer(text)

        @bindings.add("escape", filter=is_asking, eager=True)
        def _cancel(event: KeyPressEvent) -> None:
            self._close_prompt(event)

        @bindings.add(Keys.BracketedPaste)
        def _paste(event: KeyPressEvent) -> None:
            if self._is_asking:
                self._buffer.insert_text(" ".join(inert(event.data).split()))

        @bindings.add(Keys.Any, filter=~is_asking)
        def _ignore(_event: KeyPressEvent) -> None:
            pass

        return bindings

    def _prompt_text(self) -> str:
        wide = self._output.get_size().columns >= _WIDE
        return "steer (Enter sends, Esc cancels): " if wide else "steer: "

    def _close_prompt(self, event: KeyPressEvent) -> None:
        self._is_asking = False
        self._buffer.reset()
        event.app.layout.focus(self._rows)
        self._soon(self._shrink)

    def _status_text(self) -> StyleAndTextTuples:
        size = self._output.get_size()
        status = self._status
        rows: list[str] = []
        if self._tail:
            rows.append(cut(flat(_plain_text(self._tail))[-size.columns + 2 :], size.columns))
        if status is not None and size.rows > 1:
            drawn = status.rows(self._clock(), columns=size.columns, height=size.rows)
            rows += [paint(row, color=self.color, bell=False) for row in drawn]
        self._note_height(len(rows))
        return to_formatted_text(ANSI("\n".join(rows)))

    def _note_height(self, rows: int) -> None:
        """Erase the status when it gets lower: the renderer keeps its greatest height."""
        if rows < self._drawn_rows and self._app is not None:
            self._soon(self._shrink)
        self._drawn_rows = rows

    def _shrink(self) -> None:
        app = self._app
        if app is not None and app.is_running and not self._is_parked:
            app.renderer.erase()
            app.invalidate()

    def _before_drawing(self) -> None:
        assert self._mode is not None
        if not self._is_parked and self._stdin is not None:
            self._mode.hold()
        status = self._status
        if status is not None and (title := inert(status.title())) != self._title:
            self._title = title
            self._output.set_title(title)

    def _set_title(self, sequence: str) -> None:
        if self._term not in _NO_TITLE:
            self._output.write_raw(sequence)
            self._output.flush()

    def _flush(self) -> None:
        """Write the queued lines and draw the status again, in one write."""
        app, text = self._app, self._take()
        if not text or app is None:
            return
        output, renderer = self._output, app.renderer
        if not app.is_running or self._is_parked:
            output.write_raw(text)
            output.flush()
            return
        cursor = renderer._cursor_pos
        output.write_raw(_BEGIN)
        output.cursor_backward(cursor.x)
        output.cursor_up(cursor.y)
        output.erase_down()
        output.write_raw("\x1b[0m\x1b[?7h")
        output.write_raw(text.replace("\n", "\r\n"))
        flush = output.flush  # the renderer flushes, but the frame is to come at once
        output.flush = lambda: None  # type: ignore[method-assign]
        try:
            renderer.reset()
            app._redraw()
        finally:
            output.flush = flush  # type: ignore[method-assign]
        output.write_raw(_END)
        output.flush()

    def _resized(self) -> None:
        app = self._app
        if app is not None and app.is_running and not self._is_parked:
            app._on_resize()

    def _park(self, parked: threading.Event) -> None:
        app, resume = self._app, self._resume
        if app is None or resume is None or not app.is_running or self._is_parked:
            parked.set()
            return
        resume.clear()

        async def park() -> None:
            self._is_parked = True
            try:
                async with in_terminal():
                    self.restore()
                    parked.set()
                    await resume.wait()
                    await self._foreground()
            finally:
                self._is_parked = False

        app.create_background_task(park())

    async def _leave(self) -> None:
        while self._is_parked and self._resume is not None:
            self._resume.set()
            await asyncio.sleep(0.02)
        self._flush()
        if self._app is not None and self._app.is_running:
            self._app.exit()


def _plain_text(painted: str) -> str:
    """Return the text without the sequences of `paint`."""
    return re.sub(r"\x1b\[[0-9;]*m", "", painted)
