"""The wire format of `codex exec --json`: usage, and the fold over the lines of one session."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Unpack

from cuggino.agents.base.quota import quota_used, time_or_none
from cuggino.agents.base.reader import Ending, LineReader, ReaderOptions
from cuggino.agents.base.refusals import unresumable
from cuggino.agents.base.wire import (
    Json,
    count_or_zero,
    dict_or_empty,
    is_number,
    parse_json_line,
    text_or_none,
)
from cuggino.agents.codex.config import codex_home
from cuggino.agents.codex.failure import DIALECT, refusal_of
from cuggino.agents.codex.guard import CodexWatch
from cuggino.agents.codex.tools import calls_of, is_tool, results_of
from cuggino.domain import parse_reset
from cuggino.errors import AgentFailed, LlmSessionError
from cuggino.events import (
    AgentMessage,
    LlmAgentEvent,
    QuotaUsed,
    RateLimited,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)

_MOST_SEARCHES = 5
_ID = re.compile(r"[\w-]+", re.ASCII)


def usage_of(told: Json) -> Usage:
    """Return the reported tokens; the program counts cached ones as input."""
    read = count_or_zero(told.get("cached_input_tokens"))
    written = count_or_zero(told.get("cache_write_input_tokens"))
    return Usage(
        input_tokens=max(0, count_or_zero(told.get("input_tokens")) - read - written),
        output_tokens=count_or_zero(told.get("output_tokens")),
        cache_read_tokens=read,
        cache_creation_tokens=written,
    )


def without(usage: Usage, before: Usage | None) -> Usage:
    """Return the usage since `before`."""
    if before is None:
        return usage
    return Usage(
        input_tokens=max(0, usage.input_tokens - before.input_tokens),
        output_tokens=max(0, usage.output_tokens - before.output_tokens),
        cache_read_tokens=max(0, usage.cache_read_tokens - before.cache_read_tokens),
        cache_creation_tokens=max(0, usage.cache_creation_tokens - before.cache_creation_tokens),
    )


class UsageRecord:
    """The usage of a thread, read from the program's own record as it grows."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._home = codex_home(env)
        self._file: Path | None = None
        self._searches = 0
        self._at = 0
        self._last: Usage | None = None
        self.model: str | None = None
        """The model of the last turn, if the record names it."""
        self.windows: tuple[QuotaUsed, ...] = ()
        """The usage windows of the account, as read last by `total`."""
        self.has_credits = False
        """True if work continues with bought credits when a window is used up."""

    def total(self, thread: str) -> Usage | None:
        """Return all tokens of the thread so far, or None if the record has none."""
        try:
            file = self._found(thread)
            if file is not None:
                self._read(file)
        except OSError:
            return None
        return self._last

    def _found(self, thread: str) -> Path | None:
        if self._file is None and self._searches < _MOST_SEARCHES and _ID.fullmatch(thread):
            self._searches += 1
            found = sorted(self._home.glob(f"sessions/*/*/*/rollout-*-{thread}.jsonl"))
            self._file = found[-1] if found else None
        return self._file

    def _read(self, path: Path) -> None:
        with path.open("rb") as file:
            file.seek(self._at)
            for line in file:
                if not line.endswith(b"\n"):
                    return  # it is still being written
                self._at += len(line)
                if b'"token_count"' in line:
                    self._count(parse_json_line(line) or {})
                elif b'"turn_context"' in line:
                    self.model = _model(line) or self.model

    def _count(self, entry: Json) -> None:
        payload = dict_or_empty(entry.get("payload"))
        if payload.get("type") != "token_count":
            return
        total = dict_or_empty(dict_or_empty(payload.get("info")).get("total_token_usage"))
        self._last = usage_of(total) if total else self._last
        limits = dict_or_empty(payload.get("rate_limits"))
        if windows := windows_of(limits, at=time_or_none(entry.get("timestamp"))):
            self.windows = windows
            credit = dict_or_empty(limits.get("credits"))
            self.has_credits = (
                credit.get("has_credits") is True and credit.get("unlimited") is not True
            )


def _model(line: bytes) -> str | None:
    raw = parse_json_line(line) or {}
    is_turn = raw.get("type") == "turn_context"
    return text_or_none(dict_or_empty(raw.get("payload")).get("model")) if is_turn else None


_WINDOW_NAMES = {300: "five_hour", 10_080: "seven_day"}
"""Names by minutes; those of the program are only `primary` and `secondary`."""


def windows_of(rate_limits: Json, *, at: datetime | None) -> tuple[QuotaUsed, ...]:
    """Return the used share of each window in the `rate_limits` of a `token_count`.

    `at` is the time of the record, to which a `resets_in_seconds` is relative.
    """
    found = []
    for key in ("primary", "secondary"):
        window = dict_or_empty(rate_limits.get(key))
        percent = window.get("used_percent")
        resets_at = time_or_none(window.get("resets_at"))
        seconds = window.get("resets_in_seconds")
        if resets_at is None and at is not None and is_number(seconds):
            resets_at = time_or_none(at.timestamp() + seconds)
        used = percent / 100 if is_number(percent) else None
        found.append(quota_used(_window_name(rate_limits, key, window), used, resets_at))
    return tuple(window for window in found if window is not None)


def _window_name(rate_limits: Json, key: str, window: Json) -> str:
    length = count_or_zero(window.get("window_minutes"))
    names = (name for known, name in _WINDOW_NAMES.items() if abs(known - length) <= 1)
    limit = text_or_none(rate_limits.get("limit_id")) or "codex"
    return " ".join((*([limit] if limit != "codex" else []), next(names, key)))


