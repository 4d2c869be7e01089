"""A run of the deliverables loop on a screen: its lines, the live list, and the final state."""

from __future__ import annotations

import io
from functools import partial
from typing import Any

from hypothesis import given, strategies as st

from cuggino import events as ev
from cuggino_cli.screen.columns import width
from cuggino_cli.screen.fragments import Verbosity
from cuggino_cli.screen.panel import DeliverStatus
from cuggino_cli.screen.printers import DeliverPrinter

from . import live_lines

STARTED = ev.DeliverSessionStarted(session=1, instruction="coding")
WARNING = ev.DeliverWarning(message="look out")
CALL = ev.ToolCall(name="Bash", input={"command": "ls"})


def listed(*descriptions: str) -> ev.DeliverablesListed:
    items = [
        ev.DeliverableState(id=f"D{n}", description=text, status="pending")
        for n, text in enumerate(descriptions, start=1)
    ]
    return ev.DeliverablesListed(deliverables=tuple(items))


TWO = listed("a login", "a logout")


class Bench(live_lines.Bench):
    """One subscription to a deliver loop."""

    def __init__(
        self,
        *,
        live: bool = True,
        verbosity: Verbosity = Verbosity.NORMAL,
        errors: io.StringIO | None = None,
        **options: Any,
    ) -> None:
        printer = partial(DeliverPrinter, **options)
        status = DeliverStatus()
        super().__init__(printer, live=live, verbosity=verbosity, errors=errors, status=status)

    def seen_at(self, second: float) -> list[str]:
        """Return the visible lines at that time, without the row of the totals."""
        return [*self.show(), *self.rows_at(second)[:-1]]

    def seen(self) -> list[str]:
        return self.seen_at(self.clock.clock)


def test_list_stays_below_the_lines() -> None:
    """Lines stay, and the list and activity are always below them, without flicker."""
    bench = Bench()
    bench.say(TWO, STARTED)
    below = ["Deliverables: 0/2 passed", "  ○ D1 a login", "  ○ D2 a logout"]
    assert ["Session 1 started", *below, "⚡ 0s Thinking..."] == bench.seen()
    assert [*below, "⚡ 5s Thinking..."] == bench.seen_at(5.15)[1:]
    bench.say(CALL)
    expected = ["Session 1 started", "▶ Bash: ls", *below, "⚡ 5s Running Bash... (1 tool)"]
    assert expected == bench.seen()


def test_rows_are_cut_to_the_terminal() -> None:
    """Rows are shorter than the terminal is wide, at any width."""
    bench = Bench()
    bench.say(listed("a long description of a login, 漢字漢字漢字漢字漢字"), STARTED)
    bench.screen.columns = 17
    bench.clock.advance_to(1.15)
    assert [
        "Session 1 started",
        "Deliverables:...",
        "  ○ D1 a long...",
        "⚡ 1s Thinkin...",
    ] == bench.seen()


def test_hostile_description_is_one_inert_line() -> None:
    """A description cannot control the terminal and takes one line."""
    bench = Bench()
    bench.say(listed("a\nb\t\x1b[31m\r\u202ec"))
    assert "  ○ D1 a b ␛[31m␍\\u{202e}c" == bench.seen_at(0.15)[1]


def test_warnings_are_printed_above_the_list() -> None:
    """On one terminal, warnings and errors appear in order with the other lines, above the list."""
    bench = Bench()
    bench.say(STARTED, TWO, WARNING, CALL)
    bench.clock.advance_to(0.35)
    assert ["Session 1 started", "look out", "▶ Bash: ls"] == bench.seen()[:3]
    assert "Deliverables: 0/2 passed" == bench.seen()[3]
    assert 7 == len(bench.seen())


