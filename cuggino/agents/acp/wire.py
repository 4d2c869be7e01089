"""The reader of one session of the Agent Client Protocol.

Newline-delimited JSON-RPC 2.0 in both directions. It reads the program's output and collects the
messages to send to it. It starts no processes; calls are judged by a function that it is given.

The shapes of messages are the protocol's published models (`acp.schema`). An update that does not
have its shape is a sign of life. Plain objects are read where a model would drop something that the
guard needs, or where programs differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, tzinfo
from typing import Literal, TypeVar

from acp import schema
from pydantic import BaseModel, ValidationError

from cuggino.agents.acp.calls import CANCELLED, Calls, CallUpdate, Judging
from cuggino.agents.acp.failure import dialect, failed_turn, failure_of
from cuggino.agents.acp.requests import (
    Link,
    Request,
    Script,
    configure,
    model_of,
    open_session,
    options_of,
)
from cuggino.agents.acp.spending import Spending
from cuggino.agents.base.agent import SpawnOptions
from cuggino.agents.base.program import encodable
from cuggino.agents.base.reader import Ending, Session
from cuggino.agents.base.watch import Watch
from cuggino.agents.base.wire import (
    Draft,
    Json,
    dict_or_empty,
    list_or_empty,
    parse_json_line,
    text_or_none,
)
from cuggino.agents.profiles import Profile
from cuggino.errors import AgentFailed, GuardNotLive, LlmSessionError
from cuggino.events import (
    AgentMessage,
    LlmAgentEvent,
    PingEvent,
    SystemMessage,
    Thinking,
    UsageUpdate,
)

MOST_EXPLANATIONS = 5
"""Maximum consecutive extra prompts that explain to the agent why its calls were denied."""

_RETRYING = "_session/retrying"
"""Mistral Vibe's notification that it retries a request and starts its answer over."""

_UPDATES: Mapping[str, type[BaseModel]] = {
    "agent_message_chunk": schema.AgentMessageChunk,
    "agent_thought_chunk": schema.AgentThoughtChunk,
    "tool_call": CallUpdate,
    "tool_call_update": CallUpdate,
    "usage_update": schema.UsageUpdate,
}

_M = TypeVar("_M", bound=BaseModel)


