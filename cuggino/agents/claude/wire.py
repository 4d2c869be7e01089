"""The wire format of Claude Code's stream-json: lines to events, usage, and the fold of a session.

`to_events` converts a line, `UsageMeter` counts tokens and cost, and `ClaudeSession` folds the
lines of one run into its session id, usage and outcome. `claude.failure` names the error of a
failed run.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Unpack

from pydantic_core import from_json

from cuggino.agents.base.quota import quota_used, time_or_none
from cuggino.agents.base.reader import Ending, Known, Listener, ReaderOptions
from cuggino.agents.base.watch import same_text
from cuggino.agents.base.wire import (
    MOST_LEVELS,
    Json,
    Pieces,
    compact,
    deltas,
    dict_or_empty,
    failed_servers,
    is_number,
    output_text,
    parse_json_line,
    parse_json_lines,
    text_or_none,
)
from cuggino.agents.claude.failure import DIALECT, Told, failure_of, refused_login
from cuggino.agents.claude.guard import GuardWatch
from cuggino.agents.claude.input import input_line, input_message, refusal
from cuggino.domain import added_usage
from cuggino.errors import LlmSessionError
from cuggino.events import (
    AgentMessage,
    LlmAgentEvent,
    PingEvent,
    QuotaUsed,
    RateLimited,
    Steered,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UsageUpdate,
    UserMessage,
)


def to_events(raw: Json, *, now: float) -> list[LlmAgentEvent]:
    """Return the events of one line in the order of its blocks; unknown types have none (CUG-082).

    `now` (seconds since the epoch) is the time of a `PingEvent`. A `result` line has no event, as
    it is part of the session's end.
    """
    match raw.get("type"):
        case "stream_event":
            return [PingEvent(timestamp=now)]
        case "assistant":
            return _assistant_events(raw)
        case "user":
            return _user_events(raw)
        case "system":
            return _system_events(raw)
        case "rate_limit_event":
            return [*_windows(raw), _rate_limited(raw)]
        case _:
            return []


def is_api_error(raw: Json) -> bool:
    """Return True for an assistant line that reports an API error instead of the model's text."""
    return bool(raw.get("is_api_error_message") or raw.get("api_error"))


def message_text(raw: Json) -> str:
    """Return the text of this line's message."""
    blocks = _blocks(dict_or_empty(raw.get("message")))
    texts = [block["text"] for block in blocks if isinstance(block, dict) and "text" in block]
    return "\n".join(text for text in texts if isinstance(text, str))


def _assistant_events(raw: Json) -> list[LlmAgentEvent]:
    message = dict_or_empty(raw.get("message"))
    events: list[LlmAgentEvent] = []
    for block in _blocks(message):
        match block:
            case {"type": "text", "text": str(text)} if is_api_error(raw):
                events.append(SystemMessage(text=text))
            case {"type": "text", "text": str(text)}:
                events.append(
                    AgentMessage(
                        text=text,
                        message_id=text_or_none(message.get("id")),
                        parent_tool_use_id=text_or_none(raw.get("parent_tool_use_id")),
                    )
                )
            case {"type": "thinking", "thinking": str(text)} if text:
                events.append(Thinking(text=text))
            case {"type": "tool_use", "name": str(name)}:
                events.append(
                    ToolCall(
                        name=name,
                        input=_tool_input(block.get("input")),
                        id=text_or_none(block.get("id")) or "",
                    )
                )
            case _:
                pass
    return events


def _user_events(raw: Json) -> list[LlmAgentEvent]:
    events: list[LlmAgentEvent] = []
    for block in _blocks(dict_or_empty(raw.get("message"))):
        match block:
            case {"type": "text", "text": str(text)}:
                events.append(UserMessage(text=text))
            case {"type": "tool_result"}:
                events.append(
                    ToolResult(
                        name=text_or_none(block.get("tool_use_id")) or "unknown",
                        output=_tool_output(block.get("content"), raw.get("tool_use_result")),
                        is_error=block.get("is_error") is True,
                    )
                )
            case _:
                pass
    return events


