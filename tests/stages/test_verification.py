"""After a session, what its role may not write is as it was, and its verdict is void."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from reactivex import concat, defer, empty, from_iterable, just, throw

from cuggino import run
from cuggino.errors import RoleViolation
from cuggino.events import AgentMessage, Approved, Event, ProtectedChanged, RoleViolated
from cuggino.forge import Source, SourceItem, import_once
from cuggino.guard import NOTE
from cuggino.sandbox import Protected, ViewRole, protected_for
from cuggino.stages import KEPT, verified
from cuggino.storage import Origins, Workspace
from tests.git_project import GitProject, make_once

VERDICT = Approved(content="ok")
SAID = AgentMessage(text="working")


@pytest.fixture
def work(project: GitProject) -> GitProject:
    """A project with specifications, settings of agents, code, and two branches."""

    def make() -> None:
        for name in (".specs/a.md", ".specs/b.md", ".claude/settings.json", "src/app.py"):
            project.write(name, f"{name} as it was\n")
        project.write(".cuggino/backlog/one.md", "as it was")
        project.git("add", "--all")
        project.git("commit", "--quiet", "--message", "start")
        project.git("branch", "other")
        project.git("tag", "v1")

    make_once("verification", project.root, make)
    return project


class Session:
    """One session with a role, which does `work`."""

    def __init__(
        self,
        project: Path,
        role: ViewRole,
        work: Callable[[], object],
        *,
        held: bool = False,
        specs: str = ".specs",
        voids: bool = True,
    ) -> None:
        self.events: list[Any] = []
        self.error: Exception | None = None
        protected = replace(protected_for(role, project=project, specs=specs), held=held)
        self._run(protected, work, voids=voids)

    def _run(self, protected: Protected, work: Callable[[], object], *, voids: bool) -> None:
        def act(_: Any) -> Any:
            work()
            return empty()

        session = concat(just(SAID), defer(act), just(VERDICT))
        try:
            run(session.pipe(verified(protected, voids=voids)), on_next=self.events.append)
        except RoleViolation as error:
            self.error = error

    @property
    def violated(self) -> RoleViolated:
        [event] = [event for event in self.events if isinstance(event, RoleViolated)]
        assert VERDICT not in self.events
        assert isinstance(self.error, RoleViolation)
        assert event.paths == self.error.paths
        return event


def state(project: Path) -> dict[str, str]:
    """Return what the files of the project hold, and what its references are."""
    files = {
        path.relative_to(project).as_posix(): path.read_text()
        for path in sorted(project.rglob("*"))
        if path.is_file() and not {".git", "snapshots"} & set(path.relative_to(project).parts)
    }
    refs = git(project, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads")
    return {**files, "refs": refs, "HEAD": git(project, "symbolic-ref", "HEAD")}


def git(project: Path, *args: str) -> str:
    return subprocess.run(
        ["git", *args], cwd=project, check=True, capture_output=True, text=True
    ).stdout.strip()


CHANGES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "changed": (".specs/a.md", lambda p: (p / ".specs/a.md").write_text("easy")),
    "removed": (".specs/a.md", lambda p: (p / ".specs/a.md").unlink()),
    "added": (".specs/new.md", lambda p: (p / ".specs/new.md").write_text("easy")),
    "added empty": (".specs/new.md", lambda p: (p / ".specs/new.md").touch()),
    "a mode": (".specs/a.md", lambda p: (p / ".specs/a.md").chmod(0o755)),
    "settings": (".claude/settings.json", lambda p: (p / ".claude/settings.json").write_text("{}")),
    "new settings": (".mcp.json", lambda p: (p / ".mcp.json").write_text("{}")),
    "a link": (".specs/a.md", lambda p: relink(p)),
    "a hook": (".git/hooks/pre-commit", lambda p: hook(p)),
    "git settings": (".git/config", lambda p: git(p, "config", "core.pager", "sh")),
    "moved away": (".specs", lambda p: (p / ".specs").rename(p / "gone")),
}


def relink(project: Path) -> None:
    (project / ".specs/a.md").unlink()
    (project / ".specs/a.md").symlink_to("b.md")


def hook(project: Path) -> None:
    folder = project / ".git/hooks"
    folder.mkdir(exist_ok=True)
    (folder / "pre-commit").write_text("#!/bin/sh\n")


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("role", ["implementing", "reviewing", "planning"])
def test_a_protected_path(work: GitProject, role: ViewRole, change: str) -> None:
    """Any change of a protected path is reported, kept and undone."""
    project = work.root
    path, do = CHANGES[change]
    before = state(project)
    config = (project / ".git/config").read_bytes()
    violated = Session(project, role, lambda: do(project)).violated
    assert path in violated.paths
    assert () == violated.failed
    after = state(project)
    after = {name: text for name, text in after.items() if not name.startswith("gone/")}
    assert before == after
    assert config == (project / ".git/config").read_bytes()
    assert not (project / ".git/hooks/pre-commit").exists()


def test_the_changed_version_is_kept(work: GitProject) -> None:
    """The session's version can be read under a reference of cuggino's own."""
    project = work.root
    violated = Session(
        project, "implementing", lambda: (project / ".specs/a.md").write_text("easy")
    ).violated
    assert violated.kept is not None
    assert violated.kept.startswith(KEPT)
    assert "easy" == git(project, "show", f"{violated.kept}:.specs/a.md")


def test_a_folder_without_git(tmp_path: Path) -> None:
    """Without git the changed version is kept in a folder."""
    (tmp_path / ".specs").mkdir()
    (tmp_path / ".specs/a.md").write_text("hard")
    violated = Session(
        tmp_path, "implementing", lambda: (tmp_path / ".specs/a.md").write_text("easy")
    ).violated
    assert violated.kept is not None
    assert "hard" == (tmp_path / ".specs/a.md").read_text()
    assert "easy" == (tmp_path / violated.kept / ".specs/a.md").read_text()


def test_what_the_role_may_write(work: GitProject) -> None:
    """An implementer writes code and commits it; the verdict is the last event."""
    project = work.root

    def do() -> None:
        (project / "src/app.py").write_text("done")
        git(project, "commit", "--quiet", "--all", "--message", "work")
        git(project, "branch", "mine")

    session = Session(project, "implementing", do)
    assert [SAID, VERDICT] == session.events
    assert session.error is None
    assert "done" == (project / "src/app.py").read_text()


@pytest.mark.parametrize("role", ["implementing", "reviewing"])
def test_housekeeping_of_git(work: GitProject, role: ViewRole) -> None:
    """Packing and listing by git in the background is not a violation."""
    project = work.root
    session = Session(project, role, lambda: git(project, "gc", "--quiet"))
    assert [SAID, VERDICT] == session.events
    assert (project / ".git/info/refs").exists()


def test_rewriting_with_the_same_content(work: GitProject) -> None:
    """A file that was written as it was has not changed."""
    file = work.root / ".specs/a.md"
    session = Session(work.root, "implementing", lambda: file.write_text(file.read_text()))
    assert [SAID, VERDICT] == session.events


def test_places_to_mount_on(work: GitProject) -> None:
    """New empty files and folders, which the sandbox of an agent leaves, are no change."""

    def leave() -> None:
        (work.root / ".git/config.worktree").touch()
        (work.root / ".git/info/.claude-sandbox-noreplace").mkdir(parents=True)
        (work.root / ".claude").mkdir(exist_ok=True)

    assert [SAID, VERDICT] == Session(work.root, "implementing", leave).events


REFS: dict[str, tuple[ViewRole, str, Callable[[Path], object]]] = {
    "a branch removed": (
        "implementing",
        "refs/heads/other",
        lambda p: git(p, "update-ref", "-d", "refs/heads/other"),
    ),
    "a tag moved": (
        "implementing",
        "refs/tags/v1",
        lambda p: git(p, "update-ref", "refs/tags/v1", tree_commit(p)),
    ),
    "a packed branch removed": (
        "implementing",
        "refs/heads/other",
        lambda p: (git(p, "pack-refs", "--all"), git(p, "branch", "-D", "other")),
    ),
    "the current branch made unreadable": (
        "implementing",
        "refs/heads/main",
        lambda p: (p / ".git/refs/heads/main").write_text("garbage\n"),
    ),
    "another branch emptied": (
        "implementing",
        "refs/heads/other",
        lambda p: (p / ".git/refs/heads/other").write_text(""),
    ),
    "a new branch": ("reviewing", "refs/heads/new", lambda p: git(p, "branch", "new")),
    "a commit": (
        "reviewing",
        "refs/heads/main",
        lambda p: git(p, "commit", "--quiet", "--allow-empty", "--message", "x"),
    ),
    "another branch": (
        "reviewing",
        "HEAD",
        lambda p: git(p, "symbolic-ref", "HEAD", "refs/heads/x"),
    ),
}


def tree_commit(project: Path) -> str:
    return git(project, "commit-tree", "HEAD^{tree}", "-m", "another")


@pytest.mark.parametrize("change", REFS)
def test_references(work: GitProject, change: str) -> None:
    """Branches and tags that were there stay; who only looks makes none."""
    role, ref, do = REFS[change]
    before = state(work.root)
    violated = Session(work.root, role, lambda: do(work.root)).violated
    assert ref in violated.paths
    assert before == state(work.root)


class TestSpecsInHistory:
    """git's plumbing changes specifications without touching a file."""

    def test_in_the_index(self, work: GitProject) -> None:
        project = work.root
        violated = Session(project, "implementing", lambda: stage_evil(project)).violated
        assert (":.specs/a.md",) == violated.paths
        assert "" == git(project, "diff", "--cached", "--name-only")

    @pytest.mark.parametrize("held", [False, True])
    def test_in_a_commit(self, work: GitProject, held: bool) -> None:
        """The commit is undone, its other changes stay in the work tree, and it is kept."""
        project = work.root
        head = git(project, "rev-parse", "HEAD")

        def do() -> None:
            stage_evil(project)
            (project / "src/app.py").write_text("work")
            git(project, "add", "src")
            git(project, "commit", "--quiet", "--message", "work")

        session = Session(project, "implementing", do, held=held)
        violated = session.violated
        assert ("HEAD:.specs/a.md",) == violated.paths
        assert head == git(project, "rev-parse", "HEAD")
        assert "src/app.py" == git(project, "diff", "--cached", "--name-only")
        assert "work" == (project / "src/app.py").read_text()
        assert violated.kept is not None
        assert "easy" == git(project, "show", f"{violated.kept}^:.specs/a.md")

    def test_a_person_stages_a_specification(self, work: GitProject) -> None:
        """If the kernel held, a staged file that matches the work tree is a person's own edit."""
        project = work.root

        def do() -> None:
            (project / ".specs/a.md").write_text("new wish")
            git(project, "add", ".specs")

        session = Session(project, "implementing", do, held=True)
        assert [SAID, ProtectedChanged(role="implementing", paths=(".specs/a.md",)), VERDICT] == (
            session.events
        )
        assert "new wish" == git(project, "show", ":.specs/a.md")


