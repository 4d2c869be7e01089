"""Every marble diagram in a docstring of `cuggino` is executed.

The rows of a drawing are played as cold streams; the last row is the expected result. Each drawing
has an entry in `EXAMPLES`: a function that builds the stream, and the events of its letters.
"""

from __future__ import annotations

import ast
import string
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, cast

import pytest
from reactivex import Observable, defer, just, operators as ops

import cuggino
from cuggino import events as ev, operators
from cuggino.chat import Reply, reachable
from cuggino.domain.quota_plan import QuotaPlan
from cuggino.domain.schedule import Schedule
from cuggino.domain.spending import Budget
from cuggino.errors import AgentFailed, AgentStalled, BudgetExceeded, ProcessFailed, QuotaExceeded
from cuggino.folders import watch_file_count
from cuggino.folders.file_count import settled
from cuggino.forge import hooked
from cuggino.loops import durable
from cuggino.loops.watch.full_disk import waits_for_room
from cuggino.loops.watch.pool import pool
from cuggino.loops.watch.pool_state import Land
from cuggino.loops.watch.waiting import Situation, waiting_phase
from cuggino.notify import with_notifications
from cuggino.operators import (
    Flow,
    acquire_release,
    catch_tag,
    emit,
    extract_markers,
    flow,
    forward,
    idle_timeout,
    interrupt_when,
    marker_tags,
    merge_at_most,
    only,
    race_until,
    repeat_on,
    repetition_limit,
    retry_session,
    scoped,
    stage_timeout,
    until_terminal,
    wait_for_quota,
    within_budget,
)
from cuggino.operators.alongside import alongside
from cuggino.operators.flow import Recorder
from cuggino.operators.mapcat import mapcat
from cuggino.operators.markers import join_split_messages
from cuggino.operators.merge_now import merge_now
from cuggino.operators.ready_by import ready_by
from cuggino.operators.supervision import Ledger, liveness, within_quota
from cuggino.stages import (
    Commit,
    WaitingPlace,
    audit_stage,
    check_stage,
    commit_stage,
    copy_check_stage,
    implementing_stage,
    planning_stage,
    push_stage,
    reviewing_stage,
    setup_stage,
    waiting as outside,
)
from cuggino.telemetry import with_telemetry
from cuggino.testing import Marbles
from cuggino.wakefulness import keeping_awake
from tests.chat.drawn import DATABASE, DrawnChannel, DrawnInbox
from tests.documents.catalog import operator_help
from tests.drawings import Drawing, drawings
from tests.loops.coding_loop import PLAN, says
from tests.loops.full_disk import no_room
from tests.operators.durable import MemoryRecorder
from tests.stages.own_stages import command_of, copy_of, in_a_folder, repository_of, session_of

ROOT = Path(cuggino.__file__).parent

Build = Callable[[list[Observable[Any]]], Observable[Any]]
Example = Callable[[Drawing], None]

LETTERS: dict[str, Any] = {letter: letter for letter in string.ascii_lowercase + "XT"}
"""Default events: each letter is itself."""


def plays(
    build: Build,
    events: Mapping[str, Any] = MappingProxyType({}),
    *,
    source_error: Exception | None = None,
    error: Any = None,
) -> Example:
    """Return an example that plays all rows but the last and compares the built stream with it."""

    def play(drawing: Drawing) -> None:
        t = Marbles(error=source_error, **(LETTERS | dict(events)))
        sources: list[Observable[Any]] = [t.cold(row.diagram) for row in drawing[:-1]]
        stream = build(sources)
        if error is not None:
            t.error = error
        t.check(stream, drawing[-1].diagram)

    return play


def texts(**said: str) -> dict[str, ev.AgentMessage]:
    return {letter: ev.AgentMessage(text=text, message_id="1") for letter, text in said.items()}


def deltas(**said: str) -> dict[str, Any]:
    return {letter: ev.MessageDelta(text=text, message_id="1") for letter, text in said.items()}


