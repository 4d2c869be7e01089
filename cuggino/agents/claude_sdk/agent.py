"""Claude Code, driven through the Claude Agent SDK for Python (CUG-080 to CUG-085)."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from reactivex import Observable, defer

from cuggino.agents.claude import ClaudeAgent, sandbox as claude_sandbox
from cuggino.agents.claude.files import SessionFiles, write_files
from cuggino.agents.claude_sdk.guard import SdkGate, gate_settings
from cuggino.agents.claude_sdk.link import TOOLS, Order
from cuggino.agents.claude_sdk.stream import Program, sdk_session
from cuggino.agents.guard import Guard
from cuggino.agents.program import check_version
from cuggino.agents.protocol import Capabilities, SpawnOptions
from cuggino.errors import AgentNotFound, ConfigError
from cuggino.events import LlmAgentEvent
from cuggino.operators import acquire_release
from cuggino.security import hook
from cuggino.security.policy import Policy

if TYPE_CHECKING:
    from claude_agent_sdk import SdkMcpTool

MINIMUM_PROGRAM = (2, 1, 329)
"""The oldest version of the program that was tried with the SDK."""

SDK = "claude-agent-sdk"
MINIMUM_SDK = (0, 2, 187)

_INSTALL = 'install it with `pip install "cuggino[sdk]"`'

_ENVIRONMENT = {
    "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
    # A background task would hold the program for up to ten minutes after its answer.
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    # The SDK closes the program's input when it hears that no more turn is owed.
    "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1",
}


class ClaudeSdkAgent(ClaudeAgent):
    """The Claude Code CLI, by the Claude Agent SDK for Python: the extra `cuggino[sdk]`.

    It does all that `ClaudeAgent` does, and two things more. Calls of tools are judged within this
    process, without a program for each of them; and `tools` of this process can be called by the
    model, as `mcp__tools__NAME`, beside those of `SpawnOptions.mcp_servers`, where a server of
    `create_sdk_mcp_server` may stand too:

        from claude_agent_sdk import tool

        @tool("price", "The price of an article", {"article": str})
        async def price(given):
            return {"content": [{"type": "text", "text": str(prices[given["article"]])}]}

        agent = ClaudeSdkAgent(tools=[price])

    A session that may not skip permissions needs `allowed_tools=("mcp__tools",)` for them. They run
    on the event loop of their session, on a thread of its own, so they must be ready for several
    sessions at once; one that blocks its thread holds up its session, and its disposal.

    `path` is the program, looked up on PATH when it is a bare name; any other path is that of the
    present working directory. Without one it is the `claude` on PATH, or else the one that the SDK
    brings. `env` replaces the whole environment that the program gets, which is otherwise that of
    this process.
    """

    name = "claude-sdk"

    def __init__(
        self,
        *,
        path: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        tools: Sequence[SdkMcpTool[Any]] = (),
    ) -> None:
        super().__init__(path=path if path is not None else _program(env), env=env)
        self._tools = tuple(tools)

    @property
    def capabilities(self) -> Capabilities:
        """See `DescribedAgent.capabilities`."""
        return replace(
            super().capabilities, note="calls are judged, and tools can run, in this process"
        )

    def check(self) -> str:
        """The version of the installed program; it is asked once."""
        _check_sdk()
        version = super().check()
        check_version(
            version,
            name="claude",
            least=MINIMUM_PROGRAM,
            hint="update it with `claude update` or through npm",
        )
        return version

    def check_guard(self, policy: Policy) -> None:
        """See `GuardedAgent.check_guard`."""
        guard = self._make_guard(policy, self.environment)
        SdkGate(guard=guard, manner="allow", tell=lambda _line: None).try_out()

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Run one session; see `LlmAgent.spawn` and `ClaudeAgent.spawn`.

        The prompt reaches the model as it is, whatever it begins with.

        A session with a `guard` (see `claude_sdk.guard`) ends with `GuardNotLive` before its first
        word unless the guard answers rightly, the program says that what is not answered is not
        run, and it has asked before that word; and whenever a tool was used without a verdict.
        Each call that the guard denies gives one `GuardDenied`.
        """

        def start(files: SessionFiles) -> Observable[LlmAgentEvent]:
            self.check()
            own = {**_ENVIRONMENT, "CLAUDE_AGENT_SDK_VERSION": _check_sdk()}
            env = {**self.environment, **own, **options.env}
            if options.thinking is not None:
                env["MAX_THINKING_TOKENS"] = str(options.thinking)
            if files.ignores is not None:
                env = claude_sandbox.with_git_ignores(env, files.ignores)
            return self._session(options, files, env)

        def prepare() -> SessionFiles:
            servers = self._servers(options.mcp_servers)
            return write_files(options, self.environment, servers=servers)

        return acquire_release(
            prepare,
            lambda files: defer(lambda _scheduler: start(files)),
            lambda files: files.remove(),
        )

    def arguments(
        self,
        options: SpawnOptions,
        system_prompt: Path | None,
        guard: Guard | None = None,
        *,
        servers: Path | None = None,
    ) -> list[str]:
        """The command line of a session; `servers` is the file in which its MCP servers are."""
        words = ["--input-format", "stream-json"]
        order = options
        if guard is not None:
            settings = gate_settings(guard, options.settings, manner=_manner(options))
            order = replace(order, settings=settings, dangerously_skip_permissions=False)
            # Hook events tell what the hooks of others make of a call.
            words.append("--include-hook-events")
            if options.dangerously_skip_permissions:
                words += ["--permission-mode", "default"]
        return [*super().arguments(order, system_prompt, servers=servers), *words]

    def _session(
        self, options: SpawnOptions, files: SessionFiles, env: dict[str, str]
    ) -> Observable[LlmAgentEvent]:
        guard: Guard | None = None
        if options.guard is not None:
            guard = self._make_guard(options.guard, env)
            env = dict(guard.env)
        servers = {name: s for name, s in options.mcp_servers.items() if _is_mine(s)}
        order = claude_sandbox.with_sandbox(options, env)
        argv = self.arguments(order, files.system_prompt, guard, servers=files.servers)
        return sdk_session(
            Program(argv=argv, cwd=options.cwd, env=env),
            Order(prompt=options.prompt, env=env, tools=self._tools, servers=servers),
            guard=guard,
            manner=_manner(options),
        )

    def _servers(self, given: Mapping[str, object]) -> dict[str, object]:
        """The servers as the program takes them: what runs in this process it knows by name."""
        servers = {
            name: {key: value for key, value in server.items() if key != "instance"}
            if _is_mine(server)
            else server
            for name, server in given.items()
        }
        if not self._tools:
            return servers
        if TOOLS in servers:
            raise ConfigError(
                f'a server of tools cannot be named "{TOOLS}": the agent\'s own are',
                hint="give the server another name",
            )
        # Without `alwaysLoad` the model would have to search for them first.
        return {**servers, TOOLS: {"type": "sdk", "name": TOOLS, "alwaysLoad": True}}


