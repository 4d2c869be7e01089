"""How the scripted agent's program uses the tools of MCP servers, with the standard library alone.

A server is started when its tools are looked at for the first time. Whatever it does instead of
answering is told in one sentence, and the session goes on.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from cuggino.agents.scripted.wire import Deadline, McpFailed, Wire, short

PROTOCOL_VERSION = "2025-06-18"

_START_SECONDS = 30.0
_CALL_SECONDS = 60.0
_END_SECONDS = 2.0
_ODD = re.compile(r"[^A-Za-z0-9_-]")


class Tool(NamedTuple):
    """A tool that a running server has."""

    server: _Server
    name: str

    @property
    def agent_name(self) -> str:
        """The name by which an agent sees it."""
        return _agent_name(self.server.name, self.name)

    def call(self, given: Mapping[str, Any]) -> tuple[list[Any], bool]:
        """The parts of the answer, and whether it is an error; no answer is one too."""
        try:
            answer = self.server.call(self.name, given)
        except McpFailed as failed:
            return [_text(str(failed))], True
        content = answer.get("content")
        parts = content if isinstance(content, list) else []
        if not parts and "structuredContent" in answer:
            parts = [_text(json.dumps(answer["structuredContent"], ensure_ascii=False))]
        return parts, answer.get("isError") is True


def agent_name(wanted: str) -> str:
    """The name of a tool that may not exist, as it stands in a scenario."""
    server, slash, tool = wanted.partition("/")
    return _agent_name(server, tool) if slash else wanted


class Servers:
    """The servers of a session by name, with their settings as Claude Code takes them."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._servers = {name: _Server(name, each) for name, each in settings.items()}

    def find(self, wanted: str) -> Tool:
        """The tool of this name, or of this server if it is `server/name`.

        Servers are started until one has it: those with `alwaysLoad`, then the others in order.

        Raises:
            McpFailed: none has it; says what each has or what is wrong with it.
        """
        first, slash, rest = wanted.partition("/")
        if slash and first not in self._servers:
            known = ", ".join(self._servers) or "none"
            raise McpFailed(f'There is no MCP server "{first}"; there are: {known}')
        name = rest if slash else wanted
        looked_at = [self._servers[first]] if slash else self._in_order()
        found: list[str] = []
        for server in looked_at:
            try:
                tools = server.tools()
            except McpFailed as failed:
                found.append(str(failed))
                continue
            if name in tools:
                return Tool(server, name)
            found.append(f'MCP server "{server.name}" has {", ".join(tools) or "no tools"}')
        why = "; ".join(found) or "the session has no MCP servers"
        raise McpFailed(f'There is no tool "{name}": {why}')

    def close(self) -> None:
        """End all that were started: by the end of their input, else by signals."""
        wires = [server.wire for server in self._servers.values() if server.wire]
        for wire in wires:
            wire.hang_up()
        deadline = time.monotonic() + _END_SECONDS
        for wire in wires:
            wire.end(deadline)

    def _in_order(self) -> list[_Server]:
        return sorted(self._servers.values(), key=lambda server: not server.is_always_loaded)


class _Server:
    """One server. One that could not be started, or has ended, is not tried again."""

    def __init__(self, name: str, settings: Any) -> None:
        self.name = name
        self.wire: Wire | None = None
        self._settings: dict[str, Any] = settings if isinstance(settings, dict) else {}
        self._tools: tuple[str, ...] | None = None
        self._failure = ""

    @property
    def is_always_loaded(self) -> bool:
        return self._settings.get("alwaysLoad") is True

    def tools(self) -> tuple[str, ...]:
        """The names of its tools."""
        if not self._failure and self._tools is None:
            try:
                self._tools = self._start()
            except McpFailed as failed:
                self._failure = f'MCP server "{self.name}" cannot be used: {failed}'
        if self._failure or self._tools is None:
            raise McpFailed(self._failure)
        return self._tools

    def call(self, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """What it answers to the call."""
        assert self.wire is not None, "the tool was found, so the server runs"
        deadline = Deadline("MCP_TOOL_TIMEOUT", _CALL_SECONDS)
        try:
            return self.wire.request("tools/call", {"name": tool, "arguments": given}, deadline)
        except McpFailed as failed:
            told = f'MCP server "{self.name}" gave no answer: {failed}'
            if self.wire.has_ended:
                self._failure = f'MCP server "{self.name}" cannot be used: {failed}'
            raise McpFailed(told) from failed

    def _start(self) -> tuple[str, ...]:
        """Start it and shake hands; gives the names of its tools."""
        command, words = self._settings.get("command"), self._settings.get("args", [])
        env = self._settings.get("env", {})
        if not isinstance(command, str) or not isinstance(words, list) or not isinstance(env, dict):
            raise McpFailed("its settings name no program to start")
        own = {str(name): str(value) for name, value in env.items()}
        try:
            self.wire = Wire([command, *map(str, words)], {**os.environ, **own})
        except (OSError, ValueError) as error:
            raise McpFailed(f"{command} cannot be started: {error}") from error
        deadline = Deadline("MCP_TIMEOUT", _START_SECONDS)
        hello = {
            "protocolVersion": PROTOCOL_VERSION,
            "capabilities": {},
            "clientInfo": {"name": "cuggino-scripted", "version": "1"},
        }
        self.wire.request("initialize", hello, deadline)
        self.wire.notify("notifications/initialized")
        names: list[str] = []
        page: dict[str, Any] = {}
        while True:
            listed = self.wire.request("tools/list", page, deadline)
            tools = listed.get("tools")
            if not isinstance(tools, list):
                raise McpFailed(f"it answered tools/list with {short(listed)}")
            names += [
                str(tool["name"]) for tool in tools if isinstance(tool, dict) and "name" in tool
            ]
            if not (cursor := listed.get("nextCursor")):
                return tuple(names)
            page = {"cursor": cursor}


def _agent_name(server: str, tool: str) -> str:
    """As Claude Code forms it."""
    return f"mcp__{_ODD.sub('_', server)}__{_ODD.sub('_', tool)}"


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}
