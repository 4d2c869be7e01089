"""The bridge to an SDK: an event loop on its own thread, for one session."""

from __future__ import annotations

import asyncio
import logging
import threading
from abc import ABC, abstractmethod
from typing import Any


class AsyncLink(ABC):
    """A session of an SDK; everything but `start` and `close` runs on its thread.

    `logs` names the SDK's loggers, which would print without a handler.
    """

    def __init__(self, *, name: str, logs: tuple[str, ...]) -> None:
        self._logs = logs
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False
        self._inbox: asyncio.Queue[Any] = asyncio.Queue()
        """Items sent to the session from other threads."""
        self._thread = threading.Thread(target=self._run, name=f"cuggino-{name}", daemon=True)

    @abstractmethod
    async def _session(self) -> None:
        """Run the session; `close` cancels it."""

    @abstractmethod
    def _ended(self, error: Exception | None) -> None:
        """Handle the end of the session: with None after `close`, otherwise with its error."""

    def _unheard(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handle an exception that the SDK left unhandled; ignored by default."""
        return

    def start(self) -> None:
        self._thread.start()

    def _send(self, item: Any) -> None:
        """Put the item into the inbox; thread-safe, also before the start."""
        with self._lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._inbox.put_nowait, item)
            elif not self._is_closed:
                self._inbox.put_nowait(item)

    def close(self) -> None:
        """Close immediately and wait for that; callable from any thread, repeatedly."""
        with self._lock:
            self._is_closed = True
            if self._loop is not None and self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        error: Exception | None = None
        try:
            with asyncio.Runner() as runner:
                runner.run(self._attend())
        except asyncio.CancelledError:
            pass
        except Exception as failure:
            error = failure
        self._ended(error)

    async def _attend(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._unheard)
        with self._lock:
            if self._is_closed:
                return
            self._loop, self._task = loop, asyncio.current_task()
        try:
            for name in self._logs:
                if not (log := logging.getLogger(name)).handlers:
                    log.addHandler(logging.NullHandler())
            await self._session()
        finally:
            with self._lock:
                self._loop = self._task = None
