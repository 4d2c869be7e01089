"""An agent whose messages come in deltas, as a stage, drawn in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reactivex import Observable

from cuggino.agents.base import SpawnOptions
from cuggino.events import AgentMessage, Done, LlmMarkerEvent, MessageDelta, Note, SessionEnded
from cuggino.operators import marker_tags
from cuggino.stages import agent_stage
from cuggino.testing import InMemoryAgent, Marbles

NOTE, DONE = Note(content="mind"), Done(content="all")
SAID = "so <NOTE>mind</NOTE> and\n<DONE>all</DONE> bye"


def delta(text: str, message_id: str = "m") -> MessageDelta:
    return MessageDelta(text=text, message_id=message_id)


def drawn(**events: Any) -> Marbles:
    """The marks of this file: capital letters are what comes out of the stage."""
    return Marbles(
        **{
            "1": delta("so <NOTE>mi"),
            "2": delta("nd</NOTE> and\n<DONE>all</DONE> by"),
            "3": delta("e"),
            "m": AgentMessage(text=SAID, message_id="m"),
            "d": AgentMessage(text="<DONE>all</DONE>", message_id="n"),
            "s": SessionEnded(outcome="completed"),
            "A": delta("so"),
            "S": AgentMessage(text="so", message_id="m"),
            "N": NOTE,
            "B": delta("and"),
            "T": AgentMessage(text="and", message_id="m"),
            "D": DONE,
            **events,
        }
    )


def stage(stream: Observable[Any], told: list[LlmMarkerEvent]) -> Observable[Any]:
    return agent_stage(
        InMemoryAgent({"implementing": [stream]}),
        SpawnOptions(prompt="Do it.", cwd=Path(), role="implementing"),
        phase="implementing",
        tags=marker_tags(Note, Done),
        on_marker=told.append,
        linger=5,
    )


def test_a_note_comes_while_its_message_is_written() -> None:
    """A note is emitted when complete; a terminal marker when its message is complete."""
    t = drawn()
    told: list[LlmMarkerEvent] = []
    t.check(stage(t.cold("1-2-------------3-m-s|"), told), "A-(SNB)---------------T-s(D|)")
    assert [NOTE, DONE] == told


def test_a_last_word_that_is_taken_back() -> None:
    """A discarded message does not count: its replacement ends the stage."""
    t = drawn()
    told: list[LlmMarkerEvent] = []
    t.check(stage(t.cold("1-2------------d-s|"), told), "A-(SNB)--------------s(D|)")
    assert [NOTE, DONE] == told