def stage_evil(project: Path) -> None:
    blob = subprocess.run(
        ["git", "hash-object", "-w", "--stdin"],
        cwd=project,
        input="easy",
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    git(project, "update-index", "--cacheinfo", f"100644,{blob},.specs/a.md")


class TestTheWorkTree:
    """Roles that only look change no file of the project."""

    @pytest.mark.parametrize("role", ["reviewing", "planning", "audit", "judge"])
    def test_changed(self, work: GitProject, role: ViewRole) -> None:
        """A changed file is put back and the verdict is void; the session's version is kept."""
        project = work.root
        work.write("notes.txt", "of a person, not committed")
        before = state(project)

        def do() -> None:
            (project / "src/app.py").write_text("passes")
            (project / "notes.txt").unlink()
            (project / "new.txt").write_text("new")

        violated = Session(project, role, do).violated
        assert {"src/app.py", "notes.txt", "new.txt"} == set(violated.paths)
        assert before == state(project)
        assert violated.kept is not None
        assert "passes" == git(project, "show", f"{violated.kept}:src/app.py")

    def test_only_new_files(self, work: GitProject) -> None:
        """The files of a test run are taken away and kept, and the verdict counts."""
        project = work.root
        session = Session(project, "reviewing", lambda: work.write("out/report.xml", "fine"))
        [said, told, verdict] = session.events
        assert (SAID, VERDICT) == (said, verdict)
        assert isinstance(told, RoleViolated)
        assert (("out/report.xml",), False) == (told.paths, told.void)
        assert not (project / "out").exists()
        assert "fine" == git(project, "show", f"{told.kept}:out/report.xml")

    def test_ignored_files(self, work: GitProject) -> None:
        """Caches that git ignores stay."""
        work.write(".gitignore", "cache/\n")
        session = Session(work.root, "reviewing", lambda: work.write("cache/x", "x"))
        assert [SAID, VERDICT] == session.events
        assert (work.root / "cache/x").exists()

    def test_the_note_of_a_verifier(self, work: GitProject) -> None:
        """A write that the role is granted is not a violation."""
        session = Session(work.root, "verify", lambda: work.write(NOTE, "see"))
        assert [SAID, VERDICT] == session.events
        assert "see" == (work.root / NOTE).read_text()


def test_a_view_that_held(work: GitProject) -> None:
    """If the kernel held, a change is a person's: reported, not undone, and the verdict counts."""
    project = work.root
    session = Session(
        project, "implementing", lambda: (project / ".specs/a.md").write_text("wish"), held=True
    )
    assert [SAID, ProtectedChanged(role="implementing", paths=(".specs/a.md",)), VERDICT] == (
        session.events
    )
    assert "wish" == (project / ".specs/a.md").read_text()


HELD: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a new name": (".mcp.json", lambda p: (p / ".mcp.json").write_text("{}")),
    "in a new folder": (".gemini", lambda p: settings(p)),
    "a link replaced": (".specs", lambda p: replaced(p / ".specs", p / "easy")),
    "a link above": ("docs", lambda p: replaced(p / "docs", p / "other")),
}


