"""The deliverables loop with the real Claude Code CLI on a scripted model."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import cuggino
from cuggino import Config, Runtime, events as ev
from cuggino.agents.claude import ClaudeAgent
from cuggino.config.browser import BROWSER_TOOLS
from cuggino.domain.deliverable_tools import agent_tool
from cuggino.processes import process_lines
from cuggino.testing import no_leaks
from tests.browser_tools import tools_of
from tests.file_server import MCP_SERVER
from tests.limits import LIMIT
from tests.model_server import Message, ModelRequest, ModelServer, Reply, Text, Tool
from tests.real_claude import clean_env
from tests.report.browser import Browser, browser

__all__ = ["browser"]

pytestmark = pytest.mark.real_agent

CREATE, SET = agent_tool("create_deliverable"), agent_tool("set_deliverable_status")
VERIFY = agent_tool("verify")
NO_SERVERS: dict[str, Any] = {"mcpServers": {}}
"""Settings without the browser, whose program would be loaded from a registry."""

Turn = Sequence[Tool] | str
"""Calls of tools in one message, or last words."""


def bash(command: str) -> Tool:
    return Tool("Bash", {"command": command})


def create(*ids: str) -> Tool:
    items = [{"id": x, "description": f"do {x}", "acceptanceCriteria": ["it is"]} for x in ids]
    return Tool(CREATE, {"deliverables": items})


def status(name: str, state: str = "passed") -> Tool:
    return Tool(SET, {"deliverableId": name, "status": state})


def verify(name: str) -> Tool:
    return Tool(VERIFY, {"deliverableId": name})


@dataclass
class Project:
    """A project, the program, and a model that plays one list of turns a session."""

    folder: Path
    home: Path
    program: Path
    env: dict[str, str] = field(default_factory=dict)
    events: list[ev.Event] = field(default_factory=list)
    requests: list[ModelRequest] = field(default_factory=list)

    def deliver(self, *sessions: Sequence[Turn], **options: Any) -> ev.DeliverEnded:
        with ModelServer(_Sessions(sessions)) as server:
            agent = ClaudeAgent(path=self.program, env=clean_env(self.home, server.url) | self.env)
            runtime = Runtime.live(cwd=self.folder, config=Config(), agent=agent)
            given = {"session_pause": 0.0, "max_sessions": len(sessions), **options}
            run = runtime.deliver(runtime.deliver_options(**given))
            last = cuggino.run(run, self.events.append)
            self.requests = server.requests
        assert isinstance(last, ev.DeliverEnded)
        return last

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def answers(self) -> list[str]:
        """Return the results in the order of their calls; those of one message end in any order."""
        outputs = {result.name: result.output for result in self.of(ev.ToolResult)}
        return [outputs[call.id] for call in self.of(ev.ToolCall)]

    def read(self, name: str) -> str | None:
        file = self.folder / name
        return file.read_text() if file.exists() else None


class _Sessions:
    """Each conversation that begins takes the next list."""

    def __init__(self, sessions: Sequence[Sequence[Turn]]) -> None:
        self._sessions = sessions
        self._begun: dict[str, int] = {}

    def __call__(self, request: ModelRequest) -> Reply:
        session = str(request.body["metadata"]["user_id"])
        turns = self._sessions[self._begun.setdefault(session, len(self._begun))]
        turn = turns[request.turns] if request.turns < len(turns) else "done"
        return Message([Text(turn)] if isinstance(turn, str) else list(turn))


@pytest.fixture
def make(claude_cli: Path, tmp_path: Path) -> Iterator[Callable[..., Project]]:
    def make(**settings: Any) -> Project:
        folder = tmp_path / "project"
        (folder / ".autonoe").mkdir(parents=True)
        (folder / ".autonoe" / "agent.json").write_text(json.dumps({**NO_SERVERS, **settings}))
        (folder / "SPEC.md").write_text("Create hello.txt.\n")
        return Project(folder, tmp_path / "home", claude_cli)

    cuggino.run(process_lines(["true"]))  # the guardian stays, and keeps a pipe
    with no_leaks(within=LIMIT):
        yield make


def test_from_specification_to_passed(make: Callable[..., Project]) -> None:
    """Planned, built and passed through the tools; forbidden calls are denied, with reasons."""
    project = make()
    outside = project.home / "secret.txt"
    outside.parent.mkdir(parents=True)
    outside.write_text("secret")
    direct = Tool(
        "Write", {"file_path": str(project.folder / ".autonoe/status.json"), "content": ""}
    )
    hello = Tool("Write", {"file_path": str(project.folder / "hello.txt"), "content": "Hello"})
    end = project.deliver(
        [[create("A", "B")], "Planned."],
        [
            [direct, Tool("Read", {"file_path": str(outside)}), bash("curl http://x.org")],
            [hello, bash("cat hello.txt"), status("A")],
            [status("B", "blocked")],
            "Built.",
        ],
    )
    assert ("all_passed", 2, 1, 2, 1) == (
        end.reason,
        end.sessions,
        end.passed,
        end.total,
        end.blocked,
    )
    told = [(e.deliverable_id, e.status) for e in project.of(ev.DeliverableStatusChanged)]
    assert [("A", "passed"), ("B", "blocked")] == told
    assert ["Planned.", "Built."] == [event.message for event in project.of(ev.DeliverSessionEnded)]
    assert {"Write", "Read", "Bash"} == {event.tool for event in project.of(ev.GuardDenied)}
    assert "secret" not in "".join(project.answers)
    assert "Hello" in project.answers
    assert "Hello" == project.read("hello.txt")
    kept = json.loads(project.read(".autonoe/status.json") or "")
    assert [(True, False), (False, True)] == [
        (item["passed"], item["blocked"]) for item in kept["deliverables"]
    ]
    offered = set(project.requests[0].tool_names)
    assert {CREATE, SET, agent_tool("list")} <= offered
    assert VERIFY not in offered


def test_the_settings_of_a_project(make: Callable[..., Project], tmp_path: Path) -> None:
    """Its rules let more be read, its programs run, its hooks deny more; ours hold all the same."""
    home = tmp_path / "home"  # folders for temporary files are private in a view
    data = home / "data"
    data.mkdir(parents=True)
    (data / "a.txt").write_text("from outside")
    hook = home / "hook.sh"
    hook.write_text('#!/bin/sh\ncat > /dev/null\necho "not now" >&2\nexit 2\n')
    hook.chmod(0o755)
    project = make(
        permissions={"allow": [f"Read(/{data}/**)", "Bash(*)", "Write(/**)"]},
        allowCommands=["hostname"],
        hooks={"PreToolUse": [{"matcher": "Edit", "command": str(hook)}]},
    )
    (project.folder / "b.txt").write_text("b")
    edit = {"file_path": str(project.folder / "b.txt"), "old_string": "b", "new_string": "c"}
    project.deliver(
        [
            [Tool("Read", {"file_path": str(data / "a.txt")}), bash("hostname")],
            [bash("curl http://x.org"), Tool("Read", {"file_path": str(project.folder / "b.txt")})],
            [Tool("Edit", edit)],
            [Tool("Write", {"file_path": str(tmp_path / "out.txt"), "content": "x"})],
        ]
    )
    read, _host, _curl, _b, edited, _out = project.answers
    assert "from outside" in read
    assert "not now" in edited
    assert "b" == project.read("b.txt")
    assert not (tmp_path / "out.txt").exists()
    assert ["curl http://x.org", f"Write {tmp_path / 'out.txt'}"] == [
        event.part for event in project.of(ev.GuardDenied) if event.tool != "Edit"
    ]


def test_tools_that_are_not_listed(make: Callable[..., Project]) -> None:
    """A web or MCP tool runs only if the project's settings list it (AUT-261)."""
    server = {"command": sys.executable, "args": ["-c", MCP_SERVER], "alwaysLoad": True}
    broken = {"command": sys.executable, "args": ["-c", "raise SystemExit(1)"]}
    servers = {"one": server, "two": server, "three": server, "broken": broken}
    project = make(
        mcpServers=servers, allowedTools=["mcp__one__put"], permissions={"allow": ["mcp__two"]}
    )

    def put(name: str) -> Tool:
        return Tool(f"mcp__{name}__put", {"path": str(project.folder / f"{name}.txt")})

    web = [
        Tool("WebFetch", {"url": "http://127.0.0.1:9/", "prompt": "read"}),
        Tool("WebSearch", {"query": "anything"}),
        Tool("mcp__playwright__browser_fly", {}),
    ]
    project.deliver([[put("one"), put("two"), put("three")], web, [bash("ls")]])
    assert ["put", "put"] == [project.read(f"{name}.txt") for name in ("one", "two")]
    assert project.read("three.txt") is None
    refused = [event for event in project.of(ev.GuardDenied) if "is not listed" in event.reason]
    assert {"mcp__three__put", "WebFetch", "WebSearch"} == {event.tool for event in refused}
    assert "two.txt" in project.answers[-1]
    assert ["broken"] == [event.server for event in project.of(ev.McpServerFailed)]


