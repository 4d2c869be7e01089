"""Access control of a page, the addresses it is served at, and its pauses."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import anyio
import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cuggino.errors import ConfigError
from cuggino.web import Origins, Secrets, ServeOptions, channel, make_app, serving
from cuggino.web.channel import Change, Channel, OverviewChannel, RunChannel
from cuggino.web.security import COOKIE, HEADERS, MOST_BODY, Guard, Slowdown
from cuggino.web.site import Site
from tests.limits import LIMIT
from tests.web.server import Page, page

PORT = 8470
HOST = f"127.0.0.1:{PORT}"
ORIGIN = f"http://{HOST}"
MISSING = "(missing)"
"""Stands for no `Host` header."""
SECRETS = Secrets(path="secret", token="token", cookie="cookie")
ENTERED = {"cookie": f"{COOKIE}=cookie"}


async def _inner(scope: Scope, receive: Receive, send: Send) -> None:
    body = b""
    if scope["method"] == "POST":
        message = await receive()
        body = message["body"]
        assert not message["more_body"]
    await PlainTextResponse(f"inside {len(body)}")(scope, receive, send)


def _guard(host: str = "127.0.0.1") -> Guard:
    return Guard(
        _inner,
        secrets=SECRETS,
        origins=Origins(scheme="http", port=PORT, host=host),
        refuse=lambda status, text: PlainTextResponse(text, status_code=status),
        icon=b"<svg/>",
    )


def _ask(
    guard: ASGIApp,
    path: str = "/secret/",
    *,
    method: str = "GET",
    host: str = HOST,
    body: str = "",
    **headers: str,
) -> httpx.Response:
    """Send a request exactly as given, without what a client adds."""
    url, _, query = path.partition("?")
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    pairs = [] if host == MISSING else [(b"host", host.encode())]
    pairs += [(name.encode(), value.encode("latin-1")) for name, value in given.items()]
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body.encode(), "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": url,
        "query_string": query.encode(),
        "headers": pairs,
    }
    anyio.run(guard, scope, receive, send)
    return httpx.Response(
        sent[0]["status"],
        headers=sent[0]["headers"],
        content=b"".join(part.get("body", b"") for part in sent[1:]),
    )


def test_cookie_and_path_are_both_needed() -> None:
    """The cookie without the path, and the path without the cookie, get 401."""
    guard = _guard()
    assert 200 == _ask(guard, **ENTERED).status_code
    assert 401 == _ask(guard).status_code
    assert 401 == _ask(guard, cookie=f"{COOKIE}=another").status_code
    assert 401 == _ask(guard, "/other/", **ENTERED).status_code
    assert 401 == _ask(guard, "/", **ENTERED).status_code
    assert 401 == _ask(guard, "/secret", **ENTERED).status_code
    assert 200 == _ask(guard, cookie=f"a=b; {COOKIE}=old; {COOKIE}=cookie").status_code


def test_link_stores_a_cookie_under_the_secret_path() -> None:
    """The link redirects to the clean URL, with a cookie that no other path gets."""
    entered = _ask(_guard(), "/secret/?t=token")
    assert (303, "/secret/") == (entered.status_code, entered.headers["location"])
    cookie = entered.headers["set-cookie"]
    assert f"{COOKIE}=cookie" == cookie.partition(";")[0]
    for part in ("Path=/secret/", "HttpOnly", "SameSite=strict"):
        assert part in cookie
    assert 401 == _ask(_guard(), "/secret/?t=tokem").status_code
    assert 401 == _ask(_guard(), "/secret/?t=tokem", **ENTERED).status_code
    assert 401 == _ask(_guard(), "/other/?t=token").status_code


def test_link_on_another_site_is_followed_by_a_step_of_our_own() -> None:
    """A browser sends no strict cookie after a redirect that another site has begun."""
    entered = _ask(_guard(), "/secret/?t=token", sec_fetch_site="cross-site")
    assert 200 == entered.status_code
    assert 'content="0;url=/secret/"' in entered.text
    assert "set-cookie" in entered.headers


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (HOST, 200),
        (f"localhost:{PORT}", 200),
        (f"LOCALHOST:{PORT}", 200),
        (f"[::1]:{PORT}", 200),
        (MISSING, 403),
        ("", 403),
        ("127.0.0.1", 403),
        ("127.0.0.1:8471", 403),
        (f"evil.example:{PORT}", 403),
        (f"127.0.0.1.evil.example:{PORT}", 403),
        (f"localhost.evil.example:{PORT}", 403),
        (f"192.168.1.2:{PORT}", 403),
    ],
)
def test_host_must_be_ours(host: str, status: int) -> None:
    """A name that an attacker has rebound to 127.0.0.1 is refused, even with the cookie."""
    assert status == _ask(_guard(), host=host, **ENTERED).status_code


def test_two_hosts_are_refused() -> None:
    """A request with two `Host` headers is refused."""
    origins = Origins(scheme="http", port=PORT, host="127.0.0.1")
    assert not origins.accepts_host(f"{HOST}, {HOST}")


def test_all_addresses_accept_addresses_but_no_names() -> None:
    """On 0.0.0.0 the page has many addresses; only a name can be rebound."""
    guard = _guard("0.0.0.0")
    assert 200 == _ask(guard, host=f"192.168.1.2:{PORT}", **ENTERED).status_code
    assert 403 == _ask(guard, host=f"evil.example:{PORT}", **ENTERED).status_code
    assert 200 == _ask(_guard("desk.lan"), host=f"desk.lan:{PORT}", **ENTERED).status_code


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": ORIGIN}, 200),
        ({"origin": ORIGIN, "sec_fetch_site": "same-origin"}, 200),
        ({}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
        ({"origin": "http://127.0.0.1:8471"}, 403),
        ({"origin": f"http://localhost:{PORT}"}, 403),
        ({"origin": f"https://{HOST}"}, 403),
        ({"origin": f"{ORIGIN}.evil.example"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": ORIGIN, "sec_fetch_site": "same-site"}, 403),
        ({"origin": ORIGIN, "sec_fetch_site": "cross-site"}, 403),
    ],
)
def test_form_must_come_from_our_page(headers: dict[str, str], status: int) -> None:
    """A form needs our `Origin` exactly, and is refused from another port, even with the cookie."""
    answer = _ask(
        _guard(),
        method="POST",
        body="a=b",
        content_type="application/x-www-form-urlencoded",
        **ENTERED,
        **headers,
    )
    assert status == answer.status_code


@pytest.mark.parametrize("site", ["same-site", "cross-site", "anything"])
def test_pages_and_streams_are_refused_to_other_sites(site: str) -> None:
    """Another port of this machine is `same-site`."""
    for path in ("/secret/", "/secret/stream"):
        assert 403 == _ask(_guard(), path, sec_fetch_site=site, **ENTERED).status_code


def test_bodies_are_limited() -> None:
    """A form of more than 64 kB is refused, regardless of its declared length."""
    form = {"method": "POST", "origin": ORIGIN, "content_type": "application/x-www-form-urlencoded"}

    def post(size: int, **headers: str) -> int:
        return _ask(_guard(), body="a" * size, **form, **ENTERED, **headers).status_code

    assert 200 == post(MOST_BODY)
    assert 413 == post(MOST_BODY + 1)
    assert 413 == post(1, content_length=str(MOST_BODY + 1))
    assert 413 == post(1, content_length="-1")
    assert 413 == post(MOST_BODY + 1, content_length="1")


def test_only_forms_are_accepted() -> None:
    """Other content and other methods are refused."""
    guard = _guard()
    given = {"origin": ORIGIN, **ENTERED}
    assert 415 == _ask(guard, method="POST", content_type="application/json", **given).status_code
    assert 415 == _ask(guard, method="POST", content_type="text/plain", **given).status_code
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE"):
        assert 405 == _ask(guard, method=method, **given).status_code


def test_every_answer_has_the_headers() -> None:
    """Refusals have the content security policy, too."""
    for answer in (_ask(_guard(), **ENTERED), _ask(_guard()), _ask(_guard(), host="evil.example")):
        assert set(HEADERS) <= set(answer.headers)
    policy = HEADERS["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy


def test_forwarded_headers_are_ignored() -> None:
    """Claims of a proxy change nothing."""
    claimed = {"x_forwarded_host": HOST, "x_forwarded_proto": "https", "forwarded": f"host={HOST}"}
    assert 403 == _ask(_guard(), host="evil.example", **ENTERED, **claimed).status_code
    assert 401 == _ask(_guard(), **claimed).status_code


def test_guesser_is_slowed_down_and_the_user_never() -> None:
    """After ten failures each waits a second more than the one before; the cookie never waits."""
    waits: list[float] = []

    async def attack() -> None:
        slowdown = Slowdown()
        for _ in range(10):
            assert await slowdown.fail()
        assert [] == waits
        for _ in range(3):
            await slowdown.fail()

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cuggino.web.security.asyncio.sleep", sleep)
        anyio.run(attack)
        assert [1, 2, 3] == [round(wait) for wait in waits]
        guard, before = _guard(), len(waits)
        for _ in range(20):
            assert 401 == _ask(guard).status_code
        assert before + 10 == len(waits)
        assert 200 == _ask(guard, **ENTERED).status_code
        assert 303 == _ask(guard, "/secret/?t=token").status_code
        assert before + 10 == len(waits)


def test_waiting_failures_are_limited() -> None:
    """Of many failures at once, only some wait, so that they take no memory."""

    async def attack() -> list[bool]:
        slowdown = Slowdown()
        results: list[bool] = []

        async def fail() -> None:
            results.append(await slowdown.fail())

        async with anyio.create_task_group() as tasks:
            for _ in range(200):
                tasks.start_soon(fail)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        return results

    results = anyio.run(attack)
    assert [True] * 10 + [False] * 140 == results


def test_favicon_needs_no_cookie() -> None:
    """Browsers ask for it on their own; it reveals nothing."""
    assert "image/svg+xml" == _ask(_guard(), "/favicon.ico").headers["content-type"]


def test_secrets_are_new_at_every_start() -> None:
    """A link or cookie of an earlier server is worthless."""
    one, two = Secrets(), Secrets()
    assert 6 == len({one.path, one.token, one.cookie, two.path, two.token, two.cookie})
    assert all(len(token) >= 43 for token in (one.token, one.cookie))


def test_another_address_needs_tls_or_consent(tmp_path: Path) -> None:
    """Nothing is served to other machines by mistake."""
    with pytest.raises(ConfigError, match="without TLS"):
        ServeOptions(host="0.0.0.0").check()
    with pytest.raises(ConfigError, match="without TLS"):
        ServeOptions(host="desk.lan").check()
    with pytest.raises(ConfigError, match="belong together"):
        ServeOptions(cert=tmp_path / "cert.pem").check()
    with pytest.raises(ConfigError, match="is not a file"):
        ServeOptions(cert=tmp_path / "cert.pem", key=tmp_path / "key.pem").check()
    ServeOptions(host="0.0.0.0", insecure=True).check()
    for host in ("127.0.0.1", "::1", "localhost", "127.0.0.2"):
        ServeOptions(host=host).check()


def test_served_page(served: Page) -> None:
    """The same holds on a socket: only the link opens the page, and the token leaves the URL."""
    assert 401 == httpx.get(served.origin).status_code
    assert 401 == httpx.get(served.origin + served.base + "/").status_code
    assert 403 == served.get(Host="evil.example").status_code
    opened = served.client.get(served.server.url)
    assert (200, served.base + "/") == (opened.status_code, urlsplit(str(opened.url)).path)
    assert "server" not in opened.headers
    assert "Not signed in" in httpx.get(served.origin).text


def test_cookies_of_two_servers_do_not_mix(tmp_path: Path) -> None:
    """One browser uses two servers: each gets its own cookie."""
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    with page(folders[0]) as one, page(folders[1]) as two:
        opened = one.client.get(two.server.url)
        assert 200 == opened.status_code
        assert 200 == one.get().status_code
        assert 1 == len(opened.request.headers["cookie"].split(";"))


def test_application_for_a_server_of_ones_own(project: Path) -> None:
    """`make_app` needs no socket."""
    app = make_app([project], Origins(scheme="http", port=80, host="127.0.0.1"), SECRETS)
    assert app.site.base == "/secret"
    assert 401 == _ask(app.asgi, host="127.0.0.1").status_code


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate and its key."""
    if shutil.which("openssl") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("TLS must be tested on CI: there is no openssl")
        pytest.skip("openssl is not installed")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    out = ["-keyout", str(key), "-out", str(cert)]
    subprocess.run([*command.split(), *names, *out], check=True, capture_output=True)
    return cert, key


