"""The frame of every run: lock, orphans, agents on cooldown, ledger, journal, interruption."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, Protocol

from reactivex import Observable, abc, empty, just, timer

from cuggino.agents.base import Role, SpawnOptions, remove_abandoned
from cuggino.domain import recorded_cooldowns
from cuggino.errors import (
    WorkspaceLocked,
)
from cuggino.events import Event, RunResumed
from cuggino.loops.frame.companions import Companion, accompanied
from cuggino.loops.frame.control import Announce, Control, announcing
from cuggino.loops.frame.interruption import Interruption
from cuggino.loops.frame.journal import (
    JournalRecorder,
    RunRecorder,
    concluded,
    forget_old_snapshots,
    open_journal,
)
from cuggino.loops.frame.options import RunOptions
from cuggino.loops.frame.supervision import earlier_counts, ledger_of
from cuggino.operators import (
    Flow,
    Ledger,
    alongside,
    ask,
    emit,
    flow,
    forward,
    is_transient,
    on_loop,
    within_budget,
)
from cuggino.sandbox import writes_project
from cuggino.stages import (
    Services,
    Supervision,
    Workplace,
    choose_sandbox,
    lane,
    orphans_gone,
    supervision_of,
)
from cuggino.storage import (
    Journal,
    JournalFile,
    LockOwner,
    Session,
    Workspace,
    new_run_id,
)
from cuggino.storage.journal import DIGESTED, DigestFold

P = ParamSpec("P")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run that holds the workspace."""

    services: Services
    options: RunOptions
    session: Session
    """The files of the run; those of a watch are never created."""
    supervision: Supervision
    interruption: Interruption
    control: Control
    lane: abc.SchedulerBase
    began: datetime
    resumed: JournalFile | None
    """The journal of the earlier processes of a resumed run."""
    earlier: RunResumed | None = None
    """The totals of these processes."""

    @property
    def seconds(self) -> float:
        """The duration of the run in all its processes."""
        earlier = self.earlier.duration if self.earlier else 0.0
        return earlier + max(0.0, (self.lane.now - self.began).total_seconds())

    @property
    def place(self) -> Workplace:
        """What the stages of the run share; each agent begins as `begin_session` says."""
        return Workplace(
            services=self.services,
            options=self.options,
            session=self.session,
            supervision=self.supervision,
            begin=self.begin_session,
        )

    @property
    def cost_usd(self) -> float:
        """The cost of the run so far, as far as agents report it."""
        return self.supervision.ledger.spent.cost_usd or 0.0

    def unless_interrupted(self) -> Flow[None]:
        """Continue unless interrupted; a stage, so that a resumed run asks again.

        Raises:
            Interrupted: a person has interrupted the run.
        """
        yield from ask(self.interruption.ending(just(None)), name="interrupt")

    def within_budget(self) -> Flow[None]:
        """Check the budget before a session begins; within one, the session would count.

        Raises:
            BudgetExceeded: nothing is left.
        """
        nothing: Observable[Event] = empty()
        budget = within_budget(self.supervision.budget, ledger=self.supervision.ledger)
        yield from forward(nothing.pipe(budget), name="budget")

    def begin_session(self, options: SpawnOptions) -> Flow[SpawnOptions]:
        """Pause if a person has asked for it, save the project, and add pending messages.

        Returns the options of the session.

        Raises:
            Interrupted: a person has stopped the run.
        """
        yield from self.control.stand_still()
        if self.services.save is not None:
            yield from ask(self.interruption.ending(self.services.save()))
        if options.role is not None:
            yield from self.snapshot(options.role, options.turn)
        return (yield from self.control.told(options))

    def snapshot(self, role: Role, turn: int | None = None) -> Flow[None]:
        """Keep the project as it is before a session whose role may change it.

        So also before the first session of a coding run, as commands of the run may change it too.
        """
        if not writes_project(role) and (role, turn) != ("planning", 1):
            return
        stage = role if turn is None else f"{role}-{turn}"
        taken = self.services.snapshots.take(self.session.id, stage)
        yield from forward(self.interruption.ending(taken), name="snapshot")

    def pause(self, seconds: float) -> Flow[None]:
        """Wait between two sessions, unless interrupted."""
        if seconds > 0:
            yield from ask(self.interruption.ending(timer(seconds)), name="pause")

    def project_state(self, cwd: Path, *, exclude: tuple[Path, ...]) -> Flow[str]:
        """Return the fingerprint of the project."""
        state = self.services.project_state(cwd, exclude=exclude)
        return (yield from ask(self.interruption.ending(state), name="fingerprint")) or ""


class Story(Protocol):
    """The course of a run, made of stages."""

    reports_interruption: bool
    """True if an interruption is a result of the story; otherwise the story is disposed, and the
    run fails with `Interrupted`."""
    is_resumable: bool
    """True if another process can resume the run; final at its end."""

    def opening(self) -> Flow[None]:
        """Emit what every process of the run repeats; it is not journaled as part of the story."""

    def run(self) -> Flow[None]:
        """Run the stages. A resumed run replays the outcomes of those that have finished."""


def _streamed(frame: Callable[P, Flow[None]]) -> Callable[P, Observable[Any]]:
    """Make a cold stream of the frame: each subscription is a separate run."""

    @wraps(frame)
    def stream(*args: P.args, **kwargs: P.kwargs) -> Observable[Any]:
        return on_loop(flow(lambda: frame(*args, **kwargs)))

    return stream


