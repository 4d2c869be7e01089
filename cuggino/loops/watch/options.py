"""The options of a watch."""

from __future__ import annotations

from collections.abc import Sequence

from cuggino.agents.base import Role
from cuggino.config import WatchSettings
from cuggino.domain import Window, parse_window
from cuggino.loops.coding.options import CodingOptions
from cuggino.loops.frame.options import RunOptions


class WatchRunOptions(CodingOptions, WatchSettings, RunOptions):
    """The options of a watch; those of the coding loop apply to every item."""

    kind = "watch"
    name = "the watch"

    command: str = "cuggino watch"

    @property
    def is_checked_later(self) -> bool:
        return self.slots > 1

    @property
    def at_once(self) -> int:
        return self.slots

    def windows(self) -> Sequence[Window]:
        hours = [self.hours] if isinstance(self.hours, str) else self.hours or []
        return [parse_window(text) for text in hours]

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles of the agents that the loop runs."""
        return (*super().roles, "audit") if self.audit else super().roles
