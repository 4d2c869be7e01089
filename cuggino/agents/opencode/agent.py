"""OpenCode, driven through its `opencode` program."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from reactivex import Observable, defer

from cuggino.agents.guard import Guard
from cuggino.agents.opencode.config import (
    ENVIRONMENT,
    OFFLINE,
    config_content,
    needs_packages,
    outputs_folder,
    permissions,
    with_instructions,
)
from cuggino.agents.opencode.guard import (
    OpenCodeWatch,
    guard_of,
    judge_words,
    no_plugins,
    project_rules,
    try_out,
)
from cuggino.agents.opencode.plugin import plugin_source
from cuggino.agents.opencode.wire import OpenCodeSession
from cuggino.agents.program import absolute, ask_version, converse, write_private
from cuggino.agents.protocol import Capabilities, InteractiveOptions, SpawnOptions
from cuggino.agents.stream_json import stream_json
from cuggino.errors import GuardNotLive, StorageError
from cuggino.events import LlmAgentEvent
from cuggino.operators import acquire_release
from cuggino.security.policy import Policy

MINIMUM_VERSION = (1, 18, 33)
"""The oldest version that was tried."""

_INSTALL = (
    'install it with `npm install -g opencode-ai`, or give its path as "agentPath" in .cuggino.json'
)
_TITLE = "cuggino"
"""A session without a title asks the model for one."""

_NOTHING = '{"*":"deny"}'
"""No permission: our plugin grants them (see `opencode.plugin`)."""

_NO_TERMINAL = "OpenCode cannot be held to a policy in its own terminal"


class OpenCodeAgent:
    """The installed OpenCode CLI.

    `path` is the program, looked up on PATH when it is a bare name; any other path is that of the
    present working directory. `env` replaces the whole environment that the program gets, which is
    otherwise that of this process; the user's own configuration and logins count, as they do for
    the program itself.
    """

    name = "opencode"
    can_resume = True

    def __init__(
        self, *, path: str | os.PathLike[str] | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        self._env = env
        self._path = absolute(path or "opencode")
        self._version: str | None = None

    @property
    def capabilities(self) -> Capabilities:
        """See `DescribedAgent.capabilities`."""
        return Capabilities(
            guard="calls",
            mcp=True,
            resume=True,
            cost="dollars",
            deltas=True,
            interactive=True,
            note="a guarded session leaves out the project's OpenCode configuration, refuses its "
            "plugins and trusts the user's; one in its own terminal cannot be guarded",
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
                update="update it with `opencode upgrade` or through npm",
            )
        return self._version

    def check_guard(self, policy: Policy) -> None:
        """See `GuardedAgent.check_guard`."""
        self.check()
        no_plugins(Path(policy.project), self.environment)
        guard, _ = guard_of(policy, self.environment)
        try_out(guard)

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Run one session; see `LlmAgent.spawn`.

        The program names a session itself, so `session_id` has no effect; nor have `thinking`,
        `max_budget_usd` and `sandbox`. A session can be resumed in the folder where it was begun,
        and has the system prompt that is given now. `settings` are those of `opencode.json`.

        US dollars are told where OpenCode knows the prices of the model, sub-agents included.

        Without `dangerously_skip_permissions` the agent reads in its folder, and uses
        `allowed_tools` given by their bare names; all else is denied. It cannot ask the user
        questions. A session with a `guard` is held to it as `opencode.guard` tells, and ends with
        `GuardNotLive` before its first tool unless the judge has answered at its start; each call
        that is denied gives one `GuardDenied`.

        A session whose answers break off again and again, or that would wait for more than five
        minutes until its next try, is ended: the program itself would go on for ever.
        """
        return acquire_release(
            _private_folder,
            lambda folder: defer(lambda _scheduler: self._start(options, folder)),
            lambda folder: shutil.rmtree(folder, ignore_errors=True),
        )

    def _start(self, options: SpawnOptions, folder: Path) -> Observable[LlmAgentEvent]:
        self.check()
        env = {**self.environment, **options.env}
        rules: list[str] = []
        guard: Guard | None = None
        if options.guard is not None:
            guard, env = guard_of(options.guard, env)
            no_plugins(options.cwd, env)
            rules = project_rules(options.cwd)
        env = {**ENVIRONMENT, **env, "OPENCODE_PERMISSION": _NOTHING}
        drop: list[str] = []
        if OFFLINE not in env and not needs_packages(env, options.cwd):
            env[OFFLINE] = "true"
            drop.append(OFFLINE)
        if options.system_prompt is not None:
            rules = [*rules, str(_write(folder / "instructions.md", options.system_prompt))]
        source = plugin_source(self._orders(options, env, guard, drop))
        env["OPENCODE_CONFIG_CONTENT"] = config_content(
            env,
            settings=options.settings,
            plugin=_write(folder / "plugin.mjs", source),
            instructions=rules,
            mcp_servers=options.mcp_servers,
            guarded=guard is not None,
        )
        # The program believes this variable before its own folder.
        env["PWD"] = str(folder)
        return stream_json(
            self.arguments(options),
            program=self.name,
            # What lies in the project's folder could run code in the program: `bunfig.toml`.
            cwd=folder,
            env=env,
            stdin=options.prompt,
            session=partial(
                OpenCodeSession,
                servers=tuple(options.mcp_servers),
                resumed=options.resume_session_id,
                guard=OpenCodeWatch() if guard is not None else None,
            ),
        )

    def _orders(
        self, options: SpawnOptions, env: Mapping[str, str], guard: Guard | None, drop: list[str]
    ) -> dict[str, object]:
        outputs = outputs_folder(env)
        orders: dict[str, object] = {
            "cwd": str(options.cwd),
            "drop": drop,
            "outputs": outputs,
            "permission": permissions(
                unattended=options.dangerously_skip_permissions,
                allowed_tools=options.allowed_tools,
                outputs=outputs,
            ),
        }
        if guard is not None:
            held = {"judge": judge_words(guard), "token": guard.token}
            orders |= {**held, "variables": guard.policy.known()}
        return orders

    def arguments(self, options: SpawnOptions) -> list[str]:
        """The command line of a session."""
        argv = [self._path, "run", "--format", "json", f"--dir={options.cwd}"]
        if options.model is not None:
            argv.append(f"--model={options.model}")
        if options.resume_session_id is not None:
            return [*argv, f"--session={options.resume_session_id}"]
        return [*argv, f"--title={_TITLE}"]

    def interactive(self, options: InteractiveOptions) -> int:
        """Hand the terminal to the program until the person leaves it; gives its exit code.

        The system prompt goes to a private file, which is removed at the end.

        Raises:
            GuardNotLive: a policy is given, which the program cannot be held to there.
        """
        self.check()
        if options.guard is not None:
            raise GuardNotLive(_NO_TERMINAL, hint='use claude, or set "guard": "off"')
        env = {**ENVIRONMENT, **self.environment}
        if options.dangerously_skip_permissions:
            env["OPENCODE_PERMISSION"] = '{"*":"allow"}'
        if options.system_prompt is None:
            return converse([self._path], cwd=options.cwd, env=env)
        file = write_private(options.system_prompt)
        try:
            env["OPENCODE_CONFIG_CONTENT"] = with_instructions(env, [str(file)])
            return converse([self._path], cwd=options.cwd, env=env)
        finally:
            file.unlink(missing_ok=True)

    @property
    def environment(self) -> Mapping[str, str]:
        """See `InstalledAgent.environment`."""
        return os.environ if self._env is None else self._env


def _private_folder() -> Path:
    """A new folder that its user alone can read, for one session.

    Raises:
        StorageError: it cannot be made.
    """
    try:
        return Path(os.path.realpath(tempfile.mkdtemp(prefix="cuggino-")))
    except OSError as error:
        raise StorageError(
            "make private folder",
            f"no temporary folder for what the agent is told: {error.strerror or error}",
            hint="check the folder for temporary files (TMPDIR)",
        ) from error


def _write(file: Path, text: str) -> Path:
    try:
        file.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise StorageError("write private file", f"{file}: {error.strerror or error}") from error
    return file
