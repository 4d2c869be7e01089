"""A forge without a network: issues, comments and pull requests in memory, in virtual time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, Literal, ParamSpec, TypeAlias, TypeVar

from reactivex import Observable

from cuggino.config import ForgeKind
from cuggino.errors import ForgeRefused, ForgeUnreachable
from cuggino.forge import Comment, Issue, Job, JobState, PullRequest, Remark, ci_state
from cuggino.operators import Flow, emit, flow, pause
from cuggino.testing.clock import VirtualClock, seconds

T = TypeVar("T")
P = ParamSpec("P")

LONGEST_BODY = 65_536
"""The characters of a text that GitHub accepts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgeCall:
    """A call of an `InMemoryForge`, at the moment of its effect."""

    at: float
    """The virtual second."""
    login: str
    name: str
    """The method, such as `add_comment`."""
    number: int | None
    """The issue or pull request; None if the call is about none."""
    text: str = ""
    """The body, the labels, or the branch that was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CiRun:
    """The CI job of one pushed commit, which ends after some time; a pending one never does."""

    state: JobState = "passed"
    takes: float | str | timedelta = 60.0
    """Virtual time, such as 90 or `1m30s`."""
    log: str = ""
    name: str = "test"
    is_required: bool = True
    """False if a pull request is merged whatever its state is."""


ChangeKind: TypeAlias = Literal[
    "opened", "closed", "reopened", "labeled", "unlabeled", "retitled", "edited"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueChange:
    """A change to an issue, for a server that shows the repository as a real forge does."""

    kind: ChangeKind
    by: str
    at: datetime
    label: str = ""


@dataclass(slots=True)
class _Fault:
    name: str | None
    number: int | None
    error: Exception
    times: int
    late: bool
    begins: datetime
    ends: datetime | None

    def hits(self, name: str, number: int | None, now: datetime, *, late: bool) -> bool:
        return (
            self.times > 0
            and late == self.late
            and self.name in (None, name)
            and self.number in (None, number)
            and self.begins <= now
            and (self.ends is None or now < self.ends)
        )


@dataclass(slots=True)
class ForgeContents:
    """The contents of a repository, which all logins share."""

    issues: dict[int, Issue] = field(default_factory=dict)
    changes: dict[int, list[IssueChange]] = field(default_factory=dict)
    gone: dict[int, int] = field(default_factory=dict)
    """Issues that were deleted or transferred, with the HTTP status that reports it."""
    comments: dict[int, dict[str, Comment]] = field(default_factory=dict)
    """The comments on issues, by their ids."""
    pulls: dict[int, PullRequest] = field(default_factory=dict)
    titles: dict[int, str] = field(default_factory=dict)
    """The titles of pull requests."""
    pushed: dict[str, str] = field(default_factory=dict)
    resolved: dict[int, list[Remark]] = field(default_factory=dict)
    """The remarks on pull requests that no longer count."""
    ci: dict[str, tuple[datetime, tuple[CiRun, ...]]] = field(default_factory=dict)
    """The start of CI for a commit, and its jobs."""
    jobs: dict[tuple[str, str], str] = field(default_factory=dict)
    """The ids of jobs, by commit and name."""
    logs: dict[str, str] = field(default_factory=dict)
    calls: list[ForgeCall] = field(default_factory=list)
    faults: list[_Fault] = field(default_factory=list)
    writers: set[str] = field(default_factory=set)
    ids: Counter[str] = field(default_factory=Counter)

    def new(self, kind: str) -> int:
        self.ids[kind] += 1
        return self.ids[kind]


_READS = frozenset(
    {"viewer", "default_branch", "issues", "issue", "comments"}
    | {"find_pull_request", "pull_request", "jobs", "log"}
)


_TEXTS = ("branch", "body", "head", "commit", "label", "query")
"""The arguments of a call that `ForgeCall.text` shows, the first that is given."""
_SIGNS = {"+": "add", "-": "remove"}


def _call(
    effect: Callable[Concatenate[InMemoryForge, P], Iterable[T]],
) -> Callable[Concatenate[InMemoryForge, P], Observable[T]]:
    """Turn the effect of a call into a cold stream of what it returns."""
    parameters, name = signature(effect), effect.__name__

    @wraps(effect)
    def call(forge: InMemoryForge, /, *args: P.args, **kwargs: P.kwargs) -> Observable[T]:
        given = parameters.bind(forge, *args, **kwargs).arguments
        number: int | None = given.get("number")
        text = next((given[name] for name in _TEXTS if given.get(name)), "")
        labels = [f"{sign}{name}" for sign in _SIGNS for name in given.get(_SIGNS[sign], ())]

        def story() -> Flow[None]:
            if forge.latency:
                yield from pause(forge.latency / 2)
            forge._fault(name, number, late=False)
            answer = [*effect(forge, *args, **kwargs)]
            forge.calls.append(
                ForgeCall(
                    at=forge.clock.elapsed,
                    login=forge.name,
                    name=name,
                    number=number,
                    text=text or " ".join(labels),
                )
            )
            forge._fault(name, number, late=True)
            if forge.latency:
                yield from pause(forge.latency / 2)
            yield from emit(*answer)

        return flow(story)

    return call


class InMemoryForge:
    """A repository of a forge in memory, with people and CI that act in virtual time.

    ::

        forge = InMemoryForge(clock, latency=0.2, ci=[CiRun(state="failed", log="boom"), CiRun()])
        ada = forge.person("ada")
        ada.opens(7, "Add a page", labels=("agent",))
        forge.at("5m", lambda: ada.comments(7, "Option B"))
        forge.fail("add_comment", ForgeLimited("slow down"), times=2)
        ...
        assert len(forge.writes("add_comment")) == 1

    Calls are cold. The first half of the latency passes before the effect of a call, the second
    half after it: a call disposed in between has been carried out, but its answer is lost.

    `calls` lists all calls that had an effect or an answer. `login` returns the same repository
    seen by another login. `heads` returns the commit of a branch, by default the one of `push`;
    with real repositories, read it there. CI takes the next of `ci` for each new head, and repeats
    the last; without `ci` there are no jobs. `merge` carries out a merge and returns the commit.
    """

    def __init__(
        self,
        clock: VirtualClock,
        *,
        latency: float | str | timedelta = 0.0,
        name: str = "me",
        repo: str = "owner/repo",
        host: str = "github.com",
        kind: ForgeKind = "github",
        target: str = "main",
        ci: Sequence[CiRun | Sequence[CiRun]] = (),
        heads: Callable[[str], str | None] | None = None,
        merge: Callable[[PullRequest], str] | None = None,
        conflicts: Callable[[PullRequest], bool | None] = lambda _: False,
    ) -> None:
        self.clock = clock
        self.kind: ForgeKind = kind
        self.host = host
        self.repo = repo
        self.latency = seconds(latency)
        self.name = name
        """The login."""
        self.target = target
        self.requires_approval = False
        """True if a pull request is merged only after a person's `approves`."""
        self.contents = ForgeContents(writers={name})
        """The contents, as a server shows them."""
        self._ci = [run if isinstance(run, Sequence) else (run,) for run in ci]
        self._heads = heads or self.contents.pushed.get
        self._merge = merge or (lambda pull: f"merge-of-{pull.number}")
        self._conflicts = conflicts
        self._approved: set[int] = set()

    def login(self, name: str) -> InMemoryForge:
        """Return the same repository, seen by another login; it has write access."""
        other = copy(self)
        other.name = name
        self.contents.writers.add(name)
        return other

    # -- what tests arrange

    @property
    def calls(self) -> list[ForgeCall]:
        """Return all calls so far, in order."""
        return self.contents.calls

    def writes(self, name: str | None = None, number: int | None = None) -> list[ForgeCall]:
        """Return the calls that change something; only those of a method, and about a number."""
        return [
            call
            for call in self.calls
            if call.name not in _READS
            and name in (None, call.name)
            and number in (None, call.number)
        ]

    def at(self, when: float | str | timedelta, do: Callable[[], object]) -> None:
        """Call a function at a moment of the clock, for example to act as a person."""
        self.clock.call_at(when, do)

    def fail(
        self,
        name: str | None,
        error: Exception,
        *,
        times: int = 1,
        number: int | None = None,
        late: bool = False,
    ) -> None:
        """Let the next calls of a method fail; None means any method.

        With `late` the call is carried out, and only its answer is lost.
        """
        fault = _Fault(name, number, error, times, late, self.clock.now, None)
        self.contents.faults.append(fault)

    def outage(
        self,
        begins: float | str | timedelta,
        ends: float | str | timedelta,
        error: Exception | None = None,
    ) -> None:
        """Let all calls fail between two moments of the clock, by default as unreachable."""
        error = error or ForgeUnreachable("no connection")
        begin, end = self.clock.at(begins), self.clock.at(ends)
        self.contents.faults.append(_Fault(None, None, error, 1_000_000, False, begin, end))

    def person(self, name: str, *, trusted: bool = True) -> ForgePerson:
        """Return a person; only a trusted one has write access."""
        if trusted:
            self.contents.writers.add(name)
        return ForgePerson(self, name)

    def issue_now(self, number: int) -> Issue:
        """Return an issue as it is, without a call."""
        return self.contents.issues[number]

    def comments_now(self, number: int) -> list[Comment]:
        """Return the comments on an issue as they are, without a call."""
        return list(self.contents.comments.get(number, {}).values())

    def pull_now(self, number: int) -> PullRequest:
        """Return a pull request as it is, without a call."""
        return self._refreshed(number)

    def push(self, branch: str, commit: str) -> None:
        """Move a branch, unless `heads` reads real ones; CI begins where a pull request is open."""
        self.contents.pushed[branch] = commit
        for number in self.contents.pulls:
            self._refreshed(number)

    # -- the calls

    @_call
    def viewer(self) -> Iterable[str]:
        return [self.name]

    @_call
    def default_branch(self) -> Iterable[str]:
        return [self.target]

    @_call
    def issues(self, *, label: str | None, query: str | None) -> Iterable[Issue]:
        """Emit the open issues with the label whose title contains the query."""
        return [
            issue
            for _, issue in sorted(self.contents.issues.items())
            if issue.is_open
            and (label is None or label in issue.labels)
            and (query is None or query in issue.title)
        ]

    @_call
    def issue(self, number: int) -> Iterable[Issue]:
        return [self._issue(number)]

    @_call
    def comments(self, number: int) -> Iterable[Comment]:
        self._issue(number)
        return [self._seen(one) for one in self.comments_now(number)]

    @_call
    def add_comment(self, number: int, body: str) -> Iterable[Comment]:
        return [self._comment(number, body, self.name)]

    @_call
    def edit_comment(self, number: int, comment: str, body: str) -> Iterable[Comment]:
        return [self._edit(number, comment, body, self.name)]

    @_call
    def delete_comment(self, number: int, comment: str) -> Iterable[None]:
        return self._delete(number, comment)

    @_call
    def change_labels(
        self, number: int, *, add: tuple[str, ...], remove: tuple[str, ...]
    ) -> Iterable[None]:
        return self._change_labels(number, add, remove, self.name)

    @_call
    def close_issue(self, number: int) -> Iterable[None]:
        return self._change_issue(number, self.name, "closed", is_open=False)

    @_call
    def find_pull_request(self, branch: str) -> Iterable[PullRequest]:
        pulls = self.contents.pulls
        numbers = [number for number, pull in pulls.items() if pull.branch == branch]
        return [self._refreshed(number) for number in sorted(numbers)[-1:]]

    @_call
    def open_pull_request(
        self, *, branch: str, target: str, title: str, body: str, draft: bool = False
    ) -> Iterable[PullRequest]:
        _fits(body)
        for number, known in self.contents.pulls.items():
            if known.branch == branch and known.state == "open":
                return [self._refreshed(number)]
        head = self._heads(branch)
        if head is None:
            raise ForgeRefused(f"the branch {branch} does not exist", status=422)
        number = self.contents.new("number")
        pull = PullRequest(
            number=number,
            url=f"{self.url}/pull/{number}",
            state="open",
            branch=branch,
            target=target,
            head=head,
            body=body,
            is_draft=draft,
        )
        self.contents.pulls[number] = pull
        self.contents.titles[number] = title
        return [self._refreshed(number)]

    @_call
    def edit_pull_request(self, number: int, *, title: str, body: str) -> Iterable[None]:
        _fits(body)
        self._change_pull(number, body=body)
        self.contents.titles[number] = title
        return ()

    @_call
    def pull_request(self, number: int) -> Iterable[PullRequest]:
        return [self._refreshed(number)]

    @_call
    def jobs(self, commit: str) -> Iterable[Job]:
        """Emit the jobs of a commit that has been the head of a pull request."""
        return self._jobs(commit)

    @_call
    def log(self, job: Job) -> Iterable[str]:
        return [self.contents.logs.get(job.id, "")[-65_536:]]

    @_call
    def merge_when_allowed(self, number: int, *, head: str) -> Iterable[None]:
        """Merge at once, or as soon as CI is green and the rules allow."""
        pull = self._refreshed(number)
        if pull.head != head:
            raise ForgeRefused("the head was modified", status=409)
        if pull.state != "open":
            return ()
        if pull.is_draft:
            raise ForgeRefused("the pull request is not mergeable", status=405)
        self._change_pull(number, is_queued=True)
        self._refreshed(number)
        return ()

    # -- what calls and persons do

    @property
    def url(self) -> str:
        """Return the page of the repository."""
        return f"https://{self.host}/{self.repo}"

    def _fault(self, name: str, number: int | None, *, late: bool) -> None:
        for fault in self.contents.faults:
            if fault.hits(name, number, self.clock.now, late=late):
                fault.times -= 1
                raise fault.error

    def _trusts(self, name: str) -> bool:
        return name in self.contents.writers

    def _issue(self, number: int) -> Issue:
        if (status := self.contents.gone.get(number)) is not None:
            raise ForgeRefused(f"issue {number} was deleted", status=status)
        if number not in self.contents.issues:
            raise ForgeRefused(f"issue {number} is not found", status=404)
        return self.contents.issues[number]

    def _seen(self, comment: Comment) -> Comment:
        return replace(comment, is_mine=comment.author == self.name)

    def _comment(self, number: int, body: str, author: str) -> Comment:
        issue = self._issue(number)
        _fits(body)
        new = self.contents.new("comment")
        comment = Comment(
            id=str(1000 + new),
            body=body,
            author=author,
            is_mine=author == self.name,
            is_trusted=self._trusts(author),
            at=self.clock.now,
            url=f"{issue.url}#issuecomment-{1000 + new}",
        )
        self.contents.comments.setdefault(number, {})[comment.id] = comment
        return comment

    def _edit(self, number: int, comment: str, body: str, editor: str) -> Comment:
        self._issue(number)
        _fits(body)
        known = self.contents.comments.get(number, {})
        if (old := known.get(comment)) is None:
            raise ForgeRefused(f"comment {comment} is not found", status=404)
        trusted = old.is_trusted and self._trusts(editor)
        known[comment] = replace(old, body=body, is_trusted=trusted, edited_at=self.clock.now)
        return self._seen(known[comment])

    def _delete(self, number: int, comment: str) -> Iterable[None]:
        self.contents.comments.get(number, {}).pop(comment, None)
        return ()

    def _change_issue(
        self,
        number: int,
        by: str,
        kind: ChangeKind | None = None,
        *,
        label: str = "",
        **fields: Any,
    ) -> Iterable[None]:
        """Change the fields of an issue; a change without a kind is not in its history."""
        self.contents.issues[number] = replace(self._issue(number), **fields)
        if kind is not None:
            change = IssueChange(kind=kind, by=by, at=self.clock.now, label=label)
            self.contents.changes.setdefault(number, []).append(change)
        return ()

    def _change_labels(
        self, number: int, add: Iterable[str], remove: Iterable[str], by: str
    ) -> Iterable[None]:
        for label in remove:
            labels = self._issue(number).labels
            if label in labels:
                rest = tuple(name for name in labels if name != label)
                self._change_issue(number, by, "unlabeled", label=label, labels=rest)
        for label in add:
            more = tuple(dict.fromkeys([*self._issue(number).labels, label]))
            self._change_issue(number, by, "labeled", label=label, labels=more)
        return ()

    def _change_pull(self, number: int, **fields: Any) -> None:
        self.contents.pulls[number] = replace(self._pull(number), **fields)

    def _pull(self, number: int) -> PullRequest:
        if number not in self.contents.pulls:
            raise ForgeRefused(f"pull request {number} is not found", status=404)
        return self.contents.pulls[number]

    def _begin_ci(self, pull: PullRequest) -> None:
        """Let CI begin with the head."""
        runs: tuple[CiRun, ...] = ()
        if self._ci:
            first, *rest = self._ci
            self._ci[:] = rest or [first]
            runs = tuple(first)
        self.contents.ci[pull.head] = self.clock.now, runs
        for run in runs:
            self.at(self.clock.elapsed + seconds(run.takes), lambda: self._refreshed(pull.number))

    def _refreshed(self, number: int) -> PullRequest:
        """Bring a pull request up to date, and merge it when it is its turn."""
        pull = self._pull(number)
        if pull.state != "open":
            return pull
        head = self._heads(pull.branch)
        if head is None:
            pull = replace(pull, state="closed")
        elif head != pull.head:
            pull = replace(pull, head=head, is_queued=False)
        if pull.state == "open":
            if pull.head not in self.contents.ci:
                self._begin_ci(pull)
            pull = replace(pull, jobs=self._jobs(pull.head), conflicts=self._conflicts(pull))
        self.contents.pulls[number] = pull
        if pull.is_queued and pull.state == "open" and self._allows(pull):
            self._merge_now(pull)
        return self.contents.pulls[number]

    def _allows(self, pull: PullRequest) -> bool:
        approved = not self.requires_approval or pull.number in self._approved
        _, runs = self.contents.ci.get(pull.head, (None, ()))
        required = {run.name for run in runs if run.is_required}
        checks = ci_state(job for job in pull.jobs if job.name in required)
        return approved and checks in ("passed", "none") and not pull.conflicts

    def _merge_now(self, pull: PullRequest) -> None:
        commit = self._merge(pull)
        self._change_pull(pull.number, state="merged", merged_as=commit, is_queued=False)

    def _jobs(self, commit: str) -> tuple[Job, ...]:
        began, runs = self.contents.ci.get(commit, (self.clock.now, ()))
        jobs = []
        for run in runs:
            ended = self.clock.now >= began + timedelta(seconds=seconds(run.takes))
            ids = self.contents.jobs
            id = ids.setdefault((commit, run.name), str(1000 + len(ids)))
            self.contents.logs[id] = run.log
            state = run.state if ended else "pending"
            url = f"{self.url}/actions/runs/{id}"
            jobs.append(Job(id=id, name=run.name, state=state, url=url))
        return tuple(jobs)


