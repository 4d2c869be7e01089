"""The Dask task of an attempt, which runs on a worker."""

from __future__ import annotations

import asyncio
import importlib
import json
import threading
import time
import zlib
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeAlias

from distributed import Queue, Status, get_client, get_worker
from reactivex import Observable, Observer, defer
from reactivex.subject import ReplaySubject

from cuggino._version import __version__
from cuggino.errors import CugginoError
from cuggino.operators import LoopScheduler
from cuggino.operators.on_loop import crossing
from cuggino.placement.dask.outbox import Outbox
from cuggino.placement.dask.registry import claim, drop_queue, end, queue_name

Function: TypeAlias = Callable[[str, Observable[str]], Observable[str]]
"""Takes the work and the orders to it, and returns the texts for the client."""

SAME_VERSION = "install the same version on the client, the scheduler and all workers"
SAME_PACKAGES = "install the same packages on the client and all workers"

QUEUE = 16
"""Maximum number of batches on the scheduler that the client has not taken."""

LOOK = 0.2
"""Seconds between checks that any client still wants the attempt."""

ABSENT = 5.0
"""Seconds without a message from the client before a detached attempt continues without it."""

_POLL = 20.0
_PUT = "1s"
_IDLE = 1.0


def probe(task: str, version: str) -> tuple[str, str] | None:
    """Return the problem that keeps this worker from running the function, and advice, or None."""
    if version != __version__:
        return f"has cuggino {__version__}, the client has {version}", SAME_VERSION
    try:
        _function(task)
    except (ImportError, AttributeError) as error:
        return f"has no {task}: {error}", SAME_PACKAGES
    return None


def run(key: str, packed: bytes, task: str, detach: bool) -> str:
    """Run the function named by `task`; return the texts that the client has not taken, as JSON.

    Returns early once the task is cancelled, the client or the scheduler is gone, or the worker is
    closing; everything that the function started is released first.
    """
    worker = get_worker()
    client = get_client()
    function = _function(task)
    work = zlib.decompress(packed).decode("utf-8", "surrogatepass")
    if not client.run_on_scheduler(claim, key, worker.get_current_task(), worker.contact_address):
        return json.dumps({"cut": True})
    try:
        return _Attempt(key, function, work, detach=detach, worker=worker, client=client).run()
    finally:
        _soon(client, client._run_on_scheduler(end, key))


def _soon(client: Any, coroutine: Any) -> None:
    """Wait briefly for a call to the scheduler, which may be dead."""
    with suppress(Exception):
        asyncio.run_coroutine_threadsafe(coroutine, client.loop.asyncio_loop).result(timeout=2.0)


def _function(task: str) -> Function:
    module, _, name = task.partition(":")
    function: Function = getattr(importlib.import_module(module), name)
    return function


class _Attempt:
    def __init__(
        self, key: str, function: Function, work: str, *, detach: bool, worker: Any, client: Any
    ) -> None:
        self._key = key
        self._task = worker.get_current_task()
        self._function = function
        self._work = work
        self._detach = detach
        self._worker = worker
        self._client = client
        self._loop: asyncio.AbstractEventLoop = worker.loop.asyncio_loop
        self._lane = LoopScheduler()
        self._orders: ReplaySubject[str] = ReplaySubject()
        """They may come before the first subscription."""
        self._ended = threading.Event()
        self._failure: dict[str, object] | None = None
        self._wake = asyncio.Event()
        self._outbox = Outbox(self._notify)
        self._taker: str | None = None
        self._calls: set[asyncio.Future[Any]] = set()
        self._heard = time.monotonic()

    def run(self) -> str:
        exchange = asyncio.run_coroutine_threadsafe(self._exchange(), self._loop)
        exchange.add_done_callback(self._exchanged)
        subscription = crossing(
            defer(lambda _: self._function(self._work, self._orders)),
            Observer(self._outbox.put, self._fail, self._ended.set),
            self._lane,
        )
        try:
            subscription.begin()
            while not self._ended.wait(LOOK):
                if not self._is_wanted():
                    return json.dumps({"cut": True})
        finally:
            exchange.cancel()
            self._outbox.close()
            subscription.dispose()
            self._lane.close()
        start, texts = self._outbox.rest()
        return json.dumps({"from": start, "texts": texts, "failed": self._failure})

    def _exchanged(self, exchange: Future[None]) -> None:
        if exchange.cancelled() or not self._is_wanted():  # a closing worker closes its client
            return
        if isinstance(error := exchange.exception(), Exception):
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        hint = error.hint if isinstance(error, CugginoError) else None
        what = (
            error.message if isinstance(error, CugginoError) else f"{type(error).__name__}: {error}"
        )
        self._failure = {"message": what, "hint": hint}
        self._ended.set()

    def _notify(self) -> None:
        self._loop.call_soon_threadsafe(self._wake.set)

    def _is_wanted(self) -> bool:
        task = self._worker.state.tasks.get(self._task)
        return (
            task is not None
            and task.state in ("executing", "long-running")
            and self._worker.status in (Status.running, Status.paused)
        )

    async def _exchange(self) -> None:
        await asyncio.gather(self._send(), self._receive())

    async def _send(self) -> None:
        queues: dict[str, Any] = {}
        while True:
            name = await self._until_due()
            batch = self._outbox.batch()
            text = json.dumps({"from": batch.start, "texts": batch.texts})
            try:
                if name not in queues:
                    queues = {name: await Queue(name, client=self._client, maxsize=QUEUE)}
                await queues[name].put(text, timeout=_PUT)
            except TimeoutError:  # the queue is full
                continue
            except KeyError:  # the client has removed it
                if self._taker == name:
                    self._taker = None
            except OSError:
                await asyncio.sleep(LOOK)
            else:
                if self._taker == name:
                    self._outbox.sent(batch)

    async def _until_due(self) -> str:
        """Wait until a batch is due and there is a receiver; return the receiver's queue."""
        while True:
            self._wake.clear()
            due = self._outbox.due()
            if self._is_unattended() or self._taker is None or due is None:
                due = _IDLE
            elif due <= 0:
                return self._taker
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), due)

    def _soon(self, coroutine: Any) -> None:
        """Run a call whose outcome does not matter."""
        task = asyncio.ensure_future(coroutine)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    def _is_unattended(self) -> bool:
        """Return whether a detached attempt continues without a client."""
        absent = self._detach and time.monotonic() - self._heard > ABSENT
        self._outbox.hold(absent)
        return absent

    async def _receive(self) -> None:
        name = queue_name(self._key, "orders")
        queue = await Queue(name, client=self._client)
        while True:
            try:
                text = await queue.get(timeout=_POLL)
            except TimeoutError:
                continue
            except KeyError:
                return
            except OSError:
                await asyncio.sleep(LOOK)
                continue
            self._obey(json.loads(text))

    def _obey(self, message: dict[str, Any]) -> None:
        self._heard = time.monotonic()
        match message:
            case {"order": str(order)}:
                self._lane.schedule(lambda *_: self._orders.on_next(order))
            case {"take": str(name), "after": int(count)}:
                self._outbox.acknowledge(count)
                self._outbox.rewind()
                if self._taker not in (None, name):  # the former client notices the end
                    self._soon(self._client.run_on_scheduler(drop_queue, self._taker))
                self._taker = name
            case {"taken": int(count)}:
                self._outbox.acknowledge(count)
            case _:  # a sign of life
                pass
        self._is_unattended()
        self._wake.set()
