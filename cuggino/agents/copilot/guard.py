"""The guard of a GitHub Copilot session: the program asks this process twice for each call.

It asks before every call (`before_tool`, its preToolUse hook, including sub-agents and MCP). If
that allows the call, it asks again before it runs a command, writes or reads a file, calls an MCP
server or fetches an address (`permission`). As observed with the real program:

- A denial by our hook overrides an approval by the user's hooks, and our hook sees the input after
  theirs. A hook that approves skips the second question, so ours never does: it denies, or returns
  nothing.
- Hooks of the repository (`.github/hooks`), which an agent could write itself, are turned off.
- A missing or failed answer to the second question is a denial; to the first one it would be an
  approval, so nothing is raised here.

A call that ran without a verdict, or despite one, ends the session.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from cuggino.agents.base.guard import NOT_JUDGED, Guard, not_live
from cuggino.agents.base.wire import Json, dict_or_empty, text_or_none
from cuggino.agents.copilot.tools import Call, common_call, same_text
from cuggino.errors import GuardNotLive
from cuggino.events import GuardDenied
from cuggino.guard import hook

JUDGE_SECONDS = 45.0
"""A call that takes longer to check is denied."""

_ATTENDED = "This session is read-only: nobody is there to ask. Mention that in your report."
_MANAGED = "The organization requires a person to approve this, and nobody is there."
_OUT_OF_SCOPE = (
    "Reading outside of the project is not allowed: what you need must be in the project, or the "
    "user has to allow its folder"
)
_SANDBOX = "Commands stay in the sandbox: do not ask to leave it"
_SHELL_KEYS = frozenset({"command", "description", "shellId", "mode", "detach", "initial_wait"})
_OUTPUT = re.compile(r"\d+-copilot-tool-output-[\w-]+\.txt")
"""Files in which the program stores long outputs for the agent to read."""


@dataclass
class _Started:
    """A call that the program has started and not yet ended."""

    name: str
    arguments: str
    server: tuple[str, str] | None
    is_claimed: bool = False


@dataclass
class Gate:
    """Answers the questions of one session.

    Without a `guard` the answers depend on `unattended` and `allowed_tools` alone.
    """

    cwd: Path
    unattended: bool
    """True if allowed actions run without asking a person."""
    guard: Guard | None = None
    allowed_tools: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    temp: str = "/tmp"
    """The program's folder for temporary files."""
    tell: Callable[[GuardDenied], None] = lambda _event: None
    breach: GuardNotLive | None = field(default=None, init=False)
    """The error for which the session must end immediately, or None."""
    _started: dict[str, _Started] = field(default_factory=dict, init=False)
    _verdicts: dict[str, bool] = field(default_factory=dict, init=False)
    _told: set[str] = field(default_factory=set, init=False)

    def try_out(self) -> None:
        """Check a call that must be denied and one that must be allowed.

        Raises:
            GuardNotLive: one of the answers is wrong.
        """
        if self.guard is None:
            return
        data = {"hook_event_name": "SessionStart"}
        try:
            canary = self._answer(self.guard, data)["cuggino"]["canary"]
        except Exception as error:
            raise not_live(f"{type(error).__name__}: {error}") from error
        if canary != hook.LIVE:
            raise not_live(str(canary))

    def see(self, raw: Json) -> None:
        """Watch the events of the session; sets `breach`."""
        if self.guard is None:
            return
        data = dict_or_empty(raw.get("data"))
        call = text_or_none(data.get("toolCallId")) or ""
        match raw.get("type"):
            case "tool.execution_start":
                server, tool = data.get("mcpServerName"), data.get("mcpToolName")
                of = (server, tool) if isinstance(server, str) and isinstance(tool, str) else None
                name = text_or_none(data.get("toolName")) or ""
                self._started[call] = _Started(name, same_text(data.get("arguments")), of)
            case "tool.execution_complete":
                started = self._started.pop(call, None)
                if data.get("success") is True and self._verdicts.get(call) is not True:
                    tool = started.name if started else "a tool"
                    how = "despite" if call in self._verdicts else "without"
                    self.breach = self.breach or not_live(f"{tool} was used {how} its verdict")
            case _:
                pass

    async def before_tool(self, data: Json) -> Json | None:
        """Answer the preToolUse hook: a denial, or nothing. Never raises."""
        name = text_or_none(data.get("toolName")) or ""
        arguments = data.get("toolArgs")
        call_id, server = self._claim(name, same_text(arguments))
        call = common_call(name, arguments, server=server, servers=self.servers)
        cwd = text_or_none(data.get("workingDirectory")) or str(self.cwd)
        reason = await self._judge(call, cwd, call_id)
        if not reason:
            return None
        return {"permissionDecision": "deny", "permissionDecisionReason": reason}

    async def permission(self, request: Json) -> str:
        """Return why the program may not do this, or "" if it may. Never raises."""
        try:
            return await self._permission(request)
        except Exception:
            return NOT_JUDGED

    async def _permission(self, request: Json) -> str:
        if request.get("managedApprovalRequired") is True:
            return _MANAGED
        call = _requested(request)
        if not self.unattended and not self._is_unasked(request, call):
            return _ATTENDED
        if self.guard is None:
            return ""
        call_id = text_or_none(request.get("toolCallId")) or ""
        if request.get("requestSandboxBypass") is True:
            return self._denied(call, call_id, call.tool, _SANDBOX)
        if request.get("kind") == "read" and self.guard.policy.rules is not None:
            path = text_or_none(request.get("resolvedPath")) or text_or_none(request.get("path"))
            if path is None or not self._is_in_scope(path):
                return self._denied(call, call_id, f"{call.tool} {path}", _OUT_OF_SCOPE)
        cwd = text_or_none(request.get("resolvedWorkingDirectory")) or str(self.cwd)
        return await self._judge(call, cwd, call_id)

    def _is_unasked(self, request: Json, call: Call) -> bool:
        whole_server = call.tool.rpartition("__")[0]
        rules = self.allowed_tools
        return request.get("kind") == "read" or call.tool in rules or whole_server in rules

    def _is_in_scope(self, path: str) -> bool:
        real = Path(os.path.realpath(self.cwd / path))
        if real.is_relative_to(os.path.realpath(self.cwd)):
            return True
        of_program = real.parent == Path(os.path.realpath(self.temp))
        return of_program and _OUTPUT.fullmatch(real.name) is not None

    def _claim(self, name: str, arguments: str) -> tuple[str, tuple[str, str] | None]:
        """Find the call in question, which the program does not identify.

        The name alone suffices, as a hook of the user may have changed the input.
        """
        free = [
            (call, started)
            for call, started in self._started.items()
            if started.name == name and not started.is_claimed
        ]
        same = [found for found in free if found[1].arguments == arguments]
        for call, started in (same or free)[:1]:
            started.is_claimed = True
            return call, started.server
        return "", None

    async def _judge(self, call: Call, cwd: str, call_id: str) -> str:
        """Return why the call is denied, in words for the agent, or "" if allowed. Never raises."""
        if self.guard is None:
            return ""
        if not call.is_known:
            reason = f"Tool '{call.tool}' is not known to the guard: use bash, or the file tools"
            return self._denied(call, call_id, call.tool, reason)
        data = {
            "hook_event_name": "PreToolUse",
            "tool_name": call.tool,
            "tool_input": call.input,
            "tool_use_id": call_id,
            "cwd": cwd,
        }
        try:
            answering = asyncio.to_thread(self._answer, self.guard, data)
            said = await asyncio.wait_for(answering, JUDGE_SECONDS)
            own = said["cuggino"]
            if own["decision"] == "allow":
                if unknown := _unknown_keys(call):
                    return self._denied(call, call_id, call.tool, f"Leave out {unknown}")
                self._verdicts.setdefault(call_id, True)
                return ""
            return self._denied(call, call_id, str(own["part"]), str(own["reason"]))
        except Exception:  # including a timeout: unchecked calls do not run
            return self._denied(call, call_id, call.tool, NOT_JUDGED)

    def _answer(self, guard: Guard, data: Json) -> Json:
        return hook.answer(data, guard.policy, shfmt=guard.shfmt, token=guard.token, manner="judge")

    def _denied(self, call: Call, call_id: str, part: str, reason: str) -> str:
        self._verdicts[call_id] = False
        if not call_id or call_id not in self._told:
            self._told.add(call_id)
            self.tell(GuardDenied(tool=call.tool, tool_use_id=call_id, part=part, reason=reason))
        return reason


