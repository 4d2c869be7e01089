"""Markdown of the help pages as plain text."""

from __future__ import annotations

import textwrap

import pytest

from cuggino_cli.help.rendering import headings, rendered, section

TABLE = """\
| key | type | meaning |
|---|---|---|
| `agent` | text \\| none | The agent that does the work, by its name. |
"""


@pytest.mark.parametrize(
    ("markdown", "columns", "expected"),
    [
        (
            "# Title\n\n## `part` one\n\n### small",
            40,
            "Title\n=====\n\npart one\n--------\n\nsmall",
        ),
        ("one two\nthree four five six", 20, "one two three four\nfive six"),
        (
            "- one two three four five\n  six\n- seven",
            22,
            "- one two three four\n  five six\n- seven",
        ),
        ("1. one\n2. two", 40, "1. one\n2. two"),
        ("**bold** and *slanted* but `**code**`", 60, "bold and slanted but `**code**`"),
        (
            "a [page](loops.md#x) and [a file](../x.py)",
            60,
            "a page (`cuggino help loops`) and a file",
        ),
        ("[RxPY](https://rxpy.org)", 60, "RxPY (https://rxpy.org)"),
        ("```sh\nls   -l\n\ncd\n```", 20, "    ls   -l\n\n    cd"),
        ("<!-- hidden\nlines -->\n\nseen", 20, "seen"),
        ("![picture](x.svg)", 20, ""),
    ],
)
def test_rendered(markdown: str, columns: int, expected: str) -> None:
    assert expected == "\n".join(rendered(markdown, columns))


def test_a_table_that_fits() -> None:
    """Cells are aligned, and the last one wraps below itself."""
    expected = """\
        key      type         meaning
        `agent`  text | none  The agent that does the work, by
                              its name."""
    assert textwrap.dedent(expected) == "\n".join(rendered(TABLE, 55))


def test_a_table_of_figures_that_fits() -> None:
    """A last column that is narrow needs no more room than it has."""
    table = "| tool | runs | lost |\n|---|---|---|\n| loop | 3 | 0 |"
    assert ["tool  runs  lost", "loop  3     0"] == list(rendered(table, 16))
    assert "tool  runs  lost" not in rendered(table, 15)


def test_a_table_that_does_not_fit() -> None:
    """Each row becomes a block."""
    block = [
        "  `agent`",
        "      type: text | none",
        "      The agent that does the",
        "      work, by its name.",
    ]
    assert block == list(rendered(TABLE, 30))


def test_sections() -> None:
    """A section includes its subsections and ends at the next heading of its level."""
    page = "# T\n\n## A\n\na\n\n### B\n\nb\n\n## C\n\nc\n"
    assert ["A", "B", "C"] == headings(page)
    assert "## A\n\na\n\n### B\n\nb\n" == section(page, "a")
    assert "## C\n\nc\n" == section(page, "C")
    assert section(page, "D") is None
