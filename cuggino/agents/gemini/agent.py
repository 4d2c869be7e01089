"""Google's Gemini CLI, driven through its `gemini` program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cuggino.agents.base.agent import Capabilities, InteractiveOptions, SpawnOptions
from cuggino.agents.base.program import Launch, ProgramAgent, encodable
from cuggino.agents.gemini.config import (
    DISTRUST,
    GEMINI,
    GUARDED,
    Home,
    as_said,
    context_of_project,
    fits_command,
    is_verbatim,
    merged,
    session_settings,
)
from cuggino.agents.gemini.guard import GeminiWatch, SessionGuard, prepare_guard, rules
from cuggino.agents.gemini.wire import Exits, GeminiSession
from cuggino.guard import Policy
from cuggino.sandbox import home_of

_BUILD_FILES = (
    "write_file and replace are refused for build files (package.json, lock files, pyproject.toml, "
    "Cargo.toml, go.mod, Makefile, Dockerfile and the like). Where your task asks for it, change "
    "those with run_shell_command; no confirmation is needed."
)
"""Without a person to ask, the program refuses to write these files, regardless of settings."""

_NOTE = (
    "build files are changed by commands only; a guarded session ends, too late for that call, if "
    "somebody kills the hook of an MCP call; a session in its own terminal cannot be guarded"
)

_RULES = "rules.toml"


class GeminiAgent(ProgramAgent):
    """The installed Gemini CLI.

    Events use Claude Code's tool names (see `gemini.tools`). Text is streamed, and emitted whole
    when something else happens; reasoning is not reported. Tokens are reported at the end, US
    dollars are not, so `max_budget_usd` has no effect; neither have `thinking` and `sandbox`.

    Each session has its own home (see `gemini.config`) with the user's logins, sessions and
    settings. The home and its temporary files are removed at the end. The system prompt is added to
    the program's own, which collapses empty lines, and fences a text that seems to contain an
    import (`@file`).

    Without `dangerously_skip_permissions` the agent reads, and uses `allowed_tools`; everything
    else is denied, and tools that are never allowed are not offered to the model. In that mode, and
    with a `guard`, only the names of the context files count of the project's own settings
    (`.gemini/settings.json`). The agent cannot ask the user questions. A session with a `guard` is
    enforced as described in `gemini.guard`: each denied call emits one `GuardDenied`.

    A session can be resumed in the folder where it was started, and has the system prompt of the
    new options.
    """

    name = "gemini"
    command = "gemini"
    package = "@google/gemini-cli"
    minimum_version = (0, 61, 0)
    update_hint = "update it with `npm install -g @google/gemini-cli`"
    version_pattern = r"(?m)^(\d+\.\d+\.\d+)\S*$"
    unguarded_terminal = "the Gemini CLI cannot be guarded in its own terminal"
    variables = MappingProxyType(
        {
            # A single process: the parent would only wait, and does not pass signals on.
            "GEMINI_CLI_NO_RELAUNCH": "true",
            "GEMINI_TELEMETRY_ENABLED": "false",
            "NO_COLOR": "1",
        }
    )

    settings = ("settings.json", "GEMINI.md", "commands", "extensions", "policies", ".env")

    capabilities = Capabilities(
        guard="calls",
        mcp=True,
        resume=True,
        cost="tokens",
        view=True,
        deltas=True,
        interactive=True,
        note=_NOTE,
    )

    def state_folders(self, env: Mapping[str, str]) -> list[Path]:
        own = self.environment.get("GEMINI_CLI_HOME") or home_of(env)
        return [Path(own).absolute() / GEMINI] if own else []

    def check_guard(self, policy: Policy) -> None:
        self.check()
        with ExitStack() as stack:
            home = Home(self.environment, stack)
            guard, held = prepare_guard(policy, self.environment, home)
            guard.try_out(held, policy.project)

    def launch(self, options: SpawnOptions, stack: ExitStack) -> Launch:
        home = Home(options.environment(self.environment), stack)
        env = options.environment({**self.environment, **self.variables})
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
            session = partial(session, watch=GeminiWatch(guard.log))
        hooks = {**exits.hooks(), **(guard.hooks() if guard else {})}
        self._write(options, home, env, guard, hooks)
        prompt = as_said(encodable(options.prompt))
        if not is_verbatim(prompt) and fits_command(prompt):
            prompt = home.write_command(prompt)
        return Launch(argv=self.arguments(options, home), env=env, stdin=prompt, reader=session)

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
        """Return the command line of a session."""
        mode = "yolo" if options.dangerously_skip_permissions else "default"
        argv = [self.program, "--output-format", "stream-json", "--skip-trust"]
        argv += ["--approval-mode", mode, "--admin-policy", str(home.own / _RULES)]
        if options.model is not None:
            argv += ["--model", options.model]
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
            argv += ["--approval-mode", "yolo"]
        if options.system_prompt is None:
            return argv, env
        home = Home(env, stack)
        home.write_settings(home.user_settings())
        names = context_of_project(options.cwd) or home.user_settings()
        home.write_context(encodable(options.system_prompt), settings=names)
        return argv, {**env, "GEMINI_CLI_HOME": str(home.path)}
