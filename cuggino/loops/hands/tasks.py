"""The tasks of one plan, done side by side: a private backlog, a pool of slots, and a gate."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import methodcaller
from pathlib import Path

from reactivex import Observable, defer, just, operators as ops
from reactivex.subject import Subject

from cuggino.domain import PlanTask, SlotLimit, attempted_item, is_overload
from cuggino.errors import CugginoError, Interrupted, ItemSkipped, ProcessError, cause_of
from cuggino.events import (
    AttemptLost,
    CommitPerformed,
    ControlIgnored,
    Event,
    HandsEnded,
    HandsStarted,
    IterationStart,
    LoopSpecIssue,
    LoopTerminalEvent,
    Progress,
    RunResumed,
    TaskLeft,
    WatchCandidate,
    WatchEvent,
    WatchFollowDelayed,
    WatchLanded,
    WatchProcessingItem,
    WatchSentBack,
)
from cuggino.gate import CheckResult
from cuggino.git import Git
from cuggino.loops.coding.options import LoopRunOptions
from cuggino.loops.coding.service import LoopService
from cuggino.loops.frame.commands import Commands
from cuggino.loops.frame.run import Run
from cuggino.loops.watch.placement import Work, item_name, work_placed
from cuggino.loops.watch.places import PlacesOf, gate_of
from cuggino.loops.watch.pool import pool_of
from cuggino.loops.watch.pool_state import (
    Begun,
    Fact,
    Failed,
    Forgotten,
    Land,
    Listed,
    Overloaded,
    PoolState,
    Served,
    Start,
    next_step,
)
from cuggino.loops.watch.recorded import TAGS, state_after
from cuggino.loops.watch.returns import why_not_again
from cuggino.loops.watch.with_attempts import with_attempts
from cuggino.operators import Flow, StateRef, ask, emit, flow, forward
from cuggino.operators.alongside import alongside
from cuggino.operators.merge_now import merge_now
from cuggino.operators.ready_by import ready_by
from cuggino.sandbox import views_of
from cuggino.stages import act, interrupt_processes
from cuggino.stages.slots import Trunk

_OF_TASKS = (CommitPerformed, IterationStart, LoopTerminalEvent, RunResumed)
"""Events of a task's run about its own commits; the commit that lands is another one."""
_SINGLE = {
    "check_command": None,
    "gate": "context",
    "baseline": "skip",
    "max_iterations": 1,
    "attempts": 1,
}
"""The options of a task's single attempt, which the gate checks when it lands."""
_ONE_TASK = (
    "It is one task of a plan, and all that counts here: other agents do the rest of what the plan "
    "is for. That is:"
)
_MOST_RETURNS = 4
"""Returns after which a task is left undone."""


