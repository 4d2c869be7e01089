"""`cuggino deliver`: the output and exit code of each outcome of the loop."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cuggino import Runtime, dump_event, events as ev, parse_event
from cuggino.errors import AgentNotFound, BudgetExceeded, CugginoError, QuotaExceeded
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.deliveries import DONE, OVERALL, SCENARIO, Loop, project_of
from tests.cli.stamps import unstamped

RESUME = "`cuggino deliver --resume` continues where it stopped"
STARTED = ev.DeliverSessionStarted(session=1, instruction="coding")
LISTED = ev.DeliverablesListed(
    deliverables=(ev.DeliverableState(id="DL-001", description="a login", status="passed"),)
)


def end_of(loop: Loop, reason: ev.DeliverExit, **fields: Any) -> ev.DeliverEnded:
    event = ev.DeliverEnded(reason=reason, **fields)
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
    reason: ev.DeliverExit, code: int, compatible: int, output: str, delivered: Path, loop: Loop
) -> None:
    """Each outcome has the exit code of the table or of Autonoe, with `--json` too."""
    end_of(loop, reason)
    assert code == main(["deliver", output])
    assert compatible == main(["deliver", output, "--compat-exit-codes"])


def test_banner_and_summary(delivered: Path, loop: Loop, cli: Cli) -> None:
    """The banner shows the options, the summary the outcome."""
    loop.events = (STARTED, ev.ToolCall(name="Bash", input={"command": "ls"}), LISTED, DONE)
    out, err = cli.both("deliver", "-n", "3", "-m", "small", "--thinking", "-P", "big", code=None)
    lines = unstamped(out)
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
    assert "" == err


@pytest.mark.parametrize("reason", ["interrupted", "failed"])
def test_how_to_resume(reason: ev.DeliverExit, delivered: Path, loop: Loop, cli: Cli) -> None:
    """An outcome that can be resumed shows how, in any folder."""
    end_of(loop, reason)
    assert RESUME == cli("deliver", code=None).splitlines()[-1]
    other = project_of(delivered.parent / "other", "", journal=False)
    main(["deliver", "-p", "../other"])
    expected = (
        f"`cuggino deliver --project-dir {other}` starts a new run with the current deliverables"
    )
    assert cli.printed().out.splitlines()[-1].startswith(expected)


@pytest.mark.parametrize(
    ("reason", "error", "session", "expected"),
    [
        (
            "quota_exceeded",
            QuotaExceeded("hit your limit", resets_at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC)),
            ev.DeliverSessionEnded(session=1, outcome="quota", message="hit your limit"),
            ["Session stopped: quota exceeded", "  start again after 2026-01-02 03:04 UTC"],
        ),
        (
            "budget_exceeded",
            BudgetExceeded("hit your limit", hint="allow more"),
            ev.DeliverSessionEnded(session=1, outcome="budget"),
            ["Session stopped: hit your limit", "  allow more"],
        ),
        (
            "failed",
            AgentNotFound("hit your limit", hint="install it"),
            ev.DeliverSessionEnded(session=1, outcome="max_turns"),
            ["Session stopped: hit your limit", "  install it"],
        ),
    ],
)
def test_an_error_in_the_outcome(
    reason: ev.DeliverExit,
    error: CugginoError,
    session: ev.Event,
    expected: list[str],
    delivered: Path,
    loop: Loop,
    cli: Cli,
) -> None:
    """The error is printed once, then its advice, then how to resume."""
    loop.events = (STARTED, session, ev.DeliverEnded(reason=reason, error=error.message))
    loop.error = error
    assert error.code == main(["deliver"])
    out, err = cli.printed()
    assert expected == unstamped(err)[-2:]
    assert RESUME == out.splitlines()[-1]
    assert 1 == (out + err).count("hit your limit")
    assert 1 == main(["deliver", "--compat-exit-codes"])


def test_an_error_with_json(delivered: Path, loop: Loop, cli: Cli) -> None:
    """With `--json` standard output has events only; the error goes to stderr once."""
    loop.events = (STARTED, LISTED, ev.DeliverEnded(reason="budget_exceeded"))
    loop.error = BudgetExceeded("all is spent")
    for more, code in (([], 13), (["--compat-exit-codes"], 1)):
        out, err = cli.both("deliver", "--json", "--debug", *more, code=code)
        assert list(loop.events) == [parse_event(line) for line in out.splitlines()]
        assert out == "".join(f"{dump_event(event)}\n" for event in loop.events)
        assert ["cuggino: all is spent"] == err.splitlines()


def test_an_error_before_the_outcome(delivered: Path, loop: Loop, cli: Cli) -> None:
    """An error before any outcome is reported like that of any command."""
    loop.events, loop.error = (), CugginoError("the disk is full", hint="make room")
    for more in ([], ["--compat-exit-codes"]):
        out, err = cli.both("deliver", *more, code=1)
        expected = ("", ["cuggino: the disk is full", "  make room"])
        assert expected == (out, err.splitlines())


@pytest.mark.parametrize("debug", [False, True])
def test_an_unexpected_error(debug: bool, delivered: Path, loop: Loop, cli: Cli) -> None:
    """An internal error is one line; `--debug` shows its location."""
    loop.events, loop.error = (STARTED,), ZeroDivisionError("by zero")
    err = cli.err("deliver", *(["--debug"] if debug else []), code=1)
    assert "Error: by zero" in err.splitlines()
    assert debug == ("Traceback" in err)


def test_quiet(delivered: Path, loop: Loop, cli: Cli) -> None:
    """With `--quiet` only sessions and the outcome are printed."""
    loop.events = (STARTED, ev.ToolCall(name="Bash"), DONE)
    lines = unstamped(cli("deliver", "--quiet", code=None))
    assert ["Session 1 started", "All achievable deliverables passed", OVERALL] == lines[:3]


def test_resuming(delivered: Path, loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A resumed run uses the new options and keeps its recorded settings."""
    args = ["deliver", "--agent", "scripted:scenario.toml", "--resume"]
    main([*args, "0123", "-P", "big"])
    main([*args, "--budget", "5", "--strict-transitions"])
    assert [("0123", {"plan_model": "big"}), (None, {"strict_transitions": True})] == loop.resumed
    assert [None, 5.0] == [runtime.config.budget for runtime in loop.runtimes]
    assert [] == loop.options


