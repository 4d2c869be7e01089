"""The Codex CLI, driven through `codex exec --json`."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from reactivex import Observable, concat, of, throw

from cuggino.agents.base.agent import Capabilities, InteractiveOptions, SpawnOptions
from cuggino.agents.base.login import Login
from cuggino.agents.base.program import Launch, ProgramAgent
from cuggino.agents.base.refusals import unresumable
from cuggino.agents.codex.config import (
    OFF,
    codex_home,
    holds_secrets,
    override,
    private,
    retries,
    server_table,
)
from cuggino.agents.codex.guard import CodexGuard, CodexWatch, make_codex_guard
from cuggino.agents.codex.wire import CodexSession, UsageRecord
from cuggino.errors import AgentNotFound
from cuggino.events import LlmAgentEvent, SessionEnded
from cuggino.guard import Policy

_BYPASS = "--dangerously-bypass-approvals-and-sandbox"
_UNGUARDED_ENV = ("BASH_ENV", "ENV", "ZDOTDIR")
"""Variables that would run something before the hook or a command."""

_KEYS = ("OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN")
"""Variables with a login for one session."""

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def _read_login(code: int, output: str) -> bool | None:
    lines = output.splitlines()
    if code == 1 and "Not logged in" in lines:
        return False
    return True if code == 0 and any(x.startswith("Logged in ") for x in lines) else None


def _may_log_in_elsewhere(cwd: Path, env: Mapping[str, str]) -> bool:
    if any(env.get(name) for name in _KEYS):
        return True
    # Another model provider has its own login, or none.
    files = (codex_home(env) / "config.toml", cwd / ".codex" / "config.toml")
    with suppress(OSError, ValueError):
        return any("model_provider" in path.read_text() for path in files if path.exists())
    return True


class CodexAgent(ProgramAgent):
    """The installed Codex CLI of OpenAI.

    Behind npm's launcher the program itself is started, as the launcher would leave it running.
    `CODEX_HOME` in the environment is the folder of its settings, where custom model providers are
    configured.

    Events use Claude Code's tool names (see `codex.tools`): a patch emits a `Write` or an `Edit`
    for each file. Text comes in whole messages. Tokens are reported while it works, those of this
    session alone; US dollars are not, so `max_budget_usd` has no effect. Neither do `session_id`
    (Codex chooses it), `thinking`, `settings` and `sandbox`. MCP servers are waited for, and must
    start. A command that is still running at the end is terminated, as its result reports.

    Without `dangerously_skip_permissions` the session runs in Codex's own read-only sandbox without
    a network: it reads, and may use the MCP tools named by `allowed_tools`. Everything else is
    denied, as there is no user to ask.

    A session with a `guard` is enforced as described in `codex.guard`. It fails with `GuardNotLive`
    before it starts if Codex does not run the hook, and ends with it if the hook did not answer at
    its start, or something ran without a verdict. Each denied call emits a `GuardDenied` between
    its `ToolCall` and its `ToolResult`, with the next line that Codex prints. Web search,
    sub-agents and typing into running commands are off then, and the user's own rules for Codex
    (`.rules`) do not see the commands. In the terminal the hook is tried out first, but its
    verdicts are not watched; commands are shown with the wrapper that the hook adds.

    A resumed session keeps its original system prompt.
    """

    name = "codex"
    command = "codex"
    package = "@openai/codex"
    minimum_version = (0, 169, 0)
    update_hint = "update it with `npm install -g @openai/codex`"
    version_pattern = r"codex-cli (\d+\.\d+\.\d+)"
    mismatch = "is not the Codex CLI"

    settings = ("config.toml", "hooks.json", "rules", "AGENTS.md", "skills", "prompts")

    login = Login(
        command=("login", "status"),
        read=_read_login,
        variables=("OPENAI_", "CODEX_"),
        folders=("CODEX_HOME",),
        hint="run `codex login`",
        elsewhere=_may_log_in_elsewhere,
    )

    capabilities = Capabilities(
        guard="calls",
        mcp=True,
        resume=True,
        cost="tokens",
        view=True,
        interactive=True,
        note="a resumed session keeps its first system prompt",
    )

    @property
    def program(self) -> str:
        """The program itself, without npm's launcher."""
        with suppress(AgentNotFound):
            return self._find_program()
        return self._path

    def state_folders(self, env: Mapping[str, str]) -> list[Path]:
        return [codex_home(env).absolute()]

    def check_guard(self, policy: Policy) -> None:
        self.check()
        with ExitStack() as stack:
            self._guard(policy, self.environment, Path(policy.project), stack)

    def _find_program(self) -> str:
        return native_program(super()._find_program())

    def _start(self, options: SpawnOptions, stack: ExitStack) -> Observable[LlmAgentEvent]:
        thread = options.resume_session_id
        if thread is not None and not _UUID.fullmatch(thread):
            # Codex would treat it as a name, and start a new session.
            ended = SessionEnded(outcome="failed", duration=0.0)
            return concat(of(ended), throw(unresumable(f"there is no session {thread}")))
        return super()._start(options, stack)

    def launch(self, options: SpawnOptions, stack: ExitStack) -> Launch:
        if options.resume_session_id is not None:
            # As Codex writes it in its output and in the names of its records.
            options = replace(options, resume_session_id=options.resume_session_id.lower())
        env: Mapping[str, str] = options.environment(self.environment)
        guard: CodexGuard | None = None
        if options.guard is not None:
            servers = tuple(options.mcp_servers)
            guard = self._guard(options.guard, env, options.cwd, stack, servers)
            env = guard.env
        settings = self._settings(options, env, stack)
        return Launch(
            argv=self.arguments(options, env, [*settings, *_guarding(guard, options.cwd)]),
            env=env,
            stdin=options.prompt,
            reader=partial(
                CodexSession,
                resumed=options.resume_session_id,
                account=UsageRecord(env),
                watch=CodexWatch(guard) if guard else None,
            ),
        )

    def _settings(
        self, options: SpawnOptions, env: Mapping[str, str], stack: ExitStack
    ) -> list[str]:
        """Return the arguments for system prompt and MCP servers; secrets go to a private file."""
        table = server_table(
            options.mcp_servers,
            approved=options.dangerously_skip_permissions,
            allowed_tools=options.allowed_tools,
        )
        hidden: dict[str, object] = {"mcp_servers": table} if holds_secrets(table) else {}
        if options.system_prompt and options.resume_session_id is None:
            hidden["developer_instructions"] = options.system_prompt
        words = stack.enter_context(private(hidden, env))
        if table and "mcp_servers" not in hidden:
            words = [*words, *override("mcp_servers", table)]
        return words

    def arguments(
        self, options: SpawnOptions, env: Mapping[str, str], more: list[str]
    ) -> list[str]:
        """Return the command line of a session."""
        resumed = options.resume_session_id
        unattended = options.dangerously_skip_permissions
        argv = [self.program, "exec"]
        argv += ["--sandbox", "read-only"] if not unattended else []
        argv += ["resume"] if resumed is not None else []
        argv += ["--json", "--skip-git-repo-check", *([_BYPASS] if unattended else [])]
        argv += _quiet()
        argv += override("approval_policy", "never")
        argv += retries(env)
        own = {name: value for name, value in options.env.items() if name.startswith("CUGGINO_")}
        argv += override("shell_environment_policy.set", own) if own else []
        argv += more
        argv += ["--model", options.model] if options.model is not None else []
        return [*argv, *([resumed] if resumed is not None else []), "-"]

    def _terminal(
        self, options: InteractiveOptions, stack: ExitStack
    ) -> tuple[list[str], Mapping[str, str]]:
        env: Mapping[str, str] = self.environment
        argv = [self.program, *override("check_for_update_on_startup", False)]
        argv += [_BYPASS] if options.dangerously_skip_permissions else []
        if options.guard is not None:
            guard = self._guard(options.guard, env, options.cwd, stack)
            argv += guard.arguments(options.cwd)
            env = guard.env
        prompt = options.system_prompt
        hidden = {"developer_instructions": prompt} if prompt else {}
        return [*argv, *stack.enter_context(private(hidden, env))], env

    def _guard(
        self,
        policy: Policy,
        env: Mapping[str, str],
        cwd: Path,
        stack: ExitStack,
        servers: tuple[str, ...] = (),
    ) -> CodexGuard:
        """Return a guard that was tried out; the stack removes its log of verdicts."""
        held = {name: value for name, value in env.items() if name not in _UNGUARDED_ENV}
        guard = make_codex_guard(policy, held, stack, servers=servers)
        guard.try_out(
            [self.program, "exec", "--json", "--skip-git-repo-check", _BYPASS, *_quiet()], cwd
        )
        return guard