OVERLOADED = AgentFailed("Overloaded", reason="overloaded")
WHOLE = "Look. <NOTE>n</NOTE> On."
PIECES: dict[str, Any] = {**texts(m=WHOLE, l="Look.", o="On."), "N": ev.Note(content="n")}
SPENT: dict[str, Any] = {
    "u": ev.UsageUpdate(usage=ev.Usage(), cost_usd=9),
    "v": ev.UsageUpdate(usage=ev.Usage(), cost_usd=11),
    "e": ev.SessionEnded(outcome="completed", cost_usd=11),
    "d": ev.Done(content="d"),
    "W": ev.BudgetWarning,
    "a": ev.AgentMessage(text="a"),
}
LANDED: dict[str, Any] = {
    "N": (),
    "A": ("a",),
    "B": ("a", "b"),
    "x": ("a", "d"),
    "y": ("b", "d"),
    "z": ("c", "d"),
}
LISTING = ev.ToolCall(name="Bash", input="ls", id="1")
DOLLARS = Budget(cost_usd=10)


def quota() -> QuotaExceeded:
    return QuotaExceeded("limit", resets_at=Marbles().scheduler.to_datetime(62))


def story(a: Observable[Any], b: Observable[Any]) -> Flow[None]:
    last = yield from forward(a)
    yield from emit(last)
    yield from forward(b)


def make_flow(recorder: Recorder | None = None) -> tuple[Marbles, Observable[Any]]:
    t = Marbles(**LETTERS)
    a, b = t.cold("-x-y|"), t.cold("--z|")
    return t, flow(lambda: story(a, b), recorder=recorder)


def killed_and_resumed(drawing: Drawing) -> None:
    killed, resumed = drawing
    recorder = MemoryRecorder()
    t, stream = make_flow(recorder)
    played = killed.diagram.replace("(y)", "y")
    t.check(stream, killed.diagram, dispose_at=len(played) - 0.5)
    t, stream = make_flow(MemoryRecorder(recorder.log))
    t.check(stream, resumed.diagram)


def an_overdrawn_session(drawing: Drawing) -> None:
    source, result, following = drawing
    ledger = Ledger()
    t = Marbles(**SPENT)
    t.check(t.cold(source.diagram).pipe(within_budget(DOLLARS, ledger=ledger)), result.diagram)
    t = Marbles(**SPENT)
    t.error = cast("Any", BudgetExceeded)
    stream = t.cold("a|")
    t.check(stream.pipe(within_budget(DOLLARS, ledger=ledger)), following.diagram)
    t.check_subscriptions(stream)


def a_limit_that_is_paid_for(drawing: Drawing) -> None:
    source, result, following = drawing
    window = ev.QuotaUsed(window="w", used=1, resets_at=Marbles().scheduler.to_datetime(62))
    plan = QuotaPlan(overage="stop")
    t = Marbles(
        q=window,
        Q=window.model_copy(update={"agent": "A", "nearly": True}),
        r=ev.RateLimited(status="rejected", overage=True, resets_at=window.resets_at),
        a=ev.AgentMessage(text="a"),
        e=ev.SessionEnded,
    )
    t.error = cast("Any", QuotaExceeded)
    t.check(t.cold(source.diagram).pipe(within_quota(plan, agent="A")), result.diagram)
    t = Marbles(a=ev.AgentMessage(text="a"))
    t.error = cast("Any", QuotaExceeded)
    stream = t.cold("a|")
    t.check(stream.pipe(within_quota(plan, agent="A")), following.diagram)
    t.check_subscriptions(stream)


def a_flow_in_two_processes(drawing: Drawing) -> None:
    """Play the drawing of a durable flow: two stages, the second of which is killed."""
    notes: dict[str, Any] = {letter: ev.Note(content=letter) for letter in "xyz"}
    with TemporaryDirectory() as folder:
        for row, killed in zip(drawing, (4.5, None), strict=True):
            t = Marbles(**notes)
            stages = {"a": t.cold("-x|"), "b": t.cold("-y-z|")}

            def story(stages: Mapping[str, Observable[Any]] = stages) -> Flow[None]:
                for name, stage in stages.items():
                    yield from forward(stage, name=name)

            stream = durable(story, Path(folder, "journal.jsonl"))
            t.check(stream, row.diagram, dispose_at=killed)


