"""Arenas, in which an agent is tested, and their sessions."""

from __future__ import annotations

import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Literal, Protocol, TypeAlias

import psutil
from reactivex import Observable

from cuggino.agents import LlmAgent, SpawnOptions
from cuggino.events import LlmAgentEvent, Usage
from cuggino.operators import LoopScheduler
from cuggino.testing.conformance.acts import CannotPlay, Fault, ModelRequest, Outcome, Turn
from cuggino.testing.leaks import is_guardian

Through: TypeAlias = Callable[[Observable[LlmAgentEvent]], Observable[LlmAgentEvent]]
"""An operator on a session."""

GuardFault: TypeAlias = Literal["at the start", "later", "unasked"]
"""When the guard breaks: before the session, during it, or by never being asked about a call."""

_FILE_LIMIT = 100_000
_FILES = 200


class Running:
    """A running session.

    Subscribes on entering, on its own lane, and disposes on leaving. `requests` and `usage`
    return what the model's service has seen so far. Seconds are those of the wall clock.
    """

    def __init__(
        self,
        stream: Observable[LlmAgentEvent],
        *,
        folder: Path,
        requests: Callable[[], Sequence[ModelRequest] | None],
        usage: Callable[[], Usage | None],
        patience: float,
    ) -> None:
        self.events: list[LlmAgentEvent] = []
        self.error: Exception | None = None
        self.requests = requests
        self._stream = stream
        self._folder = folder
        self._usage = usage
        self._patience = patience
        self._left: tuple[str, ...] = ()
        self._ended = threading.Event()
        self._lane = LoopScheduler()
        self._before: frozenset[int] = frozenset()

    def __enter__(self) -> Running:
        self._before = frozenset(child_processes())
        self._subscription = self._stream.subscribe(
            self.events.append, self._fail, self._end, scheduler=self._lane
        )
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.dispose()
        self._lane.close()

    @property
    def has_ended(self) -> bool:
        """True if the stream has completed or failed."""
        return self._ended.is_set()

    def dispose(self) -> None:
        """Dispose of the session; return when everything is released."""
        self._subscription.dispose()

    def rest(self) -> None:
        """Wait until everything that was scheduled for the subscriber has arrived."""
        arrived = threading.Event()
        self._lane.schedule(lambda *_: arrived.set())
        assert arrived.wait(self._patience), "the lane of the session is blocked"

    def until(self, condition: Callable[[], bool], *, expected: str) -> None:
        """Wait for the condition; `expected` describes it in the error."""
        deadline = time.monotonic() + self._patience
        while not condition():
            waiting = time.monotonic() < deadline and not self.has_ended
            assert waiting or condition(), f"{expected} did not happen: {self._summary()}"
            self._ended.wait(0.05)

    def outcome(self) -> Outcome:
        """Wait for the end and return the outcome."""
        in_time = self._ended.wait(self._patience)
        assert in_time, f"the session did not end within {self._patience:g} s: {self._summary()}"
        requests = self.requests()
        return Outcome(
            events=tuple(self.events),
            error=self.error,
            files=_files(self._folder),
            left=self._left,
            requests=None if requests is None else tuple(requests),
            usage=self._usage(),
        )

    def _summary(self) -> str:
        return str([event.tag for event in list(self.events)][-20:]) + f", error: {self.error!r}"

    def _fail(self, error: Exception) -> None:
        self.error = error
        self._end()

    def _end(self) -> None:
        left = []
        for pid, process in child_processes().items():
            with suppress(psutil.NoSuchProcess):  # it has just ended
                if pid not in self._before:
                    left.append(f"{process.name()} ({pid})")
        self._left = tuple(left)
        self._ended.set()


class Play(Protocol):
    """An agent whose model is ready."""

    @property
    def agent(self) -> LlmAgent:
        """The agent."""

    def requests(self) -> Sequence[ModelRequest] | None:
        """Return the requests to its model so far; None when they cannot be seen."""

    def usage(self) -> Usage | None:
        """Return what the service has counted so far; None when it counts nothing."""


