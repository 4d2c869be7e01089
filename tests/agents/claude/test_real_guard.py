"""The guard on the real Claude Code CLI: what it lets pass, what it denies, who is told what."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from cuggino.errors import GuardNotLive
from tests.agents.guarded import SPEC, SUBAGENT, Guarded, bash, claude
from tests.model_server import Tool

__all__ = ["claude"]

pytestmark = pytest.mark.real_agent

NOTEBOOK = {
    "cells": [
        {
            "cell_type": "code",
            "id": "a",
            "metadata": {},
            "source": ["1"],
            "outputs": [],
            "execution_count": None,
        }
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}

MCP_SERVER = """
import json, sys

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOL = {"name": "put", "inputSchema": SCHEMA}

for line in sys.stdin:
    asked = json.loads(line)
    match asked["method"]:
        case "initialize":
            version = asked["params"]["protocolVersion"]
            server = {"name": "files", "version": "1"}
            told = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
        case "tools/list":
            told = {"tools": [TOOL]}
        case "tools/call":
            path = asked["params"]["arguments"]["path"]
            open(path, "w").write("put")
            told = {"content": [{"type": "text", "text": "it is put"}]}
        case _:
            told = {}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": told}), flush=True)
"""


def test_commands(claude: Guarded) -> None:
    """An allowed command runs, a denied one does not, and the model is told why."""
    done = claude.run([bash("echo yes > new.txt"), bash("echo x > .specs/task.md; echo y > y.txt")])
    assert done.error is None
    assert ("yes\n", SPEC) == (
        claude.read("new.txt"),
        claude.read(".specs/task.md"),
    )
    assert claude.read("y.txt") is None
    (denied,) = done.denied
    assert ("Bash", "toolu_1_1", "> .specs/task.md") == (
        denied.tool,
        denied.tool_use_id,
        denied.part,
    )
    assert ".specs" in denied.reason
    assert f"hook error: {denied.reason}" in done.told
    assert [False, True] == [result.is_error for result in done.results]
    assert done.ended.outcome == "completed"


def test_files(claude: Guarded) -> None:
    """Write and Edit reach the sources, and neither the specifications nor `.cuggino`."""
    app, spec = claude.path("app.py"), claude.path(".specs/task.md")
    done = claude.run(
        [Tool("Read", {"file_path": app}), Tool("Read", {"file_path": spec})],
        [
            Tool("Edit", {"file_path": app, "old_string": "old", "new_string": "new"}),
            Tool("Edit", {"file_path": spec, "old_string": "a file", "new_string": "no file"}),
            Tool("Write", {"file_path": claude.path("more.py"), "content": "more"}),
            Tool("Write", {"file_path": claude.path(".cuggino/lock"), "content": "more"}),
        ],
    )
    assert done.error is None
    assert ("new = 1\n", "more") == (claude.read("app.py"), claude.read("more.py"))
    assert SPEC == claude.read(".specs/task.md")
    assert claude.read(".cuggino/lock") is None
    assert ["toolu_2_1", "toolu_2_3"] == [denied.tool_use_id for denied in done.denied]
    assert ["Edit", "Write"] == [denied.tool for denied in done.denied]
    for denied in done.denied:
        assert denied.reason in done.told


def test_notebooks(claude: Guarded) -> None:
    """NotebookEdit changes a notebook of the sources, and none of the specifications."""
    for name in ("good.ipynb", ".specs/bad.ipynb"):
        (claude.project / name).write_text(json.dumps(NOTEBOOK))
    good, bad = claude.path("good.ipynb"), claude.path(".specs/bad.ipynb")
    new = {"cell_id": "a", "new_source": "2 + 2"}
    done = claude.run(
        [Tool("Read", {"file_path": good}), Tool("Read", {"file_path": bad})],
        [Tool("NotebookEdit", {"notebook_path": path, **new}) for path in (good, bad)],
    )
    assert done.error is None
    assert "2 + 2" in (claude.read("good.ipynb") or "")
    assert json.dumps(NOTEBOOK) == claude.read(".specs/bad.ipynb")
    assert ["NotebookEdit"] == [denied.tool for denied in done.denied]


def test_what_the_program_itself_would_ask_about(claude: Guarded) -> None:
    """Files that the program holds for delicate are the guard's to judge, not for nobody to."""
    names = [".vscode/settings.json", ".npmrc", ".gitmodules", ".git/hooks/pre-commit"]
    calls = [Tool("Write", {"file_path": claude.path(name), "content": "x"}) for name in names]
    done = claude.run(calls, bash("mkdir -p .idea && echo x > .idea/a.xml"))
    assert done.error is None
    assert ["x", "x", "x", None] == [claude.read(name) for name in names]
    assert "x\n" == claude.read(".idea/a.xml")
    assert ["toolu_1_3"] == [denied.tool_use_id for denied in done.denied]


def test_sub_agents(claude: Guarded) -> None:
    """A sub-agent's calls are judged like any other."""
    start = {"description": "d", "prompt": SUBAGENT, "subagent_type": "general-purpose"}
    delicate = Tool("Write", {"file_path": claude.path(".npmrc"), "content": "x"})
    helper = [[bash("echo yes > new.txt"), bash("echo no > .specs/task.md"), delicate]]
    done = claude.run(Tool("Task", start), helper=helper)
    assert done.error is None
    assert ("yes\n", SPEC) == (
        claude.read("new.txt"),
        claude.read(".specs/task.md"),
    )
    assert "x" == claude.read(".npmrc")
    (denied,) = done.denied
    assert ".specs" in denied.reason
    (told,) = (request for request in done.requests if "hook error" in request.messages_text)
    assert denied.reason in told.messages_text
    assert SUBAGENT in told.messages_text


