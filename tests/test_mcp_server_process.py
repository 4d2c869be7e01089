"""The process of the deliverable tools: robustness and termination."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from cuggino.domain.deliverable_tools import TOOLS
from cuggino.storage.deliverables import LOCK_FILE, DeliverableStore
from cuggino.testing import no_leaks
from tests.limits import LIMIT
from tests.mcp_server import NOW, answer, create, hear, request, say, status_of, wire

GARBAGE = [
    "",
    "not json",
    "[]",
    "{}",
    '{"jsonrpc": "2.0", "id": 7}',
    '{"jsonrpc": "2.0", "id": 7, "method": "no/such/method"}',
    '{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": 5}}',
    json.dumps(request(7, "list", "text")),
    json.dumps(request(7, "list", [1])),
    json.dumps(request(7, "list", None)),
    "[" * 50_000,
    '{"jsonrpc": "2.0", "id": 7, "method": "\\ud800"}',
]
INPUTS: list[object] = [
    {},
    {"deliverables": None},
    {"deliverables": [[[[]]]]},
    {"deliverables": [{"id": {"x": 1}}]},
    {"deliverables": [{"id": "A", "description": "d", "acceptanceCriteria": [None]}]},
    {"deliverableId": "\u0000", "status": {}},
    {"deliverableId": "x" * 100_000, "status": "passed"},
    {"filter": {"status": 1}},
    {"limit": 1e300},
]


@pytest.mark.real_agent
def test_server_survives_any_input(tmp_path: Path) -> None:
    """After any line and any input the next call is answered, and only JSON is written."""
    with no_leaks(), wire(tmp_path) as server:
        for line in GARBAGE:
            say(server, line)
        number = 100
        for tool in TOOLS:
            for given in INPUTS:
                number += 1
                say(server, json.dumps(request(number, tool, given)))
        say(server, json.dumps(request(1, "create_deliverable", create("A"))))
        heard: dict[Any, Any] = {}
        while not set(range(101, number + 1)) | {1} <= set(heard):
            response = hear(server)
            heard[response.get("id")] = response
        assert {"success": True} == {"success": answer(heard[1])["success"]}
        for each in range(101, number + 1):
            told = answer(heard[each])
            assert "deliverables" in told or (told["success"] is False and told["message"])
        assert server.stdin is not None
        server.stdin.close()
        assert 0 == server.wait(timeout=LIMIT)
        assert server.stdout is not None
        rest = [json.loads(line) for line in server.stdout]
        assert all(response["jsonrpc"] == "2.0" for response in rest)
    assert {"A": "pending"} == status_of(tmp_path)


@pytest.mark.real_agent
def test_server_ends_with_its_input(tmp_path: Path) -> None:
    """When standard input closes, it exits with 0 silently; answered changes are in the file."""
    with no_leaks(), wire(tmp_path) as server:
        for number in range(1, 21):
            say(server, json.dumps(request(number, "create_deliverable", create(f"N{number}"))))
        told = [hear(server)]
        assert server.stdin is not None
        server.stdin.close()
        assert 0 == server.wait(timeout=LIMIT)
        assert server.stdout is not None
        assert server.stderr is not None
        told += [json.loads(line) for line in server.stdout]
        assert "" == server.stderr.read()
    done = {f"N{response['id']}" for response in told if "result" in response}
    assert done
    assert done <= set(status_of(tmp_path))


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        *(pytest.param(x, marks=pytest.mark.real_agent) for x in (signal.SIGINT, signal.SIGHUP)),
    ],
)
def test_signal_terminates_the_server(number: signal.Signals, tmp_path: Path) -> None:
    """A signal terminates it despite open input; the file is complete and the lock free."""
    with no_leaks(), wire(tmp_path) as server:
        say(server, json.dumps(request(1, "create_deliverable", create("A"))))
        assert answer(hear(server))["success"]
        server.send_signal(number)
        assert -number == server.wait(timeout=LIMIT)
    assert (tmp_path / LOCK_FILE).exists()
    store = DeliverableStore(tmp_path, lock_timeout=0.5)
    assert store.call("create", create("B"), now=NOW).result.success
    assert {"A": "pending", "B": "pending"} == status_of(tmp_path)