class AcpSession(Session):
    """The reader of one session: feed it every line, send its `output`, then end it once."""

    _watch: Watch

    def __init__(
        self,
        profile: Profile,
        options: SpawnOptions,
        judge: Judging,
        *,
        zone: Callable[[], tzinfo] = lambda: UTC,
        is_confined: bool = False,
        is_trial: bool = False,
    ) -> None:
        super().__init__(
            program=profile.command[0],
            zone=zone,
            watch=Watch(),
            resumed=options.resume_session_id,
        )
        login = f"log in with `{profile.command[0]}`, or set the key of its API"
        self.dialect = dialect(login)
        self._profile, self._options = profile, options
        self._now = 0.0
        self._calls = Calls(profile, options, judge, self._watch, is_confined=is_confined)
        self._spending = Spending(profile.usage)
        self._draft = _Draft()
        self._has_worked = False
        """True if a call was reported in this turn."""
        self._link = Link(self._script(is_trial=is_trial))

    @property
    def is_over(self) -> bool:
        """True once nothing more will be asked of the program."""
        return self._link.is_over

    @property
    def has_begun(self) -> bool:
        """True once the prompt has been sent."""
        return self.known.turns > 0

    @property
    def breach(self) -> LlmSessionError | None:
        """The error for which the session must end immediately, or None."""
        error = self._link.error
        return error if isinstance(error, GuardNotLive) else super().breach

    def output(self) -> bytes:
        """Return the new output for the program since the last call."""
        return self._link.output()

    def feed(self, line: bytes, *, now: float) -> list[LlmAgentEvent]:
        """Return the events of this line; `now` is in seconds since the epoch. Never raises."""
        self._now = now
        message = parse_json_line(line)
        if message is None:
            self.plain.add(line)
        if message is None or self.is_over:
            return []
        method, number = message.get("method"), message.get("id")
        params = dict_or_empty(message.get("params"))
        if method is None:
            return self._link.receive(message, self._failure)
        if isinstance(number, str | int | float):
            return self._asked(method, number, params)
        if method == _RETRYING:
            return self._retrying(params)
        if method == "session/update":
            events = [] if self._is_foreign(params) else self._update(params.get("update"))
        else:
            self._check_mode(params.get("currentModeId"))
            events = []
        return events or [PingEvent(timestamp=now)]

    def rest(self) -> list[LlmAgentEvent]:
        return self._draft.end()

    def failure(self, ending: Ending) -> LlmSessionError | None:
        return self._link.error if self.is_over else ending.without_result()

    # -- requests to the program

    def _script(self, *, is_trial: bool) -> Script[None]:
        """Open the session and prompt it, again after each turn with denied calls."""
        profile, options = self._profile, self._options
        session_id, result = yield from open_session(profile, options)
        self.known = self.known._replace(session_id=session_id)
        yield SystemMessage(text="Session initialized")
        yield from configure(profile, options, session_id, result)
        self.known = self.known._replace(model=options.model or model_of(result))
        if is_trial:
            return
        text = _first_prompt(options)
        for _ in range(1 + MOST_EXPLANATIONS):
            self.known = self.known._replace(turns=self.known.turns + 1)
            self._has_worked = False
            self._draft.said = ""
            block = schema.TextContentBlock(type="text", text=encodable(text))
            prompt = schema.PromptRequest(session_id=session_id, prompt=[block])
            result = yield Request("session/prompt", prompt)
            yield from self._draft.end()
            yield from self._count("turns", dict_or_empty(result.get("usage")))
            yield from self._calls.close()
            self.known = self.known._replace(answer=self._draft.said)
            reason = text_or_none(result.get("stopReason")) or "unknown"
            denials, self._calls.reasons = self._calls.reasons, []
            if not denials or reason not in ("end_turn", "cancelled"):
                if error := self._failed_turn(reason):
                    raise error
                return
            text = _explanation(denials)
        message = f"the agent repeated denied calls after {MOST_EXPLANATIONS} explanations"
        raise AgentFailed(message, reason="aborted")

    def _failure(self, method: str, error: Json) -> LlmSessionError:
        return failure_of(self._so_far, method, error)

    def _failed_turn(self, reason: str) -> LlmSessionError | None:
        """Return the error of a turn that ended for this reason, if it failed."""
        said, has_worked = self.known.answer, self._has_worked
        return failed_turn(self._so_far, said, reason=reason, has_worked=has_worked)

    @property
    def _so_far(self) -> Ending:
        return self.ending(exit_code=0, stderr_tail="", now=self._now)

    def _count(self, scope: Literal["requests", "turns"], reported: Json) -> list[LlmAgentEvent]:
        usage = self._spending.used(scope, reported, self.known.usage)
        if usage is None:
            return []
        self.known = self.known._replace(usage=usage)
        return [UsageUpdate(usage=usage, model=self.known.model)]

    def _works(self) -> list[LlmAgentEvent]:
        """Record a call, which completes what the agent was writing."""
        self._has_worked = True
        return self._draft.end()

    # -- messages of the program

    def _is_foreign(self, params: Json) -> bool:
        return params.get("sessionId") != self.known.session_id

    def _asked(self, method: object, number: object, params: Json) -> list[LlmAgentEvent]:
        if method != "session/request_permission":
            self._link.refuse(number)
            return []
        call = _read(CallUpdate, params.get("toolCall"))
        if call is None or self._is_foreign(params):
            self._link.respond(number, CANCELLED)
            return []
        given = list_or_empty(params.get("options"))
        options = [found for one in given if (found := _read(schema.PermissionOption, one))]
        said = self._works()
        answer, events = self._calls.ask(call, options)
        self._link.respond(number, answer)
        return [*said, *events]

    def _update(self, given: object) -> list[LlmAgentEvent]:
        update = dict_or_empty(given)
        kind = text_or_none(update.get("sessionUpdate")) or ""
        is_past = self._link.method in ("session/load", "session/resume")
        if is_past and kind != "usage_update":
            return []
        match _read(_UPDATES[kind], update) if kind in _UPDATES else None:
            case schema.AgentMessageChunk() as chunk:
                return self._chunk(chunk)
            case schema.AgentThoughtChunk(content=schema.TextContentBlock(text=text)):
                return self._draft.add(text, is_thought=True)
            case CallUpdate() as call:
                return [*self._works(), *self._calls.update(call, is_new=kind == "tool_call")]
            case schema.UsageUpdate() as usage:
                if self.has_begun:
                    if (cost := self._spending.cost(usage)) is not None:
                        self.known = self.known._replace(cost_usd=cost)
                else:
                    self._spending = self._spending.begun(usage)
            case None if kind == "current_mode_update":
                self._check_mode(update.get("currentModeId"))
            case None if kind == "config_option_update":
                self._check_mode(options_of(update).get("mode", {}).get("currentValue"))
            case _:
                pass
        return []

    def _check_mode(self, mode: object) -> None:
        """End a guarded session whose program left the mode in which it asks."""
        wanted = self._profile.mode
        if not (self._options.guard is not None and self.has_begun and wanted is not None):
            return
        if mode is not None and mode != wanted:
            self._watch.fail(f"its mode changed from {wanted} to {mode}")

    def _chunk(self, chunk: schema.AgentMessageChunk) -> list[LlmAgentEvent]:
        meta = chunk.field_meta or {}
        text = chunk.content.text if isinstance(chunk.content, schema.TextContentBlock) else ""
        events: list[LlmAgentEvent] = []
        if used := dict_or_empty(meta.get("usage")):
            events = [*self._draft.end(), *self._count("requests", used)]
        if text and meta.get("qwenDiscreteMessage") is True:
            return [*events, *self._draft.end(), SystemMessage(text=text)]
        if not text or text_or_none(meta.get("parentToolCallId")) is not None:
            return events
        return [*events, *self._draft.add(text, is_thought=False)]

    def _retrying(self, params: Json) -> list[LlmAgentEvent]:
        """Drop the answer that broke off, as the program begins it again."""
        self._draft.drop()
        words = [text_or_none(params.get(key)) for key in ("category", "detail")]
        reason = ", ".join(word for word in words if word) or "the request failed"
        return [SystemMessage(text=f"Retrying: {reason}")]


