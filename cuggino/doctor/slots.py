"""Check whether the slots of a watch would wait for its check, by what has run so far."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cuggino.config import CONFIG_FILE, Config
from cuggino.doctor.result import CheckResult
from cuggino.runs import read_pace

_MOST = 64
"""The highest number of slots that can be set."""


def slots(folder: Path, config: Config) -> Iterator[CheckResult]:
    """Report how many slots are used, and how many would not wait for the check.

    Nothing is said of a project that cannot use slots, or uses none and has too few recorded items.
    """
    if not config.commit or config.check_command is None:
        return
    pace = read_pace(folder)
    if pace is None:
        if config.slots > 1:
            yield CheckResult("ok", f"slots: {config.slots}")
        return
    most = min(pace.useful_slots, _MOST)
    times = f"an item takes {_time(pace.item)}, the check of each landing {_time(pace.check)}"
    if config.slots > most:
        yield CheckResult(
            "note",
            f"slots: {config.slots}, of which {config.slots - most} would wait for the check: "
            f"{times}",
            f'set "slots" to {most} in {CONFIG_FILE}, or make the check faster',
        )
    elif most > 1:
        yield CheckResult(
            "ok", f"slots: {config.slots}; up to {most} would not wait for the check ({times})"
        )


def _time(seconds: float) -> str:
    """Return `40 s`, `12 min` or `2.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 1 else "less than 1 s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
