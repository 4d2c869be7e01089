"""The wire of Claude Code's stream-json, from bytes to the end of a run.

Three pieces that know nothing of processes or clocks: `json_values.parse_json_line` reads a line,
`claude.events.to_events` says what it means, and `ClaudeSession` (here) folds the lines of one run
of the program into what is known only at its end: session, cost, tokens, and whether it succeeded.
How a failure is named is in `claude.failure`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo

from cuggino.agents.claude.events import is_api_error, to_events
from cuggino.agents.claude.failure import Ending, failure_of
from cuggino.agents.claude.usage import UsageMeter
from cuggino.agents.failures import outcome_of
from cuggino.agents.guard_watch import GuardWatch
from cuggino.agents.json_values import Json, dict_or_empty, parse_json_line, text_or_none
from cuggino.agents.pieces import Pieces
from cuggino.agents.zone import local_zone
from cuggino.errors import LlmSessionError
from cuggino.events import (
    AgentMessage,
    LlmAgentEvent,
    MessageDelta,
    PingEvent,
    RateLimited,
    SessionEnded,
    UsageUpdate,
    UserMessage,
)

_STREAM_EVENT = b'{"type":"stream_event",'
_BLOCK_EVENT = b'{"type":"stream_event","event":{"type":"content_block_'
_WITH_TEXT = (b'"text_delta"', b'"content_block_start"')
"""One of these is in every block event that tells text."""
_INTERRUPTED = "[Request interrupted by user"


def hook_answer(raw: Json) -> Json | None:
    """What a hook printed, of a line that tells it; None for anything else."""
    said = raw.get("stdout")
    if raw.get("subtype") != "hook_response" or not isinstance(said, str):
        return None
    return parse_json_line(said.encode("utf-8", "replace"))


def _with_surrogates(line: bytes, raw: Json) -> Json:
    """The object as the line tells it, whose halves may be completed by another line."""
    if b"\\u" in line and (b"\\ud" in line or b"\\uD" in line):
        whole = json.loads(line.decode("utf-8", "replace"))
        return whole if isinstance(whole, dict) else raw
    return raw


def _is_interruption(event: LlmAgentEvent) -> bool:
    return isinstance(event, UserMessage) and event.text.startswith(_INTERRUPTED)


class _Writing:
    """The texts that are being written: the model's own, and those of sub-agents."""

    def __init__(self) -> None:
        self._message: dict[str | None, str] = {}
        """The id of the message that is written, by the call of the sub-agent."""
        self._pieces = Pieces()

    def read(self, raw: Json) -> list[LlmAgentEvent]:
        """The deltas of a stream event."""
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
        """What is left to be told before the part is complete."""
        agent = part.parent_tool_use_id
        left = self._pieces.end(agent)
        return self._told(left, agent) if self._message.get(agent) == part.message_id else []

    def _delta(self, text: object, agent: str | None) -> list[LlmAgentEvent]:
        return self._told(self._pieces.add(agent, text), agent) if isinstance(text, str) else []

    def _told(self, text: str, agent: str | None) -> list[LlmAgentEvent]:
        message_id = self._message.get(agent)
        if not text or not message_id:
            return []
        return [MessageDelta(text=text, message_id=message_id, parent_tool_use_id=agent)]


