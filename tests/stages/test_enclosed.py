"""Setup and check commands, and commits, run what agents have written: in the same view."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import cuggino
from cuggino.events import CheckCommandOutput
from cuggino.sandbox import Enclosure
from cuggino.stages import GitRepository, command_stage, commands_enclosure, enclosed_shell
from tests.git_project import GitProject
from tests.sandbox.arena import needs_bubblewrap

Made = Callable[[Sequence[Path]], Enclosure | None]


@pytest.fixture
def project(project: GitProject) -> GitProject:
    """A repository with a specification."""
    project.write(".specs/a.md", "spec\n")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "Start")
    needs_bubblewrap(project.root)
    return project


def _enclose(project: GitProject) -> Made:
    return lambda reads: commands_enclosure(project.root, reads=reads)


def test_a_check_cannot_write_the_specifications(project: GitProject, tmp_path: Path) -> None:
    """A command writes the project, but neither the specifications nor anything outside."""
    outside = tmp_path / "outside"
    command = f"echo bad > .specs/a.md; echo bad > {outside}; echo made > report.txt; exit 3"
    stage = command_stage(
        CheckCommandOutput,
        command,
        shell=enclosed_shell(_enclose(project)),
        cwd=project.root,
        iteration=1,
        output_file=tmp_path / "output",
    )
    event = cuggino.run(stage)
    assert event is not None
    assert event.exit_code == 3
    assert "spec\n" == (project.root / ".specs" / "a.md").read_text()
    assert not outside.exists()
    assert "made\n" == (project.root / "report.txt").read_text()


@pytest.mark.parametrize("staged", [True, False])
def test_a_hook_cannot_write_the_specifications(project: GitProject, staged: bool) -> None:
    """A hook in the work tree runs at the commit, in the implementer's view.

    So it does when another file stays staged, and the files of the commit are listed in a file.
    """
    hooks = project.root / ".husky"
    hooks.mkdir()
    hook = hooks / "pre-commit"
    hook.write_text("#!/bin/sh\necho evil > .specs/a.md\necho ran > ran.txt\nexit 0\n")
    hook.chmod(0o755)
    project.git("config", "core.hooksPath", ".husky")
    (project.root / "a.txt").write_text("a\n")
    (project.root / "kept.txt").write_text("kept\n")
    if staged:
        project.git("add", "kept.txt")
    repository = GitRepository(project.root, exclude=(Path("kept.txt"),), enclose=_enclose(project))
    cuggino.run(repository.commit("Add a"))
    assert "ran\n" == (project.root / "ran.txt").read_text()
    assert "spec\n" == (project.root / ".specs" / "a.md").read_text()
    assert {"a.txt", ".husky/pre-commit"} == set(
        project.git("show", "--format=", "--name-only", "HEAD").split()
    )


def _hook(project: GitProject, text: str) -> None:
    hook = project.root / ".husky/commit-msg"
    hook.parent.mkdir()
    hook.write_text(f"#!/bin/sh\n{text}\nexit 0\n")
    hook.chmod(0o755)
    project.git("config", "core.hooksPath", ".husky")


def test_a_commit_that_cannot_be_signed(project: GitProject, tmp_path: Path) -> None:
    """A commit is signed outside, where keys and their agents can be reached; else it fails."""
    sign, log = tmp_path / "sign", tmp_path / "signed"
    sign.write_text(f"#!/bin/sh\necho signed > {log}\nexit 1\n")
    sign.chmod(0o755)
    project.git("config", "gpg.program", str(sign))
    project.git("config", "commit.gpgSign", "yes")
    before = project.git("rev-parse", "HEAD")
    (project.root / "a.txt").write_text("a\n")
    repository = GitRepository(project.root, enclose=_enclose(project))
    with pytest.raises(cuggino.CugginoError, match="failed to sign"):
        cuggino.run(repository.commit("Add a"))
    assert "signed\n" == log.read_text()
    assert before == project.git("rev-parse", "HEAD")
    assert "A  a.txt" in project.git("status", "--porcelain")


@pytest.mark.parametrize("first", [True, False])
def test_a_signed_commit(project: GitProject, tmp_path: Path, first: bool) -> None:
    """Its hooks run in the view, and the commit that they have agreed to is signed."""
    key, outside = tmp_path / "key", tmp_path / "outside"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    if first:
        project.git("checkout", "-q", "--orphan", "new")
    _hook(project, f'echo evil > .specs/a.md; touch {outside}; echo "Checked: yes" >> "$1"')
    for name, value in {
        "gpg.format": "ssh",
        "user.signingKey": str(key),
        "commit.gpgSign": "true",
    }.items():
        project.git("config", name, value)
    (project.root / "a.txt").write_text("a\n")
    repository = GitRepository(project.root, enclose=_enclose(project))
    commit = cuggino.run(repository.commit("Add a"))
    assert commit is not None
    assert project.git("rev-parse", "--short", "HEAD").strip() == commit.hash.strip()
    raw = project.git("cat-file", "commit", "HEAD")
    assert "BEGIN SSH SIGNATURE" in raw
    assert raw.rstrip().endswith("Add a\nChecked: yes")
    assert first == ("parent " not in raw)
    assert "spec\n" == (project.root / ".specs" / "a.md").read_text()
    assert not outside.exists()
    assert "" == project.git("status", "--porcelain").strip()


def test_without_an_engine_there_is_no_enclosure(
    project: GitProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing can hold the implementer, commands run as without a sandbox."""
    monkeypatch.setenv("PATH", "/none")
    assert commands_enclosure(project.root) is None
