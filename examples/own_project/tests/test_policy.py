"""The policy as marble diagrams in virtual time; one character is one second."""

from typing import Any

from cuggino.events import AgentMessage, ToolCall, ToolResult
from cuggino.pytest_plugin import MakeMarbles
from red_green import at_most
from red_green.events import Cut

EVENTS: dict[str, Any] = {
    "c": ToolCall(name="Bash", input={"command": "pytest"}, id="1"),
    "r": ToolResult(name="1", output="1 failed"),
    "w": ToolCall(name="Write", input={"file_path": "slug.py"}, id="2"),
    "m": AgentMessage(text="Let me see."),
    "X": Cut(content="more than 2 commands in one session"),
}


def test_a_session_within_its_limit(marbles: MakeMarbles) -> None:
    """Two commands pass, and every other event."""
    t = marbles(**EVENTS)
    session = t.cold("-cr-w-m-cr-w|")
    t.check(session.pipe(at_most(commands=2)), "-cr-w-m-cr-w|")
    t.check_subscriptions(session, "^-----------!")


def test_one_command_too_many(marbles: MakeMarbles) -> None:
    """The third command ends the session at once."""
    t = marbles(**EVENTS)
    session = t.cold("-cr-cr--c 20m r-m|")
    t.check(session.pipe(at_most(commands=2)), "-cr-cr--(X|)")
    t.check_subscriptions(session, "^-------!")


def test_each_session_counts_for_itself(marbles: MakeMarbles) -> None:
    """A retried session starts counting at zero."""
    t = marbles(**EVENTS)
    session = t.cold("-c-c|").pipe(at_most(commands=2))
    t.check(session, "-c-c|")
    t.check(session, "-c-c|")


def test_a_session_that_fails(marbles: MakeMarbles) -> None:
    """An error of the session passes through."""
    t = marbles(**EVENTS)
    t.check(t.cold("-c-#").pipe(at_most(commands=2)), "-c-#")
