"""Going back to a snapshot: every change of an agent, undone byte for byte, and the undo undone."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cuggino import run
from cuggino.errors import RunNotFound, StorageError
from cuggino.stages import Snapshot, UndoPlan, find_snapshot, undo_stage
from tests.git_project import GitProject, make_once
from tests.stages.trees import plan, snapshots_of, take, tree_of, undo, undo_latest


@pytest.fixture
def filled(project: GitProject) -> GitProject:
    """A repository with a commit, and a person's uncommitted work of every kind."""

    def make() -> None:
        project.write(".gitignore", "*.log\nbuild/\n")
        for name in ("a.txt", "src/b.txt", "src/deep/c.txt", "gone.txt"):
            project.write(name, f"{name}\n")
        project.write("run.sh", "#!/bin/sh\n").chmod(0o755)
        (project.root / "link").symlink_to("a.txt")
        project.git("add", "--all")
        project.git("commit", "--quiet", "--message", "first")
        project.write("a.txt", "dirty\n")
        project.write("src/staged.txt", "staged\n")
        project.git("add", "src/staged.txt")
        project.write("src/new.txt", "untracked\n")
        project.write("tool", "#!/bin/sh\n").chmod(0o755)
        (project.root / "gone.txt").unlink()
        project.write("out.log", "ignored\n")

    make_once("undone", project.root, make)
    return project


def _replace_by_link(project: GitProject) -> None:
    shutil.rmtree(project.root / "src")
    outside = project.root.parent / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "b.txt").write_text("not theirs\n")
    (project.root / "src").symlink_to(outside)


Act = Callable[[GitProject], object]


def _all(*acts: Act) -> Act:
    """Return the acts as one, done in turn."""
    return lambda project: [act(project) for act in acts]


def _wipe(project: GitProject) -> None:
    for entry in project.root.iterdir():
        if entry.is_dir() and entry.name not in (".git", ".cuggino"):
            shutil.rmtree(entry)
        elif not entry.is_dir() and entry.name != "out.log":
            entry.unlink()


def _unlink(name: str) -> Act:
    return lambda project: (project.root / name).unlink()


def _link(name: str, target: str) -> Act:
    return lambda project: (project.root / name).symlink_to(target)


def _write(name: str, text: str = "new\n") -> Act:
    return lambda project: project.write(name, text)


def _git(*words: str) -> Act:
    return lambda project: project.git(*words)


def _mode(name: str, mode: int) -> Act:
    return lambda project: (project.root / name).chmod(mode)


def _rmtree(name: str) -> Act:
    return lambda project: shutil.rmtree(project.root / name)


