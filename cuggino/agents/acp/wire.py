"""The wire format of the Agent Client Protocol: the fold over the lines of one session.

Newline-delimited JSON-RPC 2.0 in both directions. The fold parses the program's output and collects
the messages to send to it. It starts no processes and makes no guard decisions.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

from cuggino.agents.acp.failure import dialect, failed_turn, failure_of
from cuggino.agents.acp.messages import PROTOCOL, chosen_value, denials, hello, mcp_server
from cuggino.agents.acp.profiles import Profile
from cuggino.agents.acp.spending import Spending
from cuggino.agents.acp.tools import Told, key_of, refusal
from cuggino.agents.base.calls import Call
from cuggino.agents.base.failure import PlainLines, outcome_of
from cuggino.agents.base.program import encodable
from cuggino.agents.base.refusals import judge_ending
from cuggino.agents.base.watch import Used, Verdict, Watch
from cuggino.agents.base.wire import (
    Json,
    dict_or_empty,
    list_or_empty,
    parse_json_line,
    shown,
    text_or_none,
)
from cuggino.errors import AgentFailed, GuardNotLive, LlmSessionError
from cuggino.events import (
    AgentMessage,
    LlmAgentEvent,
    MessageDelta,
    PingEvent,
    SessionEnded,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolResult,
)

MOST_PROMPTS = 5
"""Maximum consecutive extra prompts that explain to the agent why its calls were denied."""

_CHOICE = "Nobody is there to choose between its answers: do without"
_NOT_OFFERED = -32601
_RETRYING = "_session/retrying"
"""Mistral Vibe's notification that it retries a request and starts its answer over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The task of a session."""

    prompt: str
    cwd: Path
    system_prompt: str | None = None
    resume: str | None = None
    model: str | None = None
    servers: Mapping[str, object] = field(default_factory=dict)
    is_guarded: bool = False
    is_confined: bool = False
    """True if the system confines the program: calls that it does not ask about go unchecked."""
    is_trial: bool = False
    """True if the session ends before its prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A call to be judged: before it runs, or after it ran without being asked about."""

    call: Call
    call_id: str
    request: object = None
    """The id of the permission request; None for a call that has already run."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The ids of the answers that the program offers, by kind."""
    refusal: str = ""
    """The reason why it cannot be allowed, or ""."""


