"""The gate of a GitHub Copilot session: its responses, and the breaches it detects."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents.base.calls import Orders
from cuggino.agents.base.guard import make_guard
from cuggino.agents.copilot import guard as copilot_guard
from cuggino.agents.copilot.guard import Gate
from cuggino.errors import GuardNotLive
from cuggino.events import GuardDenied
from cuggino.guard.roles import role_policy


class Asked:
    """A gate, its guarded project, and the emitted events."""

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
        """Return the reason for a denial by the first request, or ""."""
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


def test_the_first_request(asked: Asked) -> None:
    """The first request defers allowed calls to the second, and denies and reports others."""
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


def test_a_rewritten_input(asked: Asked) -> None:
    """A call whose input a hook of the user rewrote is still recognized."""
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
def test_unknown_calls(asked: Asked, tool: str, arguments: Any) -> None:
    """An unknown tool or input is denied."""
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
def test_the_second_request(
    asked: Asked, kind: str, request_: dict[str, Any], expected: bool
) -> None:
    """Each kind of permission is judged as the corresponding tool; unknown kinds are denied."""
    reason = asked.second(kind, **request_)
    assert expected == (reason == "")


@pytest.mark.parametrize(("kind", "request_", "expected"), REQUESTS[:2] + REQUESTS[8:10])
def test_without_a_guard(
    project: Path, kind: str, request_: dict[str, Any], expected: bool
) -> None:
    """An unguarded session may do everything when unattended, and only read otherwise."""
    free = Asked(project, guard=None)
    assert "" == free.second(kind, **request_)
    assert free.told == []
    attended = Asked(project, guard=None, unattended=False)
    assert (kind == "read") == (attended.second(kind, **request_) == "")


def test_allowed_names(project: Path) -> None:
    """An attended session may use the named tools and servers."""
    asked = Asked(project, guard=None, unattended=False, allowed_tools=("mcp__f__put", "mcp__g"))
    assert "" == asked.second("mcp", serverName="f", toolName="f-put")
    assert "" == asked.second("mcp", serverName="g", toolName="g-any")
    assert asked.second("mcp", serverName="f", toolName="f-other")
    assert asked.second("shell", fullCommandText="ls")


def test_reads_within_the_project(project: Path, tmp_path: Path) -> None:
    """A judging session can read the project and the program's own outputs."""
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
    """If the judge fails, both requests are denied."""
    monkeypatch.setattr(Orders, "verdict", failing)
    assert "could not check" in asked.first("bash", {"command": "ls"})
    assert "could not check" in asked.second("shell", fullCommandText="ls")


def test_a_judge_that_is_slow(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call whose judgment times out is denied."""
    released = threading.Event()
    monkeypatch.setattr(copilot_guard, "JUDGE_SECONDS", 0.05)
    monkeypatch.setattr(Orders, "verdict", lambda *_g, **_n: released.wait(0.2))
    assert "could not check" in asked.first("bash", {"command": "ls"})
    released.set()


def test_malformed_requests(asked: Asked) -> None:
    """Any malformed request is denied."""
    assert asyncio.run(asked.gate.permission({}))
    assert asked.second("mcp", serverName=None, args=[1], toolName="delete", path={})


class TestBreach:
    def test_equal_calls(self, asked: Asked) -> None:
        """Each of two equal calls needs its own verdict."""
        for call in ("c1", "c2"):
            asked.start(call, "bash", {"command": "ls"})
        asked.first("bash", {"command": "ls"})
        asked.complete("c1")
        assert asked.breach is None
        asked.complete("c2")
        assert asked.breach is not None

    def test_the_second_request_is_a_verdict_too(self, asked: Asked) -> None:
        """A call judged only by its permission may run."""
        asked.start("c1", "bash", {"command": "ls"})
        assert "" == asked.second("shell", fullCommandText="ls", toolCallId="c1")
        asked.complete("c1")
        assert asked.breach is None

    def test_without_a_guard_nothing_is_a_breach(self, project: Path) -> None:
        """An unguarded session is not watched."""
        asked = Asked(project, guard=None)
        asked.complete("c1")
        assert asked.breach is None


def test_check_guard(asked: Asked, project: Path) -> None:
    """A guard is live if it judges correctly, but not if its parser is broken."""
    asked.gate.try_out()
    Asked(project, guard=None).gate.try_out()
    assert asked.gate.guard is not None
    with pytest.raises(GuardNotLive):
        Gate(
            cwd=project, unattended=True, guard=replace(asked.gate.guard, shfmt="/bin/false")
        ).try_out()
