"""The page of rows that are not followed lists existing rows with reasons."""

from __future__ import annotations

import re

import pytest

from tests.vectors import DATA, rows

PAGE = (DATA / "NOT_FOLLOWED.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\w+)$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("name", SECTIONS)
def test_sections_list_rows_of_their_file(name: str) -> None:
    """Each section is a case file, each line a distinct row of it with a reason."""
    lines = [line for line in SECTIONS[name].splitlines() if line.startswith("| ")][1:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert {2} == {len(row) for row in cells}
    ids = [row[0].strip("`") for row in cells]
    assert len(set(ids)) == len(ids) > 0
    assert set(ids) <= {row["id"] for row in rows(name)}
    assert all(len(row[1]) > 10 for row in cells)
