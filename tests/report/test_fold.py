"""Reports folded from journals: the run, its stages, plans, diffs and wording."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from datetime import timezone
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.report import (
    CommitDiff,
    FileChange,
    RunFold,
    RunReport,
    build_report,
    diff,
    render_part,
)
from cuggino.report.diffs import MOST, DiffParser
from cuggino.report.fold import MOST_POINTS
from cuggino.report.model import ToolUse
from cuggino.report.titles import shown_input
from cuggino.report.wording import duration, first_line, outcome
from cuggino.runs.words import counted
from tests.report.journals import NAMES, START, after, begin, entries_of, report_of
from tests.report.nights import PLAN
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


def test_roles_of_a_plan_build_loop() -> None:
    """Its phases are the roles, as in the statistics of runs; none is one of the small acts."""
    paid = ev.SessionEnded(outcome="completed", cost_usd=0.25)
    stages = ("plan#1", "build#2", "verify-build#3", "verify-job#4", "jobs#5")
    report = build_report(
        entries_of(*(one for name in stages for one in (begin(name), (name, paid))))
    )
    spent = {role.kind: (role.stages, role.cost_usd) for role in report.roles}
    assert {"plan": (1, 0.25), "build": (1, 0.25), "judge": (2, 0.5), "other": (1, 0.25)} == spent


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


ZONE = timezone.utc  # noqa: UP017


def tries(report: RunReport) -> list[tuple[str, str, int]]:
    """Return the attempts of stages, each with its outcome and attempt number."""
    return [(stage.stage, stage.ending, stage.attempt) for stage in report.stages]


def test_finished() -> None:
    """A finished stage has its outcome and lasts until it."""
    entries = entries_of(
        begin("planning#1"), ("planning#1", ev.StageFinished(outcome={"value": 1}))
    )
    (stage,) = build_report(entries).stages
    assert (after(1), after(2), 1.0) == (stage.start, stage.end, stage.seconds)
    assert ("finished", "planning", {"value": 1}) == (stage.ending, stage.kind, stage.outcome)


def test_resumed() -> None:
    """A repeated stage appears twice; the first attempt ended with its process."""
    report = report_of("resumed")
    assert [
        ("planning#1", "finished", 1),
        ("setup#2", "finished", 1),
        ("check#3", "finished", 1),
        ("implementing#4", "finished", 1),
        ("commit#5", "finished", 1),
        ("implementing#6", "repeated", 1),
        ("implementing#6", "finished", 2),
        ("commit#7", "finished", 1),
        ("push#8", "finished", 1),
        ("reviewing#9", "finished", 1),
    ] == tries(report)
    assert report.processes[0].end == report.stages[5].end


def test_cut_off() -> None:
    """A stage cut off by an error or a signal is unfinished."""
    entries = entries_of(begin("planning#1"), ev.RunEnded(state="interrupted"))
    assert [("planning#1", "unfinished", 1)] == tries(build_report(entries))
    assert "unfinished" == report_of("failed").stages[-1].ending


def test_not_repeated() -> None:
    """A stage that was cut off and not yet repeated is unfinished."""
    entries = entries_of(begin("planning#1"), ev.RunContinued())
    assert [("planning#1", "unfinished", 1)] == tries(build_report(entries))


def test_unknown_names() -> None:
    """A stage with another name belongs to the loop itself."""
    entries = entries_of(begin("head#1"), begin("audit#2"))
    assert ["other", "audit"] == [stage.kind for stage in build_report(entries).stages]


def test_cost_of_a_stage() -> None:
    """Each attempt has the cost of its sessions, including unfinished ones."""
    repeated, again = report_of("resumed").stages[5:7]
    assert (None, 400, 150) == (
        repeated.cost_usd,
        repeated.usage and repeated.usage.input_tokens,
        repeated.usage and repeated.usage.output_tokens,
    )
    assert (0.6, 1000) == (again.cost_usd, again.usage and again.usage.input_tokens)


@each("name", NAMES)
def test_last_point_is_the_total(name: str) -> None:
    """The lines of cost and tokens end at the totals of the run."""
    report = report_of(name)
    last = report.spent[-1] if report.spent else None
    assert (last and last.cost_usd) == pytest.approx(report.totals.cost_usd)
    assert (last and last.usage) == report.totals.usage


def test_lines_over_time() -> None:
    """A later value of a session replaces the earlier one; sessions add up."""
    entries = entries_of(
        begin("planning#1"),
        ("planning#1", ev.UsageUpdate(usage=ev.Usage(output_tokens=5))),
        ("planning#1", ev.UsageUpdate(usage=ev.Usage(output_tokens=8), cost_usd=0.125)),
        ("planning#1", ev.SessionEnded(outcome="completed", cost_usd=0.25)),
        ("planning#1", ev.StageFinished()),
        begin("audit#2"),
        ("audit#2", ev.UsageUpdate(usage=ev.Usage(output_tokens=2))),
        ev.RunContinued(),
        begin("audit#2"),
        (
            "audit#2",
            ev.SessionEnded(outcome="completed", cost_usd=0.5, usage=ev.Usage(output_tokens=1)),
        ),
    )
    assert [
        (after(2), None, 5),
        (after(3), 0.125, 8),
        (after(4), 0.25, 8),
        (after(7), 0.25, 10),
        (after(10), 0.75, 11),
    ] == [(p.at, p.cost_usd, p.usage.output_tokens) for p in build_report(entries).spent]


def test_snapshots() -> None:
    """A stage names the state before it."""
    ref = "refs/cuggino/snapshots/r1/planning-1"
    taken = ev.SnapshotTaken(stage="planning-1", ref=ref, commit="c")
    again = ev.SnapshotTaken(stage="planning-1", ref=f"{ref}-2", commit="d")
    ended = ev.StageFinished(outcome={"value": 1})
    entries = entries_of(
        begin("planning#1"),
        ("planning#1", taken),
        ("planning#1", again),
        ("planning#1", ev.AgentMessage(text="I plan.")),
        ("planning#1", ended),
        begin("check#2"),
        ("check#2", ended),
    )
    report = build_report(entries)
    assert ["r1/planning-1", ""] == [stage.snapshot for stage in report.stages]
    assert "<code>cuggino undo r1/planning-1</code>" in render_part("stages", report, zone=ZONE)
    without = build_report(entries_of(begin("check#1"), ("check#1", ended)))
    assert "Back to" not in render_part("stages", without, zone=ZONE)


def test_tools() -> None:
    """A call and its result pair by id within a stage; a call may have no result."""
    entries = entries_of(
        ("a#1", ev.ToolCall(name="Bash", id="1")),
        ("a#1", ev.ToolCall(name="Read", id="2")),
        ("b#2", ev.ToolResult(name="1", output="of another stage")),
        ("a#1", ev.ToolResult(name="1", output="", is_error=True)),
        ("a#1", ev.ToolResult(name="unknown", output="")),
        ("b#2", ev.ToolCall(name="Bash")),
        ("b#2", ev.ToolCall(name="Bash", id="3")),
        ("b#2", ev.ToolResult(name="3", output="")),
        ("b#2", ev.Done(content="")),
    )
    assert (
        ToolUse(name="Bash", calls=3, errors=1, unanswered=1, seconds=array("d", [1.0, 3.0])),
        ToolUse(name="Read", calls=1, unanswered=1, seconds=array("d")),
    ) == build_report(entries).tools


def ended(stage: str, outcome: ev.Event) -> tuple[str, ev.StageFinished]:
    """Return the end of a stage."""
    value: Any = {"_tag": outcome.tag, **outcome.model_dump()}
    return stage, ev.StageFinished(outcome=value)


def state_of(*said: Any) -> list[tuple[bool, bool, str | None]]:
    """Return the tasks of the latest plan: done, at work, commit."""
    plan = build_report(entries_of(ev.PlanWritten(iteration=1, text=PLAN), *said)).plans[-1]
    return [(task.is_done, task.is_at_work, task.commit) for task in plan.tasks]


def test_tasks_are_checked_off() -> None:
    """Each agent that ends with progress finishes a task; the next one is at work."""
    one, two = "implementing#1", "implementing#3"
    progress = [begin(one), ended(one, ev.Progress(content="a"))]
    commit = ("commit#2", ev.CommitPerformed(iteration=1, commit_hash="1111111", message="a"))
    assert [(False, False, None)] * 2 == state_of()
    assert [(False, True, None), (False, False, None)] == state_of(begin(one))
    assert [(True, False, None), (False, False, None)] == state_of(*progress)
    assert [(True, False, "1111111"), (False, True, None)] == state_of(
        *progress, commit, begin(two)
    )
    assert [True, True] == [one[0] for one in state_of(begin(one), ended(one, ev.Done(content="")))]


def test_repeated_plan_is_one() -> None:
    """A planning stage that was cut off and repeated writes one plan; a new one is another."""
    again = ev.PlanWritten(iteration=1, text=PLAN)
    later = ev.PlanWritten(iteration=2, text="## Task 1: more")
    report = build_report(entries_of(again, ev.RunContinued(), again, later))
    assert [1, 2] == [plan.iteration for plan in report.plans]
    shown = render_part("plan", report, zone=ZONE)
    assert "Plan, iteration 2" in shown
    assert "Plan of iteration 1" in shown
    assert "" == render_part("plan", build_report(entries_of()), zone=ZONE)


STAGE = "implementing#1"


def rows(*said: ev.Event) -> str:
    """Return the transcript of a stage with these events."""
    report = build_report(entries_of(begin(STAGE), *((STAGE, event) for event in said)))
    return render_part("stages", report, zone=ZONE)


def test_rows() -> None:
    """Messages are Markdown; calls are folded with their result; failures are marked."""
    shown = rows(
        ev.Thinking(text="hm"),
        ev.AgentMessage(text="I **do** it."),
        ev.AgentMessage(text="below", parent_tool_use_id="t"),
        ev.ToolCall(name="Bash", input={"command": "make <x>", "timeout": 9}, id="1"),
        ev.ToolResult(name="1", output="no <target>", is_error=True),
        ev.ToolCall(name="Bash", input={"command": "rm -rf /"}, id="2"),
        ev.GuardDenied(tool="Bash", tool_use_id="2", part="rm", reason="outside the project"),
        ev.ToolResult(name="2", output="denied", is_error=True),
        ev.ToolCall(name="Read", input={"file_path": "a"}, id="3"),
        ev.Steered(text="Use *pytest*", to="session"),
    )
    for part in (
        "<p>I <strong>do</strong> it.</p>",
        '<div class="say sub prose">',
        "<code>make &lt;x&gt;</code>",
        "<pre>timeout: 9</pre>",
        "<pre>no &lt;target&gt;</pre>",
        '<span class="bad">failed</span>',
        '<span class="warning">denied</span>',
        "outside the project",
        '<span class="quiet">no result</span>',
        "Use <em>pytest</em>",
    ):
        assert part in shown
    assert 1 == shown.count('<span class="bad">failed</span>')


@pytest.mark.parametrize(
    ("value", "what", "form", "note"),
    [
        ({"command": "cat /p/a.py"}, "cat a.py", "text", ""),
        ({"file_path": "/p/app/a.py", "old_string": "a\nb", "new_string": "a\nc\nd"}, "app/a.py",
         "diff", "+2 −1"),
        ({"file_path": "/p/a", "content": "x\ny\n"}, "a", "text", "2 lines"),
        ({"x": [1]}, '{ "x": [ 1 ] }', "text", ""),
        ("plain", "plain", "text", ""),
        (None, "", "text", ""),
    ],
)  # fmt: skip
def test_tool_inputs(value: Any, what: str, form: str, note: str) -> None:
    """A tool call is described in one line, with paths relative to the project."""
    shown = shown_input(value, folder="/p")
    assert (" ".join(what.split()), form, note) == (
        " ".join(shown.what.split()) if what[:1] != "{" else what,
        shown.form,
        shown.note,
    )


def test_changes() -> None:
    """Each entry reports which parts and which row of a transcript it changes."""
    fold = RunFold()
    said = (
        begin(STAGE),
        (STAGE, ev.AgentMessage(text="hello")),
        (STAGE, ev.ToolCall(name="Bash", input={"command": "ls"}, id="1")),
        (STAGE, ev.ToolResult(name="1", output="a")),
        ev.PlanWritten(iteration=1, text=PLAN),
    )
    changes = [fold.add(entry) for entry in entries_of(*said)]
    assert [None, None, 1, 2, 2, None] == [change.row for change in changes]
    assert [None, 0, 0, 0, 0, None] == [change.stage for change in changes]
    assert {"timeline", "stages", "head", "plan"} == changes[1].parts
    assert "plan" in changes[-1].parts
    report = fold.result(running_at=entries_of(*said)[-1].at)
    assert [1, 2] == [row.n for row in report.transcripts[0].rows]
    assert "<code>ls</code>" in render_part("stages", report, zone=ZONE)
    assert () == fold.result(transcripts=False).transcripts
    assert 2 == len(fold.transcript(0).rows)
    # More entries can follow: nothing was closed by the result.
    fold.add(entries_of(*said, (STAGE, ev.AgentMessage(text="more")))[-1])
    assert 3 == len(fold.transcript(0).rows)
    assert "unfinished" == fold.result().stages[0].ending


def test_paths_are_relative_to_the_project() -> None:
    """Paths in tool calls are relative to the folder of the project."""
    fold = RunFold(folder="/home/me/shop")
    call = ev.ToolCall(name="Read", input={"file_path": "/home/me/shop/app/a.py"}, id="1")
    for entry in entries_of(begin(STAGE), (STAGE, call)):
        fold.add(entry)
    assert ["app/a.py"] == [row.what for row in fold.transcript(0).rows]


def parsed(lines: Iterable[str]) -> dict[str, CommitDiff]:
    """Return the changes of each commit in the output of git."""
    parser = DiffParser()
    for line in lines:
        parser.add(line)
    return parser.result()


def test_changes_and_patches() -> None:
    """The changed files and the patch of each commit are parsed; a binary file has no lines."""
    lines = [
        *("noise", "\x01aaa", "", "3\t1\ta b.py", "-\t-\tlogo.png", "x\ty\tz", ""),
        *("diff --git a b.py a b.py", "index 1..2", "@@ -1 +1 @@", "-one", "+two"),
        *("\x01bbb", ""),
    ]
    found = parsed(lines)
    changes = (FileChange("a b.py", 3, 1), FileChange("logo.png", None, None))
    assert changes == found["aaa"].changes
    assert "diff --git a b.py a b.py\n@@ -1 +1 @@\n-one\n+two" == found["aaa"].patch.head
    assert ((), "") == (found["bbb"].changes, found["bbb"].patch.head)


def test_long_patches_are_cut() -> None:
    """Of a long patch head and tail are kept, and the rest is counted."""
    body = [f"+line {n:06}" for n in range(50_000)]
    (known,) = parsed(["\x01aaa", "diff --git a a", *body]).values()
    assert known.patch.size <= MOST
    assert known.patch.head.startswith("diff --git a a\n+line 000000\n")
    assert known.patch.tail.endswith("+line 049999")
    whole = len("\n".join(["diff --git a a", *body]))
    assert abs(whole - known.patch.size - known.patch.left_out) <= 2


def test_long_lines_are_cut() -> None:
    """A line of megabytes, as in minified code, is cut."""
    (known,) = parsed(["\x01aaa", "diff --git a a", "+" + "x" * 5_000_000]).values()
    assert known.patch.size < 2000


def test_classes() -> None:
    """Lines that are added, deleted or headings have a class; neighbors share an element."""
    shown = diff("diff --git a a\n--- a\n+++ a\n@@ -1 +1 @@\n same\n-<b>\n+one\n+two")
    assert (
        '<pre class="diff"><span class="f">diff --git a a\n--- a\n+++ a\n</span>'
        '<span class="h">@@ -1 +1 @@\n</span> same\n'
        '<span class="d">-&lt;b&gt;\n</span><span class="a">+one\n+two\n</span></pre>'
    ) == str(shown)


@each(
    "seconds, words",
    [
        (-1, "0 ms"),
        (0.04, "40 ms"),
        (0.9996, "1.0 s"),
        (2.44, "2.4 s"),
        (9.96, "10 s"),
        (59.6, "1 m"),
        (90, "1 m 30 s"),
        (3599.7, "1 h"),
        (7500, "2 h 5 m"),
        (86399, "1 d"),
        (273600, "3 d 4 h"),
        (float("inf"), "11574 d 2 h"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    """A duration has at most two units, rounded."""
    assert words == duration(seconds)


def test_words() -> None:
    """Counts and first lines are short."""
    assert ["1 file", "2,000 files", "2 processes"] == [
        counted(1, "file"),
        counted(2000, "file"),
        counted(2, "process", "processes"),
    ]
    assert ["two", "", "aa…"] == [
        first_line("\n two \nx"),
        first_line(" \n"),
        first_line("aaaa", 3),
    ]


@each(
    "value, words",
    [
        (None, ""),
        ({"value": None}, ""),
        ({"value": "0f1e"}, "0f1e"),
        ({"time": "2026-11-20T21:00:00Z"}, "2026-11-20T21:00:00Z"),
        ({"_tag": "Done", "content": "Task 2\nmore"}, "Done: Task 2"),
        ({"_tag": "CheckCommandOutput", "exit_code": 1}, "CheckCommandOutput: exit code 1"),
        ({"_tag": "WatchBacklogWaiting"}, "WatchBacklogWaiting"),
        ([1], "[1]"),
    ],
)
def test_outcomes(value: Any, words: str) -> None:
    """An outcome is one line."""
    assert words == outcome(value)
