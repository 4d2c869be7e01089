"""Landing through pull requests: push a branch, propose it, and wait for its merge."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from reactivex import Observable, empty, never, operators as ops

from cuggino.config import PullRequestSettings
from cuggino.domain import Schedule, shown_to_agents
from cuggino.errors import ConfigError, ForgeError, ForgeRefused
from cuggino.events import (
    WatchCandidate,
    WatchEvent,
    WatchFollowDelayed,
    WatchLanded,
    WatchLanding,
    WatchProposal,
    WatchProposed,
    WatchSentBack,
)
from cuggino.forge.ci import Ci
from cuggino.forge.describing import Describe, describing
from cuggino.forge.model import Forge, Job, PullRequest, Remark
from cuggino.forge.patience import Patient
from cuggino.forge.redaction import Redaction, redacting
from cuggino.loops import Landing
from cuggino.operators import Flow, emit, flow
from cuggino.operators.repeat_on import repeat_on
from cuggino.stages.slots import Gate, Red, RemoteBranches, branch_names
from cuggino.storage import Proposal, Proposals, Workspace

_TRIES = 5
"""Maximum attempts at a landing, if someone else pushes during each."""
_NAMES = 20
"""Maximum number of branch names tried for an item."""
_LOGS = 3
"""Failed jobs whose logs are sent back."""
_LOG = 12_000
"""Characters sent back from the end of each log."""
_REMARK = 8_000


def pull_requests(
    forge: Forge,
    settings: PullRequestSettings | None = None,
    *,
    check_command: str = "",
    redact: Redaction | None = None,
    closes: Callable[[str], int | None] = lambda _item: None,
    origin: Callable[[str], str] = lambda _item: "",
) -> Landing:
    """Return a landing through pull requests, for `Runtime.watch(landing=...)`.

    ::

        candidate -> merged with the target, checked -> pushed -> proposed ... -> merged

    A candidate passes the same gate as any other, on the remote's target. Its branch `cuggino/ITEM`
    is pushed with a lease, and a pull request is opened or updated. The landing then waits for CI.
    A failed job, a review that requests changes or comments on a file, or a conflict with the
    target sends the item back, with the end of the log or the review; it is worked on and pushed
    again. With `auto_merge` the forge merges the pull request once CI has passed, unless it changes
    CI files.

    Commits that others push to the branch become part of the work and are never overwritten. An
    item whose pull request is closed without a merge is parked.

    Logs and remarks are shown to agents as untrusted data. `closes` returns the issue that the
    merge of an item closes, and `origin` the page of the item's issue.
    """
    chosen = settings or PullRequestSettings()

    def landing(workspace: Workspace, gate: Gate) -> PullRequests:
        return PullRequests(
            forge,
            chosen,
            RemoteBranches(gate, remote=chosen.remote),
            Proposals(workspace),
            describe=lambda target: describing(
                workspace,
                redact=redact or redacting(project=workspace.root),
                check_command=check_command or gate.check_command,
                target=target,
                closes=closes,
                origin=origin,
            ),
        )

    return landing


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """The result of the latest poll of a pull request."""

    ci: Ci = field(default_factory=Ci)
    remarks: tuple[str, ...] = ()
    """The remarks to answer at that head."""
    reported: tuple[str, str] = ("", "")
    """The latest state that was reported, and its message."""


class PullRequests:
    """The target of pull requests as a trunk: merged work has landed."""

    def __init__(
        self,
        forge: Forge,
        settings: PullRequestSettings,
        branches: RemoteBranches,
        proposals: Proposals,
        *,
        describe: Callable[[str], Describe],
    ) -> None:
        self._forge = forge
        self._patient = Patient(forge)
        self._settings = settings
        self._git = branches
        self._proposals = proposals
        self._describe = describe
        self._target = settings.target or ""
        self._seen: dict[str, _Seen] = {}

    def open(self) -> Observable[WatchEvent]:
        """Create the gate tree and fetch the target, waiting while the forge is down.

        Errors: `ConfigError` if the repository, the remote or the target is missing.
        """
        return flow(self._open)

    def head(self, after: Collection[str] = ()) -> Observable[str]:
        """Emit the target's head, as last fetched if it cannot be fetched now."""
        return flow(self._head)

    def land(
        self, candidate: WatchCandidate, *, title: str, returns: int
    ) -> Observable[WatchEvent]:
        """Check the candidate, push its branch, and propose it; see `pull_requests`."""
        return flow(lambda: self._land(candidate, title, returns))

    def proposal(self, proposed: WatchProposed, *, returns: int) -> Observable[WatchEvent]:
        """Poll the pull request until it is merged or sends the item back."""
        every = Schedule.constant(self._settings.every)
        polled = flow(lambda: self._poll(proposed, returns)).pipe(repeat_on(every))
        return polled.pipe(ops.take_while(_is_open, inclusive=True))

    def follow(self) -> Observable[WatchEvent]:
        """Emit nothing: the user's own branch is not moved."""
        return empty()

    def changed(
        self, delayed: WatchFollowDelayed, changes: Callable[[Path], Observable[object]]
    ) -> Observable[object]:
        """Emit nothing, and do not complete."""
        return never()

    # -- the target

    def _open(self) -> Flow[None]:
        yield from self._git.make()
        try:
            yield from self._fetch()
        except ForgeRefused as error:
            hint = error.hint or 'see "remote" and "target" of "pullRequests"'
            raise ConfigError(error.message, hint=hint) from error

    def _head(self) -> Flow[None]:
        try:
            commit = yield from self._git.fetch(self._target)
        except ForgeError:
            commit = yield from self._git.known()
            if not commit:
                raise
        yield from emit(commit)

    def _fetch(self) -> Flow[str]:
        """Fetch the target; if its name is not set, it may have been renamed."""
        if not self._target:
            self._target = yield from self._default_branch()
        try:
            return (yield from self._fetch_target())
        except ForgeRefused:
            if self._settings.target:
                raise
            known, self._target = self._target, (yield from self._default_branch())
            if self._target == known:
                raise
            return (yield from self._fetch_target())

    def _default_branch(self) -> Flow[str]:
        return self._patient.get("find the default branch", self._forge.default_branch)

    def _fetch_target(self) -> Flow[str]:
        return self._patient.get(f"fetch {self._target}", self._git.fetch, self._target)

    # -- land

    def _land(self, candidate: WatchCandidate, title: str, returns: int) -> Flow[None]:
        item = candidate.filename
        target = yield from self._fetch()
        yield from emit(
            WatchLanding(filename=item, commit=candidate.commit, trunk=target, returns=returns)
        )
        for _ in range(_TRIES):
            known, there = yield from self._branch_of(item)
            is_theirs = there and there not in known.heads
            merged = yield from self._git.merged(
                candidate, target, title=title, theirs=known.branch if is_theirs else ""
            )
            if isinstance(merged, Red):
                yield from emit(merged.sent_back(item, returns))
                return
            if merged.is_nothing and known.number is None:
                yield from self._forget(item)
                yield from emit(
                    WatchLanded(filename=item, commit=target, trunk_was=target, nothing=True)
                )
                return
            heads = (*(head for head in known.heads if head != merged.commit), merged.commit)
            known = self._proposals.change(item, branch=known.branch, heads=heads, ci=merged.ci)
            if there == merged.commit or (
                yield from self._patient.get(
                    f"push {known.branch}",
                    self._git.push,
                    known.branch,
                    merged.commit,
                    expected=there,
                )
            ):
                yield from self._propose(candidate, known, title)
                return
            target = yield from self._fetch()
        raise ForgeRefused(f"gave up after {_TRIES} tries: someone keeps pushing to {known.branch}")

    def _branch_of(self, item: str) -> Flow[tuple[Proposal, str]]:
        """Return the item's proposal with its branch, and the branch's commit in the remote."""
        known = self._proposals.read(item)
        if known.number is not None:
            number = known.number
            pull = yield from self._look(number)
            if pull.state == "closed":
                self._proposals.forget(item)
                raise _closed(number)
            if pull.state == "merged":  # by a person, while the item was at work
                self._proposals.forget(item)
                known = Proposal()
        names = branch_names(item)[:_NAMES]
        heads = yield from self._heads([known.branch] if known.branch else names)
        if not known.branch:
            free = next((name for name in names if name not in heads), None)
            if free is None:
                raise ForgeRefused(f"the branches {names[0]} to {names[-1]} all exist")
            known = known.model_copy(update={"branch": free})
        return known, heads.get(known.branch, "")

    def _heads(self, branches: Sequence[str]) -> Flow[dict[str, str]]:
        return self._patient.get("list branches", self._git.heads, branches)

    def _propose(self, candidate: WatchCandidate, known: Proposal, title: str) -> Flow[None]:
        """Open the pull request of the branch, or update it."""
        item, branch, forge = candidate.filename, known.branch, self._forge
        described = self._describe(self._target)(item, title)
        pull = yield from self._patient.do(
            f"find the pull request of {branch}", forge.find_pull_request, branch
        )
        is_new = pull is None or pull.state != "open"
        if pull is None or is_new:
            pull = yield from self._patient.get(
                f"open a pull request of {branch}",
                lambda: forge.open_pull_request(
                    branch=branch,
                    target=self._target,
                    title=described.title,
                    body=described.body,
                    draft=self._settings.draft,
                ),
            )
        else:
            yield from self._patient.do(
                f"edit pull request {pull.number}",
                forge.edit_pull_request,
                pull.number,
                title=described.title,
                body=described.body,
            )
        answered = tuple(dict.fromkeys((*known.answered, *known.answering)))
        self._proposals.change(item, number=pull.number, answered=answered, answering=())
        self._seen.pop(item, None)
        yield from emit(
            WatchProposed(
                filename=item,
                number=pull.number,
                url=pull.url,
                branch=branch,
                commit=known.heads[-1],
                candidate=candidate.commit,
                is_new=is_new,
            )
        )

    # -- wait

    def _look(self, number: int) -> Flow[PullRequest]:
        return self._patient.get(f"look at pull request {number}", self._forge.pull_request, number)

    def _poll(self, proposed: WatchProposed, returns: int) -> Flow[None]:
        """Look at the pull request and act on the result; the last event may end the wait."""
        pull = yield from self._look(proposed.number)
        item = proposed.filename
        if pull.state == "merged":
            was = yield from self._git.known()
            merged = yield from self._fetch()
            yield from self._forget(item)
            yield from emit(
                WatchLanded(
                    filename=item,
                    commit=pull.merged_as or merged,
                    trunk_was=was,
                    branch=pull.branch,
                    url=pull.url,
                )
            )
            return
        if pull.state == "closed":
            self._proposals.forget(item)
            raise _closed(pull.number)
        known = self._known(proposed)
        if pull.head != known.heads[-1]:
            adopted = yield from self._adopted(item, known, pull)
            if adopted is None:
                return
            known = adopted
        is_theirs = pull.head != known.heads[-1]
        seen = self._seen.get(item, _Seen())
        ci = seen.ci.after(pull.head, pull.jobs)
        new = _new_remarks(pull, known)
        remarks = tuple(remark.id for remark in new)
        sent_back: WatchSentBack | None = None
        if pull.conflicts:
            yield from self._fetch()
            sent_back = self._back(item, "conflict", "", returns)
        elif ci.state == "failed" and ci.is_settled:
            if is_theirs:
                raise ForgeRefused(
                    f"someone else pushed to {pull.branch}, and a job failed there: "
                    f"{_names(ci.failed)}"
                )
            yield from self._report(proposed, "red", _names(ci.failed))
            output = yield from self._logs(ci.failed, pull.number)
            sent_back = self._back(item, "ci", output, returns)
        elif new and (pull.head, remarks) == (seen.ci.commit, seen.remarks):
            self._proposals.change(item, answering=remarks)
            sent_back = self._back(item, "review", _quoted(new, pull.number), returns)
        if sent_back is not None:
            yield from self._send_back(proposed, pull, sent_back, is_theirs=is_theirs)
            return
        self._seen[item] = replace(seen, ci=ci, remarks=remarks)
        yield from self._report_open(proposed, pull, known, ci, is_theirs=is_theirs)

    def _known(self, proposed: WatchProposed) -> Proposal:
        """Return the item's proposal, or that of the event if its file is gone."""
        known = self._proposals.read(proposed.filename)
        if known.heads and known.branch == proposed.branch:
            return known
        return self._proposals.change(
            proposed.filename,
            branch=proposed.branch,
            heads=(proposed.commit,),
            number=proposed.number,
        )

    def _adopted(self, item: str, known: Proposal, pull: PullRequest) -> Flow[Proposal | None]:
        """Return the proposal, after adopting a head that only merges the target.

        Returns None while the forge lags behind.
        """
        heads = yield from self._heads([known.branch])
        if heads.get(known.branch) != pull.head:
            return None
        if pull.head in known.heads:  # a person has restored it
            return known
        target = yield from self._fetch()
        yield from self._patient.get(f"fetch {known.branch}", self._git.fetch_theirs, known.branch)
        if (yield from self._git.only_merges(known.heads[-1], pull.head, target)):
            return self._proposals.change(item, heads=(*known.heads, pull.head))
        return known

    def _send_back(
        self, proposed: WatchProposed, pull: PullRequest, back: WatchSentBack, *, is_theirs: bool
    ) -> Flow[None]:
        """Send the item back, with commits that others pushed as its work so far."""
        item = proposed.filename
        if is_theirs:
            commit = yield from self._patient.get(
                f"fetch {pull.branch}", self._git.fetch_candidate, pull.branch, item
            )
            known = self._known(proposed)
            self._proposals.change(item, heads=(*known.heads, commit))
            base = yield from self._git.base_of(commit)
            yield from emit(
                WatchCandidate(
                    filename=item, slot=0, commit=commit, base=base, attempt=back.returns
                )
            )
        self._seen.pop(item, None)
        yield from emit(back)

    def _back(self, item: str, reason: Any, output: str, returns: int) -> WatchSentBack:
        return WatchSentBack(filename=item, reason=reason, output=output, returns=returns + 1)

    def _logs(self, failed: Sequence[Job], number: int) -> Flow[str]:
        """Return the ends of the logs of failed jobs."""
        parts = []
        for job in failed[:_LOGS]:
            try:
                log = yield from self._patient.do(
                    f"read the log of {job.name}", self._forge.log, job
                )
            except ForgeRefused:  # it has expired
                log = None
            text = (log or "")[-_LOG:].strip() or "Its log is not available."
            parts.append(f"The job {job.name} failed.\n\n{text}")
        if others := failed[_LOGS:]:
            parts.append(f"These failed, too: {_names(others)}")
        return _as_data("\n\n".join(parts), f"What failed in pull request {number}")

    def _report_open(
        self,
        proposed: WatchProposed,
        pull: PullRequest,
        known: Proposal,
        ci: Ci,
        *,
        is_theirs: bool,
    ) -> Flow[None]:
        """Report the state of an open pull request, and let the forge merge it if allowed."""
        message = ""
        if is_theirs:
            state = "taken-over"
            message = f"someone else pushed {pull.head[:12]}, so a person has to merge it"
        elif ci.state == "failed":
            state, message = "red", _names(ci.failed)
        elif not ci.is_settled:
            state = "pending"
        elif pull.is_queued:
            state = "queued"
        elif not self._settings.auto_merge:
            state = "green"
        elif pull.is_draft:
            state, message = "blocked", "it is a draft: mark it as ready for review"
        elif known.ci:
            files = ", ".join(known.ci[:5]) + (", ..." if len(known.ci) > 5 else "")
            state = "blocked"
            message = f"it changes CI files, so a person has to merge it: {files}"
        else:
            state, message = yield from self._merge(pull)
        yield from self._report(proposed, state, message)

    def _merge(self, pull: PullRequest) -> Flow[tuple[str, str]]:
        """Let the forge merge it; return the state to report, and a message."""
        merge, number = self._forge.merge_when_allowed, pull.number
        try:
            yield from self._patient.do(
                f"merge pull request {number}", merge, number, head=pull.head
            )
        except ForgeRefused as error:
            return "blocked", error.message
        return "queued", ""

    def _report(self, proposed: WatchProposed, state: Any, message: str = "") -> Flow[None]:
        """Report the state if it has changed."""
        item = proposed.filename
        seen = self._seen.get(item, _Seen())
        if seen.reported != (state, message):
            self._seen[item] = replace(seen, reported=(state, message))
            yield from emit(
                WatchProposal(filename=item, number=proposed.number, state=state, message=message)
            )

    def _forget(self, item: str) -> Flow[None]:
        self._seen.pop(item, None)
        self._proposals.forget(item)
        yield from self._git.forget(item)


def _as_data(text: str, what: str) -> str:
    return shown_to_agents(text, what=what, nonce=secrets.token_hex(8))


def _closed(number: int) -> ForgeRefused:
    return ForgeRefused(f"pull request #{number} was closed without a merge")


def _new_remarks(pull: PullRequest, known: Proposal) -> list[Remark]:
    """Return unanswered trusted remarks, if one requests changes or comments on a file."""
    answered = {*known.answered}
    new = [one for one in pull.remarks if one.is_trusted and one.id not in answered]
    new = [one for one in new if one.body.strip() or one.asks_for_changes]
    return new if any(one.asks_for_changes or one.path for one in new) else []


def _quoted(remarks: Sequence[Remark], number: int) -> str:
    parts = []
    for remark in remarks:
        line = f":{remark.line}" if remark.line is not None else ""
        where = f" on {remark.path}{line}" if remark.path else ""
        parts.append(f"{remark.author}{where}:\n{remark.body[:_REMARK]}")
    return _as_data("\n\n".join(parts), f"A review of pull request {number}")


def _names(jobs: Iterable[Job]) -> str:
    return ", ".join(job.name for job in jobs)


def _is_open(event: WatchEvent) -> bool:
    return not isinstance(event, (WatchLanded, WatchSentBack))
