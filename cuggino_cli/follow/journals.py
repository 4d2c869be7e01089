"""Printing recorded runs: replayed, or followed while another process works on them."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from reactivex import Observable, operators as ops

from cuggino import events as ev, run
from cuggino.errors import RunNotFound
from cuggino.runs import (
    RecordedRun,
    Runs,
    TimedEvent,
    follow,
    last_journal,
    live_journals,
    working_process,
)
from cuggino.storage import Entry, Workspace
from cuggino_cli.follow.output import OutputOptions, plain_lines
from cuggino_cli.screen.console import complain
from cuggino_cli.screen.controls import Controls
from cuggino_cli.screen.fragments import Fragment
from cuggino_cli.screen.printers import recorded_printer
from cuggino_cli.screen.render import with_printer
from cuggino_cli.screen.runs import STATES, resume_hint
from cuggino_cli.screen.summary import summary_fragments
from cuggino_cli.screen.terminal import Lines

_STARTING = 5.0
"""Seconds in which a process begins its journal."""
_PAUSE = 0.1


def follow_journal(project: Path, run_id: str | None, output: OutputOptions) -> int:
    """Print a run until it ends and return its exit code; 1 if it was killed.

    Raises:
        RunNotFound: no run matches, or several do.
        StorageError: the journal cannot be read, or was removed.
    """
    path = Runs(project).path_of(run_id) if run_id is not None else _current(project)
    short_id = Runs(project).short_id(path)
    lost = f"{short_id} was killed; waiting until it is resumed (Ctrl-C ends this)"
    ending = _Ending()
    entries = follow(project, path, on_lost=lambda: complain(lost)).pipe(ops.do_action(ending.add))
    if output.json:
        run(entries.pipe(ops.map(_event), ops.filter(_is_shown)), output.write_json)
    else:

        def read() -> RecordedRun | None:
            return None if ending.state is None else Runs(project).read(path)

        print_recorded(
            entries.pipe(ops.map(timed)),
            output,
            project=project,
            kind=lambda: ending.kind,
            read=read,
        )
    if ending.state is None:
        resume = Runs(project).read(path).resume_command
        complain(f"{short_id} was killed{f'; resume it: {resume}' if resume else ''}")
    return ending.exit_code


def print_recorded(
    entries: Observable[TimedEvent],
    output: OutputOptions,
    *,
    project: Path,
    kind: Callable[[], str],
    read: Callable[[], RecordedRun | None],
) -> None:
    """Print each event as the command of the run did, then how the run ended.

    `kind` is called at the first event (`RunStarted`), `read` at the end; None prints no end.
    """
    lines = plain_lines(output.color)
    last: ev.Event | None = None

    def note(event: ev.Event) -> None:
        nonlocal last
        last = event

    controls = Controls(lines, verbosity=output.verbosity)
    run(printed(entries, controls, project=project, kind=kind), note)
    if (recorded := read()) is not None:
        _conclude(lines, recorded, last)


def printed(
    entries: Observable[TimedEvent], controls: Controls, *, project: Path, kind: Callable[[], str]
) -> Observable[ev.Event]:
    """Print each event as the command of the run did, then emit it; see `print_recorded`."""
    at = datetime.now(UTC)

    def note(timed: TimedEvent) -> ev.Event:
        nonlocal at
        at = timed.at
        return timed.event

    shown = with_printer(
        controls,
        lambda: recorded_printer(kind(), str(project)),
        bell=False,
        clock=lambda: at,
    )
    return entries.pipe(ops.map(note), ops.filter(_is_shown), shown)


def _conclude(lines: Lines, recorded: RecordedRun, last: ev.Event | None) -> None:
    """Print the error and the summary; of a loop that sums up in its last event only the hint."""
    hint = resume_hint(recorded)
    if isinstance(last, ev.DeliverEnded | ev.PlanBuildEnded):
        if hint:
            lines.print([Fragment("plain", "\n"), Fragment("heading", f"Next: {hint}")])
        return
    ended = recorded.digest.ended
    if ended is not None and ended.message:
        label, word = STATES[ended.state]
        lines.print([Fragment(label, f"[{word.capitalize()}] {ended.message}")])
    state = recorded.folded
    if recorded.state == "killed":
        state = state.ended("interrupted")
    lines.print(summary_fragments(state, duration_s=recorded.totals.duration, hint=hint))


def _event(entry: Entry) -> ev.Event:
    return entry.event


def timed(entry: Entry) -> TimedEvent:
    """Return the event of an entry with its time."""
    return TimedEvent(entry.at, entry.event)


def _is_shown(event: ev.Event) -> bool:
    return not ev.is_journal_event(event)


class _Ending:
    """How a followed run ended, as far as its entries say."""

    def __init__(self) -> None:
        self.state: ev.EndState | None = None
        """None if it was killed."""
        self.kind = "run"
        self._result: ev.RunResult | None = None
        self._code: int | None = None

    def add(self, entry: Entry) -> None:
        event = entry.event
        ended = event if isinstance(event, ev.RunEnded) else None
        self.state = ended.state if ended else None
        self._code = ended.exit_code if ended else None
        if isinstance(event, ev.RunStarted):
            self.kind = event.kind
        if isinstance(event, ev.RunResult):
            self._result = event

    @property
    def exit_code(self) -> int:
        """The exit code of the run; 1 if it was killed."""
        if self.state is None:
            return 1
        if self.state == "ended" and self._result is not None:
            return self._result.exit_code
        return ev.exit_code_of(self.state) if self._code is None else self._code


def _current(project: Path) -> Path:
    """Return the journal of the run or watch at work, or else of the last one.

    Raises:
        RunNotFound: there is none.
    """
    workspace = Workspace(project)
    until = time.monotonic() + _STARTING
    while (owner := working_process(workspace)) is not None:
        if live := live_journals(workspace, owner):
            return live[0]
        if time.monotonic() > until:
            raise RunNotFound("what runs here writes no journal", hint="see `cuggino status`")
        time.sleep(_PAUSE)  # nothing is subscribed to yet, so there is no scheduler
    return last_journal(workspace) or Runs(project).path_of()
