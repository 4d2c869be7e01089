"""MCP for the scripted agent's program: JSON-RPC over pipes, with the standard library alone.

A server is started when its tools are first needed. Any failure is reported in one sentence, and
the session continues.
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

_END_SECONDS = 2.0
_NO_SUCH_METHOD = -32601
_LONGEST = 200
_LONGEST_COMPLAINT = 4096


class McpFailed(Exception):
    """The reason why a tool cannot be used, worded for the agent."""


class Deadline:
    """A deadline for an answer; a variable may set it in milliseconds."""

    def __init__(self, variable: str, seconds: float) -> None:
        said = os.environ.get(variable, "")
        self.seconds = int(said) / 1000 if said.isdecimal() and int(said) else seconds
        self._at = time.monotonic() + self.seconds

    @property
    def left(self) -> float:
        """Remaining seconds, 0 if it has passed."""
        return max(0.0, self._at - time.monotonic())


class Wire:
    """A JSON-RPC process; neither side can block the other indefinitely."""

    def __init__(self, argv: list[str], env: dict[str, str]) -> None:
        """Start it in this process's folder and process group."""
        self._process = subprocess.Popen(
            argv,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._input = self._process.stdin
        self._output = self._process.stdout
        self._errors = self._process.stderr
        for pipe in (self._input, self._errors):
            os.set_blocking(pipe.fileno(), False)
        self._reads = [self._output, self._errors]
        self._unsent = bytearray()
        self._unread = bytearray()
        self._noise = ""
        self._complaint = b""
        self._requests = 0

    @property
    def has_ended(self) -> bool:
        """True once the process has closed its output, after which it cannot answer."""
        return self._output not in self._reads

    def notify(self, method: str) -> None:
        """Send a notification, with the next request."""
        self._tell({"method": method})

    def request(self, method: str, params: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
        """Return the result of a request.

        Raises:
            McpFailed: the process ends, does not answer in time, refuses, or answers with something
                else.
        """
        self._requests += 1
        number = self._requests
        self._tell({"id": number, "method": method, "params": params})
        while True:
            for message in self._messages():
                if "method" in message:
                    self._reply(message)
                elif message.get("id") == number:
                    return _result(method, message)
            if self.has_ended:
                raise McpFailed(self._how_it_ended())
            if not deadline.left:
                silence = f"it did not answer {method} within {deadline.seconds:g} s"
                raise McpFailed(_with(silence, self._noise or self._last_complaint()))
            self._exchange(deadline.left)

    def hang_up(self) -> None:
        with suppress(OSError):
            self._input.close()

    def end(self, deadline: float) -> None:
        """Wait for it to end until the deadline (monotonic), then terminate it by signals."""
        for signalled in (self._process.terminate, self._process.kill):
            try:
                self._process.wait(max(0.0, deadline - time.monotonic()))
                break
            except subprocess.TimeoutExpired:
                signalled()
                deadline = time.monotonic() + _END_SECONDS
        self._process.wait()
        self._output.close()
        self._errors.close()

    def _tell(self, message: Mapping[str, Any]) -> None:
        self._unsent += json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"

    def _reply(self, message: dict[str, Any]) -> None:
        """Answer a request of the process; its notifications are ignored."""
        if "id" not in message:
            return
        answer: dict[str, Any] = {"result": {}}
        if message["method"] != "ping":
            answer = {"error": {"code": _NO_SUCH_METHOD, "message": "Method not found"}}
        self._tell({"id": message["id"], **answer})

    def _messages(self) -> Iterator[dict[str, Any]]:
        """Yield the messages in complete lines, each once; other lines are noise."""
        while (end := self._unread.find(b"\n")) >= 0:
            line = bytes(self._unread[:end])
            del self._unread[: end + 1]
            message = _parsed(line)
            if isinstance(message, dict):
                yield message
            elif line.strip():
                self._noise = line.decode("utf-8", "replace").strip()

    def _exchange(self, seconds: float) -> None:
        """Write and read as much as the pipes allow, waiting for at most this long."""
        writes = [self._input] if self._unsent else []
        readable, writable, _ = select.select(self._reads, writes, [], seconds)
        if writable:
            try:
                del self._unsent[: os.write(self._input.fileno(), self._unsent)]
            except BrokenPipeError:
                self._unsent.clear()  # the end of its output is handled elsewhere
        if self._errors in readable:
            self._read_errors()
        if self._output in readable:
            chunk = os.read(self._output.fileno(), 65_536)
            self._unread += chunk
            if not chunk:
                self._reads.remove(self._output)

    def _read_errors(self) -> None:
        with suppress(BlockingIOError):
            while chunk := os.read(self._errors.fileno(), 65_536):
                self._complaint = (self._complaint + chunk)[-_LONGEST_COMPLAINT:]
            if self._errors in self._reads:
                self._reads.remove(self._errors)

    def _last_complaint(self) -> str:
        lines = self._complaint.decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def _how_it_ended(self) -> str:
        try:
            code = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            return "it has closed its output"
        self._read_errors()
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return _with(f"it ended {how}", self._last_complaint() or self._noise)


def short(value: object) -> str:
    """Shorten the value for a message."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _result(method: str, message: dict[str, Any]) -> dict[str, Any]:
    error, result = message.get("error"), message.get("result")
    if error is not None:
        said = error.get("message") if isinstance(error, dict) else None
        raise McpFailed(f"it refused {method}: {short(said or error)}")
    if not isinstance(result, dict):
        raise McpFailed(f"it answered {method} with {short(result)}")
    return result


def _with(what: str, said: str) -> str:
    return f"{what}: {short(said)}" if said else what


PROTOCOL_VERSION = "2025-06-18"

_START_SECONDS = 30.0
_CALL_SECONDS = 60.0
_ODD = re.compile(r"[^A-Za-z0-9_-]")


class Tool(NamedTuple):
    """A tool of a running server."""

    server: _Server
    name: str

    @property
    def agent_name(self) -> str:
        return _agent_name(self.server.name, self.name)

    def call(self, given: Mapping[str, Any]) -> tuple[list[Any], bool]:
        """Return the parts of the answer, and whether it is an error; so is a missing answer."""
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
    """Return the agent's name for a tool of a scenario that may not exist."""
    server, slash, tool = wanted.partition("/")
    return _agent_name(server, tool) if slash else wanted


class Servers:
    """The servers of a session by name, with settings in Claude Code's format."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._servers = {name: _Server(name, each) for name, each in settings.items()}

    def find(self, wanted: str) -> Tool:
        """Return the tool of this name, or of this server if it is `server/name`.

        Servers are started until one has it: those with `alwaysLoad`, then the others in order.

        Raises:
            McpFailed: none has it; lists the tools or the failure of each.
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
        """End all that were started, by closing their input or else by signals."""
        wires = [server.wire for server in self._servers.values() if server.wire]
        for wire in wires:
            wire.hang_up()
        deadline = time.monotonic() + _END_SECONDS
        for wire in wires:
            wire.end(deadline)

    def _in_order(self) -> list[_Server]:
        return sorted(self._servers.values(), key=lambda server: not server.is_always_loaded)


class _Server:
    """One server; it is not started again after it failed or ended."""

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
        if not self._failure and self._tools is None:
            try:
                self._tools = self._start()
            except McpFailed as failed:
                self._failure = f'MCP server "{self.name}" cannot be used: {failed}'
        if self._failure or self._tools is None:
            raise McpFailed(self._failure)
        return self._tools

    def call(self, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
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
        """Start it, initialize the session, and return the names of its tools."""
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
    """Form the name as Claude Code does."""
    return f"mcp__{_ODD.sub('_', server)}__{_ODD.sub('_', tool)}"


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}
