"""Readers of the case files in `tests/data` and of the rows that are not followed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from cuggino.events import Event, event_types

DATA = Path(__file__).parent / "data"
_CAMEL = re.compile(r"(?<!^)(?=[A-Z])")


def rows(name: str, count: int | None = None) -> list[dict[str, Any]]:
    """Return the rows of a case file, in order: as many as `count` says, with as many ids."""
    text = (DATA / f"{name}.jsonl").read_text(encoding="utf-8")
    found = [json.loads(line) for line in text.splitlines() if line.strip()]
    assert count in (None, len(found)) and count in (None, len({row["id"] for row in found})), name
    return found


def not_followed(name: str | None = None) -> dict[str, str]:
    """Return the rows not followed, of one case file or of all, each with its reason."""
    text = (DATA / "NOT_FOLLOWED.md").read_text(encoding="utf-8")
    if name is not None:
        text = text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    table = re.findall(r"^\| `?([^`|\s]+)`? \| (.+) \|$", text, re.MULTILINE)
    return {row: reason for row, reason in table if row not in ("id", "---")}


def snake(name: str) -> str:
    """Convert `maxIterations` to `max_iterations`: the cases use the original's names."""
    return _CAMEL.sub("_", name).lower()


def event_of(raw: dict[str, Any]) -> Event:
    """Return the event that a case describes."""
    cls = event_types()[raw["_tag"]]
    return cls.model_validate({snake(k): v for k, v in raw.items() if k != "_tag"})


def matches(expected: dict[str, Any], event: Event) -> bool:
    """Return True if the event has the tag and, if the case names a field, its value."""
    fields = event.model_dump()
    return expected["_tag"] == event.tag and all(
        fields[snake(key)] == value for key, value in expected.items() if key != "_tag"
    )


def each(names: str, values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test once for every row of values, and report each failing row.

    For tests without fixtures that have many fast rows: unlike with `parametrize`, all rows are
    one test.
    """
    is_single = "," not in names
    table = [(value,) if is_single else tuple(value) for value in values]

    def wrap(test: Callable[..., None]) -> Callable[..., None]:
        def run(*args: Any) -> None:
            assert table, "no rows"
            failures: list[Exception] = []
            for row in table:
                try:
                    test(*args, **dict(zip(map(str.strip, names.split(",")), row, strict=True)))
                except (Exception, pytest.fail.Exception) as error:
                    failure = AssertionError(f"{names} = {row!r}: {error}")
                    failure.__cause__ = error
                    failures.append(failure)
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(table)} rows fail", failures)

        run.__name__, run.__qualname__ = test.__name__, test.__qualname__
        run.__doc__, run.__module__ = test.__doc__, test.__module__
        return run

    return wrap
