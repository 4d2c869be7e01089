"""Recording the files that a session changes, restoring them, and the recording's own file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import cuggino
from cuggino import Config, Runtime
from cuggino.agents import SpawnOptions
from cuggino.agents.cassettes import record_to, replay_of
from cuggino.agents.cassettes.cassette import FilesChanged, FileState
from cuggino.agents.cassettes.files import FILE_LIMIT, put_files
from cuggino.agents.cassettes.places import Places
from cuggino.errors import CassetteError
from cuggino.events import AgentMessage, Event, SessionEnded
from cuggino.testing import AgentRun, InMemoryAgent
from tests.agents.cassettes.recorded import ENDED, sessions
from tests.git_project import GitProject, isolate_git

pytestmark = pytest.mark.usefixtures("nothing_is_left")


@pytest.fixture(params=["repository", "folder"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A project with some files, within a repository or not."""
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


def test_a_newly_ignored_file(tmp_path: Path) -> None:
    """A file that git starts to ignore does not count as removed."""
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
    "name",
    [
        *("../x", "/etc/x", ".git/hooks/pre-commit", "sub/.GIT/config", "out/x", "", "a/../../x"),
        *("g/hooks/pre-commit", "a\0b/c"),
    ],
)
def test_paths_outside_the_project(tmp_path: Path, name: str) -> None:
    """No path may leave the project or enter its repository, even through links."""
    project = make(tmp_path / "project")
    (tmp_path / "elsewhere").mkdir()
    (project / "out").symlink_to(tmp_path / "elsewhere")
    (project / "g").symlink_to(".git")
    with pytest.raises(CassetteError, match="not a file of the project"):
        put_files(project, {name: FileState(text="x")}, Places.of(of(project)))
    assert [] == [*(tmp_path / "elsewhere").iterdir()]
    assert not (project / ".git" / "hooks" / "pre-commit").exists()


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


def test_commits_of_the_agent(tmp_path: Path) -> None:
    """The agent's own commits are recreated with their message, author and files."""
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


def test_amended_commits(tmp_path: Path) -> None:
    """After an amended commit the replay ends with the same committed files."""
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


STOPS = ("ImplementingStart", "NoProgress", "LoopStalled", "LoopMaxIterations")


@pytest.fixture(autouse=True)
def own_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolate_git(monkeypatch, tmp_path / "home")


def test_an_agent_that_commits_all(tmp_path: Path) -> None:
    """A commit of everything includes the recording; a replay does not restore it."""
    project = make(tmp_path / "project")
    cassette = project / "run.jsonl"

    def change(folder: Path) -> None:
        (folder / "own.txt").write_text("x")
        GitProject(folder).git("add", "-A")
        GitProject(folder).git("commit", "-q", "-m", "all")

    record(project, cassette, change)
    there = make(tmp_path / "there")
    (there / "run.jsonl").write_bytes(cassette.read_bytes())
    before = (there / "run.jsonl").read_bytes()
    replay(there, there / "run.jsonl")
    assert before == (there / "run.jsonl").read_bytes()
    assert "x" == (there / "own.txt").read_text()
    assert "all" == GitProject(there).git("log", "-1", "--format=%s").strip()


def test_a_recording_that_contains_itself(tmp_path: Path) -> None:
    """Replaying a recording that contains its own file leaves the file unchanged."""
    project = make(tmp_path / "project")
    own = project / "run.jsonl"
    own.write_text("mine")
    files = {"run.jsonl": FileState(text="less"), "b.txt": FileState(text="b")}
    assert ["b.txt"] == put_files(project, files, Places.of(of(project)), without=own)
    assert ("mine", "b") == (own.read_text(), (project / "b.txt").read_text())


def test_a_binary_file_with_a_secret(tmp_path: Path) -> None:
    """A file omitted because of a secret can be provided before the replay."""
    project = make(tmp_path / "project")
    data = b"\xff\x00postgres://app:hunter22@db/x"
    record(project, tmp_path / "c", lambda folder: (folder / "x.sqlite").write_bytes(data))
    there = make(tmp_path / "there")
    with pytest.raises(CassetteError, match="its bytes contain a secret"):
        replay(there, tmp_path / "c")
    (there / "x.sqlite").write_bytes(data)
    replay(there, tmp_path / "c")
    assert data == (there / "x.sqlite").read_bytes()


def test_commit_hooks_do_not_run_again(tmp_path: Path) -> None:
    """A recorded commit is recreated exactly, without running the project's hooks."""
    project = make(tmp_path / "project")

    def change(folder: Path) -> None:
        (folder / "a.txt").write_text("x")
        GitProject(folder).git("add", "-A")
        GitProject(folder).git("commit", "-q", "-m", "[X-1] one")

    record(project, tmp_path / "c", change)
    there = make(tmp_path / "there")
    hook = there / ".git" / "hooks" / "prepare-commit-msg"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\necho "[X-1] $(cat "$1")" > "$1"\n')
    hook.chmod(0o755)
    replay(there, tmp_path / "c")
    assert "[X-1] one" == GitProject(there).git("log", "-1", "--format=%s").strip()


def idle_agent() -> InMemoryAgent:
    """Return an agent whose sessions never change anything."""

    def says(text: str, plan: str | None = None) -> Iterator[AgentRun]:
        events: list[Event] = [AgentMessage(text=text), SessionEnded(outcome="completed")]
        while True:
            yield AgentRun(events, plan=plan)

    return InMemoryAgent(
        {
            "planning": says("<PLAN_COMPLETE>p</PLAN_COMPLETE>", "# Plan\n- [ ] a\n- [ ] b\n"),
            "implementing": says("<PROGRESS>x</PROGRESS>"),
            "reviewing": says("<REQUEST_CHANGES>y</REQUEST_CHANGES>"),
        }
    )


def course(folder: Path, agent: InMemoryAgent | str, record: Path | None = None) -> list[str]:
    config = Config(guard="off", max_iterations=2, max_tasks_per_plan=6)
    tags: list[str] = []
    stream = Runtime.live(cwd=folder, config=config, agent=agent, record=record).run(focus="f")
    cuggino.run(stream, lambda event: tags.append(event.tag))
    return [tag for tag in tags if tag in STOPS]


@pytest.mark.real_agent
def test_a_recording_is_no_progress(tmp_path: Path) -> None:
    """A growing recording inside the project does not count as progress of the loop."""
    folders = [make(tmp_path / name) for name in ("plain", "recorded", "replayed")]
    for folder in folders:
        (folder / ".specs").mkdir()
        (folder / ".specs" / "a.md").write_text("spec")
    plain, recorded, replayed = folders
    expected = course(plain, idle_agent())
    assert "LoopStalled" == expected[-1]
    assert expected == course(recorded, idle_agent(), recorded / "run.jsonl")
    os.replace(recorded / "run.jsonl", tmp_path / "run.jsonl")  # noqa: PTH105
    assert expected == course(replayed, f"replay:{tmp_path / 'run.jsonl'}")


def test_own_files(tmp_path: Path) -> None:
    """The recorder and the player name their file; other agents have none."""
    agent = InMemoryAgent({"coding": [AgentRun(())]})
    recorder = record_to(tmp_path / "c", agent, env={})
    assert ((), (tmp_path / "c",)) == (agent.own_files, recorder.own_files)
    cuggino.run(recorder.spawn(of(tmp_path)))
    player = replay_of(tmp_path / "c")
    again = record_to(tmp_path / "d", player, env={})
    assert (tmp_path / "d", tmp_path / "c") == again.own_files
