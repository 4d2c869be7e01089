"""The guard on the real GitHub Copilot CLI: what it lets pass, what it denies, who is told what."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from cuggino.agents import GuardedAgent
from cuggino.events import GuardDenied, ToolResult
from tests.agents.copilot.test_real import MCP_SERVER
from tests.model_script import HELPER, Text, Tool
from tests.real_copilot import Copilot, bash, copilot, copilot_cli, create
from tests.real_program import SPEC

__all__ = ["copilot", "copilot_cli"]

pytestmark = pytest.mark.real_agent

SLEEP = ["sleep", "2718"]

PATCH = """*** Begin Patch
*** Add File: {name}
+new
*** Update File: .specs/task.md
@@
-There is a file.
+There is no file.
*** End Patch
"""


def edit(path: str, old: str, new: str) -> Tool:
    return Tool("edit", {"path": path, "old_str": old, "new_str": new})


def test_commands(copilot: Copilot) -> None:
    """An allowed command runs, a denied one does not, and the model is told why."""
    done = copilot.run(
        [bash("echo yes > new.txt"), bash("echo x > .specs/task.md; echo y > y.txt")],
        guard=copilot.policy(),
    )
    assert done.error is None
    assert ("yes\n", SPEC, None) == tuple(
        copilot.read(name) for name in ("new.txt", ".specs/task.md", "y.txt")
    )
    (denied,) = done.of(GuardDenied)
    assert ("Bash", "call_1_1", "> .specs/task.md") == (
        denied.tool,
        denied.tool_use_id,
        denied.part,
    )
    assert ".specs" in denied.reason
    assert f"Denied by preToolUse hook: {denied.reason}" in done.told
    assert {"call_1_0": False, "call_1_1": True} == errors(done.of(ToolResult))
    assert "completed" == done.ended.outcome


def errors(results: list[ToolResult]) -> dict[str, bool]:
    return {result.name: result.is_error for result in results}


def test_files(copilot: Copilot) -> None:
    """Files of the project can be made and changed, the specifications and `.cuggino` cannot."""
    app, spec = copilot.path("app.py"), copilot.path(".specs/task.md")
    done = copilot.run(
        [Tool("view", {"path": app}), Tool("view", {"path": spec})],
        [edit(app, "old", "new"), edit(spec, "a file", "no file")],
        [create(copilot.path("more.py"), "more"), create(copilot.path(".cuggino/lock"), "more")],
        guard=copilot.policy(),
    )
    assert done.error is None
    assert ("new = 1\n", "more") == (copilot.read("app.py"), copilot.read("more.py"))
    assert (SPEC, None) == (copilot.read(".specs/task.md"), copilot.read(".cuggino/lock"))
    denied = done.of(GuardDenied)
    assert ["call_2_1", "call_3_1"] == [event.tool_use_id for event in denied]
    assert ["Edit", "Write"] == [event.tool for event in denied]
    for event in denied:
        assert event.reason in done.told


def test_a_patch_with_several_files(copilot: Copilot) -> None:
    """A patch is denied as a whole when one of its files is."""
    done = copilot.run(
        Tool("apply_patch", {"input": PATCH.format(name="new.txt")}),
        model="gpt-5.4",
        guard=copilot.policy(),
    )
    assert done.error is None
    assert (None, SPEC) == (copilot.read("new.txt"), copilot.read(".specs/task.md"))
    assert ["MultiEdit"] == [event.tool for event in done.of(GuardDenied)]


def test_a_sub_agent(copilot: Copilot) -> None:
    """A sub-agent is held to the same policy."""
    order = {"agent_type": "general-purpose", "name": "h", "description": "d", "prompt": HELPER}
    done = copilot.run(
        Tool("task", {**order, "mode": "sync"}),
        helper=[[bash("echo no > .specs/task.md"), create(copilot.path("sub.txt"), "sub")]],
        guard=copilot.policy(),
    )
    assert done.error is None
    assert (SPEC, "sub") == (copilot.read(".specs/task.md"), copilot.read("sub.txt"))
    assert ["Bash"] == [event.tool for event in done.of(GuardDenied)]


def test_mcp(copilot: Copilot, tmp_path: Path) -> None:
    """A server's tool may not name a protected file."""
    program = tmp_path / "server.py"
    program.write_text(MCP_SERVER)
    done = copilot.run(
        [
            Tool("files-put", {"path": copilot.path("put.txt")}),
            Tool("files-put", {"path": copilot.path(".specs/task.md")}),
        ],
        mcp_servers={"files": {"command": sys.executable, "args": [str(program)]}},
        guard=copilot.policy(),
    )
    assert done.error is None
    assert ("put", SPEC) == (copilot.read("put.txt"), copilot.read(".specs/task.md"))
    assert ["mcp__files__put"] == [event.tool for event in done.of(GuardDenied)]


def test_tools_that_ask_for_no_permission(copilot: Copilot) -> None:
    """Tools about which the program asks only once work as well, and unknown ones are denied."""
    done = copilot.run(
        [
            Tool("sql", {"description": "d", "query": "SELECT 1"}),
            Tool("list_agents", {}),
            Tool("glob", {"pattern": "*.py"}),
            Tool("grep", {"pattern": "old", "output_mode": "content"}),
            Tool("write_bash", {"shellId": "1", "input": "rm -rf ."}),
        ],
        guard=copilot.policy(),
    )
    assert done.error is None
    assert ["write_bash"] == [event.tool for event in done.of(GuardDenied)]
    results = errors(done.of(ToolResult))
    assert [False, False, False, False, True] == [results[f"call_1_{n}"] for n in range(5)]


