"""The journal of a run: opening it, recording a flow in it, and its last entry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, Protocol

from reactivex import abc

from cuggino.config import JournalSettings, SnapshotSettings
from cuggino.errors import CugginoError, ProcessError, RunNotResumable, error_outcome
from cuggino.events import (
    CheckCannotFail,
    CheckDoesNotDecide,
    ControlEvent,
    EndState,
    Event,
    Forecast,
    LoopTerminalEvent,
    MessageDelta,
    PingEvent,
    RunContinued,
    RunEnded,
    RunResult,
    RunStarted,
    SandboxChosen,
    StageFinished,
    StageStarted,
    checked_of,
    is_journal_event,
)
from cuggino.git import current_branch
from cuggino.loops.frame.options import RunOptions
from cuggino.operators import Flow, ask
from cuggino.operators.flow import Recorded, Recorder
from cuggino.runs import DigestFold
from cuggino.stages import Services
from cuggino.storage import (
    Journal,
    JournalFile,
    Workspace,
    encode_outcome,
    finished_stages,
    has_ended,
    prune,
)

ADDED_STAGES = frozenset(
    {
        "approved-review",
        "commit-base",
        "commit-rest",
        "dirty",
        "finding-files",
        "gate-approved",
        "gate-begin",
        "gate-review",
        "gate-specs",
        "head-start",
        "history",
        "review-files",
        "trace",
        "verify-again",
        "verify-start",
    }
)
"""Stages that version 0.1.0 did not have: replaying one of its runs gives them no outcome."""


_OF_PROCESS = CheckCannotFail | CheckDoesNotDecide | ControlEvent | Forecast | SandboxChosen
"""What the frame of each process reports, besides the story."""


def _ends_process(event: Event) -> bool:
    """Return whether the event is a result of a loop that each process of a run emits again."""
    return isinstance(event, RunResult) and not isinstance(event, LoopTerminalEvent)


def _is_of_process(event: Event) -> bool:
    """Return whether each process of a run emits the event again."""
    return isinstance(event, _OF_PROCESS) or _ends_process(event)


class RunRecorder:
    """The recorder of a durable flow: writes the journal, and replays the stages in it.

    Every entry is flushed before it is acted on.

    Raises:
        StorageError: the journal could not be written.
        RunNotResumable: the recorded stages are not those of this run.
    """

    def __init__(self, journal: Journal, resumed: JournalFile | None = None) -> None:
        self._journal = journal
        self._finished = finished_stages(resumed) if resumed else ()
        self._emitted = 0
        if resumed:
            # A resumed run replaces the end of the earlier process.
            said = (
                e
                for e in resumed.entries.only((), loop=True)
                if e.stage is None and not is_journal_event(e.event)
                if not _is_of_process(e.event)
            )
            self._emitted = sum(1 for _ in said)
        self._ordinal = 0
        self._error: Exception | None = None
        self._stage = ""
        self.last: Any = None
        """The last event."""

    @property
    def stages(self) -> int:
        """The number of finished stages to replay."""
        return len(self._finished)

    def replay(self, name: str) -> Recorded | None:
        if self._error is not None:
            raise RuntimeError("a durable flow continued after the error of a stage")
        self._ordinal += 1
        if self._ordinal > len(self._finished):
            return None
        finished = self._finished[self._ordinal - 1]
        if finished.name != name and name in ADDED_STAGES:
            self._ordinal -= 1
            return Recorded(None)
        if finished.name != name:
            raise RunNotResumable(
                f"stage {self._ordinal} of the journal is {finished.name}, but this version of "
                f"the loop has {name} there",
                hint="start the run anew",
            )
        return Recorded(finished.outcome)

    def started(self, name: str, *, at: datetime) -> None:
        self._stage = f"{name}#{self._ordinal}"
        self._journal.append(StageStarted(name=name), at=at, stage=self._stage)

    def event(self, event: Event, *, staged: bool, at: datetime) -> bool:
        if not isinstance(event, Event):
            raise TypeError(
                f"a durable flow emits events of cuggino.events, not {type(event).__name__}"
            )
        self.last = event
        if not staged and self._emitted and not _ends_process(event):
            self._emitted -= 1
            # The result is always emitted: subscribers need it. So is the start of the session that
            # runs now, when it begins again.
            begins_anew = self._ordinal >= len(self._finished)
            return isinstance(event, LoopTerminalEvent) or (
                begins_anew and event.tag == "DeliverSessionStarted"
            )
        if not isinstance(event, PingEvent | MessageDelta):
            self._journal.append(event, at=at, stage=self._stage if staged else None)
        return True

    def finished(self, outcome: Any, *, at: datetime) -> None:
        entry = StageFinished(outcome=encode_outcome(outcome))
        self._journal.append(entry, at=at, stage=self._stage)

    def failed(self, error: Exception) -> None:
        self._error = error


class JournalRecorder(Recorder, Protocol):
    """A recorder that knows the last event."""

    last: Any


@contextmanager
def concluded(
    journal: Journal,
    kept: JournalRecorder,
    lane: abc.SchedulerBase,
    continued: RunContinued | None = None,
) -> Iterator[None]:
    """Append the first entry of a resumed run, and the last one; then close the journal."""

    def end(state: EndState, **more: Any) -> None:
        journal.append(RunEnded(state=state, **more), at=lane.now)

    try:
        if continued is not None:
            journal.append(continued, at=lane.now)
        yield
        last = kept.last
        state = last.state if isinstance(last, RunResult) else "ended"
        end(state, checked=checked_of(last))
    except Exception as error:
        state = error_outcome(error)
        message, code = repr(error), CugginoError.exit_code
        if isinstance(error, CugginoError):
            message, code = error.message, error.code
        said = message if state != "interrupted" else ""
        with suppress(CugginoError):  # the error of the run is the one to raise
            end(state, message=said, exit_code=code)
        raise
    except BaseException:
        with suppress(CugginoError):
            end("interrupted")
        raise
    finally:
        journal.close()


def open_journal(
    workspace: Workspace,
    options: RunOptions,
    run_id: str,
    resume: JournalFile | None,
    *,
    at: datetime,
    known: DigestFold | None = None,
    agents: Mapping[str, tuple[str, str | None]] = MappingProxyType({}),
    prompts: str = "",
) -> Journal:
    """Open the journal of a run, new or resumed, and remove old ones.

    `known` has counted the entries of the resumed one; `agents` and `prompts` are those of
    `RunStarted` for a new one.

    Raises:
        StorageError: it cannot be written.
        RunNotResumable: the run has ended, or another process has resumed it meanwhile.
    """
    forget_old_runs(workspace, options, keep=run_id, at=at)
    if resume is not None:
        if not resume.resumable:
            raise RunNotResumable(f"run {run_id} has ended ({resume.state.replace('_', ' ')})")
        journal = Journal.open(workspace.journal / f"{run_id}.jsonl", fold=known or DigestFold())
        if journal.seq != resume.last.seq:
            journal.close()
            raise RunNotResumable(
                f"another process has just resumed run {run_id}", hint="see `cuggino runs`"
            )
        return journal
    apart = {"agent", "command", *options.kept_apart}
    started = RunStarted(
        run_id=run_id,
        kind=options.kind,
        branch=current_branch(options.cwd),
        agents=dict(agents),
        prompts=prompts,
        **{name: getattr(options, name) for name in apart},
        options=options.model_dump(mode="json", exclude={"cwd", *apart}),
    )
    return Journal.create(workspace.journal, started, at=at, fold=DigestFold())


def forget_old_snapshots(
    services: Services, settings: SnapshotSettings, *, keep: str, at: datetime
) -> Flow[None]:
    """Remove the snapshots that are too old, but not those of runs that can be resumed."""
    folder = services.workspace.journal

    def is_needed(run: str) -> bool:
        journal = folder / f"{run}.jsonl"
        return run == keep or (journal.exists() and not has_ended(journal))

    now = at if at.tzinfo else at.replace(tzinfo=UTC)
    old = now - timedelta(days=settings.snapshot_days)
    with suppress(ProcessError, OSError):  # the next run tries again
        yield from ask(services.snapshots.prune(old, is_needed=is_needed), name="prune")


def forget_old_runs(
    workspace: Workspace, settings: JournalSettings, *, keep: str, at: datetime
) -> None:
    """Remove journals that are too old or too many, and the session files of ended runs.

    Such files remain when a process is killed in its first or last instants, or has no journal.
    The caller must hold the workspace.
    """
    prune(
        workspace.journal,
        now=at if at.tzinfo else at.replace(tzinfo=UTC),
        days=settings.journal_days,
        runs=settings.journal_runs,
        keep={keep},
    )
    for session in workspace.sessions():
        if session != keep and has_ended(workspace.journal / f"{session}.jsonl"):
            workspace.remove_session(session)