class AcpSession:
    """The fold over one session: feed it every line, judge its `question`s, then end it once.

    Send its `output` to the program. While it has a `question`, feed it no more lines.
    """

    def __init__(self, profile: Profile, order: Order, *, zone: tzinfo = UTC) -> None:
        self.session_id: str | None = order.resume
        self.is_over = False
        self.has_begun = False
        """True once the prompt has been sent."""
        self._watch = Watch()
        self._profile, self._order, self._zone = profile, order, zone
        self._plain = PlainLines()
        self._output = bytearray()
        self._number = 0
        self._set: set[str] = set()
        """Options that were set."""
        self._waiting: dict[int, tuple[str, Callable[[Json], list[LlmAgentEvent]]]] = {}
        self._is_muted = False
        self._error: LlmSessionError | None = None
        self._calls: dict[str, Told] = {}
        self._emitted: set[str] = set()
        self._open: dict[str, None] = {}
        """Emitted calls that have no result yet."""
        self._verdicts: dict[str, Verdict] = {}
        self._reasons: list[str] = []
        self._questions: deque[Question] = deque()
        self._prompts = 0
        self._turns = 0
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._messages = 0
        self._said = ""
        """The text of this turn."""
        self._has_worked = False
        """True if a call was reported in this turn."""
        self._spending = Spending(profile)
        self._now = 0.0
        self._call("initialize", hello(), self._initialized)

    @property
    def breach(self) -> GuardNotLive | None:
        """The error for which the session must end immediately, or None."""
        return self._watch.breach

    @property
    def question(self) -> Question | None:
        """The call to be judged next, or None."""
        return self._questions[0] if self._questions else None

    def output(self) -> bytes:
        """Return the new output for the program since the last call."""
        data = bytes(self._output)
        self._output.clear()
        return data

    def feed(self, line: bytes, *, now: float) -> list[LlmAgentEvent]:
        """Return the events of this line; `now` is in seconds since the epoch. Never raises."""
        self._now = now
        message = parse_json_line(line)
        if message is None:
            self._plain.add(line)
        if message is None or self.is_over:
            return []
        method, number = message.get("method"), message.get("id")
        if method is None:
            return self._answered(number, message)
        params = dict_or_empty(message.get("params"))
        if number is not None:
            return self._asked(method, number, params)
        if method == "session/update":
            update = dict_or_empty(params.get("update"))
            is_past = self._is_muted and update.get("sessionUpdate") != "usage_update"
            events = [] if is_past or self._is_foreign(params) else self._update(update)
            return events or [PingEvent(timestamp=now)]
        if method == _RETRYING:
            return self._retrying(params)
        self._check_mode(params.get("currentModeId"))
        return [PingEvent(timestamp=now)]

    def answer(self, verdict: Verdict) -> list[LlmAgentEvent]:
        """Answer the question."""
        question = self._questions.popleft()
        call, call_id = question.call, question.call_id
        if question.request is None:
            if not verdict.is_allowed:
                self._watch.fail(f"{call.tool} was used without its verdict: {verdict.reason}")
            return []
        option = question.options.get("allow_once" if verdict.is_allowed else "reject_once")
        chosen = {"outcome": "selected", "optionId": option} if option else {"outcome": "cancelled"}
        self._send({"id": question.request, "result": {"outcome": chosen}})
        if not self._is_denied(call_id):
            self._verdicts[call_id] = verdict
        if not verdict.is_allowed:
            self._reasons.append(f"{verdict.part}: {verdict.reason}")
        denied = self._watch.see(Used(verdict, call_id))
        return [*denied] if self._order.is_guarded else []

    def rest(self) -> list[LlmAgentEvent]:
        """Return the unfinished last message of a program that ended while writing it."""
        return self._flush()

    def end(
        self, failure: LlmSessionError | None, *, exit_code: int, stderr_tail: str, duration: float
    ) -> tuple[SessionEnded, LlmSessionError | None]:
        """Return how the session ended; `failure` is an external cause."""
        error: LlmSessionError | None = self.breach
        if error is None and not self.is_over:
            error = failure or judge_ending(
                dialect(self._login),
                program=self._profile.command[0],
                exit_code=exit_code,
                said=self._plain.after(stderr_tail),
                now=datetime.fromtimestamp(self._now, UTC),
                zone=self._zone,
            )
        error = error or self._error
        ended = SessionEnded(
            outcome=outcome_of(error),
            usage=self._spending.usage,
            cost_usd=self._spending.cost,
            model=self._spending.model,
            duration=duration,
            num_turns=self._turns or None,
            session_id=self.session_id,
        )
        return ended, error

    # -- output for the program

    def _send(self, message: Json) -> None:
        self._output += json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"

    def _call(self, method: str, params: Json, then: Callable[[Json], list[LlmAgentEvent]]) -> None:
        number = self._number = self._number + 1
        self._waiting[number] = (method, then)
        self._send({"id": number, "method": method, "params": params})

    def _prompt(self, text: str) -> None:
        self.has_begun = True
        self._turns += 1
        self._said, self._has_worked = "", False
        content = [{"type": "text", "text": encodable(text)}]
        params = {"sessionId": self.session_id, "prompt": content}
        self._call("session/prompt", params, self._stopped)

    # -- the course of a session

    def _answered(self, number: Any, message: Json) -> list[LlmAgentEvent]:
        waiting = self._waiting.pop(number, None) if isinstance(number, int) else None
        if waiting is None:
            return []
        method, then = waiting
        if "error" in message:
            return self._failed(method, dict_or_empty(message.get("error")))
        return then(dict_or_empty(message.get("result")))

    def _failed(self, method: str, error: Json) -> list[LlmAgentEvent]:
        if method == "session/set_config_option" and self._order.is_guarded:
            self._watch.fail(f"its mode {self._profile.mode} could not be set")
            return []
        return self._finish(
            failure_of(
                self._profile.command[0],
                method,
                error,
                now=datetime.fromtimestamp(self._now, UTC),
                zone=self._zone,
                login=self._login,
            )
        )

    @property
    def _login(self) -> str:
        return f"log in with `{self._profile.command[0]}`, or set the key of its API"

    def _initialized(self, result: Json) -> list[LlmAgentEvent]:
        order, profile = self._order, self._profile
        if result.get("protocolVersion") != PROTOCOL:
            version = result.get("protocolVersion")
            message = f"{profile.command[0]} speaks ACP {version}, not {PROTOCOL}"
            return self._finish(AgentFailed(message, reason="crash", hint="update it or cuggino"))
        offered = dict_or_empty(result.get("agentCapabilities"))
        remote = dict_or_empty(offered.get("mcpCapabilities"))
        servers = [mcp_server(name, given) for name, given in order.servers.items()]
        missing = [one["name"] for one in servers if "type" in one and not remote.get(one["type"])]
        base = {
            "cwd": str(order.cwd),
            "mcpServers": [one for one in servers if one["name"] not in missing],
        }
        told: list[LlmAgentEvent] = [
            SystemMessage(text=f"MCP server {name} is left out: the agent takes no such servers")
            for name in missing
        ]
        if order.resume is None:
            self._call("session/new", base, self._opened)
            return told
        again = {**base, "sessionId": order.resume}
        self._is_muted = True
        if "resume" in dict_or_empty(offered.get("sessionCapabilities")):
            self._call("session/resume", again, self._opened)
        elif offered.get("loadSession") is True:
            self._call("session/load", again, self._opened)
        else:
            message = f"{profile.command[0]} cannot resume sessions"
            return [*told, *self._finish(AgentFailed(message, reason="bad_request"))]
        return told

    def _opened(self, result: Json) -> list[LlmAgentEvent]:
        self._is_muted = False
        told = self._order.resume or text_or_none(result.get("sessionId"))
        if not told:
            return self._finish(AgentFailed("the agent named no session", reason="crash"))
        self.session_id = told
        begun: list[LlmAgentEvent] = [SystemMessage(text="Session initialized")]
        return [*begun, *self._configure(result)]

    def _configure(self, result: Json) -> list[LlmAgentEvent]:
        """Set what differs from the order, one option at a time, then send the prompt."""
        options = {
            text_or_none(one.get("category")) or text_or_none(one.get("id")): one
            for one in list_or_empty(result.get("configOptions"))
            if isinstance(one, dict)
        }
        self._spending.configured(result, options.get("model"))
        for category, wanted in (("mode", self._profile.mode), ("model", self._order.model)):
            if wanted is None:
                continue
            option = options.get(category)
            value = None if option is None else chosen_value(option, wanted)
            if option is None or value is None:
                return self._not_offered(category, wanted, option or {})
            if option.get("currentValue") == value:
                continue
            name = text_or_none(option.get("id"))
            if name is None or name in self._set:
                return self._not_offered(category, wanted, option or {})
            self._set.add(name)
            params = {"sessionId": self.session_id, "configId": name, "value": value}
            self._call("session/set_config_option", params, self._configure)
            return []
        if self._order.is_trial:
            return self._finish(None)
        self._prompt(self._first())
        return []

    def _first(self) -> str:
        order = self._order
        if order.system_prompt and order.resume is None:
            return f"{order.system_prompt}\n\n{order.prompt}"
        # The program would treat it as one of its commands.
        return f" {order.prompt}" if order.prompt.startswith("/") else order.prompt

    def _not_offered(self, category: str, wanted: str, option: Json) -> list[LlmAgentEvent]:
        if category == "mode" and self._order.is_guarded:
            self._watch.fail(f"its mode {wanted} is not in force")
            return []
        message = f"{self._profile.command[0]} does not offer the {category} {wanted}"
        given = [dict_or_empty(one).get("value") for one in list_or_empty(option.get("options"))]
        names = ", ".join(name for name in given if isinstance(name, str))
        hint = f"it offers {names}" if names else None
        return self._finish(AgentFailed(message, reason="bad_request", hint=hint))

    def _stopped(self, result: Json) -> list[LlmAgentEvent]:
        events = self._flush()
        events += self._spending.turn(dict_or_empty(result.get("usage")))
        for call_id in list(self._open):
            # It may have run in part, even if it failed.
            self._look_back(self._calls[call_id].call(self._profile), call_id, has_failed=True)
            events.append(self._result(call_id, is_error=True))
        reason = text_or_none(result.get("stopReason")) or "unknown"
        if self._reasons and reason in ("end_turn", "cancelled"):
            if self._prompts < MOST_PROMPTS:
                self._prompts += 1
                text, self._reasons = denials(self._reasons), []
                self._prompt(text)
                return events
            message = f"the agent repeated denied calls after {MOST_PROMPTS} explanations"
            return [*events, *self._finish(AgentFailed(message, reason="aborted"))]
        return [*events, *self._finish(self._reason(reason))]

    def _reason(self, reason: str) -> LlmSessionError | None:
        return failed_turn(
            self._profile.command[0],
            self._said,
            reason=reason,
            has_worked=self._has_worked,
            now=datetime.fromtimestamp(self._now, UTC),
            zone=self._zone,
            login=self._login,
        )

    def _finish(self, error: LlmSessionError | None) -> list[LlmAgentEvent]:
        self.is_over, self._error = True, error
        return []

    # -- requests of the program

    def _asked(self, method: str, number: Any, params: Json) -> list[LlmAgentEvent]:
        if method != "session/request_permission":
            self._send({"id": number, "error": {"code": _NOT_OFFERED, "message": "not offered"}})
            return []
        update = dict_or_empty(params.get("toolCall"))
        call_id = text_or_none(update.get("toolCallId"))
        if call_id is None or self._is_foreign(params):
            self._send({"id": number, "result": {"outcome": {"outcome": "cancelled"}}})
            return []
        told = self._told(call_id, update)
        call = told.call(self._profile)
        events = [*self._flush(), *self._emit(told, call)]
        options: dict[str, str] = {}
        kinds: list[str] = []
        for option in list_or_empty(params.get("options")):
            kind = text_or_none(dict_or_empty(option).get("kind"))
            name = text_or_none(dict_or_empty(option).get("optionId"))
            if kind is not None and name is not None:
                kinds.append(kind)
                options.setdefault(kind, name)
        is_single = kinds.count("allow_once") == 1
        question = Question(
            call=call,
            call_id=call_id,
            request=number,
            options=options,
            refusal=refusal(call, self._profile) or ("" if is_single else _CHOICE),
        )
        self._questions.append(question)
        return events

    def _is_foreign(self, params: Json) -> bool:
        return params.get("sessionId") != self.session_id

    # -- updates of the session

    def _update(self, update: Json) -> list[LlmAgentEvent]:
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                return self._chunk(update)
            case "agent_thought_chunk":
                text = text_or_none(dict_or_empty(update.get("content")).get("text"))
                events = self._flush(thoughts=False)
                self._thoughts.append(text or "")
                return events
            case "tool_call" | "tool_call_update":
                return self._tool(update)
            case "usage_update":
                is_before = not self.has_begun
                self._spending.total(dict_or_empty(update.get("cost")), is_before=is_before)
                if is_before:
                    self._spending.before(dict_or_empty(update.get("_meta")))
            case "current_mode_update":
                self._check_mode(update.get("currentModeId"))
            case "config_option_update":
                for option in list_or_empty(update.get("configOptions")):
                    given = dict_or_empty(option)
                    if "mode" in (given.get("category"), given.get("id")):
                        self._check_mode(given.get("currentValue"))
            case _:
                pass
        return []

    def _check_mode(self, mode: Any) -> None:
        """End a guarded session whose program left the mode in which it asks."""
        wanted = self._profile.mode
        if not (self._order.is_guarded and self.has_begun and wanted is not None):
            return
        if mode is not None and mode != wanted:
            self._watch.fail(f"its mode changed from {wanted} to {mode}")

    def _chunk(self, update: Json) -> list[LlmAgentEvent]:
        meta = dict_or_empty(update.get("_meta"))
        text = text_or_none(dict_or_empty(update.get("content")).get("text")) or ""
        events: list[LlmAgentEvent] = []
        if used := dict_or_empty(meta.get("usage")):
            events = [*self._flush(), *self._spending.request(used)]
        if text and meta.get("qwenDiscreteMessage") is True:
            return [*events, *self._flush(), SystemMessage(text=text)]
        parent = text_or_none(meta.get("parentToolCallId"))
        if not text or parent is not None:
            return events
        events += self._flush(texts=False)
        self._texts.append(text)
        return [*events, MessageDelta(text=text, message_id=self._message_id)]

    def _retrying(self, told: Json) -> list[LlmAgentEvent]:
        """Drop the answer that broke off, as the program begins it again."""
        if self._texts:
            self._messages += 1
        self._texts.clear()
        self._thoughts.clear()
        words = [text_or_none(told.get(key)) for key in ("category", "detail")]
        reason = ", ".join(word for word in words if word) or "the request failed"
        return [SystemMessage(text=f"Retrying: {reason}")]

    @property
    def _message_id(self) -> str:
        return f"{self._turns}.{self._messages}"

    def _flush(self, *, texts: bool = True, thoughts: bool = True) -> list[LlmAgentEvent]:
        """Return the message and the thought that are complete now."""
        events: list[LlmAgentEvent] = []
        if thoughts and (thought := "".join(self._thoughts)):
            self._thoughts.clear()
            events.append(Thinking(text=thought))
        if texts and self._texts:
            text = "".join(self._texts)
            self._texts.clear()
            self._said += text
            events.append(AgentMessage(text=text, message_id=self._message_id))
            self._messages += 1
        return events

    def _told(self, call_id: str, update: Json) -> Told:
        told = self._calls.setdefault(call_id, Told(call_id, cwd=self._order.cwd))
        told.add(update, self._profile)
        return told

    def _tool(self, update: Json) -> list[LlmAgentEvent]:
        call_id = text_or_none(update.get("toolCallId"))
        if call_id is None:
            return []
        self._has_worked = True
        if update.get("sessionUpdate") == "tool_call":
            self._forget(call_id)
        told = self._told(call_id, update)
        call, status = told.call(self._profile), update.get("status")
        events = self._flush()
        runs = status == "in_progress" and self._profile.arguments == "input"
        if told.input is not None or runs or status in ("completed", "failed"):
            events += self._emit(told, call)
        if status in ("completed", "failed"):
            self._look_back(call, call_id, has_failed=status == "failed")
            if call_id in self._open:
                events.append(self._result(call_id, is_error=status == "failed"))
        return events

    def _forget(self, call_id: str) -> None:
        """Forget a call that has ended: another one has its id."""
        if call_id in self._emitted and call_id not in self._open:
            self._emitted.discard(call_id)
            self._calls.pop(call_id, None)
            self._verdicts.pop(call_id, None)

    def _emit(self, told: Told, call: Call) -> list[LlmAgentEvent]:
        """Emit the call once, when its input is known."""
        self._has_worked = True
        if told.id in self._emitted:
            return []
        self._emitted.add(told.id)
        self._open[told.id] = None
        given = shown(call.input if call.input is not None else {})
        return [ToolCall(name=call.tool, input=given, id=told.id)]

    def _result(self, call_id: str, *, is_error: bool) -> ToolResult:
        self._open.pop(call_id, None)
        output = self._calls[call_id].output
        if self._is_denied(call_id):
            output, is_error = self._verdicts[call_id].reason, True
        return ToolResult(name=call_id, output=output, is_error=is_error)

    def _is_denied(self, call_id: str) -> bool:
        verdict = self._verdicts.get(call_id)
        return verdict is not None and not verdict.is_allowed

    def _look_back(self, call: Call, call_id: str, *, has_failed: bool) -> None:
        """Have a call judged that ran without being asked about, or not as it was asked about."""
        verdict = self._verdicts.get(call_id)
        if verdict is not None and verdict.is_allowed:
            del self._verdicts[call_id]  # it allows a single call
        if not self._order.is_guarded or (has_failed and call.tool != "Bash"):
            return
        unrun = self._profile.unrun
        if has_failed and unrun and self._calls[call_id].output.startswith(unrun):
            return
        if call.tool == "AskUserQuestion":
            return  # without an answer, some of these complete all the same
        if verdict is not None and not verdict.is_allowed:
            if not has_failed:
                self._watch.ran(call.tool, verdict)
        elif not self._order.is_confined and (verdict is None or key_of(call) not in verdict.keys):
            self._questions.append(Question(call=call, call_id=call_id))
