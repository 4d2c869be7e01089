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
