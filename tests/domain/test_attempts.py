"""When to retry a failed backlog item."""

from __future__ import annotations

import errno
import os
from datetime import UTC, datetime, timedelta

from cuggino.domain.attempts import Attempts, hits_every_item, is_full_disk, needs_login
from cuggino.errors import (
    AgentFailed,
    AgentNotFound,
    AgentStalled,
    ConfigError,
    CugginoError,
    LoopError,
    ProcessError,
    QuotaExceeded,
)
from tests.vectors import each

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def test_pauses_double_up_to_an_hour() -> None:
    """Each failure doubles the pause, up to an hour."""
    attempts = Attempts(max_attempts=20, retry_seconds=60)
    pauses = [attempts.failed("a", NOW) for _ in range(9)]
    assert [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600] == pauses


def test_the_last_attempt_clears_the_count() -> None:
    """At `max_attempts` the pause is None, and the count is cleared."""
    attempts = Attempts(max_attempts=2, retry_seconds=60)
    assert 60 == attempts.failed("a", NOW)
    assert 1 == attempts.count("a")
    assert attempts.failed("a", NOW) is None
    assert 0 == attempts.count("a")
    assert ["a"] == [*attempts.due(["a"], NOW)]


def test_a_limit_that_is_renewed() -> None:
    """After 20 limits in a row without a finished item, short reported pauses no longer count."""
    attempts = Attempts(max_attempts=3, retry_seconds=60)
    pauses = [attempts.limited(NOW, later(60)) for _ in range(24)]
    assert [60.0] * 20 + [900, 1800, 3600, 7200] == pauses
    assert 86_400 == attempts.limited(NOW, later(86_400))
    attempts.succeeded("a")
    assert 60 == attempts.limited(NOW, later(60))


def test_only_the_item_itself_is_paused() -> None:
    """A paused item blocks no other item, and is ready once its pause is over."""
    attempts = Attempts(max_attempts=3, retry_seconds=60)
    attempts.failed("a", NOW)
    assert ["b"] == [*attempts.due(["a", "b"], later(59.9))]
    assert ["a", "b"] == [*attempts.due(["a", "b"], later(60))]
    assert 60 == attempts.next_due(["a", "b"], NOW)
    assert attempts.next_due(["a", "b"], later(60)) is None


def test_a_run_without_an_error_clears_the_count() -> None:
    """A run that ends without an error clears the failures."""
    attempts = Attempts(max_attempts=2, retry_seconds=60)
    attempts.failed("a", NOW)
    attempts.succeeded("a")
    assert ["a"] == [*attempts.due(["a"], NOW)]
    assert 60 == attempts.failed("a", NOW)


@each(
    "expected, cause",
    [
        (True, QuotaExceeded("limit")),
        (True, AgentNotFound("none")),
        (True, ConfigError("no prompt")),
        (True, AgentFailed("no login", reason="auth")),
        (True, AgentFailed("no money", reason="billing")),
        (False, AgentFailed("died", reason="crash")),
        (False, AgentStalled("silent")),
    ],
)
def test_failures_unrelated_to_an_item(expected: bool, cause: CugginoError) -> None:
    """Failures that would hit every item are recognized, also inside a loop's error."""
    assert expected == hits_every_item(cause)
    assert expected == hits_every_item(LoopError("planning", "it failed", cause=cause))


def test_a_usage_limit_pauses_everything_and_counts_nothing() -> None:
    """Until the limit is lifted no item is tried, and no attempt is counted."""
    attempts = Attempts(max_attempts=1, retry_seconds=60)
    assert 7200 == attempts.limited(NOW, later(7200))
    assert 0 == attempts.count("a")
    assert [] == [*attempts.due(["a", "b"], later(7199))]
    assert ["a", "b"] == [*attempts.due(["a", "b"], later(7200))]


def test_how_long_all_items_are_paused() -> None:
    """It is the rest of the latest pause."""
    attempts = Attempts(max_attempts=1, retry_seconds=60)
    assert 0 == attempts.paused(NOW)
    attempts.limited(NOW, None)
    assert 600 == attempts.paused(later(300))
    assert 0 == attempts.paused(later(901))


def test_a_limit_without_a_time_backs_off() -> None:
    """Backoff starts at 15 minutes and doubles up to five hours; a past time is ignored."""
    attempts = Attempts(max_attempts=1, retry_seconds=60)
    pauses = [attempts.limited(NOW, None) for _ in range(7)]
    assert [900, 1800, 3600, 7200, 14400, 18000, 18000] == pauses
    attempts.succeeded("a")
    assert 900 == attempts.limited(NOW, later(-1))


FULL = ProcessError("git", f"cannot write: {os.strerror(errno.ENOSPC)}")


@each(
    "login, disk, cause",
    [
        (True, False, AgentFailed("no login", reason="auth")),
        (False, False, AgentFailed("no money", reason="billing")),
        (False, True, FULL),
        (False, False, ProcessError("git", "no such branch")),
        (False, False, ConfigError(FULL.message)),
    ],
)
def test_failures_that_only_a_person_ends(login: bool, disk: bool, cause: CugginoError) -> None:
    """A missing login and a full disk are recognized, also inside a loop's error."""
    for error in (cause, LoopError("planning", "it failed", cause=cause)):
        assert (login, disk) == (needs_login(error), is_full_disk(error))
        assert hits_every_item(error) or not (login or disk)


def test_everything_waits_for_a_person() -> None:
    """All items are paused until the next look."""
    attempts = Attempts(max_attempts=1, retry_seconds=60)
    seconds = attempts.wait(NOW)
    assert seconds == attempts.paused(NOW) > 0
    assert [] == [*attempts.due(["a"], later(seconds - 1))]
    assert ["a"] == [*attempts.due(["a"], later(seconds))]


def test_a_stalled_run_is_repeated_once() -> None:
    """The latest review is kept until the item is forgotten."""
    attempts = Attempts(max_attempts=3, retry_seconds=60)
    assert attempts.review("a") is None
    assert [True, False] == [attempts.stalled("a", review) for review in ("first", "second")]
    assert "second" == attempts.review("a")
    attempts.forget("a")
    assert attempts.stalled("a", "third")


def test_the_counts_of_an_earlier_process() -> None:
    """A restored count, due time and number of usage limits are continued."""
    attempts = Attempts(max_attempts=3, retry_seconds=60)
    attempts.restore("a", 2, later(60))
    assert 2 == attempts.count("a")
    assert [] == [*attempts.due(["a"], later(59))]
    assert ["a"] == [*attempts.due(["a"], later(60))]
    assert attempts.failed("a", NOW) is None
    for _ in range(20):
        attempts.restore_limit()
    assert 900 == attempts.limited(NOW, later(60))
