"""The check of a machine without the project."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from cuggino.config import Config
from cuggino.doctor import CheckResult, check_machine, machine
from tests.git_project import isolate_git

READ_ONLY = """#!/bin/sh
for last; do :; done
case "$last" in
git-upload-pack*) exec sh -c "$last" ;;
*) echo "ERROR: this key may only read" >&2; exit 1 ;;
esac
"""


def git(folder: Path, *words: str) -> None:
    """Run git in the folder."""
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


class Usage(NamedTuple):
    """The result of `shutil.disk_usage`."""

    free: int


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No other agents are looked for."""
    isolate_git(monkeypatch, tmp_path / "home")
    monkeypatch.setattr(machine, "inspect_agents", lambda folder: [])


def results(folder: Path, remote: str | None = None, *agents: str) -> list[CheckResult]:
    """Return the results without a sandbox."""
    named = dict.fromkeys(agents)
    config = Config(sandbox="off")
    return list(check_machine(named, config=config, folder=folder, remote=remote))


def about(found: list[CheckResult], subject: str) -> CheckResult:
    """Return the only result about the subject."""
    (result,) = [one for one in found if one.what.startswith(subject)]
    return result


def test_remote_that_only_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key without the right to push is found without pushing anything."""
    git(tmp_path, "init", "-q", "--bare", "shared.git")
    script = tmp_path / "ssh"
    script.write_text(READ_ONLY)
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(script))
    found = about(results(tmp_path, f"ssh://me:secret@host{tmp_path}/shared.git"), "remote: ")
    assert "problem" == found.status
    assert f"git may not push to ssh://host{tmp_path}/shared.git: " in found.what
    assert "this key may only read" in found.what
    monkeypatch.delenv("GIT_SSH_COMMAND")
    assert "ok" == about(results(tmp_path, f"{tmp_path}/shared.git"), "remote: ").status


def test_git_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without git nothing can be cloned."""
    monkeypatch.setattr(machine, "git_failure", lambda _folder: "git is not installed")
    assert CheckResult("problem", "git: git is not installed", "install git") in results(
        tmp_path, "x"
    )


def test_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Less than 2 GB is a problem, and so is a folder that is gone."""
    assert "problem" == about(results(tmp_path / "gone"), "disk: ").status
    assert os.fspath(tmp_path) in about(results(tmp_path), "disk: ").what
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1_900_000_000))
    full = about(results(tmp_path), "disk: ")
    assert ("problem", f"disk: 1.9 GB free in {tmp_path}") == (full.status, full.what)


def test_code_of_the_project_is_not_started(tmp_path: Path) -> None:
    """Scenarios and import paths are not there to be checked."""
    found = results(tmp_path, None, "scripted:a.toml", "shutil:rmtree")
    assert ["note", "note", "note", "ok"] == [one.status for one in found]
    assert all("is not checked" in one.what for one in found[:2])
