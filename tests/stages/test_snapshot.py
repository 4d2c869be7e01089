"""Snapshots in repositories of every kind, their pruning, and what they cannot hold."""

from __future__ import annotations

import io
import itertools
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from reactivex import Observable, operators as ops

from cuggino import run
from cuggino.events import SnapshotFailed, SnapshotTaken, dump_event, parse_event
from cuggino.git import work_tree
from cuggino.processes import process_output
from cuggino.stages import GitSnapshots, NoSnapshots
from tests.git_commands import note_git
from tests.git_project import GitProject, make_once
from tests.stages.trees import snapshots_of, take, tree_of, undo

SOON = timedelta(hours=1)


@pytest.fixture
def filled(project: GitProject) -> GitProject:
    """A repository with a commit."""

    def make() -> None:
        project.write(".gitignore", "*.log\n")
        project.write("a.txt", "a\n")
        project.write("src/b.txt", "b\n")
        project.git("add", "--all")
        project.git("commit", "--quiet", "--message", "first")

    make_once("snapshots", project.root, make)
    return project


def _files(project: GitProject, ref: str) -> set[str]:
    return set(project.git("ls-tree", "-rz", "--name-only", ref).split("\0")) - {""}


class TestWhatItHolds:
    def test_tracked_and_untracked_files(self, filled: GitProject) -> None:
        """Everything but ignored files and the program's own."""
        filled.write("new.txt")
        filled.write("x.log")
        taken = take(snapshots_of(filled))
        assert {".gitignore", "a.txt", "src/b.txt", "new.txt"} == _files(filled, taken.ref)
        assert ("one", "implementing-1") == (taken.run, taken.stage)
        assert "cuggino: before implementing-1 of one" in filled.git("log", "-1", taken.ref)

    def test_before_the_first_commit(self, project: GitProject) -> None:
        """A repository without a commit has snapshots without a parent."""
        project.write("a.txt")
        snapshots = snapshots_of(project)
        taken = take(snapshots)
        assert {"a.txt"} == _files(project, taken.ref)
        (project.root / "a.txt").unlink()
        undo(snapshots, taken)
        assert (project.root / "a.txt").exists()

    def test_ignored_files_that_git_tracks(self, filled: GitProject) -> None:
        """A file that was added by force is held, also one that was added later."""
        filled.write("early.log")
        filled.git("add", "--force", "early.log")
        snapshots = snapshots_of(filled)
        assert "early.log" in _files(filled, take(snapshots).ref)
        filled.write("late.log")
        filled.git("add", "--force", "late.log")
        assert {"early.log", "late.log"} < _files(filled, take(snapshots, "implementing-2").ref)

    def test_files_that_git_shall_not_look_at(self, filled: GitProject) -> None:
        """Changes of a file that is assumed to be unchanged are held."""
        filled.git("update-index", "--assume-unchanged", "a.txt")
        filled.git("update-index", "--skip-worktree", "src/b.txt")
        filled.write("a.txt", "local\n")
        filled.write("src/b.txt", "local\n")
        snapshots = snapshots_of(filled)
        taken = take(snapshots)
        filled.write("a.txt", "lost\n")
        filled.write("src/b.txt", "lost\n")
        undo(snapshots, taken)
        assert "local\n" == (filled.root / "a.txt").read_text()
        assert "local\n" == (filled.root / "src/b.txt").read_text()

    def test_a_change_in_the_same_instant(self, filled: GitProject) -> None:
        """A change of equal size and time since the index was written is noticed."""
        times = (filled.root / "a.txt").stat()
        index = filled.root / ".git/index"
        filled.write("a.txt", "z\n")
        os.utime(filled.root / "a.txt", ns=(times.st_atime_ns, times.st_mtime_ns))
        os.utime(index, ns=(times.st_atime_ns, times.st_mtime_ns))
        taken = take(snapshots_of(filled))
        assert "z\n" == filled.git("show", f"{taken.ref}:a.txt")

    def test_conflicts(self, filled: GitProject) -> None:
        """Files with conflict markers are held as they are."""
        filled.git("checkout", "--quiet", "-b", "other")
        filled.write("a.txt", "theirs\n")
        filled.git("commit", "--quiet", "--all", "--message", "theirs")
        filled.git("checkout", "--quiet", "main")
        filled.write("a.txt", "ours\n")
        filled.git("commit", "--quiet", "--all", "--message", "ours")
        with pytest.raises(subprocess.CalledProcessError):
            filled.git("merge", "other")
        before = tree_of(filled.root)
        snapshots = snapshots_of(filled)
        taken = take(snapshots)
        filled.git("merge", "--abort")
        undo(snapshots, taken)
        assert before == tree_of(filled.root)


