"""OpenCode, driven through its `opencode` program."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from cuggino.agents.base.agent import Capabilities, InteractiveOptions, SpawnOptions
from cuggino.agents.base.guard import Guard
from cuggino.agents.base.private_files import private_file, private_folder
from cuggino.agents.base.program import Launch, ProgramAgent
from cuggino.agents.base.watch import Watch
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
    guard_of,
    hook_command,
    no_plugins,
    project_rules,
    try_hook,
)
from cuggino.agents.opencode.plugin import plugin_source
from cuggino.agents.opencode.wire import OpenCodeSession
from cuggino.errors import StorageError
from cuggino.guard import Policy
from cuggino.sandbox import home_of

_FOLDERS = {
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
}
"""Folders in which the program keeps its own; its configuration stays as it is."""

_TITLE = "cuggino"
"""A session without a title asks the model for one."""

_NOTHING = '{"*":"deny"}'
"""No permission: our plugin grants them (see `opencode.plugin`)."""


class OpenCodeAgent(ProgramAgent):
    """The installed OpenCode CLI, with the user's own configuration and logins.

    The program names a session itself, so `session_id` has no effect; neither have `thinking`,
    `max_budget_usd` and `sandbox`. A session can be resumed in the folder where it was started, and
    has the system prompt of the new options. `settings` are those of `opencode.json`; Claude
    Code's `permissions` and `hooks` are left out.

    US dollars are reported where OpenCode knows the prices of the model, including sub-agents.

    Without `dangerously_skip_permissions` the agent reads in its folder, and uses `allowed_tools`
    given by their bare names; everything else is denied. It cannot ask the user questions. A
    session with a `guard` is enforced as described in `opencode.guard`, and ends with
    `GuardNotLive` before its first tool unless the hook answered at its start; each denied call
    emits one `GuardDenied`.

    A session is ended if its answers keep breaking off, or if it would wait more than five minutes
    before its next attempt: the program itself would continue indefinitely.
    """

    name = "opencode"
    command = "opencode"
    package = "opencode-ai"
    minimum_version = (1, 18, 33)
    update_hint = "update it with `opencode upgrade` or through npm"
    unguarded_terminal = "OpenCode cannot be guarded in its own terminal"

    settings = ("bin",)

    capabilities = Capabilities(
        guard="calls",
        mcp=True,
        resume=True,
        cost="dollars",
        view=True,
        deltas=True,
        interactive=True,
        note="a guarded session leaves out the project's OpenCode configuration, refuses its "
        "plugins and trusts the user's; one in its own terminal cannot be guarded",
    )

    def state_folders(self, env: Mapping[str, str]) -> list[Path]:
        home = home_of(env) or Path("/nowhere")
        return [
            Path(env.get(variable) or home / folder) / "opencode"
            for variable, folder in _FOLDERS.items()
        ]

    def check_guard(self, policy: Policy) -> None:
        self.check()
        no_plugins(Path(policy.project), self.environment)
        guard, _ = guard_of(policy, self.environment)
        try_hook(guard)

    def launch(self, options: SpawnOptions, stack: ExitStack) -> Launch:
        folder = private_folder(stack)
        env = options.environment(self.environment)
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
        # The program trusts this variable more than its actual folder.
        env["PWD"] = str(folder)
        return Launch(
            argv=self.arguments(options),
            env=env,
            # Files in the project's folder, such as `bunfig.toml`, could run code in the program.
            cwd=folder,
            stdin=options.prompt,
            reader=partial(
                OpenCodeSession,
                servers=tuple(options.mcp_servers),
                resumed=options.resume_session_id,
                watch=Watch() if guard is not None else None,
            ),
        )

    def _orders(
        self, options: SpawnOptions, env: Mapping[str, str], guard: Guard | None, drop: list[str]
    ) -> dict[str, object]:
        outputs = outputs_folder(env)
        orders: dict[str, object] = {
            "cwd": str(options.cwd),
            "drop": drop,
            "permission": permissions(
                unattended=options.dangerously_skip_permissions,
                allowed_tools=options.allowed_tools,
                outputs=outputs,
            ),
        }
        if guard is not None:
            held = {"judge": hook_command(guard, outputs), "token": guard.token}
            orders |= {**held, "variables": guard.policy.known()}
        return orders

    def arguments(self, options: SpawnOptions) -> list[str]:
        """Return the command line of a session."""
        argv = [self.program, "run", "--format", "json", f"--dir={options.cwd}"]
        if options.model is not None:
            argv.append(f"--model={options.model}")
        if options.resume_session_id is not None:
            return [*argv, f"--session={options.resume_session_id}"]
        return [*argv, f"--title={_TITLE}"]

    def _terminal(
        self, options: InteractiveOptions, stack: ExitStack
    ) -> tuple[list[str], Mapping[str, str]]:
        env = {**ENVIRONMENT, **self.environment}
        if options.dangerously_skip_permissions:
            env["OPENCODE_PERMISSION"] = '{"*":"allow"}'
        if options.system_prompt is not None:
            file = private_file(options.system_prompt, stack)
            env["OPENCODE_CONFIG_CONTENT"] = with_instructions(env, [str(file)])
        return [self.program], env


def _write(file: Path, text: str) -> Path:
    try:
        file.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise StorageError("write private file", f"{file}: {error.strerror or error}") from error
    return file
