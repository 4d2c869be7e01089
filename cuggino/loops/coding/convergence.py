"""The progress of a coding loop, by the state of the project and the findings of reviews."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypedDict

from reactivex import Observable

from cuggino.domain import (
    Finding,
    LedgerEntry,
    NamedFiles,
    ReviewLedger,
    files_named,
    finding_as_markdown,
    judged,
    parse_findings,
)
from cuggino.events import (
    Approved,
    ImprovementsKept,
    LoopStalled,
    NoProgress,
    RequestChanges,
)
from cuggino.gate import State, Work
from cuggino.loops.coding.options import LoopRunOptions
from cuggino.loops.frame.standstill import described, progress_watch, standstill
from cuggino.operators import Flow, ask, emit, flow
from cuggino.stages import act, state_of_paths
from cuggino.storage import Session, Workspace

REPLAN = (
    "The last agents worked and nothing changed in the project, or it went back and forth between "
    "the same states. Find out why, and plan another way: smaller tasks, what stands in the way "
    "first. If the specification itself cannot be met, say so as a spec issue."
)
"""The instruction to the planning agent after a standstill, in place of a review."""


class Trace(TypedDict):
    """What an agent left besides the state of the project."""

    trace: str
    tasks: int
    """The open tasks of the plan."""


def trace_of(session: Session, since: int, project: Observable[str]) -> Observable[Trace]:
    """Emit the trace of an agent; the session file had `since` bytes before it.

    It is made of the markers of the agent, and of what it left in the project outside of the
    fingerprint (`project`).
    """

    def run() -> Flow[None]:
        left = yield from ask(project)
        report = session.text_since(since)
        digest = hashlib.sha256(f"{left}\n{report}".encode()).hexdigest()
        open_tasks, _reports = session.tasks()
        yield from emit(Trace(trace=digest, tasks=open_tasks))

    return flow(run)


class Reviewed(TypedDict):
    """The files of the project at a review."""

    state: State | None
    changed: list[str] | None
    """The files that changed since the review before; None if they are unknown."""


def _looked(work: Work, before: Reviewed | None, own: Sequence[str]) -> Observable[Reviewed]:
    def run() -> Flow[None]:
        changed: list[str] | None = None
        if before is not None and before["state"] is not None:
            found = yield from ask(work.changed(before["state"]))
            if found is not None and found["tree"] is not None:
                changed = sorted({*found.get("changed", ()), *found.get("added", ())} - {*own})
        yield from emit(Reviewed(state=(yield from ask(work.state())), changed=changed))

    return flow(run)


class Convergence:
    """A detector of loops without progress; one object per run.

    A fold over the outcomes of stages, so that a resumed run reaches the same verdicts.
    """

    def __init__(self, settings: LoopRunOptions) -> None:
        self._options = settings
        self._progress = progress_watch(settings.progress_patience)
        self._ledger = ReviewLedger(settings.review_patience)
        self._seen: Reviewed | None = None
        """The files at the latest review; None in a run that an earlier version began."""
        self._replanned = False
        self.state = ""
        """The fingerprint of the project before the next agent; "" if it is not watched."""
        self.changed = False
        """True if the last implementing agent changed the project or its plan."""

    def begin(self, fingerprint: Observable[str]) -> Flow[None]:
        """Record the state before the first agent works."""
        if self._progress is not None:
            self.state = (yield from ask(fingerprint, name="fingerprint")) or ""
            self._progress = self._progress.started(self.state)

    def worked(
        self, fingerprint: Observable[str], trace: Observable[Trace]
    ) -> Flow[NoProgress | None]:
        """Compare the project after an agent; emit and return `NoProgress` at a standstill.

        An agent that changed nothing is judged by its `trace`. A run that an earlier version began
        has none.
        """
        if self._progress is None:
            return None
        now = (yield from ask(fingerprint, name="fingerprint")) or ""
        self.changed, self.state = now != self.state, now
        left = None if self.changed else (yield from ask(trace, name="trace"))
        if left is None:
            self._progress = self._progress.after(now)
        else:
            self._progress = self._progress.after(now, trace=left["trace"], tasks=left["tasks"])
        found = standstill(self._progress, action="stop" if self._replanned else "replan")
        if found is not None:
            self._replanned = True
            yield from emit(found)
        return found

    def stuck(self, n: int, found: NoProgress) -> LoopStalled | None:
        """Return the result after a second standstill; None after the first, which plans again."""
        if found.action == "replan":
            return None
        return LoopStalled(
            iteration=n,
            reason="no_progress",
            message=f"{described(found, 'agents')}, also after a new plan",
        )

    def review(self, work: Work, own: Sequence[str]) -> Flow[str]:
        """Look at what changed since the latest review; return the section for the next one.

        `own` are files of the agent's programs, and no work.
        """
        before = self._seen
        self._seen = yield from ask(_looked(work, before, own), name="review-files")
        return earlier_reviews_section(self._ledger, before, self._seen)

    def judged(self, n: int, review: str, workspace: Workspace) -> Flow[Approved | RequestChanges]:
        """Enter a review that requests changes into the ledger; return what it counts as.

        Improvements are stored for a person. A run that an earlier version began is not judged.
        """
        files = None
        if self._options.review_patience:
            names = [*files_named(parse_findings(review)), *self._ledger.named]
            read = act(partial(_states, self._options.cwd, self._options.specs_path, names))
            files = yield from ask(read, name="finding-files")
        yield from self._enter(n, review, files, workspace)
        if self._seen is not None and self._ledger.judgment.is_approval:
            return Approved(content=review)
        return RequestChanges(content=review)

    def praised(self, n: int, review: str, workspace: Workspace) -> Flow[None]:
        """Store the improvements that an approving reviewer has written down."""
        if judged(review, self._ledger, changed=self._changed).is_approval:
            yield from self._enter(n, review, None, workspace)

    def reviewed(self, n: int, workspace: Workspace) -> Flow[LoopStalled | None]:
        """Return the end of the loop if the findings of reviews keep coming back, else None.

        The findings are stored for a person then, unless another run begins with them
        (`store_findings`).
        """
        stalled = self._ledger.stalled
        if stalled is None:
            return None
        stored = stalled.findings if self._options.store_findings else ()
        return LoopStalled(
            iteration=n,
            reason="same_findings",
            message=f"{stalled.reviews} reviews in a row found the same",
            filenames=(yield from _store(stored, workspace)),
            findings=tuple(finding.what for finding in stalled.findings),
        )

    def approved(self) -> None:
        """Settle all findings after an approving review."""
        self._ledger = self._ledger.approved()

    def to_plan(self, review: str) -> str:
        """Return the review for the planning agent, which plans no improvements."""
        improvements = self._ledger.judgment.improvements
        if self._seen is None or not improvements:
            return review
        titles = "; ".join(entry.finding.title for entry in improvements)
        return f"{review.rstrip()}\n\n{_NOT_TO_PLAN.format(titles=titles)}"

    @property
    def _changed(self) -> tuple[str, ...] | None:
        """The files that changed since the latest review, None if they are unknown.

        After a change of the specifications any file may be wrong.
        """
        changed = self._seen["changed"] if self._seen is not None else None
        if changed is None or any(_is_below(path, self._options.specs_path) for path in changed):
            return None
        return tuple(changed)

    def _enter(
        self, n: int, review: str, files: NamedFiles | None, workspace: Workspace
    ) -> Flow[None]:
        """Enter a review into the ledger, and store its improvements that are not stored yet."""
        kept = {entry.id for entry in self._ledger.entries if entry.state == "kept"}
        self._ledger = self._ledger.after(review, files=files, changed=self._changed)
        judgment = self._ledger.judgment
        new = [entry.finding for entry in judgment.improvements if entry.id not in kept]
        if self._seen is None or not (new or judgment.is_approval):
            return
        filenames = yield from _store(new, workspace, is_improvement=True)
        yield from emit(
            ImprovementsKept(
                iteration=n,
                findings=tuple(entry.finding.what for entry in judgment.improvements),
                filenames=filenames,
                approves=judgment.is_approval,
            )
        )


def earlier_reviews_section(
    ledger: ReviewLedger, before: Reviewed | None, now: Reviewed | None
) -> str:
    """Return the section on earlier reviews in the prompt of the reviewer, or ""."""
    if before is None and not ledger.entries:
        return ""
    parts = ["This run was reviewed before."]
    then, here = (seen["state"] if seen is not None else None for seen in (before, now))
    if then is not None and here is not None and now is not None and now["changed"] is not None:
        paths = _listed(now["changed"])
        see = f"`git diff --text {then['tree']} {here['tree']}`"
        if then["head"] and then["head"] != here["head"]:
            see += f", and the commits with `git log {then['head']}..HEAD`"
        what = f"these files have changed: {paths}. See {see}." if paths else "nothing has changed."
        parts.append(f"Since the latest review {what}")
    parts.append(_SECOND_REVIEW)
    section = " ".join(parts)
    entries = "\n".join(map(_line, ledger.entries[:_MOST_LISTED]))
    return f"\n\n{section}\n\n{entries}" if entries else f"\n\n{section}"


def _line(entry: LedgerEntry) -> str:
    repeats = f", {entry.repeats} reviews in a row" if entry.repeats > 1 else ""
    where = f"`{entry.finding.where}`: " if entry.finding.where else ""
    return f"   - {entry.id} ({_STATES[entry.state]}{repeats}) {where}{entry.finding.title}"


def _listed(paths: Sequence[str]) -> str:
    listed = ", ".join(f"`{path}`" for path in paths[:_MOST_LISTED])
    more = len(paths) - _MOST_LISTED
    return f"{listed} and {more} more" if more > 0 else listed


_MOST_LISTED = 50
_STATES = {"open": "open", "settled": "settled", "kept": "improvement, kept for a person"}
_SECOND_REVIEW = (
    "Review what has changed, and whether each open finding of the list below is resolved. Begin a "
    "finding that is in the list with its id, and repeat no improvement of it. A new finding about "
    "files that have not changed blocks the work only if it names the clause of the specification "
    "that demands it, or has a line `Reason: ...` that says why it must be solved now; without "
    "either it counts as an improvement."
)
_NOT_TO_PLAN = (
    "No specification demands the following, so plan nothing for it; it is kept for a person: "
    "{titles}"
)


def _store(
    findings: Iterable[Finding], workspace: Workspace, *, is_improvement: bool = False
) -> Flow[tuple[str, ...]]:
    """Write a file in `.cuggino/tbd/` for each finding; return their names."""
    filenames: list[str] = []
    for finding in findings:
        name = yield from ask(act(workspace.new_name), name="finding-name")
        content = finding_as_markdown(finding, is_improvement=is_improvement)
        store = partial(workspace.write_tbd_item, content, name=name)
        filenames.append((yield from ask(act(store), name="finding")) or "")
    return tuple(filenames)


def _states(root: Path, specs: str, names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the files that each name refers to, with their digests; "" for a missing one.

    A name that is not a path in the project refers to all files whose path ends with it. The
    specifications are left out: they define the work and are not a place of it.
    """
    wanted = [name for name in dict.fromkeys(names) if name and not _is_below(name, specs)]
    missing = [name for name in wanted if not (root / name).exists()]
    paths: dict[str, list[str]] = {name: [] if name in missing else [name] for name in wanted}
    for path in _files(root) if missing else ():
        for name in missing:
            if path.endswith(f"/{name}"):
                paths[name].append(path[1:])
    states = {name: state_of_paths(root, found, whole=True) for name, found in paths.items()}
    return {name: state or {name: ""} for name, state in states.items()}


def _is_below(name: str, folder: str) -> bool:
    return f"{os.path.normpath(name)}/".startswith(f"{os.path.normpath(folder)}/")


def _files(root: Path) -> Iterator[str]:
    """Yield the paths of all files, with a leading slash, but not those in hidden folders."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name[0] != "." and name not in _LARGE]
        yield from (f"/{Path(folder, name).relative_to(root).as_posix()}" for name in names)


_LARGE = frozenset({"node_modules", "target", "vendor", "venv"})
