"""The texts of an attempt that the client has not acknowledged yet."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

BATCH = 64
"""Maximum number of texts in a batch."""

BATCH_SIZE = 256 * 1024
"""Characters after which a batch takes no more texts."""

DELAY = 0.05
"""Maximum seconds that a text waits for others to fill its batch."""

WAITING = 2 * BATCH
"""Unsent texts at which back-pressure holds the attempt."""


class Batch(NamedTuple):
    """Consecutive texts; `start` is the number of texts before them."""

    start: int
    texts: list[str]


class Outbox:
    """A buffer between the attempt's thread and the sender.

    Texts are kept until the client acknowledges them, so that another client can receive them. The
    number of unsent texts is bounded, except while `hold` is on because there is no client.
    """

    def __init__(
        self,
        on_text: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._on_text = on_text
        self._clock = clock
        self._condition = threading.Condition()
        self._texts: list[str] = []
        self._first = 0
        """Number of texts before those kept."""
        self._sent = 0
        """Number of texts sent or acknowledged."""
        self._since = 0.0
        """The time the oldest unsent text was added."""
        self._unbounded = False
        self._closed = False

    def put(self, text: str) -> None:
        """Add a text; block while too many are unsent."""
        with self._condition:
            while not (self._closed or self._unbounded) and self._unsent() >= WAITING:
                self._condition.wait()
            if self._closed:
                return
            if not self._unsent():
                self._since = self._clock()
            self._texts.append(text)
            unsent = self._unsent()
        if unsent == 1 or unsent >= BATCH:
            self._on_text()

    def due(self) -> float | None:
        """Return the seconds until a batch is due, or None without unsent texts."""
        with self._condition:
            unsent = self._unsent()
            if not unsent:
                return None
            return 0.0 if unsent >= BATCH else self._since + DELAY - self._clock()

    def batch(self) -> Batch:
        """Return the next texts to send."""
        with self._condition:
            texts: list[str] = []
            size = 0
            for text in self._texts[self._sent - self._first :][:BATCH]:
                if texts and size + len(text) > BATCH_SIZE:
                    break
                texts.append(text)
                size += len(text)
            return Batch(self._sent, texts)

    def sent(self, batch: Batch) -> None:
        """Record that the batch was sent, unless `rewind` was called meanwhile."""
        with self._condition:
            if self._sent == batch.start:
                self._sent += len(batch.texts)
                self._since = self._clock()
                self._condition.notify_all()

    def acknowledge(self, count: int) -> None:
        """Drop the first `count` texts of the attempt."""
        with self._condition:
            dropped = min(count - self._first, len(self._texts))
            if dropped > 0:
                del self._texts[:dropped]
                self._first += dropped
                self._sent = max(self._sent, self._first)
                self._condition.notify_all()

    def rewind(self) -> None:
        """Send all unacknowledged texts again, to another receiver."""
        with self._condition:
            self._sent = self._first

    def hold(self, unbounded: bool) -> None:
        """Lift or restore the bound on unsent texts."""
        with self._condition:
            self._unbounded = unbounded
            self._condition.notify_all()

    def close(self) -> None:
        """Accept no more texts, and release a blocked `put`."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def rest(self) -> Batch:
        with self._condition:
            return Batch(self._first, list(self._texts))

    def _unsent(self) -> int:
        return self._first + len(self._texts) - self._sent
