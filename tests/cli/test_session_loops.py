"""What `cuggino deliver` and `cuggino loop` share: exit codes, output, errors, options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cuggino import Runtime, dump_event, errors, events as ev
from cuggino_cli.main import main
from tests.cli import deliveries, loops
from tests.cli.cli import Cli
from tests.cli.drawn_runs import DrawnRun
from tests.cli.stamps import unstamped


@dataclass(frozen=True)
class Command:
    """A command that runs a loop of sessions, and the test double for its loop."""

    words: tuple[str, ...]
    drawn: DrawnRun[Any]
    begun: ev.Event
    end: Callable[..., ev.Event]
    shown: tuple[str, ...]
    """What is printed of `begun` and the usual end, without the calls of tools."""
    scenario: Callable[[], Path]
    """Make the project one whose scripted agent does all."""

    @property
    def how_to_resume(self) -> str:
        return f"`cuggino {self.words[0]} --resume` continues where it stopped"

    def ends(self, reason: str, *before: ev.Event, **fields: Any) -> None:
        self.drawn.events = (self.begun, *before, self.end(reason=reason, **fields))


@pytest.fixture(params=["deliver", "loop"])
def command(request: pytest.FixtureRequest) -> Command:
    """Each command in a project of its own, which is the working directory."""
    if request.param == "deliver":
        delivered: Path = request.getfixturevalue("delivered")
        return Command(
            words=("deliver",),
            drawn=request.getfixturevalue("loop"),
            begun=ev.DeliverSessionStarted(session=1, instruction="coding"),
            end=ev.DeliverEnded,
            shown=("Session 1 started", "All achievable deliverables passed", deliveries.OVERALL),
            scenario=lambda: deliveries.project_of(delivered, deliveries.SCENARIO, sandbox="off"),
        )
    looping: Path = request.getfixturevalue("looping")
    return Command(
        words=("loop", "--auto"),
        drawn=request.getfixturevalue("drawn_loop"),
        begun=ev.PlanBuildPhaseStarted(phase="plan", iteration=1),
        end=ev.PlanBuildEnded,
        shown=(
            *("------------", "Mode: PLAN", "------------"),
            *("Loop complete! All jobs finished.", loops.OVERALL),
        ),
        scenario=lambda: loops.project_of(looping, loops.SCENARIO),
    )


@pytest.mark.parametrize(
    ("delivery", "loop_reason", "code", "of_autonoe", "of_lopen"),
    [
        ("all_passed", "complete", 0, 0, 0),
        ("all_verified", "planned", 0, 0, 0),
        ("max_iterations", "max_iterations", 11, 0, 1),
        ("quota_exceeded", "quota_exceeded", 12, 1, 5),
        ("budget_exceeded", "budget_exceeded", 13, 1, 1),
        ("stalled", "stalled", 14, 1, 1),
        ("max_retries_exceeded", "max_retries_exceeded", 14, 1, 5),
        ("all_blocked", "blocked", 15, 1, 1),
        ("interrupted", "interrupted", 130, 0, 0),
        ("failed", "failed", 1, 1, 1),
    ],
)
def test_exit_codes(
    delivery: str, loop_reason: str, code: int, of_autonoe: int, of_lopen: int, command: Command
) -> None:
    """Each outcome has the exit code of the table, or of Autonoe and Lopen, with `--json` too."""
    is_delivery = command.words == ("deliver",)
    command.ends(delivery if is_delivery else loop_reason)
    assert code == main([*command.words, "--verbose"])
    compatible = of_autonoe if is_delivery else of_lopen
    assert compatible == main([*command.words, "--json", "--compat-exit-codes"])


def test_quiet(command: Command, cli: Cli) -> None:
    """With `--quiet` only the parts of the loop and its outcome are printed."""
    first, *rest = command.drawn.events
    command.drawn.events = (command.begun, ev.ToolCall(name="Bash"), first, *rest)
    printed = unstamped(cli(*command.words, "--quiet"))
    assert [*command.shown] == printed[: len(command.shown)]


def test_json(command: Command, cli: Cli) -> None:
    """With `--json` standard output has events only; an error goes to stderr, once."""
    command.ends("budget_exceeded", error="all is spent")
    command.drawn.error = errors.BudgetExceeded("all is spent")
    out, err = cli.both(*command.words, "--json", code=13)
    assert out == "".join(f"{dump_event(event)}\n" for event in command.drawn.events)
    assert ["cuggino: all is spent"] == err.splitlines()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (errors.BudgetExceeded("hit your limit", hint="allow more"), "budget_exceeded"),
        (errors.AgentNotFound("hit your limit", hint="allow more"), "failed"),
    ],
)
def test_an_error_in_the_outcome(
    error: errors.CugginoError, reason: str, command: Command, cli: Cli
) -> None:
    """The error is printed once, then its advice, then how to resume."""
    command.ends(reason, error=error.message)
    command.drawn.error = error
    out, err = cli.both(*command.words, code=error.code)
    assert "  allow more" == unstamped(err)[-1]
    assert command.how_to_resume == out.splitlines()[-1]
    assert 1 == (out + err).count("hit your limit")


def test_an_error_before_the_outcome(command: Command, cli: Cli) -> None:
    """An error before any outcome is reported like that of any command."""
    command.drawn.events = ()
    command.drawn.error = errors.CugginoError("the disk is full", hint="make room")
    for more in ([], ["--compat-exit-codes"]):
        out, err = cli.both(*command.words, *more, code=1)
        assert ["cuggino: the disk is full", "  make room"] == err.splitlines()
        assert command.how_to_resume not in out


def test_nothing_to_resume(command: Command, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """Without an unfinished run nothing is started."""
    monkeypatch.undo()
    out, err = cli.both(command.words[0], "--resume", code=2)
    assert ("", True) == (out, err.startswith("cuggino: there is no unfinished run"))


@pytest.mark.usefixtures("no_session_pause")
@pytest.mark.parametrize(
    "command",
    # A session that has the deliverable tools takes seconds: with the second command.
    ["loop", pytest.param("deliver", marks=pytest.mark.real_agent)],
    indirect=True,
)
@pytest.mark.parametrize("again", [["follow"], ["runs", "replay", "0"]])
def test_a_recorded_run_looks_the_same(
    again: list[str], command: Command, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """Whoever follows or replays the run sees what its command has printed, and nothing twice."""
    folder = command.scenario()
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    lines = unstamped(cli(*command.words))
    replayed = unstamped(cli(*again))
    assert lines[-len(replayed) :] == replayed
    assert {"All is done.", "All is built."} & {*replayed}


def test_the_loop_gets_the_interrupt_signal(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interrupt source passed to the loop emits nothing until a signal arrives."""
    heard: list[object] = []

    def begin(_runtime: Runtime, _options: object, *, interrupt: Any) -> Any:
        interrupt.subscribe(heard.append)
        return command.drawn.stream()

    for method in ("deliver", "plan_build"):
        monkeypatch.setattr(Runtime, method, begin)
    assert (0, []) == (main([*command.words]), heard)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["-n", "7"], {"max_sessions": 7}),
        (["--max-iterations", "7", "--max-retries", "0"], {"max_sessions": 7, "max_retries": 0}),
        (["-m", "small"], {"model": "small"}),
        (["--budget", "2.5", "--max-tokens", "9"], {"budget": 2.5, "max_tokens": 9}),
        (["--max-duration", "1h30m"], {"max_duration": 5400.0}),
        (["--wait-for-quota"], {"wait_for_quota": True}),
        (["--no-sandbox"], {"sandbox": "off"}),
        (["--agent", "scripted:scenario.toml"], {"agent": "scripted:scenario.toml"}),
    ],
)
def test_options_reach_the_loop(
    args: list[str], expected: dict[str, Any], command: Command
) -> None:
    """Each option that both have reaches the loop."""
    assert 0 == main([*command.words, *args])
    (options,) = command.drawn.options
    assert expected == {name: getattr(options, name) for name in expected}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-n", "0"], "Max iterations must be positive, got 0"),
        (["-n", "1.5"], "Max iterations must be a whole number, got 1.5"),
        (["--max-retries", "-1"], "Max retries must be non-negative, got -1"),
        (["--max-retries", ""], "Max retries must be a whole number, got "),
        (["--quiet", "--verbose"], "--verbose and --quiet exclude each other."),
        (["--budget", "0"], "0"),
        (["--nothing"], "No such option"),
        (["nothing"], "nothing"),
    ],
)
@pytest.mark.parametrize("is_compatible", [False, True])
def test_wrong_usage(
    args: list[str], message: str, is_compatible: bool, command: Command, cli: Cli
) -> None:
    """A usage error is reported on standard error, with its own code, and nothing starts."""
    more = ["--compat-exit-codes"] if is_compatible else []
    code = 1 if is_compatible and command.words == ("deliver",) else 2
    out, err = cli.both(command.words[0], *more, *args, code=code)
    assert ("", []) == (out, command.drawn.options)
    assert message in err.splitlines()[-1]
