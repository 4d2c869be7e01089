"""`extract_markers`, of messages that come in deltas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import reactivex as rx
from hypothesis import example, given, settings, strategies as st
from reactivex import Subject

from cuggino import events as ev
from cuggino.operators import extract_markers
from tests.operators.written import (
    LINES,
    MARKUP,
    TAGS,
    cut,
    delta,
    flat,
    message,
    messages_and_markers,
    shown,
    split,
    steps,
)

MANY = settings().max_examples
"""As many examples as the profile asks for; quick ones can be had by the hundred."""
PING = ev.PingEvent(timestamp=0)
RETRY = ev.SystemMessage(text="Retrying")

WORDS = st.sampled_from(
    ["<NOTE>", "</NOTE>", "<NOTE>n</NOTE>", "<DO", "NE>", "<", "</", "<X>", "````", "\n<"]
)
TEXTS = st.lists(WORDS | MARKUP, max_size=24).map("".join) | st.text(max_size=40)
WHERE = st.sampled_from([{}, {"at_line_start": LINES}])
"""Tags that count anywhere outside code, or only where they open a line."""


def other(events: Sequence[ev.Event]) -> list[ev.Event]:
    return [
        e
        for e in events
        if not isinstance(e, ev.AgentMessage | ev.LlmMarkerEvent | ev.MessageDelta)
    ]


PARTS = st.lists(
    st.tuples(st.sampled_from("aaab"), TEXTS, st.lists(st.integers(0, 99), max_size=30)),
    max_size=3,
)
"""Message id, text, and where it is split."""


@settings(max_examples=5 * MANY)
@given(PARTS, st.sampled_from([None, PING, ev.ToolCall(name="Bash")]), WHERE)
@example([("a", "x `y <NOTE>n</NOTE> `\n\n<DONE>d</DONE>", list(range(99)))], None, {})
@example([("a", "<NOTE>a <DONE>b</DONE> </NOTE> <DONE>", [3, 9]), ("a", "c</DONE>", [2])], None, {})
def test_deltas_change_nothing_but_the_time(
    parts: list[tuple[str, str, list[int]]], between: ev.Event | None, where: dict[str, Any]
) -> None:
    """However it is split, texts and markers are those without deltas, in order, never later."""
    source: list[ev.Event] = []
    for message_id, text, places in parts:
        for piece in split(text, places):
            source += [delta(piece, message_id), *([PING] if piece == "a" else [])]
        source += [message(text, message_id), *([between] if between else [])]
    whole = [event for event in source if not isinstance(event, ev.MessageDelta)]
    seen, expected = steps(source, **where), steps(whole, **where)
    assert messages_and_markers(flat(expected)) == messages_and_markers(flat(seen))
    assert other(flat(expected)) == other(flat(seen))
    later = iter(expected)
    with_deltas = without = 0
    for event, step in zip([*source, None], seen, strict=True):
        with_deltas += len(messages_and_markers(step))
        if not isinstance(event, ev.MessageDelta):
            without += len(messages_and_markers(next(later)))
        assert with_deltas >= without


@settings(max_examples=6 * MANY)
@given(TEXTS, st.lists(st.integers(0, 99), max_size=30), WHERE)
@example("```<NOTE>", [], {})
@example("a\n```\n<NO", [3], {})
def test_the_deltas_that_come_out_are_the_pieces(
    text: str, places: list[int], where: dict[str, Any]
) -> None:
    """Joined, the deltas before a piece of text are the piece, or there are none."""
    open_text = ""
    for event in cut(*map(delta, split(text, places)), message(text), **where):
        match event:
            case ev.MessageDelta():
                assert event.text
                open_text += event.text
            case ev.AgentMessage():
                # A fence that is open at the end is a piece of its own: another part may go on.
                assert open_text in (event.text, "") or open_text.startswith(event.text)
                open_text = open_text[len(event.text) :].lstrip()
            case _:
                assert open_text == ""
    assert open_text == ""


def test_a_marker_comes_with_its_closing_tag() -> None:
    """The marker and the text before it come with the delta that closes it, and only then."""
    text = "Look. <NOTE>n</NOTE> On."
    seen = steps([*map(delta, text), message(text)])
    closing = text.index("</NOTE>") + len("</NOTE>") - 1
    assert ["Look.", "Note(n)"] == shown(seen[closing])
    assert ["On."] == shown(seen[-2])
    assert ["Look.", "Note(n)", "On."] == shown(messages_and_markers(flat(seen)))
    assert "Look." == "".join(
        e.text for e in flat(seen[:closing]) if isinstance(e, ev.MessageDelta)
    )


def test_parts_of_one_message_are_joined() -> None:
    """A marker that begins in one part is emitted when deltas of the next part close it."""
    seen = steps(
        [delta("<NOTE>a"), message("<NOTE>a"), delta("b</NOTE> c"), message("b</NOTE> c", "m")]
    )
    assert [[], [], ["Note(ab)", "+c"], ["c"], []] == [shown(step) for step in seen]


def test_what_is_unfinished_at_the_end_of_a_message_is_text() -> None:
    """A tag that nothing closes comes as text, when the message is over or the session is."""
    begun = [delta("a <NOTE>b"), message("a <NOTE>b")]
    assert ["+a", "a", "<NOTE>b", "ToolCall"] == shown(cut(*begun, ev.ToolCall(name="Bash")))
    assert ["+a", "a", "<NOTE>b"] == shown(cut(*begun))
    ended = ev.SessionEnded(outcome="completed")
    unfinished = delta("</NOT", "m")
    assert ["+a", "a", "<NOTE>b", "SessionEnded"] == shown(cut(*begun, unfinished, ended))


def test_a_message_that_is_taken_back() -> None:
    """Emitted pieces stay, unfinished ones are dropped, and a repetition adds only new ones."""
    again = "Hm. <NOTE>n</NOTE> <NOTE>n</NOTE> <DONE>d</DONE>"
    seen = cut(
        delta("<NOTE>n</NOTE> So <DONE>d</"),
        RETRY,
        delta("Well. <NOTE>", "m2"),
        RETRY,
        *(delta(again, "m3"), message(again, "m3")),
        *(delta("<NOTE>n</NOTE>", "m4"), message("<NOTE>n</NOTE>", "m4")),
    )
    told = [item for item in shown(seen) if not item.startswith("+")]
    assert [
        "Note(n)",
        "SystemMessage",
        "SystemMessage",
        "Hm.",
        "Note(n)",
        "Done(d)",
        "Note(n)",
    ] == (told)


def test_what_was_taken_back_can_be_said_later() -> None:
    """Once a message is complete, a marker of a discarded one may be repeated."""
    note = "<NOTE>n</NOTE>"
    seen = cut(
        delta(note),
        *(delta("Well.", "m2"), message("Well.", "m2")),
        *(delta(note, "m3"), message(note, "m3")),
    )
    assert ["Note(n)", "+Well.", "Well.", "Note(n)"] == shown(seen)


def test_a_message_that_is_said_anew_without_deltas() -> None:
    """A retry that does not stream emits only new text, and no marker twice."""
    seen = cut(
        delta("<NOTE>n</NOTE> and <NO"), RETRY, message("<NOTE>n</NOTE><NOTE>o</NOTE>", "m2")
    )
    assert ["Note(n)", "+and", "SystemMessage", "Note(o)"] == shown(seen)


def test_markers_that_wait_for_the_end() -> None:
    """Markers of `at_end` and everything after them come with the complete part, or never."""
    text = "a <NOTE>1</NOTE> b <DONE>d</DONE> c <NOTE>2</NOTE>"
    source = [*map(delta, text), message(text)]
    seen = steps(source, at_end=lambda marker: isinstance(marker, ev.Done))
    early = [item for item in shown(flat(seen[:-2])) if not item.startswith("+")]
    assert ["a", "Note(1)"] == early
    assert ["b", "Done(d)", "c", "Note(2)"] == shown(messages_and_markers(seen[-2]))
    taken_back = cut(*source[:-1], at_end=lambda marker: isinstance(marker, ev.Done))
    assert ["a", "Note(1)"] == shown(messages_and_markers(taken_back))


@given(TEXTS, TEXTS)
def test_a_part_that_is_not_its_deltas(written: str, text: str) -> None:
    """The complete part counts: each marker in it is emitted once, even if its deltas differed."""
    early = messages_and_markers(cut(delta(written)))
    seen = messages_and_markers(cut(delta(written), message(text)))
    assert early == seen[: len(early)]
    markers = [
        e for e in messages_and_markers(cut(message(text))) if isinstance(e, ev.LlmMarkerEvent)
    ]
    left = [e for e in seen if isinstance(e, ev.LlmMarkerEvent)]
    for marker in markers:
        assert marker in left
        left.remove(marker)
    assert all(marker in early for marker in left)


def test_a_sub_agent_at_the_same_time() -> None:
    """Events of a sub-agent pass unchanged and do not split the main agent's message."""
    inner = delta("<NOTE>x</NOTE>", "s", parent_tool_use_id="t")
    whole = message("<NOTE>x</NOTE>", "s", parent_tool_use_id="t")
    call = ev.ToolCall(name="Bash")
    seen = cut(delta("<NOTE>a"), inner, call, whole, delta("b</NOTE>"), message("<NOTE>ab</NOTE>"))
    assert [inner, call, whole, ev.Note(content="ab")] == seen