class TestOddRepositories:
    @pytest.mark.parametrize(
        "settings",
        [
            ("core.splitIndex", "true"),
            ("core.untrackedCache", "true"),
            ("index.version", "4"),
            ("feature.manyFiles", "true"),
            ("core.fileMode", "false"),
            ("core.sharedRepository", "group"),
        ],
    )
    def test_settings_of_the_index(self, filled: GitProject, settings: tuple[str, str]) -> None:
        """However git keeps its index, the files are held."""
        filled.git("config", *settings)
        filled.write("c.txt")
        filled.git("add", "c.txt")
        filled.git("status")
        snapshots = snapshots_of(filled)
        taken = take(snapshots)
        filled.git("reset", "--quiet", "--hard")
        undo(snapshots, taken)
        assert (filled.root / "c.txt").exists()
        filled.git("status")

    def test_sha256(self, tmp_path: Path, project: GitProject) -> None:
        """A repository with longer hashes."""
        root = tmp_path / "longer"
        subprocess.run(["git", "init", "-q", "--object-format=sha256", root], check=True)
        longer = GitProject(root)
        longer.write("a.txt")
        longer.git("add", "--all")
        longer.git("commit", "--quiet", "--message", "first")
        longer.write("b.txt")
        taken = take(snapshots_of(longer))
        assert 64 == len(taken.commit)
        assert {"a.txt", "b.txt"} == _files(longer, taken.ref)
        longer.git("fsck", "--strict")

    def test_sparse_checkout(self, filled: GitProject) -> None:
        """Files that are not checked out are neither held nor written."""
        filled.git("sparse-checkout", "set", "--no-cone", "/a.txt")
        assert not (filled.root / "src").exists()
        snapshots = snapshots_of(filled)
        taken = take(snapshots)
        filled.write("a.txt", "x\n")
        undo(snapshots, taken)
        assert not (filled.root / "src").exists()
        assert "a\n" == (filled.root / "a.txt").read_text()

    def test_a_submodule(self, filled: GitProject, tmp_path: Path) -> None:
        """A submodule is left alone, and does not disturb."""
        other = GitProject(tmp_path / "other")
        other.write("x")
        other.git("add", "--all")
        other.git("commit", "--quiet", "--message", "x")
        add = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add")
        filled.git(*add, str(other.root), "sub")
        filled.git("commit", "--quiet", "--message", "sub")
        snapshots = snapshots_of(filled)
        taken = take(snapshots)
        filled.write("sub/x", "changed\n")
        filled.write("a.txt", "changed\n")
        undo(snapshots, taken)
        assert "changed\n" == (filled.root / "sub/x").read_text()
        assert "a\n" == (filled.root / "a.txt").read_text()


class TestLaterSnapshots:
    def test_one_after_the_other(self, filled: GitProject) -> None:
        """Each holds the files of its time; a second one of a stage gets a number."""
        snapshots = snapshots_of(filled)
        first = take(snapshots)
        filled.write("a.txt", "second\n")
        second = take(snapshots)
        assert f"{first.ref}-2" == second.ref
        assert "a\n" == filled.git("show", f"{first.ref}:a.txt")
        assert "second\n" == filled.git("show", f"{second.ref}:a.txt")

    @pytest.mark.parametrize("left", ["index.lock", "state.json", "index", "HEAD", "config"])
    def test_whatever_a_killed_process_leaves(self, filled: GitProject, left: str) -> None:
        """Broken or missing files of the private index are recreated."""
        snapshots = snapshots_of(filled)
        take(snapshots)
        folder = filled.root / ".cuggino/snapshots"
        filled.write("a.txt", "second\n")
        (folder / left).write_text("broken")
        assert "second\n" == filled.git("show", f"{take(snapshots).ref}:a.txt")
        (folder / left).unlink(missing_ok=True)
        filled.write("a.txt", "third\n")
        assert "third\n" == filled.git("show", f"{take(snapshots).ref}:a.txt")

    def test_after_all_snapshots_are_gone(self, filled: GitProject) -> None:
        """When git has collected everything, the next snapshot is whole."""
        filled.write("new.txt", "new\n")
        snapshots = snapshots_of(filled)
        first = take(snapshots)
        filled.git("update-ref", "-d", first.ref)
        filled.git("gc", "--quiet", "--prune=now")
        second = take(snapshots, "implementing-2")
        filled.git("fsck", "--strict", "--connectivity-only")
        assert "new\n" == filled.git("show", f"{second.ref}:new.txt")

    def test_packed_references(self, filled: GitProject) -> None:
        """References that git has packed are listed and pruned."""
        snapshots = snapshots_of(filled)
        take(snapshots)
        filled.git("pack-refs", "--all")
        filled.write("a.txt", "x\n")
        taken = take(snapshots, "implementing-2")
        assert filled.git("rev-parse", "HEAD") == filled.git("rev-parse", f"{taken.ref}^")
        assert 1 == run(snapshots.prune(datetime.now(UTC) + SOON))
        assert [taken] == run(snapshots.all())


