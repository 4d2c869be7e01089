"""The deliverables loop on a screen: its lines, its panel and its summary."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cuggino import events as ev
from cuggino.events import DeliverEnded, DeliverExit
from cuggino.runs import Delivery, RunState
from cuggino_cli.screen.columns import width
from cuggino_cli.screen.fragments import Verbosity, paint
from cuggino_cli.screen.panel import DeliverStatus, Panel, activity_line, list_lines, waiting_line
from cuggino_cli.screen.printers import DeliverPrinter, LoopPrinter
from cuggino_cli.screen.summary import passed_text, summary_fragments
from tests.cli.stamps import is_stamped, unstamped
from tests.domain.tallies import tally
from tests.runs.test_state import after

from . import live_lines
from .live_lines import Bench
from .samples import sample

BEGUN = ev.DeliverSessionStarted(session=1, instruction="coding")
WARNING = ev.DeliverWarning(message="look out")
CALL = ev.ToolCall(name="Bash", input={"command": "ls"})


def described(*descriptions: str) -> ev.DeliverablesListed:
    items = [
        ev.DeliverableState(id=f"D{n}", description=text, status="pending")
        for n, text in enumerate(descriptions, start=1)
    ]
    return ev.DeliverablesListed(deliverables=tuple(items))


TWO = described("a login", "a logout")


class DeliverBench(live_lines.Bench):
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
    bench = DeliverBench()
    bench.say(TWO, BEGUN)
    below = ["Deliverables: 0/2 passed", "  ○ D1 a login", "  ○ D2 a logout"]
    assert ["Session 1 started", *below, "⚡ 0s Thinking..."] == bench.seen()
    assert [*below, "⚡ 5s Thinking..."] == bench.seen_at(5.15)[1:]
    bench.say(CALL)
    expected = ["Session 1 started", "▶ Bash: ls", *below, "⚡ 5s Running Bash... (1 tool)"]
    assert expected == bench.seen()


def test_rows_are_cut_to_the_terminal() -> None:
    """Rows are shorter than the terminal is wide, at any width."""
    bench = DeliverBench()
    bench.say(described("a long description of a login, 漢字漢字漢字漢字漢字"), BEGUN)
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
    bench = DeliverBench()
    bench.say(described("a\nb\t\x1b[31m\r\u202ec"))
    assert "  ○ D1 a b ␛[31m␍\\u{202e}c" == bench.seen_at(0.15)[1]


def test_warnings_are_printed_above_the_list() -> None:
    """On one terminal, warnings and errors appear in order with the other lines, above the list."""
    bench = DeliverBench()
    bench.say(BEGUN, TWO, WARNING, CALL)
    bench.clock.advance_to(0.35)
    assert ["Session 1 started", "look out", "▶ Bash: ls"] == bench.seen()[:3]
    assert "Deliverables: 0/2 passed" == bench.seen()[3]
    assert 7 == len(bench.seen())


def test_warnings_go_to_standard_error() -> None:
    """Warnings, errors and policy violations do not go to standard output."""
    errors = io.StringIO()
    bench = DeliverBench(live=False, errors=errors)
    limit = ev.RateLimited(status="allowed_warning")
    failed = ev.DeliverSessionEnded(session=1, outcome="error", message="lost")
    bench.say(BEGUN, WARNING, limit, failed, ev.DeliverEnded(reason="quota_exceeded"))
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
    bench = DeliverBench()
    bench.say(BEGUN, ev.QuotaWaiting(remaining=3600, message="You've hit your limit"))
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
    bench = DeliverBench(live=False, verbosity=Verbosity.VERBOSE)
    bench.say(TWO, BEGUN, TWO, described("a login"))
    assert [
        "Deliverables: 0/2 passed",
        "Session 1 started",
        "Deliverables: 0/1 passed",
    ] == bench.screen.getvalue().splitlines()


def test_opening_lines_come_with_the_first_event() -> None:
    """The opening lines are printed once, when the run has started."""
    bench = DeliverBench(live=False, opening=["cuggino deliver"])
    assert "" == bench.screen.getvalue()
    bench.say(BEGUN, CALL)
    assert ["cuggino deliver", "Session 1 started"] == bench.screen.getvalue().splitlines()[:2]


def test_debug_lines_are_placed_by_session() -> None:
    """Sent messages follow the start of their session; received ones precede their own line."""
    bench = DeliverBench(live=False, words=False, instruction=lambda name: f"Do the {name}.")
    bench.say(BEGUN, CALL, ev.AgentMessage(text="hm"))
    assert [
        "Session 1 started",
        "[debug] [Send] Do the coding.",
        '[debug] [Recv] stream_tool_invocation: [tool: Bash] {"command":"ls"}',
        "▶ Bash: ls",
        "[debug] [Recv] stream_text: hm",
    ] == bench.screen.getvalue().splitlines()


def _steps() -> st.SearchStrategy[list[Any]]:
    events = st.sampled_from(
        [TWO, described(), described(*("漢字 x" * n for n in range(20))), CALL]
    )
    return st.lists(st.one_of(events, st.integers(20, 60), st.just("tick")), max_size=30)


@given(_steps())
def test_any_sequence_leaves_only_the_lines(steps: list[Any]) -> None:
    """Any sequence of lists, lines and resizes leaves only the lines."""
    bench = DeliverBench()
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


NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def listed(*statuses: str, verified: int = 0) -> ev.DeliverablesListed:
    """Return deliverables with these statuses, the first few of them verified."""
    items: list[Any] = [
        ev.DeliverableState.model_validate(
            {"id": f"D{n}", "description": f"do {n}", "status": status, "verified": n <= verified}
        )
        for n, status in enumerate(statuses, start=1)
    ]
    return ev.DeliverablesListed(deliverables=tuple(items))


def texts(event: ev.DeliverablesListed, height: int) -> list[str]:
    return [paint(line, color=False) for line in list_lines(event, height=height)]


def test_list_starts_with_the_passed_count() -> None:
    """The passed count comes first, then the deliverables in order."""
    event = listed("passed", "pending", "blocked", verified=1)
    assert [
        "Deliverables: 1/3 passed (1 blocked), 1 verified",
        "  ✓ verified D1 do 1",
        "  ○ D2 do 2",
        "  ✗ D3 do 3",
    ] == texts(event, 24)


def test_overflow_shows_open_deliverables_first() -> None:
    """When space is short, open deliverables come first and the others are counted."""
    event = listed("passed", "pending", "passed", "blocked", "passed", "pending")
    assert [
        "Deliverables: 3/6 passed (1 blocked)",
        "  ○ D2 do 2",
        "  ✗ D4 do 4",
        "  ○ D6 do 6",
        "  ... and 3 more",
    ] == texts(event, 12)


def test_unverified_deliverables_come_first() -> None:
    """During verification, unverified deliverables come before verified ones."""
    event = listed("passed", "passed", "passed", "passed", verified=2)
    assert ["  ✓ D3 do 3", "  ... and 3 more"] == texts(event, 8)[1:]
    assert ["  ✓ D3 do 3", "  ✓ D4 do 4", "  ... and 2 more"] == texts(event, 10)[1:]


@pytest.mark.parametrize("height", [0, 1, 5])
def test_low_terminal_has_no_list(height: int) -> None:
    """A terminal of a few rows shows no list."""
    assert [] == texts(listed("pending"), height)


def test_no_deliverables() -> None:
    """Without deliverables the list is left out."""
    assert [] == texts(listed(), 24)


@given(
    st.lists(st.sampled_from(["pending", "passed", "blocked"]), max_size=40),
    st.integers(0, 60),
    st.integers(0, 40),
)
def test_list_takes_at_most_half_of_the_height(
    statuses: list[str], height: int, verified: int
) -> None:
    """List and activity take at most half of the rows and account for every deliverable."""
    lines = texts(listed(*statuses, verified=verified), height)
    assert not lines or len(lines) + 1 <= height // 2
    more = lines and lines[-1].strip().startswith("... and ")
    hidden = int(lines[-1].split()[2]) if more else 0
    shown = len(lines) - 1 - bool(more)
    assert not lines or len(statuses) == shown + hidden


@pytest.mark.parametrize(
    ("expected", "resets_at"),
    [
        (" (resets at 6:00 PM UTC)", datetime(2026, 1, 2, 18, 0, tzinfo=UTC)),
        (" (resets at 12:05 AM UTC)", datetime(2026, 1, 2, 0, 5, tzinfo=UTC)),
        (
            " (resets at 12:30 PM UTC)",
            datetime(2026, 1, 2, 14, 30, tzinfo=timezone(timedelta(hours=2))),
        ),
        ("", None),
    ],
)
def test_waiting(expected: str, resets_at: datetime | None) -> None:
    """A wait shows its remaining time, and when the limit resets if that is known."""
    assert f"⏳ Waiting... 2h 44m remaining{expected}" == waiting_line(9840, resets_at)


def test_activity_without_tools() -> None:
    """Before the first tool call no tools are counted."""
    assert "⚡ 0s Thinking..." == activity_line(0.9, "Thinking", 0)


@pytest.mark.parametrize(
    ("expected", "events"),
    [
        ("⚡ 5s Starting...", []),
        ("⚡ 5s Thinking...", [sample(ev.DeliverSessionStarted)]),
        ("⚡ 5s Responding...", [sample(ev.DeliverSessionStarted), ev.AgentMessage(text="hm")]),
        ("⚡ 5s Running Bash... (1 tool)", [ev.ToolCall(name="Bash")]),
        ("⚡ 5s Running list... (1 tool)", [ev.ToolCall(name="mcp__autonoe-deliverable__list")]),
        (
            "⚡ 5s Thinking... (2 tools)",
            [ev.ToolCall(name="a"), ev.ToolCall(name="b"), ev.ToolResult(name="b", output="")],
        ),
        ("⚡ 5s Running b... (1 tool)", [ev.ToolCall(name="b"), ev.PingEvent(timestamp=0)]),
        ("⚡ 5s Thinking...", [ev.ToolCall(name="b"), sample(ev.DeliverSessionStarted)]),
        ("⚡ 5s Pausing...", [ev.ToolCall(name="b"), sample(ev.DeliverSessionEnded)]),
        ("⚡ 5s Retrying...", [sample(ev.AgentRetry)]),
        ("⏳ Waiting... 55s remaining", [ev.QuotaWaiting(remaining=60)]),
        ("⚡ 5s Thinking...", [ev.QuotaWaiting(remaining=60), ev.QuotaLifted(waited=60)]),
        ("⚡ 5s Thinking...", [ev.QuotaWaiting(remaining=60), ev.Thinking(text="hm")]),
    ],
)
def test_activity_line_follows_the_agent(expected: str, events: list[ev.Event]) -> None:
    """The last line follows the agent; its time is the session's."""
    panel = Panel()
    for event in events:
        panel = panel.add(event, NOW)
    (line,) = panel.lines(NOW + timedelta(seconds=5), height=24, began=NOW)
    assert expected == paint(line, color=False)