CHANGES: dict[str, Act] = {
    "nothing": lambda _: None,
    "a reset": _git("reset", "--quiet", "--hard"),
    "a reset and a removed folder": _all(_git("reset", "--quiet", "--hard"), _rmtree("src")),
    "a checkout of everything": _git("checkout", "--quiet", "."),
    "a clean": _git("clean", "--quiet", "-fd"),
    "a stash": _git("stash", "--quiet", "--include-untracked"),
    "a commit": _all(_git("add", "--all"), _git("commit", "--quiet", "--message", "x")),
    "all files gone": _wipe,
    "new files": _all(_write("x/y/z.txt"), _write("other.txt")),
    "another executable bit": _all(_mode("run.sh", 0o644), _mode("a.txt", 0o755)),
    "another link": _all(_unlink("link"), _link("link", "nowhere")),
    "a file for a link": _all(_unlink("link"), _write("link")),
    "a link for a file": _all(_unlink("a.txt"), _link("a.txt", "run.sh")),
    "a folder for a file": _all(_unlink("a.txt"), _write("a.txt/inner")),
    "a file for a folder": _all(_rmtree("src"), _write("src")),
    "a link for a folder": _replace_by_link,
    "a restored file": _write("gone.txt"),
    "an empty folder for a file": _all(
        _unlink("a.txt"), lambda p: (p.root / "a.txt/empty").mkdir(parents=True)
    ),
    "a file that is ignored now": _all(
        _write(".gitignore", "tool\nsrc/\n"), _write("tool"), _rmtree("src"), _write("src/new.txt")
    ),
    "another branch": _all(
        _git("stash", "--quiet", "--include-untracked"),
        _git("checkout", "--quiet", "-b", "other"),
        _git("rm", "--quiet", "-r", "src"),
        _git("commit", "--quiet", "--message", "y"),
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_is_undone_and_done_again(filled: GitProject, change: Act) -> None:
    """An undo restores all files; going back to the state before it restores the change."""
    snapshots = snapshots_of(filled)
    before = tree_of(filled.root)
    taken = take(snapshots)
    change(filled)
    after = tree_of(filled.root)
    refs = filled.git("rev-parse", "HEAD", "main")
    undone = undo(snapshots, taken)
    assert () == undone.failed
    assert before == tree_of(filled.root)
    assert refs == filled.git("rev-parse", "HEAD", "main")
    again = undo_latest(snapshots, "undo") if undone.before else undone
    assert () == again.failed
    # What git ignores in the state to go back to is never removed.
    kept = {path for path, why in again.plan.kept if why == "git ignored it then"}
    assert after == {p: c for p, c in tree_of(filled.root).items() if p not in kept - after.keys()}


def test_nothing_of_the_repository_moves(filled: GitProject) -> None:
    """A snapshot changes neither the index, nor HEAD, nor a branch, nor the stash."""
    index = (filled.root / ".git/index").read_bytes()
    refs = filled.git("for-each-ref")
    status = filled.git("--no-optional-locks", "status", "--porcelain")
    taken = take(snapshots_of(filled))
    assert index == (filled.root / ".git/index").read_bytes()
    assert status == filled.git("--no-optional-locks", "status", "--porcelain")
    assert {*refs.splitlines(), f"{taken.commit} commit\t{taken.ref}"} == {
        *filled.git("for-each-ref").splitlines()
    }
    assert filled.git("rev-parse", "HEAD") == filled.git("rev-parse", f"{taken.ref}^")
    filled.git("fsck", "--strict", "--no-dangling")


def test_line_endings_and_filters_do_not_matter(filled: GitProject) -> None:
    """Files that git would convert come back as they were, also those without a change."""
    filled.git("config", "filter.shout.clean", "tr a-z A-Z")
    filled.git("config", "filter.shout.smudge", "tr A-Z a-z")
    filled.git("config", "core.autocrlf", "true")
    filled.write(
        ".gitattributes", "*.s filter=shout\n*.i ident\n*.u working-tree-encoding=UTF-16\n"
    )
    contents = {
        "mixed.txt": b"one\r\ntwo\nthree\r\n",
        "dos.bat": b"echo\r\n",
        "word.s": b"MiXed\n",
        "id.i": b"$Id: something $\n",
        "wide.u": "wide\n".encode("utf-16"),
        "new.s": b"nEw\n",
        "bytes.bin": bytes(range(256)),
    }
    for name, content in contents.items():
        (filled.root / name).write_bytes(content)
        os.utime(filled.root / name, (1, 1))  # so that git does not look at it again
    filled.git("add", ".gitattributes", "*.txt", "*.bat", "word.s", "*.i", "*.u")
    filled.git("commit", "--quiet", "--message", "converted")
    snapshots = snapshots_of(filled)
    taken = take(snapshots)
    before = tree_of(filled.root)
    for name in contents:
        (filled.root / name).unlink()
    filled.git("reset", "--quiet", "--hard")
    assert before != tree_of(filled.root)
    undo(snapshots, taken)
    assert before == tree_of(filled.root)
    assert contents == {name: (filled.root / name).read_bytes() for name in contents}


def test_a_pointer_stays_a_pointer(filled: GitProject) -> None:
    """No filter runs: a pointer to a large file is restored as such, and nothing is fetched."""
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"
    filled.write(".gitattributes", "*.iso filter=lfs\n")
    (filled.root / "big.iso").write_bytes(pointer)
    filled.git("add", "--all")
    filled.git("commit", "--quiet", "--message", "pointer")
    filled.git("config", "filter.lfs.required", "true")
    for name in ("clean", "smudge", "process"):
        filled.git("config", f"filter.lfs.{name}", f"touch {filled.root.parent}/ran; false")
    os.utime(filled.root / "big.iso", (1, 1))
    snapshots = snapshots_of(filled)
    taken = take(snapshots)
    (filled.root / "big.iso").unlink()
    undo(snapshots, taken)
    assert pointer == (filled.root / "big.iso").read_bytes()
    assert not (filled.root.parent / "ran").exists()


def test_no_program_of_the_project_runs(filled: GitProject) -> None:
    """Neither hooks, nor a file system monitor, nor a filter are started."""
    ran = filled.root.parent / "ran"
    script = filled.root.parent / "script"
    script.write_text(f"#!/bin/sh\necho $0 >>{ran}\n")
    script.chmod(0o755)
    for name in ("post-index-change", "reference-transaction", "post-checkout", "pre-auto-gc"):
        shutil.copy(script, filled.root / ".git/hooks" / name)
    filled.git("config", "core.fsmonitor", str(script))
    ran.unlink(missing_ok=True)
    snapshots = snapshots_of(filled)
    taken = take(snapshots)
    filled.write("more.txt")
    undo(snapshots, taken)
    assert not ran.exists()


def test_names_that_only_bytes_can_spell(filled: GitProject) -> None:
    """Names with spaces, quotes, newlines and bytes outside UTF-8 are restored."""
    names = [
        b"a b",
        b'q"uote',
        b"new\nline",
        b"tab\t",
        b"b\xff",
        "ü".encode(),
        b"-dash",
        b":(top)x",
    ]
    for name in names:
        Path(os.fsdecode(os.fsencode(filled.root) + b"/" + name)).write_bytes(name)
    snapshots = snapshots_of(filled)
    taken = take(snapshots)
    before = tree_of(filled.root)
    filled.git("clean", "--quiet", "-fd")
    undo(snapshots, taken)
    assert before == tree_of(filled.root)


def test_unusual_permissions_come_back(filled: GitProject) -> None:
    """A private file that was removed is private again."""
    secret = filled.write("secret.env", "KEY\n")
    secret.chmod(0o600)
    snapshots = snapshots_of(filled)
    taken = take(snapshots)
    secret.unlink()
    undo(snapshots, taken)
    assert 0o600 == secret.stat().st_mode & 0o777


def test_the_permissions_of_a_changed_file_stay(filled: GitProject) -> None:
    """Of a file that is there only the executable bit is restored."""
    snapshots = snapshots_of(filled)
    taken = take(snapshots)
    filled.write("a.txt", "changed\n").chmod(0o700)
    undo(snapshots, taken)
    assert 0o600 == (filled.root / "a.txt").stat().st_mode & 0o777


def test_a_planted_temporary_file_is_not_followed(filled: GitProject, tmp_path: Path) -> None:
    """A link that an agent left in the place of the temporary file does not lead a file out."""
    outside = tmp_path / "outside"
    outside.write_text("unrelated")
    (filled.root / ".git/info/exclude").write_text("*.tmp\n")
    snapshots = snapshots_of(filled)
    taken = take(snapshots)
    filled.write("a.txt", "changed\n")
    (filled.root / f".cuggino-{os.getpid()}.tmp").symlink_to(outside)
    undo(snapshots, taken)
    assert ("unrelated", False) == (outside.read_text(), (filled.root / "a.txt").is_symlink())


class TestWhatStays:
    def test_ignored_files(self, filled: GitProject) -> None:
        """Ignored files are not covered: neither removed nor restored."""
        snapshots = snapshots_of(filled)
        taken = take(snapshots)
        filled.write("out.log", "newer\n")
        filled.write("build/x")
        planned = plan(snapshots, taken)
        assert () == planned.changes

    def test_files_that_were_ignored_then(self, filled: GitProject) -> None:
        """Removing `.gitignore` does not turn ignored files into files to remove."""
        filled.write("build/heavy", "built\n")
        snapshots = snapshots_of(filled)
        taken = take(snapshots)
        (filled.root / ".gitignore").unlink()
        undone = undo(snapshots, taken)
        assert {"out.log", "build/heavy"} == {path for path, _ in undone.plan.kept}
        assert "built\n" == (filled.root / "build/heavy").read_text()
        assert (filled.root / ".gitignore").exists()

    def test_the_folder_of_cuggino(self, filled: GitProject) -> None:
        """Backlog items, findings and journals of a run are not undone."""
        snapshots = snapshots_of(filled)
        taken = take(snapshots)
        filled.write(".cuggino/backlog/new.md")
        assert () == plan(snapshots, taken).changes

    def test_large_files(self, filled: GitProject) -> None:
        """A file above the limit is named, and never replaced or removed."""
        filled.write("video", "x" * 2000)
        snapshots = snapshots_of(filled, max_file=1000)
        taken = take(snapshots)
        assert {"video": "0 MB"} == taken.left_out
        filled.write("a.txt", "y" * 2000)
        undone = undo(snapshots, taken)
        assert ["video"] == [path for path, _ in undone.plan.kept if path != "a.txt"]
        assert "x" * 2000 == (filled.root / "video").read_text()
        kept = dict(undone.plan.kept)
        assert "cannot be kept" in kept["a.txt"]
        assert "y" * 2000 == (filled.root / "a.txt").read_text()

    def test_repositories_within(self, filled: GitProject) -> None:
        """A repository in the repository is left out, with or without a commit."""
        for name in ("inner", "bare-ish"):
            GitProject(filled.root / name).write("x")
        inner = filled.root / "inner"
        subprocess.run(["git", "add", "."], cwd=inner, check=True)
        subprocess.run(["git", "commit", "-qm", "x"], cwd=inner, check=True)
        snapshots = snapshots_of(filled)
        taken = take(snapshots)
        assert {"inner/", "bare-ish/"} == set(taken.left_out)
        filled.write("inner/x", "changed\n")
        filled.write("a.txt", "changed\n")
        undo(snapshots, taken)
        assert "changed\n" == (inner / "x").read_text()
        assert "dirty\n" == (filled.root / "a.txt").read_text()

    def test_an_ignored_link_in_the_way(self, filled: GitProject, tmp_path: Path) -> None:
        """Nothing is written through a link that git ignores; the file is reported as failed."""
        snapshots = snapshots_of(filled)
        taken = take(snapshots)
        shutil.rmtree(filled.root / "src")
        (tmp_path / "elsewhere").mkdir()
        (filled.root / "src").symlink_to(tmp_path / "elsewhere")
        filled.write(".git/info/exclude", "/src\n")
        undone = undo(snapshots, taken)
        assert {"src/b.txt", "src/new.txt", "src/staged.txt", "src/deep/c.txt"} == {
            path for path, _ in undone.failed
        }
        assert [] == list((tmp_path / "elsewhere").iterdir())


def test_the_plan_tells_what_would_change(filled: GitProject) -> None:
    """A plan lists files to create, change and remove, and changes nothing."""
    snapshots = snapshots_of(filled)
    taken = take(snapshots)
    shutil.rmtree(filled.root / "src/deep")
    filled.write("a.txt", "x\n")
    filled.write("more.txt")
    before = tree_of(filled.root)
    planned = plan(snapshots, taken)
    assert {("create", "src/deep/c.txt"), ("change", "a.txt"), ("remove", "more.txt")} == {
        (change.kind, change.path) for change in planned.changes
    }
    assert before == tree_of(filled.root)


def test_a_change_after_the_plan_stops_the_undo(filled: GitProject) -> None:
    """An undo changes only what its plan has shown."""
    snapshots = snapshots_of(filled)
    taken = take(snapshots)
    filled.write("more.txt")
    planned = plan(snapshots, taken)
    filled.write("a.txt", "just now\n")
    with pytest.raises(StorageError, match="have changed since"):
        run(undo_stage(snapshots, planned))
    assert "just now\n" == (filled.root / "a.txt").read_text()


def test_lost_content_changes_nothing(filled: GitProject) -> None:
    """When git has lost the content of a file, nothing is changed."""
    snapshots = snapshots_of(filled)
    taken = take(snapshots)
    filled.write("a.txt", "changed\n")
    filled.write("more.txt")
    blob = filled.git("rev-parse", f"{taken.ref}:a.txt").strip()
    (filled.root / ".git/objects" / blob[:2] / blob[2:]).unlink()
    planned = plan(snapshots, taken)
    before = tree_of(filled.root)
    with pytest.raises(StorageError, match=r"lost the content of a\.txt"):
        run(undo_stage(snapshots, planned))
    assert before == tree_of(filled.root)


def test_a_project_in_a_folder_of_the_repository(filled: GitProject) -> None:
    """The whole repository is restored, as git's own commands change all of it."""
    from cuggino.stages import GitSnapshots

    filled.write(".gitattributes", "/src/deep/*.txt text\n")
    (filled.root / "src/deep/c.txt").write_bytes(b"dos\r\nunix\n")
    filled.git("add", "--all")
    filled.git("commit", "--quiet", "--message", "converted")
    snapshots = GitSnapshots(filled.root / "src", filled.root / "src/.cuggino/snapshots")
    before = tree_of(filled.root)
    taken = take(snapshots)
    filled.git("reset", "--quiet", "--hard")
    shutil.rmtree(filled.root / "src/deep")
    undo(snapshots, taken)
    assert before == tree_of(filled.root)


def test_a_linked_worktree(filled: GitProject, tmp_path: Path) -> None:
    """A worktree has its own files, and shares the references."""
    filled.git("worktree", "add", "--quiet", str(tmp_path / "tree"))
    other = tmp_path / "tree"
    (other / "fresh").write_text("fresh\n")
    from cuggino.stages import GitSnapshots

    snapshots = GitSnapshots(other, other / ".cuggino/snapshots")
    before = tree_of(other)
    taken = take(snapshots)
    shutil.rmtree(other / "src")
    (other / "fresh").unlink()
    undo(snapshots, taken)
    assert before == tree_of(other)
    assert taken.commit == filled.git("rev-parse", taken.ref).strip()


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(n, marks=pytest.mark.real_agent) for n in range(3, 12))]
)
def test_random_changes(filled: GitProject, seed: int) -> None:
    """After any changes between snapshots, each of them can be restored, in any order."""
    chance = random.Random(seed)
    snapshots = snapshots_of(filled)
    states: list[tuple[Snapshot, dict[str, tuple[str, bytes]]]] = []
    for number in range(5):
        for _ in range(4):
            chance.choice(ACTS)(filled, chance)
        states.append((take(snapshots, f"implementing-{number}"), _covered(filled)))
    for taken, state in chance.sample(states, len(states)):
        undone = undo(snapshots, taken)
        assert () == undone.failed
        assert state == _covered(filled)


