"""The coding loop: plan, implement, review, until the work matches its specification.

Sources: requirements CUG-001 to CUG-063.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from reactivex import Observable

from cuggino.errors import ProcessError
from cuggino.events import (
    ApprovalBlocked,
    Approved,
    CommitFailed,
    CommitPerformed,
    Done,
    ImplementingStart,
    IterationStart,
    LoopApproved,
    LoopEvent,
    LoopMaxIterations,
    LoopSpecIssue,
    LoopStalled,
    LoopTerminalEvent,
    NoMoreWork,
    NoProgress,
    PlanningStart,
    Progress,
    PushPerformed,
    RequestChanges,
    ReviewingStart,
    SpecIssue,
    TaskLimitReached,
)
from cuggino.loops.coding.commands import Commands, OwnReview, gate_review
from cuggino.loops.coding.convergence import REPLAN, Convergence
from cuggino.loops.coding.gate import Gate, gate_changed_review, gate_section
from cuggino.loops.coding.merging import Merging
from cuggino.loops.coding.options import LoopRunOptions
from cuggino.loops.coding.roles import Roles, check_prompts
from cuggino.loops.frame.control import Control
from cuggino.loops.frame.history import dirty_files, history_kept
from cuggino.loops.frame.run import Run, framed
from cuggino.loops.frame.services import Services
from cuggino.loops.frame.spawning import protected_from_commands
from cuggino.operators import Flow, Ledger, ask, emit, forward
from cuggino.sandbox import Protected
from cuggino.stages import (
    CommitEvent,
    Recovers,
    act,
    commit_stage,
    must_commit,
    push_stage,
    verified,
    verified_commit,
)
from cuggino.storage import WORKSPACE_FOLDER, JournalFile


class LoopService:
    """Runs the coding loop."""

    def __init__(self, services: Services) -> None:
        self.services = services

    def check(self) -> None:
        """Check the prompts of all roles (`check_prompts`)."""
        check_prompts(self.services.prompts)

    def run(
        self,
        options: LoopRunOptions,
        *,
        interrupt: Observable[object] | None = None,
        resume: JournalFile | None = None,
        ledger: Ledger | None = None,
        control: Control | None = None,
    ) -> Observable[LoopEvent]:
        """Run the loop. Cold; each subscription is a run, with its own session and lock.

        ::

            IterationStart PlanningStart [agent] PlanComplete [setup]
              { ImplementingStart [check] [agent] Progress|Done
                [CommitPerformed [PushPerformed]] }
            ReviewingStart [check] [agent] Approved LoopApproved|

            setup: SetupCommandStarted SetupCommandOutput
            check: CheckCommandStarted CheckCommandOutput

        `SandboxChosen` comes first where an agent can be confined. In a git repository
        `SnapshotTaken` precedes the events of each agent.

        Ends with a `LoopTerminalEvent`, or with an error: `LoopError` when an agent failed,
        `BudgetExceeded`, `WorkspaceLocked`, `StorageError`, `WorkNotCommitted`.
        Disposal ends the running agent or command and frees the workspace before it returns; an
        item of `interrupt`, from any thread and also for late subscribers, does so too and fails
        with `Interrupted`. All events are delivered on the scheduler given to `subscribe`.

        Each run writes its journal; that of an unfinished one can be given as `resume`, with the
        options it was started with: the run is resumed at its first unfinished stage, after
        `RunResumed`. The session files are kept for that; those of a finished run are removed.
        Pass `ledger` to share the costs with other runs, and `control` to share the commands; by
        default the run follows the commands of the services.
        """
        return framed(
            self.services,
            options,
            lambda run: CodingRun(run, options),
            interrupt=interrupt,
            resume=resume,
            ledger=ledger,
            control=control,
        )


class CodingRun:
    """One run of the coding loop: the state that its iterations share."""

    reports_interruption = False

    def __init__(self, run: Run, options: LoopRunOptions) -> None:
        self._run = run
        self._services = run.services
        self._session = run.session
        self._options = options
        self._roles = Roles(run, options)
        self._commands = Commands(run, options)
        self._convergence = Convergence(options)
        self._gate = Gate(run.services, options)
        self._merging = Merging(run, options, self._roles, self._protected)
        self._baseline: str | None = None
        self._dirty: Mapping[str, str] = {}
        """Files with uncommitted changes before the run, each with its state."""
        self._uncommitted: str | None = None
        """The message of the latest commit, if it failed; the next one would also contain that
        work."""
        self.is_resumable = True

    def opening(self) -> Flow[None]:
        """Free the repository from the locks of a process that was killed during a commit."""
        repository, resumed = self._services.repository, self._run.resumed
        if resumed is not None and self._options.commit and isinstance(repository, Recovers):
            with suppress(ProcessError):  # the commit will report it
                yield from ask(repository.recover(resumed.first.at))
        yield from self._commands.resume()

    def run(self) -> Flow[None]:
        """Plan, implement and review, until the run has a result."""
        with self._commands.keeping():
            yield from self._iterations()
        self.is_resumable = False

    def _iterations(self) -> Flow[None]:
        options = self._options
        if options.commit:
            self._baseline = yield from ask(self._services.repository.head(), name="baseline")
            self._dirty = yield from dirty_files(
                self._services.repository, options, exclude=(Path(options.specs_path),)
            )
        if options.merge is not None:
            yield from self._merging.begin(options.merge)
            self._baseline = options.merge
        yield from self._convergence.begin(self._fingerprint())
        yield from self._gate.begin(options.merge)
        review = options.review
        for n in range(1, options.max_iterations + 1):
            yield from emit(IterationStart(iteration=n, max_iterations=options.max_iterations))
            verdict: Approved | RequestChanges | OwnReview | SpecIssue | NoProgress | None = None
            if n == 1 and options.merge is not None:
                resolved = yield from self._merging.resolve(n)
                if isinstance(resolved, LoopStalled):
                    return (yield from self._ended(resolved))
                if isinstance(resolved, SpecIssue):
                    verdict = resolved
                elif review is None:
                    yield from self._commands.setup(n)
                    verdict = yield from self._review(n, finished=True)
            if verdict is None:
                verdict = yield from self._planned_work(n, review)
            match verdict:
                case SpecIssue():
                    return (yield from self._blocked(n, verdict))
                case Approved():
                    review = yield from self._gate.approved(n)
                    if review is None:
                        yield from self._commit_the_rest(n)
                        return (yield from self._ended(LoopApproved(iteration=n)))
                    self._convergence.approved()
                    stalled = None
                case RequestChanges(content=content):
                    review = yield from self._review_text(content)
                    stalled = yield from self._convergence.reviewed(
                        n, review, self._services.workspace
                    )
                case OwnReview(content=content):
                    review = yield from self._review_text(content)
                    self._convergence.approved()
                    stalled = None
                case NoProgress():
                    review = REPLAN
                    stalled = self._convergence.stuck(n, verdict)
            if stalled is not None:
                return (yield from self._ended(stalled))
        yield from self._commit_the_rest(options.max_iterations)
        yield from self._ended(
            LoopMaxIterations(
                iteration=options.max_iterations, max_iterations=options.max_iterations
            )
        )

    def _planned_work(
        self, n: int, review: str | None
    ) -> Flow[Approved | RequestChanges | OwnReview | SpecIssue | NoProgress]:
        """Plan, implement and review."""
        yield from emit(PlanningStart(iteration=n))
        news = yield from self._gate.plan(n)
        plan = yield from self._roles.plan("\n\n".join(filter(None, (news, review))) or None)
        if isinstance(plan, SpecIssue):
            return plan
        yield from self._commands.setup(n)
        return (yield from self._work_off_the_plan(n))

    def _work_off_the_plan(
        self, n: int
    ) -> Flow[Approved | RequestChanges | OwnReview | SpecIssue | NoProgress]:
        """Implement task by task, one agent each; then review. With `slow`, review each task."""
        tasks = 0
        while True:
            work = yield from self._implement(n)
            if isinstance(work, SpecIssue):
                return work
            standstill = yield from self._convergence.worked(self._fingerprint())
            if standstill is not None:
                return standstill
            if isinstance(work, NoMoreWork) and self._options.commit and self._convergence.changed:
                yield from self._commit(n, work.content, "commit-rest")
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

    def _commit(self, n: int, message: str, name: str = "commit") -> Flow[None]:
        base = "head" if name == "commit" else "commit-base"
        commit = yield from forward((yield from self._committed(n, message, base)), name=name)
        failed = isinstance(commit, CommitFailed)
        left = isinstance(commit, CommitPerformed) and commit.left
        self._uncommitted = message if failed or left else None
        yield from self._push(n, commit)

    def _commit_the_rest(self, n: int) -> Flow[None]:
        """Commit what the last commit could not; the run fails if that fails."""
        if self._uncommitted is not None:
            commit = yield from self._committed(n, self._uncommitted, "commit-base")
            stage = must_commit(commit)
            yield from self._push(n, (yield from forward(stage, name="commit-rest")))

    def _committed(self, n: int, message: str, name: str) -> Flow[Observable[CommitEvent]]:
        repository = self._services.repository
        # Known before: a commit that was made just before a crash is then not missed.
        base = yield from ask(repository.head(), name=name)
        specs = (Path(self._options.specs_path),)
        commit = commit_stage(
            repository, message, iteration=n, base=base, exclude=specs, dirty=self._dirty
        )
        return commit.pipe(verified_commit(self._protected("commit")))

    def _push(self, n: int, commit: object) -> Flow[None]:
        repository, target = self._services.repository, self._options.push
        if target and isinstance(commit, CommitPerformed):
            push = push_stage(repository, target, commit.commit_hash, iteration=n)
            hooks = verified(
                self._protected("push"),
                is_last=lambda e: isinstance(e, PushPerformed),
                voids=False,
            )
            yield from forward(push.pipe(hooks), name="push")

    def _protected(self, stage: str) -> Protected:
        """Return the paths that git hooks may not change."""
        return protected_from_commands(self._options, stage, session=self._session)

    def _fingerprint(self) -> Observable[str]:
        """Emit the fingerprint of the project and its plan."""
        options = self._options
        exclude = (Path(options.specs_path), Path(WORKSPACE_FOLDER))
        plan = self._session.session_file
        return self._services.project_state(options.cwd, exclude=exclude, plan=plan)

    def _review(
        self, n: int, *, finished: bool
    ) -> Flow[Approved | RequestChanges | OwnReview | SpecIssue]:
        yield from emit(ReviewingStart(iteration=n))
        changed = yield from self._gate.review(n)
        yield from ask(act(self._session.clear_review), name="clear-review")
        check = yield from self._commands.check(n)
        verdict = yield from self._roles.review(
            check,
            self._baseline,
            finished=finished,
            news=f"{gate_section(changed)}{self._merging.section}",
        )
        blocked = self._options.gate == "block" and check is not None and check.exit_code != 0
        if blocked and check is not None and isinstance(verdict, Approved):
            yield from emit(ApprovalBlocked(iteration=n, exit_code=check.exit_code))
            yield from ask(act(self._session.clear_review), name="clear-review")
            return gate_review(check)
        if not isinstance(verdict, SpecIssue) and (void := self._gate.judged(verdict, changed)):
            code = check.exit_code if check is not None else None
            yield from emit(ApprovalBlocked(iteration=n, exit_code=code, changed=void))
            yield from ask(act(self._session.clear_review), name="clear-review")
            return OwnReview(gate_changed_review(void))
        return verdict

    def _review_text(self, content: str) -> Flow[str]:
        """Return the review file if the reviewer wrote one, else the marker's text (CUG-036)."""
        read = act(lambda: self._session.review_text(content))
        text = yield from ask(read, name="review-text")
        return text or content

    def _blocked(self, n: int, issue: SpecIssue) -> Flow[None]:
        workspace = self._services.workspace
        name = yield from ask(act(workspace.new_name), name="issue-name")
        write = act(lambda: workspace.write_spec_issue(issue.content, name=name))
        filename = yield from ask(write, name="issue")
        yield from self._ended(
            LoopSpecIssue(iteration=n, content=issue.content, filename=filename or "")
        )

    def _ended(self, result: LoopTerminalEvent) -> Flow[None]:
        yield from history_kept(self._run, self._gate.base)
        yield from emit(result)
