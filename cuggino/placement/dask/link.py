"""`DaskLink`: attempts on the workers of a Dask cluster."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import threading
import zlib
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from types import TracebackType
from typing import Any, Literal, Protocol, TypeVar
from uuid import uuid4

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from cuggino._version import __version__
from cuggino.errors import ConfigError, CugginoError
from cuggino.operators import managed
from cuggino.operators.managed import Subscription
from cuggino.operators.scheduler import lane_of
from cuggino.placement.address import load_distributed
from cuggino.placement.dask.values import AttemptLost, DaskWorker, Placed, PlaceGone, RemoteFailed

T = TypeVar("T")


class Emit(Protocol):
    """A function that delivers values on the subscriber's lane, and returns once processed.

    `each` is called after each value.
    """

    async def __call__(
        self, values: Sequence[Any], each: Callable[[], None] = lambda: None
    ) -> None: ...


_OBSERVE = 20.0
_ALIVE = 1.0
"""Seconds between heartbeats to a detached attempt."""
_GET = 2.0
"""Seconds after which a reader notices that it no longer receives anything."""
_BEGIN = 30.0
"""Seconds within which a completely free worker must start the attempt; then another is sought."""
_ANSWER = 10.0
_AGAIN = 0.5
_LAST = 0.2
"""Seconds in which subscribers receive the end of attempts that closing has cancelled."""
_CLOSING = 5.0
"""Maximum seconds that closing waits until cancelled attempts have released everything."""


class DaskLink:
    """A connection to a scheduler, and the attempts that were placed over it.

    Its streams are cold and deliver on the subscriber's scheduler. One thread serves all of them.
    Close the link, or use it as a context manager: closing cancels its attempts, unless `detach`
    is set, and waits until their processes are gone.

    Args:
        address: the scheduler, such as `tcp://127.0.0.1:8786`.
        security: a `distributed.Security` for TLS.
        detach: let attempts outlive their client, so that another one can `attach` to them.
        timeout: seconds to wait for the scheduler.

    Raises:
        ConfigError: `distributed` is not installed, the scheduler cannot be reached or refuses the
            connection, or cuggino is missing there or has another version.
    """

    def __init__(
        self, address: str, *, security: Any = None, detach: bool = False, timeout: float = 10.0
    ) -> None:
        self._distributed: Any = load_distributed()
        from cuggino.placement.dask import registry, task  # they import the optional `distributed`

        self._registry = registry
        self._task = task
        self._detach = detach
        self.address = address
        self.dashboard = ""
        """The address of Dask's own dashboard; "" without one."""
        self._attempts: dict[str, _Attempt] = {}
        self._placing: set[str] = set()
        self._able: set[tuple[str, str]] = set()
        self._running: set[asyncio.Task[Any]] = set()
        self._streams: set[asyncio.Task[Any]] = set()
        self._endings: set[asyncio.Task[Any]] = set()
        self._calls: set[asyncio.Task[Any]] = set()
        self._closed = False
        for name in ("distributed", "distributed.client"):  # they print to the terminal
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._thread = _LoopThread()
        self._loop = self._thread.loop
        try:
            self._client = self._call(self._connected(security, timeout)).result()
        except BaseException:
            self._thread.close()
            raise

    async def _connected(self, security: Any, timeout: float) -> Any:
        client = self._distributed.Client(
            self.address,
            security=security,
            timeout=timeout,
            asynchronous=True,
            set_as_default=False,
            name="cuggino",
        )
        try:
            await client
            await self._check_scheduler(client)
            self.dashboard = await self._dashboard_of(client)
        except BaseException as error:
            with suppress(Exception):
                await client.close(timeout=_CLOSING)
            if isinstance(error, Exception) and not isinstance(error, CugginoError):
                raise ConfigError(
                    f"cannot connect to the scheduler at {self.address}: {error}",
                    hint="check the address, that the scheduler runs, and its TLS settings",
                ) from error
            raise
        return client

    async def _check_scheduler(self, client: Any) -> None:
        same = self._task.SAME_VERSION
        try:
            version = await client.run_on_scheduler(self._registry.hello)
        except Exception as error:
            raise ConfigError(
                f"the scheduler at {self.address} cannot run cuggino: {error}", hint=same
            ) from error
        if version != __version__:
            raise ConfigError(
                f"the scheduler at {self.address} has cuggino {version}, "
                f"the client has {__version__}",
                hint=same,
            )

    async def _dashboard_of(self, client: Any) -> str:
        # Dask has an address for it even where it is switched off.
        if not await client.run_on_scheduler(self._registry.has_dashboard):
            return ""
        with suppress(KeyError):
            return str(client.dashboard_link or "")
        return ""

    def place(
        self, key: str, work: str, task: str, *, needs: Mapping[str, float] | None = None
    ) -> Observable[Placed]:
        """Submit an attempt and emit one `Placed` once a worker has begun it.

        Waits until a worker has the needed resources. Disposal before that withdraws the attempt.

        Args:
            key: a name unique among all attempts ever, such as run, item and number.
            work: a text for the function.
            task: the import path of a function `module:name` on the worker. It takes the work and
                an Observable of orders, and returns an Observable of texts.
            needs: the resources that the attempt takes on its worker while it runs.

        Errors: `RemoteFailed`, `AttemptLost`; `ConfigError` if the worker cannot run the function.
        """

        async def work_on(emit: Emit) -> None:
            if key in self._attempts or key in self._placing:
                raise RemoteFailed(key, f"the attempt {key} was placed already")
            self._placing.add(key)
            try:
                await self._placed(key, work, task, dict(needs or {}), emit)
            except AttemptLost as error:
                raise AttemptLost(error.gone._replace(key=key)) from None
            finally:
                self._placing.discard(key)

        return self._stream(work_on)

    def attach(self, prefix: str = "") -> Observable[Placed]:
        """Emit the detached attempts whose keys begin with `prefix`, and complete.

        An attempt that has ended meanwhile is included until its end is received.
        """

        async def work_on(emit: Emit) -> None:
            start = self._registry.PREFIX
            with self._calling():
                names = await self._client.list_datasets()
            for name in names:
                key = str(name).removeprefix(start)
                if str(name).startswith(start + prefix):
                    attempt = self._attempts.get(key)
                    if attempt is None or attempt.over.done():
                        attempt = await self._attached(key, str(name))
                    if attempt is not None:
                        over = await self._until_begun(attempt, emit)
                        if over is not None:
                            await self._release(attempt)

        return self._stream(work_on)

    def events(self, placed: Placed, *, after: int | None = None) -> Observable[str]:
        """Emit the texts of the attempt in order, and complete after the last.

        The next texts are fetched once these are processed: a slow subscriber blocks the attempt.
        A new subscription begins with the first text that no earlier one has processed; after a
        client has died, the last few may be repeated. `after` is the number of texts to skip from
        the start of the attempt, for a client that recorded it. One subscription at a time.

        Errors: `RemoteFailed` if the function raised, `AttemptLost` if the worker or the scheduler
        died. A cancelled attempt completes.
        """

        async def work_on(emit: Emit) -> None:
            attempt = self._attempt(placed)
            try:
                over = await _Reading(self, attempt, emit, after).read()
            except AttemptLost as error:
                raise AttemptLost(attempt.gone("scheduler", error.gone.reason)) from None
            await self._release(attempt)
            if over.error is not None:
                raise over.error

        return self._stream(work_on)

    def gone(self, placed: Placed) -> Observable[PlaceGone]:
        """Emit one `PlaceGone` when the attempt is lost, and complete when it is over."""

        async def work_on(emit: Emit) -> None:
            over = await asyncio.shield(self._attempt(placed).over)
            if over.gone is not None:
                await emit([over.gone])

        return self._stream(work_on)

    def cancel(self, placed: Placed) -> Observable[None]:
        """Cancel the attempt at once, subscribed or not; its processes end within two seconds.

        The stream completes when the worker has released everything, or is gone.
        """
        ended = self._call(self._cancelled(placed), self._endings)

        async def work_on(_emit: Emit) -> None:
            await asyncio.shield(asyncio.wrap_future(ended))

        return self._stream(work_on)

    def tell(self, placed: Placed, order: str) -> None:
        """Queue an order behind earlier ones; has no effect once the attempt is over."""
        self._call(self._told(placed, order))

    def workers(self) -> Observable[tuple[DaskWorker, ...]]:
        """Emit the workers of the cluster once, with their offered and used resources."""

        async def work_on(emit: Emit) -> None:
            found = await self._ask(self._registry.workers)
            await emit([tuple(DaskWorker(*each) for each in found)])

        return self._stream(work_on)

    def close(self) -> None:
        """Cancel the placed attempts, unless detached, and close the connection."""
        if self._closed:
            return
        self._closed = True
        with suppress(Exception):
            self._call(self._end_all()).result(timeout=2 * _CLOSING)
        with suppress(Exception):  # a scheduler that is gone
            self._call(self._client.close(timeout=_CLOSING)).result(timeout=2 * _CLOSING)
        self._thread.close()

    def __enter__(self) -> DaskLink:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # On the client's loop.

    async def _placed(
        self, key: str, work: str, task: str, needs: dict[str, float], emit: Emit
    ) -> None:
        avoid: list[str] = []
        for number in itertools.count():
            name = f"{key}~{number}" if number else key
            try:
                address = await self._seat(key, name, needs, avoid)
                avoid = [address]  # used again only if no other is free
                await self._check_worker(address, task)
            except (OSError, KeyError):  # the worker has just died, or does not answer
                await asyncio.sleep(_AGAIN)
                continue
            except BaseException:
                self._quietly(self._registry.forget, key, name)
                raise
            packed = zlib.compress(work.encode("utf-8", "surrogatepass"))
            with self._calling():
                future = self._client.submit(
                    self._task.run,
                    *(key, packed, task, self._detach),
                    key=name,
                    pure=False,
                    retries=0,
                    resources=needs or None,
                    workers=[address],
                    allow_other_workers=False,
                )
            attempt = self._follow(key, future)
            try:
                if self._detach:
                    with self._calling():
                        await self._client.publish_dataset(future, name=self._registry.PREFIX + key)
                over = await self._until_begun(attempt, emit)
            except asyncio.CancelledError:
                if not attempt.begun.done():
                    self._cancel(attempt)
                raise
            if over is None:
                return
            if over.gone is None or over.gone.cause != "worker":
                raise over.error or RemoteFailed(key, f"the attempt {key} was cancelled")
            await self._release(attempt)

    async def _check_worker(self, address: str, task: str) -> None:
        """Check that a worker can run the function.

        A worker that cannot import its task would exit, with everything that it runs.
        """
        if (address, task) in self._able:
            return
        with self._calling(OSError):
            asked = self._client.run(
                self._task.probe, task, __version__, workers=[address], on_error="return"
            )
            said = (await asyncio.wait_for(asked, _ANSWER))[address]
        if isinstance(said, OSError):
            raise said
        if isinstance(said, Exception):
            said = f"cannot run cuggino: {said}", self._task.SAME_VERSION
        if said is not None:
            problem, hint = said
            worker = await self._ask(self._registry.name_of, address)
            raise ConfigError(f"the worker {worker} {problem}", hint=hint)
        self._able.add((address, task))

    async def _seat(self, key: str, name: str, needs: dict[str, float], avoid: list[str]) -> str:
        """Wait for a worker with a free seat; return its address."""
        while True:
            seat = self._registry.seat
            address = await self._ask(seat, key, name, needs, avoid, _OBSERVE)
            if address is not None:
                return str(address)

    async def _attached(self, key: str, name: str) -> _Attempt | None:
        try:
            with self._calling():
                future = await self._client.get_dataset(name)
        except KeyError:  # it was released meanwhile
            return None
        return self._follow(key, future)

    def _follow(self, key: str, future: Any) -> _Attempt:
        attempt = self._attempts[key] = _Attempt(key, future, self._loop)
        self._spawn(self._watch(attempt))
        return attempt

    async def _until_begun(self, attempt: _Attempt, emit: Emit) -> _Over | None:
        """Emit the attempt once it has begun, or return its earlier end."""
        await _either(attempt.begun, attempt.over, timeout=_BEGIN)
        if not attempt.begun.done() and not attempt.over.done():
            await self._ask(
                self._registry.forget, attempt.key, attempt.task
            )  # from now on it cannot begin
            await _either(attempt.begun, attempt.over, timeout=_ANSWER)
            if not attempt.begun.done() and not attempt.over.done():
                self._lose(attempt)
        if not attempt.begun.done():
            return attempt.over.result()
        await emit([attempt.placed])
        return None

    async def _watch(self, attempt: _Attempt) -> None:
        """Follow an attempt's record and future to its end."""
        settled = self._spawn(self._settled(attempt))
        seen: str | None = None
        try:
            while not attempt.over.done():
                looking = self._spawn(
                    self._ask(self._registry.observe, attempt.key, seen, _OBSERVE)
                )
                await _either(settled, looking)
                if settled.done():
                    _drop(looking)
                    record = await self._record(attempt) if not attempt.begun.done() else None
                else:
                    try:
                        record = looking.result()
                    except Exception:  # the future settles when the scheduler is gone
                        await asyncio.sleep(self._task.LOOK)
                        continue
                if record is not None:
                    seen = record["state"]
                    attempt.worker = record["worker"]
                    if record["begun"]:
                        attempt.begin()
                if seen == "gone" and not settled.done():
                    self._lose(attempt)
                if settled.done():
                    attempt.end(settled.result())
        finally:
            settled.cancel()
            attempt.end(_Over("cancelled"))
            attempt.future = None  # the scheduler forgets it, unless it is published
            if not self._detach and not self._closed:
                with suppress(Exception):
                    await self._ask(self._registry.forget, attempt.key, attempt.task)

    async def _record(self, attempt: _Attempt) -> Any:
        with suppress(Exception):
            return await self._ask(self._registry.observe, attempt.key, "", 0.0)
        return None

    def _lose(self, attempt: _Attempt) -> None:
        reason = f"the worker {attempt.worker} is gone"
        attempt.end(_Over("lost", gone=attempt.gone("worker", reason)))
        # A second start may be waiting for a worker.
        self._spawn(self._withdraw(attempt, attempt.future))

    async def _settled(self, attempt: _Attempt) -> _Over:
        """Wait for the end of the task and return its outcome."""
        try:
            result = json.loads(await attempt.future)
        except self._distributed.client.FutureCancelledError as error:
            if error.reason == "scheduler-connection-lost" or not self._is_running():
                return self._cut_off(attempt)
            reason = "the scheduler has dropped the attempt, as if it had been cancelled"
            return _Over("lost", gone=attempt.gone("scheduler", reason))
        except self._distributed.KilledWorker:
            reason = (
                f"the worker {attempt.worker} is gone" if attempt.worker else "its worker is gone"
            )
            return _Over("lost", gone=attempt.gone("worker", reason))
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if attempt.future.status != "error":  # the result could not be fetched
                return self._cut_off(attempt)
            failed = RemoteFailed(attempt.key, f"{type(error).__name__}: {error}")
            return _Over("failed", error=failed)
        match result:
            case {"cut": True}:
                reason = f"the worker {attempt.worker} is gone"
                return _Over("lost", gone=attempt.gone("worker", reason))
            case {"from": int(start), "texts": texts, "failed": None}:
                return _Over("finished", start, texts)
            case {"from": int(start), "texts": texts, "failed": {"message": message, "hint": hint}}:
                failed = RemoteFailed(attempt.key, message, hint=hint)
                return _Over("failed", start, texts, error=failed)
            case _:
                raise AssertionError(result)

    def _cut_off(self, attempt: _Attempt) -> _Over:
        return _Over("lost", gone=attempt.gone("scheduler", self._disconnected()))

    async def _told(self, placed: Placed, order: str) -> None:
        self._post(self._attempt(placed), {"order": order})

    def _post(self, attempt: _Attempt, message: dict[str, Any]) -> None:
        """Queue a message for the attempt; messages are sent one at a time."""
        attempt.messages.append(message)
        if len(attempt.messages) == 1:
            self._spawn(self._deliver(attempt))

    async def _deliver(self, attempt: _Attempt) -> None:
        name = self._registry.queue_name(attempt.key, "orders")
        try:
            with suppress(KeyError, AttemptLost), self._calling():  # over, or disconnected
                if attempt.orders is None:
                    attempt.orders = await self._distributed.Queue(name, client=self._client)
                while attempt.messages and not attempt.over.done():
                    await attempt.orders.put(json.dumps(attempt.messages[0]), timeout="10s")
                    attempt.messages.pop(0)
        finally:
            attempt.messages.clear()

    async def _cancelled(self, placed: Placed) -> None:
        attempt = self._attempts.get(placed.key)
        if attempt is None:
            return
        self._cancel(attempt)
        with suppress(AttemptLost):
            await self._until_released(attempt)

    def _cancel(self, attempt: _Attempt) -> None:
        future = attempt.future
        attempt.end(_Over("cancelled"))
        if future is not None:
            self._spawn(self._withdraw(attempt, future))

    async def _withdraw(self, attempt: _Attempt, future: Any) -> None:
        with suppress(Exception):
            await self._client.cancel([future], force=True)
        await self._release(attempt)

    async def _until_released(self, attempt: _Attempt) -> None:
        """Wait until the worker has released everything, or is gone."""
        while self._is_running():
            record = await self._ask(self._registry.observe, attempt.key, "running", _OBSERVE)
            if record is None or record["state"] != "running":
                return

    async def _release(self, attempt: _Attempt) -> None:
        """Let the scheduler forget a detached attempt."""
        attempt.over.result().texts.clear()
        if self._detach:
            with suppress(Exception):
                await self._client.unpublish_dataset(self._registry.PREFIX + attempt.key)
                await self._ask(self._registry.forget, attempt.key, attempt.task)

    async def _end_all(self) -> None:
        if not self._detach:
            for attempt in self._attempts.values():
                if not attempt.over.done():
                    self._endings.add(self._spawn(self._cancelled(attempt.placed)))
        if self._endings:
            await asyncio.wait(self._endings, timeout=_CLOSING)
            if self._streams:
                await asyncio.wait(self._streams, timeout=_LAST)
        await _cancelled(self._streams)
        if self._calls:
            await asyncio.wait(self._calls, timeout=_LAST)
        await _cancelled(self._running)

    async def _ask(self, function: Callable[..., Any], *args: Any) -> Any:
        """Run a function of the registry on the scheduler.

        Raises:
            AttemptLost: the connection is lost and not restored soon.
        """
        while self._client.status == "connecting":
            await asyncio.sleep(0.1)
        with self._calling():
            return await self._client.run_on_scheduler(function, *args)

    @contextmanager
    def _calling(self, *kept: type[Exception]) -> Iterator[None]:
        """Translate the errors of a lost connection, except those in `kept`.

        Raises:
            AttemptLost: the connection is lost; calls of a closed client raise many types.
        """
        try:
            yield
        except Exception as error:
            if isinstance(error, kept) or not self._is_lost(error):
                raise
            raise AttemptLost(PlaceGone("", "", "scheduler", self._disconnected())) from None

    def _is_lost(self, error: Exception) -> bool:
        """Return whether a call of the client failed because of its connection."""
        return isinstance(error, OSError) or not self._is_running()

    def _is_running(self) -> bool:
        return bool(self._client.status == "running")

    def _quietly(self, function: Callable[..., Any], *args: Any) -> None:
        """Run a function of the registry whose outcome does not matter."""

        async def call() -> None:
            with suppress(Exception):
                await self._ask(function, *args)

        task = self._spawn(call())
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    def _disconnected(self) -> str:
        return f"the connection to the scheduler at {self.address} is lost"

    def _attempt(self, placed: Placed) -> _Attempt:
        try:
            return self._attempts[placed.key]
        except KeyError:
            message = f"the attempt {placed.key} was not placed over this link"
            raise RemoteFailed(placed.key, message) from None

    def _spawn(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = self._loop.create_task(coroutine)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    # From any thread.

    def _call(
        self, coroutine: Coroutine[Any, Any, T], group: set[asyncio.Task[Any]] | None = None
    ) -> Future[T]:
        async def within() -> T:
            task = asyncio.current_task()
            assert task is not None
            for each in (self._running,) if group is None else (self._running, group):
                each.add(task)
                task.add_done_callback(each.discard)
            return await coroutine

        return asyncio.run_coroutine_threadsafe(within(), self._loop)

    def _stream(self, work: Callable[[Emit], Coroutine[Any, Any, None]]) -> Observable[Any]:
        def subscribe(
            observer: Subscription[Any], scheduler: abc.SchedulerBase | None
        ) -> abc.DisposableBase:
            return _Bridge(observer, scheduler, self._loop).begin(
                work, partial(self._call, group=self._streams)
            )

        return managed(subscribe)


class _LoopThread:
    """An asyncio loop on a dedicated thread."""

    def __init__(self) -> None:
        ready: Future[asyncio.AbstractEventLoop] = Future()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._run(ready)), name="cuggino-cluster", daemon=True
        )
        self._thread.start()
        self.loop = ready.result()

    async def _run(self, ready: Future[asyncio.AbstractEventLoop]) -> None:
        ready.set_result(asyncio.get_running_loop())
        await self._stop.wait()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_CLOSING)


