"""An agent around another, which writes all that it does into a cassette."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from reactivex import Observable, abc, operators as ops
from reactivex.disposable import Disposable

from cuggino._version import __version__
from cuggino.agents.cassettes.cassette import Header, SessionBegan, check_new, write_line
from cuggino.agents.cassettes.masking import Masker
from cuggino.agents.cassettes.recording_session import Recorded, SessionWriter
from cuggino.agents.cassettes.text import Places, Writing
from cuggino.agents.protocol import (
    Capabilities,
    GuardedAgent,
    InteractiveOptions,
    LlmAgent,
    ResumingAgent,
    Role,
    RoutingAgent,
    SandboxedAgent,
    SpawnOptions,
    capabilities_of,
    environments_of,
    own_files_of,
)
from cuggino.domain.fallback import SetAside
from cuggino.errors import CugginoError
from cuggino.events import LlmAgentEvent, PolicyEvent
from cuggino.operators import serial

if TYPE_CHECKING:
    from cuggino.security.policy import Policy


def record_to(
    path: str | os.PathLike[str], agent: LlmAgent, *, env: Mapping[str, str] | None = None
) -> RecordingAgent:
    """The agent, recorded; what can be guarded or put in a sandbox still can.

    One that leaves the work to others is recorded as a whole: each of its sessions is one, whoever
    has worked in it.

    `env` is where secrets are looked up, besides the environments of the agent's programs and of
    each session, and what MCP servers are given; it defaults to that of this process.

    Raises:
        CassetteError: nothing can be recorded to that file, or there is something already.
    """
    kind: type[RecordingAgent]
    if isinstance(agent, RoutingAgent):
        return _Routing(agent, path, env=env)
    match isinstance(agent, GuardedAgent), isinstance(agent, SandboxedAgent):
        case True, True:
            kind = _GuardedAndSandboxed
        case True, False:
            kind = _Guarded
        case False, True:
            kind = _Sandboxed
        case _:
            kind = RecordingAgent
    return kind(agent, path, env=env)


class RecordingAgent:
    """Does what the other agent does, and writes every session as it goes; made by `record_to`.

    The file is made when the first session begins. Sessions are the same with and without a
    recording, but for the moments in which the files of the project are looked through: when a
    session begins, after each tool that may have written, and at its end. Sessions that a person
    holds in the terminal are not recorded.
    """

    def __init__(
        self,
        agent: LlmAgent,
        path: str | os.PathLike[str],
        *,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.agent = agent
        """What is recorded."""
        self.path = Path(path).absolute()
        self._masker = Masker(os.environ if env is None else env)
        for own in environments_of(agent):
            self._masker = self._masker.with_env(own)
        self._sessions = 0
        self._known: dict[str, int] = {}
        self._began: datetime | None = None
        self._last: dict[Role | None, SessionWriter] = {}
        check_new(self.path)

    @property
    def name(self) -> str:
        """That of the agent."""
        return self.agent.name

    @property
    def own_files(self) -> tuple[Path, ...]:
        """The recording, and those of the agent."""
        return (self.path, *own_files_of(self.agent))

    @property
    def can_resume(self) -> bool:
        """Whether the agent can."""
        return self.agent.can_resume

    @property
    def capabilities(self) -> Capabilities:
        """Those of the agent."""
        return capabilities_of(self.agent)

    def check(self) -> str:
        """See `LlmAgent.check`."""
        return self.agent.check()

    def interactive(self, options: InteractiveOptions) -> int:
        """Hand the terminal to the agent; nothing of that is recorded."""
        return self.agent.interactive(options)

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Run one session of the agent and record it; see `LlmAgent.spawn`.

        Each event is in the file before it is emitted, but for the parts of a message that is still
        being written. Fails with `StorageError` when the recording cannot go on; the agent is then
        ended first.
        """

        def subscribe(
            observer: abc.ObserverBase[LlmAgentEvent],
            scheduler: abc.SchedulerBase | None = None,
        ) -> abc.DisposableBase:
            lane = serial(scheduler)
            writer = self._begin(options, lane)
            session = Recorded(observer, writer)
            session.subscribe(self.agent.spawn(options), lane)
            return Disposable(session.dispose)

        return Observable(subscribe)

    def _begin(self, options: SpawnOptions, lane: abc.SchedulerBase) -> SessionWriter:
        masker = self._masker.with_env(options.env).with_servers(options.mcp_servers)
        writing = Writing(masker, Places.of(options))
        if self._began is None:
            check_new(self.path)
            header = Header(
                cuggino=__version__,
                agent=self.agent.name,
                agent_version=writing.text(_version(self.agent)),
                can_resume=self.agent.can_resume,
                capabilities=_plain(capabilities_of(self.agent)),
                recorded_at=lane.now,
            )
            write_line(self.path, header)
            self._began = lane.now
        self._sessions += 1
        number, resumed = self._sessions, options.resume_session_id
        if options.session_id is not None:
            self._known[options.session_id] = number
        write_line(
            self.path,
            SessionBegan(
                session=number,
                at=(lane.now - self._began).total_seconds(),
                role=options.role,
                turn=options.turn,
                resumes=None if resumed is None else self._known.get(resumed, 0),
                prompt=writing.text(options.prompt),
                system_prompt=(
                    None if options.system_prompt is None else writing.text(options.system_prompt)
                ),
                model=None if options.model is None else writing.text(options.model),
                guard=(
                    None
                    if options.guard is None
                    else writing.json(json.loads(options.guard.to_json()))
                ),
                held=self._held(options.role),
                mcp_servers=tuple(writing.text(name) for name in options.mcp_servers),
            ),
        )
        writer = self._last[options.role] = SessionWriter(
            self.path,
            number,
            lane=lane,
            project=options.cwd,
            writing=writing,
            session_file=options.env.get("CUGGINO_SESSION_FILE"),
            on_id=lambda name: self._known.__setitem__(name, number),
        )
        return writer

    def _held(self, role: Role | None) -> Literal["calls", "files", "none"]:
        agents = self.agent.agents_for(role) if isinstance(self.agent, RoutingAgent) else None
        held = {capabilities_of(each).guard for each in agents or (self.agent,)}
        return "none" if "none" in held else "files" if "files" in held else "calls"

    def _gave_way(self, role: Role | None, event: PolicyEvent) -> None:
        if (writer := self._last.get(role)) is not None:
            writer.write_gave_way(event)


