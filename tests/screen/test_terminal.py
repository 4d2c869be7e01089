"""What reaches a terminal: plain lines, sanitized text, durations and tables."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import termios
import unicodedata
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cuggino.events import Event
from cuggino.runs.words import format_duration, format_pause
from cuggino_cli.screen.columns import fit, width
from cuggino_cli.screen.format import format_event, numbered_lines
from cuggino_cli.screen.fragments import THEME, Fragment, Verbosity, paint
from cuggino_cli.screen.runs import outcome_text, runs_fragments
from cuggino_cli.screen.status import RunStatus
from cuggino_cli.screen.tables import Row
from cuggino_cli.screen.terminal import ColorMode, choose_color, choose_interactive, choose_live
from cuggino_cli.screen.text import inert
from tests.vectors import each

from .live_lines import line, plain_on
from .samples import all_event_types, sample

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


HOSTILE = "\x1b[2J\x1b]0;t\x07a\x08\x7f\x9b31m\u202eb\u2066\u200f\u061c\ud83d\r\n\rc\td"

texts = st.text(
    st.one_of(
        st.characters(),
        st.characters(categories=["Cc", "Cs", "Cf"]),
        st.sampled_from("\x1b\r\n\t\x07"),
    )
)


def active(text: str) -> list[str]:
    """Return the characters of the text that a terminal would act on."""
    return [
        char
        for char in text
        if (unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\t")
        or unicodedata.bidirectional(char)
        in ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")
        or char in "\u200e\u200f\u061c"
    ]


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("␛[31m", "\x1b[31m"),
        ("␀␇␈␡", "\x00\x07\x08\x7f"),
        ("\\u{9b}31m", "\x9b31m"),
        ("a\\u{202e}b\\u{2066}", "a\u202eb\u2066"),
        ("\\u{200e}\\u{200f}", "\u200e\u200f"),
        ("a\nb\n␍c", "a\r\nb\n\rc"),
        ("␍\n", "\r\r\n"),
        ("\ufffd", "\ud800"),
        ("a\tb\nc", "a\tb\nc"),
        ("👩\u200d💻 é 漢 ▶", "👩\u200d💻 é 漢 ▶"),
    ],
)
def test_active_characters_become_visible(expected: str, text: str) -> None:
    """Active characters are made visible; all others are unchanged."""
    assert expected == inert(text)


@given(texts)
def test_inert_text_has_no_active_character(text: str) -> None:
    """Only newline and tab remain of the controls, and a second pass changes nothing."""
    shown = inert(text)
    assert active(shown) == []
    assert shown == inert(shown)


@given(st.lists(st.builds(Fragment, st.sampled_from(sorted(THEME)), texts)))
def test_painted_text_has_no_active_character(fragments: list[Fragment]) -> None:
    """Plain paint keeps only newline and tab; colored paint adds only the theme's sequences."""
    assert active(paint(fragments, color=False)) == []
    uncolored = re.sub(r"\x1b\[[0-9;]*m", "", paint(fragments, color=True, bell=False))
    assert paint(fragments, color=False) == uncolored


@each("cls", all_event_types())
def test_hostile_event_is_inert(cls: type[Event]) -> None:
    """Every text field of every event is shown inert."""
    hostile: dict[str, Any] = {
        name: HOSTILE for name, field in cls.model_fields.items() if "str" in str(field.annotation)
    }
    if "input" in cls.model_fields:
        hostile["input"] = {"command": HOSTILE}
    if "outcome" in cls.model_fields:
        hostile.pop("outcome", None)
    for name, value in {
        "agents": {HOSTILE: (HOSTILE, HOSTILE)},
        "changed": [HOSTILE],
        "check": [HOSTILE],
        "commits": [(HOSTILE, HOSTILE)],
        "filenames": [HOSTILE],
        "markers": [(HOSTILE, HOSTILE)],
        "issues": [HOSTILE],
        "failed": [HOSTILE],
        "failing": [HOSTILE],
        "tried": [HOSTILE],
        "held": [HOSTILE],
        "not_held": [HOSTILE],
        "notes": [HOSTILE],
        "objections": [HOSTILE],
        "joined": [HOSTILE],
        "landed": [HOSTILE],
        "left": [HOSTILE],
        "left_out": [(HOSTILE, HOSTILE)],
        "skipping": [HOSTILE],
        "tests": [HOSTILE],
        "weakened": [HOSTILE],
        "paths": [HOSTILE],
        "findings": [HOSTILE],
        "failures": {HOSTILE: 1},
        "options": {HOSTILE: HOSTILE},
        "undone": {HOSTILE: HOSTILE},
    }.items():
        if name in hostile:
            hostile[name] = value
    for verbosity in Verbosity:
        fragments = format_event(sample(cls, **hostile), verbosity=verbosity) or []
        assert active(paint(fragments, color=False)) == []


