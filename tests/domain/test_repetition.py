"""`RepetitionWatch`: the same tool calls with the same results."""

from __future__ import annotations

import pytest

from cuggino.domain import RepetitionWatch


def counts(calls: str) -> list[int]:
    """Return the count after each call; a letter is a tool with its input and result."""
    watch = RepetitionWatch()
    told = []
    for number, call in enumerate(calls):
        watch.called(call, {"of": call}, id=str(number))
        told.append(watch.answered(str(number), f"result of {call}"))
        assert watch.tool == call
    return told


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ("aaaa", [1, 2, 3, 4]),
        ("aabaa", [1, 2, 1, 1, 2]),
        ("abababab", [1, 1, 1, 2, 2, 3, 3, 4]),
        ("abcabcabc", [1, 1, 1, 1, 1, 2, 2, 2, 3]),
        ("abcdabcdabcd", [1] * 12),
    ],
)
def test_calls_in_a_row(calls: str, expected: list[int]) -> None:
    """Equal calls in a row count, and up to three different ones in turn."""
    assert expected == counts(calls)


def test_input_and_result_must_be_equal() -> None:
    """Another input or another result starts a new count; the order of keys does not matter."""
    watch = RepetitionWatch()
    told = []
    for given, result in [
        ({"a": 1, "b": 2}, "x"),
        ({"b": 2, "a": 1}, "x"),
        ({"a": 1, "b": 3}, "x"),
        ({"a": 1, "b": 3}, "y"),
        ({"a": 1, "b": 3}, "y"),
    ]:
        watch.called("Read", given, id="1")
        told.append(watch.answered("1", result))
    assert [1, 2, 1, 1, 2] == told


def test_calls_at_once_and_without_ids() -> None:
    """Results find their calls by id, those of calls without one in their order."""
    watch = RepetitionWatch()
    for number in range(3):
        watch.called("Bash", "make", id=f"b{number}")
    assert [1, 2, 3] == [watch.answered(f"b{number}", "ok") for number in (2, 0, 1)]
    for _ in range(2):
        watch.called("Read", "a")
    assert [1, 2] == [watch.answered("unknown", "text") for _ in range(2)]
    assert 1 == watch.answered("unknown", "a result without a call")
