"""`Patient`: a call to a forge is repeated, in virtual time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from reactivex import Observable, defer, just, throw

from cuggino.errors import (
    ForgeError,
    ForgeLimited,
    ForgeLoginMissing,
    ForgeRefused,
    ForgeUnreachable,
)
from cuggino.events import WatchForgeWaiting
from cuggino.forge import Forge
from cuggino.forge.patience import Patient
from cuggino.operators import Flow, emit, flow
from cuggino.testing import VirtualClock

FORGE = cast(Forge, SimpleNamespace(host="github.com", repo="o/r"))


class Calls:
    """A call that meets these faults, one after the other, and then succeeds with "done"."""

    def __init__(self, clock: VirtualClock, faults: Iterable[Exception]) -> None:
        self.clock = clock
        self.faults = list(faults)
        self.at: list[float] = []

    def __call__(self) -> Observable[str]:
        def called(_: Any) -> Observable[str]:
            self.at.append(self.clock.elapsed)
            return throw(self.faults.pop(0)) if self.faults else just("done")

        return defer(called)


def repeated(
    *faults: Exception, clock: VirtualClock | None = None
) -> tuple[Calls, list[Any], list[Exception]]:
    clock = clock or VirtualClock()
    calls = Calls(clock, faults)
    seen: list[Any] = []
    errors: list[Exception] = []

    def story() -> Flow[None]:
        yield from emit((yield from Patient(FORGE).get("comment on issue 7", calls)))

    flow(story).subscribe(seen.append, errors.append, scheduler=clock)
    clock.advance_to(clock.at("1d"))
    return calls, seen, errors


def test_a_call_that_succeeds_is_not_repeated() -> None:
    calls, seen, _ = repeated()
    assert calls.at == [0]
    assert seen == ["done"]


def test_an_outage_is_waited_for_ever_longer_up_to_ten_minutes() -> None:
    calls, seen, _ = repeated(*[ForgeUnreachable("no connection")] * 10)
    assert [b - a for a, b in zip(calls.at, calls.at[1:], strict=False)] == (
        [5, 10, 20, 40, 80, 160, 320, 600, 600, 600]
    )
    assert seen[0] == WatchForgeWaiting(
        forge="github.com/o/r",
        doing="comment on issue 7",
        message="no connection",
        retry_in=5,
    )
    assert len(seen) == 11
    assert seen[-1] == "done"


def test_a_limit_is_waited_for_until_its_end() -> None:
    clock = VirtualClock()
    calls, seen, _ = repeated(ForgeLimited("too many", until=clock.at("90s")), clock=clock)
    assert calls.at == [0, 90]
    assert seen[0].retry_in == 90


@pytest.mark.parametrize(("until", "wait"), [("0s", 1), ("5h", 3600)])
def test_the_wait_for_a_limit_is_a_second_to_an_hour(until: str, wait: float) -> None:
    clock = VirtualClock()
    end = clock.at(until) - timedelta(seconds=0 if wait > 1 else 30)
    calls, _, _ = repeated(ForgeLimited("too many", until=end), clock=clock)
    assert calls.at == [0, wait]


def test_a_limit_without_a_known_end_is_waited_for_ever_longer_up_to_an_hour() -> None:
    calls, _, _ = repeated(*[ForgeLimited("too many")] * 8)
    assert [b - a for a, b in zip(calls.at, calls.at[1:], strict=False)] == (
        [60, 120, 240, 480, 960, 1920, 3600, 3600]
    )


def test_a_missing_login_is_reported_once() -> None:
    missing = ForgeLoginMissing("no login", hint="run `gh auth login`")
    calls, seen, _ = repeated(missing, missing, missing)
    assert calls.at == [0, 600, 1200, 1800]
    assert [event.message for event in seen[:-1]] == ["no login; run `gh auth login`"]


def test_another_failure_begins_anew() -> None:
    missing = ForgeLoginMissing("no login")
    down = ForgeUnreachable("down")
    calls, seen, _ = repeated(missing, down, down, missing, down)
    assert calls.at == [0, 600, 605, 615, 1215, 1220]
    assert [event.message for event in seen[:-1]] == [
        *("no login", "down", "down", "no login", "down"),
    ]


@pytest.mark.parametrize("error", [ForgeRefused("not found", status=404), ValueError("a bug")])
def test_what_repeating_would_not_change_is_raised(error: Exception) -> None:
    calls, seen, errors = repeated(error)
    assert calls.at == [0]
    assert (seen, errors) == ([], [error])


def test_a_disposed_wait_leaves_no_timer() -> None:
    clock = VirtualClock()
    calls = Calls(clock, [cast(ForgeError, ForgeUnreachable("down"))] * 3)
    ended = flow(lambda: Patient(FORGE).do("look", calls)).subscribe(scheduler=clock)
    clock.advance_to(clock.at("2s"))
    ended.dispose()
    assert clock.pending == 0
