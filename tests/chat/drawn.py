"""A channel and an inbox that are drawn as marbles."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from reactivex import Observable, defer, empty, never

from cuggino.chat import Answer, Post, Question, Reply
from cuggino.errors import StorageError

DATABASE = Question(
    key="db.md",
    title="Which database?",
    text="# Which database?\n\n- PostgreSQL\n- SQLite",
    options=("PostgreSQL", "SQLite"),
)
LINKS = Question(key="links.md", title="How long?", text="# How long?")


class DrawnChannel:
    """Each call of `replies` plays the next stream, as each post does; then they only wait."""

    name = "drawn"

    def __init__(
        self, *replies: Observable[Reply], sending: Iterable[Observable[Any]] = ()
    ) -> None:
        self._replies = iter(replies)
        self._sending = iter(sending)
        self.sent: list[Post] = []
        self.after: list[str] = []

    @property
    def texts(self) -> list[str]:
        """Return the last line of each post."""
        return [post.text.splitlines()[-1] for post in self.sent]

    def send(self, post: Post) -> Observable[Any]:
        def send(_scheduler: object) -> Observable[Any]:
            self.sent.append(post)
            return next(self._sending, empty())

        return defer(send)

    def replies(self, after: str) -> Observable[Reply]:
        def listen(_scheduler: object) -> Observable[Reply]:
            self.after.append(after)
            return next(self._replies, never())

        return defer(listen)


class DrawnInbox:
    """Questions that are drawn; answers are kept, unless they are `refused` for a reason."""

    def __init__(self, questions: Observable[tuple[Question, ...]], *, refused: str = "") -> None:
        self._questions = questions
        self._refused = refused
        self.answers: list[tuple[str, Answer]] = []

    def questions(self) -> Observable[tuple[Question, ...]]:
        return self._questions

    def settle(self, key: str, answer: Answer, *, at: datetime) -> None:
        assert at.tzinfo is not None
        if self._refused:
            raise StorageError("answer", self._refused)
        self.answers.append((key, answer))


def codes(*names: str) -> Callable[[], str]:
    """Return a function that returns these codes, one after the other."""
    left = iter(names)
    return lambda: next(left)
