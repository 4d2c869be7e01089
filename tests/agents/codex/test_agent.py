"""The agent for the Codex CLI, with a fake program."""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pytest

import cuggino
from cuggino.agents import InteractiveOptions, SpawnOptions
from cuggino.agents.codex.agent import CodexAgent, native_program
from cuggino.errors import AgentFailed, AgentNotFound, GuardNotLive
from cuggino.events import LlmAgentEvent, SessionEnded
from cuggino.guard.roles import role_policy
from cuggino.testing import no_leaks

THREAD = "01a1fbfc-897a-7b22-a66b-cd975e9b42de"
FAKE = f"""#!{sys.executable}
import json, os, sys
if "--version" in sys.argv:
    print("codex-cli 0.169.0")
    sys.exit()
said = sys.stdin.read() if "exec" in sys.argv else ""
told = {{"argv": sys.argv[1:], "stdin": said, "env": dict(os.environ), "profile": ""}}
if "--profile" in sys.argv:
    name = sys.argv[sys.argv.index("--profile") + 1]
    told["profile"] = open(os.environ["HOME"] + f"/.codex/{{name}}.config.toml").read()
with open(os.environ["TOLD"], "w") as file:
    json.dump(told, file)
print('{{"type":"thread.started","thread_id":"{THREAD}"}}')
print('{{"type":"turn.completed","usage":{{"input_tokens":5,"output_tokens":1}}}}')
"""

LIVE = """
import subprocess, sys, tomllib
for word in sys.argv:
    if word.startswith("hooks.SessionStart=") and "exec" in sys.argv:
        (group,) = tomllib.loads(word)["hooks"]["SessionStart"]
        start = b'{"hook_event_name": "SessionStart", "cwd": "/"}'
        subprocess.run(["/bin/sh", "-c", group["hooks"][0]["command"]], input=start)
        sys.exit(1)
"""


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def environment(tmp_path: Path) -> dict[str, str]:
    told = str(tmp_path / "told.json")
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "TOLD": told}


def play(tmp_path: Path, **options: Any) -> dict[str, Any]:
    """Return the recorded invocation of the program."""
    agent = CodexAgent(path=script(tmp_path / "codex", FAKE), env=environment(tmp_path))
    given = SpawnOptions(**{"prompt": "go", "cwd": tmp_path, **options})
    events: list[LlmAgentEvent] = []
    with no_leaks():
        cuggino.run(agent.spawn(given), events.append)
    assert isinstance(events[-1], SessionEnded)
    told: dict[str, Any] = json.loads((tmp_path / "told.json").read_text())
    return told


def settings(argv: list[str]) -> dict[str, Any]:
    pairs = [argv[at + 1] for at, word in enumerate(argv) if word == "-c"]
    return tomllib.loads("\n".join(pairs))


def test_capabilities() -> None:
    """The reported capabilities match the methods."""
    agent = CodexAgent()
    told = agent.capabilities
    assert ("calls", True, True, "tokens") == (told.guard, told.mcp, told.resume, told.cost)
    assert (False, False) == (told.sandbox, told.deltas)


def test_the_command_line(tmp_path: Path) -> None:
    """The prompt is passed on standard input; questions, updates and telemetry are disabled."""
    told = play(tmp_path, prompt="-go /x", system_prompt="be brief", model="m")
    argv, given = told["argv"], settings(told["argv"])
    assert not any("be brief" in word for word in argv)
    assert ["exec", "--sandbox", "read-only", "--json"] == argv[:4]
    assert ["--model", "m", "-"] == argv[-3:]
    assert "-go /x" == told["stdin"]
    assert {"developer_instructions": "be brief"} == tomllib.loads(told["profile"])
    assert ("never", False) == (given["approval_policy"], given["analytics"]["enabled"])
    assert "--dangerously-bypass-approvals-and-sandbox" not in argv


def test_unattended(tmp_path: Path) -> None:
    """With tools allowed it runs without Codex's sandbox; variables reach the tools."""
    told = play(tmp_path, dangerously_skip_permissions=True, env={"CUGGINO_X": "1", "OTHER": "2"})
    assert "--dangerously-bypass-approvals-and-sandbox" in told["argv"]
    assert "read-only" not in told["argv"]
    assert {"CUGGINO_X": "1"} == settings(told["argv"])["shell_environment_policy"]["set"]
    assert ("1", "2") == (told["env"]["CUGGINO_X"], told["env"]["OTHER"])


def test_resumed(tmp_path: Path) -> None:
    """A session is resumed by its id and keeps its system prompt."""
    told = play(tmp_path, resume_session_id=THREAD.upper(), system_prompt="another")
    assert ["exec", "--sandbox", "read-only", "resume", "--json"] == told["argv"][:5]
    assert [THREAD, "-"] == told["argv"][-2:]
    assert "developer_instructions" not in settings(told["argv"])


