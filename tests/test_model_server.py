"""The scripted model streams, fails, drops and hangs as scripted, and leaves nothing behind."""

from __future__ import annotations

import json
from collections.abc import Sequence
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.limits import LIMIT
from tests.model_script import (
    Step,
    always,
)
from tests.model_server import (
    Message,
    ModelServer,
    RoleScript,
    Text,
    Thought,
    Tool,
)

PROMPT = {"role": "user", "content": "go"}
SPOKEN = {"role": "assistant", "content": [{"type": "text", "text": "said"}]}


def ask(
    server: ModelServer, *messages: dict[str, Any], system: str = "", stream: bool = True
) -> tuple[int, str]:
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=LIMIT)
    try:
        body = {"model": "m", "system": system, "messages": messages, "stream": stream}
        connection.request("POST", "/v1/messages?beta=true", json.dumps(body))
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_message_is_streamed() -> None:
    """Texts, thoughts and calls arrive as deltas that add up, in the order of the blocks."""
    text = "A text that is longer than one delta of the stream."
    reply = Message([Thought("Hm."), Text(text), Tool("Bash", {"command": "ls"})], output_tokens=7)
    with ModelServer(always(reply)) as server:
        status, stream = ask(server, PROMPT)
    events = [json.loads(part.split("data: ")[1]) for part in stream.strip().split("\n\n")]

    assert status == 200
    assert events[0]["type"] == "message_start"
    assert events[-1]["type"] == "message_stop"
    starts = [e["content_block"] for e in events if e["type"] == "content_block_start"]
    assert [start["type"] for start in starts] == ["thinking", "text", "tool_use"]
    deltas = [e["delta"] for e in events if e["type"] == "content_block_delta"]
    assert text == "".join(d.get("text", "") for d in deltas)
    assert "".join(d.get("partial_json", "") for d in deltas) == '{"command": "ls"}'
    (last,) = [e for e in events if e["type"] == "message_delta"]
    assert (last["delta"]["stop_reason"], last["usage"]["output_tokens"]) == ("tool_use", 7)


def roles(*runs: Sequence[Step]) -> RoleScript:
    script = {"reviewing": [[Text("reviewed")]], "implementing": runs}
    return RoleScript({"reviewing": "REVIEWER", "implementing": "."}, script)


def test_roles_runs_and_steps() -> None:
    """Roles are found by pattern, runs by a new conversation, steps by the model's turns."""
    script = roles([Text("1a"), [Text("1b"), Tool("T", {})]], [Text("2a")])
    with ModelServer(script) as server:
        answers = [
            ask(server, PROMPT)[1],
            ask(server, PROMPT, system="a REVIEWER")[1],
            ask(server, PROMPT, SPOKEN, PROMPT)[1],
            ask(server, PROMPT)[1],
        ]
        requests = server.requests
    for expected, answer in zip(["1a", "reviewed", "1b", "2a"], answers, strict=True):
        assert f'"text": "{expected}"' in answer
    assert [request.number for request in requests] == [0, 1, 2, 3]
    assert [request.turns for request in requests] == [0, 0, 1, 0]
    assert requests[2].messages_text == "go\nsaid\ngo"
    assert (script.runs_of("implementing"), script.runs_of("reviewing")) == (2, 1)


def test_unscripted_request_fails_the_test() -> None:
    """An unscripted request is rejected, and raises again on leaving."""
    with (
        pytest.raises(AssertionError, match="nothing scripted for implementing, run 0, step 1"),
        ModelServer(roles([Text("only one")])) as server,
    ):
        status, _ = ask(server, PROMPT, SPOKEN, PROMPT)
        assert status == 400
