"""The render operator: prints events and moves the spinner on the scheduler's time."""

from __future__ import annotations

import io

import pytest
import reactivex as rx
from reactivex import Subject
from reactivex.testing import TestScheduler

from cuggino.events import (
    AgentMessage,
    Event,
    LoopApproved,
    PingEvent,
    PlanningStart,
    WatchAuditEnded,
    WatchAuditStarted,
    WatchBacklogWaiting,
    WatchProcessingItem,
)
from cuggino_cli.screen.fragments import Verbosity
from cuggino_cli.screen.render import with_cli_output
from cuggino_cli.screen.terminal import Terminal

from .screen import Screen

PLANNING = PlanningStart(iteration=1)
APPROVED = LoopApproved(iteration=1)
PROSE = AgentMessage(text="thinking aloud")
PING = PingEvent(timestamp=0)
WAITING = WatchBacklogWaiting()


class Bench:
    """One subscription on a screen of 60 columns, in virtual seconds."""

    def __init__(self, *, interactive: bool = True, screen: Screen | None = None) -> None:
        self.clock = TestScheduler()
        self.screen = screen or Screen(60)
        self.source: Subject[Event] = Subject()
        self.heard: list[Event] = []
        self.ends: list[Exception | None] = []
        self.terminal = Terminal(
            self.screen, color=False, interactive=interactive, columns=lambda: self.screen.columns
        )
        output = with_cli_output(self.terminal, verbosity=Verbosity.NORMAL)
        self.subscription = self.source.pipe(output).subscribe(
            self.heard.append,
            self.ends.append,
            lambda: self.ends.append(None),
            scheduler=self.clock,
        )

    def at(self, second: float) -> Subject[Event]:
        """Return the source at that time."""
        self.clock.advance_to(second)
        return self.source

    def seen_at(self, second: float) -> str:
        """Return the last non-blank line at that time."""
        self.clock.advance_to(second)
        return self.screen.visible()[-1]

    def scheduled(self) -> int:
        """Return the number of pending actions."""
        return sum(not item.is_cancelled() for item, _ in self.clock._queue.items)

    def released(self) -> bool:
        """Return True if nothing is subscribed or scheduled any more."""
        return self.scheduled() == 0 and not self.source.observers


def test_events_pass_unchanged() -> None:
    """Every event passes on as the same object, shown or not, followed by completion."""
    bench = Bench()
    events = [PLANNING, PROSE, PING, APPROVED]
    for event in events:
        bench.source.on_next(event)
    assert [id(event) for event in events] == [id(event) for event in bench.heard]
    assert bench.ends == []
    bench.source.on_completed()
    assert bench.ends == [None]


def test_lines_are_printed_before_they_pass() -> None:
    """An event is on the screen before the next subscriber receives it."""
    stream = io.StringIO()
    terminal = Terminal(stream, color=False, interactive=False, columns=lambda: 80)
    seen: list[str] = []
    output = with_cli_output(terminal, verbosity=Verbosity.NORMAL)
    rx.of(PLANNING, PROSE).pipe(output).subscribe(lambda _: seen.append(stream.getvalue()))
    assert seen == ["\n[Planning] Starting...\n"] * 2


@pytest.mark.parametrize("bell", [True, False])
def test_bell_rings_unless_disabled(bell: bool) -> None:
    """A line that needs a person rings the bell, unless it is disabled."""
    stream = io.StringIO()
    terminal = Terminal(stream, color=False, interactive=True, columns=lambda: 80)
    output = with_cli_output(terminal, verbosity=Verbosity.NORMAL, bell=bell)
    rx.of(WAITING).pipe(output).run()
    assert "Backlog empty" in stream.getvalue()
    assert bell == ("\a" in stream.getvalue())


def test_spinner_moves_while_the_agent_is_silent() -> None:
    """Without events the spinner turns ten times a second and counts the time."""
    bench = Bench()
    assert bench.seen_at(0.05) == ""
    assert bench.seen_at(0.15) == "⠋ Working..."
    assert bench.seen_at(0.25) == "⠙ Working..."
    bench.at(1).on_next(PLANNING)
    assert bench.seen_at(1.05) == "[Planning] Starting..."
    frames = {bench.seen_at(13 + tenth / 10 + 0.05) for tenth in range(10)}
    assert {f"{frame} Working... (12s)" for frame in "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"} == frames
    assert bench.screen.visible()[:-1] == ["", "[Planning] Starting..."]


def test_pings_do_not_reset_the_time() -> None:
    """A ping shows nothing; the time and the frames continue."""
    bench = Bench()
    bench.at(1).on_next(PLANNING)
    before = bench.seen_at(8.52)
    assert before.endswith("Working... (7s)")
    bench.at(8.54).on_next(PING)
    assert before == bench.seen_at(8.56)
    after = bench.seen_at(8.65)
    assert before != after
    assert after.endswith("Working... (7s)")


def test_hidden_events_reset_the_time() -> None:
    """An event that shows nothing still proves that the agent is alive."""
    bench = Bench()
    assert bench.seen_at(7.95).endswith("Working... (7s)")
    bench.at(8).on_next(PROSE)
    assert bench.seen_at(8.15).endswith("Working...")
    assert bench.seen_at(11.15).endswith("Working... (3s)")


