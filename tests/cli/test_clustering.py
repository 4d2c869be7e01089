"""`cuggino watch`, and `run` with several hands or attempts, on a cluster: options, refusals."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from cuggino.config import Config, parse_config
from cuggino_cli.options.clustering import chosen_cluster
from tests.cli.cli import Cli


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--cluster tcp://10.0.0.5:8786", "is a remote address without TLS"),
        ("--cluster tls://10.0.0.5:8786 --insecure", "tls://10.0.0.5:8786 needs TLS files"),
        ("--cluster local", "no local cluster runs"),
        ("--cluster 10.0.0.5:port", '"10.0.0.5:port" is no address of a cluster'),
        ("--detach", "--detach is for a cluster"),
        ("--insecure", "--insecure is for a cluster"),
    ],
)
@pytest.mark.parametrize("command", ["watch", "cluster check"])
def test_refused(
    options: str,
    message: str,
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
) -> None:
    """One sentence, what to do, and exit code 2, before anything is started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    if command != "watch":
        options = options.replace("--cluster ", "")
        if options == "--detach":
            message = "No such option"
    error = cli.err(*command.split(), *options.split())
    assert message in error
    assert "Traceback" not in error
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--hands 2 --cluster tcp://10.0.0.5:8786", "is a remote address without TLS"),
        ("--hands 2 --detach", "--detach is for a cluster"),
        ("--cluster tcp://127.0.0.1:1", "a cluster works for several hands or attempts, and this"),
        ("--attempts 2 --cluster tcp://10.0.0.5:8786", "is a remote address without TLS"),
        ("--detach", "a cluster works for several hands or attempts, and this"),
        ("--resume --cluster local", "there is no unfinished run"),
    ],
)
def test_a_run_that_is_refused(
    options: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
) -> None:
    """One sentence, what to do, and exit code 2, before anything is started."""
    monkeypatch.chdir(tmp_path)
    settings = {"commit": True, "checkCommand": "true"}
    (tmp_path / ".cuggino.json").write_text(json.dumps(settings))
    text = [] if "--resume" in options else ["x"]
    error = cli.err("run", *text, *options.split())
    assert message in error
    assert "Traceback" not in error


def test_one_hand_passes_a_configured_cluster_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """It is for the watch and for several hands or attempts, which look for it."""
    monkeypatch.chdir(tmp_path)
    settings = {"cluster": "10.0.0.5", "commit": True, "checkCommand": "true"}
    (tmp_path / ".cuggino.json").write_text(json.dumps(settings))
    assert "10.0.0.5" not in cli.err("run", "x")
    for more in ("--hands", "--attempts"):
        assert "tcp://10.0.0.5:8786 is a remote address" in cli.err("run", "x", more, "2")


def test_approvals_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """Nobody can be asked on a cluster: one sentence and exit code 2, before it is looked for."""
    monkeypatch.chdir(tmp_path)
    settings = {"agent": "scripted:a.toml", "approve": ["plan"], "checkCommand": "true"}
    (tmp_path / ".cuggino.json").write_text(json.dumps(settings))
    (tmp_path / "a.toml").write_text("repeat = true\n")
    subprocess.run(["git", "init", "-q"], check=True)
    assert [
        "cuggino: a watch on a cluster cannot wait for approvals",
        '  remove plan from "approve", or work here: --cluster none',
    ] == cli.err("watch", "--cluster", "tcp://127.0.0.1:1").splitlines()[-2:]


def test_check_needs_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """Without an address there must be a configured one."""
    monkeypatch.chdir(tmp_path)
    assert "no cluster is configured" in cli.err("cluster", "check")


def test_configured_cluster_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """The configured address is used, and --cluster none works here."""
    monkeypatch.chdir(tmp_path)
    config = {"cluster": "10.0.0.5", "commit": True, "checkCommand": "true"}
    (tmp_path / ".cuggino.json").write_text(json.dumps(config))
    assert "tcp://10.0.0.5:8786 is a remote address" in cli.err("watch")
    assert "10.0.0.5" not in cli.err("watch", "--cluster", "none")


def test_options_override_the_configuration(tmp_path: Path) -> None:
    """Settings without an option stay as configured."""
    config = parse_config({"cluster": {"address": "127.0.0.1:1", "detach": True}})
    found = chosen_cluster(config, folder=tmp_path, cluster="127.0.0.1:2")
    assert found is not None
    assert ("tcp://127.0.0.1:2", True) == (found.address, found.detach)
    assert chosen_cluster(config, folder=tmp_path, cluster="none", detach=True) is None
    assert chosen_cluster(Config(), folder=tmp_path, cluster=None) is None
