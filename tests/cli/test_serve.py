"""`cuggino serve`, and `--serve` of the loops."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import click
import httpx
import pytest

from cuggino.errors import BudgetExceeded, ConfigError, CugginoError
from cuggino.storage import served_page
from cuggino.web.names import run_name
from cuggino_cli.main import main
from cuggino_cli.options.serving import beside_page, serve_option
from cuggino_cli.screen import console
from tests.cli.cli import Cli
from tests.limits import LIMIT
from tests.ports import own_port
from tests.processes.subscribers import eventually
from tests.served_link import link_in


@contextmanager
def _serve(
    folder: Path, *args: str, state: Path | None = None
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the command, wait for its link, and kill it at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "cuggino_cli", *(args or ("serve",))],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **({"XDG_STATE_HOME": str(state)} if state else {})},
    )
    with process:
        try:
            assert process.stdout is not None
            read = []
            for line in process.stdout:
                read.append(line)
                if found := link_in(line):
                    break
            else:
                raise AssertionError("".join(read))
            yield process, found
        finally:
            with contextlib.suppress(OSError):
                process.kill()


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.real_agent)],
)
def test_signal_ends_the_server(tmp_path: Path, number: signal.Signals, code: int) -> None:
    """A signal ends the server although a browser has an open stream; the link is removed.

    Neither arguments nor environment nor a file of the project has had the token.
    """
    project, state = tmp_path / "project", tmp_path / "state"
    project.mkdir()
    with (
        _serve(project, state=state) as (process, url),
        httpx.Client(timeout=LIMIT, follow_redirects=True) as browser,
    ):
        clean = str(browser.get(url).raise_for_status().url)
        assert url == served_page(project, state=state / "cuggino")
        secrets = (url.partition("t=")[2], url.split("/")[3])
        assert len(secrets[0]) >= 43
        about = [Path(f"/proc/{process.pid}/{name}") for name in ("cmdline", "environ")]
        texts = [path.read_text() for path in (*about, *project.rglob("*")) if path.is_file()]
        assert not [text for text in texts for secret in secrets if secret in text]
        with browser.stream("GET", f"{clean}stream?on=o") as stream:
            assert 200 == stream.status_code
            process.send_signal(number)
            assert "event: end" in "".join(stream.iter_text())
        assert code == process.wait(LIMIT)
        assert served_page(project, state=state / "cuggino") is None
        assert [] == list(state.rglob("*.json"))


@pytest.mark.real_agent
def test_next_server_knows_no_old_link(tmp_path: Path) -> None:
    """A killed server's cookie and link are worthless to the next one on its port."""
    state = tmp_path / "state"
    with httpx.Client(timeout=LIMIT, follow_redirects=True) as browser:
        port = str(own_port())
        with _serve(tmp_path, "serve", "--port", port, state=state) as (process, old):
            assert 200 == browser.get(old).status_code
            process.kill()
            process.wait()
        assert served_page(tmp_path, state=state / "cuggino") is None
        with _serve(tmp_path, "serve", "--port", port, state=state) as (_, new):
            assert port == new.split(":")[2].partition("/")[0]
            assert 401 == browser.get(old).status_code
            assert 401 == browser.get(old.partition("?")[0]).status_code
            assert 200 == browser.get(new).status_code


def test_port_in_use(project: Path, cli: Cli) -> None:
    """A port in use is one sentence and exit code 2."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert 2 == main(["serve", "--port", str(port)])
    err = cli.printed().err
    assert f"port {port} of 127.0.0.1 cannot be used: Address already in use" in err
    assert "--port" in err
    assert "Traceback" not in err


def test_tls_files_that_are_none(project: Path, cli: Cli) -> None:
    """Files that hold no certificate are refused."""
    (project / "a.pem").write_text("no certificate")
    assert "the TLS files cannot be used" in cli.err("serve", "--cert", "a.pem", "--key", "a.pem")


def test_without_journals(project: Path, cli: Cli) -> None:
    """`--serve` shows journals, so it is refused where none are written."""
    (project / ".cuggino.json").write_text('{"journal": false}')
    assert '"journal" is false' in cli.err("watch", "--serve")


class Stays:
    """Ctrl-C at the second look whether a server has ended."""

    def __init__(self) -> None:
        self.looks = 0

    def wait(self, _seconds: float) -> bool:
        self.looks += 1
        if self.looks == 2:
            raise KeyboardInterrupt
        return False


@pytest.mark.parametrize(
    ("ending", "terminal", "interrupts", "looks"),
    [
        (0, True, False, 2),
        (13, True, False, 2),
        (130, True, True, 0),
        (130, True, False, 2),
        (13, False, False, 0),
        (BudgetExceeded("all is spent"), True, False, 2),
        (ConfigError("no such agent"), True, False, 0),
        (BudgetExceeded("all is spent"), False, False, 0),
    ],
    ids=str,
)
def test_page_after_the_end(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
    ending: int | CugginoError,
    terminal: bool,
    interrupts: bool,
    looks: int,
) -> None:
    """On a terminal the page stays until Ctrl-C, also when the run was stopped on the page."""
    stays = Stays()

    @contextmanager
    def served(_folders: object, *, err: bool) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(url="http://127.0.0.1:1/x", ended=stays)

    @click.command
    @serve_option
    def command(*, serve: bool) -> int:
        return beside_page(run, project, serve=serve)

    def run() -> int:
        if isinstance(ending, CugginoError):
            raise ending
        return ending

    monkeypatch.setattr("cuggino_cli.options.serving.served", served)
    monkeypatch.setattr("cuggino_cli.options.serving.is_giving_up", lambda: interrupts)
    monkeypatch.setattr(console, "on_terminal", lambda: terminal)
    is_raised = isinstance(ending, CugginoError) and not looks
    with pytest.raises(CugginoError) if is_raised else contextlib.nullcontext():
        code = ending.code if isinstance(ending, CugginoError) else ending
        assert code == command.main(["--serve"], standalone_mode=False)
    assert looks == stays.looks
    err = cli.printed().err
    assert bool(looks) is ("Its page stays until Ctrl-C: http://127.0.0.1:1/x" in err)
    assert (isinstance(ending, CugginoError) and bool(looks)) is ("all is spent" in err)


@pytest.mark.real_agent
def test_watch_serves_its_page(ready: Path) -> None:
    """Without a terminal, a watch and its page are one process, which ends as the watch does."""
    with (
        _serve(ready, "watch", "--serve", state=ready / "state") as (process, url),
        httpx.Client(timeout=LIMIT, follow_redirects=True) as browser,
    ):
        clean = str(browser.get(url).raise_for_status().url)
        journals = ready / ".cuggino" / "journal"
        assert eventually(lambda: len(list(journals.glob("*.jsonl"))) == 1, LIMIT)
        (journal,) = journals.glob("*.jsonl")
        assert eventually(lambda: run_name(journal.stem, "watch") in browser.get(clean).text, LIMIT)
        process.send_signal(signal.SIGINT)
        assert 130 == process.wait(LIMIT)
        with pytest.raises(httpx.ConnectError):
            browser.get(clean)