def test_nothing_to_resume(delivered: Path, cli: Cli) -> None:
    """Without an unfinished run nothing is started."""
    out, err = cli.both("deliver", "--resume", code=2)
    assert ("", True) == (out, err.startswith("cuggino: "))


def test_a_real_run(delivered: Path, cli: Cli) -> None:
    """A scripted agent creates the deliverables, and another session completes them."""
    project_of(delivered, SCENARIO, sandbox="off")
    out, err = cli.both("deliver", "-n", "1", code=11)
    lines = unstamped(out)
    assert lines[-6:] == [
        "All is laid.",
        next(line for line in lines if line.startswith("Session 1: cost=$0.2500, ")),
        "Max iterations (1) reached",
        next(line for line in lines if line.startswith("Overall: 1 session(s), 0/1 ")),
        "",
        "Session stopped: max iterations reached",
    ]
    assert "" == err
    events = [parse_event(line) for line in cli("deliver", "-n", "1", "--json").splitlines()]
    last = events[-1]
    assert isinstance(last, ev.DeliverEnded)
    assert ("all_passed", 1, 1) == (last.reason, last.passed, last.total)
    assert "Overall: 0 session(s), 1/1 deliverables passed" in cli("deliver")


def test_the_loop_gets_the_interrupt_signal(
    delivered: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interrupt source passed to the loop emits nothing until a signal arrives."""
    heard: list[object] = []
    drawn = Loop()

    def deliver(_runtime: Runtime, _options: object, *, interrupt: Any) -> Any:
        interrupt.subscribe(heard.append)
        return drawn.stream()

    monkeypatch.setattr(Runtime, "deliver", deliver)
    assert (0, []) == (main(["deliver"]), heard)


@pytest.mark.parametrize(
    "again", [["follow"], pytest.param(["runs", "replay", "0"], marks=pytest.mark.real_agent)]
)
def test_a_recorded_run_looks_the_same(again: list[str], delivered: Path, cli: Cli) -> None:
    """Whoever follows or replays the run sees what its command has printed, and nothing twice."""
    project_of(delivered, SCENARIO, sandbox="off")
    lines = unstamped(cli("deliver"))
    replayed = unstamped(cli(*again))
    assert "All is done." in replayed
    assert lines[-len(replayed) :] == replayed
