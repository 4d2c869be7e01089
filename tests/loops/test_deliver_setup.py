"""The options of sessions of the deliverables loop: guard, tools, servers, instructions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents.base import Capabilities, SpawnOptions
from cuggino.domain.deliverable_tools import TOOL_SERVER, TOOLS_OF, agent_tool
from cuggino.errors import ConfigError
from cuggino.events import DeliverWarning
from cuggino.guard.policy import Policy
from cuggino.loops.deliver.tool_socket import SOCKET, ToolSocket
from cuggino.mcp_server import forward
from cuggino.programs import program
from cuggino.storage import Workspace
from tests.loops.deliver_loop import DeliverLoop, RecordedDelivery, Sessions, Turn

START = {"a": "pending"}
PASSED = {"a": "passed"}
SERVER = {"command": sys.executable, "args": ["-m", "some_server"]}


class Guarded(Sessions):
    """An agent with a guard."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(guard="calls")

    def check_guard(self, policy: Policy) -> None:
        pass


def project_of(folder: Path, turns: list[Turn], settings: Any, **given: Any) -> DeliverLoop:
    """A project with these agent settings and a guarded agent."""
    return DeliverLoop(folder, turns, sessions=Guarded, settings=settings, **given)


def every_instruction(
    folder: Path, settings: object = None, **given: Any
) -> dict[str, SpawnOptions]:
    """Return the options of a session of each instruction."""
    turns = [Turn(leaves=START), Turn(leaves=PASSED), Turn(verifies=["a"])]
    project = project_of(folder / "run", turns, settings)
    project.run(verify=True, **given)
    other = project_of(folder / "sync", [Turn(leaves=PASSED), Turn(verifies=["a"])], settings)
    other.run(workflow="sync", **given)
    spawned = [*project.agent.spawned, *other.agent.spawned]
    assert ["initializer", "coding", "verify", "sync", "verify"] == [o.role for o in spawned]
    return {str(options.role): options for options in spawned}


NONE: dict[str, object] = {"mcpServers": {}}


@pytest.fixture(autouse=True)
def folders(tmp_path: Path) -> None:
    """The places of two projects."""
    for name in ("run", "sync"):
        (tmp_path / name).mkdir()


def test_the_guard_in_full(tmp_path: Path) -> None:
    """Each role has its policy at level `full`; verifying roles may write only the note."""
    guards = {role: o.guard for role, o in every_instruction(tmp_path, NONE).items()}
    assert {"full"} == {guard.level for guard in guards.values() if guard}
    roles = {name: guard.role for name, guard in guards.items() if guard}
    expected = {"initializer": "deliver", "coding": "deliver", "verify": "verify", "sync": "sync"}
    assert expected == roles
    writable = {name: guard.writable for name, guard in guards.items() if guard}
    note = (".autonoe-note.md",)
    assert {"initializer": None, "coding": None, "verify": note, "sync": note} == writable
    for guard in guards.values():
        assert guard is not None
        assert guard.rules is not None
        assert {"mcp__playwright__browser_click", "Read(./**)"} <= set(guard.rules)
        assert "Bash(*)" not in guard.rules
    assert {str(tmp_path / "run"), str(tmp_path / "sync")} >= {
        g.project for g in guards.values() if g
    }


def test_the_sandbox(tmp_path: Path) -> None:
    """The sandbox is on by default, with the allowed hosts."""
    given = every_instruction(tmp_path, NONE, sandbox_domains=["*.example.com"])
    for options in given.values():
        assert options.sandbox is not None
        assert "*.example.com" in options.sandbox.domains
        assert options.guard is not None
    off = project_of(tmp_path / "off", [Turn(leaves=PASSED)], NONE, start=START)
    off.run(sandbox=False)
    assert off.agent.spawned[0].sandbox is None
    assert off.agent.spawned[0].guard is not None


def test_without_a_guard(tmp_path: Path) -> None:
    """Without guard support, or with the guard off, sessions have neither guard nor sandbox."""
    off = project_of(tmp_path / "run", [Turn(leaves=PASSED)], NONE, start=START)
    off.run(guard="off")
    bare = DeliverLoop(tmp_path / "sync", [Turn(leaves=PASSED)], START)
    bare.run()
    for project in (off, bare):
        (options,) = project.agent.spawned
        assert (None, None) == (options.guard, options.sandbox)
        assert options.dangerously_skip_permissions