def settings(project: Path) -> None:
    (project / ".gemini").mkdir()
    (project / ".gemini/settings.json").write_text("{}")


def replaced(link: Path, by: Path) -> None:
    link.unlink()
    (by / "specs").mkdir(parents=True)
    (by / "specs/a.md").write_text("easy")
    by.rename(link)


@pytest.mark.parametrize("change", HELD)
@pytest.mark.parametrize("role", ["implementing", "coding", "reviewing"])
def test_what_no_view_prevents(work: GitProject, role: ViewRole, change: str) -> None:
    """A name that did not exist, or a link, is put back if the role writes the project.

    A role that only looks cannot have made it: its writes vanish.
    """
    project = work.root
    specs = ".specs"
    if "link" in change:
        folder = project / "real/specs"
        folder.mkdir(parents=True)
        (folder / "a.md").write_text("as it was")
        (project / ".specs/a.md").unlink()
        (project / ".specs/b.md").unlink()
        (project / ".specs").rmdir()
        (project / ".specs").symlink_to("real/specs")
        (project / "docs").symlink_to("real")
        specs = "docs/specs" if change == "a link above" else ".specs"
    writes_specs = role == "coding" and "link" in change
    before = state(project)
    path, act = HELD[change]
    session = Session(project, role, lambda: act(project), held=True, specs=specs)
    if role == "reviewing":
        assert [SAID, VERDICT] == [session.events[0], session.events[-1]]
        assert path in session.events[1].paths[0]
    elif writes_specs:
        assert [SAID, VERDICT] == session.events
    else:
        assert path in session.violated.paths[0]
        assert before == {**state(project), "refs": before["refs"]}


