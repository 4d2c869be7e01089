"""The terminal in the hands of another program, and intact afterwards, however that one ends."""

from __future__ import annotations

import os
import signal
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

_USUAL = (
    "\x1b[0m"  # no colours
    "\x1b[?25h"  # a cursor that is seen
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l"  # a mouse that types nothing
    "\x1b[?1004l"  # nor does a change of the window
    "\x1b[?2004l"  # a paste like typed text
)
_KEYS_AS_BEFORE = "\x1b[<u"
"""Takes back the program's own way of reading keys, which a program that lives on does itself."""
_SCREEN_AS_BEFORE = "\x1b[?1049l\x1b[999B\r\n"
"""Leaves the program's own screen, as such a program also does; where the cursor then is differs
between terminals, so what follows goes below everything."""


def hand_over(program: Callable[[], int]) -> int:
    """Let a program do with the terminal what it likes; gives its exit code.

    Afterwards the line settings and the foreground group of standard input are what they were,
    and the terminal shows its cursor and reports neither mouse nor pastes. Without a terminal
    nothing is done.
    """
    stdin, stdout = _terminal(sys.stdin), _terminal(sys.stdout)
    settings = termios.tcgetattr(stdin) if stdin is not None else None
    code = -1
    try:
        code = program()
    finally:
        # Who is not in the foreground would be stopped for changing the terminal.
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        with suppress(OSError, termios.error):  # the window was closed
            if stdin is not None and settings is not None:
                os.tcsetpgrp(stdin, os.getpgrp())
                termios.tcsetattr(stdin, termios.TCSADRAIN, settings)
            if stdout is not None:
                killed = _KEYS_AS_BEFORE + _SCREEN_AS_BEFORE if code < 0 else ""
                os.write(stdout, (_USUAL + killed).encode())
        signal.signal(signal.SIGTTOU, before)
    return code


def _terminal(stream: TextIO | None) -> int | None:
    """The descriptor of a stream that is a terminal."""
    with suppress(OSError, ValueError):
        if stream is not None and stream.isatty():
            return stream.fileno()
    return None
