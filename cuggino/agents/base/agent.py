"""The agent protocol: what a session is started with, and what every agent offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from reactivex import Observable, throw

from cuggino.agents.base.login import LoginCheck
from cuggino.domain import AgentCooldown, QuotaPlan
from cuggino.errors import AgentFailed, GuardNotLive
from cuggino.events import LlmAgentEvent, SupervisionEvent
from cuggino.guard import Policy, Role, Sandbox
from cuggino.sandbox import Protected, RoleView, without_logins, without_repository


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnOptions:
    """One autonomous agent session."""

    prompt: str
    cwd: Path
    system_prompt: str | None = None
    """Text appended to the agent's own system prompt."""
    dangerously_skip_permissions: bool = False
    """Let the agent use its tools without asking, as no person is there to answer."""
    session_id: str | None = None
    """UUID for a new session; the session can be resumed with it."""
    resume_session_id: str | None = None
    """Session to resume; it keeps its original system prompt."""
    role: Role | None = None
    turn: int | None = None
    """Number of this session among those of its role in the run, from 1."""
    model: str | None = None
    thinking: int | None = None
    """Token budget for reasoning; None uses the agent's default."""
    max_budget_usd: float | None = None
    """Maximum cost of the session in US dollars, for agents that support a limit."""
    quota: QuotaPlan | None = field(default=None, compare=False)
    """How much of the account's usage windows the session may use; an agent that chooses among
    others applies it to each (`within_quota`)."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables added to the environment of the agent's program and its tools."""
    guard: Policy | None = None
    """Policy for tool calls; an agent without a guard fails with `GuardNotLive`."""
    sandbox: Sandbox | None = None
    """Sandbox for commands, used where both the agent and the machine support it."""
    view: RoleView | None = None
    """Limits the files that all processes of the session see and may write, where the machine
    supports it."""
    protected: Protected | None = None
    """Paths that the session may not change; the stage checks them afterwards. None: no check."""
    messages: Observable[str] | None = None
    """A person's messages to the running session, for agents that take messages. The agent passes
    each text to its program, then emits `Steered`. Without this event, a later prompt contains
    it."""
    drafts: bool = True
    """True if a message is shown while it is written. Otherwise an agent may leave out the
    `MessageDelta`s of a message, or their beginning, as long as they contain no `<`."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """Settings of the agent's program; they cannot override guard or sandbox."""
    mcp_servers: Mapping[str, object] = field(default_factory=dict)
    """MCP servers by name, in the format of the agent's program."""
    allowed_tools: tuple[str, ...] = ()
    """Rules for tools that need no permission."""
    shows: tuple[str, ...] = ()
    """Paths that the session can access although they would be hidden, as with `sandboxShow`. It
    gets a forge's login only if this names one of the login's files."""

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of the agent's program, which would have `env`.

        It has the variables of the options, and neither logins of forges nor another repository.
        """
        return without_logins({**without_repository(env), **self.env}, self.shows)


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractiveOptions:
    """A session that a person drives in the terminal."""

    cwd: Path
    system_prompt: str | None = None
    dangerously_skip_permissions: bool = False
    guard: Policy | None = None
    """Policy for tool calls; the agent still asks about calls that the policy allows."""
    view: RoleView | None = None
    """The files that the program can read and write, enforced by the system where supported."""
    shows: tuple[str, ...] = ()
    """Same as `SpawnOptions.shows`."""


GuardLevel: TypeAlias = Literal["calls", "files", "asked", "none"]
"""The levels of guarding tool calls, strongest first."""

_LEVELS: tuple[GuardLevel, ...] = ("none", "asked", "files", "calls")


def weakest_guard(levels: Iterable[GuardLevel]) -> GuardLevel:
    """Return the level that all of several agents reach."""
    return min(levels, key=_LEVELS.index)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The features an agent supports, as listed by `cuggino agents`."""

    guard: GuardLevel = "none"
    """`calls`: every tool call is checked before it runs; `files`: the system restricts what its
    commands write, but calls are not checked; `asked`: the calls that the agent asks about are
    checked before they run, all others afterwards; `none`: unguarded."""
    mcp: bool = False
    """Supports MCP servers (`SpawnOptions.mcp_servers`)."""
    resume: bool = False
    """Can resume a session by its id."""
    cost: Literal["dollars", "tokens", "none"] = "none"
    """Unit in which usage is reported."""
    sandbox: bool = False
    """Can run its commands in a system sandbox (`SpawnOptions.sandbox`)."""
    view: bool = False
    """Starts its program in the view of its role (`SpawnOptions.view`)."""
    deltas: bool = False
    """Streams text while it is written (`MessageDelta`)."""
    messages: bool = False
    """Takes messages while a session runs (`SpawnOptions.messages`)."""
    interactive: bool = False
    """Supports interactive sessions in the terminal."""
    note: str = ""
    """Anything else to know before choosing this agent, in a few words."""


