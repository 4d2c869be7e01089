"""Sessions as streams: lines that come at once, and sessions on a thread of their own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import tzinfo
from pathlib import Path

import psutil
import pytest
from reactivex import Observable, abc, operators as ops
from reactivex.observer import Observer
from typing_extensions import override

import cuggino
from cuggino import events as ev
from cuggino.agents.base.reader import Ending, LineReader
from cuggino.agents.base.refusals import Dialect
from cuggino.agents.base.stream import (
    LIFE_PERIOD,
    Coalescer,
    HeldSession,
    Program,
    held,
    stream_json,
)
from cuggino.agents.base.watch import Watch
from cuggino.agents.base.wire import Json, deltas
from cuggino.agents.copilot.wire import CopilotSession
from cuggino.errors import (
    AgentNotFound,
    GuardNotLive,
    LlmSessionError,
    ProcessFailed,
    QuotaExceeded,
    SpawnFailed,
)
from cuggino.events import LlmAgentEvent
from cuggino.operators import LoopScheduler
from cuggino.testing import VirtualClock, no_leaks

WHO = {"a": None, "b": "call-1"}


class Letters(LineReader):
    """A session whose lines are words: `p` a keepalive, `aX` a delta, `mX` a message."""

    dialect = Dialect()

    def __init__(self, *, program: str, zone: Callable[[], tzinfo]) -> None:
        super().__init__(program=program, zone=zone, watch=Watch())

    def feed(self, line: bytes, *, now: float) -> list[ev.LlmAgentEvent]:
        """Return the event of the word; `x` is a breach of the guard."""
        word = line.decode()
        match word[0]:
            case "p":
                return [ev.PingEvent(timestamp=now)]
            case "x" if self._watch:
                self._watch.fail("it is silent")
                return []
            case "m":
                return [ev.AgentMessage(text=word[1:])]
            case who:
                return [*deltas(word[1:], "1", WHO[who])]

    def read(self, raw: Json, *, now: float) -> None:
        """Return nothing: these lines are not JSON."""

    def failure(self, ending: Ending) -> LlmSessionError | None:
        """Return no error; a failed program is a defect."""
        if ending.exit_code > 0:
            raise ZeroDivisionError
        return None


def letters(
    tmp_path: Path, *argv: str, session: type[Letters] = Letters
) -> Observable[ev.LlmAgentEvent]:
    """Return the events of the program's words."""
    return stream_json(
        argv, program="letters", cwd=tmp_path, env=dict(os.environ), stdin="", session=session
    )


def stream_words(tmp_path: Path, *words: str) -> tuple[list[str], Exception | None]:
    """Return the events of these words, printed at once, and the final error."""
    seen: list[str] = []

    def note(event: ev.LlmAgentEvent) -> None:
        match event:
            case ev.PingEvent():
                seen.append("p")
            case ev.MessageDelta(text=text, parent_tool_use_id=agent):
                seen.append(f"{'b' if agent else 'a'}{text}")
            case ev.AgentMessage(text=text):
                seen.append(f"m{text}")
            case _:
                seen.append(event.tag)

    stream = letters(tmp_path, "printf", "".join(f"{word}\\n" for word in words))
    try:
        cuggino.run(stream, note)
    except LlmSessionError as error:
        return seen, error
    return seen, None


class Answered(Letters):
    """A session that is answered, whatever the exit code."""

    @override
    def failure(self, ending: Ending) -> None:
        return None


@pytest.mark.parametrize(("code", "expected"), [("0", None), ("3", 3)])
def test_exit_code_after_an_answer(tmp_path: Path, code: str, expected: int | None) -> None:
    """A program that fails after a good result is no error, and its exit code is kept."""
    seen: list[ev.LlmAgentEvent] = []
    words = ("sh", "-c", f"echo mx; exit {code}")
    cuggino.run(letters(tmp_path, *words, session=Answered), seen.append)
    assert isinstance(seen[-1], ev.SessionEnded)
    assert ("completed", expected) == (seen[-1].outcome, seen[-1].exit_code)


def test_simultaneous_keepalives_are_merged(tmp_path: Path) -> None:
    """Consecutive keepalives become one."""
    assert (["p", "SessionEnded"], None) == stream_words(tmp_path, "p", "p", "p")


def test_simultaneous_deltas_are_merged(tmp_path: Path) -> None:
    """Deltas of one text are joined in order, with or without keepalives between them."""
    assert (["aone two", "SessionEnded"], None) == stream_words(tmp_path, "aone", "p", "a two", "p")


def test_deltas_of_several_texts_are_separate(tmp_path: Path) -> None:
    """Deltas of agent and sub-agent are not joined or reordered."""
    words = ["a1", "b2", "b3", "a4"]
    assert (["a1", "b23", "a4", "SessionEnded"], None) == stream_words(tmp_path, *words)


