"""`cuggino deliver`: outcomes, options, and the recorded command lines of Autonoe."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cuggino import Runtime, events as ev, parse_event
from cuggino.errors import ConfigError, QuotaExceeded
from cuggino.guard.sandbox import SandboxMode, start_warnings
from cuggino_cli.main import main
from cuggino_cli.options.deliver import (
    max_iterations,
    max_retries,
    project_folder,
    thinking_tokens,
    whole_number,
)
from tests.cli.cli import Cli
from tests.cli.deliveries import DONE, OVERALL, SCENARIO, Loop, project_of
from tests.cli.stamps import unstamped
from tests.vectors import not_followed, rows

pytestmark = pytest.mark.usefixtures("no_engine")

STARTED = ev.DeliverSessionStarted(session=1, instruction="coding")
LISTED = ev.DeliverablesListed(
    deliverables=(ev.DeliverableState(id="DL-001", description="a login", status="passed"),)
)


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
    loop.events = (STARTED, ev.DeliverEnded(reason=reason))
    resume = "`cuggino deliver --resume` continues where it stopped"
    assert resume == cli("deliver", code=None).splitlines()[-1]
    other = project_of(delivered.parent / "other", "", journal=False)
    main(["deliver", "-p", "../other"])
    expected = (
        f"`cuggino deliver --project-dir {other}` starts a new run with the current deliverables"
    )
    assert cli.printed().out.splitlines()[-1].startswith(expected)


@pytest.mark.parametrize(
    ("session", "expected"),
    [
        (
            ev.DeliverSessionEnded(session=1, outcome="quota", message="hit your limit"),
            ["Session stopped: quota exceeded", "  start again after 2026-01-02 03:04 UTC"],
        ),
        (
            ev.DeliverSessionEnded(session=1, outcome="max_turns"),
            ["Session stopped: hit your limit", "  start again after 2026-01-02 03:04 UTC"],
        ),
    ],
)
def test_a_usage_limit(
    session: ev.Event, expected: list[str], delivered: Path, loop: Loop, cli: Cli
) -> None:
    """The limit is reported once, by the session or at the end, with its reset."""
    loop.error = QuotaExceeded("hit your limit", resets_at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC))
    reason = "quota_exceeded" if expected[0].endswith("quota exceeded") else "failed"
    end = ev.DeliverEnded.model_validate({"reason": reason, "error": "hit your limit"})
    loop.events = (STARTED, session, end)
    out, err = cli.both("deliver", code=12)
    assert expected == unstamped(err)[-2:]
    assert 1 == (out + err).count("hit your limit")


@pytest.mark.parametrize("debug", [False, True])
def test_an_unexpected_error(debug: bool, delivered: Path, loop: Loop, cli: Cli) -> None:
    """An internal error is one line; `--debug` shows its location."""
    loop.events, loop.error = (STARTED,), ZeroDivisionError("by zero")
    err = cli.err("deliver", *(["--debug"] if debug else []), code=1)
    assert "Error: by zero" in err.splitlines()
    assert debug == ("Traceback" in err)


def test_resuming(delivered: Path, loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A resumed run uses the new options and keeps its recorded settings."""
    args = ["deliver", "--agent", "scripted:scenario.toml", "--resume"]
    main([*args, "0123", "-P", "big"])
    main([*args, "--budget", "5", "--strict-transitions"])
    assert [("0123", {"plan_model": "big"}), (None, {"strict_transitions": True})] == loop.resumed
    assert [None, 5.0] == [runtime.config.budget for runtime in loop.runtimes]
    assert [] == loop.options


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


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ([], {"workflow": "run", "max_sessions": None, "max_retries": 3, "thinking": None}),
        ([], {"verify": False, "recheck": False, "strict_transitions": False, "budget": None}),
        (["--model", "small", "--plan-model", "big"], {"model": "small", "plan_model": "big"}),
        (["-P", "big"], {"plan_model": "big", "model": None}),
        (["-D"], {"allow_destructive": True}),
        (["--allow-destructive"], {"allow_destructive": True, "sandbox": "auto"}),
        (["--thinking"], {"thinking": 8192}),
        (["--thinking", "2048"], {"thinking": 2048}),
        (["--verify", "--recheck"], {"verify": True, "recheck": True}),
        (["--strict-transitions"], {"strict_transitions": True}),
        (["sync"], {"workflow": "sync"}),
        (["sync", "-n", "2", "--thinking"], {"workflow": "sync", "thinking": 8192}),
        (["--thinking", "sync"], {"workflow": "sync", "thinking": 8192}),
        (["-n", "2", "sync"], {"workflow": "sync", "max_sessions": 2}),
    ],
)
def test_options_reach_the_loop(
    args: list[str], expected: dict[str, Any], delivered: Path, loop: Loop
) -> None:
    """Each option of its own reaches the loop; the configuration supplies the others."""
    assert 0 == main(["deliver", *args])
    (options,) = loop.options
    assert expected == {name: getattr(options, name) for name in expected}


