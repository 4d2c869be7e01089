"""Recording a session: its events with their times, and its outcome."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.agents.cassettes import RecordingAgent, record_to
from cuggino.agents.cassettes.cassette import EventTold, FilesChanged
from cuggino.agents.claude import ClaudeAgent
from cuggino.agents.scripted import ScriptedAgent
from cuggino.errors import AgentFailed, AgentNotFound, CassetteError, QuotaExceeded, StorageError
from cuggino.testing import InMemoryAgent, Marbles
from tests.agents.cassettes.recorded import (
    ENDED,
    HELLO,
    kinds,
    later,
    lines,
    options,
    recorded,
    sessions,
)

pytestmark = pytest.mark.usefixtures("nothing_is_left")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def test_a_session_with_its_times(tmp_path: Path, project: Path) -> None:
    """Events pass through as they arrive and are recorded with the seconds since the start."""
    path, t = tmp_path / "c", Marbles(a=HELLO, e=ENDED)
    seen = recorded(path, project, t, "--a-e--|", prompt="Go to /etc.", system_prompt="You are it.")
    assert t.parse("--a-e--|") == seen
    header, began, *told, over = lines(path)
    assert ("cassette", 1, "memory") == (header["kind"], header["version"], header["agent"])
    assert ("Go to /etc.", "You are it.") == (began["prompt"], began["system_prompt"])
    assert ("implementing", 1) == (began["role"], began["turn"])
    assert [2.0, 4.0] == [line["at"] for line in told]
    assert ("completed", 7.0) == (over["how"], over["at"])


def test_events_are_written_before_they_are_emitted(tmp_path: Path, project: Path) -> None:
    """Each event is in the file before a subscriber receives it."""
    path, t = tmp_path / "c", Marbles(a=HELLO, b=HELLO)
    seen: list[int] = []
    agent = record_to(path, InMemoryAgent({"planning": [t.cold("a-b-")]}), env={})
    stream = agent.spawn(options(project, role="planning"))
    subscription = stream.subscribe(
        lambda _event: seen.append(len(lines(path))), scheduler=t.scheduler
    )
    t.scheduler.advance_to(3)
    assert [3, 4] == seen
    subscription.dispose()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (AgentFailed("no", reason="auth", hint="log in"), "AgentFailed"),
        (QuotaExceeded("limit"), "QuotaExceeded"),
        (AgentNotFound("where"), "AgentNotFound"),
        (RuntimeError("odd"), "RuntimeError"),
    ],
)
def test_a_failure(tmp_path: Path, project: Path, error: Exception, kind: str) -> None:
    """An error of a session passes through, and its class and message are recorded."""
    path, t = tmp_path / "c", Marbles(error=error, a=HELLO)
    assert (1.0, "error", error) == recorded(path, project, t, "a#")[-1]
    (session,) = sessions(path)
    assert session.over is not None
    assert session.over.error is not None
    assert ("failed", kind, str(error)) == (
        session.over.how,
        session.over.error.type,
        session.over.error.message,
    )


def test_a_disposed_session(tmp_path: Path, project: Path) -> None:
    """Disposal terminates the agent and is recorded; a partial message is kept."""
    path = tmp_path / "c"
    t = Marbles(d=ev.MessageDelta(text="hal", message_id="m"))
    recorded(path, project, t, "-d----", dispose_at=3)
    (session,) = sessions(path)
    assert session.over is not None
    assert ("disposed", 3.0) == (session.over.how, session.over.at)
    assert ["MessageDelta"] == [x.event["_tag"] for x in session.lines if isinstance(x, EventTold)]


def test_deltas_are_recorded_in_their_place(tmp_path: Path, project: Path) -> None:
    """Deltas are written with their message and replayed before the events in between."""
    t = Marbles(
        a=ev.MessageDelta(text="he", message_id="m1"),
        p=ev.PingEvent(timestamp=0),
        b=ev.MessageDelta(text="llo", message_id="m1"),
        m=HELLO,
    )
    recorded(tmp_path / "c", project, t, "apbm|")
    (session,) = sessions(tmp_path / "c")
    told = [line.event["_tag"] for line in session.lines if isinstance(line, EventTold)]
    assert ["MessageDelta", "PingEvent", "MessageDelta", "AgentMessage"] == told
    assert ["PingEvent", "MessageDelta"] == [x["event"]["_tag"] for x in lines(tmp_path / "c")[2:4]]


def test_sessions_are_numbered(tmp_path: Path, project: Path) -> None:
    """Each recorded session has a number and names the session that it resumes."""
    path, t = tmp_path / "c", Marbles(e=ENDED)
    agent = InMemoryAgent({"planning": [t.cold("e|") for _ in range(3)]}, can_resume=True)
    recording = record_to(path, agent, env={})
    for more in ({}, {"resume_session_id": "s1"}, {"resume_session_id": "unknown"}):
        t.record(recording.spawn(options(project, role="planning", **more)))
    began = [session.began for session in sessions(path)]
    assert [(1, None), (2, 1), (3, 0)] == [(b.session, b.resumes) for b in began]


def test_file_changes_precede_the_tool_result(tmp_path: Path, project: Path) -> None:
    """Changes made by a tool precede its result, later changes precede the end."""
    path = tmp_path / "c"
    call, result = ev.ToolCall(name="Bash", id="1"), ev.ToolResult(name="1", output="")
    t = Marbles(c=call, r=result, e=ENDED)
    agent = record_to(path, InMemoryAgent({"implementing": [t.cold("-c-r-e|")]}), env={})
    stream = agent.spawn(options(project))
    for second, name in ((2.5, "early"), (4.5, "late")):
        later(t, second, (project / name).touch)
    t.record(stream)
    (session,) = sessions(path)
    shown: list[Any] = [
        sorted(line.files) if isinstance(line, FilesChanged) else line.event["_tag"]
        for line in session.lines
    ]
    assert ["ToolCall", ["early"], "ToolResult", ["late"], "SessionEnded"] == shown


def test_read_only_tools_are_not_scanned_for_changes(tmp_path: Path, project: Path) -> None:
    """The project is not scanned for changes after a read-only tool."""
    path = tmp_path / "c"
    t = Marbles(c=ev.ToolCall(name="Read", id="1"), r=ev.ToolResult(name="1", output=""))
    agent = record_to(path, InMemoryAgent({"implementing": [t.cold("-c-r-|")]}), env={})
    later(t, 2.5, (project / "x").touch)
    t.record(agent.spawn(options(project)))
    assert ["event", "event", "files", "end"] == kinds(path)[2:]


def test_a_recording_never_overwrites(tmp_path: Path, project: Path) -> None:
    """An existing file is refused, even one created after the check."""
    path, t = tmp_path / "c", Marbles(a=HELLO)
    agent = record_to(path, InMemoryAgent({"implementing": [t.cold("a|")]}), env={})
    path.write_text("mine")
    (_, kind, error), *_ = t.record(agent.spawn(options(project)))
    assert "error" == kind
    assert isinstance(error, CassetteError)
    with pytest.raises(CassetteError, match="it already exists"):
        record_to(path, InMemoryAgent({}))
    assert "mine" == path.read_text()


def test_a_write_error_during_the_recording(tmp_path: Path, project: Path) -> None:
    """A write error fails the session and terminates the agent."""
    path, t = tmp_path / "c", Marbles(a=HELLO)
    source = t.cold("-a-a-a|")
    agent = record_to(path, InMemoryAgent({"implementing": [source]}), env={})
    later(t, 2, path.unlink)
    seen = t.record(agent.spawn(options(project)))
    assert [(1.0, "next"), (3.0, "error")] == [item[:2] for item in seen]
    assert isinstance(seen[-1][2], StorageError)
    t.check_subscriptions(source, "^--!")


def test_a_write_error_on_disposal(tmp_path: Path, project: Path) -> None:
    """Disposal terminates the agent despite a write error."""
    path, t = tmp_path / "c", Marbles(a=HELLO)
    source = t.cold("-a-----")
    agent = record_to(path, InMemoryAgent({"implementing": [source]}), env={})
    later(t, 2, path.unlink)
    assert t.parse("-a") == t.record(agent.spawn(options(project)), dispose_at=3)
    t.check_subscriptions(source, "^--!")


def test_a_recorded_agent_keeps_its_capabilities(tmp_path: Path) -> None:
    """A recorded agent supports the guard and the sandbox exactly if the agent does."""
    claude, scripted = ClaudeAgent(), ScriptedAgent(Path(__file__).parents[3] / SCENARIO)
    for agent in (claude, scripted, InMemoryAgent({})):
        wrapped = record_to(tmp_path / "c", agent)
        assert isinstance(wrapped, RecordingAgent)
        assert agent.capabilities == wrapped.capabilities
        assert agent.name == wrapped.name


SCENARIO = "examples/one_agent.toml"
