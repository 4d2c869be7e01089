"""`cuggino loop`: the output and exit code of each outcome of the loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuggino import Runtime, dump_event, errors, parse_event
from cuggino.events import PlanBuildEnded, PlanBuildExit, PlanBuildPhaseStarted, ToolCall
from cuggino.git.branch import BranchRefused
from cuggino.prompts.plan_build import PromptNotFound
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.loops import BANNER, OVERALL, SCENARIO, DrawnLoop, project_of
from tests.cli.stamps import unstamped

RESUME = "`cuggino loop --resume` continues where it stopped"
PHASE = PlanBuildPhaseStarted(phase="plan", iteration=1)


@pytest.mark.parametrize(
    ("reason", "code", "compatible"),
    [
        ("complete", 0, 0),
        ("planned", 0, 0),
        ("max_iterations", 11, 1),
        ("quota_exceeded", 12, 5),
        ("budget_exceeded", 13, 1),
        ("stalled", 14, 1),
        ("max_retries_exceeded", 14, 5),
        ("blocked", 15, 1),
        ("interrupted", 130, 0),
        ("failed", 1, 1),
    ],
)
@pytest.mark.parametrize("output", ["--verbose", "--json"])
def test_exit_codes(
    reason: PlanBuildExit, code: int, compatible: int, output: str, drawn_loop: DrawnLoop
) -> None:
    """Each outcome has the exit code of the table or of Lopen, with `--json` too."""
    drawn_loop.events = (PHASE, PlanBuildEnded(reason=reason))
    assert code == main(["loop", "--auto", output])
    assert compatible == main(["loop", "--auto", output, "--compat-exit-codes"])


@pytest.mark.parametrize(
    ("error", "code", "compatible"),
    [
        (errors.AgentNotFound("no agent"), 2, 5),
        (errors.AgentFailed("log in", reason="auth"), 1, 3),
        (errors.NotLoggedIn("log in"), 2, 3),
        (errors.AgentFailed("no network", reason="connection"), 1, 4),
        (errors.AgentFailed("broken", reason="unknown"), 1, 5),
        (errors.LoopError("build", "x", cause=errors.AgentFailed("log in", reason="auth")), 1, 3),
        (errors.ConfigError("bad file"), 2, 6),
        (BranchRefused("main"), 2, 1),
        (PromptNotFound("Build prompt not found"), 2, 1),
        (errors.WorkspaceLocked("here", 1), 2, 1),
        (errors.CugginoError("the disk is full"), 1, 1),
    ],
)
@pytest.mark.parametrize("told", [True, False])
def test_errors(
    error: errors.CugginoError,
    code: int,
    compatible: int,
    told: bool,
    drawn_loop: DrawnLoop,
    cli: Cli,
) -> None:
    """An error has its exit code, or Lopen's, and is reported once."""
    end = PlanBuildEnded(reason="failed", error=error.message)
    drawn_loop.events, drawn_loop.error = ((PHASE, end) if told else ()), error
    out, err = cli.both("loop", "--auto", code=code)
    assert (0, 1) == (out.count(error.message), err.count(error.message))
    assert told == (RESUME in out.splitlines())
    assert compatible == main(["loop", "--auto", "--compat-exit-codes"])


def test_banner_and_summary(drawn_loop: DrawnLoop, cli: Cli) -> None:
    """The banner comes first, the summary last."""
    drawn_loop.events = (PHASE, ToolCall(name="Bash", input={"command": "ls"}), *drawn_loop.events)
    out, err = cli.both("loop", "--auto")
    block = ["------------", "Mode: PLAN", "------------"]
    last = ["Loop complete! All jobs finished.", OVERALL]
    assert [BANNER, *block, "▶ Bash: ls", *last] == unstamped(out)
    assert "" == err


def test_quiet(drawn_loop: DrawnLoop, cli: Cli) -> None:
    """With `--quiet` only phases and the outcome are printed."""
    drawn_loop.events = (PHASE, ToolCall(name="Bash"), *drawn_loop.events)
    assert [
        *("------------", "Mode: PLAN", "------------"),
        "Loop complete! All jobs finished.",
        OVERALL,
    ] == unstamped(cli("loop", "--auto", "--quiet", code=None))


