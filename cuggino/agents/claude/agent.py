"""Claude Code, driven through its `claude` program (CUG-080 to CUG-085)."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cuggino.agents.base.agent import Capabilities, InteractiveOptions, SpawnOptions
from cuggino.agents.base.guard import Guard, make_guard
from cuggino.agents.base.login import Login
from cuggino.agents.base.private_files import private_file
from cuggino.agents.base.program import Launch, ProgramAgent, version_numbers
from cuggino.agents.claude import sandbox as claude_sandbox
from cuggino.agents.claude.guard import LEAST_VERSION, GuardWatch, guard_settings, try_hook
from cuggino.agents.claude.input import input_line, input_message
from cuggino.agents.claude.wire import ClaudeSession
from cuggino.errors import AgentTooOld
from cuggino.files import read_json_object
from cuggino.guard import Policy

_INTERACTIVE_TOOLS = "AskUserQuestion,ScheduleWakeup,Monitor"
"""Tools that wait for a person, or keep the program running after its answer."""

_MESSAGES_VERSION = (2, 1, 329)
"""Oldest version observed to report the outcome of a message."""
_PROJECT_SETTINGS = (".claude/settings.json", ".claude/settings.local.json")

_LEAST_BUDGET = 0.01
"""US dollars; the program rejects zero, and a smaller budget ends the session at once."""


_LOGIN_VARIABLES = ("ANTHROPIC_", "CLAUDE_", "AWS_", "GOOGLE_", "CLOUD_ML_", "VERTEX_")


def _read_login(code: int, output: str) -> bool | None:
    try:
        answer = json.loads(output[output.find("{") : output.rfind("}") + 1])
    except ValueError:
        return None
    said = answer.get("loggedIn") if isinstance(answer, dict) else None
    return said if isinstance(said, bool) else None


def _may_log_in_elsewhere(cwd: Path, env: Mapping[str, str]) -> bool:
    # A session applies the settings of its project, which the login command does not know.
    for name in _PROJECT_SETTINGS:
        try:
            settings = read_json_object(cwd / name)
        except (OSError, ValueError):
            continue
        given = settings.get("env")
        names = given if isinstance(given, dict) else {}
        if "apiKeyHelper" in settings or any(n.startswith(_LOGIN_VARIABLES) for n in names):
            return True
    return False


class ClaudeAgent(ProgramAgent):
    """The installed Claude Code CLI.

    `max_budget_usd` limits a session's cost from now on, without its cost before it was resumed.
    The limit is checked after each answer of the model: the session ends with `BudgetExceeded`
    after the answer that exceeds it, even if that answer is complete and the last one.

    A session with a `guard` (see `claude.guard`) ends with `GuardNotLive` before its first tool
    unless its hook answered at its start, and whenever a tool was used without a verdict. Each
    denied call emits one `GuardDenied`.

    Where the machine supports it, `sandbox` is required: the program does not start without it.
    Elsewhere the session runs unsandboxed (`sandbox_unavailable`).
    """

    name = "claude"
    command = "claude"
    package = "@anthropic-ai/claude-code"
    minimum_version = (2, 1, 197)
    update_hint = "update it with `claude update` or through npm"
    variables = MappingProxyType(
        {
            # A stray @ in a prompt must not attach a file.
            "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
            # A background task would keep the program running for up to ten minutes.
            "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
        }
    )

    state = (".claude", ".local/share/claude", ".local/state/claude")
    rewritten = (".claude.json",)
    settings = ("settings.json", "settings.local.json", "hooks", "agents", "commands", "skills")

    login = Login(
        command=("auth", "status"),
        read=_read_login,
        variables=_LOGIN_VARIABLES,
        folders=("CLAUDE_CONFIG_DIR",),
        credentials=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
        hint="run `claude auth login`, or set ANTHROPIC_API_KEY",
        elsewhere=_may_log_in_elsewhere,
    )

    capabilities = Capabilities(
        guard="calls",
        mcp=True,
        resume=True,
        cost="dollars",
        sandbox=True,
        view=True,
        deltas=True,
        messages=True,
        interactive=True,
    )

    def check_guard(self, policy: Policy) -> None:
        try_hook(self._make_guard(policy, self.environment))

    def sandbox_unavailable(self) -> str:
        return claude_sandbox.sandbox_unavailable(self.environment)

    def state_folders(self, env: Mapping[str, str]) -> list[Path]:
        folders = super().state_folders(env)
        own = env.get("CLAUDE_CONFIG_DIR")
        return [Path(own).absolute(), *folders[1:]] if own else folders

    def launch(self, options: SpawnOptions, stack: ExitStack) -> Launch:
        env = self._session_env(options, stack)
        order = claude_sandbox.with_sandbox(options, env)
        guard: Guard | None = None
        if options.guard is not None:
            guard = self._make_guard(options.guard, env)
            env = dict(guard.env)
        words = self.arguments(
            order,
            system_prompt_file(options, stack),
            guard,
            servers=servers_file(options.mcp_servers, stack),
        )
        messages = options.messages if self._takes_messages() else None
        if messages is not None:
            words += ["--input-format", "stream-json"]
            prompt = input_line(input_message(options.prompt))
        else:  # the program would treat a prompt that begins with a slash as a command
            prompt = " " + options.prompt if options.prompt.startswith("/") else options.prompt
        return Launch(
            argv=words,
            env=env,
            stdin=prompt,
            reader=partial(_session, guard, drafts=options.drafts),
            messages=messages,
        )

    def _takes_messages(self) -> bool:
        return version_numbers(self.check()) >= _MESSAGES_VERSION

    def _session_env(self, options: SpawnOptions, stack: ExitStack) -> dict[str, str]:
        env = options.environment({**self.environment, **self.variables})
        if options.thinking is not None:
            env["MAX_THINKING_TOKENS"] = str(options.thinking)
        # Only on Linux do denied paths show up as devices.
        if (
            sys.platform == "linux"
            and options.sandbox is not None
            and not claude_sandbox.sandbox_unavailable(self.environment)
        ):
            text = claude_sandbox.git_ignores(options.sandbox, options.cwd, self.environment)
            env = claude_sandbox.with_git_ignores(env, private_file(text, stack, suffix=".ignore"))
        return env

    def arguments(
        self,
        options: SpawnOptions,
        system_prompt: Path | None,
        guard: Guard | None = None,
        *,
        servers: Path | None = None,
    ) -> list[str]:
        """Return the command line of a session; `servers` is the file with its MCP servers."""
        argv = [self.program, "-p", "--output-format", "stream-json", "--verbose"]
        argv += ["--include-partial-messages", f"--disallowedTools={_INTERACTIVE_TOOLS}"]
        argv += _permissions(options, guard)
        if servers is not None:
            argv.append(f"--mcp-config={servers}")
        if options.allowed_tools:
            argv.append(f"--allowedTools={','.join(options.allowed_tools)}")
        if system_prompt is not None:
            argv += ["--append-system-prompt-file", str(system_prompt)]
        if options.model is not None:
            argv += ["--model", options.model]
        if options.max_budget_usd is not None:
            argv += ["--max-budget-usd", _dollars(options.max_budget_usd)]
        if options.resume_session_id is not None:
            argv += ["--resume", options.resume_session_id]
        elif options.session_id is not None:
            argv += ["--session-id", options.session_id]
        return argv

    def _terminal(
        self, options: InteractiveOptions, stack: ExitStack
    ) -> tuple[list[str], Mapping[str, str]]:
        argv, env = [self.program], self.environment
        if options.dangerously_skip_permissions:
            argv.append("--dangerously-skip-permissions")
        if options.guard is not None:
            guard = self._make_guard(options.guard, env)
            try_hook(guard)
            env = guard.env
            argv += ["--settings", json.dumps(guard_settings(guard, manner="leave"))]
        if options.system_prompt is not None:
            system_prompt = private_file(options.system_prompt, stack)
            argv += ["--append-system-prompt-file", str(system_prompt)]
        return argv, env

    def _make_guard(self, policy: Policy, env: Mapping[str, str]) -> Guard:
        version = self.check()
        if version_numbers(version) < LEAST_VERSION:
            least = ".".join(map(str, LEAST_VERSION))
            raise AgentTooOld(
                f"claude {version} is too old to be guarded, at least {least} is needed",
                hint='update it with `claude update` or through npm, or set "guard": "off"',
            )
        return make_guard(policy, env)


def _session(guard: Guard | None, **given: Any) -> ClaudeSession:
    """Create the reader of the program's output, and import its module only now."""
    watch = GuardWatch(guard.token) if guard is not None else None
    return ClaudeSession(**given, watch=watch)


