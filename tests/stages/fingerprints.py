"""Helpers for tests of fingerprints."""

from __future__ import annotations

from pathlib import Path

from cuggino import run
from cuggino.stages.fingerprint import DIGITS, fingerprint_stage
from tests.git_project import EXCLUDED, GitProject, make_once

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
