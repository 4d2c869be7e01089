"""Checks of the guard and the sandbox."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from cuggino.config import CONFIG_FILE, Config, configured_policy
from cuggino.doctor.result import CheckResult
from cuggino.errors import CugginoError

if TYPE_CHECKING:
    from cuggino.agents import LlmAgent

_TURN_OFF = f'set "guard" to "off" in {CONFIG_FILE}'
HONEST = "a seat belt: what an allowed interpreter does it cannot see, for that use a sandbox"
"""The hint of a working guard: it is not a security boundary."""


def guard(
    name: str, *, folder: Path, config: Config, env: Mapping[str, str]
) -> Iterator[CheckResult]:
    """Check that the guard works for an installed agent: parser, shell, version, one trial call."""
    if config.guard == "off":
        what = "guard: off, an agent may do whatever you may"
        yield CheckResult("note", what, f'set "guard" to "roles" in {CONFIG_FILE}')
        return
    from cuggino.agents import find_bash, make_agent
    from cuggino.guard import find_shfmt

    agent = make_agent(name, cwd=folder, path=config.agent_path)
    if agent.capabilities.guard == "none":
        yield CheckResult(
            "problem",
            f"guard: {name} is unguarded, nothing would limit it to its role",
            f"use claude, or {_TURN_OFF}",
        )
        return
    try:
        shfmt, bash = find_shfmt(), find_bash(env)
        # Codex starts for it, in a folder that can configure nothing.
        with TemporaryDirectory(prefix="cuggino-") as empty:
            project = Path(empty).resolve()
            agent.check_guard(
                configured_policy(config, "implementing", project=project, level=config.guard)
            )
    except CugginoError as error:
        hint = error.hint or _TURN_OFF
        if '"guard"' not in hint:
            hint += f", or {_TURN_OFF}"
        yield CheckResult("problem", f"guard: {error.message}", hint)
        return
    yield CheckResult("ok", f"guard: {config.guard} ({shfmt}, {bash})", HONEST)
    yield _sandbox(agent, config, env)


def _sandbox(agent: LlmAgent, config: Config, env: Mapping[str, str]) -> CheckResult:
    """Check that the agent's commands run in a sandbox."""
    from cuggino.guard import NO_SANDBOX, sandbox_mode

    open_air = "commands run unsandboxed, checked by the guard alone"
    if sandbox_mode(no_sandbox=False, env=env).is_disabled:
        return CheckResult("note", f"sandbox: off, by {NO_SANDBOX}", open_air)
    if config.sandbox == "off":
        return CheckResult("note", f'sandbox: off, by "sandbox" in {CONFIG_FILE}', open_air)
    if not agent.capabilities.sandbox:
        return CheckResult("note", f"sandbox: {agent.name} has none", open_air)
    if why := agent.sandbox_unavailable():
        return CheckResult("note", f"sandbox: none here, {why}", open_air)
    more = f" and {len(config.sandbox_domains)} of yours" if config.sandbox_domains else ""
    what = "commands write in the project and in caches, and connect to package registries"
    return CheckResult("ok", f"sandbox: on ({what}{more})")
