"""Amounts of money as text."""

from __future__ import annotations

from typing import Protocol


def money(usd: float | None, *, estimated: bool = False, digits: int = 2) -> str:
    """Return US dollars, such as `$0.08` or `$1,234.50`, or "" for an unknown amount.

    An estimate, or a sum with one, is marked: `~$0.52`. An amount below a cent has four decimal
    digits. `digits` is only for the lines of Autonoe and Lopen, which have four.
    """
    if usd is None:
        return ""
    amount = abs(usd)
    if digits == 2 and 0 < amount < 0.01:
        digits = 4
    sign = "-" if usd < 0 else ""
    return f"{'~' if estimated else ''}{sign}${amount:,.{digits}f}"


class HasCost(Protocol):
    """Anything with a cost: an event, a run, a stage."""

    @property
    def cost_usd(self) -> float | None:
        """US dollars; None if unknown."""

    @property
    def cost_estimated(self) -> bool:
        """True if a part of it is an estimate."""


def cost_of(paid: HasCost, *, digits: int = 2) -> str:
    """Return the cost as text, as `money`."""
    return money(paid.cost_usd, estimated=paid.cost_estimated, digits=digits)
