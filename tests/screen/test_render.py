"""The render operator: prints events and shows what the run is doing."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

import pytest
import reactivex as rx

import cuggino
import cuggino_cli
from cuggino import events as ev
from cuggino.errors import StorageError
from cuggino_cli.screen.controls import Controls
from cuggino_cli.screen.fragments import Verbosity
from cuggino_cli.screen.printers import DeliverPrinter, LoopPrinter, RunPrinter
from cuggino_cli.screen.render import Printer, with_printer
from cuggino_cli.screen.status import RunStatus

from .live_lines import Bench, plain_on
from .screen import Screen

PLANNING = ev.PlanningStart(iteration=1)
APPROVED = ev.LoopApproved(iteration=1)
PROSE = ev.AgentMessage(text="thinking aloud")
PING = ev.PingEvent(timestamp=0)
WAITING = ev.WatchBacklogWaiting()
CALL = ev.ToolCall(name="Bash", input={"command": "cat /srv/project/a.py"}, id="t1")
STARTED = ev.RunStarted(
    run_id="r", kind="run", command="", focus="Login page", agent="claude", options={"budget": 5}
)


def bench_of(*, live: bool = True, screen: Screen | None = None, **options: Any) -> Bench:
    """Return a subscription to a coding loop or a watch, on a screen of 80 columns."""
    return Bench(
        partial(RunPrinter, project="/srv/project"),
        live=live,
        screen=screen or Screen(80),
        status=RunStatus(project="/srv/project"),
        **options,
    )


def plain(stream: io.StringIO, **options: Any) -> Controls:
    """Return the controls of lines on a stream."""
    return Controls(plain_on(stream, **options), verbosity=Verbosity.NORMAL)


def test_events_pass_unchanged() -> None:
    """Every event passes on as the same object, shown or not, followed by completion."""
    bench = bench_of()
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
    seen: list[str] = []
    output = with_printer(plain(stream), RunPrinter, stamps=False)
    rx.of(PLANNING, PING).pipe(output).subscribe(lambda _: seen.append(stream.getvalue()))
    assert seen == ["\n[Planning] Starting...\n"] * 2


@pytest.mark.parametrize("bell", [True, False])
def test_bell_rings_unless_disabled(bell: bool) -> None:
    """A line that needs a person rings the bell, unless it is disabled."""
    stream = io.StringIO()
    output = with_printer(plain(stream, bell=True), RunPrinter, bell=bell)
    rx.of(WAITING).pipe(output).run()
    assert "Backlog empty" in stream.getvalue()
    assert bell == ("\a" in stream.getvalue())


# Lines


def test_lines_have_the_time_of_their_event() -> None:
    """Without a terminal each line has a time stamp and none is empty; a message may have many."""
    stream = io.StringIO()
    at = datetime(2026, 11, 23, 9, 5, 7, tzinfo=UTC)
    local = at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    output = with_printer(plain(stream), RunPrinter, clock=lambda: at)
    two = ev.AgentMessage(text="First.\n\nSecond.\n")
    rx.of(PLANNING, two, ev.PlanComplete(content="a\nb"), CALL).pipe(output).run()
    assert [
        f"{local} [Planning] Starting...",
        f"{local} First.",
        f"{local} Second.",
        f"{local} [Planning] 0s",
        f"{local} [PLAN_COMPLETE] a",
        f"{local} b",
        f"{local} ▶ Bash: cat /srv/project/a.py",
    ] == stream.getvalue().splitlines()


def test_words_are_wrapped_behind_the_time() -> None:
    """On a terminal words are wrapped and indented behind the time of the day."""
    bench = bench_of(stamps=True, screen=Screen(40))
    shown = bench.show(
        ev.AgentMessage(text="one two three four five six seven eight 漢字漢字 nine")
    )
    stamp = bench.now.astimezone().strftime("%H:%M:%S")
    assert [
        f"{stamp} one two three four five six",
        "         seven eight 漢字漢字 nine",
    ] == shown


@pytest.mark.parametrize("verbosity", list(Verbosity))
def test_words_of_the_agent_are_shown(verbosity: Verbosity) -> None:
    """The agent's own words need no `--verbose`; those of its sub-agents do."""
    bench = bench_of(verbosity=verbosity)
    sub = ev.AgentMessage(text="by a sub-agent", parent_tool_use_id="t")
    shown = bench.show(ev.MessageDelta(text="thinking", message_id="m"), PROSE, sub)
    expected = {
        Verbosity.QUIET: [],
        Verbosity.NORMAL: ["thinking aloud"],
        Verbosity.VERBOSE: ["thinking aloud", "by a sub-agent"],
    }
    assert expected[verbosity] == shown


