"""Where an agent is tried: who makes its model do what a rule wants."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, TypeAlias

from reactivex import Observable

from cuggino.agents.protocol import LlmAgent, SpawnOptions
from cuggino.events import LlmAgentEvent, Usage
from cuggino.testing.conformance_acts import CannotPlay, Fault, Outcome, Told, Turn
from cuggino.testing.conformance_running import Running, child_processes

Through: TypeAlias = Callable[[Observable[LlmAgentEvent]], Observable[LlmAgentEvent]]
"""An operator on a session."""


class Arena(Protocol):
    """An agent, a folder, and a model that does what a rule wants; one for each test.

    `PlayArena` gives all of it from one method.
    """

    @property
    def patience(self) -> float:
        """Seconds that a session may take, the agent's own retries included."""

    @property
    def folder(self) -> Path:
        """Where sessions work; empty but for what the agent needs."""

    @property
    def unknown_session(self) -> str:
        """An id that looks like one of the agent's sessions, and is none."""

    @property
    def other_model(self) -> str | None:
        """A model to ask for that is not the usual one; None when there is no choice."""

    @property
    def harmless_tools(self) -> frozenset[str]:
        """Tools named like one that asks a person, which are known to answer at once."""

    @property
    def agent(self) -> LlmAgent:
        """An agent like those of the sessions, to be looked at."""

    def start(
        self,
        turns: Sequence[Turn],
        *,
        fault: Fault | None = None,
        through: Through | None = None,
        **options: Any,
    ) -> AbstractContextManager[Running]:
        """A session that runs while the context is held, and is disposed on leaving.

        The model does what the turns say, one an answer. `options` are those of `SpawnOptions`;
        otherwise it works in `folder` with leave to use its tools. `through` is put behind its
        stream.

        Raises:
            CannotPlay: it has nothing by which it could do that.
        """

    def session(
        self, turns: Sequence[Turn], *, fault: Fault | None = None, **options: Any
    ) -> Outcome:
        """The same, to its end."""

    def inject(self, line: str) -> None:
        """Have the agent's program print this line at the beginning of each further session.

        Raises:
            CannotPlay: what the program prints is not read.
        """

    def program(self) -> int:
        """The process id of the agent's program, of the one session that runs.

        Raises:
            CannotPlay: it has none.
        """


class Play(Protocol):
    """An agent whose model is ready."""

    @property
    def agent(self) -> LlmAgent:
        """The agent."""

    def told(self) -> Sequence[Told] | None:
        """What its model was told until now; None when that cannot be seen."""

    def taken(self) -> Usage | None:
        """What the service has counted until now; None when it counts nothing."""


class PlayArena(ABC):
    """An `Arena` made of `play`, which is all that is left to be written."""

    patience = 60.0
    unknown_session = "0199aaaa-0000-4000-8000-00000000ffff"
    other_model: str | None = None
    harmless_tools: frozenset[str] = frozenset()
    options: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """Options of each session, unless a rule gives them itself."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._others: frozenset[int] = frozenset()

    @abstractmethod
    def play(self, turns: Sequence[Turn], fault: Fault | None) -> AbstractContextManager[Play]:
        """The agent, whose model does what the turns say as long as the context is held.

        A conversation that is gone on with begins with the first turn given here.

        Raises:
            CannotPlay: one of the acts, or the fault, cannot be had.
        """

    @cached_property
    def agent(self) -> LlmAgent:
        with self.play((), None) as play:
            return play.agent

    @contextmanager
    def start(
        self,
        turns: Sequence[Turn],
        *,
        fault: Fault | None = None,
        through: Through | None = None,
        **options: Any,
    ) -> Iterator[Running]:
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
                told=play.told,
                taken=play.taken,
                patience=self.patience,
            )
            with running:
                yield running

    def session(
        self, turns: Sequence[Turn], *, fault: Fault | None = None, **options: Any
    ) -> Outcome:
        with self.start(turns, fault=fault, **options) as running:
            return running.outcome()

    def inject(self, line: str) -> None:
        raise CannotPlay("the arena cannot put a line into what the agent's program prints")

    def program(self) -> int:
        began = {
            pid: process.create_time()
            for pid, process in child_processes(direct=True).items()
            if pid not in self._others
        }
        if not began:
            raise CannotPlay("the agent has no program that could be killed")
        return min(began, key=lambda pid: (began[pid], pid))
