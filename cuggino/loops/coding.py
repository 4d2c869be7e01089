"""The coding loop: plan, implement, review, until the work matches its specification.

Sources: requirements CUG-001 to CUG-063.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from reactivex import Observable

from cuggino.agents.protocol import LlmAgent
from cuggino.errors import LoopError
from cuggino.events import (
    ApprovalBlocked,
    Approved,
    CheckCommandOutput,
    CommitPerformed,
    Done,
    ImplementingStart,
    IterationStart,
    LoopApproved,
    LoopEvent,
    LoopMaxIterations,
    LoopSpecIssue,
    NoMoreWork,
    PlanningStart,
    Progress,
    RequestChanges,
    ReviewingStart,
    SetupCommandOutput,
    SpecIssue,
    TaskLimitReached,
)
from cuggino.loops.options import LoopRunOptions
from cuggino.loops.roles import Roles, check_prompts
from cuggino.operators import Flow, ask, emit, flow, forward, on_loop
from cuggino.prompts import Prompts
from cuggino.stages import (
    Repository,
    Shell,
    act,
    command_stage,
    commit_stage,
    push_stage,
    shell_lines,
)
from cuggino.storage import Session, Workspace

Output = TypeVar("Output", SetupCommandOutput, CheckCommandOutput)


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
    ) -> None:
        self._agent = agent
        self._workspace = workspace
        self._repository = repository
        self._prompts = prompts or Prompts()
        self._shell = shell

    def check(self) -> None:
        """Look whether the agents could be told what to do (`check_prompts`)."""
        check_prompts(self._prompts)

    def run(self, options: LoopRunOptions) -> Observable[LoopEvent]:
        """Run the loop. Cold; each subscription is a run, with a session and a lock of its own.

        ::

            IterationStart PlanningStart [agent] PlanComplete [SetupCommandOutput]
              { ImplementingStart [CheckCommandOutput] [agent] Progress|Done
                [CommitPerformed [PushPerformed]] }
            ReviewingStart [CheckCommandOutput] [agent] Approved LoopApproved|

        Ends with a `LoopTerminalEvent`, or with an error: `LoopError` when an agent failed,
        `WorkspaceLocked`, `StorageError`. Disposal ends the running agent or command, removes the
        session files and frees the workspace before it returns. All events are delivered on the
        scheduler given to `subscribe`.
        """
        return on_loop(flow(lambda: self._run(options)))

    def _run(self, options: LoopRunOptions) -> Flow[None]:
        with self._workspace.session() as session:
            yield from _Run(self, session, options).rounds()


class _Run:
    """One run: what its rounds share."""

    def __init__(self, service: LoopService, session: Session, options: LoopRunOptions) -> None:
        self._service = service
        self._session = session
        self._options = options
        self._roles = Roles(service._agent, service._prompts, session, options)
        self._baseline: str | None = None

    def rounds(self) -> Flow[None]:
        """Plan, implement and review, until an approval, a spec issue, or no round is left."""
        options = self._options
        if options.commit:
            self._baseline = yield from ask(self._service._repository.head())
        review = options.review
        for n in range(1, options.max_iterations + 1):
            yield from emit(
                IterationStart(iteration=n, max_iterations=options.max_iterations),
                PlanningStart(iteration=n),
            )
            plan = yield from self._roles.plan(review)
            if isinstance(plan, SpecIssue):
                return (yield from self._blocked(n, plan))
            yield from ask(act(self._session.commit_plan))
            yield from self._setup(n)
            verdict = yield from self._work_off_the_plan(n)
            match verdict:
                case SpecIssue():
                    return (yield from self._blocked(n, verdict))
                case Approved():
                    return (yield from emit(LoopApproved(iteration=n)))
                case RequestChanges(content=content):
                    review = yield from self._review_text(content)
        yield from emit(
            LoopMaxIterations(
                iteration=options.max_iterations, max_iterations=options.max_iterations
            )
        )

    def _work_off_the_plan(self, n: int) -> Flow[Approved | RequestChanges | SpecIssue]:
        """Implement task by task, one agent each; then review. With `slow`, review each task."""
        tasks = 0
        while True:
            work = yield from self._implement(n)
            if isinstance(work, SpecIssue):
                return work
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

    def _implement(self, n: int) -> Flow[Progress | Done | NoMoreWork | SpecIssue]:
        yield from emit(ImplementingStart(iteration=n))
        check = yield from self._check(n)
        work = yield from self._roles.implement(check)
        if self._options.commit and isinstance(work, Progress | Done):
            yield from self._commit(n, work.content)
        return work

    def _commit(self, n: int, message: str) -> Flow[None]:
        repository = self._service._repository
        commit = yield from forward(commit_stage(repository, message, iteration=n))
        target = self._options.push
        if target and isinstance(commit, CommitPerformed):
            yield from forward(push_stage(repository, target, commit.commit_hash, iteration=n))

    def _review(self, n: int, *, finished: bool) -> Flow[Approved | RequestChanges | SpecIssue]:
        yield from emit(ReviewingStart(iteration=n))
        yield from ask(act(self._session.clear_review))
        check = yield from self._check(n)
        verdict = yield from self._roles.review(check, self._baseline, finished=finished)
        blocked = self._options.gate == "block" and check is not None and check.exit_code != 0
        if blocked and check is not None and isinstance(verdict, Approved):
            yield from emit(ApprovalBlocked(iteration=n, exit_code=check.exit_code))
            yield from ask(act(self._session.clear_review))
            return RequestChanges(content=_gate_review(check))
        return verdict

    def _review_text(self, content: str) -> Flow[str]:
        """The review file if the reviewer wrote one, else the text of its marker (CUG-036)."""
        text = yield from ask(act(lambda: self._session.review_text(content)))
        return text or content

    def _blocked(self, n: int, issue: SpecIssue) -> Flow[None]:
        write = self._service._workspace.write_spec_issue
        filename = yield from ask(act(lambda: write(issue.content)))
        yield from emit(LoopSpecIssue(iteration=n, content=issue.content, filename=filename or ""))

    def _setup(self, n: int) -> Flow[None]:
        options = self._options
        output = yield from self._command(
            SetupCommandOutput, options.setup_command, n, self._session.setup_file
        )
        if options.setup_strict and output is not None and output.exit_code != 0:
            raise LoopError("setup", f"the setup command exited with code {output.exit_code}")

    def _check(self, n: int) -> Flow[CheckCommandOutput | None]:
        command = self._options.check_command
        return (yield from self._command(CheckCommandOutput, command, n, self._session.check_file))

    def _command(
        self, kind: type[Output], command: str | None, n: int, output_file: Path
    ) -> Flow[Output | None]:
        """Run the command, if there is one; gives its outcome."""
        if not command:
            return None
        stage = command_stage(
            kind,
            command,
            shell=self._service._shell,
            cwd=self._options.cwd,
            iteration=n,
            output_file=output_file,
            timeout=self._options.command_timeout,
        )
        return (yield from forward(stage))


def _gate_review(check: CheckCommandOutput) -> str:
    return (
        "The reviewer approved, but the check command failed "
        f"(exit code {check.exit_code}), so the approval does not count. "
        f"Make the check pass. Its output was:\n\n{check.output}"
    )
