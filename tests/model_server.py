"""A scripted model on loopback, for tests that drive a real agent.

`ModelServer` speaks the Anthropic Messages API; subclasses speak those of other providers and read
their requests as ones for messages, so that every script sees the same `ModelRequest`.

A script (see `model_script`) is a function of the request. Replies are streamed as real server-sent
events in small pieces, with usage, so that the agent reports a cost. No model is involved: the test
supplies every reply.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count, islice
from types import TracebackType
from typing import Any, ClassVar
from urllib.parse import urlsplit

from tests.model_script import (
    ApiError,
    Drop,
    Hang,
    Message,
    ModelRequest,
    Reply,
    RoleScript,
    Script,
    Text,
    Thought,
    Tool,
)
from tests.model_sse import Events, complete_message, sse_events
from tests.processes.subscribers import eventually

__all__ = [
    "ApiError",
    "Drop",
    "Hang",
    "Message",
    "ModelRequest",
    "ModelServer",
    "Reply",
    "RoleScript",
    "Script",
    "Text",
    "Thought",
    "Tool",
]


class ModelServer:
    """The server, a context manager that listens on its own port until it is left.

    Leaving releases every `Hang`, closes all connections, and waits for all threads.
    """

    counter: ClassVar[tuple[str, str]] = ("/v1/messages/count_tokens", "input_tokens")
    """The end of the path that counts tokens, and the name of the number in its answer."""
    last: ClassVar[str] = ""
    """What ends a complete stream."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._requests: list[ModelRequest] = []
        self._failures: list[BaseException] = []
        self._lock = threading.RLock()
        self._sockets: set[socket.socket] = set()
        self._closing = threading.Event()
        self._ids = count(1)
        server = self

        class Handler(_Handler):
            owner = server

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = False
        self._http.block_on_close = True
        self._thread = threading.Thread(target=self._serve, name="model-server")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def read(self, route: str, raw: bytes) -> dict[str, Any] | None:
        """Return the request as one for a message; None if the API has no such route."""
        body: dict[str, Any] = json.loads(raw)
        return body if route == "/v1/messages" else None

    def whole(self, reply: Message, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the message in one piece."""
        return complete_message(reply, number=next(self._ids), model=body.get("model"))

    def events(self, reply: Message, body: Mapping[str, Any]) -> Events:
        """Yield the events that stream the message."""
        return sse_events(self.whole(reply, body))

    def failed(self, error: ApiError) -> dict[str, Any]:
        """Return the body of the error."""
        told = {"type": error.type, "message": error.message}
        return {"type": "error", "error": told, "request_id": "req_test"}

    @property
    def requests(self) -> list[ModelRequest]:
        """Return the requests for messages so far, in the order of arrival."""
        with self._lock:
            return list(self._requests)

    @property
    def transcript(self) -> str:
        """Describe each request by its path, its turn and the end of its conversation."""
        return "\n".join(
            f"{number}: {request.path}, turn {request.turns}: ...{request.messages_text[-500:]!r}"
            for number, request in enumerate(self.requests)
        )

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._closing.set()
        self._http.shutdown()
        with self._lock:
            sockets = list(self._sockets)
        for connection in sockets:
            _shut(connection)
        self._http.server_close()
        self._thread.join()
        if exc is None and self._failures:
            raise self._failures[0]

    def _serve(self) -> None:
        self._http.serve_forever(poll_interval=0.02)

    def _receive(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Reply:
        with self._lock:
            request = ModelRequest(
                number=len(self._requests), path=path, headers=headers, body=body
            )
            self._requests.append(request)
            try:
                return self._script(request)
            except BaseException as error:
                # The agent would retry for minutes: stop here, and raise when the server is left.
                self._failures.append(error)
                return ApiError(400, "invalid_request_error", f"the script failed: {error!r}")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: ModelServer

    def setup(self) -> None:
        super().setup()
        with self.owner._lock:
            self.owner._sockets.add(self.connection)
        if self.owner._closing.is_set():
            _shut(self.connection)

    def finish(self) -> None:
        with self.owner._lock:
            self.owner._sockets.discard(self.connection)
        super().finish()

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:
            self.close_connection = True  # closed by the agent or at the end of the test

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: a failing test shows the requests instead."""

    def do_HEAD(self) -> None:
        self._send_json(200, None)

    def do_GET(self) -> None:
        self._send_json(200, {})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        route = urlsplit(self.path).path
        path, name = self.owner.counter
        if path and route.endswith(path):
            self._send_json(200, {name: len(raw) // 4})
            return
        body = self.owner.read(route, raw)
        if body is None:
            self._answer(ApiError(404, "not_found_error", f"no {route} here"), {})
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._answer(self.owner._receive(self.path, headers, body), body)

    def _answer(self, reply: Reply, body: dict[str, Any]) -> None:
        match reply:
            case Message() if body.get("stream"):
                self._stream(reply, body)
            case Message():
                self._send_json(200, self.owner.whole(reply, body), reply.headers)
            case ApiError(status, headers=headers):
                self._send_json(status, self.owner.failed(reply), headers)
            case Drop(message, after_events, once):
                self._stream(message, body, after_events)
                closing = self.owner._closing
                assert once is None or eventually(lambda: once.is_set() or closing.is_set())
                self._reset()
            case Hang(seconds, message, after_events):
                self._stream(message, body, after_events)
                self.owner._closing.wait(seconds)
                self._reset()

    def _send_json(
        self, status: int, value: object, headers: Mapping[str, str] | None = None
    ) -> None:
        data = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)

    def _stream(
        self, message: Message | None, body: dict[str, Any], only: int | None = None
    ) -> None:
        """Stream the message, or only the first of its events."""
        if message is None:
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        for name, text in message.headers.items():
            self.send_header(name, text)
        self.end_headers()
        for event, value in islice(self.owner.events(message, body), only):
            named = "" if event is None else f"event: {event}\n"
            self._chunk(f"{named}data: {json.dumps(value)}\n\n")
        if only is None:
            if self.owner.last:
                self._chunk(self.owner.last)
            self._chunk("")

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def _reset(self) -> None:
        self.close_connection = True
        _shut(self.connection)


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # closed already
