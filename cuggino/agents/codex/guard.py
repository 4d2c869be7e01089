"""The guard of a Codex CLI session: a hook before every tool call, and the watch over it.

As observed with the real program (0.169.0), its PreToolUse hook runs before each command, patch,
MCP call and most other tools, including those of sub-agents and of code mode, and a denied call
does not run. But Codex allows a call if the hook itself fails. Therefore:

- Any failure of ours is a denial: a shell around the hook prints it, and a hook that takes too long
  ends itself long before Codex would give up on it.
- The hook is on the command line, trusted by its hash, so there is no hook file to edit. The
  project's own `.codex` is not read, and could not disable the hook if it were.
- Typing into a running command, which bypasses the hook, is turned off.
- An allowed command runs in the bash it was checked for, whichever shell the model named, and in
  the folder it was checked for: the `workdir` named by the model.
- Before the session the program is started once, with the same hook and no reachable model, to
  verify that it runs the hook: an organization may forbid hooks, and a later version of Codex may
  compute other hashes.
- Verdicts are logged in a private file, which no call may write. The session ends if the hook did
  not answer at its start, or something ran without a verdict.

Two risks remain, and end the session only afterwards: Codex must be able to start the hook's
process, as it allows a call when the system cannot; and a hook that the user has trusted may
rewrite a call after ours.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from cuggino.agents.base.failure import cut, last_lines
from cuggino.agents.base.guard import NOT_JUDGED, Guard, make_guard, not_live
from cuggino.agents.base.private_files import private_file
from cuggino.agents.base.wire import (
    Json,
    dict_or_empty,
    parse_json_line,
    shown,
    text_or_none,
)
from cuggino.agents.codex import hook as codex_hook
from cuggino.agents.codex.config import OFF_WHEN_GUARDED, override
from cuggino.agents.codex.tools import command_of, shell_words
from cuggino.errors import GuardNotLive
from cuggino.events import GuardDenied, LlmAgentEvent, ToolCall, ToolResult
from cuggino.guard import Policy
from cuggino.guard.hook import LIVE
from cuggino.programs import program

PROTECTED = (".codex", ".agents")
"""Project folders in which Codex looks for settings, hooks, rules and skills."""

_EVENTS = {"SessionStart": "session_start", "PreToolUse": "pre_tool_use"}
_NOBODY = "cuggino-nobody"
_NOWHERE = "http://127.0.0.1:9/v1"
"""A port that nothing listens on."""

_TRY_SECONDS = 120
_TIMEOUT = 3600
"""Timeout of Codex for the hook, which ends itself earlier."""

_SHELL = (
    "no=$1; log=$2; shift 2; "
    'said=$("$@" 2>/dev/null) && case $said in "{"*"}") printf "%s\\n" "$said"; exit 0 ;; esac; '
    f'printf "%s\\n" "$no" >> "$log"; printf "%s\\n" "{NOT_JUDGED}" >&2; exit 2'
)
"""Run the remaining arguments; unless they print an object, deny the call and log that."""


@dataclass(frozen=True, kw_only=True)
class CodexGuard:
    """The guard of one session."""

    guard: Guard
    log: Path
    """The private log of verdicts."""
    bash: str
    """The shell for allowed commands."""
    env: Mapping[str, str]
    """Environment of the program."""
    servers: tuple[str, ...] = ()
    """Names of the MCP servers."""
    program: str = field(default_factory=lambda: str(program("agents/codex/hook.py")))

    def arguments(self, cwd: Path) -> list[str]:
        """Return the arguments that install the hook and everything it needs."""
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
        """Return the hook's command line for a shell."""
        guard = self.guard
        program = [guard.python, "-I", "-S", self.program]
        own = [guard.policy.to_json(), guard.shfmt, guard.token, self.bash, str(self.log)]
        no = json.dumps({"token": guard.token, "decision": "deny", "reason": NOT_JUDGED})
        words = ["/bin/sh", "-c", _SHELL, "cuggino-guard", no, str(self.log)]
        words += [*program, *own, *self.servers]
        return f"exec {shlex.join(words)}"

    def try_out(self, program: Sequence[str], cwd: Path) -> None:
        """Verify that the program runs the hook at its start, and that the hook is live.

        `program` starts it with everything but the hook. No model is asked.

        Raises:
            GuardNotLive: the hook does not run, or answers wrongly.
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
    policy: Policy, env: Mapping[str, str], stack: ExitStack, *, servers: tuple[str, ...] = ()
) -> CodexGuard:
    """Return the guard for a session with this policy; the stack removes its log of verdicts.

    Raises:
        GuardNotLive: the parser, or the shell it supports, is not installed.
        StorageError: the log cannot be created.
    """
    more = tuple(name for name in PROTECTED if name not in policy.protected)
    log = private_file("", stack, suffix=".log", is_written=True)
    # Its name is unique, so files of that name are protected anywhere.
    guard = make_guard(policy._replace(protected=(*policy.protected, *more, log.name)), env)
    held = {name: value for name, value in guard.env.items() if name != "CLAUDE_CODE_SHELL"}
    bash = guard.env["CLAUDE_CODE_SHELL"]
    return CodexGuard(guard=guard, log=log, bash=bash, env=held, servers=servers)


def _hash(label: str, command: str, timeout: int = _TIMEOUT) -> str:
    """Return the hash by which Codex trusts a hook: the digest of its canonical form."""
    hook = {"async": False, "command": command, "timeout": timeout, "type": "command"}
    form = json.dumps(
        {"event_name": label, "hooks": [hook]},
        ensure_ascii=False,
        sort_keys=True,
        separators=(",", ":"),
    )
    return f"sha256:{hashlib.sha256(form.encode()).hexdigest()}"


def _roots(cwd: Path) -> list[str]:
    """Return the enclosing repositories, whose settings would apply too."""
    real = Path(os.path.realpath(cwd))
    roots = [folder for folder in (real, *real.parents) if (folder / ".git").exists()]
    for file in [root / ".git" for root in roots]:
        with suppress(OSError, ValueError, IndexError):
            # In a linked worktree, the folder of the repository itself counts.
            place = file.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
            roots.append(Path(place).parents[2])
    return [str(root) for root in roots]


class CodexWatch:
    """The fold over the verdicts and lines of one guarded session.

    `breach` is set when the session must end: the hook was not live at the start, or something ran
    without a verdict.
    """

    def __init__(self, guard: CodexGuard) -> None:
        self._guard = guard
        self._at = 0
        self._unjudged = 0
        self._is_live = False
        self._commands: set[tuple[str, str]] = set()
        self._files: set[str] = set()
        self._tools: set[str] = set()
        self.breach: GuardNotLive | None = None

    def poll(self) -> list[LlmAgentEvent]:
        """Return the calls denied since the last poll, each with its reason as its result."""
        events: list[LlmAgentEvent] = []
        for line in self._lines():
            own = parse_json_line(line) or {}
            if own.get("token") != self._guard.guard.token:
                continue
            if "canary" in own:
                self._is_live = self._is_live or own["canary"] == LIVE
                if own["canary"] != LIVE:
                    self._break(str(own["canary"]))
            elif own.get("decision") == "allow":
                self._allowed(own)
            else:
                events += self._denied(own)
        return events

    def see(self, item: Json) -> None:
        """Check an item that reports that something runs or has run; sets `breach`."""
        kind = item.get("type")
        if kind == "error":
            return
        if not self._is_live:
            self._break("the agent's program did not run its hook at the start")
        match kind:
            case "command_execution":
                if self._judged(item) not in self._commands:
                    self._break("Bash was used without its verdict")
            case "file_change":
                changes = item.get("changes")
                for change in changes if isinstance(changes, list) else []:
                    path = text_or_none(dict_or_empty(change).get("path")) or ""
                    if _real(path) not in self._files:
                        self._break(f"{path} was changed without a verdict")
            case "mcp_tool_call":
                tool = str(item.get("tool"))
                name = f"mcp__{item.get('server')}__{tool}"
                own = codex_hook.common_call(tool, {}).tool if item.get("server") == "codex" else ""
                if _plain(name) not in self._tools and own not in self._tools:
                    self._break(f"{name} was used without its verdict")
            case _:
                pass

    def ends(self) -> None:
        """Check the end of the session, which may have had no items."""
        self.see({"type": "end"})

    def judged_command(self, item: Json) -> str | None:
        """Return the command as it was checked, or None if the hook did not wrap it."""
        judged = self._judged(item)
        return judged[1] if judged is not None else None

    def _judged(self, item: Json) -> tuple[str, str] | None:
        """Return the folder and the command."""
        return codex_hook.judged_command(shell_words(command_of(item)), self._guard.bash)

    def _lines(self) -> list[bytes]:
        try:
            with self._guard.log.open("rb") as file:
                file.seek(self._at)
                data = file.read()
        except OSError:
            self._break("the file of its verdicts is gone")
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._at += len(whole)
        return whole.splitlines()

    def _allowed(self, own: Json) -> None:
        given = dict_or_empty(own.get("input"))
        tool = str(own.get("tool"))
        self._tools.add(_plain(tool))
        cwd = str(own.get("cwd"))
        if tool == "Bash":
            self._commands.add((cwd, str(given.get("command"))))
        for edit in given.get("edits") or [] if tool == "MultiEdit" else []:
            path = str(dict_or_empty(edit).get("file_path"))
            if (real := _real(str(Path(cwd) / path))) is not None:
                self._files.add(real)

    def _denied(self, own: Json) -> list[LlmAgentEvent]:
        """Report a denial; make up an id for a call whose hook failed, as it has none."""
        call = text_or_none(own.get("tool_use_id"))
        if call is None:
            self._unjudged += 1
            call = f"unjudged_{self._unjudged}"
        tool = text_or_none(own.get("tool")) or "unknown"
        reason, part = str(own.get("reason")), text_or_none(own.get("part")) or tool
        return [
            ToolCall(name=tool, input=shown(own.get("input")), id=call),
            GuardDenied(tool=tool, tool_use_id=call, part=part, reason=reason),
            ToolResult(name=call, output=reason, is_error=True),
        ]

    def _break(self, why: str) -> None:
        self.breach = self.breach or not_live(why)


def _real(path: str) -> str | None:
    """Resolve the path, or return None if it is invalid."""
    try:
        return os.path.realpath(path)
    except ValueError:  # it contains a NUL
        return None


def _plain(tool: str) -> str:
    """Return the name of a tool as Codex passes it to its hook, with plain characters only."""
    return re.sub("[^A-Za-z0-9_]", "_", tool)
