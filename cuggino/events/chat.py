"""Events of a conversation with a person over a chat service."""

from __future__ import annotations

from cuggino.events.watch import WatchLoopEvent


class ChatAsked(WatchLoopEvent):
    """A question was sent to a person."""

    channel: str
    """The service, such as `telegram`."""
    question: str
    """The key of the question; that of a spec issue is its file name."""
    title: str


class ChatAnswered(WatchLoopEvent):
    """A person's answer was recorded."""

    channel: str
    question: str
    sender: str
    """The name of the person; empty where the service has none."""
    text: str


class ChatRefused(WatchLoopEvent):
    """A message from the chat was not accepted, and its sender was told."""

    channel: str
    sender: str
    reason: str
