"""The server: its routes, its start and its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio.to_thread
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from cuggino.errors import ConfigError, CugginoError
from cuggino.web import actions, pages
from cuggino.web.board import title_at
from cuggino.web.channel import Channel, RunChannel
from cuggino.web.security import Guard, Origins, Secrets, bracketed, is_loopback
from cuggino.web.site import OVERVIEW, Site, digest_of, static_file
from cuggino.web.stream import MOST_STREAMS, EventStream, Hub, position_of

_LOG = logging.getLogger("cuggino.web")

MOST_KEYS = 50
_MEDIA = {
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
    "png": "image/png",
    "woff2": "font/woff2",
}
_GRACE = 1
"""Seconds for open requests at the end."""
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """The address and TLS options of a server."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 for one that is free."""
    cert: Path | None = None
    """The file of the TLS certificate, with that of its `key`."""
    key: Path | None = None
    insecure: bool = False
    """Serve other machines without TLS."""

    def check(self) -> None:
        """Check that no one else can read the pages.

        Raises:
            ConfigError: an address other than loopback without TLS, or a missing TLS file.
        """
        if (self.cert is None) != (self.key is None):
            raise ConfigError("--cert and --key belong together", hint="give both files")
        for file in (self.cert, self.key):
            if file is not None and not file.is_file():
                raise ConfigError(
                    f"{file} is not a file", hint="give the files of --cert and --key"
                )
        if not is_loopback(self.host) and self.cert is None and not self.insecure:
            raise ConfigError(
                f"serving {self.host} without TLS would send the page, and the key to it, "
                "readable over the network",
                hint="add --cert FILE --key FILE, or --insecure, or use an SSH tunnel instead",
            )


