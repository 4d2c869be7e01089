"""Plans with the tasks that are done, and the rows of transcripts."""

from __future__ import annotations

from typing import Any

import pytest

from cuggino import events as ev
from cuggino.report import RunFold, build_report, render_part
from cuggino.report.titles import shown_input
from tests.report.journals import begin, entries_of
from tests.report.nights import PLAN
from tests.report.test_page import UTC_ZONE as ZONE


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
