"""`cuggino agents check`: a program of the Agent Client Protocol, without a model."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from cuggino.config import AcpProgram, Config, save_config
from cuggino_cli.main import main
from tests.agents.acp.scripts import PROGRAM
from tests.cli.cli import Cli

RULES = ["program", "session", "mode", "guard", "mcp_server", "unknown_session"]
UNKNOWN = {"session/resume": {"code": -32602, "message": "No such session"}}


@pytest.fixture
def checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that checks the scripted program and returns the results."""
    monkeypatch.chdir(tmp_path)

    def check(cli: Cli, asks: bool = True, **script: Any) -> Any:
        file = tmp_path / "script.json"
        file.write_text(json.dumps(script))
        command = [sys.executable, "-IS", str(PROGRAM), str(file)]
        program = AcpProgram(command=command, mode="ask", asks=asks)
        save_config(tmp_path, Config(acp={"mine": program}))
        code = main(["agents", "check", "acp:mine", "--json"])
        rows = [json.loads(line) for line in cli.printed().out.splitlines()]
        assert RULES == [row["rule"] for row in rows]
        log = file.with_suffix(".log")
        assert "session/prompt" not in log.read_text()
        return code, {row["rule"]: (row["outcome"], row["message"]) for row in rows}

    return check


def test_kept(checked: Any, cli: Cli) -> None:
    """A program that keeps all rules is not prompted; servers may be started later."""
    code, found = checked(cli, errors=UNKNOWN)
    assert 0 == code
    skipped = found.pop("mcp_server")
    assert ("skipped", "it was not started before the first prompt") == skipped
    assert {"passed"} == {outcome for outcome, _ in found.values()}
    assert "mode ask" == found["mode"][1]
    assert "No such session" in found["unknown_session"][1]


@pytest.mark.parametrize(
    ("script", "rule", "words"),
    [
        ({"keeps": True, "errors": UNKNOWN}, "mode", "its mode ask is not in force"),
        ({}, "unknown_session", "as if it were known"),
    ],
)
def test_broken(
    checked: Any,
    cli: Cli,
    script: dict[str, Any],
    rule: str,
    words: str,
) -> None:
    """A broken rule is named, with exit code 1."""
    code, found = checked(cli, **script)
    assert (1, "failed") == (code, found[rule][0])
    assert words in found[rule][1]
    failed = [name for name, (outcome, _) in found.items() if outcome == "failed"]
    assert rule in failed


def test_unguarded(checked: Any, cli: Cli) -> None:
    """Rules for features that a program does not claim, such as asking, are skipped."""
    given: dict[str, Any] = {"initialize": {"agentCapabilities": {}}}
    code, found = checked(cli, asks=False, **given)
    assert 0 == code
    assert {"skipped"} == {found[rule][0] for rule in ("mode", "guard", "unknown_session")}


def test_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """A missing program fails every rule that starts it, one line each."""
    monkeypatch.chdir(tmp_path)
    save_config(tmp_path, Config(acp={"mine": AcpProgram(command=["no-such-agent"])}))
    out = cli("agents", "check", "acp:mine", code=1).splitlines()
    assert "failed   program: the agent program no-such-agent was not found" in out[0]
    assert out[0].startswith("failed   program")
    assert len(RULES) == len(out)


def test_other_agents(cli: Cli) -> None:
    """Only programs of the protocol can be checked."""
    assert "is no program of the Agent Client Protocol" in cli.err("agents", "check", "claude")
