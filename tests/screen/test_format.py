"""The verbosity that shows each event, and texts without a recorded case."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cuggino import events as ev
from cuggino_cli.screen.format import format_event
from cuggino_cli.screen.fragments import Fragment, Verbosity, paint
from tests.vectors import each

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
    ),
)
FROM_NORMAL = (
    ev.ToolCall,
    ev.LlmMarkerEvent,
    ev.CheckCommandOutput,
    ev.SetupCommandOutput,
    ev.CommandStartedEvent,
    ev.CommitPerformed,
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


def test_a_command_that_starts() -> None:
    """The start of a command shows its first line, so that a long one does not look like a hang."""
    started = [
        kind(iteration=1, command="make test\n  -j2")
        for kind in (ev.SetupCommandStarted, ev.CheckCommandStarted)
    ]
    assert ["[Setup] Running: make test", "[Check] Running: make test"] == [
        plain(event, Verbosity.NORMAL) for event in started
    ]


def test_a_server_that_does_not_start() -> None:
    """A warning names the server, at every verbosity."""
    failed = ev.McpServerFailed(server="playwright")
    expected = "[Agent] MCP server playwright did not start"
    assert {expected} == {plain(failed, verbosity) for verbosity in Verbosity}


def test_unknown_event_shows_nothing() -> None:
    """An event of a newer version shows nothing."""
    assert plain(ev.UnknownEvent(raw={"_tag": "Later"})) is None


@pytest.mark.parametrize(
    ("expected", "exit_code"),
    [
        ("[Setup] Completed (exit 0)", 0),
        ("[Setup] Failed (exit 7)", 7),
        ("[Setup] Completed", None),
    ],
)
def test_command_summary(expected: str, exit_code: int | None) -> None:
    """By default a command shows as one line with its result."""
    event = ev.SetupCommandOutput(iteration=1, output="much", exit_code=exit_code)
    assert expected == plain(event, Verbosity.NORMAL)


def test_failed_check_shows_below_its_output() -> None:
    """A failed command reports it below its output, in the failure color."""
    event = ev.CheckCommandOutput(iteration=1, output="boom", exit_code=2)
    expected = [
        Fragment("command", "[Check] Output:\nboom"),
        Fragment("plain", "\n"),
        Fragment("failure", "[Check] Failed (exit 2)"),
    ]
    assert expected == format_event(event, verbosity=Verbosity.VERBOSE)


def test_passed_check_shows_its_output_alone() -> None:
    """A successful command adds nothing to its output."""
    event = ev.CheckCommandOutput(iteration=1, output="fine", exit_code=0, file_path="/w/c.txt")
    assert plain(event) == "[Check] Output:\nfine"


@pytest.mark.parametrize(
    ("expected", "exit_code", "file_path"),
    [
        ("[Check] Output: /w/c.txt", None, "/w/c.txt"),
        ("[Check] Output: /w/c.txt (exit 1)", 1, "/w/c.txt"),
        ("[Check] Failed (exit 1)", 1, None),
        ("[Check] Output:\n", None, None),
    ],
)
def test_command_without_output(
    expected: str, exit_code: int | None, file_path: str | None
) -> None:
    """Without output, the file and the exit code are shown if known."""
    event = ev.CheckCommandOutput(iteration=1, exit_code=exit_code, file_path=file_path)
    assert expected == plain(event)


def test_approval_blocked() -> None:
    """A blocked approval shows the exit code of the check, if there is one."""
    assert [plain(ev.ApprovalBlocked(iteration=1, exit_code=code)) for code in (2, None)] == [
        "\n[Loop] Approval does not count: the check exited with 2",
        "\n[Loop] Approval does not count: the check failed",
    ]


def test_task_limit() -> None:
    """The task limit is shown with its number."""
    assert (
        plain(ev.TaskLimitReached(iteration=1, max_tasks=50)) == "\n[Loop] Task limit (50) reached"
    )


def test_thinking_is_dim() -> None:
    """Thinking is shown like prose."""
    shown = format_event(ev.Thinking(text="hm"), verbosity=Verbosity.VERBOSE)
    assert [Fragment("prose", "[Thinking] hm")] == shown


@pytest.mark.parametrize(
    ("expected", "event"),
    [
        (
            "[Agent] Usage limit reached (five_hour), resets 2026-01-02 03:04 UTC",
            ev.RateLimited(
                status="rejected",
                limit="five_hour",
                resets_at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
            ),
        ),
        ("[Agent] Usage limit near", ev.RateLimited(status="allowed_warning")),
    ],
)
def test_rate_limit(expected: str, event: ev.RateLimited) -> None:
    """A rate limit is always shown, with its reset time if known."""
    assert [expected] * 3 == [plain(event, level) for level in Verbosity]


def test_denied_call_always_shows() -> None:
    """A denied call is always shown, with the first line of the reason."""
    bash = ev.GuardDenied(tool="Bash", tool_use_id="t", part="rm\n-r x", reason="No `rm`.\nMore.")
    write = ev.GuardDenied(tool="Write", tool_use_id="t", part="Write /a", reason="Not there.")
    expected = ["[Guard] Denied Bash: rm -r x (No `rm`.)", "[Guard] Denied Write /a (Not there.)"]
    for level in Verbosity:
        assert expected == [plain(bash, level), plain(write, level)]


def test_session_cost() -> None:
    """A session's cost shows in full output; its stage's cost shows by default."""
    full = ev.SessionEnded(outcome="completed", cost_usd=0.01234, num_turns=3, duration=12.7)
    free = ev.SessionEnded(outcome="completed", cost_usd=0.0, num_turns=1)
    expected = ["[Agent] $0.0123, 3 turns, 12s", "[Agent] $0.0000, 1 turn"]
    assert expected == [plain(event, Verbosity.VERBOSE) for event in (full, free)]
    assert [plain(event, Verbosity.NORMAL) for event in (full, free)] == [None, None]
    cost = ev.StageCost(phase="planning", cost_usd=0.01234, total_cost=0.5)
    assert "[Planning] $0.0123 (run total $0.5000)" == plain(cost, Verbosity.NORMAL)


def test_session_without_cost() -> None:
    """A successful session of unknown cost shows only in full output."""
    timed = ev.SessionEnded(outcome="completed", duration=90)
    bare = ev.SessionEnded(outcome="completed")
    assert [plain(timed), plain(bare)] == ["[Agent] 1m 30s", "[Agent] Session completed"]
    assert plain(timed, Verbosity.NORMAL) is None


@pytest.mark.parametrize(
    ("expected", "outcome"),
    [
        ("[Agent] Session failed ($0.5000)", "failed"),
        ("[Agent] Session interrupted ($0.5000)", "interrupted"),
        ("[Agent] Session ended: turn limit reached ($0.5000)", "max_turns"),
        ("[Agent] Session ended: budget spent ($0.5000)", "budget"),
        ("[Agent] Session ended: usage limit reached ($0.5000)", "quota"),
    ],
)
def test_failed_session_always_shows(expected: str, outcome: ev.SessionOutcome) -> None:
    """A failed session shows its outcome at every verbosity."""
    event = ev.SessionEnded(outcome=outcome, cost_usd=0.5)
    assert [expected] * 3 == [plain(event, level) for level in Verbosity]


def test_output_is_cut_after_it_is_made_inert() -> None:
    """A cut never splits a line ending: CRLF counts as one newline."""
    event = ev.CheckCommandOutput(iteration=1, output="a\r\n" * 250 + "b")
    assert plain(event) == "[Check] Output:\n" + "a\n" * 250 + "..."


def test_tool_result_with_crlf() -> None:
    """Lines that end with CRLF are numbered like any others."""
    assert plain(ev.ToolResult(name="t", output="a\r\nb")) == "    1→a\n    2→b"


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


def test_a_watch_waits_for_pull_requests() -> None:
    """The backlog is not called empty while items are proposed."""
    for count, what in ((1, "a pull request"), (3, "3 pull requests")):
        fragments = format_event(ev.WatchBacklogWaiting(proposals=count), verbosity=Verbosity.QUIET)
        assert fragments is not None
        assert f"[Watch] Waiting for {what}, or for new items..." == paint(fragments, color=False)


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


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (ev.AgentNudged(idle=None, tool=None), "[Agent] Stage timeout: resuming its session"),
        (
            ev.AgentNudged(tool="Bash", repeated=20),
            "[Agent] called Bash 20 times with the same result: resuming its session",
        ),
        (
            ev.AgentReplaced(tool="Bash", repeated=20),
            "[Agent] called Bash 20 times with the same result: starting a fresh agent",
        ),
        (ev.AgentReplaced(idle=None, tool=None), "[Agent] Stage timeout: starting a fresh agent"),
        (
            ev.AgentNudged(idle=90.0, tool="Bash"),
            "[Agent] silent for 1m 30s while Bash runs: resuming",
        ),
        (
            ev.AgentReplaced(idle=90.0, tool=None),
            "[Agent] silent for 1m 30s: starting a fresh agent",
        ),
    ],
)
def test_a_stalled_agent(event: ev.Event, text: str) -> None:
    """The message names the limit that was reached: silence, or the time of the stage."""
    shown = format_event(event, verbosity=Verbosity.QUIET)
    assert shown is not None
    assert "".join(fragment.text for fragment in shown).startswith(text)


def test_snapshots() -> None:
    """Files left out of a snapshot are shown; the snapshot itself only with `--verbose`."""
    taken = ev.SnapshotTaken(stage="coding-1", ref="r", commit="c")
    assert plain(taken, Verbosity.VERBOSE) == "[Snapshot] coding-1"
    assert format_event(taken, verbosity=Verbosity.NORMAL) is None
    left = taken.model_copy(update={"left_out": (("video", "60 MB"), ("key", "unreadable"))})
    assert plain(left, Verbosity.QUIET) == "[Snapshot] Without video (60 MB), key (unreadable)"
    failed = ev.SnapshotFailed(stage="coding-1", message="no space")
    assert plain(failed, Verbosity.QUIET) == "[Snapshot] None before coding-1: no space"


def test_the_sandbox() -> None:
    """Confined agents are worth a line, roles that are not confined a warning."""
    chosen = ev.SandboxChosen(engine="bubblewrap+overlay", held=("planning", "implementing"))
    assert format_event(chosen, verbosity=Verbosity.QUIET) is None
    told = "[Sandbox] bubblewrap+overlay confines planning, implementing"
    assert plain(chosen, Verbosity.NORMAL) == told
    some = ev.SandboxChosen(
        engine="landlock", held=("planning",), not_held=("build",), reason="not installed"
    )
    told = "[Sandbox] landlock confines planning, not build (not installed)"
    assert plain(some, Verbosity.QUIET) == told
    none = ev.SandboxChosen(engine="none", held=(), not_held=("build",), reason="why")
    told = "Nothing confines the agents; changes beyond their roles are put back (why)"
    assert plain(none, Verbosity.QUIET) == f"[Sandbox] {told}"


def test_dirty_files() -> None:
    """Files of a person that stay out of commits, or do not, are named, at most five."""
    kept = ev.DirtyFilesKept(paths=tuple("abcdefg"))
    assert plain(kept, Verbosity.QUIET) == (
        "[Commit] Uncommitted before the run, so left out of commits: a, b, c, d, e and 2 more"
    )
    mixed = ev.DirtyFilesCommitted(paths=("a", "b"))
    assert plain(mixed, Verbosity.QUIET) == (
        "[Commit] The next commit holds your own uncommitted changes, too: a, b"
    )


def test_a_rewritten_history() -> None:
    """The lost commit is named."""
    assert plain(ev.HistoryRewritten(base="a" * 40, head=None), Verbosity.QUIET) == (
        "[Loop] The commit that the run began with, aaaaaaaaaaaa, is no longer in the history"
    )


def test_contradictory_markers() -> None:
    """All markers are shown, and the one that counts."""
    event = ev.ContradictoryMarkers(
        phase="reviewing",
        counted="REQUEST_CHANGES",
        markers=(("APPROVED", "ok"), ("REQUEST_CHANGES", "a\nb")),
    )
    assert plain(event, Verbosity.QUIET) == (
        "[Agent] Contradictory markers, REQUEST_CHANGES counts (APPROVED: ok; REQUEST_CHANGES: a b)"
    )
