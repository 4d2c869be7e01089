"""Several attempts at the same work, side by side: one of them lands, by the gate's decision."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter, methodcaller
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from reactivex import Observable, from_iterable, just, operators as ops

from cuggino.agents.base import LlmAgent
from cuggino.config import AttemptChoice
from cuggino.domain import MOST_ATTEMPTS, Decision, hits_every_item, title_of
from cuggino.errors import ConfigError, CugginoError, ItemSkipped, LoopError
from cuggino.events import (
    Approved,
    AttemptChosen,
    AttemptLost,
    CheckCommandOutput,
    Event,
    LoopApproved,
    LoopEvent,
    LoopSpecIssue,
    LoopStalled,
    LoopTerminalEvent,
    PersonAnswers,
    WaitingEnded,
    WaitingStarted,
    WatchCandidate,
    WatchEvent,
    WatchLanded,
    WatchProcessingItem,
    WatchSentBack,
)
from cuggino.loops.coding.options import LoopRunOptions
from cuggino.loops.frame.commands import Commands
from cuggino.loops.frame.framing import Frame, framed
from cuggino.loops.frame.history import dirty_files
from cuggino.loops.frame.resuming import latest_run_of
from cuggino.loops.frame.run import Run, Story
from cuggino.loops.hands.service import HandsService
from cuggino.loops.watch.items import ends_the_watch
from cuggino.loops.watch.journal import SLOTS, WatchRecorder
from cuggino.loops.watch.placement import Placement, Returned, Work, item_name, work_placed
from cuggino.loops.watch.places import PlacesOf, gate_of, here_of
from cuggino.loops.watch.slots import MOST_SLOTS
from cuggino.operators import Flow, ask, emit, flow, forward, race_until
from cuggino.operators.alongside import alongside
from cuggino.sandbox import views_of
from cuggino.stages import (
    Services,
    Turn,
    act,
    chosen_attempt,
    interrupt_processes,
    judging_stage,
)
from cuggino.stages.slots import Slot, Trunk, candidate_ref, prepare_slot, slots_of
from cuggino.storage import JournalFile

ROUNDS = 2
"""Rounds of attempts: the second one knows what those of the first tried, and where they failed."""
_RETURNS = 3
"""The number of times the chosen attempt may be sent back by its landing."""
_LONGEST_DIFF, _LONGEST_OUTPUT = 30_000, 2_000
"""Characters of a diff, and of the check's output, in the prompt of the judge."""
_LONGEST_REASON = 500

T = TypeVar("T", bound=Event)

AgentOf: TypeAlias = Callable[[AttemptChoice], LlmAgent]
"""Returns the agent of an attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """The state of several attempts at the same work, as their events have left it.

    The attempts of each round have numbers of their own, and each attempt the slot of its place in
    the round.
    """

    ends: Mapping[str, LoopTerminalEvent] = field(default_factory=dict)
    """How the latest run of each attempt has ended, by name."""
    passed: Mapping[str, WatchCandidate] = field(default_factory=dict)
    """The candidates that check and review approved, the first one first."""
    lost: Mapping[str, AttemptLost] = field(default_factory=dict)
    chosen: str = ""
    """The attempt that lands."""
    asked: WaitingStarted | None = None
    """The wait for the approval of its landing, until it has ended."""
    decision: Decision | None = None
    """A person's decision on the landing of its candidate."""
    sent_back: WatchSentBack | None = None
    """Why it did not, until it has another candidate."""
    returns: int = 0
    """The number of times it was sent back."""
    has_landed: bool = False

    def after(self, event: Event) -> Race:
        """Return the state after an event, now or as recorded."""
        match event:
            case LoopTerminalEvent(item=str(name)):
                return replace(self, ends={**self.ends, name: event})
            case WatchCandidate(filename=name, approved=True):
                passed = {**self.passed, name: event}
                return replace(self, passed=passed, decision=None, sent_back=None)
            case AttemptChosen(filename=name):
                return replace(self, chosen=name, decision=None, returns=0)
            case WaitingStarted(item=self.chosen, until=PersonAnswers(approves="landing")):
                return replace(self, asked=event)
            case WaitingEnded(item=self.chosen, until=PersonAnswers(approves="landing")):
                return replace(self, asked=None, decision=Decision.of(event))
            case AttemptLost(filename=name):
                chosen = "" if name == self.chosen else self.chosen
                return replace(self, lost={**self.lost, name: event}, chosen=chosen)
            case WatchSentBack(filename=name) if name == self.chosen:
                return replace(self, sent_back=event, returns=event.returns)
            case WatchLanded(filename=name) if name == self.chosen:
                return replace(self, has_landed=True)
            case _:
                return self

    @classmethod
    def of(cls, events: Iterable[Event]) -> Race:
        """Return the state after these events."""
        race = cls()
        for event in events:
            race = race.after(event)
        return race

    def waiting(self) -> Iterator[WatchCandidate]:
        """Yield the candidates of which one may be chosen."""
        return (made for name, made in self.passed.items() if name not in self.lost)


