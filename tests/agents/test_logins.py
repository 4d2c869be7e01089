"""No provider's program gets the login of a forge, and a setting leaves it."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import cuggino
from cuggino.agents import InteractiveOptions, LlmAgent, SpawnOptions
from cuggino.agents.acp import PROFILES, AcpAgent
from cuggino.agents.base.program import ProgramAgent
from cuggino.agents.choosing.registry import BUILT_IN, built_in
from cuggino.agents.claude import ClaudeAgent
from cuggino.agents.scripted import ScriptedAgent
from cuggino.errors import CugginoError
from cuggino.sandbox import LOGIN_VARIABLES

_PROGRAM = f"""#!{sys.executable}
import json, os
with open(os.environ["SEEN"] + ".tmp", "w") as file:
    json.dump(dict(os.environ), file)
os.replace(os.environ["SEEN"] + ".tmp", os.environ["SEEN"])
"""

_SCENARIO = """
[[implementing]]
[[implementing.steps]]
run = "env -0 > $SEEN"
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """Return an environment with every login; `SEEN` is where a program records its own."""
    home = tmp_path / "home"
    home.mkdir()
    logins = dict.fromkeys(LOGIN_VARIABLES, "secret-of-the-user")
    paths = {"HOME": str(home), "PATH": os.environ["PATH"], "SEEN": str(tmp_path / "seen")}
    return {**logins, **paths, "GH_CONFIG_DIR": str(home / "gh"), "OPENAI_API_KEY": "model"}


def _program(name: str, tmp_path: Path, env: Mapping[str, str]) -> LlmAgent:
    program = tmp_path / "program"
    program.write_text(_PROGRAM)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    made: Any = built_in(name)
    agent = made(path=program, env=env)
    assert isinstance(agent, ProgramAgent)
    agent._version = "999.0.0"  # so that the program is not asked
    return agent


def _seen(agent: LlmAgent, options: SpawnOptions, seen: Path) -> dict[str, str]:
    """Return the environment of a session's program, which implements no protocol and fails."""
    with suppress(CugginoError, OSError):
        cuggino.run(agent.spawn(options))
    text = seen.read_text()
    if "\0" in text:
        return dict(line.split("=", 1) for line in text.split("\0") if line)
    return dict(json.loads(text))


def _is_withheld(seen: Mapping[str, str]) -> bool:
    return "secret-of-the-user" not in [
        value for name, value in seen.items() if name != "COPILOT_GITHUB_TOKEN"
    ]


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_a_program_gets_no_login(name: str, tmp_path: Path, env: dict[str, str]) -> None:
    options = SpawnOptions(
        prompt="work", cwd=tmp_path, role="implementing", env={"GH_TOKEN": "secret-of-the-user"}
    )
    seen = _seen(_program(name, tmp_path, env), options, tmp_path / "seen")
    assert _is_withheld(seen), seen
    assert seen["GH_CONFIG_DIR"] == seen["GLAB_CONFIG_DIR"] == "/nonexistent/cuggino"
    assert seen["OPENAI_API_KEY"] == "model"


def test_every_program_of_the_protocol_gets_no_login(tmp_path: Path, env: dict[str, str]) -> None:
    """They share one way to start."""
    (tmp_path / "program").write_text(_PROGRAM)
    (tmp_path / "program").chmod(0o755)
    profile = next(one for one in PROFILES.values() if one.name == "qwen")
    agent = AcpAgent(profile, path=tmp_path / "program", env=env)
    agent._version = "999.0.0"
    options = SpawnOptions(prompt="work", cwd=tmp_path, role="implementing")
    assert _is_withheld(_seen(agent, options, tmp_path / "seen"))


def test_the_scripted_agent_gets_no_login(
    tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "scenario.toml").write_text(_SCENARIO)
    options = SpawnOptions(
        prompt="work", cwd=tmp_path, role="implementing", dangerously_skip_permissions=True
    )
    agent = ScriptedAgent(tmp_path / "scenario.toml")
    assert _is_withheld(_seen(agent, options, tmp_path / "seen"))


def test_a_setting_leaves_one_login(tmp_path: Path, env: dict[str, str]) -> None:
    """A setting that shows the files of `gh` keeps its variables; others are removed."""
    options = SpawnOptions(prompt="work", cwd=tmp_path, shows=(env["GH_CONFIG_DIR"],))
    seen = _seen(_program("claude", tmp_path, env), options, tmp_path / "seen")
    assert seen["GH_TOKEN"] == "secret-of-the-user"
    assert seen["GH_CONFIG_DIR"] == env["GH_CONFIG_DIR"]
    assert "GITLAB_TOKEN" not in seen


def test_copilot_keeps_its_own_login(tmp_path: Path, env: dict[str, str]) -> None:
    """It moves to the variable that no other program reads."""
    options = SpawnOptions(prompt="work", cwd=tmp_path)
    env["GH_TOKEN"] = "copilot"
    seen = _seen(_program("copilot", tmp_path, env), options, tmp_path / "seen")
    assert seen["COPILOT_GITHUB_TOKEN"] == "copilot"
    assert "GH_TOKEN" not in seen


def test_an_interactive_session_gets_no_login(tmp_path: Path, env: dict[str, str]) -> None:
    agent = _program("claude", tmp_path, env)
    assert isinstance(agent, ClaudeAgent)
    agent.interactive(InteractiveOptions(cwd=tmp_path))
    assert _is_withheld(json.loads((tmp_path / "seen").read_text()))
