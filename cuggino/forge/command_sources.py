"""The output of a command as a source: one JSON object per line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from reactivex import Observable, timer

from cuggino.errors import ConfigError
from cuggino.files import parse_json
from cuggino.forge.source import Source, SourceItem
from cuggino.operators import Flow, flow, forward, interrupt_when
from cuggino.operators.mapcat import mapcat

TIMEOUT = 120.0
"""Seconds that a command may take."""
_SHOWN = 3
"""Maximum number of problems listed."""
_KEYS = ("id", "title", "body", "after", "url", "held", "closed")


def command_source(
    name: str,
    run: Callable[[], Observable[bytes]],
    *,
    every: float = 60.0,
    network: bool = False,
    timeout: float = TIMEOUT,
) -> Source:
    """Return a source that reads the output of a command; `run` emits its lines.

    A line has `id` and `title`, and may have `body`, `after`, `url`, `held` and `closed`; other
    keys are ignored. An invalid line fails the poll after all other lines.
    """

    def look() -> Observable[SourceItem]:
        problems: list[str] = []
        count = 0

        def read(line: object) -> tuple[SourceItem, ...]:
            nonlocal count
            if not isinstance(line, bytes):
                problems.append(f"timed out after {timeout:g} seconds")
                return ()
            count += 1
            if not line.strip():
                return ()
            try:
                return (item_of(line),)
            except ValueError as error:
                problems.append(f"line {count}: {error}")
                return ()

        def story() -> Flow[None]:
            late: Any = interrupt_when(timer(timeout), _LATE)
            yield from forward(run().pipe(late, mapcat(read)))
            if problems:
                more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
                raise ConfigError("; ".join(problems[:_SHOWN]) + more)

        return flow(story)

    return Source(name=name, items=look, every=every, network=network)


_LATE = object()


def item_of(line: bytes) -> SourceItem:
    """Return the item of a line.

    Raises:
        ValueError: the line is not valid, with the reason.
    """
    try:
        raw = parse_json(line)
    except ValueError as error:
        raise ValueError(re.sub(r"^line 1 (?=column)", "", str(error))) from None
    if not isinstance(raw, dict):
        raise ValueError("not a JSON object")
    fields: dict[str, Any] = {key: raw[key] for key in _KEYS if raw.get(key) is not None}
    if "id" not in fields:
        raise ValueError('"id" is missing')
    after: Any = fields.pop("after", [])
    if isinstance(after, list):
        after = tuple(_id(one) for one in cast("list[object]", after))
    return SourceItem(**{"title": "", **fields, "id": _id(fields["id"]), "after": after})


def _id(value: object) -> object:
    """Return an id as a text without blanks around it; a source may give an integer."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value.strip() if isinstance(value, str) else value
