"""Planning with usage windows: what is known of them, and when nothing new may start."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from cuggino.errors import QuotaExceeded
from cuggino.events import QuotaUsed

Overage: TypeAlias = Literal["pay", "stop"]
"""Whether work continues beyond a usage limit, if the account pays for that."""

_ROUNDING = 1e-9
_JITTER = timedelta(minutes=1)
"""Reset times that differ by less are the same: some agents report seconds from now."""


class QuotaWindows:
    """The usage windows of agents' accounts, as last reported; a window is forgotten at its reset.

    All streams that share a usage limit share one object.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], QuotaUsed] = {}

    def add(self, report: QuotaUsed) -> bool:
        """Remember the report of an agent; return whether it changes what was known.

        Changes below one percent are remembered, but do not count.
        """
        key = (report.agent, report.window)
        before, self._known[key] = self._known.get(key), report
        return before is None or not _is_same(before, report)

    def restore(self, reports: Iterable[QuotaUsed]) -> None:
        """Restore the reports of an earlier process, oldest first; those of this one win."""
        earlier = {(report.agent, report.window): report for report in reports}
        self._known = {**earlier, **self._known}

    def at(self, now: datetime) -> tuple[QuotaUsed, ...]:
        """Return the windows that are not reset yet, or whose reset is unknown."""
        return tuple(
            window
            for window in self._known.values()
            if window.resets_at is None or window.resets_at > now
        )

    def reached(self, agent: str, share: float, now: datetime) -> QuotaUsed | None:
        """Return the window of this agent that is used up to the share, and is reset last.

        A window whose reset is unknown is none of them, as nobody could wait for it.
        """
        found = [
            (window.resets_at, window)
            for window in self.at(now)
            if window.agent == agent
            and window.resets_at is not None
            and window.used >= share - _ROUNDING
        ]
        return max(found, key=lambda one: one[0])[1] if found else None


def _is_same(one: QuotaUsed, other: QuotaUsed) -> bool:
    if round(one.used, 2) != round(other.used, 2):
        return False
    if one.resets_at is None or other.resets_at is None:
        return one.resets_at is other.resets_at
    return abs(one.resets_at - other.resets_at) <= _JITTER


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaPlan:
    """How much of the usage windows agents may use."""

    reserve: float = 0.0
    """The share of each window that is left to the person, from 0 to below 1."""
    overage: Overage = "pay"
    windows: QuotaWindows = field(default_factory=QuotaWindows)

    def refusal(self, agent: str, now: datetime) -> QuotaExceeded | None:
        """Return why no new session of the agent may start now, or None."""
        if self.reserve <= 0 and self.overage == "pay":
            return None
        window = self.windows.reached(agent, 1 - self.reserve, now)
        if window is None:
            return None
        text = f"{agent}: {window_text(window)}"
        if self.reserve > 0:
            text += f", and quotaReserve keeps {self.reserve:.0%} of it"
        else:
            text += ', and overage is "stop"'
        return QuotaExceeded(text, resets_at=window.resets_at, planned=True)


def window_text(window: QuotaUsed) -> str:
    """Return the window and its used share, such as `five_hour 62% used`."""
    return f"{window.window} {window.used:.0%} used"
