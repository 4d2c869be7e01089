"""JSON Schemas of the events and of `.cuggino.json`, with the docstrings of their fields."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import textwrap
from typing import Any

from pydantic import BaseModel

from cuggino.config import (
    AcpProgram,
    AttemptChoice,
    BacklogSource,
    ChatSettings,
    ClusterSettings,
    Config,
    FallbackAgent,
    NotifySettings,
    NtfySettings,
    OwnChannelSettings,
    PullRequestSettings,
    RoleAgent,
    TelegramSettings,
)
from cuggino.events import Event, event_types

_NESTED = (
    *(AcpProgram, AttemptChoice, BacklogSource, ClusterSettings, FallbackAgent),
    NotifySettings,
    *(PullRequestSettings, RoleAgent),
    *(ChatSettings, NtfySettings, OwnChannelSettings, TelegramSettings),
)
"""The objects within the configuration."""

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def event_schemas() -> dict[str, Any]:
    """Return the JSON Schema of one line of `--json`: any of the events."""
    schemas = {tag: event_schema(cls) for tag, cls in event_types().items()}
    return {
        "$schema": _DIALECT,
        "title": "An event of cuggino",
        "oneOf": [{"$ref": f"#/$defs/{tag}"} for tag in schemas],
        "$defs": schemas,
    }


def event_schema(cls: type[Event]) -> dict[str, Any]:
    """Return the JSON Schema of one event in its wire format."""
    schema = _documented(cls, cls.model_json_schema(mode="serialization"))
    item = {"item": {"type": "string", "description": one_line(field_docs(Event)["item"])}}
    own = schema.get("properties", {})
    schema["properties"] = {
        "_tag": {"const": cls.__name__},
        **({} if "item" in own else item),
        **own,
    }
    schema["required"] = ["_tag", *schema.get("required", [])]
    return schema


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema of `.cuggino.json`."""
    schema = _documented(Config, Config.model_json_schema(by_alias=True))
    for cls in _NESTED:
        _documented(cls, schema["$defs"][cls.__name__])
    return {"$schema": _DIALECT, **schema}


def field_docs(cls: type) -> dict[str, str]:
    """Return the docstring of each field, inherited fields included."""
    found: dict[str, str] = {}
    for part in reversed(cls.__mro__):
        if part.__module__.startswith("cuggino"):
            found |= _own_field_docs(part)
    return found


def one_line(text: str) -> str:
    """Join the lines of a docstring, without the requirement numbers in it."""
    return " ".join(re.sub(r"\s*\((?:[A-Z]{3}-\d{3}(?:, | to )?)+\)", "", text).split())


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
            schema["properties"][key] |= {"description": one_line(text)}
    schema.pop("title", None)
    return schema
