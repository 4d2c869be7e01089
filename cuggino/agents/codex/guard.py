"""How a session of the Codex CLI is held to its policy: a hook before every call of a tool.

As seen on the real program (0.169.0): its PreToolUse hook is asked before each command, patch, call
of an MCP server and of most other tools, those of sub-agents and of code mode included, and what it
denies is not run. But Codex lets a call pass when the hook itself fails. So here:

- Every failure of ours is a plain no: a shell around the hook says it, and a hook that takes too
  long ends itself long before Codex would give it up.
- The hook stands on the command line, trusted by its hash, so there is no file of it to be edited;
  the project's own `.codex` is not read, and could not turn the hook off if it were.
- Typing into a running command, which the hook is not asked about, is turned off.
- A command that may pass is handed to the bash that it was judged for, whichever shell the model
  named, in the folder for which it was judged, which is the `workdir` that the model named.
- Before the session the program is started once, with the same hook and no model that it could
  reach, to see that it runs the hook: an organisation may forbid that, and a later version of Codex
  may not know ours by its hash.
- Verdicts are logged in a private file, which no call may write. The session ends when the hook
  did not answer at its start, and when something ran for which there is no verdict.

What is left to others, and ends the session only when it has happened: Codex must be able to start
the hook's process at all, as it lets a call pass when the system has no room for one or its folder
has just come into being; and a hook that the user has trusted may rewrite a call after ours.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cuggino.agents.codex import hook as codex_hook
from cuggino.agents.codex.config import OFF_WHEN_GUARDED, override
from cuggino.agents.failures import cut, last_lines
from cuggino.agents.guard import NOT_JUDGED, Guard, make_guard, not_live
from cuggino.agents.json_values import parse_json_line, text_or_none
from cuggino.agents.program import write_private
from cuggino.security.hook import LIVE
from cuggino.security.policy import Policy

PROTECTED = (".codex", ".agents")
"""Folders of a project in which Codex looks for settings, hooks, rules and skills."""

_EVENTS = {"SessionStart": "session_start", "PreToolUse": "pre_tool_use"}
_NOBODY = "cuggino-nobody"
_NOWHERE = "http://127.0.0.1:9/v1"
"""A port at which nobody listens."""

_TRY_SECONDS = 30
_TIMEOUT = 3600
"""Seconds that Codex gives the hook, which takes no more than ten."""

_SHELL = (
    "no=$1; log=$2; shift 2; "
    'said=$("$@" 2>/dev/null) && case $said in "{"*"}") printf "%s\\n" "$said"; exit 0 ;; esac; '
    f'printf "%s\\n" "$no" >> "$log"; printf "%s\\n" "{NOT_JUDGED}" >&2; exit 2'
)
"""Run what follows; unless it succeeds and prints an object, the answer is no, and is logged."""


@dataclass(frozen=True, kw_only=True)
class CodexGuard:
    """What holds one session to its policy."""

    guard: Guard
    log: Path
    """The private file of verdicts."""
    bash: str
    """What runs the commands that may pass."""
    env: Mapping[str, str]
    """The environment of the program."""
    servers: tuple[str, ...] = ()
    """The names of the MCP servers."""
    program: str = codex_hook.__file__

    def arguments(self, cwd: Path) -> list[str]:
        """The arguments of the session that order the hook, and what goes with it."""
        command = self.command()
        entry = {"type": "command", "command": command, "timeout": _TIMEOUT}
        words: list[str] = []
        for event in _EVENTS:
            words += override(f"hooks.{event}", [{"hooks": [entry]}])
        trusted = {
            f"/<session-flags>/config.toml:{label}:0:0": {
                "trusted_hash": _hash(label, command),
                "enabled": True,
            }
            for label in _EVENTS.values()
        }
        words += override("hooks.state", trusted)
        words += override("features.hooks", True)
        for feature in OFF_WHEN_GUARDED:
            words += override(f"features.{feature}", False)
        words += override("web_search", "disabled")
        places = {str(cwd), os.path.realpath(cwd), self.guard.policy.project, *_roots(cwd)}
        untrusted = {place: {"trust_level": "untrusted"} for place in sorted(places)}
        return [*words, *override("projects", untrusted)]

    def command(self) -> str:
        """The hook's command line, for a shell."""
        guard = self.guard
        program = [guard.python, "-I", "-S", self.program]
        own = [guard.policy.to_json(), guard.shfmt, guard.token, self.bash, str(self.log)]
        no = json.dumps({"token": guard.token, "decision": "deny", "reason": NOT_JUDGED})
        words = ["/bin/sh", "-c", _SHELL, "cuggino-guard", no, str(self.log)]
        words += [*program, *own, *self.servers]
        return f"exec {shlex.join(words)}"

    def try_out(self, program: Sequence[str], cwd: Path) -> None:
        """See that the program runs the hook at the start of a session, and that the hook lives.

        `program` is what starts it with everything but the hook. Nothing is asked of a model.

        Raises:
            GuardNotLive: it does not, or the hook does not judge as it must.
        """
        own = {"name": "none", "base_url": _NOWHERE, "wire_api": "responses"}
        ends = {"request_max_retries": 0, "stream_max_retries": 0}
        words = [*program, "--ephemeral", *self.arguments(cwd)]
        words += override("model_provider", _NOBODY)
        words += override("model_providers", {_NOBODY: own | ends})
        env = {name: text for name, text in self.env.items() if not name.lower().endswith("_proxy")}
        try:
            done = subprocess.run(
                [*words, "-"],
                input=b"Nobody reads this.",
                cwd=cwd,
                env=env,
                capture_output=True,
                timeout=_TRY_SECONDS,
                check=False,
            )
            told = [parse_json_line(line) or {} for line in self.log.read_bytes().splitlines()]
            self.log.write_bytes(b"")
        except (OSError, subprocess.SubprocessError) as error:
            raise not_live(f"it could not be tried out: {error}") from error
        canaries = [text_or_none(own.get("canary")) for own in told if "canary" in own]
        if canaries != [LIVE]:
            said = last_lines(done.stderr.decode("utf-8", "replace"))
            why = next((text for text in canaries if text), f"Codex did not run its hook: {said}")
            raise not_live(cut(why))


