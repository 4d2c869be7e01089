"""`cuggino deliver`: how each end of the loop is told, and with which code the command ends."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest

from cuggino import Runtime, dump_event, parse_event
from cuggino.errors import AgentNotFound, BudgetExceeded, CugginoError, QuotaExceeded
from cuggino.events import (
    DeliverablesListed,
    DeliverableState,
    DeliverEnded,
    DeliverExit,
    DeliverSessionEnded,
    DeliverSessionStarted,
    Event,
    ToolCall,
)
from cuggino_cli.main import main
from tests.cli.deliveries import DONE, OVERALL, SCENARIO, Loop, project_of

RESUME = "`cuggino deliver --resume` goes on where it stopped"
STARTED = DeliverSessionStarted(session=1, instruction="coding")
LISTED = DeliverablesListed(
    deliverables=(DeliverableState(id="DL-001", description="a login", status="passed"),)
)
NO_SANDBOX = "cuggino: scripted has no sandbox: its commands run in the open, the guard alone looks"


def end_of(loop: Loop, reason: DeliverExit, **fields: Any) -> DeliverEnded:
    event = DeliverEnded(reason=reason, **fields)
    loop.events = (STARTED, event)
    return event


@pytest.mark.parametrize(
    ("reason", "code", "compatible"),
    [
        ("all_passed", 0, 0),
        ("all_verified", 0, 0),
        ("max_iterations", 11, 0),
        ("quota_exceeded", 12, 1),
        ("budget_exceeded", 13, 1),
        ("stalled", 14, 1),
        ("max_retries_exceeded", 14, 1),
        ("all_blocked", 15, 1),
        ("interrupted", 130, 0),
        ("failed", 1, 1),
    ],
)
@pytest.mark.parametrize("output", ["--verbose", "--json"])
def test_exit_codes(
    reason: DeliverExit, code: int, compatible: int, output: str, delivered: Path, loop: Loop
) -> None:
    """Each end has the code of the table, or Autonoe's, also in front of a machine."""
    end_of(loop, reason)
    assert code == main(["deliver", output])
    assert compatible == main(["deliver", output, "--compat-exit-codes"])


def test_every_end_has_a_code() -> None:
    """No end of the loop is left out."""
    from cuggino_cli.follow_deliver import EXIT_CODES

    assert set(get_args(DeliverExit)) == set(EXIT_CODES)


def test_what_is_said(delivered: Path, loop: Loop, capsys: pytest.CaptureFixture[str]) -> None:
    """At the start stands what was asked for, at the end what it came to."""
    loop.events = (STARTED, ToolCall(name="Bash", input={"command": "ls"}), LISTED, DONE)
    main(["deliver", "-n", "3", "-m", "small", "--thinking", "-P", "big"])
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].startswith("cuggino deliver v")
    assert [
        "",
        "Starting coding agent session...",
        f"  Working directory: {delivered}",
        "  Max iterations: 3",
        "  Model: small",
        "  Plan model: big",
        "  Thinking: 8192 tokens",
        "",
        "Session 1 started",
        "▶ Bash: ls",
        "All achievable deliverables passed",
        OVERALL,
        "",
        "Session completed successfully",
    ] == lines[1:]
    assert NO_SANDBOX == err.strip()


@pytest.mark.parametrize("reason", ["interrupted", "failed"])
def test_how_to_go_on(
    reason: DeliverExit, delivered: Path, loop: Loop, capsys: pytest.CaptureFixture[str]
) -> None:
    """An end from which the run can go on says how, in whatever folder."""
    end_of(loop, reason)
    main(["deliver"])
    assert RESUME == capsys.readouterr().out.splitlines()[-1]
    other = project_of(delivered.parent / "other", "", journal=False)
    main(["deliver", "-p", "../other"])
    expected = f"`cuggino deliver --project-dir {other}` begins a new run with the deliverables"
    assert capsys.readouterr().out.splitlines()[-1].startswith(expected)


