"""The guard of a session: its policy, and the programs that check tool calls against it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from cuggino.agents.base.calls import LIVE, Orders
from cuggino.errors import ConfigError, GuardNotLive, ProcessError
from cuggino.guard import Policy, find_shfmt
from cuggino.processes import run_bounded
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

ATTENDED = "This session is read-only: nobody is there to ask. Mention that in your report."
"""Answer to the agent when only a person could allow a call."""

NOT_RUN = "its program could not be run"
"""The canary of a hook that does not answer."""

_PROGRAM = "agents/base/hook.py"

_SHELL = (
    "no=$1; own=$2; log=$3; shift 3; "
    'said=$("$@" 2>/dev/null) && case $said in "{"*"}") ;; *) false ;; esac || '
    '{ said=$no; if [ "$log" ]; then printf "%s\\n" "$own" >> "$log"; fi; }; '
    'printf "%s\\n" "$said"'
)
"""Run the remaining arguments; unless they print an object, print the first argument, and append
the second one to the log."""

_BASHES = ("/bin/bash", "/usr/bin/bash", "/opt/homebrew/bin/bash", "/usr/local/bin/bash")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """The guard of one session."""

    policy: Policy
    shfmt: str
    python: str
    program: str = field(default_factory=lambda: str(program(_PROGRAM)))
    """Path of the hook."""
    timeout: int = TIMEOUT_SECONDS
    """Seconds that the agent's program waits for the hook."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment of the agent's program, with the shell that the parser supports and without
    what would run before each command."""
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    """Identifies the answers of this session's hooks."""

    @property
    def judge(self) -> Orders:
        """What is needed to judge calls in this process."""
        return Orders(self.policy, self.shfmt, self.token)

    def orders(self) -> dict[str, str]:
        """Return what a program needs to judge calls itself."""
        return {
            "package": self.program.removesuffix(f"/cuggino/{_PROGRAM}"),
            "policy": self.policy.to_json(),
            "shfmt": self.shfmt,
            "token": self.token,
        }

    def hook_command(self, agent: str, *, log: Path | None = None, **settings: object) -> list[str]:
        """Return the command line of the hook for this agent, with the `settings` of its adapter.

        The orders are on the command line, so that there is no file to edit.
        """
        adapter = f"cuggino.agents.{agent}.hook"
        given = {"adapter": adapter, "log": str(log or ""), "settings": settings}
        given |= self.orders()
        return [self.python, "-I", "-S", self.program, json.dumps(given)]

    def or_refusal(
        self, command: Sequence[str], refusal: Mapping[str, Any], *, log: Path | None = None
    ) -> list[str]:
        """Return a command that runs the hook, and prints the refusal if that fails in any way.

        The log gets a denial then.
        """
        own = {"token": self.token, "decision": "deny", "reason": NOT_JUDGED}
        words = [json.dumps(refusal), json.dumps(own), str(log or "")]
        return ["/bin/sh", "-c", _SHELL, "cuggino-guard", *words, *command]


def try_out(answers: Callable[[], Iterable[Mapping[str, Any]]]) -> None:
    """Check that the hook answers one trial call with an approval and another with a denial.

    `answers` asks the hook, and returns the verdicts that it gave, or the canary among them.

    Raises:
        GuardNotLive: it does not answer, or answers wrongly.
    """
    try:
        canaries = [str(own["canary"]) for own in answers() if "canary" in own]
    except (OSError, ProcessError, ValueError, LookupError, TypeError) as error:
        raise not_live(f"{NOT_RUN}: {error}") from error
    if wrong := [canary for canary in canaries or [NOT_RUN] if canary != LIVE]:
        raise not_live(wrong[0])


def try_in_process(guard: Guard) -> None:
    """Check a guard whose calls are judged by this process; its agent has loaded all rules.

    Raises:
        GuardNotLive: it judges wrongly.
    """
    try_out(lambda: [guard.judge.canary()])


def ask_hook(
    command: Sequence[str],
    data: Mapping[str, object],
    *,
    seconds: float,
    env: Mapping[str, str] | None = None,
) -> bytes:
    """Run the hook on this input, and return what it prints.

    Raises:
        ProcessError: it cannot be started, failed, or did not end in time.
    """
    done = run_bounded(command, seconds=seconds, env=env, stdin=json.dumps(data).encode())
    return done.checked(command[0]).output


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
        asks = (path, "--noprofile", "--norc", "-c", 'echo "${BASH_VERSINFO[0]}"')
        return int(run_bounded(asks, seconds=60, env={}).checked(path).output)
    except (ProcessError, ValueError):
        return 0


def _with_own_files(policy: Policy, shfmt: str) -> Policy:
    """Protect an installation within the project too.

    An editable one is not protected: there the guard itself is being developed.
    """
    project = Path(policy.project)
    own = [Path(__file__).resolve().parents[2], Path(shfmt)]
    inside = [path for path in own if path.is_relative_to(project) and not _is_editable(path)]
    more = tuple(str(path.relative_to(project)) for path in inside)
    return policy._replace(protected=policy.protected + more) if more else policy


def _is_editable(path: Path) -> bool:
    return path.is_dir() and path.parent.name not in ("site-packages", "dist-packages")
