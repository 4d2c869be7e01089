"""The keyboard of a terminal whose signals stay those of the kernel."""

from __future__ import annotations

import contextlib
import os
import termios
from typing import Any, TextIO

from prompt_toolkit.input.vt100 import Vt100Input, raw_mode


class _KeysOnly(raw_mode):
    """No echo and no line buffer; Ctrl-C and Ctrl-Z are the kernel's, as everywhere."""

    @classmethod
    def _patch_lflag(cls, attrs: int) -> int:
        return attrs & ~(termios.ECHO | termios.ICANON | termios.IEXTEN)

    @classmethod
    def _patch_iflag(cls, attrs: int) -> int:
        flow = termios.IXON | termios.IXOFF
        return attrs & ~(flow | termios.ICRNL | termios.INLCR | termios.IGNCR)


class KeysInput(Vt100Input):
    """Single keys of a terminal."""

    def raw_mode(self) -> contextlib.AbstractContextManager[None]:
        return _KeysOnly(self.fileno())


class Mode:
    """The mode of a terminal: the one before the run, and the one that the keys need."""

    def __init__(self, stream: TextIO) -> None:
        self._fd = stream.fileno()
        self._before: list[Any] | None = None
        self._ours: list[Any] | None = None
        with contextlib.suppress(termios.error):
            self._before = termios.tcgetattr(self._fd)

    def is_foreground(self) -> bool:
        """Return whether this process may use the terminal, rather than being in the background."""
        try:
            return os.tcgetpgrp(self._fd) == os.getpgrp()
        except OSError:
            return True  # not our controlling terminal

    def hold(self) -> None:
        """Take back the mode of the keys, which another program may have changed.

        The first call keeps the current mode: the keyboard is in use by then.
        """
        if not self.is_foreground():
            return
        with contextlib.suppress(termios.error):
            now = termios.tcgetattr(self._fd)
            if self._ours is None:
                self._ours = now
            elif now[:4] != self._ours[:4]:
                termios.tcsetattr(self._fd, termios.TCSANOW, self._ours)

    def restore(self) -> None:
        """Set the mode from before the run."""
        if self._before is not None and self.is_foreground():
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._fd, termios.TCSANOW, self._before)
