"""Recording the files that a session changes, and restoring them in a replay."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import cuggino
from cuggino.agents import SpawnOptions
from cuggino.agents.cassettes import record_to, replay_of
from cuggino.agents.cassettes.cassette import FilesChanged, FileState
from cuggino.agents.cassettes.files import FILE_LIMIT, put_files
from cuggino.agents.cassettes.places import Places
from cuggino.errors import CassetteError
from cuggino.events import AgentMessage, Event
from cuggino.testing import AgentRun, InMemoryAgent
from tests.agents.cassettes.recorded import ENDED, sessions
from tests.git_project import GitProject, isolate_git

pytestmark = pytest.mark.usefixtures("nothing_is_left")


@pytest.fixture(params=["repository", "folder"])
def project(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A project with some files, within a repository or not."""
    isolate_git(monkeypatch, tmp_path / "home")
    return make(tmp_path / "project", is_repository=request.param == "repository")


def make(folder: Path, *, is_repository: bool = True) -> Path:
    folder.mkdir()
    (folder / "kept.txt").write_text("kept")
    (folder / "old.txt").write_text("old")
    (folder / "sub").mkdir()
    (folder / "sub" / "deep.txt").write_text("deep")
    (folder / ".gitignore").write_text("ignored/\n.cuggino/\nnode_modules/\n")
    if is_repository:
        git = GitProject(folder)
        git.git("add", "-A")
        git.git("commit", "-q", "-m", "start")
    return folder


def doing(change: Callable[[Path], object]) -> AgentRun:
    """Return a session that makes this change in the folder named by its first line."""

    def events() -> Iterator[Event]:
        yield AgentMessage(text="now")
        change(Path.cwd())
        yield ENDED

    return AgentRun(events())


def record(
    project: Path,
    cassette: Path,
    change: Callable[[Path], object],
    *,
    env: dict[str, str] | None = None,
) -> dict[str, FileState]:
    """Record a session with this change and return the recorded file states."""
    agent = record_to(
        cassette, InMemoryAgent({"coding": [doing(lambda _: change(project))]}), env={}
    )
    cuggino.run(agent.spawn(of(project, env)))
    (session,) = sessions(cassette)
    changed = [line for line in session.lines if isinstance(line, FilesChanged)]
    return changed[0].files if changed else {}


def of(project: Path, env: dict[str, str] | None = None) -> SpawnOptions:
    return SpawnOptions(prompt="Go.", cwd=project, role="coding", env=env or {})


def replay(project: Path, cassette: Path) -> None:
    cuggino.run(replay_of(cassette).spawn(of(project)))


