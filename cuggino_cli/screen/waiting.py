"""Lines that wait to be drawn: put by any thread, taken by the one that draws."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator

_LIMIT = 5_000
"""Lines that wait; then the run waits for the terminal, as for a slow one."""
_POLL_S = 0.2


class WaitingLines:
    """Lines that wait to be drawn.

    Args:
        wake: asks for them to be taken; called once for all that are put before that.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._ask = wake
        self._lines: deque[str] = deque()
        self._changed = threading.Condition()
        self._holding = 0
        self._is_asked = False
        self.is_closed = False

    def put(self, text: str) -> bool:
        """Let the text wait, first for room; return whether somebody will take it."""
        with self._changed:
            while len(self._lines) >= _LIMIT and not self.is_closed:
                self._wake()
                self._changed.wait(_POLL_S)
            if self.is_closed:
                return False
            self._lines.append(text)
        self._wake()
        return True

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Ask for what is put within the block at its end."""
        self._holding += 1
        try:
            yield
        finally:
            self._holding -= 1
            self._wake()

    def _wake(self) -> None:
        with self._changed:
            if self._holding and len(self._lines) < _LIMIT:
                return
            if self._is_asked or not self._lines:
                return
            self._is_asked = True
        self._ask()

    def take(self) -> str:
        """Return all the text that waits; nothing waits then."""
        with self._changed:
            text = "".join(self._lines)
            self._lines.clear()
            self._is_asked = False
            self._changed.notify_all()
        return text

    def close(self) -> None:
        """Refuse further text."""
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()