@dataclass(frozen=True)
class DrawnCi:
    """A CI whose jobs end as drawn."""

    jobs: Observable[str]

    def found(self, until: ev.CiDone, cwd: Path) -> Observable[ev.CiDone]:
        return just(until)

    def outcome(self, until: ev.CiDone, cwd: Path) -> Observable[str]:
        return self.jobs


def a_wait(sources: list[Observable[Any]]) -> Observable[Any]:
    until = ev.CiDone(commit="a1b2c3d", within=5, default="go on")
    return flow(lambda: outside(until, WaitingPlace(ci=DrawnCi(sources[0]))))


WAITED = {"S": ev.WaitingStarted, "E": ev.WaitingEnded}


def waiting(sources: list[Observable[Any]]) -> Observable[Any]:
    spec_issues, backlog, audit = sources
    return waiting_phase(
        spec_issues=spec_issues,
        backlog=backlog,
        situation=lambda issues, ready, _now: Situation(issues=issues, ready=ready),
        audit=audit,
    )


def counting(sources: list[Observable[Any]]) -> Observable[Any]:
    counts = iter([2, 3, 3])
    return watch_file_count(
        Path("x"), settle=5, changes=lambda _: sources[0], count=lambda _: next(counts)
    )


def raced(sources: list[Observable[Any]]) -> Observable[Any]:
    letters, *streams = sources

    def named(letter: Any) -> Observable[Any]:
        return streams["ab".index(letter)]

    race: Callable[[Observable[Observable[Any]]], Observable[Any]] = race_until(lambda e: e == "W")
    return letters.pipe(ops.map(named), race)


def two_at_a_time(sources: list[Observable[Any]]) -> Observable[Any]:
    letters, *streams = sources

    def named(letter: Any) -> Observable[Any]:
        return streams["abc".index(letter)]

    merge: Callable[[Observable[Observable[Any]]], Observable[Any]] = merge_at_most(2)
    return letters.pipe(ops.map(named), merge)


def one_by_one(sources: list[Observable[Any]]) -> Observable[Any]:
    """Return a stream that is another one of these at each subscription."""
    left = iter(sources)
    return defer(lambda _: next(left))


SAID: dict[str, Any] = {
    "c": says("PLAN_COMPLETE", "planned"),
    "d": says("DONE", "all"),
    "f": says("TO_BE_DISCUSSED", "unclear"),
    "n": says("NOTE", "mind"),
    "y": says("APPROVED", "yes"),
    "a": ev.AgentMessage(text="working"),
    "A": ev.WatchAuditStarted(),
    "C": ev.PlanComplete(content="planned"),
    "D": ev.Done(content="all"),
    "E": ev.WatchAuditEnded(),
    "F": ev.WatchTbdItemFound,
    "N": ev.Note(content="mind"),
    "T": ev.ToBeDiscussed(content="unclear"),
    "Y": ev.Approved(content="yes"),
}


def two_in_a_pool(sources: list[Observable[Any]]) -> Observable[Any]:
    items, a, b, land_c, land_d = sources
    landed: list[str] = []

    def land(one: Land) -> Observable[Any]:
        done = land_c if one.name == "a" else land_d
        return done.pipe(ops.do_action(lambda _: landed.append(one.name)))

    return pool(
        items.pipe(ops.map(lambda _: [name for name in "ab" if name not in landed])),
        2,
        lambda start: a if start.name == "a" else b,
        land,
    )


POOLED: dict[str, Any] = {
    letter: ev.WatchCandidate(filename=name, slot=1, commit=name, base="", attempt=1)
    for letter, name in (("c", "a"), ("d", "b"))
} | {
    letter: ev.WatchLanded(filename=name, commit="m", trunk_was="t")
    for letter, name in (("l", "a"), ("m", "b"))
}


def asking(sources: list[Observable[Any]]) -> Observable[Any]:
    source, questions, replies = sources

    def pressed(_letter: Any) -> Reply:
        return Reply(id="1", text=channel.sent[0].buttons[0].reply)

    channel = DrawnChannel(replies.pipe(ops.map(pressed)))
    return source.pipe(reachable(channel, inbox=DrawnInbox(questions)))


