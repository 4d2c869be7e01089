"""The diffs of commits, from the output of one `git log`."""

from __future__ import annotations

from typing import Final

from cuggino.report.cutting import Cut
from cuggino.report.model import CommitDiff, FileChange

COMMIT_MARK: Final = "\x01"
"""The prefix of a commit's hash; no line of a change starts with it."""

DIFF: Final = (
    *("log", "--no-walk=unsorted", "--stdin", "--numstat", "--patch", "--unified=2"),
    *(f"--format={COMMIT_MARK}%H", "--no-show-signature", "--no-ext-diff", "--no-textconv"),
    *("--no-color", "--diff-merges=first-parent", "--no-prefix"),
)
"""The arguments for git, which reads the hashes on standard input, one per line."""

MOST: Final = 40_000
"""The characters that are kept of a diff: three quarters of its head, and its tail."""

_LONGEST_LINE = 1_000
_TAIL = MOST // 4


class DiffParser:
    """A parser of git's output into changes by full hash; other lines are ignored."""

    def __init__(self) -> None:
        self._files: dict[str, list[FileChange]] = {}
        self._patches: dict[str, _Patch] = {}
        self._present = ""
        self._in_patch = False

    def add(self, line: str) -> None:
        if line.startswith(COMMIT_MARK):
            self._present = line.removeprefix(COMMIT_MARK).strip()
            self._files.setdefault(self._present, [])
            self._in_patch = False
        elif not self._present:
            return
        elif self._in_patch or line.startswith("diff --"):
            self._in_patch = True
            self._patches.setdefault(self._present, _Patch()).add(line)
        else:
            self._count(line)

    def _count(self, line: str) -> None:
        added, _, rest = line.partition("\t")
        deleted, tab, path = rest.partition("\t")
        if tab and path and _is_count(added) and _is_count(deleted):
            self._files[self._present].append(FileChange(path, _count(added), _count(deleted)))

    def result(self) -> dict[str, CommitDiff]:
        return {
            commit: CommitDiff(tuple(files), self._patches.get(commit, _Patch()).result())
            for commit, files in self._files.items()
        }


class _Patch:
    """The head and tail of a patch of any length."""

    def __init__(self) -> None:
        self._head: list[str] = []
        self._size = 0
        self._tail: list[str] = []
        self._tail_size = 0
        self._left_out = 0

    def add(self, line: str) -> None:
        if line.startswith("index "):
            return
        if len(line) > _LONGEST_LINE:
            line = f"{line[:_LONGEST_LINE]} …"
        size = len(line) + 1
        if not self._tail and self._size + size <= MOST - _TAIL:
            self._head.append(line)
            self._size += size
            return
        self._tail.append(line)
        self._tail_size += size
        if self._tail_size > 4 * _TAIL:
            self._trim()

    def _trim(self) -> None:
        while self._tail_size > _TAIL and len(self._tail) > 1:
            size = len(self._tail.pop(0)) + 1
            self._tail_size -= size
            self._left_out += size

    def result(self) -> Cut:
        if self._left_out or self._tail_size > _TAIL:
            self._trim()
        if self._left_out:
            return Cut("\n".join(self._head), self._left_out, "\n".join(self._tail))
        return Cut("\n".join([*self._head, *self._tail]))


def _is_count(text: str) -> bool:
    return text == "-" or (text.isascii() and text.isdecimal())


def _count(text: str) -> int | None:
    return None if text == "-" else int(text)
