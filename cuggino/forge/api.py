"""Forge API calls through the forge's own CLI, which supplies the login.

`gh api` and `glab api` send one request and print the response with its status and headers. They
never retry. Bodies go to standard input; untrusted text is never an argument.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from errno import ENOENT
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from reactivex import Observable, operators as ops, throw, timer

from cuggino.config import ForgeKind
from cuggino.domain import cut_at_end
from cuggino.errors import (
    ConfigError,
    ForgeLimited,
    ForgeLoginMissing,
    ForgeRefused,
    ForgeUnreachable,
    ProcessError,
    ProcessFailed,
    SpawnFailed,
)
from cuggino.operators import Flow, ask, emit, flow, interrupt_when
from cuggino.processes import process_output
from cuggino.stages import clock

PROGRAMS: Mapping[ForgeKind, str] = {"github": "gh", "gitlab": "glab"}

INSTALLING: Mapping[ForgeKind, str] = {
    "github": "install GitHub's `gh` from https://cli.github.com, then run `gh auth login`",
    "gitlab": (
        "install GitLab's `glab` from https://gitlab.com/gitlab-org/cli, then run `glab auth login`"
    ),
}

TIMEOUT = 120.0
"""Seconds that one request may take."""
MOST_PAGES = 100
LOG_END = 64 * 1024
"""Bytes kept from the end of a log."""
KEPT_RESPONSES = 64
"""Responses kept in memory, to request them only if they have changed."""
LOGIN_MISSING = 4
"""The exit code of `gh` without any login."""

_HEADERS = re.compile(rb"HTTP/[\d.]+ (\d{3})[^\r\n]*\r?\n((?:[^\r\n]+\r?\n)*)\r?\n")
_NEXT = re.compile(r'<([^>]*)>;\s*rel="next"')
_MOVED = (301, 302, 307, 308)

S = TypeVar("S")
T = TypeVar("T")
P = ParamSpec("P")


def emits_each(
    story: Callable[Concatenate[S, P], Flow[list[T]]],
) -> Callable[Concatenate[S, P], Observable[T]]:
    """Turn a method into a cold stream of the values that its flow returns.

    Data that is missing or has the wrong type, as after a redirect elsewhere, is a `ForgeRefused`.
    """

    @wraps(story)
    def called(self: S, /, *args: P.args, **kwargs: P.kwargs) -> Observable[T]:
        def expected() -> Flow[None]:
            try:
                values = yield from story(self, *args, **kwargs)
            except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
                raise ForgeRefused(f"the forge sent an unexpected response: {error!r}") from error
            yield from emit(*values)

        return flow(expected)

    return called


def emits(
    story: Callable[Concatenate[S, P], Flow[T | None]],
) -> Callable[Concatenate[S, P], Observable[T]]:
    """Turn a method into a cold stream of the value that its flow returns, unless it is None."""

    @wraps(story)
    def listed(self: S, /, *args: P.args, **kwargs: P.kwargs) -> Flow[list[T]]:
        value = yield from story(self, *args, **kwargs)
        return [] if value is None else [value]

    return emits_each(listed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A response to one request."""

    status: int
    headers: Mapping[str, str]
    """By their names in lowercase."""
    body: bytes

    def json(self) -> Any:
        """Return the value of the body; None if it is empty.

        Raises:
            ForgeUnreachable: the body is not JSON, for example because a proxy answered.
        """
        try:
            return json.loads(self.body) if self.body.strip() else None
        except ValueError as error:
            raise ForgeUnreachable("the response is not JSON") from error

    @property
    def next_page(self) -> str | None:
        """Return the URL of the next page of a list."""
        found = _NEXT.search(self.headers.get("link", ""))
        return found[1] if found else None