def test_the_configuration_applies(delivered: Path, loop: Loop) -> None:
    """Missing options come from the configuration of the given project."""
    other = project_of(delivered.parent / "other", "", maxRetries=5, model="small", budget=3)
    assert 0 == main(["deliver", "--project-dir", "../other"])
    (options,) = loop.options
    assert (5, "small", 3.0) == (options.max_retries, options.model, options.budget)
    assert (other, other) == (options.cwd, loop.runtimes[0].cwd)


@pytest.mark.parametrize(("guard", "expected"), [("roles", "full"), ("off", "off")])
def test_the_guard(guard: str, expected: str, delivered: Path, loop: Loop) -> None:
    """Agents are guarded at `full` unless the guard is off."""
    project_of(delivered, "", guard=guard)
    main(["deliver"])
    assert expected == loop.options[0].guard


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--thinking", "512"], "Thinking budget must be at least 1024 tokens, got 512"),
        (["--thinking", "x"], "Invalid thinking budget: x"),
        (["--thinking=1023"], "Thinking budget must be at least 1024 tokens, got 1023"),
        (["--verify", "sync"], "--verify and --recheck are for `cuggino deliver` without sync."),
        (["sync", "--recheck"], "--verify and --recheck are for `cuggino deliver` without sync."),
        (["--resume", "--verify"], "--verify: only for a new run, not with --resume."),
        (
            ["sync", "-n", "2", "--resume"],
            "sync and --max-iterations: only for a new run, not with --resume.",
        ),
    ],
)
@pytest.mark.parametrize(("more", "code"), [([], 2), (["--compat-exit-codes"], 1)])
def test_wrong_usage(
    args: list[str], message: str, more: list[str], code: int, delivered: Path, loop: Loop, cli: Cli
) -> None:
    """A usage error is reported on standard error, and nothing is started."""
    out, err = cli.both("deliver", *more, *args, code=code)
    assert ("", []) == (out, loop.options)
    assert message in err.splitlines()[-1]


@pytest.mark.parametrize(("more", "code"), [([], 2), (["--compat-exit-codes"], 1)])
def test_no_such_project(more: list[str], code: int, delivered: Path, cli: Cli) -> None:
    """A project that is missing or a file is reported with its absolute path."""
    for name in ("nowhere", "SPEC.md"):
        assert code == main(["deliver", "-p", name, *more])
        expected = f"Error: Project directory does not exist: {delivered / name}"
        assert expected == cli.printed().err.splitlines()[-1]


@pytest.mark.parametrize(("more", "code"), [([], 2), (["--compat-exit-codes"], 1)])
def test_no_specification(more: list[str], code: int, delivered: Path, cli: Cli) -> None:
    """Without SPEC.md nothing is started, written or shown as started."""
    (delivered / "SPEC.md").unlink()
    before = sorted(delivered.rglob("*"))
    out, err = cli.both("deliver", *more, code=code)
    assert "" == out
    assert f"cuggino: SPEC.md not found in {delivered}\n" in err
    assert before == sorted(delivered.rglob("*"))


@pytest.mark.parametrize(
    ("args", "env", "settings", "expected"),
    [
        (["--no-sandbox", "-D"], {"AUTONOE_NO_SANDBOX": "1"}, {}, (True, "cli", True)),
        ([], {"AUTONOE_NO_SANDBOX": "1"}, {}, (True, "env", False)),
        (["-D"], {"AUTONOE_NO_SANDBOX": "true"}, {}, (False, "default", True)),
        ([], {}, {"allowDestructive": True}, (False, "default", True)),
        (["-D"], {}, {"guard": "off"}, (False, "default", False)),
    ],
)
def test_the_warnings_at_the_start(
    args: list[str],
    env: dict[str, str],
    settings: dict[str, Any],
    expected: tuple[bool, Any, bool],
    delivered: Path,
    loop: Loop,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
) -> None:
    """The sandbox warning precedes the one about destructive commands, with roles too."""
    project_of(delivered, "", **settings)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    main(["deliver", *args])
    disabled, source, destructive = expected
    warnings = start_warnings(SandboxMode(disabled, source), allow_destructive=destructive)
    lines = cli.printed().err.splitlines()
    assert list(warnings) == lines[: len(warnings)]
    assert len(warnings) == sum(line.startswith("Warning") for line in lines)


