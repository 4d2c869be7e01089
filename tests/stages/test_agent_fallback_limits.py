"""An agent stage in which one agent after the other meets a usage limit, in virtual time."""

from __future__ import annotations

import pytest

from cuggino.errors import LoopError, QuotaExceeded
from cuggino.events import (
    QuotaLifted,
)
from tests.loops.supervised_loop import HOUR, events_of, failed, limited, second
from tests.stages.fallback_stage import Stage, course


class TestLimits:
    def test_the_earliest_is_waited_for(self) -> None:
        """When both have met a limit the wait is for the one that is lifted first."""
        t = Stage(can_resume=True)
        seen = t.run(
            [t.drawn("lx#", limited(HOUR)), t.drawn("-ds|")],
            [t.drawn("mx#", limited(2 * HOUR))],
            wait_for_quota=True,
        )
        steps = [tag for tag in course(seen) if tag != "QuotaWaiting"]
        assert ["AgentFellBack", "QuotaLifted", "StageCost", "Done", "completed"] == steps
        ((lifted_at, _),) = events_of(seen, QuotaLifted)
        assert HOUR + 60 == lifted_at
        # The second's session cannot be gone on with by the first, which begins anew.
        again = t.a.spawned[-1]
        assert ("Do it.", None) == (again.prompt, again.resume_session_id)

    def test_the_one_that_is_back_goes_on(self) -> None:
        """The agent cut off last resumes its own session when it is available first."""
        t = Stage(can_resume=True)
        t.run(
            [t.drawn("mx#", limited(2 * HOUR))],
            [t.drawn("lax#", limited(HOUR)), t.drawn("-ds|")],
            wait_for_quota=True,
        )
        begun, resumed = t.b.spawned
        assert begun.session_id == resumed.resume_session_id
        assert "s-1" != begun.session_id
        assert resumed.prompt.startswith("Your session was cut off")

    def test_without_waiting_it_is_the_limit(self) -> None:
        """Otherwise the stage fails with the earliest limit."""
        t = Stage()
        seen = t.run([t.drawn("#", limited(2 * HOUR))], [t.drawn("#", limited(HOUR))])
        assert ["AgentFellBack", "LoopError"] == course(seen)
        error = seen[-1][2]
        assert isinstance(error, LoopError)
        assert isinstance(error.cause, QuotaExceeded)
        assert (12, second(HOUR)) == (error.code, error.cause.resets_at)

    @pytest.mark.parametrize("ending", ["-ds|", "-d" + "-" * 20, "-a|"])
    def test_the_gate_is_not_left_closed(self, ending: str) -> None:
        """A limit that made another take over does not keep the next stage from beginning."""
        t = Stage()
        t.run([t.drawn("lx#", limited(HOUR))], [t.drawn(ending)])
        account = t.gate.of((id(t.a), id(t.b)))
        assert 0 == account.remaining(second(10)) == t.gate.remaining(second(10))

    def test_nor_by_a_failure_of_the_other(self) -> None:
        """The same holds if the fallback fails for another reason."""
        t = Stage()
        t.run([t.drawn("lx#", limited(HOUR))], [t.drawn("-a#", failed("max_turns"))])
        assert 0 == t.gate.of((id(t.a), id(t.b))).remaining(second(10))

    def test_a_limit_binds_its_account(self) -> None:
        """A limit of one role's agent does not keep another role's from beginning."""
        t = Stage()
        t.run([t.drawn("lx#", limited(HOUR))], [t.drawn("mx#", limited(2 * HOUR))])
        account = t.gate.of((id(t.a), id(t.b)))
        assert HOUR == account.remaining(second(0))
        assert 0 == t.gate.remaining(second(0)) == t.gate.of((id(t.b),)).remaining(second(0))

    def test_unknown_ends_are_waited_for_with_growing_pauses(self) -> None:
        """Without reset times the delays grow and end after a day, whichever agent runs between."""
        t = Stage()
        seen = t.run(
            [t.drawn("#", limited()) for _ in range(40)],
            [t.drawn("#", limited()) for _ in range(40)],
            wait_for_quota=True,
        )
        pauses = [HOUR * hours for hours in (0.25, 0.5, 1, 2, 4, 5, 5, 5, 1.25)]
        assert pauses == [lifted.waited for _, lifted in events_of(seen, QuotaLifted)]
        assert "LoopError" == course(seen)[-1]
