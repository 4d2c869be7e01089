"""What an agent is: a thing that can be spawned with a prompt and then emits events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, get_args, runtime_checkable

from reactivex import Observable

from cuggino.domain.fallback import SetAside
from cuggino.events import LlmAgentEvent, PolicyEvent
from cuggino.security.policy import Policy
from cuggino.security.sandbox import Sandbox

Role = Literal[
    "planning",
    "implementing",
    "reviewing",
    "audit",
    "initializer",
    "coding",
    "sync",
    "verify",
    "plan",
    "build",
    "judge",
]
"""What an agent is spawned for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnOptions:
    """One autonomous agent session (CUG-080)."""

    prompt: str
    cwd: Path
    system_prompt: str | None = None
    """Added to the agent's own system prompt."""
    dangerously_skip_permissions: bool = False
    """Let the agent use its tools without asking; nobody is there to answer."""
    session_id: str | None = None
    """A UUID for a new session, with which it can be resumed."""
    resume_session_id: str | None = None
    """The session to go on with; it keeps the system prompt it was started with."""
    role: Role | None = None
    turn: int | None = None
    """Which session of its role this is in its run, from 1."""
    model: str | None = None
    thinking: int | None = None
    """Tokens that the model may think for; None leaves it to the agent."""
    max_budget_usd: float | None = None
    """US dollars that the session may spend, for agents that can hold that themselves."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to the environment of the agent's program, and so of its tools."""
    guard: Policy | None = None
    """What its tools may do; an agent that cannot hold that fails with `GuardNotLive`."""
    sandbox: Sandbox | None = None
    """What the system is to hold its commands to, where the agent and the machine can do that."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """Settings of the agent's program; those of guard and sandbox stay as they are."""
    mcp_servers: Mapping[str, object] = field(default_factory=dict)
    """Servers of tools by name, as the agent's program takes them."""
    allowed_tools: tuple[str, ...] = ()
    """Rules for tools that may be used without asking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractiveOptions:
    """A session that a person holds in the terminal."""

    cwd: Path
    system_prompt: str | None = None
    dangerously_skip_permissions: bool = False
    guard: Policy | None = None
    """What the agent's tools may do; what that allows is still asked about as usual."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an agent can do for the loop that runs it, as `cuggino agents` shows it."""

    guard: Literal["calls", "files", "none"] = "none"
    """`calls`: each call of a tool is judged before it runs; `files`: the system keeps its commands
    from writing what they may not, and calls are not judged; `none`: nothing holds it."""
    mcp: bool = False
    """Whether it takes servers of tools (`SpawnOptions.mcp_servers`)."""
    resume: bool = False
    """Whether a session can be gone on with."""
    cost: Literal["dollars", "tokens", "none"] = "none"
    """What it tells of what a session took."""
    sandbox: bool = False
    """Whether it can run its commands in a sandbox of the system (`SpawnOptions.sandbox`)."""
    deltas: bool = False
    """Whether text comes while it is being written (`MessageDelta`)."""
    interactive: bool = False
    """Whether a person can hold a session with it in the terminal."""
    note: str = ""
    """What else whoever chooses it should know, in a few words."""


@runtime_checkable
class LlmAgent(Protocol):
    """A provider: a CLI or an SDK in, `LlmAgentEvent`s out."""

    @property
    def name(self) -> str:
        """How the agent is called in configuration and messages."""

    @property
    def can_resume(self) -> bool:
        """Whether a session can be gone on with by its id."""

    def check(self) -> str:
        """Look whether a session could be started at all; gives the agent's version.

        Raises:
            AgentNotFound: the program is missing, does not run, or is too old.
        """

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Run one session. Cold: subscribing starts the program, disposing ends its whole tree.

        Emits the agent's events in order, `SessionEnded` last, and completes when the program has
        ended (CUG-025). A session that failed ends with an `LlmSessionError` after `SessionEnded`.
        """

    def interactive(self, options: InteractiveOptions) -> int:
        """Hand the terminal to the agent; gives its exit code."""


@runtime_checkable
class GuardedAgent(LlmAgent, Protocol):
    """An agent that can hold its sessions to a policy (`SpawnOptions.guard`)."""

    def check_guard(self, policy: Policy) -> None:
        """Look whether a session could be held to the policy, by trying it out without a session.

        Raises:
            AgentNotFound: the program is missing, or too old for that.
            GuardNotLive: something that it needs is missing, or does not work.
        """


@runtime_checkable
class SandboxedAgent(LlmAgent, Protocol):
    """An agent that can run its commands in a sandbox of the system (`SpawnOptions.sandbox`)."""

    def sandbox_unavailable(self) -> str:
        """Why it could not on this machine, in a few words; empty when it can."""


@runtime_checkable
class DescribedAgent(LlmAgent, Protocol):
    """An agent that tells what it can do."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can do, on this machine or another; no program is started to find out."""


@runtime_checkable
class RoutingAgent(LlmAgent, Protocol):
    """An agent that leaves the work to others, to each role its own."""

    def agents_for(self, role: Role | None) -> tuple[LlmAgent, ...]:
        """All that may work as the role; None is for what has no role."""

    def give_way(self, role: Role | None, error: Exception) -> Observable[PolicyEvent]:
        """What retries could not mend with the agent that worked as the role last.

        Emits `AgentFellBack` when from now on another one does; else it fails, with the error that
        is left.
        """


@runtime_checkable
class ResumingAgent(LlmAgent, Protocol):
    """An agent that a run goes on with where an earlier process has left it."""

    def set_aside(self, agents: Iterable[SetAside]) -> None:
        """Do not ask these of its agents until their time; what it has seen itself counts more."""


@runtime_checkable
class InstalledAgent(LlmAgent, Protocol):
    """An agent that is a program of this machine."""

    @property
    def environment(self) -> Mapping[str, str]:
        """What the program finds in its environment, besides `SpawnOptions.env`."""


def is_guarded(agent: LlmAgent, role: Role) -> bool:
    """Whether every agent that may work as the role can be held to a policy."""
    if isinstance(agent, RoutingAgent):
        return all(isinstance(each, GuardedAgent) for each in agent.agents_for(role))
    return isinstance(agent, GuardedAgent)


@runtime_checkable
class FiledAgent(LlmAgent, Protocol):
    """An agent that reads or writes files of its own while it works, such as a recording."""

    @property
    def own_files(self) -> tuple[Path, ...]:
        """They may be within the project, and are no part of the work."""


def own_files_of(agent: LlmAgent) -> tuple[Path, ...]:
    """The files of the agent itself, which are no part of the work."""
    return agent.own_files if isinstance(agent, FiledAgent) else ()


def environments_of(agent: LlmAgent) -> Iterator[Mapping[str, str]]:
    """The environments of all programs that may work for the agent."""
    if isinstance(agent, RoutingAgent):
        chains = [agent.agents_for(role) for role in (None, *get_args(Role))]
        agents = {id(each): each for chain in chains for each in chain if each is not agent}
        for each in agents.values():
            yield from environments_of(each)
    elif isinstance(agent, InstalledAgent):
        yield agent.environment


def capabilities_of(agent: LlmAgent) -> Capabilities:
    """What the agent can do: as it tells, otherwise as far as its methods show."""
    if isinstance(agent, DescribedAgent):
        return agent.capabilities
    return Capabilities(
        guard="calls" if isinstance(agent, GuardedAgent) else "none",
        resume=agent.can_resume,
        sandbox=isinstance(agent, SandboxedAgent),
    )
