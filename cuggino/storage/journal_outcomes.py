"""Outcomes of stages as JSON, and back: what a resumed run takes instead of running a stage."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from pydantic import JsonValue

from cuggino.errors import StorageError
from cuggino.events import Event, StageFinished, StageStarted, dump_event, parse_event
from cuggino.storage.journal_reader import JournalFile


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedStage:
    """A stage that need not run again."""

    stage: str
    """`name#ordinal`."""
    name: str
    outcome: object
    """What `decode_outcome` gave: an event, a time, or what JSON can hold."""


def encode_outcome(value: object) -> JsonValue:
    """An event as `{"_tag": ..., fields}`, a time as `{"time": ...}`, JSON as `{"value": ...}`.

    Raises:
        TypeError: the value would not be the same after reading; its type is named.
    """
    match value:
        case Event():
            return cast("JsonValue", json.loads(dump_event(value)))
        case datetime():
            return {"time": value.isoformat()}
        case _:
            return {"value": _plain(value)}


def decode_outcome(encoded: JsonValue) -> object:
    """What `encode_outcome` was given; an event with an unknown tag is an `UnknownEvent`.

    Raises:
        ValueError: it is none of the three forms, or the fields do not fit the event.
    """
    match encoded:
        case {"_tag": str()}:
            return parse_event(json.dumps(encoded))
        case {"time": str(time), **rest} if not rest:
            return datetime.fromisoformat(time)
        case {"value": value, **rest} if not rest:
            return value
        case _:
            raise ValueError("it is no event, no time and no value")


def finished_stages(journal: JournalFile) -> tuple[FinishedStage, ...]:
    """The stages that ended without an error, in the order in which they ended.

    Raises:
        StorageError: an outcome cannot be read.
    """
    names: dict[str, str] = {}
    finished: list[FinishedStage] = []
    for entry in journal.entries:
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
    """The value, if JSON gives it back as it is: no tuple, no enum, no keys but text."""
    if value is None or type(value) in (str, int, float, bool):
        return cast("JsonValue", value)
    if type(value) is list:
        return [_plain(item) for item in value]
    if type(value) is dict and all(type(key) is str for key in value):
        return {key: _plain(item) for key, item in cast("Mapping[str, object]", value).items()}
    raise TypeError(f"a stage cannot have an outcome of type {type(value).__qualname__}")
