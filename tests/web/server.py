"""A served page, and clients of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from cuggino.web import ServeOptions, Server, serving
from tests.limits import LIMIT


@dataclass(frozen=True)
class Page:
    """A running server, and a client that has opened its link."""

    server: Server
    client: httpx.Client

    @property
    def origin(self) -> str:
        found = urlsplit(self.server.url)
        return f"{found.scheme}://{found.netloc}"

    @property
    def base(self) -> str:
        return self.server.app.site.base

    def get(self, *parts: str, **headers: str) -> httpx.Response:
        return self.client.get(self.server.app.site.url(*parts), headers=headers)

    @contextmanager
    def stream(
        self, *channels: str, after: int | None = None, **headers: str
    ) -> Iterator[Messages]:
        query = "&".join(
            [f"on={key}" for key in channels] + [f"after={after}"] * (after is not None)
        )
        url = f"{self.base}/stream?{query}"
        with self.client.stream("GET", url, headers=headers) as response:
            assert response.status_code == 200, response.read()
            yield Messages(response)


@dataclass(frozen=True)
class Message:
    """A server-sent event."""

    kind: str
    id: int | None
    data: str


class Messages(Iterator[Message]):
    """The messages of a stream, as a browser reads them."""

    def __init__(self, response: httpx.Response) -> None:
        self._chunks = response.iter_bytes()
        self._buffer = b""
        self.comments = 0

    def __next__(self) -> Message:
        while True:
            block = self._block().decode()
            fields: dict[str, list[str]] = {}
            for line in block.splitlines():
                name, _, value = line.partition(":")
                fields.setdefault(name, []).append(value.removeprefix(" "))
            self.comments += "" in fields
            if "data" in fields:
                number = fields.get("id", [None])[-1]
                return Message(
                    kind=fields.get("event", ["message"])[-1],
                    id=int(number) if number is not None else None,
                    data="\n".join(fields["data"]),
                )

    def _block(self) -> bytes:
        while b"\n\n" not in self._buffer:
            self._buffer += next(self._chunks)
        block, _, self._buffer = self._buffer.partition(b"\n\n")
        return block


@contextmanager
def page(*folders: Path, options: ServeOptions | None = None) -> Iterator[Page]:
    """Serve the projects, and open the link."""
    with serving(folders, options) as server:
        found = urlsplit(server.url)
        origin = f"{found.scheme}://{found.netloc}"
        # Without TLS: reading the certificates of the machine takes 30 ms for each client.
        with httpx.Client(
            base_url=origin, timeout=LIMIT, follow_redirects=True, verify=False
        ) as client:
            assert client.get(server.url).status_code == 200
            yield Page(server, client)
