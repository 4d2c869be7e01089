"""The events on use."""

from __future__ import annotations

import pytest

from cuggino import events
from cuggino.events import on_use


def test_names_are_those_of_the_package() -> None:
    """Each public name of the events is there, and is the same object."""
    assert dir(events) == dir(on_use)
    assert all(getattr(on_use, name) is getattr(events, name) for name in dir(events))


def test_unknown_name() -> None:
    """Any other name is an error, as in the package."""
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(on_use, "nothing")  # noqa: B009 (mypy rejects the attribute)
