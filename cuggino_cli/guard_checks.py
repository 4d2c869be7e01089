"""What `cuggino doctor` says of the guard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cuggino.config import CONFIG_FILE, Config, configured_policy
from cuggino.errors import CugginoError
from cuggino_cli.finding import Finding

if TYPE_CHECKING:
    from cuggino.agents import LlmAgent

_TURN_OFF = f'set "guard" to "off" in {CONFIG_FILE}'
HONEST = "a seat belt: what an allowed interpreter does it cannot see, for that use a sandbox"
"""What is said when all is well, so that nobody takes the guard for more than it is."""


def guard(name: str, *, folder: Path, config: Config, env: Mapping[str, str]) -> Iterator[Finding]:
    """Whether the agent can be held to its policy: parser, shell, version, and one try.

    Args:
        name: the agent, which is there.
        env: the environment that it would get.
    """
    if config.guard == "off":
        what = "guard: off, an agent may do whatever you may"
        yield Finding("note", what, f'set "guard" to "roles" in {CONFIG_FILE}')
        return
    from cuggino.agents import GuardedAgent, make_agent
    from cuggino.agents.guard import find_bash
    from cuggino.security.shell.shfmt import find_shfmt

    agent = make_agent(name, cwd=folder, path=config.agent_path)
    if not isinstance(agent, GuardedAgent):
        yield Finding(
            "problem",
            f"guard: there is none for {name}: nothing would hold it to its role",
            f"use claude, or {_TURN_OFF}",
        )
        return
    try:
        shfmt, bash = find_shfmt(), find_bash(env)
        policy = configured_policy(config, "implementing", project=folder, level=config.guard)
        agent.check_guard(policy)
    except CugginoError as error:
        hint = error.hint or _TURN_OFF
        if '"guard"' not in hint:
            hint += f", or {_TURN_OFF}"
        yield Finding("problem", f"guard: {error.message}", hint)
        return
    yield Finding("ok", f"guard: {config.guard} ({shfmt}, {bash})", HONEST)
    yield _sandbox(agent, config, env)


def _sandbox(agent: LlmAgent, config: Config, env: Mapping[str, str]) -> Finding:
    """Whether the system holds what commands do, besides the guard, which reads what they say."""
    from cuggino.agents import SandboxedAgent
    from cuggino.security.sandbox import NO_SANDBOX, sandbox_mode

    open_air = "commands run in the open, and the guard alone looks"
    if sandbox_mode(no_sandbox=False, env=env).is_disabled:
        return Finding("note", f"sandbox: off, by {NO_SANDBOX}", open_air)
    if not config.sandbox:
        return Finding("note", f'sandbox: off, by "sandbox" in {CONFIG_FILE}', open_air)
    if not isinstance(agent, SandboxedAgent):
        return Finding("note", f"sandbox: {agent.name} has none", open_air)
    if why := agent.sandbox_unavailable():
        return Finding("note", f"sandbox: none here, {why}", open_air)
    more = f" and {len(config.sandbox_domains)} of yours" if config.sandbox_domains else ""
    what = "commands write in the project and in caches, and connect to package registries"
    return Finding("ok", f"sandbox: on ({what}{more})")
