"""Functions that a script defines for itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cuggino.guard.commands.base import UNKNOWN
from cuggino.guard.shell.tree import Statement, Word

_MOST_ROUNDS = 3


class Functions:
    """The functions that are certainly defined; each body is judged wherever it is called."""

    def __init__(self) -> None:
        self._bodies: dict[str, tuple[Statement, ...]] = {}
        self._judged: dict[int, tuple[frozenset[str], frozenset[str], int]] = {}
        self._running: set[int] = set()

    def has(self, name: str) -> bool:
        """Return whether a function of the name is certainly defined."""
        return name in self._bodies

    def add(self, name: str, body: Statement) -> None:
        """Define a function; an earlier one of the name stays possible."""
        self._bodies[name] = (*self._bodies.get(name, ()), body)

    def forget(self, words: tuple[Word, ...]) -> None:
        """Undefine functions: their names mean programs again."""
        if any(word.value is None for word in words):
            self._bodies = {}
        for word in words:
            self._bodies.pop(word.value or "", None)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Forget functions defined within, because they may not be defined afterwards."""
        saved = self._bodies
        self._bodies = dict(saved)
        try:
            yield
        finally:
            self._bodies = saved

    def call(
        self,
        name: str,
        cwds: frozenset[str],
        judge: Callable[[Statement, frozenset[str]], frozenset[str]],
    ) -> frozenset[str]:
        """Return the possible folders after calling the function from these folders."""
        ends: frozenset[str] = frozenset()
        for body in self._bodies.get(name, ()):
            ends |= self._call(body, cwds, judge)
        return ends or cwds

    def _call(
        self,
        body: Statement,
        cwds: frozenset[str],
        judge: Callable[[Statement, frozenset[str]], frozenset[str]],
    ) -> frozenset[str]:
        key = id(body)
        if key in self._running:
            return cwds | {UNKNOWN}
        begun, ends, rounds = self._judged.get(key, (frozenset(), frozenset(), 0))
        if rounds and (cwds <= begun or UNKNOWN in begun):
            return ends
        begun |= cwds
        if rounds >= _MOST_ROUNDS:
            begun |= {UNKNOWN}
        self._running.add(key)
        try:
            ends |= judge(body, begun)
        finally:
            self._running.discard(key)
        self._judged[key] = (begun, ends, rounds + 1)
        return ends
