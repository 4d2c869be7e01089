"""The plan/build loop: plan once into a list of jobs, then build until all is done and verified.

Sources: requirements LOP-001 to LOP-121 (REQ-030 to REQ-036).
"""

from __future__ import annotations

from collections.abc import Callable

from reactivex import Observable

from cuggino.agents.protocol import LlmAgent, own_files_of
from cuggino.events import PlanBuildStreamEvent
from cuggino.loops.durable import Held, Story, durable_run
from cuggino.loops.options import PlanBuildOptions
from cuggino.loops.planning_building import PlanningBuilding
from cuggino.operators import (
    Flow,
    Ledger,
    QuotaGate,
    flow,
    on_loop,
)
from cuggino.prompts import Prompts
from cuggino.prompts.loop_prompts import check_verification_prompts
from cuggino.stages import Repository, Shell, apart_from, fingerprint_stage, shell_lines
from cuggino.stages.commits import Commits, commits_since
from cuggino.storage import JournalFile, Workspace
from cuggino.storage.jobs import JobStore
from cuggino.storage.unverified import UnverifiedJobs


class PlanBuildService:
    """Runs the plan/build loop with an agent, a repository, a shell and a workspace."""

    def __init__(
        self,
        *,
        agent: LlmAgent,
        workspace: Workspace,
        repository: Repository,
        prompts: Prompts | None = None,
        shell: Shell = shell_lines,
        gate: QuotaGate | None = None,
        fingerprint: Callable[..., Observable[str]] = fingerprint_stage,
        commits: Commits = commits_since,
    ) -> None:
        self.agent = agent
        self.workspace = workspace
        self.repository = repository
        self.prompts = prompts or Prompts()
        self.shell = shell
        self.gate = gate or QuotaGate()
        self.fingerprint = apart_from(own_files_of(agent), fingerprint)
        self.commits = commits
        self.store = JobStore(workspace.root)
        self.unverified = UnverifiedJobs(workspace.unverified_jobs)

    def check(self, options: PlanBuildOptions) -> None:
        """Look whether the agents that verify, where some are wanted, could be told what to do.

        Raises:
            ConfigError: a template of the project's own cannot be used.
        """
        if options.verify_after_iteration and not options.plan_only:
            check_verification_prompts(self.prompts)

    def run(
        self,
        options: PlanBuildOptions,
        *,
        interrupt: Observable[object] | None = None,
        resume: JournalFile | None = None,
        ledger: Ledger | None = None,
    ) -> Observable[PlanBuildStreamEvent]:
        """Run the loop. Cold; each subscription is a run with a lock of its own.

        ::

            JobsCounted [PlanBuildPhaseStarted(plan) [agent] PlanBuildSessionEnded {job} JobsCounted
              PlanBuildIterationEnded]
            { PlanBuildPhaseStarted(build) [agent, FileTouched, CommitSeen, SubAgentStarted, ...]
              PlanBuildSessionEnded
              [[PlanBuildPhaseStarted(verify) [agent]] BuildVerified] {job}
              VerificationEnded JobsCounted [DoneFileRejected] PlanBuildIterationEnded }
            PlanBuildEnded|

            job: [PlanBuildPhaseStarted(verify) [agent]] JobVerified [JobBlocked]

        A job counts as done when the verifying agent and the loop's own facts agree, whichever
        session says that it is, also one that fails or plans, or one of an earlier run that was
        stopped before it could be verified; else it goes back with the reasons, and is blocked
        after three failures (LOP-096, LOP-097). A failed session has `PlanBuildSessionRetry` in the
        place of its iteration's end. The done file ends the loop when nothing contradicts it:
        neither an open job, nor one that a building session took out of the jobs file before it was
        verified, nor a finding (LOP-060).

        `PlanBuildEnded` is the last event whatever ended the loop. What ends it as an error follows
        it in the error channel: `QuotaExceeded`, `BudgetExceeded`, `ConfigError` (a protected
        branch, no build prompt), and what every further session would meet too. Without it come
        `WorkspaceLocked` and `StorageError`. An item of `interrupt`, from any thread and also for
        those who subscribe late, ends the running session and the loop (`interrupted`).

        Each run writes its journal, with which another process can go on (`resume`).
        """

        def make(held: Held) -> Flow[Story]:
            yield from ()
            return PlanningBuilding(self, held, options)

        return on_loop(
            flow(
                lambda: durable_run(
                    self.workspace,
                    self.agent,
                    options,
                    make,
                    kind="loop",
                    gate=self.gate,
                    interrupt=interrupt,
                    resume=resume,
                    ledger=ledger,
                )
            )
        )
