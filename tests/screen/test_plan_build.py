"""The plan/build loop on a screen: its blocks, streamed text and lines."""

from __future__ import annotations

import io
from functools import partial
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cuggino import events as ev
from cuggino.events import (
    DeliverOutcome,
    Event,
    PlanBuildEnded,
    PlanBuildExit,
    PlanBuildSessionEnded,
)
from cuggino.runs.words import Words, words
from cuggino_cli.screen.fragments import Verbosity
from cuggino_cli.screen.printers import LoopPrinter
from cuggino_cli.screen.terminal import choose_color
from tests.vectors import not_followed, rows

from .live_lines import Bench
from .screen import Screen

BUILD = ev.PlanBuildPhaseStarted(phase="build", iteration=2)
VERIFY = ev.PlanBuildPhaseStarted(phase="verify", iteration=2)
CALL = ev.ToolCall(name="Bash", input={"command": "ls"})
OVER = ev.SessionEnded(outcome="completed")
HEADER = ["------------", "Mode: BUILD", "------------"]


def chunk(text: str, message: str | None = "m1", **fields: Any) -> ev.AgentMessage:
    return ev.AgentMessage(text=text, message_id=message, **fields)


def bench_of(
    *,
    live: bool = False,
    verbosity: Verbosity = Verbosity.NORMAL,
    columns: int = 60,
    errors: io.StringIO | None = None,
    color: bool = False,
    **options: Any,
) -> Bench:
    """Return a subscription to a plan/build loop."""
    return Bench(
        partial(LoopPrinter, **options),
        live=live,
        verbosity=verbosity,
        screen=Screen(columns),
        errors=errors,
        color=color,
    )


def test_chunks_are_written_as_they_come() -> None:
    """Each chunk is written at once, without added newlines (LOP-081)."""
    bench = bench_of()
    assert "first " == bench.say(chunk("first "))
    assert "first second\n[b]third" == bench.say(chunk("second\n[b]th"), chunk("ird"))
    assert "first second\n[b]third\n" == bench.say(OVER)
    assert "first second\n[b]third\n" == bench.say(OVER)


def test_each_message_begins_a_line() -> None:
    """Parts of one message continue its line; other messages and our lines start a new one."""
    bench = bench_of()
    bench.say(chunk("a"), chunk("b", "m2"), chunk("c", None), chunk("d\n", None))
    bench.say(chunk("e"), CALL, chunk("f"), BUILD)
    expected = ["a", "b", "c", "d", "e", "▶ Bash: ls", "f", *HEADER]
    assert expected == bench.screen.getvalue().splitlines()


@given(st.lists(st.text(alphabet="ab\r\n\x1b\u202e\x9b[", max_size=4), max_size=8))
def test_parts_add_up_to_the_message(parts: list[str]) -> None:
    """Any split of a message gives the same output, and nothing in it is active."""
    whole, cut = bench_of(), bench_of()
    whole.say(chunk("".join(parts)), OVER)
    cut.say(*map(chunk, parts), OVER)
    text = cut.screen.getvalue()
    assert whole.screen.getvalue() == text
    assert not {"\x1b", "\u202e", "\x9b", "\r"} & set(text)
    assert text == "" or text.endswith("\n")


def test_unstreamed_answer_comes_at_the_end() -> None:
    """Without streaming the whole answer is printed when the session has ended."""
    bench = bench_of(stream=False)
    assert "▶ Bash: ls\n" == bench.say(chunk("a"), CALL, chunk("b"), chunk("c", "m2"))
    assert "▶ Bash: ls\nab\nc\n" == bench.say(OVER)
    bench.say(chunk("cut off"), ev.PlanBuildEnded(reason="interrupted"))
    assert "cut off" in bench.screen.getvalue().splitlines()


@pytest.mark.parametrize("verbosity", list(Verbosity))
def test_subagent_text_needs_verbose(verbosity: Verbosity) -> None:
    """Text of subagents and verifiers needs `--verbose`; `--quiet` hides all text."""
    bench = bench_of(verbosity=verbosity)
    bench.say(chunk("own"), chunk("part", "m2", parent_tool_use_id="t"), OVER)
    text = bench.say(VERIFY, chunk("judged", "m3"), OVER, BUILD, chunk("again", "m4"), OVER)
    shown = [word for word in ("own", "part", "judged", "again") if word in text.splitlines()]
    expected = {
        Verbosity.QUIET: [],
        Verbosity.NORMAL: ["own", "again"],
        Verbosity.VERBOSE: ["own", "part", "judged", "again"],
    }
    assert expected[verbosity] == shown


