"""`cuggino plan`, `cuggino pm` and bare `cuggino`, with a small program as `claude`."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cuggino.config import Config, save_config
from cuggino.prompts import Prompts
from cuggino_cli.main import main
from cuggino_cli.screen import console
from tests.agents.claude.fake_claude import fake_claude
from tests.cli.cli import Cli
from tests.limits import LIMIT
from tests.sandbox.arena import needs_bubblewrap
from tests.screen.screen import printed

_NOTE = """
*flags, system = sys.argv[1:]
told = {"flags": flags, "system": open(system, encoding="utf-8").read(), "cwd": os.getcwd()}
json.dump(told, open(".cuggino/tbd/told.json", "w"))
"""


def set_up(project: Path, body: str, **settings: Any) -> None:
    """Return a project whose `claude` runs the body."""
    program = fake_claude(project, body)
    save_config(project, Config(agent_path=str(program), **settings))


@pytest.mark.parametrize("name", ["plan", "pm"])
def test_a_session_is_started(project: Path, name: str) -> None:
    """The program gets its role and all permissions, in a project whose folders exist."""
    set_up(project, _NOTE, specs_path="docs/specs")
    assert 0 == main([name])
    told = json.loads((project / ".cuggino/tbd/told.json").read_text())
    assert str(project.resolve()) == told["cwd"]
    *flags, settings, last = told["flags"]
    assert ["--dangerously-skip-permissions", "--settings"] == flags
    assert "--append-system-prompt-file" == last
    hook = json.loads(settings)["hooks"]["PreToolUse"][0]["hooks"][0]["args"]
    policy = json.loads(json.loads(hook[-1])["policy"])
    assert ("pm", ["docs/specs"]) == (policy["role"], policy["writable"])
    prompt = told["system"]
    paths = ["spec-issues", "backlog", "tbd", "memory.md"]
    for path in ["docs/specs", *(f".cuggino/{path}" for path in paths)]:
        assert f"`{path}`" in prompt
    assert "{{" not in prompt
    made = ["archive", "backlog", "parked", "spec-issues", "tbd", "wip"]
    assert made == sorted(path.name for path in (project / ".cuggino").glob("[!.m]*"))


_WRITES = """
names = "src.py .specs/page.md .cuggino/backlog/one.md .cuggino/memory.md .mcp.json"
for name in names.split():
    try:
        open(name, "w").write("text")
    except OSError:
        pass
"""
_ITS = {".specs/page.md", ".cuggino/backlog/one.md", ".cuggino/memory.md"}


@pytest.mark.parametrize("sandbox", ["auto", "require", "off", "by variable"])
def test_a_session_has_the_view_of_the_project_manager(
    project: Path, sandbox: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes the specifications and its own places, unless the sandbox is off."""
    needs_bubblewrap(project)
    (project / ".specs").mkdir(exist_ok=True)
    if sandbox == "by variable":
        monkeypatch.setenv("AUTONOE_NO_SANDBOX", "1")
    set_up(project, _WRITES, sandbox="auto" if sandbox == "by variable" else sandbox)
    assert 0 == main(["pm"])
    names = {*_ITS, "src.py", ".mcp.json"}
    written = {name for name in names if (project / name).is_file()}
    assert written == (_ITS if sandbox in ("auto", "require") else names)
    assert all("text" == (project / name).read_text() for name in written)


def test_a_required_view_without_an_engine(
    project: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """With `require` nothing starts where nothing confines the project manager."""
    from cuggino.sandbox import Boundary, boundary as found

    none = Boundary(reason="bubblewrap is not installed")
    monkeypatch.setattr(found, "_probed", lambda *_: none)
    set_up(project, _WRITES, sandbox="require")
    assert "bubblewrap is not installed" in cli.err("pm")
    assert not (project / "src.py").exists()


def test_the_template_uses_all_variables() -> None:
    """The prompt names each of the project manager's five places."""
    used = set(re.findall(r"\{\{(\w+)\}\}", Prompts().template("pm").read_text()))
    places = ("specs", "spec_issues", "backlog", "tbd", "memory")
    assert {f"{place}_path" for place in places} == used


def test_an_own_prompt(project: Path) -> None:
    """A project may supply its own prompt for the project manager."""
    set_up(project, _NOTE)
    (project / ".cuggino/prompts").mkdir(parents=True)
    (project / ".cuggino/prompts/pm.md").write_text("Mind {{backlog_path}}.")
    assert 0 == main(["plan"])
    told = json.loads((project / ".cuggino/tbd/told.json").read_text())
    assert "Mind .cuggino/backlog." == told["system"]


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("sys.exit(7)", 7, "cuggino: claude exited with code 7\n"),
        ("os.kill(os.getpid(), 9)", 137, "cuggino: claude was ended by signal 9\n"),
        ("sys.exit(0)", 0, ""),
    ],
)
def test_exit_codes(project: Path, cli: Cli, body: str, code: int, words: str) -> None:
    """The program's exit code is passed on, and reported unless it is 0."""
    set_up(project, body)
    assert words == cli.err("plan", code=code)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ('{"agentPath": "./gone"}', "gone was not found"),
        ('{"agent": "nobody"}', "nobody"),
        ("{", "not valid JSON"),
    ],
)
def test_unusable_settings(project: Path, cli: Cli, config: str, words: str) -> None:
    """An unusable configuration or agent exits with 2 before anything is created."""
    (project / ".cuggino.json").write_text(config)
    assert words in cli.err("plan")
    assert not (project / ".cuggino").exists()


