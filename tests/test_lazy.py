"""Patterns that are compiled on first use."""

from __future__ import annotations

import re

import pytest

from cuggino._lazy import pattern


def test_a_pattern_works_as_a_compiled_one() -> None:
    """Its methods and flags are those of `re.compile`."""
    words = pattern(r"a(b)", re.IGNORECASE)
    found = words.search("xAB")
    assert found is not None
    assert ("B", ["b"], "-") == (found[1], words.findall("ab"), words.sub("-", "ab"))


def test_a_pattern_of_bytes_works_as_a_compiled_one() -> None:
    """Bytes are matched as text is."""
    found = pattern(rb"a(\d)").fullmatch(b"a1")
    assert found is not None
    assert b"1" == found[1]


def test_a_pattern_is_compiled_on_first_use() -> None:
    """An unused pattern costs nothing: not even its errors are found."""
    broken = pattern("(")
    with pytest.raises(re.error):
        broken.search("x")
