"""Which rows of the case files about agents are knowingly not followed."""

from __future__ import annotations

import re

from tests.vectors import DATA

_TABLE_ROW = re.compile(r"^\| *([^ |]+) *\| *(\S.*?) *\|$", re.MULTILINE)


def not_followed(name: str) -> dict[str, str]:
    """The rows of `NAME.jsonl` that were decided against, each with its reason."""
    text = (DATA / f"NOT_FOLLOWED.{name}.md").read_text(encoding="utf-8")
    table: list[tuple[str, str]] = _TABLE_ROW.findall(text)
    return {row: reason for row, reason in table if row not in ("id", "---")}
