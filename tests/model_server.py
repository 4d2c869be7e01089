"""A scripted model: the Anthropic Messages API on loopback, for tests that drive a real agent.

A script (see `model_script`) is a function of the request. Replies are streamed as real server-sent
events in small pieces, with usage, so that the agent reports a cost. No model is involved: the test
supplies every reply.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from types import TracebackType
from typing import Any
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
from tests.model_sse import complete_message, sse_events
from tests.sources.subscribers import eventually

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
        if route == "/v1/messages/count_tokens":
            self._send_json(200, {"input_tokens": len(raw) // 4})
            return
        if route != "/v1/messages":
            self._send_json(404, _error("not_found_error", f"no {route} here"))
            return
        body = json.loads(raw)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._answer(self.owner._receive(self.path, headers, body), body)

    def _answer(self, reply: Reply, body: dict[str, Any]) -> None:
        match reply:
            case Message() if body.get("stream"):
                self._send_events(sse_events(self._complete(reply, body)), reply.headers)
            case Message():
                self._send_json(200, self._complete(reply, body), reply.headers)
            case ApiError(status, kind, message, headers):
                self._send_json(status, _error(kind, message), headers)
            case Drop(message, after_events, once):
                self._begin(message, after_events, body)
                closing = self.owner._closing
                assert once is None or eventually(lambda: once.is_set() or closing.is_set())
                self._reset()
            case Hang(seconds, message, after_events):
                self._begin(message, after_events, body)
                self.owner._closing.wait(seconds)
                self._reset()

    def _begin(self, message: Message | None, after_events: int, body: dict[str, Any]) -> None:
        if message is not None:
            events = list(sse_events(self._complete(message, body)))
            self._send_events(events[:after_events], message.headers, ends=False)

    def _complete(self, reply: Message, body: dict[str, Any]) -> dict[str, Any]:
        return complete_message(reply, number=next(self.owner._ids), model=body.get("model"))

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

    def _send_events(
        self,
        events: Iterable[tuple[str, dict[str, Any]]],
        headers: Mapping[str, str],
        *,
        ends: bool = True,
    ) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        for name, text in headers.items():
            self.send_header(name, text)
        self.end_headers()
        for name, value in events:
            data = f"event: {name}\ndata: {json.dumps(value)}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
        if ends:
            self.wfile.write(b"0\r\n\r\n")

    def _reset(self) -> None:
        self.close_connection = True
        _shut(self.connection)


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # closed already


def _error(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_test"}
