"""The decisions that wait for a person in a workspace: spec issues, parked items, findings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cuggino import domain
from cuggino.errors import StorageError
from cuggino.report.cutting import cut
from cuggino.report.model import Decision, RunReport
from cuggino.runs import short_ids
from cuggino.storage import Backlog, Workspace, read_start, time_of

_LONGEST: Final = 8_000


def decisions_of(folder: Path, watch: RunReport, runs: Sequence[RunReport]) -> list[Decision]:
    """Return the decisions that wait for a person: spec issues, parked items, then findings."""
    workspace = Workspace(folder)
    found = workspace.issues()
    short = short_ids(issue.path.stem for issue in found)
    issues = [
        Decision(
            kind="spec issue" if issue.kind == "spec-issue" else "finding",
            title=issue.title,
            text=cut(
                without_title(text_or_problem(issue.path, 4 * _LONGEST), issue.title), _LONGEST
            ),
            path=_relative(issue.path, folder),
            item=_item_of_issue(issue.name, runs),
            command=f"cuggino issues {_VERBS[issue.kind]} {short[issue.path.stem]}",
            is_new=_began(issue.name) >= watch.start,
        )
        for issue in found
    ]
    parked_here = {item.name for item in watch.watched if item.state == "parked"}
    parked = [
        Decision(
            kind="parked",
            title=domain.title_of(text_or_problem(workspace.parked / name, 4 * _LONGEST)) or name,
            text=cut(reason, _LONGEST),
            path=_relative(workspace.parked / name, folder),
            item=name if name in parked_here else "",
            command=f"cuggino backlog retry {name}",
            is_new=name in parked_here,
        )
        for name, reason in Backlog(workspace).parked().items()
    ]
    blocking = [one for one in issues if one.kind == "spec issue"]
    rest = [one for one in issues if one.kind == "finding"]
    return [one for group in (blocking, parked, rest) for one in _new_first(group)]


_VERBS = {"spec-issue": "answer", "tbd": "show"}


def _new_first(decisions: Sequence[Decision]) -> list[Decision]:
    return sorted(decisions, key=lambda one: not one.is_new)


def without_title(text: str, title: str) -> str:
    """Return the text of an issue without its first line, if that is the title."""
    first, _, rest = text.strip().partition("\n")
    return rest.strip() if first.strip().lstrip("#").strip() == title else text.strip()


def _relative(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)


def text_or_problem(path: Path, most: int) -> str:
    """Return the first `most` characters of a file, or why it cannot be read."""
    try:
        return read_start(path, most)
    except StorageError as error:
        return f"({error.message})"


def _item_of_issue(name: str, runs: Sequence[RunReport]) -> str:
    """Return the item whose run stored an issue."""
    return next(
        (domain.item_name(run.item) for run in runs if any(name in f.text for f in run.findings)),
        "",
    )


def _began(name: str) -> datetime:
    """Return the time in the name of an issue; the distant past for another name."""
    return time_of(name.removesuffix(".md")) or datetime.min.replace(tzinfo=UTC)
