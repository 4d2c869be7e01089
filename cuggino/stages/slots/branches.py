"""The branches of items that landed beside the user's, and work that builds on them.

For each such item a symbolic ref names its branch, so that it follows what the user amends or
deletes.
"""

from __future__ import annotations

from collections.abc import Iterable

from cuggino.errors import ProcessError
from cuggino.git import failed
from cuggino.operators import Flow
from cuggino.stages.slots.position import Place, commit_named
from cuggino.stages.slots.refs import BRANCHES, branch_ref


def remember_branch(place: Place, item: str, branch: str) -> Flow[None]:
    """Record the branch on which the item has landed."""
    yield from place.git.must("symbolic-ref", branch_ref(item), f"refs/heads/{branch}")


def forget_merged(place: Place, trunk: str) -> Flow[None]:
    """Forget the branches that are part of the trunk, or gone."""
    folder = place.layout.common / BRANCHES
    names = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    if not names:
        return
    merged = (f"--merged={trunk}", "--format=%(refname)", BRANCHES)
    done = set((yield from place.git.must("for-each-ref", *merged)).text.split())
    for ref in (f"{BRANCHES}/{name}" for name in names):
        if ref in done or not (yield from commit_named(ref, place.git)):
            yield from place.git.must("symbolic-ref", "--delete", ref)


def with_branches(place: Place, trunk: str, items: Iterable[str]) -> Flow[str]:
    """Return a commit with the trunk and the branches of these items.

    Raises:
        ProcessError: they conflict, or git is older than 2.38 and several have to be merged.
    """
    wanted = {trunk: "your branch"}
    for item in items:
        commit = yield from commit_named(branch_ref(item), place.git)
        if commit:
            wanted.setdefault(commit, item)
    if len(wanted) == 1:
        return trunk
    listed = yield from place.git.must("merge-base", "--independent", *wanted)
    kept = set(listed.text.split())
    joined, *others = (commit for commit in wanted if commit in kept)
    names = [wanted[joined]]
    for other in others:
        names.append(wanted[other])
        joined = yield from _merged(place, joined, other, " and ".join(names))
    return joined


def _merged(place: Place, one: str, other: str, names: str) -> Flow[str]:
    """Merge two commits without any work tree."""
    said = yield from place.git.run("merge-tree", "--write-tree", "--name-only", one, other)
    if said.code == 1:
        paths = said.text.partition("\n\n")[0].split("\n")[1:]
        raise ProcessError("git", f"it builds on {names}, which conflict: {', '.join(paths)}")
    if said.code:
        raise failed(("merge-tree",), said.code, said.words)
    words = ("-p", one, "-p", other, "-m", f"Merge {names}")
    return (yield from place.git.must("commit-tree", said.text, *words)).text


def builds_on_branch(place: Place, base: str, trunk: str) -> Flow[bool]:
    """Return whether the base contains the branch of an item that the trunk lacks."""
    words = (f"--merged={base}", f"--no-merged={trunk}", "--count=1", BRANCHES)
    return bool((yield from place.git.must("for-each-ref", *words)).text)
