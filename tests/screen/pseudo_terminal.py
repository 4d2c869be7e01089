"""A pseudo-terminal, and what a person sees on it and types at it."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import struct
import termios
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.limits import LIMIT
from tests.screen.screen import Screen


class PseudoTerminal:
    """A terminal whose other side, `theirs`, programs have; a thread reads what they print."""

    def __init__(self, columns: int = 80) -> None:
        self.ours, self.theirs = pty.openpty()
        self.resize(columns)
        self.before = self.mode()
        self.screen = Screen(columns)
        self.raw = ""
        self.changed = threading.Condition()
        self.is_gone = False
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        while not self.is_gone:
            try:
                text = decoder.decode(os.read(self.ours, 65536))
            except OSError:
                return
            with self.changed:
                self.raw += text
                self.screen.write(text.replace("\r\n", "\n"))
                self.changed.notify_all()

    def resize(self, columns: int) -> None:
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def mode(self) -> list[Any]:
        return termios.tcgetattr(self.theirs)

    def until(self, condition: Callable[[], Any]) -> None:
        """Wait until the condition holds."""
        ends = time.monotonic() + LIMIT
        with self.changed:
            while not condition():
                self.changed.wait(0.1)
                assert time.monotonic() < ends, self.seen()

    def hears(self, text: str) -> None:
        """Wait until the text has been printed, be it still on the screen or not."""
        self.until(lambda: text in self.raw)

    def seen(self) -> list[str]:
        """Return the lines on the screen, without spaces at their ends."""
        rows = [text.rstrip() for text in self.screen.visible()]
        return "\n".join(rows).rstrip("\n").split("\n")

    def type(self, keys: str) -> None:
        os.write(self.ours, keys.encode())

    def close(self) -> None:
        """Close it; the reader ends when no program has it any more."""
        os.close(self.theirs)
        self.reader.join(LIMIT)
        os.close(self.ours)
