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
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from cuggino.agents.base.calls import Call, server_call, unknown_call
from cuggino.agents.base.guard import ATTENDED, NOT_JUDGED, Guard, try_in_process
from cuggino.agents.base.watch import Verdict, Watch, same_text
from cuggino.agents.base.wire import Json, dict_or_empty, list_or_empty, text_or_none
from cuggino.agents.copilot.tools import TOOLS
from cuggino.errors import GuardNotLive
from cuggino.events import GuardDenied

JUDGE_SECONDS = 45.0
"""A call that takes longer to check is denied."""

_MANAGED = "The organization requires a person to approve this, and nobody is there."
_SANDBOX = "Commands stay in the sandbox: do not ask to leave it"
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
    _watch: Watch = field(default_factory=Watch, init=False)
    _started: dict[str, _Started] = field(default_factory=dict, init=False)

    @property
    def breach(self) -> GuardNotLive | None:
        """The error for which the session must end immediately, or None."""
        return self._watch.breach

    def try_out(self) -> None:
        """Check a call that must be denied and one that must be allowed.

        Raises:
            GuardNotLive: one of the answers is wrong.
        """
        if self.guard is not None:
            try_in_process(self.guard)

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
                if data.get("success") is True:
                    self._watch.ran(started.name if started else "a tool", self._watch.find(call))
            case _:
                pass

    async def before_tool(self, data: Json) -> Json | None:
        """Answer the preToolUse hook: a denial, or nothing. Never raises."""
        name = text_or_none(data.get("toolName")) or ""
        arguments = data.get("toolArgs")
        call_id, server = self._claim(name, same_text(arguments))
        call = TOOLS.call(name, arguments, server=server, servers=self.servers)
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
        is_free = request.get("kind") == "read" or call.is_listed(self.allowed_tools)
        if not self.unattended and not is_free:
            return ATTENDED
        if self.guard is None:
            return ""
        call_id = text_or_none(request.get("toolCallId")) or ""
        if request.get("requestSandboxBypass") is True:
            call = call._replace(unknown=_SANDBOX)
        cwd = text_or_none(request.get("resolvedWorkingDirectory")) or str(self.cwd)
        return await self._judge(call, cwd, call_id)

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
        try:
            judge = partial(self.guard.judge.verdict, call, call_id=call_id, cwd=cwd)
            judging = asyncio.to_thread(judge, readable=self._outputs(call))
            own = await asyncio.wait_for(judging, JUDGE_SECONDS)
            verdict = Verdict.read(own, call_id, call=call_id)
        except Exception:  # including a timeout: unchecked calls do not run
            own = {"tool": call.tool, "reason": NOT_JUDGED}
            verdict = Verdict.read(own, call_id, call=call_id)
        for denied in self._watch.see(verdict):
            self.tell(denied)
        return "" if verdict.is_allowed else verdict.reason or NOT_JUDGED

    def _outputs(self, call: Call) -> list[str]:
        """Return the files to be read in which the program stores long outputs."""
        temp = os.path.realpath(self.temp)
        real = [Path(os.path.realpath(self.cwd / path)) for path in call.reads]
        return [str(p) for p in real if str(p.parent) == temp and _OUTPUT.fullmatch(p.name)]


def _requested(request: Json) -> Call:
    """Convert a permission request to a tool call."""
    match request.get("kind"):
        case "shell":
            command = request.get("fullCommandText")
            given = {"command": command}
            return Call("Bash", given) if isinstance(command, str) else unknown_call("Bash", given)
        case "write":
            return _written(request)
        case "read":
            path = text_or_none(request.get("resolvedPath")) or text_or_none(request.get("path"))
            given = {"file_path": request.get("path")}
            return Call("Read", given, reads=(path or "/",))
        case "url":
            return Call("WebFetch", {"url": request.get("url")})
        case "mcp":
            server, tool = request.get("serverName"), request.get("toolName")
            if not isinstance(server, str) or not isinstance(tool, str):
                return unknown_call(f"mcp__{server}__{tool}", request.get("args"))
            return server_call(
                server, tool.removeprefix(f"{server}-"), _inputs(request.get("args"))
            )
        case "hook":
            return TOOLS.call(str(request.get("toolName")), request.get("toolArgs"))
        case kind:
            return unknown_call(str(kind), {})


def _written(request: Json) -> Call:
    """Return every file to be written, under all of its names."""
    sides = [
        dict_or_empty(dict_or_empty(edit).get(side)).get("path")
        for edit in list_or_empty(request.get("fileEdits"))
        for side in ("before", "after")
    ]
    named = [request.get("fileName"), request.get("resolvedPath"), *sides]
    files = list(dict.fromkeys(file for file in named if file is not None))
    given = {"edits": [{"file_path": file} for file in files]}
    return Call("MultiEdit", given) if files else unknown_call("MultiEdit", given)


def _inputs(value: object) -> Json:
    return value if isinstance(value, dict) else {} if value is None else {"input": value}