def test_resize_is_followed() -> None:
    """A narrower terminal has a shorter spinner at the next tick and no other change."""
    bench = Bench()
    bench.at(1).on_next(PLANNING)
    assert bench.seen_at(91.05).endswith("Working... (1m 30s)")
    bench.screen.resize(10)
    assert len(bench.seen_at(91.15)) == 9
    bench.screen.resize(60)
    assert bench.screen.visible()[:-1] == ["", "[Planning] Starting..."]


def test_spinner_rests_while_the_watch_waits() -> None:
    """While the watch waits, nothing turns and nothing is scheduled."""
    bench = Bench()
    bench.at(1).on_next(WAITING)
    assert bench.scheduled() == 0
    assert bench.seen_at(90) == "[Watch] Backlog empty, waiting for new items..."
    bench.at(100).on_next(WatchAuditStarted())
    assert bench.seen_at(105.15).endswith("Working... (5s)")
    bench.at(200).on_next(WatchAuditEnded())
    assert bench.scheduled() == 0
    assert bench.seen_at(290) == "[Watch] Audit agent finished."
    bench.at(300).on_next(WatchProcessingItem(filename="a.md"))
    assert bench.seen_at(310.15).endswith("Working... (10s)")


def test_completion_erases_the_spinner() -> None:
    """On completion only lines are left, and nothing stays scheduled."""
    bench = Bench()
    bench.at(1).on_next(PLANNING)
    assert "Working" in bench.seen_at(4.9)
    bench.source.on_completed()
    assert bench.released()
    assert bench.seen_at(60) == "[Planning] Starting..."


def test_error_erases_the_spinner() -> None:
    """On an error only lines are left, nothing stays scheduled, and the error passes on."""
    bench = Bench()
    error = RuntimeError("broken")
    bench.at(1).on_next(PLANNING)
    assert "Working" in bench.seen_at(4.9)
    bench.source.on_error(error)
    assert bench.released()
    assert bench.seen_at(60) == "[Planning] Starting..."
    assert [error] == bench.ends


def test_disposal_erases_the_spinner() -> None:
    """Disposal unsubscribes the source, leaves only lines, and nothing stays scheduled."""
    bench = Bench()
    bench.at(1).on_next(PLANNING)
    assert "Working" in bench.seen_at(4.9)
    bench.subscription.dispose()
    assert bench.released()
    assert bench.seen_at(60) == "[Planning] Starting..."
    assert bench.ends == []


def test_no_timer_without_a_terminal() -> None:
    """Without a terminal nothing is scheduled and only lines are written."""
    bench = Bench(interactive=False)
    assert bench.scheduled() == 0
    bench.at(1).on_next(PLANNING)
    assert bench.scheduled() == 0
    bench.at(9).on_next(APPROVED)
    bench.source.on_completed()
    expected = "\n[Planning] Starting...\n\n[Loop] Implementation approved!\n"
    assert expected == bench.screen.getvalue()


def test_no_spinner_without_a_scheduler() -> None:
    """Subscribing without a scheduler gives lines and no spinner."""
    screen = Screen(60)
    terminal = Terminal(screen, color=False, interactive=True, columns=lambda: 60)
    done: list[bool] = []
    rx.of(PLANNING).pipe(with_cli_output(terminal, verbosity=Verbosity.NORMAL)).subscribe(
        on_completed=lambda: done.append(True)
    )
    assert done == [True]
    assert screen.getvalue() == "\n[Planning] Starting...\n"


def test_subscriptions_are_independent() -> None:
    """The operator shares no state between two subscriptions."""
    stream = io.StringIO()
    terminal = Terminal(stream, color=False, interactive=False, columns=lambda: 80)
    source = rx.of(WAITING).pipe(with_cli_output(terminal, verbosity=Verbosity.QUIET))
    source.subscribe()
    source.subscribe()
    assert stream.getvalue() == "[Watch] Backlog empty, waiting for new items...\n" * 2


class Gone(Screen):
    """A screen whose reader leaves after three writes."""

    writes_left = 3

    def write(self, text: str) -> int:
        if self.writes_left == 0:
            raise BrokenPipeError
        self.writes_left -= 1
        return super().write(text)


def test_broken_pipe_on_a_line() -> None:
    """A broken pipe is an error of the stream and unsubscribes the source."""
    bench = Bench(interactive=False, screen=Gone(60))
    for _ in range(5):
        bench.source.on_next(PLANNING)
    assert bench.heard == [PLANNING] * 3
    assert [type(end).__name__ for end in bench.ends] == ["BrokenPipeError"]
    assert bench.released()


def test_broken_pipe_on_a_tick() -> None:
    """A broken pipe met by the spinner also fails the stream, but not the clock's thread."""
    bench = Bench(screen=Gone(60))
    bench.clock.advance_to(10)
    assert [type(end).__name__ for end in bench.ends] == ["BrokenPipeError"]
    assert bench.released()


def test_broken_pipe_on_completion() -> None:
    """A broken pipe while erasing the spinner at completion fails the stream."""
    bench = Bench(screen=Gone(60))
    bench.at(0.35).on_completed()
    assert [type(end).__name__ for end in bench.ends] == ["BrokenPipeError"]
    assert bench.released()