def _requested(request: Json) -> Call:
    """Convert a permission request to a tool call."""
    match request.get("kind"):
        case "shell":
            command = request.get("fullCommandText")
            return Call("Bash", {"command": command}, isinstance(command, str))
        case "write":
            return _written(request)
        case "read":
            return Call("Read", {"file_path": request.get("path")}, True)
        case "url":
            return Call("WebFetch", {"url": request.get("url")}, True)
        case "mcp":
            server, tool = request.get("serverName"), request.get("toolName")
            is_named = isinstance(server, str) and isinstance(tool, str)
            tool = str(tool).removeprefix(f"{server}-")
            return Call(f"mcp__{server}__{tool}", _inputs(request.get("args")), is_named)
        case "hook":
            return common_call(str(request.get("toolName")), request.get("toolArgs"))
        case kind:
            return Call(str(kind), {}, False)


def _written(request: Json) -> Call:
    """Return every file to be written, under all of its names."""
    edits = request.get("fileEdits")
    sides = [
        dict_or_empty(dict_or_empty(edit).get(side)).get("path")
        for edit in (edits if isinstance(edits, list) else [])
        for side in ("before", "after")
    ]
    named = [request.get("fileName"), request.get("resolvedPath"), *sides]
    files = list(dict.fromkeys(file for file in named if file is not None))
    return Call("MultiEdit", {"edits": [{"file_path": file} for file in files]}, bool(files))


def _inputs(value: object) -> Json:
    return value if isinstance(value, dict) else {} if value is None else {"input": value}


def _unknown_keys(call: Call) -> str:
    """Return unknown inputs of the shell: they could change where or how it runs."""
    keys: Iterable[str] = call.input if call.tool == "Bash" and isinstance(call.input, dict) else ()
    return ", ".join(sorted(str(key) for key in keys if key not in _SHELL_KEYS))
