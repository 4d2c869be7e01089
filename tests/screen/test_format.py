"""Recorded and other texts of events, and the verbosity that shows each."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.events import AgentMessage, Event, MessageDelta, PingEvent, UnknownEvent, parse_event
from cuggino_cli.follow.output import OutputOptions
from cuggino_cli.screen.format import format_event
from cuggino_cli.screen.fragments import Fragment, Verbosity, paint
from cuggino_cli.screen.status import spinner_line
from tests.vectors import each, not_followed, rows, snake

from .samples import all_event_types, sample

VERBOSE_ONLY = (
    *(
        ev.AgentMessage,
        ev.SystemMessage,
        ev.UserMessage,
        ev.Thinking,
        ev.ToolResult,
        ev.SessionEnded,
    ),
    *(
        ev.DeliverablesListed,
        ev.SnapshotTaken,
        ev.VerificationEnded,
        ev.ContinueAsked,
        ev.PlanWritten,
        ev.QuotaUsed,
    ),
)
FROM_NORMAL = (
    ev.ToolCall,
    ev.LlmMarkerEvent,
    ev.Baseline,
    ev.CheckCommandOutput,
    ev.CheckVerdict,
    ev.SetupCommandOutput,
    ev.CommandStartedEvent,
    ev.CommitPerformed,
    ev.Forecast,
    ev.PushPerformed,
    ev.StageCost,
    ev.SandboxChosen,
    ev.Steered,
    *(
        ev.JobsCounted,
        ev.PlanBuildSessionEnded,
        ev.SubAgentStarted,
        ev.SubAgentEnded,
        ev.FileTouched,
        ev.CommitSeen,
    ),
)
NEVER = (ev.PingEvent, ev.MessageDelta, ev.UsageUpdate, ev.JournalEvent)


def plain(event: ev.Event, verbosity: Verbosity = Verbosity.VERBOSE) -> str | None:
    fragments = format_event(event, verbosity=verbosity)
    return None if fragments is None else paint(fragments, color=False)


@each("cls", all_event_types())
def test_every_event_is_handled(cls: type[ev.Event]) -> None:
    """At full verbosity every event shows, except heartbeats and journal events."""
    assert (not issubclass(cls, NEVER)) == bool(plain(sample(cls)))


@each("cls", all_event_types())
def test_least_verbosity(cls: type[ev.Event]) -> None:
    """An event shows from its level on: prose last, tool calls and results by default."""
    least = Verbosity.QUIET
    if issubclass(cls, VERBOSE_ONLY):
        least = Verbosity.VERBOSE
    elif issubclass(cls, FROM_NORMAL):
        least = Verbosity.NORMAL
    levels = [level for level in Verbosity if plain(sample(cls), level) is not None]
    assert ([] if issubclass(cls, NEVER) else [v for v in Verbosity if v >= least]) == levels


ALL, DEFAULT, FULL = list(Verbosity), [Verbosity.NORMAL], [Verbosity.VERBOSE]
QUIET = [Verbosity.QUIET]

ENDED = ev.SessionEnded(outcome="completed", cost_usd=0.01234, num_turns=3, duration=12.7)
FREE = ev.SessionEnded(outcome="completed", cost_usd=0.0, num_turns=1)
TIMED = ev.SessionEnded(outcome="completed", duration=90)
TAKEN = ev.SnapshotTaken(stage="coding-1", ref="r", commit="c")
HELD = ev.SandboxChosen(engine="bubblewrap+overlay", held=("planning", "implementing"))
RESETS = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def setup(code: int | None) -> ev.Event:
    return ev.SetupCommandOutput(iteration=1, output="much", exit_code=code)


def check(output: str = "", code: int | None = None, file: str | None = None) -> ev.Event:
    return ev.CheckCommandOutput(iteration=1, output=output, exit_code=code, file_path=file)


def ended(outcome: ev.SessionOutcome) -> ev.Event:
    return ev.SessionEnded(outcome=outcome, cost_usd=0.5)


def nudged(**fields: Any) -> ev.Event:
    return ev.AgentNudged(**fields)


def replaced(**fields: Any) -> ev.Event:
    return ev.AgentReplaced(**fields)


@each(
    "levels, event, text",
    [
        (ALL, ev.UnknownEvent(raw={"_tag": "Later"}), None),
        # The start of a command, so that a long one does not look like a hang.
        (DEFAULT, ev.SetupCommandStarted(iteration=1, command="a\nb"), "[Setup] Running: a"),
        (DEFAULT, ev.CheckCommandStarted(iteration=1, command="a\nb"), "[Check] Running: a"),
        # One line with the result; in full the output, or its file and the exit code.
        (DEFAULT, setup(0), "[Setup] Completed (exit 0)"),
        (DEFAULT, setup(7), "[Setup] Failed (exit 7)"),
        (DEFAULT, setup(None), "[Setup] Completed"),
        (FULL, check("fine", 0, "/w/c.txt"), "[Check] Output:\nfine"),
        (FULL, check(file="/w/c.txt"), "[Check] Output: /w/c.txt"),
        (FULL, check("", 1, "/w/c.txt"), "[Check] Output: /w/c.txt (exit 1)"),
        (FULL, check("", 1), "[Check] Failed (exit 1)"),
        (FULL, check(), "[Check] Output:\n"),
        # CRLF is one line ending, also where an output is cut.
        (FULL, check("a\r\n" * 250 + "b"), "[Check] Output:\n" + "a\n" * 250 + "..."),
        (FULL, ev.ToolResult(name="t", output="a\r\nb"), "    1→a\n    2→b"),
        (
            FULL,
            ev.WatchCandidate(
                filename="a.md", slot=1, commit="0123456789", base="b", attempt=1, approved=False
            ),
            "[Watch] Not approved, so it does not land: a.md (0123456)",
        ),
        # The loop.
        (
            FULL,
            ev.ApprovalBlocked(iteration=1, exit_code=2),
            "\n[Loop] Approval does not count: the check exited with 2",
        ),
        (
            FULL,
            ev.ApprovalBlocked(iteration=1, exit_code=None),
            "\n[Loop] Approval does not count: the check failed",
        ),
        (
            QUIET,
            ev.ImprovementsKept(iteration=1, findings=("x",), filenames=("a.md",), approves=True),
            "[Loop] 1 improvement that no specification demands, kept in .cuggino/tbd: a.md; the "
            "review counts as an approval",
        ),
        (
            QUIET,
            ev.ImprovementsKept(iteration=1, findings=("x", "y")),
            "[Loop] 2 improvements that no specification demands",
        ),
        (
            FULL,
            ev.Forecast(loop="run", runs=4, duration=90, worst_duration=7200),
            "[Forecast] Usually takes 1m 30s; at most 2h 0m in the last 4 runs",
        ),
        (
            FULL,
            ev.CheckFlaky(iteration=1, tests=("test_a",)),
            "[Check] Flaky: failed, then passed on the same files: test_a",
        ),
        (QUIET, ev.HandsStarted(iteration=1, hands=4, tasks=8), "[Loop] 4 hands for 8 tasks"),
        (
            QUIET,
            ev.HandsStarted(iteration=1, hands=1, tasks=1, notes=("task-1.1: `attempts: 0`",)),
            "[Loop] 1 hand for 1 task\n[Loop] task-1.1: `attempts: 0`",
        ),
        (
            QUIET,
            ev.HandsEnded(iteration=1, landed=("task-1.1",), undone={"task-1.2": "skipped"}),
            "[Loop] 1 task landed; task-1.2 did not: skipped",
        ),
        (QUIET, ev.HandsEnded(iteration=1, landed=("a", "b")), "[Loop] 2 tasks landed"),
        (
            FULL,
            ev.TaskLeft(iteration=1, filename="task-1.2", reason="skipped"),
            "[Loop] Left undone: task-1.2: skipped",
        ),
        (
            FULL,
            ev.TaskLimitReached(iteration=1, max_tasks=50),
            "\n[Loop] Task limit (50) reached",
        ),
        (
            QUIET,
            ev.BranchChanged(before=None, after="mine"),
            "[Commit] The branch changed from no branch to mine; commits go there from now on",
        ),
        (
            QUIET,
            ev.HistoryRewritten(base="a" * 40, head=None),
            "[Loop] The commit that the run began with, aaaaaaaaaaaa, is no longer in the history",
        ),
        (
            QUIET,
            ev.ContradictoryMarkers(
                phase="reviewing",
                counted="REQUEST_CHANGES",
                markers=(("APPROVED", "ok"), ("REQUEST_CHANGES", "a\nb")),
            ),
            "[Agent] Contradictory markers, REQUEST_CHANGES counts"
            " (APPROVED: ok; REQUEST_CHANGES: a b)",
        ),
        (
            QUIET,
            ev.ApprovalQuestioned(objections=("it is introduced as a draft", 'more "text"\n')),
            '[Agent] The approval is questioned: it is introduced as a draft; more "text"',
        ),
        (
            QUIET,
            ev.StageInferred(phase="implementing", counted="PROGRESS"),
            "[Agent] Ended without a marker; its files count as PROGRESS",
        ),
        (
            QUIET,
            nudged(no_marker=True),
            "[Agent] Ended without a marker: resuming its session",
        ),
        (
            QUIET,
            replaced(no_marker=True),
            "[Agent] Ended without a marker: starting a fresh agent",
        ),
        # What an agent reports at every verbosity: limits, denials and failures.
        (
            ALL,
            ev.McpServerFailed(server="playwright"),
            "[Agent] MCP server playwright did not start",
        ),
        (
            ALL,
            ev.RateLimited(status="rejected", limit="five_hour", resets_at=RESETS),
            "[Agent] Usage limit reached (five_hour), resets 2026-01-02 03:04 UTC",
        ),
        (ALL, ev.RateLimited(status="allowed_warning"), "[Agent] Usage limit near"),
        (FULL, ev.RateLimited(status="allowed"), "[Agent] Usage limit not reached"),
        (
            ALL,
            ev.RateLimited(status="rejected", limit="five_hour", overage=True),
            "[Agent] Usage limit reached (five_hour), extra usage is paid for",
        ),
        # A window that is nearly used up shows by default, each change in detail.
        *(
            (
                levels,
                ev.QuotaUsed(
                    window="five_hour", used=0.85, resets_at=RESETS, agent=agent, nearly=nearly
                ),
                f"[Agent] {name}five_hour 85 % used, resets 2026-01-02 03:04 UTC",
            )
            for levels, agent, name, nearly in (
                (DEFAULT, "claude", "claude: ", True),
                (FULL, "", "", False),
            )
        ),
        (
            ALL,
            ev.QuotaWaiting(remaining=90, resets_at=RESETS, message="kept", planned=True),
            "[Agent] Waiting until 2026-01-02 03:04 UTC, 1m 30s left: kept",
        ),
        (
            ALL,
            ev.GuardDenied(tool="Bash", tool_use_id="t", part="rm\n-r x", reason="No `rm`.\nMore."),
            "[Guard] Denied Bash: rm -r x (No `rm`.)",
        ),
        (
            ALL,
            ev.GuardDenied(tool="Write", tool_use_id="t", part="Write /a", reason="Not there."),
            "[Guard] Denied Write /a (Not there.)",
        ),
        (ALL, ended("failed"), "[Agent] Session failed ($0.50)"),
        (ALL, ended("interrupted"), "[Agent] Session interrupted ($0.50)"),
        (ALL, ended("max_turns"), "[Agent] Session ended: turn limit reached ($0.50)"),
        (ALL, ended("budget"), "[Agent] Session ended: budget spent ($0.50)"),
        (ALL, ended("quota"), "[Agent] Session ended: usage limit reached ($0.50)"),
        # The cost of a session in full, that of its stage by default.
        (FULL, ENDED, "[Agent] $0.01, 3 turns, 12s"),
        (FULL, FREE, "[Agent] $0.00, 1 turn"),
        (FULL, TIMED, "[Agent] 1m 30s"),
        (FULL, ev.SessionEnded(outcome="completed"), "[Agent] Session completed"),
        *((DEFAULT, event, None) for event in (ENDED, FREE, TIMED)),
        (
            DEFAULT,
            ev.StageCost(phase="planning", cost_usd=0.01234, total_cost=0.5),
            "[Planning] $0.01 (run total $0.50)",
        ),
        (
            DEFAULT,
            ev.StageCost(
                phase="planning",
                cost_usd=1.5,
                cost_estimated=True,
                total_cost=2,
                total_estimated=True,
            ),
            "[Planning] ~$1.50 (run total ~$2.00)",
        ),
        (
            ALL,
            ev.BudgetWarning(budget="cost", spent=4.1, limit=5, estimated=True),
            "[Budget] 82% of the cost spent: ~$4.10 of $5.00",
        ),
        (
            ALL,
            ev.BudgetWarning(budget="tokens", spent=8e3, limit=1e4, count_tokens="weighted"),
            "[Budget] 80% of the tokens spent: 8,000 of 10,000 weighted tokens",
        ),
        (
            ALL,
            ev.CostUnknown(agent="codex", model="gpt-x"),
            "[Budget] Unknown cost: codex reports no dollars, and the price of its model "
            '"gpt-x" is unknown',
        ),
        (
            FULL,
            ev.SessionEnded(outcome="completed", cost_usd=0.5, cost_estimated=True),
            "[Agent] ~$0.50",
        ),
        # A watch that waits for pull requests does not call its backlog empty.
        (
            QUIET,
            ev.WatchBacklogWaiting(proposals=1),
            "[Watch] Waiting for a pull request, or for new items...",
        ),
        (
            QUIET,
            ev.WatchBacklogWaiting(proposals=3),
            "[Watch] Waiting for 3 pull requests, or for new items...",
        ),
        # Files left out of a snapshot; the snapshot itself only in full.
        (FULL, TAKEN, "[Snapshot] coding-1"),
        (DEFAULT, TAKEN, None),
        (
            QUIET,
            TAKEN.model_copy(update={"left_out": (("video", "60 MB"), ("key", "unreadable"))}),
            "[Snapshot] Without video (60 MB), key (unreadable)",
        ),
        (
            QUIET,
            ev.SnapshotFailed(stage="coding-1", message="no space"),
            "[Snapshot] Not taken before coding-1: no space",
        ),
        # Confined agents are worth a line, roles that are not confined a warning.
        (QUIET, HELD, None),
        (DEFAULT, HELD, "[Sandbox] bubblewrap+overlay confines planning, implementing"),
        (
            QUIET,
            ev.SandboxChosen(
                engine="landlock", held=("planning",), not_held=("build",), reason="not installed"
            ),
            "[Sandbox] landlock confines planning, not build (not installed)",
        ),
        (
            QUIET,
            ev.SandboxChosen(engine="none", held=(), not_held=("build",), reason="why"),
            "[Sandbox] Nothing confines the agents; changes beyond their roles are put back (why)",
        ),
        # Files of a person that stay out of commits, or do not, at most five by name.
        (
            QUIET,
            ev.DirtyFilesKept(paths=tuple("abcdefg")),
            "[Commit] Uncommitted before the run, so left out of commits: a, b, c, d, e and 2 more",
        ),
        (
            QUIET,
            ev.DirtyFilesCommitted(paths=("a", "b")),
            "[Commit] The next commit will include your uncommitted changes: a, b",
        ),
    ],
)
def test_texts(levels: list[Verbosity], event: ev.Event, text: str | None) -> None:
    """An event has this text at these verbosities; None is no line."""
    assert [text] * len(levels) == [plain(event, level) for level in levels]


@each(
    "event, text",
    [
        (nudged(idle=None, tool=None), "Stage timeout: resuming its session"),
        (
            nudged(tool="Bash", repeated=20),
            "called Bash 20 times with the same result: resuming its session",
        ),
        (
            replaced(tool="Bash", repeated=20),
            "called Bash 20 times with the same result: starting a fresh agent",
        ),
        (replaced(idle=None, tool=None), "Stage timeout: starting a fresh agent"),
        (nudged(idle=90.0, tool="Bash"), "silent for 1m 30s while Bash runs: resuming"),
        (replaced(idle=90.0, tool=None), "silent for 1m 30s: starting a fresh agent"),
    ],
)
def test_a_stalled_agent(event: ev.Event, text: str) -> None:
    """The message names the limit that was reached: silence, or the time of the stage."""
    assert (plain(event, Verbosity.QUIET) or "").startswith(f"[Agent] {text}")


def test_failed_check_shows_below_its_output() -> None:
    """A failed command reports it below its output, in the failure color."""
    event = ev.CheckCommandOutput(iteration=1, output="boom", exit_code=2)
    expected = [
        Fragment("quiet", "[Check] Output:\nboom"),
        Fragment("plain", "\n"),
        Fragment("failure", "[Check] Failed (exit 2)"),
    ]
    assert expected == format_event(event, verbosity=Verbosity.VERBOSE)


def test_thinking_is_dim() -> None:
    """Thinking is shown like prose."""
    shown = format_event(ev.Thinking(text="hm"), verbosity=Verbosity.VERBOSE)
    assert [Fragment("quiet", "[Thinking] hm")] == shown


def test_marker_stands_between_empty_lines() -> None:
    """A marker is surrounded by blank lines, and only its tag is colored."""
    fragments = format_event(ev.Progress(content="one"), verbosity=Verbosity.NORMAL)
    expected = [
        Fragment("plain", "\n"),
        Fragment("progress", "[PROGRESS]"),
        Fragment("plain", " one\n"),
    ]
    assert expected == fragments


def test_bell_follows_the_colors_unless_set() -> None:
    """The bell follows the colors unless it is switched on or off explicitly."""
    fragments = format_event(ev.WatchBacklogWaiting(), verbosity=Verbosity.QUIET)
    assert fragments is not None
    text = "[Watch] Backlog empty, waiting for new items..."
    colored = f"\x1b[2m{text}\x1b[0m"
    assert f"{colored}\x07" == paint(fragments, color=True)
    assert colored == paint(fragments, color=True, bell=False)
    assert text == paint(fragments, color=False)
    assert f"{text}\x07" == paint(fragments, color=False, bell=True)


def test_retry_shows_its_delay() -> None:
    """Retries of agents and backlog items show a short delay to the tenth of a second."""
    retry = sample(ev.AgentRetry).model_copy(update={"retry_in": 1.5})
    item = sample(ev.WatchItemRetry).model_copy(update={"retry_in": 1.5})
    for event in (retry, item):
        assert "again in 1.5s" in (plain(event) or "")
    login = item.model_copy(update={"login": True})
    assert "[Watch] Log in to continue (tried again every 1.5s" in (plain(login) or "")
    stalled = item.model_copy(update={"review": "the findings"})
    assert "once more with its findings" in (plain(stalled) or "")


Row = dict[str, Any]

VERBOSITY = {None: Verbosity.VERBOSE, True: Verbosity.VERBOSE, False: Verbosity.NORMAL}


ROWS = rows("cuggino_output", 142)
NOT_FOLLOWED = not_followed("cuggino_output")


def _answer(row: Row) -> str | None:
    if row["kind"] == "spinner":
        return spinner_line(row["index"], row["elapsed_s"])
    fields = {snake(key): value for key, value in row["event"].items()}
    event = parse_event(json.dumps(fields))
    if isinstance(event, UnknownEvent):
        return f"unknown event {event.tag}"
    fragments = format_event(event, verbosity=VERBOSITY[row.get("verbose")])
    return None if fragments is None else paint(fragments, color=True)


@each("row", [row for row in ROWS if row["id"] not in NOT_FOLLOWED])
def test_recorded_output(row: Row) -> None:
    """A recorded event gives its recorded text, escape codes included."""
    assert row["output"] == _answer(row)


@pytest.mark.parametrize("name", sorted(NOT_FOLLOWED))
def test_rows_not_followed(name: str) -> None:
    """A row listed as not followed exists and does give another result."""
    row = next(row for row in ROWS if row["id"] == name)
    assert row["output"] != _answer(row)


SAID: tuple[Event, ...] = (
    PingEvent(timestamp=1.0),
    MessageDelta(text="Go", message_id="m"),
    AgentMessage(text="Go", message_id="m"),
)


@pytest.mark.parametrize(
    ("verbose", "expected"),
    [
        (False, ["PingEvent", "AgentMessage"]),
        (True, ["PingEvent", "MessageDelta", "AgentMessage"]),
    ],
)
def test_partial_events_need_verbose(
    verbose: bool, expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each event is one line; partial messages are printed only with `--verbose`."""
    output = OutputOptions(verbose=verbose, quiet=False, json=True, color="auto")
    for event in SAID:
        output.write_json(event)
    lines = capsys.readouterr().out.splitlines()
    assert expected == [json.loads(line)["_tag"] for line in lines]
