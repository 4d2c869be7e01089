"""The plan/build loop: plan once into a list of jobs, then build until all is done and verified.

Sources: requirements LOP-001 to LOP-121 (REQ-030 to REQ-036).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from reactivex import Observable, never

from cuggino.agents.protocol import LlmAgent
from cuggino.events import PlanBuildStreamEvent
from cuggino.loops.deliver_interrupt import Interruption
from cuggino.loops.options import PlanBuildOptions
from cuggino.loops.planning_building import PlanningBuilding
from cuggino.loops.recording import Recording, concluded
from cuggino.loops.supervising import ledger_of, open_journal, supervision, wait_for_orphans
from cuggino.operators import (
    Flow,
    Ledger,
    QuotaGate,
    ask,
    emit,
    flow,
    forward,
    is_outage,
    on_loop,
)
from cuggino.prompts import Prompts
from cuggino.stages import Repository, Shell, act, fingerprint_stage, lane, shell_lines
from cuggino.stages.commits import Commits, commits_since
from cuggino.storage import JournalFile, Workspace, run_totals
from cuggino.storage.jobs import JobStore


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
        self.fingerprint = fingerprint
        self.commits = commits
        self.store = JobStore(workspace.root)

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
        session says that it is, also one that fails or plans; else it goes back with the reasons,
        and is blocked after three failures (LOP-096, LOP-097). A failed session has
        `PlanBuildSessionRetry` in the place of its iteration's end. The done file ends the loop
        when nothing contradicts it: neither an open job nor a finding (LOP-060).

        `PlanBuildEnded` is the last event whatever ended the loop. What ends it as an error follows
        it in the error channel: `QuotaExceeded`, `BudgetExceeded`, `ConfigError` (a protected
        branch, no build prompt), and what every further session would meet too. Without it come
        `WorkspaceLocked` and `StorageError`. An item of `interrupt`, from any thread and also for
        those who subscribe late, ends the running session and the loop (`interrupted`).

        Each run writes its journal, with which another process can go on (`resume`).
        """
        stop = interrupt if interrupt is not None else never()
        return on_loop(flow(lambda: self._run(options, stop, resume, ledger)))

    def _run(
        self,
        options: PlanBuildOptions,
        interrupt: Observable[object],
        resume: JournalFile | None,
        ledger: Ledger | None,
    ) -> Flow[None]:
        here = yield from ask(lane())
        assert here is not None
        before = self.workspace.owner()
        run_id = resume.run_id if resume else None
        interruption = Interruption()
        with (
            self.workspace.session(
                command=options.command, since=here.now, session_id=run_id
            ) as session,
            interruption.heard(interrupt, here),
        ):
            yield from ask(act(self.workspace.ignore_run_files))
            yield from wait_for_orphans(self.workspace, before)
            spent = ledger or ledger_of(resume)
            # A session whose program failed is followed by another one (LOP-064).
            policies = replace(
                supervision(options, gate=self.gate, ledger=spent), transient=is_outage
            )
            run = PlanningBuilding(
                self,
                session,
                options,
                policies,
                interruption=interruption,
                here=here,
                earlier=run_totals(resume).duration if resume else 0.0,
            )
            if not options.journal:
                yield from run.phases()
                return
            session.keep = resume is not None and resume.resumable
            journal = open_journal(
                self.workspace, options, session.id, resume, at=here.now, kind="loop"
            )
            session.keep = True
            kept = Recording(journal, resume)
            with concluded(journal, kept, here, resume):
                if resume is not None:
                    yield from emit(run_totals(resume))
                yield from forward(flow(run.phases, recorder=kept))
            session.keep = run.is_unfinished
