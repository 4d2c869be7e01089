"""The plan/build loop: plan once into a list of jobs, then build until all is done and verified.

Sources: requirements LOP-001 to LOP-121 (REQ-030 to REQ-036).
"""

from __future__ import annotations

from reactivex import Observable

from cuggino.events import PlanBuildStreamEvent
from cuggino.loops.frame.framing import Frame, framed
from cuggino.loops.plan_build.options import PlanBuildOptions
from cuggino.loops.plan_build.run import PlanBuildRun
from cuggino.operators.supervision import Ledger, is_outage
from cuggino.prompts import check_verification_prompts
from cuggino.stages import Services
from cuggino.storage import JobStore, JournalFile


class PlanBuildService:
    """Runs the plan/build loop."""

    def __init__(self, services: Services) -> None:
        self.services = services

    def check(self, options: PlanBuildOptions) -> None:
        """Check the jobs, and the prompts of the verifying agents, if there are any.

        Raises:
            ConfigError: the jobs file or a template of the project cannot be used.
        """
        JobStore(self.services.workspace.root).check()
        if options.verify_after_iteration and not options.plan_only:
            check_verification_prompts(self.services.prompts)

    def run(
        self,
        options: PlanBuildOptions,
        *,
        interrupt: Observable[object] | None = None,
        resume: JournalFile | None = None,
        ledger: Ledger | None = None,
    ) -> Observable[PlanBuildStreamEvent]:
        """Run the loop. Cold; each subscription is a run with its own lock.

        ::

            JobsCounted [PlanBuildPhaseStarted(plan) [agent] PlanBuildSessionEnded {job} JobsCounted
              PlanBuildIterationEnded]
            { PlanBuildPhaseStarted(build) [agent, FileTouched, CommitSeen, SubAgentStarted, ...]
              PlanBuildSessionEnded {CheckCommandStarted}
              [[PlanBuildPhaseStarted(verify) [agent]] BuildVerified] {job}
              VerificationEnded JobsCounted [DoneFileRejected] PlanBuildIterationEnded }
            PlanBuildEnded|

            job: [PlanBuildPhaseStarted(verify) [agent]] JobVerified [JobBlocked]

        A job counts as done when the verifying agent and the loop's own facts agree, whichever
        session reports it, also one that fails or plans, or one of an earlier run that was
        stopped before it could be verified; else it goes back with the reasons, and is blocked
        after three failures. A failed session has `PlanBuildSessionRetry` in the
        place of its iteration's end. The done file ends the loop when nothing contradicts it:
        neither an open job, nor one that a building session took out of the jobs file before it was
        verified, nor a finding.

        `PlanBuildEnded` is always the last event. An error that ends the loop follows it in the
        error channel: `QuotaExceeded`, `BudgetExceeded`, `ConfigError` (a protected branch, no
        build prompt), and any that every further session would meet. Without it come
        `WorkspaceLocked` and `StorageError`. An item of `interrupt`, from any thread and also for
        those who subscribe late, ends the running session and the loop (`interrupted`).

        Each run writes its journal, with which another process can resume it (`resume`).
        """
        return framed(
            self.services,
            options,
            lambda run: PlanBuildRun(run, options),
            # Another session follows one whose program failed (LOP-064).
            Frame(interrupt=interrupt, resume=resume, ledger=ledger, transient=is_outage),
        )