class _Over:
    """The outcome of an attempt, with the texts not received before."""

    def __init__(
        self,
        kind: Literal["finished", "failed", "lost", "cancelled"],
        start: int = 0,
        texts: list[str] | None = None,
        *,
        error: CugginoError | None = None,
        gone: PlaceGone | None = None,
    ) -> None:
        self.kind = kind
        self.start = start
        self.texts = texts or []
        self.gone = gone
        self.error = AttemptLost(gone) if gone is not None else error


class _Attempt:
    """The client's view of an attempt; used only on the client's loop."""

    def __init__(self, key: str, future: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.key = key
        self.task = str(future.key)
        self.future = future
        self.worker = ""
        self.received = 0
        """Number of texts processed."""
        self.begun: asyncio.Future[None] = loop.create_future()
        self.over: asyncio.Future[_Over] = loop.create_future()
        self.messages: list[dict[str, Any]] = []
        self.orders: Any = None

    @property
    def placed(self) -> Placed:
        return Placed(self.key, self.worker)

    def begin(self) -> None:
        if not self.begun.done():
            self.begun.set_result(None)

    def count(self) -> None:
        self.received += 1

    def end(self, over: _Over) -> None:
        if not self.over.done():
            self.over.set_result(over)

    def gone(self, cause: Literal["worker", "scheduler"], reason: str) -> PlaceGone:
        return PlaceGone(self.key, self.worker, cause, reason)


class _Reading:
    """One subscription to the texts of an attempt."""

    def __init__(self, link: DaskLink, attempt: _Attempt, emit: Emit, after: int | None) -> None:
        self._link = link
        self._attempt = attempt
        self._emit = emit
        self._name = link._registry.queue_name(attempt.key, uuid4().hex[:8])
        self._queue: Any = None
        if after is not None:
            attempt.received = max(after, attempt.received)

    async def read(self) -> _Over:
        attempt = self._attempt
        getting: asyncio.Future[Any] | None = None
        alive: asyncio.Task[None] | None = None
        try:
            if not attempt.over.done():
                queue = self._link._distributed.Queue
                size = self._link._task.QUEUE
                with self._link._calling():
                    self._queue = await queue(self._name, client=self._link._client, maxsize=size)
                self._post({"take": self._name, "after": attempt.received})
                if self._link._detach:
                    alive = self._link._spawn(self._keep_alive())
            while not attempt.over.done():
                getting = getting or asyncio.ensure_future(self._queue.get(timeout=_GET))
                await _either(getting, attempt.over)
                if getting.done():
                    got, getting = getting, None
                    await self._receive(got)
        finally:
            for each in (getting, alive):
                if each is not None:
                    _drop(each)
            if self._queue is not None and not self._link._closed:
                drop = self._link._registry.drop_queue
                self._link._quietly(drop, self._name)
        over = attempt.over.result()
        await self._take(over.start, over.texts)
        return over

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(_ALIVE)
            self._post({"alive": True})

    async def _receive(self, got: asyncio.Future[Any]) -> None:
        try:
            batch = json.loads(got.result())
        except TimeoutError:
            return
        except KeyError:  # the attempt is over, or another client receives it now
            await asyncio.wait({self._attempt.over}, timeout=_GET)
            if self._attempt.over.done():
                return
            record = await self._link._record(self._attempt)
            if record is not None and record["state"] == "running":
                message = f"another client receives the attempt {self._attempt.key}"
                raise RemoteFailed(self._attempt.key, message) from None
        except Exception as error:
            if not self._link._is_lost(error):
                raise
            await asyncio.sleep(self._link._task.LOOK)
        else:
            await self._take(batch["from"], batch["texts"])
            self._post({"taken": self._attempt.received})

    async def _take(self, start: int, texts: list[str]) -> None:
        """Deliver the texts not received before."""
        attempt = self._attempt
        new = texts[max(0, attempt.received - start) :]
        if new:
            attempt.received = max(attempt.received, start)
            await self._emit(new, attempt.count)

    def _post(self, message: dict[str, Any]) -> None:
        """Queue a message; a count of received texts replaces those still queued."""
        messages = self._attempt.messages
        if "taken" in message:
            messages[1:] = [each for each in messages[1:] if "taken" not in each]
        self._link._post(self._attempt, message)


class _Bridge:
    """A bridge from a coroutine on the client's loop to a subscriber on its lane."""

    def __init__(
        self,
        observer: Subscription[Any],
        scheduler: abc.SchedulerBase | None,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._observer = observer
        self._lane, self._close_lane = lane_of(scheduler)
        self._loop = loop

    def begin(
        self,
        work: Callable[[Emit], Coroutine[Any, Any, None]],
        call: Callable[[Coroutine[Any, Any, None]], Future[None]],
    ) -> abc.DisposableBase:
        running = call(self._work(work))

        def dispose() -> None:
            running.cancel()
            self._close_lane()

        return Disposable(dispose)

    async def _work(self, work: Callable[[Emit], Coroutine[Any, Any, None]]) -> None:
        try:
            await work(self._emit)
        except asyncio.CancelledError:
            if not self._observer.closed:
                closed = CugginoError("the connection to the cluster was closed")
                self._schedule(lambda: self._observer.on_error(closed))
            raise
        except Exception as error:
            failure = error
            self._schedule(lambda: self._observer.on_error(failure))
        else:
            self._schedule(self._observer.on_completed)

    async def _emit(self, values: Sequence[Any], each: Callable[[], None] = lambda: None) -> None:
        processed = asyncio.Event()

        def deliver() -> None:
            try:
                for value in values:
                    if self._observer.closed:
                        break
                    self._observer.on_next(value)
                    each()
            finally:
                with suppress(RuntimeError):  # the loop is closed
                    self._loop.call_soon_threadsafe(processed.set)

        self._schedule(deliver)
        await processed.wait()

    def _schedule(self, action: Callable[[], None]) -> None:
        with suppress(Exception):  # the lane is closed
            self._lane.schedule(lambda *_: action())


async def _either(*futures: asyncio.Future[Any], timeout: float | None = None) -> None:
    await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED, timeout=timeout)


def _drop(task: asyncio.Future[Any]) -> None:
    """Cancel a call, and ignore the error that Dask raises instead."""
    task.cancel()
    task.add_done_callback(lambda done: done.cancelled() or done.exception())


async def _cancelled(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel all tasks but the current one, and wait for their end."""
    others = [task for task in tasks if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
