"""The agent for the Codex CLI with a fake program, and the program's settings."""

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
from hypothesis import given, strategies as st

import cuggino
from cuggino.agents import InteractiveOptions, SpawnOptions
from cuggino.agents.codex import config as codex_config
from cuggino.agents.codex.agent import CodexAgent, native_program
from cuggino.agents.codex.config import (
    codex_home,
    holds_secrets,
    override,
    private,
    retries,
    server_table,
    toml,
)
from cuggino.errors import GuardNotLive, StorageError
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str, machine: str, expected: str | None
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


VALUES = st.recursive(
    st.booleans() | st.integers(-(2**60), 2**60) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def given_by(words: list[str]) -> dict[str, Any]:
    """Return the settings in the arguments."""
    assert ["-c"] * (len(words) // 2) == words[::2]
    return tomllib.loads("\n".join(words[1::2]))


@given(VALUES)
def test_every_value_arrives(value: Any) -> None:
    """Values round-trip, except for lone surrogates."""
    assert value == tomllib.loads(f"x={toml(value)}")["x"]


def test_texts_that_are_easily_lost() -> None:
    """Quotes, controls, DEL and astral characters round-trip; a lone surrogate does not."""
    text = "\"'\\ \x00\x1b\x7f\n\t Ünï 😀"
    assert {"a": text} == given_by(override("a", text))
    assert {"a": "?"} == given_by(override("a", "\ud800"))


def test_none_is_omitted() -> None:
    """TOML has no null."""
    assert '{"a"=1,"c"=[]}' == toml({"a": 1, "b": None, "c": [None]})


def test_servers() -> None:
    """Servers have the format of Claude Code's; tools usable without asking are listed by name."""
    local = {"type": "stdio", "command": "run", "args": ["x"], "env": {"A": "b"}}
    remote = {"type": "http", "url": "http://127.0.0.1:1/mcp", "headers": {"X": "y"}}
    rules = ["mcp__local__get", "mcp__remote", "Bash"]
    given_servers = {"local": local, "remote": remote}
    table = server_table(given_servers, approved=False, allowed_tools=rules)
    common = {"required": True, "enabled": True, "startup_timeout_sec": 60}
    assert {
        "local": {
            "command": "run",
            "args": ["x"],
            "env": {"A": "b"},
            "tools": {"get": {"approval_mode": "approve"}},
            **common,
        },
        "remote": {
            "url": "http://127.0.0.1:1/mcp",
            "http_headers": {"X": "y"},
            "default_tools_approval_mode": "approve",
            **common,
        },
    } == given_by(override("s", table))["s"]
    assert {} == server_table({}, approved=True)


CUSTOM = 'model_provider = "own"\n[model_providers.own]\nname = "own"\n'


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("", {}),
        ("no toml", {}),
        ('model_provider = "openai"', {}),
        ('model_provider = "gone"', {}),
        ("model_provider = 1\nmodel_providers = 2", {}),
        (CUSTOM, {"request_max_retries", "stream_max_retries", "stream_idle_timeout_ms"}),
        (f"{CUSTOM}request_max_retries = 9\nstream_max_retries = 9", {"stream_idle_timeout_ms"}),
    ],
)
def test_retries_are_bounded(tmp_path: Path, config: str, expected: set[str]) -> None:
    """The user's own provider gets the retry limits that it lacks."""
    (tmp_path / "config.toml").write_text(config)
    words = given_by(retries({"CODEX_HOME": str(tmp_path)}))
    assert set(expected) == set(words.get("model_providers", {}).get("own", {}))


@pytest.mark.parametrize("text", ["be brief", 'ü"' * codex_config.LONGEST_ARGUMENT])
def test_private_settings(tmp_path: Path, text: str) -> None:
    """Private settings are in a temporary private file and in no argument."""
    env = {"CODEX_HOME": str(tmp_path / "codex")}
    settings = {"developer_instructions": text, "mcp_servers": {"a": {"env": {"K": "secret"}}}}
    with private(settings, env) as words:
        (file,) = (tmp_path / "codex").iterdir()
        assert ["--profile", file.name.removesuffix(".config.toml")] == words
        assert 0o600 == file.stat().st_mode & 0o777
        assert settings == tomllib.loads(file.read_text())
    assert [] == list((tmp_path / "codex").iterdir())
    with private({}, env) as words:
        assert [] == words


def test_a_profile_of_the_user(tmp_path: Path) -> None:
    """The user's profile stays in force: short settings are arguments, and no file is written."""
    (tmp_path / "config.toml").write_text('profile = "mine"\n')
    env = {"CODEX_HOME": str(tmp_path)}
    with private({"developer_instructions": "be brief"}, env) as words:
        assert {"developer_instructions": "be brief"} == given_by(words)
    assert ["config.toml"] == [path.name for path in tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"command": "x", "args": ["y"]}, False),
        ({"command": "x", "env": {}}, False),
        ({"command": "x", "env": {"K": "v"}}, True),
        ({"url": "u", "headers": {"Authorization": "x"}}, True),
    ],
)
def test_servers_with_secrets(told: dict[str, object], expected: bool) -> None:
    """Variables and headers may be keys."""
    assert expected == holds_secrets(server_table({"a": told}, approved=True))


def test_an_unwritable_settings_file(tmp_path: Path) -> None:
    """If the private file cannot be written, the session does not start."""
    (tmp_path / "file").touch()
    env = {"CODEX_HOME": str(tmp_path / "file")}
    with (
        pytest.raises(StorageError, match="cannot be written"),
        private({"developer_instructions": "x"}, env),
    ):
        pass


def test_the_folder_of_the_program(tmp_path: Path) -> None:
    """The folder is the configured one, otherwise one in the user's home."""
    assert tmp_path / "own" == codex_home({"CODEX_HOME": str(tmp_path / "own"), "HOME": "/x"})
    assert tmp_path / ".codex" == codex_home({"HOME": str(tmp_path)})
