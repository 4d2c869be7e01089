"""The rows below the lines and their prompt, drawn with prompt_toolkit in the screen's thread."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
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
from prompt_toolkit.output import Output
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

from cuggino_cli.screen.columns import cut
from cuggino_cli.screen.fragments import paint
from cuggino_cli.screen.terminal import Lines, Status
from cuggino_cli.screen.text import flat, inert
from cuggino_cli.screen.tty import KeysInput, Mode

_REFRESH_S = 0.5
_FOREGROUND_S = 0.2
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What stands below the finished lines."""

    status: Status | None = None
    tail: str = ""
    """The unfinished line, painted."""


class StatusArea:
    """The rows below the lines of a terminal.

    It is created and used in an event loop of its own; other threads call only `soon` and
    `restore`.

    Args:
        lines: the lines of the terminal.
        stdin: the keyboard; None without one.
        actions: what its keys do.
        term: the kind of the terminal.
        clock: the current time.
        shown: what to draw.
        take: takes the lines that wait to be drawn.
        leaving: set when the area is to end.
    """

    def __init__(
        self,
        lines: Lines,
        *,
        stdin: TextIO | None,
        actions: KeyActions | None,
        term: str | None,
        clock: Callable[[], datetime],
        shown: Callable[[], Shown],
        take: Callable[[], str],
        leaving: threading.Event,
    ) -> None:
        self._color = lines.color
        self._stdin = stdin
        self._term = term
        self._clock = clock
        self._shown = shown
        self._take = take
        self._leaving = leaving
        self._mode = Mode(stdin or lines.stream)
        self._loop = asyncio.get_running_loop()
        self._resume = asyncio.Event()
        self._output = Vt100_Output.from_pty(
            lines.stream,
            term=term,
            default_color_depth=None if lines.color else ColorDepth.DEPTH_1_BIT,
        )
        self._output.enable_cpr = False  # its answers would come as keys
        self._pipe = contextlib.ExitStack()
        self._app = self._application(actions)
        self._is_parked = False
        self._drawn_rows = 0
        self._title = ""

    def _application(self, actions: KeyActions | None) -> Application[None]:
        rows = Window(
            FormattedTextControl(self._text, focusable=True, show_cursor=False),
            wrap_lines=False,
            dont_extend_height=True,
        )
        prompt = _Prompt(self._output, rows, closed=lambda: self.soon(self._shrink))
        app: Application[None] = Application(
            layout=Layout(HSplit([rows, prompt.container]), focused_element=rows),
            key_bindings=KeyBindings() if actions is None else prompt.bindings(actions),
            output=self._output,
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
        return self._pipe.enter_context(create_pipe_input())

    # On any thread

    def soon(self, call: Callable[[], Any]) -> None:
        """Call in the event loop; nothing is called after its end."""
        with contextlib.suppress(RuntimeError):  # it is closed
            self._loop.call_soon_threadsafe(call)

    def restore(self) -> None:
        """Set the terminal's mode from before the run."""
        self._mode.restore()

    # In the event loop

    async def run(self) -> None:
        """Draw until the area is told to end."""
        with self._pipe:
            self.flush()
            await self._foreground()
            if self._leaving.is_set():
                return
            self._set_title(_KEEP_TITLE)
            try:
                await self._app.run_async(handle_sigint=False, set_exception_handler=False)
            finally:
                self._set_title(_GIVE_BACK_TITLE)

    @property
    def _is_drawn(self) -> bool:
        return self._app.is_running and not self._is_parked

    async def _foreground(self) -> None:
        """Wait until the process is in the foreground; lines are printed without a status."""
        self._is_parked = True
        while not self._leaving.is_set() and not self._mode.is_foreground():
            await asyncio.sleep(_FOREGROUND_S)
        self._is_parked = False

    def flush(self) -> None:
        """Write the lines that wait and draw the rows again, in one write."""
        text = self._take()
        if not text:
            return
        output, renderer = self._output, self._app.renderer
        if not self._is_drawn:
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
            self._app._redraw()
        finally:
            output.flush = flush  # type: ignore[method-assign]
        output.write_raw(_END)
        output.flush()

    def draw(self) -> None:
        """Draw the rows again."""
        self._app.invalidate()

    def resize(self) -> None:
        """Follow a new size of the terminal."""
        if self._is_drawn:
            self._app._on_resize()

    def fail(self, error: BaseException) -> None:
        """End with this error."""
        if self._app.is_running:
            self._app.exit(exception=error)

    def park(self, parked: threading.Event) -> None:
        """Give the terminal back and set `parked`; draw again after `resume`."""
        if not self._is_drawn:
            parked.set()
            return
        self._resume.clear()

        async def park() -> None:
            self._is_parked = True
            try:
                async with in_terminal():
                    self.restore()
                    parked.set()
                    await self._resume.wait()
                    await self._foreground()
            finally:
                self._is_parked = False

        self._app.create_background_task(park())

    def resume(self) -> None:
        """Draw again when the process is in the foreground."""
        self._resume.set()

    async def leave(self) -> None:
        """Write the lines that wait and erase the rows."""
        while self._is_parked:
            self._resume.set()
            await asyncio.sleep(0.02)
        self.flush()
        if self._app.is_running:
            self._app.exit()

    # Drawing

    def _text(self) -> StyleAndTextTuples:
        size = self._output.get_size()
        shown = self._shown()
        rows: list[str] = []
        if shown.tail:
            rows.append(cut(flat(_plain_text(shown.tail))[-size.columns + 2 :], size.columns))
        if shown.status is not None and size.rows > 1:
            drawn = shown.status.rows(self._clock(), columns=size.columns, height=size.rows)
            rows += [paint(row, color=self._color, bell=False) for row in drawn]
        if len(rows) < self._drawn_rows:
            self.soon(self._shrink)
        self._drawn_rows = len(rows)
        return to_formatted_text(ANSI("\n".join(rows)))

    def _shrink(self) -> None:
        """Erase the rows when they get fewer: the renderer keeps its greatest height."""
        if self._is_drawn:
            self._app.renderer.erase()
            self._app.invalidate()

    def _before_drawing(self) -> None:
        if not self._is_parked and self._stdin is not None:
            self._mode.hold()
        status = self._shown().status
        if status is not None and (title := inert(status.title())) != self._title:
            self._title = title
            self._output.set_title(title)

    def _set_title(self, sequence: str) -> None:
        if self._term not in _NO_TITLE:
            self._output.write_raw(sequence)
            self._output.flush()


class _Prompt:
    """The row in which a message for the agent is entered.

    Args:
        output: the terminal.
        rows: what has the focus while the prompt is closed.
        closed: called when it was closed.
    """

    def __init__(self, output: Output, rows: Window, *, closed: Callable[[], None]) -> None:
        self._output = output
        self._rows = rows
        self._closed = closed
        self._is_open = False
        self._buffer = Buffer(multiline=False)
        self._window = Window(
            BufferControl(self._buffer, input_processors=[BeforeInput(self._text)]), height=1
        )
        self.container = ConditionalContainer(self._window, Condition(lambda: self._is_open))

    def bindings(self, actions: KeyActions) -> KeyBindings:
        """Return the keys: those of the run, and those of the prompt while it is open."""
        bindings = KeyBindings()
        is_open = Condition(lambda: self._is_open)

        def press(key: str) -> Callable[[KeyPressEvent], None]:
            return lambda _event: actions.press(key)

        for key in "pqv":
            bindings.add(key, filter=~is_open)(press(key))

        @bindings.add("s", filter=~is_open)
        def _open(event: KeyPressEvent) -> None:
            self._is_open = True
            event.app.layout.focus(self._window)

        @bindings.add("enter", filter=is_open)
        def _enter(event: KeyPressEvent) -> None:
            text = self._buffer.text.strip()
            self._close(event)
            if text:
                actions.steer(text)

        @bindings.add("escape", filter=is_open, eager=True)
        def _cancel(event: KeyPressEvent) -> None:
            self._close(event)

        @bindings.add(Keys.BracketedPaste)
        def _paste(event: KeyPressEvent) -> None:
            if self._is_open:
                self._buffer.insert_text(" ".join(inert(event.data).split()))

        @bindings.add(Keys.Any, filter=~is_open)
        def _ignore(_event: KeyPressEvent) -> None:
            pass

        return bindings

    def _text(self) -> str:
        wide = self._output.get_size().columns >= _WIDE
        return "steer (Enter sends, Esc cancels): " if wide else "steer: "

    def _close(self, event: KeyPressEvent) -> None:
        self._is_open = False
        self._buffer.reset()
        event.app.layout.focus(self._rows)
        self._closed()


def _plain_text(painted: str) -> str:
    """Return the text without the sequences of `paint`."""
    return re.sub(r"\x1b\[[0-9;]*m", "", painted)
