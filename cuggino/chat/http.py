"""Requests to the server of a chat service, as Observables."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from types import ModuleType
from typing import Any

from reactivex import Observable, abc
from reactivex.disposable import Disposable
from reactivex.internal.exceptions import DisposedException

from cuggino.domain import cleaned
from cuggino.errors import ChatError, ConfigError, install_extra
from cuggino.operators import managed
from cuggino.operators.scheduler import serial

TIMEOUT = 30.0
"""Seconds that a request may take."""
_JOIN_LIMIT = 0.5
_LONGEST_REASON = 200
_THREAD = "cuggino-chat"


class Http:
    """A client of one server; each request has a helper thread for as long as it takes.

    No error contains a URL, as that may contain a token. Redirects are not followed.

    Raises:
        ConfigError: httpx is not installed.
    """

    def __init__(self, name: str, url: str, *, headers: Mapping[str, str] | None = None) -> None:
        self._name = name
        self._url = url.rstrip("/")
        self._headers = dict(headers or {})
        self._httpx = _httpx()

    def lines(self, path: str, body: object = None, *, timeout: float = TIMEOUT) -> Observable[Any]:
        """Emit the JSON value of each line of a response, to a POST if there is a body.

        No part of it may take longer than `timeout` seconds.
        """
        method = "GET" if body is None else "POST"

        def subscribe(
            observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None
        ) -> abc.DisposableBase:
            lane = serial(scheduler)
            loop = asyncio.new_event_loop()

            def post(act: Callable[[], None]) -> None:
                with suppress(DisposedException):  # the lane has ended
                    lane.schedule(lambda *_: act())

            def emit(value: Any) -> None:
                post(lambda: observer.on_next(value))

            async def story() -> None:
                given = {"headers": self._headers, "timeout": timeout, "verify": self._certificates}
                try:
                    async with (
                        self._httpx.AsyncClient(**given) as client,
                        client.stream(method, self._url + path, json=body) as response,
                    ):
                        if response.status_code // 100 != 2:
                            raise self._refusal(response, await response.aread())
                        async for line in response.aiter_lines():
                            if line.strip():
                                emit(json.loads(line))
                except Exception as error:
                    failure = self._failure(error)
                    post(lambda: observer.on_error(failure))
                else:
                    post(observer.on_completed)

            task = loop.create_task(story())

            def run() -> None:
                with suppress(asyncio.CancelledError):
                    loop.run_until_complete(task)
                loop.close()

            def cancel() -> None:
                with suppress(RuntimeError):  # it has ended
                    loop.call_soon_threadsafe(task.cancel)
                thread.join(_JOIN_LIMIT)

            thread = threading.Thread(target=run, name=f"{_THREAD}-{self._name}", daemon=True)
            thread.start()
            return Disposable(cancel)

        return managed(subscribe)

    @cached_property
    def _certificates(self) -> ssl.SSLContext:
        context: ssl.SSLContext = self._httpx.create_ssl_context()  # 20 ms of CPU
        return context

    def _refusal(self, response: Any, content: bytes) -> ChatError:
        """Return the error of a response."""
        status = response.status_code
        said: Any = {}
        with suppress(ValueError):
            said = json.loads(content)
        said = said if isinstance(said, dict) else {}
        why = " ".join(cleaned(str(said.get("description") or said.get("error") or "")).split())
        after = (said.get("parameters") or {}).get("retry_after")
        after = str(after or response.headers.get("Retry-After"))
        return ChatError(
            f"{self._name} has answered {status}" + (f": {why[:_LONGEST_REASON]}" if why else ""),
            transient=status in (408, 409, 429) or status >= 500,
            retry_in=float(after) if after.isdecimal() else None,
            hint="check `chat` in .cuggino.json",
        )

    def _failure(self, error: Exception) -> ChatError:
        if isinstance(error, ChatError):
            return error
        if isinstance(error, ValueError):
            return ChatError(f"{self._name} did not answer with JSON")
        return ChatError(f"{self._name} cannot be reached ({type(error).__name__})")


def _httpx() -> ModuleType:
    try:
        import httpx
    except ImportError as error:
        raise ConfigError(
            '"chat" needs httpx, which is not installed', hint=install_extra("chat")
        ) from error
    log = logging.getLogger("httpx")  # it logs URLs, and so the token of a bot
    if _is_not_ours not in log.filters:
        log.addFilter(_is_not_ours)
    return httpx


def _is_not_ours(record: logging.LogRecord) -> bool:
    return not (record.threadName or "").startswith(_THREAD)
