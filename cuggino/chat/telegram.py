"""Telegram, by the API of bots: https://core.telegram.org/bots/api."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reactivex import Observable, concat, empty, operators as ops

from cuggino.chat.channel import SMALLEST, Post, Reply, in_parts
from cuggino.chat.http import TIMEOUT, Http
from cuggino.operators.mapcat import mapcat

LIMIT = 4096
"""UTF-16 units of a message."""
WAIT = 50
"""Seconds that Telegram holds a request for updates."""
_LABEL = 60
_TOAST = 200


class TelegramChannel:
    """A chat with a bot. Only one program at a time can read the messages of a bot."""

    name = "telegram"

    def __init__(
        self, *, token: str, chat: int, url: str = "https://api.telegram.org", wait: int = WAIT
    ) -> None:
        self._http = Http(self.name, f"{url.rstrip('/')}/bot{token}")
        self._chat = chat
        self._wait = wait
        self._next = 0
        """Confirms the updates before it. 0 after an empty answer: their ids may begin anew."""

    def send(self, post: Post) -> Observable[Any]:
        """Send in parts that fit; a pressed button stops waiting, and shows the text."""
        limit = LIMIT if max(post.text, default="") <= SMALLEST else LIMIT // 2
        sending = in_parts(post, limit, self._send)
        if post.to is None or not post.to.handle:
            return sending
        toast = {"callback_query_id": post.to.handle, "text": post.text[:_TOAST]}
        pressed = self._http.lines("/answerCallbackQuery", toast)
        return concat(pressed.pipe(ops.catch(empty())), sending)  # it fails after some minutes

    def replies(self, after: str) -> Observable[Reply]:
        """Emit the messages and pressed buttons of the chat, from one long poll."""
        body: dict[str, Any] = {
            "timeout": self._wait,
            "allowed_updates": ["message", "callback_query"],
            "offset": self._next,
        }
        found = self._http.lines("/getUpdates", body, timeout=self._wait + TIMEOUT)
        return found.pipe(mapcat(self._read))

    def _send(self, post: Post) -> Observable[Any]:
        body: dict[str, Any] = {"chat_id": self._chat, "text": post.text or "…"}
        if post.buttons:
            rows = [
                [{"text": one.label[:_LABEL], "callback_data": one.reply}] for one in post.buttons
            ]
            body["reply_markup"] = {"inline_keyboard": rows}
        return self._http.lines("/sendMessage", body)

    def _read(self, answer: Any) -> Iterator[Reply]:
        updates = answer.get("result") or ()
        self._next = updates[-1]["update_id"] + 1 if updates else 0
        for update in updates:
            pressed = update.get("callback_query") or {}
            message = pressed.get("message") or update.get("message") or {}
            text = pressed.get("data") or message.get("text")
            if text and (message.get("chat") or {}).get("id") == self._chat:
                sender = pressed.get("from") or message.get("from") or {}
                quoted = {} if pressed else message.get("reply_to_message") or {}
                yield Reply(
                    id=str(update["update_id"]),
                    text=str(text),
                    sender=str(sender.get("username") or sender.get("first_name") or "somebody"),
                    quoted=str(quoted.get("text") or ""),
                    handle=str(pressed.get("id") or ""),
                )
