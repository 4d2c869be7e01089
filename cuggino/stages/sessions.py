"""The sessions of one stage: the first, and those that follow when it was cut off."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import cast

from reactivex import Observable, defer, just, operators as ops, throw

from cuggino.agents.protocol import LlmAgent, RoutingAgent, SpawnOptions
from cuggino.errors import AgentFailed
from cuggino.events import AgentFellBack, Event, PolicyEvent, SessionEnded

_LONGEST_REASON = 300


class Sessions:
    """Spawns the sessions of a stage, one at a time, and remembers how to go on with the last.

    `read` is applied to each session: it reads the markers and ends it. `budget` gives the US
    dollars that are left at the moment of a spawn.
    """

    def __init__(
        self,
        agent: LlmAgent,
        options: SpawnOptions,
        *,
        read: Callable[[Observable[Event]], Observable[Event]],
        budget: Callable[[], float | None] = lambda: None,
    ) -> None:
        self._agent = agent
        self._options = options
        self._read = read
        self._budget = budget
        self._id = options.session_id
        self._begun = False
        self.outcome: Event | None = None
        """What the running session has said as its last word, while its end is waited for."""

    @property
    def can_resume(self) -> bool:
        """Whether the agent can go on with a session at all."""
        return self._agent.can_resume

    @property
    def account(self) -> Hashable | None:
        """Who may work in them, when not all agents are the same; a usage limit is theirs alone."""
        if not isinstance(self._agent, RoutingAgent):
            return None
        return tuple(id(agent) for agent in self._agent.agents_for(self._options.role))

    @property
    def can_be_resumed(self) -> bool:
        """Whether there is a session that can be gone on with."""
        return self._agent.can_resume and self._id is not None and self._begun

    def first(self) -> Observable[Event]:
        """The session as it was ordered."""
        return self._spawn(self._options)

    def fresh(self, _error: Exception | None = None) -> Observable[Event]:
        """A new session with the same prompt, which knows nothing of the one before."""
        if self.outcome is not None:
            return just(self.outcome)
        self._begun = False
        self._id = str(uuid.uuid4()) if self._options.session_id is not None else None
        return self._spawn(replace(self._options, session_id=self._id, resume_session_id=None))

    def again(self, error: Exception) -> Observable[Event]:
        """Go on with the session after this failure; a fresh one where that cannot be done.

        One that was cut off when it had said its last word has nothing left to do.
        """
        if self.outcome is not None:
            return just(self.outcome)
        if not self.can_be_resumed:
            return self.fresh()
        reason = " ".join(str(error).split())[:_LONGEST_REASON]
        resumed = self.resumed(
            f"Your session was cut off ({reason}). See how far you had come, then go on with your "
            "task from there and end it as you were told."
        )
        return resumed.pipe(ops.catch(self._refused))

    def resumed(self, prompt: str) -> Observable[Event]:
        """The same session, asked this."""
        self._begun = False
        options = replace(self._options, prompt=prompt, session_id=None, resume_session_id=self._id)
        return self._spawn(options)

    def give_way(self, error: Exception) -> Observable[PolicyEvent]:
        """`AgentFellBack` when another agent is to begin anew after this failure, else an error."""
        if isinstance(self._agent, RoutingAgent):
            return self._agent.give_way(self._options.role, error)
        return throw(error)

    def _refused(self, error: Exception, _source: Observable[Event]) -> Observable[Event]:
        """A session that the agent does not know any more cannot be gone on with."""
        if isinstance(error, AgentFailed) and error.reason == "bad_request" and not self._begun:
            return self.fresh()
        raise error

    def _spawn(self, options: SpawnOptions) -> Observable[Event]:
        def start(_scheduler: object) -> Observable[Event]:
            self.outcome = None
            limits = [x for x in (options.max_budget_usd, self._budget()) if x is not None]
            bounded = replace(options, max_budget_usd=min(limits, default=None))
            events = cast("Observable[Event]", self._agent.spawn(bounded))
            return events.pipe(
                # Behind the last word of one agent another one has nothing to do.
                ops.take_while(lambda e: self.outcome is None or not isinstance(e, AgentFellBack)),
                ops.do_action(self._seen),
                self._read,
            )

        return defer(start)

    def _seen(self, event: Event) -> None:
        if isinstance(event, SessionEnded):
            self._id = event.session_id or self._id
        else:
            self._begun = True
