"""Requests and replies of a scripted model; `RoleScript` distinguishes roles and runs.

`model_server.ModelServer` puts it on the wire.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeAlias


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """One request for a message."""

    number: int
    """Counts from 0 over all requests for messages."""
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Mapping[str, Any]

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def turns(self) -> int:
        """Return the number of messages of the model in this conversation."""
        return sum(message.get("role") == "assistant" for message in self._messages)

    @property
    def system_text(self) -> str:
        """Return the system prompt, its blocks joined by newlines."""
        return "\n".join(_texts(self.body.get("system")))

    @property
    def messages_text(self) -> str:
        """Return the conversation with tool results, joined by newlines."""
        return "\n".join(
            text for message in self._messages for text in _texts(message.get("content"))
        )

    @property
    def tool_names(self) -> list[str]:
        return [str(tool.get("name")) for tool in self.body.get("tools") or []]

    @property
    def _messages(self) -> list[dict[str, Any]]:
        return list(self.body.get("messages") or [])


@dataclass(frozen=True)
class Text:
    """A block of text."""

    text: str


@dataclass(frozen=True)
class Tool:
    """A call of one of the agent's tools."""

    name: str
    input: Mapping[str, Any]
    id: str | None = None


@dataclass(frozen=True)
class Thought:
    """A block of visible reasoning."""

    text: str


Block: TypeAlias = Text | Tool | Thought


@dataclass(frozen=True)
class Message:
    """A message of the model; it stops for its tools, if it calls any."""

    blocks: Sequence[Block]
    input_tokens: int = 1000
    output_tokens: int = 100
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ApiError:
    """An HTTP error in the API's format."""

    status: int
    type: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Drop:
    """The connection is reset: at once, or after this many events of a message.

    A program may lose events that arrive just before the reset; `once` holds it back until the test
    sets it.
    """

    message: Message | None = None
    after_events: int = 0
    once: threading.Event | None = None


@dataclass(frozen=True)
class Hang:
    """Silence, until the server is closed or `seconds` have passed; then the connection is reset.

    Before the answer, or after this many events of a message.
    """

    seconds: float = 600.0
    message: Message | None = None
    after_events: int = 0


Reply: TypeAlias = Message | ApiError | Drop | Hang
Script: TypeAlias = Callable[[ModelRequest], Reply]


def rate_limited(retry_after: float | None = None) -> ApiError:
    """Return an error for too many requests, with `retry_after` in seconds.

    Claude Code waits for up to 60 seconds and gives up at once when it is more.
    """
    headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
    return ApiError(429, "rate_limit_error", "Number of request tokens exceeded.", headers)


def overloaded() -> ApiError:
    """Return the error of an overloaded API."""
    return ApiError(529, "overloaded_error", "Overloaded")


def server_error() -> ApiError:
    """Return the error of a broken API."""
    return ApiError(500, "api_error", "Internal server error")


def usage_limit(
    resets_at: float, message: str = "This request would exceed your account's rate limit."
) -> ApiError:
    """Return an exhausted usage limit that resets at a time in seconds since the epoch.

    A subscription (an agent with `SUBSCRIPTION` in its environment) reads the headers and reports
    the reset in its own words. With an API key only the message counts.
    """
    headers = {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": str(int(resets_at)),
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
    }
    return ApiError(429, "rate_limit_error", message, headers)


SUBSCRIPTION: Mapping[str, str] = MappingProxyType(
    {"CLAUDE_CODE_OAUTH_TOKEN": "dummy-not-a-token", "ANTHROPIC_API_KEY": ""}
)
"""Environment of an agent that is logged in with a subscription."""


def always(reply: Reply) -> Script:
    """Return a script with the same reply to every request."""
    return lambda _request: reply


def replies(*first: Reply, then: Reply) -> Script:
    """Return a script with one of these replies for each request, then the last one forever."""
    return lambda request: first[request.number] if request.number < len(first) else then


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for block in content:
            if isinstance(block, dict):
                yield from _texts(block.get("text"))
                yield from _texts(block.get("content"))