def contents(folder: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.startswith(".git/"):
            continue
        if path.is_symlink():
            found[name] = ("link", os.readlink(path))  # noqa: PTH115
        elif path.is_file():
            found[name] = (path.read_bytes(), os.access(path, os.X_OK))
    return found


def change_much(folder: Path) -> None:
    (folder / "new.txt").write_text("è 漢 ⟦project⟧\n")
    (folder / "sub" / "deep.txt").write_text("deeper\r\n")
    (folder / "old.txt").unlink()
    (folder / "more" / "and").mkdir(parents=True)
    (folder / "more" / "and" / "more.bin").write_bytes(bytes(range(256)))
    (folder / "tool.sh").write_text("#!/bin/sh\n")
    (folder / "tool.sh").chmod(0o755)
    (folder / "link").symlink_to("kept.txt")
    (folder / "empty").touch()
    (folder / ".cuggino" / "wip").mkdir(parents=True)
    (folder / ".cuggino" / "wip" / "a.plan.md").write_text("plan")
    (folder / ".autonoe").mkdir()
    (folder / ".autonoe" / "status.json").write_text("{}")


def test_all_kinds_of_changes(project: Path, tmp_path: Path) -> None:
    """Created, changed and removed files, executables, links and bytes are restored by a replay."""
    cassette = tmp_path / "c"
    record(project, cassette, change_much)
    there = make(tmp_path / "there")
    replay(there, cassette)
    assert contents(project) == contents(there)


def test_ignored_changes(project: Path, tmp_path: Path) -> None:
    """Files of the loop, dependencies and the cassette itself do not count as changes."""
    cassette = project / "c.jsonl"
    session_file = project / ".cuggino" / "wip" / "x.md"

    def change(folder: Path) -> None:
        for name in (".cuggino/journal/a.jsonl", ".cuggino/wip/x.md", "node_modules/a/b.js"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("x")
        (folder / "own.txt").write_text("x")

    states = record(project, cassette, change, env={"CUGGINO_SESSION_FILE": str(session_file)})
    assert ["own.txt"] == sorted(states)


def test_a_file_replaces_a_folder(project: Path, tmp_path: Path) -> None:
    """A replay replaces a folder with a file and a file with a folder."""
    there = make(tmp_path / "there")

    def change(folder: Path) -> None:
        (folder / "sub" / "deep.txt").unlink()
        (folder / "sub").rmdir()
        (folder / "sub").write_text("a file")
        (folder / "old.txt").unlink()
        (folder / "old.txt").mkdir()
        (folder / "old.txt" / "in.txt").write_text("in")

    record(project, tmp_path / "c", change)
    replay(there, tmp_path / "c")
    assert contents(project) == contents(there)


def test_a_newly_ignored_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that git starts to ignore does not count as removed."""
    isolate_git(monkeypatch, tmp_path / "home")
    project = make(tmp_path / "project", is_repository=False)
    (project / "later.txt").write_text("x")

    def change(folder: Path) -> None:
        GitProject(folder)
        (folder / ".gitignore").write_text("later.txt\n")

    assert [".gitignore"] == sorted(record(project, tmp_path / "c", change))


def test_a_large_file(project: Path, tmp_path: Path) -> None:
    """A file above the limit is not recorded; a replay without it fails with a clear error."""
    cassette, there = tmp_path / "c", make(tmp_path / "there")
    data = b"x" * (FILE_LIMIT + 1)
    states = record(project, cassette, lambda folder: (folder / "big").write_bytes(data))
    assert f"it has {FILE_LIMIT + 1} bytes" == states["big"].omitted
    assert cassette.stat().st_size < 10_000
    with pytest.raises(CassetteError, match="the content of big was not recorded: it has") as told:
        replay(there, cassette)
    assert "put the file there before the replay" in (told.value.hint or "")
    (there / "big").write_bytes(data)
    replay(there, cassette)
    (there / "big").write_bytes(data[1:] + b"y")
    with pytest.raises(CassetteError, match="was not recorded"):
        replay(there, cassette)


def test_a_removed_executable_permission(project: Path, tmp_path: Path) -> None:
    """A replay removes the executable permission as the session did."""
    there = make(tmp_path / "there")
    for folder in (project, there):
        (folder / "kept.txt").chmod(0o755)
    record(project, tmp_path / "c", lambda folder: (folder / "kept.txt").chmod(0o644))
    replay(there, tmp_path / "c")
    assert not os.access(there / "kept.txt", os.X_OK)


@pytest.mark.parametrize(
    "name", ["../x", "/etc/x", ".git/hooks/pre-commit", "sub/.GIT/config", "out/x", "", "a/../../x"]
)
def test_paths_outside_the_project(tmp_path: Path, name: str) -> None:
    """No path may leave the project or enter its repository, even through links."""
    project = tmp_path / "project"
    (tmp_path / "elsewhere").mkdir()
    project.mkdir()
    (project / "out").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CassetteError, match="not a file of the project"):
        put_files(project, {name: FileState(text="x")}, Places(project, {}))
    assert [] == [*(tmp_path / "elsewhere").iterdir()]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    """A recorded file replaces a link instead of writing through it."""
    (tmp_path / "target").write_text("mine")
    project = tmp_path / "project"
    project.mkdir()
    (project / "a").symlink_to(tmp_path / "target")
    put_files(project, {"a": FileState(text="x")}, Places(project, {}))
    assert ("mine", "x", False) == (
        (tmp_path / "target").read_text(),
        (project / "a").read_text(),
        (project / "a").is_symlink(),
    )


def test_commits_of_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent's own commits are recreated with their message, author and files."""
    isolate_git(monkeypatch, tmp_path / "home")
    project, there = make(tmp_path / "project"), make(tmp_path / "there")

    def change(folder: Path) -> None:
        git = GitProject(folder)
        git.write("a.txt", "one\n")
        git.git("add", "-A")
        git.git(
            "commit", "-q", "-m", "First è\n\nWith a body.\n# and a sharp", "--cleanup=verbatim"
        )
        git.write("a.txt", "two\n")
        (folder / "old.txt").unlink()
        git.git("add", "-A")
        git.git("-c", "user.name=Somebody", "commit", "-q", "-m", "Second")
        git.git("commit", "-q", "--allow-empty", "-m", "Third")
        git.write("a.txt", "three, not committed\n")

    record(project, tmp_path / "c", change)
    replay(there, tmp_path / "c")
    for command in (
        ("log", "--format=%an%n%B%n%T"),
        ("log", "-p", "--format=%s"),
        ("status", "--porcelain"),
    ):
        assert GitProject(project).git(*command) == GitProject(there).git(*command)


def test_amended_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an amended commit the replay ends with the same committed files."""
    isolate_git(monkeypatch, tmp_path / "home")
    project, there = make(tmp_path / "project"), make(tmp_path / "there")

    def change(folder: Path) -> None:
        git = GitProject(folder)
        git.write("a.txt", "one\n")
        git.git("add", "-A")
        git.git("commit", "-q", "--amend", "-m", "Start, amended")

    record(project, tmp_path / "c", change)
    replay(there, tmp_path / "c")
    assert contents(project) == contents(there)
    assert "" == GitProject(there).git("status", "--porcelain")
    assert "Start, amended\n" == GitProject(there).message()
