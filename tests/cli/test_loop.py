"""`cuggino loop`: outcomes, options, questions."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cuggino import errors, parse_event
from cuggino.events import PlanBuildEnded, PlanBuildPhaseStarted, ToolCall
from cuggino.git.branch import BranchRefused, current_branch
from cuggino.prompts.plan_build import PromptNotFound
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.keyboard import CTRL_C, CTRL_D, ENTER, Setup
from tests.cli.loops import BANNER, OVERALL, SCENARIO, DrawnLoop, project_of
from tests.cli.stamps import unstamped

RESUME = "`cuggino loop --resume` continues where it stopped"
PHASE = PlanBuildPhaseStarted(phase="plan", iteration=1)


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


def test_no_terminal_to_ask_on(drawn_loop: DrawnLoop, cli: Cli) -> None:
    """Without a terminal it plans and builds, and reports that it did not ask (LOP-004)."""
    out, err = cli.both("loop")
    assert "cuggino: no terminal to ask on, continuing as with --auto\n" == err
    assert ("plan", False) == (drawn_loop.options[0].start, "Select" in out)


@pytest.mark.parametrize(("more", "code"), [([], 2), (["--compat-exit-codes"], 1)])
def test_a_protected_branch(
    more: list[str], code: int, looping: Path, drawn_loop: DrawnLoop, cli: Cli
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


VERIFY = {"verifyAfterIteration": False, "verifyModel": "v", "verify": {"build": "b", "test": "t"}}


@pytest.mark.parametrize(
    ("args", "file", "expected"),
    [
        ([], {}, {"start": "plan", "max_sessions": None, "max_retries": 3, "budget": None}),
        ([], {}, {"allow_all": True, "auto_commit": False, "verify_after_iteration": True}),
        ([], {}, {"allow_main": False, "fresh": False, "model": "claude-opus-4.5"}),
        ([], {}, {"plan_prompt": "PLAN.PROMPT.md", "build_prompt": "BUILD.PROMPT.md"}),
        (["--allow-main", "--fresh"], {}, {"allow_main": True, "fresh": True}),
        (["-m", "small"], {"model": "large"}, {"model": "small"}),
        ([], {"model": "large"}, {"model": "large"}),
        ([], {"planPromptPath": "p.md", "buildPromptPath": "/b.md"}, {"plan_prompt": "p.md"}),
        ([], {"allowAll": False, "autoCommit": True}, {"allow_all": False, "auto_commit": True}),
        ([], VERIFY, {"verify_after_iteration": False, "verify_model": "v"}),
        ([], VERIFY, {"verify_build": "b", "verify_test": "t"}),
        ([], {"protectedBranches": ["prod"]}, {"protected_branches": ("prod",)}),
        ([], {"agent": "scripted:other.toml"}, {"agent": "scripted:other.toml"}),
        (
            ["--agent", "scripted:scenario.toml"],
            {"agent": "scripted:other.toml"},
            {"agent": "scripted:scenario.toml"},
        ),
    ],
)
def test_options_reach_the_loop(
    args: list[str],
    file: dict[str, Any],
    expected: dict[str, Any],
    looping: Path,
    drawn_loop: DrawnLoop,
) -> None:
    """Each option and setting reaches the loop, options first."""
    (looping / "other.toml").touch()
    (looping / "c.json").write_text(json.dumps(file))
    assert 0 == main(["loop", "--auto", *(["--config", "c.json"] if file else []), *args])
    (options,) = drawn_loop.options
    assert expected == {name: getattr(options, name) for name in expected}


def test_layers(looping: Path, drawn_loop: DrawnLoop) -> None:
    """The project overrides the user, who overrides the defaults."""
    home = looping.parent / "home"
    for folder, model in ((home, "of the user"), (looping, "of the project")):
        (folder / ".lopen").mkdir()
        text = json.dumps({"model": model, "autoCommit": folder == home})
        (folder / ".lopen" / "loop-config.json").write_text(text)
        main(["loop", "--auto"])
    models = [(options.model, options.auto_commit) for options in drawn_loop.options]
    assert [("of the user", True), ("of the project", False)] == models


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--resume", "--fresh"], "--fresh: only for a new run, not with --resume."),
        (
            ["--auto", "-n", "2", "--resume"],
            "--auto and --max-iterations: only for a new run, not with --resume.",
        ),
    ],
)
@pytest.mark.parametrize("more", [[], ["--compat-exit-codes"]])
def test_wrong_usage(
    args: list[str], message: str, more: list[str], drawn_loop: DrawnLoop, cli: Cli
) -> None:
    """A usage error is reported on standard error, with Lopen's code too, and nothing starts."""
    out, err = cli.both("loop", *more, *args, code=2)
    assert ("", []) == (out, drawn_loop.options)
    assert message in err.splitlines()[-1]