class PlayArena(ABC):
    """An agent, a folder, and a model that does what a rule wants; one for each test.

    Yours needs one method, `play`. The others are for agents whose guard is tested, or whose
    program reads settings.
    """

    patience: float = 60.0
    """Seconds that a session may take, the agent's retries included, and its release too."""
    unknown_session: str = "0199aaaa-0000-4000-8000-00000000ffff"
    """A session id in the agent's format that does not exist."""
    other_model: str | None = None
    """A model other than the default; None when there is no choice."""
    harmless_tools: frozenset[str] = frozenset()
    """Tools named like one that asks a person, but which answer at once."""
    limit_lasts: float | None = None
    """Seconds after which a usage limit is lifted; None when the service does not report it."""
    hearing: float = 0.7
    """Seconds after which the agent's program, another process, has received a message."""
    options: Mapping[str, Any] = MappingProxyType({})
    """Options of each session, unless a rule sets them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        """The working directory of sessions, empty except for the files of the agent."""
        self.ambient: dict[str, str] = {}
        """Variables added to the environment that the agent's program starts in."""
        self._others: frozenset[int] = frozenset()
        self._agent: LlmAgent | None = None

    @abstractmethod
    def play(self, turns: Sequence[Turn], fault: Fault | None) -> AbstractContextManager[Play]:
        """Provide an agent whose model plays the turns while the context is open.

        In a resumed conversation the first of these turns comes next.

        Raises:
            CannotPlay: the arena cannot play one of the acts, or the fault.
        """

    @property
    def agent(self) -> LlmAgent:
        """An agent configured like those of the sessions, for inspection."""
        if self._agent is None:
            with self.play((), None) as play:
                self._agent = play.agent
        return self._agent

    @contextmanager
    def start(
        self,
        turns: Sequence[Turn],
        *,
        fault: Fault | None = None,
        through: Through | None = None,
        **options: Any,
    ) -> Iterator[Running]:
        """Run a session until the context is left, which disposes of it.

        Each turn is one answer of the model. `options` are those of `SpawnOptions`; by default the
        session works in `folder` and may use its tools. `through` is applied to its stream.

        Raises:
            CannotPlay: the arena has no way to do that.
        """
        given: Mapping[str, Any] = {
            "prompt": "Go.",
            "cwd": self.folder,
            "dangerously_skip_permissions": True,
            **self.options,
            **options,
        }
        with self.play(turns, fault) as play:
            self._others = frozenset(child_processes())
            try:
                stream = play.agent.spawn(SpawnOptions(**given))
            except Exception as error:
                raise AssertionError(
                    f"spawn raised {error!r}: errors belong to the stream"
                ) from error
            running = Running(
                stream if through is None else through(stream),
                folder=Path(given["cwd"]),
                requests=play.requests,
                usage=play.usage,
                patience=self.patience,
            )
            with running:
                yield running

    def session(
        self, turns: Sequence[Turn], *, fault: Fault | None = None, **options: Any
    ) -> Outcome:
        """Run a session to its end."""
        with self.start(turns, fault=fault, **options) as running:
            return running.outcome()

    def inject(self, line: str) -> None:
        """Make the agent's program print this line at the beginning of every later session.

        Raises:
            CannotPlay: the output of the program is not read.
        """
        raise CannotPlay("the arena cannot add a line to the output of the agent's program")

    def program(self) -> int:
        """Return the process id of the agent's program in the one running session.

        Raises:
            CannotPlay: there is none.
        """
        began = {
            pid: process.create_time()
            for pid, process in child_processes(direct=True).items()
            if pid not in self._others
        }
        if not began:
            raise CannotPlay("the agent has no program that could be killed")
        return min(began, key=lambda pid: (began[pid], pid))

    def hostile_settings(self) -> Sequence[Mapping[str, str]]:
        """Return files that a project might contain to switch the guard off.

        Each mapping of paths in the project to texts is tried alone, in a folder `project N` of
        `folder`. A program that they start creates `hostile.txt` in the project.
        """
        return ()

    def rewriting_hook(self, command: str) -> None:
        """Install a hook of the user that replaces every shell command by this one.

        Raises:
            CannotPlay: the program has no such hooks.
        """
        raise CannotPlay("users cannot add hooks to the program")

    def guard_faults(self, when: GuardFault) -> Sequence[str]:
        """Return the names of the ways in which the guard can be broken at that moment."""
        return ()

    def break_guard(
        self, when: GuardFault, fault: str
    ) -> AbstractContextManager[Callable[[], None]]:
        """Prepare sessions whose guard breaks: at once, or when the returned function is called."""
        raise CannotPlay("the arena cannot break the guard")


Arena: TypeAlias = PlayArena
GuardArena: TypeAlias = PlayArena
"""Names of the two protocols that `PlayArena` once implemented."""


def child_processes(*, direct: bool = False) -> dict[int, psutil.Process]:
    """Return the living descendants of this process, or only its children, without the guardian."""
    found = {}
    for process in psutil.Process().children(recursive=not direct):
        with suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and not is_guardian(process):
                found[process.pid] = process
    return found


def _files(folder: Path) -> Mapping[str, str]:
    """Return the small files below the folder, without hidden folders."""
    found: dict[str, str] = {}
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(place, name)
            with suppress(OSError):
                if len(found) < _FILES and file.stat().st_size <= _FILE_LIMIT:
                    text = file.read_text(encoding="utf-8", errors="replace")
                    found[file.relative_to(folder).as_posix()] = text
    return found