class _Guarded(RecordingAgent):
    def check_guard(self, policy: Policy) -> None:
        """See `GuardedAgent.check_guard`."""
        assert isinstance(self.agent, GuardedAgent)
        self.agent.check_guard(policy)


class _Sandboxed(RecordingAgent):
    def sandbox_unavailable(self) -> str:
        """See `SandboxedAgent.sandbox_unavailable`."""
        assert isinstance(self.agent, SandboxedAgent)
        return self.agent.sandbox_unavailable()


class _GuardedAndSandboxed(_Guarded, _Sandboxed):
    pass


class _Routing(RecordingAgent):
    def agents_for(self, role: Role | None) -> tuple[LlmAgent, ...]:
        """See `RoutingAgent.agents_for`."""
        assert isinstance(self.agent, RoutingAgent)
        return self.agent.agents_for(role)

    def give_way(self, role: Role | None, error: Exception) -> Observable[PolicyEvent]:
        """See `RoutingAgent.give_way`."""
        assert isinstance(self.agent, RoutingAgent)
        told = self.agent.give_way(role, error)
        note: Callable[[PolicyEvent], None] = partial(self._gave_way, role)
        return told.pipe(ops.do_action(note))

    def set_aside(self, agents: Iterable[SetAside]) -> None:
        """See `ResumingAgent.set_aside`."""
        if isinstance(self.agent, ResumingAgent):
            self.agent.set_aside(agents)


def _version(agent: LlmAgent) -> str:
    try:
        return agent.check()
    except CugginoError:
        return ""


def _plain(capabilities: Capabilities) -> dict[str, object]:
    return {name: getattr(capabilities, name) for name in Capabilities.__slots__}