def test_iteration_output() -> None:
    """The work is shown between the blocks, in the required wording."""
    bench = bench_of()
    bench.say(BUILD, ev.JobsCounted(open=2, done=1, blocked=1, next_job="J2: bake"))
    bench.say(
        ev.ToolCall(name="Task", input={}), ev.SubAgentStarted(name="tester", description="try")
    )
    bench.say(
        ev.SubAgentEnded(name="tester"), ev.ToolCall(name="Write"), ev.FileTouched(path="a.py")
    )
    bench.say(ev.CommitSeen(commit_hash="abc1234", subject="feat: bread"))
    bench.say(VERIFY, ev.BuildVerified(passed=True), VERIFY)
    bench.say(ev.JobVerified(job_id="J2", description="bake", passed=True))
    bench.say(ev.JobsCounted(open=2, done=1, blocked=1, next_job="J2: bake"))
    bench.say(ev.PlanBuildIterationEnded(iteration=2))
    assert [
        *HEADER,
        "Jobs: 3 open (1 blocked), 1 done",
        "Next: J2: bake",
        "[sub-agent] tester: try",
        "[sub-agent] done",
        "[file] a.py",
        "[commit] abc1234 feat: bread",
        *("------------", "Mode: VERIFY", "------------"),
        "Build verified",
        "Job verified: J2: bake",
        *("-" * 30, "Completed iteration 2", "-" * 30),
    ] == bench.screen.getvalue().splitlines()


def test_warnings_go_to_standard_error() -> None:
    """Failures do not go to standard output, but end its partial line."""
    errors = io.StringIO()
    bench = bench_of(errors=errors)
    bench.say(chunk("half"), ev.PlanBuildWarning(message="look out"))
    bench.say(ev.PlanBuildSessionRetry(attempt=1, max_retries=3, message="broken"))
    bench.say(ev.BuildVerified(passed=False, issues=("no test", "two\nlines")))
    bench.say(ev.JobVerified(job_id="J", description="d", passed=False, issues=("no test",)))
    bench.say(ev.JobBlocked(job_id="J", description="d", failures=3))
    bench.say(ev.DoneFileRejected(reason="1 job is not done"))
    bench.say(ev.GuardDenied(tool="Bash", tool_use_id="t", part="rm x", reason="No."))
    bench.say(ev.PlanBuildEnded(reason="interrupted"))
    assert [
        "look out",
        "broken",
        "Session error (1/3), starting new session...",
        "Build verification failed",
        "  - no test",
        "  - two",
        "    lines",
        "Job verification failed: J: d",
        "  - no test",
        "Job blocked: J: d (its verification failed 3 times)",
        "lopen.loop.done removed: 1 job is not done",
        "[Guard] Denied Bash: rm x (No.)",
        "Loop cancelled by user.",
    ] == errors.getvalue().splitlines()
    assert "half\nOverall: 0 iteration(s). " in bench.screen.getvalue()


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("all", ["hm", "▶ Read", "[file] a", "look out", "lost"]),
        ("info", ["▶ Read", "[file] a", "look out", "lost"]),
        ("error", ["lost"]),
    ],
)
def test_log_levels(level: str, expected: list[str]) -> None:
    """A level hides less important lines; progress and agent text stay (LOP-032)."""
    bench = bench_of(verbosity=Verbosity.VERBOSE, log_level=level)
    bench.say(BUILD, ev.Thinking(text="hm"), ev.ToolCall(name="Read"), ev.FileTouched(path="a"))
    bench.say(ev.PlanBuildWarning(message="look out"), chunk("words"), OVER)
    bench.say(ev.PlanBuildEnded(reason="failed", error="lost"))
    text = bench.screen.getvalue()
    wanted = ("hm", "▶ Read", "[file] a", "look out", "lost")
    assert expected == [word for word in wanted if word in text]
    assert all(word in text for word in ("Mode: BUILD", "words", "Overall: "))


