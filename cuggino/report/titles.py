"""Short descriptions of tool calls."""

from __future__ import annotations

import difflib
import json
import re
from functools import cache
from typing import Final, Literal, NamedTuple

from pydantic import JsonValue

from cuggino.report.cutting import NOTHING, Cut, cut
from cuggino.report.wording import first_line
from cuggino.runs.words import counted

_SHOWN: Final = (
    *("command", "file_path", "notebook_path", "path", "pattern", "query", "url", "skill"),
    *("description", "prompt", "subject"),
)
"""The fields of a tool's input that describe the call, most informative first."""

_LONGEST = 200
_MOST_LINES = 400


class Shown(NamedTuple):
    """The input of a tool call in readable form."""

    what: str
    """One line: the command, the path."""
    form: Literal["text", "diff"]
    text: Cut
    """The rest of the input; empty if `what` shows all of it."""
    note: str = ""
    """The changed lines of an edit, such as `+14 −3`."""


def shown_input(value: JsonValue, *, folder: str = "", slot: int = 0, most: int = 4000) -> Shown:
    """Describe a tool call; paths are relative to `folder` or to the slot's folder."""
    if isinstance(value, dict):
        return _shown_fields(value, _in_slot(slot) if slot else folder, most)
    if value is None:
        return Shown("", "text", NOTHING)
    text = value if isinstance(value, str) else _json(value)
    return Shown(first_line(text, _LONGEST), "text", cut(text, most))


@cache
def _in_slot(slot: int) -> re.Pattern[str]:
    """Return the pattern of the start of paths in a slot at any location."""
    return re.compile(rf"(?<![\w./-])/(?:[^/\s'\":;|&]+/)*?slot-{slot}/")


def _shown_fields(value: dict[str, JsonValue], folder: str | re.Pattern[str], most: int) -> Shown:
    what = _what(value, folder)
    match value:
        case {"old_string": str(old), "new_string": str(new)}:
            text, note = _change(old, new)
            return Shown(what, "diff", cut(text, most), note)
        case {"content": str(text), "file_path": _}:
            lines = text.count("\n") + (not text.endswith("\n"))
            return Shown(what, "text", cut(text, most), counted(lines, "line"))
        case _:
            key = next((key for key in _SHOWN if isinstance(value.get(key), str)), None)
            rest = {name: item for name, item in value.items() if name != key}
            known = value.get(key) if key else None
            whole = f"{known}\n" if isinstance(known, str) and not _is_one_line(known) else ""
            whole += "\n".join(f"{name}: {_line(item)}" for name, item in rest.items())
            return Shown(what, "text", cut(whole, most))


def _is_one_line(text: str) -> bool:
    return len(text) <= _LONGEST and "\n" not in text.strip()


def _what(value: dict[str, JsonValue], folder: str | re.Pattern[str]) -> str:
    for key in _SHOWN:
        text = value.get(key)
        if isinstance(text, str) and text.strip():
            if isinstance(folder, re.Pattern):
                return first_line(folder.sub("", text), _LONGEST)
            inside = folder.rstrip("/") + "/" if folder else ""
            if inside and key.endswith("path"):
                text = text.removeprefix(inside)
            elif inside:
                text = text.replace(inside, "")
            return first_line(text, _LONGEST)
    return first_line(_json(value), _LONGEST) if value else ""


def _line(value: JsonValue) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def _change(old: str, new: str) -> tuple[str, str]:
    """Return an edit as the lines of a diff, and the number of changed lines."""
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > _MOST_LINES:
        lines = [*(f"-{line}" for line in before), *(f"+{line}" for line in after)]
    else:
        lines = list(difflib.unified_diff(before, after, lineterm="", n=2))[2:]
    added = sum(line.startswith("+") for line in lines)
    deleted = sum(line.startswith("-") for line in lines)
    return "\n".join(lines), f"+{added:,} −{deleted:,}"