def _covered(project: GitProject) -> dict[str, tuple[str, bytes]]:
    return {p: c for p, c in tree_of(project.root).items() if not p.endswith(".log")}


def _any_file(project: GitProject, chance: random.Random) -> Path:
    files = sorted(tree_of(project.root)) or ["a.txt"]
    return project.root / chance.choice(files)


def _rewrite(project: GitProject, chance: random.Random) -> None:
    file = _any_file(project, chance)
    if not file.is_symlink():
        file.write_bytes(chance.randbytes(chance.choice((0, 1, 5000))))


def _create(project: GitProject, chance: random.Random) -> None:
    place = project.root / chance.choice(("n1", "n2", "src", "x/y", "tool/deep", "a.txt/b"))
    parents = [p for p in place.parents if p.is_relative_to(project.root)]
    if not place.is_dir() and not any(p.is_file() or p.is_symlink() for p in parents):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        place.write_bytes(chance.randbytes(10))


def _relink(project: GitProject, chance: random.Random) -> None:
    file = _any_file(project, chance)
    file.unlink()
    file.symlink_to(chance.choice(("a.txt", "src", "nowhere")))


ACTS: tuple[Callable[[GitProject, random.Random], object], ...] = (
    _rewrite,
    _rewrite,
    _create,
    _create,
    _relink,
    lambda p, c: _any_file(p, c).unlink(),
    lambda p, c: _any_file(p, c).chmod(c.choice((0o644, 0o755))),
    lambda p, _: p.git("add", "--all"),
    lambda p, _: p.git("commit", "--quiet", "--allow-empty", "--all", "--message", "x"),
    lambda p, _: p.git("reset", "--quiet", "--hard"),
    lambda p, _: p.git("rm", "--quiet", "-r", "--cached", "--ignore-unmatch", "src"),
    lambda p, _: shutil.rmtree(p.root / "src", ignore_errors=True),
)