def test_with_json(drawn_loop: DrawnLoop, cli: Cli) -> None:
    """With `--json` standard output has events only, and nothing is asked."""
    drawn_loop.events, drawn_loop.error = (
        (PHASE, PlanBuildEnded(reason="failed")),
        errors.ConfigError("x"),
    )
    out, err = cli.both("loop", "--json", code=2)
    assert out == "".join(f"{dump_event(event)}\n" for event in drawn_loop.events)
    asked = "cuggino: no terminal to ask on, continuing as with --auto"
    assert [asked, "cuggino: x"] == err.splitlines()


def test_no_terminal_to_ask_on(drawn_loop: DrawnLoop, cli: Cli) -> None:
    """Without a terminal it plans and builds, and reports that it did not ask (LOP-004)."""
    out, err = cli.both("loop")
    assert "cuggino: no terminal to ask on, continuing as with --auto\n" == err
    assert ("plan", False) == (drawn_loop.options[0].start, "Select" in out)


@pytest.mark.parametrize(("more", "code"), [([], 2), (["--compat-exit-codes"], 1)])
def test_a_protected_branch(
    more: list[str],
    code: int,
    looping: Path,
    drawn_loop: DrawnLoop,
    cli: Cli,
) -> None:
    """On main nothing is started unless that is allowed (LOP-040)."""
    project_of(looping, branch="main")
    assert code == main(["loop", "--auto", *more])
    refusal = "Cannot run loop on main/master branch. Create a feature branch first."
    hint = "  git switch -c NAME, or --allow-main"
    assert [f"cuggino: {refusal}", hint] == cli.printed().err.splitlines()
    assert [] == drawn_loop.options
    assert 0 == main(["loop", "--auto", "--allow-main", *more])
    assert [True] == [options.allow_main for options in drawn_loop.options]


def test_resuming(drawn_loop: DrawnLoop) -> None:
    """A resumed run uses the new options, and nothing is asked."""
    agent = ["--agent", "scripted:scenario.toml"]
    assert 0 == main(["loop", *agent, "--model", "small", "--resume", "0123"])
    assert 0 == main(["loop", *agent, "--budget", "5", "--resume"])
    assert ["0123", None] == [run_id for run_id, _given in drawn_loop.resumed]
    assert "small" == drawn_loop.resumed[0][1]["model"]
    assert [None, 5.0] == [runtime.config.budget for runtime in drawn_loop.runtimes]
    assert [] == drawn_loop.options


def test_nothing_to_resume(looping: Path, cli: Cli) -> None:
    """Without an unfinished run nothing is started."""
    out, err = cli.both("loop", "--resume", code=2)
    assert ("", True) == (out, err.startswith("cuggino: there is no unfinished run"))


def test_how_to_resume(looping: Path, drawn_loop: DrawnLoop, cli: Cli) -> None:
    """A resumable outcome shows how to resume, with the given file."""
    drawn_loop.events = (PHASE, PlanBuildEnded(reason="interrupted"))
    (looping / "my file.json").write_text("{}")
    out, err = cli.both("loop", "--auto", "--config", "my file.json", code=None)
    expected = "`cuggino loop --config 'my file.json' --resume` continues where it stopped"
    assert (expected, ["Loop cancelled by user."]) == (out.splitlines()[-1], unstamped(err))
    project_of(looping, journal=False)
    main(["loop", "--auto"])
    expected = "`cuggino loop` starts a new run with the current jobs"
    assert expected == cli.printed().out.splitlines()[-1]


def test_a_spent_budget(drawn_loop: DrawnLoop, cli: Cli) -> None:
    """The summary ends with how to raise the budget."""
    error = errors.BudgetExceeded("all is spent", hint="allow more")
    drawn_loop.events = (PHASE, PlanBuildEnded(reason="budget_exceeded", error=error.message))
    drawn_loop.error = error
    out, err = cli.both("loop", "--auto", code=13)
    assert ["Loop stopped: budget exceeded: all is spent", "  allow more"] == unstamped(err)
    assert RESUME == out.splitlines()[-1]


