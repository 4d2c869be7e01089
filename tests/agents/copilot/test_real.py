"""The real GitHub Copilot CLI: conformance, and its own features."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from reactivex.subject import Subject

from cuggino import events as ev
from cuggino.agents.copilot.guard import Gate
from cuggino.errors import GuardNotLive
from cuggino.testing import AgentConformance, FailureConformance, GuardConformance
from cuggino.testing.conformance.rules import Sleeper
from tests.agents.arenas import RealSuite
from tests.file_server import MCP_SERVER
from tests.limits import LIMIT
from tests.model_script import Drop, Message, Text, Thought, Tool, always, replies
from tests.processes.subscribers import eventually
from tests.real_copilot import VERSION, Copilot, bash, clean_env, create, hooks
from tests.real_program import NOBODY, SPEC, write_file

ROOT = Path(__file__).resolve().parents[3]

PATCH = """*** Begin Patch
*** Add File: {name}
+new
*** Update File: .specs/task.md
@@
-There is a file.
+There is no file.
*** End Patch
"""


class TestAgent(RealSuite, AgentConformance):
    kind = Copilot


class TestFailures(RealSuite, FailureConformance):
    kind = Copilot


class TestGuard(RealSuite, GuardConformance):
    kind = Copilot


def test_version(copilot: Copilot) -> None:
    """The version is the installed one."""
    assert VERSION == copilot.agent(NOBODY).check()


def test_events(copilot: Copilot) -> None:
    """Reasoning follows its text, and inputs have the names of Claude Code."""
    done = copilot.run(
        [Thought("Hm."), Text("Now <NOTE>I begin</NOTE>, in more than one delta.")],
        create(copilot.path("new.txt"), "new\n"),
    )
    assert done.error is None
    assert ["AgentMessage", "Thinking", "SessionEnded"] == done.tags
    done = copilot.run(create(copilot.path("new.txt"), "new\n"))
    (call,) = done.of(ev.ToolCall)
    assert {"file_path": copilot.path("new.txt"), "content": "new\n"} == call.input
    assert (None, 2) == (done.ended.cost_usd, done.ended.num_turns)


def when_taken(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Act once the program has taken a message."""
    from copilot.session import CopilotSession

    send = CopilotSession.send

    async def sent(session: CopilotSession, *given: Any, **named: Any) -> str:
        answer = await send(session, *given, **named)
        if named.get("mode") == "immediate":
            act()
        return answer

    monkeypatch.setattr(CopilotSession, "send", sent)