@pytest.mark.parametrize(
    ("level", "args", "expected"),
    [
        ("all", [], (True, True)),
        ("info", [], (True, True)),
        ("error", [], (False, False)),
        ("error", ["--verbose"], (True, True)),
    ],
)
def test_the_log_level(
    level: str,
    args: list[str],
    expected: tuple[bool, bool],
    looping: Path,
    drawn_loop: DrawnLoop,
    cli: Cli,
) -> None:
    """The configured level filters our lines, unless the command line asks for all (LOP-032)."""
    from cuggino.events import FileTouched, PlanBuildWarning

    project_of(looping)
    (looping / "c.json").write_text(json.dumps({"logLevel": level}))
    touched, warning = FileTouched(path="a.py"), PlanBuildWarning(message="look out")
    drawn_loop.events = (touched, warning, *drawn_loop.events)
    out, err = cli.both("loop", "--auto", "--config", "c.json", *args, code=None)
    assert expected == ("[file] a.py" in out, "look out" in err)
    assert "Loop complete! All jobs finished." in out


QUESTION = "Do you need to add specifications, or shall we commence planning and building?"
OPTIONS = [
    "  1. Add specifications",
    "  2. Plan and build (default)",
    "  3. Go straight to building",
]
REFUSAL = "cuggino: Cannot run loop on main/master branch. Create a feature branch first."


@pytest.fixture
def repository(looping: Path) -> Path:
    """Make the project a real repository on main."""
    (looping / ".git" / "HEAD").unlink()
    (looping / ".git").rmdir()
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main"], cwd=looping, check=True)
    return looping


@pytest.mark.parametrize(
    ("keys", "start", "complaints"),
    [
        ("", "plan", 0),
        ("2", "plan", 0),
        (" 3 ", "build", 0),
        (f"zzz{ENTER}3", "build", 1),
        (f"0{ENTER}12{ENTER}2", "plan", 2),
        (f"4{ENTER}x{ENTER}yes", "plan", 3),
    ],
)
def test_the_menu(
    keys: str, start: str, complaints: int, drawn_loop: DrawnLoop, typed: Setup, cli: Cli
) -> None:
    """Enter means 2; an invalid answer is asked again, and after three it is 2 (LOP-003)."""
    assert 0 == typed(keys + ENTER, "loop")
    lines = cli.printed().out.splitlines()
    assert [BANNER, QUESTION, *OPTIONS] == lines[:5]
    assert complaints == lines.count("Please answer 1, 2 or 3.")
    assert (complaints == 3) == ("Continuing with 2." in lines)
    assert [start] == [options.start for options in drawn_loop.options]


def test_the_menu_prompt() -> None:
    """The prompt equals the original's."""
    from cuggino_cli.commands.loop import SELECT

    assert "Select (1-3, default=2): " == SELECT


def test_specifications_first(drawn_loop: DrawnLoop, typed: Setup, cli: Cli) -> None:
    """The answer to add specifications first shows where, and nothing is started."""
    assert 0 == typed(f"1{ENTER}", "loop")
    expected = "Add specifications to docs/requirements/, then re-run loop."
    assert (expected, []) == (cli.printed().out.splitlines()[-1], drawn_loop.options)


def test_nothing_is_asked_with_auto(drawn_loop: DrawnLoop, typed: Setup, cli: Cli) -> None:
    """At a terminal `--auto` plans and builds without a question."""
    assert 0 == typed("", "loop", "-a")
    out, err = cli.printed()
    assert ("plan", "", False) == (drawn_loop.options[0].start, err, QUESTION in out)