def test_other_events_keep_their_place(tmp_path: Path) -> None:
    """Any other event keeps its place among the deltas; keepalives are left out beside events."""
    words = ["p", "a1", "a2", "m12", "p", "a3", "m3"]
    expected = ["a12", "m12", "a3", "m3", "SessionEnded"]
    assert (expected, None) == stream_words(tmp_path, *words)


def coalesced(*batches: list[ev.LlmAgentEvent], drafts: bool) -> list[list[ev.LlmAgentEvent]]:
    """Return the events of batches that come an eighth of a second apart."""
    coalescer = Coalescer(drafts=drafts)
    emitted = []
    for number, batch in enumerate(batches):
        for event in batch:
            coalescer.add(event)
        emitted.append(coalescer.events(number / 8))
    return emitted


def written(text: str, *, message: str = "1", agent: str | None = None) -> ev.MessageDelta:
    return ev.MessageDelta(text=text, message_id=message, parent_tool_use_id=agent)


def test_signs_of_life_are_rare() -> None:
    """A ping is emitted only after a while without another event."""
    ping, message = ev.PingEvent(timestamp=0.0), ev.AgentMessage(text="m")
    batches: list[list[ev.LlmAgentEvent]]
    batches = [[ping], [ping], [ping], [message], [ping], [ping], [], [ping]]
    emitted = coalesced(*batches, drafts=True)
    at = [n / 8 for n, events in enumerate(emitted) if any(e.tag == "PingEvent" for e in events)]
    assert [0, 0.25, 0.625, 0.875] == at
    assert 0.2 == LIFE_PERIOD


def test_without_drafts_a_message_is_emitted_only_as_a_whole() -> None:
    """Its deltas, and those of sub-agents, are no more than signs of life."""
    whole = ev.AgentMessage(text="one two", message_id="1")
    emitted = coalesced(
        [written("one")], [written(" two"), written("x", agent="call")], [whole], drafts=False
    )
    assert [[ev.PingEvent(timestamp=0)], [], [whole]] == emitted


def test_without_drafts_a_possible_marker_is_emitted_at_once() -> None:
    """From the first `<` on, a message is streamed, with what was held back of it."""
    whole = ev.AgentMessage(text="one <N> two", message_id="1")
    emitted = coalesced(
        [written("one")], [written(" <N")], [written(">")], [whole, written("three")], drafts=False
    )
    assert [[written("one <N")], [written(">")], [whole]] == emitted[1:]


def test_without_drafts_a_discarded_message_leaves_nothing() -> None:
    """The deltas of a message that is written again are not taken for the new one."""
    emitted = coalesced([written("one")], [written("<two", message="2")], drafts=False)
    assert [written("<two", message="2")] == emitted[1]


def test_events_around_a_breach(tmp_path: Path) -> None:
    """Lines before a breach are emitted, later ones are not."""
    seen, error = stream_words(tmp_path, "a1", "p", "x", "m2", "a3")
    assert ["a1", "SessionEnded"] == seen
    assert isinstance(error, GuardNotLive)


def test_a_defect_comes_after_the_events_of_earlier_lines(tmp_path: Path) -> None:
    """An exception of the reader loses nothing that the program printed before that line."""

    class Defective(Letters):
        @override
        def feed_all(self, lines: Sequence[bytes], *, now: float) -> Iterator[ev.LlmAgentEvent]:
            yield from super().feed_all(lines[: lines.index(b"z")], now=now)
            raise LookupError("no such letter")

    seen: list[ev.LlmAgentEvent] = []
    stream = letters(tmp_path, "printf", "m1\\na2\\na3\\nz\\nm4\\n", session=Defective)
    with pytest.raises(LookupError):
        cuggino.run(stream, seen.append)
    assert [ev.AgentMessage(text="1"), ev.MessageDelta(text="23", message_id="1")] == seen


def test_a_breach_is_emitted_after_the_program_ended(tmp_path: Path) -> None:
    """The final event follows the end of every process of the session."""
    pids: list[int] = []
    alive: list[bool] = []

    def note(event: ev.LlmAgentEvent) -> None:
        if isinstance(event, ev.AgentMessage):
            pids.append(int(event.text))
        else:
            alive.append(psutil.pid_exists(pids[0]))

    stream = letters(tmp_path, "sh", "-c", "echo m$$; echo x; exec sleep 600")
    with pytest.raises(GuardNotLive):
        cuggino.run(stream, note)
    assert [False] == alive


