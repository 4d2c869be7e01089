"""Access to the pages: the token, the cookie, and the origin of requests.

All checks run before the routes, in one ASGI application around them. None depends on the address
of the client, which is the same for a person and an agent.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "cuggino"
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "worker-src 'self'",
        "img-src 'self' data:",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types cuggino-live",
    )
)
HEADERS: Mapping[str, str] = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not `no-referrer`, which makes browsers send forms with `Origin: null`.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}
"""Headers of every response; one that a response has itself is kept."""

MOST_BODY = 64 * 1024
_FREE = 10
"""Failures that are answered at once."""
_PAUSE = 1.0
"""Seconds between two answers to failures after that."""
_FORGET = 60.0
_MOST_WAITING = 50

Refuse = Callable[[int, str], Response]


@dataclass(frozen=True, slots=True)
class Secrets:
    """The secrets of one server, which do not outlive it."""

    path: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    """The first part of every URL, and the path of the cookie.

    A cookie of 127.0.0.1 is sent to all of its ports, such as that of an agent's server; the path
    keeps it from them, as they do not know it.
    """
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    """The token in the printed link."""
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    """The value of the browser's cookie."""

    @property
    def base(self) -> str:
        """Return the path of all pages, without a slash at its end."""
        return f"/{self.path}"


@dataclass(frozen=True, slots=True)
class Origins:
    """The names under which the server may be addressed."""

    scheme: str
    port: int
    host: str
    """The address or name that the server was bound to."""

    def accepts_host(self, value: str) -> bool:
        """Return whether a `Host` header names this server, and not by a rebound DNS name."""
        name, port = _split_host(value)
        if port != str(self.port) and not (port == "" and self.port == self._usual_port):
            return False
        ours = (bracketed(self.host).lower(), self.name.lower())
        if name and name in ("127.0.0.1", "localhost", "[::1]", *ours):
            return True
        # No name can be rebound to an address that the user has typed.
        return self.is_any and _is_address(name)

    def accepts_origin(self, origin: str, host: str) -> bool:
        """Return whether a request comes from the page at this `Host`."""
        return origin.lower() == f"{self.scheme}://{host.lower()}"

    @property
    def name(self) -> str:
        """Return the name or address in the printed link."""
        return socket.gethostname() if self.is_any else bracketed(self.host)

    @property
    def is_any(self) -> bool:
        """Return whether the server listens on all addresses."""
        return self.host in ("0.0.0.0", "::")

    @property
    def _usual_port(self) -> int:
        return 443 if self.scheme == "https" else 80


class Slowdown:
    """A delay for failed attempts only, whose responses are sent one after the other."""

    def __init__(self) -> None:
        self._failures = 0
        self._last = self._next = 0.0
        self._waiting = 0

    async def fail(self) -> bool:
        """Wait for the delay of a failure; return False at once if too many wait already."""
        now = time.monotonic()
        if now - self._last > _FORGET:
            self._failures = 0
        self._last = now
        self._failures += 1
        if self._failures <= _FREE:
            return True
        if self._waiting >= _MOST_WAITING:
            return False
        self._next = max(self._next + _PAUSE, now + _PAUSE)
        self._waiting += 1
        try:
            await asyncio.sleep(self._next - now)
        finally:
            self._waiting -= 1
        return True


