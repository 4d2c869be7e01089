"""The vocabulary of the conformance rules: what a model does, and the outcome of a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar

from cuggino.events import LlmAgentEvent, SessionEnded, Usage

E = TypeVar("E", bound=LlmAgentEvent)

FailKind = Literal[
    "bad_request",
    "bad_key",
    "rate_limit",
    "usage_limit",
    "too_long",
    "overload",
    "server_error",
    "no_connection",
    "cut",
    "hang",
]
"""A failure of the model's service: HTTP 400, 401, 429, a spent usage limit, a prompt that is too
long for the model, HTTP 529, 500, an unreachable host, a broken stream, silence."""

Fault = Literal["missing_program", "no_login"]
"""A defect of the agent: its program is not installed, or has no credentials."""


@dataclass(frozen=True, slots=True)
class Say:
    """The model writes this text."""

    text: str


@dataclass(frozen=True, slots=True)
class Think:
    """The model shows this reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class Run:
    """The model runs this command with the agent's shell tool."""

    command: str


@dataclass(frozen=True, slots=True)
class Write:
    """The model creates this file with the agent's tool for that.

    `path` is relative to the working directory of the session.
    """

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Edit:
    """The model replaces `old` by `new` in this file with the agent's tool for that."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Read:
    """The model reads this file with the agent's tool for that."""

    path: str


@dataclass(frozen=True, slots=True)
class Call:
    """The model calls a tool of an MCP server."""

    server: str
    tool: str
    input: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Delegate:
    """The model starts a sub-agent, which plays these turns and ends."""

    turns: Sequence[Turn]


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """`action` is called when the model is asked, before the rest of its answer."""

    action: Callable[[], object] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Fail:
    """The service fails from now on, or for that many requests.

    After a `Say` of the same turn, `cut` and `hang` happen in the middle of that text.
    """

    kind: FailKind
    times: int | None = None


Act: TypeAlias = Say | Think | Run | Write | Edit | Read | Call | Delegate | Meanwhile | Fail
Turn: TypeAlias = Act | Sequence[Act]
"""One answer of the model."""


def acts_of(turn: Turn) -> tuple[Act, ...]:
    """Return the acts of the turn."""
    return tuple(turn) if isinstance(turn, Sequence) else (turn,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request to the model."""

    system: str
    """The whole system prompt."""
    text: str
    """The conversation so far: prompts, answers, results of tools."""
    tools: tuple[str, ...] = ()
    """The names of the tools on offer."""
    model: str = ""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One session."""

    events: tuple[LlmAgentEvent, ...]
    error: Exception | None
    """The error of the stream; None when it completed."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The small files in the working directory at the end, by relative path."""
    left: tuple[str, ...] = ()
    """Processes that were still running when the stream ended."""
    requests: tuple[ModelRequest, ...] | None = None
    """The requests to the model; None where they cannot be seen."""
    usage: Usage | None = None
    """The usage of this session as the service counts it; None where it counts nothing."""

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of this class."""
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
    """The arena or its agent lacks what a rule needs; the message names it."""