def _system_events(raw: Json) -> list[LlmAgentEvent]:
    match raw.get("subtype"):
        case "init":
            # The program mentions servers that failed to start only here.
            failed = failed_servers(raw.get("mcp_servers"))
            return [SystemMessage(text="Session initialized"), *failed]
        case "api_retry":
            return [SystemMessage(text=_retry_text(raw))]
        case _:
            return []


def _retry_text(raw: Json) -> str:
    delay = raw.get("retry_delay_ms")
    wait = f", in {max(1, round(delay / 1000))}s" if is_number(delay) else ""
    reason = (text_or_none(raw.get("error")) or "unknown").replace("_", " ")
    if reason == "unknown":
        reason = "no answer from the API"
    status = raw.get("error_status")
    suffix = f" ({status})" if isinstance(status, int) else ""
    of = f"{raw.get('attempt', '?')} of {raw.get('max_retries', '?')}"
    return f"Retrying (attempt {of}{wait}): {reason}{suffix}"


def _rate_limited(raw: Json) -> RateLimited:
    info = _limit_info(raw)
    status, paid = text_or_none(info.get("status")) or "unknown", info.get("overageStatus")
    is_used = info.get("isUsingOverage") is True or info.get("overageInUse") is True
    is_offered = status == "rejected" and paid in ("allowed", "allowed_warning")
    return RateLimited(
        status=status,
        resets_at=time_or_none(info.get("resetsAt")),
        limit=text_or_none(info.get("rateLimitType")),
        overage=(is_used or is_offered) and paid != "rejected",  # it may be used up, too
    )


def _limit_info(raw: Json) -> Json:
    """Return the fields about a limit, which some versions nest."""
    return {**raw, **dict_or_empty(raw.get("rate_limit_info"))}


def _windows(raw: Json) -> list[QuotaUsed]:
    """Return the used share of each window of the plan in a `rate_limit_event`.

    Without a share, one that was surpassed is the best guess. A window whose limit is reached is
    used up, whatever its share.
    """
    info = _limit_info(raw)
    windows = {
        name: dict_or_empty(window)
        for name, window in dict_or_empty(info.get("unifiedWindows")).items()
    }
    limit = text_or_none(info.get("rateLimitType"))
    if limit is not None:
        windows[limit] = {**info, **windows.get(limit, {})}
        if info.get("status") == "rejected":
            windows[limit]["utilization"] = 1
    found = []
    for name, window in windows.items():
        if name.startswith("overage"):  # a budget of money
            continue
        used = window.get("utilization")
        share = used if is_number(used) else window.get("surpassedThreshold")
        found.append(quota_used(name, share, time_or_none(window.get("resetsAt"))))
    return [window for window in found if window is not None]


def _tool_input(value: Any) -> Any:
    """Pass input that is nested too deeply for an event as text."""
    return value if _depth_within(value, MOST_LEVELS) else compact(value)


def _depth_within(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    items = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_depth_within(item, levels - 1) for item in items)


def _tool_output(content: Any, tool_use_result: Any) -> str:
    if content is None:
        if isinstance(tool_use_result, dict):
            content = tool_use_result.get("stdout") or ""
        else:
            content = text_or_none(tool_use_result) or ""
    text = output_text(content)
    error = _TOOL_ERROR.fullmatch(text)
    return error[1] if error else text


def _blocks(message: Json) -> list[Any]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


_TOOL_ERROR = re.compile(r"<tool_use_error>(?:Error: )?(.*)</tool_use_error>\s*", re.DOTALL)
"""How the program marks an error of a tool for the model."""

_MODEL_KEYS = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "cache_read_tokens": "cacheReadInputTokens",
    "cache_creation_tokens": "cacheCreationInputTokens",
}
_USAGE_KEYS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_tokens": "cache_read_input_tokens",
    "cache_creation_tokens": "cache_creation_input_tokens",
}


