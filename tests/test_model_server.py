"""The scripted model streams, fails, drops and hangs as scripted, and leaves nothing behind."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.limits import LIMIT
from tests.model_script import (
    Step,
    always,
    overloaded,
    rate_limited,
    replies,
    server_error,
    usage_limit,
)
from tests.model_server import (
    ApiError,
    Drop,
    Hang,
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


def test_message_without_stream() -> None:
    """An agent that does not stream gets the whole message."""
    with ModelServer(always(Message([Text("all")]))) as server:
        status, body = ask(server, PROMPT, stream=False)
    assert (
        status,
        json.loads(body)["content"][0]["text"],
        json.loads(body)["stop_reason"],
    ) == (200, "all", "end_turn")


def test_error_response() -> None:
    """An error has its status and message."""
    with ModelServer(always(ApiError(529, "overloaded_error", "busy"))) as server:
        status, body = ask(server, PROMPT)
    assert (status, json.loads(body)["error"]["type"]) == (529, "overloaded_error")


@pytest.mark.parametrize("drop", [Drop(), Drop(Message([Text("never whole")]), after_events=3)])
def test_dropped_connection(drop: Drop) -> None:
    """A dropped connection breaks off the answer, at once or in the middle."""
    with (
        ModelServer(always(drop)) as server,
        pytest.raises((HTTPException, ConnectionError)),
    ):
        ask(server, PROMPT)


def test_hang_in_the_middle() -> None:
    """A message can hang halfway, and is broken off when its time is over."""
    hang = Hang(seconds=0.05, message=Message([Text("never whole")]), after_events=3)
    with (
        ModelServer(always(hang)) as server,
        pytest.raises((HTTPException, ConnectionError)),
    ):
        ask(server, PROMPT)


def test_named_failures() -> None:
    """Named failures have the status and the headers of the real API."""
    script = replies(rate_limited(7), overloaded(), server_error(), then=usage_limit(60.5))
    with ModelServer(script) as server:
        statuses = [ask(server, PROMPT)[0] for _ in range(5)]
    assert [429, 529, 500, 429, 429] == statuses
    assert {"retry-after": "7"} == rate_limited(7).headers
    assert {} == rate_limited().headers
    assert "60" == usage_limit(60.5).headers["anthropic-ratelimit-unified-reset"]


def test_leaving_releases_a_hang_and_every_thread() -> None:
    """Leaving ends a hanging answer and every thread."""
    before = set(threading.enumerate())
    arrived = threading.Event()
    broken: list[Exception] = []

    def hang(_: object) -> Hang:
        arrived.set()
        return Hang(seconds=3600)

    def client(server: ModelServer) -> None:
        try:
            ask(server, PROMPT)
        except (HTTPException, OSError) as error:
            broken.append(error)

    with ModelServer(hang) as server:
        thread = threading.Thread(target=client, args=(server,))
        thread.start()
        assert arrived.wait(LIMIT)
    thread.join(10)
    assert len(broken) == 1
    assert before == set(threading.enumerate())


def test_other_routes() -> None:
    """Token counts and health checks work without a script."""
    with ModelServer(always(Hang())) as server:
        connection = HTTPConnection(urlsplit(server.url).netloc, timeout=LIMIT)
        found = []
        for method, path in [
            ("HEAD", "/"),
            ("GET", "/"),
            ("POST", "/v1/messages/count_tokens"),
            ("POST", "/v1/other"),
        ]:
            connection.request(method, path, b"{}" if method == "POST" else None)
            response = connection.getresponse()
            response.read()
            found.append(response.status)
        connection.close()
        assert found == [200, 200, 200, 404]
        assert server.requests == []


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


def test_retry_continues_after_the_error() -> None:
    """A retry gets the step after the error; after a final error a new run begins."""
    error = ApiError(500, "api_error", "no")
    with ModelServer(roles([error, Text("recovered")], [error], [Text("third")])) as server:
        statuses = [ask(server, PROMPT) for _ in range(4)]
    assert [status for status, _ in statuses] == [500, 200, 500, 200]
    assert '"text": "recovered"' in statuses[1][1]
    assert '"text": "third"' in statuses[3][1]


def test_unscripted_request_fails_the_test() -> None:
    """An unscripted request is rejected, and raises again on leaving."""
    with (
        pytest.raises(AssertionError, match="nothing scripted for implementing, run 0, step 1"),
        ModelServer(roles([Text("only one")])) as server,
    ):
        status, _ = ask(server, PROMPT, SPOKEN, PROMPT)
        assert status == 400
