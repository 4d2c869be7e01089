"""Connecting to a scheduler: TLS, refused connections, and a scheduler that dies."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from distributed import Security

from cuggino import run
from cuggino.errors import ConfigError, install_extra
from cuggino.placement.dask import AttemptLost, DaskLink, PlaceGone
from cuggino.testing import no_leaks
from tests.limits import LIMIT
from tests.placement.dask.cluster import Cluster, running_cluster
from tests.placement.dask.test_clients import NO_CUGGINO, started_with
from tests.placement.dask.watching import TASKS, all_gone, begun, begun_agent, listed
from tests.processes.subscribers import Recorder


class Files(NamedTuple):
    """A certificate, its key, and the authority that has signed it."""

    ca: Path
    cert: Path
    key: Path

    @property
    def security(self) -> Any:
        ca, cert, key = map(str, self)
        return Security(
            tls_ca_file=ca, tls_client_cert=cert, tls_client_key=key, require_encryption=True
        )


def certificate(folder: Path) -> Files:
    folder.mkdir()
    made = Security.temporary()
    files = Files(folder / "ca.pem", folder / "cert.pem", folder / "key.pem")
    texts = (made.tls_ca_file, made.tls_client_cert, made.tls_client_key)
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    return files


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return certificate(tmp_path_factory.mktemp("tls") / "own")


@pytest.fixture(scope="module")
def secured(authority: Files, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    ca, cert, key = map(str, authority)
    options = ("--protocol", "tls", "--tls-ca-file", ca, "--tls-cert", cert, "--tls-key", key)
    with running_cluster(tmp_path_factory.mktemp("secured"), "t1", options=options) as cluster:
        yield cluster


def test_tls(secured: Cluster, authority: Files) -> None:
    assert secured.address.startswith("tls://")
    with DaskLink(secured.address, security=authority.security, timeout=LIMIT) as link:
        assert ["0", "1", "2"] == listed(link, begun(link, "tls", "count", "3"))


def test_client_of_another_authority_is_refused(secured: Cluster, tmp_path: Path) -> None:
    other = certificate(tmp_path / "other").security
    with (
        no_leaks(within=LIMIT),
        pytest.raises(ConfigError, match="cannot connect to the scheduler at tls://"),
    ):
        DaskLink(secured.address, security=other, timeout=1.0)


@pytest.mark.real_agent
def test_client_without_a_certificate_is_refused(secured: Cluster) -> None:
    for address in (secured.address, secured.address.replace("tls:", "tcp:")):
        with (
            no_leaks(within=LIMIT),
            pytest.raises(ConfigError, match="cannot connect to the scheduler at"),
        ):
            DaskLink(address, timeout=1.0)


def test_nobody_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        with no_leaks(within=LIMIT), pytest.raises(ConfigError, match="cannot connect") as raised:
            DaskLink(address, timeout=0.5)
    assert 2 == raised.value.code


def test_distributed_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ConfigError) as raised:
        DaskLink("tcp://127.0.0.1:1")
    assert install_extra("cluster") == raised.value.hint


@pytest.mark.real_agent
def test_scheduler_without_cuggino(tmp_path: Path) -> None:
    env = started_with(tmp_path / "bare", NO_CUGGINO)
    with (
        running_cluster(tmp_path, config=env) as cluster,
        no_leaks(within=LIMIT),
        pytest.raises(ConfigError, match="cannot run cuggino: ") as raised,
    ):
        DaskLink(cluster.address)
    assert "install the same version" in (raised.value.hint or "")


@pytest.mark.real_agent
def test_killed_scheduler(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Attempts are lost at once, their processes end, and closing does not wait for it."""
    with (
        running_cluster(tmp_path, "s1") as cluster,
        no_leaks(within=LIMIT),
        DaskLink(cluster.address, timeout=30) as link,  # as long it tries to connect again
    ):
        placed, texts, pids = begun_agent(link, "unscheduled")
        gone = Recorder(link.gone(placed))
        cluster.scheduler.kill()
        reason = f"the connection to the scheduler at {cluster.address} is lost"
        assert [PlaceGone("unscheduled", "s1", "scheduler", reason)] == gone.wait().items
        assert isinstance(texts.wait().error, AttemptLost)
        assert all_gone(pids)
        assert run(link.cancel(placed)) is None
        with pytest.raises(AttemptLost, match=r"the connection to the scheduler at .* is lost"):
            begun(link, "unscheduled-2", "echo")
    assert "" == capfd.readouterr().err


async def _closing(client: Any) -> None:
    """Leave the client in the midst of its closing."""
    client.status = "closing"
    await client.rpc.close()


async def _closed(client: Any) -> None:
    await client.close()


@pytest.mark.parametrize("close", [_closing, _closed])
def test_closed_client(cluster: Cluster, close: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
    """Every call of a closed client is a lost attempt, whatever Dask raises."""
    with DaskLink(cluster.address, detach=True, timeout=LIMIT) as link:
        placed = begun(link, f"kept-{close.__name__}", "echo")
        link._call(close(link._client)).result(LIMIT)
        link.tell(placed, "lost")
        later = link.place("later", "", f"{TASKS}:echo")
        for call in (link.workers(), later, link.attach(), link.events(placed)):
            with pytest.raises(AttemptLost, match="the connection to the scheduler at"):
                run(call)


def test_failed_call(link: DaskLink) -> None:
    """An error of what was called keeps its type while there is a connection."""

    def broken(dask_scheduler: Any) -> None:
        raise RuntimeError("ConnectionPool is closed")

    with pytest.raises(RuntimeError, match="ConnectionPool is closed"):
        link._call(link._ask(broken)).result(LIMIT)
