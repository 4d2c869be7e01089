"""Settings of a repository that start programs, and looking without them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from reactivex import operators as ops

from cuggino import run
from cuggino.git import (
    STORED_SCOPES,
    Git,
    GitSetting,
    commit_obstacles,
    git_folder,
    list_settings,
    looking_environment,
    program_settings,
    repository_state,
    settings_in_list,
)
from cuggino.operators import Flow, flow
from tests.git_project import GitProject, isolate_git
from tests.hostile_project import GIT_PROGRAMS, HostileProject
from tests.limits import LIMIT


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostileProject:
    isolate_git(monkeypatch, tmp_path / "home")
    project = HostileProject(tmp_path / "project")
    project.break_git()
    return project


def test_settings_that_start_programs(hostile: HostileProject) -> None:
    """Every setting that names a program is found, with its value, and no other one."""
    found = dict(program_settings(hostile.root))
    assert {_spelled(name) for name in (*GIT_PROGRAMS, "core.hooksPath")} == found.keys()
    assert (found["core.pager"] or "").endswith("evil.sh core.pager")
    assert [] == hostile.ran()


def test_settings_of_an_included_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings that the repository includes are its own; those of its user are not."""
    isolate_git(monkeypatch, tmp_path / "home")
    own = tmp_path / "own.gitconfig"
    own.write_text('[core]\n\tpager = less\n[filter "lfs"]\n\tclean = git-lfs clean\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(own))
    project = GitProject(tmp_path / "project")
    assert () == program_settings(project.root)
    project.write("more", "[core]\n\tfsmonitor = ./watch\n")
    project.git("config", "include.path", "../more")
    assert [("core.fsmonitor", "./watch")] == [*program_settings(project.root)]


def test_settings_are_listed_as_git_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has its name and value, also across lines or without one; the scopes can be chosen."""
    isolate_git(monkeypatch, tmp_path / "home")
    own = tmp_path / "own.gitconfig"
    own.write_text("[user]\n\tname = A  B\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(own))
    project = GitProject(tmp_path / "project")
    (project.root / ".git/config").write_text(
        '[core]\n\tbare = false\n[filter "A b"]\n\tClean = "one\\ntwo"\n\trequired\n\tsmudge =\n'
        "[user]\n\tname = C\n"
    )
    listed = project.git("config", "--list", "--show-scope", "-z").split("\0")[:-1]
    stored = settings_in_list(listed, scopes=STORED_SCOPES)
    assert [
        ("user.name", "A  B"),
        ("core.bare", "false"),
        ("filter.A b.clean", "one\ntwo"),
        ("filter.A b.required", None),
        ("filter.A b.smudge", ""),
        ("user.name", "C"),
    ] == stored
    assert ["true", ""] == [one.text for one in stored if one.name.endswith(("required", "smudge"))]
    assert stored[1:] == settings_in_list(listed, scopes=("local",))
    assert [("user.name", "A  B")] == settings_in_list(listed, scopes=("global",))
    found: list[GitSetting] = []

    def story() -> Flow[None]:
        found.extend((yield from list_settings(Git(cwd=project.root))))

    run(flow(story).pipe(ops.default_if_empty(None)))
    assert stored == [one for one in found if one in stored]
    assert ("core.fsmonitor", "false") in found


@pytest.mark.parametrize("value", ["true", "false", ""])
def test_a_value_without_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """Git's own file monitor is not a program of the repository."""
    isolate_git(monkeypatch, tmp_path / "home")
    project = GitProject(tmp_path / "project")
    project.git("config", "core.fsmonitor", value)
    assert () == program_settings(project.root)


def test_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without a repository has no settings and no folder of git."""
    isolate_git(monkeypatch, tmp_path / "home")
    assert ((), None) == (program_settings(tmp_path), git_folder(tmp_path))


def test_the_folder_of_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is that of the main work tree, also in another one and in a folder below."""
    isolate_git(monkeypatch, tmp_path / "home")
    project = GitProject(tmp_path / "project")
    project.write("below/a.txt")
    project.git("add", "--all")
    project.git("commit", "--message", "Begin")
    project.git("worktree", "add", "--quiet", "../other")
    for folder in (project.root, project.root / "below", tmp_path / "other"):
        found = git_folder(folder)
        assert found is not None
        assert (project.root / ".git").samefile(found)


@pytest.mark.parametrize("broken", ["HEAD", "objects", "refs", "commondir"])
def test_the_folder_of_git_is_the_one_that_git_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """A folder that only looks like a repository is passed over, as git does."""
    isolate_git(monkeypatch, tmp_path / "home")
    around = GitProject(tmp_path / "around")
    within = GitProject(around.root / "within").root / ".git"
    assert within == git_folder(within.parent)
    if broken == "commondir":  # the hooks are elsewhere
        (within / broken).write_text("../../.git\n")
    elif broken == "HEAD":
        (within / broken).write_text("nonsense\n")
    else:
        shutil.rmtree(within / broken)
    found = git_folder(within.parent)
    assert found is not None
    assert (around.root / ".git").samefile(found)


@pytest.mark.parametrize(
    "command",
    ["status --porcelain", "diff --raw", "diff --numstat --no-ext-diff --no-textconv"],
)
def test_a_look_starts_nothing(hostile: HostileProject, command: str) -> None:
    """Git starts none of the repository's programs with that environment, and all without it."""
    _git(hostile, command, {})
    assert [] != hostile.ran()
    hostile.git.write("a.txt", "changed again\n")
    assert "a.txt" in _git(hostile, command, looking_environment(hostile.root))
    assert [] == hostile.ran()


def test_the_users_settings_of_the_environment_stay(
    hostile: HostileProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings that the environment already has are kept beside the new ones."""
    given = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_VALUE_0": "mine"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    env = looking_environment(hostile.root)
    assert "mine\n" == _git(hostile, "config a.b", env)
    assert "false\n" == _git(hostile, "config core.fsmonitor", env)


def test_the_state_of_a_hostile_repository(hostile: HostileProject) -> None:
    """Its state is read, and nothing is started."""
    state = repository_state(hostile.root)
    assert state is not None
    assert ("main", True) == (state.branch, state.dirty)
    assert [] == hostile.ran()


def test_obstacles_of_a_hostile_repository(hostile: HostileProject) -> None:
    """Its signing program is tried before a commit, but not by a mere look."""
    assert [] == [*commit_obstacles(hostile.root, looking=True)]
    assert [] == hostile.ran()
    assert ["commits cannot be signed"] == [
        obstacle.what.partition(":")[0] for obstacle in commit_obstacles(hostile.root)
    ]
    assert any("--status-fd" in line for line in hostile.ran())


def _spelled(name: str) -> str:
    """Return the name as git lists it: only the part in the middle keeps its case."""
    section, _, rest = name.partition(".")
    middle, dot, key = rest.rpartition(".")
    return f"{section.lower()}.{middle}{dot}{key.lower()}"


def _git(project: HostileProject, command: str, env: dict[str, str]) -> str:
    return subprocess.run(
        ["git", *command.split()],
        cwd=project.root,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    ).stdout