@given(st.text(st.one_of(st.characters(), st.sampled_from("a\r\n\t\x1b\u202e\ud83d")), max_size=60))
def test_text_is_inert_however_it_is_found(text: str) -> None:
    """Text without a control character is recognized as such, and all other text is replaced."""
    found = inert(text)
    assert not {"Cc", "Cs"} & {unicodedata.category(char) for char in found if char not in "\n\t"}
    if all(char in "\n\t" or unicodedata.category(char)[0] != "C" for char in text):
        assert text == found


@given(st.lists(st.sampled_from(["a", "b\x1b", "", "\r", "d\t"]), max_size=9), st.booleans())
def test_the_first_lines_of_a_result(lines: list[str], is_windows: bool) -> None:
    """Five lines are numbered as if all of the output had been made inert."""
    output = ("\r\n" if is_windows else "\n").join(lines)
    whole = inert(output).split("\n")
    expected = [f"{number:5}→{line}" for number, line in enumerate(whole[:5], start=1)]
    if len(whole) > 5:
        expected += ["  ...", f"  (showing 5 of {len(whole)} lines)"]
    assert "\n".join(expected) == numbered_lines(output)


@pytest.mark.parametrize(
    ("expected", "seconds"),
    [
        ("0s", 0),
        ("12s", 12.9),
        ("59s", 59.99),
        ("1m 0s", 60),
        ("1m 30s", 90),
        ("59m 59s", 3599.9),
        ("1h 0m", 3600),
        ("2h 5m", 7530),
        ("26h 0m", 93600),
        ("5s", -5),
    ],
)
def test_duration(expected: str, seconds: float) -> None:
    """A duration shows its two largest units, rounded down."""
    assert expected == format_duration(seconds)


@pytest.mark.parametrize(
    ("expected", "seconds"),
    [
        ("0s", 0),
        ("0.3s", 0.25001),
        ("1.5s", 1.5),
        ("2s", 2.0),
        ("2s", 1.96),
        ("9.9s", 9.94),
        ("10s", 9.96),
        ("10s", 10.7),
        ("1m 30s", 90.5),
    ],
)
def test_pause(expected: str, seconds: float) -> None:
    """A pause below ten seconds is rounded to tenths; longer ones are normal durations."""
    assert expected == format_pause(seconds)


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (None, ""),
        ({"value": None}, ""),
        ({"value": " a\nb"}, "a"),
        ({"value": [1, "ä"]}, '[1, "ä"]'),
        ({"time": "2026"}, "2026"),
        ({"_tag": "Progress", "content": " "}, "Progress"),
        ({"_tag": "CommitFailed", "message": "no\nroom"}, "CommitFailed: no"),
        (
            {"_tag": "CheckCommandOutput", "exit_code": 1, "output": "x"},
            "CheckCommandOutput: exit code 1",
        ),
        ({"_tag": "Other"}, "Other"),
        ([1], "[1]"),
    ],
)
def test_outcomes_in_words(outcome: Any, text: str) -> None:
    """An outcome shows its tag and its main detail."""
    assert text == outcome_text(outcome)


ROWS = [
    Row(
        ("0193b2c1", "max iterations", "11-21 13:00", "2h 1m", "12", "$12.35", "scripted:some", ""),
        "caution",
        "登录 with a very long description of what there is to be done here and there " * 2,
    ),
    Row(("0193b2c2", "unreadable", "", "", "", "", "", ""), "failure", "x" * 200),
]


@pytest.mark.parametrize("columns", [20, 40, 80, 100, 120, 200])
def test_table_at_any_width(columns: int) -> None:
    """No line reaches the last column, and colors change only the colors."""
    plain = paint(runs_fragments(ROWS, columns=columns), color=False)
    assert all(width(line) < max(columns, 26) for line in plain.splitlines())
    painted = paint(runs_fragments(ROWS, columns=columns), color=True)
    assert plain != painted
    assert plain == re.sub(r"\x1b\[[0-9;]*m", "", painted)


def test_table_at_40_columns() -> None:
    """On 40 columns a run takes several lines."""
    assert [
        "0193b2c1  max iterations",
        "  11-21 13:00  2h 1m  12 iterations",
        "  $12.35  scripted:some",
        "  登录 with a very long description ...",
        "0193b2c2  unreadable",
        f"  {'x' * 34}...",
    ] == paint(runs_fragments(ROWS, columns=40), color=False).splitlines()