def test_judges_only_look(copilot: Copilot, tmp_path: Path) -> None:
    """A judging session reads the project alone, and its own long outputs; it writes nothing."""
    outside = tmp_path / "outside.txt"
    outside.write_text("not yours\n")
    done = copilot.run(
        [Tool("view", {"path": copilot.path("app.py")}), Tool("view", {"path": str(outside)})],
        [create(copilot.path("new.txt"), "new"), bash("cat app.py")],
        guard=copilot.policy("verify", "full"),
    )
    assert done.error is None
    assert copilot.read("new.txt") is None
    assert "not yours" not in done.told
    assert ["call_1_1", "call_2_0"] == [event.tool_use_id for event in done.of(GuardDenied)]


def test_without_a_shell_of_its_choice(copilot: Copilot, tmp_path: Path) -> None:
    """Commands run in the shell that the parser understands, and nothing is run before them."""
    before = tmp_path / "before.sh"
    before.write_text(f"echo ran >> {tmp_path}/ran\n")
    env = {"BASH_ENV": str(before), "COPILOT_ALLOW_ALL": "true", "COPILOT_BASH_PATH": "/bin/sh"}
    done = copilot.run(
        [bash("echo ${BASH_VERSION:+bash} > new.txt"), bash("echo no > .specs/task.md")],
        guard=copilot.policy(),
        env=env,
    )
    assert done.error is None
    assert ("bash\n", SPEC) == (copilot.read("new.txt"), copilot.read(".specs/task.md"))
    assert not (tmp_path / "ran").exists()


def hooks_file(folder: Path, event: str, answer: dict[str, Any]) -> None:
    folder.mkdir(parents=True)
    entry = {"type": "command", "bash": f"echo '{json.dumps(answer)}'", "timeoutSec": 5}
    (folder / "h.json").write_text(json.dumps({"version": 1, "hooks": {event: [entry]}}))


REWRITES = {
    "permissionDecision": "allow",
    "modifiedArgs": {"command": "echo no > .specs/task.md", "description": "d"},
}


def test_hooks_of_the_repository(copilot: Copilot) -> None:
    """They are not run at all in a guarded session."""
    hooks_file(copilot.project / ".github" / "hooks", "preToolUse", REWRITES)
    done = copilot.run(bash("echo yes > new.txt"), guard=copilot.policy())
    assert done.error is None
    assert ("yes\n", SPEC) == (copilot.read("new.txt"), copilot.read(".specs/task.md"))


def test_hooks_of_the_user(copilot: Copilot) -> None:
    """What a hook of the user's makes of a call is what is judged, whatever it allows."""
    hooks_file(copilot.home / ".copilot" / "hooks", "preToolUse", REWRITES)
    done = copilot.run(bash("echo yes > new.txt"), guard=copilot.policy())
    assert done.error is None
    assert (None, SPEC) == (copilot.read("new.txt"), copilot.read(".specs/task.md"))
    assert ["> .specs/task.md"] == [event.part for event in done.of(GuardDenied)]


def test_a_user_who_approves_all(copilot: Copilot) -> None:
    """A hook of the user's that approves every permission does not open what the guard denies."""
    hooks_file(copilot.home / ".copilot" / "hooks", "permissionRequest", {"behavior": "allow"})
    done = copilot.run(
        [bash("echo yes > new.txt"), bash("echo no > .specs/task.md")], guard=copilot.policy()
    )
    assert done.error is None
    assert ("yes\n", SPEC) == (copilot.read("new.txt"), copilot.read(".specs/task.md"))
    assert ["call_1_1"] == [event.tool_use_id for event in done.of(GuardDenied)]


def test_a_resumed_session(copilot: Copilot) -> None:
    """A session that was begun without a guard is held to it when it is resumed with one."""
    name = "0199aaaa-0000-4000-8000-000000000003"
    copilot.run(bash("echo 1 > one.txt"), session_id=name)
    turns = (Text(""), Text(""), bash("echo no > .specs/task.md"))
    done = copilot.run(*turns, resume_session_id=name, guard=copilot.policy())
    assert done.error is None
    assert ("1\n", SPEC) == (copilot.read("one.txt"), copilot.read(".specs/task.md"))
    assert ["> .specs/task.md"] == [event.part for event in done.of(GuardDenied)]


def test_a_command_in_the_background(copilot: Copilot) -> None:
    """What is put into the background is judged as well, and ends with the session."""
    order = {"description": "d", "mode": "async", "detach": True}
    done = copilot.run(
        [
            Tool("bash", {"command": "echo no > .specs/task.md", **order}),
            Tool("bash", {"command": "sleep 2718", **order}),
        ],
        guard=copilot.policy(),
    )
    assert done.error is None
    assert SPEC == copilot.read(".specs/task.md")
    assert ["> .specs/task.md"] == [event.part for event in done.of(GuardDenied)]
    assert not [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == SLEEP]


def test_the_check(copilot: Copilot) -> None:
    """The guard can be tried out without a session, and is what the agent is known for."""
    agent = copilot.agent("http://127.0.0.1:9")
    agent.check_guard(copilot.policy())
    assert isinstance(agent, GuardedAgent)
