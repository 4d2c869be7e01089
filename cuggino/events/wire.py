"""Events as lines of JSON, and back."""

from __future__ import annotations

import json
from datetime import datetime

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_json

from cuggino.events.base import Event, UnknownEvent, is_item_shared


def event_types() -> dict[str, type[Event]]:
    """Return every event class by its tag."""
    return dict(Event.registry)


def event_type(tag: str) -> type[Event] | None:
    """Return the event class with this tag; None for an unknown one."""
    return Event.registry.get(tag)


def dump_event(event: Event) -> str:
    """Return the event as one line of JSON: its `_tag`, then its fields in snake_case, no newline.

    The line is always valid UTF-8: half a surrogate pair is escaped.
    """
    return dump_event_bytes(event).decode()


def dump_event_bytes(event: Event) -> bytes:
    """Return the line of `dump_event` as UTF-8."""
    try:
        if isinstance(event, UnknownEvent):
            item = {} if event.item is None else {"item": event.item}
            return to_json({"_tag": event.tag, **item, **event.raw}, inf_nan_mode="constants")
        fields = event.__pydantic_serializer__.to_json(event)
        head = b'{"_tag":"%b"' % event.tag.encode()
        if event.item is not None and is_item_shared(type(event)):
            head += b',"item":%b' % to_json(event.item)
    except PydanticSerializationError:  # half a surrogate pair
        raw = event.raw if isinstance(event, UnknownEvent) else event.model_dump(mode="python")
        item = {} if event.item is None else {"item": event.item}
        told = {"_tag": event.tag, **item, **raw}
        return json.dumps(told, default=_plain, separators=(",", ":")).encode()
    return b"%b}" % head if fields == b"{}" else b"%b,%b" % (head, fields[1:])


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} does not go on the wire")


def parse_event(line: str | bytes) -> Event:
    """Return the event in a line of JSON; an unknown tag gives an `UnknownEvent`.

    Raises:
        ValueError: the line is not a JSON object with a `_tag`, or its fields are invalid.
    """
    raw = json.loads(line)
    if not isinstance(raw, dict) or not isinstance(raw.get("_tag"), str):
        raise ValueError("an event is a JSON object with a `_tag`")
    cls = event_type(raw["_tag"])
    if cls is None:
        item = raw.get("item")
        return UnknownEvent(raw=raw, item=item if isinstance(item, str) else None)
    try:
        return cls.model_validate({key: value for key, value in raw.items() if key != "_tag"})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "fields"
        raise ValueError(f"{raw['_tag']}: {where}: {first['msg']}") from error
