"""What the policies around an agent say: retries, waits, budgets, liveness, progress."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from cuggino.events.agent import Usage
from cuggino.events.base import Event

BudgetKind = Literal["cost", "tokens", "duration"]


class PolicyEvent(Event, category=True):
    """Category: a policy acted, or is about to."""


class AgentRetry(PolicyEvent):
    """An agent failed in a way that may pass; it is started again after a pause."""

    reason: str
    """An `AgentFailure`, such as `overloaded`."""
    message: str
    attempt: int
    """The retry that comes, from 1."""
    max_retries: int
    retry_in: float
    """Seconds until then."""


class QuotaWaiting(PolicyEvent):
    """A usage limit was met; the same stage goes on in `remaining` seconds.

    Emitted when the wait begins and then every minute.
    """

    remaining: float
    resets_at: datetime | None = None
    """When the limit is lifted, as far as the agent said."""
    message: str = ""
    """The agent's words about the limit."""


class QuotaLifted(PolicyEvent):
    """The wait for a usage limit is over; the stage goes on."""

    waited: float
    """Seconds."""


class BudgetWarning(PolicyEvent):
    """A share of a budget is spent (80 % by default); said once for each budget."""

    budget: BudgetKind
    spent: float
    """US dollars, tokens or seconds."""
    limit: float


class StageCost(PolicyEvent):
    """What the agents of one stage took, and all of the run so far. Emitted when it is known."""

    phase: str
    """`planning`, `implementing`, `reviewing`, `audit`."""
    cost_usd: float | None = None
    usage: Usage | None = None
    duration: float | None = None
    """Seconds."""
    total_cost: float | None = None
    """US dollars of the whole run so far, that of earlier processes of a resumed run included."""
    total_usage: Usage | None = None


class AgentNudged(PolicyEvent):
    """An agent was silent, or took too long; it is ended, and its session gone on with."""

    idle: float | None = None
    """Seconds without an event; None when the time of the whole stage ran out."""
    tool: str | None = None
    """The tool that was running, if one was."""


class AgentReplaced(PolicyEvent):
    """An agent was silent again, or its time ran out; a fresh one begins the stage anew."""

    idle: float | None = None
    """Seconds without an event; None when the time of the whole stage ran out."""
    tool: str | None = None


class AgentFellBack(PolicyEvent):
    """An agent cannot go on with its role; another one begins the session anew, with its prompt.

    What the first one has done in the project stays.
    """

    role: str
    """What both work as, such as `reviewing`; empty when nobody said."""
    from_agent: str
    to_agent: str
    reason: str
    """`quota`, `not_found`, or an `AgentFailure` such as `auth`."""
    message: str
    """The words of the agent that cannot go on."""
    until: datetime | None = None
    """When the first one is asked again."""


class NoProgress(PolicyEvent):
    """Agents work and nothing changes, or the same states come back."""

    kind: Literal["unchanged", "oscillating"]
    agents: int
    """How many implementing agents in a row."""
    action: Literal["replan", "stop"]


class RunResumed(PolicyEvent):
    """The first event of a run that goes on: what it had come to before."""

    run_id: str
    stages: int
    """Finished stages that are not run again."""
    rounds: int = 0
    tasks: int = 0
    agents: int = 0
    commits: tuple[tuple[str, str], ...] = ()
    """Abbreviated hash and subject of each commit."""
    cost_usd: float | None = None
    usage: Usage | None = None
    duration: float = 0.0
    """Seconds that the earlier processes worked on it."""