class UsageMeter:
    """Counts the tokens and cost of one run, line by line.

    While the run continues, tokens come from its messages. A message of the main conversation
    counts when it is complete, in its final `message_delta`; an attempt that broke off has none and
    is not counted, though it is billed. Sub-agents stream nothing: their messages count when they
    start, by their `assistant` lines, which hold all of the input and almost none of the output. A
    result is more accurate and replaces what was counted since the previous one. It includes
    attempts that broke off, as far as the program received them.
    """

    def __init__(self) -> None:
        self._told: Usage | None = None
        """Reported by results."""
        self._counted: Usage | None = None
        """Counted from messages since the last result."""
        self._begun: Json = {}
        """Usage in the `message_start` of the current message."""
        self._last_of: dict[str, str | None] = {}
        """The last message of each sub-agent, as each block of a message is a separate line."""
        self._own_cost: float | None = None
        self._total_cost: float | None = None

    @property
    def usage(self) -> Usage | None:
        """Tokens of the run so far; None if none were reported."""
        return added_usage(self._told, self._counted)

    @property
    def cost(self) -> float | None:
        """US dollars of the run up to its last result; None before the first."""
        return self._own_cost if self._own_cost is not None else self._total_cost

    def count(self, raw: Json) -> bool:
        """Count this line; return True if the running total grew."""
        match raw.get("type"):
            case "stream_event" if raw.get("parent_tool_use_id") is None:
                return self._count_event(dict_or_empty(raw.get("event")))
            case "assistant" if parent := text_or_none(raw.get("parent_tool_use_id")):
                return self._count_sub_agent(parent, dict_or_empty(raw.get("message")))
            case "result":
                self._settle(raw)
            case _:
                pass
        return False

    def _count_event(self, event: Json) -> bool:
        match event.get("type"):
            case "message_start":
                self._begun = dict_or_empty(dict_or_empty(event.get("message")).get("usage"))
            case "message_delta":
                # It may repeat the counts of the input or leave them out.
                told = {k: v for k, v in dict_or_empty(event.get("usage")).items() if is_number(v)}
                usage, self._begun = {**self._begun, **told}, {}
                return self._add(_usage(usage, _USAGE_KEYS))
            case _:
                pass
        return False

    def _count_sub_agent(self, parent: str, message: Json) -> bool:
        message_id = text_or_none(message.get("id"))
        if message_id is not None and self._last_of.get(parent) == message_id:
            return False
        self._last_of[parent] = message_id
        return self._add(_usage(dict_or_empty(message.get("usage")), _USAGE_KEYS))

    def _add(self, usage: Usage) -> bool:
        if usage == _nothing():
            return False
        self._counted = added_usage(self._counted, usage)
        return True

    def _settle(self, raw: Json) -> None:
        if is_number(total := raw.get("total_cost_usd")):
            self._total_cost = float(total)
        counted, self._counted = self._counted, None
        models = raw.get("model_usage_since_last_result")
        if isinstance(models, dict):
            # The totals of the result itself are cumulative over `--resume`; these are not.
            self._own_cost = self._own_cost or 0.0
            for model in map(dict_or_empty, models.values()):
                self._told = added_usage(self._told, _usage(model, _MODEL_KEYS))
                self._own_cost += _number(model.get("costUSD"))
        elif isinstance(usage := raw.get("usage"), dict):
            # It excludes the sub-agents.
            told = _greater(_usage(usage, _USAGE_KEYS), counted or _nothing())
            self._told = added_usage(self._told, told)
        else:
            self._told = added_usage(self._told, counted)


@cache
def _nothing() -> Usage:
    return Usage()


def _greater(one: Usage, other: Usage) -> Usage:
    return Usage(**{name: max(count, getattr(other, name)) for name, count in one})


def _usage(counts: Json, keys: dict[str, str]) -> Usage:
    return Usage(**{name: int(_number(counts.get(key))) for name, key in keys.items()})


def _number(value: Any) -> float:
    return value if is_number(value) else 0


