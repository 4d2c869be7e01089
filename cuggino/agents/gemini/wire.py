"""The wire of the Gemini CLI's stream-json: the fold over the lines of one run (CUG-082)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, tzinfo
from typing import Any

from cuggino.agents.failures import outcome_of
from cuggino.agents.gemini.failure import Ending, failure_of
from cuggino.agents.gemini.tools import common_call, unmarked
from cuggino.agents.gemini.watch import GeminiWatch
from cuggino.agents.json_values import (
    Json,
    count_or_zero,
    dict_or_empty,
    parse_json_line,
    shown,
    text_or_none,
)
from cuggino.errors import LlmSessionError
from cuggino.events import (
    AgentMessage,
    LlmAgentEvent,
    MessageDelta,
    RateLimited,
    SessionEnded,
    SystemMessage,
    ToolCall,
    ToolResult,
    Usage,
    UsageUpdate,
)


class GeminiSession:
    """Feed it every line of stdout, then end it once.

    The program tells text in pieces only: each is a `MessageDelta`, and what came until something
    else happens is one `AgentMessage`. A message in whose midst the connection broke is written
    anew by the program without a word about it, so its `AgentMessage` begins with what came before;
    one that was never completed gives none.

    `servers` are the names of the MCP servers; `watch` looks after a guarded session; `exit_code`
    gives that of a command which has ended, by its input.
    """

    def __init__(
        self,
        *,
        program: str = "gemini",
        zone: Callable[[], tzinfo] = lambda: UTC,
        cwd: str = "/",
        servers: Iterable[str] = (),
        watch: GeminiWatch | None = None,
        exit_code: Callable[[Any], int] = lambda _given: 0,
    ) -> None:
        self.session_id: str | None = None
        self._program = program
        self._zone = zone
        self._cwd = cwd
        self._servers = tuple(servers)
        self._watch = watch
        self._exit_code = exit_code
        self._commands: dict[str, Any] = {}
        self._result: Json | None = None
        self._told = ""
        self._usage: Usage | None = None
        self._turns = 0
        self._is_turn = False
        self._pieces: list[str] = []
        self._message_id = ""

    @property
    def limit(self) -> RateLimited | None:
        """The program tells no limit before its end."""
        return None

    @property
    def breach(self) -> LlmSessionError | None:
        """Why the session must be ended at once, if it must: its guard does not hold it."""
        return self._watch.breach if self._watch else None

    def feed(self, line: bytes, *, now: float) -> list[LlmAgentEvent]:
        """The events of this line. Never raises: what is not understood is skipped."""
        raw = parse_json_line(line)
        if raw is None:
            return []
        match raw.get("type"):
            case "init":
                self.session_id = text_or_none(raw.get("session_id")) or self.session_id
                if self._watch:
                    self._watch.begin()
                return [SystemMessage(text="Session initialized")]
            case "message" if raw.get("role") == "assistant":
                return self._text(raw)
            case "tool_use":
                return [*self._complete(), self._tool_call(raw)]
            case "tool_result":
                return [*self._complete(), *self._tool_result(raw)]
            case "error":
                self._told = text_or_none(raw.get("message")) or "Unknown error"
                return [SystemMessage(text=self._told)]
            case "result":
                return self._ends(raw)
            case _:
                return []

    def end(
        self, *, exit_code: int, stderr_tail: str, duration: float, now: float
    ) -> tuple[SessionEnded, LlmSessionError | None]:
        """How the run ended, and its error if it failed (CUG-083). US dollars are not told."""
        ending = Ending(
            result=self._result,
            told=self._told,
            began=self.session_id is not None,
            program=self._program,
            now=datetime.fromtimestamp(now, UTC),
            zone=self._zone(),
        )
        error = failure_of(ending, exit_code=exit_code, stderr_tail=stderr_tail)
        ended = SessionEnded(
            outcome=outcome_of(error),
            usage=self._usage,
            duration=duration,
            num_turns=self._turns or None,
            session_id=self.session_id,
        )
        return ended, error

    def _text(self, raw: Json) -> list[LlmAgentEvent]:
        text = text_or_none(raw.get("content"))
        if not text:
            return []
        self._speaks()
        if not self._pieces:
            self._message_id = f"{text_or_none(raw.get('timestamp')) or 'message'}/{self._turns}"
        self._pieces.append(text)
        return [MessageDelta(text=text, message_id=self._message_id)]

    def _complete(self) -> list[LlmAgentEvent]:
        """The message that was written until now."""
        text = "".join(self._pieces)
        self._pieces.clear()
        return [AgentMessage(text=text, message_id=self._message_id)] if text else []

    def _speaks(self) -> None:
        if not self._is_turn:
            self._is_turn = True
            self._turns += 1

    def _tool_call(self, raw: Json) -> ToolCall:
        self._speaks()
        call_id = text_or_none(raw.get("tool_id")) or ""
        name = text_or_none(raw.get("tool_name")) or "unknown"
        given = unmarked(raw.get("parameters"))
        call = common_call(name, given, cwd=self._cwd, servers=self._servers)
        if call.tool == "Bash":
            self._commands[call_id] = given
        if self._watch:
            self._watch.call(call_id, name, call.tool, given)
        return ToolCall(name=call.tool, input=shown(call.input), id=call_id)

    def _tool_result(self, raw: Json) -> list[LlmAgentEvent]:
        self._is_turn = False
        call_id = text_or_none(raw.get("tool_id")) or ""
        has_failed = raw.get("status") != "success"
        message = text_or_none(dict_or_empty(raw.get("error")).get("message")) or ""
        output = text_or_none(raw.get("output")) or message
        events: list[LlmAgentEvent] = []
        if self._watch:
            events += self._watch.result(call_id, is_error=has_failed, message=message or output)
        is_error = has_failed
        if call_id in self._commands:
            given = self._commands.pop(call_id)
            # A command that the program refuses itself counts as done.
            is_error = has_failed or output.startswith("Blocked: ") or self._exit_code(given) != 0
        result = ToolResult(name=call_id or "unknown", output=output, is_error=is_error)
        return [*events, result]

    def _ends(self, raw: Json) -> list[LlmAgentEvent]:
        if self._result is not None:
            return []
        self._result = raw
        events = self._complete() if raw.get("status") == "success" else []
        self._usage = _usage(dict_or_empty(raw.get("stats")))
        return [*events, UsageUpdate(usage=self._usage)] if self._usage else events


def _usage(stats: Json) -> Usage | None:
    """Tokens of this run; what the model thought is part of what it put out."""
    given, cached = count_or_zero(stats.get("input_tokens")), count_or_zero(stats.get("cached"))
    total = count_or_zero(stats.get("total_tokens"))
    output = max(count_or_zero(stats.get("output_tokens")), total - given)
    if not (given or output):
        return None
    return Usage(
        input_tokens=max(0, given - cached), output_tokens=output, cache_read_tokens=cached
    )