def test_a_prompt_with_an_unknown_variable(project: Path, cli: Cli) -> None:
    """A prompt with an unknown variable exits with 2 before the program starts."""
    set_up(project, _NOTE)
    (project / ".cuggino/prompts").mkdir(parents=True)
    (project / ".cuggino/prompts/pm.md").write_text("{{focus}}")
    assert "pm.md line 1: unknown variable {{focus}}" in cli.err("pm")
    assert not (project / ".cuggino/tbd/told.json").exists()


@pytest.mark.parametrize(
    ("terminal", "configured", "starts"),
    [(True, True, True), (True, False, False), (False, True, False)],
)
def test_bare_cuggino(
    project: Path,
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
    terminal: bool,
    configured: bool,
    starts: bool,
) -> None:
    """Bare `cuggino` is the project manager at a terminal in a set-up project, otherwise help."""
    set_up(project, _NOTE + "sys.exit(3)")
    if not configured:
        (project / ".cuggino.json").unlink()
    monkeypatch.setattr(console, "on_terminal", lambda: terminal)
    assert (3 if starts else 0) == main([])
    assert starts == (project / ".cuggino/tbd/told.json").exists()
    out = cli.printed().out
    assert starts == ("Usage: cuggino" not in out)
    assert starts == ("First steps:" not in out)


@pytest.mark.usefixtures("project")
def test_the_alias_is_shown_once(cli: Cli) -> None:
    """The help lists the command with its alias on one line."""
    lines = cli("--help").splitlines()
    assert 1 == sum("(also: pm)" in line for line in lines)
    assert [] == [line for line in lines if line.startswith("  pm")]


_UNRULY = """
import termios, tty
assert os.isatty(0) and os.isatty(1)
tty.setraw(0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
os.setpgid(0, 0)
os.tcsetpgrp(0, os.getpid())
sys.stdout.write("\\x1b[?1049h\\x1b[?25l\\x1b[?2004h\\x1b[?1003h")
sys.stdout.flush()
{ending}
"""

_LEADER = """
import fcntl, json, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from cuggino_cli.main import main
before = termios.tcgetattr(0)
code = main([])
after = termios.tcgetattr(0)
said = {"code": code, "same": before == after, "front": os.tcgetpgrp(0) == os.getpgrp()}
json.dump(said, open("said.json", "w"))
"""


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("os.kill(os.getpid(), 9)", 137),
        pytest.param("sys.exit(0)", 0, marks=pytest.mark.real_agent),
        pytest.param("1 / 0", 1, marks=pytest.mark.real_agent),
    ],
)
def test_the_terminal_is_intact(project: Path, ending: str, code: int) -> None:
    """The terminal is restored however the program changed it and exited."""
    set_up(project, _UNRULY.format(ending=ending))
    screen, terminal = pty.openpty()
    leader = subprocess.Popen(
        [sys.executable, "-c", _LEADER],
        stdin=terminal,
        stdout=terminal,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    _, errors = leader.communicate(timeout=LIMIT)
    assert 0 == leader.returncode, errors
    said = json.loads((project / "said.json").read_text())
    assert {"code": code, "same": True, "front": True} == said
    shown = printed(screen, terminal)
    for mode in ("25", "2004", "1003"):
        (last,) = re.findall(rf".*\x1b\[\?{mode}([hl])", shown, re.DOTALL)
        assert ("h" if mode == "25" else "l") == last
    # A program that exits normally has already left the alternate screen.
    assert (code == 137) == ("\x1b[?1049l" in shown)
    os.close(screen)
    os.close(terminal)
