"""The JSON-RPC requests and responses that a session sends to its program."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from typing import NamedTuple, TypeAlias, TypeVar

from pydantic import BaseModel

from cuggino.agents.base.wire import Json, dict_or_empty
from cuggino.errors import LlmSessionError
from cuggino.events import LlmAgentEvent

_METHOD_NOT_FOUND = -32601


class Request(NamedTuple):
    """A request to the program."""

    method: str
    params: BaseModel


T = TypeVar("T")

Script: TypeAlias = Generator[Request | LlmAgentEvent, Json, T]
"""Requests, one after the other, and events. A request is sent the result of its response; an error
response is raised there."""


class Link:
    """Sends the requests of a script, and responses to the program's own requests."""

    def __init__(self, script: Script[None]) -> None:
        self.method = ""
        """The method of the request that waits for its response, or ""."""
        self.is_over = False
        self.error: LlmSessionError | None = None
        """The error with which the script ended."""
        self._script = script
        self._number = 0
        self._output = bytearray()
        self._step(lambda: next(script))

    def output(self) -> bytes:
        """Return the new output for the program since the last call."""
        data = bytes(self._output)
        self._output.clear()
        return data

    def receive(
        self, response: Json, failure: Callable[[str, Json], LlmSessionError]
    ) -> list[LlmAgentEvent]:
        """Continue the script; `failure` converts an error response to the method."""
        if not self.method or response.get("id") != self._number:
            return []
        if "error" in response:
            error = failure(self.method, dict_or_empty(response["error"]))
            return self._step(lambda: self._script.throw(error))
        return self._step(lambda: self._script.send(dict_or_empty(response.get("result"))))

    def _step(self, step: Callable[[], Request | LlmAgentEvent]) -> list[LlmAgentEvent]:
        """Run the script to its next request, and return its events until then."""
        events: list[LlmAgentEvent] = []
        self.method = ""
        try:
            while not isinstance(found := step(), Request):
                events.append(found)
                step = self._script.__next__
        except StopIteration:
            self.is_over = True
        except LlmSessionError as error:
            self.is_over, self.error = True, error
        else:
            self.method = found.method
            self._number += 1
            params = _dumped(found.params)
            self._send({"id": self._number, "method": found.method, "params": params})
        return events

    def respond(self, request: object, result: BaseModel) -> None:
        """Respond to a request of the program, named by its id."""
        self._send({"id": request, "result": _dumped(result)})

    def refuse(self, request: object) -> None:
        """Respond that the method is not offered."""
        error = {"code": _METHOD_NOT_FOUND, "message": "not offered"}
        self._send({"id": request, "error": error})

    def _send(self, message: Json) -> None:
        self._output += json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def _dumped(model: BaseModel) -> Json:
    return model.model_dump(by_alias=True, exclude_unset=True)
