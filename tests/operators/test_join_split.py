"""`join_split_messages`: a marker that an agent splits over messages without an id."""

from __future__ import annotations

import pytest

from cuggino import events as ev
from cuggino.operators.markers import join_split_messages
from cuggino.testing import Marbles


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("-o-t-c-|", "-----W-|"),  # the lines of a marker
        ("-o-p-t-c-|", "---p---W-|"),  # a ping is no event of the message
        ("-s-|", "-s-|"),  # a whole marker
        ("-t-c-|", "-t-c-|"),  # nothing is open
        ("-o-t-x-c-|", "-----(otx)-c-|"),  # another event comes before the closing tag
        ("-o-t-|", "-----(ot|)"),  # the end comes before it
        ("-o-t-#", "-----(ot#)"),
        ("-o-n-c-|", "---(on)-c-|"),  # a message with an id is a message of its own
        ("-o-u-c-|", "---(ou)-c-|"),  # so is one of a sub-agent
        ("-m-t-c-|", "-m-t-c-|"),  # a tag that does not begin a line
    ],
)
def test_joined(source: str, expected: str) -> None:
    """Messages are joined up to the closing tag; else they pass as they were, in order."""
    t = Marbles(
        o=ev.AgentMessage(text="so:\n<DONE>"),
        t=ev.AgentMessage(text="Add it"),
        c=ev.AgentMessage(text="</DONE> bye"),
        W=ev.AgentMessage(text="so:\n<DONE>\nAdd it\n</DONE> bye"),
        s=ev.AgentMessage(text="<DONE>Add it</DONE>"),
        m=ev.AgentMessage(text="I end with <DONE>"),
        n=ev.AgentMessage(text="Add it", message_id="1"),
        u=ev.AgentMessage(text="Add it", parent_tool_use_id="1"),
        p=ev.PingEvent(timestamp=0),
        x=ev.ToolCall(name="Bash"),
    )
    t.check(t.cold(source).pipe(join_split_messages(["DONE"])), expected)