class TestPruning:
    def test_old_ones_go(self, filled: GitProject) -> None:
        """Older ones are removed; those of runs to keep, and the latest of all, stay."""
        snapshots = snapshots_of(filled)
        for name in ("one", "two", "three"):
            take(snapshots, name=name)
        assert 0 == run(snapshots.prune(datetime.now(UTC) - SOON))
        assert 1 == run(
            snapshots.prune(datetime.now(UTC) + SOON, is_needed=lambda name: name == "one")
        )
        left = run(snapshots.all())
        assert left is not None
        assert 2 == len(left)
        assert "one" in {one.run for one in left}

    def test_without_a_repository(self, tmp_path: Path) -> None:
        """There is nothing to prune."""
        assert 0 == run(GitSnapshots(tmp_path, tmp_path / "own").prune(datetime.now(UTC)))
        assert 0 == run(NoSnapshots().prune(datetime.now(UTC)))


class TestWithoutASnapshot:
    def test_no_repository(self, project: GitProject, tmp_path: Path) -> None:
        """Nothing is emitted and nothing is written."""
        plain = tmp_path / "plain"
        plain.mkdir()
        seen: list[object] = []
        run(GitSnapshots(plain, plain / "own").take("one", "a-1"), seen.append)
        run(NoSnapshots().take("one", "a-1"), seen.append)
        assert [] == seen
        assert [] == list(plain.iterdir())

    def test_a_bare_repository(self, project: GitProject, tmp_path: Path) -> None:
        """A repository without a work tree has no snapshots."""
        bare = tmp_path / "bare"
        subprocess.run(["git", "init", "-q", "--bare", bare / ".git"], check=True)
        seen: list[object] = []
        run(GitSnapshots(bare, bare / "own").take("one", "a-1"), seen.append)
        assert [] == seen

    def test_a_failure_is_an_event(self, filled: GitProject) -> None:
        """A snapshot that fails is reported, and is not an error."""
        (filled.root / ".git/config").write_text("[broken")
        failed = run(snapshots_of(filled).take("one", "a-1"))
        assert isinstance(failed, SnapshotFailed)
        assert "config" in failed.message

    def test_a_folder_that_cannot_be_written(self, filled: GitProject) -> None:
        """A private index that cannot be written is reported."""
        (filled.root / "taken").write_text("a file")
        failed = run(GitSnapshots(filled.root, filled.root / "taken/own").take("one", "a-1"))
        assert isinstance(failed, SnapshotFailed)

    def test_git_that_takes_too_long(self, filled: GitProject) -> None:
        """A snapshot has an end."""
        own = filled.root / ".cuggino/snapshots"
        failed = run(GitSnapshots(filled.root, own, timeout=0).take("one", "a-1"))
        assert isinstance(failed, SnapshotFailed)
        assert "longer than 0 s" in failed.message

    def test_a_name_that_is_no_reference(self, filled: GitProject) -> None:
        """A stage cannot leave its folder."""
        for name in ("../up", "a b", "", "x/..", "1..2", "v1.", "uv.lock"):
            with pytest.raises(ValueError, match="name of a snapshot"):
                run(snapshots_of(filled).take(name, "a-1"))
            with pytest.raises(ValueError, match="name of a snapshot"):
                run(snapshots_of(filled).take("a-1", name))


