"""Usage limits in the coding loop, in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable

from cuggino.agents.base import Role
from cuggino.errors import LoopError, QuotaExceeded
from cuggino.events import QuotaLifted, QuotaWaiting, RunEnded
from cuggino.storage import read_journal
from cuggino.testing import no_leaks
from tests.loops.coding_loop import CodingLoop
from tests.loops.supervised_loop import (
    HOUR,
    SupervisedMarbles,
    course,
    error_of,
    events_of,
    limited,
    second,
    sessions,
)

PLANNED = ["IterationStart", "PlanningStart", "PlanComplete", "ImplementingStart"]
APPROVED = ["Done", "ReviewingStart", "Approved", "LoopApproved"]


def loop_of(folder: Path, t: SupervisedMarbles, *implementing: Observable[Any]) -> CodingLoop:
    """A loop that plans at once, implements as it is given, and is approved at once."""
    return CodingLoop(
        folder,
        planning=[t.agent("(c|)")],
        implementing=list(implementing),
        reviewing=[t.agent("(y|)")],
        can_resume=True,
    )


class TestUsageLimits:
    def test_five_hours_are_waited_for(self, tmp_path: Path) -> None:
        """A usage limit is a pause, reported each minute, after which the session is resumed."""
        t = SupervisedMarbles()
        first, after = t.agent("ax#", limited(5 * HOUR)), t.agent("-d|")
        loop = loop_of(tmp_path, t, first, after)
        with no_leaks():
            # No retry is allowed and silence is not: a wait is neither.
            seen = t.record(loop.run(wait_for_quota=True, idle_timeout=900, max_retries=0))
        said = course(seen)
        waits = events_of(seen, QuotaWaiting)
        assert [
            *PLANNED,
            *["QuotaWaiting"] * len(waits),
            "QuotaLifted",
            "StageCost",
            *APPROVED,
        ] == [tag for _, tag in said]
        end = 5 * HOUR + 60
        assert 301 == len(waits)
        assert [2 + 60 * n for n in range(len(waits))] == [when for when, _ in waits]
        assert [end - when for when, _ in waits] == [wait.remaining for _, wait in waits]
        assert {second(5 * HOUR)} == {wait.resets_at for _, wait in waits}
        assert [(end, end - 2)] == [(when, e.waited) for when, e in events_of(seen, QuotaLifted)]
        assert [(end, end + 2)] == after.subscriptions
        begun, resumed = sessions(loop, "implementing")
        assert begun.session_id == resumed.resume_session_id
        assert ["IterationStart"] == [tag for _, tag in said if tag == "IterationStart"]
        loop.assert_released()

    @pytest.mark.parametrize("role", ["planning", "implementing", "reviewing"])
    def test_every_agent_waits(self, tmp_path: Path, role: Role) -> None:
        """The agent of any role is resumed when its usage limit is lifted."""
        t = SupervisedMarbles()
        ends = {"planning": "(c|)", "implementing": "(d|)", "reviewing": "(y|)"}
        agents: dict[str, Any] = {name: [t.agent(end)] for name, end in ends.items()}
        agents[role].insert(0, t.agent("a#", limited(HOUR)))
        loop = CodingLoop(tmp_path, can_resume=True, **agents)
        seen = t.record(loop.run(wait_for_quota=True))
        assert (HOUR + 60, "LoopApproved") == course(seen)[-1]
        begun, resumed = sessions(loop, role)
        assert begun.session_id == resumed.resume_session_id
        assert 4 == len(loop.agent.spawned)

    def test_without_waiting_it_can_be_resumed(self, tmp_path: Path) -> None:
        """Without `wait_for_quota` the loop ends with exit code 12 and can be resumed."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("ax#", limited(5 * HOUR)))
        seen = t.record(loop.run(max_retries=3, journal=True))
        assert [*PLANNED, "StageCost", "LoopError 12"] == [tag for _, tag in course(seen)]
        error = error_of(seen)
        assert isinstance(error, LoopError)
        assert isinstance(error.cause, QuotaExceeded)
        assert "start again after 1970-01-01 05:00 UTC" == error.hint
        (path,) = loop.workspace.journal.iterdir()
        journal = read_journal(path)
        assert journal.ended == RunEnded(state="quota", message=error.message)
        assert journal.resumable

    def test_a_limit_without_an_end(self, tmp_path: Path) -> None:
        """Without a reset time the pauses grow to five hours; after a day the exit code is 12."""
        t = SupervisedMarbles()
        agents = [t.agent("a#", limited()) for _ in range(10)]
        loop = loop_of(tmp_path, t, *agents, t.agent("d|"))
        with no_leaks():
            seen = t.record(loop.run(wait_for_quota=True, max_retries=3, idle_timeout=900))
        pauses = [HOUR * hours for hours in (0.25, 0.5, 1, 2, 4, 5, 5, 5, 1.25)]
        assert pauses == [lifted.waited for _, lifted in events_of(seen, QuotaLifted)]
        assert {None} == {wait.resets_at for _, wait in events_of(seen, QuotaWaiting)}
        assert (24 * HOUR + 10, "LoopError 12") == course(seen)[-1]
        steps = {tag for _, tag in course(seen)[len(PLANNED) : -1]}
        assert {"QuotaWaiting", "QuotaLifted"} == steps
        begun, *resumed = sessions(loop, "implementing")
        assert [begun.session_id] * 9 == [options.resume_session_id for options in resumed]
        loop.assert_released()

    def test_a_completed_session_resets_the_pauses(self, tmp_path: Path) -> None:
        """A completed session resets the pauses to 15 minutes."""
        t = SupervisedMarbles()
        loop = CodingLoop(
            tmp_path,
            planning=[t.agent("a#", limited()), t.agent("a#", limited()), t.agent("(c|)")],
            implementing=[t.agent("a#", limited()), t.agent("(d|)")],
            reviewing=[t.agent("(y|)")],
            can_resume=True,
        )
        seen = t.record(loop.run(wait_for_quota=True))
        assert [900, 1800, 900] == [lifted.waited for _, lifted in events_of(seen, QuotaLifted)]
        assert "LoopApproved" == course(seen)[-1][1]

    def test_a_limit_met_again(self, tmp_path: Path) -> None:
        """A session resumed after a wait also waits for the next limit."""
        t = SupervisedMarbles()
        loop = loop_of(
            tmp_path,
            t,
            t.agent("a#", limited(HOUR)),
            t.agent("a#", limited(3 * HOUR)),
            t.agent("d|"),
        )
        seen = t.record(loop.run(wait_for_quota=True))
        lifted = [when for when, _ in events_of(seen, QuotaLifted)]
        assert [HOUR + 60, 3 * HOUR + 60] == lifted
        first, second_, third = sessions(loop, "implementing")
        assert first.session_id == second_.resume_session_id == third.resume_session_id

    def test_a_limit_that_is_renewed(self, tmp_path: Path) -> None:
        """A limit that is lifted in a minute, again and again, ends the run after 20 waits."""
        t = SupervisedMarbles()
        agents = [t.agent("a#", limited(121 * n + 60)) for n in range(50)]
        loop = loop_of(tmp_path, t, *agents)
        with no_leaks():
            seen = t.record(loop.run(wait_for_quota=True, max_retries=3, quota_margin=60))
        assert 20 == len(events_of(seen, QuotaLifted))
        assert 21 == len(sessions(loop, "implementing"))
        assert "LoopError 12" == course(seen)[-1][1]
        assert "20 waits did not help, see maxQuotaWaits" in (error_of(seen).hint or "")
        loop.assert_released()

    def test_the_reminder_has_no_waits_of_its_own(self, tmp_path: Path) -> None:
        """The waits before and after the reminder of a missing marker count together."""
        t = SupervisedMarbles()
        agents = [
            t.agent("a#", limited(HOUR)),
            t.agent("a|"),
            t.agent("a#", limited(2 * HOUR)),
            t.agent("a#", limited(3 * HOUR)),
        ]
        loop = loop_of(tmp_path, t, *agents)
        seen = t.record(loop.run(wait_for_quota=True, max_quota_waits=2))
        assert 2 == len(events_of(seen, QuotaLifted))
        assert "LoopError 12" == course(seen)[-1][1]

    def test_a_reset_that_is_too_far_away(self, tmp_path: Path) -> None:
        """A reset later than `max_quota_wait` ends the run at once; so do waits that add up."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("a#", limited(25 * HOUR)))
        seen = t.record(loop.run(wait_for_quota=True))
        assert [] == events_of(seen, QuotaWaiting)
        assert (1, "LoopError 12") == course(seen)[-1]
        assert "see maxQuotaWait" in (error_of(seen).hint or "")
        t = SupervisedMarbles()
        agents = [t.agent("a#", limited(HOUR * hours)) for hours in (2, 4, 6)]
        loop = loop_of(tmp_path, t, *agents)
        seen = t.record(loop.run(wait_for_quota=True, max_quota_wait=5 * HOUR))
        assert 2 == len(events_of(seen, QuotaLifted))
        assert (4 * HOUR + 61, "LoopError 12") == course(seen)[-1]

    def test_the_margin_can_be_set(self, tmp_path: Path) -> None:
        """The session is resumed `quota_margin` seconds after the reset."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("a#", limited(HOUR)), t.agent("d|"))
        seen = t.record(loop.run(wait_for_quota=True, quota_margin=1.5))
        assert [HOUR + 1.5] == [when for when, _ in events_of(seen, QuotaLifted)]

    def test_a_limit_that_was_overcome(self, tmp_path: Path) -> None:
        """A limit reported by a session that completes delays nothing."""
        t = SupervisedMarbles()
        loop = loop_of(tmp_path, t, t.agent("al-ds|"))
        seen = t.record(loop.run(wait_for_quota=True))
        assert [] == events_of(seen, QuotaWaiting)
        assert (5, "LoopApproved") == course(seen)[-1]
