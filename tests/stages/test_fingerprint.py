"""Fingerprints of a project, with and without git, and of plans.

The files of a repository are its private index, whose laws `test_snapshot` and `test_undo` prove:
odd names, line endings, filters, conflicts, and many files.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cuggino import run
from cuggino.operators import Flow, LoopScheduler, on_loop, pause
from cuggino.stages import GitSnapshots, fingerprint as fingerprint_module
from cuggino.stages.fingerprint import DIGITS, checked_items, fingerprint_stage, trace_stage
from cuggino.testing import no_leaks
from tests.git_commands import note_git
from tests.git_project import EXCLUDED, GitProject, is_alive, make_once
from tests.processes.subscribers import eventually

LATER = 2_000_000_000


def fingerprint(folder: Path, *, plan: Path | None = None) -> str:
    """The one thing that the stage emits."""
    seen: list[str] = []
    index = folder.parent / f"{folder.name}.index"  # beside it, so that `git add` finds none
    run(fingerprint_stage(folder, exclude=EXCLUDED, plan=plan, index=index), seen.append)
    assert 1 == len(seen)
    assert DIGITS == len(seen[0])
    assert set(seen[0]) <= set("0123456789abcdef")
    return seen[0]


def commit_all(project: GitProject, message: str = "work") -> None:
    project.git("add", "--all", "--", ".", ":(exclude).specs", ":(exclude).cuggino")
    project.git("commit", "--quiet", "--message", message)


def fill(project: GitProject) -> GitProject:
    """A repository with a commit of some files, and an ignored file."""

    def make() -> None:
        project.write(".gitignore", "*.log\n.cuggino/\n")
        project.write("a.txt", "a\n")
        project.write("sub/b.txt", "b\n")
        project.write("build.log", "1\n")
        commit_all(project)

    make_once("fingerprints", project.root, make)
    return project


@pytest.fixture
def filled(project: GitProject) -> GitProject:
    return fill(project)


CHANGES: dict[str, Callable[[GitProject], object]] = {
    "a changed file": lambda p: p.write("a.txt", "x\n"),
    "a changed file of the same length": lambda p: p.write("a.txt", "z\n"),
    "a staged change": lambda p: (p.write("a.txt", "y\n"), p.git("add", "a.txt")),
    "an untracked file": lambda p: p.write("new.txt"),
    "an untracked file with other content": lambda p: p.write("new.txt", "other\n"),
    "an untracked file elsewhere": lambda p: p.write("sub/new.txt"),
    "an empty untracked file": lambda p: p.write("empty", ""),
    "a deleted file": lambda p: (p.root / "a.txt").unlink(),
    "a renamed file": lambda p: (p.root / "a.txt").rename(p.root / "c.txt"),
    "an executable file": lambda p: (p.root / "a.txt").chmod(0o755),
    "an untracked executable": lambda p: p.write("tool").chmod(0o755),
    "a link": lambda p: (p.root / "link").symlink_to("a.txt"),
    "a link to nothing": lambda p: (p.root / "link").symlink_to("nowhere"),
    "a link to itself": lambda p: (p.root / "link").symlink_to("link"),
    "a folder in place of a file": lambda p: (p.git("rm", "a.txt"), p.write("a.txt/x")),
    "a repository within": lambda p: GitProject(p.root / "inner").write("x"),
}


class TestInARepository:
    @pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
    def test_a_change_its_commit_and_its_revert(
        self, filled: GitProject, change: Callable[[GitProject], object]
    ) -> None:
        """A change gives another state, its commit the same one, its revert the former one."""
        before = fingerprint(filled.root)
        change(filled)
        after = fingerprint(filled.root)
        assert before != after
        assert after == fingerprint(filled.root)
        if not (filled.root / "inner").exists():  # such a one is committed without its files
            commit_all(filled)
            assert after == fingerprint(filled.root)
            filled.git("revert", "--no-edit", "HEAD")
            assert 3 == filled.count()
            assert before == fingerprint(filled.root)

    def test_all_these_changes_differ(self, project: GitProject, tmp_path: Path) -> None:
        """No two of the changes lead to the same state."""
        states = set()
        for number, change in enumerate(CHANGES.values()):
            copy = fill(GitProject(tmp_path / str(number)))
            change(copy)
            states.add(fingerprint(copy.root))
        assert len(CHANGES) == len(states)

    def test_a_revert_without_a_commit(self, filled: GitProject) -> None:
        """A change that is taken back, staged or not, leaves the former state."""
        before = fingerprint(filled.root)
        filled.write("a.txt", "x\n")
        filled.git("add", "a.txt")
        filled.write("a.txt", "a\n")
        assert before == fingerprint(filled.root)
        filled.write("new.txt").unlink()
        assert before == fingerprint(filled.root)

    def test_times_are_no_content(self, filled: GitProject) -> None:
        """Files that were touched, tracked or not, are the same files."""
        filled.write("new.txt")
        before = fingerprint(filled.root)
        for name in ("a.txt", "sub/b.txt", "new.txt", ".gitignore"):
            os.utime(filled.root / name, (LATER, LATER))
        assert before == fingerprint(filled.root)

    def test_history_is_no_content(self, filled: GitProject) -> None:
        """Commits without a change, other messages and other branches are the same state."""
        before = fingerprint(filled.root)
        filled.git("commit", "--quiet", "--allow-empty", "--message", "nothing")
        assert before == fingerprint(filled.root)
        filled.git("checkout", "--quiet", "-b", "other")
        assert before == fingerprint(filled.root)

    def test_what_is_only_forgotten_by_the_index_is_there(self, filled: GitProject) -> None:
        """A file that is removed from the index alone is still the same file."""
        before = fingerprint(filled.root)
        filled.git("rm", "--quiet", "--cached", "a.txt")
        assert before == fingerprint(filled.root)

    def test_excluded_and_ignored_files_do_not_count(self, filled: GitProject) -> None:
        """Specs, the workspace and ignored files change nothing; their namesakes do."""
        before = fingerprint(filled.root)
        for name in (".specs/s.md", ".cuggino/wip/x.md", "build.log", "sub/other.log"):
            filled.write(name, "2\n")
        assert before == fingerprint(filled.root)
        filled.git("add", "--force", ".specs", ".cuggino")
        filled.git("commit", "--quiet", "--message", "specs")
        filled.write(".specs/s.md", "3\n")
        assert before == fingerprint(filled.root)
        filled.write(".specs2/s.md")
        assert before != fingerprint(filled.root)

    def test_an_exclusion_of_everything_is_none(self, filled: GitProject) -> None:
        """When the specs are the project itself, its files still count."""
        stage = fingerprint_stage(filled.root, exclude=(Path(), filled.root), plan=None)
        before = run(stage)
        filled.write("a.txt", "x\n")
        assert before != run(stage)

    def test_before_the_first_commit(self, project: GitProject) -> None:
        """Without a commit the files count, staged or not, and the first commit is not a change."""
        empty = fingerprint(project.root)
        assert empty == fingerprint(project.root)
        project.write("a.txt")
        first = fingerprint(project.root)
        assert empty != first
        project.git("add", "a.txt")
        assert first == fingerprint(project.root)
        commit_all(project)
        assert first == fingerprint(project.root)


# -- repositories with all that git has to offer


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """All files below the folder with their time and content."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The git commands that are run from now on."""
    return note_git(monkeypatch)