def make_codex_guard(
    policy: Policy, env: Mapping[str, str], *, servers: tuple[str, ...] = ()
) -> CodexGuard:
    """The guard for a session with this policy, with a new file of verdicts.

    Raises:
        GuardNotLive: the parser, or the shell that it understands, is not installed.
        StorageError: there is no place for the file of verdicts.
    """
    more = tuple(name for name in PROTECTED if name not in policy.protected)
    log = write_private("", suffix=".log")
    try:
        # Its name is its own, so it is protected wherever a file of that name may be.
        guard = make_guard(policy._replace(protected=(*policy.protected, *more, log.name)), env)
    except BaseException:
        log.unlink(missing_ok=True)
        raise
    held = {name: value for name, value in guard.env.items() if name != "CLAUDE_CODE_SHELL"}
    bash = guard.env["CLAUDE_CODE_SHELL"]
    return CodexGuard(guard=guard, log=log, bash=bash, env=held, servers=servers)


def _hash(label: str, command: str, timeout: int = _TIMEOUT) -> str:
    """What Codex knows a trusted hook by: the digest of its own form of it."""
    hook = {"async": False, "command": command, "timeout": timeout, "type": "command"}
    form = json.dumps(
        {"event_name": label, "hooks": [hook]},
        ensure_ascii=False,
        sort_keys=True,
        separators=(",", ":"),
    )
    return f"sha256:{hashlib.sha256(form.encode()).hexdigest()}"


def _roots(cwd: Path) -> list[str]:
    """The folders above that hold a repository, whose settings would count too."""
    real = Path(os.path.realpath(cwd))
    roots = [folder for folder in (real, *real.parents) if (folder / ".git").exists()]
    for file in [root / ".git" for root in roots]:
        with suppress(OSError, ValueError, IndexError):
            # A linked worktree; what counts is the folder of the repository itself.
            place = file.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
            roots.append(Path(place).parents[2])
    return [str(root) for root in roots]
