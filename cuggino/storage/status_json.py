"""The text of `.autonoe/status.json`: reading it leniently, writing it as it was (AUT-100 to 105).

Pure: the text comes in and goes out, no file is touched.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import date
from typing import Any, NoReturn

from cuggino.domain.deliverables import Deliverable, Deliverables, DeliverableStatus

DEEPEST = 100
"""Objects and lists inside of each other that are read and written."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def parse_status(content: bytes, *, today: date) -> tuple[Deliverables, tuple[str, ...]]:
    """The deliverables of a status file, and a sentence for each thing in it that is odd.

    What is missing is made up for: dates by today, texts by empty ones, flags by false. Of a file
    with a wrong value nothing is used.

    Raises:
        ValueError: nothing can be made of it; the message says what is wrong, and where.
    """
    raw = parse_json(content)
    if not isinstance(raw, dict) or not isinstance(raw.get("deliverables"), list):
        raise ValueError('it has no list "deliverables"')
    warnings: list[str] = []
    items: dict[str, Deliverable] = {}
    for number, value in enumerate(raw["deliverables"]):
        place = f"deliverables[{number}]"
        item = _deliverable(value, place, warnings)
        if item.id in items:
            raise ValueError(f'{place} has the id of another one, "{item.id}"')
        items[item.id] = item
    dates = {key: raw.get(key) for key in ("createdAt", "updatedAt")}
    for key, value in dates.items():
        if not isinstance(value, str):
            dates[key] = today.isoformat()
            if value is not None:
                warnings.append(f'"{key}" is no text; today stands for it')
    return (
        Deliverables(
            created_at=str(dates["createdAt"]),
            updated_at=str(dates["updatedAt"]),
            items=tuple(items.values()),
            fields=raw,
        ),
        tuple(warnings),
    )


def render_status(deliverables: Deliverables) -> str:
    """The file's text: indented by two, no newline at its end, keys where they were."""
    return render_json(
        {
            **deliverables.fields,
            "createdAt": deliverables.created_at,
            "updatedAt": deliverables.updated_at,
            "deliverables": [_object(item) for item in deliverables.items],
        }
    )


def parse_json(content: bytes) -> Any:
    """The value of a JSON text that can be written again.

    Raises:
        ValueError: it is no JSON, with the place; or holds what could not be written.
    """
    try:
        raw = json.loads(
            content.decode("utf-8").removeprefix("\ufeff"),
            parse_constant=_refuse,
            parse_float=_finite,
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise ValueError(f"{where}: not valid JSON ({error.msg})") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start}: not UTF-8") from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if _is_deeper(raw, DEEPEST):
        raise ValueError("it is nested too deeply")
    return raw


def render_json(value: object) -> str:
    """The value as JavaScript would write it, with an indentation of two."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    return _LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _deliverable(raw: object, place: str, warnings: list[str]) -> Deliverable:
    if not isinstance(raw, dict):
        raise ValueError(f"{place} is no object")
    deliverable_id = _text(raw, "id", place)
    if not deliverable_id.strip():
        raise ValueError(f'{place} has no "id"')
    criteria = raw.get("acceptanceCriteria")
    if criteria is None:
        criteria = []
    if not isinstance(criteria, list) or not all(isinstance(item, str) for item in criteria):
        raise ValueError(f'"acceptanceCriteria" of {place} is no list of texts')
    passed, blocked = _flag(raw, "passed", place), _flag(raw, "blocked", place)
    if passed and blocked:
        warnings.append(f'deliverable "{deliverable_id}" is passed and blocked; passed counts')
    status: DeliverableStatus = "passed" if passed else "blocked" if blocked else "pending"
    return Deliverable(
        id=deliverable_id,
        description=_text(raw, "description", place),
        acceptance_criteria=tuple(criteria),
        status=status,
        deprecated_at=_text(raw, "deprecatedAt", place) or None,
        fields=raw,
    )


def _object(item: Deliverable) -> Mapping[str, object]:
    known: dict[str, object] = {
        "id": item.id,
        "description": item.description,
        "acceptanceCriteria": list(item.acceptance_criteria),
        "passed": item.status == "passed",
        "blocked": item.status == "blocked",
    }
    if item.deprecated_at is not None:
        known["deprecatedAt"] = item.deprecated_at
    return {**item.fields, **known}


def _text(raw: Mapping[str, object], key: str, place: str) -> str:
    value = raw.get(key)
    if not isinstance(value, str | None):
        raise ValueError(f'"{key}" of {place} is no text')
    return value or ""


def _flag(raw: Mapping[str, object], key: str, place: str) -> bool:
    value = raw.get(key)
    if not isinstance(value, bool | None):
        raise ValueError(f'"{key}" of {place} is neither true nor false')
    return bool(value)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not valid JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"the number {digits[:20]} is too large")
    return value


def _is_deeper(value: object, levels: int) -> bool:
    match value:
        case dict():
            below = list(value.values())
        case list():
            below = value
        case _:
            return False
    return levels == 0 or any(_is_deeper(item, levels - 1) for item in below)