@pytest.mark.parametrize("key", [CTRL_C, CTRL_D])
@pytest.mark.parametrize(("more", "code"), [([], 130), (["--compat-exit-codes"], 0)])
def test_cancelled(
    key: str, more: list[str], code: int, drawn_loop: DrawnLoop, typed: Setup, cli: Cli
) -> None:
    """Ctrl-C or Ctrl-D at the question cancels, and nothing is started."""
    assert code == typed(key, "loop", *more)
    assert ("Loop cancelled by user.\n", []) == (cli.printed().err, drawn_loop.options)


@pytest.mark.parametrize("columns", [40, 60])
def test_a_narrow_terminal(
    columns: int, drawn_loop: DrawnLoop, typed: Setup, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """A narrow terminal wraps the texts between words."""
    monkeypatch.setenv("COLUMNS", str(columns))
    assert 0 == typed(f"1{ENTER}", "loop")
    out = cli.printed().out
    assert QUESTION in out.replace("\n", " ")
    assert all(len(line) < columns for line in out.splitlines())


def test_a_missing_prompt(looping: Path, drawn_loop: DrawnLoop, typed: Setup, cli: Cli) -> None:
    """After a question, nothing starts without a required prompt (LOP-051)."""
    (looping / "PLAN.PROMPT.md").unlink()
    assert 2 == typed(f"2{ENTER}", "loop")
    assert [
        "cuggino: Plan prompt not found: Prompt file not found: PLAN.PROMPT.md",
        "  Expected file: PLAN.PROMPT.md; `cuggino loop init` writes one",
    ] == cli.printed().err.splitlines()
    assert 0 == typed(f"3{ENTER}", "loop")
    (looping / "BUILD.PROMPT.md").unlink()
    assert 1 == typed(f"3{ENTER}", "loop", "--compat-exit-codes")
    assert 1 == len(drawn_loop.options)


def test_a_branch_is_created(
    repository: Path, drawn_loop: DrawnLoop, typed: Setup, cli: Cli
) -> None:
    """On main a new branch name is asked, again if invalid, and the loop runs."""
    assert 0 == typed(f"{ENTER}no branch{ENTER}feat/bread{ENTER}", "loop")
    out, err = cli.printed()
    assert [REFUSAL, "  git switch -c NAME, or --allow-main"] == err.splitlines()
    assert "'no branch' is not a valid branch name" in out
    assert "Switched to the new branch feat/bread." in out.splitlines()
    assert ("feat/bread", 1) == (current_branch(repository), len(drawn_loop.options))


@pytest.mark.parametrize(
    ("keys", "code"),
    [(ENTER * 2, 2), (f"{ENTER}--force{ENTER}-d{ENTER}a b{ENTER}", 2), (f"{ENTER}{CTRL_C}", 130)],
)
def test_no_branch_is_created(
    keys: str, code: int, repository: Path, drawn_loop: DrawnLoop, typed: Setup
) -> None:
    """Without a valid name nothing is started and the branch stays."""
    assert code == typed(keys, "loop")
    assert ("main", []) == (current_branch(repository), drawn_loop.options)


def test_auto_asks_for_no_branch(looping: Path, drawn_loop: DrawnLoop, typed: Setup) -> None:
    """With `--auto` a protected branch is refused without a question."""
    project_of(looping, branch="master")
    assert (2, []) == (typed("", "loop", "--auto"), drawn_loop.options)


def test_init_reports_files(looping: Path, cli: Cli) -> None:
    """`init` reports each file as created or kept, and never overwrites one (LOP-085)."""
    (looping / "BUILD.PROMPT.md").unlink()
    before = (looping / "PLAN.PROMPT.md").read_text()
    assert 0 == main(["loop", "init"])
    kept = "exists, not changed"
    assert [
        f"PLAN.PROMPT.md: {kept}",
        "BUILD.PROMPT.md: created",
        "docs/requirements/jobs-to-be-done.json: created",
    ] == cli.printed().out.splitlines()
    assert before == (looping / "PLAN.PROMPT.md").read_text()
    (looping / "c.json").write_text('{"planPromptPath": "prompts/p.md"}')
    assert "prompts/p.md: created" == cli("loop", "--config", "c.json", "init").splitlines()[0]
    assert (looping / "prompts" / "p.md").read_text().strip()
