"""What an implementer can write so that git, or cuggino, runs a program of its own outside.

Each way out is tried with the outermost thing that cuggino does afterwards: the marker is a file
outside of the project that such a program writes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, defer, empty

from cuggino import run
from cuggino.errors import CugginoError, RoleViolation
from cuggino.events import CommitFailed, CommitPerformed, RoleViolated, SnapshotTaken
from cuggino.gate import GitWork
from cuggino.git import Git, commit_of
from cuggino.notify import CommandNotifier
from cuggino.operators import flow
from cuggino.sandbox import Views, protected_for
from cuggino.sandbox.repository import shared_objects
from cuggino.stages import (
    GitRepository,
    GitSnapshots,
    commit_to,
    fingerprint_stage,
    trace_stage,
    verified,
)
from tests.git_project import GitProject
from tests.sandbox.arena import needs_bubblewrap

Plant = Callable[[GitProject, Path], None]


def program(folder: Path, marker: Path, name: str = "ev.sh") -> Path:
    """Write a program that leaves the marker, and passes its input on as a filter does."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho ran >> '{marker}'\ncat 2>/dev/null\n")
    path.chmod(0o755)
    return path


def nested(project: GitProject) -> GitProject:
    inner = GitProject(project.root / "vendor" / "lib")
    inner.write("f")
    inner.git("add", "f")
    inner.git("commit", "--quiet", "--message", "inner")
    return inner


def file_monitor_of_a_nested_repository(project: GitProject, marker: Path) -> None:
    inner = nested(project)
    ev = program(inner.root / ".git", marker)
    inner.git("config", "core.fsmonitor", str(ev))


def filter_of_a_nested_repository(project: GitProject, marker: Path) -> None:
    inner = nested(project)
    ev = program(inner.root / ".git", marker)
    inner.git("config", "filter.x.clean", str(ev))
    inner.write(".gitattributes", "* filter=x\n")
    inner.write("f", "changed\n")


def repository_elsewhere_in_the_project(project: GitProject, marker: Path) -> None:
    inner = nested(project)
    ev = program(inner.root / ".git", marker)
    inner.git("config", "core.fsmonitor", str(ev))
    (inner.root / ".git").rename(project.root / "hidden")
    inner.write(".git", "gitdir: ../../hidden\n")


def linked_repository(project: GitProject, marker: Path) -> None:
    """The agent has committed the link itself."""
    file_monitor_of_a_nested_repository(project, marker)
    project.git("-c", "advice.addEmbeddedRepo=false", "add", "vendor/lib")
    project.git("-c", "core.fsmonitor=false", "commit", "--quiet", "--message", "link")


def filter_in_the_project(project: GitProject, marker: Path) -> None:
    """The user's own filter is a script of the project."""
    program(project.root, marker, "clean.sh")
    project.write(".gitattributes", "*.txt filter=own\n")


def monitor_in_the_project(project: GitProject, marker: Path) -> None:
    """The user's own file monitor is a script of the project."""
    program(project.root, marker, "watch.sh")


def settings_of_another_folder(project: GitProject, marker: Path) -> None:
    """The repository's own folder names another one, with settings of the agent's."""
    git, common = project.root / ".git", project.root / ".git" / "common"
    shutil.copytree(git, common, ignore=lambda *_: ["common"])
    ev = program(common, marker)
    with (common / "config").open("a") as config:
        config.write(f"[core]\n\tfsmonitor = {ev}\n")
    (git / "commondir").write_text("common\n")


def included_settings(project: GitProject, marker: Path) -> None:
    """The user's own settings include a file of the project."""
    ev = program(project.root, marker)
    project.write(".gitconfig", f"[core]\n\tfsmonitor = {ev}\n")


def program_in_the_search_path(project: GitProject, marker: Path) -> None:
    ev = program(project.root, marker, "node_modules/.bin/git")
    ev.write_text(f"#!/bin/sh\necho ran >> '{marker}'\nexec /usr/bin/git \"$@\"\n")


