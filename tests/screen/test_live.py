"""The status area on a pseudo-terminal: drawing, keys, signals, and what can go wrong."""

from __future__ import annotations

import contextlib
import io
import os
import re
import select
import subprocess
import sys
import termios
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cuggino_cli.screen import live
from cuggino_cli.screen.area import KeyActions
from cuggino_cli.screen.fragments import Fragment
from cuggino_cli.screen.live import LiveScreen
from cuggino_cli.screen.terminal import Lines
from tests.cli.keyboard import ENTER, pasted
from tests.limits import LIMIT
from tests.processes.test_process_enclosed import SHELL

from .live_lines import line
from .pseudo_terminal import PseudoTerminal

ESCAPE = "\x1b"


@dataclass(frozen=True)
class Rows:
    """A status of given rows."""

    texts: Sequence[str] = ("one", "two")
    name: str = "cuggino: working"
    error: Exception | None = None

    def rows(self, now: datetime, *, columns: int, height: int) -> list[list[Fragment]]:
        if self.error is not None:
            raise self.error
        return [[Fragment("caution", text[: columns - 1])] for text in self.texts[:height]]

    def title(self) -> str:
        return self.name


class Terminal(PseudoTerminal):
    """A pseudo-terminal with a status area on it."""

    def __init__(self, columns: int = 60, *, keyboard: bool = True, color: bool = False) -> None:
        super().__init__(columns)
        self.pressed: list[str] = []
        self.steered: list[str] = []
        self.text = io.TextIOWrapper(
            io.BufferedWriter(os.fdopen(os.dup(self.theirs), "wb", buffering=0)), encoding="utf-8"
        )
        self.input = os.fdopen(os.dup(self.theirs), encoding="utf-8")
        self.errors = io.StringIO()
        plain = Lines(self.text, color=color, is_terminal=True, errors=self.errors)
        actions = KeyActions(press=self._press, steer=self._steer)
        self.live = LiveScreen(
            plain,
            clock=lambda: datetime.now(UTC),
            stdin=self.input if keyboard else None,
            actions=actions if keyboard else None,
            term="xterm",
        )

    def _press(self, key: str) -> None:
        with self.changed:
            self.pressed.append(key)
            self.changed.notify_all()

    def _steer(self, text: str) -> None:
        with self.changed:
            self.steered.append(text)
            self.changed.notify_all()

    def sees(self, *lines: str) -> None:
        """Wait until these are the last lines on the screen."""
        self.until(lambda: self.seen()[-len(lines) :] == list(lines))

    def hang_up(self) -> None:
        """Close the window; the next refresh ends the reader before that."""
        self.is_gone = True
        self.reader.join(LIMIT)
        os.close(self.ours)

    def close(self) -> None:
        self.live.stop()
        self.text.close()
        self.input.close()
        super().close()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the thread of the screen however busy the machine is."""
    monkeypatch.setattr(live, "_START_S", LIMIT)
    monkeypatch.setattr(live, "_STOP_S", LIMIT)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    terminal = Terminal()
    terminal.live.start()
    terminal.live.show(Rows())
    terminal.sees("one", "two")
    yield terminal
    terminal.close()


def opened(**options: Any) -> Terminal:
    terminal = Terminal(**options)
    terminal.live.start()
    return terminal


def test_lines_are_printed_above_the_status(terminal: Terminal) -> None:
    """Printed lines stay, and the status is always below them."""
    for number in range(30):
        terminal.live.print(line(f"line {number}"))
    terminal.sees("line 28", "line 29", "one", "two")
    assert terminal.screen.visible()[:2] == ["line 0", "line 1"]


def test_the_status_changes_in_place(terminal: Terminal) -> None:
    """A status with fewer rows leaves nothing of the one before it (trap 2)."""
    terminal.live.show(Rows(("a", "b", "c", "d")))
    terminal.sees("a", "b", "c", "d")
    terminal.live.show(Rows(("e",)))
    terminal.until(lambda: terminal.screen.visible() == ["e"])


@pytest.mark.real_agent
def test_many_lines_come_whole_and_in_order(terminal: Terminal) -> None:
    """A burst of lines is neither lost nor reordered, nor broken by the status."""
    for number in range(20_000):
        terminal.live.print(line(f"line {number}"))
    terminal.sees("line 19999", "one", "two")
    assert terminal.screen.visible()[:-2] == [f"line {number}" for number in range(20_000)]


def test_a_block_is_drawn_at_once(terminal: Terminal) -> None:
    """Lines of a block are written together, within one synchronized update."""
    with terminal.live.at_once():
        terminal.live.print(line("first"))
        terminal.live.print(line("second"))
    terminal.sees("first", "second", "one", "two")
    updates = re.findall(r"\x1b\[\?2026h(.*?)\x1b\[\?2026l", terminal.raw, re.DOTALL)
    assert [1] == [update.count("second") for update in updates if "first" in update]


def test_the_unfinished_line_is_a_row(terminal: Terminal) -> None:
    """Words that are still written are the first row; the whole line is printed."""
    terminal.live.append(line("half a "))
    terminal.sees("half a", "one", "two")
    terminal.live.append(line("line\nand "))
    terminal.sees("half a line", "and", "one", "two")
    terminal.live.end_line()
    terminal.sees("half a line", "and", "one", "two")


def test_the_end_leaves_only_the_lines() -> None:
    """At the end the status is erased, and mode, title and pasting are as before."""
    terminal = opened()
    terminal.live.show(Rows())
    terminal.live.print(line("a line"))
    terminal.sees("a line", "one", "two")
    terminal.live.stop()
    terminal.until(lambda: terminal.screen.visible() == ["a line"])
    assert terminal.mode() == terminal.before
    terminal.until(lambda: "\x1b[23;2t" in terminal.raw)
    assert terminal.raw.count("\x1b[22;2t") == terminal.raw.count("\x1b[23;2t") == 1
    assert terminal.raw.rindex("\x1b[?2004l") > terminal.raw.rindex("\x1b[?2004h")
    assert terminal.raw.rindex("\x1b[?25h") > terminal.raw.rindex("\x1b[?25l")
    terminal.live.print(line("later"))
    terminal.until(lambda: terminal.screen.visible() == ["a line", "later"])
    terminal.close()


def test_the_cursor_is_never_asked_for(terminal: Terminal) -> None:
    """No report of the cursor is requested, whose answer would come as keys (trap 1)."""
    terminal.live.print(line("a line"))
    terminal.sees("a line", "one", "two")
    assert "\x1b[6n" not in terminal.raw


def test_signals_stay_with_the_kernel(terminal: Terminal) -> None:
    """Ctrl-C and Ctrl-Z are signals; Ctrl-S and Ctrl-Q do not freeze (traps 5 and 6)."""
    flags, local = terminal.mode()[0], terminal.mode()[3]
    assert local & termios.ISIG
    assert not local & (termios.ICANON | termios.ECHO)
    assert not flags & termios.IXON


def test_a_changed_mode_is_taken_back(terminal: Terminal) -> None:
    """A program that leaves the terminal in another mode does not take the keys away."""
    ours = terminal.mode()
    termios.tcsetattr(terminal.theirs, termios.TCSANOW, terminal.before)
    terminal.live.show(Rows(("three",)))
    terminal.sees("three")
    terminal.until(lambda: terminal.mode()[:4] == ours[:4])
    terminal.type("p")
    terminal.until(lambda: terminal.pressed == ["p"])


def test_keys_are_pressed(terminal: Terminal) -> None:
    """`p`, `v` and `q` act; other keys and pasted text do not."""
    terminal.type("x" + pasted("pqv") + "p\r\tv\x1b[A" + "q")
    terminal.until(lambda: terminal.pressed[-1:] == ["q"])
    assert terminal.pressed == ["p", "v", "q"]
    assert "x" not in "".join(terminal.screen.visible())


def test_a_message_is_entered(terminal: Terminal) -> None:
    """`s` opens a row; text typed there does not act as keys, and lines appear above it."""
    terminal.type("s")
    terminal.sees("one", "two", "steer:")
    terminal.type("quit 検索 please")
    terminal.sees("one", "two", "steer: quit 検索 please")
    terminal.live.print(line("a line"))
    terminal.sees("a line", "one", "two", "steer: quit 検索 please")
    terminal.type(ENTER)
    terminal.until(lambda: terminal.steered == ["quit 検索 please"])
    terminal.sees("a line", "one", "two")
    assert terminal.pressed == []


def test_a_pasted_message_is_one_line(terminal: Terminal) -> None:
    """Newlines of a pasted text are spaces, and none of it is active."""
    terminal.type("s" + pasted("first\r\n  second\n\x1b[31mthird") + ENTER)
    terminal.until(lambda: terminal.steered)
    assert terminal.steered == ["first second ␛[31mthird"]


def test_a_message_is_cancelled(terminal: Terminal) -> None:
    """Escape closes the row and sends nothing; an empty message is none (trap 8)."""
    terminal.type("sno")
    terminal.sees("one", "two", "steer: no")
    terminal.type(ESCAPE)
    terminal.sees("one", "two")
    terminal.type("s")
    terminal.sees("one", "two", "steer:")
    terminal.type(ENTER)
    terminal.sees("one", "two")
    terminal.type("p")
    terminal.until(lambda: terminal.pressed == ["p"])
    assert terminal.steered == []


def test_without_a_keyboard_the_status_is_drawn() -> None:
    """With standard input elsewhere there are no keys, and the mode is left alone."""
    terminal = opened(keyboard=False)
    terminal.live.show(Rows())
    terminal.live.print(line("a line"))
    terminal.sees("a line", "one", "two")
    assert terminal.mode() == terminal.before
    terminal.close()


def test_a_resize_is_followed(terminal: Terminal) -> None:
    """The rows follow the columns."""
    terminal.live.show(Rows(("x" * 100,)))
    terminal.sees("x" * 59)
    terminal.resize(30)
    terminal.until(lambda: terminal.screen.visible()[-1] == "x" * 29)
    terminal.resize(50)
    terminal.until(lambda: terminal.screen.visible()[-1] == "x" * 49)


def test_without_colors_no_style_is_sent(terminal: Terminal) -> None:
    """With NO_COLOR or `--color never` attributes are reset, and never set."""
    terminal.live.print([Fragment("failure", "a line")])
    terminal.sees("a line", "one", "two")
    assert {"", "0"} >= set(re.findall(r"\x1b\[([0-9;]*)m", terminal.raw))


def test_colors_are_those_of_the_lines() -> None:
    """With colors, lines and status have those of the theme."""
    terminal = opened(color=True)
    terminal.live.show(Rows(("caution",)))
    terminal.live.print([Fragment("failure", "a line")])
    terminal.sees("a line", "caution")
    assert "\x1b[1;31ma line\x1b[0m" in terminal.raw
    assert re.search(r"\x1b\[0;33;1mcaution", terminal.raw)
    terminal.close()


def test_hostile_text_is_inert(terminal: Terminal) -> None:
    """Neither lines, rows nor the title can control the terminal."""
    hostile = "a\x1b]0;evil\x07\x1b[2J\x9b31m\u202eb"
    terminal.live.show(Rows((hostile,), name=f"cuggino: {hostile}"))
    terminal.live.print(line(hostile))
    terminal.sees("a␛]0;evil␇␛[2J\\u{9b}31m\\u{202e}b", "a␛]0;evil␇␛[2J\\u{9b}31m\\u{202e}b")
    assert "\x1b]2;cuggino: a␛]0;evil␇␛[2J\\u{9b}31m\\u{202e}b\x07" in terminal.raw
    assert not {"\x9b", "\u202e"} & set(terminal.raw)
    assert "\x1b]0;" not in terminal.raw


def test_a_status_that_fails_leaves_plain_lines(terminal: Terminal) -> None:
    """An error of the thread is reported once; all lines are printed, and the mode restored."""
    terminal.live.print(line("before"))
    terminal.live.show(Rows(error=RuntimeError("broken")))
    terminal.until(lambda: not terminal.live.is_live)
    terminal.live.print(line("after"))
    terminal.until(lambda: "after" in terminal.screen.visible())
    assert "before" in terminal.screen.visible()
    reported = "cuggino: the status area has ended: RuntimeError: broken\n"
    terminal.until(lambda: terminal.errors.getvalue() == reported)
    assert terminal.mode() == terminal.before


def test_a_closed_window_is_an_error_of_the_output() -> None:
    """When the terminal is gone, printing fails as on any closed output."""
    terminal = opened()
    terminal.live.show(Rows())
    terminal.sees("one", "two")
    terminal.hang_up()
    with pytest.raises(OSError):
        for _ in range(100_000):
            terminal.live.print(line("a line"))
    assert not terminal.live.is_live
    assert terminal.errors.getvalue() == ""
    for stream in (terminal.text, terminal.input):
        with contextlib.suppress(OSError):
            stream.close()
    os.close(terminal.theirs)


def test_complaints_go_to_another_standard_error(terminal: Terminal) -> None:
    """Complaints are written at once where standard error is not the terminal."""
    terminal.live.print(line("look out"), is_complaint=True)
    assert terminal.errors.getvalue() == "look out\n"


def test_stopping_twice_and_at_once() -> None:
    """A screen can be stopped before it has drawn, and again."""
    terminal = opened()
    terminal.live.print(line("a line"))
    terminal.live.stop()
    terminal.live.stop()
    terminal.until(lambda: terminal.screen.visible() == ["a line"])
    assert terminal.mode() == terminal.before
    assert select.select([terminal.input], [], [], 0)[0] == []
    terminal.close()


JOB = """
import sys, threading
from datetime import UTC, datetime
from cuggino_cli.follow.follower import _interrupting
from cuggino_cli.screen.fragments import Fragment
from cuggino_cli.screen import live
from cuggino_cli.screen.area import KeyActions
from cuggino_cli.screen.live import LiveScreen
from cuggino_cli.screen.terminal import Lines

