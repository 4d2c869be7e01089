"""The bridge to the Claude Agent SDK, for one session.

The SDK starts no program: it uses the pipes of one that is supervised like any other child process.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reactivex import Observable

from cuggino.agents.base.link import AsyncLink
from cuggino.agents.base.wire import Json
from cuggino.agents.claude.input import input_message
from cuggino.agents.claude_sdk.guard import SdkGate
from cuggino.sources import InputPipe

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeSDKClient, SdkMcpTool, Transport
else:
    Transport = object
    """The SDK is imported when a session starts; it accepts any object with the same methods."""

TOOLS = "tools"
"""Server of the agent's own tools; the model calls them `mcp__tools__NAME`."""

_DELTA = b'{"type":"stream_event",'


@dataclass(frozen=True, kw_only=True)
class Order:
    """The parts of a session that are not on the program's command line."""

    prompt: str
    env: Mapping[str, str]
    tools: Sequence[SdkMcpTool[Any]] = ()
    """Tools that run in this process."""
    servers: Mapping[str, Any] = field(default_factory=dict)
    """Servers that run in this process, as the SDK takes them."""
    messages: Observable[str] | None = None
    """A person's messages to the running session."""


class PipeTransport(Transport):
    """The program as seen by the SDK: `stdin` to write to, and the lines given to `put`.

    `put` is thread-safe; everything else belongs to one event loop.
    """

    def __init__(self, stdin: InputPipe) -> None:
        self._stdin = stdin
        self._lines: deque[bytes] = deque()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._more = asyncio.Event()
        self._writing = asyncio.Lock()
        self._broken: BrokenPipeError | None = None
        self._is_ready = False

    def put(self, line: bytes) -> None:
        """Add a line that the program printed."""
        if line.startswith(_DELTA):
            return  # two thirds of all lines, which the SDK does not need
        with self._lock:
            self._lines.append(line)
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._more.set)

    async def connect(self) -> None:
        """Start reading lines."""
        with self._lock:
            self._loop = asyncio.get_running_loop()
            self._more.set()
        self._is_ready = True

    async def write(self, data: str) -> None:
        """Write all of the data, as fast as the program reads.

        Raises:
            BrokenPipeError: the program has closed its input.
        """
        async with self._writing:
            rest = memoryview(data.encode("utf-8", "replace"))
            try:
                while rest:
                    rest = rest[self._stdin.send(rest) :]
                    if rest:
                        await self._room()
            except BrokenPipeError as error:
                if self._stdin.fileno() >= 0:  # otherwise it was closed here
                    self._broken = error
                    self._more.set()
                raise

    async def _room(self) -> None:
        loop, there = asyncio.get_running_loop(), asyncio.Event()
        descriptor = self._stdin.fileno()
        loop.add_writer(descriptor, there.set)
        try:
            await there.wait()
        finally:
            loop.remove_writer(descriptor)

    async def _read(self) -> AsyncIterator[Json]:
        while True:
            await self._more.wait()
            self._more.clear()
            if self._broken is not None:
                raise self._broken  # the SDK itself does not report it
            while self._lines:
                if (raw := _object(self._lines.popleft())) is not None:
                    yield raw

    def read_messages(self) -> AsyncIterator[Json]:
        """Return the program's parsed lines; the iterator never ends, but can raise.

        Raises:
            BrokenPipeError: the program has closed its input.
        """
        return self._read()

    async def close(self) -> None:
        """Stop reading and writing."""
        self._is_ready = False
        with self._lock:
            self._loop = None
        self._shut()

    def is_ready(self) -> bool:
        """Return whether the SDK may write."""
        return self._is_ready

    async def end_input(self) -> None:
        """Close the program's input: it ends after its answer."""
        async with self._writing:
            self._shut()

    def _shut(self) -> None:
        if (descriptor := self._stdin.fileno()) >= 0:
            asyncio.get_running_loop().remove_writer(descriptor)
            self._stdin.close()


class ClaudeSdkLink(AsyncLink):
    """One session of the SDK; its callbacks, and the tools of the order, run on its thread.

    It owns `stdin` from now on. `on_error` is called at most once, when the SDK has failed.
    """

    def __init__(
        self,
        order: Order,
        gate: SdkGate | None,
        *,
        stdin: InputPipe,
        on_error: Callable[[Exception], None],
    ) -> None:
        super().__init__(name="claude-sdk", logs=("claude_agent_sdk", "mcp"))
        self._order = order
        self._gate = gate
        self._stdin = stdin
        self._on_error = on_error
        self._transport = PipeTransport(stdin)

    def say(self, message: Json) -> None:
        """Send a message to the program; thread-safe."""
        self._send(message)

    def finish(self) -> None:
        """End the program's input when it needs no more of it; thread-safe, does not wait."""
        self._send(None)

    def put(self, line: bytes) -> None:
        """Add a line that the program printed; thread-safe."""
        self._transport.put(line)

    def close(self) -> None:
        super().close()
        if self._thread.ident is None:
            self._stdin.close()

    def _ended(self, error: Exception | None) -> None:
        self._stdin.close()
        if error is not None:
            self._on_error(error)

    async def _session(self) -> None:
        from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

        options = ClaudeAgentOptions(
            env=dict(self._order.env),
            hooks=None if self._gate is None else self._gate.hooks(),
            mcp_servers=self._servers(),
            verbatim_prompts=True,
        )
        client = ClaudeSDKClient(options, self._transport)
        try:
            await client.connect(self._prompts())
            while await _unread(client):
                pass
        finally:
            try:
                await client.disconnect()
            finally:
                await self._transport.close()

    async def _prompts(self) -> AsyncIterator[Json]:
        more: Json | None = input_message(self._order.prompt)
        while more is not None:
            yield {**more, "parent_tool_use_id": None, "session_id": "default"}
            more = await self._inbox.get() if self._order.messages is not None else None

    def _servers(self) -> dict[str, Any]:
        from claude_agent_sdk import create_sdk_mcp_server

        servers = dict(self._order.servers)
        if self._order.tools:
            servers[TOOLS] = create_sdk_mcp_server(TOOLS, tools=list(self._order.tools))
        return servers


async def _unread(client: ClaudeSDKClient) -> bool:
    """Let the SDK read on; return True if it could not parse a message of a newer program.

    Its messages are not used, as `ClaudeSession` reads the program's lines anyway.
    """
    from claude_agent_sdk import ClaudeSDKError, CLIConnectionError

    try:
        async for _message in client.receive_messages():
            pass
    except CLIConnectionError:
        raise
    except ClaudeSDKError:
        return True
    return False


def _object(line: bytes) -> Json | None:
    """Return the JSON object on this line, with lone surrogates, which the guard must see."""
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return raw if isinstance(raw, dict) else None