@_streamed
def framed(
    services: Services,
    options: RunOptions,
    make: Callable[[Run], Story | Flow[Story]],
    *,
    interrupt: Observable[object] | None = None,
    resume: JournalFile | Callable[[datetime], JournalFile | None] | None = None,
    ledger: Ledger | None = None,
    control: Control | None = None,
    transient: Callable[[Exception], bool] = is_transient,
    recorder: Callable[[Journal, JournalFile | None], JournalRecorder] = RunRecorder,
    companions: Sequence[Companion] = (),
) -> Flow[None]:
    """Hold the workspace, make the story, and record it if the options ask for a journal.

    A resumed run emits `RunResumed` first. The session files of a run are kept as long as it can
    be resumed. `resume` may be a function that finds the run to resume once the workspace is held.
    A `ledger` shares the costs with other runs, one of which has reported the sandbox in force. A
    `control` is shared, too; by default the run follows the commands of the services. `transient`
    selects the failures that are retried within a session.
    """
    here = yield from ask(lane())
    assert here is not None
    remove_abandoned()
    chosen = choose_sandbox(options, services.agent, options.roles)
    workspace = services.workspace
    before = workspace.owner()
    interruption = Interruption()
    known = None if callable(resume) else resume
    with (
        _held(workspace, options, here.now, known) as session,
        interruption.heard(interrupt, here),
        ExitStack() as hearing,
    ):
        yield from wait_for_orphans(workspace, before)
        yield from forget_old_snapshots(services, options, keep=session.id, at=here.now)
        resumed = resume(here.now) if callable(resume) else resume
        counted = earlier = None
        if resumed is not None:
            counted = DigestFold(resumed.entries.only(DIGESTED))
            earlier = counted.totals

            fallbacks = resumed.entries.only(("AgentFellBack",))
            cooldowns = recorded_cooldowns(
                ((entry.at, entry.event) for entry in fallbacks), here.now
            )
            services.agent.restore_cooldowns(cooldowns)
        is_own = control is None
        if control is None:
            control = Control(interruption, here, services.control_folder)
            hearing.enter_context(_obeyed(services, control, resumed))
        if resumed is not None and options.kind != "watch":  # the runs of its items remember
            control.remember(resumed)
        run = Run(
            services=services,
            options=options,
            session=session,
            supervision=supervision_of(
                options,
                gate=services.gate,
                ledger=ledger or ledger_of(earlier),
                earlier=earlier_counts(resumed if options.kind != "watch" else None),
                transient=transient,
            ),
            interruption=interruption,
            control=control,
            lane=here,
            began=here.now,
            resumed=resumed,
            earlier=earlier,
        )
        made = make(run)
        story = (yield from made) if isinstance(made, Generator) else made
        said = [chosen] if chosen is not None and ledger is None else []

        def running(
            recorder: JournalRecorder | None, news: Observable[Any], announce: Announce
        ) -> Observable[Any]:
            stages = _interruptible(story, interruption, flow(story.run, recorder=recorder))
            stages = stages.pipe(alongside(news), accompanied(companions, announce))
            return control.watched(stages) if is_own else stages

        if not options.journal:
            news, announce = announcing(None, here)
            with control.announced(announce) as unsaid:
                yield from emit(*said, *unsaid)
                yield from story.opening()
                yield from forward(running(None, news, announce))
            return
        session.keep = resumed is not None and resumed.resumable
        run_id = resumed.run_id if resumed is not None else session.id
        journal = open_journal(workspace, options, run_id, resumed, at=here.now, known=counted)
        session.keep = True
        kept = recorder(journal, resumed)
        news, announce = announcing(journal, here)
        with concluded(journal, kept, here, resumed), control.announced(announce) as unsaid:
            if known is not None and earlier is not None:
                yield from emit(earlier)
            if chosen is not None:
                journal.append(chosen, at=here.now)
            for event in unsaid:
                journal.append(event, at=here.now)
            yield from emit(*said, *unsaid)
            yield from story.opening()
            yield from forward(running(kept, news, announce))
        session.keep = story.is_resumable


@contextmanager
def _obeyed(services: Services, control: Control, resumed: JournalFile | None) -> Iterator[None]:
    """Obey the commands to the workspace within the block.

    A new run obeys none that were for an earlier one; messages wait for a run that is resumed.
    """
    folder = services.control_folder
    if folder is not None:
        folder.prepare()
        if resumed is None:
            folder.clear()
    try:
        with control.heard(services.control):
            yield
    finally:
        if folder is not None:
            folder.clear(messages=False)


def wait_for_orphans(workspace: Workspace, before: LockOwner | None) -> Flow[None]:
    """Wait until no orphaned process of a killed owner works in the folder.

    Raises:
        WorkspaceLocked: one still does after half a minute.
    """
    if before is None:
        return
    # Also of earlier owners: the last one may have been killed while it waited for theirs.
    for pid in (*before.killed, before.pid):
        if pid is not None and not (yield from ask(orphans_gone(pid), name="orphans")):
            raise WorkspaceLocked(
                str(workspace.folder), pid, since=before.since, command=before.command
            )


@contextmanager
def _held(
    workspace: Workspace, options: RunOptions, since: datetime, resume: JournalFile | None
) -> Iterator[Session]:
    run_id = resume.run_id if resume is not None else new_run_id()
    if options.kind == "watch":  # the runs of its items have sessions
        with workspace.lock(command=options.command, since=since):
            workspace.open()
            yield Session(run_id, workspace.wip)
    else:
        with workspace.session(command=options.command, since=since, session_id=run_id) as session:
            yield session


def _interruptible(
    story: Story, interruption: Interruption, stages: Observable[object]
) -> Observable[object]:
    return stages if story.reports_interruption else interruption.ending(stages)