_TAGS = (
    *("AttemptChosen", "AttemptLost", "LoopApproved", "LoopMaxIterations", "LoopSpecIssue"),
    *("LoopStalled", "WaitingEnded", "WaitingStarted"),
    *("WatchCandidate", "WatchLanded", "WatchSentBack"),
)
"""The events of which `Race` is made."""


class AttemptsService(HandsService):
    """Runs the coding loop: once, or as several attempts at the same work (`attempts`).

    With several hands they are attempts at each task of a plan. `places` makes those of attempts,
    and of the tasks of several hands; by default they are slots beside the project. In a slot,
    whose project has the services `home`, the attempts work in slots beside it, and the slot gets
    the commit of the chosen one: it has no landing of its own.

    ::

        { WatchProcessingItem WatchSlotPrepared [coding loop] WatchCandidate } ...
        AttemptChosen { AttemptLost }
        WatchLanding [check] WatchLanded WatchFollowed LoopApproved|

    The events of the attempts are interleaved, and carry their name as `item`. Each attempt is a
    run of its own, at which the check decides on approvals. The first one that passes, or the best
    as a judge says (`choose`), lands on the user's branch, as an item of a watch does. The others
    end at once, and their work is kept under `refs/cuggino/attempts/`. When none passes, there is a
    second round, which knows what the first one tried. A resumed run pays for no attempt again that
    has ended.

    Errors: those of `LoopService.run`; that of the last attempt if all of a round have failed, and
    a usage limit or a missing login if no other attempt passes. These attempts continue when the
    run is resumed.
    """

    def __init__(
        self,
        services: Services,
        *,
        agent_of: AgentOf | None = None,
        home: Services | None = None,
        places: PlacesOf = here_of,
    ) -> None:
        super().__init__(services, places=places)
        self.loop_of_tasks = self
        self._agent_of = agent_of or (lambda _choice: services.agent)
        self._home = home

    def at(self, services: Services) -> AttemptsService:
        return self._with(self._places, services, self.services)

    def attempts_in(self, placement: Placement) -> AttemptsService:
        return self._with(lambda *_: placement, self.services, self._home)

    def _with(self, places: PlacesOf, services: Services, home: Services | None) -> AttemptsService:
        return AttemptsService(services, agent_of=self._agent_of, home=home, places=places)

    def framed(self, options: LoopRunOptions, frame: Frame) -> Observable[LoopEvent]:
        if options.hands > 1:
            return super().framed(options, frame)  # the attempts are those of its tasks
        resume = frame.resume if isinstance(frame.resume, JournalFile) else None
        is_one = resume is not None and resume.started.attempts == 1
        if is_one or len(options.choices) == 1:
            return super().framed(options.model_copy(update={"attempts": 1}), frame)

        def story(run: Run) -> Story:
            if (wrong := options.wrong_with_attempts) is not None:
                raise ConfigError(wrong)
            entries = resume.entries.only(_TAGS) if resume is not None else ()
            race = Race.of(entry.event for entry in entries)
            return AttemptsRun(run, options, self._agent_of, race, self._places, self._home)

        recorded = replace(frame, recorder=partial(WatchRecorder, whole=True))
        return framed(self.services, options, story, recorded)