class ClaudeSession:
    """The fold over one run of the program: feed it every line of stdout, then end it once.

    The run ends with its process, not with its first result: background tasks go on after it and
    add results of their own. The first result is the main answer, and decides. `program` is what
    the program is called in messages; `zone` gives the time zone in which it tells times without
    one, and is asked only when it does. `guard` watches over a session that is held to a policy.
    """

    def __init__(
        self,
        *,
        program: str = "claude",
        zone: Callable[[], tzinfo] = lambda: local_zone(os.environ),
        guard: GuardWatch | None = None,
    ) -> None:
        self._program = program
        self._guard = guard
        self._zone = zone
        self.session_id: str | None = None
        """With it the session can be resumed; known from the first line on."""
        self.version: str | None = None
        """The version of the program, as it says."""
        self._result: Json | None = None
        self._api_error: Json | None = None
        self._limit: RateLimited | None = None
        self._interrupted = False
        self._meter = UsageMeter()
        self._num_turns: int | None = None
        self._writing = _Writing()
        self._ping = PingEvent(timestamp=0.0)
        """The last sign of life: of many lines at once it is the same."""

    @property
    def has_result(self) -> bool:
        """True once the main answer is complete; background tasks may still hold the process."""
        return self._result is not None

    @property
    def limit(self) -> RateLimited | None:
        """The last that the program said of a usage limit."""
        return self._limit

    @property
    def breach(self) -> LlmSessionError | None:
        """Why the session must be ended at once, if it must: its guard does not hold it."""
        return self._guard.breach if self._guard else None

    def feed(self, line: bytes, *, now: float) -> list[LlmAgentEvent]:
        """The events of this line (see `to_events`); `now` is in seconds since the epoch.

        Text that is being written is told by `MessageDelta`s; what is thought meanwhile is not.
        A line that adds to what the session has used ends with a `UsageUpdate` of its total (see
        `UsageMeter`). Never raises: what is not understood is skipped.
        """
        # Many lines say nothing but that the program is alive. The order of keys varies, so other
        # lines of this kind exist, and are found by parsing.
        if line.startswith(_BLOCK_EVENT) and not any(word in line for word in _WITH_TEXT):
            return [self._alive(now)]
        raw = parse_json_line(line)
        if raw is None:
            # Cut short or not, it is a sign of life.
            return [self._alive(now)] if line.startswith(_STREAM_EVENT) else []
        if raw.get("type") == "stream_event":  # by far the most: nothing else looks at them
            said = self._writing.read(_with_surrogates(line, raw))
            return [self._alive(now), *said, *self._counted(raw)]
        events = to_events(raw, now=now)
        if self._guard:
            events = [*self._guard.read(raw, hook_answer(raw)), *events]
        match raw.get("type"):
            case "system" if raw.get("subtype") == "init":
                self.session_id = text_or_none(raw.get("session_id")) or self.session_id
                self.version = text_or_none(raw.get("claude_code_version")) or self.version
            case "assistant":
                if raw.get("parent_tool_use_id") is None:
                    self._api_error = raw if is_api_error(raw) else None
                events = [*self._unfinished(events), *events]
            case "user":
                self._interrupted = self._interrupted or any(map(_is_interruption, events))
            case "rate_limit_event":
                told = (event for event in events if isinstance(event, RateLimited))
                self._limit = next(told, self._limit)
            case "result":
                self._add_result(raw)
            case _:
                pass
        return [*events, *self._counted(raw)]

    def end(
        self, *, exit_code: int, stderr_tail: str, duration: float, now: float
    ) -> tuple[SessionEnded, LlmSessionError | None]:
        """How the run ended, and its error if it failed (CUG-083).

        `exit_code` is negative when a signal ended the process; `duration` is in seconds, `now` in
        seconds since the epoch. A session without a result has no known cost, and has used what
        its messages said.
        """
        ending = Ending(
            result=self._result,
            api_error=self._api_error,
            limit=self._limit,
            interrupted=self._interrupted,
            program=self._program,
            now=datetime.fromtimestamp(now, UTC),
            zone=self._zone,
        )
        error = failure_of(ending, exit_code=exit_code, stderr_tail=stderr_tail)
        ended = SessionEnded(
            outcome=outcome_of(error),
            cost_usd=self._meter.cost,
            usage=self._meter.usage,
            duration=duration,
            num_turns=self._num_turns,
            session_id=self.session_id,
        )
        return ended, error

    def _alive(self, now: float) -> PingEvent:
        if self._ping.timestamp != now:
            self._ping = PingEvent(timestamp=now)
        return self._ping

    def _counted(self, raw: Json) -> list[UsageUpdate]:
        usage = self._meter.usage if self._meter.count(raw) else None
        return [UsageUpdate(usage=usage)] if usage else []

    def _unfinished(self, events: list[LlmAgentEvent]) -> list[LlmAgentEvent]:
        """What belongs to the parts that are complete now, and was not told."""
        parts = (event for event in events if isinstance(event, AgentMessage))
        return [delta for part in parts for delta in self._writing.finish(part)]

    def _add_result(self, raw: Json) -> None:
        if self._result is None:
            self._result = raw
        self.session_id = self.session_id or text_or_none(raw.get("session_id"))
        if isinstance(turns := raw.get("num_turns"), int):
            self._num_turns = (self._num_turns or 0) + turns