class TestCost:
    """A fingerprint costs one `git status`, and what has changed."""

    def test_a_snapshot_has_asked_already(self, filled: GitProject, commands: list[str]) -> None:
        """A snapshot and a fingerprint share the private index."""
        snapshots = GitSnapshots(filled.root, filled.root.parent / f"{filled.root.name}.index")
        assert run(snapshots.take("run", "first")) is not None
        filled.write("a.txt", "x\n")
        commands.clear()
        fingerprint(filled.root)
        assert ["status"] == commands

    def test_what_is_known_is_of_one_folder(self, filled: GitProject) -> None:
        """The same commit has other contents in a subdirectory and in another repository."""
        whole, part = fingerprint(filled.root), fingerprint(filled.root / "sub")
        assert whole != part
        other = filled.root.parent / "other"
        filled.git("clone", "--quiet", str(filled.root), str(other))
        assert whole == fingerprint(other)
        filled.git("init", "--quiet", "sub")  # a repository of its own, with the same files
        assert part == fingerprint(filled.root / "sub")


class TestOddities:
    def test_a_subdirectory_is_a_project(self, filled: GitProject) -> None:
        """In a subdirectory only files below it count, by paths from there."""
        filled.write("other/b.txt", "b\n")
        assert fingerprint(filled.root / "other") == fingerprint(filled.root / "sub")
        before = fingerprint(filled.root / "sub")
        filled.write("a.txt", "x\n")
        filled.git("config", "diff.relative", "false")
        assert before == fingerprint(filled.root / "sub")
        filled.write("sub/b.txt", "x\n")
        changed = fingerprint(filled.root / "sub")
        assert before != changed
        commit_all(filled)
        assert changed == fingerprint(filled.root / "sub")
        filled.write("sub/.specs/s.md")
        assert changed == fingerprint(filled.root / "sub")

    def test_a_subdirectory_with_an_odd_name_behind_a_link(self, filled: GitProject) -> None:
        """A subdirectory of any name, reached by a link, is fingerprinted as by its name."""
        filled.git("config", "core.autocrlf", "input")
        file = filled.write('odd\nna"me/deep/a.txt', "1\r\n")
        link = filled.root.parent / "link"
        link.symlink_to(file.parent)
        before = fingerprint(link)
        assert before == fingerprint(file.parent)
        commit_all(filled)
        assert before == fingerprint(link)

    def test_an_ignored_folder_is_a_project(self, filled: GitProject) -> None:
        """In a folder that the repository around it ignores the files themselves count."""
        filled.write(".gitignore", "sandbox/\n")
        filled.write("sandbox/a.txt")
        before = fingerprint(filled.root / "sandbox")
        filled.write("sandbox/a.txt", "x\n")
        assert before != fingerprint(filled.root / "sandbox")

    def test_a_submodule(self, filled: GitProject, tmp_path: Path) -> None:
        """A submodule counts with its commit, and with its files when they are changed."""
        module = GitProject(tmp_path / "module")
        module.write("m.txt")
        commit_all(module)
        allow = ("-c", "protocol.file.allow=always")
        filled.git(*allow, "submodule", "--quiet", "add", str(module.root), "module")
        commit_all(filled)
        before = fingerprint(filled.root)
        changed = filled.write("module/m.txt", "x\n")
        second = fingerprint(filled.root)
        changed.write_text("y\n")
        filled.git("config", "diff.ignoreSubmodules", "all")
        assert 3 == len({before, second, fingerprint(filled.root)})
        changed.write_text("text\n")
        assert before == fingerprint(filled.root)
        new = filled.write("module/new.txt")
        assert before != fingerprint(filled.root)
        new.unlink()
        filled.git("config", "--unset", "diff.ignoreSubmodules")
        filled.git("config", "-f", ".gitmodules", "submodule.module.ignore", "all")

    def test_a_repository_within_counts_with_its_files(self, filled: GitProject) -> None:
        """Files of a repository within count, and its commits do not."""
        inner = GitProject(filled.root / "inner")
        inner.write("x")
        first = fingerprint(filled.root)
        commit_all(inner)
        assert first == fingerprint(filled.root)
        inner.write("x", "y\n")
        assert first != fingerprint(filled.root)

    def test_a_huge_untracked_file(self, filled: GitProject) -> None:
        """A huge file counts with its size, its start and its end."""
        file = filled.root / "huge"
        states = set()
        for size, at in ((10**9, 0), (10**9 + 1, 0), (10**9, 10**9 - 1), (10**9, 10)):
            with file.open("wb") as content:
                content.truncate(size)
                content.seek(at)
                content.write(b"x")
            states.add(fingerprint(filled.root))
        assert 4 == len(states)
        os.utime(file, (LATER, LATER))
        assert fingerprint(filled.root) in states

    def test_a_conflict_of_a_renamed_file(self, filled: GitProject) -> None:
        """A file that only the other side has counts as it lies there, resolved or not."""
        lines = "".join(f"{number}\n" for number in range(30))
        filled.write("a.txt", lines)
        commit_all(filled)
        filled.git("checkout", "--quiet", "-b", "other")
        filled.git("mv", "a.txt", "b.txt")
        filled.write("b.txt", f"theirs\n{lines}")
        filled.git("commit", "--quiet", "--all", "--message", "rename")
        filled.git("checkout", "--quiet", "main")
        filled.write("a.txt", f"ours\n{lines}")
        commit_all(filled)
        with pytest.raises(subprocess.CalledProcessError):
            filled.git("merge", "other")
        conflict = fingerprint(filled.root)
        filled.git("add", "--all")
        assert conflict == fingerprint(filled.root)
        filled.git("commit", "--quiet", "--message", "merge")
        assert conflict == fingerprint(filled.root)

    def test_nothing_of_the_repository_is_changed(self, filled: GitProject) -> None:
        """Only objects are added; index, references and settings stay as they are."""
        os.utime(filled.root / "a.txt", (LATER, LATER))
        filled.write("sub/b.txt", "x\n")
        filled.write("new.txt")
        filled.git("add", "sub")
        before = snapshot(filled.root)
        fingerprint(filled.root)
        after = snapshot(filled.root)
        objects = str(filled.root / ".git" / "objects")
        assert before == {file: it for file, it in after.items() if file in before}
        assert all(file.startswith(objects) for file in after.keys() - before.keys())