class Api:
    """The API of one host."""

    def __init__(
        self,
        kind: ForgeKind,
        host: str,
        *,
        program: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        """Create a client; `env` is the environment of the CLI, by default that of this process."""
        self.kind = kind
        self.host = host
        self.program = program or PROGRAMS[kind]
        self._env = _environment(kind, host, os.environ if env is None else env)
        self._timeout = timeout
        self._kept: dict[str, Response] = {}
        self._has_started = False
        """True once the program has been started."""

    @emits
    def request(self, method: str, path: str, body: Any = None) -> Flow[Response]:
        """Send one request, with the body as JSON; emit the successful response.

        A resource unchanged since it was last read is returned from memory.
        """
        kept = self._kept.get(path) if method == "GET" else None
        sent = json.dumps(body).encode() if body is not None else None
        etag = kept.headers.get("etag") if kept is not None else None
        response = yield from self._sent(method, path, sent, etag)
        if response.status in _MOVED and (place := self._path(response.headers.get("location"))):
            response = yield from self._sent(method, place, sent, None)
        if response.status == 304 and kept is not None:
            return kept
        if not 200 <= response.status < 300:
            raise self._failure(response, (yield from current_time()))
        if method == "GET" and "etag" in response.headers:
            self._keep(path, response)
        return response

    def call(self, method: str, path: str, body: Any = None) -> Observable[Any]:
        """Send one request, with the body as JSON; emit the value of the response."""
        return self.request(method, path, body).pipe(ops.map(Response.json))

    def get(self, path: str) -> Observable[Any]:
        """Emit the value of a resource."""
        return self.call("GET", path)

    @emits
    def change(
        self, method: str, path: str, body: Any = None, *, missing: bool = False
    ) -> Flow[None]:
        """Change something, emitting nothing; with `missing` it may be gone already."""
        try:
            yield from ask(self.call(method, path, body))
        except ForgeRefused as error:
            if not (missing and error.status in (404, 410)):
                raise

    @emits
    def log(self, path: str) -> Flow[str]:
        """Emit the end of a log; empty if it has expired, or may not be read."""
        try:
            response = yield from ask(self.request("GET", path))
        except ForgeRefused as error:
            if error.status not in (403, 404, 410):
                raise
            return ""
        assert response is not None
        return response.body[-LOG_END:].decode("utf-8", "replace")

    @emits
    def pages(self, path: str) -> Flow[list[Any]]:
        """Emit all entries of a list as one list.

        Errors: `ForgeUnreachable` if its length changes meanwhile, as an entry may be missing then;
        `ForgeRefused` if it is too long.
        """
        entries: list[Any] = []
        totals: set[str] = set()
        place = path
        for _ in range(MOST_PAGES):
            response = yield from ask(self.request("GET", place))
            assert response is not None
            entries += response.json()
            totals.add(response.headers.get("x-total", ""))
            if len(totals) > 1:
                raise ForgeUnreachable("a list has changed while it was read")
            following = self._path(response.next_page)
            if following is None:
                return entries
            place = following
        raise ForgeRefused(f"a list has more than {MOST_PAGES} pages")

    @emits
    def graphql(self, query: str, /, **variables: Any) -> Flow[dict[str, Any]]:
        """Emit the data that a query or mutation returns."""
        body = {"query": query, "variables": variables}
        response = yield from ask(self.request("POST", "graphql", body))
        assert response is not None
        result: dict[str, Any] = response.json()
        if errors := result.get("errors"):
            raise _query_failure(errors, response, (yield from current_time()))
        data: dict[str, Any] = result["data"]
        return data

    def _sent(self, method: str, path: str, body: bytes | None, etag: str | None) -> Flow[Response]:
        argv = [self.program, "api", "--include", "--method", method, path]
        if ":" not in self.host:  # only the environment accepts a host with a port
            argv += ["--hostname", self.host]
        if etag is not None:
            argv += ["--header", f"If-None-Match: {etag}"]
        if body is not None:
            argv += ["--header", "Content-Type: application/json", "--input", "-"]
        printed = b""

        def keep(output: bytes) -> None:
            nonlocal printed
            printed = output

        late = ForgeUnreachable(f"{self.host} did not answer within {self._timeout:g} s")
        # The folder is none of a project: `glab` writes into the repository it is in.
        output = process_output(argv, cwd="/", env=self._env, stdin=body)
        try:
            yield from ask(
                output.pipe(
                    ops.do_action(keep),
                    ops.ignore_elements(),
                    interrupt_when(timer(self._timeout).pipe(ops.flat_map(lambda _: throw(late)))),
                )
            )
        except ProcessFailed as error:  # also after 304, and after any other status but 2xx
            if _HEADERS.match(printed) is None:
                raise self._unsent(error) from error
        except SpawnFailed as error:
            if error.errno == ENOENT and not self._has_started:  # otherwise it is being updated
                raise ConfigError(
                    f"{self.program} is not installed", hint=INSTALLING[self.kind]
                ) from error
            raise ForgeUnreachable(error.message, hint=error.hint) from error
        except ProcessError as error:
            raise ForgeUnreachable(error.message, hint=error.hint) from error
        self._has_started = True
        found = _HEADERS.match(printed)
        if found is None:
            raise ForgeUnreachable(f"{self.program} printed no response from {self.host}")
        lines = found[2].decode("latin-1").splitlines()
        parted = (line.partition(":") for line in lines)
        return Response(
            status=int(found[1]),
            headers={name.strip().lower(): value.strip() for name, _, value in parted},
            body=printed[found.end() :],
        )

    def _path(self, url: str | None) -> str | None:
        """Return the path of an API URL that the forge returned; None for any other URL."""
        if url is None:
            return None
        host = re.escape(self.host)
        api = rf"https://(?:api\.{host}/|{host}/api/v\d/)(?!/)"
        found = re.match(api, url)
        return url[found.end() :] if found else None

    def _keep(self, path: str, response: Response) -> None:
        self._kept.pop(path, None)
        self._kept[path] = response
        while len(self._kept) > KEPT_RESPONSES:
            del self._kept[next(iter(self._kept))]

    def _unsent(self, error: ProcessFailed) -> Exception:
        """Return the error of a program that ended without a response."""
        if error.child_exit_code == LOGIN_MISSING:
            return ForgeLoginMissing(f"not logged in to {self.host}", hint=self._login)
        lines = error.stderr_tail.strip().splitlines()
        return ForgeUnreachable(one_line(lines[0]) if lines else error.message)

    @property
    def _login(self) -> str:
        return f"run `{self.program} auth login --hostname {self.host}`"

    def _failure(self, response: Response, now: datetime) -> Exception:
        """Return the error of an unsuccessful response."""
        status, message = response.status, _message(response)
        if status == 401:
            return ForgeLoginMissing(
                f"{self.host} does not accept the login: {message}", hint=self._login
            )
        if status == 429 or (status == 403 and _is_limit(response, message)):
            return ForgeLimited(
                f"{self.host} is rate-limiting requests: {message}", until=_until(response, now)
            )
        if status >= 500 or status == 408:
            return ForgeUnreachable(f"{self.host} failed with {status}: {message}")
        return ForgeRefused(message, status=status)


def one_line(text: str, *, limit: int = 300) -> str:
    """Return untrusted text as one short line without control characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return cut_at_end(line, limit)


def moment(text: str) -> datetime:
    """Parse a timestamp of a forge, in UTC."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC)


def current_time() -> Flow[datetime]:
    """Return the time of the scheduler."""
    now = yield from ask(clock())
    assert now is not None
    return now


def _environment(kind: ForgeKind, host: str, env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the CLI, without prompts, colors and debug output."""
    unwanted = {"GH_DEBUG", "DEBUG", "GH_FORCE_TTY", "CLICOLOR_FORCE", "GLAB_DEBUG_HTTP"}
    fixed = {"NO_COLOR": "1", "GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1"}
    if kind == "gitlab":
        fixed = {"NO_COLOR": "1", "NO_PROMPT": "1", "GLAB_CHECK_UPDATE": "false"}
    if ":" in host:
        fixed["GH_HOST" if kind == "github" else "GITLAB_HOST"] = host
    return {**{name: text for name, text in env.items() if name not in unwanted}, **fixed}


def _is_limit(response: Response, message: str) -> bool:
    headers = response.headers
    return (
        "retry-after" in headers
        or headers.get("x-ratelimit-remaining") == "0"
        or "rate limit" in message.lower()
    )


def _until(response: Response, now: datetime) -> datetime | None:
    """Return when a rate limit ends, if the forge reports it."""
    headers = response.headers
    try:
        if "retry-after" in headers:
            return now + timedelta(seconds=int(headers["retry-after"]))
        if headers.get("x-ratelimit-remaining") == "0" and "x-ratelimit-reset" in headers:
            return datetime.fromtimestamp(int(headers["x-ratelimit-reset"]), UTC)
        if "ratelimit-reset" in headers:  # GitLab
            return datetime.fromtimestamp(int(headers["ratelimit-reset"]), UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def _message(response: Response) -> str:
    """Return the error message of an unsuccessful response, or its HTTP status, on one line."""
    try:
        answer = json.loads(response.body)
    except ValueError:
        answer = None
    parts: list[str] = []
    if isinstance(answer, dict):
        for key in ("message", "error", "errors"):
            parts += _texts(answer.get(key))
    return one_line(": ".join(dict.fromkeys(parts))) or f"HTTP {response.status}"


def _texts(answer: Any) -> list[str]:
    """Return the texts in a message: a string, a list, or an object with a text per field."""
    if isinstance(answer, str):
        return [answer]
    if isinstance(answer, list):
        return [text for part in answer for text in _texts(part)]
    if isinstance(answer, dict):
        if isinstance(answer.get("message"), str):
            return [answer["message"]]
        return [f"{key} {text}" for key, part in answer.items() for text in _texts(part)]
    return []


def _query_failure(errors: list[Any], response: Response, now: datetime) -> Exception:
    """Return the error of a GraphQL query, whose status is 200."""
    kinds = {error.get("type") for error in errors}
    message = one_line(": ".join(str(error.get("message")) for error in errors))
    if "RATE_LIMITED" in kinds:
        return ForgeLimited(f"requests are limited: {message}", until=_until(response, now))
    if kinds & {"SERVICE_UNAVAILABLE", "INTERNAL"} or "Something went wrong" in message:
        return ForgeUnreachable(message)
    statuses = {"NOT_FOUND": 404, "FORBIDDEN": 403, "INSUFFICIENT_SCOPES": 403}
    found = [statuses[kind] for kind in statuses if kind in kinds]
    return ForgeRefused(message, status=found[0] if found else 422)
