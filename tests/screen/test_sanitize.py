"""Sanitizing: printed text cannot control the terminal."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cuggino.events import Event
from cuggino_cli.screen.format import format_event, numbered_lines
from cuggino_cli.screen.fragments import THEME, Fragment, Verbosity, paint
from cuggino_cli.screen.text import inert
from tests.vectors import each

from .samples import all_event_types, sample

HOSTILE = "\x1b[2J\x1b]0;t\x07a\x08\x7f\x9b31m\u202eb\u2066\u200f\u061c\ud83d\r\n\rc\td"

texts = st.text(
    st.one_of(
        st.characters(),
        st.characters(categories=["Cc", "Cs", "Cf"]),
        st.sampled_from("\x1b\r\n\t\x07"),
    )
)


def active(text: str) -> list[str]:
    """Return the characters of the text that a terminal would act on."""
    return [
        char
        for char in text
        if (unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\t")
        or unicodedata.bidirectional(char)
        in ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")
        or char in "\u200e\u200f\u061c"
    ]


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("␛[31m", "\x1b[31m"),
        ("␀␇␈␡", "\x00\x07\x08\x7f"),
        ("\\u{9b}31m", "\x9b31m"),
        ("a\\u{202e}b\\u{2066}", "a\u202eb\u2066"),
        ("\\u{200e}\\u{200f}", "\u200e\u200f"),
        ("a\nb\n␍c", "a\r\nb\n\rc"),
        ("␍\n", "\r\r\n"),
        ("\ufffd", "\ud800"),
        ("a\tb\nc", "a\tb\nc"),
        ("👩\u200d💻 é 漢 ▶", "👩\u200d💻 é 漢 ▶"),
    ],
)
def test_active_characters_become_visible(expected: str, text: str) -> None:
    """Active characters are made visible; all others are unchanged."""
    assert expected == inert(text)


@given(texts)
def test_inert_text_has_no_active_character(text: str) -> None:
    """Only newline and tab remain of the controls, and a second pass changes nothing."""
    shown = inert(text)
    assert active(shown) == []
    assert shown == inert(shown)


@given(st.lists(st.builds(Fragment, st.sampled_from(sorted(THEME)), texts)))
def test_painted_text_has_no_active_character(fragments: list[Fragment]) -> None:
    """Plain paint keeps only newline and tab; colored paint adds only the theme's sequences."""
    assert active(paint(fragments, color=False)) == []
    uncolored = re.sub(r"\x1b\[[0-9;]*m", "", paint(fragments, color=True, bell=False))
    assert paint(fragments, color=False) == uncolored


@each("cls", all_event_types())
def test_hostile_event_is_inert(cls: type[Event]) -> None:
    """Every text field of every event is shown inert."""
    hostile: dict[str, Any] = {
        name: HOSTILE for name, field in cls.model_fields.items() if "str" in str(field.annotation)
    }
    if "input" in cls.model_fields:
        hostile["input"] = {"command": HOSTILE}
    if "outcome" in cls.model_fields:
        hostile.pop("outcome", None)
    for name, value in {
        "agents": {HOSTILE: (HOSTILE, HOSTILE)},
        "changed": [HOSTILE],
        "check": [HOSTILE],
        "commits": [(HOSTILE, HOSTILE)],
        "filenames": [HOSTILE],
        "markers": [(HOSTILE, HOSTILE)],
        "issues": [HOSTILE],
        "failed": [HOSTILE],
        "failing": [HOSTILE],
        "tried": [HOSTILE],
        "held": [HOSTILE],
        "not_held": [HOSTILE],
        "notes": [HOSTILE],
        "objections": [HOSTILE],
        "joined": [HOSTILE],
        "landed": [HOSTILE],
        "left": [HOSTILE],
        "left_out": [(HOSTILE, HOSTILE)],
        "skipping": [HOSTILE],
        "tests": [HOSTILE],
        "weakened": [HOSTILE],
        "paths": [HOSTILE],
        "findings": [HOSTILE],
        "failures": {HOSTILE: 1},
        "options": {HOSTILE: HOSTILE},
        "undone": {HOSTILE: HOSTILE},
    }.items():
        if name in hostile:
            hostile[name] = value
    for verbosity in Verbosity:
        fragments = format_event(sample(cls, **hostile), verbosity=verbosity) or []
        assert active(paint(fragments, color=False)) == []


@given(st.text(st.one_of(st.characters(), st.sampled_from("a\r\n\t\x1b\u202e\ud83d")), max_size=60))
def test_text_is_inert_however_it_is_found(text: str) -> None:
    """Text without a control character is recognized as such, and all other text is replaced."""
    found = inert(text)
    assert not {"Cc", "Cs"} & {unicodedata.category(char) for char in found if char not in "\n\t"}
    if all(char in "\n\t" or unicodedata.category(char)[0] != "C" for char in text):
        assert text == found


@given(st.lists(st.sampled_from(["a", "b\x1b", "", "\r", "d\t"]), max_size=9), st.booleans())
def test_the_first_lines_of_a_result(lines: list[str], is_windows: bool) -> None:
    """Five lines are numbered as if all of the output had been made inert."""
    output = ("\r\n" if is_windows else "\n").join(lines)
    whole = inert(output).split("\n")
    expected = [f"{number:5}→{line}" for number, line in enumerate(whole[:5], start=1)]
    if len(whole) > 5:
        expected += ["  ...", f"  (showing 5 of {len(whole)} lines)"]
    assert "\n".join(expected) == numbered_lines(output)
