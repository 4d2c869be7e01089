"""The wire of Claude Code's stream-json, from bytes to the end of a run.

Three pieces that know nothing of processes or clocks: `parse_json_line` reads a line (here),
`claude_events.to_events` says what it means, and `ClaudeSession` (here) folds the lines of one run
of the program into what is known only at its end: session, cost, tokens, and whether it succeeded.
How a failure is named is in `claude_failure`.
"""

from __future__ import annotations

import json
import re
from typing import Any

from cuggino.agents.claude_events import (
    Json,
    dict_or_empty,
    is_api_error,
    is_number,
    text_or_none,
    to_events,
)
from cuggino.agents.claude_failure import Ending, failure_of, outcome_of
from cuggino.errors import LlmSessionError
from cuggino.events import LlmAgentEvent, PingEvent, RateLimited, SessionEnded, Usage, UserMessage

_STREAM_EVENT = b'{"type":"stream_event",'
_SURROGATE = re.compile("[\ud800-\udfff]")
_INTERRUPTED = "[Request interrupted by user"


def parse_json_line(line: bytes) -> Json | None:
    """The JSON object on this line, or None: anything else on the wire is noise (CUG-082).

    Invalid UTF-8 and halves of surrogate pairs become U+FFFD, so every text can be written again.
    """
    text = line.decode("utf-8", "replace").strip()
    if not text.startswith("{"):
        return None
    try:
        value = json.loads(text)
        if "\\ud" in text or "\\uD" in text:
            value = _without_surrogates(value)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(v) for k, v in value.items()}
    return value


class ClaudeSession:
    """The fold over one run of the program: feed it every line of stdout, then end it once.

    The run ends with its process, not with its first result: background tasks go on after it and
    add results of their own. The first result is the main answer, and decides. `program` is what
    the program is called in messages.
    """

    def __init__(self, *, program: str = "claude") -> None:
        self._program = program
        self.session_id: str | None = None
        """With it the session can be resumed; known from the first line on."""
        self.version: str | None = None
        """The version of the program, as it says."""
        self._result: Json | None = None
        self._api_error: Json | None = None
        self._limit: RateLimited | None = None
        self._interrupted = False
        self._cost: float | None = None
        self._total_cost: float | None = None
        self._usage: Usage | None = None
        self._num_turns: int | None = None

    @property
    def has_result(self) -> bool:
        """True once the main answer is complete; background tasks may still hold the process."""
        return self._result is not None

    def feed(self, line: bytes, *, now: float) -> list[LlmAgentEvent]:
        """The events of this line (see `to_events`); `now` is in seconds since the epoch.

        Never raises: what is not understood is skipped.
        """
        # Two thirds of all lines. The order of keys varies, so other lines of this kind exist,
        # and are found by parsing; a line that begins so is a sign of life whatever follows.
        if line.startswith(_STREAM_EVENT):
            return [PingEvent(timestamp=now)]
        raw = parse_json_line(line)
        if raw is None:
            return []
        events = to_events(raw, now=now)
        match raw.get("type"):
            case "system" if raw.get("subtype") == "init":
                self.session_id = text_or_none(raw.get("session_id")) or self.session_id
                self.version = text_or_none(raw.get("claude_code_version")) or self.version
            case "assistant" if raw.get("parent_tool_use_id") is None:
                self._api_error = raw if is_api_error(raw) else None
            case "result":
                self._add_result(raw)
            case _:
                pass
        for event in events:
            match event:
                case RateLimited():
                    self._limit = event
                case UserMessage(text=text) if text.startswith(_INTERRUPTED):
                    self._interrupted = True
                case _:
                    pass
        return events

    def end(
        self, *, exit_code: int, stderr_tail: str, duration: float
    ) -> tuple[SessionEnded, LlmSessionError | None]:
        """How the run ended, and its error if it failed (CUG-083).

        `exit_code` is negative when a signal ended the process; `duration` is in seconds.
        """
        ending = Ending(
            result=self._result,
            api_error=self._api_error,
            limit=self._limit,
            interrupted=self._interrupted,
            program=self._program,
        )
        error = failure_of(ending, exit_code=exit_code, stderr_tail=stderr_tail)
        ended = SessionEnded(
            outcome=outcome_of(error),
            cost_usd=self._cost if self._cost is not None else self._total_cost,
            usage=self._usage,
            duration=duration,
            num_turns=self._num_turns,
            session_id=self.session_id,
        )
        return ended, error

    def _add_result(self, raw: Json) -> None:
        if self._result is None:
            self._result = raw
        self.session_id = self.session_id or text_or_none(raw.get("session_id"))
        if is_number(total := raw.get("total_cost_usd")):
            self._total_cost = float(total)
        if isinstance(turns := raw.get("num_turns"), int):
            self._num_turns = (self._num_turns or 0) + turns
        models = raw.get("model_usage_since_last_result")
        if isinstance(models, dict):
            # The totals of the result itself are cumulative over `--resume`; these are not.
            for model in map(dict_or_empty, models.values()):
                self._add_usage(model, _MODEL_KEYS)
                self._cost = (self._cost or 0.0) + _number(model.get("costUSD"))
            self._cost = self._cost or 0.0
        elif isinstance(usage := raw.get("usage"), dict):
            self._add_usage(usage, _USAGE_KEYS)

    def _add_usage(self, counts: Json, keys: dict[str, str]) -> None:
        before = self._usage or Usage()
        self._usage = Usage(
            **{
                field: getattr(before, field) + int(_number(counts.get(key)))
                for field, key in keys.items()
            }
        )


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


def _number(value: Any) -> float:
    return value if is_number(value) else 0
