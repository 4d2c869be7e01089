"""Strategies for events of every class, with any valid field values."""

from __future__ import annotations

import types
import typing
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st
from pydantic import BaseModel, JsonValue

from cuggino.events import ClusterWorker, Event, Usage, event_types

EVENTS = [cls for cls in event_types().values() if cls.__module__.startswith("cuggino.")]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
amounts = st.dictionaries(st.text(), st.floats(allow_nan=False), max_size=3)
workers = st.builds(
    ClusterWorker, name=st.text(), places=st.integers(), resources=amounts, used=amounts
)
STRATEGIES: dict[Any, st.SearchStrategy[Any]] = {
    JsonValue: json_values,
    dict[str, JsonValue]: st.dictionaries(st.text(), json_values, max_size=3),
    float: st.floats(allow_nan=False),
    datetime: st.datetimes(timezones=st.just(UTC)),
    type(None): st.none(),
    tuple[ClusterWorker, ...]: st.lists(workers, max_size=3).map(tuple),
    Usage: st.builds(Usage, **{name: st.integers(0) for name in Usage.model_fields}),
}


def values(annotation: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for values of a field's type."""
    if annotation in STRATEGIES:
        return STRATEGIES[annotation]
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return st.one_of([values(part) for part in typing.get_args(annotation)])
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return st.builds(annotation, **fields_of(annotation))
    return st.from_type(annotation)


def fields_of(cls: type[BaseModel]) -> dict[str, st.SearchStrategy[Any]]:
    """Return a strategy for each field of a model."""
    return {name: values(field.annotation) for name, field in cls.model_fields.items()}


def events_of(cls: type[Event]) -> st.SearchStrategy[Event]:
    """Return a strategy for events of this class."""
    return st.builds(cls, **fields_of(cls))
