"""What the rules of the suite share: how one is told, what is needed for it, who is asleep."""

from __future__ import annotations

import functools
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar, cast
from unittest import SkipTest

import psutil

from cuggino.agents.protocol import Capabilities, capabilities_of
from cuggino.testing.conformance_acts import CannotPlay, Outcome, Told
from cuggino.testing.conformance_arena import Arena
from cuggino.testing.leaks import no_leaks

P = ParamSpec("P")
S = TypeVar("S", bound="Rules")
T = TypeVar("T")


class Rules:
    """The base of the parts of `AgentConformance`.

    `exempt` names rules that do not hold for this agent, by their method, each with the reason.
    """

    exempt: ClassVar[Mapping[str, str]] = MappingProxyType({})
    _once: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if unknown := sorted(name for name in cls.exempt if not hasattr(cls, name)):
            raise TypeError(f"{cls.__name__} is exempt from what is no rule: {', '.join(unknown)}")
        cls._once = {}

    @classmethod
    def once(cls, name: str, make: Callable[[], T]) -> T:
        """What `make` gives, or raises, the first time that a rule of this suite wants it.

        Rules share sessions by this: a real agent takes seconds for each.
        """
        if name not in cls._once:
            try:
                cls._once[name] = make()
            except (AssertionError, CannotPlay, SkipTest) as error:
                cls._once[name] = error
        made = cls._once[name]
        if isinstance(made, AssertionError):
            raise AssertionError(*made.args)
        if isinstance(made, Exception):
            raise made
        return cast("T", made)


def rule(method: Callable[Concatenate[S, P], None]) -> Callable[Concatenate[S, P], None]:
    """A test that begins what it says when it fails with its docstring."""

    @functools.wraps(method)
    def told(self: S, /, *args: P.args, **kwargs: P.kwargs) -> None:
        if reason := self.exempt.get(method.__name__):
            raise SkipTest(reason)
        try:
            method(self, *args, **kwargs)
        except CannotPlay as missing:
            raise SkipTest(str(missing)) from None
        except AssertionError as error:
            error.args = (f"{method.__doc__}\n\n{error}",)
            raise

    return told


def capabilities(arena: Arena) -> Capabilities:
    """What the agent claims."""
    return capabilities_of(arena.agent)


def needs(claimed: bool, capability: str) -> None:
    """Skip unless the agent claims this."""
    if not claimed:
        raise SkipTest(f"not claimed by the agent: {capability}")


def told_by(outcome: Outcome) -> tuple[Told, ...]:
    """What the model was told; skips where that cannot be seen."""
    if outcome.told is None:
        raise SkipTest("what the model is told cannot be seen in this arena")
    return outcome.told


def same(expected: object, found: object, outcome: Outcome) -> None:
    """Assert that they are equal."""
    assert expected == found, f"expected {_short(expected)}, found {_short(found)} in {outcome}"


def succeeded(outcome: Outcome) -> Outcome:
    """Assert that the session did."""
    assert outcome.error is None, f"the session failed: {outcome}"
    same("completed", outcome.ended.outcome, outcome)
    return outcome


def has(part: str, whole: str, what: str) -> None:
    """Assert that the one is in the other, without showing all of either."""
    if part in whole:
        return
    begins = next((n for n in (64, 16, 1) if part[:n] in whole), 0)
    at = 0
    if begins:
        low, high = begins, len(part)
        while low < high:  # how much of it is there
            middle = (low + high + 1) // 2
            low, high = (middle, high) if part[:middle] in whole else (low, middle - 1)
        at = low
    raise AssertionError(
        f"{what} is not there as it was given: {_short(part)} ({len(part)} characters); "
        f"the first {at} are found, then {part[at : at + 20]!r} is not"
    )


class Sleeper:
    """A command that sleeps for months, known by its number."""

    def __init__(self) -> None:
        self._words = ["sleep", str(10_000_000 + secrets.randbelow(10_000_000))]
        self.command = " ".join(self._words)

    def pids(self) -> list[int]:
        """The processes that run it."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.cmdline() == self._words and (process.status() != psutil.STATUS_ZOMBIE):
                    found.append(process.pid)
        return found

    def stubborn(self) -> tuple[str, int]:
        """A command that runs it in ways that are hard to end, and in how many processes."""
        ways = [f"(trap '' INT TERM HUP; {self.command}) &"]
        if shutil.which("setsid"):
            ways.append(f"setsid {self.command} &")
        return " ".join([*ways, self.command]), len(ways) + 1

    @contextmanager
    def gone(self, *, within: float = 5.0) -> Iterator[None]:
        """Assert that none is left behind the block; ends those that are."""
        try:
            yield
        except BaseException:
            self._end()
            raise
        deadline = time.monotonic() + within
        while (left := self.pids()) and time.monotonic() < deadline:
            threading.Event().wait(0.05)
        self._end()
        assert not left, f"the agent's tool still runs: {self.command} ({left})"

    def _end(self) -> None:
        killed = []
        for pid in self.pids():
            with suppress(psutil.Error):
                process = psutil.Process(pid)
                # The shell that waits for it ends with it.
                shell = process.parent()
                killed += [process, *([shell] if shell and shell.name() == "sh" else [])]
                process.kill()
        psutil.wait_procs(killed, timeout=5.0)


@contextmanager
def nothing_left(*, within: float = 5.0) -> Iterator[None]:
    """Assert that the block leaves no process, thread, open file or temporary file behind."""
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        tempfile.tempdir = folder
        try:
            with no_leaks(within=within):
                yield
            files = sorted(str(p.relative_to(folder)) for p in Path(folder).rglob("*"))
            assert not files, f"temporary files are left: {', '.join(files)}"
        finally:
            tempfile.tempdir = before


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:150]} ... {text[-150:]}"
