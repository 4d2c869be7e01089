"""Ids of sessions and runs."""

from __future__ import annotations

import time
from itertools import pairwise
from uuid import RFC_4122, UUID

import pytest

from cuggino.storage.ids import new_id


def test_an_id_is_a_uuid_of_version_7() -> None:
    """Other programs read its time."""
    before = time.time_ns() // 1_000_000
    made = UUID(new_id())
    after = time.time_ns() // 1_000_000
    assert (7, RFC_4122) == (made.version, made.variant)
    assert before <= made.int >> 80 <= after + 1


def test_ids_ascend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids of the same moment, and of an earlier one after the clock was set back, are in order."""
    now = time.time_ns()
    made = [new_id() for _ in range(1000)]
    monkeypatch.setattr(time, "time_ns", lambda: now - 10**9)
    made += [new_id() for _ in range(1000)]
    assert all(one < other for one, other in pairwise(made))


def test_ids_of_the_same_time_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes that begin at once have ids of their own."""
    monkeypatch.setattr(time, "time_ns", lambda: 2**60)
    made = set()
    for _ in range(100):
        monkeypatch.setattr("cuggino.storage.ids._last", 0)
        made.add(new_id())
    assert 100 == len(made)