def test_warnings_go_to_standard_error() -> None:
    """Warnings, errors and policy violations do not go to standard output."""
    errors = io.StringIO()
    bench = Bench(live=False, errors=errors)
    limit = ev.RateLimited(status="allowed_warning")
    failed = ev.DeliverSessionEnded(session=1, outcome="error", message="lost")
    bench.say(STARTED, WARNING, limit, failed, ev.DeliverEnded(reason="quota_exceeded"))
    assert [
        "look out",
        "[Agent] Usage limit near",
        "Stream error: lost",
        "Quota exceeded",
        "Session stopped: quota exceeded",
    ] == errors.getvalue().splitlines()
    assert [
        "Session 1 started",
        "Overall: 0 session(s), 0/0 deliverables passed, cost=$0.0000, duration=0s",
        "",
    ] == bench.screen.getvalue().splitlines()


def test_wait_counts_down_below_the_lines() -> None:
    """A wait is printed once, with the agent's message, and counts down below the lines."""
    bench = Bench()
    bench.say(STARTED, ev.QuotaWaiting(remaining=3600, message="You've hit your limit"))
    lines = [
        "Session 1 started",
        "Quota exceeded: You've hit your limit",
        "Quota exceeded, waiting 1h until reset...",
    ]
    assert [*lines, "⏳ Waiting... 59m 50s remaining"] == bench.seen_at(10)
    bench.clock.advance_to(60)
    bench.say(ev.QuotaWaiting(remaining=3540, message="You've hit your limit"))
    assert [*lines, "⏳ Waiting... 58m 59s remaining"] == bench.seen_at(60.95)
    bench.say(ev.QuotaLifted(waited=61))
    assert [*lines, "[Agent] Resuming after 1m 1s", "⚡ 1m Thinking..."] == bench.seen_at(60.99)


def test_verbose_prints_each_change_of_deliverables() -> None:
    """With `--verbose` each change of the deliverables is printed, also without a live list."""
    bench = Bench(live=False, verbosity=Verbosity.VERBOSE)
    bench.say(TWO, STARTED, TWO, listed("a login"))
    assert [
        "Deliverables: 0/2 passed",
        "Session 1 started",
        "Deliverables: 0/1 passed",
    ] == bench.screen.getvalue().splitlines()


def test_opening_lines_come_with_the_first_event() -> None:
    """The opening lines are printed once, when the run has started."""
    bench = Bench(live=False, opening=["cuggino deliver"])
    assert "" == bench.screen.getvalue()
    bench.say(STARTED, CALL)
    assert ["cuggino deliver", "Session 1 started"] == bench.screen.getvalue().splitlines()[:2]


def test_debug_lines_are_placed_by_session() -> None:
    """Sent messages follow the start of their session; received ones precede their own line."""
    bench = Bench(live=False, words=False, instruction=lambda name: f"Do the {name}.")
    bench.say(STARTED, CALL, ev.AgentMessage(text="hm"))
    assert [
        "Session 1 started",
        "[debug] [Send] Do the coding.",
        '[debug] [Recv] stream_tool_invocation: [tool: Bash] {"command":"ls"}',
        "▶ Bash: ls",
        "[debug] [Recv] stream_text: hm",
    ] == bench.screen.getvalue().splitlines()


def _steps() -> st.SearchStrategy[list[Any]]:
    events = st.sampled_from([TWO, listed(), listed(*("漢字 x" * n for n in range(20))), CALL])
    return st.lists(st.one_of(events, st.integers(20, 60), st.just("tick")), max_size=30)


@given(_steps())
def test_any_sequence_leaves_only_the_lines(steps: list[Any]) -> None:
    """Any sequence of lists, lines and resizes leaves only the lines."""
    bench = Bench()
    now, printed = 0.0, 0
    for step in steps:
        if isinstance(step, int):
            bench.screen.columns = step
        elif step == "tick":
            now += 1
            assert all(width(row) < bench.screen.columns for row in bench.seen_at(now)[printed:])
        else:
            bench.say(step)
            printed += step is CALL
    bench.source.on_completed()
    assert ["▶ Bash: ls"] * printed == bench.seen()