PLANTS: dict[str, Plant] = {
    plant.__name__: plant
    for plant in (
        file_monitor_of_a_nested_repository,
        filter_of_a_nested_repository,
        repository_elsewhere_in_the_project,
        linked_repository,
        filter_in_the_project,
        monitor_in_the_project,
        settings_of_another_folder,
        included_settings,
        program_in_the_search_path,
    )
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitProject:
    """A repository whose settings name scripts of the project, as a team's may."""
    project = GitProject(tmp_path / "project")
    project.write(".gitignore", "node_modules/\n.cuggino/\n")
    project.write("a.txt", "a\n")
    for name in ("clean.sh", "watch.sh"):
        project.write(name, "#!/bin/sh\ncat\n").chmod(0o755)
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message", "start")
    project.git("config", "filter.own.clean", "./clean.sh")
    project.git("config", "include.path", "../.gitconfig")
    (project.root / "node_modules" / ".bin").mkdir(parents=True)
    bin_folder = f"{project.root}/node_modules/.bin"
    monkeypatch.setenv("PATH", f"{bin_folder}{os.pathsep}{os.environ['PATH']}")
    return project


def look(project: GitProject, views: Views | None) -> list[Any]:
    """Do with the project what a stage does; return the events."""
    root = project.root
    events: list[Any] = []
    repository = GitRepository(root, exclude=(Path(".cuggino"),), views=views)
    snapshots = GitSnapshots(root, root / ".cuggino" / "snapshots", views=views)
    head = run(repository.head())
    run(repository.dirty())
    run(snapshots.take("run", "implementing-1"), events.append)
    run(fingerprint_stage(root, exclude=(), plan=None, views=views))
    run(trace_stage(root, exclude=(), views=views))
    project.write("work.txt", "work\n")
    run(commit_to(repository, "Work", iteration=1), events.append)
    work = GitWork.of(root, root / ".cuggino/snapshots", views=views)
    start = run(work.state(head))
    assert start is not None
    run(work.changed(start))
    run(work.standing(start, checked=None, exclude=(".cuggino",)))
    run(work.stage(["work.txt"]))
    run(snapshots.take("run", "reviewing-1"), events.append)
    run(fingerprint_stage(root, exclude=(), plan=None, views=views))
    return events


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
def test_nothing_planted_runs_outside_of_the_view(
    project: GitProject, tmp_path: Path, plant: Plant
) -> None:
    """Work goes on, and no program of the agent's has left its mark."""
    needs_bubblewrap(project.root)
    if plant is monitor_in_the_project:
        project.git("config", "core.fsmonitor", str(project.root / "watch.sh"))
    marker = tmp_path / "marker"
    plant(project, marker)
    events = look(project, Views())
    assert not marker.exists()
    assert 2 == sum(isinstance(event, SnapshotTaken) for event in events)
    assert any(isinstance(event, CommitPerformed) for event in events)


_PUT_BACK = (
    *(filter_in_the_project, monitor_in_the_project),
    *(settings_of_another_folder, included_settings, program_in_the_search_path),
)


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
def test_precautions_without_a_view(project: GitProject, tmp_path: Path, plant: Plant) -> None:
    """Where nothing can hold a program, git is kept from the settings of other repositories.

    What git's own settings name is put back after the session, and an event names it.
    """
    if plant is monitor_in_the_project:
        project.git("config", "core.fsmonitor", str(project.root / "watch.sh"))
    marker = tmp_path / "marker"
    events: list[Any] = []
    protected = protected_for("implementing", project=project.root)

    def attack(_: Any) -> Observable[Any]:
        plant(project, marker)
        return empty()

    with suppress(RoleViolation):
        run(defer(attack).pipe(verified(protected)), events.append)
    look(project, None)
    assert not marker.exists()
    violated = [event for event in events if isinstance(event, RoleViolated)]
    assert (plant in _PUT_BACK) == bool(violated)
    assert all(event.failed == () for event in violated)


def test_a_new_repository_is_named_and_not_committed(project: GitProject) -> None:
    """A link to its commit would lose the files; the rest of the work is committed."""
    nested(project)
    events = look(project, None)
    (failed,) = (event for event in events if isinstance(event, CommitFailed))
    assert failed.message.startswith("vendor/lib/ is a repository of its own")
    assert "160000" not in project.git("ls-files", "--stage")
    assert any(isinstance(event, CommitPerformed) for event in events)


def test_the_notify_command_runs_in_a_view(project: GitProject, tmp_path: Path) -> None:
    """It may be a script that an agent has changed."""
    needs_bubblewrap(project.root)
    marker = tmp_path / "marker"
    program(project.root, marker, "notify.sh")
    notifier = CommandNotifier(
        "sh notify.sh; echo told > told.txt", cwd=project.root, views=Views()
    )
    run(notifier.notify("title", "body"))
    assert not marker.exists()
    assert "told\n" == (project.root / "told.txt").read_text()


def test_git_in_a_view_writes_no_settings(project: GitProject) -> None:
    """A program that git starts there can neither change them nor forge the records of runs."""
    needs_bubblewrap(project.root)
    journal = project.write(".cuggino/journal/run.jsonl", "{}\n")
    project.write(
        "clean.sh",
        "#!/bin/sh\necho '[x]' >> .git/config\necho x > .git/hooks/pre-commit\n"
        f"echo x >> {journal}\ncat\n",
    )
    project.write(".gitattributes", "*.txt filter=own\n")
    before = (project.root / ".git" / "config").read_bytes()
    project.write("a.txt", "changed\n")

    def add() -> Any:
        yield from Git(cwd=project.root, views=Views()).must("add", "a.txt")

    run(flow(add))
    assert before == (project.root / ".git" / "config").read_bytes()
    assert not (project.root / ".git" / "hooks" / "pre-commit").exists()
    assert "{}\n" == journal.read_text()


def test_no_file_becomes_set_user_id(project: GitProject) -> None:
    """Neither by its mode nor by its creation; other modes are free."""
    needs_bubblewrap(project.root)
    enclosure = Views().of_commands(project.root)
    assert enclosure is not None
    script = "cp /bin/true x; chmod 4755 x; chmod 755 x && chmod 2755 . && echo done"
    words = enclosure.command(["/bin/sh", "-c", script])
    done = subprocess.run(words, cwd=project.root, capture_output=True, text=True, check=False)
    assert "done\n" == done.stdout, done.stderr
    assert "Operation not permitted" in done.stderr
    assert 0o755 == (project.root / "x").stat().st_mode & 0o7777


@pytest.mark.parametrize(
    "name",
    [
        *("HEAD", "packed-refs", "MERGE_HEAD", "refs/heads/p", "info/exclude"),
        *("objects/info/alternates", "commondir"),
    ],
)
@pytest.mark.parametrize("kind", ["pipe", "endless"])
def test_nothing_waits_for_what_is_no_file(project: GitProject, name: str, kind: str) -> None:
    """A pipe has no other end, and a device no end: neither is read in place of a file of git's."""
    path = project.root / ".git" / name
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    protected = protected_for("implementing", project=project.root, views=Views())
    with suppress(CugginoError):  # git may not know such a repository
        run(empty().pipe(verified(protected)))
    assert commit_of(project.root) is None or name != "HEAD"
    assert [] == list(shared_objects(project.root / ".git"))


@pytest.mark.parametrize("head", ["../../../mine/Cargo", "link/Cargo"])
def test_no_file_elsewhere_is_taken_for_a_lock(
    project: GitProject, tmp_path: Path, head: str
) -> None:
    """A resumed run removes the locks of a killed git, but no file that HEAD leads to."""
    mine = tmp_path / "mine" / "Cargo.lock"
    mine.parent.mkdir()
    mine.write_text("mine\n")
    (project.root / ".git" / "refs" / "heads" / "link").symlink_to(mine.parent)
    (project.root / ".git" / "HEAD").write_text(f"ref: refs/heads/{head}\n")
    began = datetime.fromtimestamp(0, UTC)
    with suppress(CugginoError):
        run(GitRepository(project.root, views=Views()).recover(began))
    assert "mine\n" == mine.read_text()