Step: TypeAlias = Block | Sequence[Block] | Reply
"""One turn of the model: a block, several, or any other reply."""
Run: TypeAlias = Sequence[Step]
"""The turns of one conversation, from its first prompt on."""


class RoleScript:
    """A script by role, run and step.

    - The role is the first in `roles` whose pattern is found in the system prompt or the messages.
    - A conversation without a message of the model starts a new run of its role. A resumed session
      continues the run in which it began, and its count of steps.
    - The step is the number of the model's turns so far, plus the errors given in this run: an
      agent that retries after an error gets the step after it, if there is one. After a last
      step that is an error, a new run begins.

    A request for an undefined role, run or step fails the test when the server is closed.
    """

    def __init__(
        self, roles: Mapping[str, str | re.Pattern[str]], runs: Mapping[str, Sequence[Run]]
    ) -> None:
        self._roles = {role: re.compile(pattern) for role, pattern in roles.items()}
        self._runs = runs
        self._run_of: dict[str, int] = {}
        self._errors: dict[str, int] = {}
        self._failed_last: dict[str, bool] = {}

    def __call__(self, request: ModelRequest) -> Reply:
        role = self._role(request)
        if request.turns == 0 and not self._is_retry(role):
            self._run_of[role] = self._run_of.get(role, -1) + 1
            self._errors[role] = 0
        run = self._run_of.get(role, 0)
        step = request.turns + self._errors.get(role, 0)
        try:
            reply = _as_reply(self._runs[role][run][step])
        except IndexError:
            raise AssertionError(f"nothing scripted for {role}, run {run}, step {step}") from None
        self._failed_last[role] = not isinstance(reply, Message)
        self._errors[role] = self._errors.get(role, 0) + self._failed_last[role]
        return reply

    def _is_retry(self, role: str) -> bool:
        left = self._errors.get(role, 0) < len(self._runs[role][self._run_of.get(role, 0)])
        return left and self._failed_last.get(role, False)

    def runs_of(self, role: str) -> int:
        """Return the number of started runs of this role."""
        return self._run_of.get(role, -1) + 1

    def _role(self, request: ModelRequest) -> str:
        text = f"{request.system_text}\n{request.messages_text}"
        for role, pattern in self._roles.items():
            if pattern.search(text):
                return role
        raise AssertionError(f"no role fits the request that says: {text[-400:]}")


def _as_reply(step: Step) -> Reply:
    match step:
        case Message() | ApiError() | Drop() | Hang():
            return step
        case Text() | Tool() | Thought():
            return Message([step])
        case _:
            return Message(step)


def in_words(script: Script, translated: Callable[[Block], Block]) -> Script:
    """Return the script with its blocks translated."""

    def reply(request: ModelRequest) -> Reply:
        said = script(request)
        if isinstance(said, Message):
            return replace(said, blocks=[translated(block) for block in said.blocks])
        return said

    return reply


Turn: TypeAlias = Block | Sequence[Block] | Callable[[], Block | Sequence[Block]]
"""One message of the model, or a function that returns it."""
HELPER = "You are the helper of the test."
"""The marker of a subagent's prompt."""


def asks_helper(request: ModelRequest) -> bool:
    """Return whether this conversation is the subagent's."""
    return HELPER in str(request.body["messages"][0]["content"])


def spoken(
    main: Sequence[Turn],
    helper: Sequence[Turn] = (),
    *,
    is_helper: Callable[[ModelRequest], bool] = asks_helper,
    helped: Block = Text("helped"),
) -> Script:
    """Return a script that plays these turns, and `helper` for the subagent, and ends."""

    def reply(request: ModelRequest) -> Reply:
        asked = is_helper(request)
        turns = helper if asked else main
        if request.turns >= len(turns):
            return Message([helped if asked else Text("<DONE>done</DONE>")])
        turn = turns[request.turns]
        made = turn() if callable(turn) else turn
        return Message(list(made) if isinstance(made, Sequence) else [made])

    return reply
