"""What `cuggino help TOPIC` tells: read off the models and their docstrings, so that it is true."""

from __future__ import annotations

import ast
import functools
import inspect
import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from cuggino.config import Config
from cuggino.events import Event, LlmMarkerEvent, LlmTerminalMarkerEvent
from cuggino.events.wire import event_types
from cuggino.loops.roles import ROLE_MARKERS
from cuggino_cli.config_keys import GROUPS

EXIT_CODES = (
    (0, "approved; all deliverables passed, or verified; all jobs done"),
    (1, "failed; can be resumed"),
    (2, "wrong usage or configuration; nothing was started or written"),
    (10, "spec issue"),
    (11, "max iterations"),
    (12, "a usage limit; resume later"),
    (13, "a budget is spent; resume with a larger one"),
    (14, "stalled: an agent that hangs, a loop that gets nowhere, too many sessions that failed"),
    (15, "all deliverables, or all open jobs, are blocked"),
    (130, "interrupted by Ctrl-C; can be resumed"),
    (143, "interrupted by SIGTERM; can be resumed"),
)
"""What a loop ends with, each with its meaning."""


def events_topic(columns: int) -> Iterator[str]:
    """Every event by its category, with the first sentence about it."""
    yield from _wrapped(
        "Events, a line of JSON each with `--json`; `_tag` is the name. `cuggino help events NAME` "
        "tells the fields of one, `--json` gives its JSON Schema.",
        columns,
        indent=0,
    )
    for category, members in categories().items():
        yield ""
        yield category.__name__
        yield from _wrapped(about(category).removeprefix("Category: "), columns, indent=2)
        for cls in members:
            yield ""
            yield f"  {cls.__name__}"
            yield from _wrapped(about(cls), columns, indent=6)


def event_topic(cls: type[Event], columns: int) -> Iterator[str]:
    """One event: what it says, its category, its fields."""
    yield cls.__name__
    yield from _wrapped(inspect.cleandoc(cls.__doc__ or ""), columns, indent=2)
    yield ""
    yield f"  category: {_category(cls).__name__}"
    yield from _fields(cls, cls.model_fields, columns)


def markers_topic(columns: int) -> Iterator[str]:
    """Every marker: how it is written, who may, what it means."""
    yield from _wrapped(
        "An agent says where it stands with a tag in its text, such as <DONE>message</DONE>. In "
        "Markdown code it is text, and so is a tag that is not one of its role.",
        columns,
        indent=0,
    )
    for tag, cls in event_types().items():
        if not issubclass(cls, LlmMarkerEvent):
            continue
        ends = "; ends the stage" if issubclass(cls, LlmTerminalMarkerEvent) else ""
        yield ""
        yield f"  <{cls.tag_name()}>...</{cls.tag_name()}>"
        yield from _wrapped(f"{tag} ({', '.join(who_says(cls))}{ends})", columns, indent=6)
        yield from _wrapped(about(cls), columns, indent=6)


def who_says(marker: type[LlmMarkerEvent]) -> list[str]:
    """The roles whose agents may use the marker."""
    return [str(role) for role, allowed in ROLE_MARKERS.items() if marker in allowed] or ["audit"]


def config_topic(columns: int) -> Iterator[str]:
    """Every key of `.cuggino.json`: its type, its default, what it means, who follows it."""
    yield from _wrapped(
        "Keys of .cuggino.json, all optional, with the commands that follow them; `--json` gives "
        "the JSON Schema for an editor.",
        columns,
        indent=0,
    )
    for title, keys in GROUPS.items():
        yield ""
        yield title
        yield from _fields(Config, keys, columns, after=keys)


def exit_codes_topic(columns: int) -> Iterator[str]:
    """Every exit code of a loop."""
    yield "What `run`, `watch`, `deliver` and `loop` end with:"
    yield ""
    for code, meaning in EXIT_CODES:
        first, *more = _wrapped(meaning, columns, indent=7)
        yield f"{code:>5}  {first.strip()}"
        yield from more


