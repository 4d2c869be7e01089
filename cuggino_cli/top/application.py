"""The full screen of `cuggino top`: draws the rows, and carries out what the keys ask for."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Point
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import ConditionalContainer, HSplit, Layout, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.output.color_depth import ColorDepth
from reactivex import Observable

from cuggino.control import send_command
from cuggino.errors import CugginoError
from cuggino.runs import ProjectStatus
from cuggino.storage import Workspace
from cuggino_cli.options.commanding import answer
from cuggino_cli.screen.columns import cut
from cuggino_cli.screen.console import INTERRUPTED
from cuggino_cli.screen.fragments import Fragment, paint
from cuggino_cli.screen.text import flat, inert
from cuggino_cli.top.inside import Inside
from cuggino_cli.top.keys import (
    Answer,
    Close,
    LookIn,
    Quit,
    Send,
    View,
    followed,
    key_text,
    prompt_text,
    step,
)
from cuggino_cli.top.rows import Key, Subject, advice, rows, subjects, summary

_REFRESH_S = 1.0
_ESCAPE_S = 0.05
_FRAME = 2
"""Rows above and below the table."""
_NAMED = ("up", "down", "left", "right", "pageup", "pagedown", "home", "end", "enter")


class TopScreen:
    """The screen.

    Args:
        statuses: the projects, whenever one has changed.
        color: whether to use colors.
    """

    def __init__(self, statuses: Observable[tuple[ProjectStatus, ...]], *, color: bool) -> None:
        self._source = statuses
        self._color = color
        self._statuses: tuple[ProjectStatus, ...] | None = None
        self._about: list[Subject] = []
        self._view = View()
        self._inside = Inside(lambda: self._soon(self._app.invalidate), color=color)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._buffer = Buffer(multiline=False)
        self._last_row = 0
        self._app = self._application()

    def run(self) -> int:
        """Show the screen until it is left; return the exit code."""
        return asyncio.run(self._run())

    async def _run(self) -> int:
        self._loop = loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._failed)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._leave, 128 + number)
        listening = self._source.subscribe(lambda found: self._soon(lambda: self._take(found)))
        try:
            return await self._app.run_async(handle_sigint=False, set_exception_handler=False)
        finally:
            self._loop = None
            listening.dispose()
            self._inside.close()

    def _leave(self, code: int) -> None:
        if self._app.is_running and not self._app.is_done:
            self._app.exit(result=code)

    def _failed(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """End the screen with the error of a callback."""
        error = context.get("exception")
        if isinstance(error, BaseException) and self._app.is_running and not self._app.is_done:
            self._app.exit(exception=error)

    def _soon(self, call: Callable[[], object]) -> None:
        """Call in the thread of the screen; called on any."""
        if self._loop is not None:
            with suppress(RuntimeError):  # it is closed
                self._loop.call_soon_threadsafe(call)

    def _take(self, statuses: tuple[ProjectStatus, ...]) -> None:
        self._statuses, self._about = statuses, subjects(statuses)
        self._show(followed(self._view, self._about))

    def _show(self, view: View) -> None:
        if view.asking != self._view.asking:
            self._buffer.reset()
            self._app.layout.focus(self._prompt if view.asking else self._body)
        self._view = view
        self._app.invalidate()

    def _press(self, key: str) -> None:
        size = self._app.output.get_size()
        page = max(size.rows - 2 * _FRAME, 1)
        view, act = step(self._view, key, self._about, text=self._buffer.text, page=page)
        most = self._inside.count - 1
        self._show(replace(view, back=min(view.back, max(most, 0))))
        match act:
            case Send(key=to, command=command, note=note):
                self._attempt(lambda: send_command(to.project, command), note)
            case Answer(key=to, text=text):
                self._attempt(lambda: _answer(to, text), "Answered")
            case LookIn(subject=subject):
                self._inside.open(subject, lambda: self._app.output.get_size().columns)
            case Close():
                self._inside.close()
            case Quit():
                self._leave(0)
            case None:
                pass

    def _attempt(self, act: Callable[[], object], note: str) -> None:
        try:
            act()
        except (CugginoError, OSError) as error:
            note = f"Not done: {flat(str(error))}"
        self._show(replace(self._view, note=note))

    # Drawing

    def _application(self) -> Application[int]:
        is_asking = Condition(lambda: bool(self._view.asking))
        is_inside = Condition(lambda: self._view.is_inside)
        self._body = Window(
            FormattedTextControl(
                self._body_text,
                focusable=True,
                show_cursor=False,
                get_cursor_position=lambda: Point(0, self._last_row),
            ),
            wrap_lines=is_inside,
        )
        self._prompt = Window(
            BufferControl(self._buffer, input_processors=[BeforeInput(self._prompt_text)]), height=1
        )
        above = Window(FormattedTextControl(self._above), height=1)
        below = Window(FormattedTextControl(self._below), height=1)
        app: Application[int] = Application(
            layout=Layout(
                HSplit([above, self._body, ConditionalContainer(self._prompt, is_asking), below]),
                focused_element=self._body,
            ),
            key_bindings=self._bindings(is_asking),
            full_screen=True,
            color_depth=None if self._color else ColorDepth.DEPTH_1_BIT,
            refresh_interval=_REFRESH_S,
            min_redraw_interval=0.05,
            enable_page_navigation_bindings=False,
        )
        app.ttimeoutlen = _ESCAPE_S
        return app

    def _bindings(self, is_asking: Condition) -> KeyBindings:
        bindings = KeyBindings()
        is_typing = is_asking & Condition(lambda: self._view.asking != "stop")

        def press(key: str) -> Callable[[KeyPressEvent], None]:
            return lambda _event: self._press(key)

        for key in _NAMED:
            bindings.add(key, filter=~is_typing)(press(key))
        bindings.add("enter", filter=is_typing)(press("enter"))
        bindings.add("escape", eager=True)(press("escape"))

        @bindings.add(Keys.Any, filter=~is_typing)
        def _any(event: KeyPressEvent) -> None:
            self._press(event.data)

        @bindings.add(Keys.BracketedPaste)
        def _paste(event: KeyPressEvent) -> None:
            if is_typing():
                self._buffer.insert_text(" ".join(inert(event.data).split()))

        @bindings.add("c-c")
        def _interrupt(_event: KeyPressEvent) -> None:
            self._leave(INTERRUPTED)

        @bindings.add("c-z")
        def _suspend(event: KeyPressEvent) -> None:
            event.app.suspend_to_background()

        return bindings

    def _painted(self, lines: Iterable[Iterable[Fragment]]) -> StyleAndTextTuples:
        text = "\n".join(paint(line, color=self._color, bell=False) for line in lines)
        return to_formatted_text(ANSI(text))

    def _above(self) -> StyleAndTextTuples:
        columns = self._app.output.get_size().columns
        name = "cuggino top"
        if self._view.is_inside and self._view.selected is not None:
            key = self._view.selected
            title = next((one.title for one in self._about if one.key == key), key.name)
            name = flat(f"{key.project.name} · {title}")
        elif self._statuses is not None:
            name = f"{name} · {summary(self._statuses)}"
        return self._painted([[Fragment("heading", cut(name, columns))]])

    def _below(self) -> StyleAndTextTuples:
        columns = self._app.output.get_size().columns
        if self._view.note:
            return self._painted([[Fragment("caution", cut(flat(self._view.note), columns))]])
        return self._painted([[Fragment("prose", cut(key_text(self._view, columns), columns))]])

    def _prompt_text(self) -> str:
        columns = self._app.output.get_size().columns
        return prompt_text(self._view, self._about, columns)

    def _body_text(self) -> StyleAndTextTuples:
        size = self._app.output.get_size()
        height = max(size.rows - _FRAME - bool(self._view.asking), 1)
        if self._view.is_inside:
            lines = self._inside.last(height, self._view.back)
            self._last_row = max(len(lines) - 1, 0)
            return to_formatted_text(ANSI("\n".join(lines)))
        self._last_row = 0
        statuses = self._statuses
        if statuses is None:
            return self._painted([[Fragment("prose", "Looking for projects ...")]])
        hint = advice(statuses)
        below = [[], [Fragment("prose", cut(hint, size.columns))]] if hint else []
        if not statuses:
            return self._painted(below)
        head, *table = rows(statuses, datetime.now(UTC), size.columns, self._view.selected)
        keys = [subject.key for subject in self._about]
        place = keys.index(self._view.selected) if self._view.selected in keys else 0
        room = max(height - 1 - len(below), 1)
        begin = max(min(place - room // 2, len(table) - room), 0)
        return self._painted([head, *table[begin : begin + room], *below])


def _answer(key: Key, text: str) -> None:
    answer(key.project, Workspace(key.project).issue(key.name), text)
