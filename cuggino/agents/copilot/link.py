"""The bridge to the GitHub Copilot SDK, for one session.

The SDK connects to a running program (`copilot --headless`) and starts none itself, so the program
and its process tree are supervised like any other child process.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reactivex import Observable

from cuggino.agents.base.link import AsyncLink
from cuggino.agents.base.program import encodable
from cuggino.agents.base.wire import Json
from cuggino.agents.copilot.guard import Gate

if TYPE_CHECKING:
    from copilot import CopilotClient
    from copilot.session import CopilotSession

DETACH_SECONDS = 2.0
"""Time for the program to detach from a session that has ended."""

HOST = "127.0.0.1"

_UNREADABLE = "Unknown PermissionRequest kind"


@dataclass(frozen=True, kw_only=True)
class Order:
    """The session to run."""

    prompt: str
    cwd: Path
    token: str
    """Authenticates the connection to the program."""
    system_prompt: str | None = None
    session_id: str | None = None
    resume_session_id: str | None = None
    model: str | None = None
    provider: Mapping[str, Any] | None = None
    """A custom model provider."""
    mcp_servers: Mapping[str, Any] = field(default_factory=dict)
    messages: Observable[str] | None = None
    """A person's messages to the running session."""

    def options(self, gate: Gate, on_event: Callable[[Any], None]) -> dict[str, Any]:
        """Return the arguments for a new or resumed session."""
        from copilot.rpc import PermissionDecisionApproveOnce, PermissionDecisionReject

        async def on_permission_request(request: Any, _invocation: Any) -> Any:
            if reason := await gate.permission(request.to_dict()):
                return PermissionDecisionReject(feedback=reason)
            return PermissionDecisionApproveOnce()

        async def on_pre_tool_use(data: Any, _invocation: Any) -> Any:
            return await gate.before_tool(data)

        options: dict[str, Any] = {
            "on_event": on_event,
            "on_permission_request": on_permission_request,
            # Without a handler for its questions the agent has no tool to ask them with.
            "on_user_input_request": None,
            "working_directory": str(self.cwd),
            "streaming": True,
        }
        if gate.guard is not None:
            options["hooks"] = {"on_pre_tool_use": on_pre_tool_use}
            # The hooks of the repository could run and approve anything.
            options["enable_file_hooks"] = False
        if self.system_prompt is not None:
            options["system_message"] = {"mode": "append", "content": self.system_prompt}
        if self.model is not None:
            options["model"] = self.model
        if self.provider is not None:
            options["provider"] = dict(self.provider)
        if self.mcp_servers:
            options["mcp_servers"] = {name: _server(s) for name, s in self.mcp_servers.items()}
        return options


def _hurry(client: Any) -> None:
    """Send each message at once.

    Messages are written in two parts, and the second would be delayed by 40 ms each time.
    """
    held = getattr(getattr(client, "_process", None), "_socket", None)
    if isinstance(held, socket.socket):
        held.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _server(server: Any) -> Any:
    """Convert a server from Claude Code's format to the SDK's."""
    if not isinstance(server, Mapping):
        return server
    return {"tools": ["*"], **({} if "url" in server else {"type": "local"}), **server}


class CopilotLink(AsyncLink):
    """One connection and its session; all callbacks run on its thread.

    `on_event` gets each event as JSON. `on_end` is called once, when the connection is closed: with
    None after `finish` or `close`, otherwise with the error.
    """

    def __init__(
        self,
        order: Order,
        gate: Gate,
        *,
        port: int,
        on_event: Callable[[Json], None],
        on_end: Callable[[Exception | None], None],
    ) -> None:
        super().__init__(name="copilot", logs=("copilot",))
        self._order = order
        self._gate = gate
        self._port = port
        self._on_event = on_event
        self._on_end = on_end
        self._finished = asyncio.Event()

    def say(self, text: str) -> None:
        """Send a person's message into the running session; thread-safe, does not wait."""
        self._send(text)

    def finish(self) -> None:
        """Let the program save the finished session, then close; thread-safe, does not wait."""
        with self._lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._finished.set)

    def _ended(self, error: Exception | None) -> None:
        self._on_end(error)

    async def _session(self) -> None:
        from copilot import CopilotClient, RuntimeConnection

        connection = RuntimeConnection.for_uri(
            f"{HOST}:{self._port}", connection_token=self._order.token
        )
        client = CopilotClient(connection=connection)
        try:
            await client.start()
            _hurry(client)
            session = await self._begin(client)
            await session.send(self._order.prompt)
            speaking = asyncio.create_task(self._speak(session))
            try:
                await self._finished.wait()
            finally:
                speaking.cancel()
            with suppress(Exception):
                await asyncio.wait_for(session.disconnect(), DETACH_SECONDS)
        finally:
            with suppress(Exception):
                await client.force_stop()

    async def _speak(self, session: CopilotSession) -> None:
        """Pass messages on, ignoring failures: `Steered` waits for the program's own report."""
        while True:
            text: str = await self._inbox.get()
            with suppress(Exception):
                await session.send(encodable(text), mode="immediate")

    async def _begin(self, client: CopilotClient) -> CopilotSession:
        options = self._order.options(self._gate, self._receive)
        if self._order.resume_session_id is not None:
            return await client.resume_session(self._order.resume_session_id, **options)
        return await client.create_session(session_id=self._order.session_id, **options)

    def _receive(self, event: Any) -> None:
        raw: Json = event.to_dict()
        self._gate.see(raw)
        self._on_event(raw)

    def _unheard(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handle an error within the SDK, mostly an event of a newer program that it cannot parse.

        An unreadable question would never be answered, and its tool would wait indefinitely.
        """
        error = context.get("exception")
        if isinstance(error, ValueError) and str(error).startswith(_UNREADABLE):
            self._on_end(error)
            return
        self._on_event({"type": "sdk.unreadable", "data": {"error": repr(error)}})