_STREAM_EVENT = b'{"type":"stream_event",'
_BLOCK_EVENT = b'{"type":"stream_event","event":{"type":"content_block_'
_WITH_TEXT = (b'"text_delta"', b'"content_block_start"')
"""Every block event with text contains one of these."""
_TEXT_DELTA = re.compile(
    rb'\{"type":"stream_event","event":\{"type":"content_block_delta","index":\d+,'
    rb'"delta":\{"type":"text_delta","text":"([^"\\]*(?:\\(?:u[0-9a-fA-F]{4}|[^u])[^"\\]*)*)"\}\},'
    rb'"session_id":"[^"\\]*","parent_tool_use_id":null'
    rb'(?:,"(?:uuid|api_message_id)":"[^"\\]*")*\}'
)
"""A delta of the model's own text with its text as JSON, in the usual order of keys."""

_MARKER_BEGIN = re.compile(rb"<|\\u003[cC]")
"""The character with which a marker begins, in JSON."""

_NOTHING_SAID = re.compile(
    rb'\{"type":"stream_event","event":\{"type":"(?:message_stop"\}|content_block_(?:stop",'
    rb'|delta","index":\d+,"delta":\{"type":"(?:input_json|thinking|signature)_delta",'
    rb'|start","index":\d+,"content_block":\{"type":"(?:tool_use|thinking)",))'
)
"""The beginning of a stream event that is only a sign of life."""

_THINKING = b'{"type":"system","subtype":"thinking_tokens",'
"""The beginning of an irrelevant line that accompanies every delta of reasoning."""

_INTERRUPTED = "[Request interrupted by user"


def hook_answer(raw: Json) -> Json | None:
    """Return the output of a hook if the line reports one, else None."""
    said = raw.get("stdout")
    if raw.get("subtype") != "hook_response" or not isinstance(said, str):
        return None
    return parse_json_line(said.encode("utf-8", "replace"))


def _with_surrogates(line: bytes, found: list[Json]) -> list[Json]:
    """Parse pieces of texts again with lone surrogates, which another line may complete."""
    if not (b"\\ud" in line or b"\\uD" in line):
        return found
    again = parse_json_lines(line, surrogates=True)
    pairs = zip(found, again, strict=True)
    return [piece if raw.get("type") == "stream_event" else raw for raw, piece in pairs]


def _is_interruption(block: Any) -> bool:
    match block:
        case {"type": "text", "text": str(text)}:
            return text.startswith(_INTERRUPTED)
        case _:
            return False


class _Writing:
    """Messages being written: the model's own, and those of sub-agents."""

    def __init__(self) -> None:
        self._message: dict[str | None, str] = {}
        """Id of the current message, by the call that started the sub-agent."""
        self._pieces = Pieces()

    def read(self, raw: Json) -> list[LlmAgentEvent]:
        event, agent = dict_or_empty(raw.get("event")), text_or_none(raw.get("parent_tool_use_id"))
        match event.get("type"):
            case "content_block_delta":
                delta = dict_or_empty(event.get("delta"))
                if delta.get("type") == "text_delta":
                    return self._delta(delta.get("text"), agent)
            case "content_block_start":
                block = dict_or_empty(event.get("content_block"))
                if block.get("type") == "text" and "text" in block:
                    self._pieces.end(agent)
                    return self._delta(block["text"], agent)
            case "message_start":
                message = dict_or_empty(event.get("message"))
                self._message[agent] = text_or_none(message.get("id")) or ""
                self._pieces.end(agent)
            case _:
                pass
        return []

    def finish(self, part: AgentMessage) -> list[LlmAgentEvent]:
        """Return the deltas missing from a part that is now complete."""
        agent = part.parent_tool_use_id
        left = self._pieces.end(agent)
        return self._told(left, agent) if self._message.get(agent) == part.message_id else []

    def add(self, text: str) -> list[LlmAgentEvent]:
        """Return the delta of text that the model itself has written."""
        return self._delta(text, None)

    def _delta(self, text: object, agent: str | None) -> list[LlmAgentEvent]:
        return self._told(self._pieces.add(agent, text), agent) if isinstance(text, str) else []

    def _told(self, text: str, agent: str | None) -> list[LlmAgentEvent]:
        return [*deltas(text, self._message.get(agent), agent)]


