"""Blocks and lines of the plan/build loop."""

from __future__ import annotations

import io
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.runs.words import words
from cuggino_cli.screen.terminal import choose_color
from tests.vectors import not_followed, rows

ROWS = {row["id"]: row for row in rows("lopen_output")}


class Screen(io.StringIO):
    """A stream that is optionally a terminal."""

    def __init__(self, *, tty: bool) -> None:
        super().__init__()
        self._tty = tty

    def isatty(self) -> bool:
        return self._tty


def text(event: ev.Event) -> str:
    """Return the sentence of the event."""
    spoken = words(event)
    assert spoken is not None
    return spoken.text


def answer(call: dict[str, Any]) -> object:
    """Return the result of a case's call, or None if it is not implemented."""
    match call["fn"]:
        case "phase_header":
            return text(ev.PlanBuildPhaseStarted(iteration=1, phase=call["phase"].lower())) + "\n"
        case "iteration_complete":
            return text(ev.PlanBuildIterationEnded(iteration=call["n"])) + "\n"
        case "use_color":
            return choose_color("auto", Screen(tty=call["tty"]), call["env"])
        case _:
            return None


@pytest.mark.parametrize("case", ROWS)
def test_recorded_output(case: str) -> None:
    """Each case gives its recorded result or is listed with a reason."""
    row = ROWS[case]
    followed = case not in not_followed("lopen_output")
    assert followed == (row["expected"] == answer(row["call"]))


def test_job_counts() -> None:
    """Open and done jobs are counted, and blocked ones if there are any."""
    assert "Jobs: 2 open, 0 done" == text(ev.JobsCounted(open=2, done=0))
    counted = ev.JobsCounted(open=1, blocked=1, done=3)
    assert "Jobs: 2 open (1 blocked), 3 done" == text(counted)


def test_build_verification_lines() -> None:
    """Success is one line; a failure adds one for each issue, with continuation lines below."""
    assert "Build verified" == text(ev.BuildVerified(passed=True, issues=("never shown",)))
    expected = "Build verification failed\n  - one\n  - two\n    lines"
    assert expected == text(ev.BuildVerified(passed=False, issues=("one", "two\nlines\n")))
