"""A chat service, as the rest of cuggino sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from reactivex import Observable, concat

SMALLEST = "\uffff"
"""The last character that every service counts as one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A message from a person of the configured chat."""

    id: str
    """Its id in the service; of two replies with the same one, the second is ignored."""
    text: str
    """What was written, or the `reply` of the pressed button."""
    sender: str = ""
    """The person, if the service knows who writes; empty where anyone could have."""
    quoted: str = ""
    """The text of the message that it replies to."""
    handle: str = ""
    """What the channel needs to acknowledge it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """A button below a message."""

    label: str
    reply: str
    """The text of the `Reply` when it is pressed; at most 64 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A message to the person: plain text, of any length."""

    text: str
    buttons: tuple[Button, ...] = ()
    to: Reply | None = None
    """The reply that it acknowledges."""


class Channel(Protocol):
    """One chat of a service; implement it for another one.

    Both streams are cold, use the scheduler given to `subscribe`, and fail with `ChatError`, whose
    message contains no secret. What fails in passing is tried again by the caller.
    """

    name: str
    """The name of the service, such as `telegram`."""

    def send(self, post: Post) -> Observable[Any]:
        """Send a post; complete when the service has it."""

    def replies(self, after: str) -> Observable[Reply]:
        """Wait a while for the replies after the one with this id, emit them, and complete.

        `after` is empty as long as there was none. The next call comes when all replies are dealt
        with, so that a killed process loses none.
        """


class ChannelNotifier:
    """A notifier (`cuggino.notify`) that sends to a channel."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def notify(self, title: str, body: str) -> Observable[Any]:
        return self._channel.send(Post(text=f"{title}\n\n{body}" if body else title))


def in_parts(post: Post, limit: int, send_one: Any) -> Observable[Any]:
    """Send a post in parts that fit; the last one has the buttons."""
    *before, last = split(post.text, limit)
    parts = [Post(text=part, to=post.to) for part in before]
    return concat(*map(send_one, [*parts, Post(text=last, buttons=post.buttons, to=post.to)]))


def split(text: str, limit: int) -> list[str]:
    """Return the text in parts of at most `limit` characters, cut between paragraphs or lines."""
    parts: list[str] = []
    while len(text) > limit:
        beginning = text[:limit]
        end = next((at for mark in ("\n\n", "\n") if (at := beginning.rfind(mark)) > 0), 0)
        parts.append(text[: end or limit])
        text = text[end:].lstrip("\n") if end else text[limit:]
    return [*parts, text] if text or not parts else parts