def native_program(path: str) -> str:
    """Return the program itself if the path is npm's launcher."""
    real = Path(os.path.realpath(path))
    if real.suffix != ".js":
        return path
    package = real.parents[1]
    places = (package.parent, package / "node_modules" / "@openai")
    found = [
        file
        for place in places
        for file in sorted(place.glob("codex-*/vendor/*/bin/codex"))
        if os.access(file, os.X_OK)
    ]
    mine = [file for file in found if _is_for_this_machine(file.parents[1].name)]
    chosen = mine or (found if len(found) == 1 else [])
    return str(chosen[0]) if chosen else path


def _is_for_this_machine(target: str) -> bool:
    """Return whether programs for the target (`x86_64-unknown-linux-musl`) run here."""
    machine = platform.machine().lower()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    return target.startswith(f"{machine}-") and sys.platform in target.split("-")


def _quiet() -> list[str]:
    """Return arguments against network access, updates and anything that waits for a person."""
    words = override("analytics.enabled", False)
    words += override("check_for_update_on_startup", False)
    words += override("tools.experimental_request_user_input", {"enabled": False})
    return [*words, *(word for feature in OFF for word in ("--disable", feature))]


def _guarding(guard: CodexGuard | None, cwd: Path) -> list[str]:
    return guard.arguments(cwd) if guard else []