class AgentLike(Protocol):
    """The least that is accepted as an agent; `adopt` adds the defaults of `LlmAgent`."""

    @property
    def name(self) -> str:
        """Name in the configuration and in messages."""

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Run one session; see `LlmAgent.spawn`."""


class LlmAgent(ABC):
    """A provider: a CLI or an SDK in, `LlmAgentEvent`s out.

    Only `name` and `spawn` are required. Optional features are declared once, in `capabilities`;
    callers check those rather than the class of an agent.
    """

    __slots__ = ()

    name: str
    """Name in the configuration and in messages."""

    @abstractmethod
    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Run one session. Cold: subscribing starts it, disposing terminates its process tree.

        Emits the agent's events in order with `SessionEnded` last, and completes when the program
        has ended. A failed session ends with an `LlmSessionError` after `SessionEnded`.
        """

    @property
    def capabilities(self) -> Capabilities:
        """Supported features, on any machine; reading them starts no program."""
        return Capabilities()

    @property
    def environments(self) -> tuple[Mapping[str, str], ...]:
        """Environments of the programs this agent runs, without `SpawnOptions.env`."""
        return ()

    @property
    def own_files(self) -> tuple[Path, ...]:
        """Files the agent itself reads or writes, such as a recording; not part of the work."""
        return ()

    def check(self) -> str:
        """Check that sessions can start, and return the agent's version.

        Raises:
            AgentNotFound: the program is missing, does not run, or is too old.
        """
        return ""

    def login_check(self, cwd: Path) -> LoginCheck | None:
        """Return how to ask whether the agent is logged in for a session in this folder.

        None if its program cannot tell. Nothing is started here.
        """
        return None

    def check_guard(self, policy: Policy) -> None:
        """Check that a session can be guarded by the policy, without starting one.

        Raises:
            AgentNotFound: the program is missing, or too old to be guarded.
            GuardNotLive: a requirement of the guard is missing or does not work.
        """
        raise GuardNotLive(f"{self.name} has no guard")

    def sandbox_unavailable(self) -> str:
        """Return why this machine cannot sandbox the agent's commands, or "" if it can."""
        return "" if self.capabilities.sandbox else f"{self.name} has no sandbox"

    def interactive(self, options: InteractiveOptions) -> int:
        """Run a session in the terminal and return the program's exit code."""
        raise AgentFailed(f"{self.name} has no interactive session", reason="bad_request")

    @property
    def is_router(self) -> bool:
        """True if the agent itself assigns sessions to agents by role."""
        return False

    def agents_for(self, role: Role | None) -> tuple[LlmAgent, ...]:
        """Return the agents that may work as the role, best first; None is for no role."""
        return (self,)

    def models_for(self, role: Role | None, model: str | None) -> tuple[str | None, ...]:
        """Return the models of `agents_for(role)` if `model` is configured; None is their own."""
        return (model,)

    def named_for(self, role: Role | None, model: str | None) -> tuple[str, str | None]:
        """Return the name and the model of the agent that the role begins with.

        `model` is that of the options; a model of None is the agent's default.
        """
        return self.name, model

    def check_roles(self, roles: Iterable[Role], *, guarded: bool) -> None:
        """Check that each role has an agent, and with `guarded` that no fallback is unguarded.

        Raises:
            AgentNotFound: all agents of a role are missing or too old.
            ConfigError: one of several agents of a role has no guard.
        """
        self.check()

    def fall_back(self, role: Role | None, error: Exception) -> Observable[SupervisionEvent]:
        """Fall back after an error that retries could not resolve.

        Emits `AgentFellBack` if another agent takes the role from now on, else fails with the
        remaining error.
        """
        return throw(error)

    def restore_cooldowns(self, cooldowns: Iterable[AgentCooldown]) -> None:
        """Restore the cooldowns of an earlier process; the agent's own observations win."""
        return


