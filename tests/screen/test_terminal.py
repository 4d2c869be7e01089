"""The terminal writer: permanent lines and a spinner that leaves nothing behind."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import termios
from collections.abc import Mapping

import pytest
from hypothesis import given, strategies as st

from cuggino_cli.screen.fragments import Fragment
from cuggino_cli.screen.spinner import spinner_line
from cuggino_cli.screen.terminal import (
    ColorMode,
    Terminal,
    choose_color,
    choose_interactive,
    columns_of,
)
from cuggino_cli.screen.text import width

from .screen import Screen

LINE = [Fragment("phase", "a line")]
BELL = [Fragment("watch", "waiting"), Fragment("bell", "")]


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal_on(stream: io.StringIO, *, interactive: bool = True, columns: int = 80) -> Terminal:
    return Terminal(stream, color=False, interactive=interactive, columns=lambda: columns)


def follow(screen: Screen) -> Terminal:
    return Terminal(screen, color=False, interactive=True, columns=lambda: screen.columns)


def test_print_replaces_the_spinner() -> None:
    """A line erases the spinner, which is then written again without a newline."""
    stream = io.StringIO()
    terminal = terminal_on(stream)
    terminal.spin("one")
    terminal.spin("two")
    terminal.print(LINE)
    terminal.print(LINE)
    erase = "\x1b[2K\r"
    assert f"{erase}one{erase}two{erase}a line\na line\n" == stream.getvalue()


def test_clear_once() -> None:
    """Clearing erases a visible spinner and writes nothing otherwise."""
    stream = io.StringIO()
    terminal = terminal_on(stream)
    terminal.clear()
    assert stream.getvalue() == ""
    terminal.spin("one")
    terminal.clear()
    terminal.clear()
    assert stream.getvalue() == "\x1b[2K\rone\x1b[2K\r"


def test_no_controls_without_a_terminal() -> None:
    """Without a terminal there is no spinner, bell or color: only text and newlines."""
    stream = io.StringIO()
    terminal = terminal_on(stream, interactive=False)
    terminal.spin("one")
    terminal.print(LINE)
    terminal.print(BELL)
    terminal.clear()
    assert stream.getvalue() == "a line\nwaiting\n"


def test_forced_color_brings_no_spinner_and_no_bell() -> None:
    """Colors forced on a pipe add the theme's sequences and no other control."""
    stream = io.StringIO()
    terminal = Terminal(stream, color=True, interactive=False, columns=lambda: 80)
    terminal.spin("one")
    terminal.print(BELL)
    assert stream.getvalue() == "\x1b[2mwaiting\x1b[0m\n"


def test_bell_on_a_terminal() -> None:
    """The bell rings on a terminal."""
    stream = io.StringIO()
    terminal_on(stream).print(BELL)
    assert stream.getvalue() == "waiting\x07\n"


def test_spinner_is_one_inert_line() -> None:
    """Text of the spinner cannot break its line or control the terminal."""
    stream = io.StringIO()
    terminal_on(stream).spin("a\nb\t\x1b[31m")
    assert stream.getvalue() == "\x1b[2K\ra b ␛[31m"


@pytest.mark.parametrize("columns", [0, 1, 2, 5, 10, 13, 14, 15, 40, 80])
def test_spinner_never_reaches_the_last_column(columns: int) -> None:
    """The spinner is cut to be narrower than the terminal."""
    line = spinner_line(2, 90, columns=columns)
    assert width(line) <= max(columns - 1, 0)
    assert "⠹ Working... (1m 30s)".startswith(line)


def test_ten_columns() -> None:
    """On ten columns nine are used, also by wide characters."""
    assert spinner_line(0, 0, columns=10) == "⠋ Working"
    stream = io.StringIO()
    terminal_on(stream, columns=10).spin("漢字漢字漢字")
    assert stream.getvalue() == "\x1b[2K\r漢字漢字"


def test_shrunk_terminal_is_left_clean() -> None:
    """A spinner wrapped by a narrower terminal is erased with all its rows."""
    screen = Screen(40)
    terminal = follow(screen)
    terminal.print([Fragment("plain", "before")])
    terminal.spin(spinner_line(2, 90, columns=terminal.columns()))
    screen.resize(8)
    terminal.spin(spinner_line(3, 91, columns=terminal.columns()))
    assert screen.visible() == ["before", "⠸ Worki"]
    terminal.print([Fragment("plain", "after")])
    assert screen.visible() == ["before", "after"]


