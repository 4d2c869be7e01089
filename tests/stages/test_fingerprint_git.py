"""Fingerprints of repositories with all that git has to offer."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from cuggino import run
from cuggino.stages import GitSnapshots
from tests.git_commands import note_git
from tests.git_project import GitProject
from tests.stages.fingerprints import LATER, commit_all, fill, fingerprint


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """All files below the folder with their time and content."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


@pytest.fixture
def filled(project: GitProject) -> GitProject:
    return fill(project)


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The git commands that are run from now on."""
    return note_git(monkeypatch)


class TestCost:
    """A fingerprint costs one `git status`, and what has changed."""

    def test_what_is_known_is_not_asked_again(
        self, filled: GitProject, commands: list[str]
    ) -> None:
        """Changes, commits and reverts are seen by one command."""
        before = fingerprint(filled.root)
        assert "status" in commands
        for _ in range(2):
            commands.clear()
            assert before == fingerprint(filled.root)
            assert ["status"] == commands
        filled.write("a.txt", "x\n")
        filled.write("sub/new.txt", "x\n")
        changed = fingerprint(filled.root)
        commands.clear()
        assert changed == fingerprint(filled.root)
        assert ["status"] == commands

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

    @pytest.mark.parametrize(
        "name",
        [
            "line\nbreak",
            "\nfirst",
            "last\n",
            "return\r",
            "tab\t",
            "späße 家 🙂",
            "qu\"ote's",
            '"',
            "back\\slash",
            "\\n",
            " space ",
            "-dash",
            ":(exclude)x",
            "*",
            os.fsdecode(b"invalid-\xff"),
        ],
    )
    def test_file_names(self, project: GitProject, name: str) -> None:
        """A file of any name counts with its content, committed or not."""
        file = project.root / name
        try:
            file.write_text("1")
        except OSError:
            assert b"\xff" in os.fsencode(name), "only this file system may refuse invalid UTF-8"
            return
        project.write("other")
        before = fingerprint(project.root)
        commit_all(project)
        assert before == fingerprint(project.root)
        file.write_text("2")
        changed = fingerprint(project.root)
        assert before != changed
        commit_all(project)
        assert changed == fingerprint(project.root)

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

    def test_bytes_count_before_filters(self, filled: GitProject) -> None:
        """Files count as they are, whatever git makes of them in a commit."""
        filled.git("config", "core.autocrlf", "input")
        filled.write(".gitattributes", "*.txt text\n")
        filled.write("crlf.txt", "1\r\n2\r\n")
        before = fingerprint(filled.root)
        commit_all(filled)
        assert before == fingerprint(filled.root)
        filled.write("crlf.txt", "1\n2\n")
        assert before != fingerprint(filled.root)

    def test_files_that_git_cannot_hash(self, filled: GitProject) -> None:
        """A filter that fails hides no change, neither of its files nor of the others."""
        filled.git("config", "filter.broken.clean", "false")
        filled.git("config", "filter.broken.required", "true")
        filled.write(".gitattributes", "*.bad filter=broken\n")
        for number in range(12):
            filled.write(f"{number:02}.bad", f"{number}\n")
        filled.write("z.txt")
        states = [fingerprint(filled.root), fingerprint(filled.root)]
        assert states[0] == states[1]
        for name in ("00.bad", "11.bad", "z.txt"):
            filled.write(name, "x\n")
            states.append(fingerprint(filled.root))
        assert 4 == len(set(states))

    def test_unreadable_and_special_files(self, filled: GitProject) -> None:
        """Files without permission and pipes neither block nor fail, and hide nothing else."""
        filled.write("secret").chmod(0)
        (filled.root / "a.txt").unlink()
        os.mkfifo(filled.root / "a.txt")
        before = fingerprint(filled.root)
        assert before == fingerprint(filled.root)
        filled.write("z.txt")
        assert before != fingerprint(filled.root)

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

    def test_a_conflict(self, filled: GitProject) -> None:
        """Within a merge with conflicts the content of the files counts."""
        filled.git("checkout", "--quiet", "-b", "other")
        filled.write("a.txt", "theirs\n")
        commit_all(filled)
        filled.git("checkout", "--quiet", "main")
        filled.write("a.txt", "ours\n")
        commit_all(filled)
        ours = fingerprint(filled.root)
        with pytest.raises(subprocess.CalledProcessError):
            filled.git("merge", "other")
        assert ours != fingerprint(filled.root)
        filled.write("a.txt", "ours\n")
        assert ours == fingerprint(filled.root)

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

    def test_another_hash_function(self, tmp_path: Path, project: GitProject) -> None:
        """A repository with SHA-256 is one like the others."""
        other = tmp_path / "sha256"
        project.git("init", "--quiet", "--object-format=sha256", str(other))
        (other / "a").write_text("a")
        (other / "link").symlink_to("a")
        before = fingerprint(other)
        project.git("add", ".", cwd=other)
        project.git("-c", "user.name=T", "-c", "user.email=t@x", "commit", "-qm", "x", cwd=other)
        assert before == fingerprint(other)

    def test_many_files(self, filled: GitProject) -> None:
        """Thousands of untracked files are read, each of them."""
        for number in range(3000):
            filled.write(f"many/{'long-name-' * 10}{number}", f"{number}\n")
        before = fingerprint(filled.root)
        filled.write(f"many/{'long-name-' * 10}2999", "x\n")
        assert before != fingerprint(filled.root)