def test_an_edit_behind_a_link(work: GitProject) -> None:
    """A person edits specifications that a link leads to: the link was not replaced."""
    project = work.root
    (project / "real/specs").mkdir(parents=True)
    (project / "real/specs/a.md").write_text("as it was")
    (project / "docs").symlink_to("real")
    session = Session(
        project,
        "implementing",
        lambda: (project / "real/specs/a.md").write_text("wish"),
        held=True,
        specs="docs/specs",
    )
    told = ProtectedChanged(role="implementing", paths=("docs/specs/a.md",))
    assert [SAID, told, VERDICT] == session.events
    assert "wish" == (project / "real/specs/a.md").read_text()


def test_a_command_keeps_its_outcome(work: GitProject) -> None:
    """A command's changes are put back and kept; it does not fail, and its outcome counts."""
    project = work.root
    command = Session(
        project, "implementing", lambda: (project / ".specs/a.md").write_text("easy"), voids=False
    )
    [_, violated, verdict] = command.events
    assert (command.error, verdict) == (None, VERDICT)
    assert (".specs/a.md",) == violated.paths
    assert not violated.void
    assert "easy" == git(project, "show", f"{violated.kept}:.specs/a.md")
    assert ".specs/a.md as it was\n" == (project / ".specs/a.md").read_text()