def system_prompt_file(options: SpawnOptions, stack: ExitStack) -> Path | None:
    """Write the system prompt, which may be longer than an argument, to a private file."""
    return None if options.system_prompt is None else private_file(options.system_prompt, stack)


def servers_file(servers: Mapping[str, object], stack: ExitStack) -> Path | None:
    """Write the MCP servers, whose variables and headers may hold keys, to a private file."""
    if not servers:
        return None
    return private_file(json.dumps({"mcpServers": dict(servers)}), stack, suffix=".json")


def _permissions(options: SpawnOptions, guard: Guard | None) -> list[str]:
    """Return the arguments for what needs no permission: by the guard, all, or the default."""
    unattended = options.dangerously_skip_permissions
    if guard is None:
        words = ["--dangerously-skip-permissions"] if unattended else []
        return words + (["--settings", json.dumps(options.settings)] if options.settings else [])
    settings = guard_settings(guard, options.settings, manner="allow" if unattended else "leave")
    # Hook events prove that the guard is live, and report its verdicts.
    words = ["--include-hook-events", "--settings", json.dumps(settings)]
    return [*words, "--permission-mode", "default"] if unattended else words


def _dollars(amount: float) -> str:
    """Format the amount without an exponent; the program rejects zero and less."""
    return f"{max(amount, _LEAST_BUDGET):.4f}".rstrip("0").rstrip(".")