class AttemptsRun(Story):
    """A run as several attempts, each in a place of its own; one of them lands."""

    def __init__(
        self,
        run: Run,
        options: LoopRunOptions,
        agent_of: AgentOf,
        race: Race,
        places: PlacesOf,
        home: Services | None = None,
    ) -> None:
        self._run = run
        self._agent_of = agent_of
        self._race = race
        self._size = len(options.choices)
        self._error: CugginoError | None = None
        """The last error of an attempt."""
        self._is_halted = False
        """True if all attempts would meet it: that one continues when the run is resumed."""
        self._target: Slot | None = None
        """The slot that gets the commit of the chosen attempt, if this is the run of its item."""
        services, after = run.services, 0
        if home is not None and options.slot is not None:
            services, after = home, MOST_SLOTS + MOST_ATTEMPTS * (options.slot - 1)
            options = options.model_copy(update={"cwd": home.workspace.root})
        self._options, most = options, after + self._size
        slots = slots_of(options.cwd, options.slot_folder, most, views=views_of(options))
        if after:
            self._target = slots[(options.slot or 1) - 1]
        self._slots = slots[after:]
        """The slots of the attempts, if they work on this machine."""
        self._places = places(services, options, most, run.session.id)
        self._gate = gate_of(services, options)
        self._trunk = Trunk(self._gate)
        self._base = ""
        self._unanswered: LoopStalled | None = None
        """The result of the run if the landing was not approved in time."""
        self.commands: Commands = Commands(run.control)

    def held(self) -> Flow[AbstractContextManager[object]]:
        """Return a hold of the trunk, unless the watch of the item holds it."""
        if self._target is not None:
            return nullcontext()
        return (yield from self._gate.held(command=self._options.command, since=self._run.began))

    def run(self) -> Flow[None]:
        """Race, choose and land, round by round, until something has landed."""
        first = len(self._race.lost) // self._size
        if self._target is None:
            yield from self._opened()
            names = {self._name(number) for number in self._numbers(first)}
            yield from ask(self._places.attach((names - {*self._race.lost}).__contains__))
        for round_ in range(first, max(first + 1, ROUNDS)):
            self._base = yield from self._head()
            if not self._race.chosen:
                yield from self._raced(round_)
            if self._race.chosen:
                yield from self._dropped(round_)
                if (yield from self._landed()):
                    break
            if (ending := self._why_no_other(round_)) is not None:
                yield from self._end(ending)
                return
        name = self._race.chosen
        ended = self._race.ends.get(name)
        iteration = ended.iteration if ended is not None else 1
        is_checked = True if self._target is None else None  # by the landing
        yield from self._end(LoopApproved(iteration=iteration, checked=is_checked))

    def _opened(self) -> Flow[None]:
        options, run = self._options, self._run
        if options.dirty == "refuse" and run.resumed is None:
            specs = (Path(options.specs_path),)
            yield from dirty_files(run.services.repository, options, exclude=specs)
        yield from forward(self._trunk.open(), name="trunk")
        yield from run.snapshot("planning", 1)

    def _head(self) -> Flow[str]:
        """Return the commit at which attempts begin."""
        if self._target is None:
            return (yield from ask(self._trunk.head())) or ""
        return (yield from self._target.git.must("rev-parse", "HEAD")).text.strip()

    def _end(self, result: LoopTerminalEvent) -> Flow[None]:
        yield from emit(result.model_copy(update={"item": None}))
        self.is_resumable = False

    def _why_no_other(self, round_: int) -> LoopTerminalEvent | None:
        """Return the result of the run if nothing has landed and no other round follows.

        Raises:
            CugginoError: all attempts of the round have failed, or one was halted, as by a usage
                limit.
        """
        if self._unanswered is not None:
            return self._unanswered
        names = [self._name(number) for number in self._numbers(round_)]
        lost = [self._race.lost[name] for name in names if name in self._race.lost]
        have_failed = self._is_halted or all(one.why == "failed" for one in lost)
        if self._error is not None and have_failed:
            raise self._error
        ends = [self._race.ends[name] for name in names if name in self._race.ends]
        asked = [end for end in ends if isinstance(end, LoopSpecIssue)]
        unapproved = [end for end in ends if not isinstance(end, LoopApproved)]
        if asked:
            return asked[0]
        if round_ + 1 < ROUNDS:
            return None
        if not unapproved:
            raise LoopError("attempts", f"no attempt has landed: {lost[-1].reason}", cause=None)
        return unapproved[-1]

    # The attempts of a round.

    def _numbers(self, round_: int) -> range:
        return range(round_ * self._size + 1, (round_ + 1) * self._size + 1)

    def _name(self, number: int) -> str:
        item = item_name(self._options.item or "")
        return f"{item}-attempt-{number}" if item else f"attempt-{number}"

    def _number(self, name: str) -> int:
        return int(name.rpartition("-")[2])

    def _choice(self, number: int) -> AttemptChoice:
        return self._options.choices[(number - 1) % self._size]

    def _slot(self, number: int) -> Slot:
        return self._slots[(number - 1) % self._size]

    def _raced(self, round_: int) -> Flow[None]:
        """Run the attempts of a round that have not ended, and choose one of those that pass."""
        numbers = self._numbers(round_)
        is_over = self._options.choose == "first" and any(self._race.waiting())
        ended = {*self._race.passed, *self._race.lost}
        left = [n for n in numbers if self._name(n) not in ended] if not is_over else []
        attempts = from_iterable([self._attempt(number) for number in left])
        race = race_until(self._wins, on_release=partial(self._interrupt, left))
        beside = [self._told([self._name(number) for number in left])]
        if self._target is None:
            beside.append(self._places.news)
        yield from forward(attempts.pipe(race, alongside(*beside)), name=SLOTS)
        passed = list(self._race.waiting())
        if not passed:
            return
        best, reason = passed[0], ""
        if len(passed) > 1 and self._options.choose == "best":
            best, reason = yield from self._judged(passed)
        chosen = AttemptChosen(
            filename=best.filename,
            slot=best.slot,
            commit=best.commit,
            passed=len(passed),
            reason=reason,
        )
        yield from forward(self._heard(just(chosen), best.filename))

    def _told(self, names: Sequence[str]) -> Observable[Any]:
        """Pass messages for the work on to all attempts at it; emits nothing."""
        inbox = self._run.control.inbox

        def pass_on(text: str) -> None:
            if (message := inbox.received(text)) is not None:
                self.commands.tell(names, message)

        return inbox.delivered().pipe(ops.do_action(pass_on), ops.ignore_elements())

    def _dropped(self, round_: int) -> Flow[None]:
        """Keep, but do not land, what the other attempts have done."""
        chosen = self._race.chosen
        for number in self._numbers(round_):
            if (name := self._name(number)) == chosen or name in self._race.lost:
                continue
            if name in self._race.passed:
                yield from self._lost(number, "not-chosen", f"{chosen} was chosen")
            else:
                yield from self._lost(number, "overtaken", f"{chosen} passed first")

    def _wins(self, event: WatchEvent) -> bool:
        is_passed = isinstance(event, WatchCandidate) and event.approved
        return is_passed and self._options.choose == "first"

    def _interrupt(self, numbers: Sequence[int]) -> None:
        """Signal the processes of all attempts but those that have passed, so that all end now."""
        losing = (n for n in numbers if self._name(n) not in self._race.passed)
        interrupt_processes(*(self._slot(number).root for number in losing))

    def _attempt(self, number: int, returned: Returned | None = None) -> Observable[WatchEvent]:
        """Make the attempt, or continue one that was sent back; its failure ends no other."""
        name = self._name(number)
        return self._heard(flow(lambda: self._attempted(number, name, returned)), name)

    def _heard(self, stream: Observable[T], name: str) -> Observable[T]:
        """Name the attempt in its events, and let them change the state."""

        def hear(event: Event) -> None:
            self._race = self._race.after(event)

        return stream.pipe(ops.map(methodcaller("of_item", name)), ops.do_action(hear))

    def _attempted(self, number: int, name: str, returned: Returned | None) -> Flow[None]:
        slot, choice = self._slot(number), self._choice(number)
        with self.commands.beside(name) as control:
            work = Work(
                options=self._options_of(number, is_first=returned is None),
                slot=slot.number,
                base=self._base,
                number=1 if returned is None else returned.sent_back.returns + 1,
                returned=returned,
                ledger=self._run.supervision.ledger,
                control=control,
                choice=choice,
                agent=self._agent_of(choice),
            )
            if returned is None:
                title = _label(choice) or title_of(self._options.focus)
                if self._target is not None:  # beside those at other items
                    title = f"{name}: {title}"
                yield from emit(WatchProcessingItem(filename=name, title=title, slot=slot.number))
            why, reason = "not-approved", ""
            placed = work_placed(self._places, work)
            try:
                last = yield from forward(control.obeyed(placed))
                if isinstance(last, WatchCandidate) and last.approved:
                    return
                reason = self._why_unapproved(name)
            except ItemSkipped as skipped:
                why, reason = "skipped", skipped.message
            except CugginoError as error:
                if ends_the_watch(error):
                    raise
                self._error = error
                if hits_every_item(error):
                    self._is_halted = True
                    return
                why, reason = "failed", error.message
        yield from forward(self._loss(number, why, reason))

    def _why_unapproved(self, name: str) -> str:
        """Return the end of the attempt's run, and the last output of its check."""
        ended = self._race.ends.get(name)
        reason = ended.message if ended is not None else "not approved"
        check = self._check(name)
        if check is not None and check.exit_code:
            lines = [line.strip() for line in check.output.splitlines() if line.strip()]
            reason += f"; the check fails: {' / '.join(lines[-3:])}"
        return reason[:_LONGEST_REASON]

    def _check(self, name: str) -> CheckCommandOutput | None:
        """Return the last check of an attempt, from its journal."""
        run = latest_run_of(self._run.services.workspace, self._item(name), in_slot=True)
        entries = run.entries.only(("CheckCommandOutput",)) if run is not None else ()
        events = (entry.event for entry in entries)
        outputs = [event for event in events if isinstance(event, CheckCommandOutput)]
        return outputs[-1] if outputs else None

    def _item(self, name: str) -> str:
        """Return the name by which the runs of the attempt are recorded, unique to it."""
        return f"{name} {self._run.session.id}"

    def _options_of(self, number: int, *, is_first: bool) -> LoopRunOptions:
        options, choice = self._options, self._choice(number)
        advice = f"\n\nAdvice for this attempt: {choice.hint.strip()}\n" if choice.hint else ""
        is_usual = choice.agent in (None, options.agent)
        review = None  # one that was sent back gets the reason
        if is_first:
            before = self._numbers((number - 1) // self._size).start
            earlier = (one for name, one in self._race.lost.items() if self._number(name) < before)
            review = "\n\n".join(filter(None, (options.review, _summary(earlier)))) or None
        return options.model_copy(
            update={
                "attempts": 1,
                "attempt_of": self._run.session.id,
                "item": self._item(self._name(number)),
                "focus": f"{options.focus.rstrip()}{advice}" if advice else options.focus,
                "task": options.task and f"{options.task.rstrip()}{advice}",
                "review": review,
                "gate": "block" if options.gate == "context" else options.gate,
                "store_findings": False,
                "approve": [kind for kind in options.approve if kind != "landing"],  # asked once
                "model": choice.model or (options.model if is_usual else None),
                "agent": choice.agent or options.agent,
            }
        )

    # What becomes of it.

    def _loss(self, number: int, why: str, reason: str) -> Observable[AttemptLost]:
        """Keep the work of an attempt, and report that it has lost."""
        name, slot = self._name(number), self._slot(number)

        def story() -> Flow[None]:
            kept = yield from ask(self._places.keep(name, slot.number, base=self._base))
            assert kept is not None
            lost = AttemptLost.model_validate(
                {
                    "filename": name,
                    "slot": slot.number,
                    "why": why,
                    "reason": reason,
                    "ref": kept.ref,
                    "tried": kept.tried,
                }
            )
            yield from emit(lost)

        return flow(story)

    def _lost(self, number: int, why: str, reason: str) -> Flow[None]:
        yield from forward(self._heard(self._loss(number, why, reason), self._name(number)))

    def _judged(self, passed: Sequence[WatchCandidate]) -> Flow[tuple[WatchCandidate, str]]:
        """Let a reviewing agent choose; return the candidate, and why.

        It sees neither names nor agents. When it names none, the first that passed is taken.
        """
        shuffled = sorted(passed, key=attrgetter("commit"))
        described = []
        for number, made in enumerate(shuffled, start=1):
            described.append((yield from self._described(number, made)))
        turn = Turn(self._run.next_turn("reviewing"))
        place = replace(self._run.place, focus=self._options.focus, linger=self._options.linger)
        try:
            stage = judging_stage(place, described, turn=turn)
            verdict = yield from forward(stage, name="judging")
        except LoopError as error:
            if ends_the_watch(error):
                raise
            return passed[0], f"the first that passed, as the judge failed: {error.message}"
        said = verdict.content if isinstance(verdict, Approved) else ""
        found = chosen_attempt(said, len(shuffled))
        if found is None:
            return passed[0], "the first that passed, as the judge named none"
        return shuffled[found[0] - 1], found[1]

    def _described(self, number: int, made: WatchCandidate) -> Flow[str]:
        git = self._slot(1).project_git
        commits = f"{made.base} {made.commit}"
        said = yield from git.must("diff", "--no-color", "--no-ext-diff", *commits.split(), "--")
        diff = said.text[:_LONGEST_DIFF]
        cut = "" if diff == said.text else f"\n\nIt is cut: `git diff {commits}` shows all of it."
        check = yield from ask(act(partial(self._check, made.filename)))
        output = check.output.strip()[-_LONGEST_OUTPUT:] if check is not None else ""
        tells = f" The end of its output:\n\n````\n{output}\n````" if output else ""
        return (
            f"## Attempt {number}\n\nThe check command passes.{tells}\n\n"
            f"````diff\n{diff.rstrip()}\n````{cut}"
        )

    def _landed(self) -> Flow[bool]:
        """Land the chosen attempt; return whether it has landed.

        One that is sent back is continued on top of what has landed meanwhile.
        """
        name = self._race.chosen
        number = self._number(name)
        self._is_halted = False  # if so, that was another attempt
        while not self._race.has_landed:
            candidate, back = self._race.passed[name], self._race.sent_back
            if back is None:
                yield from self._offered(number, candidate)
            elif back.returns >= _RETURNS:
                reason = f"sent back {back.returns} times: {back.reason}"
                yield from self._lost(number, "failed", reason)
            else:
                self._base = yield from self._head()
                again = self._attempt(number, Returned(candidate, back))
                yield from forward(again, name=SLOTS)
            if self._is_halted or name in self._race.lost:
                return False
        if self._target is None:
            yield from forward(self._trunk.follow(), name="follow")
        return True

    def _handed_over(self, target: Slot, candidate: WatchCandidate) -> Flow[None]:
        """Give the slot of the item the commit of the chosen attempt, whose ref goes then."""
        item = item_name(self._options.item or "")
        specs = self._options.specs_path
        yield from ask(prepare_slot(target, base=candidate.commit, item=item, specs=specs))
        ref = candidate_ref(candidate.filename)
        yield from target.project_git.run("update-ref", "-d", ref)
        self._race = replace(self._race, has_landed=True)

    def _offered(self, number: int, candidate: WatchCandidate) -> Flow[None]:
        """Land the candidate; what a person rejects goes back to its attempt with the reason."""
        name, returns = candidate.filename, self._race.returns
        decision = yield from self._decision(name, candidate)
        if decision.outcome == "approved" and self._target is not None:
            yield from self._handed_over(self._target, candidate)
        elif decision.outcome == "approved":
            title = title_of(self._options.focus)
            landing = self._trunk.land(candidate, title=title, returns=returns)
            yield from forward(self._heard(landing, name), name=SLOTS)
        elif decision.outcome == "rejected":
            back = WatchSentBack(
                filename=name, reason="review", output=decision.text, returns=returns + 1
            )
            yield from forward(self._heard(just(back), name))
        else:
            message = f"not approved within {self._options.approve_within}"
            yield from self._lost(number, "not-approved", message)
            iteration = self._race.ends[name].iteration
            self._unanswered = LoopStalled(iteration=iteration, reason="approval", message=message)

    def _decision(self, name: str, candidate: WatchCandidate) -> Flow[Decision]:
        """Wait until a person approves what lands, if that is asked for; once, for the winner."""
        if "landing" not in self._options.approve:
            return Decision("approved")
        if self._race.decision is None:
            yield from forward(self._heard(flow(lambda: self._asked(candidate)), name))
        assert self._race.decision is not None
        return self._race.decision

    def _asked(self, candidate: WatchCandidate) -> Flow[None]:
        base, commit = candidate.base[:12], candidate.commit[:12]
        git = self._slot(1).project_git
        log = yield from git.must("log", "--reverse", "--format=- %h %s", f"{base}..{commit}", "--")
        text = f"`git diff {base} {commit}` shows it. Commits:\n\n{log.text}"
        about = item_name(self._options.item or "") or title_of(self._options.focus)
        yield from self._run.decision("landing", text, about=about, begun=self._race.asked)


def _label(choice: AttemptChoice) -> str:
    return ", ".join(filter(None, (choice.agent, choice.model, choice.hint)))


def _summary(lost: Iterable[AttemptLost]) -> str:
    """Return what earlier attempts have tried, and where they failed; "" without any."""
    told = []
    for one in lost:
        tried = "".join(f"\n  - {subject}" for subject in one.tried)
        did = f" Its commits:{tried}" if tried else " It committed nothing."
        told.append(f"- {one.reason.rstrip('.')}.{did}")
    if not told:
        return ""
    listed = "\n".join(told)
    return (
        "Earlier attempts at this, each from the same start, did not pass check and review. Their "
        f"work is not there. Find out why, and plan another way:\n\n{listed}"
    )
