"""Commits of a real git: what goes in, how the message looks, also in a dirty work tree."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from reactivex import Observable

from cuggino import run
from cuggino.events import CommitPerformed, DirtyFilesCommitted, Event
from cuggino.git import command_of
from cuggino.processes import process_output
from cuggino.stages import GitRepository, commit_message, commit_to
from tests.git_commands import replace_git
from tests.git_project import EXCLUDED, GitProject, commit, make_once, merging


class TestMessage:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("Add a page", "Add a page\n"),
            ("  Add a page \n", "Add a page\n"),
            ("", "cuggino: progress\n"),
            (" \n\t", "cuggino: progress\n"),
            ("Subject\nbody", "Subject\n\nbody\n"),
            ("Subject\n\nbody\n\nmore", "Subject\n\nbody\n\nmore\n"),
            ("x" * 72, "x" * 72 + "\n"),
            ("x" * 73, "x" * 70 + " …\n\n" + "x" * 73 + "\n"),
            ("word " * 20, ("word " * 14).strip() + " …\n\n" + ("word " * 20).strip() + "\n"),
        ],
    )
    def test_first_line_is_the_subject(self, text: str, expected: str) -> None:
        """The first line is the subject, cut at a word; the rest of it is in the body."""
        assert expected == commit_message(text)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("Add \x1b[31ma red\x1b[0m page", "Add a red page\n"),
            ("Add\x1b]0;title\x07 a page\x1b]8;;http://x\x1b\\", "Add a page\n"),
            ("Add\x1b(B a\x1bc page\x1b", "Add a page\n"),
            ("Add\0 a\b page\x7f\x9b", "Add a page\n"),
            ("Add \u202ea page\u2066", "Add a page\n"),
            ("Subject\r\nbody\rmore\x0c", "Subject\n\nbody\nmore\n"),
            ("\x1b[0m\0", "cuggino: progress\n"),
            ("Umlauts äöü ✓ 👩‍💻\n\n\tindented", "Umlauts äöü ✓ 👩‍💻\n\nindented\n"),
            ("A\n\nB\n\tindented", "A\n\nB\n\tindented\n"),
        ],
    )
    def test_control_characters_are_dropped(self, text: str, expected: str) -> None:
        """A message cannot move the cursor, hide words or reorder them in `git log`."""
        assert expected == commit_message(text)

    def test_a_commit_without_control_characters(self, project: GitProject) -> None:
        """A message with control characters, even NUL, gives a commit without them."""
        project.write("a.txt")
        commit(project, "Add\0 \x1b[2Ka page\n\nIt is \x1b[8mhidden\x1b[0m.")
        assert "Add a page\n\nIt is hidden.\n" == project.git("log", "-1", "--format=%B")[:-1]

    @given(st.text())
    def test_no_subject_is_too_long(self, text: str) -> None:
        """Any text gives a subject of 1 to 72 characters, an empty line, and the rest."""
        subject, _, body = commit_message(text).partition("\n")
        assert 1 <= len(subject) <= 72
        assert body == "" or body.startswith("\n")

    @pytest.mark.parametrize("cleanup", ["default", "strip", "scissors"])
    def test_the_message_is_stored_as_it_is(self, project: GitProject, cleanup: str) -> None:
        """Lines with `#`, a leading dash and shell characters are stored under any cleanup mode."""
        project.git("config", "commit.cleanup", cleanup)
        project.write("a.txt")
        text = "-m $(touch x) `id` \"q\" 'q' ✓\n\n# not a comment\n# ---- >8 ----\n--amend"
        event = commit(project, text)
        assert (
            CommitPerformed(
                iteration=2,
                commit_hash=project.git("rev-parse", "--short", "HEAD").strip(),
                message=text.splitlines()[0],
            )
            == event
        )
        assert f"{text}\n" == project.message()
        assert not (project.root / "x").exists()

    def test_half_a_character_is_no_error(self, project: GitProject) -> None:
        """A message that no encoding can write is committed with a replacement in its place."""
        project.write("a.txt")
        assert isinstance(commit(project, "half \ud83d"), CommitPerformed)
        assert "half ?\n" == project.message()


class TestWhatGoesIn:
    def test_the_first_commit(self, project: GitProject) -> None:
        """A repository without a commit gets its first one, without specs and workspace."""
        for name in ("a.txt", "deep/er/b.txt", ".specs/s.md", ".cuggino/wip/x.md", ".specs2/s.md"):
            project.write(name)
        repository = GitRepository(project.root, exclude=EXCLUDED)
        assert run(repository.head()) is None
        assert isinstance(commit(project), CommitPerformed)
        assert {"a.txt", "deep/er/b.txt", ".specs2/s.md"} == project.committed()
        assert project.git("rev-parse", "HEAD").strip() == run(repository.head())

    def test_nothing_changed_is_nothing(self, project: GitProject) -> None:
        """Without a change, or with one in the excluded folders alone, nothing is emitted."""
        project.write("a.txt")
        commit(project)
        assert commit(project) is None
        project.write(".specs/new.md")
        project.write(".cuggino/wip/x.md")
        assert commit(project) is None
        assert 1 == project.count()

    def test_nothing_in_an_empty_repository(self, project: GitProject) -> None:
        """Without any file nothing is emitted and no commit is made."""
        assert commit(project) is None
        assert 0 == project.count()

    def test_excluded_folders_may_be_ignored(self, project: GitProject) -> None:
        """Folders that are excluded and in `.gitignore` as well, and other ignored files, stay."""
        project.write(".gitignore", ".cuggino/\n.specs\n*.log\n")
        for name in ("a.txt", "a.log", ".cuggino/lock", ".specs/s.md"):
            project.write(name)
        assert isinstance(commit(project), CommitPerformed)
        assert {".gitignore", "a.txt"} == project.committed()

    def test_what_somebody_staged_in_an_excluded_folder_stays_staged(
        self, project: GitProject
    ) -> None:
        """Staged specs are neither committed nor unstaged; other staged files are committed."""
        project.write("a.txt")
        commit(project)
        project.write(".specs/s.md")
        project.write("staged.txt")
        project.git("add", ".specs/s.md", "staged.txt")
        assert isinstance(commit(project), CommitPerformed)
        assert {"a.txt", "staged.txt"} == project.committed()
        assert "A  .specs/s.md\n" == project.git("status", "--porcelain")
        assert commit(project) is None

    def test_deletion_and_rename(self, project: GitProject) -> None:
        """Removed files are removed, renamed ones renamed, whether staged before or not."""
        for name in ("gone", "gone-staged", "old", "old-staged", "kept"):
            project.write(name, f"{name}\n" * 9)
        commit(project)
        (project.root / "gone").unlink()
        project.git("rm", "--quiet", "gone-staged")
        (project.root / "old").rename(project.root / "new")
        project.git("mv", "old-staged", "new-staged")
        assert isinstance(commit(project), CommitPerformed)
        assert {"kept", "new", "new-staged"} == project.committed()
        assert "" == project.git("status", "--porcelain")

    def test_a_file_a_folder_and_a_link_take_turns(self, project: GitProject) -> None:
        """A file that became a folder, and a folder that became a link, are committed as such."""
        file = project.write("a")
        commit(project)
        file.unlink()
        project.write("a/b")
        assert isinstance(commit(project), CommitPerformed)
        assert {"a/b"} == project.committed()
        shutil.rmtree(file)
        file.symlink_to("nowhere")
        assert isinstance(commit(project), CommitPerformed)
        assert {"a"} == project.committed()
        assert "" == project.git("status", "--porcelain")

    def test_a_new_mode(self, project: GitProject) -> None:
        """A file that became executable is a change."""
        file = project.write("run.sh")
        commit(project)
        file.chmod(0o755)
        assert isinstance(commit(project), CommitPerformed)
        assert project.git("ls-tree", "HEAD").startswith("100755")

    def test_the_end_of_a_merge(self, project: GitProject) -> None:
        """A merge that was resolved is committed as a merge."""
        merging(project)
        project.write("a", "both\n")
        project.git("add", "a")
        assert isinstance(commit(project), CommitPerformed)
        assert 2 == len(project.git("log", "-1", "--format=%P").split())

    def test_a_repository_of_the_environment(
        self, project: GitProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The folder's repository counts, not one that a calling git has named."""
        other = GitProject(tmp_path / "other")
        monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
        monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
        project.write("a")
        assert isinstance(commit(project), CommitPerformed)
        monkeypatch.delenv("GIT_DIR")
        monkeypatch.delenv("GIT_INDEX_FILE")
        assert {"a"} == project.committed()
        assert 0 == other.count()

    def test_an_added_and_removed_file(self, project: GitProject) -> None:
        """A file that was staged and then deleted leaves nothing to commit."""
        project.write("a.txt")
        commit(project)
        file = project.write("b.txt")
        project.git("add", "b.txt")
        file.unlink()
        assert commit(project) is None
        assert {"a.txt"} == project.committed()

    @pytest.mark.parametrize(
        "name",
        [
            "line\nbreak",
            "\nfirst",
            "last\n",
            "späße 家 🙂",
            "qu\"ote's",
            "back\\slash",
            " space ",
            "-dash",
            ":(exclude)x",
            "*",
            "!x",
            "#x",
            os.fsdecode(b"invalid-\xff"),
        ],
    )
    def test_file_names(self, project: GitProject, name: str) -> None:
        """A file of any name is committed, changed and removed again."""
        file = project.root / name
        try:
            file.write_text("1")
        except OSError:
            assert b"\xff" in os.fsencode(name), "only this file system may refuse invalid UTF-8"
            return
        project.write("other")
        assert isinstance(commit(project), CommitPerformed)
        assert {name, "other"} == project.committed()
        file.unlink()
        assert isinstance(commit(project), CommitPerformed)
        assert {"other"} == project.committed()

    def test_many_files(self, project: GitProject) -> None:
        """More names than a command line can hold are one commit."""
        for number in range(3000):
            (project.root / f"{'long-name-' * 10}{number}").touch()
        assert isinstance(commit(project), CommitPerformed)
        assert 3000 == len(project.committed())

    def test_a_subdirectory_commits_only_below_it(self, project: GitProject) -> None:
        """In a subdirectory of a repository, files above or beside it are left alone."""
        for name in ("top.txt", "other/o.txt", "sub/a.txt", "sub/.specs/s.md", "sub/.cuggino/x"):
            project.write(name)
        project.git("add", "top.txt")
        project.git("config", "diff.relative", "true")
        sub = project.root / "sub"
        assert isinstance(commit(project, cwd=sub), CommitPerformed)
        assert {"sub/a.txt"} == project.committed()
        (sub / "a.txt").unlink()
        project.write("sub/b.txt")
        assert isinstance(commit(project, cwd=sub), CommitPerformed)
        assert {"sub/b.txt"} == project.committed()
        assert commit(project, cwd=sub) is None
        assert "A  top.txt" in project.git("status", "--porcelain")

    def test_an_excluded_path_outside_is_no_matter(self, project: GitProject) -> None:
        """Specs outside of the repository are not named to git; `..x` is inside of it."""
        project.write("a.txt")
        project.write("..specs/s.md")
        repository = GitRepository(project.root, exclude=(Path("../docs"), Path("..specs")))
        assert run(repository.commit("work")) is not None
        assert {"a.txt"} == project.committed()

    def test_warnings_of_git_are_no_file_names(self, project: GitProject) -> None:
        """Standard error of git is not part of its answer."""
        project.write(".gitattributes", "!negative text\n")
        project.write("a.txt", "1\r\n2\n")
        project.git("config", "core.autocrlf", "input")
        assert isinstance(commit(project), CommitPerformed)
        assert {".gitattributes", "a.txt"} == project.committed()