def test_session_time_starts_with_the_session() -> None:
    """A later session counts its own time."""
    panel = Panel().add(sample(ev.DeliverSessionStarted), NOW + timedelta(seconds=60))
    (line,) = panel.lines(NOW + timedelta(seconds=72), height=24, began=NOW)
    assert "⚡ 12s Thinking..." == paint(line, color=False)


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


def lines(summary: RunState, *, journaled: bool = True) -> list[str]:
    fragments = summary_fragments(summary, duration_s=90, journaled=journaled)
    return paint(fragments, color=False).splitlines()[1:]


def test_rows() -> None:
    """Sessions and deliverables are counted, not iterations, tasks and commits."""
    summary = RunState(
        kind="deliver",
        tally=tally(rounds=2, agents=2),
        delivery=Delivery(listed=listed("passed")),
    )
    assert [
        "[Summary] Ended",
        "  Sessions   2",
        "  Passed     1/1 deliverables",
        "  Duration   1m 30s",
    ] == lines(summary)


@pytest.mark.parametrize(
    ("reason", "said", "step"),
    [
        ("all_passed", "Approved", "review the changes: git status, git diff"),
        ("all_blocked", "All deliverables blocked", "remove what blocks them"),
        ("max_iterations", "Max iterations reached", "give it more sessions"),
        ("stalled", "Stalled", "see what went wrong, refine SPEC.md"),
        ("interrupted", "Interrupted", "`cuggino deliver --resume` continues where it stopped"),
    ],
)
def test_next(reason: DeliverExit, said: str, step: str) -> None:
    """Each end has its next step."""
    first, *rest = lines(after(DeliverEnded(reason=reason)))
    assert f"[Summary] {said}" == first
    assert rest[-1].startswith(f"  Next       {step}")


def test_without_a_journal() -> None:
    """An unrecorded run can only start over."""
    summary = after(DeliverEnded(reason="interrupted"))
    assert lines(summary, journaled=False)[-1].startswith(
        "  Next       `cuggino deliver` starts over"
    )


def test_passed() -> None:
    """Passed and blocked deliverables are counted; before the first listing they are unknown."""
    assert "1/3 deliverables (1 blocked)" == passed_text(listed("passed", "blocked", "pending"))
    assert "0/0 deliverables" == passed_text(listed())
    assert "unknown" == passed_text(None)
