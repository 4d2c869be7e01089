"""Requests and replies of the forges on loopback."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlencode

from cuggino.errors import ForgeRefused
from tests.forge.state import State


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def server(self) -> str:
        return f"https://{self.headers['host']}"

    @property
    def target(self) -> str:
        return f"{self.path}?{urlencode(self.query)}"

    @property
    def value(self) -> Any:
        return json.loads(self.body) if self.body else {}


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: Any = None
    """Bytes are sent as text, anything else as JSON, None as nothing."""
    headers: dict[str, str] = field(default_factory=dict)

    def sent(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return b"" if self.body is None else json.dumps(self.body).encode()

    @property
    def content_type(self) -> str:
        return "text/plain" if isinstance(self.body, bytes) else "application/json; charset=utf-8"

    @property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.sent()).hexdigest()[:32]}"'


Route = tuple[str, str, Callable[..., Reply]]
"""Method, pattern of the path, and a function of the request and the pattern's groups."""

NOT_FOUND = Reply(404, {"message": "Not Found"})


def routed(routes: Iterable[Route], request: Request) -> Reply:
    """Answer a request by its route; a `KeyError` means that something does not exist.

    What the repository refuses is answered with its status.
    """
    for method, pattern, route in routes:
        found = re.fullmatch(pattern, request.path)
        if found and method == request.method:
            try:
                return route(request, *map(unquote, found.groups()))
            except KeyError:
                return NOT_FOUND
            except ForgeRefused as error:
                return Reply(error.status or 422, {"message": error.message})
    return NOT_FOUND


def log_of(state: State, job: str) -> Reply:
    """Answer with the log of a job, if it has one."""
    log = state.contents.logs[job]
    return Reply(200, log.encode("utf-8", "surrogateescape")) if log else NOT_FOUND


def paged(entries: list[Any], request: Request) -> Reply:
    """Return one page of a list, with the address of the next one."""
    size, page = int(request.query.get("per_page", 30)), int(request.query.get("page", 1))
    shown = entries[(page - 1) * size : page * size]
    headers = {"X-Total": str(len(entries))}
    if page * size < len(entries):
        query = urlencode({**request.query, "per_page": size, "page": page + 1})
        place = f"{request.server}{request.path}?{query}"
        headers["Link"] = f'<{place}>; rel="next", <{place}>; rel="last"'
    return Reply(200, shown, headers)
