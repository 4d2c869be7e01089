"""`waiting`: a durable wait for something outside of a run, in which nothing else happens."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, TypeAlias, assert_never

from reactivex import Observable, defer, empty, just, operators as ops

from cuggino.domain import Schedule, parse_waiting
from cuggino.errors import (
    BudgetExceeded,
    ConfigError,
    CugginoError,
    Interrupted,
    LineTooLong,
    ProcessFailed,
)
from cuggino.events import (
    At,
    CiDone,
    CommandSucceeds,
    Event,
    FileExists,
    FilesCounted,
    PersonAnswers,
    ProcessEnded,
    Until,
    WaitingEnded,
    WaitingRefused,
    WaitingStarted,
)
from cuggino.folders import count_files, folder_changes, watch_file_count
from cuggino.operators import Flow, ask, emit, flow, forward, interrupt_when, pause
from cuggino.operators.mapcat import mapcat
from cuggino.operators.merge_now import merge_now
from cuggino.operators.repeat_on import repeat_on
from cuggino.processes import ancestors, process_started
from cuggino.stages.acts import act, clock
from cuggino.stages.command import Shell, shell_lines
from cuggino.storage import Workspace

POLLS = Schedule.constant("10s").times(6).and_then(Schedule.exponential("20s", 1.5).capped("2m"))
"""How often a command is run."""

_LOOKS = Schedule.constant("2s").times(30).and_then(Schedule.constant("10s"))
"""How often a process, or a file that cannot be watched, is checked."""
_TICKS = Schedule.constant("30s")
"""How often a watched folder is listed as well, as some systems lose changes."""
_SETTLE = 1.0
"""Seconds in which a file may still be written."""
_MOMENT = 0.001


class Ci(Protocol):
    """The CI of a project."""

    def found(self, until: CiDone, cwd: Path) -> Observable[CiDone]:
        """Emit what is awaited with its pull request or commit; errors: there is no such CI."""

    def outcome(self, until: CiDone, cwd: Path) -> Observable[Event | str]:
        """Emit how the jobs have ended, once they have; before that, events such as outages."""


class NoCi:
    """A project whose CI is unknown."""

    def found(self, until: CiDone, cwd: Path) -> Observable[CiDone]:
        """Fail: the CI is unknown."""
        raise ConfigError("this project has no CI that cuggino can query")

    def outcome(self, until: CiDone, cwd: Path) -> Observable[Event | str]:
        """Emit nothing."""
        return empty()


def _as_it_is(source: Observable[Any]) -> Observable[Any]:
    return source


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingPlace:
    """Where a wait happens: the project, and what is looked at there."""

    folder: Path = field(default_factory=Path.cwd)
    workspace: Workspace | None = None
    """Where questions to a person are written."""
    ci: Ci = field(default_factory=NoCi)
    shell: Shell = shell_lines
    changes: Callable[[Path], Observable[object]] = folder_changes
    schedule: Schedule = POLLS
    """How often a command is run."""
    around: Callable[[Observable[Any]], Observable[Any]] = _as_it_is
    """Ends a wait from outside: an interruption, a budget."""
    is_confined: bool = False
    """True if an agent names what is awaited, so that paths stay in the folder."""
    numbers_processes: bool = True
    """False if process ids come from a sandbox with a PID namespace of its own."""


Result: TypeAlias = "WaitingEnded | WaitingRefused"


def waiting(
    until: Until, place: WaitingPlace | None = None, *, begun: WaitingStarted | None = None
) -> Flow[WaitingEnded]:
    """Wait until something has happened; return how the wait ended. For a `flow`.

    ::

        source:             ---x            the first answer counts
        waiting:            S--(E|)         S: WaitingStarted, E: WaitingEnded

        source:             ---------       deadline in 5 s
        waiting:            S----(E|)       E has the default as its answer

    Nothing runs meanwhile but the watch of the source. In a durable flow the beginning is recorded
    as the stage `waiting-for`, with the deadline as a time, and the end as the stage `waiting`: a
    resumed run waits for the same thing until the same deadline, and emits `WaitingStarted` again.
    A flow that replays no stages gives the wait that it has `begun`.

    A source that cannot be watched any longer ends the wait as `failed`, with the reason as its
    answer. A question that nobody has answered is withdrawn at the deadline.

    Raises:
        ConfigError: it can never happen, such as the end of the run's own process.
    """
    if not hasattr(until, "deadline"):
        raise TypeError(f"waiting() needs a value such as FileExists(path=...), not {until!r}")
    result = yield from _waited(until, place or WaitingPlace(), begun)
    if isinstance(result, WaitingRefused):
        raise ConfigError(f"cannot wait: {result.reason}")
    return result


def waiting_asked(content: str, place: WaitingPlace, *, longest: float) -> Flow[Result]:
    """Wait for what an agent's `<WAITING>` names, at most `longest` seconds.

    What cannot be awaited is no error, but `WaitingRefused`, which is emitted and returned.
    """
    now = yield from ask(_now(), name="now")
    assert now is not None
    try:
        until = parse_waiting(content, now=now, longest=longest)
    except ValueError as error:
        result: Result = _refused(content, str(error))
    else:
        result = yield from _waited(until, place)
    if isinstance(result, WaitingRefused):
        result = result.model_copy(update={"asked": content.strip().partition("\n")[0][:200]})
        yield from emit(result)
    return result


def _waited(until: Until, place: WaitingPlace, begun: WaitingStarted | None = None) -> Flow[Result]:
    wait: Event | None = begun
    if wait is None:
        if isinstance(until, PersonAnswers) and not until.issue:  # a repeated stage writes the same
            new = Workspace.new_approval if until.approves else Workspace.new_question
            name = yield from ask(act(new), name="issue-name")
            until = until.model_copy(update={"issue": name})
        wait = yield from ask(flow(lambda: _begin(until, place)), name="waiting-for")
    if isinstance(wait, WaitingRefused):
        return wait
    assert isinstance(wait, WaitingStarted)
    ended = yield from forward(flow(lambda: _wait(wait, place)), name="waiting")
    assert isinstance(ended, WaitingEnded)
    return ended


def _refused(asked: str, reason: str) -> WaitingRefused:
    return WaitingRefused(asked=asked, reason=reason)


def _begin(until: Until, place: WaitingPlace) -> Flow[None]:
    """Emit the wait, with everything that a later process needs, or why it is refused."""
    now = yield from ask(_now())
    assert now is not None
    try:
        until = (yield from _resolved(until, place)) or until
    except CugginoError as error:
        yield from emit(_refused(until.kind, error.message))
        return
    ends = [until.deadline] if until.deadline is not None else []
    if until.within is not None:
        ends.append(now + timedelta(seconds=until.within))
    deadline = min(map(_aware, ends), default=None)
    yield from emit(
        WaitingStarted(until=until.model_copy(update={"deadline": deadline}), since=now)
    )


def _resolved(until: Until, place: WaitingPlace) -> Flow[Until | None]:
    match until:
        case FileExists(path=path) if place.is_confined:
            folder = place.folder.resolve()
            if not (folder / path).resolve().is_relative_to(folder):
                raise ConfigError(f"{path} is not in the project")
        case ProcessEnded(pid=pid):
            if not place.numbers_processes:
                raise ConfigError(
                    "your sandbox numbers processes by itself, so that no number of yours names "
                    "one here; wait for a file that the process writes"
                )
            if pid == os.getpid() or pid in ancestors():
                raise ConfigError(f"process {pid} is the run itself, which would wait for itself")
            return until.model_copy(update={"started": until.started or process_started(pid)})
        case CiDone():
            return (yield from ask(place.ci.found(until, place.folder)))
        case PersonAnswers():
            if place.workspace is None:
                raise ConfigError("there is no workspace for a question to a person")
            place.workspace.write_spec_issue(until.question, name=until.issue)
        case _:
            pass
    return until


def _wait(begun: WaitingStarted, place: WaitingPlace) -> Flow[None]:
    """Watch the source of a wait; the last event is its end."""
    until = begun.until
    yield from emit(begun)
    source = _source(until, place).pipe(ops.take_while(_is_event, inclusive=True))
    if until.deadline is not None:
        source = source.pipe(interrupt_when(_reached(until.deadline), begun))
    found: Event | str | None = None

    def split(one: Event | str) -> tuple[Event, ...]:
        nonlocal found
        if isinstance(one, Event) and one is not begun:  # such as an outage of a forge
            return (one,)
        found = one
        return ()

    problem = "its schedule is exhausted"
    try:
        yield from forward(place.around(source).pipe(mapcat(split)))
    except (BudgetExceeded, Interrupted):
        raise
    except (CugginoError, OSError) as error:
        found, problem = None, str(error)
    now = yield from ask(_now())
    assert now is not None
    workspace = place.workspace
    if isinstance(until, PersonAnswers) and not isinstance(found, str) and workspace is not None:
        workspace.withdraw(until.issue)
    waited = max(0.0, (now - _aware(begun.since)).total_seconds())
    ended = WaitingEnded(until=until, outcome="failed", answer=problem, waited=waited)
    if found is begun:
        ended = ended.model_copy(update={"outcome": "deadline", "answer": until.default})
    elif isinstance(found, str):
        ended = ended.model_copy(update={"outcome": "happened", "answer": found})
    yield from emit(ended)


def _is_event(one: Event | str) -> bool:
    return isinstance(one, Event)


def _source(until: Until, place: WaitingPlace) -> Observable[Any]:
    """Return a stream whose first text is the answer."""
    match until:
        case FileExists(path=path):
            return _seen(place.folder / path, place)
        case FilesCounted(folder=folder, at_least=least):
            counts = watch_file_count(
                place.folder / folder,
                settle=_SETTLE,
                changes=place.changes,
                count=lambda path: count_files(path) >= least,
            )
            return counts.pipe(ops.filter(bool), ops.map(lambda _: ""))
        case ProcessEnded():
            return _polled(lambda: _ended(until), _LOOKS)
        case At(time=time):
            return _reached(_aware(time))
        case CommandSucceeds(command=command):
            run = defer(lambda _: place.shell(command, place.folder))
            once = flow(lambda: _succeeds(run))
            return once.pipe(repeat_on(place.schedule))
        case CiDone():
            return defer(lambda _: place.ci.outcome(until, place.folder))
        case PersonAnswers(issue=issue):
            workspace = place.workspace
            assert workspace is not None
            is_open = (workspace.spec_issues / issue).exists
            counts = watch_file_count(
                workspace.spec_issues,
                settle=0.0,
                changes=_with_ticks(place.changes),
                count=lambda _: is_open(),
            )
            return counts.pipe(
                ops.filter(lambda is_open: not is_open),
                ops.map(lambda _: workspace.settled_as(issue)),
            )
        case _ as never:
            assert_never(never)


def _succeeds(run: Observable[bytes]) -> Flow[None]:
    """Run a command; emit an item if it succeeds."""
    try:
        yield from ask(run)
    except (ProcessFailed, LineTooLong):
        return
    yield from emit("")


def _seen(path: Path, place: WaitingPlace) -> Observable[str]:
    """Emit once the file exists; a folder that is missing is not made for it."""
    if not path.parent.is_dir() or path.name.startswith("."):  # whose changes are not reported
        return _polled(lambda: "" if path.exists() else None, _LOOKS)
    counts = watch_file_count(
        path.parent,
        settle=_SETTLE,
        changes=_with_ticks(place.changes),
        count=lambda _: path.exists(),
    )
    return counts.pipe(ops.filter(bool), ops.map(lambda _: ""))


def _with_ticks(
    changes: Callable[[Path], Observable[object]],
) -> Callable[[Path], Observable[object]]:
    ticks: Observable[object] = just(None).pipe(repeat_on(_TICKS))
    return lambda folder: merge_now(changes(folder), ticks)


def _polled(look: Callable[[], str | None], schedule: Schedule) -> Observable[str]:
    """Emit the first answer of `look`, called on the schedule until it returns one."""

    def answers() -> Iterator[str]:
        answer = look()
        if answer is not None:
            yield answer

    return flow(lambda: emit(*answers())).pipe(repeat_on(schedule))


def _ended(until: ProcessEnded) -> str | None:
    """Return the answer if the process has ended, else None."""
    if until.started is None:
        return "no such process is running; processes that a session starts end with it"
    started = process_started(until.pid)
    # A clock that was set moves the start by less than the time in which a pid is used again.
    is_same = started is not None and abs(started - until.started) < 2.0
    return None if is_same else ""


def _reached(time: datetime) -> Observable[str]:
    """Emit when the time has come."""

    def story() -> Flow[None]:
        while True:
            now = yield from ask(_now())
            assert now is not None
            left = (time - now).total_seconds()
            if left < _MOMENT:
                yield from emit("")
                return
            yield from pause(left)

    return flow(story)


def _now() -> Observable[datetime]:
    return clock().pipe(ops.map(_aware))


def _aware(time: datetime) -> datetime:
    """Return the time with a zone; virtual clocks have none."""
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
