"""The guard of a session of the Codex CLI as it shows: it lives, it denied, it was passed by."""

from __future__ import annotations

import os
import re
from pathlib import Path

from cuggino.agents.codex import hook as codex_hook
from cuggino.agents.codex.guard import CodexGuard
from cuggino.agents.codex.tools import command_of, shell_words
from cuggino.agents.guard import not_live
from cuggino.agents.json_values import Json, dict_or_empty, parse_json_line, shown, text_or_none
from cuggino.errors import GuardNotLive
from cuggino.events import GuardDenied, LlmAgentEvent, ToolCall, ToolResult
from cuggino.security.hook import LIVE


class CodexWatch:
    """The fold over the verdicts and the lines of one session that is guarded.

    `breach` is set when the session must end: the hook did not sing at the start, or something ran
    without its verdict.
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
        """The calls that were denied since the last time: each with its reason, as its result."""
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
        """Watch over an item that tells that something runs, or has run; sets `breach`."""
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
        """Watch over the end of the session, which may have had no item."""
        self.see({"type": "end"})

    def judged_command(self, item: Json) -> str | None:
        """The command as it was judged, None when it is not in the words of the hook."""
        judged = self._judged(item)
        return judged[1] if judged is not None else None

    def _judged(self, item: Json) -> tuple[str, str] | None:
        """The folder and the command."""
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
        """A call that the hook failed over is known by its failure alone."""
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
    """Where the path leads, None for one that cannot be."""
    try:
        return os.path.realpath(path)
    except ValueError:  # there is a NUL in it
        return None


def _plain(tool: str) -> str:
    """The name of a tool as Codex gives it to its hook.

    It has plain letters in the place of others, in the names of servers and of their tools.
    """
    return re.sub("[^A-Za-z0-9_]", "_", tool)
