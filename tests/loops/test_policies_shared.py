"""A usage limit holds for all agents of a watch, in virtual time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from cuggino.events import QuotaLifted, WatchAuditFailed, WatchItemCompleted, WatchItemRetry
from cuggino.loops import Services, WatchRunOptions, WatchService
from cuggino.operators.supervision import QuotaGate
from cuggino.runtime import Runtime
from cuggino.testing import AgentRun, InMemoryAgent
from tests.loops.coding_loop import CodingLoop
from tests.loops.supervised_loop import (
    HOUR,
    SupervisedMarbles,
    course,
    events_of,
    limited,
    sessions,
)
from tests.loops.watching import Watching

LIFTED = HOUR + 60
"""When it is gone on with after the limit: a minute after the reset, as clocks differ."""


class Shared(Watching):
    """A watch whose items are worked on by the real coding loop, with drawn agents."""

    def __init__(
        self, folder: Path, *, planning: list[str], audits: list[str], resets: Iterable[float] = ()
    ) -> None:
        super().__init__(folder)
        self.t = t = SupervisedMarbles()
        gate = QuotaGate()
        lifted = iter(resets)
        self.drawn = CodingLoop(
            folder,
            planning=[t.agent(d, limited(next(lifted, HOUR))) for d in planning],
            implementing=[t.agent("(d|)") for _ in planning],
            reviewing=[t.agent("(y|)") for _ in planning],
            gate=gate,
        )
        self.workspace = self.drawn.workspace  # the lock is held by one object
        self.agent = InMemoryAgent({"audit": [AgentRun(t.agent(d, limited(HOUR))) for d in audits]})
        self.service = WatchService(
            Services(
                agent=self.agent,
                workspace=self.workspace,
                changes=self.changes,
                gate=gate,
            ),
            loop=self.drawn.service,
        )
        self.folder = folder

    def with_options(self, **options: object) -> None:
        given = WatchRunOptions.model_validate({"cwd": self.folder, "audit": True, **options})
        self.stream = self.service.run(given)


def test_the_loop_waits_for_the_limit_of_the_audit(tmp_path: Path) -> None:
    """No agent is started for an item before the audit's usage limit is lifted."""
    watch = Shared(tmp_path, planning=["(c|)"], audits=["a#", "a|"])
    watch.with_options(wait_for_quota=True)
    watch.write(100, "001.md")
    seen = watch.play(2 * HOUR)
    assert [(1, "limit met")] == [
        (when, e.message) for when, e in events_of(seen, WatchAuditFailed)
    ]
    assert [LIFTED] == [when for when, _ in events_of(seen, QuotaLifted)]
    story = [said for said in course(seen) if said[1] != "QuotaWaiting"]
    began = [when for when, tag in story if tag == "PlanningStart"]
    assert [LIFTED] == [when for when, tag in story if tag == "PlanComplete"]
    assert began[0] < LIFTED
    assert 1 == len(sessions(watch.drawn, "planning"))
    assert (LIFTED, "WatchItemCompleted") in story


def test_an_item_is_postponed_without_waiting(tmp_path: Path) -> None:
    """Without waiting an item is postponed until the reset, without an attempt."""
    watch = Shared(tmp_path, planning=["(c|)"], audits=["a#", "-"])
    watch.with_options()
    watch.write(100, "001.md")
    seen = watch.play(2 * HOUR)
    ((when, retry),) = events_of(seen, WatchItemRetry)
    assert (LIFTED, False) == (when + retry.retry_in, retry.counted)
    assert "a usage limit is in force: limit met" in retry.message
    planned = [at for at, tag in course(seen) if tag == "PlanComplete"]
    assert [LIFTED] == planned
    assert 1 == len(sessions(watch.drawn, "planning"))


@pytest.mark.parametrize("wait", [True, False])
def test_a_limit_holds_for_all_items(tmp_path: Path, wait: bool) -> None:
    """A usage limit of one item delays the agents of all items."""
    watch = Shared(tmp_path, planning=["a#", "(c|)", "(c|)"], audits=["-"])
    watch.with_options(wait_for_quota=wait)
    watch.write(0, "001.md")
    watch.write(0, "002.md")
    before = watch.play(HOUR - 1, dispose_at=HOUR - 1)
    assert ["planning"] == [options.role for options in watch.drawn.agent.spawned]
    assert "WatchItemCompleted" not in {tag for _, tag in course(before)}
    assert [] == watch.agent.spawned


@pytest.mark.parametrize("wait", [True, False])
def test_a_reserve_is_shared(tmp_path: Path, wait: bool) -> None:
    """A window that the audit has used up to the reserve delays the items until its reset."""
    watch = Shared(tmp_path, planning=["(c|)"], audits=["q|", "-"])
    watch.with_options(wait_for_quota=wait, quota_reserve=0.2)
    watch.write(100, "001.md")
    seen = watch.play(2 * HOUR)
    assert [LIFTED] == [when for when, tag in course(seen) if tag == "PlanComplete"]
    assert 1 == len(sessions(watch.drawn, "planning"))


def test_both_items_are_done_when_it_is_lifted(tmp_path: Path) -> None:
    """A minute after the reset the watch processes one item, then the next."""
    watch = Shared(tmp_path, planning=["a#", "(c|)", "(c|)"], audits=["-"])
    watch.with_options()
    watch.write(0, "001.md")
    watch.write(0, "002.md")
    seen = watch.play(2 * HOUR)
    done = [when for when, _ in events_of(seen, WatchItemCompleted)]
    assert [LIFTED, LIFTED] == done
    assert [1] == [when for when, _ in events_of(seen, WatchItemRetry)]
    (audit,) = watch.agent.spawned
    assert "audit" == audit.role


def test_the_same_reset_again_is_not_tomorrow(tmp_path: Path) -> None:
    """`resets 3pm` reported just after 3 pm postpones an item for a while, not for a day."""
    planning = ["a#", "a#", "(c|)"]
    watch = Shared(tmp_path, planning=planning, audits=["-"], resets=[HOUR, 25 * HOUR])
    watch.with_options()
    watch.write(0, "001.md")
    seen = watch.play(3 * HOUR)
    again = LIFTED + 1 + 900
    assert [LIFTED, again] == [when + e.retry_in for when, e in events_of(seen, WatchItemRetry)]
    assert [again] == [when for when, _ in events_of(seen, WatchItemCompleted)]


@pytest.mark.parametrize("idle", ["removed", "spec issue"])
def test_no_audit_during_a_limit(tmp_path: Path, idle: str) -> None:
    """An audit is not started during a usage limit."""
    watch = Shared(tmp_path, planning=["a#"], audits=["-"])
    watch.with_options()
    watch.write(0, "001.md")
    if idle == "removed":
        item = watch.workspace.backlog / "001.md"
        watch.at(100, item.unlink, item.parent)
    else:
        issues = watch.workspace.spec_issues
        watch.at(100, lambda: watch.workspace.write_spec_issue("unclear"), issues)
    seen = watch.play(HOUR - 1)
    ((when, failure),) = events_of(seen, WatchAuditFailed)
    assert (130, "a usage limit is in force: limit met") == (when, failure.message)
    assert [] == watch.agent.spawned


@pytest.mark.parametrize("part", ["loop", "watcher"])
def test_one_limit_for_a_runtime(tmp_path: Path, part: str) -> None:
    """A runtime's loop and watch have one gate."""
    runtime = Runtime.live(cwd=tmp_path, agent=InMemoryAgent({}))
    services = {"loop": runtime.watcher.loop.services, "watcher": runtime.watcher.services}
    assert runtime.loop.services.gate is services[part].gate
