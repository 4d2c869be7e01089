"""Claude Code, driven through its `claude` program (CUG-080 to CUG-085)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from reactivex import Observable, defer

from cuggino.agents import guard as guards
from cuggino.agents.claude import sandbox as claude_sandbox
from cuggino.agents.claude.files import SessionFiles, write_files
from cuggino.agents.claude.wire import ClaudeSession
from cuggino.agents.guard import Guard, make_guard
from cuggino.agents.guard_watch import GuardWatch
from cuggino.agents.program import (
    absolute,
    ask_version,
    converse,
    version_numbers,
    write_private,
)
from cuggino.agents.protocol import Capabilities, InteractiveOptions, SpawnOptions
from cuggino.agents.stream_json import stream_json
from cuggino.errors import AgentTooOld
from cuggino.events import LlmAgentEvent
from cuggino.operators import acquire_release
from cuggino.security.policy import Policy

MINIMUM_VERSION = (2, 1, 197)
"""The oldest version that was tried."""

_INTERACTIVE_TOOLS = "AskUserQuestion,ScheduleWakeup,Monitor"
"""Tools that wait for a person, or keep the program running after its answer."""

_ENVIRONMENT = {
    # A stray @ in a prompt must not attach a file.
    "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
    # A background task would hold the program for up to ten minutes after its answer.
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
}

_LEAST_BUDGET = 0.01
"""US dollars; a session that may spend less could not say a word."""

_INSTALL = (
    "install it with `npm install -g @anthropic-ai/claude-code`, "
    'or give its path as "agentPath" in .cuggino.json'
)


class ClaudeAgent:
    """The installed Claude Code CLI.

    `path` is the program, looked up on PATH when it is a bare name; any other path is that of the
    present working directory. `env` replaces the whole environment that the program gets, which is
    otherwise that of this process.
    """

    name = "claude"
    can_resume = True

    def __init__(
        self, *, path: str | os.PathLike[str] = "claude", env: Mapping[str, str] | None = None
    ) -> None:
        self._path = absolute(path)
        self._env = env
        self._version: str | None = None

    @property
    def capabilities(self) -> Capabilities:
        """See `DescribedAgent.capabilities`."""
        return Capabilities(
            guard="calls",
            mcp=True,
            resume=True,
            cost="dollars",
            sandbox=True,
            deltas=True,
            interactive=True,
        )

    def check(self) -> str:
        """The version of the installed program; it is asked once."""
        if self._version is None:
            self._version = ask_version(
                self._path,
                name=self.name,
                pattern=r"^(\d+\.\d+\.\d+)",
                least=MINIMUM_VERSION,
                env=self.environment,
                install=_INSTALL,
                update="update it with `claude update` or through npm",
            )
        return self._version

    def check_guard(self, policy: Policy) -> None:
        """See `GuardedAgent.check_guard`."""
        self._make_guard(policy, self.environment).try_out()

    def sandbox_unavailable(self) -> str:
        """See `SandboxedAgent.sandbox_unavailable`."""
        return claude_sandbox.sandbox_unavailable(self.environment)

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Run one session; see `LlmAgent.spawn`.

        `max_budget_usd` counts what this session spends from now on, not what it spent before it
        was resumed, and is looked at after each answer of the model: the session ends with
        `BudgetExceeded` behind the answer that went beyond it, a complete last one included.

        The prompt goes to standard input and the system prompt to a private file, as both may be
        longer than an argument can be, and a prompt may begin with a dash.

        A session with a `guard` (see `cuggino.agents.guard`) ends with `GuardNotLive` before its
        first tool unless its hook has answered at its start, and whenever a tool was used without
        the hook's verdict. Each call that the guard denies gives one `GuardDenied`.

        Its `sandbox` is ordered where the machine can hold it, and is then a must: the program
        does not start without it. Elsewhere the session runs without one (`sandbox_unavailable`).
        """

        def start(files: SessionFiles) -> Observable[LlmAgentEvent]:
            self.check()
            env = {**self.environment, **_ENVIRONMENT, **options.env}
            if options.thinking is not None:
                env["MAX_THINKING_TOKENS"] = str(options.thinking)
            if files.ignores is not None:
                env = claude_sandbox.with_git_ignores(env, files.ignores)
            order = claude_sandbox.with_sandbox(options, env)
            session: Callable[..., ClaudeSession] = ClaudeSession
            guard: Guard | None = None
            if options.guard is not None:
                guard = self._make_guard(options.guard, env)
                env = dict(guard.env)
                session = partial(ClaudeSession, guard=GuardWatch(guard.token))
            return stream_json(
                self.arguments(order, files.system_prompt, guard, servers=files.servers),
                program=self.name,
                cwd=options.cwd,
                env=env,
                session=session,
                # The program takes a prompt that begins with a slash as a command of its own.
                stdin=" " + options.prompt if options.prompt.startswith("/") else options.prompt,
            )

        return acquire_release(
            lambda: write_files(options, self.environment, servers=options.mcp_servers),
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
        argv = [self._path, "-p", "--output-format", "stream-json", "--verbose"]
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

    def interactive(self, options: InteractiveOptions) -> int:
        """Hand the terminal to the program until the person leaves it; gives its exit code.

        The system prompt goes to a private file, which is removed at the end: whoever uses the
        machine can read the arguments of a program.
        """
        self.check()
        argv, env = [self._path], dict(self.environment)
        if options.dangerously_skip_permissions:
            argv.append("--dangerously-skip-permissions")
        if options.guard is not None:
            guard = self._make_guard(options.guard, env)
            guard.try_out()
            env = dict(guard.env)
            argv += ["--settings", json.dumps(guard.settings(manner="leave"))]
        if options.system_prompt is None:
            return converse(argv, cwd=options.cwd, env=env)
        system_prompt = write_private(options.system_prompt)
        try:
            argv += ["--append-system-prompt-file", str(system_prompt)]
            return converse(argv, cwd=options.cwd, env=env)
        finally:
            system_prompt.unlink(missing_ok=True)

    def _make_guard(self, policy: Policy, env: Mapping[str, str]) -> Guard:
        version = self.check()
        if version_numbers(version) < guards.LEAST_VERSION:
            least = ".".join(map(str, guards.LEAST_VERSION))
            raise AgentTooOld(
                f"claude {version} is too old to be guarded, at least {least} is needed",
                hint='update it with `claude update` or through npm, or set "guard": "off"',
            )
        return make_guard(policy, env)

    @property
    def environment(self) -> Mapping[str, str]:
        """See `InstalledAgent.environment`."""
        return os.environ if self._env is None else self._env


def _permissions(options: SpawnOptions, guard: Guard | None) -> list[str]:
    """What the session may do without asking: what its guard says, or all, or the usual."""
    unattended = options.dangerously_skip_permissions
    if guard is None:
        words = ["--dangerously-skip-permissions"] if unattended else []
        return words + (["--settings", json.dumps(options.settings)] if options.settings else [])
    settings = guard.settings(options.settings, manner="allow" if unattended else "leave")
    # Hook events tell whether the guard lives, and what it said.
    words = ["--include-hook-events", "--settings", json.dumps(settings)]
    return [*words, "--permission-mode", "default"] if unattended else words


def _dollars(amount: float) -> str:
    """The amount as the program reads it, which refuses nothing and less; no exponent."""
    return f"{max(amount, _LEAST_BUDGET):.4f}".rstrip("0").rstrip(".")
