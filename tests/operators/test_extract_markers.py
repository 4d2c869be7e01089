"""`extract_markers`: messages, whole, split and in deltas, to text and markers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import reactivex as rx
from hypothesis import example, given, settings, strategies as st

from cuggino import events as ev
from cuggino.operators import extract_markers
from cuggino.operators.markers import join_split_messages
from cuggino.operators.markers.reading import Piece, Reading
from cuggino.operators.markers.tags import FreeTags, LineTags
from cuggino.testing import Marbles
from tests.operators.written import (
    LINES,
    MANY,
    MARKUP,
    QUOTED_TEXTS,
    RETRY,
    TAGS,
    cut,
    delta,
    flat,
    message,
    messages_and_markers,
    part,
    shown,
    split,
    steps,
)
from tests.vectors import each, event_of, matches, not_followed, rows


class CustomNote(ev.LlmMarkerEvent):
    """A marker of a user's own."""


MARKERS = {
    cls.tag_name(): cls
    for cls in ev.event_types().values()
    if issubclass(cls, ev.LlmMarkerEvent) and cls.__name__ != "CustomNote"
} | {"CUSTOM": CustomNote}
ROWS = rows("markers")
PING = ev.PingEvent(timestamp=0)


@each("row", ROWS)
def test_recorded_case(row: dict[str, Any]) -> None:
    """Every recorded case is followed, or listed with its reason and then really differs."""
    tags = {tag: (lambda content, cls=MARKERS[tag]: cls(content=content)) for tag in row["tags"]}
    seen: list[ev.Event] = []
    source = rx.from_iterable(map(event_of, row["input"]))
    source.pipe(extract_markers(tags)).subscribe(seen.append)
    expected = row["expected"]
    for event in expected:
        if event["_tag"] == "CustomNote":  # the case's own class names its text `message`
            event["content"] = event.pop("message")
    followed = len(expected) == len(seen) and all(map(matches, expected, seen))
    assert (row["id"] not in not_followed()) == followed


def test_without_tags_nothing_is_one() -> None:
    """Without tags the text passes unchanged, angle brackets included."""
    whole = message("a <></> <DONE>b</DONE>")
    assert whole == rx.just(whole).pipe(extract_markers({})).run()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```\n<DONE>x</DONE>\n```", ["```\n<DONE>x</DONE>\n```"]),
        ("~~~~\n<DONE>x</DONE>\n~~~\n~~~~\nend", ["~~~~\n<DONE>x</DONE>\n~~~\n~~~~\nend"]),
        (
            "- item\n    ```xml\n    <DONE>x</DONE>\n    ```",
            ["- item\n    ```xml\n    <DONE>x</DONE>\n    ```"],
        ),
        (
            "> ```\n> <DONE>x</DONE>\n> ```\n<DONE>y</DONE>",
            ["> ```\n> <DONE>x</DONE>\n> ```", "Done(y)"],
        ),
        ("say `<DONE>x</DONE>` then", ["say `<DONE>x</DONE>` then"]),
        ("say ``<DONE>`x`</DONE>`` then", ["say ``<DONE>`x`</DONE>`` then"]),
        ("a lone ` tick <DONE>x</DONE>", ["a lone ` tick", "Done(x)"]),
        (
            "one ` tick\n\n<DONE>x</DONE>\n\nanother ` tick",
            ["one ` tick", "Done(x)", "another ` tick"],
        ),
        (
            "one\n\ntwo `<DONE>x</DONE>`\n\n`<DONE>y</DONE>`",
            ["one\n\ntwo `<DONE>x</DONE>`\n\n`<DONE>y</DONE>`"],
        ),
        ("escaped \\` tick <DONE>x</DONE> `", ["escaped \\` tick", "Done(x)", "`"]),
        ("<NOTE>use `</NOTE>` to close</NOTE>", ["Note(use `</NOTE>` to close)"]),
        ("<NOTE>\n```\n</NOTE>\n```\nreal\n</NOTE>", ["Note(```\n</NOTE>\n```\nreal)"]),
        ("```\nnever closed\n<DONE>x</DONE>", ["```\nnever closed\n<DONE>x</DONE>"]),
        ("``` `inline` is no fence\n<DONE>x</DONE>", ["``` `inline` is no fence", "Done(x)"]),
        # The outermost pair wins, the nearest opening tag counts, unpaired tags are text.
        ("<NOTE>a <DONE>b</DONE> c</NOTE>", ["Note(a <DONE>b</DONE> c)"]),
        ("<NOTE>a <DONE> b</NOTE> c</DONE>", ["Note(a <DONE> b)", "c</DONE>"]),
        ("<NOTE>open <DONE>x</DONE>", ["<NOTE>open", "Done(x)"]),
        ("<DONE> I will say <DONE>real</DONE>", ["<DONE> I will say", "Done(real)"]),
        ("</DONE><DONE>x</DONE></DONE>", ["</DONE>", "Done(x)", "</DONE>"]),
        ("<DONE >x</DONE>", ["<DONE >x</DONE>"]),
        (
            "<SPEC_ISSUE>not of this role</SPEC_ISSUE>",
            ["<SPEC_ISSUE>not of this role</SPEC_ISSUE>"],
        ),
    ],
)
def test_one_message(text: str, expected: list[str]) -> None:
    """An agent that quotes a tag in a fence or a code span does not end a run."""
    assert expected == shown(cut(message(text, None)))


