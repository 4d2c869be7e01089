"""Logins of forges are neither in the environment of a command nor readable in its view."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import cuggino
from cuggino.agents import SpawnOptions
from cuggino.events import CheckCommandOutput
from cuggino.processes import KeptProcesses
from cuggino.sandbox import LOGIN_VARIABLES, OTHER_REPOSITORY, probe, role_view, without_logins
from cuggino.stages import Shell, command_stage, keeping_shell, shell_lines, shell_with
from tests.sandbox.arena import needs_bubblewrap

_FILES = (
    *(".config/gh/hosts.yml", ".config/glab-cli/config.yml", ".config/git/credentials"),
    *(".git-credentials", ".netrc"),
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home folder with every login, as that of this process."""
    home = tmp_path / "home"
    for name in _FILES:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("secret\n")
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "GH_CONFIG_DIR", "GLAB_CONFIG_DIR", "GIT_CONFIG_COUNT"):
        monkeypatch.delenv(name, raising=False)
    for name in LOGIN_VARIABLES:
        monkeypatch.setenv(name, "secret")
    return home


@pytest.mark.parametrize("name", OTHER_REPOSITORY)
def test_another_repository(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents and commands have nothing of the git whose hook started this program."""
    monkeypatch.setenv(name, "/elsewhere")
    assert f"{name}=" not in _run(shell_lines, tmp_path)
    options = SpawnOptions(prompt="x", cwd=tmp_path)
    assert name not in options.environment({name: "/elsewhere"})


def test_variables_go_and_nothing_else() -> None:
    given = {"HOME": "/nowhere", "GH_TOKEN": "t", "GITLAB_TOKEN": "t", "OPENAI_API_KEY": "k"}
    left = without_logins(given)
    assert left["OPENAI_API_KEY"] == "k"
    assert LOGIN_VARIABLES.isdisjoint(left)
    assert given["GH_TOKEN"] == "t"


def test_it_is_the_same_when_done_twice() -> None:
    once = without_logins({"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "a.b"})
    assert once["GIT_CONFIG_COUNT"] == "2"
    more = {**once, "GIT_CONFIG_KEY_2": "c.d", "GIT_CONFIG_VALUE_2": "", "GIT_CONFIG_COUNT": "3"}
    assert without_logins(once) == once
    assert without_logins(more) == more


def test_git_asks_no_helper(home: Path) -> None:
    """Helpers in the user's settings are forgotten, those for single addresses too."""
    (home / ".gitconfig").write_text(
        '[credential]\nhelper = "!echo password=secret; :"\n'
        '[credential "https://example.com"]\nhelper = "!echo password=secret; :"\n'
    )
    asked = {"HOME": str(home), "PATH": "/usr/bin:/bin", "GIT_TERMINAL_PROMPT": "0"}

    def filled(env: dict[str, str]) -> str:
        done = subprocess.run(
            ["git", "credential", "fill"],
            input=b"protocol=https\nhost=example.com\nusername=u\n\n",
            env=env,
            capture_output=True,
            check=False,
        )
        return done.stdout.decode()

    assert "password=secret" in filled(asked)
    assert "secret" not in filled(without_logins(asked))


@pytest.mark.parametrize(
    ("shown", "left"),
    [
        ("~/.config/gh", "GH_TOKEN"),
        ("~/.config/gh/hosts.yml", "GITHUB_TOKEN"),
        ("~/.config/glab-cli", "GITLAB_TOKEN"),
        ("~/.netrc", "GIT_ASKPASS"),
    ],
)
def test_a_setting_leaves_one_login(home: Path, shown: str, left: str) -> None:
    given = {"HOME": str(home), "GH_TOKEN": "t", "GITHUB_TOKEN": "t", "GITLAB_TOKEN": "t"}
    given["GIT_ASKPASS"] = "t"
    kept = without_logins(given, [shown])
    assert left in kept
    assert len(LOGIN_VARIABLES & kept.keys()) < 4
    assert "GIT_CONFIG_COUNT" not in kept


def _run(shell: Shell, folder: Path) -> str:
    stage = command_stage(
        CheckCommandOutput,
        "env; cat ~/.config/gh/hosts.yml ~/.netrc ~/.git-credentials",
        shell=shell,
        cwd=folder,
        iteration=1,
        output_file=folder / "output",
    )
    cuggino.run(stage)
    return (folder / "output").read_text()


@pytest.mark.parametrize("shell", [shell_lines, shell_with({"MORE": "x"})])
def test_commands_without_a_view_get_no_variables(home: Path, tmp_path: Path, shell: Shell) -> None:
    said = _run(shell, tmp_path)
    assert "=secret" not in said
    assert "HOME=" in said


def test_services_of_the_setup_get_no_variables(home: Path, tmp_path: Path) -> None:
    assert "=secret" not in _run(keeping_shell(KeptProcesses(), {"MORE": "x"}), tmp_path)


def test_a_setting_leaves_a_login_to_commands(home: Path, tmp_path: Path) -> None:
    said = _run(shell_with({}, ["~/.config/gh"]), tmp_path)
    assert "GH_TOKEN=secret" in said
    assert "GITLAB_TOKEN" not in said


@pytest.mark.parametrize("role", ["implementing", "reviewing", "pm"])
def test_files_cannot_be_read_in_a_view(home: Path, tmp_path: Path, role: str) -> None:
    """With bubblewrap they are empty for every role, unless a setting shows them."""
    project = tmp_path / "project"
    project.mkdir()
    needs_bubblewrap(project)

    def read(*show: str) -> str:
        view = role_view(role, project=project, home=home, show=show)  # type: ignore[arg-type]
        enclosure = probe(project, home=home).enclose(view)
        assert enclosure is not None
        done = subprocess.run(
            enclosure.command(["sh", "-c", 'cd; cat "$@" 2>/dev/null', "sh", *_FILES]),
            capture_output=True,
            cwd=project,
            check=False,
        )
        return done.stdout.decode()

    assert read() == ""
    assert read("~/.netrc") == "secret\n"
