"""Google's Gemini CLI, driven through its `gemini` program."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from reactivex import Observable, defer

from cuggino.agents.gemini.exits import Exits
from cuggino.agents.gemini.guard import SessionGuard, prepare_guard, rules
from cuggino.agents.gemini.home import (
    Home,
    as_said,
    context_of_project,
    fits_command,
    is_verbatim,
)
from cuggino.agents.gemini.settings import DISTRUST, GUARDED, merged, session_settings
from cuggino.agents.gemini.watch import GeminiWatch
from cuggino.agents.gemini.wire import GeminiSession
from cuggino.agents.program import absolute, ask_version, converse, encodable
from cuggino.agents.protocol import Capabilities, InteractiveOptions, SpawnOptions
from cuggino.agents.stream_json import stream_json
from cuggino.errors import GuardNotLive
from cuggino.events import LlmAgentEvent
from cuggino.operators import acquire_release
from cuggino.security.policy import Policy

MINIMUM_VERSION = (0, 61, 0)
"""The oldest version that was tried."""

_INSTALL = (
    "install it with `npm install -g @google/gemini-cli`, "
    'or give its path as "agentPath" in .cuggino.json'
)

_ENVIRONMENT = {
    # One process: the other one would only wait, and does not pass signals on.
    "GEMINI_CLI_NO_RELAUNCH": "true",
    "GEMINI_TELEMETRY_ENABLED": "false",
    "NO_COLOR": "1",
}

_BUILD_FILES = (
    "write_file and replace are refused for build files (package.json, lock files, pyproject.toml, "
    "Cargo.toml, go.mod, Makefile, Dockerfile and the like). Where your task asks for it, change "
    "those with run_shell_command; no confirmation is needed."
)
"""The program refuses that where nobody can be asked, and no setting changes it."""

_NOTE = (
    "build files are changed by commands only; a guarded session ends, too late for that call, if "
    "somebody kills the hook of an MCP call; a session in its own terminal cannot be guarded"
)

_RULES = "rules.toml"

_NO_TERMINAL = "the Gemini CLI is not held to a policy in its own terminal"


class GeminiAgent:
    """The installed Gemini CLI.

    `path` is the program, looked up on PATH when it is a bare name; any other path is that of the
    present working directory. `env` replaces the whole environment that the program gets, which is
    otherwise that of this process.
    """

    name = "gemini"
    can_resume = True

    def __init__(
        self, *, path: str | os.PathLike[str] | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        self._path = absolute(path or "gemini")
        self._env = env
        self._version: str | None = None

    @property
    def capabilities(self) -> Capabilities:
        """See `DescribedAgent.capabilities`."""
        return Capabilities(
            guard="calls",
            mcp=True,
            resume=True,
            cost="tokens",
            deltas=True,
            interactive=True,
            note=_NOTE,
        )

    def check(self) -> str:
        """The version of the installed program; it is asked once."""
        if self._version is None:
            self._version = ask_version(
                self._path,
                name=self.name,
                pattern=r"(?m)^(\d+\.\d+\.\d+)\S*$",
                least=MINIMUM_VERSION,
                env={**self.environment, **_ENVIRONMENT},
                install=_INSTALL,
                update="update it with `npm install -g @google/gemini-cli`",
            )
        return self._version

    def check_guard(self, policy: Policy) -> None:
        """See `GuardedAgent.check_guard`."""
        self.check()
        env = self.environment
        home = Home(env)
        try:
            guard, held = prepare_guard(policy, env, home)
            guard.try_out(held, policy.project)
        finally:
            home.remove()

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Run one session; see `LlmAgent.spawn`.

        Events name tools as Claude Code does (see `gemini.tools`). Text comes in deltas, and whole
        when something else happens; reasoning is not told. Tokens are told at the end, US dollars
        are not, so `max_budget_usd` has no effect; nor have `thinking` and `sandbox`.

        Each session has a home of its own (see `gemini.home`), in which the user's logins, sessions
        and settings are, and which is removed at its end; so are its temporary files. The system
        prompt is added to the program's own, which makes one empty line of several, and fences a
        text in which something looks like an import (`@file`).

        Without `dangerously_skip_permissions` the agent reads, and uses `allowed_tools`; all else
        is denied, and tools that are never allowed are not offered to the model. Then, and with a
        `guard`, of the project's own settings for the program (`.gemini/settings.json`) only the
        names of its context files count. It cannot ask the user questions. A session with a
        `guard` is held to it as `gemini.guard` tells: each call that is denied gives one
        `GuardDenied`.

        A session can be resumed in the folder in which it was begun, and has the system prompt that
        is given now.
        """
        return acquire_release(
            lambda: Home({**self.environment, **options.env}),
            lambda home: defer(lambda _scheduler: self._start(options, home)),
            lambda home: home.remove(),
        )

    def _start(self, options: SpawnOptions, home: Home) -> Observable[LlmAgentEvent]:
        self.check()
        env = {**self.environment, **_ENVIRONMENT, **options.env}
        env |= {"GEMINI_CLI_HOME": str(home.path), "TMPDIR": str(home.temp)}
        is_free = options.dangerously_skip_permissions and options.guard is None
        env |= {"GEMINI_CLI_TRUST_WORKSPACE": "true"} if is_free else home.distrust()
        exits = Exits(home.own)
        session: Callable[..., GeminiSession] = partial(
            GeminiSession,
            cwd=str(options.cwd),
            servers=tuple(options.mcp_servers),
            exit_code=exits.code,
        )
        guard: SessionGuard | None = None
        if options.guard is not None:
            servers = tuple(options.mcp_servers)
            guard, env = prepare_guard(options.guard, env, home, servers=servers)
            session = partial(session, watch=GeminiWatch(_Lines(guard.log)))
        hooks = {**exits.hooks(), **(guard.hooks() if guard else {})}
        self._write(options, home, env, guard, hooks)
        prompt = as_said(encodable(options.prompt))
        if not is_verbatim(prompt) and fits_command(prompt):
            prompt = home.write_command(prompt)
        return stream_json(
            self.arguments(options, home),
            program=self.name,
            cwd=options.cwd,
            env=env,
            session=session,
            stdin=prompt,
        )

    def _write(
        self,
        options: SpawnOptions,
        home: Home,
        env: Mapping[str, str],
        guard: SessionGuard | None,
        hooks: Mapping[str, Any],
    ) -> None:
        more = merged(context_of_project(options.cwd), DISTRUST)
        settings = session_settings(
            home.user_settings(),
            options.settings,
            env=env,
            mcp_servers=options.mcp_servers,
            hooks=hooks,
            more=merged(more, GUARDED) if guard else more,
        )
        home.write_settings(settings)
        words = [options.system_prompt] if options.system_prompt else []
        if options.dangerously_skip_permissions:
            words.append(_BUILD_FILES)
        if words:
            text = encodable("\n\n".join(words))
            home.write_context(text, settings=settings)
        made = rules(
            unattended=options.dangerously_skip_permissions,
            guard=guard,
            allowed_tools=options.allowed_tools,
        )
        home.keep(_RULES, made)

    def arguments(self, options: SpawnOptions, home: Home) -> list[str]:
        """The command line of a session."""
        mode = "yolo" if options.dangerously_skip_permissions else "default"
        argv = [self._path, "--output-format", "stream-json", "--skip-trust"]
        argv += ["--approval-mode", mode, "--admin-policy", str(home.own / _RULES)]
        if options.model is not None:
            argv += ["--model", options.model]
        if options.resume_session_id is not None:
            argv += ["--resume", options.resume_session_id]
        elif options.session_id is not None:
            argv += ["--session-id", options.session_id]
        return argv

    def interactive(self, options: InteractiveOptions) -> int:
        """Hand the terminal to the program until the person leaves it; gives its exit code.

        Raises:
            GuardNotLive: a policy is given, which the program is not held to there.
        """
        self.check()
        if options.guard is not None:
            raise GuardNotLive(_NO_TERMINAL, hint='use claude, or set "guard": "off"')
        env = dict(self.environment)
        argv = [self._path]
        if options.dangerously_skip_permissions:
            argv += ["--approval-mode", "yolo"]
        if options.system_prompt is None:
            return converse(argv, cwd=options.cwd, env=env)
        home = Home(env)
        try:
            home.write_settings(home.user_settings())
            names = context_of_project(options.cwd) or home.user_settings()
            home.write_context(encodable(options.system_prompt), settings=names)
            return converse(argv, cwd=options.cwd, env={**env, "GEMINI_CLI_HOME": str(home.path)})
        finally:
            home.remove()

    @property
    def environment(self) -> Mapping[str, str]:
        """See `InstalledAgent.environment`."""
        return os.environ if self._env is None else self._env


class _Lines:
    """The lines that were added to a file since they were last asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0

    def __call__(self) -> list[str]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                text, _, _ = file.read().rpartition(b"\n")
        except OSError:
            return []
        if not text:
            return []
        self._at += len(text) + 1
        return text.decode("utf-8", "replace").split("\n")
