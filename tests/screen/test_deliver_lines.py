"""Lines of the deliverables loop, also with --debug: the recorded ones and others."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.domain.deliverable_tools import TOOLS_OF, agent_tool
from cuggino.prompts.deliver import choose_instruction, is_planning, load_instruction
from cuggino.prompts.overriding import RUN
from cuggino.runs.words import Words, full_duration, quota_wait_words
from cuggino_cli.follow.views import autonoe_code
from cuggino_cli.screen.deliver_debug import debug_line, received, sent_line
from cuggino_cli.screen.format import fragments_of, lines_of
from cuggino_cli.screen.fragments import Fragment, Verbosity, paint
from cuggino_cli.screen.panel import activity_line
from cuggino_cli.screen.printers import COMPLAINTS, DeliverPrinter
from cuggino_cli.screen.text import clip
from tests.vectors import each, not_followed, rows

from .live_lines import Bench

Row = dict[str, Any]

ROWS = {row["id"]: row for row in rows("autonoe_misc", 53)}
NOT_FOLLOWED = not_followed("autonoe_misc")
_OUTCOMES = {"quota_exceeded": "quota", "budget_exceeded": "budget", "max_iterations": "max_turns"}


def line(tone: Any, text: str) -> Words:
    return Words("", text, tone)


def shown(event: ev.DeliverEvent, verbosity: Verbosity = Verbosity.NORMAL) -> list[Words]:
    return lines_of(event, verbosity)


def closing(event: ev.DeliverEnded) -> Words | None:
    """Return the last line, below an empty one."""
    lines = shown(event)
    return lines[3] if len(lines) > 3 else None


def changed(status: Any, name: str = "id", text: str = "text") -> list[Words]:
    event = ev.DeliverableStatusChanged(
        deliverable_id=name, description=text, previous="pending", status=status
    )
    return shown(event)


def ended(given: Row) -> ev.DeliverEnded:
    """Return the end event that a row describes."""
    total: int = given.get("total", 0)
    return ev.DeliverEnded(
        reason=given.get("exit_reason", "all_passed"),
        sessions=given.get("iterations", 0),
        passed=given.get("passed", 0),
        total=total,
        blocked=given.get("blocked", 0),
        verified=given.get("verified"),
        to_verify=given.get("verified_total", total),
        cost_usd=given.get("cost", 0.0),
        duration=given.get("duration_ms", 0) / 1000,
        max_iterations=given.get("max_iterations"),
        max_retries=given.get("max_retries", 3),
        sync=given.get("command") == "sync" or "verified" in given,
        error="{error}",
    )


def _session_end(given: Row) -> Row:
    message = given.get("message", "\n".join(given.get("messages", ())))
    outcome: Any = _OUTCOMES.get(given["outcome"], given["outcome"])
    *lines, _took = shown(ev.DeliverSessionEnded(session=1, outcome=outcome, message=message))
    return {
        "level": lines[0].tone if lines else None,
        "messages": [one.text for one in lines],
    }


def _answer(row: Row, folder: Path) -> Row:
    given = row["input"]
    match row["kind"]:
        case "status_icon":
            return {"icon": changed(given["status"])[0].text.split(" ")[0]}
        case "status_change_line":
            (status,) = changed(given["status"], given["id"], given["description"])
            return {"level": status.tone, "message": status.text}
        case "result_line":
            last = closing(ended(given))
            return {
                "level": last.tone if last else None,
                "message": last.text if last else None,
                "exit_code": autonoe_code(ended(given)),
            }
        case "termination_line":
            reason = shown(ended(given))[0]
            return {"level": reason.tone, "message": reason.text}
        case "session_line":
            event = ev.DeliverSessionEnded(
                session=given["n"],
                outcome="completed",
                cost_usd=given["cost"],
                duration=given["duration_ms"] / 1000,
            )
            return {"message": shown(event)[-1].text}
        case "overall_line" | "overall_line_sync":
            return {"message": shown(ended(given))[1].text}
        case "quota_wait_line":
            wait = quota_wait_words(ev.QuotaWaiting(remaining=given["duration_ms"] / 1000))
            return {"level": wait.tone, "message": wait.text}
        case "session_end_log":
            return _session_end(given)
        case "log_style":
            styled = fragments_of(line(given["level"], given["message"]))
            if given["level"] == "debug":
                styled = [Fragment("debug", f"[debug] {given['message']}")]
            stream = "stderr" if given["level"] in COMPLAINTS else "stdout"
            return {"stream": stream, "text": paint(styled, color=True)}
        case "activity_line":
            activity = f"Running {given['tool']}" if given["tool"] else given["activity"].title()
            seconds = given["elapsed_ms"] / 1000
            return {"line": activity_line(seconds, activity, given["tool_count"])}
        case "instruction_run":
            return {"name": choose_instruction(RUN, is_planned=given["status_exists"])}
        case "instruction_override":
            if given["exists"]:
                (folder / ".autonoe").mkdir()
                (folder / given["override_file"]).write_text(given["content"])
            tools: dict[str, str] = {tool: tool for tool in TOOLS_OF[given["name"]]}
            told = load_instruction(given["name"], folder, tools=tools)
            return {"content": told.text if told.is_override else "<builtin>"}
        case "tool_set":
            names = TOOLS_OF.get(given["instruction"], TOOLS_OF["coding"])
            return {"tools": list(names), "qualified": [agent_tool(name) for name in names]}
        case "model_selection":
            option = "plan_model" if is_planning(given["instruction"]) else "model"
            return {"option": option, "default": None}
        case kind:
            raise AssertionError(kind)


@pytest.mark.parametrize("name", ROWS)
def test_recorded_lines(name: str, tmp_path: Path) -> None:
    """A recorded line is printed as recorded, unless the row is listed as not followed."""
    row = ROWS[name]
    assert (row["expected"] == _answer(row, tmp_path)) == (name not in NOT_FOLLOWED)


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in rows("duration", 24)])
def test_recorded_durations(row: Row) -> None:
    """A recorded duration is formatted as recorded, without its zero parts."""
    assert row["expected"] == full_duration(row["ms"] / 1000)


def test_duration_is_never_negative() -> None:
    """A clock that was set back shows no negative duration."""
    assert "0s" == full_duration(-90)


@pytest.mark.parametrize(
    ("expected", "event"),
    [
        (
            [line("info", "Session 2 started")],
            ev.DeliverSessionStarted(session=2, instruction="sync"),
        ),
        (
            [line("warning", "Session error (1/3), starting new session...")],
            ev.DeliverSessionRetry(attempt=1, max_retries=3, message="broken"),
        ),
        ([line("warning", "look out")], ev.DeliverWarning(message="look out")),
        (
            [line("error", "Stream error: lost")],
            ev.DeliverSessionEnded(session=1, outcome="error", message="lost"),
        ),
        (
            [line("error", "Unknown error"), line("info", "Session 1: cost=$0.0000, duration=2s")],
            ev.DeliverSessionEnded(session=1, outcome="execution_error", duration=2.5),
        ),
        ([], ev.DeliverSessionEnded(session=1, outcome="interrupted")),
    ],
)
def test_session_lines_at_every_verbosity(expected: list[Words], event: ev.DeliverEvent) -> None:
    """Sessions are printed at every verbosity; an interrupted one has no known cost."""
    assert [expected] * 3 == [
        [line(one.tone, one.text) for one in shown(event, level)] for level in Verbosity
    ]


@pytest.mark.parametrize("verbosity", list(Verbosity))
@pytest.mark.parametrize("words", [True, False])
def test_final_message_is_printed_once(verbosity: Verbosity, words: bool) -> None:
    """The agent's final message follows its session, unless it was already printed."""
    said = ev.AgentMessage(text="All\ndone.")
    end = ev.DeliverSessionEnded(session=1, outcome="completed", message="All\ndone.", cost_usd=1)
    texts = Bench(partial(DeliverPrinter, words=words), verbosity=verbosity).show(said, end)
    took = "Session 1: cost=$1.0000, duration=0s"
    assert texts == ([took] if verbosity == Verbosity.QUIET else ["All", "done.", took])


