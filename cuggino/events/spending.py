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
    estimated: bool = False
    """True if a part of the spent dollars is an estimate."""
    count_tokens: Literal["weighted", "plain"] = "plain"
    """How the tokens are counted (`countTokens`)."""


class CostUnknown(SupervisionEvent):
    """A session whose dollars nobody knows, while a budget in dollars limits the run.

    The run ends as if the budget were spent: nothing could hold it.
    """

    agent: str
    model: str | None = None
    """The model, if known."""
    reports: Literal["tokens", "nothing"] = "tokens"
    """`tokens`: the price of the model is unknown; `nothing`: not even tokens are known."""


class StageCost(SupervisionEvent):
    """The cost of the agents of one stage and of the run so far; emitted when it is known."""

    phase: str
    """`planning`, `implementing`, `reviewing`, `audit`."""
    cost_usd: float | None = None
    cost_estimated: bool = False
    """True if a part of the cost is an estimate."""
    usage: Usage | None = None
    duration: float | None = None
    """Seconds."""
    total_cost: float | None = None
    """US dollars of the whole run so far, including earlier processes of a resumed run."""
    total_estimated: bool = False
    """True if a part of the total cost is an estimate."""
    total_usage: Usage | None = None
