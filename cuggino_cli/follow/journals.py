"""Following a run of another process by its journal."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from cuggino_cli.follow.output import OutputOptions, stdout_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reactivex import Observable

    from cuggino.events import EndState, Event, RunResult, WatchEvent
    from cuggino.runs import RecordedRun
    from cuggino.storage import Entry
    from cuggino_cli.screen.controls import Controls

_STARTING = 5.0
"""Seconds in which a process begins its journal."""
_PAUSE = 0.1
_CODES: Mapping[str, int] = MappingProxyType(
    {
        "approved": 0,
        "ended": 0,
        "failed": 1,
        "spec_issue": 10,
        "max_iterations": 11,
        "quota": 12,
        "budget": 13,
        "stalled": 14,
        "interrupted": 130,
    }
)
"""The exit codes of the states of a run that has ended."""


def follow_journal(project: Path, run_id: str | None, output: OutputOptions) -> int:
    """Print a run until it ends and return its exit code; 1 if it was killed.

    Raises:
        RunNotFound: no run matches, or several do.
        StorageError: the journal cannot be read, or was removed.
    """
    from cuggino.runs import Runs, follow

    path = Runs(project).path_of(run_id) if run_id is not None else _current(project)
    short_id = Runs(project).short_id(path)
    lost = f"{short_id} was killed; waiting until it is resumed (Ctrl-C ends this)"
    entries = follow(project, path, on_lost=lambda: _note(lost))
    if output.json:
        ending = _print_json(entries, output)
    else:
        ending = _print(entries, output, project, lambda: Runs(project).read(path))
    if ending.state is None:
        run = Runs(project).read(path)
        resume = f"; resume it: {run.resume_command}" if run.resume_command else ""
        _note(f"{short_id} was killed{resume}")
    return ending.exit_code


class Ending:
    """How a followed run ended, as far as its entries say."""

    def __init__(self) -> None:
        self.state: EndState | None = None
        """None if it was killed."""
        self.message = ""
        self.at = datetime.now(UTC)
        """The time of the last entry."""
        self.kind = "run"
        self.is_summed_up = False
        """True if the loop's last event was its own summary."""
        self._result: RunResult | None = None

    def add(self, entry: Entry) -> None:
        from cuggino.events import DeliverEnded, PlanBuildEnded, RunEnded, RunResult, RunStarted

        if isinstance(entry.event, RunStarted):
            self.kind = entry.event.kind
        if isinstance(entry.event, RunResult):
            self.is_summed_up = isinstance(entry.event, DeliverEnded | PlanBuildEnded)
        ended = entry.event if isinstance(entry.event, RunEnded) else None
        self.at = entry.at
        self.state = ended.state if ended is not None else None
        self.message = ended.message if ended is not None else ""
        if isinstance(entry.event, RunResult):
            self._result = entry.event

    @property
    def exit_code(self) -> int:
        """The exit code of the run; 1 if it was killed."""
        if self.state is None:
            return 1
        if self.state == "ended" and self._result is not None:
            return self._result.exit_code
        return _CODES[self.state]


def _current(project: Path) -> Path:
    """Return the journal of the run or watch at work, or else of the last one.

    Raises:
        RunNotFound: there is none.
    """
    from cuggino.errors import RunNotFound
    from cuggino.runs import Runs, last_journal, live_journals, working_process
    from cuggino.storage import Workspace

    workspace = Workspace(project)
    until = time.monotonic() + _STARTING
    while (owner := working_process(workspace)) is not None:
        if live := live_journals(workspace, owner):
            return live[0]
        if time.monotonic() > until:
            raise RunNotFound("what runs here writes no journal", hint="see `cuggino status`")
        time.sleep(_PAUSE)  # nothing is subscribed to yet, so there is no scheduler
    return last_journal(workspace) or Runs(project).path_of()


def _print_json(entries: Observable[Entry], output: OutputOptions) -> Ending:
    from cuggino import run
    from cuggino.events import is_journal_event

    ending = Ending()

    def write(entry: Entry) -> None:
        ending.add(entry)
        if not is_journal_event(entry.event):
            output.write_json(entry.event)

    run(entries, write)
    return ending


def _print(
    entries: Observable[Entry],
    output: OutputOptions,
    project: Path,
    read: Callable[[], RecordedRun],
) -> Ending:
    from cuggino import run
    from cuggino_cli.screen.controls import Controls
    from cuggino_cli.screen.fragments import Fragment
    from cuggino_cli.screen.runs import STATES
    from cuggino_cli.screen.summary import summary_fragments

    lines = stdout_lines(output)
    ending = Ending()
    controls = Controls(lines, verbosity=output.verbosity)
    run(printed(entries, controls, project, ending))
    if ending.state is None:
        return ending
    if ending.message and not ending.is_summed_up:
        label, word = STATES[ending.state]
        lines.print([Fragment(label, f"[{word.capitalize()}] {ending.message}")])
    recorded = read()
    if recorded.folded.tally.rounds and not ending.is_summed_up:
        resume = recorded.resume_command
        hint = f"resume it: {resume}" if resume else None
        duration = recorded.totals.duration
        lines.print(summary_fragments(recorded.folded, duration_s=duration, hint=hint))
    return ending


def printed(
    entries: Observable[Entry], controls: Controls, project: Path, ending: Ending | None = None
) -> Observable[Event]:
    """Print the events of a run as its command did, then emit them; note how it ended."""
    from reactivex import operators as ops

    from cuggino.events import is_journal_event
    from cuggino_cli.screen.recorded import with_recorded_output

    ending = ending or Ending()
    events = cast(
        "Observable[WatchEvent]",
        entries.pipe(
            ops.do_action(ending.add),
            ops.map(_event),
            ops.filter(lambda event: not is_journal_event(event)),
        ),
    )
    return events.pipe(
        with_recorded_output(
            controls, lambda: ending.kind, project=str(project), clock=lambda: ending.at
        )
    )


def _event(entry: Entry) -> Event:
    return entry.event


def _note(text: str) -> None:
    from cuggino_cli.screen import console

    console.complain(text)
