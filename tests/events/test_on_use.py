"""The events on use."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cuggino import events
from cuggino.events import AgentMessage, LlmMarkerEvent, kind_of, on_use
from cuggino_cli.screen.event_lines import EventLines
from cuggino_cli.screen.fragments import Verbosity


def test_names_are_those_of_the_package() -> None:
    """Each public name of the events is there, and is the same object."""
    assert dir(events) == dir(on_use)
    assert all(getattr(on_use, name) is getattr(events, name) for name in dir(events))


def test_unknown_name() -> None:
    """Any other name is an error, as in the package."""
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(on_use, "nothing")  # noqa: B009 (mypy rejects the attribute)


class MyMessage(AgentMessage):
    """A user's own kind of message."""


def test_the_kind_of_a_class() -> None:
    """It is the tag of an own event, and that of the nearest own base for a user's."""

    class ToolCall(LlmMarkerEvent):
        """A user's marker with the name of another event."""

    kinds = [kind_of(cls) for cls in (AgentMessage, MyMessage, ToolCall, int)]
    assert ["AgentMessage", "AgentMessage", "LlmMarkerEvent", ""] == kinds


def test_a_users_classes_are_shown_as_their_bases() -> None:
    """A subclass is shown as its base, and a marker with the name of another event as a marker."""

    class ToolCall(LlmMarkerEvent):
        """A user's marker with the name of another event."""

    at = datetime(2026, 1, 1, tzinfo=UTC)
    shown = [
        "".join(fragment.text for fragment in lines)
        for event in (MyMessage(text="hello"), ToolCall(content="c"))
        if (lines := EventLines().fragments(event, Verbosity.NORMAL, at=at)) is not None
    ]
    assert ["hello", "\n[TOOL_CALL] c\n"] == shown
