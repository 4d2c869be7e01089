"""Options of the deliverables loop on the command line, and usage errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cuggino.guard.sandbox import SandboxMode, start_warnings
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.deliveries import Loop, project_of


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ([], {"workflow": "run", "max_sessions": None, "max_retries": 3, "thinking": None}),
        ([], {"verify": False, "recheck": False, "strict_transitions": False, "budget": None}),
        (["-n", "7"], {"max_sessions": 7}),
        (["--max-iterations", "7"], {"max_sessions": 7}),
        (["--max-retries", "0"], {"max_retries": 0}),
        (["-m", "small"], {"model": "small"}),
        (["--model", "small", "--plan-model", "big"], {"model": "small", "plan_model": "big"}),
        (["-P", "big"], {"plan_model": "big", "model": None}),
        (["--no-sandbox"], {"sandbox": "off"}),
        (["--wait-for-quota"], {"wait_for_quota": True}),
        (["-D"], {"allow_destructive": True}),
        (["--allow-destructive"], {"allow_destructive": True, "sandbox": "auto"}),
        (["--thinking"], {"thinking": 8192}),
        (["--thinking", "2048"], {"thinking": 2048}),
        (["--budget", "2.5"], {"budget": 2.5}),
        (["--max-tokens", "9000"], {"max_tokens": 9000}),
        (["--max-duration", "1h30m"], {"max_duration": 5400.0}),
        (["--verify", "--recheck"], {"verify": True, "recheck": True}),
        (["--strict-transitions"], {"strict_transitions": True}),
        (["sync"], {"workflow": "sync"}),
        (["sync", "-n", "2", "--thinking"], {"workflow": "sync", "thinking": 8192}),
        (["--thinking", "sync"], {"workflow": "sync", "thinking": 8192}),
        (["-n", "2", "sync"], {"workflow": "sync", "max_sessions": 2}),
        (["--agent", "scripted:scenario.toml"], {"agent": "scripted:scenario.toml"}),
    ],
)
def test_options_reach_the_loop(
    args: list[str], expected: dict[str, Any], delivered: Path, loop: Loop
) -> None:
    """Each option reaches the loop; the configuration supplies the others."""
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
        (["-n", "0"], "Max iterations must be positive, got 0"),
        (["-n", "-1"], "Max iterations must be positive, got -1"),
        (["-n", "12abc"], "Max iterations must be a whole number, got 12abc"),
        (["-n", "1.5"], "Max iterations must be a whole number, got 1.5"),
        (["--max-retries", "-1"], "Max retries must be non-negative, got -1"),
        (["--max-retries", ""], "Max retries must be a whole number, got "),
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
        (["--quiet", "--verbose"], "--verbose and --quiet exclude each other."),
        (["--nothing"], "No such option"),
        (["nothing"], "nothing"),
        (["--budget", "0"], "0"),
    ],
)
@pytest.mark.parametrize(("more", "code"), [([], 2), (["--compat-exit-codes"], 1)])
def test_wrong_usage(
    args: list[str],
    message: str,
    more: list[str],
    code: int,
    delivered: Path,
    loop: Loop,
    cli: Cli,
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