@pytest.mark.parametrize("strict", [True, False])
def test_the_server_of_the_tools(strict: bool, tmp_path: Path) -> None:
    """The agent's program starts our MCP server with the tools of its instruction (AUT-117)."""
    for role, options in every_instruction(tmp_path, NONE, strict_transitions=strict).items():
        assert [TOOL_SERVER] == list(options.mcp_servers)
        server: Any = options.mcp_servers[TOOL_SERVER]
        verified = Path(options.env["CUGGINO_SESSION_FILE"]).with_suffix(".verified.json")
        socket = verified.with_name(verified.name.replace(".verified.json", ".tools")) / SOCKET
        expected = ["-P", str(program("mcp_server.py")), str(socket), *TOOLS_OF[role]]
        assert {"command": sys.executable, "args": expected, "alwaysLoad": True} == server
        own = {agent_tool(tool) for tool in TOOLS_OF[role]}
        mine = {tool for tool in options.allowed_tools if tool.startswith("mcp__autonoe")}
        assert own == mine


def test_a_socket_with_a_short_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a folder has no second name, the socket is in a private folder with a short one."""
    monkeypatch.setattr("cuggino.loops.deliver.tool_socket._DESCRIPTORS", tmp_path / "none")
    server = ToolSocket(tmp_path / ("long" * 30), lambda tool, given: {tool: dict(given)})
    try:
        assert len(str(server.path)) < 100
        assert 0o700 == server.path.parent.stat().st_mode & 0o777
        assert {"list": {"limit": 1}} == forward(server.path, "list", {"limit": 1})
    finally:
        server.close()
    assert not server.path.parent.exists()


def test_no_rule_answers_for_the_guard(tmp_path: Path) -> None:
    """No allowed tool or rule bypasses the guard, including those of `agent.json`."""
    rules = ["Bash(rm:*)", " Write(/**)", "Edit", "MultiEdit", "Read(/srv/**)", "WebFetch"]
    settings = {
        **NONE,
        "permissions": {"allow": [*rules, "mcp__db__query"]},
        "allowedTools": ["Bash", "Bash(*)", " Edit ", "NotebookEdit", "WebSearch", "Read"],
    }
    for options in every_instruction(tmp_path, settings).values():
        allow: Any = options.settings["permissions"]
        expected = ["Read(./**)", "Glob(./**)", "Grep(./**)", "Read(/srv/**)", "WebFetch"]
        assert [*expected, "mcp__db__query"] == allow["allow"]
        guarded = ("Bash", "Write", "Edit", "MultiEdit", "NotebookEdit", "Monitor")
        assert not [t for t in options.allowed_tools if t.strip().startswith(guarded)]
        assert "WebSearch" in options.allowed_tools
        assert "mcp__playwright__browser_click" in options.allowed_tools
        assert "sandbox" not in options.settings


def test_additions_of_the_file(tmp_path: Path) -> None:
    """Servers, hooks, profiles, programs and process names of `agent.json` are joined with ours."""
    hook = {"matcher": "Bash", "command": "./check.sh"}
    settings = {
        "mcpServers": {"db": SERVER, TOOL_SERVER: {"command": sys.executable}},
        "hooks": {"PreToolUse": [hook, {"command": "./all.sh"}]},
        "profile": "python",
        "allowCommands": {"base": ["look"], "run": ["make"], "sync": ["judge"]},
        "allowPkillTargets": ["server"],
    }
    given = every_instruction(
        tmp_path,
        settings,
        allow_commands=["gcc"],
        allow_pkill_targets=["worker"],
        profile="node",
        allow_destructive=True,
    )
    for role, options in given.items():
        assert SERVER == options.mcp_servers["db"]
        ours: Any = options.mcp_servers[TOOL_SERVER]
        own = {"cuggino_cli", str(program("mcp_server.py"))}
        assert own & {*ours["args"]}  # no file takes its place
        assert {
            "PreToolUse": [
                {"matcher": "Bash", "hooks": [{"type": "command", "command": "./check.sh"}]},
                {"hooks": [{"type": "command", "command": "./all.sh"}]},
            ]
        } == options.settings["hooks"]
        guard = options.guard
        assert guard is not None
        assert ("python",) == guard.profiles
        works = role in ("initializer", "coding")
        programs = {"look", "gcc", "make"} if works else {"look", "judge"}
        assert programs == set(guard.extra_commands)
        assert {"worker", "server"} == set(guard.pkill_targets)
        assert works == guard.allow_destructive


def test_profiles_of_the_configuration(tmp_path: Path) -> None:
    """Profiles of the configuration apply if `agent.json` names none."""
    guard = every_instruction(tmp_path, NONE, profile=["node"])["coding"].guard
    assert guard is not None
    assert ("node",) == guard.profiles


def run_with(folder: Path, settings: object, **given: Any) -> RecordedDelivery:
    project = project_of(folder, [Turn(leaves=PASSED)], settings, start=START)
    story: RecordedDelivery = project.run(**given)
    return story


def test_a_server_whose_program_is_missing(tmp_path: Path) -> None:
    """A server without its program is skipped, with a warning at the start (AUT-230)."""
    own = tmp_path / "run/bin/server"
    own.parent.mkdir()
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    servers = {
        "gone": {"command": "no-such-program"},
        "own": {"command": "./bin/server"},
        "lost": {"command": "./bin/lost"},
        "far": {"type": "http", "url": "https://example.com"},
    }
    project = project_of(
        tmp_path / "run", [Turn(leaves=PASSED)], {"mcpServers": servers}, start=START
    )
    story = project.run()
    assert ["own", "far", TOOL_SERVER] == list(project.agent.spawned[0].mcp_servers)[-3:]
    assert [] == [n for n in ("gone", "lost") if n in project.agent.spawned[0].mcp_servers]
    about = [warning for warning in story.warnings if "browser" not in warning]
    left_out = [warning for warning in about if "playwright" not in warning]
    assert [
        "the MCP server gone is left out: its program no-such-program is not installed",
        "the MCP server lost is left out: its program ./bin/lost is not installed",
    ] == left_out


def test_settings_that_were_changed(tmp_path: Path) -> None:
    """A change of `agent.json` between two runs is reported (AUT-140)."""
    folder = tmp_path / "run"
    assert [] == run_with(folder, NONE).warnings
    assert [] == run_with(folder, NONE).warnings
    (changed,) = run_with(folder, {**NONE, "allowPkillTargets": ["x"]}).warnings
    assert changed.startswith(".autonoe/agent.json was changed since the last run")
    (folder / ".autonoe/agent.json").unlink()
    assert [".autonoe/agent.json was removed"] == [
        warning[:31] for warning in run_with(folder, None).warnings if "agent.json" in warning
    ]
    (Workspace(folder).folder / "agent.sha256").write_bytes(b"\xff")  # no digest at all
    assert ["was changed since"] == [warning[20:37] for warning in run_with(folder, NONE).warnings]


def test_settings_that_cannot_be_used(tmp_path: Path) -> None:
    """Unusable settings are an error before anything starts, with the valid values (AUT-138)."""
    project = project_of(tmp_path / "run", [], {"profile": "cobol"}, start=START)
    seen = project.marbles.record(project.stream(journal=True))
    assert [("error", ConfigError)] == [(kind, type(value)) for _, kind, value in seen]
    assert 'unknown profile "cobol"; valid profiles: base, node, bun, python' in seen[0][2].message
    assert [] == project.agent.spawned
    assert not project.workspace.journal.exists()
    project.assert_released()


def test_settings_that_cannot_be_read(tmp_path: Path) -> None:
    """A folder in the place of the file is an error that names it."""
    folder = tmp_path / "run"
    (folder / ".autonoe/agent.json").mkdir(parents=True)
    project = DeliverLoop(folder, [], START, settings=None)
    seen = project.marbles.record(project.stream())
    assert [("error", ConfigError)] == [(kind, type(value)) for _, kind, value in seen]
    assert ".autonoe/agent.json: not a regular file" == seen[0][2].message


def test_instructions_of_the_project(tmp_path: Path) -> None:
    """They replace the built-in ones; an unusable one is reported in each session (AUT-121)."""
    folder = tmp_path / "run"
    project = project_of(folder, [Turn(leaves=START), Turn(), Turn(leaves=PASSED)], NONE)
    (folder / ".autonoe/initializer.md").write_text("Plan as I do.")
    (folder / ".autonoe/coding.md").write_text("  \n")
    story = project.run(session_pause=1.0)
    first, second, third = [options.prompt for options in project.agent.spawned]
    assert "Plan as I do." == first
    assert second == third
    assert agent_tool("set_deliverable_status") in second
    warning = ".autonoe/coding.md: blank; the built-in instruction is used"
    assert [warning, warning] == story.warnings
    assert [1.0, 2.0] == [
        when for when, event in story.timed(DeliverWarning) if event.message == warning
    ]


def test_other_options_of_a_session(tmp_path: Path) -> None:
    """Each session is fresh and not interactive, and has its role and run in its environment."""
    given = every_instruction(tmp_path, NONE)
    for role, options in given.items():
        assert role == options.env["CUGGINO_ROLE"]
        assert options.resume_session_id is None
        assert options.system_prompt is None
        assert options.dangerously_skip_permissions
        assert options.thinking is None
    assert len(given) == len({options.session_id for options in given.values()})
