"""The work that a replaced agent has left, for its successor."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from reactivex import Observable

from cuggino.errors import ProcessError
from cuggino.git import STATUS, Git, changed_files
from cuggino.operators import Flow, emit, flow
from cuggino.sandbox import Views

_LONGEST_WORDS = 4_000
_LONGEST_DIFF = 20_000
"""Maximum characters of each in a prompt."""
_MOST_NEW = 100
"""Maximum number of new files that are listed."""
_DIFF = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--text", "--relative", "HEAD")


def work_left(cwd: Path, *, views: Views | None = None) -> Observable[str]:
    """Emit the uncommitted changes below `cwd`: a diff, and the names of new files.

    "" without any, without a repository, or when git fails. The attributes of the project do not
    hide a file.
    """
    return flow(lambda: _work_left(cwd, views))


def _work_left(cwd: Path, views: Views | None) -> Flow[None]:
    parts: list[str] = []
    folder = cwd.resolve()
    if any((place / ".git").exists() for place in (folder, *folder.parents)):
        git = Git(cwd=cwd, views=views)
        with suppress(ProcessError):
            diff = yield from git.must(*_DIFF, "--", ".")
            parts.append(diff.output.decode("utf-8", "replace").strip())
        with suppress(ProcessError):
            listed = yield from git.must(*STATUS, "--untracked-files=all", "--", ".")
            new = [change.path for change in changed_files(listed.fields) if change.is_untracked]
            names = [f"new file: {os.fsencode(path).decode('utf-8', 'replace')}" for path in new]
            parts.append("\n".join(names[:_MOST_NEW]))
    yield from emit("\n\n".join(filter(None, parts)))


def handover(words: str, changes: str) -> str:
    """Return the section of a prompt on the previous agent: its last message and its work."""
    sections = [
        "Another agent worked on this before you and was stopped. Check what it found and left "
        "before you go on; none of it has been reviewed."
    ]
    if words := words.strip():
        quoted = re.sub(r"^", "> ", words[-_LONGEST_WORDS:], flags=re.MULTILINE)
        sections.append(f"Its last words:\n\n{quoted}")
    if changes := changes.strip():
        cut = changes[:_LONGEST_DIFF]
        more = "\n\n(More changes follow; see `git diff`.)" if len(cut) < len(changes) else ""
        longest = max((len(run) for run in re.findall("`+", cut)), default=0)
        fence = "`" * max(3, longest + 1)
        sections.append(f"What is not committed now:\n\n{fence}diff\n{cut}\n{fence}{more}")
    return "\n\n".join(sections)
