"""One run with several hands: planned, done and reviewed in a clone, which lands at the end."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path

from cuggino.domain import PlanTask, most_at_once, plan_tasks, task_order, title_of
from cuggino.errors import ConfigError, RunNotResumable
from cuggino.events import (
    HandsEnded,
    LoopSpecIssue,
    LoopTerminalEvent,
    SpecIssue,
    TaskLimitReached,
    WatchCandidate,
    WatchFollowDelayed,
    WatchLanded,
    WatchSentBack,
)
from cuggino.git import EACH_REF, commits_of_refs
from cuggino.loops.coding.gate import OwnReview
from cuggino.loops.coding.merging import merge_into_work
from cuggino.loops.coding.options import LoopRunOptions
from cuggino.loops.coding.run import CodingRun, Verdict
from cuggino.loops.coding.service import LoopService
from cuggino.loops.frame.commands import Commands
from cuggino.loops.frame.history import dirty_files
from cuggino.loops.frame.run import Run
from cuggino.loops.hands.tasks import Tasks
from cuggino.loops.watch.attempt import options_in, return_review, slot_services
from cuggino.loops.watch.places import PlacesOf, gate_of, here_of
from cuggino.operators import Flow, StateRef, ask, emit, flow, forward
from cuggino.stages import act, push_stage
from cuggino.stages.slots import HANDS, Trunk, contains
from cuggino.storage import Session

FORM = (
    "Several agents do the tasks at the same time, each in a clone of the project: below the "
    "heading of every task write the lines `after: 1, 2`, with the numbers of the tasks that have "
    "to be done before it (or `after: none`), and `files: a.py, tests/`, with all files that it "
    "changes. Tasks that share a file are done one after the other, so cut the work into tasks "
    "that do not. Only for a task that may well fail, such as one whose way is unknown, also write "
    "`attempts: 3`: three agents do it at the same time, at three times the cost, and the first "
    "that passes check and review is taken."
)
"""The instructions for the planning agent."""


_MERGED = (
    "The work was approved. It was then merged with what others had finished meanwhile, and "
    "conflicts were resolved: check that nothing of either side is lost."
)


class HandsRun(CodingRun):
    """One run of the coding loop in a clone of the project, whose tasks are done side by side."""

    plan_form = FORM

    def __init__(
        self,
        run: Run,
        options: LoopRunOptions,
        places: PlacesOf,
        loop_of_tasks: LoopService | None = None,
    ) -> None:
        self._loop_of_tasks = loop_of_tasks
        self._user_run = run
        """The run as it is in the user's project."""
        self._user_options = options
        run_id = run.session.id
        self._name = f"run-{run_id[-8:]}"
        """The run as an item that lands."""
        self._branch = f"cuggino/{run_id}"
        """The branch of the clone, which has what has landed there."""
        here = here_of(run.services, options, 1)
        self._here, self._slot = here, here.folders[0]
        inside = options_in(self._slot, options).model_copy(update={"attempts": 1})
        services = slot_services(run.services, inside)
        super().__init__(
            replace(
                run,
                services=services,
                options=inside,
                session=Session(run_id, services.workspace.wip),
                branch=StateRef(self._branch),
            ),
            inside,
        )
        self._landing_gate = gate_of(run.services, options)
        self._trunk = Trunk(self._landing_gate, land_as="commits")
        self._places_of = places
        self._tasks: Tasks | None = None
        self.commands: Commands = Commands(
            run.control,
            is_known=lambda name: self._tasks is not None and name in self._tasks,
            put_aside=lambda name: self._tasks.skipped(name) if self._tasks is not None else None,
        )

    def held(self) -> Flow[AbstractContextManager[object]]:
        """Return a hold of the trunk."""
        command, since = self._user_options.command, self._user_run.began
        return (yield from self._landing_gate.held(command=command, since=since))

    def opening(self) -> Flow[None]:
        """Make the clone, unless an earlier process has.

        Raises:
            ConfigError: the user has no branch checked out, or no commit.
        """
        run, options = self._user_run, self._user_options
        if run.resumed is None:
            if run.branch.value is None:
                raise ConfigError(
                    "several hands need a branch for what they do, and HEAD is detached",
                    hint="run `git switch -c NAME`",
                )
            specs = (Path(options.specs_path),)
            yield from dirty_files(run.services.repository, options, exclude=specs)
            yield from run.snapshot("planning", 1)  # for `cuggino undo`
        base = yield from ask(self._trunk.head())
        is_resumed = run.resumed is not None
        prepared = self._here.prepare(
            self._slot, base=base or "", item=self._name, resume=is_resumed
        )
        yield from ask(prepared)
        yield from self._on_its_branch()
        yield from ask(act(self._services.workspace.open))
        yield from ask(act(self._session.create))
        yield from super().opening()

    def _on_its_branch(self) -> Flow[None]:
        """Check out the branch of the run; a new one has nothing of the landings of another run.

        Raises:
            RunNotResumable: the clone of a resumed run is gone.
        """
        git = self._slot.git
        at = yield from git.run("symbolic-ref", "--quiet", "--short", "HEAD")
        if at.text == self._branch:
            return
        resumed = self._user_run.resumed
        entries = () if resumed is None else resumed.entries.only(("WatchLanded",))
        for event in (entry.event for entry in entries):
            if not isinstance(event, WatchLanded) or event.filename == self._name:
                continue
            if not (yield from contains("HEAD", event.commit, git)):
                raise RunNotResumable(
                    f"{self._slot.root} no longer has everything that landed there",
                    hint="start a new run; refs/cuggino/kept has the work that was not approved",
                )
        refs = commits_of_refs((yield from git.must(*EACH_REF, "refs/cuggino")).text)
        gone = "".join(f"option no-deref\ndelete {ref}\n" for ref in refs)  # all of it is kept
        yield from git.must("update-ref", "--stdin", stdin=gone.encode())
        yield from git.must("checkout", "--quiet", "-B", self._branch)

    def run(self) -> Flow[None]:
        """Run the coding loop in the clone."""
        yield from super().run()
        self._session.remove()

    @property
    def _is_checked(self) -> bool:
        return True  # by the landing

    # The tasks of a plan

    def _work_off_the_plan(self, n: int) -> Flow[Verdict | LoopTerminalEvent]:
        """Do the tasks side by side, and review the whole; a list is done as without hands."""
        plan = (yield from ask(act(self._session.committed_plan), name="tasks")) or ""
        most = self._options.max_tasks_per_plan
        tasks = plan_tasks(plan)
        order = task_order(tasks[:most])
        hands = min(self._options.hands, most_at_once(order))
        if hands < 2 and not self._has_attempts(tasks[:most]):
            return (yield from super()._work_off_the_plan(n))
        if len(tasks) > most:
            yield from emit(TaskLimitReached(iteration=n, max_tasks=most))
        self._log_size = (yield from ask(act(self._session.size), name="log-size")) or 0
        self._tasks = Tasks(
            self._run,
            self._options.model_copy(update={"attempts": self._user_options.attempts}),
            tasks[:most],
            order,
            self._places_of,
            loop=self._loop_of_tasks,
            iteration=n,
            hands=hands,
            log_size=self._log_size,
            folder=self._slot.root.parent / HANDS,
            journal=self._user_run.session.hands,
            commands=self.commands,
            baseline=self._gate.baseline_result,
        )
        ended = yield from forward(flow(self._tasks.run), name="hands")
        assert isinstance(ended, HandsEnded)
        if ended.issue:
            content = ended.undone[ended.asking]
            return LoopSpecIssue(iteration=n, content=content, filename=ended.issue)
        standstill = yield from self._convergence.worked(self._fingerprint(), self._trace())
        if standstill is not None:
            return standstill
        self._commits = (*self._commits, *self._tasks.titles(ended.landed))
        if set(ended.undone.values()) - {Tasks.SKIPPED, Tasks.HELD}:
            undone = "\n".join(f"- {name}: {why}" for name, why in ended.undone.items())
            return OwnReview(f"These tasks of the last plan are not done:\n\n{undone}")
        return (yield from self._review(n))

    def _has_attempts(self, tasks: Sequence[PlanTask]) -> bool:
        """Return whether a task has several attempts, or its line about them is wrong."""
        if self._loop_of_tasks is None:
            return False
        configured = len(self._user_options.choices)
        return any(task.note or (task.attempts or configured) > 1 for task in tasks)

    # The landing on the user's branch

    def _land(self, n: int) -> Flow[OwnReview | LoopTerminalEvent | None]:
        """Land approved work on the user's branch; what does not pass there is worked on again."""
        last = yield from forward(flow(partial(self._landing, n)), name="landing")
        if not isinstance(last, WatchSentBack):
            yield from self._pushed(n)
            return None
        head = (yield from ask(self._trunk.head(), name="users-head")) or ""
        conflicts = yield from merge_into_work(self._place, head, self._name)
        self._before = self._before._replace(conflicts=conflicts)
        ended = yield from self._resolve(n, head)
        if isinstance(ended, SpecIssue):
            return (yield from self._spec_issue(n, ended))
        return ended or OwnReview(return_review(last) or _MERGED)

    def _pushed(self, n: int) -> Flow[None]:
        """Push the user's branch, once."""
        target = self._user_options.push
        if target is not None:
            head = (yield from ask(self._trunk.head(), name="landed")) or ""
            push = push_stage(self._user_run.place, target, head[:7], iteration=n)
            yield from forward(push, name="push")

    def _landing(self, n: int) -> Flow[None]:
        """Land the work in the clone, and let the user's branch follow.

        Raises:
            ConfigError: it cannot follow yet.
        """
        base = self._before.baseline or ""
        published = self._here.publish(
            self._slot, item=self._name, base=base, attempt=n, approved=True
        )
        candidate = yield from ask(published)
        assert isinstance(candidate, WatchCandidate)
        trunk, title = self._trunk, title_of(self._options.focus)
        yield from forward(trunk.open())
        if isinstance((yield from forward(trunk.land(candidate, title=title))), WatchLanded):
            delayed = yield from forward(trunk.follow())
            if isinstance(delayed, WatchFollowDelayed):
                paths = f": {', '.join(delayed.paths)}" if delayed.paths else ""
                raise ConfigError(
                    f"approved work has not reached {delayed.branch or 'your branch'}: "
                    f"{delayed.reason}{paths}",
                    hint="fix that, then resume the run: it ends without another agent",
                )
