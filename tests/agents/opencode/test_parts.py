"""Parts of OpenCode's messages that are told again."""

from __future__ import annotations

from cuggino.agents.opencode.guard import OpenCodeWatch
from cuggino.agents.opencode.parts import Parts


def test_an_output_that_was_dropped() -> None:
    """A call of an earlier process, whose old output is dropped now, is no call of this one."""
    watch = OpenCodeWatch()
    watch.canary("live")
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


def test_whose_part_it_is() -> None:
    """A sub-agent's part has a parent, also before the main session is known by its name."""
    parts = Parts()
    assert parts.parent("one", None) is None
    parts.child("sub")
    assert "sub" == parts.parent("sub", None)
    parts.call({"tool": "task", "callID": "c1", "state": {"input": {}}}, None)
    parts.child("second")
    assert ["c1", "sub"] == [parts.parent(name, "main") for name in ("second", "sub")]
    assert [None, None] == [parts.parent(name, "main") for name in ("main", None)]
    assert "unknown" == parts.parent("unknown", "main")