def test_a_message_while_a_command_runs(copilot: Copilot, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model gets the message at once, then the command's end, all in one session."""
    messages: Subject[str] = Subject()

    def say(event: ev.LlmAgentEvent) -> None:
        if isinstance(event, ev.ToolCall) and event.name == "Bash":  # not one that reads its output
            messages.on_next("/clear, use tabs è")

    when_taken(monkeypatch, lambda: copilot.write("taken", ""))
    wait = bash("until test -e taken; do sleep 0.05; done; echo out")
    done = copilot.run(wait, Text("one"), messages=messages, on_event=say)
    assert (None, "completed") == (done.error, done.ended.outcome)
    assert [ev.Steered(text="/clear, use tabs è", to="session")] == done.of(ev.Steered)
    assert "use tabs" not in done.requests[0].messages_text
    assert "/clear, use tabs è" in done.requests[1].messages_text
    told = [event.tag for event in done.events if isinstance(event, ev.Steered | ev.AgentMessage)]
    assert ["Steered", "AgentMessage"] == told[:2]
    assert 1000 * len(done.requests) == (done.ended.usage or ev.Usage()).input_tokens


def test_a_message_during_the_last_answer(
    copilot: Copilot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session continues with another turn."""
    asked, said = threading.Event(), threading.Event()
    messages: Subject[str] = Subject()

    def answer() -> Text:
        asked.set()
        assert said.wait(LIMIT)
        return Text("one")

    def say() -> None:
        assert asked.wait(LIMIT)
        messages.on_next("use tabs")

    when_taken(monkeypatch, said.set)
    person = threading.Thread(target=say)
    person.start()
    done = copilot.run(answer, Text("two"), messages=messages)
    person.join()
    assert ["AgentMessage", "Steered", "AgentMessage", "SessionEnded"] == done.tags
    assert "use tabs" in done.conversation


def test_requests(copilot: Copilot) -> None:
    """The system prompt is added to the program's own, and the key is the configured one."""
    done = copilot.run(system_prompt="You are the one.")
    assert "GitHub Copilot" in done.requests[0].system_text
    assert "Bearer dummy-not-a-key" == done.requests[0].headers["authorization"]


def test_resume_with_another_system_prompt(copilot: Copilot) -> None:
    """A resumed session has the current system prompt and the requested id."""
    name = "0199aaaa-0000-4000-8000-000000000001"
    first = copilot.run(Text("The word is plum."), session_id=name, system_prompt="One.")
    assert (None, name) == (first.error, first.ended.session_id)
    again = copilot.run(resume_session_id=name, system_prompt="Two.")
    assert (None, name) == (again.error, again.ended.session_id)
    system = again.requests[0].system_text
    assert (False, True) == ("One." in system, "Two." in system)


def test_resume_in_another_folder(copilot: Copilot, tmp_path: Path) -> None:
    """A resumed session works in the current folder."""
    name = "0199aaaa-0000-4000-8000-000000000002"
    copilot.run(Text("Hello."), session_id=name)
    other = tmp_path / "other"
    other.mkdir()
    done = copilot.run(*(Text(""), bash("pwd > where.txt")), resume_session_id=name, cwd=other)
    assert done.error is None
    assert f"{other}\n" == (other / "where.txt").read_text()


def test_sub_agent(copilot: Copilot) -> None:
    """The text, calls and tokens of a sub-agent carry the id of its call."""
    done = copilot.run(Copilot.delegate, helper=[[Text("On it."), bash("echo sub > sub.txt")]])
    assert done.error is None
    task, call = done.of(ev.ToolCall)
    assert isinstance(task.input, dict)
    assert ("Task", "help a bit", "general-purpose") == (
        task.name,
        task.input["description"],
        task.input["subagent_type"],
    )
    texts = {message.text: message.parent_tool_use_id for message in done.of(ev.AgentMessage)}
    assert {"On it.": task.id, "helped": task.id, "<DONE>done</DONE>": None} == texts
    messages = [message.text for message in done.of(ev.SystemMessage)]
    assert "Sub-agent helper started: help a bit" in messages
    assert "Sub-agent helper completed" in messages
    assert [call.id, task.id] == [result.name for result in done.of(ev.ToolResult)]
    assert ev.Usage(input_tokens=4000, output_tokens=400) == done.ended.usage


def test_server_that_does_not_start(copilot: Copilot, tmp_path: Path) -> None:
    """A server that cannot be started is reported, and the others work."""
    program = tmp_path / "server.py"
    program.write_text(MCP_SERVER)
    servers = {
        "files": {"command": sys.executable, "args": [str(program)]},
        "broken": {"command": str(tmp_path / "nothing"), "args": []},
    }
    put = Tool("files-put", {"path": copilot.path("put.txt")})
    done = copilot.run(put, mcp_servers=servers)
    assert (None, "put") == (done.error, copilot.read("put.txt"))
    assert ["broken"] == [event.server for event in done.of(ev.McpServerFailed)]


def test_permissions(copilot: Copilot) -> None:
    """Without permission the agent can read and use allowed tools only."""
    done = copilot.run(
        [Tool("view", {"path": copilot.path("app.py")}), bash("echo no > no.txt")],
        [create(copilot.path("yes.txt"), "yes"), Tool("web_fetch", {"url": NOBODY})],
        dangerously_skip_permissions=False,
        allowed_tools=("MultiEdit",),
    )
    assert done.error is None
    assert ("yes", None) == (copilot.read("yes.txt"), copilot.read("no.txt"))
    errors = [result.is_error for result in sorted(done.of(ev.ToolResult), key=lambda r: r.name)]
    assert [False, True, False, True] == errors
    assert "This session is read-only" in done.conversation


def test_retries_are_reported(copilot: Copilot) -> None:
    """A retry of the program is a `SystemMessage`."""
    cut = Drop(Message([Text("This will never be finished, and is long enough.")]), after_events=2)
    done = copilot.run(script=replies(cut, then=Message([Text("Whole.")])))
    assert done.error is None
    texts = [message.text for message in done.of(ev.SystemMessage)]
    assert [text for text in texts if text.startswith("Retrying: ")]


HOLDER = """
import json, signal, sys
from pathlib import Path
import cuggino
from cuggino.agents import SpawnOptions
from cuggino.agents.copilot import CopilotAgent

signal.signal(signal.SIGINT, signal.default_int_handler)  # a test in the background ignores it
program, project, env = sys.argv[1:]
agent = CopilotAgent(path=program, env=json.loads(env))
options = SpawnOptions(prompt="Go.", cwd=Path(project), dangerously_skip_permissions=True)
cuggino.run(agent.spawn(options), lambda event: print(event.tag, flush=True))
"""


def is_server(process: psutil.Process) -> bool:
    try:
        return "--headless" in process.cmdline()
    except psutil.Error:  # it has ended since
        return False


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_parent_is_killed(copilot: Copilot, sign: signal.Signals) -> None:
    """However the parent of a session dies, every process of the session is terminated."""
    sleeper = Sleeper()
    with (
        sleeper.gone(LIMIT),
        copilot.serve(
            always(Message([bash(f"setsid {sleeper.command} & {sleeper.command}")]))
        ) as server,
    ):
        env = clean_env(copilot.home, server.url)
        words = [str(copilot.program), str(copilot.project), json.dumps(env)]
        with subprocess.Popen(
            [sys.executable, "-c", HOLDER, *words],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as holder:
            try:
                assert eventually(lambda: len(sleeper.pids()) >= 2)
                tree = psutil.Process(holder.pid).children(recursive=True)
                assert [process for process in tree if is_server(process)]
                holder.send_signal(sign)
                holder.wait(LIMIT)
            finally:
                holder.kill()
        assert eventually(lambda: not any(p.is_running() for p in tree))


def test_guarded_patch(copilot: Copilot) -> None:
    """A patch is denied as a whole when one of its files is protected."""
    done = copilot.run(
        Tool("apply_patch", {"input": PATCH.format(name="new.txt")}),
        model="gpt-5.4",
        guard=copilot.policy(),
    )
    assert done.error is None
    assert (None, SPEC) == (copilot.read("new.txt"), copilot.read(".specs/task.md"))
    assert ["MultiEdit"] == [event.tool for event in done.of(ev.GuardDenied)]


def test_guarded_tools_without_questions(copilot: Copilot) -> None:
    """Tools with a single request are judged, and unknown ones are denied."""
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
    assert ["write_bash"] == [event.tool for event in done.of(ev.GuardDenied)]
    results = {result.name: result.is_error for result in done.of(ev.ToolResult)}
    assert [False, False, False, False, True] == [results[f"call_1_{n}"] for n in range(5)]


def test_guard_ignores_switches_of_the_program(copilot: Copilot) -> None:
    """Variables of the program that allow everything or choose a shell are ignored."""
    env = {"COPILOT_ALLOW_ALL": "true", "COPILOT_BASH_PATH": "/bin/sh"}
    done = copilot.run(
        [bash("echo ${BASH_VERSION:+bash} > new.txt"), bash("echo no > .specs/task.md")],
        guard=copilot.policy(),
        env=env,
    )
    assert done.error is None
    assert ("bash\n", SPEC) == (copilot.read("new.txt"), copilot.read(".specs/task.md"))


def test_guard_and_a_hook_that_approves(copilot: Copilot) -> None:
    """A hook of the user that approves every permission does not override a denial."""
    text = hooks("permissionRequest", {"behavior": "allow"})
    write_file(copilot.home / ".copilot" / "hooks" / "h.json", text)
    done = copilot.run(
        [bash("echo yes > new.txt"), bash("echo no > .specs/task.md")], guard=copilot.policy()
    )
    assert done.error is None
    assert ("yes\n", SPEC) == (copilot.read("new.txt"), copilot.read(".specs/task.md"))
    assert ["call_1_1"] == [event.tool_use_id for event in done.of(ev.GuardDenied)]


def test_guarded_background_command(copilot: Copilot) -> None:
    """A background command is judged and terminated with the session."""
    sleeper = Sleeper()
    order = {"description": "d", "mode": "async", "detach": True}
    commands = ("echo no > .specs/task.md", sleeper.command)
    with sleeper.gone(LIMIT):
        done = copilot.run(
            [Tool("bash", {"command": command, **order}) for command in commands],
            guard=copilot.policy(),
        )
    assert done.error is None
    assert SPEC == copilot.read(".specs/task.md")
    assert ["> .specs/task.md"] == [event.part for event in done.of(ev.GuardDenied)]


@pytest.mark.parametrize("second", ["raises", "denies"])
def test_first_question_is_lost(
    copilot: Copilot, monkeypatch: pytest.MonkeyPatch, second: str
) -> None:
    """Without a response to the first request, the second one prevents the call."""

    async def lost(*_given: Any) -> None:
        raise OSError("lost")

    monkeypatch.setattr(Gate, "before_tool", lost)
    if second == "raises":
        monkeypatch.setattr(Gate, "permission", lost)
    done = copilot.run(
        [bash("echo no > .specs/task.md"), create(copilot.path(".cuggino/lock"), "no")],
        guard=copilot.policy(),
    )
    assert done.error is None
    assert (SPEC, None) == (copilot.read(".specs/task.md"), copilot.read(".cuggino/lock"))
    assert [True, True] == [result.is_error for result in done.of(ev.ToolResult)]


def test_tool_without_a_verdict(copilot: Copilot, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool used without a verdict ends the session."""

    async def silent(*_given: Any) -> None:
        return None

    monkeypatch.setattr(Gate, "before_tool", silent)
    done = copilot.run(
        Tool("sql", {"description": "d", "query": "SELECT 1"}),
        bash("echo more > more.txt"),
        guard=copilot.policy(),
    )
    assert isinstance(done.error, GuardNotLive)
    assert "sql was used without its verdict" in done.error.message
    assert "failed" == done.ended.outcome