# -- fingerprints without git, of plans, and what happens when they fail


def refuse(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, place: Path) -> set[str]:
    """Make the system refuse an operation on the place; return the places, as root never sees."""
    places = {str(place)}
    real = getattr(owner, name)

    def refused(path: object, *args: object, **options: object) -> object:
        if not isinstance(path, int) and os.fsdecode(path) in places:  # type: ignore[arg-type]
            raise PermissionError("refused")
        return real(path, *args, **options)

    monkeypatch.setattr(owner, name, refused)
    return places


class TestWithoutGit:
    @pytest.fixture
    def folder(self, project: GitProject, tmp_path: Path) -> Path:
        folder = tmp_path / "folder"
        for name in ("a.txt", "sub/b.txt", ".env"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(name)
        return folder

    @pytest.mark.parametrize(
        "name", ["a.txt", "new", "sub/new", ".env", os.fsdecode(b"n\xff\n"), "build/out.txt"]
    )
    def test_content_counts(self, folder: Path, name: str) -> None:
        """A changed or a new file changes it, and a revert gives the former state."""
        file = folder / name
        old = file.read_bytes() if file.exists() else None
        before = fingerprint(folder)
        file.parent.mkdir(exist_ok=True)
        try:
            file.write_text("x")
        except OSError:
            assert b"\xff" in os.fsencode(name), "only this file system may refuse invalid UTF-8"
            return
        changed = fingerprint(folder)
        assert before != changed
        os.utime(file, (LATER, LATER))
        assert changed == fingerprint(folder)
        if old is None:
            file.unlink()
        else:
            file.write_bytes(old)
        assert before == fingerprint(folder)

    @pytest.mark.parametrize(
        "name",
        [
            ".specs/s.md",
            ".cuggino/wip/x.md",
            ".cache/x",
            "node_modules/x/y.js",
            "sub/__pycache__/b.pyc",
            "target/CACHEDIR.TAG",
            "env/pyvenv.cfg",
        ],
    )
    def test_generated_and_hidden_folders_do_not_count(self, folder: Path, name: str) -> None:
        """Caches, environments, hidden folders and excluded files change nothing."""
        before = fingerprint(folder)
        file = folder / name
        file.parent.mkdir(parents=True)
        file.write_text("x")
        assert before == fingerprint(folder)

    def test_links_are_not_followed(self, folder: Path) -> None:
        """A link counts with its target's name, even in a cycle, not with the target's content."""
        before = fingerprint(folder)
        (folder / "up").symlink_to("..")
        first = fingerprint(folder)
        (folder.parent / "other.txt").write_text("x")
        assert first == fingerprint(folder)
        (folder / "up").unlink()
        (folder / "up").symlink_to("../..")
        assert 3 == len({before, first, fingerprint(folder)})

    def test_unreadable_and_special_files(self, folder: Path) -> None:
        """Files and folders without permission and pipes neither block nor fail."""
        os.mkfifo(folder / "pipe")
        (folder / "a.txt").chmod(0)
        (folder / "sub").chmod(0)
        try:
            before = fingerprint(folder)
            assert before == fingerprint(folder)
            (folder / "new").write_text("x")
            assert before != fingerprint(folder)
        finally:
            (folder / "sub").chmod(0o755)

    def test_a_folder_that_cannot_be_listed(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its contents do not matter; if the project itself is unreadable, it equals nothing."""
        before = fingerprint(folder)
        refused = refuse(monkeypatch, os, "scandir", folder / "sub")
        unreadable = fingerprint(folder)
        (folder / "sub" / "new").write_text("x")
        assert before != unreadable == fingerprint(folder)
        refused.add(str(folder))
        failed = fingerprint(folder)
        assert failed != fingerprint(folder)

    def test_a_file_that_cannot_be_read(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It counts with its size."""
        before = fingerprint(folder)
        refuse(monkeypatch, os, "open", folder / "a.txt")
        unreadable = fingerprint(folder)
        (folder / "a.txt").write_text("txt.a")
        assert before != unreadable == fingerprint(folder)
        (folder / "a.txt").write_text("longer than before")
        assert unreadable != fingerprint(folder)

    @pytest.mark.parametrize("is_repository", [True, False])
    def test_a_file_that_vanishes(
        self, filled: GitProject, folder: Path, monkeypatch: pytest.MonkeyPatch, is_repository: bool
    ) -> None:
        """A file that is listed and then gone does not count."""
        place = filled.root if is_repository else folder
        before = fingerprint(place)
        (place / "new").write_text("x")
        assert before != fingerprint(place)
        refuse(monkeypatch, Path, "lstat", place / "new")
        assert before == fingerprint(place)

    def test_pauses_change_nothing(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Between two slices of files others get their turn; the fingerprint stays the same."""
        for n in range(3):
            (folder / f"new{n}").write_text(str(n))
        before = fingerprint(folder)
        pauses: list[float] = []

        def noted(seconds: float) -> Flow[None]:
            pauses.append(seconds)
            return pause(seconds)

        monkeypatch.setattr(fingerprint_module, "pause", noted)
        monkeypatch.setattr(fingerprint_module, "_SLICE_FILES", 2)
        assert before == fingerprint(folder)
        assert pauses

    def test_git_is_not_installed(
        self, filled: GitProject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """Without the program git the files themselves count."""
        monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
        before = fingerprint(filled.root)
        assert before == fingerprint(filled.root)
        filled.write("a.txt", "x\n")
        assert before != fingerprint(filled.root)

    def test_a_broken_repository(self, filled: GitProject) -> None:
        """If git fails, the files themselves count."""
        filled.write(".git/HEAD", "nonsense\n")
        before = fingerprint(filled.root)
        assert before == fingerprint(filled.root)
        filled.write("a.txt", "x\n")
        assert before != fingerprint(filled.root)


class TestPlan:
    PLAN = "# Plan\n\n- [ ] one\n- [x] two\n  - [ ] three\n\n# Progress Log\n"

    def test_checked_boxes_count_and_words_do_not(self, filled: GitProject) -> None:
        """A box that is checked is progress, neither words nor the progress log are."""
        plan = filled.write(".cuggino/wip/x.md", self.PLAN)
        before = fingerprint(filled.root, plan=plan)
        plan.write_text(self.PLAN.replace("one", "eins") + "\n- [x] all of it\n")
        assert before == fingerprint(filled.root, plan=plan)
        plan.write_text(self.PLAN.replace("[ ] three", "[X] three"))
        assert before != fingerprint(filled.root, plan=plan)

    def test_plans_that_nobody_has_worked_on_are_alike(self, filled: GitProject) -> None:
        """A new plan alone, a missing one or an unreadable one is not progress."""
        without = fingerprint(filled.root)
        plan = filled.root / ".cuggino"
        assert without == fingerprint(filled.root, plan=plan / "missing.md")
        plan.mkdir()
        assert without == fingerprint(filled.root, plan=plan)
        for text in ("- [ ] one\n", "- [ ] one\n- [ ] two\n", ""):
            file = filled.write(".cuggino/wip/x.md", text)
            assert without == fingerprint(filled.root, plan=file)

    @pytest.mark.parametrize(
        ("plan", "expected"),
        [
            ("", ()),
            ("- [x] a\n* [ ] b\n+ [X] c\n", (0, 2)),
            ("1. [ ] a\n2) [x] b\n", (1,)),
            ("> - [x] quoted\n\t- [x] deep", (0, 1)),
            ("- [x]\n- [x]no space\n- [] none\n[x] none", (0,)),
            ("```\n- [x] code\n```\n- [x] a", (0,)),
            ("````\n```\n- [x] code\n````\n- [x] a", (0,)),
            ("~~~ text\n- [x] code", ()),
            ("- [x] a\n# Progress Log\n- [x] b", (0,)),
            ("- [x] a\n## progress log ##\n- [x] b", (0,)),
        ],
    )
    def test_what_a_checked_box_is(self, plan: str, expected: tuple[int, ...]) -> None:
        """List items with a checked box count by position, outside of code and of the log."""
        assert expected == checked_items(plan)


class TestTrace:
    """What agents leave that no commit would hold."""

    @pytest.mark.parametrize("is_repository", [True, False])
    @pytest.mark.parametrize(
        ("change", "is_seen"),
        [
            (lambda root: (root / "empty").mkdir(), True),
            (lambda root: (root / "build.log").write_text("2"), True),
            (lambda root: (root / "a.txt").touch(), False),
            (lambda root: _write(root / "__pycache__" / "a.pyc"), False),
            (lambda root: _write(root / ".cache" / "a"), False),
            (lambda root: _write(root / ".data" / "a"), True),
            (lambda root: _write(root / ".cuggino" / "a"), False),
        ],
    )
    def test_what_counts(
        self,
        filled: GitProject,
        change: Callable[[Path], object],
        is_seen: bool,
        is_repository: bool,
    ) -> None:
        """Empty folders and ignored files count, caches and other hidden folders do not."""
        if not is_repository:
            shutil.rmtree(filled.root / ".git")
        before = trace(filled.root)
        assert before == trace(filled.root)
        change(filled.root)
        assert is_seen == (before != trace(filled.root))

    def test_a_tag_counts(self, filled: GitProject) -> None:
        """A new tag counts, a new branch does not."""
        before = trace(filled.root)
        filled.git("branch", "other")
        assert before == trace(filled.root)
        filled.git("tag", "v1")
        assert before != trace(filled.root)

    def test_a_failure_equals_nothing(self, tmp_path: Path) -> None:
        """An unreadable project has a new trace each time, and is not an error."""
        assert trace(tmp_path / "missing") != trace(tmp_path / "missing")


def trace(folder: Path) -> str | None:
    return run(trace_stage(folder, exclude=EXCLUDED))


def _write(file: Path) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text("x")


class TestFailure:
    def test_a_failure_equals_nothing(self, tmp_path: Path) -> None:
        """An unreadable state has a new value each time, and is not an error."""
        assert fingerprint(tmp_path / "missing") != fingerprint(tmp_path / "missing")

    def test_too_late_is_a_failure(self, filled: GitProject) -> None:
        """A fingerprint that takes too long is a new value each time, and no error."""
        stage = fingerprint_stage(filled.root, exclude=(), plan=None, timeout=0)
        with no_leaks():
            assert run(stage) != run(stage)

    def test_nothing_is_left(self, filled: GitProject) -> None:
        """No process, thread or file is left after it has ended."""
        filled.write("new.txt")
        with no_leaks():
            fingerprint(filled.root)

    def test_disposal_ends_git(
        self, filled: GitProject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """A git that hangs is gone when the disposal returns, and nothing is emitted."""
        (tmp_path / "bin").mkdir()
        fake = tmp_path / "bin" / "git"
        fake.write_text(
            f"#!/bin/sh\necho $$ > {tmp_path}/new && mv {tmp_path}/new {tmp_path}/pid\nsleep 600\n"
        )
        fake.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
        seen: list[str] = []
        with no_leaks():
            scheduler = LoopScheduler()
            stage = fingerprint_stage(filled.root, exclude=(), plan=None)
            running = on_loop(stage).subscribe(seen.append, scheduler=scheduler)
            assert eventually((tmp_path / "pid").exists)
            pid = int((tmp_path / "pid").read_text())
            assert is_alive(pid)
            running.dispose()
            assert not is_alive(pid)
            scheduler.close()
        assert [] == seen
