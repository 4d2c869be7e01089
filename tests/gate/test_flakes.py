"""The ledger of flaky tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from cuggino.errors import StorageError
from cuggino.gate import Flake, Flakes, read_flakes, write_flakes
from cuggino.gate.flakes import EXPIRY, MOST_FLAKES
from cuggino.storage import Workspace

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
_DAYS = st.integers(min_value=0, max_value=90).map(lambda days: NOW + timedelta(days=days))
_STEPS = st.lists(st.tuples(_DAYS, st.sets(st.sampled_from("abc"), max_size=3)), max_size=12)


def test_counts_tests() -> None:
    ledger = Flakes().seen(["a", "a", "b"], now=NOW).seen(["b"], now=NOW + timedelta(days=1))
    assert {
        "a": Flake(times=1, last_seen=NOW),
        "b": Flake(times=2, last_seen=NOW + timedelta(days=1)),
    } == ledger.tests


def test_forgets_after_a_month() -> None:
    ledger = Flakes().seen(["a"], now=NOW)
    assert {"a", "b"} == set(ledger.seen(["b"], now=NOW + EXPIRY).tests)
    late = NOW + EXPIRY + timedelta(seconds=1)
    assert {"b"} == set(ledger.seen(["b"], now=late).tests)
    assert 1 == ledger.seen(["a"], now=late).tests["a"].times


def test_is_bounded() -> None:
    ledger = Flakes().seen(["old"], now=NOW - timedelta(days=1))
    ledger = ledger.seen((str(n) for n in range(MOST_FLAKES)), now=NOW)
    assert MOST_FLAKES == len(ledger.tests)
    assert "old" not in ledger.tests


@given(_STEPS)
def test_counts_every_sighting_within_a_month(steps: list[tuple[datetime, set[str]]]) -> None:
    """Each test has the number of its sightings since its last gap of more than a month."""
    ledger, expected = Flakes(), dict[str, Flake]()
    for now, names in sorted(steps, key=lambda step: step[0]):
        ledger = ledger.seen(names, now=now)
        expected = {name: one for name, one in expected.items() if now - one.last_seen <= EXPIRY}
        for name in names:
            times = expected[name].times if name in expected else 0
            expected[name] = Flake(times=times + 1, last_seen=now)
    assert expected == ledger.tests


def test_is_kept_in_a_file(tmp_path: Path) -> None:
    path = Workspace(tmp_path).flakes
    assert tmp_path / ".cuggino/flakes.json" == path
    ledger = Flakes().seen(["tests/test_a.py::test_ü[a b]"], now=NOW)
    write_flakes(path, ledger)
    assert ledger == read_flakes(path)


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[]", b"null", b"\xff", b'{"tests": []}', b'{"tests": {"a": {"times": 0}}}'),
        b'{"tests": {"a": {"times": 1, "last_seen": "2026-01-01T00:00:00"}}}',
        b'{"tests": {"a": {"times": 1, "last_seen": "yesterday"}}}',
        b" " * 1_000_001,
    ],
)
def test_an_unusable_file_is_empty(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "flakes.json"
    path.write_bytes(content)
    assert Flakes() == read_flakes(path)


def test_a_missing_file_is_empty(tmp_path: Path) -> None:
    assert Flakes() == read_flakes(tmp_path / "flakes.json") == read_flakes(tmp_path)


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "flakes.json").mkdir()
    with pytest.raises(StorageError, match=r"flakes\.json"):
        write_flakes(tmp_path / "flakes.json", Flakes())