class TestLeftOut:
    def test_it_is_told_once(self, filled: GitProject) -> None:
        """A file that is left out is named in the first event and in every snapshot."""
        filled.write("video", "x" * 2_000_000)
        snapshots = snapshots_of(filled, max_file=1_000_000)
        first, second = (run(snapshots.take("one", f"a-{n}")) for n in (1, 2))
        assert isinstance(first, SnapshotTaken)
        assert isinstance(second, SnapshotTaken)
        assert (("video", "2 MB"),) == first.left_out
        assert () == second.left_out
        listed = run(snapshots.all())
        assert listed is not None
        assert [{"video": "2 MB"}] * 2 == [one.left_out for one in listed]

    def test_a_name_in_bytes(self, filled: GitProject) -> None:
        """A name outside UTF-8 is shown as far as it can be."""
        Path(os.fsdecode(os.fsencode(filled.root) + b"/b\xff")).write_bytes(b"x" * 2000)
        taken = run(snapshots_of(filled, max_file=1000).take("one", "a-1"))
        assert isinstance(taken, SnapshotTaken)
        assert (("b\ufffd", "0 MB"),) == taken.left_out
        assert taken == parse_event(dump_event(taken))

    def test_a_file_that_has_grown(self, filled: GitProject) -> None:
        """The earlier content of a file that is too large by now is not taken for it."""
        snapshots = snapshots_of(filled, max_file=1000)
        take(snapshots)
        filled.write("a.txt", "x" * 2000)
        grown = take(snapshots, "implementing-2")
        assert "a.txt" not in _files(filled, grown.ref)
        filled.write("a.txt", "small\n")
        small = take(snapshots, "implementing-3")
        assert "small\n" == filled.git("show", f"{small.ref}:a.txt")

    @pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
    def test_unreadable_files(self, filled: GitProject) -> None:
        """A file that cannot be read is named."""
        filled.write("secret").chmod(0)
        assert {"secret": "unreadable"} == take(snapshots_of(filled)).left_out

    def test_special_files(self, filled: GitProject) -> None:
        """A pipe does not count as a file."""
        os.mkfifo(filled.root / "pipe")
        (filled.root / "a.txt").unlink()
        os.mkfifo(filled.root / "a.txt")
        assert {".gitignore", "src/b.txt"} == _files(filled, take(snapshots_of(filled)).ref)


def test_a_moved_project(filled: GitProject, tmp_path: Path) -> None:
    """The private index of a project that was moved or copied still serves."""
    snapshots = snapshots_of(filled)
    take(snapshots)
    shutil.copytree(filled.root, tmp_path / "copy", symlinks=True)
    copy = GitProject(tmp_path / "copy")
    copy.write("a.txt", "there\n")
    taken = take(snapshots_of(copy), "implementing-2")
    assert "there\n" == copy.git("show", f"{taken.ref}:a.txt")


class Killed(Exception):
    """The process ended here."""


@contextmanager
def _killed_at(instant: int) -> Iterator[None]:
    """Raise before or after one of the acts that change the disk."""
    left = instant

    def pass_instant(opened: Any = None) -> None:
        nonlocal left
        left -= 1
        if left == -1:
            if type(opened) is int:  # not the bool of `_create`, which is no descriptor
                os.close(opened)
            elif isinstance(opened, io.IOBase):
                opened.close()
            raise Killed

    def act(does: Callable[..., Any]) -> Callable[..., Any]:
        def acted(*args: Any, **options: Any) -> Any:
            pass_instant()
            done = does(*args, **options)
            if isinstance(done, Observable):
                return done.pipe(ops.do_action(on_completed=pass_instant))
            pass_instant(done)
            return done

        return acted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cuggino.git.program.process_output", act(process_output))
        for name in ("write_atomic", "_write", "_create"):
            patch.setattr(work_tree, name, act(getattr(work_tree, name)))
        patch.setattr(Path, "open", act(Path.open))
        patch.setattr(os, "open", act(os.open))
        yield


