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
from typing import NamedTuple

from reactivex import Observable, concat, defer, of, throw

from cuggino.agents.codex.config import (
    OFF,
    holds_secrets,
    override,
    private,
    retries,
    server_table,
)
from cuggino.agents.codex.failure import no_session
from cuggino.agents.codex.guard import CodexGuard, make_codex_guard
from cuggino.agents.codex.usage import UsageRecord
from cuggino.agents.codex.watch import CodexWatch
from cuggino.agents.codex.wire import CodexSession
from cuggino.agents.program import absolute, ask_version, converse, find_program
from cuggino.agents.protocol import Capabilities, InteractiveOptions, SpawnOptions
from cuggino.agents.stream_json import stream_json
from cuggino.errors import AgentNotFound
from cuggino.events import LlmAgentEvent, SessionEnded
from cuggino.operators import acquire_release
from cuggino.security.policy import Policy

MINIMUM_VERSION = (0, 169, 0)
"""The oldest version that was tried."""

_INSTALL = (
    "install it with `npm install -g @openai/codex`, "
    'or give its path as "agentPath" in .cuggino.json'
)
_BYPASS = "--dangerously-bypass-approvals-and-sandbox"
_UNGUARDED_ENV = ("BASH_ENV", "ENV", "ZDOTDIR")
"""Variables by which something else would run in front of the hook or a command."""

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class _Prepared(NamedTuple):
    """One session before it is started."""

    argv: list[str]
    env: Mapping[str, str]
    watch: CodexWatch | None
    files: ExitStack


