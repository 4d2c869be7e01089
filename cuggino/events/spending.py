"""The cost of stages, and the budgets of a run."""

from typing import Literal

from cuggino.events.supervision import SupervisionEvent
from cuggino.events.usage import Usage

BudgetKind = Literal["cost", "tokens", "duration"]


class BudgetWarning(SupervisionEvent):
    """A share of a budget is spent (80 % by default); emitted once per budget."""

    budget: BudgetKind
    spent: float
    """US dollars, tokens or seconds."""
    limit: float


class StageCost(SupervisionEvent):
    """The cost of the agents of one stage and of the run so far; emitted when it is known."""

    phase: str
    """`planning`, `implementing`, `reviewing`, `audit`."""
    cost_usd: float | None = None
    usage: Usage | None = None
    duration: float | None = None
    """Seconds."""
    total_cost: float | None = None
    """US dollars of the whole run so far, including earlier processes of a resumed run."""
    total_usage: Usage | None = None
