"""CI of a commit or of a pull request: its state over several polls, as a value and as a stream."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from reactivex import Observable, defer, operators as ops

from cuggino.domain import Schedule
from cuggino.events import WatchForgeWaiting
from cuggino.forge.model import CheckState, Forge, Job, ci_state
from cuggino.forge.patience import Patient
from cuggino.operators import Flow, emit, flow
from cuggino.operators.repeat_on import repeat_on

EVERY = Schedule.constant("1m")
_JOBLESS_POLLS = 3
"""Consecutive polls that must find no jobs before a commit counts as having no CI."""
_FAILED_POLLS = 2
"""Consecutive polls after which a failure counts, even if other jobs are pending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ci:
    """CI of a commit, as the latest poll found it."""

    commit: str = ""
    jobs: tuple[Job, ...] = ()
    polls: int = 0
    """Consecutive polls that found this commit in this state."""

    @property
    def state(self) -> CheckState:
        """Return the combined state of the jobs."""
        return ci_state(self.jobs)

    @property
    def is_settled(self) -> bool:
        """Return whether the state is an outcome.

        It is not while jobs are pending. The other jobs of a failed one are waited for until the
        next poll, and jobs that have not appeared yet for three polls.
        """
        if self.state == "none":
            return self.polls >= _JOBLESS_POLLS
        if self.state == "failed" and self.polls >= _FAILED_POLLS:
            return True
        return all(job.state != "pending" for job in self.jobs)

    @property
    def failed(self) -> tuple[Job, ...]:
        """Return the failed jobs."""
        return tuple(job for job in self.jobs if job.state == "failed")

    def after(self, commit: str, answer: Iterable[Job]) -> Ci:
        """Return the value after another poll."""
        jobs = tuple(answer)
        is_same = (commit, ci_state(jobs)) == (self.commit, self.state)
        return Ci(commit=commit, jobs=jobs, polls=self.polls + 1 if is_same else 1)


def ci_of(
    forge: Forge, of: str | int, *, schedule: Schedule = EVERY
) -> Observable[Ci | WatchForgeWaiting]:
    """Poll CI of a commit, or of the head of a pull request given by its number.

    ::

        jobs:       p-p---f-f---|       p: pending, f: failed
        ci_of:      p-----f-f'--|       f': settled

    Emits a `Ci` when jobs, commit or `is_settled` have changed, and `WatchForgeWaiting` while the
    forge limits requests or cannot be reached. Completes when the schedule is exhausted; to wait
    for the outcome, take the first `Ci` that `is_settled`.

    Errors: `ForgeRefused` if the commit or the pull request does not exist.
    """
    patient = Patient(forge)

    def watched(_scheduler: Any) -> Observable[Any]:
        known = Ci()

        def poll() -> Flow[None]:
            nonlocal known
            before = known
            if isinstance(of, int):
                pull = yield from patient.get(f"look at pull request {of}", forge.pull_request, of)
                known = before.after(pull.head, pull.jobs)
            else:
                listing = forge.jobs(of).pipe(ops.to_list())
                jobs = yield from patient.get(f"look at the jobs of {of}", lambda: listing)
                known = before.after(of, jobs)
            if _shown(known) != _shown(before):
                yield from emit(known)

        return flow(poll).pipe(repeat_on(schedule))

    return defer(watched)


def _shown(ci: Ci) -> tuple[object, ...]:
    return ci.commit, ci.jobs, ci.is_settled