def test_nothing_is_held_after_disposal() -> None:
    """Disposal in the midst of a message lets go of the source, and nothing more is emitted."""
    source: Subject[ev.Event] = Subject()
    seen: list[ev.Event] = []
    subscription = source.pipe(extract_markers(TAGS)).subscribe(seen.append)
    source.on_next(delta("<NOTE>a"))
    subscription.dispose()
    assert ([], []) == (source.observers, seen)


def test_an_error_in_the_midst_of_a_message() -> None:
    """A part that is not complete is not text; the error passes on."""
    errors: list[Exception] = []
    seen: list[ev.Event] = []
    failing = rx.concat(rx.of(delta("<NOTE>n</NOTE> <NOTE>a")), rx.throw(RuntimeError()))
    failing.pipe(extract_markers(TAGS)).subscribe(seen.append, errors.append)
    assert (["Note(n)"], 1) == (shown(seen), len(errors))


@pytest.mark.parametrize(
    ("begun", "whole", "expected"),
    [
        ("a ` </NOTE> b", "a ` </NOTE> b", ["+a `", "+ </NOTE> b", "a ` </NOTE> b"]),
        ("a ` </NOTE> b", "a ` </NOTE> c", ["+a `", "a ` </NOTE> c"]),
        ("a ` </NOTE> b", "zz a ` </NOTE> b", ["+a `", "zz a ` </NOTE> b"]),
        ("a </NOT", "a </NOT", ["+a", "a", "</NOT"]),
        ("</NOTE", "<DONE> x", ["<DONE> x"]),
    ],
)
def test_what_was_held_back_of_a_text(begun: str, whole: str, expected: list[str]) -> None:
    """Text held back as a possible tag precedes the whole text that starts with it, or waits on."""
    assert expected == shown(cut(delta(begun), message(whole)))