PRINTERS = [RunPrinter, DeliverPrinter, LoopPrinter]
of_each_loop = pytest.mark.parametrize("printer", PRINTERS)


@of_each_loop
def test_paths_are_relative_to_the_project(printer: Callable[..., Printer]) -> None:
    """Paths in the project are shown without it."""
    outside = ev.ToolCall(name="Read", input={"file_path": "/srv/projects/b"}, id="t2")
    shown = Bench(partial(printer, project="/srv/project")).show(CALL, outside)
    assert ["▶ Bash: cat a.py", "▶ Read: /srv/projects/b"] == shown


@of_each_loop
def test_failed_tool_calls_are_marked(printer: Callable[..., Printer]) -> None:
    """A failed tool call has a line with its name and reason; other results have none."""
    failed = ev.ToolResult(name="t1", output="\ncat: /srv/project/a.py: no\nmore", is_error=True)
    bench = Bench(partial(printer, project="/srv/project"))
    shown = bench.show(CALL, failed, CALL, ev.ToolResult(name="t1", output="fine"))
    assert ["▶ Bash: cat a.py", "✗ Bash failed: cat: a.py: no", "▶ Bash: cat a.py"] == shown


@of_each_loop
def test_a_wait_is_printed_once(printer: Callable[..., Printer]) -> None:
    """A wait that is reported again is only counted down, also after a heartbeat."""
    wait = ev.QuotaWaiting(remaining=60)
    bench = Bench(printer)
    assert 1 == len(bench.show(wait, PING, wait))
    assert 3 == len(bench.show(ev.QuotaLifted(waited=60), wait))


@pytest.mark.parametrize("printer", PRINTERS[1:])
def test_loop_lines_are_not_repeated(printer: Callable[..., Printer]) -> None:
    """Failed sessions, limits and stalls appear only in the loop's own lines."""
    outcomes: tuple[ev.SessionOutcome, ...] = ("failed", "quota", "budget", "interrupted")
    assert [] == Bench(printer).show(
        *(ev.SessionEnded(outcome=outcome) for outcome in outcomes),
        ev.RateLimited(status="rejected"),
        ev.NoProgress(kind="unchanged", agents=3, action="stop"),
    )


def test_denied_tool_calls_are_reported_once() -> None:
    """The failure of a call that the guard denied is not repeated."""
    denied = ev.GuardDenied(tool="Bash", tool_use_id="t1", part="rm -rf /", reason="No.")
    shown = bench_of().show(CALL, denied, ev.ToolResult(name="t1", output="No.", is_error=True))
    assert ["▶ Bash: cat a.py", "[Guard] Denied Bash: rm -rf / (No.)"] == shown


def test_verbose_shows_the_output_of_failed_calls() -> None:
    """With `--verbose` the mark precedes the numbered output."""
    bench = bench_of(verbosity=Verbosity.VERBOSE)
    shown = bench.show(CALL, ev.ToolResult(name="t1", output="no", is_error=True))
    assert ["▶ Bash: cat a.py", "✗ Bash failed", "    1→no"] == shown


def test_quiet_shows_no_tool_calls() -> None:
    """With `--quiet` neither calls nor their failures are shown."""
    bench = bench_of(verbosity=Verbosity.QUIET)
    shown = bench.show(PLANNING, CALL, ev.ToolResult(name="t1", output="no", is_error=True))
    assert ["[Planning] Starting..."] == shown


def test_the_end_of_a_stage_has_its_duration_and_cost() -> None:
    """Duration and cost are in one line, or the duration alone where no cost is reported."""
    bench = bench_of()
    cost = ev.StageCost(phase="planning", duration=61, cost_usd=0.5, total_cost=1.5)
    shown = bench.show(PLANNING, cost, ev.PlanComplete(content="x"))
    assert ["[Planning] 1m 1s, $0.50 (run total $1.50)", "[PLAN_COMPLETE] x"] == shown[1:]
    bench.at(10, PLANNING)
    bench.clock.advance_to(22)
    assert ["[Planning] 12s", "[PLAN_COMPLETE] y"] == bench.show(ev.PlanComplete(content="y"))[-2:]


