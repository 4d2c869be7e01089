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
import shlex
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from cuggino.agents.base.failure import cut, last_lines
from cuggino.agents.base.guard import NOT_JUDGED, Guard, make_guard, not_live, try_out
from cuggino.agents.base.private_files import private_file
from cuggino.agents.base.watch import VerdictLog, Watch
from cuggino.agents.base.wire import Json, dict_or_empty, list_or_empty, shown, text_or_none
from cuggino.agents.codex.config import OFF_WHEN_GUARDED, override
from cuggino.agents.codex.hook import call_of, denial, judged_command, plain
from cuggino.agents.codex.tools import command_of, shell_words
from cuggino.events import LlmAgentEvent, ToolCall, ToolResult
from cuggino.guard import Policy
from cuggino.processes import run_bounded

PROTECTED = (".codex", ".agents")
"""Project folders in which Codex looks for settings, hooks, rules and skills."""

_EVENTS = {"SessionStart": "session_start", "PreToolUse": "pre_tool_use"}
_NOBODY = "cuggino-nobody"
_NOWHERE = "http://127.0.0.1:9/v1"
"""A port that nothing listens on."""

_TRY_SECONDS = 120
_TIMEOUT = 3600
"""Timeout of Codex for the hook, which ends itself earlier."""


@dataclass(frozen=True, kw_only=True)
class CodexGuard:
    """The guard of one session."""

    guard: Guard
    log: VerdictLog
    bash: str
    """The shell for allowed commands."""
    env: Mapping[str, str]
    """Environment of the program."""
    servers: tuple[str, ...] = ()
    """Names of the MCP servers."""

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
        log, servers = self.log.path, self.servers
        hook = self.guard.hook_command("codex", log=log, bash=self.bash, servers=servers)
        return f"exec {shlex.join(self.guard.or_refusal(hook, denial(NOT_JUDGED), log=log))}"

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

        def answers() -> list[Json]:
            done = run_bounded(
                [*words, "-"], seconds=_TRY_SECONDS, cwd=cwd, env=env, stdin=b"Nobody reads this."
            )
            logged = self.log.read()
            if not any("canary" in own for own in logged):
                output = last_lines(done.errors)
                raise not_live(cut(f"Codex did not run its hook: {output}"))
            return logged

        try_out(answers)


def make_codex_guard(
    policy: Policy, env: Mapping[str, str], stack: ExitStack, *, servers: tuple[str, ...] = ()
) -> CodexGuard:
    """Return the guard for a session with this policy; the stack removes its log of verdicts.

    Raises:
        GuardNotLive: the parser, or the shell it supports, is not installed.
        StorageError: the log cannot be created.
    """
    more = tuple(name for name in PROTECTED if name not in policy.protected)
    file = private_file("", stack, suffix=".log", is_written=True)
    # Its name is unique, so files of that name are protected anywhere.
    guard = make_guard(policy._replace(protected=(*policy.protected, *more, file.name)), env)
    held = {name: value for name, value in guard.env.items() if name != "CLAUDE_CODE_SHELL"}
    bash = guard.env["CLAUDE_CODE_SHELL"]
    log = VerdictLog(file, guard.token)
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


class CodexWatch(Watch):
    """The watch over the verdicts and lines of one guarded session.

    Codex reports what runs without the id of its call, so a verdict is found by the command and its
    folder, the file, or the tool, and stands for every equal call.
    """

    def __init__(self, guard: CodexGuard) -> None:
        super().__init__(guard.log)
        self._bash = guard.bash
        self._unjudged = 0

    def read(self) -> list[LlmAgentEvent]:
        """Return the calls denied since the last time, each with its reason as its result."""
        return [event for own in self.poll() for event in self._logged(own)]

    def check(self, item: Json) -> None:
        """Check an item that reports that something runs or has run; sets `breach`."""
        kind = item.get("type")
        if kind == "error":
            return
        self.begin()
        match kind:
            case "command_execution":
                self.ran("Bash", self.find(self._judged(item)))
            case "file_change":
                for change in list_or_empty(item.get("changes")):
                    path = text_or_none(dict_or_empty(change).get("path")) or ""
                    self.ran(f"Edit of {path}", self.find(_real(path)))
            case "mcp_tool_call":
                tool = str(item.get("tool"))
                name = f"mcp__{item.get('server')}__{tool}"
                own = call_of(tool, {}).tool if item.get("server") == "codex" else name
                self.ran(name, self.find(plain(name), plain(own)))
            case _:
                pass

    def judged_command(self, item: Json) -> str | None:
        """Return the command as it was checked, or None if the hook did not wrap it."""
        judged = self._judged(item)
        return judged[1] if judged is not None else None

    def _judged(self, item: Json) -> tuple[str, str] | None:
        """Return the folder and the command."""
        return judged_command(shell_words(command_of(item)), self._bash)

    def _logged(self, own: Json) -> list[LlmAgentEvent]:
        """Note what the hook logged, and report a denial; a call whose hook failed has no id."""
        if own.get("decision") == "allow" or "canary" in own:
            self.hear(own, *_keys(own), call=None)
            return []
        call = text_or_none(own.get("tool_use_id"))
        if call is None:
            self._unjudged += 1
            call = f"unjudged_{self._unjudged}"
        events: list[LlmAgentEvent] = []
        for denied in self.hear(own, call=call):
            events += [
                ToolCall(name=denied.tool, input=shown(own.get("input")), id=call),
                denied,
                ToolResult(name=call, output=denied.reason, is_error=True),
            ]
        return events


def _keys(own: Json) -> Iterable[Hashable]:
    """Yield what Codex may report when the call runs."""
    tool, cwd, given = str(own.get("tool")), str(own.get("cwd")), dict_or_empty(own.get("input"))
    yield plain(tool)
    if tool == "Bash":
        yield cwd, str(given.get("command"))
    for edit in list_or_empty(given.get("edits")) if tool == "MultiEdit" else []:
        path = _real(str(Path(cwd) / str(dict_or_empty(edit).get("file_path"))))
        if path is not None:
            yield path


def _real(path: str) -> str | None:
    """Resolve the path, or return None if it is invalid."""
    try:
        return os.path.realpath(path)
    except ValueError:  # it contains a NUL
        return None