def test_status_stays_below_the_lines() -> None:
    """The status follows the loop: its iteration, its phase, and how long the agent is silent."""
    bench = bench_of(live=True)
    bench.say(BUILD)
    *lines, silence, _totals = bench.seen_at(2.5)
    assert ([*HEADER, "iteration 2 · build"], " Working... (2s)") == (lines, silence[1:])
    bench.say(CALL)
    assert "▶ Bash ls  3s" == bench.seen_at(5.5)[-2]
    bench.say(ev.JobsCounted(open=2, done=1))
    assert "iteration 2 · 1/3 done · build" == bench.seen_at(6)[-3]


def test_wait_counts_down_below_the_lines() -> None:
    """A wait is printed once and counts down below the lines."""
    bench = bench_of(live=True)
    wait = ev.QuotaWaiting(remaining=3600)
    bench.say(wait, wait)
    lines = bench.seen_at(10)
    assert "[Agent] Waiting for the usage limit, 1h 0m left" == lines[0]
    assert lines[1].startswith("⏳ Usage limit")
    assert lines[1].endswith("in 59m 50s")


@pytest.mark.parametrize("end", ["complete", "error", "dispose"])
def test_no_partial_line_is_left(end: str) -> None:
    """However the run ends, the last line is complete and nothing is drawn or scheduled."""
    bench = bench_of(live=True)
    bench.say(BUILD, chunk("half a line"))
    bench.clock.advance_to(3)
    bench.end(end, RuntimeError("broken"))
    assert bench.screen.getvalue().endswith("half a line\n")
    assert [*HEADER, "half a line"] == bench.seen_at(60)
    assert (0, []) == (bench.scheduled(), bench.source.observers)


def test_forty_columns() -> None:
    """On 40 columns the blocks and the status keep to their lines."""
    bench = bench_of(live=True, columns=40)
    bench.say(BUILD, chunk("words " * 20), OVER, ev.PlanBuildIterationEnded(iteration=2))
    lines = bench.seen_at(1.05)
    block = ["-" * 30, "Completed iteration 2", "-" * 30]
    assert (HEADER, block) == (lines[:3], lines[-6:-3])
    assert ("2 · build", " Working... (1s)") == (lines[-3], lines[-2][1:])


def test_colors() -> None:
    """With colors the blocks stand out and agent text is unchanged."""
    bench = bench_of(color=True)
    text = bench.say(BUILD, chunk("words"), OVER)
    assert "\x1b[1m------------\nMode: BUILD\n------------\x1b[0m\nwords\n" == text


def lines(event: Event) -> tuple[Words, ...]:
    """Return the sentences of the event."""
    spoken = words(event)
    return spoken.lines if spoken is not None else ()


@pytest.mark.parametrize(
    ("reason", "error", "expected"),
    [
        ("complete", "", ("success", "Loop complete! All jobs finished.")),
        ("planned", "", ("success", "Planning complete.")),
        ("blocked", "", ("error", "Loop stopped: every open job is blocked")),
        ("blocked", "J1, J2", ("error", "Loop stopped: J1, J2")),
        ("max_iterations", "", ("caution", "Loop stopped: max iterations reached")),
        ("quota_exceeded", "x", ("error", "Loop stopped: usage limit reached: x")),
        ("budget_exceeded", "x", ("error", "Loop stopped: budget exceeded: x")),
        ("max_retries_exceeded", "x", ("error", "Loop stopped: too many errors in a row: x")),
        ("stalled", "x", ("error", "Loop stopped: no progress: x")),
        ("interrupted", "", ("warning", "Loop cancelled by user.")),
        ("failed", "x", ("error", "Loop stopped: x")),
        ("failed", "", ("error", "Loop stopped: Unknown error")),
    ],
)
def test_ends(reason: PlanBuildExit, error: str, expected: tuple[str, str]) -> None:
    """Each end has its own text with the reason."""
    end, _ = lines(PlanBuildEnded(reason=reason, error=error, iterations=1))
    assert expected == (end.tone, end.text)


@pytest.mark.parametrize(("iterations", "expected"), [(0, True), (1, False)])
def test_existing_done_file_explains_how_to_restart(iterations: int, expected: bool) -> None:
    """A loop that ended before its first session prints why and how to start over."""
    event = PlanBuildEnded(reason="complete", iterations=iterations)
    texts = [line.text for line in lines(event)]
    assert expected == ("lopen.loop.done exists; nothing to do (use --fresh to remove it)" in texts)
    assert "Loop complete! All jobs finished." in texts