def test_the_total_of_a_watch() -> None:
    """The items of a watch share a total."""
    cost = ev.StageCost(phase="planning", cost_usd=0.5, total_cost=1.5)
    shown = bench_of().show(ev.WatchProcessingItem(filename="1.md"), PLANNING, cost)
    assert "[Planning] $0.50 (watch total $1.50)" == shown[-1]


# Status


def test_the_status_follows_the_run() -> None:
    """The status has item, iteration, stage, running tool, time and cost."""
    bench = bench_of(opening=STARTED)
    assert ["Login page", " Working..."] == [
        row[at:] for row, at in zip(bench.rows_at(0)[:2], (0, 1), strict=True)
    ]
    bench.at(1, PLANNING)
    bench.source.on_next(CALL)
    bench.source.on_next(ev.SessionEnded(outcome="completed", cost_usd=0.5))
    bench.source.on_next(ev.CheckCommandStarted(iteration=1, command="pytest -q"))
    rows = bench.rows_at(73)
    assert ["Login page · iteration 1 · plan · claude", "▶ Check pytest -q  1m 12s"] == rows[:2]
    assert rows[2].strip() == "1m 13s · $0.50 of $5.00"


def test_silence_is_counted() -> None:
    """Without a running tool the time since the last event is shown; pings do not count."""
    bench = bench_of()
    bench.at(1, PLANNING)
    assert bench.rows_at(8.52)[-2].endswith("Working... (7s)")
    bench.at(8.54, PING)
    assert bench.rows_at(9.65)[-2].endswith("Working... (8s)")
    bench.at(10, PROSE)
    assert bench.rows_at(13.15)[-2].endswith("Working... (3s)")


def test_an_idle_watch_shows_no_work() -> None:
    """While a watch waits for items, nothing works."""
    bench = bench_of()
    bench.at(1, WAITING)
    assert bench.rows_at(90)[0] == "Waiting for work"
    assert not any("Working" in row for row in bench.rows_at(91))
    item = ev.WatchProcessingItem(filename="a.md", title="Login page", position=2, total=5)
    bench.at(300, item)
    assert bench.rows_at(310)[0] == "2 of 5: Login page"


def test_a_retry_is_counted_down() -> None:
    """A retry shows its number and the time that is left."""
    retry = ev.AgentRetry(reason="overloaded", message="529", attempt=1, max_retries=5, retry_in=8)
    bench = bench_of()
    bench.at(0, retry)
    assert bench.rows_at(3)[0] == "⏳ overloaded · retry 1 of 5 in 5s"


@pytest.mark.parametrize("end", ["complete", "error", "dispose"])
def test_the_end_erases_the_status(end: str) -> None:
    """However the stream ends, no status is left and the source is unsubscribed."""
    bench = bench_of()
    error = RuntimeError("broken")
    bench.at(1, PLANNING)
    assert bench.rows_at(2)
    bench.end(end, error)
    assert bench.rows_at(60) == []
    assert bench.screen.visible()[-1] == "[Planning] Starting..."
    assert {"complete": [None], "error": [error], "dispose": []}[end] == bench.ends
    assert bench.source.observers == []


def test_subscriptions_are_independent() -> None:
    """The operator shares no state between two subscriptions."""
    stream = io.StringIO()
    source = rx.of(WAITING).pipe(with_printer(plain(stream), RunPrinter, stamps=False))
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
    bench = bench_of(live=False, screen=Gone(60))
    for _ in range(5):
        bench.source.on_next(PLANNING)
    assert bench.heard == [PLANNING] * 3
    assert [type(end).__name__ for end in bench.ends] == ["BrokenPipeError"]
    assert bench.source.observers == []


# Keys


def keyed(send: Callable[[ev.Event], object] | None) -> Bench:
    bench = bench_of(send=send, has_keys=True, opening=STARTED)
    bench.at(1, ev.ImplementingStart(iteration=1))
    return bench


def test_keys_ask_the_run() -> None:
    """`p` pauses and continues, `q` stops, and a message steers."""
    asked: list[ev.Event] = []
    bench = keyed(asked.append)
    bench.controls.press("p", bench.now)
    assert bench.rows_at(1)[-1].startswith("Pauses after this stage")
    bench.show(ev.PauseAsked())
    assert bench.rows_at(1)[0] == "PAUSING after this stage"
    bench.show(ev.RunPaused())
    since = bench.now.astimezone().strftime("%H:%M")
    assert bench.rows_at(2)[0] == f"PAUSED since {since} · nothing runs"
    bench.controls.press("p", bench.now)
    bench.show(ev.ContinueAsked())
    bench.controls.steer("use ASCII", bench.now)
    bench.controls.press("q", bench.now)
    assert asked == [
        ev.PauseAsked(),
        ev.ContinueAsked(),
        ev.SteerAsked(text="use ASCII"),
        ev.StopAsked(),
    ]


