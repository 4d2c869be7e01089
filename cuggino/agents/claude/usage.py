"""What one run of Claude Code uses: tokens while it works, tokens and money from its results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuggino.agents.json_values import Json, dict_or_empty, is_number, text_or_none
from cuggino.events import Usage

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
_NOTHING = Usage()


class UsageMeter:
    """Counts the tokens and the money of one run, line by line.

    While the run goes on, its messages tell: one of the main conversation when it is complete, in
    the `message_delta` that ends it. An attempt that was broken off has none, and is not counted,
    though it is paid for. Sub-agents stream nothing: their messages count when they begin, with
    what their `assistant` lines say, which is all of the input and next to nothing of the output.
    A result then knows better, and replaces what was counted since the result before.
    """

    def __init__(self) -> None:
        self._told: Usage | None = None
        """By the results."""
        self._counted: Usage | None = None
        """Since the last result, by the messages."""
        self._begun: Json = {}
        """What `message_start` said of the message that is being written."""
        self._last_of: dict[str, str | None] = {}
        """The last message of each sub-agent, as each of its blocks has a line of its own."""
        self._own_cost: float | None = None
        self._total_cost: float | None = None

    @property
    def usage(self) -> Usage | None:
        """The tokens of the run so far; None when nothing was said of them."""
        if self._told is None or self._counted is None:
            return self._told or self._counted
        return _each(int.__add__, self._told, self._counted)

    @property
    def cost(self) -> float | None:
        """US dollars of the run up to its last result; None before the first."""
        return self._own_cost if self._own_cost is not None else self._total_cost

    def count(self, raw: Json) -> bool:
        """Count what this line says; True when the running count has grown by it."""
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
        if usage == _NOTHING:
            return False
        self._counted = _each(int.__add__, self._counted or _NOTHING, usage)
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
                self._tell(_usage(model, _MODEL_KEYS))
                self._own_cost += _number(model.get("costUSD"))
        elif isinstance(usage := raw.get("usage"), dict):
            # It leaves out the sub-agents.
            self._tell(_each(max, _usage(usage, _USAGE_KEYS), counted or _NOTHING))
        elif counted is not None:
            self._tell(counted)

    def _tell(self, usage: Usage) -> None:
        self._told = _each(int.__add__, self._told or _NOTHING, usage)


def _each(of: Callable[[int, int], int], a: Usage, b: Usage) -> Usage:
    return Usage(**{name: of(getattr(a, name), getattr(b, name)) for name in _USAGE_KEYS})


def _usage(counts: Json, keys: dict[str, str]) -> Usage:
    return Usage(**{name: int(_number(counts.get(key))) for name, key in keys.items()})


def _number(value: Any) -> float:
    return value if is_number(value) else 0
