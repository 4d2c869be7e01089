"""The options that a question offers."""

from __future__ import annotations

import pytest

from cuggino.domain import options_of


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("# Which?\n\n- CSV\n- `JSON`.\n", ("CSV", "JSON")),
        ("1. Yes\n2) **No**", ("Yes", "No")),
        ("- not these\n- two\n\nEither\n\n* a\n\n* b", ("a", "b")),
        ("- alone", ()),
        ("No list", ()),
        ("".join(f"- {number}\n" for number in range(7)), ()),
        ("- a\n- " + "long " * 20, ()),
        ("- a\n- `a`", ()),
        ("", ()),
    ],
)
def test_options_of_a_question(text: str, options: tuple[str, ...]) -> None:
    """The last short list of a question is what it offers."""
    assert options == options_of(text)
