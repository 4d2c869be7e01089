"""Serving other addresses than 127.0.0.1."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from cuggino.web import ServeOptions, serving
from tests.limits import LIMIT
from tests.web.server import page


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