class _Talk:
    """What is said to the program while the session runs: a person's messages, and refusals.

    The program holds a message until the model's next tool calls. If there are none, it waits for
    the answer and begins another turn, which has a separate result.
    """

    def __init__(self) -> None:
        self._sent: dict[str, str] = {}
        """Texts in transit to the program, by id."""
        self._held: dict[str, str] = {}
        """Texts that the program holds."""
        self._asked: dict[str, str] = {}
        """Texts of the next request to the model."""
        self._questions: list[Json] = []
        """Requests from the program since the last answer."""

    def add(self, text: str) -> Json:
        """Return the program's input for a message."""
        number = str(uuid.uuid4())
        self._sent[number] = text
        return input_message(text, uuid=number)

    def answers(self) -> bytes:
        """Return refusals of the program's questions.

        If its input is closed, the program denies these without asking.
        """
        asked, self._questions = self._questions, []
        return "".join(input_line(refusal(question)) for question in asked).encode()

    def follow(self, raw: Json) -> None:
        """Record a question, or the state of a message that the program reports."""
        if raw.get("type") == "control_request":
            self._questions.append(raw)
        if raw.get("type") != "command_lifecycle":
            return
        number = text_or_none(raw.get("command_uuid")) or ""
        state = raw.get("state")
        if state == "queued" and number in self._sent:
            self._held[number] = self._sent.pop(number)
        elif state == "started" and number in self._held:
            self._asked[number] = self._held.pop(number)
        elif state in ("cancelled", "completed"):
            self._held.pop(number, None)
            self._asked.pop(number, None)

    def told(self, raw: Json) -> list[LlmAgentEvent]:
        """Return the messages delivered to the model, if this line begins its answer to them."""
        is_answer = dict_or_empty(raw.get("event")).get("type") == "message_start"
        if not is_answer or raw.get("parent_tool_use_id") is not None:
            return []
        asked, self._asked = self._asked, {}
        return [Steered(text=text, to="session") for text in asked.values()]

    @property
    def is_asked(self) -> bool:
        """True if the model's next answer is to a message."""
        return bool(self._asked)

    @property
    def is_waiting(self) -> bool:
        """True if a message is still to be delivered to the model."""
        return bool(self._held or self._asked)


_CUT = frozenset({"max_tokens", "model_context_window_exceeded"})
"""Reasons for which the API cuts a message."""
_REFUSALS = 2
"""Refused logins in a row that end a session."""


def step(known: Known, told: Told, raw: Json) -> tuple[Known, Told]:
    """Return what is known, and what the program has reported, after this line."""
    is_main = raw.get("parent_tool_use_id") is None
    match raw.get("type"), raw.get("subtype"):
        case "stream_event", _ if is_main:
            delta = dict_or_empty(dict_or_empty(raw.get("event")).get("delta"))
            reason = text_or_none(delta.get("stop_reason"))
            told = told._replace(stop_reason=reason or told.stop_reason)
        case "system", "init":
            known = known._replace(
                session_id=known.session_id or text_or_none(raw.get("session_id")),
                model=text_or_none(raw.get("model")) or known.model,
            )
        case "system", "api_retry":
            told = told._replace(refused=told.refused + 1 if raw.get("error_status") == 401 else 0)
        case "assistant", _ if is_main:
            told = told._replace(
                refused=0,
                error=raw if is_api_error(raw) else None,
                text=message_text(raw),
                stop_reason=text_or_none(dict_or_empty(raw.get("message")).get("stop_reason")),
            )
        case "assistant", _:
            told = told._replace(refused=0)
        case "user", _ if any(map(_is_interruption, _blocks(dict_or_empty(raw.get("message"))))):
            told = told._replace(is_interrupted=True)
        case "rate_limit_event", _:
            known = known._replace(limit=_rate_limited(raw))
        case "result", _:
            turns = raw.get("num_turns")
            known = known._replace(
                session_id=known.session_id or text_or_none(raw.get("session_id")),
                turns=known.turns + (turns if isinstance(turns, int) else 0),
            )
            told = told._replace(result=told.result or raw)
        case _:
            pass
    return known, told