class Tasks:
    """The work on the tasks of one plan."""

    SKIPPED = ItemSkipped().message
    HELD = "it comes after a task that is not done"

    def __init__(
        self,
        run: Run,
        options: LoopRunOptions,
        tasks: Sequence[PlanTask],
        order: Mapping[int, Sequence[int]],
        places: PlacesOf,
        *,
        loop: LoopService | None = None,
        iteration: int,
        hands: int,
        log_size: int,
        folder: Path,
        journal: Path,
        commands: Commands,
        baseline: CheckResult | None,
    ) -> None:
        self._run, self._commands = run, commands
        self._log_size = log_size
        self._options = options.model_copy(
            update={
                "slot_folder": str(folder),
                "hands": 1,
                "review": None,
                "approve": [it for it in options.approve if it not in ("plan", "landing")],
            }
        )
        self._folder = folder
        workspace = run.services.workspace.with_journals(journal)
        services = replace(run.services, workspace=workspace)
        self._places = places(services, self._options, hands, run.session.id)
        self._has_attempts = loop is not None
        if loop is not None:
            loop = loop.at(services)
            self._places = with_attempts(self._places, loop, services, self._options)
        gate = gate_of(run.services, self._options)
        gate.baseline = baseline
        self._trunk = Trunk(gate, land_as="commit")
        self._tasks = {_name(iteration, task.number): task for task in tasks}
        self._after = {
            _name(iteration, number): [_name(iteration, before) for before in befores]
            for number, befores in order.items()
        }
        self._ended = HandsEnded(iteration=iteration)
        """The outcomes of the tasks so far."""
        self._state = StateRef(PoolState(limit=SlotLimit(hands)))
        self._skips: Subject[object] = Subject()
        self._losses: dict[str, str] = {}
        """The reason why the latest attempt at a task has lost."""

    def __contains__(self, name: object) -> bool:
        return name in self._tasks

    def titles(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the names of tasks with their titles."""
        return (f"{name}: {self._tasks[name].title}" for name in names)

    def run(self) -> Flow[None]:
        """Do the tasks, until nothing can begin any more; emits `HandsEnded` last.

        ::

            what has landed |> ready_by(after) |> merge_at_most(hands) |> land, one by one
        """
        control, hands = self._run.control, self._state.value.limit.slots
        n, tasks = self._ended.iteration, len(self._tasks)
        notes = tuple(self._notes())
        yield from emit(HandsStarted(iteration=n, hands=hands, tasks=tasks, notes=notes))
        yield from ask(act(partial(self._run.session.rewind, self._log_size)))
        yield from ask(self._trunk.open())
        yield from self._restored()
        while True:
            yield from control.stand_still()
            yield from forward(self._working())
            if not control.standing.value.holds_back:
                break
        ended = self._ended
        others = [name for name in self._after if name not in (*ended.landed, *ended.undone)]
        held = dict.fromkeys(others, self.HELD)
        yield from emit(ended.model_copy(update={"undone": {**ended.undone, **held}}))

    def _notes(self) -> Iterator[str]:
        """Yield a message for each setting of the plan that does not apply."""
        for name, task in self._tasks.items():
            if task.note:
                yield f"{name}: {task.note}"
            if (task.attempts or 1) > 1 and not self._has_attempts:
                ignored = f"`attempts: {task.attempts}` is ignored"
                yield f"{name}: {ignored}: tasks have a single attempt here"

    def _working(self) -> Observable[WatchEvent]:
        def of_task(step: Start | Land, story: Callable[[], Flow[None]]) -> Observable[WatchEvent]:
            return flow(story).pipe(ops.map(methodcaller("of_item", step.name)))

        told = self._run.control.standing.changes.pipe(ops.skip(1))
        landed: Observable[Sequence[str]] = defer(lambda _: just(self._ended.landed))
        return pool_of(
            self._state,
            landed.pipe(ready_by(self._after), ops.map(self._listed)),
            lambda start: of_task(start, partial(self._attempted, start)),
            lambda land: of_task(land, partial(self._landing, land)),
            changes=merge_now(told, self._skips),
            on_release=partial(interrupt_processes, self._folder),
        ).pipe(alongside(self._places.news))

    def _listed(self, ready: Sequence[str]) -> Listed:
        holds_back = self._run.control.standing.value.holds_back
        began = set(self._state.value.last_in.values())  # before others take their slots
        names = sorted(ready, key=lambda name: name not in began)
        left = tuple(name for name in names if name not in self._ended.undone)
        return Listed(() if holds_back else left, holds_back=holds_back)

    def _tell(self, fact: Fact) -> None:
        self._state.set(next_step(self._state.value, fact)[0])

    def _restored(self) -> Flow[None]:
        """Continue from the journal: landed tasks stay landed, the rest is resumed."""
        resumed = self._run.resumed
        tags = (*TAGS, "AttemptLost", "TaskLeft")
        entries = () if resumed is None else resumed.entries.only(tags)
        events = [entry.event for entry in entries]
        for event in events:
            self._note_lost(event)
        known = [event for event in events if getattr(event, "filename", "") in self._tasks]
        last_in = (yield from ask(self._places.attach(self._tasks.__contains__))) or ()
        state = state_after(known)
        self._state.set(
            replace(
                state,
                limit=self._state.value.limit,
                queue=replace(state.queue, longest=self._state.value.limit.slots),
                works={name: work.of_text(self._item(name)) for name, work in state.works.items()},
                last_in={one.slot: item_name(one.item) for one in last_in},
            )
        )
        for event in known:
            if isinstance(event, WatchLanded) and event.filename not in self._ended.landed:
                yield from self._done(event.filename)
            elif isinstance(event, TaskLeft):
                self._note_left(event.filename, event.reason)
        for name, work in self._state.value.works.items():
            if work.is_unapproved:
                yield from self._leave(name, self._why_unapproved(name))

    def _item(self, name: str) -> str:
        """Return the name of the task with a digest of all that it depends on."""
        text = f"{self._run.session.id} {self._text(name)}"
        return f"{name} {hashlib.sha256(text.encode(errors='replace')).hexdigest()}"

    def _text(self, name: str) -> str:
        """Return the plan for the agent of a task."""
        task = self._tasks[name]
        others = "\n".join(f"- {one.title}" for one in self._tasks.values() if one is not task)
        return (
            f"# Plan\n\n{task.text}\n\n## Not yours\n\nThis task is all that you do. It is part of "
            f"a larger plan; other agents do the rest of it in clones of their own:\n\n{others}"
        )

    # A task at work

    def _attempted(self, start: Start) -> Flow[None]:
        name, task = start.name, self._tasks[start.name]
        yield from emit(
            WatchProcessingItem(
                filename=name,
                title=f"{name}: {task.title}",
                position=task.number,
                total=len(self._tasks),
                slot=start.slot,
                returns=start.returns,
            )
        )
        options = self._options_of(start)
        self._tell(Begun(name, self._item(name), start.slot))
        last: list[Event] = []

        def passes(event: Event) -> bool:
            """Look at an event; return whether it counts for the whole run."""
            last[:] = [event]
            self._note_lost(event)
            if is_overload(event):
                self._tell(Overloaded(name, self._run.lane.now))
            return not isinstance(event, _OF_TASKS)

        with self._commands.beside(name) as control:
            work = Work(
                options=options,
                slot=start.slot,
                base=(yield from ask(self._trunk.head())) or "",
                number=start.number,
                returned=start.returned,
                ledger=self._run.supervision.ledger,
                control=control,
            )
            placed = work_placed(self._places, work).pipe(ops.filter(passes))
            try:
                yield from forward(control.obeyed(placed))
            except ItemSkipped:
                self._tell(Failed(name))
                yield from self._leave(name, self.SKIPPED)
                return
            except CugginoError as error:
                self._tell(Failed(name))
                if self._is_stopped(error):
                    return
                raise
        self._tell(Served(name))
        match last[0] if last else None:
            case LoopSpecIssue() as issue:
                yield from self._leave(name, issue.content)
                asked = {"asking": name, "issue": issue.filename}
                self._ended = self._ended.model_copy(update=asked)
            case LoopTerminalEvent() as ended:
                yield from self._leave(name, ended.message)
            case WatchCandidate(approved=False):
                yield from self._leave(name, self._why_unapproved(name))
            case _:
                pass

    def _options_of(self, start: Start) -> LoopRunOptions:
        """Return the options of the task's run: several attempts, unless it was sent back."""
        name, task, whole = start.name, self._tasks[start.name], self._options
        text = self._text(name)
        own = {"item": self._item(name), "task": text}
        options = whole.model_copy(update={**own, "attempts": whole.attempts_at(task.attempts)})
        if start.returned is not None or len(options.choices) == 1 or not self._has_attempts:
            return options.model_copy(update=_SINGLE)
        focus = f"{task.title}\n\n{_ONE_TASK}\n\n{whole.focus}"
        return options.model_copy(update={"focus": focus})

    def _note_lost(self, event: Event) -> None:
        if isinstance(event, AttemptLost):
            self._losses[attempted_item(event.filename)] = event.reason

    def _why_unapproved(self, name: str) -> str:
        return f"no attempt was approved; the last one: {self._losses.get(name, 'not approved')}"

    def _leave(self, name: str, reason: str) -> Flow[None]:
        """Leave a task undone, and those that come after it."""
        self._note_left(name, reason)
        self._commands.forget(name)
        yield from emit(TaskLeft(iteration=self._ended.iteration, filename=name, reason=reason))

    def skipped(self, name: str) -> Event | None:
        """Leave a task undone that is not at work but waits to land; None for any other."""
        state = self._state.value
        if state.work_of(name).candidate is None or name in state.at_work:
            return None
        if name == state.lands or state.work_of(name).has_landed:
            return ControlIgnored(source="skip", reason=f"{name} is being landed", item=name)
        self._note_left(name, self.SKIPPED)
        self._commands.forget(name)
        # Once this has been announced.
        self._run.lane.schedule(lambda *_: self._skips.on_next(name))
        n = self._ended.iteration
        return TaskLeft(iteration=n, filename=name, reason=self.SKIPPED, item=name)

    def _note_left(self, name: str, reason: str) -> None:
        self._tell(Forgotten(name))
        left = {**self._ended.undone, name: reason}
        self._ended = self._ended.model_copy(update={"undone": left})

    def _is_stopped(self, error: CugginoError) -> bool:
        """Return whether a person has asked the run to end after the stages at work."""
        cause = cause_of(error)
        return isinstance(cause, Interrupted) and self._run.control.standing.value.stops

    # A task that lands

    def _landing(self, land: Land) -> Flow[None]:
        name = land.name
        message = (yield from self._message(land)) or self._tasks[name].title
        landing = self._trunk.land(land.candidate, title=message, returns=land.returns)
        last = yield from forward(landing)
        if isinstance(last, WatchLanded):
            if not last.nothing:
                subject, commit = message.partition("\n")[0], last.commit[:7]
                yield from emit(
                    CommitPerformed(
                        iteration=self._ended.iteration, commit_hash=commit, message=subject
                    )
                )
            yield from self._done(name)
        elif isinstance(last, WatchSentBack):
            work, queue = self._state.value.work_of(name), self._state.value.queue
            is_exhausted = queue.is_exhausted(name, _MOST_RETURNS)
            why = why_not_again(last, work, is_exhausted=is_exhausted)
            if why is not None:
                yield from self._leave(name, why)

    def _message(self, land: Land) -> Flow[str]:
        """Return the message of the task's first commit, "" without one."""
        git = Git(cwd=self._options.cwd, views=views_of(self._options))
        span = f"{land.candidate.base}..{land.candidate.commit}"
        words = ("log", "-z", "--reverse", "--no-merges", "--first-parent", "--format=%B", span)
        fields = (yield from git.must(*words)).fields
        return fields[0].strip() if fields else ""

    def _done(self, name: str) -> Flow[None]:
        """Note that the task has landed, for the reviewer and for what comes after it."""
        delayed = yield from ask(self._trunk.follow())
        if isinstance(delayed, WatchFollowDelayed):
            raise ProcessError("git", f"the clone of the run cannot follow: {delayed.reason}")
        self._ended = self._ended.model_copy(update={"landed": (*self._ended.landed, name)})
        self._tell(Forgotten(name))
        self._commands.forget(name)
        report = Progress(content=self._tasks[name].title)
        yield from ask(act(partial(self._run.session.append, report)))


def _name(iteration: int, number: int) -> str:
    """Return the name of a task, as `--item` takes it."""
    return f"task-{iteration}.{number}"
