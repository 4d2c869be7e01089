"""Which lines have a time stamp: those of cuggino, and on a terminal all."""

from __future__ import annotations

import pytest

from cuggino import events as ev
from cuggino_cli.screen.fragments import Verbosity
from cuggino_cli.screen.printers import DeliverPrinter, LoopPrinter
from tests.cli.stamps import is_stamped, unstamped

from .live_lines import Bench

SAID = ev.AgentMessage(text="One.\nTwo.", message_id="m")
PAUSE = ev.PauseAsked()


def test_lines_of_autonoe_on_a_pipe() -> None:
    """What Autonoe prints is unchanged on a pipe; lines that are ours have the time."""
    bench = Bench(lambda: DeliverPrinter(opening=["cuggino deliver"]), stamps=True)
    started = ev.DeliverSessionStarted(session=1, instruction="coding")
    *literal, ours = bench.show(started, SAID, ev.DeliverWarning(message="odd"), PAUSE)
    assert ["cuggino deliver", "Session 1 started", "One.", "Two.", "odd"] == literal
    assert is_stamped(ours)
    assert ["[Control] Pausing after this stage"] == unstamped(ours)


def test_lines_of_lopen_on_a_pipe() -> None:
    """What Lopen prints is unchanged on a pipe; lines that are ours have the time."""
    over = ev.SessionEnded(outcome="completed")
    bench = Bench(LoopPrinter, stamps=True)
    *literal, ours = bench.show(SAID, over, ev.FileTouched(path="a.py"), PAUSE)
    assert ["One.", "Two.", "[file] a.py"] == literal
    assert is_stamped(ours)


@pytest.mark.parametrize("printer", [DeliverPrinter, LoopPrinter])
def test_a_message_by_lines_on_a_pipe(printer: type[DeliverPrinter | LoopPrinter]) -> None:
    """With `VERBOSE` no line of a message has the time on a pipe, whenever it arrived."""
    bench = Bench(printer, stamps=True, verbosity=Verbosity.VERBOSE)
    delta = ev.MessageDelta(text="One.\nTw", message_id="m")
    assert ["One.", "Two."] == bench.show(delta, SAID, ev.SessionEnded(outcome="failed"))


def test_all_lines_have_the_time_on_a_terminal() -> None:
    """On a terminal each message and each line has its time."""
    for printer, event in ((DeliverPrinter, SAID), (LoopPrinter, ev.FileTouched(path="a.py"))):
        first = Bench(printer, live=True, stamps=True).show(event)[0]
        assert unstamped(first) != [first]
