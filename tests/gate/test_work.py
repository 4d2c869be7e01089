"""The work as git can hold it: start, copies and commit, in real repositories."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cuggino import run
from cuggino.errors import ProcessFailed
from cuggino.gate import GitWork, Standing, State
from cuggino.git import current_branch
from cuggino.sandbox import Views
from tests.git_project import GitProject, isolate_git
from tests.sandbox.arena import needs_bubblewrap

EXCLUDE = (".cuggino", ".specs")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitProject:
    isolate_git(monkeypatch, tmp_path / "home")
    return GitProject(tmp_path / "project")


@pytest.fixture
def work(project: GitProject) -> GitWork:
    """A repository with a test, a setting that git ignores, and a branch."""
    project.write(".gitignore", ".cuggino/\n.env\n*.log\nout/\n")
    project.write("tests/test_a.py", "hard\n")
    project.write("app.py", "old\n")
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message", "start")
    project.write(".env", "MODE=strict\n")
    return of(project)


def of(project: GitProject, *, views: Views | None = None, hide: tuple[str, ...] = ()) -> GitWork:
    return GitWork.of(project.root, project.root / ".cuggino/snapshots", views=views, hide=hide)


def state(work: GitWork) -> State:
    found = run(work.state())
    assert found is not None
    return found


def changed(work: GitWork, start: State) -> list[str]:
    found = run(work.changed(start))
    assert found is not None
    return sorted([*found["changed"], *found["added"]])


def test_changed(work: GitWork, project: GitProject) -> None:
    """Files that differ, committed or not, and ignored files outside of ignored folders."""
    start = state(work)
    assert [] == changed(work, start)
    project.write("tests/test_a.py", "easy\n")
    project.git("commit", "--quiet", "--all", "--message", "easier")
    project.write(".env", "MODE=loose\n")
    project.write("a.log", "new\n")
    project.write("out/b", "built\n")
    (project.root / "app.py").unlink()
    assert [".env", "a.log", "app.py", "tests/test_a.py"] == changed(work, start)


def test_moved(work: GitWork, project: GitProject) -> None:
    """A file that was moved as it was has not changed, but a test may not be found any more."""
    start = state(work)
    (project.root / "tests/test_a.py").rename(project.root / "tests/a_check.py")
    (project.root / "app.py").rename(project.root / "main.py")
    project.write("b.log", "new\n")
    found = run(work.changed(start))
    assert found is not None
    assert ["tests/test_a.py"] == found["changed"]
    assert ["b.log", "main.py", "tests/a_check.py"] == found["added"]
    assert (["b.log"], True) == (found["ignored"], found["had_tests"])


def test_a_commit_as_the_start(work: GitWork, project: GitProject) -> None:
    """What was changed since the commit counts, also before the run."""
    head = project.git("rev-parse", "HEAD").strip()
    project.write("app.py", "new\n")
    found = run(work.state(head))
    assert found is not None
    assert ["app.py"] == changed(work, found)


def test_what_is_put_back_is_new(work: GitWork, project: GitProject) -> None:
    """Programs that build by time do not take what they built from the work for up to date."""
    start = state(work)
    project.write("tests/test_a.py", "easy\n")
    project.write("built", "easy\n")
    os.utime(project.root / "built", (1_000_000_000, 1_000_000_000))
    shell = run(work.copy(start, ["tests/test_a.py"], env={}))
    assert shell is not None
    run(shell("test tests/test_a.py -nt built", project.root))


@pytest.mark.parametrize("confined", [False, True])
def test_copy(work: GitWork, project: GitProject, confined: bool) -> None:
    """Files of the start are put back in the copy, added ones are gone, and nothing stays."""
    if confined:
        needs_bubblewrap(project.root)
        work = of(project, views=Views())
    start = state(work)
    project.write("tests/test_a.py", "easy\n")
    project.write("tests/conftest.py", "ignore\n")
    project.write(".env", "MODE=loose\n")
    (project.root / "tests/test_b.py").symlink_to("test_a.py")
    project.write("app.py", "new\n")
    paths = ["tests/test_a.py", "tests/conftest.py", "tests/test_b.py", ".env"]
    shell = run(work.copy(start, paths, env={"SAID": "said"}))
    assert shell is not None
    printed: list[bytes] = []
    command = "cat tests/* .env app.py; ls tests; echo $SAID; echo x >app.py; rm -r tests; exit 3"
    with pytest.raises(ProcessFailed) as failed:
        run(shell(command, project.root), printed.append)
    assert 3 == failed.value.child_exit_code
    expected = b"hard\nMODE=strict\nnew\ntest_a.py\nsaid\n"
    assert expected == b"".join(printed)
    assert "easy\n" == (project.root / "tests/test_a.py").read_text()
    assert "new\n" == (project.root / "app.py").read_text()


def test_hidden_files_are_not_kept(project: GitProject, work: GitWork) -> None:
    """What `sandboxHide` names is not copied into the repository, where agents could read it."""
    own = of(project, hide=(str(project.root / ".env"),))
    assert {} == state(own)["ignored"]
    assert [".env"] == list(state(work)["ignored"])


def _flagged(project: GitProject) -> None:
    project.git("update-index", "--assume-unchanged", "app.py")
    project.write("app.py", "new\n")


def _other_case(project: GitProject) -> None:
    project.git("config", "core.ignorecase", "true")
    (project.root / "app.py").rename(project.root / "App.py")
    project.write("App.py", "new\n")


def _nested(project: GitProject) -> None:
    project.git("init", "--quiet", "lib")
    project.write("lib/x", "1\n")


def _removed(project: GitProject) -> None:
    (project.root / "app.py").unlink()


LACKING: dict[str, tuple[Callable[[GitProject], object], Standing]] = {
    "an index flag": (_flagged, Standing(missing=("app.py",))),
    "another case": (_other_case, Standing(missing=("App.py",), removed=("app.py",))),
    "a repository": (_nested, Standing(nested=("lib/",))),
    "an ignored file": (lambda p: p.write("a.log", "work\n"), Standing(ignored=("a.log",))),
    "a changed ignored file": (lambda p: p.write(".env", "MODE=x\n"), Standing(ignored=(".env",))),
    "a removed file": (_removed, Standing(removed=("app.py",))),
    "a specification": (lambda p: p.write(".specs/b.md", "new\n"), Standing()),
}


@pytest.mark.parametrize("name", LACKING)
def test_standing(work: GitWork, project: GitProject, name: str) -> None:
    """What the commit lacks of the work."""
    act, expected = LACKING[name]
    start = state(work)
    act(project)
    assert expected == run(work.standing(start, checked=None, exclude=EXCLUDE))


@pytest.mark.parametrize("name", ["an index flag", "another case"])
def test_stage(work: GitWork, project: GitProject, name: str) -> None:
    """What git's index hides is staged as it is, so that a clone has it."""
    start = state(work)
    LACKING[name][0](project)
    found: Any = run(work.standing(start, checked=None, exclude=EXCLUDE))
    run(work.stage(found.missing))
    project.git("commit", "--quiet", "--message", "the rest")
    assert Standing() == run(work.standing(start, checked=None, exclude=EXCLUDE))
    [path] = found.missing
    assert "new\n" == project.git("show", f"HEAD:{path}")