def test_the_browser(
    make: Callable[..., Project], playwright_server: Path, browser: Browser
) -> None:
    """The built-in browser opens a page, clicks in it and sees the result.

    Its tools are exactly the listed ones and one that runs any code in its process. Files that it
    writes do not count as changes of the project.
    """
    project = make()
    (project.folder / ".autonoe" / "agent.json").unlink()
    # The installed package is found by npx, which otherwise would download it.
    (project.folder / "node_modules").symlink_to(playwright_server.parent.parent)
    project.env["PLAYWRIGHT_MCP_EXECUTABLE_PATH"] = browser.program
    project.env["PLAYWRIGHT_MCP_SANDBOX"] = "false"  # unavailable to root and in containers
    for what in ("ACTION", "NAVIGATION"):
        project.env[f"PLAYWRIGHT_MCP_TIMEOUT_{what}"] = f"{LIMIT * 1000:g}"  # a busy machine
    with serving(PAGE) as url:
        project.deliver(
            [
                [use("navigate", url=url)],
                [use("click", element="the button", target="button")],
                [use("snapshot")],
                [use("close")],
            ],
            sandbox=False,
        )
    assert [] == project.of(ev.GuardDenied)
    assert 'button "pressed 2"' in project.answers[2]
    assert sorted([*BROWSER_TOOLS, "mcp__playwright__browser_run_code_unsafe"]) == sorted(
        f"mcp__playwright__{name}" for name in tools_of(playwright_server)
    )
    assert any((project.folder / ".cuggino" / "browser").iterdir())
    assert not (project.folder / ".playwright-mcp").exists()


