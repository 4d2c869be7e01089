"""What a check says, compared with what it said before."""

from __future__ import annotations

import pytest

from cuggino.gate import CheckResult, Repeats, hidden_failures, judge_check


def result(*names: str, code: int = 1, output: str = "") -> CheckResult:
    lines = [f"FAILED tests/test_{name}.py::test_{name} - x" for name in names]
    count = [f"{len(names)} failed in 0.01s"] if names else []
    return CheckResult.of(code, "\n".join([output, *lines, *count]))


GREEN = CheckResult.of(0, "fine")
A, B, AB = result("a"), result("b"), result("a", "b")
NAMELESS = result(output="no")


@pytest.mark.parametrize(
    ("now", "baseline", "verdict"),
    [
        (GREEN, None, "passed"),
        (GREEN, A, "passed"),
        (A, None, "failed"),
        (A, GREEN, "failed"),
        (A, A, "known"),
        (A, AB, "known"),
        (AB, A, "failed"),
        (B, A, "failed"),
        (NAMELESS, NAMELESS, "failed"),
        (A, NAMELESS, "failed"),
        (NAMELESS, A, "failed"),
    ],
)
def test_judge_check(now: CheckResult, baseline: CheckResult | None, verdict: str) -> None:
    """Only failures that are told apart, and were there before, are let pass."""
    assert verdict == judge_check(now, baseline)


@pytest.mark.parametrize(
    ("work", "at_start", "hidden", "failing"),
    [
        (GREEN, GREEN, False, ()),
        (A, GREEN, False, ()),
        (GREEN, A, True, A.failing),
        (GREEN, NAMELESS, True, ()),
        (A, A, False, ()),
        (A, AB, True, B.failing),
        (NAMELESS, A, False, ()),
    ],
)
def test_hidden_failures(
    work: CheckResult, at_start: CheckResult, hidden: bool, failing: tuple[str, ...]
) -> None:
    """Failures that only the files of the start bring out."""
    assert (hidden, failing) == hidden_failures(work, at_start)


def test_repeats() -> None:
    """Only the same failure for the same reason counts on."""
    times = []
    repeats = Repeats()
    for reason, now in [
        *(("check", A), ("check", A), ("check", B), ("weakened", B), ("weakened", B)),
        *(("check", NAMELESS), ("check", NAMELESS), ("not_committed", None)),
        ("not_committed", None),
    ]:
        repeats = repeats.add(reason, now)
        times.append(repeats.times)
    assert [1, 2, 1, 1, 2, 1, 2, 1, 2] == times


def test_a_check_that_passes_ends_the_row() -> None:
    """Of red checks; it says nothing about a check that was weakened."""
    red = Repeats().add("check", A)
    assert Repeats() == red.after(GREEN)
    assert red == red.after(A)
    weakened = Repeats().add("weakened", A)
    assert weakened == weakened.after(GREEN)


def test_is_like() -> None:
    """Two results are alike if both passed, or both failed in the same way."""
    assert GREEN.is_like(CheckResult.of(0, "other words"))
    assert A.is_like(result("a", output="other words"))
    assert not A.is_like(result("a", code=2))
    assert not A.is_like(GREEN)