def _is_mine(server: object) -> TypeGuard[Mapping[str, object]]:
    """Whether the server runs in this process, as `create_sdk_mcp_server` makes them."""
    return isinstance(server, Mapping) and server.get("type") == "sdk"


def _manner(options: SpawnOptions) -> hook.Manner:
    return "allow" if options.dangerously_skip_permissions else "leave"


def _program(env: Mapping[str, str] | None) -> str:
    """The program on PATH; where there is none, that of the SDK, which some of its builds bring."""
    path = (os.environ if env is None else env).get("PATH")
    if shutil.which("claude", path=path) is None:
        found = importlib.util.find_spec("claude_agent_sdk")
        if found is not None and found.origin is not None:
            program = Path(found.origin).parent / "_bundled" / "claude"
            if os.access(program, os.X_OK):
                return str(program)
    return "claude"


def _check_sdk() -> str:
    """The version of the SDK.

    Raises:
        AgentNotFound: it is not installed, or too old.
    """
    try:
        version = importlib.metadata.version(SDK)
    except importlib.metadata.PackageNotFoundError:
        raise AgentNotFound("the Claude Agent SDK is not installed", hint=_INSTALL) from None
    check_version(version, name=SDK, least=MINIMUM_SDK, hint=_INSTALL)
    return version
