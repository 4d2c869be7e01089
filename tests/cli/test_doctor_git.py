"""`cuggino doctor` on git."""

from __future__ import annotations

from pathlib import Path

import git
import pytest

from cuggino.doctor.result import CheckResult
from tests.cli.looking import look

pytestmark = pytest.mark.usefixtures("no_identity")


@pytest.fixture
def no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty the PATH."""
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))


def make_repository(folder: Path, *, commit: bool = True) -> git.Repo:
    """Create a repository with one commit; return it closed, with no git process left."""
    with git.Repo.init(folder, initial_branch="main") as repo:
        if commit:
            actor = git.Actor("A", "a@example.org")
            repo.index.add(["scenario.toml"])
            repo.index.commit("first", author=actor, committer=actor)
    return repo


def statuses(findings: list[CheckResult]) -> list[tuple[str, str]]:
    """Return each finding's status and the start of its text."""
    return [(finding.status, finding.what) for finding in findings]


@pytest.mark.usefixtures("no_repository")
def test_repository_missing(ready: Path) -> None:
    """A missing repository is a problem when commits are enabled, else a note."""
    [wanted] = look("git", ready, commit=True)
    assert ("problem", "git: no repository here") == (wanted.status, wanted.what)
    [unwanted] = look("git", ready, commit=False)
    assert ("note", "git: no repository here (commit is off)") == (unwanted.status, unwanted.what)
    assert "`cuggino undo` restores nothing" in str(unwanted.hint)


@pytest.mark.usefixtures("no_git")
def test_git_missing(ready: Path) -> None:
    """A missing git is a problem when commits are enabled, else a note."""
    [wanted] = look("git", ready, commit=True)
    assert ("problem", "git: not installed") == (wanted.status, wanted.what)
    [unwanted] = look("git", ready, commit=False)
    assert ("note", "git: not installed (commit is off)") == (unwanted.status, unwanted.what)


def test_repository_clean(ready: Path) -> None:
    """A repository is reported with its branch."""
    make_repository(ready)
    expected = [("ok", f"git: repository {ready}, branch main")]
    assert expected == statuses(look("git", ready, commit=False))


def test_repository_without_commit(ready: Path) -> None:
    """A missing first commit is a note."""
    make_repository(ready, commit=False)
    found = look("git", ready, commit=False)
    assert ("note", "git: no commit yet") == statuses(found)[1]


def test_repository_detached(ready: Path) -> None:
    """A detached HEAD is reported."""
    repo = make_repository(ready)
    repo.git.checkout("--detach")
    expected = [("ok", f"git: repository {ready}, no branch (detached HEAD)")]
    assert expected == statuses(look("git", ready, commit=False))


def test_commits_on_no_branch(ready: Path) -> None:
    """With commits enabled a detached HEAD is noted, with advice; a branch is not."""
    repo = make_repository(ready)
    assert "note" not in [status for status, _ in statuses(look("git", ready, commit=True))]
    repo.git.checkout("--detach")
    note = look("git", ready, commit=True)[1]
    assert ("note", "git: a run would commit on no branch") == (note.status, note.what)
    assert "git switch -c" in (note.hint or "")


@pytest.mark.parametrize("commit", [False, True])
def test_uncommitted_changes(commit: bool, ready: Path) -> None:
    """Uncommitted changes are noted, with what a committing run does with them."""
    make_repository(ready)
    (ready / "scenario.toml").write_text("changed", encoding="utf-8")
    found = look("git", ready, commit=commit)[1]
    assert ("note", "git: uncommitted changes") == (found.status, found.what)
    assert commit == (found.hint is not None)


def test_git_refuses(ready: Path) -> None:
    """The error from git is reported for a repository that it rejects."""
    make_repository(ready)
    (ready / ".git" / "index").write_bytes(b"no index")
    [found] = look("git", ready, commit=True)
    assert "problem" == found.status
    assert "index" in found.what
    assert "see what `git status` says here" == found.hint


def test_committer_by_configuration(ready: Path) -> None:
    """A configured committer is reported."""
    with make_repository(ready).config_writer() as writer:
        writer.set_value("user", "name", "Ada L").set_value("user", "email", "ada@example.org")
    expected = [CheckResult("ok", "git: commits as Ada L <ada@example.org>")]
    assert expected == look("git", ready, commit=True)[1:]


def test_committer_by_environment(ready: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A committer from the environment is accepted."""
    make_repository(ready)
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "ada@example.org")
    expected = CheckResult("ok", "git: commits as Ada <ada@example.org>")
    assert expected in look("git", ready, commit=True)


def test_committer_guessed(ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A committer that git can only guess is a note."""
    make_repository(ready)
    (tmp_path / "home" / ".gitconfig").write_text("[user]\n\tname = Ada\n", encoding="utf-8")
    monkeypatch.setenv("EMAIL", "ada@example.org")
    found = look("git", ready, commit=True)[1]
    expected = ("note", "git: commits as Ada <ada@example.org>, which git guessed")
    assert expected == (found.status, found.what)


@pytest.mark.parametrize("commit", [False, True])
def test_committer_missing(commit: bool, ready: Path) -> None:
    """A missing committer is a problem when commits are enabled, and otherwise ignored."""
    make_repository(ready)
    rest = statuses(look("git", ready, commit=commit)[1:])
    expected = [("problem", "git: no user.name and user.email to commit with")]
    assert (expected if commit else []) == rest
