"""`RoutedAgent`: an agent for each role, with fallbacks."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Literal, cast

from reactivex import Observable, abc, operators as ops, throw
from reactivex.disposable import Disposable

from cuggino.agents.base.agent import (
    Capabilities,
    InteractiveOptions,
    LlmAgent,
    SpawnOptions,
    weakest_guard,
)
from cuggino.domain import (
    AgentCooldown,
    Roster,
    Spending,
    cooldown_end,
    fallback_reason,
    when_to_fall_back,
)
from cuggino.errors import AgentFailed, AgentNotFound, ConfigError, GuardNotLive, LlmSessionError
from cuggino.events import (
    AgentFellBack,
    Event,
    LlmAgentEvent,
    RateLimited,
    SessionEnded,
    SupervisionEvent,
    UsageUpdate,
)
from cuggino.guard import Role
from cuggino.operators import Flow, ask, emit, flow, forward
from cuggino.operators.scheduler import serial
from cuggino.operators.supervision import within_quota

_Cost = Literal["dollars", "tokens", "none"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """An agent that may work. One object in several roles is one account, with one usage limit."""

    agent: LlmAgent
    name: str
    """Name in events and messages."""
    model: str | None = None
    """Model to use regardless of the session's options."""
    is_default: bool = True
    """True if the model of the session's options applies to it."""

    def model_of(self, options: SpawnOptions) -> str | None:
        """Return the model for a session with these options; None uses the agent's default."""
        return self.model_for(options.model)

    def model_for(self, model: str | None) -> str | None:
        """Return the model for sessions whose options name this one."""
        return self.model or (model if self.is_default else None)

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Run a session, or fail with `GuardNotLive` if the agent cannot enforce the policy."""
        if options.guard is not None and self.agent.capabilities.guard == "none":
            return throw(
                GuardNotLive(
                    f"{self.name} has no guard to enforce the policy of its role",
                    hint='use another agent for it, or turn the guard off with "guard": "off"',
                )
            )
        return self.agent.spawn(options)


def first_there(chain: Sequence[Candidate]) -> str:
    """Return the version of the first candidate that is installed.

    Raises:
        AgentNotFound: none is; the error is that of the first.
    """
    first: AgentNotFound | None = None
    for candidate in chain:
        try:
            return candidate.agent.check()
        except AgentNotFound as error:
            first = first or error
    assert first is not None
    raise first


def common_capabilities(candidates: Sequence[Candidate]) -> Capabilities:
    """Return what all candidates support; any that can resume sessions or take messages does."""
    each = [candidate.agent.capabilities for candidate in candidates]
    return Capabilities(
        guard=weakest_guard(one.guard for one in each),
        mcp=all(one.mcp for one in each),
        resume=any(one.resume for one in each),
        cost=_least_told(one.cost for one in each),
        sandbox=all(one.sandbox for one in each),
        deltas=all(one.deltas for one in each),
        messages=any(one.messages for one in each),
        interactive=each[0].interactive,
    )


def _least_told(costs: Iterable[_Cost]) -> _Cost:
    told = set(costs)
    return "none" if "none" in told else "tokens" if "tokens" in told else "dollars"


_REMEMBERED = 100
"""Number of resumable sessions to remember."""


@dataclass(slots=True)
class _Session:
    """A session as its owner sees it: which candidate runs it now, and under which id."""

    candidate: Candidate
    options: SpawnOptions
    """The original options, with the whole prompt."""
    session_id: str | None
    is_over: bool = False
    """True if it has completed."""


class RoutedAgent(LlmAgent):
    """Runs each session by its `SpawnOptions.role`, and falls back to the next candidate.

    Candidates are in order of preference; the `default` ones are for roles without their own in
    `roles`. A session goes to the first one that is not on cooldown. If that fails permanently
    (`when_to_fall_back`), its events are followed by `AgentFellBack` and a new session of the next
    candidate with the same prompt. The failed candidate is used again when its usage limit is
    lifted, or after a cooldown (`Roster`). If none is left, the session ends with the usage limit
    that is lifted first, if there is one, else with the last error.

    Session ids belong to the agent that issued them: a session is resumed by the agent that has it,
    under its own id there. If that agent is on cooldown or cannot resume sessions, the next one
    restarts the session with its first prompt. An unknown id is a bad request.

    Each agent keeps its account within `SpawnOptions.quota`: one whose window is used up to the
    reserve starts no session, and the next candidate takes over until the window is reset.

    No agent gets a policy that it cannot enforce: that session fails with `GuardNotLive`.
    """

    def __init__(
        self,
        default: Sequence[Candidate],
        roles: Mapping[Role, Sequence[Candidate]] | None = None,
    ) -> None:
        if not default or not all((roles or {}).values()):
            raise ValueError("each role needs a candidate")
        self._default = tuple(default)
        self.name = self._default[0].agent.name
        """Name of the first default agent."""
        self._roles = {role: tuple(chain) for role, chain in (roles or {}).items()}
        self._roster: Roster[Candidate] = Roster()
        self._accounts = _account_names(self.candidates())
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._last: dict[Role | None, Candidate] = {}

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities common to all candidates; `resume` is true if any candidate can resume."""
        return common_capabilities(self.candidates())

    @property
    def environments(self) -> tuple[Mapping[str, str], ...]:
        agents = {id(each.agent): each.agent for each in self.candidates()}
        return tuple(env for agent in agents.values() for env in agent.environments)

    @property
    def own_files(self) -> tuple[Path, ...]:
        return tuple(file for each in self.candidates() for file in each.agent.own_files)

    @property
    def is_router(self) -> bool:
        """True: configured roles and fallbacks are already applied."""
        return True

    def candidates(self, roles: Iterable[Role] | None = None) -> tuple[Candidate, ...]:
        """Return the candidates of these roles, each once; all of them without roles."""
        chains = (
            [self._default, *self._roles.values()]
            if roles is None
            else [self.candidates_for(role) for role in roles]
        )
        return tuple(dict.fromkeys(candidate for chain in chains for candidate in chain))

    def candidates_for(self, role: Role | None) -> tuple[Candidate, ...]:
        """Return the candidates of the role in order of preference."""
        return self._roles.get(role, self._default) if role is not None else self._default

    def agents_for(self, role: Role | None) -> tuple[LlmAgent, ...]:
        return tuple(candidate.agent for candidate in self.candidates_for(role))

    def models_for(self, role: Role | None, model: str | None) -> tuple[str | None, ...]:
        chain = self.candidates_for(role)
        return tuple(each.model_for(model) for each in chain)

    def named_for(self, role: Role | None, model: str | None) -> tuple[str, str | None]:
        first = self.candidates_for(role)[0]
        return first.name, first.model_for(model)

    def check(self) -> str:
        """Return the version of the first default agent that is installed; see `LlmAgent.check`."""
        return first_there(self._default)

    def check_roles(self, roles: Iterable[Role], *, guarded: bool) -> None:
        """Check that each role has an agent, and with `guarded` that no fallback is unguarded.

        A single unguarded agent of a role is allowed: it runs without a guard. A fallback must not
        lose the guard silently.

        Raises:
            AgentNotFound: all agents of a role are missing; the error is that of the first.
            ConfigError: one of several agents of a role has no guard.
        """
        wanted = tuple(roles)
        for role in wanted if guarded else ():
            chain = self.candidates_for(role)
            loose = [each.name for each in chain if each.agent.capabilities.guard == "none"]
            if loose and len(chain) > 1:
                raise ConfigError(
                    f"{loose[0]}, one of the agents for {role}, has no guard",
                    hint='remove it from "agents" and "fallback", or turn the guard off with '
                    '"guard": "off"',
                )
        for chain in dict.fromkeys(self.candidates_for(role) for role in wanted):
            first_there(chain)

    def interactive(self, options: InteractiveOptions) -> int:
        """Run an interactive session of the first default agent."""
        return self._default[0].agent.interactive(options)

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Run one session with as many agents as needed; see `LlmAgent.spawn`.

        Emits the events of all agents in order, with `AgentFellBack` before each but the first. The
        usage of each is in its own `SessionEnded`.
        """
        # `AgentFellBack` is among them, as policies around an agent add events too.
        return cast("Observable[LlmAgentEvent]", flow(lambda: self._story(options)))

    def fall_back(self, role: Role | None, error: Exception) -> Observable[SupervisionEvent]:
        def story() -> Flow[None]:
            lane = yield from _lane()
            candidate = self._last.get(role)
            if candidate is None or when_to_fall_back(error) != "after_retries":
                raise error
            yield from emit(self._next(role, candidate, error, lane.now)[1])

        return flow(story)

    def restore_cooldowns(self, cooldowns: Iterable[AgentCooldown]) -> None:
        """See `LlmAgent.restore_cooldowns`; a name that several candidates share is ignored."""
        for one in cooldowns:
            chain = self._roles.get(cast("Role", one.role), self._default)
            named = [candidate for candidate in chain if candidate.name == one.agent]
            if len(named) == 1:
                self._roster.restore(named[0], one.cooldown)

    def _story(self, options: SpawnOptions) -> Flow[None]:
        lane = yield from _lane()
        session, given = self._begun(options, lane.now)
        spent = Spending()

        def seen(event: Event) -> Event:
            nonlocal spent
            if given.model and isinstance(event, UsageUpdate | SessionEnded) and not event.model:
                event = event.model_copy(update={"model": given.model})
            spent = spent.add(event)
            return self._seen(event, session, lane.now)

        while True:
            candidate = self._last[options.role] = session.candidate
            try:
                yield from forward(self._spawned(candidate, given).pipe(ops.map(seen)))
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

    def _spawned(self, candidate: Candidate, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Run a session of the candidate, within what is planned for its account."""
        events = candidate.spawn(options)
        if options.quota is None:
            return events
        account = self._accounts[id(candidate.agent)]
        is_new = options.resume_session_id is None
        return events.pipe(within_quota(options.quota, agent=account, begins=is_new))

    def _begun(self, options: SpawnOptions, now: datetime) -> tuple[_Session, SpawnOptions]:
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
        found.options = replace(found.options, messages=options.messages)
        is_asked = owner in chain and self._roster.chosen((owner, *chain), now) is owner
        if is_asked and owner.agent.capabilities.resume and found.session_id is not None:
            resumed = replace(options, resume_session_id=found.session_id)
            return found, replace(resumed, model=owner.model_of(options))
        found.candidate = self._roster.chosen(chain, now)
        return found, self._anew(found, options.max_budget_usd)

    def _anew(self, session: _Session, budget: float | None) -> SpawnOptions:
        """Return the options with which the session restarts, under a new id."""
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
        """Return the next candidate; raise the remaining error if there is none."""
        chain = self.candidates_for(role)
        if len(chain) == 1:
            raise error
        names = {each: each.name for each in chain}
        others = [each for each in chain if each is not candidate]
        other = self._roster.available(others, now)
        if other is None and when_to_fall_back(error) == "after_retries":
            # One that may recover at any time is preferred over those on cooldown.
            raise self._roster.final_error(names, candidate, error, now)
        cooldown = self._roster.failed(candidate, error, now)
        if other is None:
            raise self._roster.final_error(names, candidate, error, now)
        return other, AgentFellBack(
            role=role or "",
            from_agent=candidate.name,
            to_agent=other.name,
            reason=fallback_reason(error),
            message=cooldown.message,
            until=cooldown.until,
        )

    def _seen(self, event: Event, session: _Session, now: datetime) -> Event:
        match event:
            case SessionEnded():
                if event.session_id is not None:
                    session.session_id = event.session_id
                    self._remember(event.session_id, session)
                if event.outcome == "completed":
                    session.is_over = True
                    self._roster.succeeded(session.candidate)
            case RateLimited(status="rejected", overage=False):
                return self._limited(event, session, now)
            case _:
                pass
        return event

    def _limited(self, event: RateLimited, session: _Session, now: datetime) -> RateLimited:
        """Return the limit that applies to the session: another agent may be available earlier."""
        chain = self.candidates_for(session.options.role)
        others = [each for each in chain if each is not session.candidate]
        limit = self._roster.limit(others, now)
        if limit is None or limit.until >= cooldown_end(event.resets_at, now):
            return event
        return event.model_copy(update={"resets_at": limit.resets_at})

    def _remember(self, session_id: str | None, session: _Session) -> None:
        if session_id is None:
            return
        self._sessions[session_id] = session
        self._sessions.move_to_end(session_id)
        while len(self._sessions) > _REMEMBERED:
            self._sessions.popitem(last=False)


def _account_names(candidates: Iterable[Candidate]) -> dict[int, str]:
    """Return the name of each agent's account: one agent has one, with whichever model.

    Several agents of the same name are numbered, as they may be programs with other logins.
    """
    shortest: dict[int, str] = {}
    for one in candidates:
        before = shortest.get(id(one.agent), one.name)
        shortest[id(one.agent)] = min(before, one.name, key=len)
    names: dict[int, str] = {}
    for agent, name in shortest.items():
        number = 1 + sum(other == name for other in list(shortest.values())[: len(names)])
        names[agent] = name if number == 1 else f"{name} {number}"
    return names


def _left(budget: float | None, spent: Spending) -> float | None:
    return None if budget is None else budget - (spent.cost_usd or 0.0)


def _lane() -> Flow[abc.SchedulerBase]:
    def subscribe(
        observer: abc.ObserverBase[abc.SchedulerBase], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        observer.on_next(serial(scheduler))
        observer.on_completed()
        return Disposable()

    lane = yield from ask(Observable(subscribe))
    assert lane is not None
    return lane
