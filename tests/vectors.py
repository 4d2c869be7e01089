"""Reads the case files in `tests/data`, and which of their rows are not followed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from cuggino.events import Event

DATA = Path(__file__).parent / "data"
_CAMEL = re.compile(r"(?<!^)(?=[A-Z])")


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of a case file, in order."""
    text = (DATA / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def not_followed(name: str | None = None) -> dict[str, str]:
    """The rows that were decided against, of one case file or of all, each with its reason."""
    text = (DATA / "NOT_FOLLOWED.md").read_text(encoding="utf-8")
    if name is not None:
        text = text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    table = re.findall(r"^\| `?([^`|\s]+)`? \| (.+) \|$", text, re.MULTILINE)
    return {row: reason for row, reason in table if row not in ("id", "---")}


def snake(name: str) -> str:
    """`maxIterations` as `max_iterations`: the cases use the original's names."""
    return _CAMEL.sub("_", name).lower()


def event_of(raw: dict[str, Any]) -> Event:
    """The event that a case describes."""
    cls = Event.registry[raw["_tag"]]
    return cls.model_validate({snake(k): v for k, v in raw.items() if k != "_tag"})


def matches(expected: dict[str, Any], event: Event) -> bool:
    """Whether the event has the tag and, where the case names a field, its value."""
    fields = event.model_dump()
    return expected["_tag"] == event.tag and all(
        fields[snake(key)] == value for key, value in expected.items() if key != "_tag"
    )
