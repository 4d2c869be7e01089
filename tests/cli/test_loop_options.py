"""Options of the plan/build loop on the command line and in files, and usage errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.loops import DrawnLoop, project_of

VERIFY = {"verifyAfterIteration": False, "verifyModel": "v", "verify": {"build": "b", "test": "t"}}


@pytest.mark.parametrize(
    ("args", "file", "expected"),
    [
        ([], {}, {"start": "plan", "max_sessions": None, "max_retries": 3, "budget": None}),
        ([], {}, {"allow_all": True, "auto_commit": False, "verify_after_iteration": True}),
        ([], {}, {"allow_main": False, "fresh": False, "model": "claude-opus-4.5"}),
        ([], {}, {"plan_prompt": "PLAN.PROMPT.md", "build_prompt": "BUILD.PROMPT.md"}),
        (["-n", "7"], {}, {"max_sessions": 7}),
        (["--max-iterations", "7", "--max-retries", "0"], {}, {"max_retries": 0}),
        (["--allow-main", "--fresh"], {}, {"allow_main": True, "fresh": True}),
        (["-m", "small"], {"model": "large"}, {"model": "small"}),
        ([], {"model": "large"}, {"model": "large"}),
        (["--budget", "2.5", "--max-tokens", "9"], {}, {"budget": 2.5, "max_tokens": 9}),
        (["--max-duration", "90m"], {}, {"max_duration": 5400.0}),
        (["--wait-for-quota"], {}, {"wait_for_quota": True}),
        (["--no-sandbox"], {}, {"sandbox": "off"}),
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
        (["-n", "0"], "Max iterations must be positive, got 0"),
        (["-n", "1.5"], "Max iterations must be a whole number, got 1.5"),
        (["--max-retries", "x"], "Max retries must be a whole number, got x"),
        (["--resume", "--fresh"], "--fresh: only for a new run, not with --resume."),
        (
            ["--auto", "-n", "2", "--resume"],
            "--auto and --max-iterations: only for a new run, not with --resume.",
        ),
        (["--quiet", "--verbose"], "--verbose and --quiet exclude each other."),
        (["--nothing"], "No such option"),
        (["nothing"], "nothing"),
    ],
)
@pytest.mark.parametrize("more", [[], ["--compat-exit-codes"]])
def test_wrong_usage(
    args: list[str],
    message: str,
    more: list[str],
    drawn_loop: DrawnLoop,
    cli: Cli,
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
