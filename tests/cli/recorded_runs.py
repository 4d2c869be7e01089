"""Journals of small runs, shared by the `cuggino runs` tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

from cuggino import events as ev
from cuggino.storage.journal import Journal, encode_outcome

Said: TypeAlias = tuple[float, str | None, ev.Event]
"""Seconds after the beginning, stage, event."""

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
ONE, TWO, THREE = (f"0193b2c{n}-0000-7000-8000-000000000000" for n in "123")

_TASK = ev.Progress(content="Log in\n\nwith a form")
_COMMIT = ev.CommitPerformed(iteration=1, commit_hash="abc1234", message="Log in\n\nwith a form")
_ENDED = ev.SessionEnded(outcome="completed", cost_usd=1.25, usage=ev.Usage(input_tokens=7))

SAID: list[Said] = [
    (0, None, ev.IterationStart(iteration=1, max_iterations=10)),
    (0, None, ev.PlanningStart(iteration=1)),
    (1, "planning#1", ev.StageStarted(name="planning")),
    (2, "planning#1", ev.ToolCall(name="Bash", input={"command": "ls"})),
    (90, "planning#1", ev.StageFinished(outcome={"_tag": "PlanComplete", "content": ""})),
    (90, None, ev.ImplementingStart(iteration=1)),
    (91, "implementing#2", ev.StageStarted(name="implementing")),
    (95, "implementing#2", _ENDED),
    (95, "implementing#2", _TASK),
    (95, "implementing#2", ev.StageFinished(outcome=encode_outcome(_TASK))),
    (96, "commit#3", ev.StageStarted(name="commit")),
    (97, "commit#3", _COMMIT),
    (97, "commit#3", ev.StageFinished(outcome=encode_outcome(_COMMIT))),
]
"""A run that planned, did a task and committed it."""

APPROVED: list[Said] = [
    (99, None, ev.LoopApproved(iteration=1)),
    (100, None, ev.RunEnded(state="approved")),
]
"""How it could go on."""


def record(
    root: Path,
    run_id: str,
    *said: Said,
    at: datetime = AT,
    kind: Any = "run",
    focus: str = "login",
    item: str | None = None,
    agent: str = "claude",
    options: dict[str, Any] | None = None,
) -> Path:
    """Return the journal of a run with these events."""
    started = ev.RunStarted(
        run_id=run_id,
        kind=kind,
        command=f"cuggino {kind}",
        focus=focus,
        item=item,
        agent=agent,
        options=options or {},
    )
    journal = Journal.create(root / ".cuggino" / "journal", started, at=at, sync=False)
    for seconds, stage, event in said:
        journal.append(event, at=at + timedelta(seconds=seconds), stage=stage)
    journal.close()
    return journal.path
