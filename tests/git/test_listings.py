"""The listings of git are parsed as git prints them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cuggino.git import (
    EACH_REF,
    EXECUTABLE,
    LINK,
    MODULE,
    PLAIN,
    STATUS,
    STATUS_V2,
    UNMERGED,
    changed_files,
    commits_of_refs,
    differences,
    index_files,
    tracked_changes,
    tree_files,
    unmerged_files,
)
from tests.git_project import GitProject, isolate_git

ODD = "a b\n\tü"
"""A name that git quotes without `-z`."""


def fields(project: GitProject, *args: str) -> list[str]:
    return [field for field in project.git(*args).split("\0") if field.strip("\n")]


def commit(project: GitProject) -> str:
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message", "more")
    return project.git("rev-parse", "HEAD").strip()


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitProject:
    """A repository with a file of each kind, and a repository within."""
    isolate_git(monkeypatch, tmp_path / "home")
    project = GitProject(tmp_path / "project")
    for name in ("changed", "gone", "staged", ODD, "run"):
        project.write(name, f"{name}\n")
    (project.root / "run").chmod(0o755)
    (project.root / "link").symlink_to("changed")
    inner = GitProject(project.root / "inner")
    inner.write("file")
    commit(inner)
    commit(project)
    return project


def test_the_status(filled: GitProject) -> None:
    """Each changed file has its state, and is found by it."""
    filled.write("changed", "mine\n")
    (filled.root / "gone").unlink()
    filled.write("staged", "mine\n")
    filled.git("add", "staged")
    filled.write(f"new {ODD}")
    GitProject(filled.root / "nested").write("file")
    found = {one.path: one for one in changed_files(fields(filled, *STATUS))}
    states = {" M": "changed", " D": "gone", "M ": "staged", "??": f"new {ODD}"}
    assert {**{path: state for state, path in states.items()}, "nested/": "??"} == {
        path: one.state for path, one in found.items()
    }
    assert {f"new {ODD}", "nested/"} == {path for path, one in found.items() if one.is_untracked}
    assert ["changed"] == [path for path, one in found.items() if one.is_modified]
    assert ["gone"] == [path for path, one in found.items() if one.is_removed]
    assert {"staged"} == found.keys() - {p for p, one in found.items() if one.is_in_work_tree}


def test_conflicts(filled: GitProject) -> None:
    """All three listings know the files in conflict, from every folder."""
    filled.git("checkout", "--quiet", "-b", "other")
    filled.write("changed", "theirs\n")
    filled.write("below/a", "theirs\n")
    commit(filled)
    filled.git("checkout", "--quiet", "main")
    filled.write("changed", "ours\n")
    filled.write("below/a", "ours\n")
    commit(filled)
    with pytest.raises(Exception, match="merge"):
        filled.git("merge", "--quiet", "other")
    conflicts = ["below/a", "changed"]
    status = changed_files(fields(filled, *STATUS))
    assert [("AA", "below/a"), ("UU", "changed")] == [one for one in status if one.is_unmerged]
    assert conflicts == unmerged_files(fields(filled, *UNMERGED))
    assert conflicts == unmerged_files(fields(filled, "-C", "below", *UNMERGED))
    tracked = tracked_changes(fields(filled, *STATUS_V2, "--branch"))
    assert [(path, True, "N...") for path in conflicts] == tracked
    stages = [(file.path, file.stage) for file in index_files(fields(filled, *UNMERGED))]
    assert [("below/a", "2"), ("below/a", "3")] == stages[:2]


def test_changes_within_a_submodule(filled: GitProject) -> None:
    """Another commit of a submodule can be committed; changed files in it cannot."""
    inner = GitProject(filled.root / "inner")
    filled.write(ODD, "mine\n")
    assert [(ODD, False)] == [
        (one.path, one.is_changed_within) for one in tracked_changes(fields(filled, *STATUS_V2))
    ]
    inner.write("file", "more\n")
    commit(inner)
    found = {one.path: one for one in tracked_changes(fields(filled, *STATUS_V2))}
    assert ("SC..", False) == (found["inner"].submodule, found["inner"].is_changed_within)
    inner.write("file", "even more\n")
    found = {one.path: one for one in tracked_changes(fields(filled, *STATUS_V2))}
    assert ("SCM.", True) == (found["inner"].submodule, found["inner"].is_changed_within)


def test_differences_of_trees(filled: GitProject) -> None:
    """An entry has the modes and blobs of both sides."""
    before = filled.git("rev-parse", "HEAD").strip()
    (filled.root / "gone").unlink()
    filled.write("new")
    (filled.root / "changed").chmod(0o755)
    (filled.root / "link").unlink()
    filled.write("link", "no link\n")
    inner = GitProject(filled.root / "inner")
    inner.write("file", "more\n")
    module = commit(inner)
    after = commit(filled)
    words = ("diff-tree", "-r", "-z", "--no-renames", before, after)
    found = {one.path: one for one in differences(fields(filled, *words))}
    assert {
        "changed": ("M", PLAIN, EXECUTABLE),
        "gone": ("D", PLAIN, "000000"),
        "inner": ("M", MODULE, MODULE),
        "link": ("T", LINK, PLAIN),
        "new": ("A", "000000", PLAIN),
    } == {path: (one.state, one.mode_before, one.mode) for path, one in found.items()}
    assert ["inner"] == [path for path, one in found.items() if one.has_module]
    assert module == found["inner"].blob
    assert filled.git("rev-parse", f"{after}:new").strip() == found["new"].blob
    assert filled.git("rev-parse", f"{before}:gone").strip() == found["gone"].blob_before


def test_files_of_a_tree_and_of_the_index(filled: GitProject) -> None:
    """Both list the same files; tags tell those that git does not look at."""
    in_tree = tree_files(fields(filled, "ls-tree", "-r", "-z", "HEAD"))
    assert in_tree == index_files(fields(filled, "ls-files", "--stage", "-z"))
    modes = {file.path: file.mode for file in in_tree}
    usual = dict.fromkeys(("changed", "gone", "staged", ODD), PLAIN)
    assert {**usual, "run": EXECUTABLE, "link": LINK, "inner": MODULE} == modes
    filled.git("update-index", "--skip-worktree", "gone")
    filled.git("update-index", "--assume-unchanged", "staged")
    tags = {
        file.path: file.tag for file in index_files(fields(filled, "ls-files", "-v", "-s", "-z"))
    }
    assert {"gone": "S", "staged": "h"} == {p: tag for p, tag in tags.items() if tag != "H"}


def test_references(filled: GitProject) -> None:
    """Those of this repository and of another one are listed alike, with any name."""
    head = filled.git("rev-parse", "HEAD").strip()
    filled.git("branch", "a\u2028b")
    filled.git("commit", "--quiet", "--allow-empty", "--message", "more")
    expected = {
        "refs/heads/a\u2028b": head,
        "refs/heads/main": filled.git("rev-parse", "HEAD").strip(),
    }
    assert expected == commits_of_refs(filled.git(*EACH_REF, "refs/heads"))
    assert expected == commits_of_refs(filled.git("ls-remote", "--heads", "."))
    assert {} == commits_of_refs(filled.git(*EACH_REF, "refs/nowhere"))


def test_a_name_that_is_not_text(filled: GitProject) -> None:
    """Bytes outside UTF-8 are kept."""
    name = os.fsdecode(b"\xff\xfe")
    filled.write(name)
    assert [("??", name)] == changed_files(fields(filled, *STATUS))
