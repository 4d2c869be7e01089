"""The wire format of `codex exec --json`: usage, and the fold over the lines of one session."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Unpack

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
    tokens_of,
    without,
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
    """Return the reported tokens."""
    return tokens_of(
        told,
        sent="input_tokens",
        written="output_tokens",
        read="cached_input_tokens",
        created="cache_write_input_tokens",
    )


class UsageRecord:
    """The usage of a thread, read from the program's own record as it grows, if there is one."""

    def __init__(self, env: Mapping[str, str] | None = None) -> None:
        self._home = codex_home(env) if env is not None else None
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

    def total(self, thread: str | None) -> Usage | None:
        """Return all tokens of the thread so far, or None if the record has none."""
        try:
            if thread is not None and (file := self._found(thread)) is not None:
                self._read(file)
        except OSError:
            return None
        return self._last

    def _found(self, thread: str) -> Path | None:
        if self._home is None or self._file is not None or self._searches >= _MOST_SEARCHES:
            return self._file
        if _ID.fullmatch(thread):
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


class Told(NamedTuple):
    """What is known about a thread beyond what the end of its session reports."""

    before: Usage | None = None
    """The usage of earlier sessions."""
    windows: tuple[QuotaUsed, ...] = ()
    """The windows that are old or were emitted."""
    is_completed: bool = False
    failed: str | None = None
    """Why its turn failed."""
    said: str = ""
    """The last message of the program, which repeats some of them."""
    stranger: AgentFailed | None = None
    """The error of a thread other than the resumed one."""


class CodexSession(LineReader):
    """The fold over one run of the program; see `LineReader`.

    `resumed` is the id of the resumed thread. `account` is the record of the total usage of a
    thread, in which Codex includes earlier sessions, and of the windows and the model. US dollars
    are not reported.
    """

    dialect = DIALECT
    _watch: CodexWatch | None

    def __init__(
        self,
        *,
        program: str = "codex",
        resumed: str | None = None,
        account: UsageRecord | None = None,
        **given: Unpack[ReaderOptions],
    ) -> None:
        super().__init__(program=program, resumed=resumed, **given)
        self._told = Told()
        self._resumed = resumed
        self._account = account or UsageRecord()
        self._open: dict[str, str] = {}
        """Tools of the calls that have started, by id; an item with several files has several
        calls."""
        self._look_back()

    @property
    def breach(self) -> LlmSessionError | None:
        """The error for which it must end immediately: a breached guard, or a different session."""
        return self._told.stranger or super().breach

    def failure(self, ending: Ending) -> LlmSessionError | None:
        told, answer = self._told, self.known.answer
        if told.failed is not None:
            reset = parse_reset(told.failed, now=ending.now, zone=ending.zone)
            window = None if reset is not None else self._exhausted(ending.now)
            return ending.refused(refusal_of(told.failed, window=window))
        if told.is_completed:
            return ending.answered(answer)
        return ending.without_result(told=told.said, answer=answer)

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
                self._told = self._told._replace(failed=text_or_none(said) or "Unknown error")
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
            stranger = unresumable(f"there is no session {self._resumed}")
            self.known = self.known._replace(session_id=None)
            self._told = self._told._replace(stranger=stranger)
            return []
        self.known = self.known._replace(session_id=thread)
        self._look_back()
        return [SystemMessage(text="Session initialized")]

    def _look_back(self) -> None:
        """Read what a resumed thread used before."""
        if self._resumed is not None and self._told.before is None:
            before = self._account.total(self._resumed)
            self._told = self._told._replace(before=before, windows=self._account.windows)

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
        self.known = self.known._replace(answer=text)
        message = AgentMessage(text=text, message_id=text_or_none(item.get("id")))
        return [message, *self._count()]

    def _count(self) -> list[LlmAgentEvent]:
        """Return the usage so far, and the windows of the account, if they have changed."""
        total = self._account.total(self.known.session_id)
        return [*(self._used(total) if total is not None else []), *self._quota()]

    def _exhausted(self, now: datetime) -> datetime | None:
        """Return the last reset of the windows that are used up, unless credits pay for more."""
        if self._account.has_credits:
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
        windows = self._account.windows
        if windows == self._told.windows:
            return []
        self._told = self._told._replace(windows=windows)
        full = [window for window in windows if window.used >= 1]
        paid = [
            RateLimited(
                status="rejected", limit=window.window, resets_at=window.resets_at, overage=True
            )
            for window in (full if self._account.has_credits else ())
        ]
        return [*windows, *paid]

    def _used(self, total: Usage) -> list[LlmAgentEvent]:
        self.known = self.known._replace(model=self._account.model)
        return self.used(without(total, self._told.before))

    def _say(self, text: str | None) -> list[LlmAgentEvent] | None:
        """Return a message of the program."""
        if not text or text == self._told.said:
            return None
        self._told = self._told._replace(said=text)
        return [SystemMessage(text=text)]

    def _complete(self, told: Json) -> list[LlmAgentEvent]:
        if self._watch:
            self._watch.begin()
        self._told = self._told._replace(is_completed=True)
        self._account.total(self.known.session_id)
        usage = self._used(usage_of(told)) if told else []
        return [*self._left_open(), *usage, *self._quota()]

    def _left_open(self) -> list[LlmAgentEvent]:
        """Return results for calls that never ended; their processes end with the program."""
        calls, self._open = list(self._open), {}
        return [ToolResult(name=call, output=_UNFINISHED, is_error=True) for call in calls]