def event_schemas() -> dict[str, Any]:
    """The JSON Schema of one line of `--json`: any of the events."""
    schemas = {tag: event_schema(cls) for tag, cls in event_types().items()}
    return {
        "$schema": _DIALECT,
        "title": "An event of cuggino",
        "oneOf": [{"$ref": f"#/$defs/{tag}"} for tag in schemas],
        "$defs": schemas,
    }


def event_schema(cls: type[Event]) -> dict[str, Any]:
    """The JSON Schema of one event as it is written."""
    schema = _documented(cls, cls.model_json_schema(mode="serialization"))
    schema["properties"] = {"_tag": {"const": cls.__name__}, **schema.get("properties", {})}
    schema["required"] = ["_tag", *schema.get("required", [])]
    return schema


def config_schema() -> dict[str, Any]:
    """The JSON Schema of `.cuggino.json`."""
    return {"$schema": _DIALECT, **_documented(Config, Config.model_json_schema(by_alias=True))}


_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def field_docs(cls: type) -> dict[str, str]:
    """What stands below each field of the class and of those of ours that it comes from."""
    found: dict[str, str] = {}
    for part in reversed(cls.__mro__):
        if part is not BaseModel and part is not object:
            found |= _own_field_docs(part)
    return found


@functools.cache
def _own_field_docs(cls: type) -> dict[str, str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(tree, ast.ClassDef)
    return {
        field.target.id: inspect.cleandoc(text)
        for field, below in zip(tree.body, tree.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        if isinstance(text := below.value.value, str)
    }


def _documented(cls: type[BaseModel], schema: dict[str, Any]) -> dict[str, Any]:
    names = {name: field.alias or name for name, field in cls.model_fields.items()}
    for name, text in field_docs(cls).items():
        if (key := names.get(name, name)) in schema.get("properties", {}):
            schema["properties"][key] |= {"description": plain(text)}
    schema.pop("title", None)
    return schema


def _fields(
    cls: type[BaseModel],
    names: Iterable[str],
    columns: int,
    *,
    after: Mapping[str, Iterable[str]] = MappingProxyType({}),
) -> Iterator[str]:
    docs = field_docs(cls)
    for name in names:
        field = cls.model_fields[name]
        default = default_text(field)
        shown = f" = {default}" if default else ""
        who = ", ".join(after.get(name, ()))
        yield ""
        yield f"  {field.alias or name}: {type_name(field.annotation)}{shown}"
        yield from _wrapped(docs.get(name, ""), columns, indent=6)
        if who:
            yield from _wrapped(f"({who})", columns, indent=6)


def default_text(field: FieldInfo) -> str:
    """The default as it is written in JSON; empty when there is none."""
    if field.is_required() or field.default is None:
        return ""
    default = field.get_default(call_default_factory=True)
    if not isinstance(default, bool | int | float | str | list | dict):
        return ""
    return f"{default:g}" if isinstance(default, float) else json.dumps(default)


def type_name(annotation: Any) -> str:
    """A type as one writes it in JSON's words: `text or none`, `"a" | "b"`, `list of text`."""
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
    """The events that cuggino itself has, by category, in the order in which they are declared."""
    found: dict[type[Event], list[type[Event]]] = {}
    for cls in event_types().values():
        if cls.__module__.startswith("cuggino."):
            found.setdefault(_category(cls), []).append(cls)
    return found


def _category(cls: type[Event]) -> type[Event]:
    """The nearest class above that is no event by itself."""
    above = (part for part in cls.__mro__[1:] if issubclass(part, Event))
    return next(part for part in above if part.__name__ not in Event.registry)


def about(cls: type[BaseModel]) -> str:
    """The first paragraph of what is said of a class."""
    return inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0]


def plain(text: str) -> str:
    """In one line, without the numbers of requirements."""
    return " ".join(re.sub(r"\s*\((?:[A-Z]{3}-\d{3}(?:, | to )?)+\)", "", text).split())


def _wrapped(text: str, columns: int, *, indent: int) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield from textwrap.wrap(
            plain(paragraph),
            max(columns, 20 + indent),
            initial_indent=" " * indent,
            subsequent_indent=" " * indent,
        )
