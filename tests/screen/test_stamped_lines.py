"""Which lines have a time stamp: those of cuggino, and on a terminal all."""

from __future__ import annotations

import io
from typing import Any

from reactivex import Subject
from reactivex.testing import TestScheduler

from cuggino import events as ev
from cuggino_cli.screen.controls import Controls
from cuggino_cli.screen.deliver_screen import Wording, with_deliver_output
from cuggino_cli.screen.fragments import Verbosity
from cuggino_cli.screen.plan_build_screen import LoopView, with_loop_output
from cuggino_cli.screen.terminal import PlainLines
from tests.cli.stamps import is_stamped, unstamped

from .live_lines import StatusLines, controls_on, plain_on
from .screen import Screen

SAID = ev.AgentMessage(text="One.\nTwo.", message_id="m")
PAUSE = ev.PauseAsked()
VIEW = LoopView(verbosity=Verbosity.NORMAL)


def written(output: Any, lines: PlainLines, *events: ev.Event) -> None:
    """Print the events on the lines."""
    source: Subject[ev.Event] = Subject()
    source.pipe(output(controls_on(lines))).subscribe(scheduler=TestScheduler())
    for event in events:
        source.on_next(event)


def on_a_pipe(output: Any, *events: ev.Event) -> list[str]:
    """Return the lines on a pipe."""
    stream = io.StringIO()
    written(output, plain_on(stream), *events)
    return stream.getvalue().splitlines()


def deliver(controls: Controls) -> Any:
    wording = Wording(Verbosity.NORMAL, opening=["cuggino deliver"], words=True)
    return with_deliver_output(controls, wording)


def loop(controls: Controls) -> Any:
    return with_loop_output(controls, VIEW)


def test_lines_of_autonoe_on_a_pipe() -> None:
    """What Autonoe prints is unchanged on a pipe; lines that are ours have the time."""
    started = ev.DeliverSessionStarted(session=1, instruction="coding")
    *literal, ours = on_a_pipe(deliver, started, SAID, ev.DeliverWarning(message="odd"), PAUSE)
    assert ["cuggino deliver", "Session 1 started", "One.", "Two.", "odd"] == literal
    assert is_stamped(ours)
    assert ["[Control] Pausing after this stage"] == unstamped(ours)


def test_lines_of_lopen_on_a_pipe() -> None:
    """What Lopen prints is unchanged on a pipe; lines that are ours have the time."""
    over = ev.SessionEnded(outcome="completed")
    *literal, ours = on_a_pipe(loop, SAID, over, ev.FileTouched(path="a.py"), PAUSE)
    assert ["One.", "Two.", "[file] a.py"] == literal
    assert is_stamped(ours)


def test_all_lines_have_the_time_on_a_terminal() -> None:
    """On a terminal each message and each line has its time."""
    for output, event in ((deliver, SAID), (loop, ev.FileTouched(path="a.py"))):
        screen = Screen(60)
        written(output, StatusLines(screen), event)
        first = screen.visible()[0]
        assert unstamped(first) != [first]
