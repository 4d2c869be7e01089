"""The frame of every run: lock, orphans, agents on cooldown, ledger, journal, interruption."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

from reactivex import Observable

from cuggino.agents.base import remove_abandoned
from cuggino.domain import load_prices, recorded_cooldowns
from cuggino.errors import WorkspaceLocked
from cuggino.events import BranchChanged, Event, QuotaUsed, RunContinued, RunResumed
from cuggino.git import current_branch
from cuggino.loops.frame.clock import within_hours
from cuggino.loops.frame.commands import Commands
from cuggino.loops.frame.companions import Companion, accompanied
from cuggino.loops.frame.control import Control, announcing
from cuggino.loops.frame.forecasting import forecast_of
from cuggino.loops.frame.history import unlocked
from cuggino.loops.frame.interruption import Interruption
from cuggino.loops.frame.journal import (
    JournalRecorder,
    RunRecorder,
    concluded,
    forget_old_snapshots,
    open_journal,
)
from cuggino.loops.frame.options import RunOptions
from cuggino.loops.frame.run import Run, Story
from cuggino.loops.frame.supervision import earlier_counts, ledger_of
from cuggino.operators import Flow, StateRef, ask, emit, flow, forward, on_loop
from cuggino.operators.alongside import alongside
from cuggino.operators.late_imports import import_operators
from cuggino.operators.supervision import Ledger, is_transient
from cuggino.programs import programs_folder
from cuggino.prompts import prompt_version
from cuggino.runs import DIGESTED, DigestFold
from cuggino.stages import Services, choose_sandbox, lane, orphans_gone, supervision_of
from cuggino.storage import (
    Journal,
    JournalFile,
    LockOwner,
    Session,
    Workspace,
    new_run_id,
    remember_project,
)

MakeStory: TypeAlias = Callable[[Run], Story | Flow[Story]]
"""Makes the story of a run; a flow may ask stages that are not journaled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What a loop and its caller ask of the frame of a run."""

    interrupt: Observable[object] | None = None
    """Interrupts the run with its first item; on any thread."""
    resume: JournalFile | Callable[[datetime], JournalFile | None] | None = None
    """The run to resume, or a function that finds it once the workspace is held."""
    ledger: Ledger | None = None
    """Shares the costs with other runs, one of which has reported the sandbox in force."""
    control: Control | None = None
    """Is shared with other runs; by default the run follows the commands of the services."""
    branch: StateRef[str | None] | None = None
    """The branch that was last seen checked out, shared with other runs in the same project."""
    transient: Callable[[Exception], bool] = is_transient
    """Selects the failures that are retried within a session."""
    recorder: Callable[[Journal, JournalFile | None], JournalRecorder] = RunRecorder
    companions: Sequence[Companion] = ()

    @property
    def known(self) -> JournalFile | None:
        """The run to resume, if it is known before the workspace is held."""
        return None if callable(self.resume) else self.resume

    def found(self, now: datetime) -> _Earlier:
        """Return the earlier processes of the run; the workspace must be held."""
        journal = self.resume(now) if callable(self.resume) else self.resume
        if journal is None:
            return _Earlier()
        return _Earlier(journal, DigestFold(journal.entries.only(DIGESTED)))


@dataclass(frozen=True, slots=True)
class _Earlier:
    """The earlier processes of a resumed run; none of a new one."""

    journal: JournalFile | None = None
    counted: DigestFold | None = None
    """The journal's entries, counted."""

    @property
    def totals(self) -> RunResumed | None:
        return self.counted.state.totals if self.counted is not None else None

    def branch(self, project: Path) -> str | None:
        """Return the branch that the run was last seen on; for a new run, the current one."""
        if self.journal is None:
            return current_branch(project)
        changes = [entry.event for entry in self.journal.entries.only(("BranchChanged",))]
        last = changes[-1] if changes else None
        started = self.journal.started
        if isinstance(last, BranchChanged):
            return last.after
        # Versions that did not note it left the field out.
        return started.branch if "branch" in started.model_fields_set else current_branch(project)

    def windows(self) -> Iterator[QuotaUsed]:
        """Yield the reports about usage windows."""
        assert self.journal is not None
        for entry in self.journal.entries.only(("QuotaUsed",)):
            if isinstance(entry.event, QuotaUsed):
                yield entry.event

    def cooldowns(self, now: datetime) -> Any:
        """Return the agents on cooldown."""
        assert self.journal is not None
        fallbacks = self.journal.entries.only(("AgentFellBack",))
        return recorded_cooldowns(((entry.at, entry.event) for entry in fallbacks), now)


def framed(
    services: Services, options: RunOptions, make: MakeStory, frame: Frame
) -> Observable[Any]:
    """Hold the workspace, make the story, and record it if the options ask for a journal.

    Cold: each subscription is a separate run. A resumed run emits `RunResumed` first. The session
    files of a run are kept as long as it can be resumed.
    """
    return on_loop(flow(lambda: _run(services, options, make, frame)))