def test_nothing_is_emitted_after_disposal(tmp_path: Path) -> None:
    """Disposal during an event skips the other events that came with it."""
    seen: list[ev.LlmAgentEvent] = []
    stream = letters(tmp_path, "printf", "m1\\nm2\\nm3\\n").pipe(ops.do_action(seen.append))
    cuggino.run(stream.pipe(ops.take(2)))
    assert [ev.AgentMessage(text="1"), ev.AgentMessage(text="2")] == seen


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (None, ["rejected"]),
        (ev.RateLimited(status="allowed_warning"), ["rejected"]),
        (ev.RateLimited(status="rejected"), []),
    ],
)
def test_a_limit_is_emitted_once(
    told: ev.RateLimited | None, expected: list[str], tmp_path: Path
) -> None:
    """The limit that ended a session is emitted before its end, unless it already was."""

    class Limited(Letters):
        @override
        def failure(self, ending: Ending) -> LlmSessionError:
            self.known = self.known._replace(limit=told)
            return QuotaExceeded("no more")

    seen: list[ev.LlmAgentEvent] = []
    stream = letters(tmp_path, "true", session=Limited)
    with pytest.raises(QuotaExceeded):
        cuggino.run(stream, seen.append)
    assert [*expected, "SessionEnded"] == [
        event.status if isinstance(event, ev.RateLimited) else event.tag for event in seen
    ]


def test_a_defect_in_reading_the_end_ends_the_stream(tmp_path: Path) -> None:
    """A defect in the session's parser still ends the stream."""
    stream = letters(tmp_path, "false")
    with pytest.raises(ZeroDivisionError):
        cuggino.run(stream)


class Session(HeldSession):
    """A session that records its notifications."""

    def __init__(self, lane: abc.SchedulerBase) -> None:
        self.told: list[object] = []
        observer: Observer[LlmAgentEvent] = Observer(on_error=self.told.append)
        program = Program(argv=["true"], cwd=Path(), env={})
        super().__init__(program, CopilotSession(), observer, lane)

    @override
    def start(self) -> None:
        self.told.append("started")

    @override
    def dispose(self) -> None:
        self._is_over = True
        self.told.append("disposed")

    def say(self) -> None:
        self.told.append("said")


@pytest.fixture
def clock() -> VirtualClock:
    """Return the scheduler, in virtual time."""
    return VirtualClock()


def test_posted_actions_run_on_the_scheduler(clock: VirtualClock) -> None:
    """A posted action waits for its turn and is dropped if the session has ended by then."""
    one, other = Session(clock), Session(clock)
    for session in (one, other):
        session._post(session.say)
    assert [] == one.told
    other.dispose()
    clock.advance_by(1)
    other._post(other.say)
    clock.advance_by(1)
    assert (["said"], ["disposed"]) == (one.told, other.told)


def test_an_exception_in_a_subscriber(clock: VirtualClock) -> None:
    """The session ends before the exception is emitted."""
    session, error = Session(clock), OSError("no")

    def refuse() -> None:
        raise error

    session._post(refuse)
    clock.advance_by(1)
    assert ["disposed", error] == session.told


def test_an_exception_that_exits(clock: VirtualClock) -> None:
    """The session ends and the exception propagates."""
    session = Session(clock)

    def leave() -> None:
        raise SystemExit(3)

    session._post(leave)
    with pytest.raises(SystemExit):
        clock.advance_by(1)
    assert ["disposed"] == session.told


def test_a_closed_scheduler() -> None:
    """Nothing is emitted or raised."""
    with no_leaks():
        lane = LoopScheduler()
        lane.close()
        session = Session(lane)
        session._post(session.say)
        assert session._is_over
    assert [] == session.told


def test_a_program_that_cannot_be_started(clock: VirtualClock) -> None:
    """The session ends with the error of a missing agent."""
    session = Session(clock)
    session._on_error(SpawnFailed("agent", OSError("there is none")))
    disposed, error = session.told
    assert "disposed" == disposed
    assert isinstance(error, AgentNotFound)
    assert "cannot start agent: there is none" == error.message
    assert "check that the program is installed" == error.hint


def test_other_errors(clock: VirtualClock) -> None:
    """A failed program ends the session with its last words; a defect ends it and is emitted."""
    session, broken, defect = Session(clock), Session(clock), ZeroDivisionError()
    session._on_error(ProcessFailed("agent", 3, "no home"))
    disposed, error = session.told
    assert ("disposed", "copilot exited with code 3: no home") == (disposed, str(error))
    broken._on_error(defect)
    assert ["disposed", defect] == broken.told


def test_a_failed_start_disposes_of_the_session(clock: VirtualClock) -> None:
    """A session that cannot start is disposed of, and its exception reaches the subscriber."""
    made: list[Session] = []

    class Broken(Session):
        @override
        def start(self) -> None:
            raise OSError("no more files")

    def make(_observer: object, lane: abc.SchedulerBase) -> Session:
        made.append(Broken(lane))
        return made[0]

    with pytest.raises(OSError, match="no more files"):
        held(make).subscribe(scheduler=clock)
    assert ["disposed"] == made[0].told
