"""The link: placing attempts, their texts, orders to them, and their ends."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from distributed import Client, Future

from cuggino import run
from cuggino.placement.dask import (
    AttemptLost,
    DaskLink,
    DaskWorker,
    Placed,
    RemoteFailed,
    link as of_link,
)
from cuggino.placement.dask.outbox import BATCH, BATCH_SIZE, DELAY, WAITING, Batch, Outbox
from cuggino.testing import no_leaks
from tests.limits import LIMIT
from tests.placement.dask.cluster import Cluster
from tests.placement.dask.watching import TASKS, any_alive, begun, begun_agent, listed, queues
from tests.processes.subscribers import Recorder, eventually, wait_for


def test_texts_come_in_order(link: DaskLink) -> None:
    """Every text of an attempt arrives once, in order, before the stream completes."""
    texts = listed(link, begun(link, "order", "count", "10000"))
    assert [str(number) for number in range(10000)] == texts


def test_texts_of_several_attempts(link: DaskLink) -> None:
    """Attempts on all workers at once do not mix their texts."""
    assert eventually(lambda: len(_workers(link)) == 3)
    placed = [begun(link, f"several-{number}", "count", "2000") for number in range(6)]
    received = [Recorder(link.events(each)) for each in placed]
    assert [[str(number) for number in range(2000)]] * 6 == [each.wait().items for each in received]
    assert {"w1", "w2", "w3"} == {each.worker for each in placed}


def test_orders_come_in_order(link: DaskLink) -> None:
    placed = begun(link, "orders", "echo")
    echoed = Recorder(link.events(placed))
    expected = [f"order {number}" for number in range(200)]
    for order in [*expected, "end"]:
        link.tell(placed, order)
    echoed.wait()
    assert expected == echoed.items
    assert echoed.completed


def test_any_text_passes(link: DaskLink) -> None:
    """Line ends, lone surrogates and large texts arrive as they are."""
    placed = begun(link, "texts", "echo")
    echoed = Recorder(link.events(placed))
    expected = ["", "a\r\nb\n\0", "\udc80 \U0001f600 é", "x" * 3_000_000]
    for order in [*expected, "end"]:
        link.tell(placed, order)
    assert expected == echoed.wait().items


def test_failure_comes_after_the_texts(link: DaskLink) -> None:
    """A function that raises is an error with its message and hint, after its texts."""
    placed = begun(link, "broken", "broken", "it broke")
    received = Recorder(link.events(placed)).wait()
    assert ["before"] == received.items
    assert isinstance(received.error, RemoteFailed)
    assert ("it broke", "mend it") == (received.error.message, received.error.hint)


def test_slow_subscriber_holds_the_attempt(
    link: DaskLink, observer: Client, tmp_path: Path
) -> None:
    """While a text is being processed, a bounded number of others is produced."""
    made, goes_on = tmp_path / "made", threading.Event()
    work = json.dumps({"file": str(made), "count": 20_000})
    placed = begun(link, "slow", "counted", work)
    received = Recorder(link.events(placed), on_next=lambda _: wait_for(goes_on))
    assert eventually(lambda: (16, 16) in queues(observer, "slow").values())
    held = made.stat().st_size
    goes_on.set()
    received.wait()
    assert held <= 64 * (1 + 16 + 2) + 1
    assert [str(number) for number in range(20_000)] == received.items


def test_queues_are_named_and_removed(link: DaskLink, observer: Client) -> None:
    """Each queue has the key of its attempt in its name, and none outlives it."""
    placed = begun(link, "named-7-1", "echo")
    echoed = Recorder(link.events(placed))
    link.tell(placed, "a")
    echoed.wait_first()
    assert ["cuggino-named-7-1"] * 2 == [
        name.partition(":")[0] for name in queues(observer, "named-7-1")
    ]
    link.tell(placed, "end")
    echoed.wait()
    assert eventually(lambda: not queues(observer, "named-7-1"))


def test_cancel_ends_the_processes(link: DaskLink, observer: Client) -> None:
    """The stream of `cancel` completes when the agent and its tool are gone."""
    placed, texts, pids = begun_agent(link, "cancelled")
    assert any_alive(pids)
    run(link.cancel(placed))
    assert not any_alive(pids)
    assert texts.wait().completed
    assert eventually(lambda: not queues(observer, "cancelled"))
    assert eventually(lambda: not any(any(each.used.values()) for each in _workers(link)))


def test_cancel_without_a_subscriber(link: DaskLink) -> None:
    """The call itself cancels, also an attempt that is held by back-pressure."""
    goes_on = threading.Event()
    placed = begun(link, "unsubscribed", "count", "100000")
    received = Recorder(link.events(placed), on_next=lambda _: wait_for(goes_on))
    received.wait_first()
    run(link.cancel(placed))
    goes_on.set()
    assert received.wait().completed
    assert len(received.items) <= 64


def test_cancel_after_the_end(link: DaskLink) -> None:
    placed = begun(link, "over", "count", "3")
    assert ["0", "1", "2"] == listed(link, placed)
    assert run(link.cancel(placed)) is None
    link.tell(placed, "too late")


def test_needs_bound_attempts(link: DaskLink) -> None:
    """No more attempts run on a worker than it has of what they need."""
    placing = [
        Recorder(link.place(f"need-{number}", "", f"{TASKS}:echo", needs={"alone": 1}))
        for number in range(4)
    ]
    assert eventually(lambda: sum(each.completed for each in placing) == 3)
    begun_at_once = [each for each in placing if each.completed]
    first = [each.items[0] for each in begun_at_once]
    assert {"w1", "w2", "w3"} == {each.worker for each in first}
    used = [{"alone": 1.0, "place": 0}] * 3
    assert eventually(lambda: used == [dict(each.used) for each in _workers(link)])
    link.tell(first[1], "end")
    (last,) = (each for each in placing if each not in begun_at_once)
    assert first[1].worker == last.wait().items[0].worker


def test_withdrawn_before_it_begins(link: DaskLink) -> None:
    """Disposal withdraws an attempt that waits for a worker."""
    waiting = Recorder(link.place("withdrawn", "", f"{TASKS}:echo", needs={"nowhere": 1}))
    waiting.subscription.dispose()
    assert not waiting.items


def test_attempt_goes_on_without_a_subscriber(link: DaskLink) -> None:
    """A new subscription begins after the last text that was processed."""
    placed = begun(link, "again", "echo")
    first = Recorder(link.events(placed))
    link.tell(placed, "a")
    first.wait_first()
    first.subscription.dispose()
    for order in ("b", "c", "end"):
        link.tell(placed, order)
    assert ["b", "c"] == listed(link, placed)


def test_cancelled_by_somebody_else(link: DaskLink, observer: Client) -> None:
    """It is not taken for the end of the attempt."""
    placed = begun(link, "foreign", "echo")
    texts = Recorder(link.events(placed))
    link.tell(placed, "a")
    texts.wait_first()
    observer.publish_dataset(foreign=Future("foreign", observer))
    observer.cancel([observer.get_dataset("foreign")], force=True)
    observer.unpublish_dataset("foreign")
    assert isinstance(texts.wait().error, AttemptLost)


def test_key_is_used_once(link: DaskLink) -> None:
    begun(link, "twice", "echo")
    with pytest.raises(RemoteFailed, match="the attempt twice was placed already"):
        begun(link, "twice", "echo")


def test_unknown_attempt(link: DaskLink) -> None:
    with pytest.raises(RemoteFailed, match="the attempt nobody was not placed over this link"):
        run(link.events(Placed("nobody", "w1")))


def test_subscriber_that_raises(link: DaskLink) -> None:
    """An exception of a subscriber is its error, and the attempt can be cancelled."""
    placed = begun(link, "raises", "count", "1000")

    def refuse(text: str) -> None:
        if text == "70":
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run(link.events(placed), refuse)
    run(link.cancel(placed))


def test_closed_link_leaves_nothing(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing ends the attempts, and the threads and connections in this process."""
    monkeypatch.setattr(of_link, "_CLOSING", LIMIT)
    with no_leaks(within=LIMIT):
        with DaskLink(cluster.address, timeout=LIMIT) as link:
            _, texts, pids = begun_agent(link, "closed")
            assert any_alive(pids)
        assert not any_alive(pids)
        assert texts.wait().completed


def test_closing_waits_for_what_is_cancelled(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever cancels and closes at once leaves no process."""
    monkeypatch.setattr(of_link, "_CLOSING", LIMIT)
    with DaskLink(cluster.address, timeout=LIMIT) as link:
        at_work = [begun_agent(link, f"closing-{number}") for number in range(3)]
        for placed, _, _ in at_work:
            link.cancel(placed)
    assert not any_alive([pid for _, _, pids in at_work for pid in pids])


def _workers(link: DaskLink) -> tuple[DaskWorker, ...]:
    return run(link.workers()) or ()


# -- the buffer between an attempt and the sender of its texts


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
