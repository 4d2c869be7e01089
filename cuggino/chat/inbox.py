"""The questions that wait for a person, and what their answers do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from reactivex import Observable

from cuggino.domain import APPROVE, REJECT, limited, options_of
from cuggino.errors import StorageError
from cuggino.folders import folder_changes, watch_file_count
from cuggino.storage import Workspace, answer_issue, read_start

SETTLE = 1.0
"""Seconds without a change before the questions are listed again."""
_LONGEST_QUESTION = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Something that a person decides."""

    key: str
    title: str
    text: str
    options: tuple[str, ...] = ()
    """The labels of its buttons, such as `Approve` and `Reject`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The decision of a person."""

    text: str
    """The pressed option, or words of their own; untrusted."""
    source: str
    """Who has answered, and by which service."""
    option: int | None = None
    """The number of the pressed option, from 0; None for words."""


class Inbox(Protocol):
    """A place where questions wait."""

    def questions(self) -> Observable[tuple[Question, ...]]:
        """Emit all open questions, now and whenever they have changed."""

    def settle(self, key: str, answer: Answer, *, at: datetime) -> None:
        """Settle a question.

        Raises:
            CugginoError: the answer cannot be taken, or the question is gone; the person is told.
        """


class IssueInbox:
    """The spec issues of a workspace; an answer does what `cuggino issues answer` does."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        specs: Path,
        changes: Callable[[Path], Observable[object]] = folder_changes,
        only_awaited: bool = False,
    ) -> None:
        self._workspace = workspace
        self._specs = specs
        self._changes = changes
        self._only_awaited = only_awaited
        """Leave out what a run has ended with: nobody waits for its answer."""

    def questions(self) -> Observable[tuple[Question, ...]]:
        """Watch the folder of spec issues."""
        folder = self._workspace.spec_issues
        return watch_file_count(
            folder, settle=SETTLE, changes=self._changes, count=lambda _: self._open()
        )

    def settle(self, key: str, answer: Answer, *, at: datetime) -> None:
        """Add the answer to the decisions of the specifications, and archive the issue."""
        issue = self._workspace.issue(key)
        text = limited(answer.text)
        if not issue.is_approval:
            text = f"{text}\n\n({answer.source})"
        answer_issue(self._workspace, issue, text, specs=self._specs, at=at)

    def _open(self) -> tuple[Question, ...]:
        found: list[Question] = []
        for issue in self._workspace.issues():
            if issue.kind == "spec-issue" and (issue.is_awaited or not self._only_awaited):
                try:
                    text = read_start(issue.path, _LONGEST_QUESTION)
                except StorageError:
                    text = issue.title
                options = (APPROVE, REJECT) if issue.is_approval else options_of(text)
                found.append(
                    Question(key=issue.name, title=issue.title, text=text, options=options)
                )
        return tuple(found)
