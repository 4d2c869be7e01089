"""JSON-RPC in lines with a process, with nothing but the standard library."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

_END_SECONDS = 2.0
_NO_SUCH_METHOD = -32601
_LONGEST = 200
_LONGEST_COMPLAINT = 4096


class McpFailed(Exception):
    """Why a tool cannot be used, in words for the agent."""


class Deadline:
    """The time until which an answer is waited for; a variable may give it in milliseconds."""

    def __init__(self, variable: str, seconds: float) -> None:
        said = os.environ.get(variable, "")
        self.seconds = int(said) / 1000 if said.isdecimal() and int(said) else seconds
        self._at = time.monotonic() + self.seconds

    @property
    def left(self) -> float:
        """Seconds, none when it has passed."""
        return max(0.0, self._at - time.monotonic())


class Wire:
    """A process that is asked on its standard input; neither side can block the other for ever."""

    def __init__(self, argv: list[str], env: dict[str, str]) -> None:
        """Start it, in this process's folder and process group."""
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
        """Whether it has closed its output: it will answer nothing any more."""
        return self._output not in self._reads

    def notify(self, method: str) -> None:
        """Say so, with the next request."""
        self._tell({"method": method})

    def request(self, method: str, params: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
        """The result of this request.

        Raises:
            McpFailed: the process ends, is silent for too long, refuses it or answers otherwise.
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
        """Let it see the end of its input."""
        with suppress(OSError):
            self._input.close()

    def end(self, deadline: float) -> None:
        """Wait until then (monotonic) for it to end, and end it by signals when it stays."""
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
        """Answer what the process asks; what it notifies about is of no use here."""
        if "id" not in message:
            return
        answer: dict[str, Any] = {"result": {}}
        if message["method"] != "ping":
            answer = {"error": {"code": _NO_SUCH_METHOD, "message": "Method not found"}}
        self._tell({"id": message["id"], **answer})

    def _messages(self) -> Iterator[dict[str, Any]]:
        """What has come in whole lines, each once; lines of anything else are noise."""
        while (end := self._unread.find(b"\n")) >= 0:
            line = bytes(self._unread[:end])
            del self._unread[: end + 1]
            message = _parsed(line)
            if isinstance(message, dict):
                yield message
            elif line.strip():
                self._noise = line.decode("utf-8", "replace").strip()

    def _exchange(self, seconds: float) -> None:
        """Send and receive what can be, after waiting so long at most for that."""
        writes = [self._input] if self._unsent else []
        readable, writable, _ = select.select(self._reads, writes, [], seconds)
        if writable:
            try:
                del self._unsent[: os.write(self._input.fileno(), self._unsent)]
            except BrokenPipeError:
                self._unsent.clear()  # the end of its output tells the rest
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
    """The value in a few words, for a message."""
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
