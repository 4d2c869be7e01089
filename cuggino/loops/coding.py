"""The coding loop: plan, implement, review, until the work matches its specification.

Sources: requirements CUG-001 to CUG-063.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from reactivex import Observable

from cuggino.agents.protocol import LlmAgent, own_files_of
from cuggino.errors import ProcessError
from cuggino.events import (
    ApprovalBlocked,
    Approved,
    CommitPerformed,
    Done,
    ImplementingStart,
    IterationStart,
    LoopApproved,
    LoopEvent,
    LoopMaxIterations,
    LoopSpecIssue,
    LoopTerminalEvent,
    NoMoreWork,
    NoProgress,
    PlanningStart,
    Progress,
    RequestChanges,
    ReviewingStart,
    SpecIssue,
    TaskLimitReached,
)
from cuggino.loops.commands import Commands, gate_review
from cuggino.loops.convergence import REPLAN, Convergence
from cuggino.loops.options import LoopRunOptions
from cuggino.loops.recording import Recording, concluded
from cuggino.loops.roles import Roles, check_prompts
from cuggino.loops.supervising import (
    ledger_of,
    open_journal,
    supervision,
    take_up_agents,
    wait_for_orphans,
)
from cuggino.operators import Flow, Ledger, QuotaGate, ask, emit, flow, forward, on_loop
from cuggino.prompts import Prompts
from cuggino.stages import (
    Recovers,
    Repository,
    Shell,
    Supervision,
    act,
    apart_from,
    commit_stage,
    fingerprint_stage,
    lane,
    push_stage,
    shell_lines,
)
from cuggino.storage import WORKSPACE_FOLDER, JournalFile, Session, Workspace, run_totals


class LoopService:
    """Runs the coding loop with an agent, a repository, a shell and a workspace."""

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
    ) -> None:
        self._agent = agent
        self._workspace = workspace
        self._repository = repository
        self._prompts = prompts or Prompts()
        self.shell = shell
        self._gate = gate or QuotaGate()
        self._fingerprint = apart_from(own_files_of(agent), fingerprint)

    def check(self) -> None:
        """Look whether the agents could be told what to do (`check_prompts`)."""
        check_prompts(self._prompts)

    def run(
        self,
        options: LoopRunOptions,
        *,
        resume: JournalFile | None = None,
        ledger: Ledger | None = None,
    ) -> Observable[LoopEvent]:
        """Run the loop. Cold; each subscription is a run, with a session and a lock of its own.

        ::

            IterationStart PlanningStart [agent] PlanComplete [SetupCommandOutput]
              { ImplementingStart [CheckCommandOutput] [agent] Progress|Done
                [CommitPerformed [PushPerformed]] }
            ReviewingStart [CheckCommandOutput] [agent] Approved LoopApproved|

        Ends with a `LoopTerminalEvent`, or with an error: `LoopError` when an agent failed,
        `BudgetExceeded`, `WorkspaceLocked`, `StorageError`. Disposal ends the running agent or
        command and frees the workspace before it returns. All events are delivered on the
        scheduler given to `subscribe`.

        Each run writes its journal; that of an unfinished one can be given as `resume`, with the
        options it was started with: the run then goes on with its first unfinished stage, after
        `RunResumed`. The session files stay for that; those of a finished run are removed.
        `ledger` counts what is spent, if it is not for this run alone.
        """
        return on_loop(flow(lambda: self._run(options, resume, ledger)))

    def _run(
        self, options: LoopRunOptions, resume: JournalFile | None, ledger: Ledger | None
    ) -> Flow[None]:
        here = yield from ask(lane())
        assert here is not None
        before = self._workspace.owner()
        run_id = resume.run_id if resume else None
        command = options.command
        with self._workspace.session(command=command, since=here.now, session_id=run_id) as session:
            yield from wait_for_orphans(self._workspace, before)
            take_up_agents(self._agent, resume, here.now)
            spent = ledger or ledger_of(resume)
            policies = supervision(options, gate=self._gate, ledger=spent)
            run = _Run(self, session, options, policies)
            if not options.journal:
                yield from run.rounds()
                return
            session.keep = resume is not None
            journal = open_journal(self._workspace, options, session.id, resume, at=here.now)
            session.keep = True
            kept = Recording(journal, resume)
            with concluded(journal, kept, here, resume):
                if resume is not None:
                    yield from emit(run_totals(resume))
                    yield from self._recover(options, resume)
                last = yield from forward(flow(run.rounds, recorder=kept))
            session.keep = not isinstance(last, LoopTerminalEvent)

    def _recover(self, options: LoopRunOptions, resume: JournalFile) -> Flow[None]:
        """Free the repository of what a process has left that was killed in mid-commit."""
        repository = self._repository
        if options.commit and isinstance(repository, Recovers):
            with suppress(ProcessError):  # the commit will say it
                yield from ask(repository.recover(resume.entries[0].at))


class _Run:
    """One run: what its rounds share."""

    def __init__(
        self,
        service: LoopService,
        session: Session,
        options: LoopRunOptions,
        supervised: Supervision,
    ) -> None:
        self._service = service
        self._session = session
        self._options = options
        self._roles = Roles(service._agent, service._prompts, session, options, supervised)
        self._commands = Commands(service.shell, session, options, supervised)
        self._convergence = Convergence(options)
        self._baseline: str | None = None

    def rounds(self) -> Flow[None]:
        """Plan, implement and review, until an approval, a spec issue, or no round is left."""
        options = self._options
        if options.commit:
            self._baseline = yield from ask(self._service._repository.head(), name="baseline")
        yield from self._convergence.begin(self._fingerprint())
        review = options.review
        for n in range(1, options.max_iterations + 1):
            yield from emit(
                IterationStart(iteration=n, max_iterations=options.max_iterations),
                PlanningStart(iteration=n),
            )
            plan = yield from self._roles.plan(review)
            if isinstance(plan, SpecIssue):
                return (yield from self._blocked(n, plan))
            yield from self._commands.setup(n)
            verdict = yield from self._work_off_the_plan(n)
            match verdict:
                case SpecIssue():
                    return (yield from self._blocked(n, verdict))
                case Approved():
                    return (yield from emit(LoopApproved(iteration=n)))
                case RequestChanges(content=content):
                    review = yield from self._review_text(content)
                    stalled = yield from self._convergence.reviewed(
                        n, review, self._service._workspace
                    )
                case NoProgress():
                    review = REPLAN
                    stalled = self._convergence.stuck(n, verdict)
            if stalled is not None:
                return (yield from emit(stalled))
        yield from emit(
            LoopMaxIterations(
                iteration=options.max_iterations, max_iterations=options.max_iterations
            )
        )

    def _work_off_the_plan(
        self, n: int
    ) -> Flow[Approved | RequestChanges | SpecIssue | NoProgress]:
        """Implement task by task, one agent each; then review. With `slow`, review each task."""
        tasks = 0
        while True:
            work = yield from self._implement(n)
            if isinstance(work, SpecIssue):
                return work
            standstill = yield from self._convergence.worked(self._fingerprint())
            if standstill is not None:
                return standstill
            tasks += 1
            finished = not isinstance(work, Progress)
            if not finished and tasks >= self._options.max_tasks_per_plan:
                yield from emit(TaskLimitReached(iteration=n, max_tasks=tasks))
                finished = True
            if not finished and not self._options.slow:
                continue
            verdict = yield from self._review(n, finished=finished)
            if finished or not isinstance(verdict, Approved):
                return verdict
            self._convergence.approved()

    def _implement(self, n: int) -> Flow[Progress | Done | NoMoreWork | SpecIssue]:
        yield from emit(ImplementingStart(iteration=n))
        check = yield from self._commands.check(n)
        work = yield from self._roles.implement(check)
        if self._options.commit and isinstance(work, Progress | Done):
            yield from self._commit(n, work.content)
        return work

    def _commit(self, n: int, message: str) -> Flow[None]:
        repository = self._service._repository
        # Known before: a commit that was made just before a crash is then not missed.
        base = yield from ask(repository.head(), name="head")
        commit = yield from forward(
            commit_stage(repository, message, iteration=n, base=base), name="commit"
        )
        target = self._options.push
        if target and isinstance(commit, CommitPerformed):
            push = push_stage(repository, target, commit.commit_hash, iteration=n)
            yield from forward(push, name="push")

    def _fingerprint(self) -> Observable[str]:
        """What the project and its plan look like now, in a short text."""
        options = self._options
        exclude = (Path(options.specs_path), Path(WORKSPACE_FOLDER))
        look = self._service._fingerprint
        return look(options.cwd, exclude=exclude, plan=self._session.session_file)

    def _review(self, n: int, *, finished: bool) -> Flow[Approved | RequestChanges | SpecIssue]:
        yield from emit(ReviewingStart(iteration=n))
        yield from ask(act(self._session.clear_review), name="clear-review")
        check = yield from self._commands.check(n)
        verdict = yield from self._roles.review(check, self._baseline, finished=finished)
        blocked = self._options.gate == "block" and check is not None and check.exit_code != 0
        if blocked and check is not None and isinstance(verdict, Approved):
            yield from emit(ApprovalBlocked(iteration=n, exit_code=check.exit_code))
            yield from ask(act(self._session.clear_review), name="clear-review")
            return RequestChanges(content=gate_review(check))
        return verdict

    def _review_text(self, content: str) -> Flow[str]:
        """The review file if the reviewer wrote one, else the text of its marker (CUG-036)."""
        read = act(lambda: self._session.review_text(content))
        text = yield from ask(read, name="review-text")
        return text or content

    def _blocked(self, n: int, issue: SpecIssue) -> Flow[None]:
        workspace = self._service._workspace
        name = yield from ask(act(workspace.new_name), name="issue-name")
        write = act(lambda: workspace.write_spec_issue(issue.content, name=name))
        filename = yield from ask(write, name="issue")
        yield from emit(LoopSpecIssue(iteration=n, content=issue.content, filename=filename or ""))
