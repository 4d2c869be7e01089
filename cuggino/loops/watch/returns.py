"""Why an item that was sent back is not worked on again."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from cuggino.events import WatchSentBack
from cuggino.gate import Repeats
from cuggino.loops.watch.pool_state import ItemWork

_NAMED, _LONGEST = 5, 300
"""The tests and the characters of a failure that the reason of a parked item names."""


def why_not_again(last: WatchSentBack, work: ItemWork, *, is_exhausted: bool) -> str | None:
    """Return why the item is given up after this return; None if it is worked on again."""
    if work.is_unfixable:
        return _why_unfixable(last, work.repeats)
    return _why_parked(last) if is_exhausted else None


def _why_unfixable(last: WatchSentBack, repeats: Repeats) -> str:
    assert repeats.result is not None
    lines = [line.strip() for line in last.output.splitlines() if line.strip()]
    what = ", ".join(repeats.result.failing[:_NAMED]) or (lines[-1] if lines else "no output")
    return (
        f"{_WHAT_FAILS[last.reason]} in the same way {repeats.times} times, although agents worked "
        f"on it: {what[:_LONGEST]}"
    )


_WHAT_FAILS: Mapping[str, str] = MappingProxyType(
    {
        "check": "the check command fails at the gate",
        "setup": "the setup command fails at the gate",
        "changed-files": "the check command changes files",
        "ci": "a job of its pull request fails",
        "review": "a review of its pull request asks for changes",
    }
)


def _why_parked(last: WatchSentBack) -> str:
    match last.reason:
        case "conflict":
            why = f"it conflicts with what has landed: {', '.join(last.paths)}"
        case "changed-files":
            why = f"{_WHAT_FAILS[last.reason]}: {', '.join(last.paths)}"
        case reason:
            why = _WHAT_FAILS[reason]
    return f"sent back {last.returns} times; {why}"
