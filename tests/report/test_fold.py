"""Reports on runs, folded from their journals."""

from __future__ import annotations

import pytest

from cuggino import events as ev
from cuggino.report import CommitDiff, FileChange, build_report
from cuggino.report.fold import MOST_POINTS
from tests.report.journals import NAMES, START, after, begin, entries_of, report_of
from tests.vectors import each


@each(
    "name, state, message",
    [
        ("finished", "approved", ""),
        ("running", "killed", ""),
        ("killed", "killed", ""),
        ("resumed", "stalled", "The same findings came back three times."),
        ("failed", "failed", "Loop error in implementing phase: the key is not valid"),
        ("started", "killed", ""),
        ("unicode", "spec_issue", ""),
    ],
)
def test_state(name: str, state: str, message: str) -> None:
    """The state comes from the last process; without an end it was killed."""
    report = report_of(name)
    assert (state, message) == (report.state, report.message)


def test_every_journal_is_tested() -> None:
    """Every journal of the folder has a test."""
    known = ["failed", "finished", "killed", "resumed", "running", "started", "unicode"]
    assert known == NAMES


@pytest.mark.real_agent
def test_spending_of_a_long_run() -> None:
    """A long run keeps some moments of spending, in order, with the first and the last."""
    updates = [ev.UsageUpdate(usage=ev.Usage(input_tokens=n)) for n in range(1, 3 * MOST_POINTS)]
    spent = build_report(entries_of(begin("planning#1"), *updates)).spent
    assert MOST_POINTS // 2 <= len(spent) <= MOST_POINTS
    tokens = [point.usage.input_tokens for point in spent]
    assert sorted({*tokens}) == tokens
    assert 3 * MOST_POINTS - 1 == tokens[-1]
    assert tokens[0] <= 8


def test_running() -> None:
    """A running run and its open stage last until now."""
    report = report_of("running", running_at=after(600))
    assert "running" == report.state
    assert after(600) == report.end == report.stages[-1].end
    assert "running" == report.stages[-1].ending
    assert 600 == report.worked


def test_lagging_clock() -> None:
    """A current time before the last entry counts as the time of that entry."""
    entries = entries_of(begin("planning#1"), ev.AgentMessage(text="hello"))
    assert after(2) == build_report(entries, running_at=after(1)).end


def test_ended_run_is_not_running() -> None:
    """A recorded end takes precedence over a live process."""
    assert "approved" == report_of("finished", running_at=after(10_000)).state


def test_killed() -> None:
    """A torn line is reported, and the stage it cut off ends with the last whole line."""
    report = report_of("killed")
    assert report.torn
    assert "unfinished" == report.stages[-1].ending
    assert report.stages[-1].end == report.end


def test_counts() -> None:
    """Iterations, tasks, agents, cost and tokens are the totals of the run."""
    totals = report_of("resumed").totals
    assert (1, 2, 4) == (totals.rounds, totals.tasks, totals.agents)
    assert totals.cost_usd == pytest.approx(1.75)


def test_processes() -> None:
    """Each process has its time and end; the time between them is not counted."""
    report = report_of("resumed")
    first, second = report.processes
    assert ("killed", "stalled") == (first.state, second.state)
    assert "cuggino run --resume" == second.command
    assert 3600 == (second.start - first.end).total_seconds()
    whole = (report.end - report.start).total_seconds()
    assert report.worked == pytest.approx(whole - 3600)


def test_only_started() -> None:
    """A journal of one line gives an empty report."""
    report = report_of("started")
    assert "watch" == report.kind
    assert START == report.start == report.end
    assert (0, 0.0) == (len(report.stages), report.worked)
    assert () == report.spent + report.tools + report.commits + report.notices


def test_no_journal() -> None:
    """A file that does not start like a journal is rejected."""
    for entries in ((), entries_of(ev.AgentMessage(text="hello"))[1:]):
        with pytest.raises(ValueError, match="begins with RunStarted"):
            build_report(entries)


def test_commits() -> None:
    """A commit has its push and its changes; one without a diff is gone from the repository."""
    diff = CommitDiff((FileChange("login.py", 3, 1),))
    first, second = report_of("resumed", diffs={"1111111": None, "2222222": diff}).commits
    assert (None, True, None) == (first.diff, first.gone, first.pushed_to)
    assert (diff, False, "origin/main") == (second.diff, second.gone, second.pushed_to)
    assert (3, 1) == (diff.added, diff.deleted)
    assert "Task 1\n\nWith a test." == first.message
    assert [False, False] == [commit.gone for commit in report_of("finished").commits]


def test_repeated_commit_counts_once() -> None:
    """A stage killed after its commit records the commit again when it is repeated."""
    made = ev.CommitPerformed(iteration=1, commit_hash="1111111", message="work")
    stage = "commit#1"
    entries = entries_of(
        begin(stage), (stage, made), ev.RunContinued(), begin(stage), (stage, made)
    )
    (commit,) = build_report(entries).commits
    assert after(2) == commit.at


def test_commands() -> None:
    """Setups and checks keep their exit code and output."""
    commands = [
        (c.kind, c.iteration, c.exit_code, c.output) for c in report_of("finished").commands
    ]
    assert [
        ("setup", 1, 0, "Installed 3 packages\n"),
        ("check", 1, 1, "1 failed"),
        ("check", 1, 0, "OK"),
    ] == commands


def test_findings() -> None:
    """Findings of reviewers are kept in order, with their resolution."""
    found = [(f.kind, f.tone, f.stage) for f in report_of("resumed").findings]
    assert [("Changes requested", "warning", "reviewing#9"), ("Stalled", "bad", None)] == found
    (approval,) = report_of("finished").findings
    assert ("Approved", "Matches the specification.") == (approval.kind, approval.text)


def test_review_file() -> None:
    """The review file is shown beside its marker, unless they are equal."""
    marker = ("reviewing#1", ev.RequestChanges(content="No test."))
    written = [
        ("review-text#2", ev.StageFinished(outcome={"value": text}))
        for text in ("# Review\n\n1. No test for a wrong password.", "No test.\n", "")
    ]
    texts = [[f.text for f in build_report(entries_of(marker, text)).findings] for text in written]
    assert [["No test.", "# Review\n\n1. No test for a wrong password."]] == texts[:1]
    assert [["No test."], ["No test."]] == texts[1:]


def test_items() -> None:
    """A watch counts its completed items."""
    done = ev.WatchItemCompleted(filename="a.md")
    assert 2 == build_report(entries_of(done, done, ev.RunEnded(state="ended"))).items


def test_unicode() -> None:
    """Text is unchanged."""
    report = report_of("unicode")
    assert "Añade inicio de sesión 🔑 – 登录\u202e" == report.focus
    assert "„Passwort“ oder „Kennwort“?" == report.findings[0].text
