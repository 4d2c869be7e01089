"""The course of a deliver run: a pure fold over its sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from cuggino.domain import (
    Deliverable,
    Deliverables,
    DeliverProgress,
    HasCost,
    Terminate,
    Verification,
    decide_delivery,
)
from cuggino.events import (
    DeliverablesListed,
    DeliverEnded,
    DeliverExit,
    DeliverInstruction,
    DeliverOutcome,
    DeliverSessionEnded,
    NoProgress,
    SessionOutcome,
)
from cuggino.loops.deliver.options import DeliverRunOptions
from cuggino.loops.frame.standstill import Failures, described, progress_watch, standstill
from cuggino.prompts import RUN, SYNC, choose_instruction

_OUTCOMES: Mapping[DeliverOutcome, SessionOutcome] = {
    "completed": "completed",
    "execution_error": "failed",
    "error": "failed",
    "max_turns": "max_turns",
    "interrupted": "interrupted",
    "budget": "budget",
    "quota": "quota",
}


class Course:
    """The state of one run.

    It decides by the outcomes of stages alone, so a resumed run takes the same course.
    """

    def __init__(self, options: DeliverRunOptions) -> None:
        self._options = options
        self.sessions = 0
        """Sessions started."""
        self.failures = Failures()
        """Failed sessions in a row."""
        self.listed: DeliverablesListed | None = None
        """The deliverables as last seen; None when they are unknown."""
        self.to_verify: tuple[str, ...] | None = None
        """The ids that are to be verified; None while deliverables are made."""
        self.error = ""
        """The latest error, which is reported if the run ends because of it."""
        self._refuted: Counter[str] = Counter()
        self._progress = progress_watch(options.progress_patience)

    @property
    def watches_progress(self) -> bool:
        """True if the state of the project is needed after each session."""
        return self._progress is not None

    def instruction(self, *, is_planned: bool) -> DeliverInstruction:
        """Return the instruction of the next session; `is_planned` if a status file exists."""
        if self._options.workflow == "sync":
            return choose_instruction(SYNC, is_planned=self.to_verify is not None)
        if self.to_verify is not None:
            return "verify"
        return choose_instruction(RUN, is_planned=is_planned)

    def ended(self, session: DeliverSessionEnded) -> None:
        self.failures = self.failures.after(session)
        self.error = self.failures.message

    def unverified(self, *, only_passed: bool) -> tuple[str, ...]:
        """Begin the verification, and return the ids of the deliverables to verify."""
        known = self.listed.deliverables if self.listed is not None else ()
        self.to_verify = tuple(x.id for x in known if x.status == "passed" or not only_passed)
        return self.to_verify

    def decide(self, session: DeliverSessionEnded | None) -> DeliverExit | None:
        """Return why the run ends, by the rules (AUT-050), or None.

        After a `session` without a result the deliverables are unknown (AUT-058).
        """
        blind = session is not None and session.outcome == "error"
        known = None if blind else self.listed
        decision = decide_delivery(
            DeliverProgress(
                outcome=_OUTCOMES[session.outcome] if session is not None else None,
                deliverables=_as_domain(known) if known is not None else None,
                iterations=self.sessions,
                max_iterations=self._options.max_sessions,
                consecutive_errors=self.failures.times,
                max_retries=self._options.max_retries,
                has_budget=self._options.has_budget,
                sync=self._options.workflow == "sync" or self.to_verify is not None,
                verification=self._verification() if known is not None else None,
            )
        )
        # Waits are within the sessions, see `wait_for_quota`.
        return decision.reason if isinstance(decision, Terminate) else None

    def verified(self, session: DeliverSessionEnded | None) -> DeliverExit | None:
        """End the verification: refuted deliverables are worked on again, or given up."""
        known = self.listed or DeliverablesListed()
        if _as_domain(known).all_achievable_passed:
            return "all_verified"
        self.to_verify = None
        refuted = [x.id for x in known.deliverables if x.status == "pending"]
        self._refuted.update(refuted)
        patience = self._options.review_patience
        stuck = [item for item in refuted if patience and self._refuted[item] >= patience]
        if stuck:
            self.error = f"{', '.join(stuck)}: failed verification {patience} times"
            return "stalled"
        return self.decide(session)

    def begin(self, files: str) -> None:
        """Note the state of the project before the first session."""
        if self._progress is not None:
            self._progress = self._progress.started(self._state(files))

    def moved(self, files: str) -> NoProgress | None:
        """Compare the project after a session; return the standstill that ends the run, or None."""
        if self._progress is None:
            return None
        self._progress = self._progress.after(self._state(files))
        found = standstill(self._progress)
        if found is not None:
            self.error = described(found, "sessions")
        return found

    def conclusion(
        self, reason: DeliverExit, *, error: str, paid: HasCost, duration: float
    ) -> DeliverEnded:
        """Return the result (AUT-035)."""
        known = self.listed or DeliverablesListed()
        verification = self._verification()
        return DeliverEnded(
            reason=reason,
            sessions=self.sessions,
            passed=known.passed,
            total=len(known.deliverables),
            blocked=known.blocked,
            verified=len(verification.verified) if verification is not None else None,
            to_verify=len(verification.all) if verification is not None else 0,
            cost_usd=paid.cost_usd or 0.0,
            cost_estimated=paid.cost_estimated,
            duration=duration,
            max_iterations=self._options.max_sessions,
            max_retries=self._options.max_retries,
            sync=self._options.workflow == "sync",
            error=error,
        )

    def _state(self, files: str) -> str:
        known = self.listed.deliverables if self.listed is not None else ()
        return f"{files} {[(item.id, item.status, item.verified) for item in known]}"

    def _verification(self) -> Verification | None:
        if self.to_verify is None or self.listed is None:
            return None
        wanted = [item for item in self.listed.deliverables if item.id in self.to_verify]
        return Verification(
            all=tuple(item.id for item in wanted),
            verified=frozenset(item.id for item in wanted if item.verified),
        )


def _as_domain(known: DeliverablesListed) -> Deliverables:
    return Deliverables(
        created_at="",
        updated_at="",
        items=tuple(
            Deliverable(id=x.id, description=x.description, acceptance_criteria=(), status=x.status)
            for x in known.deliverables
        ),
    )
