"""The address of a cluster, and the TLS files that a client needs to connect.

A scheduler runs any code that it receives. Beyond this machine it is therefore used only with TLS,
with both certificates signed by the same authority.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from cuggino.config import CONFIG_FILE, ClusterSettings
from cuggino.errors import ConfigError, install_extra
from cuggino.files import read_json_object, state_folder
from cuggino.sandbox import home_of

if TYPE_CHECKING:
    from distributed.security import Security

LOCAL = "local"
"""The name of the cluster that `cuggino cluster up` has started for this user."""
NONE = "none"
"""In place of an address: no cluster, even if one is configured."""
STATE_FOLDER = "cluster"
"""The folder of that cluster, in the user's state folder."""
STATE_FILE = "local.json"
"""The file in it with the address and the TLS files; it exists while the cluster runs."""
PORT = 8786
"""Dask's port of schedulers."""

_ADDRESS = re.compile(
    r"(?:(?P<scheme>[a-z][a-z0-9+]*)://)?"
    r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9](?:[A-Za-z0-9._-]*))(?::(?P<port>[0-9]{1,5}))?/?"
)
_MOST = 65_535


class TlsFiles(NamedTuple):
    """Certificates in PEM format."""

    ca: Path
    """The authority that has signed all certificates of the cluster."""
    cert: Path
    key: Path


@dataclass(frozen=True, kw_only=True)
class ClusterAddress:
    """A cluster that may be connected to."""

    address: str
    """With scheme and port: `tls://HOST:8786`, or `tcp://HOST:8786` without TLS."""
    tls: TlsFiles | None = None
    """None for `tcp://`."""
    detach: bool = False
    """Attempts continue when the client ends."""
    remote: str = "origin"
    """The git remote that client and workers reach: its name at the client, or a URL."""
    needs: Mapping[str, float] = field(default_factory=dict)
    """Resources that every item takes on its worker."""


def cluster_address(
    settings: ClusterSettings,
    *,
    folder: Path,
    address: str | None = None,
    detach: bool | None = None,
    insecure: bool | None = None,
    env: Mapping[str, str] | None = None,
) -> ClusterAddress | None:
    """Return the cluster to connect to, or None to work on items on this machine.

    `address`, `detach` and `insecure` override the settings. TLS files are relative to `folder`.

    Raises:
        ConfigError: the address is invalid, no local cluster runs, or an address beyond this
            machine has no TLS; a TLS file is missing.
    """
    given = settings.address if address is None else address.strip()
    if given is None or given == NONE:
        return None
    env = os.environ if env is None else env
    if given == LOCAL:
        given, files = _local(env)
    else:
        files = _tls_files(settings, folder, env)
    scheme, host, port = _parts(given, default="tls" if files else "tcp")
    address = f"{scheme}://{host}:{port}"
    is_insecure = settings.insecure if insecure is None else insecure
    if scheme == "tcp" and files is not None:
        raise ConfigError(
            f"{address} is not an address with TLS, but there are TLS files",
            hint=f"write tls://{host}:{port}, or remove the files from {CONFIG_FILE}",
        )
    if scheme == "tcp" and not is_loopback(host) and not is_insecure:
        raise ConfigError(
            f"{address} is a remote address without TLS: anyone who can reach it could run "
            "programs on all its workers",
            hint=f'give "ca", "cert" and "key" in "cluster" of {CONFIG_FILE}, or --insecure for a '
            "network that nobody else can reach",
        )
    if scheme == "tls" and files is None:
        raise ConfigError(
            f"{address} needs TLS files",
            hint=f'give "ca", "cert" and "key" in "cluster" of {CONFIG_FILE}',
        )
    if files is not None:
        _check_readable(files)
    return ClusterAddress(
        address=address,
        tls=files,
        detach=settings.detach if detach is None else detach,
        remote=settings.remote,
        needs=settings.needs,
    )


