"""The guard of a session: its policy, and the programs that check tool calls against it."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from cuggino.errors import ConfigError, GuardNotLive
from cuggino.guard import Policy, find_shfmt, hook
from cuggino.programs import program

LEAST_BASH = 5
"""The parser reads the syntax of this version; macOS ships 3.2."""

TIMEOUT_SECONDS = 60
"""Timeout of the agent's program for one call of the hook, which ends itself earlier."""

NOT_JUDGED = (
    "The guard could not check this call, so it did not run. Try it once more; "
    "if it fails again, continue without it and mention that in your report."
)
"""Answer to the agent when the guard itself fails."""

_BASHES = ("/bin/bash", "/usr/bin/bash", "/opt/homebrew/bin/bash", "/usr/local/bin/bash")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """The guard of one session."""

    policy: Policy
    shfmt: str
    python: str
    program: str = field(default_factory=lambda: str(program("guard/hook.py")))
    """Path of the hook."""
    timeout: int = TIMEOUT_SECONDS
    """Seconds that the agent's program waits for the hook."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment of the agent's program, with the shell that the parser supports and without
    what would run before each command."""
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    """Identifies the answers of this session's hooks."""

    def orders(self) -> dict[str, str]:
        """Return what a program needs to call `hook.answer` itself."""
        return {
            "package": str(Path(self.program).parents[2]),
            "policy": self.policy.to_json(),
            "shfmt": self.shfmt,
            "token": self.token,
        }


def make_guard(policy: Policy, env: Mapping[str, str] | None = None) -> Guard:
    """Return the guard for a session with this policy; `env` is the environment of its program.

    Raises:
        GuardNotLive: the parser, or the shell it supports, is not installed.
    """
    try:
        shfmt = find_shfmt()
    except ConfigError as error:
        raise GuardNotLive(error.message, hint=error.hint) from error
    # Resolve the virtual environment's link to a file outside the project.
    python = os.path.realpath(sys.executable)
    held: dict[str, str] = {}
    if env is not None:
        held = {name: value for name, value in env.items() if name not in ("BASH_ENV", "ENV")}
        held["CLAUDE_CODE_SHELL"] = find_bash(env)
        policy = with_variables(policy, env)
    return Guard(policy=_with_own_files(policy, shfmt), shfmt=shfmt, python=python, env=held)


def with_variables(policy: Policy, env: Mapping[str, str]) -> Policy:
    """Add to the policy the variables through which commands learn about the run."""
    own = tuple(f"{name}={value}" for name, value in env.items() if name.startswith("CUGGINO_"))
    return policy._replace(variables=own)


def not_live(why: str) -> GuardNotLive:
    """Return the error that explains why no tool may be used."""
    return GuardNotLive(
        f"the guard is not live: {why}",
        hint='see what `cuggino doctor` says, or turn the guard off with "guard": "off"',
    )


def find_bash(env: Mapping[str, str]) -> str:
    """Return a bash that the parser supports: the one chosen by the environment, or any other.

    Raises:
        GuardNotLive: there is none, or only older ones.
    """
    chosen = env.get("CLAUDE_CODE_SHELL", "")
    found = [chosen] if Path(chosen).name == "bash" else []
    found += [*_BASHES, shutil.which("bash", path=env.get("PATH")) or ""]
    versions = {path: _bash_version(path) for path in dict.fromkeys(found) if path[:1] == "/"}
    for path, version in versions.items():
        if version >= LEAST_BASH:
            return path
    older = [f"{path} is version {version}" for path, version in versions.items() if version]
    raise GuardNotLive(
        f"a guarded agent needs bash {LEAST_BASH} or newer"
        + (f"; {' and '.join(older)}" if older else ""),
        hint="install it (on macOS: `brew install bash`)",
    )


@cache
def _bash_version(path: str) -> int:
    """Return its major version, 0 if it is not bash."""
    try:
        said = subprocess.run(
            [path, "--noprofile", "--norc", "-c", 'echo "${BASH_VERSINFO[0]}"'],
            env={},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=True,
        ).stdout
        return int(said)
    except (OSError, subprocess.SubprocessError, ValueError):
        return 0


def _with_own_files(policy: Policy, shfmt: str) -> Policy:
    """Protect an installation within the project too.

    An editable one is not protected: there the guard itself is being developed.
    """
    project = Path(policy.project)
    own = [Path(hook.__file__).resolve().parents[1], Path(shfmt)]
    inside = [path for path in own if path.is_relative_to(project) and not _is_editable(path)]
    more = tuple(str(path.relative_to(project)) for path in inside)
    return policy._replace(protected=policy.protected + more) if more else policy


def _is_editable(path: Path) -> bool:
    return path.is_dir() and path.parent.name not in ("site-packages", "dist-packages")
