"""How programs of sessions start: without logins, in a view, and in a terminal."""

from __future__ import annotations

import importlib.metadata
import json
import os
import stat
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cuggino
from cuggino import run
from cuggino.agents import InteractiveOptions, LlmAgent, SpawnOptions
from cuggino.agents.acp import PROFILES, AcpAgent
from cuggino.agents.base.program import ProgramAgent
from cuggino.agents.choosing.registry import BUILT_IN, built_in
from cuggino.agents.claude import ClaudeAgent
from cuggino.agents.gemini import GeminiAgent
from cuggino.agents.opencode import OpenCodeAgent
from cuggino.agents.scripted import ScriptedAgent
from cuggino.errors import AgentNotFound, AgentTooOld, CugginoError, GuardNotLive
from cuggino.events import Event
from cuggino.guard.roles import role_policy
from cuggino.sandbox import LOGIN_VARIABLES, ViewRole, role_view
from tests.sandbox.arena import needs_bubblewrap

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


_VIEWED = """
[[reviewing]]
[[reviewing.steps]]
run = "echo x > src.py; echo r > own/r.md"
"""

_FAKE = """#!/bin/sh
[ "$1" = --version ] && echo "2.1.329 (Claude Code)" && exit
for word; do
    [ "$last" = --append-system-prompt-file ] && cat "$word" > own/seen
    last=$word
done
echo x > src.py
for name in .claude/state .claude/settings.json z; do echo x > "$HOME/$name"; done
echo '{"type": "result", "subtype": "success", "is_error": false, "result": "done"}'
"""


def viewing(project: Path, role: ViewRole) -> SpawnOptions:
    own = project / "own"
    own.mkdir(parents=True)
    view = role_view(role, project=project, folder=own)
    return SpawnOptions(
        prompt="work",
        cwd=project,
        view=view,
        dangerously_skip_permissions=True,
        system_prompt="SYS",
    )


def test_a_program_sees_its_files_and_its_state(tmp_path: Path) -> None:
    """It reads its private files, keeps its state, and changes nothing else."""
    needs_bubblewrap(tmp_path)
    project, home = tmp_path / "project", tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude/settings.json").write_text("{}")
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(_FAKE)
    program.chmod(0o755)
    agent = ClaudeAgent(path=program, env={**os.environ, "HOME": str(home)})
    events: list[Event] = []
    run(agent.spawn(viewing(project, "reviewing")), events.append)
    assert "SYS" == (project / "own/seen").read_text()
    assert not (project / "src.py").exists()
    assert "x\n" == (home / ".claude/state").read_text()
    assert "{}" == (home / ".claude/settings.json").read_text()
    assert not (home / "z").exists()
    assert events


def test_the_scripted_agent(tmp_path: Path) -> None:
    """Its tools run in the view, too."""
    needs_bubblewrap(tmp_path)
    project = tmp_path / "project"
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(_VIEWED)
    given = viewing(project, "reviewing")
    events: list[Event] = []
    run(ScriptedAgent(scenario).spawn(replace(given, role="reviewing")), events.append)
    assert not (project / "src.py").exists()
    assert "r\n" == (project / "own/r.md").read_text(), events


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


@pytest.mark.parametrize("agent", [gemini, opencode])
def test_the_terminal(project: Path, agent: Any) -> None:
    """The terminal is passed through, and the exit code is returned."""
    assert 3 == agent(project).interactive(InteractiveOptions(cwd=project))
    seen = invocation(project)
    assert ([], str(project), []) == (seen["argv"], seen["cwd"], seen["texts"]["instructions"])
    assert "GEMINI_CLI_HOME" not in seen["env"]


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


SAYS: dict[str, tuple[str, tuple[str, ...]]] = {
    "claude": ("{} (Claude Code)", ("Claude Code", "")),
    "codex": ("codex-cli {}", ("codex 1.0", "")),
    "copilot": (
        "GitHub Copilot CLI {}.\nRun 'copilot update' to check for updates.",
        ("copilot version: v1.34.1", ""),
    ),
    "gemini": ("{}", ("gemini 1.0.0", "")),
    "opencode": ("{}", ("opencode", "")),
}
"""What each program prints as its version, and what others print."""
OLDEST = [
    *(("claude", "2.1.197"), ("codex", "0.169.0"), ("copilot", "1.0.102"), ("gemini", "0.61.0")),
    ("opencode", "1.18.33"),
]


def _saying(name: str, folder: Path, words: str | None) -> ProgramAgent:
    """Return the agent of a program that says this as its version; with None it fails."""
    program = folder / "program"
    ending = "exit 3" if words is None else f"cat <<'E'\n{words}\nE"
    program.write_text(f"#!/bin/sh\necho asked >> {folder}/asked\n{ending}\n")
    program.chmod(0o755)
    made: Any = built_in(name)
    agent = made(path=program, env={"PATH": os.defpath})
    assert isinstance(agent, ProgramAgent)
    return agent


@pytest.fixture
def with_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that the SDK of GitHub Copilot is installed."""
    monkeypatch.setattr(importlib.metadata, "version", lambda _name: "1.0.27")


@pytest.mark.usefixtures("with_sdk")
class TestVersions:
    @pytest.mark.parametrize(
        ("name", "version"), [*OLDEST, ("claude", "10.0.0"), ("gemini", "1.2.3")]
    )
    def test_supported(self, name: str, version: str, tmp_path: Path) -> None:
        """The oldest version and newer ones are accepted, and asked once."""
        agent = _saying(name, tmp_path, SAYS[name][0].format(version))
        assert [version, version] == [agent.check(), agent.check()]
        assert "asked\n" == (tmp_path / "asked").read_text()

    @pytest.mark.parametrize(("name", "oldest"), OLDEST)
    def test_too_old(self, name: str, oldest: str, tmp_path: Path) -> None:
        """An older version is refused with both versions and advice, and no session begins."""
        agent = _saying(name, tmp_path, SAYS[name][0].format("0.0.9"))
        events: list[Event] = []
        with pytest.raises(AgentTooOld) as caught:
            run(agent.spawn(SpawnOptions(prompt="Go.", cwd=tmp_path)), events.append)
        assert f"{name} 0.0.9 is too old, at least {oldest} is needed" == caught.value.message
        assert ("update it with" in (caught.value.hint or ""), 2, []) == (
            *(True, caught.value.code, events),
        )

    @pytest.mark.parametrize(
        ("name", "words"),
        [(name, words) for name, said in SAYS.items() for words in (*said[1], None)],
    )
    def test_other_programs(self, name: str, words: str | None, tmp_path: Path) -> None:
        """A program that says something else, nothing, or fails is not the agent's."""
        why = "--version failed" if words is None else "names no version|is not the"
        with pytest.raises(AgentNotFound, match=why) as caught:
            _saying(name, tmp_path, words).check()
        assert "install" in (caught.value.hint or "")

    @pytest.mark.parametrize("name", SAYS)
    def test_missing(self, name: str, tmp_path: Path) -> None:
        """Without an executable program the stream fails at once, with installation advice."""
        made: Any = built_in(name)
        (tmp_path / "file").write_text("#!/bin/sh\n")
        for path in (name, tmp_path / "nothing", tmp_path / "file"):
            agent = made(path=path, env={"PATH": str(tmp_path)})
            events: list[Event] = []
            with pytest.raises(AgentNotFound, match="was not found") as caught:
                run(agent.spawn(SpawnOptions(prompt="Go.", cwd=tmp_path)), events.append)
            assert ([], 2) == (events, caught.value.code)
            assert "install" in (caught.value.hint or "")
            assert "agentPath" in (caught.value.hint or "")