def test_a_program_that_does_not_run_the_hook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guarded session does not start if the program ignores the hook."""
    agent = CodexAgent(path=script(tmp_path / "codex", FAKE), env=environment(tmp_path))
    policy = role_policy("implementing", project=tmp_path, level="roles")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with pytest.raises(GuardNotLive, match="did not run its hook"):
        agent.check_guard(policy)
    with pytest.raises(GuardNotLive, match="did not run its hook"):
        cuggino.run(agent.spawn(SpawnOptions(prompt="go", cwd=tmp_path, guard=policy)))
    assert [] == list(temporary.iterdir())


def test_a_program_that_runs_the_hook(tmp_path: Path) -> None:
    """The guard can be checked, and an interactive session starts with the hook.

    The environment contains the variables of the guard.
    """
    program = script(tmp_path / "codex", FAKE.replace("import json", LIVE + "import json"))
    agent = CodexAgent(path=program, env={**environment(tmp_path), "BASH_ENV": "evil"})
    policy = role_policy("implementing", project=tmp_path, level="roles")
    agent.check_guard(policy)
    with no_leaks():
        asked = InteractiveOptions(cwd=tmp_path, guard=policy, system_prompt="be brief")
        assert 0 == agent.interactive(asked)
    told = json.loads((tmp_path / "told.json").read_text())
    given = settings(told["argv"])
    assert {"PreToolUse", "SessionStart", "state"} == set(given["hooks"])
    assert (True, False) == tuple(given["features"][n] for n in ("hooks", "unified_exec_tty"))
    assert {"trust_level": "untrusted"} == given["projects"][str(tmp_path)]
    assert {"developer_instructions": "be brief"} == tomllib.loads(told["profile"])
    assert "BASH_ENV" not in told["env"]


def test_in_a_terminal(tmp_path: Path) -> None:
    """An interactive session gets the system prompt and returns the exit code."""
    program = script(tmp_path / "codex", f"{FAKE}sys.exit(3)\n")
    agent = CodexAgent(path=program, env=environment(tmp_path))
    asked = InteractiveOptions(cwd=tmp_path, system_prompt="be brief")
    assert 3 == agent.interactive(asked)
    told = json.loads((tmp_path / "told.json").read_text())
    assert {"developer_instructions": "be brief"} == tomllib.loads(told["profile"])
    assert [] == list((tmp_path / "home" / ".codex").iterdir())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("codex-cli 0.168.9", "too old"),
        ("codex 1.0", "is not the Codex CLI"),
    ],
)
def test_other_programs(tmp_path: Path, text: str, expected: str) -> None:
    """An outdated program and an unrelated one are refused."""
    program = script(tmp_path / "codex", f"#!/bin/sh\necho '{text}'\n")
    with pytest.raises(AgentNotFound, match=expected):
        CodexAgent(path=program, env=environment(tmp_path)).check()


def test_no_program(tmp_path: Path) -> None:
    """A missing program is reported with installation advice."""
    with pytest.raises(AgentNotFound) as caught:
        CodexAgent(path=tmp_path / "none", env=environment(tmp_path)).check()
    assert "npm install" in str(caught.value.hint)


def test_a_crash(tmp_path: Path) -> None:
    """A program that dies is a crash, reported with the end of stderr."""
    text = "#!/bin/sh\ncase $1 in --version) echo codex-cli 0.169.0;; *) echo oh no >&2; exit 7;; "
    agent = CodexAgent(path=script(tmp_path / "codex", text + "esac\n"), env=environment(tmp_path))
    with pytest.raises(AgentFailed, match="oh no") as caught:
        cuggino.run(agent.spawn(SpawnOptions(prompt="go", cwd=tmp_path)))
    assert "crash" == caught.value.reason


@pytest.mark.parametrize("nested", [False, True])
def test_behind_the_launcher_of_npm(tmp_path: Path, nested: bool) -> None:
    """The native program is started instead of npm's launcher, wherever npm installed it."""
    scope = tmp_path / "node_modules" / "@openai"
    launcher = script(scope / "codex" / "bin" / "codex.js", "// starts the program\n")
    link = tmp_path / "bin" / "codex"
    link.parent.mkdir()
    link.symlink_to(launcher)
    assert str(link) == native_program(str(link))
    place = scope / "codex" / "node_modules" / "@openai" if nested else scope
    native = script(place / "codex-linux-x64" / "vendor" / "any" / "bin" / "codex", "")
    assert str(native) == native_program(str(link))
    assert str(native) == native_program(str(native))


@pytest.mark.parametrize(
    ("system", "machine", "expected"),
    [
        ("linux", "x86_64", "x86_64-unknown-linux-musl"),
        ("linux", "aarch64", "aarch64-unknown-linux-musl"),
        ("darwin", "arm64", "aarch64-apple-darwin"),
        ("darwin", "x86_64", None),
    ],
)
def test_programs_for_several_machines(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    system: str,
    machine: str,
    expected: str | None,
) -> None:
    """Of several installed programs the one for this platform is started, else the launcher."""
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    launcher = script(tmp_path / "@openai" / "codex" / "bin" / "codex.js", "")
    targets = (
        ("darwin-arm64", "aarch64-apple-darwin"),
        ("linux-arm64", "aarch64-unknown-linux-musl"),
        ("linux-x64", "x86_64-unknown-linux-musl"),
    )
    found: dict[str | None, Path] = {None: launcher}
    for name, target in targets:
        vendor = tmp_path / "@openai" / f"codex-{name}" / "vendor" / target
        found[target] = script(vendor / "bin" / "codex", "")
    assert str(found[expected]) == native_program(str(launcher))
