"""Amounts of money as text."""

from __future__ import annotations

from typing import Protocol


def money(usd: float | None, *, estimated: bool = False, digits: int | None = None) -> str:
    """Return US dollars, such as `$0.0210` or `$1,234.50`, or "" for an unknown amount.

    An estimate, or a sum with one, is marked: `~$0.52`. By default amounts below a dollar have four
    decimal digits and others two. With two `digits`, an amount below a cent still has four.
    """
    if usd is None:
        return ""
    amount = abs(usd)
    if digits is None:
        digits = 4 if 0 < amount < 1 else 2
    elif digits == 2 and 0 < amount < 0.01:
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


def cost_of(paid: HasCost, *, digits: int | None = None) -> str:
    """Return the cost as text, as `money`."""
    return money(paid.cost_usd, estimated=paid.cost_estimated, digits=digits)
