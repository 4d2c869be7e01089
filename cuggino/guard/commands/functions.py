"""Functions that a script defines for itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cuggino.guard.commands.base import UNKNOWN, Site
from cuggino.guard.commands.table import KNOWN
from cuggino.guard.profiles import BUILTINS
from cuggino.guard.shell.tree import Statement, Word

_NAME = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
_MOST_ROUNDS = 3


def shadows(name: str, site: Site) -> str:
    """Why a function must not have the name: another meaning of it is judged elsewhere."""
    if not _NAME.fullmatch(name):
        return f"A function must have a plain name, not '{name}'"
    if name in site.listed or name in KNOWN or name in BUILTINS or _is_called_by_shells(name):
        return f"A function must not take the name '{name}', which means something else: rename it"
    return ""


def _is_called_by_shells(name: str) -> bool:
    return name.startswith(("TRAP", "command_not_found", "BASH_", "chpwd", "precmd", "preexec"))


class Functions:
    """Those that are surely defined where one is; each body is judged wherever it is called."""

    def __init__(self) -> None:
        self._bodies: dict[str, tuple[Statement, ...]] = {}
        self._judged: dict[int, tuple[frozenset[str], frozenset[str], int]] = {}
        self._running: set[int] = set()

    def has(self, name: str) -> bool:
        """Whether the name is a function's here."""
        return name in self._bodies

    def add(self, name: str, body: Statement) -> None:
        """Define it; an earlier one of the name stays possible."""
        self._bodies[name] = (*self._bodies.get(name, ()), body)

    def forget(self, words: tuple[Word, ...]) -> None:
        """After `unset`: the names mean programs again."""
        if any(word.value is None for word in words):
            self._bodies = {}
        for word in words:
            self._bodies.pop(word.value or "", None)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """What is defined there is forgotten behind it: it may not be defined then."""
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
        """Where one may be after calling it from these folders."""
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
