"""One run of the coding loop: which stage follows which, and when it is over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from reactivex import Observable, concat

from cuggino.agents.base import Role
from cuggino.domain import Decision, title_of
from cuggino.events import (
    Approved,
    CommitFailed,
    CommitPerformed,
    Done,
    Event,
    ImplementingStart,
    IterationStart,
    LoopApproved,
    LoopMaxIterations,
    LoopSpecIssue,
    LoopStalled,
    LoopTerminalEvent,
    NoMoreWork,
    NoProgress,
    PlanComplete,
    PlanningStart,
    PlanWritten,
    Progress,
    RequestChanges,
    ReviewingStart,
    SpecIssue,
    TaskLimitReached,
    Waiting,
)
from cuggino.loops.coding.convergence import REPLAN, Convergence, Trace, trace_of
from cuggino.loops.coding.gate import Gate, OwnReview
from cuggino.loops.coding.merging import (
    TRIES,
    Conflicts,
    conclude_merge,
    conflicts_section,
    merge_into_work,
)
from cuggino.loops.coding.options import LoopRunOptions
from cuggino.loops.frame.history import dirty_files, history_kept
from cuggino.loops.frame.run import Run, Story
from cuggino.operators import Flow, ask, emit, flow, forward
from cuggino.stages import (
    KeptProcesses,
    Turn,
    Waited,
    act,
    commit_stage,
    implementing_stage,
    must_commit,
    planning_stage,
    push_stage,
    resolving_stage,
    reviewing_stage,
    setup_stage,
)
from cuggino.storage import WORKSPACE_FOLDER, finished_stages

Verdict: TypeAlias = Approved | RequestChanges | OwnReview | SpecIssue | NoProgress | LoopStalled
"""How an iteration ended."""


_LONGEST_TITLE = 60
_REJECTED_PLAN = """\
The user has rejected the plan below{words}

Write another plan.