class DelegatingAgent(LlmAgent):
    """A base for wrappers: everything is delegated to `agent` unless overridden."""

    def __init__(self, agent: LlmAgent) -> None:
        self.agent = agent
        """The wrapped agent."""
        self.name = agent.name

    @property
    def capabilities(self) -> Capabilities:
        return self.agent.capabilities

    @property
    def environments(self) -> tuple[Mapping[str, str], ...]:
        return self.agent.environments

    @property
    def own_files(self) -> tuple[Path, ...]:
        return self.agent.own_files

    @property
    def is_router(self) -> bool:
        return self.agent.is_router

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        return self.agent.spawn(options)

    def check(self) -> str:
        return self.agent.check()

    def login_check(self, cwd: Path) -> LoginCheck | None:
        return self.agent.login_check(cwd)

    def check_guard(self, policy: Policy) -> None:
        self.agent.check_guard(policy)

    def sandbox_unavailable(self) -> str:
        return self.agent.sandbox_unavailable()

    def interactive(self, options: InteractiveOptions) -> int:
        return self.agent.interactive(options)

    def agents_for(self, role: Role | None) -> tuple[LlmAgent, ...]:
        return self.agent.agents_for(role)

    def models_for(self, role: Role | None, model: str | None) -> tuple[str | None, ...]:
        return self.agent.models_for(role, model)

    def named_for(self, role: Role | None, model: str | None) -> tuple[str, str | None]:
        return self.agent.named_for(role, model)

    def check_roles(self, roles: Iterable[Role], *, guarded: bool) -> None:
        self.agent.check_roles(roles, guarded=guarded)

    def fall_back(self, role: Role | None, error: Exception) -> Observable[SupervisionEvent]:
        return self.agent.fall_back(role, error)

    def restore_cooldowns(self, cooldowns: Iterable[AgentCooldown]) -> None:
        self.agent.restore_cooldowns(cooldowns)


class _Adopted(LlmAgent):
    """A foreign agent: its own members first, the defaults of `LlmAgent` for the rest."""

    _METHODS = ("check", "login_check", "check_guard", "sandbox_unavailable", "interactive")

    def __init__(self, agent: AgentLike) -> None:
        self.agent = agent
        self.name = agent.name
        for method in self._METHODS:
            if (own := getattr(agent, method, None)) is not None:
                setattr(self, method, own)

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        return self.agent.spawn(options)

    @property
    def capabilities(self) -> Capabilities:
        return getattr(self.agent, "capabilities", Capabilities())

    @property
    def environments(self) -> tuple[Mapping[str, str], ...]:
        return tuple(getattr(self.agent, "environments", ()))

    @property
    def own_files(self) -> tuple[Path, ...]:
        return tuple(getattr(self.agent, "own_files", ()))


def adopt(agent: AgentLike) -> LlmAgent:
    """Return the agent with the defaults of `LlmAgent` for everything it does not define."""
    return agent if isinstance(agent, LlmAgent) else _Adopted(agent)


def is_guarded(agent: LlmAgent, role: Role | None) -> bool:
    """Return whether every agent that may work as the role can be guarded by a policy."""
    return all(each.capabilities.guard != "none" for each in agent.agents_for(role))
