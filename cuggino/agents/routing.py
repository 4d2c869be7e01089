"""`RoutedAgent`: to each role its own agent, and others for when that cannot go on."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import cast

from reactivex import Observable, abc, operators as ops
from reactivex.disposable import Disposable

from cuggino.agents.candidates import Candidate, common_capabilities, first_there
from cuggino.agents.protocol import (
    Capabilities,
    InteractiveOptions,
    LlmAgent,
    Role,
    SpawnOptions,
)
from cuggino.domain.fallback import Roster, SetAside, reason_of, until_of, when_to_fall_back
from cuggino.domain.spending import Spending
from cuggino.errors import AgentFailed, LlmSessionError
from cuggino.events import (
    AgentFellBack,
    Event,
    LlmAgentEvent,
    PolicyEvent,
    RateLimited,
    SessionEnded,
)
from cuggino.operators import Flow, ask, emit, flow, forward, serial

_REMEMBERED = 100
"""Sessions that can be gone on with; of older ones nobody asks any more."""


@dataclass(slots=True)
class _Session:
    """A session as whoever ordered it knows it: who has it at present, and under which id."""

    candidate: Candidate
    options: SpawnOptions
    """As it was ordered: with its whole prompt."""
    session_id: str | None
    is_over: bool = False
    """Whether it has ended well."""


class RoutedAgent:
    """Spawns each session by its `SpawnOptions.role`, and falls back to the next candidate.

    Candidates are in the order in which they are asked; the `default` ones are for the roles that
    `roles` has none for. A session goes to the first that is not known to be out of work. When it
    fails for good (`when_to_fall_back`), `AgentFellBack` is emitted behind its own events, then
    those of a new session of the next one, with the same prompt. The one that failed is asked
    again when its usage limit is lifted, or after a pause (`Roster`); until then sessions go
    straight to the next one. When none is left, the session ends with the limit that is lifted
    first, if any has met one, else with the last one's own error.

    Ids of sessions belong to the agent that gave them: a session is gone on with by the agent that
    has it, under its own id there. Where that cannot be, since the agent is out of work or cannot
    go on with sessions, the next one begins it anew with its first prompt. An id that is of no
    session here is a bad request.

    No agent gets a policy that it cannot hold: that session fails with `GuardNotLive`.
    """

    def __init__(
        self,
        default: Sequence[Candidate],
        roles: Mapping[Role, Sequence[Candidate]] | None = None,
    ) -> None:
        if not default or not all((roles or {}).values()):
            raise ValueError("each role needs a candidate")
        self._default = tuple(default)
        self._roles = {role: tuple(chain) for role, chain in (roles or {}).items()}
        self._roster: Roster[Candidate] = Roster()
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._last: dict[Role | None, Candidate] = {}

    @property
    def name(self) -> str:
        """That of the first default agent."""
        return self._default[0].agent.name

    @property
    def can_resume(self) -> bool:
        """Whether any of them can; for the others a session begins anew."""
        return any(each.agent.can_resume for each in self.candidates())

    @property
    def capabilities(self) -> Capabilities:
        """What each of them can do."""
        return common_capabilities(self.candidates())

    def candidates(self, roles: Iterable[Role] | None = None) -> tuple[Candidate, ...]:
        """Those of these roles, each once; without roles, all."""
        chains = (
            [self._default, *self._roles.values()]
            if roles is None
            else [self.candidates_for(role) for role in roles]
        )
        return tuple(dict.fromkeys(candidate for chain in chains for candidate in chain))

    def candidates_for(self, role: Role | None) -> tuple[Candidate, ...]:
        """Those of the role, in the order in which they are asked."""
        return self._roles.get(role, self._default) if role is not None else self._default

    def agents_for(self, role: Role | None) -> tuple[LlmAgent, ...]:
        """See `RoutingAgent.agents_for`."""
        return tuple(candidate.agent for candidate in self.candidates_for(role))

    def check(self) -> str:
        """The version of the first default agent that is there; see `LlmAgent.check`."""
        return first_there(self._default)

    def check_roles(self, roles: Iterable[Role]) -> None:
        """Look whether each role has an agent that is there.

        Raises:
            AgentNotFound: one has none; it is the error of its first.
        """
        for chain in dict.fromkeys(self.candidates_for(role) for role in roles):
            first_there(chain)

    def interactive(self, options: InteractiveOptions) -> int:
        """Hand the terminal to the first default agent."""
        return self._default[0].agent.interactive(options)

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Run one session, by as many agents as it takes; see `LlmAgent.spawn`.

        Emits the events of all of them in order, and `AgentFellBack` before each but the first.
        What each took is told by its own `SessionEnded`.
        """
        # An event of a policy is among them, as those of the policies around an agent are.
        return cast("Observable[LlmAgentEvent]", flow(lambda: self._story(options)))

    def give_way(self, role: Role | None, error: Exception) -> Observable[PolicyEvent]:
        """See `RoutingAgent.give_way`."""

        def story() -> Flow[None]:
            lane = yield from _lane()
            candidate = self._last.get(role)
            if candidate is None or when_to_fall_back(error) != "after_retries":
                raise error
            yield from emit(self._next(role, candidate, error, lane.now)[1])

        return flow(story)

    def set_aside(self, agents: Iterable[SetAside]) -> None:
        """See `ResumingAgent.set_aside`; of those that share a name nobody knows which it was."""
        for one in agents:
            chain = self._roles.get(cast("Role", one.role), self._default)
            named = [candidate for candidate in chain if candidate.name == one.agent]
            if len(named) == 1:
                self._roster.restore(named[0], one.hold)

    def _story(self, options: SpawnOptions) -> Flow[None]:
        lane = yield from _lane()
        session, given = self._begun(options, lane.now)
        spent = Spending()

        def seen(event: Event) -> Event:
            nonlocal spent
            spent = spent.add(event)
            return self._seen(event, session, lane.now)

        while True:
            candidate = self._last[options.role] = session.candidate
            try:
                yield from forward(candidate.spawn(given).pipe(ops.map(seen)))
                return
            except LlmSessionError as error:
                if session.is_over or when_to_fall_back(error) != "at_once":
                    raise
                other, told = self._next(options.role, candidate, error, lane.now)
                left = _left(options.max_budget_usd, spent)
                if left is not None and left <= 0:
                    raise
            session.candidate = other
            yield from emit(told)
            given = self._anew(session, left)

    def _begun(self, options: SpawnOptions, now: datetime) -> tuple[_Session, SpawnOptions]:
        """The session that is ordered, and what its agent is given."""
        chain = self.candidates_for(options.role)
        wanted = options.resume_session_id
        if wanted is None:
            chosen = self._roster.chosen(chain, now)
            session = _Session(chosen, options, options.session_id)
            self._remember(options.session_id, session)
            return session, replace(options, model=chosen.model_of(options))
        found = self._sessions.get(wanted)
        if found is None:
            raise AgentFailed(f"no agent has the session {wanted}", reason="bad_request")
        owner = found.candidate
        found.is_over = False
        is_asked = owner in chain and self._roster.chosen((owner, *chain), now) is owner
        if is_asked and owner.agent.can_resume and found.session_id is not None:
            resumed = replace(options, resume_session_id=found.session_id)
            return found, replace(resumed, model=owner.model_of(options))
        found.candidate = self._roster.chosen(chain, now)
        return found, self._anew(found, options.max_budget_usd)

    def _anew(self, session: _Session, budget: float | None) -> SpawnOptions:
        """What the session's agent begins it anew with; from now on it is known by a new id too."""
        options = session.options
        session.session_id = str(uuid.uuid4()) if options.session_id is not None else None
        self._remember(session.session_id, session)
        return replace(
            options,
            session_id=session.session_id,
            model=session.candidate.model_of(options),
            max_budget_usd=budget,
        )

    def _next(
        self, role: Role | None, candidate: Candidate, error: Exception, now: datetime
    ) -> tuple[Candidate, AgentFellBack]:
        """Who takes over from the candidate; raises what is left when nobody does."""
        chain = self.candidates_for(role)
        if len(chain) == 1:
            raise error
        names = {each: each.name for each in chain}
        others = [each for each in chain if each is not candidate]
        other = self._roster.free(others, now)
        if other is None and when_to_fall_back(error) == "after_retries":
            # The one that may be back at any time is asked before those that are out of work.
            raise self._roster.left_over(names, candidate, error, now)
        hold = self._roster.hold(candidate, error, now)
        if other is None:
            raise self._roster.left_over(names, candidate, error, now)
        return other, AgentFellBack(
            role=role or "",
            from_agent=candidate.name,
            to_agent=other.name,
            reason=reason_of(error),
            message=hold.message,
            until=hold.until,
        )

    def _seen(self, event: Event, session: _Session, now: datetime) -> Event:
        match event:
            case SessionEnded():
                if event.session_id is not None:
                    session.session_id = event.session_id
                    self._remember(event.session_id, session)
                if event.outcome == "completed":
                    session.is_over = True
                    self._roster.served(session.candidate)
            case RateLimited(status="rejected"):
                return self._limited(event, session, now)
            case _:
                pass
        return event

    def _limited(self, event: RateLimited, session: _Session, now: datetime) -> RateLimited:
        """The limit as it binds the session: another agent may be back before its own."""
        chain = self.candidates_for(session.options.role)
        others = [each for each in chain if each is not session.candidate]
        limit = self._roster.limit(others, now)
        if limit is None or limit.until >= until_of(event.resets_at, now):
            return event
        return event.model_copy(update={"resets_at": limit.resets_at})

    def _remember(self, session_id: str | None, session: _Session) -> None:
        if session_id is None:
            return
        self._sessions[session_id] = session
        self._sessions.move_to_end(session_id)
        while len(self._sessions) > _REMEMBERED:
            self._sessions.popitem(last=False)


def _left(budget: float | None, spent: Spending) -> float | None:
    return None if budget is None else budget - (spent.cost_usd or 0.0)


def _lane() -> Flow[abc.SchedulerBase]:
    """The scheduler of the subscription, whose time counts."""

    def subscribe(
        observer: abc.ObserverBase[abc.SchedulerBase], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        observer.on_next(serial(scheduler))
        observer.on_completed()
        return Disposable()

    lane = yield from ask(Observable(subscribe))
    assert lane is not None
    return lane
