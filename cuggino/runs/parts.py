"""The parts of roles, agents and models in a run, as a fold over its journal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from cuggino import events as ev
from cuggino.domain import NamedAgent, Spending, Substitutes, begins_session
from cuggino.storage.journal import Entry, RunPart

_ROLES: Mapping[str, str] = MappingProxyType(
    {
        "ImplementingStart": "implementing",
        "PlanningStart": "planning",
        "ReviewingStart": "reviewing",
    }
)
"""The roles whose sessions these events announce."""
_JUDGE = "judge"
"""The role of the plan/build loop's phase `verify`."""


_Key: TypeAlias = tuple[str, str, str | None]
"""The role, the agent and the model."""


@dataclass(slots=True)
class _Sums:
    spent: Spending = field(default_factory=Spending)
    duration: float = 0.0


class PartsFold:
    """The parts of the run of the entries added so far."""

    def __init__(self) -> None:
        self._started: ev.RunStarted | None = None
        self._role = ""
        self._model: str | None = None
        """The model that the start of the session names."""
        self._substitutes = Substitutes()
        self._key: _Key | None = None
        """The part of the current session; None before the first."""
        self._reported: str | None = None
        """The model that the agent of the current session reports."""
        self._session = _Sums()
        self._sums: dict[_Key, _Sums] = {}
        """The sessions before the current one."""

    def add(self, entry: Entry) -> None:
        event = entry.event
        match event:
            case ev.RunStarted():
                self._started = event
            case ev.RunContinued():
                self._close()
            case ev.AgentFellBack(role=role):
                self._substitutes.add(event, self._usual(role or self._role), entry.at)
            case ev.DeliverSessionStarted(instruction=role, model=model):
                self._role, self._model = role, model
            case ev.PlanBuildPhaseStarted(phase=phase):
                self._role, self._model = (_JUDGE if phase == "verify" else phase), None
            case _ if event.tag in _ROLES:
                self._role, self._model = _ROLES[event.tag], None
            case _:
                pass
        if self._role and (self._key is None or begins_session(event)):
            self._close()
            agent = self._substitutes.of(self._usual(self._role), entry.at)
            self._key = (self._role, *agent)
        if self._key is not None:
            self._count(event)

    def _count(self, event: ev.Event) -> None:
        session = self._session
        session.spent = session.spent.add(event)
        match event:
            case ev.SessionEnded(model=model, duration=duration):
                self._reported = model or self._reported
                session.duration += duration or 0.0
            case ev.UsageUpdate(model=model):  # a sub-agent may have another one
                self._reported = self._reported or model
            case _:
                pass

    def _close(self) -> None:
        """Add the current session to its part."""
        self._sums = dict(self._parts())
        self._session, self._reported = _Sums(), None

    def _parts(self) -> Iterator[tuple[_Key, _Sums]]:
        """Yield the parts, with the current session."""
        current = None
        if self._key is not None:
            role, agent, model = self._key
            current = role, agent, model or self._reported
        sums = self._sums if current is None else {current: _Sums(), **self._sums}
        for key in dict.fromkeys((*self._sums, *sums)):
            one, more = sums[key], self._session
            if key == current:
                one = _Sums(one.spent.plus(more.spent), one.duration + more.duration)
            yield key, one

    def _usual(self, role: str) -> NamedAgent:
        """Return the agent that is configured for the role."""
        started = self._started
        if started is None:
            return NamedAgent("")
        options = started.options
        usual = options.get("verify_model") if role == _JUDGE else None
        usual = usual or options.get("model")
        name, model = started.agents.get(
            role, (started.agent, usual if isinstance(usual, str) else None)
        )
        return NamedAgent(name, (self._model if role == self._role else None) or model)

    def result(self) -> tuple[RunPart, ...]:
        """Return the parts in the order in which they began."""
        return tuple(
            RunPart(
                role=role,
                agent=agent,
                model=model,
                sessions=sums.spent.sessions,
                cost_usd=sums.spent.cost_usd,
                cost_estimated=sums.spent.cost_estimated,
                duration=sums.duration,
            )
            for (role, agent, model), sums in self._parts()
        )
