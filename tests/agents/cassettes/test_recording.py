"""Recording a session: events with their times, the outcome, fallbacks, and no secret."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from reactivex import from_iterable

import cuggino
from cuggino import events as ev
from cuggino.agents import Candidate, LlmAgent, RoutedAgent, is_guarded
from cuggino.agents.cassettes import RecordingAgent, record_to, replay_of
from cuggino.agents.cassettes.cassette import EventTold, FellBack, FilesChanged
from cuggino.agents.claude import ClaudeAgent
from cuggino.agents.scripted import ScriptedAgent
from cuggino.errors import AgentFailed, AgentNotFound, CassetteError, QuotaExceeded, StorageError
from cuggino.events import (
    AgentFellBack,
    AgentMessage,
    Event,
    MessageDelta,
    SessionEnded,
    ToolCall,
    ToolResult,
)
from cuggino.guard.roles import role_policy
from cuggino.testing import AgentRun, InMemoryAgent, Marbles
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


def test_secrets_are_masked_everywhere(tmp_path: Path, project: Path) -> None:
    """Secrets are masked in prompts, policies, events, deltas, files and errors alike."""
    path = tmp_path / "c"
    secret, own = "value-of-the-token", "sk-ant-api03-" + "aB3_" * 10
    t = Marbles(
        error=AgentFailed(f"with {secret}", reason="auth", hint=f"see {own}"),
        d=MessageDelta(text=f"say {secret[:7]}", message_id="m"),
        e=MessageDelta(text=f"{secret[7:]} {own[:9]}", message_id="m"),
        f=MessageDelta(text=own[9:], message_id="m"),
        m=AgentMessage(text=f"say {secret} {own}", message_id="m"),
        c=ToolCall(name="Write", input={"a": [f"x{secret}", {own: 1}]}, id="1"),
        r=ToolResult(name="1", output=json.dumps({"token": secret})),
        z=SessionEnded(outcome="failed"),
    )
    policy = role_policy("implementing", project=project, level="roles", extra_commands=[secret])
    agent = InMemoryAgent({"implementing": [t.cold("defmcr-z#")]})
    stream = record_to(path, agent, env={"A_TOKEN": secret}).spawn(
        options(project, prompt=f"Use {secret}.", system_prompt=own, model=secret, guard=policy)
    )
    (project / secret).write_text(f"first {secret}")

    def write() -> None:
        (project / "a.txt").write_text(f"{secret}\n{own}")
        (project / "b.bin").write_bytes(b"\0\xff" + secret.encode())
        (project / secret).write_text("changed")

    later(t, 4.5, write)
    t.record(stream)
    text = path.read_text(encoding="utf-8")
    assert secret not in text
    assert own not in text
    (session,) = sessions(path)
    deltas = [x.event for x in session.lines if isinstance(x, EventTold)]
    whole = "".join(x["text"] for x in deltas if x["_tag"] == "MessageDelta")
    message = next(x["text"] for x in deltas if x["_tag"] == "AgentMessage")
    assert whole == message == "say ⟦masked A_TOKEN⟧ ⟦masked api key⟧"
    states = next(line.files for line in session.lines if isinstance(line, FilesChanged))
    assert "⟦masked A_TOKEN⟧\n⟦masked api key⟧" == states["a.txt"].text
    assert "its bytes contain a secret" == states["b.bin"].omitted


def test_configured_keys_are_masked(tmp_path: Path, project: Path) -> None:
    """Keys from an agent's own environment and from MCP servers are masked."""
    mine, others, env, header, bare = (f"value-of-{n}-key" for n in ("a", "b", "c", "d", "e"))
    first, second = Keyed(mine), Keyed(others)
    agent = RoutedAgent(
        [Candidate(agent=first, name="A")], {"reviewing": [Candidate(agent=second, name="B")]}
    )
    headers = {"Authorization": f"Bearer {bare}", "X-Api-Key": header}
    servers = {
        "x": {"command": "x", "env": {"X_KEY": env, "PLAIN": "not a secret"}},
        "y": {"url": "http://y", "headers": headers},
        "z": None,
    }
    path, prompt = tmp_path / "c", " ".join((mine, others, env, header, bare, "not a secret"))
    given = options(project, prompt=prompt, mcp_servers=servers)
    cuggino.run(record_to(path, agent, env={}).spawn(given))
    text = path.read_text(encoding="utf-8")
    assert [] == [key for key in (mine, others, env, header, bare) if key in text]
    assert "not a secret" in text


