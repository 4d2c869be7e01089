"""Amounts of money as text."""

from __future__ import annotations

from typing import Any

from cuggino import events as ev
from cuggino.domain import cost_of, money
from tests.vectors import each


@each(
    "usd, options, text",
    [
        (None, {}, ""),
        (None, {"estimated": True}, ""),
        (0, {}, "$0.00"),
        (0.0042, {}, "$0.0042"),
        (0.5, {}, "$0.50"),
        (1, {}, "$1.00"),
        (1234.5, {}, "$1,234.50"),
        (-2, {}, "-$2.00"),
        (0.52, {"estimated": True}, "~$0.52"),
        (0, {"digits": 4}, "$0.0000"),
        (1.25, {"digits": 4}, "$1.2500"),
    ],
)
def test_money(usd: float | None, options: dict[str, Any], text: str) -> None:
    """Amounts below a cent have more digits, estimates a mark, and unknown amounts no text."""
    assert text == money(usd, **options)


def test_cost_of_an_event() -> None:
    """Anything with a cost is shown with its mark."""
    ended = ev.SessionEnded(outcome="completed", cost_usd=0.5, cost_estimated=True)
    assert "~$0.50" == cost_of(ended)
    assert "$0.50" == cost_of(ended.model_copy(update={"cost_estimated": False}))
