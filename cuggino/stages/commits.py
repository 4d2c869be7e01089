"""The commits that were made meanwhile, by whomever."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from reactivex import Observable, operators as ops

from cuggino.errors import ProcessError
from cuggino.operators import Flow, ask, emit, flow
from cuggino.sources.git import git_lines

Commits = Callable[[Path, "str | None"], Observable[list[list[str]]]]
"""Gives the commits behind one, as `commits_since`."""

_MOST = 200


def commits_since(cwd: Path, base: str | None) -> Observable[list[list[str]]]:
    """Emit the abbreviated hash and the subject of each commit behind `base`, the oldest first.

    Without a `base` all of them; at most 200, the latest. There are none without a repository, or
    where git fails. Disposal ends the running git.
    """
    return flow(lambda: _commits(cwd, base))


def _commits(cwd: Path, base: str | None) -> Flow[None]:
    said: list[bytes] = []
    what = f"{base}..HEAD" if base else "HEAD"
    words = ["log", "--no-show-signature", f"--max-count={_MOST}", "--format=%h %s", what, "--"]
    try:
        yield from ask(git_lines(*words, cwd=cwd).pipe(ops.do_action(said.append)))
    except ProcessError:
        said.clear()
    lines = [line.decode("utf-8", "replace").partition(" ") for line in reversed(said)]
    yield from emit([[commit, subject] for commit, _, subject in lines if commit])
