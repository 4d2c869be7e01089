"""The listings of git, parsed by pure functions.

Files are parsed from the fields that `-z` separates (`Said.fields`). No entry may be a rename, so
commands that detect them need `--no-renames`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

PLAIN = "100644"
EXECUTABLE = "100755"
LINK = "120000"
MODULE = "160000"
"""Modes of files, symbolic links and submodules, in git's digits."""

STATUS = ("status", "--porcelain", "-z", "--no-renames")
"""Lists changed files, for `changed_files`."""
STATUS_V2 = ("status", "--porcelain=v2", "-z", "--no-renames", "--untracked-files=no")
"""Lists changed files that are tracked, for `tracked_changes`."""
UNMERGED = ("ls-files", "--unmerged", "--full-name", "-z", ":/")
"""Lists the files in conflict, for `unmerged_files`; reads no file of the work tree."""
EACH_REF = ("for-each-ref", "--format=%(objectname)%09%(refname)")
"""Lists references, for `commits_of_refs`."""

_UNMERGED = frozenset({"DD", "AU", "UD", "UA", "DU", "AA", "UU"})


class Changed(NamedTuple):
    """A file that `git status` lists."""

    state: str
    """Two letters: the change between HEAD and the index, and that to the work tree."""
    path: str
    """From the top of the repository; a repository that git does not track ends with a slash."""

    @property
    def is_untracked(self) -> bool:
        """True if the index does not have it."""
        return self.state == "??"

    @property
    def is_unmerged(self) -> bool:
        return self.state in _UNMERGED

    @property
    def is_in_work_tree(self) -> bool:
        """True if the file differs from the index."""
        return self.state[1] != " "

    @property
    def is_modified(self) -> bool:
        """True if the work tree has another version than the index."""
        return self.state[1] == "M"

    @property
    def is_removed(self) -> bool:
        """True if the index has it, and the work tree does not."""
        return self.state[1] == "D"


class TrackedChange(NamedTuple):
    """A tracked file that `git status --porcelain=v2` lists."""

    path: str
    is_unmerged: bool
    submodule: str
    """`S` and a letter or a dot for each: another commit, changed files, untracked files; `N...`
    if it is a file."""

    @property
    def is_changed_within(self) -> bool:
        """True if it is a submodule with changes that no commit outside it can hold."""
        return self.submodule[:1] == "S" and self.submodule[2:] != ".."


class Difference(NamedTuple):
    """A file that differs between two trees."""

    path: str
    state: str
    """`A` for an added file, `D` for a removed one, otherwise another letter."""
    mode_before: str
    mode: str
    blob_before: str
    blob: str

    @property
    def has_module(self) -> bool:
        """True if it is or was a submodule."""
        return MODULE in (self.mode_before, self.mode)


class Listed(NamedTuple):
    """A file in a tree or in the index."""

    path: str
    mode: str
    blob: str
    stage: str = "0"
    """In the index: 0, or the side of a conflict."""
    tag: str = ""
    """In the index, with `-t` or `-v`: a letter for its state, such as `S` if git skips it."""


def changed_files(fields: Iterable[str]) -> list[Changed]:
    """Parse the output of `STATUS`."""
    return [Changed(field[:2], field[3:]) for field in fields]


def tracked_changes(fields: Iterable[str]) -> list[TrackedChange]:
    """Parse the output of `STATUS_V2`; headers, as of `--branch`, are left out."""
    found = []
    for field in fields:
        # Fields before the path: 8 of a changed file, 10 of an unmerged one.
        if field.startswith(("1 ", "u ")):
            is_unmerged = field.startswith("u ")
            words = field.split(" ", 10 if is_unmerged else 8)
            found.append(TrackedChange(words[-1], is_unmerged, words[2]))
    return found


def differences(fields: Sequence[str]) -> list[Difference]:
    """Parse the output of `git diff-tree -r -z` between two trees."""
    found = []
    for words, path in zip(fields[::2], fields[1::2], strict=True):
        mode_before, mode, blob_before, blob, state = words.removeprefix(":").split(" ")
        found.append(Difference(path, state, mode_before, mode, blob_before, blob))
    return found


def tree_files(fields: Iterable[str]) -> list[Listed]:
    """Parse the output of `git ls-tree -r -z`."""
    found = []
    for field in fields:
        words, _, path = field.partition("\t")
        mode, _kind, blob = words.split(" ")
        found.append(Listed(path, mode, blob))
    return found


def index_files(fields: Iterable[str]) -> list[Listed]:
    """Parse the output of `git ls-files --stage -z`, also with `-t` or `-v`."""
    found = []
    for field in fields:
        words, _, path = field.partition("\t")
        *tag, mode, blob, stage = words.split(" ")
        found.append(Listed(path, mode, blob, stage, "".join(tag)))
    return found


def commits_of_refs(text: str) -> dict[str, str]:
    """Parse the output of `EACH_REF` or `git ls-remote`: return the commit of each reference."""
    pairs = (line.partition("\t") for line in text.split("\n"))
    return {name: commit for commit, _, name in pairs if name}


def unmerged_files(fields: Iterable[str]) -> list[str]:
    """Parse the output of `UNMERGED`: return the path of each file in conflict once."""
    return list(dict.fromkeys(file.path for file in index_files(fields)))
