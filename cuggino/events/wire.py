"""Events as lines of JSON, and back."""

from __future__ import annotations

import json
from datetime import datetime

from pydantic import ValidationError

from cuggino.events.base import Event, UnknownEvent


def event_types() -> dict[str, type[Event]]:
    """Every event that can be emitted, by its tag."""
    return dict(Event.registry)


def dump_event(event: Event) -> str:
    """The event as one line of JSON: its `_tag`, then its fields in snake_case, no newline.

    The line can always be written as UTF-8: half a surrogate pair is escaped.
    """
    raw = event.raw if isinstance(event, UnknownEvent) else event.model_dump(mode="python")
    fields = {"_tag": event.tag, **raw}
    line = json.dumps(fields, ensure_ascii=False, default=_plain)
    try:
        line.encode()
    except UnicodeEncodeError:
        return json.dumps(fields, default=_plain)
    return line


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} does not go on the wire")


def parse_event(line: str | bytes) -> Event:
    """The event that `dump_event` wrote; an unknown tag gives `UnknownEvent`, never an error.

    Raises:
        ValueError: the line is not a JSON object with a `_tag`, or its fields do not fit the tag.
    """
    raw = json.loads(line)
    if not isinstance(raw, dict) or not isinstance(raw.get("_tag"), str):
        raise ValueError("an event is a JSON object with a `_tag`")
    cls = Event.registry.get(raw["_tag"])
    if cls is None:
        return UnknownEvent(raw=raw)
    try:
        return cls.model_validate({key: value for key, value in raw.items() if key != "_tag"})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "fields"
        raise ValueError(f"{raw['_tag']}: {where}: {first['msg']}") from error
