"""`QuotaGate`: whether a usage limit is in force, for all streams that share it."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime, timedelta

from cuggino.domain.quota import quota_pause

_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)


class QuotaGate:
    """Whether a usage limit is in force, for all streams that share it.

    An audit agent must not burn what the loop waits for. All its streams are on one scheduler.
    Times are the scheduler's, and are arguments.
    """

    def __init__(self) -> None:
        self.resets_at: datetime | None = None
        """When the limit is lifted, as far as an agent said; None when open or unsaid."""
        self.message = ""
        """The agent's words about the limit."""
        self._until: datetime | None = None
        self._said: datetime | None = None
        self._pauses = 0
        self._of: dict[Hashable, QuotaGate] = {}

    def of(self, account: Hashable | None) -> QuotaGate:
        """The gate of those who share an account, whose limit binds nobody else; None: this one."""
        return self if account is None else self._of.setdefault(account, QuotaGate())

    def remaining(self, now: datetime, *, margin: float = 0.0) -> float:
        """Seconds until the limit is lifted, 0 when none is in force.

        `margin` seconds are added to a time that an agent said, and not to a pause of our own.
        """
        if self._until is None:
            return 0.0
        later = margin if self.resets_at is not None else 0.0
        return max(0.0, (self._until - now).total_seconds() + later)

    def close(
        self,
        until: datetime,
        *,
        now: datetime,
        resets_at: datetime | None = None,
        message: str = "",
    ) -> None:
        """Let nothing pass before `until`.

        Of two limits in force the later counts; a time that an agent said (`resets_at`) counts
        before one that was guessed.
        """
        if self.remaining(now) > 0 and self._until is not None:
            said, known = resets_at is not None, self.resets_at is not None
            if (known and not said) or (known == said and self._until > until):
                return
        self._until, self.resets_at, self.message = until, resets_at, message
        self._said = resets_at or self._said

    def open(self) -> None:
        """An agent was served: there is no limit (any more), and back-off begins anew."""
        self._until, self.resets_at, self.message = None, None, ""
        self._said, self._pauses = None, 0

    def pass_by(self) -> None:
        """Another agent works, which the limit does not bind; back-off goes on where it was."""
        self._until, self.resets_at, self.message = None, None, ""

    def met(self, *, now: datetime, resets_at: datetime | None = None, message: str = "") -> bool:
        """An agent met a limit: close until it is lifted. False when there is no use in waiting.

        A limit with an unknown end, or one that is past, closes for a pause that doubles each
        time (`quota_pause`), unless a limit is in force already; after 24 hours of such pauses
        the gate stays as it is, until a success opens it.
        """
        if resets_at is not None and resets_at > now and not self._is_stale(resets_at, message):
            self.close(resets_at, now=now, resets_at=resets_at, message=message)
            return True
        if self.remaining(now) > 0:
            return True
        pause = quota_pause(self._pauses)
        if pause is None:
            return False
        self._pauses += 1
        self.close(now + timedelta(seconds=pause), now=now, message=message)
        return True

    def _is_stale(self, resets_at: datetime, message: str) -> bool:
        """`resets 3pm`, said again a minute after 3 pm, does not mean tomorrow (AUT-080)."""
        if self._said is None or not message or message != self.message:
            return False
        return abs(resets_at - self._said - _DAY) <= _HOUR