def test_keys_are_named_in_the_last_row() -> None:
    """The last row names the keys that work."""
    bench = keyed(lambda _command: None)
    assert bench.rows_at(2)[-1].endswith("p pause  s steer  v more  q stop")
    bench.show(ev.PauseAsked())
    assert bench.rows_at(2)[-1].endswith("p continue  s steer  v more  q stop")
    bench.show(ev.StopAsked())
    assert bench.rows_at(2)[0] == "STOPPING after this stage"
    assert bench.rows_at(2)[-1].endswith("  v more")
    assert keyed(None).rows_at(2)[-1].endswith("  v more")


def test_detail_is_changed_while_the_run_works() -> None:
    """`v` shows all detail, then less again."""
    bench = keyed(None)
    bench.controls.press("v", bench.now)
    assert "All detail" in bench.rows_at(2)[-1]
    assert "    1→fine" in bench.show(CALL, ev.ToolResult(name="t1", output="fine"))
    bench.controls.press("v", bench.now)
    assert 1 == bench.show(CALL, ev.ToolResult(name="t1", output="fine")).count("    1→fine")
    assert "All detail" not in bench.rows_at(3)[-1]


def test_a_command_that_cannot_be_given_is_reported() -> None:
    """An error of the control folder is shown, and the run goes on."""

    def fail(_command: ev.Event) -> None:
        raise StorageError("write", "no space left")

    bench = keyed(fail)
    bench.controls.press("q", bench.now)
    assert bench.rows_at(1)[-1].startswith("Not asked: no space left")
    bench.at(20, PROSE)
    assert "Not asked" not in bench.rows_at(20)[-1]
    assert bench.ends == []


def test_nothing_is_shown_after_an_interrupt() -> None:
    """After Ctrl-C lines are still printed, but the status does not come back."""
    bench = keyed(None)
    bench.controls.be_still()
    assert "[Planning] Starting..." in bench.show(PLANNING)
    assert bench.rows_at(5) == []


# For users of the library


def test_what_is_no_event_is_not_printed() -> None:
    """The error says what to do."""
    texts: Any = rx.of("a text")
    with pytest.raises(TypeError, match=r"prints events .*, not str: put it before the operator"):
        cuggino.run(texts.pipe(cuggino_cli.with_cli_output()))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"verbosity": "loud"}, "verbosity must be one of quiet, normal, verbose, not 'loud'"),
        ({"color": "red"}, "color must be one of auto, always, never, not 'red'"),
    ],
)
def test_options_that_do_not_exist(options: dict[str, Any], sentence: str) -> None:
    """The error lists the values."""
    with pytest.raises(ValueError, match=sentence):
        cuggino_cli.with_cli_output(**options)


def test_any_stream_is_printed_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """`with_cli_output()` prints on standard output as it is at the subscription."""
    seen: list[ev.Event] = []
    stream = rx.of(PLANNING, PROSE, APPROVED).pipe(cuggino_cli.with_cli_output(stamps=False))
    assert capsys.readouterr().out == ""
    cuggino.run(stream, seen.append)
    assert [PLANNING, PROSE, APPROVED] == seen
    printed = capsys.readouterr().out
    assert "\n[Planning] Starting...\n" in printed
    assert "\033" not in printed
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        getattr(cuggino_cli, "nothing")  # noqa: B009 (mypy rejects the attribute)


def test_detail_and_color_are_chosen_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    """Messages are printed unless `quiet`, results with `verbose`, colors where wanted."""
    printed: list[str] = []
    levels: tuple[Literal["quiet", "normal", "verbose"], ...] = ("quiet", "normal", "verbose")
    for verbosity in levels:
        shown = cuggino_cli.with_cli_output(verbosity=verbosity, color="always", stamps=False)
        result = ev.ToolResult(name="t1", output="42 files")
        cuggino.run(rx.of(PLANNING, CALL, result, PROSE).pipe(shown))
        printed.append(capsys.readouterr().out)
    assert [False, True, True] == [PROSE.text in text for text in printed]
    assert [False, False, True] == ["42 files" in text for text in printed]
    assert all("\033[" in text for text in printed)