_UNFINISHED = "It was still running when the session ended."


class CodexSession(LineReader):
    """The fold over one run of the program; see `LineReader`.

    `resumed` is the id of the resumed thread. `record` returns the total usage of a thread, in
    which Codex includes earlier sessions; `account` is the record, for the windows and the
    model that it read then. Neither US dollars nor turns are reported.
    """

    dialect = DIALECT
    _watch: CodexWatch | None

    def __init__(
        self,
        *,
        program: str = "codex",
        resumed: str | None = None,
        record: Callable[[str], Usage | None] = lambda _thread: None,
        account: UsageRecord | None = None,
        **given: Unpack[ReaderOptions],
    ) -> None:
        super().__init__(program=program, **given)
        self.session_id = resumed
        self._resumed = resumed
        self._record = record
        self._before = record(resumed) if resumed is not None else None
        self._account = account
        self._windows = self._known_windows
        """The windows that are old or were emitted."""
        self._failed: str | None = None
        self._completed = False
        self._open: dict[str, str] = {}
        """Tools of the calls that have started, by id; an item with several files has several
        calls."""
        self._last_words: str | None = None
        self._stranger: AgentFailed | None = None

    @property
    def breach(self) -> LlmSessionError | None:
        """The error for which it must end immediately: a breached guard, or a different session."""
        return self._stranger or super().breach

    def failure(self, ending: Ending) -> LlmSessionError | None:
        if self._failed is not None:
            told = parse_reset(self._failed, now=ending.now, zone=ending.zone)
            window = None if told is not None else self._exhausted(ending.now)
            return ending.refused(refusal_of(self._failed, window=window))
        if self._completed:
            return ending.answered(self.answer)
        return ending.without_result(told=self._last_words or "", answer=self.answer)

    def read(self, raw: Json, *, now: float) -> list[LlmAgentEvent] | None:
        denied = self._watch.read() if self._watch else []
        events = self._read(raw)
        return [*denied, *events] if events is not None else denied or None

    def _read(self, raw: Json) -> list[LlmAgentEvent] | None:
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
            # This is a new session.
            self._stranger = unresumable(f"there is no session {self._resumed}")
            self.session_id = None
            return []
        self.session_id = thread
        if self._resumed is not None and self._before is None:
            self._before = self._record(self._resumed)
            self._windows = self._known_windows
        return [SystemMessage(text="Session initialized")]

    def _started(self, item: Json) -> list[LlmAgentEvent] | None:
        if not is_tool(item):
            return None
        if self._watch:
            self._watch.check(item)
        return [*self._calls(item), *self._count()] or None

    def _calls(self, item: Json) -> list[ToolCall]:
        command = self._watch.judged_command(item) if self._watch else None
        calls = [call for call in calls_of(item, command=command) if call.id not in self._open]
        self._open.update({call.id: call.name for call in calls if call.id})
        return calls

    def _done(self, item: Json) -> list[LlmAgentEvent] | None:
        if self._watch:
            self._watch.check(item)
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
        self.answer = text
        message = AgentMessage(text=text, message_id=text_or_none(item.get("id")))
        return [message, *self._count()]

    def _count(self) -> list[LlmAgentEvent]:
        """Return the usage so far, and the windows of the account, if they have changed."""
        total = self._record(self.session_id) if self.session_id is not None else None
        return [*(self._used(total) if total is not None else []), *self._quota()]

    @property
    def _known_windows(self) -> tuple[QuotaUsed, ...]:
        return self._account.windows if self._account is not None else ()

    def _exhausted(self, now: datetime) -> datetime | None:
        """Return the last reset of the windows that are used up, unless credits pay for more."""
        if self._account is None or self._account.has_credits:
            return None
        return max(
            (
                window.resets_at
                for window in self._account.windows
                if window.used >= 1 and window.resets_at is not None and window.resets_at > now
            ),
            default=None,
        )

    def _quota(self) -> list[LlmAgentEvent]:
        windows = self._known_windows
        if self._account is None or windows == self._windows:
            return []
        self._windows = windows
        full = [window for window in windows if window.used >= 1]
        paid = [
            RateLimited(
                status="rejected", limit=window.window, resets_at=window.resets_at, overage=True
            )
            for window in (full if self._account.has_credits else ())
        ]
        return [*windows, *paid]

    def _used(self, total: Usage) -> list[LlmAgentEvent]:
        self.model = self._account.model if self._account is not None else None
        return self.used(without(total, self._before))

    def _say(self, text: str | None) -> list[LlmAgentEvent] | None:
        """Return a message of the program, which repeats some of them."""
        if not text or text == self._last_words:
            return None
        self._last_words = text
        return [SystemMessage(text=text)]

    def _complete(self, told: Json) -> list[LlmAgentEvent]:
        if self._watch:
            self._watch.begin()
        self._completed = True
        if self.session_id is not None:
            self._record(self.session_id)
        usage = self._used(usage_of(told)) if told else []
        return [*self._left_open(), *usage, *self._quota()]

    def _left_open(self) -> list[LlmAgentEvent]:
        """Return results for calls that never ended; their processes end with the program."""
        calls, self._open = list(self._open), {}
        return [ToolResult(name=call, output=_UNFINISHED, is_error=True) for call in calls]