def test_parts_of_one_message_are_joined() -> None:
    """A marker may be split anywhere over parts with the same message id."""
    text = "Look: <NOTE>a `</NOTE>` b</NOTE> and <DONE>c</DONE>."
    whole = shown(cut(message(text)))
    assert whole == ["Look:", "Note(a `</NOTE>` b)", "and", "Done(c)", "."]
    for at in range(1, len(text)):
        if text[at - 1] == "`" or "`" in text[at : at + 1]:
            continue  # a code span is read within its part
        parts = shown(cut(message(text[:at]), ev.PingEvent(timestamp=0), message(text[at:])))
        markers = [item for item in parts if item.endswith(")")]
        if not text[:at].count("`") % 2:
            assert markers == ["Note(a `</NOTE>` b)", "Done(c)"]


CALL = ev.ToolCall(name="Bash")
ENDED = ev.SessionEnded(outcome="completed")
NOTE = "<NOTE>n</NOTE>"
NOTES = f"Hm. {NOTE} {NOTE} <DONE>d</DONE>"
BEGUN = part("a <NOTE>b")


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        # A marker never spans two messages, also not messages without ids.
        ([message("<DONE>a", "1"), message("b</DONE>", "2")], ["<DONE>a", "b</DONE>"]),
        ([message("<DONE>a", None), message("b</DONE>", None)], ["<DONE>a", "b</DONE>"]),
        # Signs of life and thoughts do not end a message.
        (
            [message("<DONE>a"), PING, ev.Thinking(text="hm"), message("</DONE>")],
            ["PingEvent", "Thinking", "Done(a)"],
        ),
        # What is unfinished is text, when its message is over or the session is.
        ([message("<DONE>a"), CALL], ["<DONE>a", "ToolCall"]),
        ([message("<DONE>a")], ["<DONE>a"]),
        ([*BEGUN, CALL], ["+a", "a", "<NOTE>b", "ToolCall"]),
        (BEGUN, ["+a", "a", "<NOTE>b"]),
        ([*BEGUN, delta("</NOT", "m"), ENDED], ["+a", "a", "<NOTE>b", "SessionEnded"]),
        # Of a message that is taken back, emitted pieces stay, and a repetition adds only new ones.
        (
            [
                *(delta(f"{NOTE} So <DONE>d</"), RETRY, delta("Well. <NOTE>", "m2"), RETRY),
                *(*part(NOTES, message_id="m3"), *part(NOTE, message_id="m4")),
            ],
            [
                *("Note(n)", "+So", "SystemMessage", "+Well.", "SystemMessage"),
                *("+Hm.", "Hm.", "Note(n)", "Done(d)", "Note(n)"),
            ],
        ),
        # Once a message is complete, a marker of a discarded one may be repeated.
        (
            [delta(NOTE), *part("Well.", message_id="m2"), *part(NOTE, message_id="m3")],
            ["Note(n)", "+Well.", "Well.", "Note(n)"],
        ),
        # A retry that does not stream emits only new text, and no marker twice.
        (
            [delta(f"{NOTE} and <NO"), RETRY, message(f"{NOTE}<NOTE>o</NOTE>", "m2")],
            ["Note(n)", "+and", "SystemMessage", "Note(o)"],
        ),
        # Text held back as a possible tag precedes the whole text that starts with it, or waits on.
        (part("a ` </NOTE> b"), ["+a `", "+ </NOTE> b", "a ` </NOTE> b"]),
        ([delta("a ` </NOTE> b"), message("a ` </NOTE> c")], ["+a `", "a ` </NOTE> c"]),
        ([delta("a ` </NOTE> b"), message("zz a ` </NOTE> b")], ["+a `", "zz a ` </NOTE> b"]),
        (part("a </NOT"), ["+a", "a", "</NOT"]),
        ([delta("</NOTE"), message("<DONE> x")], ["<DONE> x"]),
    ],
)
def test_several_events(events: Sequence[ev.Event], expected: list[str]) -> None:
    """A marker is read within its message, which other events, retries and the end may cut."""
    assert expected == shown(cut(*events))


