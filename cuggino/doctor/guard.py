"""Checks of the guard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from cuggino.agents import find_bash, make_agent
from cuggino.config import CONFIG_FILE, Config, configured_policy
from cuggino.doctor.result import CheckResult
from cuggino.doctor.sandbox import boundary_here
from cuggino.errors import CugginoError
from cuggino.guard import find_shfmt

_TURN_OFF = f'set "guard" to "off" in {CONFIG_FILE}'
_ASKED = "other calls are checked after they ran; a sandbox would confine them"
HONEST = "advice only: what a script does is not checked; that is for the sandbox"
"""The hint of a working guard: it is not a security boundary."""


def guard(
    name: str, *, folder: Path, config: Config, env: Mapping[str, str]
) -> Iterator[CheckResult]:
    """Check that the guard works for an installed agent: parser, shell, version, one trial call."""
    if config.guard == "off":
        what = "guard: off, an agent may do whatever you may"
        yield CheckResult("note", what, f'set "guard" to "roles" in {CONFIG_FILE}')
        return

    agent = make_agent(name, cwd=folder, path=config.agent_path)
    if agent.capabilities.guard == "none":
        yield CheckResult(
            "problem",
            f"guard: {name} is unguarded, nothing would limit it to its role",
            f"use claude, or {_TURN_OFF}",
        )
        return
    is_asked = agent.capabilities.guard == "asked"
    is_confined = boundary_here(folder, config, env).holds("implementing")
    try:
        shfmt, bash = find_shfmt(), find_bash(env)
        # Codex starts for it, in a folder that can configure nothing.
        with TemporaryDirectory(prefix="cuggino-session-empty-") as empty:
            # An agent that is asked starts nothing; without a sandbox, the project counts.
            here = is_asked and not is_confined
            project = folder.resolve() if here else Path(empty).resolve()
            agent.check_guard(
                configured_policy(config, "implementing", project=project, level=config.guard)
            )
    except CugginoError as error:
        hint = error.hint or _TURN_OFF
        if '"guard"' not in hint:
            hint += f", or {_TURN_OFF}"
        yield CheckResult("problem", f"guard: {error.message}", hint)
        return
    if is_asked and not is_confined:
        what = f"guard: {config.guard}, but only for the calls that {name} asks about"
        yield CheckResult("note", what, _ASKED)
        return
    yield CheckResult("ok", f"guard: {config.guard} ({shfmt}, {bash})", HONEST)
