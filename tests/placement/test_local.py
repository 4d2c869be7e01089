"""A cluster on this machine: its certificate, who is refused, and its end."""

from __future__ import annotations

import signal
import socket
import ssl
import stat
from pathlib import Path

import pytest

from cuggino import run
from cuggino.config import ClusterSettings
from cuggino.errors import ConfigError
from cuggino.placement import ClusterAddress, cluster_address, local_cluster, security_of
from cuggino_cli.main import main
from tests.limits import LIMIT
from tests.placement.local_clusters import at_work, cluster_up, programs
from tests.processes.subscribers import eventually

pytest.importorskip("distributed")


def local(state: Path) -> ClusterAddress:
    """Return the address of the local cluster."""
    found = cluster_address(
        ClusterSettings(address="local"), folder=state, env={"XDG_STATE_HOME": str(state)}
    )
    assert found is not None
    return found


@pytest.mark.real_agent
def test_only_certificates_connect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Only holders of the certificate can use the cluster; it is removed with the cluster."""
    import distributed

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with cluster_up(tmp_path, "--workers", "1", "--resources", "claude=2,gpu") as process:
        cluster = local(tmp_path)
        place = tmp_path / "cuggino/cluster"
        assert cluster.tls is not None
        assert {"cert.pem", "key.pem", "local.json"} == {path.name for path in place.iterdir()}
        assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in place.iterdir())
        assert 0o700 == stat.S_IMODE(place.stat().st_mode)

        with distributed.Client(cluster.address, security=security_of(cluster)) as client:
            (worker,) = client.scheduler_info()["workers"].values()
            assert {"claude": 2, "gpu": 1} == worker["resources"]
            assert (1, 0) == (worker["nthreads"], worker["memory_limit"])

        host, _, port = cluster.address.removeprefix("tls://").rpartition(":")
        without = ssl.create_default_context(cafile=str(cluster.tls.ca))
        without.check_hostname = False
        with (
            socket.create_connection((host, int(port))) as plain,
            pytest.raises(ssl.SSLError, match=r"(?i)certificate.required"),
            without.wrap_socket(plain) as wrapped,
        ):
            wrapped.recv(1)
        stranger = distributed.Security.temporary()
        with pytest.raises(OSError, match="TLS certificate does not match"):
            distributed.Client(cluster.address, security=stranger, timeout=LIMIT)
        with pytest.raises(OSError, match=r"Timed out|closed"):
            distributed.Client(cluster.address.replace("tls", "tcp"), timeout=0.5)

        assert 2 == main(["cluster", "up"])
        assert f"runs already, by process {process.pid}" in capfd.readouterr().err

        started = programs(process)
        assert len(started) >= 3
        process.send_signal(signal.SIGTERM)
        assert 143 == process.wait()
        assert [] == at_work(started)
        assert [] == list(place.iterdir())
        with pytest.raises(ConfigError, match="no local cluster runs"):
            local(tmp_path)


@pytest.mark.real_agent
@pytest.mark.usefixtures("temporary")
def test_killed(tmp_path: Path) -> None:
    """A cluster whose process is killed leaves no process, and does not prevent the next one."""
    with cluster_up(tmp_path, "--workers", "2") as process:
        started = programs(process)
        process.kill()
        assert eventually(lambda: not at_work(started))
    with cluster_up(tmp_path, "--workers", "1") as process:
        process.send_signal(signal.SIGINT)
        assert 130 == process.wait()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--workers 0", "0 is not in the range"),
        ("--workers two", "'two' is not a valid integer"),
        ("--resources gpu=many", '--resources: "gpu=many" is not an amount of a resource'),
    ],
)
def test_usage(options: str, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Wrong usage is one sentence and exit code 2."""
    assert 2 == main(["cluster", "up", *options.split()])
    assert message in capfd.readouterr().err


def test_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a home folder the certificate cannot be stored."""
    with pytest.raises(ConfigError, match="no home folder"):
        run(local_cluster(env={}))
