"""Events as lines of JSON, and back."""

from __future__ import annotations

import json

from pydantic import ValidationError

from cuggino.events.base import Event, UnknownEvent


def event_types() -> dict[str, type[Event]]:
    """Every event that can be emitted, by its tag."""
    return dict(Event.registry)


def dump_event(event: Event) -> str:
    """The event as one line of JSON: its `_tag`, then its fields in snake_case, no newline."""
    if isinstance(event, UnknownEvent):
        return json.dumps(event.raw, ensure_ascii=False)
    return json.dumps({"_tag": event.tag, **event.model_dump(mode="json")}, ensure_ascii=False)


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