{plan}"""
_REJECTED_WORK = """\
The work was reviewed and approved, but the user has rejected it before it could land{words}"""


def _words(decision: Decision) -> str:
    return f":\n\n{decision.text}" if decision.text else ", without a reason."


class _Before(NamedTuple):
    """The state of the project before the first agent."""

    baseline: str | None = None
    """The commit that reviews compare with."""
    dirty: Mapping[str, str] = MappingProxyType({})
    """Files with uncommitted changes, each with its state."""
    conflicts: Conflicts = Conflicts()


class CodingRun(Story):
    """One run of the coding loop: the state that its iterations share."""

    plan_form = ""
    """Instructions on the form of the plan, added to the prompt of the planning agent."""

    def __init__(self, run: Run, options: LoopRunOptions) -> None:
        self._run = run
        self._options = options
        self._services = run.services
        self._session = run.session
        self._place = replace(
            run.place,
            focus=options.focus,
            linger=options.linger,
            command_timeout=options.command_timeout,
            apart=options.apart,
        )
        self._convergence = Convergence(options)
        old = run.resumed is not None and "baseline" not in run.resumed.started.options
        self._gate = Gate(self._place, options, is_old=old)
        self._kept = KeptProcesses()
        self._before = _Before()
        self._is_merged = True
        """False while the conflicts of the merge that the options ask for are unresolved."""
        self._is_set_up = False
        """True if the setup command has run before the first plan, for the check there."""
        self._log_size = 0
        """The length of the session file before the latest implementing agent."""
        self._uncommitted: str | None = None
        """The message of the latest commit, if it failed; the next one would also contain that
        work."""
        self._unpushed: str | None = None
        """The latest commit, if it is to be pushed."""
        self._commits: tuple[str, ...] = ()
        """The commits, each with its subject."""

    def opening(self) -> Flow[None]:
        """Start again what the setup command keeps running; it ended with the earlier process."""
        options, resumed = self._options, self._run.resumed
        if resumed is None:
            return
        had_setup = any(stage.name == "setup" for stage in finished_stages(resumed))
        if options.setup_keeps_running and options.setup_command and had_setup:
            try:
                yield from ask(self._setup_stage(1))
            except BaseException:
                self._kept.end()
                raise

    def run(self) -> Flow[None]:
        """Plan, implement and review, until the run has a result."""
        try:
            result = yield from self._until_done()
        finally:
            self._kept.end()  # what the setup command has left running
        if self._is_merged:  # before, the work does not have the commit to be merged
            yield from history_kept(self._run, self._gate.base)
        yield from emit(result)
        self.is_resumable = False

    def _until_done(self) -> Flow[LoopTerminalEvent]:
        options, review = self._options, self._options.review
        ended = yield from self._begin()
        if ended is not None:
            return ended
        for n in range(1, options.max_iterations + 1):
            yield from emit(IterationStart(iteration=n, max_iterations=options.max_iterations))
            verdict = yield from self._iteration(n, review)
            ending: LoopTerminalEvent | None = None
            match verdict:
                case LoopTerminalEvent():
                    return verdict
                case SpecIssue():
                    return (yield from self._spec_issue(n, verdict))
                case Approved():
                    self._convergence.approved()
                    review = yield from self._gate.approved(n)
                    if review is None:
                        own: OwnReview | LoopTerminalEvent | None
                        own = yield from self._committed(n)
                        if own is None:
                            own = yield from self._may_land(n, verdict)
                        if own is None:
                            own = yield from self._land(n)
                        if own is None:
                            return LoopApproved(iteration=n, checked=self._is_checked)
                        if isinstance(own, LoopTerminalEvent):
                            return own
                        review = own.content
                case RequestChanges(content=content):
                    review = self._convergence.to_plan(content)
                    ending = yield from self._convergence.reviewed(n, self._services.workspace)
                case OwnReview(content=content):
                    self._convergence.approved()
                    review = yield from self._review_text(content)
                case NoProgress():
                    review = REPLAN
                    ending = self._convergence.stuck(n, verdict)
            if ending is not None:
                return ending
        yield from self._commit_the_rest(options.max_iterations)
        return LoopMaxIterations(
            iteration=options.max_iterations, max_iterations=options.max_iterations
        )

    @property
    def _is_checked(self) -> bool | None:
        """Whether the check decided on the approval; None if it is yet to decide."""
        options = self._options
        return None if options.is_checked_later else options.approval_is_checked

    def _begin(self) -> Flow[LoopStalled | None]:
        """Record the state before the first agent, and merge what the options ask for.

        Returns why the run ends at once, or None.
        """
        options, repository = self._options, self._services.repository
        baseline, dirty, conflicts = self._before
        if options.commit:
            baseline = yield from ask(repository.head(), name="baseline")
            specs = (Path(options.specs_path),)
            dirty = yield from dirty_files(repository, options, exclude=specs)
        if options.merge is not None:
            conflicts = yield from merge_into_work(self._place, options.merge, options.item)
            baseline = options.merge
        self._before = _Before(baseline, dirty, conflicts)
        yield from self._convergence.begin(self._fingerprint())
        yield from self._gate.begin(options.merge)
        if options.merge is not None or not self._gate.has_baseline:
            return None
        yield from self._setup(1)
        self._is_set_up = True
        return (yield from self._gate.baseline())

    def _iteration(self, n: int, review: str | None) -> Flow[Verdict | LoopTerminalEvent]:
        """Plan, implement and review; a run with a merge begins with resolving its conflicts."""
        if n == 1 and self._options.merge is not None:
            resolved = yield from self._resolve(n, self._options.merge)
            if resolved is not None:
                return resolved
            if review is None:
                yield from self._setup(n)
                return (yield from self._review(n))
        yield from emit(PlanningStart(iteration=n))
        plan = yield from self._plan(n, review)
        if isinstance(plan, SpecIssue):
            return plan
        rejected = yield from self._plan_approved(n, review)
        if rejected is not None:
            return rejected
        if not (n == 1 and self._is_set_up):
            yield from self._setup(n)
        return (yield from self._work_off_the_plan(n))

    def _work_off_the_plan(self, n: int) -> Flow[Verdict | LoopTerminalEvent]:
        """Implement task by task, one agent each; then review. With `slow`, review each task."""
        tasks = 0
        while True:
            yield from emit(ImplementingStart(iteration=n))
            work = yield from self._implement(n)
            if isinstance(work, SpecIssue):
                return work
            standstill = yield from self._convergence.worked(self._fingerprint(), self._trace())
            if standstill is not None:
                return standstill
            if isinstance(work, NoMoreWork) and self._convergence.changed:
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

    def _plan(self, n: int, review: str | None) -> Flow[PlanComplete | SpecIssue]:
        news = yield from self._gate.plan(n)
        turn = yield from self._turn("planning")
        section = "\n\n".join(filter(None, (news, review))) or None
        stage = planning_stage(self._place, review=section, form=self.plan_form, turn=turn)
        plan = yield from forward(stage, name="planning")
        assert isinstance(plan, PlanComplete | SpecIssue)
        return plan

    def _plan_approved(self, n: int, review: str | None) -> Flow[OwnReview | LoopStalled | None]:
        """Wait for approval of the plan, if that is required; return why it is refused, or None.

        A plan that they have edited replaces that of the agent.
        """
        if "plan" not in self._options.approve:
            return None
        plan = (yield from ask(act(self._session.committed_plan), name="plan-text")) or ""
        decision = yield from self._run.decision("plan", plan, about=self._about)
        if decision.outcome != "approved":
            yield from ask(act(self._session.clear_review), name="clear-review")
            rejected = _REJECTED_PLAN.format(words=_words(decision), plan=plan)
            return self._rejected(n, decision, "\n\n".join(filter(None, (review, rejected))))
        edited = decision.text
        if edited and edited != plan:
            replace_plan = partial(self._session.replace_plan, edited)
            yield from ask(act(replace_plan), name="edited-plan")
            yield from emit(PlanWritten(iteration=n, text=edited))
        return None

    def _may_land(self, n: int, verdict: Approved) -> Flow[OwnReview | LoopStalled | None]:
        """Wait for approval of the work, if that is required; return why it is refused, or None.

        In a slot this comes before the candidate, so that a rejection is planned at once.
        """
        if "landing" not in self._options.approve:
            return None
        commits = "".join(f"\n- {commit}" for commit in self._commits)
        text = f"{verdict.content.strip()}\n\nCommits:\n{commits}" if commits else verdict.content
        decision = yield from self._run.decision("landing", text, about=self._about)
        if decision.outcome == "approved":
            return None
        return self._rejected(n, decision, _REJECTED_WORK.format(words=_words(decision)))

    def _rejected(self, n: int, decision: Decision, review: str) -> OwnReview | LoopStalled:
        if decision.outcome == "rejected":
            return OwnReview(review)
        limit = f" within {self._options.approve_within}" if self._options.approve_within else ""
        why = f": {decision.text}" if decision.text else ""
        return LoopStalled(iteration=n, reason="approval", message=f"not approved{limit}{why}")

    @property
    def _about(self) -> str:
        """The item of the run, or the beginning of its focus."""
        item = (self._options.item or "").rpartition(" ")[0]
        return item or title_of(self._options.focus)[:_LONGEST_TITLE]

    def _implement(self, n: int) -> Flow[Progress | Done | NoMoreWork | SpecIssue]:
        check = yield from self._gate.check_before_work(n)
        turn = yield from self._turn("implementing")
        self._log_size = turn.log_size or 0
        before = self._convergence.state
        stage = partial(implementing_stage, self._place, check=check, before=before)
        work = yield from self._until_ended("implementing", turn, stage)
        assert isinstance(work, Progress | Done | NoMoreWork | SpecIssue)
        if isinstance(work, Progress | Done):
            yield from self._commit(n, work.content)
        return work

    def _review(self, n: int, *, finished: bool = True) -> Flow[Verdict]:
        yield from emit(ReviewingStart(iteration=n))
        changed = yield from self._gate.changed(n)
        yield from ask(act(self._session.clear_review), name="clear-review")
        earlier = yield from self._convergence.review(
            self._services.work, self._services.own_files(self._options.cwd)
        )
        check = yield from self._gate.check_before_review(n, changed)
        turn = yield from self._turn("reviewing")
        stage = partial(
            reviewing_stage,
            self._place,
            check=check,
            baseline=self._before.baseline,
            finished=finished,
            news=f"{self._gate.section()}{conflicts_section(self._before.conflicts)}{earlier}",
            unanswered=self._gate.unanswered,
        )
        verdict = yield from self._until_ended("reviewing", turn, stage)
        assert isinstance(verdict, Approved | RequestChanges | SpecIssue)
        verdict = yield from self._judged(n, verdict)
        if isinstance(verdict, SpecIssue):
            return verdict
        own = yield from self._gate.judged(n, verdict, check)
        if own is None:
            return verdict
        yield from ask(act(self._session.clear_review), name="clear-review")
        return own

    def _judged(
        self, n: int, verdict: Approved | RequestChanges | SpecIssue
    ) -> Flow[Approved | RequestChanges | SpecIssue]:
        """Return what the verdict counts as: improvements block nothing."""
        if isinstance(verdict, RequestChanges):
            review = yield from self._review_text(verdict.content)
            return (yield from self._convergence.judged(n, review, self._services.workspace))
        if isinstance(verdict, Approved):
            read = act(self._session.written_review)
            review = (yield from ask(read, name="approved-review")) or ""
            yield from self._convergence.praised(n, review, self._services.workspace)
        return verdict

    def _committed(self, n: int) -> Flow[OwnReview | LoopStalled | None]:
        """Commit what is left of approved work; return why the approval does not count, or None."""
        yield from self._commit_the_rest(n)
        commit = partial(self._commit, n, "Commit the rest of the work", "commit-rest")
        own = yield from self._gate.committed(n, commit)
        if own is None:
            own = yield from self._gate.clean(n)
        if isinstance(own, OwnReview):
            yield from ask(act(self._session.clear_review), name="clear-review")
        return own

    def _resolve(self, n: int, merge: str) -> Flow[SpecIssue | LoopStalled | None]:
        """Resolve the conflicts of the merge, if there are any; return why the run ends."""
        problem, conflicts = "", self._before.conflicts
        self._is_merged = not conflicts.paths
        for _ in range(TRIES) if conflicts.paths else ():
            yield from emit(ImplementingStart(iteration=n))
            turn = yield from self._turn("implementing")
            stage = partial(resolving_stage, self._place, conflicts.variables(problem))
            ending = yield from self._until_ended("implementing", turn, stage)
            assert isinstance(ending, Progress | Done | NoMoreWork | SpecIssue)
            if isinstance(ending, SpecIssue):
                return ending
            concluded = conclude_merge(self._place, merge, ending.content, conflicts, iteration=n)
            outcome = yield from forward(concluded, name="merge-commit")
            if not isinstance(outcome, CommitFailed):
                self._is_merged = True
                return None
            problem = outcome.message
        if not problem:
            return None
        return LoopStalled(
            iteration=n,
            reason="no_progress",
            message=f"the merge with what has landed could not be resolved: {problem}",
        )

    def _setup(self, n: int) -> Flow[None]:
        if self._options.setup_command:
            yield from forward(self._setup_stage(n), name="setup")

    def _setup_stage(self, n: int) -> Observable[Event]:
        options = self._options
        return setup_stage(
            self._place,
            options.setup_command,
            iteration=n,
            strict=options.setup_strict,
            is_first=n == 1 and options.merge is None,
            kept=self._kept if options.setup_keeps_running else None,
        )

    def _commit(self, n: int, message: str, name: str = "commit") -> Flow[None]:
        if not self._options.commit:
            return
        stage = yield from self._commit_stage(
            n, message, base="head" if name == "commit" else "commit-base"
        )
        commit = yield from forward(stage, name=name)
        failed = isinstance(commit, CommitFailed)
        left = isinstance(commit, CommitPerformed) and commit.left
        self._uncommitted = message if failed or left else None
        yield from self._made(n, commit)

    def _commit_the_rest(self, n: int) -> Flow[None]:
        """Commit what the last commit could not; the run fails if that fails."""
        if self._uncommitted is not None:
            stage = yield from self._commit_stage(n, self._uncommitted, base="commit-base")
            commit = yield from forward(must_commit(stage), name="commit-rest")
            yield from self._made(n, commit)

    def _commit_stage(self, n: int, message: str, *, base: str) -> Flow[Observable[Event]]:
        # Known before: a commit that was made just before a crash is then not missed.
        head = yield from ask(self._services.repository.head(), name=base)
        made = commit_stage(self._place, message, iteration=n, base=head, dirty=self._before.dirty)
        return concat(flow(self._run.branch_seen), made)

    def _made(self, n: int, commit: object) -> Flow[None]:
        """Push a commit, unless a person has to approve the work first."""
        if isinstance(commit, CommitPerformed):
            self._unpushed = commit.commit_hash
            first = commit.message.strip().partition("\n")[0]
            self._commits = (*self._commits, f"{commit.commit_hash[:7]} {first}")
            if "landing" not in self._options.approve:
                yield from self._push(n)

    def _land(self, n: int) -> Flow[OwnReview | LoopTerminalEvent | None]:
        """Push approved work that is not pushed yet; return why it does not count, or None."""
        yield from self._push(n)
        return None

    def _push(self, n: int) -> Flow[None]:
        target, commit = self._options.push, self._unpushed
        if target and commit is not None:
            self._unpushed = None
            yield from forward(push_stage(self._place, target, commit, iteration=n), name="push")

    def _turn(self, role: Role) -> Flow[Turn]:
        """Count the agents of the role; a stage that is repeated truncates the session file.

        A person may have to approve the costs first.
        """
        yield from self._run.spending_approved()
        number = self._run.next_turn(role)
        size = yield from ask(act(self._session.size), name="log-size")
        return Turn(number, size or 0)

    def _until_ended(
        self, role: Role, turn: Turn, stage: Callable[..., Observable[Event]]
    ) -> Flow[Event | None]:
        """Run an agent, and resume it after each of its waits; return its ending."""
        run = self._run
        run.waits[role] = 0
        while True:
            ending = yield from forward(
                stage(turn=turn._replace(may_wait=run.may_wait(role))), name=role
            )
            if not isinstance(ending, Waiting):
                return ending
            result = yield from run.waited(ending.content, role)
            size = yield from ask(act(self._session.size), name="log-size")
            turn = turn._replace(log_size=size or 0, waited=Waited(ending, result))

    def _fingerprint(self) -> Observable[str]:
        """Emit the fingerprint of the project and its plan."""
        return self._place.state()

    def _trace(self) -> Observable[Trace]:
        """Emit what the latest implementing agent left besides the fingerprint."""
        project = self._services.project_trace(self._options.cwd, exclude=self._apart)
        return trace_of(self._session, self._log_size, project)

    @property
    def _apart(self) -> tuple[Path, ...]:
        """The paths that do not count as work of an agent."""
        return Path(self._options.specs_path), Path(WORKSPACE_FOLDER)

    def _review_text(self, content: str) -> Flow[str]:
        """Return the review file if the reviewer wrote one, else the marker's text (CUG-036)."""
        read = act(lambda: self._session.review_text(content))
        text = yield from ask(read, name="review-text")
        return text or content

    def _spec_issue(self, n: int, issue: SpecIssue) -> Flow[LoopSpecIssue]:
        workspace = self._services.workspace
        name = yield from ask(act(workspace.new_name), name="issue-name")
        write = act(lambda: workspace.write_spec_issue(issue.content, name=name))
        filename = yield from ask(write, name="issue")
        return LoopSpecIssue(iteration=n, content=issue.content, filename=filename or "")