live._PARK_S = 300.0  # however busy the machine is

class Status:
    def rows(self, now, *, columns, height):
        return [[Fragment("plain", "the status")]]
    def title(self):
        return "cuggino"

over = threading.Event()
def press(key):
    screen.print([Fragment("plain", f"pressed {key}")])
    if key == "q":
        over.set()

screen = LiveScreen(
    Lines(sys.stdout, color=False, is_terminal=True),
    clock=lambda: datetime.now(UTC),
    stdin=sys.stdin,
    actions=KeyActions(press=press, steer=press),
    term="xterm",
)
screen.show(Status())
def interrupt():
    screen.print([Fragment("plain", "stopping")])

with screen.handling_signals(), _interrupting(interrupt, screen.abandon):
    screen.start()
    while not over.wait(0.5):  # as `run` waits: a signal just before a wait does not end it
        pass
screen.stop()
print("left")
"""


class Shell(PseudoTerminal):
    """A shell with the job in the foreground of a terminal."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.process = subprocess.Popen(
            [sys.executable, "-c", SHELL, "-c", JOB],
            stdin=self.theirs,
            stdout=self.theirs,
            stderr=self.theirs,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(Path.cwd())},
            start_new_session=True,
        )

    def forget(self) -> None:
        with self.changed:
            self.raw = ""

    def reads_keys(self) -> None:
        """Wait until the job reads each key."""
        self.until(lambda: not self.mode()[3] & termios.ICANON)

    def close(self) -> None:
        if "ended" not in self.raw:
            self.process.kill()  # the kernel ends its job with it
        self.process.wait(LIMIT)
        super().close()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    shell.hears("the status")
    yield shell
    shell.close()


def test_a_suspended_job_gives_the_terminal_back(shell: Shell) -> None:
    """Ctrl-Z erases the status and restores the mode; in the foreground both are back."""
    shell.reads_keys()
    shell.type("\x1a")
    shell.hears("stopped")
    assert shell.mode()[:4] == shell.before[:4]
    assert re.search(r"\x1b\[J(?!.*the status)", shell.raw, re.DOTALL)
    shell.forget()
    shell.type("\n")
    shell.hears("the status")
    shell.reads_keys()
    shell.type("p")
    shell.hears("pressed p")
    shell.type("q")
    shell.hears("ended 0")
    assert shell.mode()[:4] == shell.before[:4]


def test_a_second_interrupt_gives_the_terminal_back(shell: Shell) -> None:
    """Ctrl-C is the kernel's signal; the second one ends the process with the mode restored."""
    shell.reads_keys()
    shell.type("\x03")
    shell.hears("stopping")
    shell.type("\x03")
    shell.hears("ended 130")
    assert shell.mode()[:4] == shell.before[:4]