PAGE = b"""<title>Counter</title>
<button onclick="this.textContent = 'pressed ' + (1 + 1)">Press</button>"""


def use(verb: str, **given: str) -> Tool:
    """Return a call of the browser."""
    return Tool(f"mcp__playwright__browser_{verb}", given)


@contextmanager
def serving(page: bytes) -> Iterator[str]:
    """Serve the page on loopback; provide its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    # A browser may open a connection without a request.
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def test_verification(make: Callable[..., Project]) -> None:
    """Sessions that write no source verify deliverables reported as passed, once each."""
    project = make()
    source = Tool("Write", {"file_path": str(project.folder / "app.py"), "content": "x"})
    end = project.deliver(
        [[create("A", "B")]],
        [[status("A"), status("B")]],
        [[source, bash("touch x.txt")], [verify("A"), status("B", "pending"), verify("B")]],
        [[status("B")]],
        [[verify("A"), verify("B")]],
        verify=True,
    )
    assert ("all_verified", 5, 2, 2) == (end.reason, end.sessions, end.verified, end.to_verify)
    begun = [event.instruction for event in project.of(ev.DeliverSessionStarted)]
    assert ["initializer", "coding", "verify", "coding", "verify"] == begun
    assert ["Write", "Bash"] == [event.tool for event in project.of(ev.GuardDenied)]
    assert project.read("app.py") is None
    assert project.read("x.txt") is None


def test_sync(make: Callable[..., Project]) -> None:
    """Deliverables are compared with the specification, then each is verified."""
    project = make()
    project.deliver([[create("A", "B")]])
    deprecate = Tool(agent_tool("deprecate"), {"deliverableId": "A"})
    end = project.deliver(
        [[create("C"), deprecate]], [[verify("B")]], [[verify("C")]], workflow="sync"
    )
    assert ("all_verified", 3, 2, 2) == (end.reason, end.sessions, end.verified, end.total)
    begun = [event.instruction for event in project.of(ev.DeliverSessionStarted)][1:]
    assert ["sync", "verify", "verify"] == begun