def test_a_message_that_was_not_printed() -> None:
    """A result that the agent reported without writing it as a message is printed."""
    end = ev.DeliverSessionEnded(session=1, outcome="completed", message="All done.")
    assert "All done." == Bench(DeliverPrinter).show(end)[0]


@pytest.mark.parametrize(
    ("reason", "error", "expected"),
    [
        (
            "budget_exceeded",
            "the budget of $1.00 is spent",
            ["Budget exceeded", "Session stopped: the budget of $1.00 is spent"],
        ),
        ("budget_exceeded", "", ["Budget exceeded", "Session stopped: budget exceeded"]),
        (
            "stalled",
            "3 sessions in a row changed nothing",
            [
                "No progress: 3 sessions in a row changed nothing",
                "Session stopped: no progress",
            ],
        ),
        (
            "failed",
            "claude is not installed",
            ["Another session cannot succeed", "Session stopped: claude is not installed"],
        ),
        ("all_verified", "", ["All 2 deliverables verified", "Session completed successfully"]),
    ],
)
def test_ends_without_a_recording(reason: ev.DeliverExit, error: str, expected: list[str]) -> None:
    """Ends that Autonoe does not have are printed in the same style."""
    event = ev.DeliverEnded(reason=reason, error=error, to_verify=2)
    first, overall, empty, last = shown(event)
    assert expected == [first.text, last.text]
    assert overall.text.startswith("Overall: ")
    assert "" == empty.text
    is_good = reason == "all_verified"
    assert [not is_good] * 2 == [one.tone in COMPLAINTS for one in (first, last)]


