"""Fixtures shared by the command tests: projects, terminals and loops."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.key_binding.defaults import load_key_bindings
from prompt_toolkit.output import DummyOutput, Output

from cuggino.config import Config, save_config
from cuggino.events import parse_event
from cuggino.loops import DeliverRunOptions
from cuggino.sandbox import boundary
from cuggino_cli.main import main
from cuggino_cli.screen import console
from tests.cli import loops
from tests.cli.cli import Cli
from tests.cli.deliveries import Loop, project_of
from tests.cli.falling import Lines
from tests.cli.keyboard import Setup
from tests.screen.pseudo_terminal import PseudoTerminal

SCENARIO = """\
[[planning]]
steps = [{ say = "hello" }]
"""


@pytest.fixture(scope="session", autouse=True)
def same_keys() -> Iterator[None]:
    """Make the default keys of a prompt once: they take half of its time."""
    with pytest.MonkeyPatch.context() as patch:
        made = cache(load_key_bindings)
        patch.setattr("prompt_toolkit.application.application.load_key_bindings", made)
        yield


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Confine no session, of which each would start four more processes."""
    monkeypatch.setattr(boundary, "_probed", lambda *_: boundary.Boundary(reason="none here"))


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """The command in this process."""
    return Cli(capsys)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder as the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def project(here: Path) -> Path:
    """An empty project as the working directory."""
    (here / ".specs").mkdir()
    return here


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Setup:
    """Run a command at a terminal, type the keys, and return the exit code."""

    def run(keys: str, *args: str, output: Output | None = None) -> int:
        monkeypatch.setattr(console, "on_terminal", lambda: True)
        with (
            create_pipe_input() as keyboard,
            create_app_session(input=keyboard, output=output or DummyOutput()),
        ):
            keyboard.send_text(keys)
            return main(list(args))

    return run


@pytest.fixture
def type_in(project: Path, typed: Setup) -> Setup:
    """Run `cuggino setup` at a terminal, type the keys, and return the exit code."""
    return lambda keys, *args, **more: typed(keys, "setup", *args, **more)


@pytest.fixture
def ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a specification and an agent, as the working directory."""
    folder = tmp_path / "project"
    (folder / ".specs").mkdir(parents=True)
    (folder / ".specs" / "login.md").write_text("# Login\n", encoding="utf-8")
    (folder / "scenario.toml").write_text(SCENARIO, encoding="utf-8")
    save_config(folder, Config(agent="scripted:scenario.toml"))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def no_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep git from finding a repository, even if the temporary folder is in one."""
    monkeypatch.setattr("cuggino.doctor.repository.repository_state", lambda _folder: None)


@pytest.fixture
def no_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave git without an identity and unable to guess one."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n", encoding="utf-8")
    for name in [name for name in os.environ if name.startswith(("GIT_", "XDG_CONFIG"))]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("EMAIL", raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    """A test double for the deliverables loop, in every project."""
    monkeypatch.delenv("AUTONOE_NO_SANDBOX", raising=False)
    drawn = Loop()
    drawn.put(monkeypatch)
    return drawn


@pytest.fixture
def delivered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A deliverables project as the working directory."""
    folder = project_of(tmp_path / "project", "")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def no_session_pause() -> Iterator[None]:
    """Let sessions of `cuggino deliver` follow each other at once."""
    field = DeliverRunOptions.model_fields["session_pause"]
    before = field.default
    try:
        field.default = 0.0
        DeliverRunOptions.model_rebuild(force=True)
        yield
    finally:
        field.default = before
        DeliverRunOptions.model_rebuild(force=True)


@pytest.fixture
def looping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plan/build project as the working directory, with the home folder beside it."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("AUTONOE_NO_SANDBOX", raising=False)
    (tmp_path / "project").mkdir()
    folder = loops.project_of(tmp_path / "project")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def drawn_loop(looping: Path, monkeypatch: pytest.MonkeyPatch) -> loops.DrawnLoop:
    """A test double for the plan/build loop, in every project."""
    drawn = loops.DrawnLoop()
    drawn.put(monkeypatch)
    return drawn


@pytest.fixture
def said(capfd: pytest.CaptureFixture[str]) -> Lines:
    """Return the events that `--json` printed."""
    return lambda: [parse_event(line) for line in capfd.readouterr().out.splitlines()]


@pytest.fixture
def terminal() -> Iterator[PseudoTerminal]:
    """A wide terminal."""
    with closing(PseudoTerminal(200)) as made:
        yield made


@pytest.fixture
def narrow_terminal() -> Iterator[PseudoTerminal]:
    """A terminal of 40 columns."""
    with closing(PseudoTerminal(40)) as made:
        yield made
