"""The categories of markers, tags with which an agent declares something (CUG-010, CUG-016)."""

import re
from functools import cache

from cuggino.events.base import Event, category_guard


class LlmMarkerEvent(Event, category=True):
    """Category: `<TAG>content</TAG>` in an agent's message. The tag is the class name, upper case.

    The content is trimmed and may be empty.
    """

    content: str

    @classmethod
    @cache
    def tag_name(cls) -> str:
        """Return the tag as an agent writes it: `SpecIssue` is `SPEC_ISSUE`."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).upper()


class LlmTerminalMarkerEvent(LlmMarkerEvent, category=True):
    """Category: a marker that ends the stage of its agent."""


is_llm_marker_event = category_guard(LlmMarkerEvent)
is_llm_terminal_marker_event = category_guard(LlmTerminalMarkerEvent)