def test_tls(project: Path, files: tuple[Path, Path]) -> None:
    """With a certificate the link is of HTTPS, and its cookie is for HTTPS alone."""
    cert, key = files
    with serving([project], ServeOptions(cert=cert, key=key)) as server:
        assert server.url.startswith("https://127.0.0.1:")
        origin = server.url.partition(server.app.site.base)[0]
        with httpx.Client(verify=False, timeout=LIMIT) as client:
            entered = client.get(server.url)
            assert 303 == entered.status_code
            assert "Secure" in entered.headers["set-cookie"]
            assert 200 == client.get(f"{origin}{server.app.site.base}/").status_code
            form = {"content": b"a=b", "headers": {"origin": origin.replace("https", "http")}}
            target = f"{origin}{server.app.site.base}/x"
            assert 403 == client.post(target, **form).status_code  # type: ignore[arg-type]
        with pytest.raises(httpx.HTTPError):
            httpx.get(server.url.replace("https", "http"))


def test_all_addresses(project: Path, files: tuple[Path, Path]) -> None:
    """On all addresses the link has the name of the machine, and addresses are accepted too."""
    cert, key = files
    with serving([project], ServeOptions(host="0.0.0.0", cert=cert, key=key)) as server:
        found = urlsplit(server.url)
        assert socket.gethostname().lower() == found.hostname
        with httpx.Client(verify=False, timeout=LIMIT) as client:
            local = server.url.replace(str(found.hostname), "127.0.0.1", 1)
            assert 303 == client.get(local).status_code
            named = {"host": found.netloc}
            assert 303 == client.get(local, headers=named).status_code
            assert 403 == client.get(local, headers={"host": "evil.example"}).status_code


