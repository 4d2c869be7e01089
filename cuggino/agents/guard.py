"""The guard around a Claude Code session: the settings and the environment that hold it.

Every tool call is judged by `cuggino.security.hook`, which the program runs as a PreToolUse hook.
That holds in sub-agents and for MCP, and it is closed twice over, as seen on the real program:

- The hook says `allow` itself and the session is not run with --dangerously-skip-permissions but
  in the default mode, in which nobody is there to ask: a hook that is silent, killed, slow, gone
  or talking nonsense leaves a call that needs permission without it, so it is denied. What the
  program asks about all the same (`.vscode`, `.npmrc`, `.git`, ...) goes to the same judge as a
  PermissionRequest. The mode `dontAsk` would deny those, whatever the guard says; that of the
  flag runs everything when the hook fails without an error.
- `onFailure: block`, and a shell around the hook that turns every failure into a plain no.

The policy stands on the hook's command line, so there is no file of it that could be edited, and
`disableAllHooks: false` beats the same key in the project's settings, at the start and later. The
project's and the user's other settings stay in force: their CLAUDE.md, hooks, skills and rules.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from cuggino.errors import ConfigError, GuardNotLive
from cuggino.security import hook
from cuggino.security.policy import Policy
from cuggino.security.shell.shfmt import find_shfmt

LEAST_VERSION = (2, 1, 295)
"""The first version of Claude Code that knows `onFailure`."""

LEAST_BASH = 5
"""What the parser reads as bash is what this version runs; macOS has 3.2."""

TIMEOUT_SECONDS = 10
"""Of the agent's program for one call of the hook, which ends itself before."""

NOT_JUDGED = (
    "The guard could not judge this call, so it was not run. Try it once more; "
    "if it fails again, go on without it and say so in your report."
)
"""What the agent is told when the guard itself has failed."""

_NOT_RUN = "its program could not be run"
_SHELL = (
    "no=$1; shift; "
    'said=$("$@") && case $said in "{"*"}") ;; *) false ;; esac || said=$no; '
    "printf '%s\\n' \"$said\""
)
"""Run what follows; unless it succeeds and prints an object, print the first argument instead."""

_PINNED = (
    *("CLAUDE_CODE_SHELL", "BASH_ENV"),
    *("LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES"),
)
"""Variables by which a project's settings could change what runs in or around a judged command."""

_BASHES = ("/bin/bash", "/usr/bin/bash", "/opt/homebrew/bin/bash", "/usr/local/bin/bash")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """What holds one session to its policy."""

    policy: Policy
    shfmt: str
    python: str
    program: str = hook.__file__
    """The hook."""
    timeout: int = TIMEOUT_SECONDS
    """Seconds that the agent's program gives it."""
    env: Mapping[str, str] = field(default_factory=dict)
    """The environment of the agent's program: with the shell that the parser understands, and
    without what is run in front of each command."""
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    """By which the answers of this session's hooks are known."""

    def settings(
        self, given: Mapping[str, object] | None = None, *, manner: hook.Manner
    ) -> dict[str, Any]:
        """The settings of the session: those given, in which nothing can loosen the guard.

        One bad value makes the program drop all of it in silence: the canary tells.
        """
        settings: dict[str, Any] = dict(given or {})
        hooks = settings.get("hooks")
        hooks = dict(hooks) if isinstance(hooks, dict) else {}
        events = ["SessionStart", "PreToolUse"]
        if manner == "allow":
            events.append("PermissionRequest")
        for event in events:
            others = hooks.get(event)
            # Without a matcher it is asked about all tools.
            mine = [{"hooks": [self._entry(event, manner)]}]
            hooks[event] = mine + (others if isinstance(others, list) else [])
        sandbox = settings.get("sandbox")
        if isinstance(sandbox, dict):
            # It would let a command run that the guard has not answered for.
            settings["sandbox"] = {**sandbox, "autoAllowBashIfSandboxed": False}
        env = settings.get("env")
        env = dict(env) if isinstance(env, dict) else {}
        env |= {name: self.env.get(name, "") for name in _PINNED} | self.policy.known()
        return {**settings, "disableAllHooks": False, "hooks": hooks, "env": env}

    def try_out(self) -> None:
        """Run the hook as the agent's program will, and see it say yes and no.

        Raises:
            GuardNotLive: it does not answer, or answers wrongly.
        """
        command = self._entry("SessionStart", "allow")
        data = {"hook_event_name": "SessionStart", "cwd": self.policy.project}
        try:
            said = subprocess.run(
                [command["command"], *command["args"]],
                input=json.dumps(data).encode(),
                capture_output=True,
                timeout=self.timeout,
                check=True,
            ).stdout
            canary = json.loads(said)["cuggino"]["canary"]
        except (OSError, subprocess.SubprocessError, ValueError, LookupError) as error:
            raise not_live(f"{_NOT_RUN}: {error}") from error
        if canary != hook.LIVE:
            raise not_live(str(canary))

    def orders(self) -> dict[str, str]:
        """What a program needs that asks `hook.answer` itself."""
        return {
            "package": str(Path(self.program).parents[2]),
            "policy": self.policy.to_json(),
            "shfmt": self.shfmt,
            "token": self.token,
        }

    def _entry(self, event: str, manner: hook.Manner) -> dict[str, Any]:
        why = _NOT_RUN if event == "SessionStart" else NOT_JUDGED
        no = hook.refusal(event, why, token=self.token)
        program = [self.python, "-I", "-S", self.program]
        words = [self.policy.to_json(), self.shfmt, self.token, manner]
        return {
            "type": "command",
            "command": "/bin/sh",
            "args": ["-c", _SHELL, "cuggino-guard", json.dumps(no), *program, *words],
            "timeout": self.timeout,
            "onFailure": "block",
        }


