"""Words for the models in generated pages: types, defaults, categories."""

from __future__ import annotations

import inspect
import json
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from cuggino.events import Event, LlmMarkerEvent
from cuggino.events.wire import event_types
from cuggino.stages import ROLE_VARIABLES, role_markers


def marker_roles(marker: type[LlmMarkerEvent]) -> list[str]:
    """Return the roles that may emit the marker."""
    return [str(role) for role in ROLE_VARIABLES if marker in role_markers(role)] or ["audit"]


def own_fields(*models: type[BaseModel]) -> tuple[str, ...]:
    """Return the fields that the models themselves declare."""
    return tuple(
        name for model in models for name in model.model_fields if name in model.__annotations__
    )


def default_text(field: FieldInfo) -> str:
    """Return the default as JSON, or "" without one."""
    if field.is_required() or field.default is None:
        return ""
    default = field.get_default(call_default_factory=True)
    if not isinstance(default, bool | int | float | str | list | dict):
        return ""
    return f"{default:g}" if isinstance(default, float) else json.dumps(default)


def type_name(annotation: Any) -> str:
    """Return the type in JSON's words: `text or none`, `"a" | "b"`, `list of text`."""
    known = {
        str: "text",
        int: "whole number",
        float: "number",
        bool: "true or false",
        type(None): "none",
        Any: "anything",
    }
    if annotation in known:
        return known[annotation]
    origin, args = get_origin(annotation), get_args(annotation)
    match str(getattr(origin, "__name__", origin)):
        case "Literal":
            return " | ".join(json.dumps(value) for value in args)
        case "Union" | "UnionType":
            return " or ".join(type_name(one) for one in args)
        case "list" | "tuple" | "Sequence" | "frozenset":
            inner = [one for one in args if one is not Ellipsis]
            return "list of " + " and ".join(type_name(one) for one in inner)
        case "dict" | "Mapping":
            return "object" if not args else f"object of {type_name(args[1])}"
        case "Annotated":
            return type_name(args[0])
        case _:
            return str(getattr(annotation, "__name__", annotation))


def categories() -> dict[type[Event], list[type[Event]]]:
    """Return cuggino's own events by category, in the order of declaration."""
    found: dict[type[Event], list[type[Event]]] = {}
    for cls in event_types().values():
        if cls.__module__.startswith("cuggino."):
            found.setdefault(_category(cls), []).append(cls)
    return found


def summary(cls: type[BaseModel]) -> str:
    """Return the first paragraph of the docstring."""
    return inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0]


def _category(cls: type[Event]) -> type[Event]:
    """Return the nearest base class that is not an event itself."""
    bases = (part for part in cls.__mro__[1:] if issubclass(part, Event))
    return next(part for part in bases if part.__name__ not in event_types())
