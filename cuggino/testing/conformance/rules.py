"""The base of the suites: rules, assertions, and sessions that several rules inspect."""

from __future__ import annotations

import functools
import secrets
import shutil
import tempfile
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar, cast
from unittest import SkipTest

import psutil

from cuggino.agents import Capabilities
from cuggino.errors import AgentFailed, LlmSessionError, QuotaExceeded
from cuggino.testing.conformance.acts import CannotPlay, Meanwhile, ModelRequest, Outcome
from cuggino.testing.conformance.arena import PlayArena
from cuggino.testing.leaks import no_leaks

P = ParamSpec("P")
S = TypeVar("S", bound="Rules")
T = TypeVar("T")

LONG = (
    "This text is long enough to be written in more than one piece, and holds what is easily lost: "
    "  two spaces, a\ttab,\n\na blank line, `code`, <b>tags</b>, ü, 漢字, 👍🏽 and a backslash \\. "
    "It goes on for a while so that a stream that is cut after some pieces is cut within it."
)


class Rules:
    """The base of all suites.

    `exempt` maps the methods of rules that do not apply to this agent to the reasons.
    """

    exempt: ClassVar[Mapping[str, str]] = MappingProxyType({})
    _once: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if unknown := sorted(name for name in cls.exempt if not hasattr(cls, name)):
            raise TypeError(f"{cls.__name__}.exempt names no rule: {', '.join(unknown)}")
        cls._once = {}

    @classmethod
    def once(cls, name: str, make: Callable[[], T]) -> T:
        """Call `make` for the first rule that asks, and return or raise the same for the others.

        Rules share sessions in this way, as a session of a real agent takes seconds.
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
    """Make a rule of the method: its docstring begins the message of a failure."""

    @functools.wraps(method)
    def checked(self: S, /, *args: P.args, **kwargs: P.kwargs) -> None:
        if reason := self.exempt.get(method.__name__):
            raise SkipTest(reason)
        try:
            method(self, *args, **kwargs)
        except CannotPlay as missing:
            raise SkipTest(str(missing)) from None
        except AssertionError as error:
            error.args = (f"{method.__doc__}\n\n{error}",)
            raise

    return checked


def capabilities(arena: PlayArena) -> Capabilities:
    """Return what the agent claims."""
    return arena.agent.capabilities


def needs(claimed: bool, capability: str) -> None:
    """Skip the rule unless the agent claims this."""
    if not claimed:
        raise SkipTest(f"not claimed by the agent: {capability}")


def requests_of(outcome: Outcome) -> tuple[ModelRequest, ...]:
    """Return the requests to the model; skip the rule where they cannot be seen."""
    if outcome.requests is None:
        raise SkipTest("requests to the model cannot be seen in this arena")
    return outcome.requests


def same(expected: object, found: object, outcome: Outcome) -> None:
    """Assert equality."""
    assert expected == found, f"expected {_short(expected)}, found {_short(found)} in {outcome}"


def hold_until(condition: Callable[[], bool], arena: PlayArena) -> Meanwhile:
    """Hold back the answer until the condition is met, for half a minute at most."""

    def wait() -> None:
        deadline = time.monotonic() + min(arena.patience / 4, 30.0)
        while not condition() and time.monotonic() < deadline:
            threading.Event().wait(0.05)

    return Meanwhile(wait)


def succeeded(outcome: Outcome) -> Outcome:
    """Assert that the session completed."""
    assert outcome.error is None, f"the session failed: {outcome}"
    same("completed", outcome.ended.outcome, outcome)
    return outcome


def failed(outcome: Outcome, *reasons: str) -> LlmSessionError:
    """Assert that the session failed for one of these reasons (or `quota`); return the error."""
    error = outcome.error
    assert isinstance(error, LlmSessionError), f"it should have failed, and did not: {outcome}"
    found = type(error).__name__
    if isinstance(error, AgentFailed):
        found = error.reason
    elif isinstance(error, QuotaExceeded):
        found = "quota"
    assert found in reasons, f"the error is {found}, not {' or '.join(reasons)}: {error}"
    assert error.message.strip(), "the error has no message"
    tags = [event.tag for event in outcome.events]
    same(1, tags.count("SessionEnded"), outcome)
    same("SessionEnded", tags[-1], outcome)
    ended = outcome.ended.outcome
    assert ended in ("failed", "quota"), f"a session that failed has ended as {ended}"
    same((), outcome.left, outcome)
    return error


def has(part: str, whole: str, what: str) -> None:
    """Assert that `whole` contains `part`, without printing all of either."""
    if part in whole:
        return
    # The length of the longest prefix that is there: longer ones are not.
    at = bisect_left(range(len(part)), True, key=lambda n: part[: n + 1] not in whole)
    raise AssertionError(
        f"{what} is not there as it was given: {_short(part)} ({len(part)} characters); "
        f"the first {at} are found, then {part[at : at + 20]!r} is not"
    )


class Sleeper:
    """A command that sleeps for months, identified by its number."""

    def __init__(self) -> None:
        self._words = ["sleep", str(10_000_000 + secrets.randbelow(10_000_000))]
        self.command = " ".join(self._words)

    def pids(self) -> list[int]:
        """Return the processes that run it."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.cmdline() == self._words and (process.status() != psutil.STATUS_ZOMBIE):
                    found.append(process.pid)
        return found

    def stubborn(self) -> tuple[str, int]:
        """Return a command that runs it in ways that are hard to end, and the process count."""
        ways = [f"(trap '' INT TERM HUP; {self.command}) &"]
        if shutil.which("setsid"):
            ways.append(f"setsid {self.command} &")
        return " ".join([*ways, self.command]), len(ways) + 1

    @contextmanager
    def gone(self, within: float) -> Iterator[None]:
        """Assert that none is left after the block, and terminate those that are."""
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
def nothing_left(within: float) -> Iterator[None]:
    """Assert that the block leaves no process, thread, open file or temporary file."""
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
