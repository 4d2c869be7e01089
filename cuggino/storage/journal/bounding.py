"""The size limit of what an agent says in the journal."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from cuggino.domain import cut_in_middle
from cuggino.events import Event, LlmAgentEvent, dump_event_bytes

EVENT_LIMIT = 100_000
"""Maximum bytes of an event of an agent in the journal. Its longer texts, such as the output of a
tool, are cut in the middle. Outcomes of stages, markers, and the results of checks are kept whole,
as a resumed run needs them."""

_SHORTEST = 500
"""Characters below which cutting every text shorter is pointless."""


def encoded(event: Event) -> tuple[Event, bytes]:
    """Return the event as the journal keeps it, and its line of JSON."""
    line = dump_event_bytes(event)
    if len(line) <= EVENT_LIMIT or not isinstance(event, LlmAgentEvent):
        return event, line
    most = EVENT_LIMIT * 9 // 10
    while most > _SHORTEST:
        short = _with(event, partial(_cut, most=most))
        line = dump_event_bytes(short)
        if len(line) <= EVENT_LIMIT:
            return short, line
        most //= 2
    # It consists of many short texts.
    short = _with(event, partial(_cut_text, most=EVENT_LIMIT // 4))
    return short, dump_event_bytes(short)


def _with(event: Event, change: Callable[[Any], Any]) -> Event:
    return event.model_copy(update={name: change(value) for name, value in vars(event).items()})


def _cut(value: Any, *, most: int) -> Any:
    match value:
        case str():
            return cut_in_middle(value, most)
        case list():
            return [_cut(item, most=most) for item in value]
        case dict():
            return {key: _cut(item, most=most) for key, item in value.items()}
        case _:
            return value


def _cut_text(value: Any, *, most: int) -> Any:
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False)
    return cut_in_middle(value, most) if isinstance(value, str) else value
