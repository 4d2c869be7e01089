"""Usage limits that attempts on several machines share, by the agents that they bind."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from pydantic import AwareDatetime, BaseModel, ConfigDict

from cuggino.agents import LlmAgent
from cuggino.events import QuotaUsed
from cuggino.operators.supervision import QuotaGate
from cuggino.placement.needs import CODING_ROLES

ACCOUNT = "CUGGINO_ACCOUNT"
"""The variable that names the account of a worker's agents, where workers have different ones."""


class Limit(BaseModel):
    """A usage limit of an account."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    account: str
    agents: str
    """The names of the agents that it binds."""
    until: AwareDatetime
    resets_at: AwareDatetime | None = None
    """When it is lifted, if the agent reported it."""
    message: str = ""
    planned: bool = False
    """True if it is the configuration's (`quotaReserve`, `overage`)."""


class Window(BaseModel):
    """The used share of a usage window of an account."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    account: str
    agent: str
    window: str
    used: float
    resets_at: AwareDatetime | None = None


def windows_known(gate: QuotaGate, now: datetime) -> tuple[Window, ...]:
    """Return the known usage windows, to share with other users of the account."""
    account = os.environ.get(ACCOUNT, "")
    return tuple(
        Window(
            account=account,
            agent=one.agent,
            window=one.window,
            used=one.used,
            resets_at=one.resets_at,
        )
        for one in gate.windows.at(now)
    )


def add_windows(gate: QuotaGate, windows: Iterable[Window]) -> None:
    """Add what others with this account know of its usage windows."""
    gate.windows.merge(
        QuotaUsed(window=one.window, used=one.used, resets_at=one.resets_at, agent=one.agent)
        for one in windows
        if one.account == os.environ.get(ACCOUNT, "")
    )


def limits_met(gate: QuotaGate, agent: LlmAgent, now: datetime) -> tuple[Limit, ...]:
    """Return the usage limits in force, to share with other users of the account."""
    found = {}
    for label, one in _gates(gate, agent):
        if (seconds := one.remaining(now)) > 0:
            found[label] = Limit(
                account=os.environ.get(ACCOUNT, ""),
                agents=label,
                until=(now + timedelta(seconds=seconds)).replace(microsecond=0),
                resets_at=one.resets_at,
                message=one.message,
                planned=one.is_planned,
            )
    return tuple(found.values())


def close_gates(gate: QuotaGate, agent: LlmAgent, limits: Iterable[Limit], now: datetime) -> None:
    """Apply limits that others have met, before this attempt meets them."""
    gates = dict(_gates(gate, agent))
    for limit in limits:
        its = gates.get(limit.agents)
        if its is not None and limit.account == os.environ.get(ACCOUNT, ""):
            its.close(
                limit.until,
                now=now,
                resets_at=limit.resets_at,
                message=limit.message,
                planned=limit.planned,
            )


def _gates(gate: QuotaGate, agent: LlmAgent) -> Iterator[tuple[str, QuotaGate]]:
    """Yield the gate of each account with the names of the agents that it binds."""
    for role in CODING_ROLES:
        agents = agent.agents_for(role)
        account = tuple(map(id, agents)) if agents != (agent,) else None
        yield " ".join(one.name for one in agents), gate.of(account)