@pytest.mark.real_agent
@pytest.mark.parametrize("few", [0, 32])
def test_a_kill_at_any_instant(
    filled: GitProject, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The snapshot after a killed one holds the files as they are, and git still works."""
    monkeypatch.setattr(work_tree, "_FEW_FILES", few)
    take(snapshots_of(filled))
    for instant in itertools.count():
        filled.write("a.txt", f"{instant}\n")
        filled.write(f"new-{instant}.txt", "new\n").chmod(0o700)
        (filled.root / f"new-{instant - 1}.txt").unlink(missing_ok=True)
        with suppress(Killed), _killed_at(instant):
            ended = take(snapshots_of(filled), f"killed-{instant}")
            assert f"{instant}\n" == filled.git("show", f"{ended.ref}:a.txt")
            break
        taken = take(snapshots_of(filled), f"after-{instant}")
        held = {".gitignore", "a.txt", "src/b.txt", f"new-{instant}.txt"}
        assert held == _files(filled, taken.ref)
        assert f"{instant}\n" == filled.git("show", f"{taken.ref}:a.txt")
        assert {f"new-{instant}.txt": "700"} == taken.modes
    filled.git("fsck", "--strict")
    assert instant > 20


# -- snapshots of a few changes, which are stored without git


@pytest.fixture
def nested(project: GitProject) -> GitProject:
    """A repository with a commit."""
    project.write(".gitignore", "*.log\n")
    for name in ("a.txt", "src/b.txt", "src/deep/c.txt", "src-x", "src0/d.txt", "other/e.txt"):
        project.write(name, name)
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message", "first")
    return project


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The git commands of snapshots that are run from now on."""
    return note_git(monkeypatch)


def test_it_costs_one_process(nested: GitProject, commands: list[str]) -> None:
    """One `git status` finds the changes; they are stored without another process."""
    snapshots = snapshots_of(nested)
    nested.write("src/b.txt", "first")
    take(snapshots)
    commands.clear()
    nested.write("src/b.txt", "second")
    nested.write("src/new.txt", "new")
    taken = take(snapshots)
    assert ["status", "for-each-ref"] == commands
    nested.git("add", "src/new.txt")
    take(snapshots)
    take(snapshots)
    rest = ["status", "ls-files", "for-each-ref", "status", "for-each-ref"]
    assert ["status", "for-each-ref", *rest] == commands
    (nested.root / "src/b.txt").unlink()
    undo(snapshots, taken)
    assert "second" == (nested.root / "src/b.txt").read_text()


def test_many_changes_are_stored_by_git(
    nested: GitProject, commands: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above a number or a size git stores them, and only later changes are left."""
    monkeypatch.setattr(work_tree, "_FEW_FILES", 3)
    monkeypatch.setattr(work_tree, "_FEW_BYTES", 100)
    snapshots = snapshots_of(nested)
    nested.write("src/b.txt", "first")
    take(snapshots)
    for count in range(4):
        nested.write(f"src/{count}.txt")
    commands.clear()
    take(snapshots)
    assert ["status", "update-index", "write-tree", "for-each-ref"] == commands
    nested.write("src/b.txt", "x" * 101)
    take(snapshots)
    assert ["status", "update-index", "write-tree", "for-each-ref"] == commands[4:]
    nested.write("src/b.txt", "second")
    assert "second" == nested.git("show", f"{take(snapshots).ref}:src/b.txt")
    assert ["status", "for-each-ref"] == commands[8:]


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(n, marks=pytest.mark.real_agent) for n in range(2, 6))]
)
def test_the_same_tree_as_of_git(
    nested: GitProject, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """After any changes to files, folders and links, the tree is the one that git stores."""
    random = Random(seed)
    ours = snapshots_of(nested)
    gits = GitSnapshots(nested.root, nested.root / ".cuggino/snapshots-2")
    take(ours, name="ours")
    for number in range(12):
        for _ in range(random.randint(1, 4)):
            _change(nested.root, random)
        before = take(ours, f"s-{number}", "ours")
        with monkeypatch.context() as patch:
            patch.setattr(work_tree, "_FEW_FILES", -1)
            expected = take(gits, f"s-{number}", "gits")
        trees = nested.git("rev-parse", f"{before.ref}^{{tree}}", f"{expected.ref}^{{tree}}")
        assert 1 == len(set(trees.split())), trees
    nested.git("fsck", "--strict", "--no-dangling")
    now = tree_of(nested.root)
    for _ in range(5):
        _change(nested.root, random)
    undo(ours, before)
    assert now == tree_of(nested.root)


_NAMES = ("a", "a.txt", "src", "src-x", "src0", "b.txt", "deep", "sp ace", "ä", "new\nline")


def _change(root: Path, random: Random) -> None:
    """Write, link, remove or replace something."""
    path = root.joinpath(*random.choices(_NAMES, k=random.randint(1, 3)))
    for place in (*reversed(path.relative_to(root).parents[:-1]), path.relative_to(root)):
        here = root / place
        if here.is_symlink() or (here.exists() and (here == path or not here.is_dir())):
            shutil.rmtree(here) if here.is_dir() and not here.is_symlink() else here.unlink()
    act = random.randrange(6)
    if act:
        path.parent.mkdir(parents=True, exist_ok=True)
    if act == 1:
        path.symlink_to(random.choice(_NAMES))
    elif act > 1:
        path.write_bytes(os.urandom(random.randint(0, 40)))
        path.chmod(0o755 if act == 2 else 0o644)


def test_packed_trees(nested: GitProject, commands: list[str]) -> None:
    """A tree that git has packed is left to git; the ones after it are not."""
    take(snapshots_of(nested))
    nested.git("gc", "--quiet", "--prune=now")
    snapshots = snapshots_of(nested)
    commands.clear()
    for text, stored_by_git in (("first", True), ("second", False)):
        nested.write("src/deep/c.txt", text)
        assert text == nested.git("show", f"{take(snapshots).ref}:src/deep/c.txt")
        assert stored_by_git == ("write-tree" in commands)
        commands.clear()