def test_insecure(project: Path) -> None:
    """`--insecure` serves another address without TLS."""
    with page(project, options=ServeOptions(host="127.0.0.2", insecure=True)) as served:
        assert served.origin.startswith("http://127.0.0.2:")
        assert 200 == served.get().status_code


def test_ipv6(project: Path) -> None:
    """The loopback address of IPv6 needs no TLS."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        pytest.skip(f"there is no IPv6 here: {error}")
    with page(project, options=ServeOptions(host="::1")) as served:
        assert served.origin.startswith("http://[::1]:")
        assert 200 == served.get().status_code


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock at 100 s, and the processor time of this thread."""
    now = SimpleNamespace(wall=100.0, cpu=0.0)
    times = SimpleNamespace(monotonic=lambda: now.wall, thread_time=lambda: now.cpu)
    monkeypatch.setattr(channel, "time", times)
    return now


def _run(site: Site) -> Channel:
    return RunChannel(site, site.places[0], "r")


@pytest.mark.parametrize(
    ("kind", "spent", "news", "pause"),
    [
        (_run, 0.001, None, 1.0),
        (_run, 0.001, 0.0, 0.05),
        (_run, 0.0002, 0.0, 0.04),
        (_run, 1.0, 0.0, 0.08),
        (_run, 1.0, 0.3, 0.34),
        (OverviewChannel, 0.008, 0.0, 0.1),
        (OverviewChannel, 1.0, 0.0, 0.5),
    ],
    ids=[
        "no news",
        "a fiftieth of a core",
        "several events at once",
        "much to draw: live all the same",
        "news after a while",
        "the overview",
        "a large overview",
    ],
)
def test_pause_before_the_next_look(
    clock: SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    kind: Callable[[Site], Channel],
    spent: float,
    news: float | None,
    pause: float,
) -> None:
    """Events of a run are drawn within a tenth of a second; without news there is a slow poll."""
    page = kind(Site("/x", [tmp_path]))

    async def poll(*, now: bool = False) -> Change | None:
        with page.pace.spending():
            clock.cpu += spent
        return None

    monkeypatch.setattr(page, "poll", poll)
    asyncio.run(page.look())
    if news is not None:
        clock.wall += news
        page.pace.note()
        page.pace.note()
    assert pause == pytest.approx(page.pace.due - 100)
