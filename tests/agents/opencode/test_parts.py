"""Repeated parts of OpenCode's messages."""

from __future__ import annotations

from cuggino.agents.base.watch import Watch
from cuggino.agents.opencode.wire import Parts


def test_a_dropped_output() -> None:
    """A call of an earlier process whose output is dropped now is not emitted."""
    watch = Watch()
    watch.hear({"canary": "live"}, call=None)
    parts = Parts(guard=watch)
    state = {"status": "completed", "input": {"command": "ls"}, "output": "", "time": {}}
    part = {"id": "p", "type": "tool", "tool": "bash", "callID": "c"}
    dropped = {**part, "state": {**state, "time": {"compacted": 1}}}
    assert [] == parts.read(dropped, None)
    assert watch.breach is None
    assert ["ToolCall", "ToolResult"] == [
        event.tag for event in parts.read({**part, "state": state}, None)
    ]
    assert watch.breach is not None


def test_parts_of_sub_agents() -> None:
    """A sub-agent's part has a parent even before the main session's id is known."""
    parts = Parts()
    assert parts.parent("one", None) is None
    parts.child("sub")
    assert "sub" == parts.parent("sub", None)
    parts.call({"tool": "task", "callID": "c1", "state": {"input": {}}}, None)
    parts.child("second")
    assert ["c1", "sub"] == [parts.parent(name, "main") for name in ("second", "sub")]
    assert [None, None] == [parts.parent(name, "main") for name in ("main", None)]
    assert "unknown" == parts.parent("unknown", "main")
