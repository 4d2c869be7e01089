"""How git is started: its settings, its views, its patience."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, concat, of, throw

from cuggino import run
from cuggino.errors import ProcessFailed
from cuggino.git import SSH_COMMAND, Git, Said, ssh_environment, view_obstacles
from cuggino.operators import Flow, emit, flow
from cuggino.sandbox import Enclosure, Views
from cuggino.testing import Marbles
from tests.git_commands import replace_git
from tests.git_project import GitProject
from tests.sandbox.arena import needs_bubblewrap

LOCKED = "fatal: Unable to create '/x/.git/index.lock': File exists.\n"
REMOVED = "fatal: bad object refs/cuggino/landing\nerror: /x did not send all necessary objects\n"


def said(git: Git, *args: str) -> Said:
    def story() -> Flow[None]:
        yield from emit((yield from git.run(*args)))

    found = run(flow(story))
    assert isinstance(found, Said)
    return found


def test_failures_are_told_by_their_gist(project: GitProject) -> None:
    """`run` returns them, `must` raises them."""
    git = Git(cwd=project.root)
    assert 128 == said(git, "rev-parse", "nowhere").code

    def story() -> Flow[None]:
        yield from git.must("cat-file", "-e", "nowhere")

    with pytest.raises(
        ProcessFailed, match=r"^git cat-file exited with code 128: fatal: Not a val"
    ):
        run(flow(story))


@pytest.mark.parametrize("message", [LOCKED, REMOVED])
@pytest.mark.parametrize(("waits", "code", "ends"), [(2, 0, 0.5), (100, 128, 10.0)])
def test_another_git_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    waits: int,
    code: int,
    ends: float,
    message: str,
) -> None:
    """It may be at work for some seconds; after ten, what is in the way is reported."""
    calls: list[str] = []

    def output(_argv: Any, **_options: Any) -> Observable[bytes]:
        calls.append("")
        if len(calls) <= waits:
            return throw(ProcessFailed("git", 128, message))
        return of(b"done")

    replace_git(monkeypatch, output)

    def story() -> Flow[None]:
        yield from emit((yield from Git(cwd=tmp_path).run("status")).code)

    seen = Marbles().record(flow(story), until=60)
    assert [(ends, "next", code)] == [(at, kind, it) for at, kind, it in seen if kind == "next"]


@pytest.mark.parametrize(
    ("words", "is_enclosed"),
    [
        (("status",), True),
        (("add", "a.txt"), True),
        (("unheard-of",), True),
        (("cat-file", "--filters", "HEAD:a.txt"), True),
        (("update-index", "--stdin"), True),
        (("update-index", "--index-info"), True),
        (("cat-file", "-p", "HEAD"), False),
        (("push", "origin", "HEAD"), False),
        (("-c", "x.y=z", "commit-tree", "-S"), False),
    ],
)
def test_what_runs_in_a_view(
    project: GitProject,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    is_enclosed: bool,
) -> None:
    """Everything that reads or writes files, and every command that is not known."""
    needs_bubblewrap(project.root)
    found: list[Enclosure | None] = []

    def output(_argv: Any, *, enclosure: Enclosure | None, **_options: Any) -> Observable[bytes]:
        found.append(enclosure)
        return concat(of(b""))

    replace_git(monkeypatch, output)
    said(Git(cwd=project.root, views=Views()), *words)
    assert [is_enclosed] == [enclosure is not None for enclosure in found]


def test_a_trial_of_the_views(project: GitProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """What works here works in each view; what does not is named before anything is paid."""
    needs_bubblewrap(project.root)
    assert [] == list(view_obstacles(project.root, Views(), check_command="python3 -c pass"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", "/")
    hidden = Views(hide=(str(project.root / ".git"),))
    (obstacle, *_) = view_obstacles(project.root, hidden)
    assert obstacle.what.startswith("git does not work in the view of a reviewer: fatal: ")
    program = project.root.parent / "bin" / "my-check"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    closed = Views(hide=(str(program.parent),))
    (obstacle,) = view_obstacles(project.root, closed, check_command="my-check --all")
    assert "the check's program, my-check, cannot be seen in the sandbox" == obstacle.what


def test_ssh_never_asks_unless_the_user_has_configured_it(
    project: GitProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the user has chosen, in a setting or in the environment, stays."""
    git = Git(cwd=project.root)
    silent = {"GIT_SSH_COMMAND": "ssh -o BatchMode=yes"}
    assert silent == ssh_environment(said(git, *SSH_COMMAND))
    for name in ("GIT_SSH", "GIT_SSH_COMMAND"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "mine")
            assert {} == ssh_environment(said(git, *SSH_COMMAND))
    project.git("config", "core.sshCommand", "mine")
    assert {} == ssh_environment(said(git, *SSH_COMMAND))