class _Draft:
    """The message or the thought that the agent is writing."""

    def __init__(self) -> None:
        self.said = ""
        """The messages of this turn."""
        self._text = Draft()
        self._is_thought = False
        self._number = 0

    def add(self, text: str, *, is_thought: bool) -> list[LlmAgentEvent]:
        """Add a piece; the first one of a message completes a thought, and vice versa."""
        events = [] if is_thought == self._is_thought else self.end()
        self._is_thought = is_thought
        delta = self._text.add(text, str(self._number))
        return events if is_thought else [*events, delta]

    def end(self) -> list[LlmAgentEvent]:
        """Return the event of the complete text, or none."""
        texts = self.drop()
        if self._is_thought:
            return [Thinking(text=thought.text) for thought in texts]
        self.said += "".join(message.text for message in texts)
        return [*texts]

    def drop(self) -> list[AgentMessage]:
        """Begin anew, and return the text that was dropped."""
        texts = self._text.end()
        self._number += len(texts)
        return texts


def _read(model: type[_M], value: object) -> _M | None:
    """Return the value as this model, or None if it has another shape."""
    try:
        return model.model_validate(value, strict=True)
    except ValidationError:
        return None


def _first_prompt(options: SpawnOptions) -> str:
    prompt = options.prompt
    if options.system_prompt and options.resume_session_id is None:
        return f"{options.system_prompt}\n\n{prompt}"
    # The program would treat it as one of its commands.
    return f" {prompt}" if prompt.startswith("/") else prompt


def _explanation(denials: list[str]) -> str:
    """Return the prompt that gives the reasons, for which the protocol has no field."""
    lines = "\n".join(f"- {denial}" for denial in dict.fromkeys(denials))
    return (
        f"These tool calls were denied and did not run:\n{lines}\n"
        "No person has canceled your work. Continue it without them; if it is done, say so."
    )
