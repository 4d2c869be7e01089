"""Parsing the output of `git log --numstat`."""

from __future__ import annotations

from collections.abc import Iterable

from cuggino.report.model import FileChange

COMMIT_MARK = "\x01"
"""The prefix of a commit's hash; no line of a change starts with it."""

NUMSTAT = (
    "log",
    "--no-walk=unsorted",
    "--stdin",
    "--numstat",
    f"--format={COMMIT_MARK}%H",
    "--no-show-signature",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
)
"""The arguments for git, which reads the hashes on standard input, one per line."""


def parse_numstat(lines: Iterable[str]) -> dict[str, tuple[FileChange, ...]]:
    """Return the changed files by full hash, in the order of the lines; ignore other lines."""
    commits: dict[str, list[FileChange]] = {}
    present: list[FileChange] = []
    for line in lines:
        if line.startswith(COMMIT_MARK):
            present = commits.setdefault(line.removeprefix(COMMIT_MARK).strip(), [])
            continue
        added, _, rest = line.partition("\t")
        deleted, tab, path = rest.partition("\t")
        if tab and path and _is_count(added) and _is_count(deleted):
            present.append(FileChange(path, _count(added), _count(deleted)))
    return {commit: tuple(changes) for commit, changes in commits.items()}


def _is_count(text: str) -> bool:
    return text == "-" or (text.isascii() and text.isdecimal())


def _count(text: str) -> int | None:
    return None if text == "-" else int(text)
