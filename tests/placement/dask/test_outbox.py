"""The buffer between an attempt and the sender of its texts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cuggino.placement.dask.outbox import BATCH, BATCH_SIZE, DELAY, WAITING, Batch, Outbox
from tests.processes.subscribers import eventually


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def putting(outbox: Outbox, count: int) -> Iterator[threading.Thread]:
    """Put texts on another thread, as an attempt does."""

    def put() -> None:
        for each in range(count):
            outbox.put(str(each))

    thread = threading.Thread(target=put)
    thread.start()
    try:
        yield thread
    finally:
        outbox.close()
        thread.join()


def send(outbox: Outbox) -> list[str]:
    batch = outbox.batch()
    outbox.sent(batch)
    return batch.texts


def test_batch_is_due_when_full_or_old() -> None:
    """A text waits for others until there are 64, or for 50 ms."""
    clock = Clock()
    outbox = Outbox(clock=clock)
    assert outbox.due() is None
    outbox.put("a")
    assert DELAY == 0.05 == pytest.approx(outbox.due())
    clock.now += 1
    assert (outbox.due() or 0) < 0
    for number in range(BATCH - 1):
        outbox.put(str(number))
    clock.now -= 1
    assert 0.0 == outbox.due()
    assert 64 == BATCH == len(send(outbox))
    assert outbox.due() is None


def test_batches_are_limited() -> None:
    """A batch has at most 64 texts, or one that is larger than a batch may be."""
    outbox = Outbox()
    texts = [*map(str, range(70)), "x" * BATCH_SIZE, "y" * (2 * BATCH_SIZE), "z"]
    for text in texts:
        outbox.put(text)
    batches = [send(outbox) for _ in range(5)]
    assert texts == [text for batch in batches for text in batch]
    assert [64, 6, 1, 1, 1] == [len(batch) for batch in batches]


def test_back_pressure() -> None:
    """The number of unsent texts is bounded; the attempt continues once some are sent."""
    outbox = Outbox()
    with putting(outbox, 10 * WAITING) as thread:
        assert eventually(lambda: len(outbox.rest().texts) == WAITING)
        assert thread.is_alive()
        send(outbox)
        assert eventually(lambda: len(outbox.rest().texts) == WAITING + BATCH)
        outbox.acknowledge(BATCH)
        assert eventually(lambda: len(outbox.rest().texts) == WAITING)


def test_nobody_receives() -> None:
    """Any number of texts is kept while there are no receivers."""
    outbox = Outbox()
    with putting(outbox, 10 * WAITING) as thread:
        outbox.hold(True)
        thread.join()
        assert 10 * WAITING == len(outbox.rest().texts)


def test_another_receiver() -> None:
    """It receives from the first text that was not acknowledged."""
    outbox = Outbox()
    for number in range(100):
        outbox.put(str(number))
    first = outbox.batch()
    outbox.sent(first)
    outbox.acknowledge(10)
    outbox.rewind()
    assert Batch(10, [str(number) for number in range(10, 74)]) == outbox.batch()
    outbox.sent(first)  # it was on its way to the earlier one
    assert 10 == outbox.batch().start
    assert (10, 90) == (outbox.rest().start, len(outbox.rest().texts))


def test_acknowledged_more_than_sent() -> None:
    """A receiver that has recorded more than was acknowledged receives what follows."""
    outbox = Outbox()
    for number in range(20):
        outbox.put(str(number))
    outbox.acknowledge(15)
    assert ["15", "16", "17", "18", "19"] == send(outbox)
    outbox.acknowledge(1000)
    outbox.acknowledge(3)
    assert Batch(20, []) == outbox.rest()


def test_closed_outbox_lets_go() -> None:
    """Closing frees a blocked attempt, and drops all of its later texts."""
    outbox = Outbox()
    with putting(outbox, 10 * WAITING) as thread:
        assert eventually(lambda: len(outbox.rest().texts) == WAITING)
        outbox.close()
        thread.join()
    assert WAITING == len(outbox.rest().texts)
