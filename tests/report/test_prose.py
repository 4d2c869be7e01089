"""Agents' Markdown as HTML."""

from __future__ import annotations

import pytest

from cuggino.report import markdown
from cuggino.report.prose import MOST
from tests.report.hostile import MARKDOWN
from tests.report.test_page import Page, intruders
from tests.vectors import each


@each("vector", MARKDOWN)
def test_vectors(vector: str) -> None:
    """No Markdown becomes active, loads something, or looks like a part of the page."""
    shown = str(markdown(vector))
    assert [] == intruders(shown)
    allowed = {"href", "rel", "start"}
    assert {name for _, attributes in Page(shown).elements for name in attributes} <= allowed
    links = [a["href"] for tag, a in Page(shown).elements if tag == "a"]
    assert all(
        str(link).startswith(("https://a.example", "https://evil.example")) for link in links
    )


def test_there_are_forty_vectors() -> None:
    """The list of vectors does not shrink."""
    assert len({*MARKDOWN}) >= 40


def test_formatting() -> None:
    """Headings, lists, code, tables and links are rendered."""
    shown = str(
        markdown(
            "# Title\n\nSome `code` and **bold**, [docs](https://a.example/x?y=1&z=2).\n\n"
            "- one\n- two\n\n3. three\n\n```python\nprint(1 < 2)\n```"
            "\n\n| a | b |\n|:-|-|\n| 1 | 2 |\n"
        )
    )
    for part in (
        "<h4>Title</h4>",
        "<code>code</code>",
        "<strong>bold</strong>",
        '<a href="https://a.example/x?y=1&amp;z=2" rel="noreferrer nofollow">docs</a>',
        "<li>one</li>",
        '<ol start="3">',
        "<pre><code>print(1 &lt; 2)\n</code></pre>",
        "<th>a</th>",
        "<td>1</td>",
    ):
        assert part in shown


def test_markers_are_text() -> None:
    """An agent's marker is shown as it was written."""
    assert "&lt;DONE&gt;Add it&lt;/DONE&gt;" in markdown("<DONE>Add it</DONE>")


@pytest.mark.parametrize(
    "text", ["[" * 20_000, ">" * 20_000, "[a](" * 20_000, "*a " * 30_000, "x" * 5_000_000, "\n" * 9]
)
def test_pathological(text: str) -> None:
    """Deep nesting and long texts are rendered, and cut with their head and tail."""
    shown = markdown(text)
    assert len(shown) < 12 * MOST
    assert (len(text) > MOST) == ("characters left out" in shown)