def security_of(cluster: ClusterAddress) -> Security | None:
    """Return the `security` argument of `distributed.Client`; None without TLS.

    Raises:
        ConfigError: the extra `cluster` is not installed.
    """
    distributed = load_distributed()
    if cluster.tls is None:
        return None
    files = {"tls_ca_file": str(cluster.tls.ca)}
    for role in ("client", "scheduler", "worker"):
        files[f"tls_{role}_cert"] = str(cluster.tls.cert)
        files[f"tls_{role}_key"] = str(cluster.tls.key)
    security: Security = distributed.Security(require_encryption=True, **files)
    return security


def load_distributed() -> ModuleType:
    """Import and return `distributed`.

    Raises:
        ConfigError: the extra `cluster` is not installed.
    """
    try:
        import distributed
    except ImportError as error:
        raise ConfigError(
            "a cluster needs the package distributed", hint=install_extra("cluster")
        ) from error
    module: ModuleType = distributed
    return module


def is_loopback(host: str) -> bool:
    """Return whether the host is only reachable from this machine."""
    name = host.strip("[]").partition("%")[0]
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def local_state(env: Mapping[str, str]) -> Path:
    """Return the folder of the user's local cluster, which may not exist yet.

    Raises:
        ConfigError: the user has no home folder.
    """
    state = state_folder(env)
    if state is None:
        raise ConfigError("there is no home folder for a local cluster", hint="set HOME")
    return state / STATE_FOLDER


def _local(env: Mapping[str, str]) -> tuple[str, TlsFiles | None]:
    start = ConfigError(
        "no local cluster runs", hint="start one in another terminal: cuggino cluster up"
    )
    place = local_state(env)
    try:
        raw: dict[str, Any] = read_json_object(place / STATE_FILE)
    except FileNotFoundError:
        raise start from None
    except (OSError, ValueError) as error:
        raise start from error
    match raw:
        case {
            "address": str(address),
            "process": int(process),
            "ca": str(ca),
            "cert": str(cert),
            "key": str(key),
        } if is_running(process):
            return address, TlsFiles(place / ca, place / cert, place / key)
        case _:
            raise start


def is_running(process: int) -> bool:
    """Return whether there is a process with this id."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # it is another user's, or no id
        return process > 0
    return process > 0


def _tls_files(settings: ClusterSettings, folder: Path, env: Mapping[str, str]) -> TlsFiles | None:
    if settings.ca is None or settings.cert is None or settings.key is None:
        return None
    return TlsFiles(
        *(_path(one, folder, env) for one in (settings.ca, settings.cert, settings.key))
    )


def _path(written: str, folder: Path, env: Mapping[str, str]) -> Path:
    home = home_of(env)
    if written.startswith("~/") and home is not None:
        return home / written.removeprefix("~/")
    return folder / written


def _parts(given: str, *, default: str) -> tuple[str, str, int]:
    """Return scheme, host and port."""
    found = _ADDRESS.fullmatch(given)
    if found is None or not 0 < int(found["port"] or PORT) <= _MOST:
        raise ConfigError(
            f'"{given}" is not the address of a cluster',
            hint=f"write tls://HOST:{PORT}, or {LOCAL} for the one of `cuggino cluster up`",
        )
    scheme = found["scheme"] or default
    if scheme not in ("tls", "tcp"):
        raise ConfigError(
            f"{scheme}:// is not the address of a cluster",
            hint=f"write tls://{found['host']}:{PORT}",
        )
    return scheme, found["host"], int(found["port"] or PORT)


def _check_readable(files: TlsFiles) -> None:
    for name, path in files._asdict().items():
        try:
            with path.open("rb") as file:
                file.read(1)
        except OSError as error:
            raise ConfigError(
                f'the TLS file "{name}" of the cluster, {path}, cannot be read: {error.strerror}',
                hint=f'correct "cluster" in {CONFIG_FILE}',
            ) from error