@pytest.mark.parametrize(("still_open", "blocked"), [(1, 0), (0, 1)])
def test_an_end_while_jobs_are_open(still_open: int, blocked: int) -> None:
    """A loop that its done file has ended does not say that all jobs are finished."""
    end = PlanBuildEnded(reason="complete", iterations=1, open=still_open, blocked=blocked)
    first = lines(end)[0]
    expected = ("caution", "Loop ended by lopen.loop.done: not all jobs are done")
    assert expected == (first.tone, first.text)


def test_summary_counts_blocked_jobs_as_open() -> None:
    """Blocked jobs count as open."""
    event = PlanBuildEnded(
        reason="blocked", iterations=4, open=1, blocked=2, done=3, cost_usd=1.25, duration=3725
    )
    expected = "Overall: 4 iteration(s). Jobs: 3 open (2 blocked), 3 done. "
    assert f"{expected}cost=$1.2500, duration=1h 2m 5s" == lines(event)[-1].text
    estimate = event.model_copy(update={"cost_estimated": True})
    assert f"{expected}cost=~$1.2500, duration=1h 2m 5s" == lines(estimate)[-1].text


@pytest.mark.parametrize(
    ("outcome", "fields", "expected"),
    [
        ("completed", {"cost_usd": 0.5}, ["Session: cost=$0.5000, duration=12s"]),
        (
            "completed",
            {"cost_usd": 0.5, "cost_estimated": True},
            ["Session: cost=~$0.5000, duration=12s"],
        ),
        ("completed", {}, ["Session: duration=12s"]),
        ("max_turns", {}, ["Session ended: turn limit reached", "Session: duration=12s"]),
        ("budget", {"message": "all spent"}, ["Session ended: all spent", "Session: duration=12s"]),
        ("error", {"message": "lost"}, []),
        ("interrupted", {}, []),
    ],
)
def test_sessions(outcome: DeliverOutcome, fields: dict[str, Any], expected: list[str]) -> None:
    """A session prints its duration and cost; a later line reports failures."""
    event = PlanBuildSessionEnded(
        iteration=1, phase="build", outcome=outcome, duration=12, **fields
    )
    assert expected == [line.text for line in lines(event)]


ROWS = {row["id"]: row for row in rows("lopen_output")}


class Stream(io.StringIO):
    """A stream that is optionally a terminal."""

    def __init__(self, *, tty: bool) -> None:
        super().__init__()
        self._tty = tty

    def isatty(self) -> bool:
        return self._tty


def text(event: ev.Event) -> str:
    """Return the sentence of the event."""
    spoken = words(event)
    assert spoken is not None
    return spoken.text


def answer(call: dict[str, Any]) -> object:
    """Return the result of a case's call, or None if it is not implemented."""
    match call["fn"]:
        case "phase_header":
            return text(ev.PlanBuildPhaseStarted(iteration=1, phase=call["phase"].lower())) + "\n"
        case "iteration_complete":
            return text(ev.PlanBuildIterationEnded(iteration=call["n"])) + "\n"
        case "use_color":
            return choose_color("auto", Stream(tty=call["tty"]), call["env"])
        case _:
            return None


@pytest.mark.parametrize("case", ROWS)
def test_recorded_output(case: str) -> None:
    """Each case gives its recorded result or is listed with a reason."""
    row = ROWS[case]
    followed = case not in not_followed("lopen_output")
    assert followed == (row["expected"] == answer(row["call"]))


def test_job_counts() -> None:
    """Open and done jobs are counted, and blocked ones if there are any."""
    assert "Jobs: 2 open, 0 done" == text(ev.JobsCounted(open=2, done=0))
    counted = ev.JobsCounted(open=1, blocked=1, done=3)
    assert "Jobs: 2 open (1 blocked), 3 done" == text(counted)


def test_build_verification_lines() -> None:
    """Success is one line; a failure adds one for each issue, with continuation lines below."""
    assert "Build verified" == text(ev.BuildVerified(passed=True, issues=("never shown",)))
    expected = "Build verification failed\n  - one\n  - two\n    lines"
    assert expected == text(ev.BuildVerified(passed=False, issues=("one", "two\nlines\n")))
