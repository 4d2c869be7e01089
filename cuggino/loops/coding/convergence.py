"""The progress of a coding loop, by the state of the project and the findings of reviews."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from reactivex import Observable

from cuggino.config import LoopSettings
from cuggino.domain import Finding, ProgressWatch, ReviewLedger, finding_as_markdown
from cuggino.events import LoopStalled, NoProgress
from cuggino.operators import Flow, ask, emit
from cuggino.stages import act
from cuggino.storage import Workspace

REPLAN = (
    "The last agents worked and nothing changed in the project, or it went back and forth between "
    "the same states. Find out why, and plan another way: smaller tasks, what stands in the way "
    "first. If the specification itself cannot be met, say so as a spec issue."
)
"""What the planning agent is told after a standstill, in the place of a review."""


class Convergence:
    """Notices a loop without progress; one object per run.

    A fold over the outcomes of stages, so that a resumed run comes to the same verdicts.
    """

    def __init__(self, settings: LoopSettings) -> None:
        patience = settings.progress_patience
        self._progress = ProgressWatch(patience) if patience else None
        self._findings = (
            ReviewLedger(settings.review_patience) if settings.review_patience else None
        )
        self._replanned = False
        self._state = ""
        self.changed = False
        """Whether the last implementing agent changed the project or its plan."""

    def begin(self, fingerprint: Observable[str]) -> Flow[None]:
        """Take the state before the first agent works."""
        if self._progress is not None:
            self._state = (yield from ask(fingerprint, name="fingerprint")) or ""
            self._progress.start(self._state)

    def worked(self, fingerprint: Observable[str]) -> Flow[NoProgress | None]:
        """An implementing agent has ended; emits and gives `NoProgress` at a standstill."""
        if self._progress is None:
            return None
        now = (yield from ask(fingerprint, name="fingerprint")) or ""
        self.changed, self._state = now != self._state, now
        kind = self._progress.observe(now)
        if kind is None:
            return None
        standstill = NoProgress(
            kind=kind,
            agents=self._progress.agents,
            action="stop" if self._replanned else "replan",
        )
        self._replanned = True
        yield from emit(standstill)
        return standstill

    def stuck(self, n: int, standstill: NoProgress) -> LoopStalled | None:
        """Return the result after a second standstill; None after the first, which plans again."""
        if standstill.action == "replan":
            return None
        how = "changed nothing" if standstill.kind == "unchanged" else "came back to the same state"
        return LoopStalled(
            iteration=n,
            reason="no_progress",
            message=f"{standstill.agents} agents in a row {how}, also after a new plan",
        )

    def reviewed(self, n: int, review: str, workspace: Workspace) -> Flow[LoopStalled | None]:
        """A review asked for changes; when they are the same again and again, they are stored.

        Gives how the loop ends, None when it goes on.
        """
        if self._findings is None:
            return None
        stalled = self._findings.add(review)
        if stalled is None:
            return None
        filenames: list[str] = []
        for finding in stalled.findings:
            name = yield from ask(act(workspace.new_name), name="finding-name")
            store = partial(_store, workspace.write_tbd_item, finding, name)
            filenames.append((yield from ask(act(store), name="finding")) or "")
        return LoopStalled(
            iteration=n,
            reason="same_findings",
            message=f"{stalled.reviews} reviews in a row found the same",
            filenames=tuple(filenames),
        )

    def approved(self) -> None:
        """Settle all findings after an approving review."""
        if self._findings is not None:
            self._findings.approved()


def _store(write: Callable[..., str], finding: Finding, name: str | None) -> str:
    return write(finding_as_markdown(finding), name=name)