class Keyed(InMemoryAgent):
    """An agent with its own key in its environment."""

    def __init__(self, key: str) -> None:
        super().__init__({"implementing": [AgentRun([SessionEnded(outcome="completed")])]})
        self.key = key

    @property
    def environments(self) -> tuple[Mapping[str, str], ...]:
        return ({"OWN_API_KEY": self.key},)


def failing(error: Exception) -> AgentRun:
    def events() -> Iterator[Event]:
        yield SessionEnded(outcome="failed")
        raise error

    return AgentRun(from_iterable(events()))


def routed(error: Exception) -> RoutedAgent:
    """Return a failing agent with a fallback."""
    one = InMemoryAgent({"implementing": [failing(error)]}, name="one")
    said = [AgentMessage(text="I do it."), SessionEnded(outcome="completed")]
    two = InMemoryAgent({"implementing": [AgentRun(said)]}, name="two")
    return RoutedAgent([Candidate(agent=each, name=each.name) for each in (one, two)])


def events_of(stream: Any) -> list[Event]:
    events: list[Event] = []
    cuggino.run(stream, events.append)
    return events


def test_a_fallback_within_a_session(tmp_path: Path) -> None:
    """A session with a fallback is recorded and replayed as one session."""
    agent = record_to(tmp_path / "c", routed(AgentFailed("no", reason="auth")), env={})
    recorded = events_of(agent.spawn(options(tmp_path)))
    played = events_of(replay_of(tmp_path / "c").spawn(options(tmp_path)))
    assert recorded == played
    assert ["SessionEnded", "AgentFellBack", "AgentMessage", "SessionEnded"] == [
        event.tag for event in played
    ]
    assert 1 == kinds(tmp_path / "c").count("session")


def fallen_back(agent: LlmAgent, folder: Path, error: Exception) -> AgentFellBack:
    """Run a failing session and its fallback, and return the recorded switch."""
    assert agent.is_router
    with pytest.raises(AgentFailed):
        events_of(agent.spawn(options(folder)))
    (event,) = events_of(agent.fall_back("implementing", error))
    assert isinstance(event, AgentFellBack)
    assert AgentMessage(text="I do it.") == events_of(agent.spawn(options(folder)))[0]
    return event


def test_a_fallback_after_retries(tmp_path: Path) -> None:
    """A fallback after failed retries happens in the replay too."""
    error = AgentFailed("no", reason="overloaded")
    agent = record_to(tmp_path / "c", routed(error), env={})
    recorded = fallen_back(agent, tmp_path, error)
    assert ("one", "two") == (recorded.from_agent, recorded.to_agent)
    assert recorded == fallen_back(replay_of(tmp_path / "c"), tmp_path, error)
    first, second = sessions(tmp_path / "c")
    assert isinstance(first.fell_back, FellBack)
    assert second.fell_back is None


def test_no_fallback(tmp_path: Path) -> None:
    """Without a fallback the replay fails with the recorded error."""
    error = AgentFailed("no", reason="overloaded")
    alone = RoutedAgent(
        [Candidate(agent=InMemoryAgent({"implementing": [AgentRun(())]}), name="one")]
    )
    events_of(record_to(tmp_path / "c", alone, env={}).spawn(options(tmp_path)))
    replay = replay_of(tmp_path / "c")
    events_of(replay.spawn(options(tmp_path)))
    with pytest.raises(AgentFailed, match="no"):
        events_of(replay.fall_back("implementing", error))
    with pytest.raises(AgentFailed, match="no"):
        events_of(replay.fall_back("planning", error))


def test_capabilities_per_role(tmp_path: Path) -> None:
    """A recording keeps the guard and sandbox support of each role's agents."""
    scripted = ScriptedAgent(Path(__file__).parents[3] / "examples" / "one_agent.toml")
    usual = [Candidate(agent=InMemoryAgent({"implementing": [AgentRun(())]}), name="one")]
    router = RoutedAgent(usual, {"reviewing": [Candidate(agent=scripted, name="scripted")]})
    agent = record_to(tmp_path / "c", router, env={})
    assert not is_guarded(agent, "implementing")
    assert is_guarded(agent, "reviewing")
    events_of(agent.spawn(options(tmp_path)))
    with pytest.raises(AgentFailed):
        events_of(agent.spawn(options(tmp_path, role="reviewing")))
    assert ["none", "calls"] == [session.began.held for session in sessions(tmp_path / "c")]
    assert replay_of(tmp_path / "c").capabilities.guard != "none"
