"""An agent that plays a cassette back: no program, no model, no tokens."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reactivex import Observable, abc, just, throw

from cuggino._version import __version__
from cuggino.agents.cassettes.cassette import Cassette, RecordedSession, SessionBegan, read_cassette
from cuggino.agents.cassettes.replay_matching import first_difference
from cuggino.agents.cassettes.replay_policy import PolicyCheck
from cuggino.agents.cassettes.replay_stream import Check, Playing, event_of
from cuggino.agents.cassettes.text import Places
from cuggino.agents.guard import not_live
from cuggino.agents.protocol import Capabilities, InteractiveOptions, LlmAgent, Role, SpawnOptions
from cuggino.errors import AgentFailed, ConfigError, CugginoError, ReplayDiverged
from cuggino.events import LlmAgentEvent, PolicyEvent, ToolCall
from cuggino.operators import serial
from cuggino.security.shell.shfmt import find_shfmt

if TYPE_CHECKING:
    from cuggino.security.policy import Policy


def replay_of(path: str | os.PathLike[str], *, speed: float | None = None) -> ReplayAgent:
    """The agent that plays the cassette in the file; see `ReplayAgent`.

    Raises:
        CassetteError: the file is missing, broken, or of a newer version.
    """
    cassette = read_cassette(Path(path))
    guarded = any(session.began.held != "none" for session in cassette.sessions)
    return (_Guarded if guarded else ReplayAgent)(cassette, path, speed=speed)


def with_speed(agent: LlmAgent, speed: float) -> LlmAgent:
    """The agent, which is one that replays, at this speed.

    Raises:
        ConfigError: it is another agent, or that is no speed.
    """
    if not isinstance(agent, ReplayAgent):
        raise ConfigError(
            f"the agent {agent.name} has no speed", hint="a speed is for --agent replay:FILE"
        )
    agent.speed = speed
    return agent


class ReplayAgent:
    """Plays the sessions of a cassette; made by `replay_of`.

    Each session is matched by its role and turn; of several (a session was tried again, asked for
    its marker) the next is taken. What it is told must be what was recorded: prompt and system
    prompt, but for ids, times, durations, hashes, temporary folders and the project's own folder.
    Files that the session has changed are written again, before the event behind which they were
    noticed, and commits of the agent made again. Where the recorded agent had its calls judged,
    each is judged by the policy of this run, which must say what was said then.

    `speed` is by how much faster than recorded the events come, by the scheduler's clock: 1 as
    recorded, 10 ten times as fast; 0, infinity or None, the default, at once.

    A session that was cut off by its loop is silent where it ended, until it is cut off again. The
    last one, which nothing shows to have been cut off by its loop, fails there with `AgentFailed`.
    """

    name = "replay"

    def __init__(
        self, cassette: Cassette, path: str | os.PathLike[str], *, speed: float | None = None
    ) -> None:
        self._cassette = cassette
        self.path = Path(path).absolute()
        self._left = list(cassette.sessions)
        self._last: dict[Role | None, tuple[RecordedSession, Places]] = {}
        self._diverged: CugginoError | None = None
        self.speed = speed

    @property
    def speed(self) -> float:
        """See the class; 0 is at once."""
        return self._speed

    @speed.setter
    def speed(self, speed: float | None) -> None:
        if speed is not None and (math.isnan(speed) or speed < 0):
            raise ConfigError(f"{speed:g} is no speed", hint="1 is as recorded, 0 at once")
        self._speed = 0.0 if speed is None or math.isinf(speed) else speed

    @property
    def own_files(self) -> tuple[Path, ...]:
        """The recording."""
        return (self.path,)

    @property
    def unplayed(self) -> tuple[str, ...]:
        """The recorded sessions that have not been played yet."""
        return tuple(session.began.title for session in self._left)

    @property
    def can_resume(self) -> bool:
        """Whether the recorded agent could."""
        return self._cassette.header.can_resume

    @property
    def capabilities(self) -> Capabilities:
        """Those of the recorded agent, as far as they show in its events."""
        told: Mapping[str, Any] = self._cassette.header.capabilities
        return Capabilities(
            guard=told.get("guard", "none"),
            mcp=told.get("mcp") is True,
            resume=self.can_resume,
            cost=told.get("cost", "none"),
            deltas=told.get("deltas") is True,
            note=f"plays a recording of {self._cassette.header.agent}",
        )

    def check(self) -> str:
        """What is played: the agent, its version, when it was recorded."""
        header = self._cassette.header
        agent = f"{header.agent} {header.agent_version}".strip()
        return f"{agent}, recorded {header.recorded_at:%Y-%m-%d}"

    def sandbox_unavailable(self) -> str:
        """Nothing is in the way: no command runs at all."""
        return ""

    def interactive(self, options: InteractiveOptions) -> int:
        """There is nothing to talk to."""
        raise AgentFailed("a recording cannot be talked to", reason="bad_request")

    def agents_for(self, role: Role | None) -> tuple[LlmAgent, ...]:
        """Itself, in the place of all that were recorded."""
        return (self,)

    def give_way(self, role: Role | None, error: Exception) -> Observable[PolicyEvent]:
        """See `RoutingAgent.give_way`: another agent takes over where one did in the recording."""
        session, places = self._last.get(role, (None, None))
        if session is None or places is None or session.gave_way is None:
            return throw(error)
        event = event_of(session.gave_way.event, places)
        return just(event) if isinstance(event, PolicyEvent) else throw(error)

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Play the recorded session; see `LlmAgent.spawn` and the class.

        Fails with `ReplayDiverged` before any event when it is not the recorded session, and before
        the call of a tool of which the policy now says something else; every session after that
        fails with the same. Fails with `CassetteError` when files cannot be written as recorded.
        """

        def subscribe(
            observer: abc.ObserverBase[LlmAgentEvent],
            scheduler: abc.SchedulerBase | None = None,
        ) -> abc.DisposableBase:
            lane = serial(scheduler)
            places = Places.of(options)
            session = self._next(options, places)
            playing = Playing(
                session,
                observer,
                lane,
                project=options.cwd,
                cassette=self.path,
                places=places,
                speed=self._speed,
                began=self._cassette.header.recorded_at + timedelta(seconds=session.began.at),
                is_last=session is self._cassette.sessions[-1],
                check=self._policy_check(session, options, places),
            )
            playing.start()
            return playing

        return Observable(subscribe)

    def _next(self, options: SpawnOptions, places: Places) -> RecordedSession:
        if self._diverged is not None:
            raise self._diverged
        wanted = (options.role, options.turn)
        session = next((s for s in self._left if (s.began.role, s.began.turn) == wanted), None)
        if session is None:
            asked = _title(options)
            left = f"; left are {', '.join(self.unplayed)}" if self._left else ""
            raise self._divergence(f"the recording has no (other) session of {asked}{left}")
        self._left.remove(session)
        self._last[options.role] = (session, places)
        self._check_told(session.began, options, places)
        return session

    def _check_told(self, began: SessionBegan, options: SpawnOptions, places: Places) -> None:
        goes_on = options.resume_session_id is not None
        if goes_on != (began.resumes is not None):
            then, now = ("was a new one", "goes on with another")
            if not goes_on:
                then, now = "went on with another", "is a new one"
            raise self._divergence(f"{began.title} {then} in the recording, and {now} now")
        for what, recorded, told in (
            ("system prompt", began.system_prompt, options.system_prompt),
            ("prompt", began.prompt, options.prompt),
        ):
            difference = first_difference(recorded or "", told or "", places)
            if difference is not None:
                raise self._divergence(
                    f"the {what} of {began.title} is another in line {difference.line}: "
                    f"recorded was {difference.expected}, now it is {difference.found}"
                )

    def _policy_check(
        self, session: RecordedSession, options: SpawnOptions, places: Places
    ) -> Check:
        if session.began.held != "calls":
            return lambda _call: None
        same = self._cassette.header.cuggino == __version__
        judge = PolicyCheck(session, options, places, same_version=same)

        def check(call: ToolCall) -> CugginoError | None:
            complaint = judge.complaint(call)
            if complaint is None:
                return None
            return self._divergence(f"in {session.began.title}, {complaint}")

        return check

    def _divergence(self, message: str) -> ReplayDiverged:
        diverged = ReplayDiverged(message)
        self._diverged = diverged
        return diverged


class _Guarded(ReplayAgent):
    def check_guard(self, policy: Policy) -> None:
        """See `GuardedAgent.check_guard`: calls are judged in this process."""
        try:
            find_shfmt()
        except ConfigError as error:
            raise not_live(error.message) from error


def _title(options: SpawnOptions) -> str:
    turn = "" if options.turn is None else f" {options.turn}"
    return f"{options.role or 'no role'}{turn}"
