"""The requests of a session to its program: the link that sends them, and the handshake."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeAlias, TypeVar

from acp import schema
from acp.meta import PROTOCOL_VERSION
from pydantic import BaseModel

from cuggino._version import __version__
from cuggino.agents.base.agent import SpawnOptions
from cuggino.agents.base.guard import not_live
from cuggino.agents.base.program import encodable
from cuggino.agents.base.wire import Json, dict_or_empty, list_or_empty, text_or_none
from cuggino.agents.profiles import Profile
from cuggino.errors import AgentFailed, LlmSessionError
from cuggino.events import LlmAgentEvent, SystemMessage

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


def open_session(profile: Profile, options: SpawnOptions) -> Script[tuple[str, Json]]:
    """Initialize the program, and open or resume the session; return its id and its description.

    Raises:
        AgentFailed: the program implements another version, or cannot resume sessions.
    """
    hello = schema.InitializeRequest(
        protocol_version=PROTOCOL_VERSION,
        # Without fs and terminal the program runs its tools itself.
        client_capabilities=schema.ClientCapabilities(),
        client_info=schema.Implementation(name="cuggino", version=__version__),
    )
    result = yield Request("initialize", hello)
    program, version = profile.command[0], result.get("protocolVersion")
    if version != PROTOCOL_VERSION:
        message = f"{program} speaks ACP {version}, not {PROTOCOL_VERSION}"
        raise AgentFailed(message, reason="crash", hint="update it or cuggino")
    # The model hands out a plain object in the place of a malformed capability.
    offered = dict_or_empty(result.get("agentCapabilities"))
    remote = dict_or_empty(offered.get("mcpCapabilities"))
    servers: list[Any] = []
    for name, given in options.mcp_servers.items():
        server = _mcp_server(name, dict_or_empty(given))
        if "type" not in server or remote.get(server["type"]):
            servers.append(server)
        else:
            left_out = f"MCP server {name} is left out: the agent takes no such servers"
            yield SystemMessage(text=left_out)
    cwd, known = encodable(str(options.cwd)), options.resume_session_id
    if known is None:
        new = schema.NewSessionRequest(cwd=cwd, mcp_servers=servers)
        result = yield Request("session/new", new)
    elif "resume" in dict_or_empty(offered.get("sessionCapabilities")):
        resumed = schema.ResumeSessionRequest(cwd=cwd, mcp_servers=servers, session_id=known)
        result = yield Request("session/resume", resumed)
    elif offered.get("loadSession") is True:
        loaded = schema.LoadSessionRequest(cwd=cwd, mcp_servers=servers, session_id=known)
        result = yield Request("session/load", loaded)
    else:
        raise AgentFailed(f"{program} cannot resume sessions", reason="bad_request")
    session_id = known or text_or_none(result.get("sessionId"))
    if not session_id:
        raise AgentFailed("the agent named no session", reason="crash")
    return session_id, result


def _mcp_server(name: str, given: Json) -> Json:
    """Convert an MCP server from the format of Claude Code."""
    named = given.get("headers" if "url" in given else "env")
    pairs = [{"name": key, "value": str(value)} for key, value in dict_or_empty(named).items()]
    if "url" in given:
        kind = "sse" if given.get("type") == "sse" else "http"
        return {"type": kind, "name": name, "url": str(given["url"]), "headers": pairs}
    args = [str(word) for word in list_or_empty(given.get("args"))]
    return {"name": name, "command": str(given.get("command", "")), "args": args, "env": pairs}


def configure(
    profile: Profile, options: SpawnOptions, session_id: str, result: Json
) -> Script[None]:
    """Set the mode and the model where they differ; each response has all options.

    Raises:
        GuardNotLive: the mode in which a guarded program asks is not in force.
        AgentFailed: an option is not offered.
    """
    wishes = [("mode", profile.mode), ("model", options.model)]
    choices = [(category, wanted) for category, wanted in wishes if wanted is not None]
    for category, wanted in choices:
        option = options_of(result).get(category, {})
        value, name = _value_of(option, wanted), text_or_none(option.get("id"))
        if value is None or name is None:
            raise _not_in_force(profile, options, category, wanted, option)
        if option.get("currentValue") == value:
            continue
        chosen = schema.SetSessionConfigOptionSelectRequest(
            session_id=session_id, config_id=name, value=value
        )
        try:
            result = yield Request("session/set_config_option", chosen)
        except LlmSessionError as error:
            if category == "mode" and options.guard is not None:
                raise _not_in_force(profile, options, category, wanted, option) from error
            raise
    for category, wanted in choices:
        option = options_of(result).get(category, {})
        if option.get("currentValue") != (_value_of(option, wanted) or wanted):
            raise _not_in_force(profile, options, category, wanted, option)


def options_of(result: Json) -> dict[str | None, Json]:
    """Return the options of a session by category, or by id without one.

    Their model would drop an option without a title, and a change of the mode with it.
    """
    found = [dict_or_empty(one) for one in list_or_empty(result.get("configOptions"))]
    return {text_or_none(one.get("category") or one.get("id")): one for one in found}


def model_of(result: Json) -> str | None:
    """Return the model of the session that an answer describes."""
    chosen = options_of(result).get("model", {}).get("currentValue")
    return text_or_none(chosen or dict_or_empty(result.get("models")).get("currentModelId"))


def _value_of(option: Json, wanted: str) -> str | None:
    """Return the value of the option with this value or name."""
    given = [dict_or_empty(one) for one in list_or_empty(option.get("options"))]
    found = [one for key in ("value", "name") for one in given if one.get(key) == wanted]
    return text_or_none(found[0].get("value")) if found else None


def _not_in_force(
    profile: Profile, options: SpawnOptions, category: str, wanted: str, option: Json
) -> LlmSessionError:
    if category == "mode" and options.guard is not None:
        return not_live(f"its mode {wanted} is not in force")
    given = [dict_or_empty(one).get("value") for one in list_or_empty(option.get("options"))]
    names = ", ".join(name for name in given if isinstance(name, str))
    return AgentFailed(
        f"{profile.command[0]} does not offer the {category} {wanted}",
        reason="bad_request",
        hint=f"it offers {names}" if names else None,
    )
