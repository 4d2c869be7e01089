"""Fingerprints and commits in repositories of different sizes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from reactivex import concat, empty

from cuggino.edges import run as run_stream
from cuggino.sandbox import protected_for
from cuggino.stages import GitRepository, GitSnapshots, fingerprint_stage, verified
from tests.benchmarks.measuring import Figure, Took, run, took, took_in_turns
from tests.benchmarks.project import Project, project
from tests.benchmarks.stages import STATUS

_IN_FOLDER = 100


def repositories(
    *, sizes: Sequence[int] = (1000, 30_000, 100_000), rounds: int = 5
) -> Iterator[Figure]:
    """Compare fingerprints, snapshots, verification with `git status`, and commits with git's own.

    An agent has changed one file and added another. The first fingerprint of a run, which also
    lists the commit, is not counted, nor is the first snapshot of a project, which reads git's
    index.
    """
    for size in sizes:
        with project() as here:
            _fill(here, size)
            least, taken = took_in_turns(rounds, lambda: _status(here), lambda: _print(here.folder))
            yield _figure("fingerprint", size, taken, least, "git status")
            yield from _snapshots(here, size, rounds)
            yield from _protection(here, size, rounds)
            least, taken = took_in_turns(
                rounds, lambda: _commit_by_git(here), lambda: _commit(here)
            )
            yield _figure("commit", size, taken, least, "git add and git commit")


def _figure(
    what: str, size: int, taken: Took, least: Took, floor_name: str, *, key: str = ""
) -> Figure:
    return Figure(
        key=f"{key or what}.{size}",
        name=f"a {what} of {size:,} files, CPU",
        value=taken.cpu * 1e3,
        unit="ms",
        floor=least.cpu * 1e3,
        floor_name=floor_name,
    )


def _fill(here: Project, size: int) -> None:
    for number in range(size):
        if number % _IN_FOLDER == 0:
            folder = here.folder / f"{number // 10_000}" / f"{number // _IN_FOLDER}"
            folder.mkdir(parents=True)
        (folder / f"{number}.py").write_text(f"value = {number}\n" * 20)
    here.git("add", ".")
    here.git("commit", "-q", "-m", "Files")
    _change(here)


def _change(here: Project) -> None:
    with (here.folder / "0" / "0" / "0.py").open("a") as file:
        file.write("more = True\n")
    (here.folder / "new.py").write_text("new = True\n")


def _status(here: Project) -> Took:
    return run(STATUS, cwd=here.folder, env=here.env)


def _print(folder: Path) -> Took:
    return took(lambda: run_stream(fingerprint_stage(folder, exclude=(), plan=None)))


def _snapshots(here: Project, size: int, rounds: int) -> Iterator[Figure]:
    """Measure snapshots before stages, the one before which has changed files or has not."""
    snapshots = GitSnapshots(here.folder, here.folder / ".cuggino" / "snapshots")
    run_stream(snapshots.take("one", "first"))

    def snapshot() -> Took:
        return took(lambda: run_stream(snapshots.take("one", "stage")))

    def changed() -> Took:
        _change(here)
        return snapshot()

    least, taken, after = took_in_turns(rounds, lambda: _status(here), snapshot, changed)
    yield _figure("snapshot", size, taken, least, "git status")
    yield _figure("snapshot.changed", size, after, least, "git status")


def _protection(here: Project, size: int, rounds: int) -> Iterator[Figure]:
    """Measure the snapshot before a session and its verification.

    Also what verification costs for a role that may not write, where no kernel holds it to that.
    """
    snapshots = GitSnapshots(here.folder, here.folder / ".cuggino" / "snapshots")
    implementing = protected_for("implementing", project=here.folder)
    reviewing = protected_for("reviewing", project=here.folder)

    def protected() -> Took:
        _change(here)
        session = concat(snapshots.take("one", "stage"), empty().pipe(verified(implementing)))
        return took(lambda: run_stream(session))

    def looked() -> Took:
        _change(here)
        return took(lambda: run_stream(empty().pipe(verified(reviewing))))

    least, taken, looks = took_in_turns(rounds, lambda: _status(here), protected, looked)
    yield _figure("snapshot and verification", size, taken, least, "git status", key="protected")
    name = "verification without a kernel view"
    yield _figure(name, size, looks, least, "git status", key="protected.looks")


def _commit_by_git(here: Project) -> Took:
    _change(here)

    def commit() -> None:
        for words in (["add", "."], ["commit", "-q", "-m", "Change"]):
            subprocess.run(["git", *words], cwd=here.folder, env=here.env, check=True)

    return took(commit)


def _commit(here: Project) -> Took:
    _change(here)
    return took(lambda: run_stream(GitRepository(here.folder).commit("Change")))
