"""`InMemoryForge` with a bare git repository: in virtual time, or behind a server.

`tests.forge.github_routes` and `tests.forge.gitlab_routes` show it as GitHub and as GitLab.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from reactivex import Observable

from cuggino.forge import JobState, PullRequest
from cuggino.testing import CiRun, ForgePerson, InMemoryForge, VirtualClock
from cuggino.testing.clock import EPOCH

Association = Literal["OWNER", "MEMBER", "COLLABORATOR", "CONTRIBUTOR", "NONE"]

ME = "cuggino-bot"
"""The login of the token."""


class RemoteForge(InMemoryForge):
    """A forge whose branches are those of a bare repository, and which merges there."""

    def __init__(self, clock: VirtualClock, bare: Path, **options: Any) -> None:
        super().__init__(
            clock, heads=self.head, merge=self.merge, conflicts=self.conflicts, **options
        )
        self.bare = bare

    def head(self, branch: str) -> str | None:
        done = self._run("rev-parse", "--verify", "-q", f"refs/heads/{branch}")
        return done.stdout.decode().strip() or None

    def merge(self, pull: PullRequest) -> str:
        return self.merged(pull.target, pull.head, f"Merge pull request #{pull.number}")

    def merged(self, branch: str, other: str, message: str) -> str:
        """Merge a commit into a branch; return the merge."""
        base = self.git("rev-parse", branch)
        tree = self.git("merge-tree", "--write-tree", base, other).splitlines()[0]
        commit = self.git("commit-tree", tree, "-p", base, "-p", other, "-m", message)
        self.git("update-ref", f"refs/heads/{branch}", commit, base)
        return commit

    def conflicts(self, pull: PullRequest) -> bool:
        return self._run("merge-tree", "--write-tree", pull.target, pull.head).returncode == 1

    def git(self, *args: str) -> str:
        done = self._run(*args)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()

    def _run(self, *args: str) -> subprocess.CompletedProcess[bytes]:
        who = ("-c", "user.name=forge", "-c", "user.email=forge@example.com")
        return subprocess.run(["git", *who, *args], cwd=self.bare, capture_output=True, check=False)


class _Ticking(VirtualClock):
    """A clock on which a second passes whenever it is read."""

    _ticks = 0

    @property
    def now(self) -> datetime:
        self._ticks += 1
        return super().now + timedelta(seconds=self._ticks)


class State(RemoteForge):
    """The repository `o/r` behind a server, with an empty commit on `main`."""

    def __init__(self, bare: Path, host: str = "localhost", **options: Any) -> None:
        super().__init__(_Ticking(), bare, name=ME, repo="o/r", host=host, **options)
        self.renamed_from: str | None = None
        """An earlier name, whose requests are redirected."""
        self.people: dict[str, Association] = {ME: "COLLABORATOR"}
        self.forks: set[int] = set()
        """The pull requests from forks."""
        self.allows_auto_merge = True
        self.has_queue = False
        """Whether the target has a merge queue."""
        self.is_strict = False
        """Whether a branch must contain its target to be merged."""
        self.found: int | None = None
        """How many issues a search claims to find."""
        self.lock = threading.RLock()
        self.joins("alice", "OWNER")
        bare.mkdir(parents=True)
        self.git("init", "-q", "--bare", "-b", "main")
        self.git("config", "http.receivepack", "true")
        tree = self.git("hash-object", "-w", "-t", "tree", "/dev/null")
        self.git("update-ref", "refs/heads/main", self.git("commit-tree", tree, "-m", "begin"))

    def joins(self, login: str, association: Association = "NONE") -> ForgePerson:
        """Return a person, who is associated with the repository like this from now on."""
        self.people[login] = association
        is_writer = association in ("OWNER", "MEMBER", "COLLABORATOR")
        return self.person(login, trusted=is_writer)

    def by(self, login: str) -> ForgePerson:
        """Return a person as they are."""
        return ForgePerson(self, login)

    def opens(
        self, title: str, body: str = "", *, by: str = "alice", labels: tuple[str, ...] = ()
    ) -> int:
        """Open an issue; return its number."""
        return self.by(by).opens(self.contents.ids["number"] + 1, title, body, labels=labels).number

    def does(self, call: Observable[Any]) -> Any:
        """Carry out a call at once; return its result, or raise its error."""
        seen: list[Any] = []
        failed: list[Exception] = []
        call.subscribe(seen.append, failed.append)
        if failed:
            raise failed[0]
        return seen[-1] if seen else None

    def set_jobs(
        self,
        commit: str,
        jobs: Mapping[str, JobState],
        *,
        logs: Mapping[str, str] | None = None,
        optional: tuple[str, ...] = (),
    ) -> None:
        """Give a commit or the head of a branch these jobs, and merge what waited for them."""
        with self.lock:
            runs = tuple(
                CiRun(
                    name=name,
                    state=state,
                    takes=0,
                    log=(logs or {}).get(name, ""),
                    is_required=name not in optional,
                )
                for name, state in jobs.items()
            )
            self.contents.ci[self.head(commit) or commit] = EPOCH, runs
            self.pulls()

    def pull_now(self, number: int) -> PullRequest:
        with self.lock:  # as this may merge it
            return super().pull_now(number)

    def pulls(self) -> list[PullRequest]:
        """Return the pull requests as they are, after merging what waited for its turn."""
        return [self.pull_now(number) for number in list(self.contents.pulls)]

    def is_ready(self, pull: PullRequest) -> bool:
        """Return whether the rules allow to merge it."""
        return self._allows(pull) and not pull.is_draft

    def is_behind(self, pull: PullRequest) -> bool:
        return self._run("merge-base", "--is-ancestor", pull.target, pull.head).returncode == 1

    def has_commit(self, commit: str) -> bool:
        return self._run("cat-file", "-e", f"{commit}^{{commit}}").returncode == 0