def test_a_guard_that_is_off(delivered: Path, loop: Loop, cli: Cli) -> None:
    """The banner reports a guard that is off."""
    project_of(delivered, "", guard="off")
    assert "cuggino: the guard is off: only the sandbox limits what agents may do\n" == cli.err(
        "deliver", code=None
    )


Row = dict[str, Any]

ROWS = {row["id"]: row for row in rows("cli_options", 43)}
NOT_FOLLOWED = not_followed("cli_options")
_GIVEN = {"projectDir": "-p", "maxIterations": "-n", "maxRetries": "--max-retries"}


def _answer(row: Row, folder: Path, loop: Loop, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return our result for a row's arguments in the recorded form."""
    args = json.loads(json.dumps(row["args"]).replace("<DIR>", str(folder)))
    match row["fn"]:
        case "validate_project_dir":
            return _is_good(lambda: project_folder(args[0]))
        case "parse_numeric_option":
            number = whole_number(args[0])
            return number if number is not None else "refused"
        case "parse_thinking_option" if args == [False]:
            main(["deliver"])
            return {"type": "disabled" if loop.options[0].thinking is None else "enabled"}
        case "parse_thinking_option" if args == [True]:
            main(["deliver", "--thinking"])
            return {"type": "enabled", "tokens": loop.options[0].thinking}
        case "parse_thinking_option":
            try:
                return {"type": "enabled", "tokens": thinking_tokens(args[0])}
            except ValueError as error:
                return {"type": "error", "error": str(error)}
        case "check_spec_exists" | "validate_prerequisites":
            exists = row["fn"] == "validate_prerequisites"
            if not exists:
                (folder / "SPEC.md").unlink()
            good = _is_good(Runtime.live(cwd=folder).deliverer.check)
            return {"success": good} if exists else good
        case _:
            return _validated(row, *args, loop=loop, monkeypatch=monkeypatch)


def _is_good(look: Any) -> bool:
    try:
        look()
    except (ValueError, ConfigError):
        return False
    return True


def _validated(
    row: Row,
    given: Row,
    env: dict[str, str] | None = None,
    *,
    loop: Loop,
    monkeypatch: pytest.MonkeyPatch,
) -> Row:
    """Return the options in the recorded form."""
    for name, value in (env or {}).items():
        monkeypatch.setenv(name, value)
    args = [word for key, flag in _GIVEN.items() if key in given for word in (flag, given[key])]
    args += ["--thinking", given["thinking"]] if "thinking" in given else []
    args += ["--no-sandbox"] if given.get("sandbox") is False else []
    sync = ["sync"] if row["fn"] == "validate_sync_options" else []
    if main(["deliver", *sync, *args]) != 0:
        reads = {"projectDir": project_folder, "maxIterations": max_iterations}
        more: dict[str, Any] = {"maxRetries": max_retries, "thinking": thinking_tokens}
        return {"success": False, "error": _complaint(given, {**reads, **more})}
    (options,) = loop.options
    by_flag = given.get("sandbox") is False
    source = "default" if options.sandbox != "off" else "cli" if by_flag else "env"
    answer = {
        "projectDir": str(options.cwd),
        "maxIterations": options.max_sessions,
        "maxRetries": options.max_retries,
        "debug": False,
        "waitForQuota": options.wait_for_quota,
        "allowDestructive": options.allow_destructive,
        "sandboxMode": {"disabled": options.sandbox == "off", "source": source},
    }
    told = row["expected"].get("options", {})
    return {"success": True, "options": {key: answer[key] for key in told}}


def _complaint(given: Row, reads: dict[str, Any]) -> str:
    for key, read in reads.items():
        try:
            if key in given:
                read(given[key])
        except ValueError as error:
            return str(error)
    return ""


@pytest.mark.parametrize("name", ROWS)
def test_recorded_options(
    name: str, delivered: Path, loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recorded command line is parsed as recorded, unless its row is an exception."""
    row = ROWS[name]
    if row["fn"] in ("create_sandbox_mode", "get_sandbox_warning_message"):
        assert row["rev"] == "head"  # in tests/guard/test_agent_settings.py
        return
    (delivered / "file.txt").touch()
    expected = json.loads(json.dumps(row["expected"]).replace("<DIR>", str(delivered)))
    answer = _answer(row, delivered, loop, monkeypatch)
    assert (expected == answer) == (name not in NOT_FOLLOWED)