def _run(services: Services, options: RunOptions, make: MakeStory, frame: Frame) -> Flow[None]:
    here = yield from ask(lane())
    assert here is not None
    remove_abandoned()
    # The package may be replaced while the run waits or works.
    import_operators()
    load_prices()
    programs_folder()
    chosen = choose_sandbox(options, services.agent, options.roles)
    workspace = services.workspace
    before = workspace.owner()
    interruption = Interruption()
    with (
        _held(workspace, options, here.now, frame.known) as session,
        interruption.heard(frame.interrupt, here),
    ):
        yield from wait_for_orphans(workspace, before)
        yield from forget_old_snapshots(services, options, keep=session.id, at=here.now)
        earlier = frame.found(here.now)
        if earlier.journal is not None:
            services.agent.restore_cooldowns(earlier.cooldowns(here.now))
            services.gate.windows.merge(earlier.windows())
        # Runs within this one, as of a watch's items, remember their messages, and continue their
        # counts.
        repeated = earlier.journal if frame.recorder is RunRecorder else None
        control = frame.control or Control(interruption, here, services.control_folder)
        if repeated is not None:
            control.remember(repeated)
        run = Run(
            services=services,
            options=options,
            session=session,
            supervision=supervision_of(
                options,
                gate=services.gate,
                ledger=frame.ledger or ledger_of(earlier.totals, earlier.journal),
                earlier=earlier_counts(repeated),
                transient=frame.transient,
            ),
            interruption=interruption,
            control=control,
            lane=here,
            began=here.now,
            resumed=earlier.journal,
            earlier=earlier.totals,
            branch=frame.branch or StateRef(earlier.branch(options.cwd)),
        )
        made = make(run)
        story = (yield from made) if isinstance(made, Generator) else made
        # The run of an item shares a ledger: its watch has made the forecast.
        outlook = None
        if not frame.ledger:
            outlook = forecast_of(workspace, options, run_id=session.id, now=here.now)
        notices = (*filter(None, (chosen, outlook)), *options.notices())
        with (
            (yield from story.held()),
            nullcontext() if frame.control is not None else _obeyed(run, story),
        ):
            if options.journal:
                yield from _recorded(run, story, frame, notices, earlier)
            else:
                yield from _told(run, story, frame, notices)


def _recorded(
    run: Run, story: Story, frame: Frame, notices: Sequence[Event], earlier: _Earlier
) -> Flow[None]:
    """Run the story with a journal, which has its last entry when the run is over."""
    session, here, resumed = run.session, run.lane, earlier.journal
    session.keep = resumed is not None and resumed.resumable
    run_id = resumed.run_id if resumed is not None else session.id
    services, options = run.services, run.options
    agent, model = services.agent, options.model
    roles = options.roles if agent.is_router else ()
    journal = open_journal(
        services.workspace,
        options,
        run_id,
        resumed,
        at=here.now,
        known=earlier.counted,
        agents={role: agent.named_for(role, model) for role in roles},
        prompts=prompt_version(options.cwd, services.workspace.prompts, **options.prompt_files),
    )
    session.keep = True
    recorder = frame.recorder(journal, resumed)
    limits = options.model_dump(mode="json", include={"budget", "max_tokens", "count_tokens"})
    continued = RunContinued(options=limits) if resumed is not None else None
    with concluded(journal, recorder, here, continued):
        yield from _told(run, story, frame, notices, journal=journal, recorder=recorder)
    session.keep = story.is_resumable


def _told(
    run: Run,
    story: Story,
    frame: Frame,
    notices: Sequence[Event],
    *,
    journal: Journal | None = None,
    recorder: JournalRecorder | None = None,
) -> Flow[None]:
    """Run the story with its companions; first report its notices and what came before."""
    news, announce = announcing(journal, run.lane)
    with run.control.announced(announce) as unsaid:
        if journal is not None:
            if frame.known is not None and run.earlier is not None:
                yield from emit(run.earlier)
            for event in (*notices, *unsaid):
                journal.append(event, at=run.lane.now)
        is_own = frame.ledger is None  # else another run has reported them
        yield from emit(*(notices if is_own else ()), *unsaid)
        yield from unlocked(run)
        yield from story.opening()
        stages = flow(story.run, recorder=recorder)
        if not story.reports_interruption:
            stages = run.interruption.ending(stages)
        stages = stages.pipe(alongside(news), accompanied(frame.companions, announce))
        yield from forward(run.control.watched(stages) if frame.control is None else stages)


@contextmanager
def _obeyed(run: Run, story: Story) -> Iterator[None]:
    """Obey the commands to the workspace within the block.

    A new run obeys none that were for an earlier one; messages wait for a run that is resumed.
    """
    commands = story.commands or Commands(run.control)
    folder = run.services.control_folder
    if folder is not None:
        folder.prepare()
        remember_project(run.services.workspace.root)
        if run.resumed is None:
            folder.clear()
    try:
        hours = within_hours(run.options.windows(), run.control.standing, run.lane)
        with commands.heard(run.services.control, run.lane), hours:
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
