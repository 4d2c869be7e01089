"""The progress of a coding loop, by the state of the project and the findings of reviews."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TypedDict

from reactivex import Observable

from cuggino.domain import (
    Finding,
    ReviewLedger,
    files_named,
    finding_as_markdown,
    parse_findings,
)
from cuggino.events import LoopStalled, NoProgress
from cuggino.loops.coding.options import LoopRunOptions
from cuggino.loops.frame.standstill import described, progress_watch, standstill
from cuggino.operators import Flow, ask, emit, flow
from cuggino.stages import act, count_open_items, state_of_paths
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
    """The open items of the plan."""


def trace_of(session: Session, since: int, project: Observable[str]) -> Observable[Trace]:
    """Emit the trace of an agent; the session file had `since` bytes before it.

    It is made of the markers of the agent, and of what it left in the project outside of the
    fingerprint (`project`).
    """

    def run() -> Flow[None]:
        left = yield from ask(project)
        report = session.text_since(since)
        digest = hashlib.sha256(f"{left}\n{report}".encode()).hexdigest()
        yield from emit(Trace(trace=digest, tasks=count_open_items(session.text_since(0))))

    return flow(run)


class Convergence:
    """A detector of loops without progress; one object per run.

    A fold over the outcomes of stages, so that a resumed run reaches the same verdicts.
    """

    def __init__(self, settings: LoopRunOptions) -> None:
        self._options = settings
        self._progress = progress_watch(settings.progress_patience)
        self._findings: ReviewLedger | None = None
        """The findings of reviews; None before the first one that asks for changes."""
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

    def reviewed(self, n: int, review: str, workspace: Workspace) -> Flow[LoopStalled | None]:
        """Count the findings of a review that asked for changes.

        Returns the end of the loop if they keep coming back, else None. They are stored for a
        person then, unless another run begins with them (`store_findings`).
        """
        if not self._options.review_patience:
            return None
        if self._findings is None:
            self._findings = ReviewLedger(self._options.review_patience)
        names = [*files_named(parse_findings(review)), *self._findings.named]
        read = act(partial(_states, self._options.cwd, self._options.specs_path, names))
        stalled = self._findings.add(review, (yield from ask(read, name="finding-files")))
        if stalled is None:
            return None
        filenames: list[str] = []
        for finding in stalled.findings if self._options.store_findings else ():
            name = yield from ask(act(workspace.new_name), name="finding-name")
            store = partial(_store, workspace.write_tbd_item, finding, name)
            filenames.append((yield from ask(act(store), name="finding")) or "")
        return LoopStalled(
            iteration=n,
            reason="same_findings",
            message=f"{stalled.reviews} reviews in a row found the same",
            filenames=tuple(filenames),
            findings=tuple(finding.what for finding in stalled.findings),
        )

    def approved(self) -> None:
        """Settle all findings after an approving review."""
        if self._findings is not None:
            self._findings.approved()


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


def _store(write: Callable[..., str], finding: Finding, name: str | None) -> str:
    return write(finding_as_markdown(finding), name=name)
