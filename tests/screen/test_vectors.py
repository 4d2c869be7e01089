"""Recorded cases of the output, each followed or listed as not followed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cuggino.events import UnknownEvent, parse_event
from cuggino_cli.screen.format import format_event
from cuggino_cli.screen.fragments import Verbosity, paint
from cuggino_cli.screen.status import spinner_line
from tests.vectors import each, not_followed, rows, snake

Row = dict[str, Any]

VERBOSITY = {None: Verbosity.VERBOSE, True: Verbosity.VERBOSE, False: Verbosity.NORMAL}


ROWS = rows("cuggino_output")
NOT_FOLLOWED = not_followed("cuggino_output")


def _answer(row: Row) -> str | None:
    if row["kind"] == "spinner":
        return spinner_line(row["index"], row["elapsed_s"])
    fields = {snake(key): value for key, value in row["event"].items()}
    event = parse_event(json.dumps(fields))
    if isinstance(event, UnknownEvent):
        return f"unknown event {event.tag}"
    fragments = format_event(event, verbosity=VERBOSITY[row.get("verbose")])
    return None if fragments is None else paint(fragments, color=True)


@each("row", [row for row in ROWS if row["id"] not in NOT_FOLLOWED])
def test_recorded_output(row: Row) -> None:
    """A recorded event gives its recorded text, escape codes included."""
    assert row["output"] == _answer(row)


@pytest.mark.parametrize("name", sorted(NOT_FOLLOWED))
def test_rows_not_followed(name: str) -> None:
    """A row listed as not followed exists and does give another result."""
    row = next(row for row in ROWS if row["id"] == name)
    assert row["output"] != _answer(row)


def test_every_row_is_read() -> None:
    """The data has the recorded number of rows."""
    assert len({row["id"] for row in ROWS}) == 142