def test_fully_verified_sync_has_one_line() -> None:
    """A sync that verified everything prints only the overall line."""
    lines = shown(ev.DeliverEnded(reason="all_verified", sync=True, verified=2, to_verify=2))
    assert [
        "All 2 deliverables verified",
        "Overall: 0 session(s), 2/2 verified, cost=$0.0000, duration=0s",
    ] == [one.text for one in lines]


def test_wait_quotes_the_agent() -> None:
    """A wait prints the agent's own limit message, then its length."""
    wait = quota_wait_words(ev.QuotaWaiting(remaining=3661, message="You've hit your limit"))
    assert [
        line("warning", "Quota exceeded: You've hit your limit"),
        line("info", "Quota exceeded, waiting 1h 1m 1s until reset..."),
    ] == [line(one.tone, one.text) for one in wait.lines]


EVENT_ROWS = {row["id"]: row for row in rows("event_format")}
_ENDS = {
    "completed": "completed",
    "execution_error": "execution_error",
    "max_iterations": "max_turns",
    "budget_exceeded": "budget",
    "quota_exceeded": "quota",
}


def event_of(raw: Row) -> ev.Event:
    """Convert one of Autonoe's events to ours."""
    match raw["type"]:
        case "stream_text":
            return ev.AgentMessage(text=raw["text"])
        case "stream_thinking":
            return ev.Thinking(text=raw["thinking"])
        case "stream_tool_invocation":
            return ev.ToolCall(name=raw["name"], input=raw["input"], id=raw.get("toolUseId", ""))
        case "stream_tool_response":
            return ev.ToolResult(
                name=raw["toolUseId"], output=raw["content"], is_error=raw["isError"]
            )
        case "stream_error":
            return ev.DeliverSessionEnded(session=1, outcome="error", message=raw["message"])
        case "stream_end":
            messages: str = "\n".join(raw.get("messages", ()))
            words: str = raw.get("result") or raw.get("message") or messages
            outcome: Any = _ENDS[raw["outcome"]]
            return ev.DeliverSessionEnded(session=1, outcome=outcome, message=words)
        case other:
            return ev.UnknownEvent(raw={"_tag": other})


@each("name", EVENT_ROWS)
def test_recorded_events(name: str) -> None:
    """A recorded event is printed as recorded, under its recorded kind."""
    row = EVENT_ROWS[name]
    if row["fn"] == "truncate":
        assert row["expected"] == clip(row["text"], row["max"])
        return
    found = received(event_of(row["event"]))
    assert found is not None
    assert (row["event"]["type"], row["expected"]) == found


def test_all_rows_are_followed() -> None:
    """The data has the recorded number of rows, and none is excluded."""
    assert (29, {}) == (len(EVENT_ROWS), not_followed("event_format"))


def test_debug_line_is_cut_to_200_characters() -> None:
    """A line marks the event as received, names its kind and is cut after 200 characters."""
    line = debug_line(ev.AgentMessage(text="a" * 201))
    assert f"[Recv] stream_text: {'a' * 200}..." == line


def test_json_is_compact_and_in_order() -> None:
    """Tool input is printed as compact JSON with ordered keys and no escaped characters."""
    line = debug_line(ev.ToolCall(name="Write", input={"b": "漢", "a": [1, None]}))
    expected = '[Recv] stream_tool_invocation: [tool: Write] {"b":"漢","a":[1,null]}'
    assert expected == line


def test_sent_instruction_is_cut_to_200_characters() -> None:
    """An instruction is printed with its first 200 characters."""
    assert f"[Send] {'x' * 200}..." == sent_line("x" * 300)


@pytest.mark.parametrize(
    ("expected", "event"),
    [
        ("[Recv] system: hello", ev.SystemMessage(text="hello")),
        ("[Recv] user: go on", ev.UserMessage(text="go on")),
        (
            "[Recv] stream_end: [session: interrupted]",
            ev.DeliverSessionEnded(session=1, outcome="interrupted"),
        ),
        (
            "[Recv] stream_end: [session: completed]",
            ev.DeliverSessionEnded(session=1, outcome="completed"),
        ),
    ],
)
def test_events_without_an_autonoe_kind(expected: str, event: ev.Event) -> None:
    """Other agent output is printed unchanged, and an end without text has none."""
    assert expected == debug_line(event)


@pytest.mark.parametrize(
    "event",
    [
        ev.PingEvent(timestamp=0),
        ev.SessionEnded(outcome="completed"),
        ev.RateLimited(status="rejected"),
        ev.GuardDenied(tool="Bash", tool_use_id="t", part="rm", reason="no"),
    ],
)
def test_events_with_their_own_line_are_not_repeated(event: ev.Event) -> None:
    """Heartbeats and events with their own line are not printed again."""
    assert debug_line(event) is None
