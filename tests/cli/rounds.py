"""Scenarios of the scripted agent for whole runs, one table of an agent at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def agent(role: str, *steps: Mapping[str, Any], **fields: Any) -> str:
    """Return an agent with this role and these fields, which plays the steps."""
    tables = "".join(f"[[{role}.steps]]\n{_rows(step)}" for step in steps)
    return f"\n[[{role}]]\n{_rows(fields)}{tables}"


def plans(text: str = "# Plan", *more: Mapping[str, Any], **fields: Any) -> str:
    """Return a planning agent that writes this plan, plays `more` steps, and ends."""
    write = {"write": "$CUGGINO_PLAN_FILE", "text": text}
    say = {"say": "<PLAN_COMPLETE>one task</PLAN_COMPLETE>"}
    return agent("planning", write, *more, say, **fields)


def implements(path: str = "", text: str = "", *, said: str = "<DONE>Say hello</DONE>") -> str:
    """Return an implementing agent that writes `path`, if given, and outputs `said`."""
    written = [{"write": path, "text": text}] if path else []
    return agent("implementing", *written, {"say": said})


def works(command: str, said: str = "<DONE>feat: all</DONE>") -> str:
    """Return an implementing agent that runs a command and outputs `said`."""
    return agent("implementing", {"run": command}, {"say": said})


def reviews(said: str, *before: Mapping[str, Any], **fields: Any) -> str:
    """Return a reviewing agent that plays the steps before, and outputs `said`."""
    return agent("reviewing", *before, {"say": said}, **fields)


def _rows(fields: Mapping[str, Any]) -> str:
    return "".join(f"{key} = {_value(value)}\n" for key, value in fields.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


PLANS = plans()
APPROVES = reviews("<APPROVED>fine</APPROVED>")