def make_guard(policy: Policy, env: Mapping[str, str] | None = None) -> Guard:
    """The guard for a session with this policy; `env` is the environment of its program.

    Raises:
        GuardNotLive: the parser, or the shell that it understands, is not installed.
    """
    try:
        shfmt = find_shfmt()
    except ConfigError as error:
        raise GuardNotLive(error.message, hint=error.hint) from error
    # What a project's virtual environment links to lies outside of the project.
    python = os.path.realpath(sys.executable)
    held: dict[str, str] = {}
    if env is not None:
        held = {name: value for name, value in env.items() if name not in ("BASH_ENV", "ENV")}
        held["CLAUDE_CODE_SHELL"] = find_bash(env)
        policy = with_variables(policy, env)
    return Guard(policy=_with_own_files(policy, shfmt), shfmt=shfmt, python=python, env=held)


def with_variables(policy: Policy, env: Mapping[str, str]) -> Policy:
    """The policy, with what commands find in their environment about the run."""
    own = tuple(f"{name}={value}" for name, value in env.items() if name.startswith("CUGGINO_"))
    return policy._replace(variables=own)


def not_live(why: str) -> GuardNotLive:
    """The error that says why no tool may be used."""
    return GuardNotLive(
        f"the guard is not live: {why}",
        hint='see what `cuggino doctor` says, or turn the guard off with "guard": "off"',
    )


def find_bash(env: Mapping[str, str]) -> str:
    """A bash that runs what the parser reads: the one that is chosen by the environment, or any.

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
    """Its major version, 0 when it is no bash."""
    try:
        said = subprocess.run(
            [path, "--noprofile", "--norc", "-c", 'echo "${BASH_VERSINFO[0]}"'],
            env={},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
            check=True,
        ).stdout
        return int(said)
    except (OSError, subprocess.SubprocessError, ValueError):
        return 0


def _with_own_files(policy: Policy, shfmt: str) -> Policy:
    """The policy, in which an installation within the project is protected too.

    An editable one is not: there the guard is what is worked at.
    """
    project = Path(policy.project)
    own = [Path(hook.__file__).resolve().parents[1], Path(shfmt)]
    inside = [path for path in own if path.is_relative_to(project) and not _is_editable(path)]
    more = tuple(str(path.relative_to(project)) for path in inside)
    return policy._replace(protected=policy.protected + more) if more else policy


def _is_editable(path: Path) -> bool:
    return path.is_dir() and path.parent.name not in ("site-packages", "dist-packages")
