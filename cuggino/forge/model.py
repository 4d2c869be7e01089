"""The model of a forge: issues, comments and pull requests as values, and the calls to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from reactivex import Observable

from cuggino.config import ForgeKind

JobState = Literal["pending", "passed", "failed", "skipped"]

CheckState = Literal["pending", "passed", "failed", "none"]
"""The combined state of a commit's jobs; `none` if it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """An open or closed issue, as it was when it was listed."""

    number: int
    title: str
    body: str
    url: str
    author: str
    is_trusted: bool
    """True if its text is trusted: its author is, or an authorized person labeled it."""
    is_open: bool = True
    labels: tuple[str, ...] = ()
    edited_by: str = ""
    """The person who last edited title or body after its author wrote it; empty without edits."""
    edit_is_trusted: bool = True
    """True if that person's text is trusted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment on an issue or a pull request."""

    id: str
    body: str
    author: str
    is_mine: bool
    """True if it was written with this machine's login, by cuggino or by its user."""
    is_trusted: bool
    """True if its text is trusted, including any edit by someone else."""
    at: datetime
    """The time it was written."""
    edited_at: datetime | None = None
    """The time of its last edit; None if that is unknown, or it was never edited."""
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job or a status of a commit."""

    id: str
    name: str
    state: JobState
    url: str = ""


def ci_state(answer: Iterable[Job]) -> CheckState:
    """Return the combined state of the jobs of a commit; a failed optional job counts, too."""
    states = {job.state for job in answer}
    if "failed" in states:
        return "failed"
    if "pending" in states:
        return "pending"
    return "passed" if states else "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A person's remark on a pull request: a review, or a comment on a line."""

    id: str
    author: str
    is_mine: bool
    is_trusted: bool
    body: str
    at: datetime
    asks_for_changes: bool = False
    """A review that requests changes, or an open discussion that must be resolved."""
    path: str = ""
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """A pull request, or a merge request of GitLab."""

    number: int
    url: str
    state: Literal["open", "merged", "closed"]
    branch: str
    target: str
    head: str
    """The commit at the head of its branch, as the forge knows it."""
    body: str = ""
    merged_as: str = ""
    """The commit that merged it."""
    is_draft: bool = False
    is_queued: bool = False
    """True if the forge merges it automatically, once its rules allow it."""
    conflicts: bool | None = None
    """True if it conflicts with its target; None while the forge does not know."""
    jobs: tuple[Job, ...] = ()
    """The jobs of its head."""
    remarks: tuple[Remark, ...] = ()
    """In chronological order."""

    @property
    def checks(self) -> CheckState:
        """Return the combined state of all jobs."""
        return ci_state(self.jobs)


class Forge(Protocol):
    """One repository of a forge. Each call is cold, emits its result, and completes.

    Errors of all: `ForgeLimited`, `ForgeUnreachable` and `ForgeLoginMissing`, which are transient;
    `ForgeRefused` (not found, not allowed, invalid), which is permanent.
    """

    kind: ForgeKind
    host: str
    repo: str
    """The repository as `owner/name`."""

    def viewer(self) -> Observable[str]:
        """Emit the name of the login."""

    def default_branch(self) -> Observable[str]:
        """Emit the name of the branch that pull requests are merged into by default."""

    def issues(self, *, label: str | None, query: str | None) -> Observable[Issue]:
        """Emit the open issues with the label, or found by the query, oldest first."""

    def issue(self, number: int) -> Observable[Issue]:
        """Emit an issue, open or not."""

    def comments(self, number: int) -> Observable[Comment]:
        """Emit the comments on an issue, oldest first."""

    def add_comment(self, number: int, body: str) -> Observable[Comment]:
        """Comment on an issue."""

    def edit_comment(self, number: int, comment: str, body: str) -> Observable[Comment]:
        """Change a comment on an issue, by its id."""

    def delete_comment(self, number: int, comment: str) -> Observable[None]:
        """Remove a comment; emits nothing."""

    def change_labels(
        self, number: int, *, add: tuple[str, ...], remove: tuple[str, ...]
    ) -> Observable[None]:
        """Add and remove labels of an issue; emits nothing."""

    def close_issue(self, number: int) -> Observable[None]:
        """Close an issue as completed; emits nothing."""

    def find_pull_request(self, branch: str) -> Observable[PullRequest]:
        """Emit the newest pull request of a branch of the repository, open or not; or nothing."""

    def open_pull_request(
        self, *, branch: str, target: str, title: str, body: str, draft: bool = False
    ) -> Observable[PullRequest]:
        """Open a pull request; emits the existing one if the branch has an open one."""

    def edit_pull_request(self, number: int, *, title: str, body: str) -> Observable[None]:
        """Change title and text; emits nothing."""

    def pull_request(self, number: int) -> Observable[PullRequest]:
        """Emit a pull request with its jobs and remarks."""

    def jobs(self, commit: str) -> Observable[Job]:
        """Emit the jobs of a commit."""

    def log(self, job: Job) -> Observable[str]:
        """Emit the end of a job's log, at most 64 KiB; empty if there is none."""

    def merge_when_allowed(self, number: int, *, head: str) -> Observable[None]:
        """Let the forge merge it once its rules allow, if its head is still `head`.

        Merges at once if nothing is pending, and through the merge queue if the target has one. A
        branch that must contain the whole target is updated first, which changes its head. Emits
        nothing. Refused with status 405 if something is pending and the forge does not merge
        automatically, and with 409 if the head has changed.
        """
