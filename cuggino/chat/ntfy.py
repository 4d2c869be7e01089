"""ntfy, https://docs.ntfy.sh: questions to one topic, answers from another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from reactivex import Observable, operators as ops

from cuggino.chat.channel import Post, Reply, in_parts
from cuggino.chat.http import Http
from cuggino.operators.mapcat import mapcat

LIMIT = 4096
"""Bytes of a message; a longer one becomes an attachment."""
SILENCE = 120.0
"""Seconds without a line after which a connection counts as lost; ntfy sends one every 45."""
MOST_BUTTONS = 3
_ANSWERS = "-answers"


class NtfyChannel:
    """A topic, and the one with `-answers` after its name for what comes back.

    A button posts to that topic from the phone, without a login. ntfy does not know who writes, so
    that replies have no sender.
    """

    name = "ntfy"

    def __init__(
        self, *, topic: str, token: str | None = None, url: str = "https://ntfy.sh"
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else None
        self._http = Http(self.name, url, headers=headers)
        self._topic = topic
        self._answers = f"/{quote(topic, safe='')}{_ANSWERS}"
        self._url = url.rstrip("/") + self._answers

    def send(self, post: Post) -> Observable[Any]:
        """Send in parts that fit, with three buttons at most."""
        return in_parts(post, LIMIT if post.text.isascii() else LIMIT // 4, self._send)

    def replies(self, after: str) -> Observable[Reply]:
        """Emit the next message of the topic for answers, however long that takes."""
        since = quote(after, safe="") or "all"
        lines = self._http.lines(f"{self._answers}/json?since={since}", timeout=SILENCE)
        return lines.pipe(mapcat(_read), ops.take(1))

    def _send(self, post: Post) -> Observable[Any]:
        actions = [
            {
                "action": "http",
                "label": one.label,
                "url": self._url,
                "method": "POST",
                "body": one.reply,
                "clear": True,
            }
            for one in post.buttons[:MOST_BUTTONS]
        ]
        body = {"topic": self._topic, "message": post.text or "…", "actions": actions}
        return self._http.lines("", body)


def _read(line: Any) -> Iterator[Reply]:
    if line.get("event") == "message":
        yield Reply(id=str(line["id"]), text=str(line.get("message", "")))
