"""The address of a cluster: what may be connected to, and by which TLS files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cuggino.config import ClusterSettings
from cuggino.errors import ConfigError, install_extra
from cuggino.placement import ClusterAddress, TlsFiles, cluster_address, security_of
from cuggino.placement.address import is_loopback

NAMES = ("ca", "cert", "key")


def resolved(folder: Path, flag: str | None = None, /, **settings: Any) -> ClusterAddress | None:
    """Return the address of these settings, with TLS files in `folder`."""
    given = {name: settings.pop(name) for name in ("detach", "insecure") if name in settings}
    for name in NAMES:
        (folder / f"{name}.pem").touch()
    return cluster_address(
        ClusterSettings(**settings), folder=folder, address=flag, env={"HOME": "/"}, **given
    )


def tls(**settings: Any) -> dict[str, Any]:
    """Return settings with TLS files."""
    return {**{name: f"{name}.pem" for name in NAMES}, **settings}


@pytest.mark.parametrize(
    ("settings", "address", "expected"),
    [
        ({}, "tcp://127.0.0.1:9000", "tcp://127.0.0.1:9000"),
        ({}, "localhost", "tcp://localhost:8786"),
        ({}, "[::1]:9000", "tcp://[::1]:9000"),
        ({"address": "127.0.0.1"}, None, "tcp://127.0.0.1:8786"),
        ({"address": "127.0.0.1:1"}, "127.0.0.1:2", "tcp://127.0.0.1:2"),
        (tls(), "build.example.com", "tls://build.example.com:8786"),
        (tls(address="tls://10.0.0.5:9000/"), None, "tls://10.0.0.5:9000"),
        ({"insecure": True}, "10.0.0.5", "tcp://10.0.0.5:8786"),
    ],
)
def test_address(
    tmp_path: Path, settings: dict[str, Any], address: str | None, expected: str
) -> None:
    """Scheme and port have defaults, and an address on the command line wins."""
    found = resolved(tmp_path, address, **settings)
    assert found is not None
    assert expected == found.address
    assert found.address.startswith("tls://") == (found.tls is not None)


@pytest.mark.parametrize(("address", "given"), [(None, None), ("none", "tcp://127.0.0.1")])
def test_no_cluster(tmp_path: Path, address: str | None, given: str | None) -> None:
    """Without an address, or with `none`, this machine does the work."""
    assert resolved(tmp_path, address, **({"address": given} if given else {})) is None


@pytest.mark.parametrize(
    ("settings", "address", "message"),
    [
        ({}, "tcp://10.0.0.5:8786", "tcp://10.0.0.5:8786 is a remote address without TLS"),
        ({}, "build.example.com", "is a remote address without TLS"),
        ({}, "127.0.0.1.example.com", "is a remote address without TLS"),
        ({}, "0.0.0.0", "is a remote address without TLS"),
        ({"insecure": True}, "tls://10.0.0.5", "tls://10.0.0.5:8786 needs TLS files"),
        (tls(), "tcp://127.0.0.1", "tcp://127.0.0.1:8786 is not an address with TLS"),
        (tls(key="missing.pem"), "host", 'the TLS file "key" of the cluster, '),
        ({}, "ucx://127.0.0.1", "ucx:// is not the address of a cluster"),
        ({}, "127.0.0.1:99999", '"127.0.0.1:99999" is not the address of a cluster'),
        ({}, "two words", '"two words" is not the address of a cluster'),
        ({}, "tls://", '"tls://" is not the address of a cluster'),
        ({}, "", '"" is not the address of a cluster'),
        ({}, "local", "no local cluster runs"),
    ],
)
def test_refused(tmp_path: Path, settings: dict[str, Any], address: str, message: str) -> None:
    """An address that cannot or must not be connected to is one sentence, with advice."""
    with pytest.raises(ConfigError) as caught:
        resolved(tmp_path, address, **settings)
    assert message in caught.value.message
    assert caught.value.hint
    assert 2 == caught.value.code


def test_flags_override_settings(tmp_path: Path) -> None:
    """`detach` and `insecure` of the command line win; omitted options stay as configured."""
    found = resolved(tmp_path, "10.0.0.5", address="x", detach=True, insecure=True, remote="up")
    assert found is not None
    assert (True, "up") == (found.detach, found.remote)
    with pytest.raises(ConfigError, match="without TLS"):
        cluster_address(
            ClusterSettings(address="10.0.0.5", insecure=True), folder=tmp_path, insecure=False
        )


def test_files_in_the_home_folder(tmp_path: Path) -> None:
    """`~/` is the user's home folder; other paths are relative to the project."""
    for name in NAMES:
        (tmp_path / name).touch()
    settings = ClusterSettings(address="host", ca="~/ca", cert=f"{tmp_path}/cert", key="key")
    found = cluster_address(settings, folder=tmp_path, env={"HOME": str(tmp_path)})
    assert found is not None
    assert TlsFiles(*(tmp_path / name for name in NAMES)) == found.tls


def test_local_cluster(tmp_path: Path) -> None:
    """`local` is the cluster that this user has started, with its certificates."""
    place = tmp_path / "cuggino/cluster"
    place.mkdir(parents=True)
    files = {name: f"{name}.pem" for name in NAMES}
    for file in files.values():
        (place / file).touch()
    state = {"address": "tls://127.0.0.1:5", "process": os.getpid(), **files}
    (place / "local.json").write_text(json.dumps(state))
    found = cluster_address(
        ClusterSettings(), folder=tmp_path, address="local", env={"XDG_STATE_HOME": str(tmp_path)}
    )
    assert found is not None
    assert "tls://127.0.0.1:5" == found.address
    assert TlsFiles(*(place / file for file in files.values())) == found.tls
    killed = subprocess.Popen(["true"])
    killed.wait()
    for content in ("{", "[]", "{}", json.dumps({**state, "process": killed.pid})):
        (place / "local.json").write_text(content)
        with pytest.raises(ConfigError, match="no local cluster runs"):
            cluster_address(
                ClusterSettings(address="local"),
                folder=tmp_path,
                env={"XDG_STATE_HOME": str(tmp_path)},
            )


def test_loopback() -> None:
    """Names that only look like loopback are not."""
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]")))
    assert not any(map(is_loopback, ("", "10.0.0.1", "0.0.0.0", "::", "localhost.example.com")))


def test_security_requires_encryption(tmp_path: Path) -> None:
    """Clients, workers and schedulers show the certificate, and accept no plain connection."""
    pytest.importorskip("distributed")
    found = resolved(tmp_path, "host", **tls())
    assert found is not None
    security: Any = security_of(found)
    assert security is not None
    assert security.require_encryption is True
    for role in ("client", "scheduler", "worker"):
        config = security.get_tls_config_for_role(role)
        assert [str(tmp_path / f"{name}.pem") for name in NAMES] == [
            config[f"{name}_file" if name == "ca" else name] for name in ("ca", "cert", "key")
        ]
    assert security_of(ClusterAddress(address="tcp://127.0.0.1:8786")) is None


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without distributed, the error names the extra to install."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ConfigError) as caught:
        security_of(ClusterAddress(address="tcp://127.0.0.1:8786"))
    assert install_extra("cluster") == caught.value.hint


def test_unreadable_key(tmp_path: Path) -> None:
    """A key that cannot be read is named, with the reason."""
    resolved(tmp_path)
    (tmp_path / "key").mkdir()
    with pytest.raises(ConfigError, match=r"/key, cannot be read: Is a directory"):
        cluster_address(ClusterSettings(**tls(address="host", key="key")), folder=tmp_path)