def test_places_of_persons(work: GitProject) -> None:
    """A new item of the backlog is never taken away."""
    project = work.root
    session = Session(
        project, "implementing", lambda: (project / ".cuggino/backlog/two.md").write_text("wish")
    )
    paths = (".cuggino/backlog/two.md",)
    assert [SAID, ProtectedChanged(role="implementing", paths=paths), VERDICT] == session.events
    assert "wish" == (project / ".cuggino/backlog/two.md").read_text()


def test_a_session_that_fails(work: GitProject) -> None:
    """The changes of a crashed session are put back too; the violation is the failure."""
    project = work.root
    events: list[Event] = []

    def crash(_: Any) -> Any:
        (project / ".specs/a.md").write_text("easy")
        return throw(ValueError("crash"))

    protected = protected_for("implementing", project=project)
    with pytest.raises(RoleViolation):
        run(defer(crash).pipe(verified(protected)), on_next=events.append)
    assert [RoleViolated] == [type(event) for event in events]
    assert ".specs/a.md as it was\n" == (project / ".specs/a.md").read_text()


def test_a_file_too_large_to_keep(work: GitProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be put back is named, and stays as it is now."""
    monkeypatch.setattr("cuggino.protection.LARGEST", 4)
    project = work.root
    violated = Session(
        project, "implementing", lambda: (project / ".specs/a.md").write_text("easier")
    ).violated
    assert (".specs/a.md",) == violated.failed
    assert "easier" == (project / ".specs/a.md").read_text()


def test_what_cannot_be_restored_stops_nothing_else(work: GitProject) -> None:
    """A repository that is gone is named, and the specifications come back all the same."""

    def attack() -> None:
        work.git("init", "--quiet", "--separate-git-dir=.specs/git")
        shutil.rmtree(work.root / ".specs")
        (work.root / ".specs").symlink_to("src")

    violated = Session(work.root, "implementing", attack).violated
    assert violated.failed
    assert not (work.root / ".specs").is_symlink()
    assert ".specs/a.md as it was\n" == (work.root / ".specs/a.md").read_text()


def test_an_event_is_readable(work: GitProject) -> None:
    """The event names everything in plain JSON."""
    project = work.root
    violated = Session(
        project, "reviewing", lambda: (project / ".specs/a.md").write_text("easy")
    ).violated
    told = json.loads(violated.model_dump_json())
    assert [".specs/a.md"] == told["paths"]
    assert "reviewing" == told["role"]


def test_a_branch_that_was_checked_out_stays_where_it_is(work: GitProject) -> None:
    """The specifications come back with the branch; the other branch is not moved to them."""
    work.write(".specs/a.md", "later\n")
    work.git("commit", "--quiet", "--all", "--message", "later")
    before = state(work.root)
    session = Session(
        work.root, "implementing", lambda: work.git("symbolic-ref", "HEAD", "refs/heads/other")
    )
    assert "HEAD:.specs/a.md" in session.violated.paths
    assert before == state(work.root)


def test_a_staged_specification_of_an_earlier_commit_is_unstaged(work: GitProject) -> None:
    """It no longer matches the work tree, once that has been put back."""
    work.write(".specs/a.md", "later\n")
    work.git("commit", "--quiet", "--all", "--message", "later")

    def go_back() -> None:
        work.git("read-tree", "HEAD~1")
        work.git("checkout-index", "--force", "--all")

    session = Session(work.root, "implementing", go_back)
    assert (".specs/a.md", ":.specs/a.md") == session.violated.paths
    assert "" == work.git("diff", "--cached", "--name-only")


@pytest.mark.parametrize("role", ["implementing", "reviewing"])
def test_no_object_is_replaced(work: GitProject, role: ViewRole) -> None:
    """git would show another specification in the place of the committed one."""
    other = work.git("hash-object", "-w", "src/app.py").strip()
    session = Session(
        work.root,
        role,
        lambda: work.git("replace", work.git("rev-parse", "HEAD:.specs/a.md").strip(), other),
    )
    assert session.violated.paths[0].startswith("refs/replace/")
    assert "" == work.git("replace", "--list")


@pytest.mark.parametrize("way", ["separate", "renamed", "linked"])
def test_a_repository_that_was_moved_comes_back(work: GitProject, way: str) -> None:
    """Its new place is not removed with all commits, even if that is among protected files."""
    before = state(work.root)

    def move() -> None:
        if way == "separate":
            work.git("init", "--quiet", "--separate-git-dir", ".specs/git")
            return
        (work.root / ".git").rename(work.root / ".g")
        if way == "linked":
            (work.root / ".git").symlink_to(".g")

    session = Session(work.root, "implementing", move)
    assert ".git" == session.violated.paths[0]
    assert before == state(work.root)
    assert not (work.root / ".git").is_symlink()


@pytest.mark.parametrize("damage", ["no references", "no HEAD", "a bad HEAD", "a hidden commit"])
def test_a_damaged_repository_can_be_read_again(work: GitProject, damage: str) -> None:
    """Without its references or its HEAD, git would take the folder for something else."""
    before = state(work.root)
    git_folder = work.root / ".git"

    def break_it() -> None:
        if damage == "no references":
            shutil.rmtree(git_folder / "refs")
            return
        if damage == "a bad HEAD":
            (git_folder / "HEAD").write_text("x\n")
            return
        if damage == "a hidden commit":
            other = work.git("hash-object", "-w", "src/app.py").strip()
            work.git("update-index", "--cacheinfo", f"100644,{other},.specs/a.md")
            work.git("commit", "--quiet", "--message", "evil")
        (git_folder / "HEAD").unlink()

    session = Session(work.root, "implementing", break_it)
    assert session.violated.failed == ()
    assert before == state(work.root)
    assert "" == work.git("diff", "--cached", "--name-only")


def test_what_a_role_that_looks_has_staged_is_unstaged(work: GitProject) -> None:
    """A person's own staged change stays staged."""
    work.write("src/app.py", "staged by a person\n")
    work.git("add", "src/app.py")
    session = Session(
        work.root, "reviewing", lambda: work.git("checkout", "--quiet", "--force", "other")
    )
    assert "HEAD" in session.violated.paths
    assert "src/app.py\n" == work.git("diff", "--cached", "--name-only")


def test_a_file_that_became_ignored_is_removed(work: GitProject) -> None:
    """Files hidden by a changed `.gitignore` are found once that has been put back."""

    def hide() -> None:
        work.write(".gitignore", "src/\n")
        work.write("src/app.py", "changed\n")
        work.write("src/new.py")

    before = state(work.root)
    assert Session(work.root, "reviewing", hide).violated.void
    assert before == state(work.root)


@pytest.mark.parametrize("held", [False, True])
def test_an_import_meanwhile(work: GitProject, held: bool) -> None:
    """Imports while an agent works are not changes by a session; other items are.

    In a view that holds, no item is looked at: a session cannot have written one.
    """
    workspace = Workspace(work.root)
    workspace.open()
    tracker = [SourceItem(id=id, title="New") for id in ("7", "8", "9")]

    def imports() -> None:
        run(import_once([Source(name="jira", items=lambda: from_iterable(tracker))], workspace))

    def meanwhile() -> None:
        tracker[0] = replace(tracker[0], body="Later.")
        tracker[1] = replace(tracker[1], closed=True)
        tracker[2] = replace(tracker[2], held="was edited by eve")
        tracker.append(SourceItem(id="10", title="New"))
        imports()
        (workspace.backlog / "two.md").write_text("wish")

    imports()
    session = Session(work.root, "implementing", meanwhile, held=held)
    told = ProtectedChanged(role="implementing", paths=(".cuggino/backlog/two.md",))
    assert [SAID, *([] if held else [told]), VERDICT] == session.events
    assert "Later." in (workspace.backlog / "jira-00007.md").read_text()
    assert 4 == len(Origins(workspace).all())