def test_an_unknown_model(drawn_loop: DrawnLoop, cli: Cli) -> None:
    """An error about the model explains how to choose another (LOP-114)."""
    error = errors.AgentFailed("There is no model m-9", reason="bad_request")
    drawn_loop.events = (PHASE, PlanBuildEnded(reason="failed", error=error.message))
    drawn_loop.error = error
    assert 1 == main(["loop", "--auto"])
    expected = "  see `cuggino loop configure --model`: names of models differ per agent"
    assert expected == cli.printed().err.splitlines()[-1]


def test_a_real_run(looping: Path, cli: Cli) -> None:
    """A scripted agent plans a job, builds it, and has it verified."""
    project_of(looping, SCENARIO)
    lines = unstamped(cli("loop", "--auto"))
    told = ["Mode: PLAN", "All is planned.", "Jobs: 1 open, 0 done", "Next: J1: a"]
    told += ["Completed iteration 1", "Mode: BUILD", "[file] lopen.loop.done", "All is built."]
    told += ["Mode: VERIFY", "Build verified", "Job verified: J1: a", "Jobs: 0 open, 1 done"]
    told += ["Completed iteration 2", "Loop complete! All jobs finished."]
    assert told == [line for line in lines if line in told]
    assert lines[-1].startswith("Overall: 2 iteration(s). Jobs: 0 open, 1 done. cost=$0.7500, ")


@pytest.mark.parametrize("again", [["follow"], ["runs", "replay", "0"]])
def test_a_recorded_run_looks_the_same(again: list[str], looping: Path, cli: Cli) -> None:
    """Whoever follows or replays the loop sees what its command has printed, and nothing twice."""
    project_of(looping, SCENARIO)
    banner, *lines = unstamped(cli("loop", "--auto"))
    assert (BANNER, lines) == (banner, unstamped(cli(*again)))


UNFINISHED = [
    {"type": "message_start", "message": {"id": "m9", "role": "assistant", "content": []}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hm..."}},
]
"""A message that the agent begins to write, and never ends."""


@pytest.mark.parametrize("stream", [True, False])
def test_a_message_is_shown_while_it_is_written(stream: bool, looping: Path, cli: Cli) -> None:
    """With `stream` the words come as the agent writes them, without `--verbose` (LOP-081)."""
    lines = [json.dumps({"type": "stream_event", "event": event}) for event in UNFINISHED]
    raw = f"[[plan.steps]]\nraw = {json.dumps(chr(10).join(lines))}\n"
    first, _, rest = SCENARIO.partition("[[plan.steps]]\n")
    project_of(looping, f"{first}{raw}[[plan.steps]]\n{rest}")
    (looping / "loop.json").write_text(json.dumps({"stream": stream}), encoding="utf-8")
    assert stream == ("Hm..." in cli("loop", "--auto", "--config", "loop.json").splitlines())


def test_events_of_a_real_run(looping: Path, cli: Cli) -> None:
    """With `--json` the same run prints its events."""
    project_of(looping, SCENARIO)
    events = [parse_event(line) for line in cli("loop", "--auto", "--json").splitlines()]
    last = events[-1]
    assert isinstance(last, PlanBuildEnded)
    assert ("complete", 2, 0, 1) == (last.reason, last.iterations, last.open, last.done)


def test_the_loop_gets_the_interrupt_signal(looping: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interrupt source passed to the loop emits nothing until a signal arrives."""
    heard: list[object] = []
    drawn = DrawnLoop()

    def plan_build(_runtime: Runtime, _options: object, *, interrupt: Any) -> Any:
        interrupt.subscribe(heard.append)
        return drawn.stream()

    monkeypatch.setattr(Runtime, "plan_build", plan_build)
    assert (0, []) == (main(["loop", "--auto"]), heard)
