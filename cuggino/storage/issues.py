"""What waits for a person: spec issues and findings of the audit, and what was dismissed."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from cuggino.storage.moving import visible_entries

IssueKind = Literal["spec-issue", "tbd"]

_LONGEST_TITLE = 200
_LONGEST_EXCERPT = 1000
_HEADING = """\
# Memory

What was discussed and dismissed. The audit agent reads this and does not raise it again.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """A file that waits for a person's decision."""

    kind: IssueKind
    """`spec-issue` holds the watch up; `tbd` is a finding of the audit."""
    name: str
    path: Path
    title: str
    """The first line that is not blank, without the marks of a heading."""


def read_issues(folder: Path, kind: IssueKind) -> list[Issue]:
    """The issues of one folder by name, which is their order in time."""
    return [
        Issue(kind=kind, name=entry.name, path=folder / entry.name, title=_title(Path(entry.path)))
        for entry in visible_entries(folder)
        if entry.is_file()
    ]


def remember(memory: Path, issue: Issue, reason: str, *, at: datetime) -> None:
    """Add a dated entry to the memory: the title, the reason, the beginning of the text.

    Raises:
        OSError: it could not be written; then the memory is as it was.
    """
    excerpt = ""
    with suppress(OSError):
        excerpt = issue.path.read_text(encoding="utf-8", errors="replace").strip()
    if len(excerpt) > _LONGEST_EXCERPT:
        excerpt = excerpt[:_LONGEST_EXCERPT].rstrip() + " ..."
    quoted = "\n".join(f"> {line}".rstrip() for line in excerpt.splitlines())
    because = " ".join(reason.split())
    entry = f"\n## {at:%Y-%m-%d}: {issue.title}\n\nDismissed: {because}\n\n{quoted}\n"
    with memory.open("a", encoding="utf-8", errors="replace", newline="") as file:
        before = file.tell()
        try:
            file.write(entry if before else _HEADING + entry)
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):
                os.truncate(memory, before)
            raise


def _title(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in iter(lambda: file.readline(4096), ""):
                if title := line.strip().lstrip("#").strip():
                    return title if len(title) <= _LONGEST_TITLE else title[:_LONGEST_TITLE] + "..."
    except OSError as error:
        return f"(cannot be read: {error.strerror or error})"
    return "(empty)"
