"""A forge on loopback, with TLS by its own certificate and pushes by `git http-backend`.

    with ForgeServer("github", folder) as server:
        server.state.opens("Add a page", labels=("agent",))
        forge = GitHub("o/r", host=server.host, api=Api("github", server.host, env=server.env))

`server.fault(...)` makes the next requests fail.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import SplitResult, parse_qsl, urlsplit

from cuggino.config import ForgeKind
from cuggino.testing import CiRun
from tests.forge.github_routes import GitHubRoutes
from tests.forge.gitlab_routes import GitLabRoutes
from tests.forge.state import State
from tests.forge.wire import Reply, Request
from tests.limits import LIMIT


@dataclass
class Fault:
    """A fault for requests: a reply instead of the usual one, or a wait before it."""

    times: int
    reply: Reply | None = None
    wait: float = 0.0
    act: Callable[[], object] = lambda: None
    path: str = ""
    """Only requests whose path and query contain this."""


@dataclass
class Served:
    """A request that was answered."""

    method: str
    path: str
    status: int
    body: str
    headers: Mapping[str, str] = field(default_factory=dict)


class ForgeServer:
    """A GitHub or GitLab with one repository, `o/r`, whose branch `main` has one commit."""

    def __init__(self, kind: ForgeKind, folder: Path, *, ci: Sequence[CiRun] = ()) -> None:
        self.kind = kind
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.requests: list[Served] = []
        self.accepts_login = True
        self._faults: list[Fault] = []
        self._closing = threading.Event()
        self._certificate = folder / "certificate.pem"
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*_certificate(self._certificate))
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.host = f"localhost:{self._server.server_address[1]}"
        self.state = State(folder / "git" / "o" / "r.git", self.host, ci=ci)
        routes = GitHubRoutes(self.state) if kind == "github" else GitLabRoutes(self.state)
        self._answer = routes.answer
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def env(self) -> dict[str, str]:
        """Return an environment in which `gh` and `glab` reach this server, and nothing else."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        tokens = {"github": "GH_ENTERPRISE_TOKEN", "gitlab": "GITLAB_TOKEN"}
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "SSL_CERT_FILE": str(self._certificate),
            tokens[self.kind]: "secret-token",
        }

    @property
    def clone_url(self) -> str:
        """Return the address of the repository for git, with a password in it."""
        return f"https://bot:secret-token@{self.host}/o/r.git"

    @property
    def git_env(self) -> dict[str, str]:
        """Return the variables by which git accepts the certificate."""
        return {"GIT_SSL_CAINFO": str(self._certificate)}

    @property
    def writes(self) -> list[Served]:
        """Return the requests that have changed something, apart from pushes."""
        return [
            served
            for served in self.requests
            if served.status < 300
            and (
                served.method in ("PATCH", "PUT", "DELETE")
                or (served.method == "POST" and "graphql" not in served.path)
                or "mutation" in served.body
            )
            and ".git/" not in served.path
        ]

    def fault(
        self,
        status: int = 500,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        times: int = 1,
        path: str = "",
    ) -> None:
        """Answer the next requests like this; a body of bytes is sent as it is."""
        said = {"message": "You have exceeded a limit"} if body is None else body
        self._faults.append(Fault(times, Reply(status, said, dict(headers or {})), path=path))

    def before(self, path: str, act: Callable[[], object]) -> None:
        """Call this before the next request whose path and query contain the text."""
        self._faults.append(Fault(1, act=act, path=path))

    def slow(self, seconds: float, *, times: int = 1) -> None:
        """Let the next requests wait, at most until the server is left."""
        self._faults.append(Fault(times, wait=seconds))

    def answer(self, request: Request) -> Reply:
        for fault in list(self._faults):
            if fault.path in request.target:
                fault.times -= 1
                if not fault.times:
                    self._faults.remove(fault)
                self._closing.wait(fault.wait)
                fault.act()
                if fault.reply is not None:
                    return fault.reply
        headers = request.headers
        token = headers.get("authorization") or headers.get("private-token") or ""
        if not (self.accepts_login and "secret-token" in token):
            return Reply(401, {"message": "Bad credentials"})
        with self.state.lock:
            return self._answer(request)


def _certificate(place: Path) -> tuple[Path, Path]:
    """Write a certificate for localhost that is its own authority; return it and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    place.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = place.with_suffix(".key")
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return place, private


def _handler(server: ForgeServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = LIMIT

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def answer(self) -> None:
            body = self._body()
            url = urlsplit(self.path)
            if ".git/" in url.path:
                self._git(url, body)
                return
            request = Request(
                self.command,
                url.path,
                dict(parse_qsl(url.query)),
                {name.lower(): value for name, value in self.headers.items()},
                body,
            )
            reply = server.answer(request)
            status, sent = reply.status, reply.sent()
            if status == 200 and self.headers.get("If-None-Match") == reply.etag:
                status, sent = 304, b""
            server.requests.append(
                Served(
                    self.command,
                    self.path,
                    status,
                    body.decode("utf-8", "replace"),
                    dict(self.headers.items()),
                )
            )
            self.send_response(status)
            for name, value in {"ETag": reply.etag, **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Type", reply.content_type)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = answer  # noqa: N815

        def _body(self) -> bytes:
            if "chunked" not in (self.headers.get("Transfer-Encoding") or ""):
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def _git(self, url: SplitResult, body: bytes) -> None:
            if not self.headers.get("Authorization"):
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="git"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            env = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(server.folder / "git"),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": url.path,
                "QUERY_STRING": url.query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "REMOTE_USER": "bot",
            }
            done = subprocess.run(
                ["git", "http-backend"], input=body, env=env, capture_output=True, check=False
            )
            head, _, sent = done.stdout.partition(b"\r\n\r\n")
            lines = [line.partition(": ") for line in head.decode().split("\r\n")]
            codes = [int(value.split()[0]) for name, _, value in lines if name == "Status"]
            self.send_response(codes[0] if codes else 200)
            for name, _, value in lines:
                if name != "Status":
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

    return Handler