class Guard:
    """The application behind the access checks."""

    def __init__(
        self, app: ASGIApp, *, secrets: Secrets, origins: Origins, refuse: Refuse, icon: bytes
    ) -> None:
        self._app = app
        self._secrets = secrets
        self._origins = origins
        self._refuse = refuse
        self._icon = icon
        self._slowdown = Slowdown()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # the application has no WebSockets
            await send({"type": "websocket.close", "code": 1008})
            return

        async def respond(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(
                        (name.encode(), value.encode())
                        for name, value in HEADERS.items()
                        if name.encode() not in given
                    ),
                ]
            await send(message)

        refusal = await self._check(scope)
        if refusal is not None:
            await refusal(scope, receive, respond)
            return
        if scope["method"] != "POST":
            await self._app(scope, receive, respond)
            return
        body = await _read_body(receive)
        if body is None:
            await self._refuse(413, "The text is too long: at most 64 kB.")(scope, receive, respond)
            return
        await self._app(scope, _replaying(body, receive), respond)

    async def _check(self, scope: Scope) -> Response | None:
        """Return the response to a rejected or entering request, or None to let it through."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._origins.accepts_host(hosts[0]):
            return self._refuse(403, "The page is not served under this name.")
        method, site = scope["method"], headers.get("sec-fetch-site", "none")
        if method not in ("GET", "HEAD", "POST"):
            return self._refuse(405, "Only GET and POST are supported.")
        path = str(scope["path"])
        if path == "/favicon.ico" and method != "POST":
            return Response(self._icon, media_type="image/svg+xml")
        is_entry = path == f"{self._secrets.base}/" and method == "GET"
        token = _parameter(scope, "t") if is_entry else None
        if token is not None and _equal(token, self._secrets.token):
            return self._enter(is_foreign=site not in ("same-origin", "none"))
        if site not in ("same-origin", "none"):
            return self._refuse(403, "The request comes from another site.")
        if method == "POST":
            origins = headers.getlist("origin")
            if len(origins) != 1 or not self._origins.accepts_origin(origins[0], hosts[0]):
                return self._refuse(403, "The form comes from another site.")
        is_known = token is None and path.startswith(f"{self._secrets.base}/")
        if not (is_known and self._has_cookie(headers)):
            if not await self._slowdown.fail():
                return self._refuse(429, "Too many attempts at once.")
            return self._refuse(401, "Open the link that `cuggino serve` has printed.")
        if method == "POST":
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/x-www-form-urlencoded":
                return self._refuse(415, "Only forms are accepted.")
            length = headers.get("content-length", "0")
            if not length.isdecimal() or int(length) > MOST_BODY:
                return self._refuse(413, "The text is too long: at most 64 kB.")
        return None

    def _enter(self, *, is_foreign: bool) -> Response:
        """Return the response to the printed link: the cookie, and a redirect to the clean URL."""
        clean = f"{self._secrets.base}/"
        response: Response
        if is_foreign:
            # The link was on another site, such as a chat: a browser would not send a strict cookie
            # to the target of a redirect, but does for a refresh of our own page.
            step = f'<!doctype html><meta http-equiv="refresh" content="0;url={clean}">'
            response = HTMLResponse(f'{step}<title>cuggino</title><a href="{clean}">Open</a>')
        else:
            response = RedirectResponse(clean, status_code=303)
        response.set_cookie(
            COOKIE,
            self._secrets.cookie,
            path=clean,
            httponly=True,
            samesite="strict",
            secure=self._origins.scheme == "https",
        )
        return response

    def _has_cookie(self, headers: Headers) -> bool:
        pairs = ";".join(headers.getlist("cookie")).split(";")
        values = [value for name, _, value in _parted(pairs) if name == COOKIE]
        return any(_equal(value, self._secrets.cookie) for value in values[:8])


def bracketed(host: str) -> str:
    """Return a host as written in URLs."""
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Return whether a server on this address is only reachable from this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _split_host(value: str) -> tuple[str, str]:
    name, colon, port = value.lower().rpartition(":")
    if not colon or "]" in port:
        return value.lower(), ""
    return name, port


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _equal(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode())


def _parted(pairs: list[str]) -> list[tuple[str, str, str]]:
    return [pair.strip().partition("=") for pair in pairs]


def _parameter(scope: Scope, name: str) -> str | None:
    query = scope["query_string"].decode("latin-1")[:1000]
    values = parse_qs(query, keep_blank_values=True).get(name)
    return values[0] if values else None


async def _read_body(receive: Receive) -> bytes | None:
    """Return the whole body; None if it is too long."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b""
        part = message.get("body", b"")
        size += len(part)
        if size > MOST_BODY:
            return None
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _replaying(body: bytes, receive: Receive) -> Receive:
    has_read = False

    async def replay() -> Message:
        nonlocal has_read
        if has_read:
            return await receive()
        has_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