def test_grown_terminal_is_followed() -> None:
    """A wider terminal shows more of the spinner at the next tick."""
    screen = Screen(8)
    terminal = follow(screen)
    terminal.spin(spinner_line(0, 5, columns=terminal.columns()))
    screen.columns = 40
    terminal.spin(spinner_line(1, 5, columns=terminal.columns()))
    assert screen.visible() == ["⠙ Working... (5s)"]


@given(
    st.lists(
        st.one_of(st.sampled_from(["print", "spin", "clear"]), st.integers(4, 60)), max_size=30
    )
)
def test_any_sequence_leaves_only_the_lines(steps: list[str | int]) -> None:
    """Any sequence of drawing, printing and resizing leaves only lines."""
    screen = Screen(60)
    terminal = follow(screen)
    printed = []
    for number, step in enumerate(steps):
        if step == "print":
            printed.append(f"L{number}")
            terminal.print([Fragment("plain", f"L{number}")])
        elif step == "spin":
            terminal.spin(spinner_line(number, number, columns=terminal.columns()))
        elif step == "clear":
            terminal.clear()
        elif isinstance(step, int):
            screen.resize(step)
    terminal.clear()
    assert "\n".join(printed) == "\n".join(screen.visible())


def test_ascii_stream() -> None:
    """A stream that cannot encode a character shows a question mark for it."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", newline="")
    terminal = Terminal(stream, color=False, interactive=False, columns=lambda: 80)
    terminal.print([Fragment("tool", "▶ Bash: é")])
    assert raw.getvalue() == b"? Bash: ?\n"


def test_closed_output() -> None:
    """Writing to a closed stream raises BrokenPipeError."""
    stream = io.StringIO()
    stream.close()
    with pytest.raises(BrokenPipeError):
        terminal_on(stream).print(LINE)


def test_pipe_without_a_reader() -> None:
    """A pipe without a reader raises BrokenPipeError at once, since nothing is buffered."""
    reader, writer = os.pipe()
    os.close(reader)
    stream = os.fdopen(writer, "w")
    terminal = Terminal(stream, color=False, interactive=False, columns=lambda: 80)
    with pytest.raises(BrokenPipeError):
        terminal.print(LINE)
    with pytest.raises(BrokenPipeError):
        stream.close()  # the unwritten line is still in the stream
    assert stream.closed


@pytest.mark.parametrize(
    ("expected", "mode", "stream", "env"),
    [
        (True, "auto", Tty(), {}),
        (True, "auto", Tty(), {"NO_COLOR": "", "TERM": "xterm"}),
        (False, "auto", Tty(), {"NO_COLOR": "1"}),
        (False, "auto", Tty(), {"TERM": "dumb"}),
        (False, "auto", io.StringIO(), {}),
        (True, "always", io.StringIO(), {"NO_COLOR": "1", "TERM": "dumb"}),
        (False, "never", Tty(), {}),
    ],
)
def test_choose_color(
    expected: bool, mode: ColorMode, stream: io.StringIO, env: Mapping[str, str]
) -> None:
    """An explicit mode wins; otherwise a capable terminal is colored unless NO_COLOR is set."""
    assert expected == choose_color(mode, stream, env)


def test_choose_interactive() -> None:
    """Spinner and bell need a capable terminal without NO_COLOR."""
    assert [
        choose_interactive(Tty(), {}),
        choose_interactive(Tty(), {"NO_COLOR": "1"}),
        choose_interactive(Tty(), {"TERM": "dumb"}),
        choose_interactive(io.StringIO(), {}),
    ] == [True, False, False, False]


def test_columns_of_a_terminal() -> None:
    """The width of a terminal is read each time; a stream without one has 80 columns."""
    outer, inner = pty.openpty()
    with os.fdopen(outer, "rb", buffering=0), os.fdopen(inner, "w") as stream:
        columns = columns_of(stream)
        widths = []
        for wanted in (33, 66):
            _resize(inner, wanted)
            widths.append(columns())
    assert widths == [33, 66]
    assert columns_of(io.StringIO())() == 80


def _resize(fd: int, columns: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