class TestCost:
    """A commit costs six git processes, and a search for orphaned ones after those that write."""

    def test_which_commands_are_run(
        self, project: GitProject, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Reading commands need no sweep, as they leave no process behind."""
        commands: list[tuple[str, bool]] = []

        def noted(argv: tuple[str, ...], *, sweep: bool, **options: Any) -> Observable[bytes]:
            commands.append((command_of(argv[1:]), sweep))
            return process_output(argv, sweep=sweep, **options)

        replace_git(monkeypatch, noted)
        for number in range(2):
            project.write("a.txt", f"{number}\n")
            repository = GitRepository(project.root, exclude=EXCLUDED)
            run(commit_to(repository, "Work", iteration=1))
        each = ["ls-files", "status", "add", "diff", "commit", "rev-parse"]
        names = [name for name, _ in commands]
        names.remove("config")  # asked once for the settings
        assert each * 2 == names
        assert {"status", "add", "diff", "commit"} == {name for name, sweep in commands if sweep}
        run(GitRepository(project.root).head())
        assert ("rev-parse", False) == commands[-1]


def test_a_file_moved_out_of_an_excluded_folder(project: GitProject) -> None:
    """Its new place is committed; that it is gone from the old one stays staged."""
    project.write(".specs/a.md", "the same content\n" * 20)
    project.git("add", "--force", ".specs")
    project.git("commit", "--quiet", "--message", "specs")
    project.git("mv", ".specs/a.md", "moved.md")
    assert commit(project) is not None
    assert (
        "A\tmoved.md" == project.git("show", "--no-renames", "--name-status", "--format=").strip()
    )
    assert "D  .specs/a.md" in project.git("status", "--porcelain")


# -- commits in a dirty work tree: what a person has not committed stays out until it changes


@pytest.fixture
def mine(project: GitProject) -> GitProject:
    """A repository in which a person has changed files in every way."""

    def make() -> None:
        for name in ("changed", "gone", "staged", "removed", "same", "sub/deep"):
            project.write(name, "old\n")
        project.git("add", "--all")
        project.git("commit", "--quiet", "--message", "first")
        project.write("changed", "mine\n")
        (project.root / "gone").unlink()
        project.write("staged", "mine\n")
        project.write("added", "mine\n")
        project.git("add", "staged", "added")
        project.git("rm", "--quiet", "removed")
        project.write("untracked", "mine\n")
        project.write("sub/deep", "mine\n")

    make_once("dirty", project.root, make)
    return project


DIRTY = {"changed", "gone", "staged", "added", "removed", "untracked", "sub/deep"}


def look(project: GitProject, folder: str = ".") -> dict[str, str]:
    states = run(GitRepository(project.root / folder).dirty())
    assert states is not None
    return states


def commit_beside(project: GitProject, dirty: dict[str, str], folder: str = ".") -> list[Event]:
    """Commit, and return the events."""
    seen: list[Event] = []
    repository = GitRepository(project.root / folder)
    run(commit_to(repository, "work", iteration=1, dirty=dirty), seen.append)
    return seen


def changes(project: GitProject) -> set[str]:
    """Return what the latest commit has changed."""
    shown = project.git("show", "--format=", "--name-only", "--no-renames", "-z")
    return set(shown.split("\0")) - {""}


def test_dirty_files(mine: GitProject) -> None:
    """All changed files are dirty, staged or not, and the missing ones have an empty state."""
    states = look(mine)
    assert DIRTY == set(states)
    assert {"gone", "removed"} == {name for name, state in states.items() if not state}


def test_they_stay_out(mine: GitProject) -> None:
    """A commit holds what was changed since; a person's files stay as they are, staged ones too."""
    dirty = look(mine)
    before = mine.git("status", "--porcelain")
    mine.write("same", "work\n")
    mine.write("new", "work\n")
    (event,) = commit_beside(mine, dirty)
    assert isinstance(event, CommitPerformed)
    assert {"same", "new"} == changes(mine)
    assert before == mine.git("status", "--porcelain")


def test_without_work_there_is_no_commit(mine: GitProject) -> None:
    """A person's files alone are not committed."""
    assert [] == commit_beside(mine, look(mine))
    assert 1 == mine.count()


@pytest.mark.parametrize("name", sorted(DIRTY))
def test_a_file_that_both_changed(mine: GitProject, name: str) -> None:
    """It is committed, and an event names it first."""
    dirty = look(mine)
    mine.write(name, "both\n")
    mixed, performed = commit_beside(mine, dirty)
    assert isinstance(mixed, DirtyFilesCommitted)
    assert (name,) == mixed.paths
    assert isinstance(performed, CommitPerformed)
    assert {name} == changes(mine)


def test_a_removed_file(mine: GitProject) -> None:
    """A dirty file that was removed since is committed as removed."""
    dirty = look(mine)
    (mine.root / "changed").unlink()
    mixed, _ = commit_beside(mine, dirty)
    assert isinstance(mixed, DirtyFilesCommitted)
    assert "changed" not in mine.committed()


def test_a_reverted_file(mine: GitProject) -> None:
    """Of a dirty file that was reverted there is nothing to commit."""
    dirty = look(mine)
    mine.git("checkout", "--quiet", "changed", "gone")
    assert [] == commit_beside(mine, dirty)


def test_times_do_not_matter(mine: GitProject) -> None:
    """A file that was only touched, or written with the same content, is unchanged."""
    dirty = look(mine)
    os.utime(mine.root / "changed", (1, 1))
    mine.write("untracked", "mine\n")
    assert [] == commit_beside(mine, dirty)


def test_the_executable_bit_matters(mine: GitProject) -> None:
    """Another executable bit is a change."""
    dirty = look(mine)
    (mine.root / "changed").chmod(0o755)
    assert 2 == len(commit_beside(mine, dirty))


def test_links_and_odd_names(mine: GitProject) -> None:
    """Links count with their target, and any name will do."""
    (mine.root / "link").symlink_to("same")
    odd = Path(os.fsdecode(os.fsencode(mine.root) + b"/o\xffd\n*"))
    odd.write_text("mine\n")
    dirty = look(mine)
    assert "o\\xffd\n*" in dirty
    assert [] == commit_beside(mine, dirty)
    (mine.root / "link").unlink()
    (mine.root / "link").symlink_to("changed")
    odd.write_text("both\n")
    mixed, _ = commit_beside(mine, dirty)
    assert isinstance(mixed, DirtyFilesCommitted)
    assert {"link", "o\\xffd\n*"} == set(mixed.paths)


def test_a_project_in_a_folder(mine: GitProject) -> None:
    """Paths are relative to the project, and files beside it do not count."""
    dirty = look(mine, "sub")
    assert {"deep"} == set(dirty)
    mine.write("sub/new", "work\n")
    commit_beside(mine, dirty, "sub")
    assert {"sub/new"} == changes(mine)


def test_thousands_of_staged_files(mine: GitProject) -> None:
    """However many files stay out, git is asked once."""
    for number in range(3000):
        mine.write(f"many/{'x' * 150}{number}", "mine\n")
    mine.git("add", "many")
    dirty = look(mine)
    mine.write("new", "work\n")
    commit_beside(mine, dirty)
    assert {"new"} == changes(mine)


def test_before_the_first_commit(project: GitProject) -> None:
    """Also without any commit yet, a person's files stay out."""
    project.write("mine")
    dirty = look(project)
    project.write("work")
    commit_beside(project, dirty)
    assert {"work"} == project.committed()


def test_without_a_repository(tmp_path: Path, project: GitProject) -> None:
    """Nothing is dirty, and nothing is an ancestor that could be lost."""
    plain = tmp_path / "plain"
    plain.mkdir()
    assert {} == run(GitRepository(plain).dirty())
    assert run(GitRepository(plain).is_ancestor("0" * 40)) is True


def test_ancestors(mine: GitProject) -> None:
    """A commit is lost once the branch is at another one that does not follow it."""
    first = mine.git("rev-parse", "HEAD").strip()
    repository = GitRepository(mine.root)
    assert run(repository.is_ancestor(first)) is True
    mine.git("commit", "--quiet", "--message", "second")
    assert run(repository.is_ancestor(first)) is True
    mine.git("commit", "--quiet", "--amend", "--message", "other")
    assert run(repository.is_ancestor(first)) is True
    mine.git("checkout", "--quiet", "--orphan", "fresh")
    mine.git("commit", "--quiet", "--message", "fresh")
    assert run(repository.is_ancestor(first)) is False
