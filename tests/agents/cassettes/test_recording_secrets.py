"""No secret reaches a recording, wherever it occurs and however it is split."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st
from reactivex import from_iterable

import cuggino
from cuggino.agents import Candidate, RoutedAgent
from cuggino.agents.cassettes import record_to
from cuggino.agents.cassettes.cassette import EventTold, FilesChanged
from cuggino.errors import AgentFailed
from cuggino.events import AgentMessage, Event, MessageDelta, SessionEnded, ToolCall, ToolResult
from cuggino.guard.roles import role_policy
from cuggino.testing import AgentRun, InMemoryAgent, Marbles
from tests.agents.cassettes.recorded import kinds, later, lines, options, sessions


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


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


@pytest.mark.real_agent
@settings(
    max_examples=2 * settings().max_examples,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    secret=st.text(st.sampled_from("aZ09+/\"'\\ \n=é漢"), min_size=8, max_size=30),
    cuts=st.lists(st.integers(1, 60), min_size=1, max_size=5),
)
def test_split_deltas_never_leak_a_secret(tmp_path: Path, secret: str, cuts: list[int]) -> None:
    """However a message is split into deltas, no secret in it reaches the file."""
    assume(not Path(secret).exists())
    path, env = tmp_path / "c", {"X_TOKEN": secret}
    path.unlink(missing_ok=True)
    text = f"it is {secret}, twice: {secret}"
    borders = [0, *sorted({cut for cut in cuts if cut < len(text)}), len(text)]
    deltas = [MessageDelta(text=text[a:b], message_id="m") for a, b in pairwise(borders)]
    call = ToolCall(name="Write", input={secret: [secret, json.dumps([secret])]}, id="1")
    result = ToolResult(name="1", output=f"{{{json.dumps(secret)}: 1}}")

    def events() -> Iterator[Event]:
        yield from (*deltas, AgentMessage(text=text, message_id="m"), call)
        (tmp_path / "a.txt").write_text(text, newline="")
        yield result
        raise AgentFailed(text, reason="auth", hint=text)

    run = AgentRun(from_iterable(events()))
    agent = record_to(path, InMemoryAgent({"implementing": [run]}), env=env)
    (tmp_path / "a.txt").unlink(missing_ok=True)
    given = options(tmp_path, prompt=text, system_prompt=secret, model=secret)
    with pytest.raises(AgentFailed):
        cuggino.run(agent.spawn(given))
    assert [] == [string for string in texts_of(lines(path)) if secret in string]
    assert {"session", "event", "files", "end"} < set(kinds(path))


def test_configured_keys_are_masked(tmp_path: Path, project: Path) -> None:
    """Keys from an agent's own environment and from MCP servers are masked."""
    mine, others, env, header, bare = (f"value-of-{n}-key" for n in ("a", "b", "c", "d", "e"))
    first, second = Keyed(mine), Keyed(others)
    agent = RoutedAgent(
        [Candidate(agent=first, name="A")],
        {"reviewing": [Candidate(agent=second, name="B")]},
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


def texts_of(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value."""
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from texts_of(item)
        case dict():
            for name, item in value.items():
                yield name
                yield from texts_of(item)
        case _:
            pass
