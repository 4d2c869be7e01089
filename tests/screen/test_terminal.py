"""Plain lines, and what a stream can show."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import termios
from collections.abc import Mapping

import pytest

from cuggino_cli.screen.columns import fit
from cuggino_cli.screen.fragments import Fragment
from cuggino_cli.screen.status import RunStatus
from cuggino_cli.screen.terminal import (
    ColorMode,
    choose_color,
    choose_interactive,
    choose_live,
)

from .live_lines import line, plain_on

LINE = [Fragment("quiet", "a line")]
BELL = [Fragment("quiet", "waiting"), Fragment("bell", "")]


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_no_controls_without_a_terminal() -> None:
    """Without a terminal only text and newlines are written: no status, bell or color."""
    stream = io.StringIO()
    lines = plain_on(stream)
    lines.show(RunStatus())
    lines.print(LINE)
    lines.print(BELL)
    lines.show(None)
    assert stream.getvalue() == "a line\nwaiting\n"


def test_forced_color_brings_no_bell() -> None:
    """Colors forced on a pipe add the theme's sequences and no other control."""
    stream = io.StringIO()
    plain_on(stream, color=True).print(BELL)
    assert stream.getvalue() == "\x1b[2mwaiting\x1b[0m\n"


def test_bell_on_a_terminal() -> None:
    """The bell rings on a terminal."""
    stream = io.StringIO()
    plain_on(stream, bell=True).print(BELL)
    assert stream.getvalue() == "waiting\x07\n"


def test_lines_of_a_block_are_written_at_once() -> None:
    """Lines of a block are one write, in order with what goes to standard error."""
    written: list[str] = []

    class Noting(io.StringIO):
        def write(self, text: str) -> int:
            written.append(text)
            return len(text)

    lines = plain_on(Noting(), errors=Noting())
    with lines.at_once():
        lines.print(line("a"))
        lines.print(line("b"))
        lines.print(line("c"), is_complaint=True)
        lines.print(line("d"))
    assert written == ["a\nb\n", "c\n", "d\n"]


def test_warning_goes_to_its_own_stream() -> None:
    """A warning is written to its own stream, in its own color."""
    stream, errors = io.StringIO(), io.StringIO()
    lines = plain_on(stream, errors=errors, error_color=True)
    lines.print([Fragment("error", "broken")], is_complaint=True)
    assert ("", "\x1b[31mbroken\x1b[0m\n") == (stream.getvalue(), errors.getvalue())
    assert not lines.complains_on_stream()


def test_warning_without_standard_error_is_a_line() -> None:
    """Without standard error a warning is printed like other lines."""
    stream = io.StringIO()
    lines = plain_on(stream)
    lines.print([Fragment("error", "broken")], is_complaint=True)
    assert "broken\n" == stream.getvalue()
    assert lines.complains_on_stream()


def test_ascii_stream() -> None:
    """A stream that cannot encode a character shows a question mark for it."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", newline="")
    lines = plain_on(stream)
    lines.print([Fragment("tool", "▶ Bash: é")])
    assert raw.getvalue() == b"? Bash: ?\n"


def test_closed_output() -> None:
    """Writing to a closed stream raises BrokenPipeError."""
    stream = io.StringIO()
    stream.close()
    with pytest.raises(BrokenPipeError):
        plain_on(stream).print(LINE)


def test_pipe_without_a_reader() -> None:
    """A pipe without a reader raises BrokenPipeError at once, since nothing is buffered."""
    reader, writer = os.pipe()
    os.close(reader)
    stream = os.fdopen(writer, "w")
    lines = plain_on(stream)
    with pytest.raises(BrokenPipeError):
        lines.print(LINE)
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


@pytest.mark.parametrize(
    ("expected", "stream", "env"),
    [
        (True, Tty(), {}),
        (True, Tty(), {"NO_COLOR": "1"}),
        (False, Tty(), {"TERM": "dumb"}),
        (False, Tty(), {"TERM": "unknown"}),
        (False, io.StringIO(), {}),
    ],
)
def test_choose_live(expected: bool, stream: io.StringIO, env: Mapping[str, str]) -> None:
    """A status area needs a terminal that can move its cursor; it may be without colors."""
    assert expected == choose_live(stream, env)


def test_long_text_is_cut_quickly() -> None:
    """Cutting a text of a million characters reads only the part that is shown."""
    assert "漢" * 39 == fit("漢" * 1_000_000, 80)


def test_height_without_a_terminal_is_24() -> None:
    """Without a terminal the height is 24 rows."""
    assert 24 == plain_on(io.StringIO()).height()


def test_choose_interactive() -> None:
    """Colors and the bell need a capable terminal without NO_COLOR."""
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
        lines = plain_on(stream)
        widths = []
        for wanted in (33, 66):
            _resize(inner, wanted)
            widths.append(lines.columns())
    assert widths == [33, 66]
    assert plain_on(io.StringIO()).columns() == 80


def _resize(fd: int, columns: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
