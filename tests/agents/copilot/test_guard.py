"""The gate of a session of GitHub Copilot: what it answers, and what it notices."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents.copilot import guard as copilot_guard
from cuggino.agents.copilot.guard import Gate
from cuggino.agents.guard import make_guard
from cuggino.errors import GuardNotLive
from cuggino.events import GuardDenied
from cuggino.security import hook
from cuggino.security.roles import role_policy


class Asked:
    """A gate, the project that it guards, and what it has told."""

    def __init__(self, project: Path, **changes: Any) -> None:
        self.project = project
        self.told: list[GuardDenied] = []
        role = changes.pop("role", "implementing")
        policy = role_policy(role, project=project, level=changes.pop("level", "roles"))
        given = {"cwd": project, "unattended": True, "guard": make_guard(policy), **changes}
        self.gate = Gate(**given, tell=self.told.append)

    def start(self, call: str, tool: str, arguments: Any, **more: Any) -> None:
        data = {"toolCallId": call, "toolName": tool, "arguments": arguments, **more}
        self.gate.see({"type": "tool.execution_start", "data": data})

    def complete(self, call: str, *, success: bool = True) -> None:
        data = {"toolCallId": call, "success": success}
        self.gate.see({"type": "tool.execution_complete", "data": data})

    def first(self, tool: str, arguments: Any) -> str:
        """Why not, by the first question; empty when nothing was said."""
        data = {"toolName": tool, "toolArgs": arguments, "workingDirectory": str(self.project)}
        said = asyncio.run(self.gate.before_tool(data))
        if said is None:
            return ""
        assert "deny" == said["permissionDecision"]
        return str(said["permissionDecisionReason"])

    def second(self, kind: str, **request: Any) -> str:
        return asyncio.run(self.gate.permission({"kind": kind, **request}))

    @property
    def breach(self) -> GuardNotLive | None:
        return self.gate.breach


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".specs").mkdir(parents=True)
    return folder


@pytest.fixture
def asked(project: Path) -> Asked:
    return Asked(project)


def test_the_first_question(asked: Asked) -> None:
    """What may pass is left to the second question, what may not is denied and told."""
    asked.start("c1", "bash", {"command": "echo yes"})
    asked.start("c2", "bash", {"command": "echo no > .specs/x"})
    assert "" == asked.first("bash", {"command": "echo yes"})
    reason = asked.first("bash", {"command": "echo no > .specs/x"})
    assert ".specs" in reason
    (told,) = asked.told
    assert ("Bash", "c2", "> .specs/x", reason) == (
        told.tool,
        told.tool_use_id,
        told.part,
        told.reason,
    )


def test_an_input_that_was_rewritten(asked: Asked) -> None:
    """A call whose input a hook of the user's has changed is still that call."""
    asked.start("c1", "bash", {"command": "echo yes"})
    assert asked.first("bash", {"command": "echo no > .specs/x"})
    assert ["c1"] == [event.tool_use_id for event in asked.told]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("bash", {"command": "ls", "cwd": "/etc"}),
        ("bash", {"command": 7}),
        ("bash", "ls"),
        ("create", {"path": {"file_path": ".specs/x"}, "file_text": "x"}),
        ("apply_patch", "no patch at all"),
        ("write_bash", {"input": "ls"}),
        ("", None),
    ],
)
def test_what_is_not_understood(asked: Asked, tool: str, arguments: Any) -> None:
    """A tool or an input that is not known is denied."""
    assert asked.first(tool, arguments)
    assert 1 == len(asked.told)


REQUESTS: list[tuple[str, dict[str, Any], bool]] = [
    ("shell", {"fullCommandText": "echo yes"}, True),
    ("shell", {"fullCommandText": "rm -rf .git"}, False),
    ("shell", {}, False),
    ("write", {"fileName": "new.txt"}, True),
    ("write", {"fileName": ".specs/x"}, False),
    ("write", {"fileName": "a", "resolvedPath": ".specs/x"}, False),
    ("write", {"fileName": "a", "fileEdits": [{"after": {"path": ".specs/x"}}]}, False),
    ("write", {}, False),
    ("read", {"path": "/etc/hostname"}, True),
    ("url", {"url": "http://x"}, True),
    ("mcp", {"serverName": "f", "toolName": "f-put", "args": {"path": "new.txt"}}, True),
    ("mcp", {"serverName": "f", "toolName": "f-put", "args": {"path": ".specs/x"}}, False),
    ("hook", {"toolName": "bash", "toolArgs": {"command": "echo x > .specs/x"}}, False),
    ("shell", {"fullCommandText": "ls", "requestSandboxBypass": True}, False),
    ("shell", {"fullCommandText": "ls", "managedApprovalRequired": True}, False),
    ("memory", {}, False),
    ("custom-tool", {"toolName": "x"}, False),
    ("extension-management", {}, False),
    ("workflow", {}, False),
    ("something-new", {}, False),
]


@pytest.mark.parametrize(("kind", "request_", "expected"), REQUESTS)
def test_the_second_question(
    asked: Asked, kind: str, request_: dict[str, Any], expected: bool
) -> None:
    """Each kind of permission is judged as the tool that it stands for; new kinds are denied."""
    reason = asked.second(kind, **request_)
    assert expected == (reason == "")