@pytest.mark.parametrize(
    ("event", "expected"),
    [(message("<DONE>a"), ["<DONE>a"]), (delta("<NOTE>n</NOTE> <NOTE>a"), ["Note(n)"])],
)
def test_an_error_in_the_midst_of_a_message(event: ev.Event, expected: list[str]) -> None:
    """A complete part is shown, one that is not complete is no text; the error passes on."""
    errors: list[Exception] = []
    seen: list[ev.Event] = []
    failing = rx.concat(rx.of(event), rx.throw(RuntimeError()))
    failing.pipe(extract_markers(TAGS)).subscribe(seen.append, errors.append)
    assert (expected, 1) == (shown(seen), len(errors))


def test_a_tag_that_fails() -> None:
    """An exception of the function that makes the marker is the error; nothing follows it."""
    t = Marbles(a=message("<NOTE>n</NOTE>"), x=CALL)

    def refuse(_content: str) -> ev.Event:
        raise t.error

    t.check(t.cold("x-a-x").pipe(extract_markers({"NOTE": refuse})), "x-#")


@pytest.mark.parametrize(
    ("event", "is_read"),
    [
        (ev.PlanningStart(iteration=1), True),
        (ev.SessionEnded(outcome="completed"), True),
        (ev.SessionEnded(outcome="failed"), False),
        (ev.ToolCall(name="Bash"), False),
    ],
)
def test_text_after_a_failed_session(event: ev.Event, *, is_read: bool) -> None:
    """It holds no marker until another session begins, or has succeeded."""
    done = ev.AgentMessage(text="<DONE>x</DONE>")
    failed = ev.SessionEnded(outcome="failed")
    assert [failed, done, event] == cut(failed, done, event)
    (last,) = cut(failed, event, done)[2:]
    assert (last == ev.Done(content="x")) == is_read != (last is done)


@given(st.text(alphabet="<>/`~\n aDONE_T", max_size=200))
def test_no_text_is_lost_or_invented(text: str) -> None:
    """Without markers all visible characters of a message come out, in order."""
    pieces = cut(message(text, None))
    if not any(isinstance(piece, ev.LlmMarkerEvent) for piece in pieces):
        assert [text.strip()] == [p.text for p in pieces if isinstance(p, ev.AgentMessage)] or (
            not text.strip() and not pieces
        )


WORDS = st.sampled_from(
    ["<NOTE>", "</NOTE>", "<NOTE>n</NOTE>", "<DO", "NE>", "<", "</", "<X>", "````", "\n<"]
)
ANY_TEXTS = st.lists(WORDS | MARKUP, max_size=24).map("".join) | st.text(max_size=40)
WHERE = st.sampled_from([{}, {"at_line_start": LINES}])
"""Tags that count anywhere outside code, or only where they open a line."""


def other(events: Sequence[ev.Event]) -> list[ev.Event]:
    return [
        e
        for e in events
        if not isinstance(e, ev.AgentMessage | ev.LlmMarkerEvent | ev.MessageDelta)
    ]


PARTS = st.lists(
    st.tuples(st.sampled_from("aaab"), ANY_TEXTS, st.lists(st.integers(0, 99), max_size=30)),
    max_size=3,
)
"""Message id, text, and where it is split."""


@settings(max_examples=3 * MANY)
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


@settings(max_examples=3 * MANY)
@given(ANY_TEXTS, st.lists(st.integers(0, 99), max_size=30), WHERE)
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


@given(ANY_TEXTS, ANY_TEXTS)
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


FRESH = Reading(FreeTags(frozenset({"NOTE"})), LineTags(frozenset({"DONE"})))
PART_TEXTS = st.lists(
    st.sampled_from(["<NOTE>", "</NOTE>", "<NOTE>n</NOTE>"]) | QUOTED_TEXTS, max_size=6
).map("".join)


def read(reading: Reading, *pieces: str) -> tuple[list[Piece], Reading]:
    """Return all the pieces of a part that comes in pieces."""
    found: list[Piece] = []
    for piece in pieces:
        reading, markers = reading.feed(piece)
        for marker in markers:
            found += marker.pieces()
    rest, reading = reading.finish(is_last=False)
    return found + rest, reading


@given(
    st.lists(PART_TEXTS, min_size=1, max_size=3),
    PART_TEXTS,
    st.lists(st.integers(0, 99), max_size=20),
)
@example(["> ```\n<DONE>x</DONE>\n\nb", "<NOTE>n</NOTE>"], "", [23])
@example(["<NOTE>", ""], "", [])
@example(["<DONE>\n> ~~~\nx</DONE>\n\nb"], "", [21])
def test_a_part_in_pieces_is_the_whole_part(
    parts: list[str], other: str, places: list[int]
) -> None:
    """A part has the same pieces whole, cut anywhere, or read again after something else."""
    whole = cut = single = FRESH
    for text in parts:
        whole.feed(other)  # a value: what is read from here changes nothing
        expected, whole = whole.read_part(text, is_last=False)
        seen, cut = read(cut, *split(text, places))
        assert expected == seen
        seen, single = read(single, *text)
        assert expected == seen
    assert whole.end_message() == cut.end_message() == single.end_message()


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
