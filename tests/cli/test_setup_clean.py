"""The gate that `cuggino setup` recommends: a trial of the check on a clean checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.config import Config, load_config, save_config
from cuggino.doctor import try_clean_checkout
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.keyboard import ENTER, Setup, answer
from tests.git_project import GitProject, isolate_git


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one commit, whose check reads an ignored file, as the working directory."""
    isolate_git(monkeypatch, tmp_path / "home")
    made = GitProject(tmp_path / "project")
    made.write(".gitignore", ".env\n__pycache__/\n*.log\n/node_modules/\n")
    made.write("check.sh", "test -f app.py\n")
    made.write("env.sh", "test -f .env\n")
    made.write("app.py")
    made.write("sub/check.sh", "test -f part.py\n")
    made.write("sub/part.py")
    made.git("add", "-A")
    made.git("commit", "-qm", "start")
    for name in (".env", "a.log", "__pycache__/a.pyc", "sub/.env", "node_modules/a/index.js"):
        made.write(name)
    monkeypatch.chdir(made.root)
    return made.root


def _config(check: str, setup: str | None = None) -> Config:
    return Config(check_command=check, setup_command=setup, sandbox="off")


@pytest.mark.parametrize(
    ("folder", "check", "setup"),
    [
        ("", "sh check.sh", None),
        ("sub", "sh check.sh", None),
        ("", "sh env.sh", "echo a=b >.env"),
        ("", "test -z \"$(git status --porcelain)\"", None),
    ],
)  # fmt: skip
def test_passes(project: Path, folder: str, check: str, setup: str | None) -> None:
    """A check that needs only what is committed, or what the setup command makes, passes."""
    trial = try_clean_checkout(project / folder, _config(check, setup), limit=60)
    assert (True, "", ()) == (trial.passed, trial.reason, trial.missing)


def test_names_what_is_missing(project: Path) -> None:
    """The ignored files are named, but for caches and logs."""
    trial = try_clean_checkout(project, _config("sh env.sh"), limit=60)
    assert not trial.passed
    assert trial.reason == "the check command exits with 1"
    assert trial.missing == (".env", "node_modules/", "sub/.env")


@pytest.mark.parametrize(
    ("check", "setup", "reason"),
    [
        ("true", "exit 7", "the setup command exits with 7"),
        ("sleep 600", None, "it takes more than 0.5 s"),
    ],
)
def test_fails(project: Path, check: str, setup: str | None, reason: str) -> None:
    trial = try_clean_checkout(project, _config(check, setup), limit=0.5 if not setup else 60)
    assert (False, reason) == (trial.passed, trial.reason)


def test_needs_a_commit(project: Path, tmp_path: Path) -> None:
    """Without a commit there is nothing to check out, nor of a folder that is not in it."""
    (tmp_path / "plain").mkdir()
    (project / "new").mkdir()
    for folder, reason in (
        (tmp_path / "plain", "there is no commit"),
        (project / "new", "the folder is not committed"),
    ):
        assert reason == try_clean_checkout(folder, _config("true"), limit=60).reason


def test_changes_nothing(project: Path) -> None:
    before = sorted(path.relative_to(project) for path in project.rglob("*"))
    assert not try_clean_checkout(project, _config("touch new; exit 1"), limit=60).passed
    assert before == sorted(path.relative_to(project) for path in project.rglob("*"))


@pytest.mark.parametrize(
    ("check", "gate", "told"),
    [
        ("sh check.sh", "clean", "It passes there, in "),
        ("sh env.sh", "block", "the check command exits with 1; the checkout lacks .env, node_m"),
    ],
)
def test_yes_takes_the_recommendation(
    project: Path, check: str, gate: str, told: str, cli: Cli
) -> None:
    assert 0 == main(["setup", "--yes", "--check-command", check])
    assert gate == load_config(project).gate
    printed = cli.printed()
    assert told in printed.err
    assert f"  gate:           {gate}\n" in printed.out


@pytest.mark.parametrize("gate", ["context", "block", "clean"])
def test_a_given_gate_is_not_tried(project: Path, gate: str, cli: Cli) -> None:
    """Neither is a gate of the file, nor one for a check command of the file."""
    assert 0 == main(["setup", "--yes", "--check-command", "sh env.sh", "--gate", gate])
    assert gate == load_config(project).gate
    assert 0 == main(["setup", "--yes", "--max-iterations", "3"])
    assert gate == load_config(project).gate
    if gate != "context":
        assert 0 == main(["setup", "--yes", "--check-command", "sh other.sh"])
        assert gate == load_config(project).gate
    assert "Trying" not in cli.printed().err


@pytest.mark.parametrize(
    ("check", "keys", "gate"),
    [
        ("sh check.sh", ENTER * 2, "clean"),
        ("sh check.sh", ENTER + answer("n"), "block"),
        ("sh env.sh", ENTER, "block"),
        ("sh check.sh", answer("n"), "context"),
    ],
)
def test_asks_with_the_recommendation(
    project: Path, type_in: Setup, check: str, keys: str, gate: str
) -> None:
    """The second question about the gate comes only if the check passes on the checkout."""
    assert 0 == type_in(ENTER * 3 + answer(check) + keys + ENTER * 2 + answer("n"))
    assert gate == load_config(project).gate


def test_without_a_check_the_gate_is_off(project: Path) -> None:
    save_config(project, Config(check_command="sh check.sh", gate="clean"))
    assert 0 == main(["setup", "--yes", "--check-command", ""])
    assert Config() == load_config(project)


def test_a_check_that_cannot_fail_is_reported(project: Path, cli: Cli) -> None:
    assert 0 == main(["setup", "--yes", "--check-command", "sh check.sh || true"])
    told = "The check command cannot fail: `|| true` hides the failure of `sh check.sh`.\n"
    assert told == cli.printed().err  # and is not tried
    assert "block" == load_config(project).gate


@pytest.mark.parametrize(
    ("ignored", "key", "expected"),
    [
        ("a", "y", "a\n/.cuggino/\n"),
        ("a\n", "y", "a\n/.cuggino/\n"),
        (None, "y", "/.cuggino/\n"),
        ("a\n", "n", "a\n"),
        (".cuggino\n", "", ".cuggino\n"),
    ],
)
def test_gitignore(
    project: Path, type_in: Setup, ignored: str | None, key: str, expected: str
) -> None:
    """The folder of runs is ignored by git if the user agrees; asked only where it is not yet."""
    path = project / ".gitignore"
    path.unlink()
    if ignored is not None:
        path.write_text(ignored, encoding="utf-8")
    assert 0 == type_in(ENTER * 6 + (answer(key) if key else ""))
    assert expected == path.read_text(encoding="utf-8")
    assert 0 == main(["setup", "--yes"])
    assert expected == path.read_text(encoding="utf-8")