DIGITS: dict[str, Any] = {str(n): n for n in range(4)}


class Calls:
    """A notifier whose notifications are these streams."""

    def __init__(self, *streams: Observable[Any]) -> None:
        self._streams = iter(streams)

    def notify(self, title: str, body: str) -> Observable[Any]:
        return next(self._streams)


EXAMPLES: dict[str, list[Example]] = {
    "loops.watch.pool:pool": [plays(two_in_a_pool, POOLED)],
    "loops.frame.durable:durable": [a_flow_in_two_processes],
    "stages.waiting:waiting": [plays(a_wait, WAITED), plays(a_wait, WAITED)],
    "loops.watch.waiting:waiting_phase": [
        plays(waiting, DIGITS | {"b": ev.WatchBacklogWaiting(), "i": ev.WatchAuditInterrupted})
    ],
    "loops.watch.full_disk:waits_for_room": [
        plays(
            lambda s: one_by_one(s).pipe(waits_for_room()),
            {"F": ev.WatchDiskFull},
            source_error=no_room(),
        )
    ],
    "telemetry.operator:with_telemetry": [plays(lambda s: s[0].pipe(with_telemetry(env={})))],
    "notify.operator:with_notifications": [
        plays(
            lambda s: s[0].pipe(with_notifications(Calls(*s[1:]))),
            {
                "a": ev.QuotaLifted(waited=1.0),
                "W": ev.WatchItemRetry(
                    filename="a.md", message="", attempt=1, max_attempts=3, retry_in=60, login=True
                ),
                "R": ev.DeliverEnded(reason="all_passed"),
                "X": ev.NotificationFailed,
            },
        )
    ],
    "chat.conversations:reachable": [
        plays(
            asking,
            {letter: ev.PauseEnded(seconds=ord(letter)) for letter in "abc"}
            | {"q": (DATABASE,), "Q": ev.ChatAsked, "A": ev.ChatAnswered},
        )
    ],
    "wakefulness:keeping_awake": [
        plays(
            lambda s: s[0].pipe(keeping_awake(s[1], delay=1)),
            {"W": ev.WatchBacklogWaiting(), "P": ev.WatchProcessingItem(filename="a.md")},
        )
    ],
    "operators.acquire_release:acquire_release": [
        plays(lambda s: acquire_release(int, lambda _: s[0], lambda _: None))
    ],
    "operators.acquire_release:scoped": [plays(lambda s: scoped(lambda _: s[0]))],
    "operators.alongside:alongside": [plays(lambda s: s[0].pipe(alongside(s[1])))],
    "operators.catch_tag:catch_tag": [
        plays(lambda s: s[0].pipe(catch_tag(QuotaExceeded, lambda _: s[1])), source_error=quota()),
        plays(lambda s: s[0].pipe(catch_tag(QuotaExceeded, lambda _: s[0]))),
    ],
    "operators.flow:flow": [
        plays(lambda s: flow(lambda: story(*s))),
        killed_and_resumed,
        killed_and_resumed,
    ],
    "operators.interrupt_when:interrupt_when": [
        plays(lambda s: s[0].pipe(interrupt_when(s[1], "X")))
    ],
    "operators.mapcat:mapcat": [plays(lambda s: s[0].pipe(mapcat(range)), DIGITS)],
    "operators.markers.extract_markers:extract_markers": [
        plays(lambda s: s[0].pipe(extract_markers(marker_tags(ev.Note))), PIECES),
        plays(
            lambda s: s[0].pipe(extract_markers(marker_tags(ev.Note))),
            PIECES | deltas(d=WHOLE[:9], e=WHOLE[9:], p="Look.", q="On."),
        ),
    ],
    "operators.merge_at_most:merge_at_most": [plays(two_at_a_time)],
    "operators.merge_now:merge_now": [plays(lambda s: merge_now(*s))],
    "operators.only:only": [plays(lambda s: s[0].pipe(only(ev.Done)), {"D": ev.Done(content="d")})],
    "operators.ready_by:ready_by": [
        plays(lambda s: s[0].pipe(ready_by({"a": "", "b": "a", "c": "b", "d": ""})), LANDED)
    ],
    "operators.race_until:race_until": [plays(raced, {"W": "W"})],
    "operators.repeat_on:repeat_on": [
        plays(lambda s: s[0].pipe(repeat_on(Schedule.exponential(1).times(2))))
    ],
    "operators.supervision.budget:within_budget": [
        plays(lambda s: s[0].pipe(within_budget(DOLLARS)), SPENT, error=BudgetExceeded),
        an_overdrawn_session,
    ],
    "operators.supervision.liveness:idle_timeout": [
        plays(
            lambda s: s[0].pipe(idle_timeout(idle=5, nudge=lambda _: s[1], replace=lambda _: s[2])),
            {"N": ev.AgentNudged, "R": ev.AgentReplaced},
            error=AgentStalled,
        )
    ],
    "operators.supervision.liveness:liveness": [
        plays(
            lambda s: s[0].pipe(
                liveness(idle=5, stage=9, nudge=lambda _: s[1], replace=lambda _: s[2])
            ),
            {"N": ev.AgentNudged, "R": ev.AgentReplaced},
        ),
        plays(
            lambda s: s[0].pipe(
                liveness(
                    ends=lambda event: event == LETTERS["d"],
                    remind=lambda: s[1],
                    replace=lambda _: s[2],
                )
            ),
            {"N": ev.AgentNudged(no_marker=True), "R": ev.AgentReplaced(no_marker=True)},
        ),
    ],
    "operators.supervision.liveness:repetition_limit": [
        plays(
            lambda s: s[0].pipe(repetition_limit(2, nudge=lambda _: s[1], replace=lambda _: s[2])),
            {"C": LISTING, "c": ev.ToolResult(name="1", output="a"), "N": ev.AgentNudged}
            | {"R": ev.AgentReplaced},
        )
    ],
    "forge.hooks:hooked": [
        plays(
            lambda s: hooked({"item.landed": "tell"}, lambda _call: s[1])(s[0]),
            {letter: ev.WatchLanded(filename=letter, commit="1", trunk_was="0") for letter in "ab"}
            | {"F": ev.HookFailed},
            source_error=ProcessFailed("sh", 1, ""),
        )
    ],
    "operators.markers.join_split:join_split_messages": [
        plays(
            lambda s: s[0].pipe(join_split_messages(["DONE"])),
            {
                "a": ev.AgentMessage(text="<DONE>"),
                "b": ev.AgentMessage(text="Add it"),
                "c": ev.AgentMessage(text="</DONE>"),
                "m": ev.AgentMessage(text="<DONE>\nAdd it\n</DONE>"),
            },
        )
    ],
    "operators.supervision.liveness:stage_timeout": [
        plays(
            lambda s: s[0].pipe(stage_timeout(5, replace=lambda _: s[1])),
            {"R": ev.AgentReplaced},
            error=AgentStalled,
        )
    ],
    "operators.supervision.quota:wait_for_quota": [
        plays(
            lambda s: s[0].pipe(wait_for_quota(again=lambda _: s[1])),
            {"W": ev.QuotaWaiting, "L": ev.QuotaLifted},
            source_error=quota(),
        )
    ],
    "operators.supervision.quota_plan:within_quota": [a_limit_that_is_paid_for],
    "operators.supervision.retry:retry_session": [
        plays(
            lambda s: s[0].pipe(
                retry_session(Schedule.constant("5s").times(1), again=lambda _: s[1])
            ),
            {"R": ev.AgentRetry},
            source_error=OVERLOADED,
        )
    ],
    "operators.until_terminal:until_terminal": [
        plays(
            lambda s: s[0].pipe(until_terminal(str.isupper, linger=5, settle=lambda e: e == "s"))
        ),
        plays(lambda s: s[0].pipe(until_terminal(str.isupper, linger=5))),
        plays(
            lambda s: s[0].pipe(until_terminal(str.isupper, linger=5, reopen=lambda e: e == "r"))
        ),
    ],
    "folders.file_count:settled": [plays(lambda s: s[0].pipe(settled(3, longest=5)))],
    "folders.file_count:watch_file_count": [plays(counting, DIGITS)],
    "stages.roles:planning_stage": [
        in_a_folder(plays, session_of(planning_stage, plan=PLAN), SAID)
    ],
    "stages.roles:implementing_stage": [in_a_folder(plays, session_of(implementing_stage), SAID)],
    "stages.roles:reviewing_stage": [in_a_folder(plays, session_of(reviewing_stage), SAID)],
    "stages.audit:audit_stage": [in_a_folder(plays, session_of(audit_stage), SAID)],
    "stages.project:setup_stage": [
        in_a_folder(
            plays,
            command_of(setup_stage),
            {"x": b"made", "S": ev.SetupCommandStarted, "O": ev.SetupCommandOutput},
        )
    ],
    "stages.project:check_stage": [
        in_a_folder(
            plays,
            command_of(check_stage),
            {"x": b"fine", "S": ev.CheckCommandStarted, "O": ev.CheckCommandOutput},
        )
    ],
    "stages.project:copy_check_stage": [
        in_a_folder(
            plays,
            copy_of(copy_check_stage),
            {"x": b"fine", "S": ev.CheckCommandStarted, "O": ev.CheckCommandOutput},
        )
    ],
    "stages.project:commit_stage": [
        in_a_folder(
            plays,
            lambda folder, commit: commit_stage(repository_of(folder, commit), "work"),
            {"k": Commit(hash="abc", message="work"), "K": ev.CommitPerformed},
        )
    ],
    "stages.project:push_stage": [
        in_a_folder(
            plays,
            lambda folder, push: push_stage(repository_of(folder, pushes=[push]), "o/main", "abc"),
            {"P": ev.PushPerformed},
        )
    ],
}


