"""Gemini and OpenCode in interactive sessions: their configuration and cleanup."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents import InteractiveOptions
from cuggino.agents.gemini import GeminiAgent
from cuggino.agents.opencode import OpenCodeAgent
from cuggino.errors import ConfigError, GuardNotLive
from cuggino.guard.roles import role_policy

FAKE = f"""#!{sys.executable}
import json, os, sys
from pathlib import Path
if "--version" in sys.argv:
    print(os.environ["ITS_VERSION"])
    sys.exit()
home = Path(os.environ.get("GEMINI_CLI_HOME") or os.environ["HOME"], ".gemini")
config = json.loads(os.environ.get("OPENCODE_CONFIG_CONTENT") or "{{}}")
texts = {{f.name: f.read_text() for f in home.glob("*.*")}}
texts |= {{"instructions": [Path(f).read_text() for f in config.get("instructions", [])]}}
told = {{"argv": sys.argv[1:], "cwd": os.getcwd(), "env": dict(os.environ), "texts": texts}}
Path(os.environ["HOME"], "told.json").write_text(json.dumps(told))
sys.exit(3)
"""
"""A program that records its invocation and the files it would read, and exits with 3."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project with a program, a home, and a folder for temporary files beside it."""
    program = tmp_path / "program"
    program.write_text(FAKE)
    program.chmod(0o755)
    for name in ("project", "home", "temp"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temp"))
    return tmp_path / "project"


def environment(project: Path, version: str, **more: str) -> dict[str, str]:
    home = str(project.parent / "home")
    return {"HOME": home, "PATH": "/usr/bin:/bin", "ITS_VERSION": version, **more}


def gemini(project: Path) -> GeminiAgent:
    return GeminiAgent(path=project.parent / "program", env=environment(project, "0.61.0"))


def opencode(project: Path, **env: str) -> OpenCodeAgent:
    found = environment(project, "1.18.33", **env)
    return OpenCodeAgent(path=project.parent / "program", env=found)


def invocation(project: Path) -> Any:
    """Return the program's invocation; check that its files are removed."""
    assert [] == list((project.parent / "temp").iterdir())
    return json.loads((project.parent / "home" / "told.json").read_text())


def test_gemini(project: Path) -> None:
    """The terminal is passed through, and the exit code is returned."""
    assert 3 == gemini(project).interactive(InteractiveOptions(cwd=project))
    seen = invocation(project)
    assert ([], str(project), False) == (
        seen["argv"],
        seen["cwd"],
        "GEMINI_CLI_HOME" in seen["env"],
    )


def test_gemini_with_a_system_prompt(project: Path) -> None:
    """The prompt is in the session's context beside the user's own, whose settings still apply."""
    own = project.parent / "home" / ".gemini"
    own.mkdir()
    (own / "settings.json").write_text('{"theme": "Dracula"}')
    (own / "GEMINI.md").write_text("Speak Italian.")
    options = InteractiveOptions(
        cwd=project, system_prompt="You are the manager.", dangerously_skip_permissions=True
    )
    assert 3 == gemini(project).interactive(options)
    seen = invocation(project)
    assert ["--approval-mode", "yolo"] == seen["argv"]
    assert {"theme": "Dracula"} == json.loads(seen["texts"]["settings.json"])
    assert "You are the manager.\n\nSpeak Italian." == seen["texts"]["GEMINI.md"]
    assert "Speak Italian." == (own / "GEMINI.md").read_text()


def test_gemini_whose_project_names_its_context(project: Path) -> None:
    """The prompt is written to the context file configured by the project."""
    (project / ".gemini").mkdir()
    named = {"context": {"fileName": "AGENTS.md"}}
    (project / ".gemini" / "settings.json").write_text(json.dumps(named))
    assert 3 == gemini(project).interactive(InteractiveOptions(cwd=project, system_prompt="Hi."))
    assert "Hi.\n" == invocation(project)["texts"]["AGENTS.md"]


def test_gemini_with_broken_settings(project: Path) -> None:
    """Unreadable settings are reported before anything starts, and no file remains."""
    own = project.parent / "home" / ".gemini"
    own.mkdir()
    (own / "settings.json").write_text("{")
    with pytest.raises(ConfigError, match=r"settings\.json"):
        gemini(project).interactive(InteractiveOptions(cwd=project, system_prompt="Hi."))
    assert [] == list((project.parent / "temp").iterdir())


def test_opencode(project: Path) -> None:
    """The terminal is passed through, and the exit code is returned."""
    assert 3 == opencode(project).interactive(InteractiveOptions(cwd=project))
    seen = invocation(project)
    assert ([], str(project), []) == (seen["argv"], seen["cwd"], seen["texts"]["instructions"])


def test_opencode_with_a_system_prompt(project: Path) -> None:
    """The prompt is added to the user's instructions as a private file."""
    house = project / "house.md"
    house.write_text("Be kind.")
    config = json.dumps({"model": "m", "instructions": [str(house)]})
    options = InteractiveOptions(
        cwd=project, system_prompt="You are the manager.", dangerously_skip_permissions=True
    )
    assert 3 == opencode(project, OPENCODE_CONFIG_CONTENT=config).interactive(options)
    seen = invocation(project)
    assert ["Be kind.", "You are the manager."] == seen["texts"]["instructions"]
    assert "m" == json.loads(seen["env"]["OPENCODE_CONFIG_CONTENT"])["model"]
    assert '{"*":"allow"}' == seen["env"]["OPENCODE_PERMISSION"]


@pytest.mark.parametrize("agent", [gemini, opencode])
def test_a_guard(project: Path, agent: Any) -> None:
    """Neither agent supports a guarded interactive session, so none is started."""
    policy = role_policy("implementing", project=project, level="roles")
    with pytest.raises(GuardNotLive) as caught:
        agent(project).interactive(InteractiveOptions(cwd=project, guard=policy))
    assert 'use claude, or set "guard": "off"' == caught.value.hint
    assert not (project.parent / "home" / "told.json").exists()