class _Uvicorn(uvicorn.Server):
    """A server that wakes up once a second when idle, instead of ten times."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ends: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    async def main_loop(self) -> None:
        ended = asyncio.Event()
        self._ends = asyncio.get_running_loop(), ended
        while not self.should_exit:
            await self.on_tick(0)  # updates the Date header
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await ended.wait()

    def end(self) -> None:
        """End soon; may be called on any thread."""
        self.should_exit = True
        if self._ends is not None:
            loop, ended = self._ends
            with contextlib.suppress(RuntimeError):  # the loop is already closed
                loop.call_soon_threadsafe(ended.set)


@dataclass(slots=True, kw_only=True)
class App:
    """The application of a server, to be run by any ASGI server."""

    asgi: ASGIApp
    hub: Hub
    site: Site
    secrets: Secrets


@dataclass(slots=True)
class Server:
    """A running server."""

    url: str
    """The link: it contains the token, so it belongs in a terminal or a private file only."""
    address: str
    """The address without the token."""
    app: App
    ended: threading.Event = field(default_factory=threading.Event)


def make_app(folders: Iterable[Path], origins: Origins, secrets: Secrets | None = None) -> App:
    """Return the application for these workspaces; needs no socket."""
    secrets = secrets or Secrets()
    site = Site(secrets.base, folders)
    hub = Hub(site)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        # anyio imports its part for asyncio on first use, before the package may be replaced here.
        anyio.to_thread.current_default_thread_limiter()
        poller = asyncio.create_task(hub.work())
        try:
            yield
        finally:
            hub.close()
            poller.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await poller

    pages.load_templates()
    inner = Starlette(
        routes=[Mount(site.base, routes=[*_routes(), *actions.ROUTES])],
        exception_handlers={
            CugginoError: _failed,
            HTTPException: _missed,
            Exception: _crashed,
        },
        lifespan=lifespan,
    )
    inner.state.site = site
    inner.state.hub = hub
    guarded = Guard(
        inner,
        secrets=secrets,
        origins=origins,
        refuse=lambda status, text: _message(None, status, text),
        icon=static_file("icon.svg"),
    )
    return App(asgi=guarded, hub=hub, site=site, secrets=secrets)


@contextmanager
def serving(folders: Sequence[Path], options: ServeOptions | None = None) -> Iterator[Server]:
    """Serve the pages of these workspaces on a thread, until the end of the block.

    Raises:
        ConfigError: a folder is missing, the port is in use, or the options are refused.
    """
    options = options or ServeOptions()
    options.check()
    for folder in folders:
        if not folder.is_dir():
            raise ConfigError(f"{folder} is not a folder", hint="give the folders of projects")
    with contextlib.closing(_bind(options)) as listener:
        port = listener.getsockname()[1]
        scheme = "https" if options.cert else "http"
        app = make_app(folders, Origins(scheme=scheme, port=port, host=options.host))
        name = socket.gethostname() if options.host in ("0.0.0.0", "::") else options.host
        url = f"{scheme}://{bracketed(name)}:{port}{app.secrets.base}/?t={app.secrets.token}"
        server = Server(url, f"{scheme}://{bracketed(name)}:{port}", app)
        runner = _Uvicorn(
            uvicorn.Config(
                app.asgi,
                http="h11",
                loop="asyncio",
                ws="none",
                lifespan="on",
                log_config=None,
                log_level="critical",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=_GRACE,
                ssl_certfile=options.cert,
                ssl_keyfile=options.key,
            )
        )
        failure: list[BaseException] = []

        def work() -> None:
            try:
                runner.run(sockets=[listener])
            except BaseException as error:
                failure.append(error)
            finally:
                server.ended.set()

        try:
            runner.config.load()
        except OSError as error:
            raise ConfigError(
                f"the TLS files cannot be used: {error}", hint="check --cert and --key"
            ) from error
        thread = threading.Thread(target=work, name="cuggino-serve", daemon=True)
        thread.start()
        try:
            while not runner.started and not server.ended.wait(0.01):
                pass
            if failure:
                raise ConfigError(f"the page cannot be served: {failure[0]!r}") from failure[0]
            yield server
        finally:
            app.hub.close()
            runner.end()
            thread.join(_PATIENCE)


def _bind(options: ServeOptions) -> socket.socket:
    try:
        found = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)[0]
        # With the protocol named, asyncio sends the body at once: no acknowledgment is awaited.
        listener = socket.socket(found[0], socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except (OSError, UnicodeError) as error:
        raise ConfigError(
            f"{options.host} is not an address of this machine", hint="give another --host"
        ) from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(found[4])
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"port {options.port} of {options.host} cannot be used: {reason}",
            hint="give another --port, or none for one that is free",
        ) from error
    return listener


def _routes() -> list[Route]:
    return [
        Route("/", _overview),
        Route("/p/{place}/runs/{run}", _run),
        Route("/p/{place}/runs/{run}/stage/{stage:path}", _stage),
        Route("/w/{place}/{rest:path}", _moved, methods=["GET", "POST"]),
        Route("/stream", _stream),
        Route("/alive", _alive),
        Route("/worker.js", _worker),
        Route("/static/{digest}/{name}", _static),
    ]


def _hub(request: Request) -> Hub:
    hub: Hub = request.app.state.hub
    return hub


async def _overview(request: Request) -> Response:
    channel = _hub(request).channel(OVERVIEW)
    assert channel is not None
    return await _page(request, channel)


async def _run(request: Request) -> Response:
    channel = await _channel(request)
    if request.path_params["run"] == channel.run_id:
        title = await asyncio.to_thread(title_at, channel.path)
        url = _hub(request).site.run(channel.place, channel.run_id, title)
        if url != request.url.path:
            return RedirectResponse(url, status_code=307)
    page = await _page(request, channel)
    if channel.is_missing:
        raise HTTPException(410, "The journal of this run was removed.")
    return page


async def _channel(request: Request) -> RunChannel:
    """Return the channel of the run of a URL, which names it or has its id.

    Raises:
        HTTPException: there is no such run.
    """
    hub, site = _hub(request), _hub(request).site
    key, name = request.path_params["place"], request.path_params["run"]
    place = site.place(key)
    run_id = await asyncio.to_thread(actions.run_named, place.workspace, name) if place else name
    channel = hub.run(key, run_id)
    if channel is None:
        raise HTTPException(404, "There is no such run: its journal may have been removed.")
    return channel


async def _moved(request: Request) -> Response:
    """Lead on from an address of an earlier version."""
    site: Site = request.app.state.site
    first, *parts = request.path_params["rest"].split("/")
    renamed = {"r": "runs", "issues": "questions"}.get(first, first)
    url = site.url("p", request.path_params["place"], renamed, *parts)
    return RedirectResponse(f"{url}?{request.url.query}".rstrip("?"), status_code=308)


async def _page(request: Request, channel: Channel) -> Response:
    return HTMLResponse(await _hub(request).page(channel))


async def _stage(request: Request) -> Response:
    channel = await _channel(request)
    async with channel.lock:
        text = await asyncio.to_thread(channel.draw_stage, request.path_params["stage"])
    return HTMLResponse(text)


async def _stream(request: Request) -> Response:
    hub = _hub(request)
    keys = list(dict.fromkeys(request.query_params.getlist("on")))[:MOST_KEYS]
    given = request.headers.get("last-event-id") or request.query_params.get("after")
    if request.method == "HEAD":
        return Response(media_type=EventStream.media_type)
    if hub.streams >= MOST_STREAMS:
        return Response(status_code=503, headers={"retry-after": "10"})
    after = hub.position if given is None else position_of(given)
    return EventStream(hub.listen(keys, -1 if after is None else after))


async def _alive(_request: Request) -> Response:
    return Response(status_code=204)


async def _worker(_request: Request) -> Response:
    return Response(static_file("worker.js"), media_type="text/javascript")


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    try:
        content = static_file(name)
        is_this = digest_of(name) == request.path_params["digest"]
    except OSError:
        is_this = False
    if not is_this:
        raise HTTPException(404, "There is no such file.")
    media = _MEDIA.get(name.rpartition(".")[2], "application/octet-stream")
    cache = {"cache-control": "private, max-age=31536000, immutable"}
    return Response(content, media_type=media, headers=cache)


def _message(site: Site | None, status: int, text: str) -> Response:
    titles = {401: "Not signed in", 403: "Refused", 404: "Not found", 410: "Gone"}
    title = titles.get(status, "This did not work")
    return HTMLResponse(pages.message_page(site, title=title, text=text), status_code=status)


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, CugginoError)
    text = f"{error.message}. {error.hint}" if error.hint else error.message
    return _message(request.app.state.site, 409, text)


async def _missed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    usual = "There is no such page." if error.detail == "Not Found" else error.detail
    return _message(request.app.state.site, error.status_code, usual)


async def _crashed(request: Request, error: Exception) -> Response:
    _LOG.error("cuggino: %s failed: %r", request.url.path.rpartition("/")[2], error)
    answer = _message(request.app.state.site, 500, "Something went wrong; reload the page.")
    answer.headers["connection"] = "close"  # as the server is about to do: nothing else may use it
    return answer