def _fits(body: str) -> None:
    if len(body) > LONGEST_BODY:
        raise ForgeRefused(f"body is too long (maximum is {LONGEST_BODY} characters)", status=422)


@dataclass(frozen=True, slots=True)
class ForgePerson:
    """A person who uses an `InMemoryForge` in a browser: no latency, no faults."""

    forge: InMemoryForge
    name: str

    def opens(
        self, number: int, title: str, body: str = "", *, labels: Iterable[str] = ()
    ) -> Issue:
        """Open an issue; with labels, it is trusted as far as the person is."""
        forge = self.forge
        issue = Issue(
            number=number,
            title=title,
            body=body,
            url=f"{forge.url}/issues/{number}",
            author=self.name,
            is_trusted=forge._trusts(self.name),
        )
        forge.contents.issues[number] = issue
        forge._change_issue(number, self.name, "opened")
        forge._change_labels(number, labels, (), self.name)
        forge.contents.ids["number"] = max(forge.contents.ids["number"], number)
        return forge.issue_now(number)

    def labels(self, number: int, *names: str) -> None:
        """Add labels; a trusted person thereby vouches for the issue and its edits so far."""
        self.forge._change_labels(number, names, (), self.name)
        if self.forge._trusts(self.name):
            self.forge._change_issue(number, self.name, is_trusted=True, edit_is_trusted=True)

    def unlabels(self, number: int, *names: str) -> None:
        """Remove labels."""
        self.forge._change_labels(number, (), names, self.name)

    def edits(self, number: int, *, title: str | None = None, body: str | None = None) -> None:
        """Edit an issue."""
        edit: dict[str, Any] = {
            "edited_by": self.name,
            "edit_is_trusted": self.forge._trusts(self.name),
        }
        if title is not None:
            self.forge._change_issue(number, self.name, "retitled", title=title, **edit)
        if body is not None:
            self.forge._change_issue(number, self.name, "edited", body=body, **edit)

    def closes(self, number: int) -> None:
        """Close an issue."""
        self.forge._change_issue(number, self.name, "closed", is_open=False)

    def reopens(self, number: int) -> None:
        """Reopen an issue."""
        self.forge._change_issue(number, self.name, "reopened", is_open=True)

    def deletes(self, number: int) -> None:
        """Delete an issue."""
        self.forge.contents.gone[number] = 410

    def transfers(self, number: int) -> None:
        """Move an issue to another repository."""
        self.forge.contents.gone[number] = 404

    def comments(self, number: int, body: str) -> Comment:
        """Comment on an issue."""
        return self.forge._comment(number, body, self.name)

    def edits_comment(self, number: int, comment: str, body: str) -> None:
        """Edit a comment, also another person's."""
        self.forge._edit(number, comment, body, self.name)

    def deletes_comment(self, number: int, comment: str) -> None:
        """Delete a comment, also another person's."""
        self.forge._delete(number, comment)

    def reviews(
        self,
        number: int,
        body: str,
        *,
        asks_for_changes: bool = True,
        path: str = "",
        line: int | None = None,
    ) -> Remark:
        """Review a pull request, or comment on a line of it."""
        forge = self.forge
        remark = Remark(
            id=str(5000 + forge.contents.new("remark")),
            author=self.name,
            is_mine=self.name == forge.name,
            is_trusted=forge._trusts(self.name),
            body=body,
            at=forge.clock.now,
            asks_for_changes=asks_for_changes,
            path=path,
            line=line,
        )
        forge._change_pull(number, remarks=(*forge._refreshed(number).remarks, remark))
        return remark

    def resolves(self, number: int, remark: Remark) -> None:
        """Resolve a remark on a pull request, which no longer counts."""
        pull = self.forge._pull(number)
        self.forge._change_pull(
            number, remarks=tuple(one for one in pull.remarks if one.id != remark.id)
        )
        self.forge.contents.resolved.setdefault(number, []).append(remark)

    def approves(self, number: int) -> None:
        """Approve a pull request."""
        self.forge._approved.add(number)
        self.forge._refreshed(number)

    def pushes(self, branch: str, commit: str) -> None:
        """Move a branch, with force if need be; only without `heads`."""
        self.forge.push(branch, commit)

    def merges(self, number: int) -> None:
        """Merge a pull request, regardless of its checks."""
        self.forge._merge_now(self.forge._refreshed(number))

    def closes_pull_request(self, number: int) -> None:
        """Close a pull request without merging it."""
        self.forge._change_pull(number, state="closed", is_queued=False)

    def reopens_pull_request(self, number: int) -> None:
        """Open a closed pull request again."""
        self.forge._change_pull(number, state="open")

    def readies(self, number: int) -> None:
        """Declare a draft ready for review."""
        self.forge._change_pull(number, is_draft=False)