class ClaudeSession(Listener):
    """The fold over one run of the program; see `LineReader`.

    The run ends with its process, not with its first result: background tasks may continue and add
    results of their own. The first result is the main answer and decides the outcome, unless a
    person's message follows it: then the next result does. Without `drafts` text may be streamed
    late, or not before it is complete, if it has no marker.
    """

    dialect = DIALECT
    _watch: GuardWatch | None

    def __init__(
        self,
        *,
        program: str = "claude",
        drafts: bool = True,
        **given: Unpack[ReaderOptions],
    ) -> None:
        super().__init__(program=program, **given)
        self._told = Told()
        self._meter = UsageMeter()
        self._writing = _Writing()
        self._talk = _Talk()
        self._drafts = drafts
        self._unread: list[re.Match[bytes]] = []
        """Deltas of the model's own text that were not decoded yet."""
        self._keeps = not drafts
        """True if they wait, as nothing in the current message can be a marker."""
        self._ping: PingEvent | None = None
        """The last ping, reused for lines of the same batch."""

    @property
    def is_over(self) -> bool:
        """True once no further turn follows, unless a task in the background begins one."""
        return self._told.result is not None and not self._talk.is_waiting

    def say(self, text: str) -> bytes:
        """Return the line for a message; `Steered` is emitted once the model has it."""
        return input_line(self._talk.add(text)).encode()

    def answers(self) -> bytes:
        """Return refusals of the program's questions, such as for network access of a command."""
        return self._talk.answers()

    @property
    def breach(self) -> LlmSessionError | None:
        """The error for which the session must end now: a breached guard or a refused login.

        The program would retry a refused login for three minutes. One retry is allowed, as the
        program may have renewed the login after the first refusal.
        """
        if self._told.refused >= _REFUSALS:
            return refused_login(self._program)
        return super().breach

    def feed(self, line: bytes, *, now: float) -> list[LlmAgentEvent]:
        """Return the events of this line (see `to_events`); `now` is in seconds since the epoch.

        Text is streamed as `MessageDelta`s; reasoning is not. A line that adds to the usage ends
        with a `UsageUpdate` of the total (see `UsageMeter`). Never raises: unknown lines are
        skipped.
        """
        # Many lines are mere signs of life. The order of keys varies, so other lines of this kind
        # exist, and are found by parsing.
        if line.startswith(_BLOCK_EVENT) and not any(word in line for word in _WITH_TEXT):
            return [self._alive(now)]
        # One piece of a text may end within a pair of surrogates.
        found = _with_surrogates(line, self._messages_in(line))
        if not found and line.startswith(_STREAM_EVENT):
            return [self._alive(now)]  # even an incomplete line is a sign of life
        return [event for raw in found for event in self.read(raw, now=now)]

    def feed_all(self, lines: Sequence[bytes], *, now: float) -> Iterator[LlmAgentEvent]:
        """Yield the events of lines that came at once, as `feed` does, but faster.

        Deltas of the model's own text, as the program usually writes them, are not parsed: their
        texts are joined as they are, and decoded once. Without `drafts` they are kept until a `<`,
        which may begin a marker, or a line that is parsed. All other lines are parsed, up to a
        breach.
        """
        delta_of, nothing_said_in = _TEXT_DELTA.fullmatch, _NOTHING_SAID.match
        may_begin_marker = _MARKER_BEGIN.search
        unread, is_alive = self._unread, False
        for line in lines:
            if line.startswith(_STREAM_EVENT):
                if (delta := delta_of(line)) is not None:
                    unread.append(delta)
                    self._keeps = self._keeps and not may_begin_marker(delta[1])
                    is_alive = True
                    continue
                if nothing_said_in(line) is not None:
                    is_alive = True
                    continue
            elif line.startswith(_THINKING):
                continue
            yield from self._read_deltas(now)
            yield from self.feed(line, now=now)
            if self.breach is not None:
                return
        if not self._keeps:
            yield from self._read_deltas(now)
        if is_alive:
            yield self._alive(now)

    def _read_deltas(self, now: float) -> Iterator[LlmAgentEvent]:
        """Yield the events of the unread deltas."""
        unread, self._unread[:] = [*self._unread], []
        if not unread:
            return
        try:
            text = from_json(b'"%b"' % b"".join(delta[1] for delta in unread))
        except ValueError:  # half of a surrogate pair, or not JSON
            for delta in unread:
                yield from self.feed(delta[0], now=now)
            return
        yield self._alive(now)
        if not self._told.has_failed:
            yield from self._writing.add(text)

    def read(self, raw: Json, *, now: float) -> list[LlmAgentEvent]:
        if raw.get("type") == "stream_event":  # the vast majority, used by nothing else
            if self._talk.is_asked and (told := self._talk.told(raw)):
                self._told = self._told._replace(result=None)
                return [*told, *self.read(raw, now=now)]
            if dict_or_empty(raw.get("event")).get("type") == "message_delta":
                self.known, self._told = step(self.known, self._told, raw)
            is_void = self._told.has_failed or self._is_foreign(raw)
            said = [] if is_void else self._writing.read(raw)
            return [self._alive(now), *said, *self._counted(raw)]
        if raw.get("type") == "result" and self._is_void(raw):
            return []
        events = to_events(raw, now=now)
        if self._watch:
            events = [*self._watch.read(raw, hook_answer(raw)), *events]
        self.known, self._told = step(self.known, self._told, raw)
        if raw.get("type") == "assistant":
            if raw.get("parent_tool_use_id") is None:
                self._keeps = not self._drafts
            if self._told.has_failed or self._is_foreign(raw):
                events = [event for event in events if not isinstance(event, AgentMessage)]
            events = [*self._unfinished(events), *events]
        else:
            self._talk.follow(raw)
        return [*events, *self._counted(raw)]

    def failure(self, ending: Ending) -> LlmSessionError | None:
        reason = text_or_none((self._told.result or {}).get("stop_reason"))
        self.known = self.known._replace(
            is_truncated=(reason or self._told.stop_reason) in _CUT,
            usage=self._meter.usage,
            cost_usd=self._meter.cost,
        )
        return failure_of(self.known, self._told, ending)

    def _is_foreign(self, raw: Json) -> bool:
        """Return whether the line belongs to another session."""
        other = text_or_none(raw.get("session_id"))
        return None not in (other, self.known.session_id) and other != self.known.session_id

    def _is_void(self, result: Json) -> bool:
        """Remember the result; return whether it was there before, or is of another session."""
        key, known = text_or_none(result.get("uuid")) or same_text(result), self._told.results
        self._told = self._told._replace(results=known | {key})
        return key in known or self._is_foreign(result)

    def _alive(self, now: float) -> PingEvent:
        if self._ping is None or self._ping.timestamp != now:
            self._ping = PingEvent(timestamp=now)
        return self._ping

    def _counted(self, raw: Json) -> list[UsageUpdate]:
        usage = self._meter.usage if self._meter.count(raw) else None
        # Sub-agents may have other models.
        model = text_or_none(dict_or_empty(raw.get("message")).get("model")) or self.known.model
        return [UsageUpdate(usage=usage, model=model)] if usage else []

    def _unfinished(self, events: list[LlmAgentEvent]) -> list[LlmAgentEvent]:
        """Return the missing deltas of the parts that are now complete."""
        parts = (event for event in events if isinstance(event, AgentMessage))
        return [delta for part in parts for delta in self._writing.finish(part)]