class CodexAgent:
    """The installed Codex CLI of OpenAI.

    `path` is the program, looked up on PATH when it is a bare name; any other path is that of the
    present working directory. Behind npm's launcher the program itself is started, as the launcher
    would leave it running. `env` replaces the whole environment that the program gets, which is
    otherwise that of this process; with `CODEX_HOME` it names the folder of its settings, where a
    model provider of one's own is configured.
    """

    name = "codex"
    can_resume = True

    def __init__(
        self, *, path: str | os.PathLike[str] | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        self._env = env
        self._path = absolute(path or "codex")
        self._version: str | None = None

    @property
    def capabilities(self) -> Capabilities:
        """See `DescribedAgent.capabilities`."""
        return Capabilities(
            guard="calls",
            mcp=True,
            resume=True,
            cost="tokens",
            interactive=True,
            note="a resumed session keeps its first system prompt",
        )

    def check(self) -> str:
        """The version of the installed program; it is asked once."""
        if self._version is None:
            self._version = ask_version(
                self._program(),
                name=self.name,
                pattern=r"codex-cli (\d+\.\d+\.\d+)",
                stranger="is not the Codex CLI",
                least=MINIMUM_VERSION,
                env=self.environment,
                install=_INSTALL,
                update="update it with `npm install -g @openai/codex`",
            )
        return self._version

    def check_guard(self, policy: Policy) -> None:
        """See `GuardedAgent.check_guard`."""
        self.check()
        with ExitStack() as stack:
            self._guard(policy, self.environment, Path(policy.project), stack)

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Run one session; see `LlmAgent.spawn`.

        Events name tools as Claude Code does (see `codex.tools`): a patch gives a `Write` or an
        `Edit` for each file. Text comes in whole messages. Tokens are told while it works, those of
        this session alone; US dollars are not, so `max_budget_usd` has no effect; nor have
        `session_id` (Codex chooses it), `thinking`, `settings` and `sandbox`. MCP servers are
        waited for, and must start. A command that still runs at the end is ended, and its result
        says so.

        Without `dangerously_skip_permissions` the session runs in Codex's own read-only sandbox,
        without a network: it reads, and may use the tools of MCP servers that `allowed_tools`
        names; all else is denied, as nobody is there to be asked.

        A session with a `guard` is held to it as `codex.guard` tells. It does not begin when Codex
        does not run the hook (`GuardNotLive` alone), and ends with `GuardNotLive` unless that
        answered at its start too, and whenever something ran without a verdict. Each call that is
        denied gives a `GuardDenied` between its `ToolCall` and its `ToolResult`, when Codex says
        its next word. Web search, sub-agents and typing into running commands are off then, and
        the user's own rules of Codex (`.rules`) do not see the commands.

        A resumed session keeps the system prompt that it was started with.
        """
        return defer(lambda _scheduler: self._start(options))

    def _start(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        self.check()
        thread = options.resume_session_id
        if thread is not None and not _UUID.fullmatch(thread):
            # Codex would take it for a name, and begin a new session.
            ended = SessionEnded(outcome="failed", duration=0.0)
            return concat(of(ended), throw(no_session(thread)))
        if thread is not None:
            # As Codex writes it, in its words and in the names of its records.
            options = replace(options, resume_session_id=thread.lower())

        def run(made: _Prepared) -> Observable[LlmAgentEvent]:
            session = partial(
                CodexSession,
                resumed=options.resume_session_id,
                record=UsageRecord(made.env).total,
                watch=made.watch,
            )
            return stream_json(
                made.argv,
                program=self.name,
                cwd=options.cwd,
                env=made.env,
                stdin=options.prompt,
                session=session,
            )

        return acquire_release(lambda: self._prepare(options), run, lambda made: made.files.close())

    def _prepare(self, options: SpawnOptions) -> _Prepared:
        env: Mapping[str, str] = {**self.environment, **options.env}
        with ExitStack() as stack:
            guard: CodexGuard | None = None
            if options.guard is not None:
                names = tuple(options.mcp_servers)
                guard = self._guard(options.guard, env, options.cwd, stack, names)
                env = guard.env
            system_prompt = options.system_prompt if options.resume_session_id is None else None
            table = server_table(
                options.mcp_servers,
                approved=options.dangerously_skip_permissions,
                allowed_tools=options.allowed_tools,
            )
            hidden: dict[str, object] = {"mcp_servers": table} if holds_secrets(table) else {}
            if system_prompt:
                hidden["developer_instructions"] = system_prompt
            told = stack.enter_context(private(hidden, env))
            if table and "mcp_servers" not in hidden:
                told = [*told, *override("mcp_servers", table)]
            argv = self.arguments(options, env, [*told, *_guarding(guard, options.cwd)])
            watch = CodexWatch(guard) if guard else None
            return _Prepared(argv, env, watch, stack.pop_all())

    def arguments(
        self, options: SpawnOptions, env: Mapping[str, str], more: list[str]
    ) -> list[str]:
        """The command line of a session."""
        resumed = options.resume_session_id
        unattended = options.dangerously_skip_permissions
        argv = [self._program(), "exec"]
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

    def interactive(self, options: InteractiveOptions) -> int:
        """Hand the terminal to the program until the person leaves it; gives its exit code.

        With a `guard` its hook is tried out first; nobody watches then over what it says. Commands
        are shown with the words that the hook puts around them.
        """
        self.check()
        env: Mapping[str, str] = self.environment
        argv = [self._program(), *override("check_for_update_on_startup", False)]
        argv += [_BYPASS] if options.dangerously_skip_permissions else []
        with ExitStack() as stack:
            if options.guard is not None:
                guard = self._guard(options.guard, env, options.cwd, stack)
                argv += guard.arguments(options.cwd)
                env = guard.env
            prompt = options.system_prompt
            hidden = {"developer_instructions": prompt} if prompt else {}
            argv += stack.enter_context(private(hidden, env))
            return converse(argv, cwd=options.cwd, env=env)

    def _guard(
        self,
        policy: Policy,
        env: Mapping[str, str],
        cwd: Path,
        stack: ExitStack,
        servers: tuple[str, ...] = (),
    ) -> CodexGuard:
        """A guard that lives; its file of verdicts is removed by the stack."""
        held = {name: value for name, value in env.items() if name not in _UNGUARDED_ENV}
        guard = make_codex_guard(policy, held, servers=servers)
        stack.callback(guard.log.unlink, missing_ok=True)
        guard.try_out(self._trial(), cwd)
        return guard

    def _trial(self) -> list[str]:
        return [self._program(), "exec", "--json", "--skip-git-repo-check", _BYPASS, *_quiet()]

    def _program(self) -> str:
        env = self.environment
        with suppress(AgentNotFound):
            return native_program(find_program(self._path, env=env, install=_INSTALL))
        return self._path

    @property
    def environment(self) -> Mapping[str, str]:
        """See `InstalledAgent.environment`."""
        return os.environ if self._env is None else self._env


def native_program(path: str) -> str:
    """The program itself, where the path is that of npm's launcher for it."""
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
    """Whether programs for this target (`x86_64-unknown-linux-musl`) run here."""
    machine = platform.machine().lower()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    return target.startswith(f"{machine}-") and sys.platform in target.split("-")


def _quiet() -> list[str]:
    """No network but the model, no updates, nothing that waits for a person."""
    words = override("analytics.enabled", False)
    words += override("check_for_update_on_startup", False)
    words += override("tools.experimental_request_user_input", {"enabled": False})
    return [*words, *(word for feature in OFF for word in ("--disable", feature))]


def _guarding(guard: CodexGuard | None, cwd: Path) -> list[str]:
    return guard.arguments(cwd) if guard else []
