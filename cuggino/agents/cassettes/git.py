"""git around a recorded session: the files that it does not ignore, commits that an agent makes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from cuggino.agents.cassettes.cassette import CommitMade, FileState
from cuggino.errors import CassetteError

MOST_COMMITS = 100
"""Commits of one call of a tool that are recorded; of more, the last ones."""

_LIMIT_S = 60
_KEPT = ("GIT_CONFIG", "GIT_CEILING", "GIT_AUTHOR", "GIT_COMMITTER")


def listed_files(project: Path) -> list[str] | None:
    """The files below the project that git tracks or does not ignore; None without a repository."""
    said = _git(project, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return None if said is None else _texts(said)


def head(project: Path) -> str | None:
    """The hash of the present commit; None when there is none."""
    said = _git(project, "rev-parse", "--quiet", "--verify", "HEAD^{commit}")
    return None if said is None else said.decode().strip()


def commits_since(
    project: Path, before: str | None, now: str, *, state: Callable[[bytes, bool], FileState]
) -> list[CommitMade]:
    """What was committed between the two, the oldest first, with the files of each commit.

    A merge counts as one commit. Where history was rewritten, it is what was committed since the
    last common commit. `state` makes a file's state of its content and whether it is executable.
    """
    base = before and _text(_git(project, "merge-base", before, now))
    span = f"{base}..{now}" if base else now
    most = f"--max-count={MOST_COMMITS}"
    listed = _git(project, "rev-list", "--first-parent", most, span)
    return [_commit(project, name, state) for name in reversed(_text(listed).split())]


def commit_again(project: Path, commit: CommitMade, paths: list[str]) -> None:
    """Commit these paths, as they are now, in the name of the recorded author.

    Raises:
        CassetteError: git could not.
    """
    names = {"NAME": commit.author or "recorded", "EMAIL": commit.email or "recorded@invalid"}
    env = {f"GIT_{who}_{k}": v for who in ("AUTHOR", "COMMITTER") for k, v in names.items()}
    words = ("--no-verify", "--no-gpg-sign", "--allow-empty", "--quiet", "-F", "-")
    given = "\0".join(paths).encode("utf-8", "surrogateescape")
    ok: bytes | None = b""
    if paths:
        from_stdin = ("--pathspec-from-file=-", "--pathspec-file-nul")
        ok = _git(project, "--literal-pathspecs", "add", "-A", "-f", *from_stdin, stdin=given)
    message = commit.message.encode("utf-8", "replace")
    if ok is not None:
        # Hooks have done their part when it was recorded.
        commit_words = ("-c", "core.hooksPath=/dev/null", "commit", "--cleanup=verbatim", *words)
        ok = _git(project, *commit_words, stdin=message, env=env)
    if ok is None:
        subject = commit.message.strip().partition("\n")[0]
        raise CassetteError(
            f"git could not repeat the recorded commit “{subject}”",
            hint="see what `git status` says in the project",
        )


def _commit(project: Path, name: str, state: Callable[[bytes, bool], FileState]) -> CommitMade:
    told = _git(project, "log", "-1", "--format=%an%x00%ae%x00%B", name) or b"\0\0"
    author, email, message = told.decode("utf-8", "replace").removesuffix("\n").split("\0", 2)
    files: dict[str, FileState] = {}
    first = ("diff-tree", "-r", "-z", "--no-commit-id", "--no-renames", "--relative")
    parent = _git(project, "rev-parse", "--quiet", "--verify", f"{name}^1")
    compared = (f"{name}^1", name) if parent is not None else ("--root", name)
    fields = _texts(_git(project, *first, *compared) or b"")
    for about, path in zip(fields[::2], fields[1::2], strict=False):
        _, mode, _, blob, _ = about.split(" ")
        if mode == "000000":
            files[path] = FileState(gone=True)
            continue
        data = _git(project, "cat-file", "blob", blob)
        if data is None:
            continue  # another repository within this one
        if mode == "120000":
            files[path] = FileState(link=os.fsdecode(data))
        else:
            files[path] = state(data, mode == "100755")
    return CommitMade(message=message, author=author, email=email, files=files)


def _git(
    project: Path,
    *args: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
) -> bytes | None:
    """What git prints; None when it fails, or is not there."""
    whole = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith(_KEPT)
    }
    whole |= {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", **(env or {})}
    try:
        done = subprocess.run(
            ["git", "-c", "core.quotePath=false", *args],
            cwd=project,
            env=whole,
            input=stdin,
            capture_output=True,
            timeout=_LIMIT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def _text(said: bytes | None) -> str:
    return (said or b"").decode().strip()


def _texts(said: bytes) -> list[str]:
    return [os.fsdecode(part) for part in said.split(b"\0") if part]
