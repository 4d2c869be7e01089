"""A workspace with the journals of a watch and of its items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

from pydantic import JsonValue

from cuggino import events as ev
from cuggino.storage import Workspace
from cuggino.storage.journal import Journal
from tests.report.journals import START

PLAN = """# Plan

## Task 1: Sign-in form with validation

- [ ] the form

## Task 2: Session cookie

- [ ] the cookie
"""


def name_at(at: datetime, number: int) -> str:
    """Return the id of a run that began then."""
    return str(UUID(int=int(at.timestamp() * 1000) << 80 | 7 << 76 | 2 << 62 | number))


@dataclass
class Written:
    """A journal that is being written, with its own clock."""

    journal: Journal
    at: datetime
    cost: float = 0.0
    usage: ev.Usage = field(default_factory=ev.Usage)

    def say(self, event: ev.Event, *, stage: str | None = None, seconds: float = 1.0) -> None:
        """Append an event some seconds later."""
        self.at += timedelta(seconds=seconds)
        self.journal.append(event, at=self.at, stage=stage)

    def session(self, *, stage: str, cost: float, seconds: float) -> None:
        """Append the end of a session."""
        usage = ev.Usage(input_tokens=900, output_tokens=300, cache_read_tokens=40_000)
        self.cost += cost
        self.usage = ev.Usage(**{key: n + getattr(self.usage, key) for key, n in usage})
        self.say(
            ev.SessionEnded(outcome="completed", cost_usd=cost, usage=usage),
            stage=stage,
            seconds=seconds,
        )


@dataclass(frozen=True)
class Item:
    """An item of the night: its file, heading and end."""

    name: str
    title: str
    state: ev.EndState = "approved"
    cost: float = 0.5
    """US dollars of each of its three sessions."""
    commits: Sequence[str] = ()
    sentence: str = "The file `.cuggino/backlog/{}`, with this content:\n\n"


def write_night(
    project: Path,
    items: Sequence[Item],
    *,
    audit: float = 0.0,
    ended: bool = True,
    more: Sequence[ev.Event] = (),
) -> str:
    """Write the journals of a watch and of its items; return the id of the watch."""
    workspace = Workspace(project)
    run_id = name_at(START, 0)
    begun = ev.RunStarted(
        run_id=run_id,
        kind="watch",
        command="cuggino watch",
        agent="claude",
        options={"cwd": str(project)},
    )
    watch = Written(Journal.create(workspace.journal, begun, at=START, sync=False), START)
    for number, item in enumerate(items, start=1):
        watch.say(
            ev.WatchProcessingItem(
                filename=item.name, title=item.title, position=number, total=len(items)
            )
        )
        run = write_item(workspace, item, number, watch.at + timedelta(seconds=1))
        usage = run.usage
        watch.at = run.at
        watch.say(
            ev.SessionEnded(outcome="completed", cost_usd=run.cost, usage=usage),
            stage="item",
            seconds=0,
        )
        if item.state == "approved":
            watch.say(ev.LoopApproved(iteration=1), stage="item")
            watch.say(ev.WatchItemCompleted(filename=item.name))
        elif item.state == "spec_issue":
            issue = ev.LoopSpecIssue(iteration=1, content="Which of the two?", filename="issue.md")
            watch.say(issue, stage="item")
        else:
            watch.say(ev.WatchItemParked(filename=item.name, reason="no progress: nothing changes"))
    for event in more:
        watch.say(event)
    if audit:
        watch.say(ev.WatchAuditStarted(), stage="stage")
        watch.say(ev.AgentMessage(text="I look around."), stage="stage")
        watch.session(stage="stage", cost=audit, seconds=60)
        watch.say(ev.WatchAuditEnded(), stage="stage")
    if ended:
        watch.say(ev.RunEnded(state="ended"))
    watch.journal.close()
    return run_id


def write_item(workspace: Workspace, item: Item, number: int, at: datetime) -> Written:
    """Write the journal of a run of an item."""
    focus = f"{item.sentence.format(item.name)}# {item.title}\n\nAs in `.specs/`."
    started = ev.RunStarted(
        run_id=name_at(at, number),
        kind="run",
        command="cuggino watch",
        item=f"{item.name} 0123abcd",
        focus=focus,
        agent="claude",
        options={"cwd": str(workspace.root)},
    )
    run = Written(Journal.create(workspace.journal, started, at=at, sync=False), at)
    run.say(ev.IterationStart(iteration=1, max_iterations=3))
    run.say(ev.PlanningStart(iteration=1))
    run.say(ev.StageStarted(name="planning"), stage="planning#1")
    run.say(ev.AgentMessage(text="I read the specs.\n\n- `login.md`"), stage="planning#1")
    run.session(stage="planning#1", cost=item.cost, seconds=110)
    planned = ev.PlanComplete(content="two tasks")
    run.say(planned, stage="planning#1")
    finish(run, planned, "planning#1")
    run.say(ev.PlanWritten(iteration=1, text=PLAN))
    ends = (ev.Progress(content="Sign-in form with validation"), ev.Done(content="Session cookie"))
    for n, end in enumerate(ends):
        check, work, commit = (f"{name}#{3 * n + k}" for k, name in enumerate(STAGES, start=2))
        run.say(ev.ImplementingStart(iteration=1))
        run.say(ev.StageStarted(name="check"), stage=check)
        run.say(ev.CheckCommandStarted(iteration=1, command="make test"), stage=check, seconds=0)
        output = ev.CheckCommandOutput(iteration=1, output=OUTPUT, exit_code=1 - n)
        run.say(output, stage=check, seconds=20)
        finish(run, output, check)
        run.say(ev.StageStarted(name="implementing"), stage=work)
        run.say(ev.AgentMessage(text=WORDS), stage=work, seconds=30)
        edit: dict[str, JsonValue] = {
            "file_path": str(workspace.root / "app" / "session.py"),
            "old_string": 'response.set_cookie("sid", sid)',
            "new_string": 'response.set_cookie("sid", sid, httponly=True, samesite="lax")',
        }
        run.say(ev.ToolCall(name="Edit", input=edit, id="1"), stage=work, seconds=9)
        run.say(ev.ToolResult(name="1", output="ok"), stage=work, seconds=0)
        test: dict[str, JsonValue] = {
            "command": "pytest -q tests/test_session.py",
            "description": "Run the tests",
        }
        run.say(ev.ToolCall(name="Bash", input=test, id="2"), stage=work, seconds=40)
        run.say(ev.ToolResult(name="2", output=OUTPUT, is_error=n == 0), stage=work, seconds=2.1)
        run.session(stage=work, cost=item.cost, seconds=240)
        run.say(end, stage=work)
        finish(run, end, work)
        if n < len(item.commits):
            run.say(ev.StageStarted(name="commit"), stage=commit)
            made = ev.CommitPerformed(iteration=1, commit_hash=item.commits[n], message=end.content)
            run.say(made, stage=commit)
            finish(run, made, commit)
    if item.state == "approved":
        run.say(ev.LoopApproved(iteration=1))
    elif item.state == "spec_issue":
        run.say(ev.LoopSpecIssue(iteration=1, content="Which of the two?", filename="issue.md"))
    run.say(ev.RunEnded(state=item.state))
    run.journal.close()
    return run


STAGES = ("check", "implementing", "commit")
OUTPUT = "E   assert 'SameSite' in header\n1 failed, 6 passed\n"
WORDS = (
    "The cookie needs `HttpOnly` and `SameSite=Lax`. I add it in **one** place and let both tests "
    "go through it."
)


def finish(run: Written, outcome: ev.Event, stage: str) -> None:
    """Append the end of a stage with this outcome."""
    import json

    run.say(ev.StageFinished(outcome=json.loads(ev.dump_event(outcome))), stage=stage, seconds=0)
