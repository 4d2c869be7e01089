"""The rules for what an agent says: its grammar, its text, its markers, its tools."""

from __future__ import annotations

from pathlib import PurePath

import reactivex as rx

from cuggino.events import (
    AgentMessage,
    Event,
    MessageDelta,
    Note,
    PingEvent,
    SessionEnded,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolResult,
)
from cuggino.operators import extract_markers, marker_tags
from cuggino.testing.conformance_acts import Outcome, Say, Think
from cuggino.testing.conformance_arena import Arena
from cuggino.testing.conformance_rules import Rules, capabilities, rule, same, succeeded
from cuggino.testing.conformance_shared import COMMANDS, LONG, MARKED, WORDS, work

_EDITS = ("Write", "Edit", "MultiEdit")

_NOT_KNOWN = (
    '{"type": "brand.new", "data": {"deep": [1, {"text": "<NOTE>no</NOTE>"}]}}',
    '{"type": 7}',
    '{"kind": null}',
    "[]",
    "{ this is no JSON",
    "",
)


class StreamRules(Rules):
    """What an agent says while it works."""

    @rule
    def test_the_end_is_the_end(self, arena: Arena) -> None:
        """`SessionEnded` comes once and last, then the stream completes, nothing left running."""
        outcome = work(self, arena)
        tags = [event.tag for event in outcome.events]
        same(1, tags.count("SessionEnded"), outcome)
        same("SessionEnded", tags[-1], outcome)
        same((), outcome.left, outcome)
        ended = outcome.ended
        assert ended.duration is None or ended.duration >= 0, f"a duration below zero: {ended}"
        assert ended.num_turns is None or ended.num_turns >= 1, f"no turns: {ended}"

    @rule
    def test_the_start_is_told(self, arena: Arena) -> None:
        """The first that is said, besides signs of life, is a `SystemMessage`."""
        outcome = work(self, arena)
        said = [event for event in outcome.events if not isinstance(event, PingEvent)]
        assert isinstance(said[0], SystemMessage), f"the start is not told: {outcome}"

    @rule
    def test_events_come_in_order(self, arena: Arena) -> None:
        """Text, calls and results come in the order in which they happened."""
        outcome = work(self, arena)
        kinds = {AgentMessage: "t", ToolCall: "c", ToolResult: "r"}
        order = "".join(kinds.get(type(event), "") for event in outcome.events)
        # Two calls of one answer may be used side by side, or one after the other.
        order = order.replace("ttt", "t").replace("tt", "t").replace("ccrr", "crcr")
        same("tcrcrcrcrcrt", order, outcome)

    @rule
    def test_text_is_whole(self, arena: Arena) -> None:
        """What the model says arrives as it was said, each message with an id of its own."""
        outcome = work(self, arena)
        said: dict[str | None, str] = {}
        for message in outcome.of(AgentMessage):
            same(None, message.parent_tool_use_id, outcome)
            key = message.message_id or f"part {len(said)}"
            said[key] = said.get(key, "") + message.text
        same([LONG, MARKED.rstrip()], [text.rstrip() for text in said.values()], outcome)

    @rule
    def test_markers_are_read_once(self, arena: Arena) -> None:
        """However a marker is split on its way, it is read, and it is read once."""
        outcome = work(self, arena)
        found: list[Event] = []
        source: rx.Observable[Event] = rx.from_iterable(outcome.events)
        source.pipe(extract_markers(marker_tags(Note))).subscribe(found.append)
        notes = [event.content for event in found if isinstance(event, Note)]
        same(list(WORDS), notes, outcome)

    @rule
    def test_deltas_make_up_their_message(self, arena: Arena) -> None:
        """The deltas of a message have its id, come before it, make up its text; or none come."""
        outcome = work(self, arena)
        deltas = outcome.of(MessageDelta)
        if not capabilities(arena).deltas:
            same([], deltas, outcome)
            return
        # How many is a matter of time: those that come at once may be told as one.
        assert deltas, f"deltas are claimed, and there is none: {outcome}"
        begun: dict[str | None, str] = {}
        for event in outcome.events:
            if isinstance(event, MessageDelta):
                begun[event.message_id] = begun.get(event.message_id, "") + event.text
            elif isinstance(event, AgentMessage):
                same(event.text, begun.pop(event.message_id, None), outcome)
        same({}, begun, outcome)

    @rule
    def test_reasoning_is_no_text(self, arena: Arena) -> None:
        """What the model thinks is never told as what it says."""
        outcome = succeeded(arena.session([[Think("Hm <NOTE>no</NOTE>."), Say("Over.")]]))
        same(["Over."], [message.text for message in outcome.of(AgentMessage)], outcome)
        written = "".join(delta.text for delta in outcome.of(MessageDelta))
        assert written in ("", "Over."), f"a thought is told as text: {written!r}"
        for thought in outcome.of(Thinking):
            same("Hm <NOTE>no</NOTE>.", thought.text, outcome)

    @rule
    def test_tools_are_told_as_claude_code_names_them(self, arena: Arena) -> None:
        """A command is a `Bash` with its `command`, a new file a `Write` with its `file_path`."""
        outcome = work(self, arena)
        calls = _calls(outcome)
        commands = [*calls[:3], calls[4]]
        same(["Bash"] * 4, [call.name for call in commands], outcome)
        told = [(_input(call), command) for call, command in zip(commands, COMMANDS, strict=True)]
        for given, command in told:
            same(command, given.get("command"), outcome)
        write = calls[3]
        assert write.name in _EDITS, f"a file was written by {write.name}, not one of {_EDITS}"
        place = PurePath(str(_input(write).get("file_path")))
        same("new.txt", place.name, outcome)

    @rule
    def test_results_are_paired_with_their_calls(self, arena: Arena) -> None:
        """Each call has an id of its own, and one result behind it with that as its name."""
        outcome = work(self, arena)
        calls = _calls(outcome)
        ids = [call.id for call in calls]
        same(len(calls), len({*ids} - {""}), outcome)
        found = outcome.of(ToolResult)
        same(sorted(ids), sorted(result.name for result in found), outcome)
        results = {result.name: result for result in found}
        places = {id(event): place for place, event in enumerate(outcome.events)}
        for call in calls:
            result = results[call.id]
            assert places[id(call)] < places[id(result)], f"{result} comes before {call}"

    @rule
    def test_results_have_what_their_tools_said(self, arena: Arena) -> None:
        """A result has the output of its tool, also of one that failed."""
        outcome = work(self, arena)
        outputs = ("a 'quoted' word", "two", "three", "", "some words")
        for call, output in zip(_calls(outcome), outputs, strict=True):
            for result in _results(outcome, call):
                assert output in result.output, f"{call} gave {output!r}: {result}"

    @rule
    def test_a_command_that_fails_is_an_error(self, arena: Arena) -> None:
        """A command that ends with another code than 0 gives an error, and nothing else does."""
        outcome = work(self, arena)
        *well, failed = _calls(outcome)
        for result in (result for call in well for result in _results(outcome, call)):
            assert not result.is_error, f"nothing failed, and it is an error: {result}"
        for result in _results(outcome, failed):
            assert result.is_error, f"{failed} failed, and is no error: {result}"

    @rule
    def test_what_is_not_known_is_ignored(self, arena: Arena) -> None:
        """Lines of the program that say something new, or nothing, do no harm."""
        for line in _NOT_KNOWN:
            arena.inject(line)
        outcome = succeeded(arena.session([Say("Over.")]))
        same(["Over."], [message.text for message in outcome.of(AgentMessage)], outcome)
        same(1, len(outcome.of(SessionEnded)), outcome)


def _calls(outcome: Outcome) -> list[ToolCall]:
    """The calls in the order of `WORK`; those of one answer may be told in another."""
    calls = outcome.of(ToolCall)
    assert len(calls) == 5, f"5 calls were made, {len(calls)} are told: {outcome}"
    first, *both, write, last = calls
    if _input(both[0]).get("command") == COMMANDS[2]:
        both.reverse()
    return [first, *both, write, last]


def _results(outcome: Outcome, call: ToolCall) -> list[ToolResult]:
    """Those of the call; that there is one is a rule of its own."""
    return [result for result in outcome.of(ToolResult) if result.name == call.id]


def _input(call: ToolCall) -> dict[str, object]:
    return dict(call.input) if isinstance(call.input, dict) else {}
