"""What a model is to do, and what came of it: the words in which the suite's rules are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, TypeVar

from cuggino.events import LlmAgentEvent, SessionEnded, Usage

E = TypeVar("E", bound=LlmAgentEvent)

FailKind = Literal[
    "bad_key", "rate_limit", "overload", "no_connection", "cut", "hang", "server_error"
]
"""How the model's service fails: HTTP 401, 429, 529, nobody there, a broken stream, silence, HTTP
500."""

Fault = Literal["missing_program"]
"""What is wrong with the agent itself: its program is not where it is told to be."""


@dataclass(frozen=True, slots=True)
class Say:
    """The model says this."""

    text: str


@dataclass(frozen=True, slots=True)
class Think:
    """The model shows this reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class Run:
    """The model runs this command, with the agent's tool for the shell."""

    command: str


@dataclass(frozen=True, slots=True)
class Write:
    """The model makes this file, with the agent's tool for that.

    `path` is below the folder in which the session works.
    """

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Fail:
    """The service fails from here on, however often it is asked.

    Behind a `Say` in the same turn the text has begun when it is cut, or falls silent.
    """

    kind: FailKind


Act: TypeAlias = Say | Think | Run | Write | Fail
Turn: TypeAlias = Act | Sequence[Act]
"""One answer of the model."""


def acts_of(turn: Turn) -> tuple[Act, ...]:
    """The acts of the turn, also when it is a single one."""
    return tuple(turn) if isinstance(turn, Sequence) else (turn,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the model was told in one request."""

    system: str
    """The whole system prompt."""
    text: str
    """The conversation so far: prompts, answers, results of tools."""
    tools: tuple[str, ...] = ()
    """The names of the tools that it was offered."""
    model: str = ""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One session."""

    events: tuple[LlmAgentEvent, ...]
    error: Exception | None
    """The error of the stream; None when it completed."""
    files: Mapping[str, str] = field(default_factory=dict)
    """What was in the session's folder when it ended: small files by their path in it."""
    left: tuple[str, ...] = ()
    """Processes that were still running when the stream ended."""
    told: tuple[Told, ...] | None = None
    """The requests to the model; None where they cannot be seen."""
    taken: Usage | None = None
    """What the model's service says that this session took; None where it says nothing."""

    def of(self, kind: type[E]) -> list[E]:
        """The events of this class."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def ended(self) -> SessionEnded:
        """The first `SessionEnded`."""
        found = self.of(SessionEnded)
        assert found, f"there is no SessionEnded in {self}"
        return found[0]

    def __str__(self) -> str:
        tags = ", ".join(event.tag for event in self.events if event.tag != "PingEvent")
        return f"[{tags}], error: {self.error!r}"


class CannotPlay(Exception):
    """The arena, or its agent, has nothing by which this could be tried; says what is missing."""