@pytest.mark.parametrize(
    ("reason", "error", "session", "expected"),
    [
        (
            "quota_exceeded",
            QuotaExceeded("hit your limit", resets_at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC)),
            DeliverSessionEnded(session=1, outcome="quota", message="hit your limit"),
            ["Session stopped: quota exceeded", "  start again after 2026-01-02 03:04 UTC"],
        ),
        (
            "budget_exceeded",
            BudgetExceeded("hit your limit", hint="allow more"),
            DeliverSessionEnded(session=1, outcome="budget"),
            ["Session stopped: hit your limit", "  allow more"],
        ),
        (
            "failed",
            AgentNotFound("hit your limit", hint="install it"),
            DeliverSessionEnded(session=1, outcome="max_turns"),
            ["Session stopped: hit your limit", "  install it"],
        ),
    ],
)
def test_an_error_that_the_end_has_told(
    reason: DeliverExit,
    error: CugginoError,
    session: Event,
    expected: list[str],
    delivered: Path,
    loop: Loop,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What ended the run is told once, then what to do about it, then how to go on."""
    loop.events = (STARTED, session, DeliverEnded(reason=reason, error=error.message))
    loop.error = error
    assert error.code == main(["deliver"])
    out, err = capsys.readouterr()
    assert expected == err.splitlines()[-2:]
    assert RESUME == out.splitlines()[-1]
    assert 1 == (out + err).count("hit your limit")
    assert 1 == main(["deliver", "--compat-exit-codes"])


def test_an_error_in_front_of_a_machine(
    delivered: Path, loop: Loop, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --json standard output holds events alone; the error is said beside it, once."""
    loop.events = (STARTED, LISTED, DeliverEnded(reason="budget_exceeded"))
    loop.error = BudgetExceeded("all is spent")
    for more, code in (([], 13), (["--compat-exit-codes"], 1)):
        assert code == main(["deliver", "--json", "--debug", *more])
        out, err = capsys.readouterr()
        assert list(loop.events) == [parse_event(line) for line in out.splitlines()]
        assert out == "".join(f"{dump_event(event)}\n" for event in loop.events)
        assert [NO_SANDBOX, "cuggino: all is spent"] == err.splitlines()


def test_an_error_before_the_end(
    delivered: Path, loop: Loop, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error that no end has told is told as that of any command."""
    loop.events, loop.error = (), CugginoError("the disk is full", hint="make room")
    for more in ([], ["--compat-exit-codes"]):
        assert 1 == main(["deliver", *more])
        out, err = capsys.readouterr()
        expected = ("", ["cuggino: the disk is full", "  make room"])
        assert expected == (out, err.splitlines()[1:])


@pytest.mark.parametrize("debug", [False, True])
def test_an_unexpected_error(
    debug: bool, delivered: Path, loop: Loop, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fault of our own is one line, and with --debug it says where it happened."""
    loop.events, loop.error = (STARTED,), ZeroDivisionError("by zero")
    assert 1 == main(["deliver", *(["--debug"] if debug else [])])
    err = capsys.readouterr().err
    assert "Error: by zero" in err.splitlines()
    assert debug == ("Traceback" in err)


def test_quiet(delivered: Path, loop: Loop, capsys: pytest.CaptureFixture[str]) -> None:
    """With --quiet sessions and the end are left."""
    loop.events = (STARTED, ToolCall(name="Bash"), DONE)
    main(["deliver", "--quiet"])
    lines = capsys.readouterr().out.splitlines()
    assert ["Session 1 started", "All achievable deliverables passed", OVERALL] == lines[:3]


def test_resuming(delivered: Path, loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unfinished run goes on with what is given now; its course is its own."""
    args = ["deliver", "--agent", "scripted:scenario.toml", "--resume"]
    main([*args, "0123", "-P", "big"])
    main([*args, "--budget", "5", "--strict-transitions"])
    assert [("0123", {"plan_model": "big"}), (None, {"strict_transitions": True})] == loop.resumed
    assert [None, 5.0] == [runtime.config.budget for runtime in loop.runtimes]
    assert [] == loop.options


def test_nothing_to_resume(delivered: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without an unfinished run nothing is started."""
    assert 2 == main(["deliver", "--resume"])
    out, err = capsys.readouterr()
    assert ("", True) == (out, err.startswith("cuggino: "))


def test_a_real_run(delivered: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A scripted agent lays the deliverables, and another session delivers them."""
    project_of(delivered, SCENARIO)
    assert 11 == main(["deliver", "-n", "1"])
    out, err = capsys.readouterr()
    assert out.splitlines()[-6:] == [
        "All is laid.",
        next(line for line in out.splitlines() if line.startswith("Session 1: cost=$0.2500, ")),
        "Max iterations (1) reached",
        next(line for line in out.splitlines() if line.startswith("Overall: 1 session(s), 0/1 ")),
        "",
        "Session stopped: max iterations reached",
    ]
    assert NO_SANDBOX == err.strip()
    assert 0 == main(["deliver", "-n", "1", "--json"])
    events = [parse_event(line) for line in capsys.readouterr().out.splitlines()]
    last = events[-1]
    assert isinstance(last, DeliverEnded)
    assert ("all_passed", 1, 1) == (last.reason, last.passed, last.total)
    assert 0 == main(["deliver"])
    assert "Overall: 0 session(s), 1/1 deliverables passed" in capsys.readouterr().out


def test_the_loop_gets_what_interrupts_it(delivered: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is handed to the loop says nothing by itself."""
    heard: list[object] = []
    drawn = Loop()

    def deliver(_runtime: Runtime, _options: object, *, interrupt: Any) -> Any:
        interrupt.subscribe(heard.append)
        return drawn.stream()

    monkeypatch.setattr(Runtime, "deliver", deliver)
    assert (0, []) == (main(["deliver"]), heard)
