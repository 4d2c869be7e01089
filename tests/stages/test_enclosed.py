"""Setup and check commands, and commits, run what agents have written: in the same view."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import cuggino
from cuggino.events import CheckCommandOutput
from cuggino.sandbox import Views, holds_commands
from cuggino.stages import GitRepository, command_stage, enclosed_shell
from tests.git_project import GitProject
from tests.sandbox.arena import needs_bubblewrap


@pytest.fixture
def project(project: GitProject) -> GitProject:
    """A repository with a specification."""
    project.write(".specs/a.md", "spec\n")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "Start")
    needs_bubblewrap(project.root)
    return project


def test_a_check_cannot_write_the_specifications(project: GitProject, tmp_path: Path) -> None:
    """A command writes the project, but neither the specifications nor anything outside."""
    outside = tmp_path / "outside"
    command = f"echo bad > .specs/a.md; echo bad > {outside}; echo made > report.txt; exit 3"
    stage = command_stage(
        CheckCommandOutput,
        command,
        shell=enclosed_shell(Views()),
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
    repository = GitRepository(project.root, exclude=(Path("kept.txt"),), views=Views())
    cuggino.run(repository.commit("Add a"))
    assert "ran\n" == (project.root / "ran.txt").read_text()
    assert "spec\n" == (project.root / ".specs" / "a.md").read_text()
    assert {"a.txt", ".husky/pre-commit"} == set(
        project.git("show", "--format=", "--name-only", "HEAD").split()
    )


def _hook(project: GitProject, text: str, name: str = "commit-msg") -> None:
    hook = project.root / ".husky" / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{text}\n")
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
    repository = GitRepository(project.root, views=Views())
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
    _hook(project, f'echo evil > .specs/a.md; touch {outside}; echo "Checked: yes" >> "$1"; true')
    for name, value in {
        "gpg.format": "ssh",
        "user.signingKey": str(key),
        "commit.gpgSign": "true",
    }.items():
        project.git("config", name, value)
    (project.root / "a.txt").write_text("a\n")
    repository = GitRepository(project.root, views=Views())
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


_TELLS = 'echo "$PWD $*" >> told.txt; cat >> told.txt'


def _remote(project: GitProject, folder: Path) -> Path:
    project.git("init", "--quiet", "--bare", str(folder))
    project.git("remote", "add", "origin", str(folder))
    return folder


def test_a_push_calls_its_hook_as_git_does(project: GitProject, tmp_path: Path) -> None:
    """The folder, the arguments and the references are those of a push without a view."""
    _hook(project, _TELLS, name="pre-push")
    told = []
    for views in (None, Views()):
        remote = _remote(project, tmp_path / "remote.git")
        repository = GitRepository(project.root, views=views)
        for number in range(3):  # a new branch, a second commit, and nothing new
            if number < 2:
                project.git("commit", "-q", "--allow-empty", "-m", f"{number}")
            cuggino.run(repository.push("origin", "work/main"))
        head = project.git("rev-parse", "HEAD")
        assert head == project.git("rev-parse", "work/main", cwd=remote)
        told.append((project.root / "told.txt").read_text())
        (project.root / "told.txt").unlink()
        project.git("reset", "-q", "--hard", "HEAD~2")
        project.git("remote", "remove", "origin")
        shutil.rmtree(remote)
    plain, enclosed = (_abbreviated(each) for each in told)
    assert f"{project.root} origin {tmp_path}/remote.git" == plain[0]
    assert 5 == len(plain)
    assert plain == enclosed


def _abbreviated(told: str) -> list[str]:
    """Return the lines with names instead of hashes, in the order in which they occur."""
    names: dict[str, str] = {"0" * 40: "none"}

    def named(found: re.Match[str]) -> str:
        return names.setdefault(found[0], f"commit {len(names)}")

    return re.sub("[0-9a-f]{40}", named, told).splitlines()


def test_the_hooks_of_a_push_have_the_view(project: GitProject, tmp_path: Path) -> None:
    """A hook in the work tree cannot write outside; a refusal is the failure of the push."""
    outside = tmp_path / "outside"
    remote = _remote(project, tmp_path / "remote.git")
    _hook(project, f"touch {outside} ran; echo evil > .specs/a.md; test -e fine", name="pre-push")
    _hook(project, f"touch {outside}", name="reference-transaction")
    repository = GitRepository(project.root, views=Views())
    with pytest.raises(cuggino.CugginoError) as refused:
        cuggino.run(repository.push("origin", "main"))
    assert refused.value.message.startswith("git push exited with code 1: ")
    assert refused.value.message.endswith("cannot create .specs/a.md: Read-only file system")
    assert (project.root / "ran").exists()
    assert "" == project.git("for-each-ref", cwd=remote)
    (project.root / "fine").touch()
    cuggino.run(repository.push("origin", "main"))
    assert project.git("rev-parse", "HEAD") == project.git("rev-parse", "main", cwd=remote)
    assert "spec\n" == (project.root / ".specs" / "a.md").read_text()
    assert not outside.exists()


def test_without_an_engine_there_is_no_enclosure(
    project: GitProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If nothing can confine the implementer, commands run unsandboxed."""
    monkeypatch.setenv("PATH", "/none")
    assert not holds_commands(project.root)
    assert Views().of_commands(project.root) is None
    assert Views().of_git(project.root) is None