def test_servers_of_tools(claude: Guarded, tmp_path: Path) -> None:
    """A tool of an MCP server is judged by the paths that it is given."""
    server = tmp_path / "server.py"
    server.write_text(MCP_SERVER)
    servers = {"files": {"command": sys.executable, "args": [str(server)], "alwaysLoad": True}}
    calls = [Tool("mcp__files__put", {"path": name}) for name in ("new.txt", ".specs/task.md")]
    done = claude.run(calls, mcp_servers=servers)
    assert done.error is None
    assert "put" == claude.read("new.txt")
    assert SPEC == claude.read(".specs/task.md")
    assert ["mcp__files__put"] == [denied.tool for denied in done.denied]


def test_roles(claude: Guarded) -> None:
    """A planning agent writes its plan and nothing else, by whatever tool."""
    policy = claude.policy("planning", plan=Path(".cuggino/wip/plan.md"))
    done = claude.run(
        [
            Tool("Write", {"file_path": claude.path(".cuggino/wip/plan.md"), "content": "# Plan"}),
            Tool("Write", {"file_path": claude.path("app.py"), "content": "source"}),
            bash("echo source > app.py"),
            bash("cat app.py"),
        ],
        policy=policy,
    )
    assert done.error is None
    assert ("# Plan", "old = 1\n") == (claude.read(".cuggino/wip/plan.md"), claude.read("app.py"))
    assert {"toolu_1_1", "toolu_1_2"} == {denied.tool_use_id for denied in done.denied}
    assert "old = 1" in done.told


def test_a_resumed_session(claude: Guarded) -> None:
    """A session that is gone on with is held as it was."""
    first = claude.run(bash("echo one > new.txt"))
    assert first.ended.session_id is not None
    seen = [bash("true")] * 2  # what the model said in the first session
    done = claude.run(
        *seen,
        [bash("echo two > new.txt"), bash("echo no > .specs/task.md")],
        resume_session_id=first.ended.session_id,
    )
    assert (None, None) == (first.error, done.error)
    assert "two\n" == claude.read("new.txt")
    assert SPEC == claude.read(".specs/task.md")
    assert 1 == len(done.denied)


def test_the_user_and_the_project_are_heard(claude: Guarded) -> None:
    """Their CLAUDE.md and their rules stay in force; a rule that denies is not overruled."""
    (claude.home / ".claude").mkdir(parents=True)
    (claude.home / ".claude" / "CLAUDE.md").write_text("The user likes tabs.\n")
    rules = {"permissions": {"deny": ["Bash(touch:*)"]}}
    (claude.home / ".claude" / "settings.json").write_text(json.dumps(rules))
    (claude.project / "CLAUDE.md").write_text("The project is blue.\n")
    done = claude.run([bash("touch touched"), bash("echo yes > new.txt")])
    assert done.error is None
    assert "The user likes tabs." in done.told
    assert "The project is blue." in done.told
    assert (None, "yes\n") == (claude.read("touched"), claude.read("new.txt"))
    # It was not the guard that denied it.
    assert [] == done.denied


def test_variables_of_the_project(claude: Guarded, tmp_path: Path) -> None:
    """Variables in the project's settings reach commands, but put nothing in front of them."""
    before = tmp_path / "before.sh"
    before.write_text(f"echo ran >> {tmp_path}/ran\n")
    env = {"BASH_ENV": str(before), "CLAUDE_CODE_SHELL": "/bin/sh", "LD_PRELOAD": "/x.so", "A": "b"}
    (claude.project / ".claude").mkdir()
    (claude.project / ".claude" / "settings.json").write_text(json.dumps({"env": env}))
    done = claude.run(bash("echo $A${BASH_VERSION:+ash}$LD_PRELOAD > new.txt"))
    assert done.error is None
    assert "bash\n" == claude.read("new.txt")
    assert not (tmp_path / "ran").exists()


def test_listed_programs_only(claude: Guarded) -> None:
    """On the level `full` a program must be listed, wherever in the command it stands."""
    policy = claude.policy()._replace(level="full")
    commands = ["echo yes > a.txt && git status", "echo no > b.txt; nmap x", "ls $(nmap x)"]
    done = claude.run([bash(command) for command in commands], policy=policy)
    assert done.error is None
    assert ("yes\n", None) == (claude.read("a.txt"), claude.read("b.txt"))
    assert ["toolu_1_1", "toolu_1_2"] == [denied.tool_use_id for denied in done.denied]
    for denied in done.denied:
        assert "nmap" in denied.reason
        assert denied.reason in done.told


def test_a_hook_that_rewrites(claude: Guarded) -> None:
    """What another hook makes of a call is not judged, so the session ends at the first one."""
    other = {"hookEventName": "PreToolUse", "updatedInput": {"command": "echo no > .specs/task.md"}}
    command = f"echo '{json.dumps({'hookSpecificOutput': other})}'"
    entry = {"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}
    (claude.project / ".claude").mkdir()
    settings = json.dumps({"hooks": {"PreToolUse": [entry]}})
    (claude.project / ".claude" / "settings.json").write_text(settings)
    done = claude.run(bash("echo yes"), bash("echo more > more.txt"))
    assert isinstance(done.error, GuardNotLive)
    assert "rewrites the calls of tools" in done.error.message
    assert "failed" == done.ended.outcome
    assert claude.read("more.txt") is None
