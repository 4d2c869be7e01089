"""The wire of `codex exec --json`: the fold over the lines of one session.

Nothing in here knows of processes or clocks.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo

from cuggino.agents.codex.failure import ended_early, failure_of, no_session
from cuggino.agents.codex.tools import calls_of, is_tool, results_of
from cuggino.agents.codex.usage import usage_of, without
from cuggino.agents.codex.watch import CodexWatch
from cuggino.agents.failures import outcome_of
from cuggino.agents.json_values import Json, dict_or_empty, parse_json_line, text_or_none
from cuggino.errors import AgentFailed, LlmSessionError
from cuggino.events import (
    AgentMessage,
    LlmAgentEvent,
    PingEvent,
    RateLimited,
    SessionEnded,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UsageUpdate,
)

_UNFINISHED = "It was still running when the session ended."


class CodexSession:
    """Feed it every line of stdout, then end it once.

    `resumed` is the id of the thread that is gone on with; `record` tells what a thread has used,
    in which Codex counts what went before. `watch` watches over a session that is held to a policy.
    """

    def __init__(
        self,
        *,
        program: str = "codex",
        zone: Callable[[], tzinfo] = lambda: UTC,
        resumed: str | None = None,
        record: Callable[[str], Usage | None] = lambda _thread: None,
        watch: CodexWatch | None = None,
    ) -> None:
        self.session_id: str | None = None
        self._program = program
        self._zone = zone
        self._resumed = resumed
        self._record = record
        self._before = record(resumed) if resumed is not None else None
        self._watch = watch
        self._usage: Usage | None = None
        self._failed: str | None = None
        self._completed = False
        self._open: dict[str, str] = {}
        """By item, the call that has begun; an item of many files has several calls."""
        self._last_words: str | None = None
        self._stranger: AgentFailed | None = None

    @property
    def limit(self) -> RateLimited | None:
        """The program tells a limit in words alone."""
        return None

    @property
    def breach(self) -> LlmSessionError | None:
        """Why the session must end at once: its guard does not hold it, or it is another one."""
        return self._stranger or (self._watch.breach if self._watch else None)

    def feed(self, line: bytes, *, now: float) -> list[LlmAgentEvent]:
        """The events of this line; `now` is in seconds since the epoch. Never raises."""
        raw = parse_json_line(line)
        if raw is None:
            return []
        denied = self._watch.poll() if self._watch else []
        events = self._read(raw)
        return [*denied, *(events if events is not None else [PingEvent(timestamp=now)])]

    def end(
        self, *, exit_code: int, stderr_tail: str, duration: float, now: float
    ) -> tuple[SessionEnded, LlmSessionError | None]:
        """How the session ended. US dollars are not told by this program, nor its turns."""
        error: LlmSessionError | None = self.breach
        if error is None and self._failed is not None:
            when = datetime.fromtimestamp(now, UTC)
            error = failure_of(self._failed, now=when, zone=self._zone())
        elif error is None and not self._completed:
            error = ended_early(self._program, exit_code=exit_code, stderr_tail=stderr_tail)
        ended = SessionEnded(
            outcome=outcome_of(error),
            usage=self._usage,
            duration=duration,
            session_id=self.session_id or (None if self._stranger else self._resumed),
        )
        return ended, error

    def _read(self, raw: Json) -> list[LlmAgentEvent] | None:
        """The events; None for what only tells that the program is alive."""
        match raw.get("type"):
            case "thread.started":
                return self._begin(text_or_none(raw.get("thread_id")))
            case "item.started" | "item.updated":
                return self._started(dict_or_empty(raw.get("item")))
            case "item.completed":
                return self._done(dict_or_empty(raw.get("item")))
            case "turn.completed":
                return self._complete(dict_or_empty(raw.get("usage")))
            case "turn.failed":
                error = raw.get("error")
                said = error if isinstance(error, str) else dict_or_empty(error).get("message")
                self._failed = text_or_none(said) or "Unknown error"
                return [*self._left_open(), *self._count()]
            case "error":
                return self._say(text_or_none(raw.get("message")))
            case "turn.started":
                return None
            case _:
                return []

    def _begin(self, thread: str | None) -> list[LlmAgentEvent]:
        if self._resumed is not None and thread != self._resumed:
            self._stranger = no_session(self._resumed)  # this one is new
            return []
        self.session_id = thread
        if self._resumed is not None and self._before is None:
            self._before = self._record(self._resumed)
        return [SystemMessage(text="Session initialized")]

    def _started(self, item: Json) -> list[LlmAgentEvent] | None:
        if not is_tool(item):
            return None
        if self._watch:
            self._watch.see(item)
        return [*self._calls(item)] or None

    def _calls(self, item: Json) -> list[ToolCall]:
        command = self._watch.judged_command(item) if self._watch else None
        calls = [call for call in calls_of(item, command=command) if call.id not in self._open]
        self._open.update({call.id: call.name for call in calls if call.id})
        return calls

    def _done(self, item: Json) -> list[LlmAgentEvent] | None:
        if self._watch:
            self._watch.see(item)
        match item.get("type"):
            case "agent_message":
                return self._message(text_or_none(item.get("text")), item)
            case "message":
                content = item.get("content")
                blocks = [dict_or_empty(b) for b in (content if isinstance(content, list) else [])]
                texts = [text_or_none(b.get("text")) for b in blocks if b.get("type") == "text"]
                return [event for text in texts for event in self._message(text, item) or []]
            case "reasoning":
                text = text_or_none(item.get("text"))
                return [Thinking(text=text)] if text else None
            case "error":
                return self._say(text_or_none(item.get("message")))
            case _:
                results = results_of(item)
                begun = self._calls(item) if item.get("id") else []
                for result in results:
                    if isinstance(result, ToolResult):
                        self._open.pop(result.name, None)
                return [*begun, *results, *self._count()] or None

    def _message(self, text: str | None, item: Json) -> list[LlmAgentEvent] | None:
        if not text:
            return None
        message = AgentMessage(text=text, message_id=text_or_none(item.get("id")))
        return [message, *self._count()]

    def _count(self) -> list[LlmAgentEvent]:
        """What was used until now, where that has changed."""
        total = self._record(self.session_id) if self.session_id is not None else None
        return self._used(total) if total is not None else []

    def _used(self, total: Usage) -> list[LlmAgentEvent]:
        usage = without(total, self._before)
        if usage == self._usage:
            return []
        self._usage = usage
        return [UsageUpdate(usage=usage)]

    def _say(self, text: str | None) -> list[LlmAgentEvent] | None:
        """Words of the program, which says some of them twice."""
        if not text or text == self._last_words:
            return None
        self._last_words = text
        return [SystemMessage(text=text)]

    def _complete(self, told: Json) -> list[LlmAgentEvent]:
        if self._watch:
            self._watch.ends()
        self._completed = True
        return [*self._left_open(), *(self._used(usage_of(told)) if told else [])]

    def _left_open(self) -> list[LlmAgentEvent]:
        """The ends of calls that will not be told any more.

        What they started ends with the program.
        """
        calls, self._open = list(self._open), {}
        return [ToolResult(name=call, output=_UNFINISHED, is_error=True) for call in calls]
