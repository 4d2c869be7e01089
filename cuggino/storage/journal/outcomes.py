"""Outcomes of stages as JSON, from which a resumed run continues."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from pydantic import JsonValue

from cuggino.errors import StorageError
from cuggino.events import Event, StageFinished, StageStarted, dump_event, parse_event
from cuggino.storage.journal.reader import JournalFile


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedStage:
    """A stage that need not run again."""

    stage: str
    """`name#ordinal`."""
    name: str
    outcome: object
    """The decoded outcome: an event, a time, or a JSON value."""


def encode_outcome(value: object) -> JsonValue:
    """Encode the outcome of a stage as JSON.

    An event is `{"_tag": ..., fields}`, a time `{"time": ...}`, any other value `{"value": ...}`.

    Raises:
        TypeError: the value would not survive the round trip; the message names its type.
    """
    match value:
        case Event():
            return cast("JsonValue", json.loads(dump_event(value)))
        case datetime():
            return {"time": value.isoformat()}
        case _:
            return {"value": _plain(value)}


def decode_outcome(encoded: JsonValue) -> object:
    """Return the value that was encoded; an event with an unknown tag is an `UnknownEvent`.

    Raises:
        ValueError: it has none of the three forms, or invalid fields.
    """
    match encoded:
        case {"_tag": str()}:
            return parse_event(json.dumps(encoded))
        case {"time": str(time), **rest} if not rest:
            return datetime.fromisoformat(time)
        case {"value": value, **rest} if not rest:
            return value
        case _:
            raise ValueError("neither an event, nor a time, nor a value")


def finished_stages(journal: JournalFile) -> tuple[FinishedStage, ...]:
    """Return the stages that ended without an error, in the order in which they ended.

    Raises:
        StorageError: an outcome cannot be read.
    """
    names: dict[str, str] = {}
    finished: list[FinishedStage] = []
    for entry in journal.entries.only(("StageStarted", "StageFinished")):
        match entry.stage, entry.event:
            case str(stage), StageStarted(name=name):
                names[stage] = name
            case str(stage), StageFinished(outcome=outcome):
                name = names.get(stage) or stage.rpartition("#")[0]
                try:
                    value = decode_outcome(outcome)
                except ValueError as error:
                    raise StorageError(
                        "read journal",
                        f"run {journal.run_id}: entry {entry.seq}: the outcome of {stage} cannot "
                        f"be read: {error}",
                    ) from error
                finished.append(FinishedStage(stage=stage, name=name, outcome=value))
            case _:
                pass
    return tuple(finished)


def _plain(value: object) -> JsonValue:
    """Return the value if JSON preserves it: no tuple, no enum, only string keys."""
    if value is None or type(value) in (str, int, float, bool):
        return cast("JsonValue", value)
    if type(value) is list:
        return [_plain(item) for item in value]
    if type(value) is dict and all(type(key) is str for key in value):
        return {key: _plain(item) for key, item in cast("Mapping[str, object]", value).items()}
    raise TypeError(f"a stage cannot have an outcome of type {type(value).__qualname__}")
