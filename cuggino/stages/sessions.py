"""The sessions of one stage: the first one and its successors."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from reactivex import Observable, defer, just, operators as ops

from cuggino.agents.base import LlmAgent, SpawnOptions
from cuggino.domain import Pricing, QuotaPlan, most_cautious
from cuggino.errors import AgentFailed, RoleViolation
from cuggino.events import AgentFellBack, AgentMessage, Event, SessionEnded, SupervisionEvent
from cuggino.operators import Flow, ask, catch_tag, flow, forward
from cuggino.operators.mapcat import mapcat
from cuggino.operators.supervision import QuotaWaits, within_quota
from cuggino.stages.handover import handover
from cuggino.stages.metering import Meter
from cuggino.stages.verification import verified

MOST_VIOLATIONS = 3
"""Sessions in a row that may change what their role may not write."""

_LONGEST_REASON = 300


class Resumes(NamedTuple):
    """An earlier session, and the prompt with which it is resumed."""

    session_id: str
    prompt: str


class Sessions:
    """The sessions of a stage, spawned one at a time; remembers how to resume the last.

    `read` is applied to each session: it reads the markers and ends it. `budget` returns the US
    dollars that are left when a session is spawned; `pricing` estimates those that it spends.
    `quota` is the plan for usage windows. `choose` returns the outcome of several terminal markers.
    `left` emits the work that an agent has left, for the one that replaces it. The first session
    resumes an earlier one with `resumes`, unless the agent has forgotten that.
    """

    def __init__(
        self,
        agent: LlmAgent,
        options: SpawnOptions,
        *,
        read: Callable[[Observable[Event]], Observable[Event]],
        budget: Callable[[], float | None] = lambda: None,
        pricing: Pricing | None = None,
        quota: QuotaPlan | None = None,
        choose: Callable[[Sequence[Event]], Event] = most_cautious,
        left: Callable[[], Observable[str]] = lambda: just(""),
        resumes: Resumes | None = None,
    ) -> None:
        self._choose = choose
        self._resumes = resumes
        self._left = left
        self._words: list[AgentMessage] = []
        """The parts of the agent's last message."""
        self._agent = agent
        self._options = options
        self._read = read
        self._budget = budget
        self._pricing = pricing or Pricing()
        self._quota = quota
        self._id = options.session_id if resumes is None else resumes.session_id
        self._begun = False
        self._violations = 0
        self.waits = QuotaWaits()
        """The waits for usage limits of the whole stage."""
        self.endings: list[Event] = []
        """The terminal markers of the running session, while its end is awaited."""

    @property
    def outcome(self) -> Event | None:
        """The outcome by the terminal markers; None without any."""
        return self._choose(self.endings) if self.endings else None

    @property
    def can_resume(self) -> bool:
        return self._agent.capabilities.resume

    @property
    def account(self) -> Hashable | None:
        """The agents of these sessions if roles differ; a usage limit binds only them."""
        agents = self._agent.agents_for(self._options.role)
        return tuple(map(id, agents)) if agents != (self._agent,) else None

    @property
    def can_be_resumed(self) -> bool:
        return self.can_resume and self._id is not None and self._begun

    @property
    def session_id(self) -> str | None:
        """The session that can be resumed, also by another process; None without one."""
        return self._id if self.can_be_resumed else None

    @property
    def words(self) -> str:
        """The agent's last message."""
        return "".join(part.text for part in self._words)

    def first(self) -> Observable[Event]:
        if self._resumes is None or not self.can_resume:
            return self._spawn(self._options)
        resumed = self.resumed(self._resumes.prompt)
        return resumed.pipe(catch_tag(AgentFailed, self._refused))

    def fresh(self, _error: Exception | None = None) -> Observable[Event]:
        """Start a new session with the same prompt."""
        return self._fresh(self._options.prompt)

    def replaced(self, _error: Exception | None = None) -> Observable[Event]:
        """Start a new session that also gets what the last one found: its words and its work."""
        outcome = self.outcome
        if outcome is not None:
            return just(outcome)
        words = self.words

        def story() -> Flow[None]:
            changes = (yield from ask(self._left())) or ""
            found = handover(words, changes)
            yield from forward(self._fresh(f"{self._options.prompt}\n\n{found}"))

        return flow(story)

    def _fresh(self, prompt: str) -> Observable[Event]:
        outcome = self.outcome
        if outcome is not None:
            return just(outcome)
        self._begun = False
        self._words = []
        self._id = str(uuid.uuid4()) if self._options.session_id is not None else None
        options = replace(self._options, prompt=prompt, session_id=self._id, resume_session_id=None)
        return self._spawn(options)

    def again(self, error: Exception) -> Observable[Event]:
        """Resume the session after this failure, or start a fresh one where that is impossible.

        A session that was cut off after its terminal marker is complete.
        """
        outcome = self.outcome
        if outcome is not None:
            return just(outcome)
        if not self.can_be_resumed:
            return self.fresh()
        reason = " ".join(str(error).split())[:_LONGEST_REASON]
        resumed = self.resumed(
            f"Your session was cut off ({reason}). See how far you had come, then go on with your "
            "task from there and end it as you were told."
        )
        return resumed.pipe(catch_tag(AgentFailed, self._refused))

    def resumed(self, prompt: str) -> Observable[Event]:
        self._begun = False
        options = replace(self._options, prompt=prompt, session_id=None, resume_session_id=self._id)
        return self._spawn(options)

    def fall_back(self, error: Exception) -> Observable[SupervisionEvent]:
        """Emit `AgentFellBack` if another agent takes over after this failure, else fail."""
        return self._agent.fall_back(self._options.role, error)

    def _refused(self, error: AgentFailed) -> Observable[Event]:
        """Start a fresh session when the agent has forgotten the old one."""
        if error.reason == "bad_request" and not self._begun:
            return self.fresh()
        raise error

    def _spawn(self, options: SpawnOptions) -> Observable[Event]:
        def start() -> Observable[Event]:
            self.endings = []
            limits = [x for x in (options.max_budget_usd, self._budget()) if x is not None]
            budget = min(limits, default=None)
            bounded = replace(options, max_budget_usd=budget, quota=self._quota)
            spawned = self._agent.spawn(bounded)
            if self._quota is not None and not self._agent.is_router:
                is_new = options.resume_session_id is None
                spawned = spawned.pipe(
                    within_quota(self._quota, agent=self._agent.name, begins=is_new)
                )
            events = cast("Observable[Event]", spawned)
            meter = Meter(
                self._pricing,
                self._agent,
                options,
                is_limited=self._budget() is not None,
            )
            session = events.pipe(ops.take_while(self._continues), mapcat(meter.priced), self._read)
            if options.protected is None:
                return session
            protected = options.protected
            if own := self._agent.own_files:
                protected = replace(protected, exempt=(*protected.exempt, *own))
            compared = session.pipe(verified(protected))
            return compared.pipe(catch_tag(RoleViolation, self._violated))

        return defer(lambda _: start())

    def _violated(self, error: RoleViolation) -> Observable[Event]:
        """Replace the agent; its verdict is void. The third violation in a row is the error."""
        self.endings = []
        self._violations += 1
        if self._violations >= MOST_VIOLATIONS:
            raise error
        return self.fresh()

    def _continues(self, event: Event) -> bool:
        """Remember how to resume the session; return False where another agent would take over."""
        match event:
            case SessionEnded(session_id=session_id):
                self._id = session_id or self._id
            case AgentFellBack() if self.endings:
                return False  # after its terminal marker
            case AgentMessage(parent_tool_use_id=None):
                self._begun = True
                last = self._words[-1].message_id if self._words else None
                if event.message_id is None or event.message_id != last:
                    self._words = []
                self._words.append(event)
            case _:
                self._begun = True
        return True