def _listed(*names: str) -> list[Snapshot]:
    from datetime import UTC, datetime

    at = datetime(2026, 1, 1, tzinfo=UTC)
    found = []
    for name in names:
        group, _, stage = name.partition("/")
        found.append(Snapshot(run=group, stage=stage, ref=name, commit="", at=at))
    return found


class TestNames:
    LISTED = _listed("r1/a-1", "r1/a-2", "undo/x", "r22/a-1", "r22/b-1", "undo/y")

    @pytest.mark.parametrize(
        ("name", "found"),
        [
            (None, "r22/a-1"),
            ("r1", "r1/a-1"),
            ("r22", "r22/a-1"),
            ("b-1", "r22/b-1"),
            ("r1/a-2", "r1/a-2"),
            ("undo", "undo/y"),
            ("undo/x", "undo/x"),
        ],
    )
    def test_a_snapshot_is_found(self, name: str | None, found: str) -> None:
        """A run stands for its start, a stage for that of the latest run."""
        assert found == find_snapshot(self.LISTED, name).name

    @pytest.mark.parametrize("name", ["r", "r/a-1", "b-2", "r3", "", "r1/b-1"])
    def test_others_are_refused(self, name: str) -> None:
        """An unknown name and one of several runs are errors with advice."""
        with pytest.raises(RunNotFound) as error:
            find_snapshot(self.LISTED, name)
        assert error.value.hint

    def test_without_any(self) -> None:
        """Without snapshots there is nothing to find."""
        with pytest.raises(RunNotFound, match="there are no snapshots"):
            find_snapshot([])


def test_an_empty_plan_changes_nothing(filled: GitProject) -> None:
    """Without a difference not even a snapshot is taken."""
    snapshots = snapshots_of(filled)
    taken = take(snapshots)
    undone = run(undo_stage(snapshots, UndoPlan(taken, ())))
    assert undone is not None
    assert undone.before is None
    assert [taken] == run(snapshots.all())
