"""Claude Code, driven through the Claude Agent SDK for Python (CUG-080 to CUG-085)."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeGuard

from reactivex import Observable

from cuggino.agents.base.agent import SpawnOptions
from cuggino.agents.base.guard import Guard
from cuggino.agents.base.program import check_package
from cuggino.agents.base.stream import Program
from cuggino.agents.claude import ClaudeAgent, sandbox as claude_sandbox
from cuggino.agents.claude.agent import servers_file, system_prompt_file
from cuggino.agents.claude_sdk.guard import SdkGate, gate_settings
from cuggino.agents.claude_sdk.link import TOOLS, Order
from cuggino.agents.claude_sdk.stream import sdk_session
from cuggino.errors import ConfigError
from cuggino.events import LlmAgentEvent
from cuggino.guard import Policy, hook

if TYPE_CHECKING:
    from claude_agent_sdk import SdkMcpTool

MINIMUM_SDK = (0, 2, 187)


class ClaudeSdkAgent(ClaudeAgent):
    """The Claude Code CLI, through the Claude Agent SDK for Python: the extra `cuggino[sdk]`.

    It supports everything that `ClaudeAgent` does, and two more features. Tool calls are checked
    within this process, without starting a program for each. And the model can call `tools` of this
    process, as `mcp__tools__NAME`, next to those of `SpawnOptions.mcp_servers`, which may include
    servers made by `create_sdk_mcp_server`:

        from claude_agent_sdk import tool

        @tool("price", "The price of an article", {"article": str})
        async def price(given):
            return {"content": [{"type": "text", "text": str(prices[given["article"]])}]}

        agent = ClaudeSdkAgent(tools=[price])

    A session that may not skip permissions needs `allowed_tools=("mcp__tools",)` for them. Tools
    run on the event loop of their session, on its own thread, so they must support concurrent
    sessions; one that blocks the thread delays its session, and its disposal.

    The prompt reaches the model verbatim, even if it begins with a slash.

    A session with a `guard` (see `claude_sdk.guard`) ends with `GuardNotLive` before its first
    message unless the guard answers correctly, the program reports that unanswered calls do not
    run, and it asked before that message; and whenever a tool was used without a verdict. Each
    denied call emits one `GuardDenied`.

    Without a `path` the program is the `claude` on PATH, or else the one bundled with the SDK.
    """

    name = "claude-sdk"
    minimum_version = (2, 1, 329)
    variables = MappingProxyType(
        {
            "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
            # A background task would keep the program running for up to ten minutes.
            "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
            # The SDK closes the program's input when it learns that no more turn is owed.
            "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1",
        }
    )

    def __init__(
        self,
        *,
        path: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        tools: Sequence[SdkMcpTool[Any]] = (),
    ) -> None:
        super().__init__(path=path if path is not None else _program(env), env=env)
        self._tools = tuple(tools)

    capabilities = replace(
        ClaudeAgent.capabilities,
        note="tool calls are checked, and tools can run, in this process",
    )

    def check(self) -> str:
        """Return the version of the installed program, which is asked once."""
        _check_sdk()
        return super().check()

    def check_guard(self, policy: Policy) -> None:
        guard = self._make_guard(policy, self.environment)
        SdkGate(guard=guard, manner="allow", tell=lambda _line: None).try_out()

    def _start(self, options: SpawnOptions, stack: ExitStack) -> Observable[LlmAgentEvent]:
        servers = servers_file(self._servers(options.mcp_servers), stack)
        env = self._session_env(options, stack) | {"CLAUDE_AGENT_SDK_VERSION": _check_sdk()}
        guard: Guard | None = None
        if options.guard is not None:
            guard = self._make_guard(options.guard, env)
            env = dict(guard.env)
        order = claude_sandbox.with_sandbox(options, env)
        system_prompt = system_prompt_file(options, stack)
        argv = self.arguments(order, system_prompt, guard, servers=servers)
        mine = {name: s for name, s in options.mcp_servers.items() if _is_mine(s)}
        return sdk_session(
            Program(
                argv=argv,
                cwd=options.cwd,
                env=env,
                enclosure=self.enclosure(options, env, stack),
            ),
            Order(
                prompt=options.prompt,
                env=env,
                tools=self._tools,
                servers=mine,
                messages=options.messages,
            ),
            guard=guard,
            manner=_manner(options),
        )

    def arguments(
        self,
        options: SpawnOptions,
        system_prompt: Path | None,
        guard: Guard | None = None,
        *,
        servers: Path | None = None,
    ) -> list[str]:
        """Return the command line of a session; `servers` is the file with its MCP servers."""
        words = ["--input-format", "stream-json"]
        order = options
        if guard is not None:
            settings = gate_settings(guard, options.settings, manner=_manner(options))
            order = replace(order, settings=settings, dangerously_skip_permissions=False)
            # Hook events show how other hooks change a call.
            words.append("--include-hook-events")
            if options.dangerously_skip_permissions:
                words += ["--permission-mode", "default"]
        return [*super().arguments(order, system_prompt, servers=servers), *words]

    def _servers(self, given: Mapping[str, object]) -> dict[str, object]:
        """Return the servers for the program; those in this process are passed by name only."""
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
                f'an MCP server cannot be named "{TOOLS}": the agent uses that name',
                hint="give the server another name",
            )
        # Without `alwaysLoad` the model would have to search for them first.
        return {**servers, TOOLS: {"type": "sdk", "name": TOOLS, "alwaysLoad": True}}


def _is_mine(server: object) -> TypeGuard[Mapping[str, object]]:
    """Return whether the server runs in this process, as made by `create_sdk_mcp_server`."""
    return isinstance(server, Mapping) and server.get("type") == "sdk"


def _manner(options: SpawnOptions) -> hook.Manner:
    return "allow" if options.dangerously_skip_permissions else "leave"


def _program(env: Mapping[str, str] | None) -> str:
    """Return the program on PATH, or else the one bundled with some builds of the SDK."""
    path = (os.environ if env is None else env).get("PATH")
    if shutil.which("claude", path=path) is None:
        found = importlib.util.find_spec("claude_agent_sdk")
        if found is not None and found.origin is not None:
            program = Path(found.origin).parent / "_bundled" / "claude"
            if os.access(program, os.X_OK):
                return str(program)
    return "claude"


def _check_sdk() -> str:
    """Return the version of the SDK.

    Raises:
        AgentNotFound: it is not installed, or too old.
    """
    return check_package(
        "claude-agent-sdk",
        title="the Claude Agent SDK",
        least=MINIMUM_SDK,
        hint="install it with `pip install 'cuggino[sdk]'`",
    )
