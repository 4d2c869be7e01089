"""The library's defaults: no supervision without options, in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable

from cuggino.errors import LoopError
from cuggino.events import LoopMaxIterations, NoProgress, SupervisionEvent
from cuggino.loops import LoopRunOptions, WatchRunOptions
from cuggino.testing import AgentRun
from tests.loops.coding_loop import CodingLoop, drawn
from tests.loops.supervised_loop import (
    HOUR,
    SupervisedMarbles,
    course,
    error_of,
    events_of,
    failed,
    limited,
    sessions,
)

OFF: dict[str, object] = {
    "budget": None,
    "max_tokens": None,
    "max_duration": None,
    "wait_for_quota": False,
    "max_retries": 0,
    "idle_timeout": None,
    "tool_timeout": None,
    "stage_timeout": None,
    "progress_patience": None,
    "review_patience": None,
    "journal": False,
}
FINDING = "- `src/page.py`: the title is missing"


def loop_of(folder: Path, t: SupervisedMarbles, *implementing: Observable[Any]) -> CodingLoop:
    """A loop that plans at once, implements as it is given, and is approved at once."""
    return drawn(folder, t, "(c|)", list(implementing), "(y|)", can_resume=True)


@pytest.mark.parametrize(
    "options", [LoopRunOptions(focus="it", cwd=Path()), WatchRunOptions(cwd=Path())]
)
def test_everything_is_off(options: LoopRunOptions | WatchRunOptions) -> None:
    """A run and a watch of the library have no supervision by default."""
    assert OFF == {name: getattr(options, name) for name in OFF}


@pytest.mark.parametrize(
    ("error", "code"), [(failed(), 1), (failed("rate_limit"), 1), (limited(HOUR), 12)]
)
def test_a_failure_ends_the_loop(tmp_path: Path, error: Exception, code: int) -> None:
    """By default a failed agent is not restarted, and nothing is waited for."""
    t = SupervisedMarbles()
    loop = loop_of(tmp_path, t, t.agent("a#", error), t.agent("d|"))
    seen = t.record(loop.run())
    assert (1, f"LoopError {code}") == course(seen)[-1]
    assert [] == events_of(seen, SupervisionEvent)
    assert 1 == len(sessions(loop, "implementing"))
    ended = error_of(seen)
    assert isinstance(ended, LoopError)
    assert error is ended.cause


def test_no_limits_by_default(tmp_path: Path) -> None:
    """By default silence, tools and costs are unlimited."""
    t = SupervisedMarbles()
    loop = loop_of(tmp_path, t, t.agent("a 5h u t 5h o u (ds|)"))
    seen = t.record(loop.run())
    assert ["StageCost"] == [event.tag for _, event in events_of(seen, SupervisionEvent)]
    assert "LoopApproved" == course(seen)[-1][1]
    assert course(seen)[-1][0] > 10 * HOUR
    assert 0 == t.pending


def test_no_progress_is_allowed(tmp_path: Path) -> None:
    """By default iterations without progress continue up to the last one."""
    t = SupervisedMarbles()
    loop = CodingLoop(
        tmp_path,
        planning=[t.agent("(c|)") for _ in range(6)],
        implementing=[t.agent("(d|)") for _ in range(6)],
        reviewing=[AgentRun(t.agent("(r|)"), review=FINDING) for _ in range(6)],
    )
    seen = t.record(loop.run(max_iterations=6))
    assert [] == events_of(seen, NoProgress)
    assert [6] == [event.iteration for _, event in events_of(seen, LoopMaxIterations)]
    assert [] == list(loop.workspace.tbd.iterdir())


def test_no_journal_by_default(tmp_path: Path) -> None:
    """Without a journal no file outlives the run."""
    t = SupervisedMarbles()
    loop = loop_of(tmp_path, t, t.agent("(d|)"))
    t.record(loop.run())
    journal = loop.workspace.journal
    assert [] == (list(journal.iterdir()) if journal.exists() else [])
