"""A watch with slots in virtual time: attempts and landings as drawn, real folders."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reactivex import Observable, concat, empty, just, never, of, operators as ops, timer
from reactivex.subject import Subject

from cuggino import events as ev
from cuggino.loops import (
    LoopRunOptions,
    Placement,
    Returned,
    Services,
    WatchRunOptions,
    WatchService,
    Work,
)
from cuggino.loops.frame.companions import Companion
from cuggino.loops.frame.journal import open_journal
from cuggino.loops.watch.here import Here
from cuggino.loops.watch.journal import SLOTS
from cuggino.loops.watch.slots import Places
from cuggino.operators import Flow, ask, emit, flow, pause
from cuggino.operators.supervision import QuotaGate
from cuggino.stages import clock
from cuggino.stages.slots import Slot, slots_of
from cuggino.storage import Workspace, new_run_id
from cuggino.testing import AgentRun, InMemoryAgent, Marbles, Seen

Outcome = str | Exception
"""`candidate`, `spec_issue`, `max_iterations`, or an error."""
Landing = str | Exception
"""`landed`, `conflict`, `check`, `proposed`, or an error."""
Ending = str | Exception
"""`merged`, `ci`, `review`, `conflict`, `adopted` (and then sent back), or an error."""


class ScriptedTrunk:
    """A trunk whose landings take a second, with given results."""

    def __init__(self, landings: dict[str, list[Landing]], seconds: float) -> None:
        self.landings = landings
        self.seconds = seconds
        self.landed: list[str] = []
        self.after: list[tuple[str, ...]] = []
        self.running = 0
        self.opened = self.followed = 0
        self.follows: list[ev.Event] = []
        self.follow_seconds = 0.0
        self.owner: Subject[object] = Subject()
        """Emits when the user has changed something."""
        self.watched = 0
        self.proposals: dict[str, list[tuple[float, Ending]]] = {}
        """What becomes of pull requests, and at which second; merged after 100 s by default."""
        self.looked_at: list[str] = []
        """The items whose pull requests were watched, from the beginning each time."""
        self.proposed = 0

    def open(self) -> Observable[ev.WatchEvent]:
        self.opened += 1
        return empty()

    def head(self, after: Collection[str] = ()) -> Observable[str]:
        self.after.append(tuple(after))
        return just(f"{len(self.landed):040}")

    def land(
        self, candidate: ev.WatchCandidate, *, title: str, returns: int
    ) -> Observable[ev.WatchEvent]:
        def story() -> Flow[None]:
            assert self.running == 0
            self.running += 1
            name = candidate.filename
            yield from emit(
                ev.WatchLanding(filename=name, commit=candidate.commit, trunk=str(len(self.landed)))
            )
            yield from pause(self.seconds)
            self.running -= 1
            results = self.landings.get(name)
            result = results.pop(0) if results else "landed"
            if isinstance(result, Exception):
                raise result
            if result == "proposed":
                self.proposed += 1
                made = ev.WatchProposed(
                    filename=name,
                    number=self.proposed,
                    url=f"https://forge/{self.proposed}",
                    branch=f"cuggino/{name}",
                    commit=candidate.commit,
                    candidate=candidate.commit,
                )
                yield from emit(made)
                return
            if result != "landed":
                reason: Any = result
                yield from emit(
                    ev.WatchSentBack(
                        filename=name, reason=reason, output="no", paths=("a",), returns=returns + 1
                    )
                )
                return
            self.landed.append(name)
            yield from emit(
                ev.WatchLanded(
                    filename=name,
                    commit=candidate.commit,
                    trunk_was=str(len(self.landed)),
                    nothing=False,
                    branch=None,
                )
            )

        return flow(story)

    def proposal(self, proposed: ev.WatchProposed, *, returns: int) -> Observable[ev.WatchEvent]:
        def story() -> Flow[None]:
            name = proposed.filename
            self.looked_at.append(name)
            ends = self.proposals.get(name) or [(100.0, "merged")]
            when, ending = ends[0]
            began = yield from ask(clock())
            assert began is not None
            yield from pause(max(0.0, when - seconds_of(began)))
            if name in self.proposals:
                self.proposals[name].pop(0)
            if isinstance(ending, Exception):
                raise ending
            if ending == "merged":
                self.landed.append(name)
                yield from emit(
                    ev.WatchLanded(
                        filename=name, commit="m", trunk_was="0", branch=proposed.branch, url="u"
                    )
                )
                return
            if ending == "adopted":
                yield from emit(
                    ev.WatchCandidate(filename=name, slot=1, commit="theirs", base="0", attempt=1)
                )
            reason: Any = "review" if ending == "adopted" else ending
            yield from emit(
                ev.WatchSentBack(filename=name, reason=reason, output="no", returns=returns + 1)
            )

        return flow(story)

    def changed(self, delayed: ev.WatchFollowDelayed, changes: Any) -> Observable[object]:
        self.watched += 1
        return self.owner.pipe(ops.finally_action(self._unwatched))

    def _unwatched(self) -> None:
        self.watched -= 1

    def follow(self) -> Observable[ev.WatchEvent]:
        self.followed += 1
        return concat(pause_of(self.follow_seconds), of(*self.follows))


def leave_killed(slots: SlotWatching, *happened: ev.Event) -> None:
    """Write the journal of a killed watch; its item 1.md has the text `task`."""
    at = datetime(2026, 1, 2, tzinfo=UTC)
    digest = hashlib.sha256(b"task").hexdigest()
    run = LoopRunOptions(focus="a", cwd=slots.folder, item=f"1.md {digest}", slot=2)
    open_journal(slots.workspace, run, new_run_id(), None, at=at).close()
    before = open_journal(slots.workspace, slots.options, new_run_id(), None, at=at)
    for event in happened:
        before.append(event, at=at, stage=SLOTS)
    before.close()


def seconds_of(moment: datetime) -> float:
    """Return the virtual second."""
    return (moment - datetime.fromtimestamp(0, UTC)).total_seconds()


def pause_of(seconds: float) -> Observable[Any]:
    """Return a stream that completes after this time."""
    return timer(seconds).pipe(ops.ignore_elements()) if seconds else empty()


class SlotWatching:
    """A watch with slots over a real folder, in the virtual time of its marbles."""

    def __init__(
        self,
        folder: Path,
        *,
        slots: int = 2,
        attempts: dict[str, list[tuple[float, Outcome]]] | None = None,
        landings: dict[str, list[Landing]] | None = None,
        landing: float = 1.0,
        proposals: dict[str, list[tuple[float, Ending]]] | None = None,
        is_proposing: bool = True,
        audits: list[Observable[Any]] | None = None,
        commands: Observable[Any] | None = None,
        placed: Callable[[Placement], Placement] = lambda here: here,
        companions: Sequence[Companion] = (),
        claim: Callable[[str], Observable[bool]] | None = None,
        **options: Any,
    ) -> None:
        self.t = Marbles()
        self.folder = folder
        self.workspace = Workspace(folder)
        self.workspace.open()
        self.attempts = attempts or {}
        self.trunk = ScriptedTrunk(landings or {}, landing)
        self.trunk.proposals = proposals or {}
        self.tried: list[tuple[str, int, int, Returned | None]] = []
        """Each attempt: the item, the slot, the number, why it was sent back."""
        self.told: list[tuple[str, list[str]]] = []
        """The messages that wait for the agents of an item."""
        self.disposed: list[str] = []
        self.at_work = self.most_at_work = 0
        self._changes: dict[Path, Subject[object]] = {}
        agent = InMemoryAgent({"audit": [AgentRun(audit) for audit in audits or []]})
        services = Services(
            agent=agent,
            workspace=self.workspace,
            changes=self.changes,
            control=commands if commands is not None else never(),
            gate=QuotaGate(),
        )
        self.options = WatchRunOptions(
            cwd=folder,
            audit=bool(audits),
            slots=slots,
            commit=True,
            check_command="check",
            **options,
        )
        here = Here(
            services=services,
            folders=slots_of(folder, str(folder.parent / "slots"), slots),
            prepare=lambda slot, **_: empty(),
            publish=lambda slot, **_: empty(),
            attempt=self.attempt,
        )
        places = Places(
            placement=placed(here),
            trunk=self.trunk,
            proposing=self.trunk if is_proposing else None,
            folder=folder.parent / "slots",
        )
        self.stream = WatchService(services, places=places, companions=companions, claim=claim).run(
            self.options
        )

    def changes(self, folder: Path) -> Observable[object]:
        return self._changes.setdefault(folder, Subject())

    def attempt(
        self, services: Services, work: Work, slot: Slot, **_more: Any
    ) -> Observable[ev.WatchEvent]:
        name, number, base, control = work.name, work.number, work.base, work.control
        assert control is not None

        def story() -> Flow[None]:
            self.tried.append((name, slot.number, number, work.returned))
            if waiting := control.inbox.texts:
                self.told.append((name, waiting))
            self.at_work += 1
            self.most_at_work = max(self.most_at_work, self.at_work)
            ended = False
            try:
                yield from emit(
                    ev.WatchSlotPrepared(
                        filename=name, slot=slot.number, folder=str(slot.folder), base=base
                    )
                )
                runs = self.attempts.get(name, [])
                seconds, outcome = runs.pop(0) if runs else (10.0, "candidate")
                yield from pause(seconds)
                yield from control.stand_still()
                ended = True
                if isinstance(outcome, Exception):
                    raise outcome
                yield from emit(*self._end(name, slot, number, outcome, base))
            finally:
                self.at_work -= 1
                if not ended:
                    self.disposed.append(name)

        return flow(story)

    def _end(
        self, name: str, slot: Slot, number: int, outcome: str, base: str
    ) -> list[ev.WatchEvent]:
        match outcome:
            case "spec_issue":
                file = self.workspace.write_spec_issue("unclear")
                return [ev.LoopSpecIssue(iteration=1, content="unclear", filename=file)]
            case _:
                is_approved = outcome == "candidate"
                end: ev.LoopTerminalEvent = ev.LoopApproved(iteration=1)
                if not is_approved:
                    end = ev.LoopMaxIterations(iteration=3, max_iterations=3)
                made = ev.WatchCandidate(
                    filename=name,
                    slot=slot.number,
                    commit=f"{name}-{number}",
                    base=base,
                    attempt=number,
                    approved=is_approved,
                )
                return [end, made]

    def at(self, when: float, do: Callable[[], object], folder: Path | None = None) -> None:
        """Do something at a virtual second; a change of `folder` is reported."""

        def act(*_: object) -> None:
            do()
            if folder is not None:
                self._changes.setdefault(folder, Subject()).on_next("changed")

        if when == 0:
            do()
        else:
            self.t.scheduler.schedule_absolute(when, act)

    def write(self, name: str, text: str = "task", *, when: float = 0) -> None:
        """Write a backlog item."""
        backlog = self.workspace.backlog
        self.at(when, lambda: (backlog / name).write_text(text), backlog)

    def play(self, until: float) -> list[Seen]:
        """Return the events up to `until`."""
        return self.t.record(self.stream, until=until)

    def story(self, until: float) -> list[tuple[Any, ...]]:
        """Return (second, tag, item) of each event; an error as (second, its class)."""
        return [
            (when, value.tag, value.item)
            if kind == "next" and value is not None
            else (when, kind if value is None else f"{type(value).__name__}: {value}")
            for when, kind, value in self.play(until)
        ]
