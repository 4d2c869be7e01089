"""A repository of a forge with real state: issues, pull requests, jobs, and a bare git repository.

The methods are what people and CI do; `tests.forge.github_routes` and `tests.forge.gitlab_routes`
show the same state as GitHub and as GitLab.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

JobState = Literal["pending", "passed", "failed", "skipped"]
Association = Literal["OWNER", "MEMBER", "COLLABORATOR", "CONTRIBUTOR", "NONE"]

ME = "cuggino-bot"
"""The login of the token."""


@dataclass
class Note:
    """A comment, a review, or a remark on a line."""

    id: int
    author: str
    body: str
    at: str
    verdict: str = ""
    """Of a review: `APPROVED`, `CHANGES_REQUESTED`, `COMMENTED`."""
    path: str = ""
    line: int | None = None
    is_resolved: bool = False


@dataclass
class Change:
    """A change to an issue: `labeled`, `retitled` or `edited`."""

    kind: str
    by: str
    at: str
    label: str = ""


@dataclass
class IssueState:
    number: int
    title: str
    body: str
    author: str
    at: str
    is_open: bool = True
    labels: list[str] = field(default_factory=list)
    comments: list[Note] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    updated: str = ""


@dataclass
class PullState:
    number: int
    title: str
    body: str
    author: str
    branch: str
    target: str
    at: str
    head: str
    state: Literal["open", "merged", "closed"] = "open"
    is_draft: bool = False
    is_queued: bool = False
    merged_as: str = ""
    is_of_fork: bool = False
    comments: list[Note] = field(default_factory=list)
    reviews: list[Note] = field(default_factory=list)
    threads: list[Note] = field(default_factory=list)


@dataclass
class JobOf:
    id: int
    name: str
    state: JobState
    log: bytes = b""
    is_required: bool = True


class State:
    """The repository `o/r`. Every method may be called while the server runs."""

    def __init__(self, bare: Path) -> None:
        self.bare = bare
        self.url = ""
        """The address of the server."""
        self.repo = "o/r"
        self.renamed_from: str | None = None
        """An earlier name, whose requests are redirected."""
        self.people: dict[str, Association] = {ME: "COLLABORATOR", "alice": "OWNER"}
        self.issues: dict[int, IssueState] = {}
        self.pulls: dict[int, PullState] = {}
        self.jobs: dict[str, list[JobOf]] = {}
        self.allows_auto_merge = True
        self.has_queue = False
        """Whether the target has a merge queue."""
        self.is_strict = False
        """Whether a branch must contain its target to be merged."""
        self.found: int | None = None
        """How many issues a search claims to find."""
        self.ci: Callable[[PullState], Mapping[str, JobState]] | None = None
        """What CI makes of a head that has no jobs yet, once it was looked at."""
        self.lock = threading.RLock()
        self._ids = 0
        self._clock = datetime(2026, 11, 1, tzinfo=UTC)

    # People

    def person(self, login: str, association: Association = "NONE") -> str:
        self.people[login] = association
        return login

    def open_issue(
        self,
        title: str,
        body: str = "",
        *,
        by: str = "alice",
        labels: tuple[str, ...] = (),
        labeled_by: str | None = None,
    ) -> int:
        with self.lock:
            number, at = self._number(), self.tick()
            self.issues[number] = IssueState(number, title, body, by, at, updated=at)
            for label in labels:
                self.label(number, label, by=labeled_by or by)
            return number

    def label(self, number: int, label: str, *, by: str) -> None:
        issue = self.issues[number]
        if label not in issue.labels:
            issue.labels.append(label)
        self._changed(issue, "labeled", by, label)

    def unlabel(self, number: int, label: str, *, by: str) -> None:
        issue = self.issues[number]
        issue.labels.remove(label)
        self._changed(issue, "unlabeled", by, label)

    def edit_issue(
        self, number: int, *, by: str, title: str | None = None, body: str | None = None
    ) -> None:
        issue = self.issues[number]
        if title is not None:
            issue.title = title
            self._changed(issue, "retitled", by)
        if body is not None:
            issue.body = body
            self._changed(issue, "edited", by)

    def close_issue(self, number: int, *, by: str = "alice") -> None:
        self.issues[number].is_open = False
        self._changed(self.issues[number], "closed", by)

    def comment(self, number: int, body: str, *, by: str) -> Note:
        """Comment on an issue or a pull request."""
        note = self._note(by, body)
        (self.issues.get(number) or self.pulls[number]).comments.append(note)
        if number in self.issues:
            self.issues[number].updated = note.at
        return note

    def review(self, number: int, verdict: str, body: str, *, by: str) -> Note:
        note = self._note(by, body)
        note.verdict = verdict
        self.pulls[number].reviews.append(note)
        return note

    def remark(self, number: int, path: str, line: int, body: str, *, by: str) -> Note:
        note = self._note(by, body)
        note.path, note.line = path, line
        self.pulls[number].threads.append(note)
        return note

    def close_pull(self, number: int) -> None:
        self.pulls[number].state = "closed"

    def open_pull(
        self, branch: str, target: str, title: str, body: str, *, by: str = ME, draft: bool = False
    ) -> PullState:
        with self.lock:
            number = self._number()
            head = self.head(branch) or ""
            pull = PullState(number, title, body, by, branch, target, self.tick(), head)
            pull.is_draft = draft
            self.pulls[number] = pull
            return pull

    # CI

    def set_jobs(
        self,
        commit: str,
        jobs: Mapping[str, JobState],
        *,
        logs: Mapping[str, bytes] | None = None,
        optional: tuple[str, ...] = (),
    ) -> None:
        """Give a commit or the head of a branch these jobs, and merge what waited for them."""
        with self.lock:
            old = {job.name: job.id for job in self.jobs.get(self.head(commit) or commit, [])}
            self.jobs[self.head(commit) or commit] = [
                JobOf(
                    old.get(name) or self._id(),
                    name,
                    state,
                    (logs or {}).get(name, b""),
                    name not in optional,
                )
                for name, state in jobs.items()
            ]
            self.merge_queued()

    def jobs_of(self, pull: PullState) -> list[JobOf]:
        head = self.head_of(pull)
        if head not in self.jobs and self.ci is not None and pull.state == "open":
            self.jobs[head] = [
                JobOf(self._id(), name, state, f"{name} has {state}\n".encode())
                for name, state in self.ci(pull).items()
            ]
        return self.jobs.get(head, [])

    def log(self, number: int) -> bytes:
        """Return the log of a job; raise KeyError without one."""
        return {job.id: job.log for jobs in self.jobs.values() for job in jobs if job.log}[number]

    # Merging

    def is_ready(self, pull: PullState) -> bool:
        """Return whether the rules allow to merge it."""
        states = {job.state for job in self.jobs_of(pull) if job.is_required}
        return not (states & {"pending", "failed"} or self.conflicts(pull) or pull.is_draft)

    def merge(self, number: int) -> None:
        """Merge it in the bare repository, and delete its branch."""
        with self.lock:
            pull = self.pulls[number]
            head = self.head_of(pull)
            tree = self.git("merge-tree", "--write-tree", pull.target, head).splitlines()[0]
            base = self.head(pull.target)
            assert base is not None
            message = f"Merge pull request #{number}"
            commit = self.git("commit-tree", tree, "-p", base, "-p", head, "-m", message)
            self.git("update-ref", f"refs/heads/{pull.target}", commit, base)
            self.git("update-ref", "-d", f"refs/heads/{pull.branch}")
            pull.head, pull.state, pull.merged_as, pull.is_queued = head, "merged", commit, False

    def is_behind(self, pull: PullState) -> bool:
        done = self._run("merge-base", "--is-ancestor", pull.target, self.head_of(pull))
        return done.returncode == 1

    def update_branch(self, number: int) -> None:
        """Merge the target into the branch of a pull request."""
        pull = self.pulls[number]
        head, target = self.head_of(pull), self.head(pull.target)
        assert target is not None
        tree = self.git("merge-tree", "--write-tree", head, target).splitlines()[0]
        message = f"Merge {pull.target}"
        commit = self.git("commit-tree", tree, "-p", head, "-p", target, "-m", message)
        self.git("update-ref", f"refs/heads/{pull.branch}", commit, head)

    def merge_queued(self) -> None:
        for pull in self.pulls.values():
            if pull.state == "open" and pull.is_queued and self.is_ready(pull):
                self.merge(pull.number)

    def conflicts(self, pull: PullState) -> bool:
        if self.head(pull.branch) is None or pull.state != "open":
            return False
        done = self._run("merge-tree", "--write-tree", pull.target, pull.branch)
        return done.returncode == 1

    def head_of(self, pull: PullState) -> str:
        """Return the head of its branch, or the last one known of a branch that is gone."""
        if pull.state == "open" and not pull.is_of_fork:
            pull.head = self.head(pull.branch) or pull.head
        return pull.head

    def head(self, branch: str) -> str | None:
        done = self._run("rev-parse", "--verify", "-q", f"refs/heads/{branch}")
        return done.stdout.decode().strip() or None

    def has_commit(self, commit: str) -> bool:
        return self._run("cat-file", "-e", f"{commit}^{{commit}}").returncode == 0

    def git(self, *args: str) -> str:
        done = self._run(*args)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()

    def _run(self, *args: str) -> subprocess.CompletedProcess[bytes]:
        who = ("-c", "user.name=forge", "-c", "user.email=forge@example.com")
        return subprocess.run(["git", *who, *args], cwd=self.bare, capture_output=True, check=False)

    # Names and times

    def tick(self) -> str:
        """Return the next second."""
        with self.lock:
            self._clock += timedelta(seconds=1)
            return self._clock.strftime("%Y-%m-%dT%H:%M:%SZ")

    def note(self, number: int) -> Note:
        """Return a comment on an issue or a pull request by its id."""
        return {note.id: note for place in self._places() for note in place.comments}[number]

    def delete_note(self, note: Note) -> None:
        for place in self._places():
            if note in place.comments:
                place.comments.remove(note)

    def of_branch(self, branch: str) -> PullState | None:
        """Return the open pull request of a branch."""
        return next(
            (
                pull
                for pull in self.pulls.values()
                if pull.branch == branch and pull.state == "open" and not pull.is_of_fork
            ),
            None,
        )

    def _places(self) -> list[IssueState | PullState]:
        return [*self.issues.values(), *self.pulls.values()]

    def _note(self, by: str, body: str) -> Note:
        with self.lock:
            return Note(self._id(), by, body, self.tick())

    def _changed(self, issue: IssueState, kind: str, by: str, label: str = "") -> None:
        issue.updated = self.tick()
        issue.changes.append(Change(kind, by, issue.updated, label))

    def _number(self) -> int:
        return max([0, *self.issues, *self.pulls]) + 1

    def _id(self) -> int:
        self._ids += 1
        return 1000 + self._ids