def drawn() -> Iterator[tuple[str, int, Drawing]]:
    """Yield every drawing of the library with its place and its number there."""
    for path in sorted(ROOT.rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        text = path.read_text(encoding="utf-8")
        if "::\n" not in text:  # which introduces a drawing: parsing all takes a second
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                continue
            place = f"{module}:{getattr(node, 'name', '')}"
            for number, drawing in enumerate(drawings(ast.get_docstring(node) or "")):
                yield place, number, drawing


DRAWN = list(drawn())


@pytest.mark.parametrize(
    ("place", "number", "drawing"), DRAWN, ids=[f"{place}-{number}" for place, number, _ in DRAWN]
)
def test_drawing(place: str, number: int, drawing: Drawing) -> None:
    """The drawing matches the behavior."""
    assert place in EXAMPLES, f"{place} has a drawing: add how to build it to EXAMPLES"
    assert number < len(EXAMPLES[place]), f"{place} has a further drawing: add how to build it"
    EXAMPLES[place][number](drawing)


def test_every_example_has_a_drawing() -> None:
    """Each example belongs to a drawing."""
    assert {(place, number) for place, number, _ in DRAWN} == {
        (place, number) for place, examples in EXAMPLES.items() for number in range(len(examples))
    }


def test_wrong_drawing_fails() -> None:
    """A drawing that differs from the behavior is reported with both diagrams."""
    (drawing,) = drawings("x::\n\n    a:      a-|\n    b:      -b|\n    both:   ab-|\n\nend")
    with pytest.raises(AssertionError, match="but saw"):
        plays(lambda s: merge_now(*s))(drawing)


def test_every_operator_is_drawn() -> None:
    """`cuggino help operators` shows exactly the drawn operators."""
    shown = {operator.name for operator in operator_help()}
    places = {place.partition(":")[2] for place, _, _ in DRAWN if place.startswith("operators.")}
    assert places == shown | {
        *("alongside", "join_split_messages", "liveness", "mapcat", "merge_now", "ready_by"),
        "within_quota",
    }
    assert len(operators.__all__) <= 30
    by_name = {operator.name: operator for operator in operator_help()}
    assert "(*kinds)" == by_name["only"].signature
    assert by_name["wait_for_quota"].signature.startswith("(*, gate=None, wait=True, margin=60.0")
    assert "(schedule=..., *, transient=..., again=None" in by_name["retry_session"].signature
    assert by_name["catch_tag"].summary.startswith("Continue with `handle(error)` when the source")
