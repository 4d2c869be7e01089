"""Telegram and ntfy on loopback, and the phone of a person who uses them.

    with ChatServer() as server:
        channel = TelegramChannel(token=TOKEN, chat=CHAT, url=server.url)
        server.press(0)

`python -m tests.chat.services PORT` serves both until it is killed; the phone is `/phone`:
`curl localhost:PORT/phone`, `curl localhost:PORT/phone -d '{"press": 0}'`, or with `say`.
"""

from __future__ import annotations

import json
import random
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from tests.limits import LIMIT

TOKEN = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1"
CHAT = 42
TOPIC = "shop-7f3k2q9x"


class ChatServer(ThreadingHTTPServer):
    """Both services, with one chat and one topic."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.sent: list[dict[str, Any]] = []
        """The messages to the person, as they were sent."""
        self.toasts: list[str] = []
        self.calls: list[str] = []
        """The methods and paths of all requests."""
        self.faults: list[tuple[int, dict[str, Any]]] = []
        """Answers to the next requests of Telegram or posts to ntfy."""
        self.first = 100
        self.updates: list[dict[str, Any]] = []
        self.answers: list[dict[str, Any]] = []
        """The messages in the topic for answers."""
        self.changed = threading.Condition()
        self.is_over = False

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that have left."""

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.over()
        self.shutdown()
        self.server_close()

    def over(self) -> None:
        """End all held requests."""
        with self.changed:
            self.is_over = True
            self.changed.notify_all()

    # -- the person

    def say(self, text: str, *, to: int | None = None, chat: int = CHAT) -> None:
        """Write in the chat, as a reply to the message with this number if one is given."""
        message: dict[str, Any] = {"chat": {"id": chat}, "from": {"first_name": "Ada"}}
        message["text"] = text
        if to is not None:
            message["reply_to_message"] = {"text": self.sent[to]["text"]}
        self.update(message=message)

    def press(self, button: int, *, of: int = -1, chat: int = CHAT) -> None:
        """Press a button of the message with this number, on either service."""
        message = self.sent[of]
        if actions := message.get("actions"):
            self.answer(actions[button]["body"])
            return
        (pressed,) = message["reply_markup"]["inline_keyboard"][button]
        query = {"id": "q1", "from": {"first_name": "Ada"}, "data": pressed["callback_data"]}
        self.update(callback_query={**query, "message": {"chat": {"id": chat}}})

    def update(self, **update: Any) -> None:
        """Add an update of Telegram."""
        with self.changed:
            self.updates.append({"update_id": self.first + len(self.updates), **update})
            self.changed.notify_all()

    def answer(self, text: str) -> None:
        """Post to the topic for answers of ntfy."""
        with self.changed:
            self.answers.append(
                {"id": f"m{len(self.answers)}", "event": "message", "message": text}
            )
            self.changed.notify_all()

    def texts(self) -> list[str]:
        """Return the texts of the messages to the person."""
        return [one.get("text") or one["message"] for one in self.sent]

    def until(self, count: int) -> list[str]:
        """Wait until so many messages were sent; return their texts."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.sent) >= count, LIMIT), self.texts()
        return self.texts()

    def note(self, message: dict[str, Any]) -> None:
        """Note a message to the person."""
        with self.changed:
            self.sent.append(message)
            self.changed.notify_all()


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server = self.server
        server.calls.append(self.path)
        if self.path == "/phone":
            self._answer(200, server.sent)
            return
        self.send_response(200)
        self.end_headers()
        self.close_connection = True
        self._line({"id": "o", "event": "open", "time": 1700000000})
        since = self.path.partition("since=")[2]
        ids = [one["id"] for one in server.answers]
        at = ids.index(since) + 1 if since in ids else 0 if since == "all" else len(ids)
        with server.changed:
            while True:
                server.changed.wait_for(lambda: server.is_over or len(server.answers) > at, 1)
                if server.is_over:
                    return
                try:
                    self._line({"event": "keepalive"})
                    for one in server.answers[at:]:
                        self._line(one)
                except OSError:
                    return
                at = len(server.answers)

    def do_POST(self) -> None:
        server = self.server
        server.calls.append(self.path)
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.path == "/phone":
            asked = json.loads(text)
            if "press" in asked:
                server.press(asked["press"], of=asked.get("of", -1))
            else:
                server.say(asked["say"], to=asked.get("to"))
            self._answer(200, {})
        elif self.path.endswith("-answers"):
            server.answer(text)
            self._answer(200, {})
        elif server.faults:
            self._answer(*server.faults.pop(0))
        elif self.path == "/":
            server.note(json.loads(text))
            self._answer(200, {})
        else:
            self._answer(200, {"ok": True, "result": self._telegram(json.loads(text))})

    def _telegram(self, body: dict[str, Any]) -> object:
        server, method = self.server, self.path.rpartition("/")[2]
        assert self.path.startswith(f"/bot{TOKEN}/")
        match method:
            case "sendMessage":
                assert CHAT == body["chat_id"]
                server.note(body)
                return {"message_id": len(server.sent)}
            case "answerCallbackQuery":
                server.toasts.append(body["text"])
                return True
            case _:
                with server.changed:

                    def new() -> list[dict[str, Any]]:
                        return [one for one in server.updates if one["update_id"] >= body["offset"]]

                    server.changed.wait_for(lambda: server.is_over or new(), body["timeout"])
                    return new()

    def _line(self, value: object) -> None:
        self.wfile.write(json.dumps(value).encode() + b"\n")
        self.wfile.flush()

    def _answer(self, status: int, value: object) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


if __name__ == "__main__":
    playing = ChatServer(int(sys.argv[1]))
    playing.first = random.randrange(10**9)
    playing.serve_forever()
