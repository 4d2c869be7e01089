"""Planning with usage windows: the known ones, and when no new session may start."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from typing import Literal, TypeAlias

from cuggino.errors import QuotaExceeded
from cuggino.events import QuotaUsed

Overage: TypeAlias = Literal["pay", "stop"]
"""Whether work continues beyond a usage limit, if the account pays for that."""

NEARLY = 0.8
"""The share from which a window is nearly used up."""
_ROUNDING = 1e-9
_JITTER = timedelta(minutes=1)
"""Reset times that differ by less are the same: some agents report seconds from now."""


class QuotaWindows:
    """The usage windows of agents' accounts, as last reported; a window is forgotten at its reset.

    All streams that share a usage limit share one object.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], QuotaUsed] = {}

    def add(self, report: QuotaUsed) -> QuotaUsed | None:
        """Remember the report of an agent; return it if it changes what was known, else None.

        Changes below one percent are remembered, but do not count. The first report of a window
        that is nearly used up is marked `nearly`.
        """
        key = (report.agent, report.window)
        before, self._known[key] = self._known.get(key), report
        was_near = before is not None and before.used >= NEARLY and _same_reset(before, report)
        if report.used >= NEARLY and not was_near:
            return report.model_copy(update={"nearly": True})
        return None if before is not None and _is_same(before, report) else report

    def merge(self, reports: Iterable[QuotaUsed]) -> None:
        """Remember the reports of another process, as far as they are newer."""
        merged = merged_windows(self._known.values(), reports)
        self._known = {(report.agent, report.window): report for report in merged}

    def at(self, now: datetime) -> tuple[QuotaUsed, ...]:
        """Return the windows that are not reset yet, or whose reset is unknown."""
        return unreset(self._known.values(), now)

    def reached(self, agent: str, share: float, now: datetime) -> QuotaUsed | None:
        """Return the window of this agent that is used up to the share, and is reset last.

        A window whose reset is unknown does not count: there is no time to wait for.
        """
        found = (
            window
            for window in self.at(now)
            if window.agent == agent
            and window.resets_at is not None
            and window.used >= share - _ROUNDING
        )
        return max(found, key=_age, default=None)


def _is_same(one: QuotaUsed, other: QuotaUsed) -> bool:
    return round(one.used, 2) == round(other.used, 2) and _same_reset(one, other)


def _same_reset(one: QuotaUsed, other: QuotaUsed) -> bool:
    if one.resets_at is None or other.resets_at is None:
        return one.resets_at is other.resets_at
    return abs(one.resets_at - other.resets_at) <= _JITTER


def unreset(windows: Iterable[QuotaUsed], now: datetime) -> tuple[QuotaUsed, ...]:
    """Return the windows that are not reset yet, or whose reset is unknown."""
    return tuple(one for one in windows if one.resets_at is None or one.resets_at > now)


def with_window(known: Iterable[QuotaUsed], report: QuotaUsed) -> tuple[QuotaUsed, ...]:
    """Return the known windows with a new report of one, sorted by agent."""
    key = (report.agent, report.window)
    others = (one for one in known if (one.agent, one.window) != key)
    return tuple(sorted((*others, report), key=lambda one: (one.agent, one.window)))


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaPlan:
    """The part of the usage windows that agents may use."""

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
            text += f", and quotaReserve keeps {_percent(self.reserve)} of it"
        else:
            text += ', and overage is "stop"'
        return QuotaExceeded(text, resets_at=window.resets_at, planned=True)


def merged_windows(*reports: Iterable[QuotaUsed]) -> tuple[QuotaUsed, ...]:
    """Return the windows of several records of the same accounts, whose order is unknown.

    Of one window, the later reset is newer, and then the larger share, as it only grows.
    """
    known: dict[tuple[str, str], QuotaUsed] = {}
    for report in chain.from_iterable(reports):
        key = (report.agent, report.window)
        known[key] = max(known.get(key, report), report, key=_age)
    return tuple(known[key] for key in sorted(known))


def _age(window: QuotaUsed) -> tuple[float, float]:
    resets_at = window.resets_at
    return (resets_at.timestamp() if resets_at is not None else 0.0, window.used)


def window_text(window: QuotaUsed) -> str:
    """Return the window and its used share, such as `five_hour 62 % used`."""
    return f"{window.window} {_percent(window.used)} used"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