@pytest.mark.parametrize(("kind", "request_", "expected"), REQUESTS[:2] + REQUESTS[8:10])
def test_without_a_guard(
    project: Path, kind: str, request_: dict[str, Any], expected: bool
) -> None:
    """An unattended session without a guard may do all; an attended one may read."""
    free = Asked(project, guard=None)
    assert "" == free.second(kind, **request_)
    assert free.told == []
    attended = Asked(project, guard=None, unattended=False)
    assert (kind == "read") == (attended.second(kind, **request_) == "")


def test_what_is_allowed_by_name(project: Path) -> None:
    """An attended session may use the tools and servers that are named."""
    asked = Asked(project, guard=None, unattended=False, allowed_tools=("mcp__f__put", "mcp__g"))
    assert "" == asked.second("mcp", serverName="f", toolName="f-put")
    assert "" == asked.second("mcp", serverName="g", toolName="g-any")
    assert asked.second("mcp", serverName="f", toolName="f-other")
    assert asked.second("shell", fullCommandText="ls")


def test_reads_within_the_project(project: Path, tmp_path: Path) -> None:
    """A judging session reads the project, and the program's own outputs."""
    output = tmp_path / "1795290635265-copilot-tool-output-13598-7f1e.txt"
    (tmp_path / "secret.txt").write_text("x")
    (project / "link").symlink_to(tmp_path / "secret.txt")
    asked = Asked(project, role="verify", level="full", temp=str(tmp_path))
    for path in ("app.py", str(project / "app.py"), str(output)):
        assert "" == asked.second("read", path=path)
    for path in ("../secret.txt", "link", str(tmp_path / "secret.txt"), "/etc/passwd"):
        assert asked.second("read", path=path)
    assert asked.second("read")


def broken(*_given: Any, **_named: Any) -> Any:
    raise OSError("no more files")


@pytest.mark.parametrize("failing", [broken, lambda *_g, **_n: {}, lambda *_g, **_n: None])
def test_a_judge_that_fails(
    asked: Asked, monkeypatch: pytest.MonkeyPatch, failing: Callable[..., Any]
) -> None:
    """What cannot be judged is denied, at both questions."""
    monkeypatch.setattr(hook, "answer", failing)
    assert "could not judge" in asked.first("bash", {"command": "ls"})
    assert "could not judge" in asked.second("shell", fullCommandText="ls")


def test_a_judge_that_is_slow(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that is judged for too long is denied."""
    released = threading.Event()
    monkeypatch.setattr(copilot_guard, "JUDGE_SECONDS", 0.05)
    monkeypatch.setattr(hook, "answer", lambda *_g, **_n: released.wait(1.0))
    assert "could not judge" in asked.first("bash", {"command": "ls"})
    released.set()


def test_a_request_that_is_no_request(asked: Asked) -> None:
    """Whatever is asked, an answer is given, and it is no."""
    assert asyncio.run(asked.gate.permission({}))
    assert asked.second("mcp", serverName=None, args=[1], toolName="delete", path={})


class TestBreach:
    def test_a_judged_call(self, asked: Asked) -> None:
        """A call that was allowed may be carried out, one that was denied may fail."""
        asked.start("c1", "bash", {"command": "ls"})
        asked.start("c2", "bash", {"command": "rm -rf .git"})
        asked.first("bash", {"command": "ls"})
        asked.first("bash", {"command": "rm -rf .git"})
        asked.complete("c1")
        asked.complete("c2", success=False)
        assert asked.breach is None

    def test_a_call_that_nobody_asked_about(self, asked: Asked) -> None:
        """A call that was carried out unasked is a breach."""
        asked.start("c1", "sql", {"query": "SELECT 1"})
        asked.complete("c1")
        assert asked.breach is not None
        assert "sql was used without its verdict" in asked.breach.message

    def test_a_call_in_spite_of_the_guard(self, asked: Asked) -> None:
        """A call that was carried out although it was denied is a breach."""
        asked.start("c1", "bash", {"command": "rm -rf .git"})
        asked.first("bash", {"command": "rm -rf .git"})
        asked.complete("c1")
        assert asked.breach is not None
        assert "in spite of its verdict" in asked.breach.message

    def test_equal_calls(self, asked: Asked) -> None:
        """Of two equal calls each needs a verdict of its own."""
        for call in ("c1", "c2"):
            asked.start(call, "bash", {"command": "ls"})
        asked.first("bash", {"command": "ls"})
        asked.complete("c1")
        assert asked.breach is None
        asked.complete("c2")
        assert asked.breach is not None

    def test_the_second_question_is_a_verdict_too(self, asked: Asked) -> None:
        """A call that was judged by its permission alone may be carried out."""
        asked.start("c1", "bash", {"command": "ls"})
        assert "" == asked.second("shell", fullCommandText="ls", toolCallId="c1")
        asked.complete("c1")
        assert asked.breach is None

    def test_without_a_guard_nothing_is_a_breach(self, project: Path) -> None:
        """An unguarded session is not watched."""
        asked = Asked(project, guard=None)
        asked.complete("c1")
        assert asked.breach is None


def test_trying_out(asked: Asked, project: Path) -> None:
    """A guard that answers rightly is live; one whose parser does not work is not."""
    asked.gate.try_out()
    Asked(project, guard=None).gate.try_out()
    assert asked.gate.guard is not None
    with pytest.raises(GuardNotLive):
        Gate(
            cwd=project, unattended=True, guard=replace(asked.gate.guard, shfmt="/bin/false")
        ).try_out()
