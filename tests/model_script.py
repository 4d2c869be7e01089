"""What a scripted model is asked and what it answers; `RoleScript` tells roles and runs apart.

`model_server.ModelServer` puts it on the wire.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeAlias


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """One request for a message, as the agent sent it."""

    number: int
    """Counts from 0, over all requests for messages."""
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Mapping[str, Any]

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def turns(self) -> int:
        """How many messages of the model this conversation holds already."""
        return sum(message.get("role") == "assistant" for message in self._messages)

    @property
    def system_text(self) -> str:
        """The system prompt, its blocks joined by newlines."""
        return "\n".join(_texts(self.body.get("system")))

    @property
    def messages_text(self) -> str:
        """All that was said, tool results included, joined by newlines."""
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
    """A call of a tool of the agent."""

    name: str
    input: Mapping[str, Any]
    id: str | None = None


@dataclass(frozen=True)
class Thought:
    """A block of shown reasoning."""

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
    """An HTTP error in the API's words."""

    status: int
    type: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Drop:
    """The connection is reset: at once, or after this many events of a message."""

    message: Message | None = None
    after_events: int = 0


@dataclass(frozen=True)
class Hang:
    """Silence, until the server is closed or `seconds` have passed; then the connection is reset.

    Before the answer, or after this many events of a message.
    """

    seconds: float = 60.0
    message: Message | None = None
    after_events: int = 0


Reply: TypeAlias = Message | ApiError | Drop | Hang
Script: TypeAlias = Callable[[ModelRequest], Reply]


def rate_limited(retry_after: float | None = None) -> ApiError:
    """Too many requests; `retry_after` in seconds. The agent waits for up to 60, and gives up
    at once when it is more."""
    headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
    return ApiError(429, "rate_limit_error", "Number of request tokens exceeded.", headers)


def overloaded() -> ApiError:
    """The API has too much to do."""
    return ApiError(529, "overloaded_error", "Overloaded")


def server_error() -> ApiError:
    """The API is broken."""
    return ApiError(500, "api_error", "Internal server error")


def usage_limit(
    resets_at: float, message: str = "This request would exceed your account's rate limit."
) -> ApiError:
    """A usage limit is met, until a time in seconds since the epoch.

    A subscription (an agent with `SUBSCRIPTION` in its environment) reads the headers, and says
    in its own words when the limit is lifted. With an API key only the message counts.
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
"""Environment of an agent that believes to be logged in with a subscription."""


def always(reply: Reply) -> Script:
    """The same reply to every request."""
    return lambda _request: reply


def replies(*first: Reply, then: Reply) -> Script:
    """These replies, one a request whatever it asks for, and then the last one for ever."""
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
"""What the model does in one turn: a block, several, or any other reply."""
Run: TypeAlias = Sequence[Step]
"""The turns of one conversation, from its first prompt on."""


class RoleScript:
    """A script by role, run and step.

    - The role is the first in `roles` whose pattern is found in the system prompt or the messages.
    - A new run of a role begins with a conversation in which the model has not spoken yet. A
      resumed session goes on with the run in which it began, so its steps are counted on.
    - The step is the number of the model's turns so far, plus the errors given in this run: an
      agent that retries after an error gets the step behind it, if there is one. Behind a last
      step that is an error, a new run begins.

    A role, a run or a step that was not written down fails the test when the server is left.
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
        """How many runs of this role have begun."""
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
    """The script, whose calls are those of tools that another agent has."""

    def reply(request: ModelRequest) -> Reply:
        said = script(request)
        if isinstance(said, Message):
            return replace(said, blocks=[translated(block) for block in said.blocks])
        return said

    return reply


Turn: TypeAlias = Block | Sequence[Block] | Callable[[], Block | Sequence[Block]]
"""What the model says in one message, or what makes it when it is asked for."""
HELPER = "You are the helper of the test."
"""A prompt with these words is that of a sub-agent."""


def asks_helper(request: ModelRequest) -> bool:
    """Whether this conversation begins with the task of the sub-agent."""
    return HELPER in str(request.body["messages"][0]["content"])


def spoken(
    main: Sequence[Turn],
    helper: Sequence[Turn] = (),
    *,
    is_helper: Callable[[ModelRequest], bool] = asks_helper,
    helped: Block = Text("helped"),
) -> Script:
    """A model that says these things in a conversation and in that of its sub-agent, and ends."""

    def reply(request: ModelRequest) -> Reply:
        asked = is_helper(request)
        turns = helper if asked else main
        if request.turns >= len(turns):
            return Message([helped if asked else Text("<DONE>done</DONE>")])
        turn = turns[request.turns]
        made = turn() if callable(turn) else turn
        return Message(list(made) if isinstance(made, Sequence) else [made])

    return reply