def test_what_does_not_count(work: GitWork, project: GitProject) -> None:
    """What was dirty before and stayed, what the check wrote, and line ends that git converts."""
    project.write("dirty.txt", "by a person\n")
    start = state(work)
    project.write(".gitattributes", "*.txt text eol=lf\n")
    project.write("lines.txt", "one\r\ntwo\r\n")
    project.git("add", ".gitattributes", "lines.txt")
    project.git("commit", "--quiet", "--message", "work")
    checked = run(work.changed(start))
    assert checked is not None
    project.write("report.xml", "by the check\n")
    project.write(".env", "by the check, also before the first agent\n")
    start = {**start, "written": [".env"]}
    found = run(work.standing(start, checked=checked["tree"], exclude=EXCLUDE))
    assert Standing() == found
    project.write("dirty.txt", "by an agent\n")
    again: Any = run(work.standing(start, checked=None, exclude=EXCLUDE))
    assert ("dirty.txt", "report.xml") == again.missing


def test_before_the_first_commit(project: GitProject) -> None:
    """All that is there at the start is uncommitted, and counts once it has changed."""
    work = of(project)
    project.write("dirty.txt", "by a person\n")
    start = state(work)
    project.write("app.py", "by an agent\n")
    project.git("add", "app.py")
    project.git("commit", "--quiet", "--message", "work")
    assert Standing() == run(work.standing(start, checked=None, exclude=EXCLUDE))
    project.write("dirty.txt", "by an agent\n")
    found = run(work.standing(start, checked=None, exclude=EXCLUDE))
    assert Standing(missing=("dirty.txt",)) == found


@pytest.mark.parametrize("name", ["run.txt", "a.log"])
def test_the_output_of_a_run_is_no_work(work: GitWork, project: GitProject, name: str) -> None:
    """A file of the project that this process prints into belongs to no commit."""
    start = state(work)
    standard = os.dup(1)
    try:
        with (project.root / name).open("w") as log:
            os.dup2(log.fileno(), 1)
            os.write(1, b"a line\n")
            found = run(work.standing(start, checked=None, exclude=EXCLUDE))
    finally:
        os.dup2(standard, 1)
        os.close(standard)
    assert Standing() == found


@pytest.mark.parametrize("command", ["checkout --quiet --detach", "checkout --quiet -b other"])
def test_back_on_the_branch(work: GitWork, project: GitProject, command: str) -> None:
    """An agent that left the branch is put back on it, with its work."""
    branch = current_branch(project.root) or ""
    project.git(*command.split())
    project.write("app.py", "new\n")
    project.git("commit", "--quiet", "--all", "--message", "work")
    head = project.git("rev-parse", "HEAD")
    assert run(work.return_to(branch))
    assert branch == current_branch(project.root)
    assert head == project.git("rev-parse", "HEAD")
    assert "" == project.git("status", "--porcelain", "--untracked-files=no")


def test_a_branch_that_went_on(work: GitWork, project: GitProject) -> None:
    """A branch with commits that HEAD lacks is left as it is."""
    branch = current_branch(project.root) or ""
    project.write("app.py", "theirs\n")
    project.git("commit", "--quiet", "--all", "--message", "theirs")
    tip = project.git("rev-parse", branch)
    project.git("checkout", "--quiet", "--detach", "HEAD~1")
    assert not run(work.return_to(branch))
    assert (None, tip) == (current_branch(project.root), project.git("rev-parse", branch))


def test_as_commit(work: GitWork, project: GitProject) -> None:
    """The files as they are, on no branch."""
    project.write("app.py", "new\n")
    project.write("b.py", "added\n")
    commit = run(work.as_commit())
    assert commit is not None
    assert "new\n" == project.git("show", f"{commit}:app.py")
    assert "added\n" == project.git("show", f"{commit}:b.py")
    assert "" == project.git("branch", "--contains", commit)


def test_no_repository(tmp_path: Path) -> None:
    """Nothing is compared."""
    assert run(GitWork.of(tmp_path, tmp_path / "index").state()) is None
