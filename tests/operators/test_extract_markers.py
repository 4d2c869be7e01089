"""`extract_markers`: messages, whole, split and in deltas, and tags that must open a line."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import reactivex as rx
from hypothesis import example, given, settings, strategies as st

from cuggino import events as ev
from cuggino.events import Done, Event, ToolCall
from cuggino.operators import extract_markers
from cuggino.operators.markers import LineTags, join_split_messages
from cuggino.operators.markers.quoting import Quotes, Tag
from cuggino.operators.markers.reading import Piece, Reading
from cuggino.operators.markers.tags import FreeTags
from cuggino.testing import Marbles
from tests.growth import is_linear
from tests.operators.written import (
    LINES,
    MANY,
    MARKDOWN_TEXTS,
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
    parts,
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


MARKDOWN: Any = importlib.import_module("markdown_it").MarkdownIt("commonmark")
DONE = "<DONE>x</DONE>"
NAMES = frozenset({"DONE", "SPEC_ISSUE"})
TAG = re.compile(r"<(/?)(?:DONE|SPEC_ISSUE)>")


def opens_paragraph_lines(text: str) -> list[int]:
    """Return where Markdown puts an opening tag at the start of a line outside block quotes.

    The tags are words to it, as they are no HTML.
    """
    places: list[re.Match[str]] = []

    def mask(tag: re.Match[str]) -> str:
        places.append(tag)
        return "=" + chr(0xE000 + len(places) - 1) * (len(tag.group()) - 1)

    found = []
    quotes = 0
    for token in MARKDOWN.parse(TAG.sub(mask, text)):
        quotes += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
        if token.type == "inline" and not quotes:
            found += [places[ord(word[1]) - 0xE000] for word in _line_starts(token.children)]
    return [tag.start() for tag in found if not tag.group(1) and _is_shallow(text, tag.start())]


def _line_starts(tokens: Sequence[Any]) -> Iterator[str]:
    starts = True
    for token in tokens:
        if starts and token.type == "text" and re.match("=[\ue000-\uf8ff]", token.content):
            yield token.content
        starts = token.type in ("softbreak", "hardbreak") or (starts and not token.content)


def _is_shallow(text: str, at: int) -> bool:
    return re.fullmatch(" {0,3}", re.split("[\r\n]", text[:at])[-1]) is not None


def opening_tags(*pieces: str, quotes: Quotes | None = None) -> list[int]:
    """Return where the tags that count open; by default, those by the rules of Markdown."""
    reader, tags = LineTags(NAMES, quotes=quotes), list[Tag]()
    for piece in pieces:
        reader, found = reader.feed(piece)
        tags += found
    tags += reader.finish()[1]
    assert tags == sorted(tags)
    return [tag.start for tag in tags if not tag.closes and tag.after is None]


def _is_read_alike(text: str) -> bool:
    """Return whether markdown-it-py reads the text by the rules, and we as it does.

    It ends a quote within a quote at an indented line that looks like a block, and counts the
    columns of a tab there from another place: mistakes. And see `test_other_tags_are_text`.
    """
    is_misread = re.search(r">[ \t]*>", text) and re.search(r"[\r\n][ \t]* {4}|\t", text)
    return not is_misread and not re.search(r"</?(?:div|pre|code|span|a)[\w-]", text, re.IGNORECASE)


@settings(max_examples=10 * MANY)
@given(MARKDOWN_TEXTS.filter(_is_read_alike))
@example("> quoted\n<DONE>x</DONE>")
@example("1. a\n   ```\n   <DONE>x</DONE>\n   ```\n<DONE>y</DONE>")
@example("a `tick\n- b\n<DONE>x</DONE>\nc `")
@example("a <b c='\n<DONE>\n'> d")
@example("01. <span ---\n   <DONE>\n  </PRE>\n<DONE>\n> + ")
@example(' b="\n- \r\n>=\n<DONE>')
@example("- \t>\n   ```py\n<DONE>x\t<?></div>?>---<span ")
def test_markdown_decides_what_counts(text: str) -> None:
    """A tag counts if and only if a Markdown parser puts it at the start of a line of text."""
    assert opens_paragraph_lines(text) == opening_tags(text)


@settings(max_examples=5 * MANY)
@given(QUOTED_TEXTS, st.lists(st.integers(0, 99), max_size=30))
def test_it_may_come_in_any_pieces(text: str, places: list[int]) -> None:
    """The pieces of a text decide nothing, and quoting only takes tags away."""
    assert opening_tags(text) == opening_tags(*split(text, places)) == opening_tags(*text)
    counted = opening_tags(text, quotes=Quotes())
    assert counted == opening_tags(*split(text, places), quotes=Quotes())
    assert counted == opening_tags(*text, quotes=Quotes())
    assert [*filter(counted.__contains__, opening_tags(text))] == counted


@settings(max_examples=5 * MANY)
@given(QUOTED_TEXTS)
@example("<DONE>a: |\n```")
def test_what_is_before_in_paragraphs_of_its_own(text: str) -> None:
    """Plain text and a whole marker before a text quote nothing in it."""
    before = "Some words.\n\n<DONE>a</DONE>\n\n"
    alone = opening_tags(text, quotes=Quotes())
    expected = [before.index("<"), *(len(before) + place for place in alone)]
    assert expected == opening_tags(before + text, quotes=Quotes())


@pytest.mark.parametrize(
    "text",
    [
        *("<DONE>x</DONE>", "   <DONE>x</DONE>", "All done.\n<DONE>x</DONE>"),
        *("All done.\r\n<DONE>x</DONE>\r\n", "- a\n- b\n<DONE>x</DONE>"),
        *("1. a\n2. b\n\n<DONE>x</DONE>", "- a\n  <DONE>x</DONE>", "# Title\n<DONE>x</DONE>"),
        *("<DONE>x</DONE>\n---", "Title\n===\n<DONE>x</DONE>", "***\n<DONE>x</DONE>"),
        *("| a | b |\n|---|---|\n| 1 | 2 |\n<DONE>x</DONE>", "```\ncode\n```\n<DONE>x</DONE>"),
        *("    code\n<DONE>x</DONE>", "> quote\n\n<DONE>x</DONE>"),
        *("> ```\n> open\n\n<DONE>x</DONE>", "- ```\n  open\n\n<DONE>x</DONE>"),
        *("<!-- no -->\n<DONE>x</DONE>", "<div>\na\n</div>\n\n<DONE>x</DONE>"),
        *("a lone ` tick\n\n<DONE>x</DONE>\n\nanother `", "<DONE>\nx\n</DONE>"),
        *("<DONE>x\n> quoted\n</DONE>", "<DONE>\n- x\n  ```\n  </DONE>\n  ```\n- y</DONE>"),
        *("<DONE>x <DONE> y</DONE>", "<DONE>x\n\n# y</DONE>", "<DONE>x\n<div>\n</DONE>"),
        "<DONE>`</DONE>` x\n</DONE>",
    ],
)
def test_what_counts(text: str) -> None:
    """A tag that opens a line of text counts, wherever its closing tag is."""
    seen = shown(cut(message(text), at_line_start=LINES))
    assert 1 == len([piece for piece in seen if piece.startswith("Done(")]), seen


@each(
    "text",
    [
        *("so: <DONE>x</DONE>", "I will not respond with <DONE>x</DONE> yet."),
        *("    <DONE>x</DONE>", "\t<DONE>x</DONE>", "Answer:\n\n    <DONE>x</DONE>"),
        *("```\n<DONE>x</DONE>\n```", "~~~~\n<DONE>x</DONE>\n~~~\n<DONE>y</DONE>"),
        *("```\n<DONE>x</DONE>", "- a\n  ```\n  <DONE>x</DONE>\n  ```", "`<DONE>x</DONE>`"),
        *("a `span\n<DONE>x</DONE>\n` b", "> <DONE>x</DONE>", "> a\n<DONE>x</DONE>"),
        *("- > a\n  <DONE>x</DONE>", "- <DONE>x</DONE>", "1. <DONE>x</DONE>", "# <DONE>x</DONE>"),
        *("| <DONE>x</DONE> |", '{"result": "<DONE>x</DONE>"}', '"<DONE>x</DONE>"'),
        *("**<DONE>x</DONE>**", "\\<DONE>x</DONE>", '<p title="<DONE>x</DONE>">'),
        *('<p\ntitle="\n<DONE>x</DONE>\n">', '<a\ntitle="\n<DONE>x</DONE>\n">a</a>'),
        *("<!-- <DONE>x</DONE> -->", "<!--\n<DONE>x</DONE>\n-->", "<!--\n\n<DONE>x</DONE>"),
        *("a <!-- b\n<DONE>x</DONE>\n--> c", "<pre>\n\n<DONE>x</DONE>\n</pre>"),
        *("<div>\n<DONE>x</DONE>\n</div>", "<code>\n<DONE>x</DONE>\n</code>"),
        "<DONE> is how it ends:\n\n    <DONE>x</DONE>",
        *("<DONE> is how it ends:\n\n> <DONE>x</DONE>", "<DONE> is how it ends: `</DONE>`"),
    ],
)
def test_what_is_text(text: str) -> None:
    """A tag in the midst of a line, in code, a quote or HTML is text; not a character is lost."""
    assert [text.strip()] == shown(cut(message(text), at_line_start=LINES))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<DONE>x</DONE><DONE>y</DONE> <DONE>z</DONE>", ["Done(x)", "Done(y)", "Done(z)"]),
        ("<DONE>\nx\n</DONE> <DONE>y</DONE>", ["Done(x)", "Done(y)"]),
        ("<DONE>x\nx</DONE>\t<DONE>y</DONE>", ["Done(x\nx)", "Done(y)"]),
        ("<DONE>x</DONE>, <DONE>y</DONE>", ["Done(x)"]),
        ("Not <DONE>x</DONE> <DONE>y</DONE>", []),
        ("</DONE> <DONE>y</DONE>", []),
        ("> <DONE>x</DONE> <DONE>y</DONE>", []),
        ("<DONE>`x</DONE> <DONE>`y</DONE>", ["Done(`x</DONE> <DONE>`y)"]),
    ],
)
def test_markers_in_a_row(text: str, expected: list[str]) -> None:
    """A tag directly behind a marker counts if that does."""
    for events in ([message(text)], [*map(delta, text + "\n\n"), message(text + "\n\n")]):
        seen = shown(cut(*events, at_line_start=LINES))
        assert expected == [piece for piece in seen if piece.startswith("Done(")]


@pytest.mark.parametrize("name", ["analysis", "NOTES", "function_calls", "x-y"])
def test_other_tags_are_text(name: str) -> None:
    """A line of nothing but a tag begins HTML in Markdown, but not if HTML has no such tag."""
    text = f"<{name}>\nAll is well.\n</{name}>\n<DONE>x</DONE>"
    assert "Done(x)" == shown(cut(message(text), at_line_start=LINES))[-1]


@each(
    "text, expected",
    [
        (
            "a <NOTE>n</NOTE> b <DONE>d</DONE>\n> <NOTE>o</NOTE>\n\n<DONE>e</DONE> <NOTE>p</NOTE>",
            ["a", "Note(n)", "b <DONE>d</DONE>\n>", "Note(o)", "Done(e)", "Note(p)"],
        ),
        (
            "<NOTE>\n<DONE>x</DONE>\n</NOTE>\n<DONE>\n<NOTE>n</NOTE>\n</DONE>",
            ["Note(<DONE>x</DONE>)", "Done(<NOTE>n</NOTE>)"],
        ),
    ],
)
def test_tags_that_may_be_anywhere(text: str, expected: list[str]) -> None:
    """Other tags are found in the midst of a line, too; the outermost marker counts."""
    assert expected == shown(cut(message(text), at_line_start=LINES))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("```\na", "\n<DONE>x</DONE>"), []),
        (("I say ", "<DONE>x</DONE>"), []),
        (("I say\n", "<DONE>x</DONE>"), ["Done(x)"]),
        (("<DO", "NE>x</DONE>"), ["Done(x)"]),
        (("<DONE>", "x</DONE>"), ["Done(x)"]),
        (("> a", "\n<DONE>x</DONE>"), []),
        (("> a\n", "\n<DONE>x</DONE>"), ["Done(x)"]),
        (("<!--", "\n<DONE>x</DONE>"), []),
        (("<DONE>x</DONE>\n", "\n<DONE>y</DONE>"), ["Done(x)", "Done(y)"]),
        (("<DONE>x</DONE>\n```", "\n<DONE>y</DONE>"), ["Done(x)"]),
        (("#\n<DONE>x</DONE>", "> more\n"), ["Done(x)"]),
        # What is open at the end of a part quotes the next one.
        (("<thinking>\na", f"\n{DONE}\n</thinking>"), []),
        (("<thinking", f">\n{DONE}\n</thinking>"), []),
        (("<thinking>\na\n", "b</thinking>\n", DONE), ["Done(x)"]),
        (("x <y>\n<DONE>a</DONE>\n", f"{DONE}\n</y>"), ["Done(a)", "Done(x)"]),
        (('x = """\n', f'{DONE}\n"""\n', "<DONE>y</DONE>"), ["Done(y)"]),
        (("<thinking>\n<DONE>", "x</DONE>\n</thinking>\n", "<DONE>y</DONE>"), ["Done(y)"]),
    ],
)
@pytest.mark.parametrize("in_letters", [False, True])
def test_parts_of_one_message(
    texts: Sequence[str], expected: list[str], *, in_letters: bool
) -> None:
    """The text before a part in its message decides whether the part's tags count."""
    seen = shown(cut(*parts(*texts, in_letters=in_letters), at_line_start=LINES))
    assert expected == [piece for piece in seen if piece.endswith(")")]


@pytest.mark.parametrize("before", ["```\na", "> a", "<!--", "I say ", "a `"])
def test_a_message_of_its_own(before: str) -> None:
    """Nothing of another message decides, nor of a part before a tool call."""
    end = message("<DONE>x</DONE>", "n")
    assert "Done(x)" == shown(cut(message(before), end, at_line_start=LINES))[-1]
    again = message("<DONE>x</DONE>")
    call = ToolCall(name="Bash")
    assert "Done(x)" == shown(cut(message(before), call, again, at_line_start=LINES))[-1]
    assert "Done(x)" == shown(cut(delta(before), end, at_line_start=LINES))[-1]


@pytest.mark.parametrize(
    ("begin", "decides", "expected"),
    [
        ("<DONE>x</DONE>\n", "\n", ["Done(x)"]),
        ("<DONE>x</DONE>", "\n# ", []),
        ("<DONE>x</DONE>\n#", "\n", ["Done(x)"]),
        ("```\n<DONE>x</DONE>\n```\n<DONE>y</DONE>\n", "\n", ["Done(y)"]),
        ("<NOTE>n</NOTE", ">", ["Note(n)"]),
        ("I say <DONE> and <NOTE>n</NOTE", ">", ["Note(n)"]),
        ("<DONE>x</DONE> <NOTE>n</NOTE>\n", "\n", ["Done(x)", "Note(n)"]),
    ],
)
def test_a_marker_waits_for_the_end_of_its_paragraph(
    begin: str, decides: str, expected: list[str]
) -> None:
    """The marker and all after it come when its paragraph ends; others are not delayed."""
    for first in ([delta(begin)], [*map(delta, begin)]):
        *before, last, _end = steps([*first, delta(decides)], at_line_start=LINES)
        assert [] == [piece for piece in shown(flat(before)) if piece.endswith(")")]
        assert expected == [piece for piece in shown(last) if piece.endswith(")")]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("> ```\n<DONE>x</DONE>\n\nb",), ["> ```", "Done(x)", "b"]),
        (("> ```\n<DONE>x</DONE>\n\n", "<NOTE>n</NOTE>"), ["> ```", "Done(x)", "<NOTE>n</NOTE>"]),
        (
            ("> ~~~\n<DONE>x</DONE>\n\n~~~\n", "<NOTE>n</NOTE>"),
            ["> ~~~", "Done(x)", "~~~", "Note(n)"],
        ),
        (("<DONE>\n> ~~~\nx</DONE>\n\nb",), ["Done(> ~~~\nx)", "b"]),
    ],
)
@pytest.mark.parametrize("in_letters", [False, True])
def test_a_marker_in_what_is_a_fence_to_other_tags(
    texts: Sequence[str], expected: list[str], *, in_letters: bool
) -> None:
    """It comes once, and the fence goes on behind it, for the tags that count anywhere."""
    seen = cut(*parts(*texts, in_letters=in_letters), at_line_start=LINES)
    assert expected == shown(messages_and_markers(seen))


def markers(text: str) -> list[str]:
    """Return the terminal markers of a message, which deltas and parts do not change."""
    whole = shown(cut(message(text), at_line_start=LINES))
    written = shown(cut(*map(delta, text), message(text), at_line_start=LINES))
    found = [piece for piece in whole if piece.startswith("Done(")]
    assert found == [piece for piece in written if piece.startswith("Done(")]
    return found


@each(
    "text",
    [
        f"<thinking>\n{DONE}\n</thinking>",
        f"<thinking>\n\n{DONE}\n\n</thinking>\nNo.",
        f"<thinking>I could say\n{DONE}\nbut</thinking>",
        f"<thinking>\n{DONE}",
        f"Hm <thinking>\n{DONE}",
        f"<THINKING>\n{DONE}\n</THINKING>",
        f"<thinking>\n{DONE}\n</thinking>",
        f"<example>\n{DONE}\n</example>",
        f"For <example>\n{DONE}\n</example> only.",
        f"<outer>\n<inner>\n</inner>\n{DONE}\n</outer>",
        f"<outer>\n<inner>\n\n{DONE}\n</inner>\n</outer>",
        f'<tool_result name="x">\n{DONE}\n</tool_result>',
        f"<details>\n<summary>Draft</summary>\n\n{DONE}\n\n</details>",
        f"<details>\n\n{DONE}",
        f"<blockquote>\n\n{DONE}\n\n</blockquote>",
        f"<p>\n\n{DONE}\n\n</p>",
        f"<App>\n  <Button/>\n{DONE}\n</App>",
        f"const x = <App>\n{DONE}\n</App>;",
        f"<App\n  a={{1}}\n>\n\n{DONE}\n</App>",
        f"<>\n{DONE}\n</>",
        f"return (\n{DONE}\n);",
        f"const f = () => (\n  <b>a</b>\n{DONE}\n)",
        f"print(\n{DONE}\n)",
        f"verdict = [\n{DONE}\n]",
        f"msg: |\n{DONE}\nnot yet",
        f"msg: |\n  {DONE}\n",
        f"- msg: >-\n    a\n\n  {DONE}\n",
        f"Example::\n\n  {DONE}\n\nnot yet",
        f".. code-block:: text\n\n  {DONE}\n",
        f"\\begin{{verbatim}}\n{DONE}\n\\end{{verbatim}}",
        f"\\begin{{lstlisting}}\n\n{DONE}\n",
        f'x = """\n{DONE}\n"""',
        f'"""\n\n{DONE}\n"""',
        f"x = '''a\n{DONE}\n'''",
        f'x = """\n{DONE}',
        f"cat <<EOF\n{DONE}\nEOF",
        f"cat <<'end' > x\n\n{DONE}\nend",
        f"cat <<-EOF\n{DONE}",
        f"$x = <<<EOT\n{DONE}\nEOT;",
        f's = "a\n{DONE}\nb"',
        f"echo 'a\n\n{DONE}\n'",
        f'print("\n{DONE}\n")',
        f"const s = `a\n\n{DONE}\n`;",
        f'auto s = R"(\n{DONE}\n)";',
        f'let s = r#"\n{DONE}\n"#;',
        f"s = [==[\n{DONE}\n]==]",
        f"/*\n{DONE}\n*/",
        f"#+BEGIN_EXAMPLE\n{DONE}\n#+END_EXAMPLE",
        f"{{code}}\n{DONE}\n{{code}}",
        f"[code]\n{DONE}\n[/code]",
        f"<DONE> is how it ends.\n<thinking>\n{DONE}\n</thinking>",
    ],
)
def test_a_quoted_marker_is_void(text: str) -> None:
    """It is text, and a marker after the end of the quotation counts."""
    assert [] == markers(text)


@each(
    "text",
    [
        *("<thinking>\n<DONE>a</DONE>\n</thinking>", "<a-b>\n\n<DONE>a</DONE>\n\n</a-b>\n\n"),
        *("<x>\n<x>\n</x>\n<DONE>a</DONE>\n</x>", "```\n<thinking>\n```", "`<thinking>`"),
        *("<!-- <thinking> -->", "> <thinking>", "    <thinking>", "List<String> and Vec<u8>"),
        *("the <button> and the <b>bold</b> one", "greet <name> <file>", "- <file>: the file"),
        *("<br>", "<img src='x'>", "<Button/>", "<p>\nAll is well.\n"),
        *("<https://example.org> <a@example.org>", "a < b and c > d", 'He said "done."'),
        *("It's the users' \"fine\"", '5" wide', '`"""` is a docstring', "a docstring (''') ends"),
        *("Summary:", "std::vector::", "if x {\n  y();\n}", "f(\n  1,\n)", "x << 3 and 1<<BITS"),
        *("a | b\n--|--\n1 | 2", '"""Doc."""', 'def f():\n    """Doc.\n\n    more\n    """'),
        *("<DONE>Adds <thinking> and `(`\nreturn (\n</DONE>", "[[a page]]", "<NOTE>n</NOTE>"),
        "<NOTE>",
    ],
)
def test_what_quotes_nothing(text: str) -> None:
    """A marker after it counts: outside of tags, in closed code, in the midst of a line."""
    assert "Done(end)" == markers(f"{text}\n\n<DONE>end</DONE>")[-1]


@each(
    "quote",
    ["<a>\n", "x <a> ", '"', "'''", "x = '", "<<A\n", "f(\n", "{code}", "a: |\n", "\\begin{a}"],
)
def test_the_work_is_linear(quote: str) -> None:
    """No quotation that never ends makes the search start over."""

    def work(count: int) -> None:
        assert shown(cut(message(f"{quote * count}\n{DONE}"), at_line_start=LINES))

    assert is_linear(work, small=1000, large=8_000)


@pytest.mark.parametrize(
    ("begin", "decides", "expected"),
    [
        ("a ` b <NOTE>n</NOTE> ", "`", []),
        ("a ` b <NOTE>n</NOTE>\n", "\n", ["Note(n)"]),
        ("a `` ` <NOTE>n</NOTE>\n", "~~~ ", ["Note(n)"]),
        ("```py <NOTE>n</NOTE>", "\n", []),
        ("```py <NOTE>n</NOTE>", "`\n\n", ["Note(n)"]),
        ("```\n<NOTE>n</NOTE>\n```", "\n<DONE>d</DONE>", ["Done(d)"]),
        ("```\n<NOTE>n</NOTE>\n```", "x\n<DONE>d</DONE>", []),
        ("~~~~ x\n<NOTE>n</NOTE>\n~~~", "~ \r\n<DONE>d</DONE>", ["Done(d)"]),
        ("<DONE>d <NOTE>n</NOTE> ", "</DONE>", ["Done(d <NOTE>n</NOTE>)"]),
        ("<DONE>d <NOTE>n</NOTE> ", "<DONE>", ["Note(n)"]),
        ("<NOTE>x ` y</NOTE> ", "` z</NOTE>", ["Note(x ` y</NOTE> ` z)"]),
        ("<NOTE>n</NOTE", ">", ["Note(n)"]),
        ("\\` <NOTE>n</NOTE", ">", ["Note(n)"]),
        ("\\` ` <NOTE>n</NOTE> `", "\n\n", []),
        ("a ` b\n>\n<NOTE>n</NOTE>", "`\n\n", []),
        ("a ` b\n \t\n<NOTE>n</NOTE", ">", ["Note(n)"]),
        ("`` \\` ` <NOTE>n</NOTE> `", "\n\n", []),
        ("`` \\` <NOTE>n</NOTE> `", "\n\n", ["Note(n)"]),
        ("```\na\n```\rx\n<NOTE>n</NOTE>", "\n", []),
        ("```\na\n> ````\t\r\n<NOTE>n</NOTE", ">", ["Note(n)"]),
        ("````\na\n```\n<NOTE>n</NOTE>", "\n", []),
        ("a ```\n<NOTE>n</NOTE>", "\n\n", ["Note(n)"]),
        ("``x\n<NOTE>n</NOTE>", "\n\n", ["Note(n)"]),
        ("~~ x\n<NOTE>n</NOTE", ">", ["Note(n)"]),
        ("<NOTE>a <DONE>b</NOTE> <NOTE>n</NOTE", ">", ["Note(n)"]),
        ("a ` <NOTE>n</NOTE>\n```", "\n", ["Note(n)"]),
        ("x\\", "` <NOTE>n</NOTE>", ["Note(n)"]),
    ],
)
def test_a_marker_waits_until_it_is_sure(begin: str, decides: str, expected: list[str]) -> None:
    """Only markers of the whole text are emitted, each as soon as it is certain."""
    first, second, *_ = steps([delta(begin), delta(decides)])
    assert not [item for item in shown(messages_and_markers(first)) if item == "Note(n)"]
    assert expected == [item for item in shown(messages_and_markers(second)) if item.endswith(")")]
    *one_by_one, last, _end = steps([*map(delta, begin), delta(decides)])
    assert shown(messages_and_markers(first)) == shown(messages_and_markers(flat(one_by_one)))
    assert shown(messages_and_markers(second)) == shown(messages_and_markers(last))
    whole = steps([message(begin + decides + "\n\nend")])[0]
    assert expected == [item for item in shown(whole) if item in expected or item == "Note(n)"]


@pytest.mark.parametrize(
    "before",
    [
        *("", "\n", "a\n\n", "`` a ``", "` a\n\n", "```\na\n```\n", "```\n> a\n```\t\r\n"),
        *("~~~\n~~\na\n~~~\n", "~~ a\n", "```py`\n\n", "``` a ```", "\\` ", "<DONE>d</DONE>"),
        "</DONE>",
    ],
)
def test_all_of_a_delta_is_read_at_once(before: str) -> None:
    """A certain marker is emitted with its delta, whatever precedes it there."""
    first, *_ = steps([delta(f"{before}<NOTE>n</NOTE>")])
    assert "Note(n)" == shown(messages_and_markers(first))[-1]


WAITS = "a <DONE>d</DONE> <NOTE>n</NOTE> b"
AT_END = {"at_end": lambda marker: isinstance(marker, Done)}
LINE_START = {"at_line_start": LINES}


@pytest.mark.parametrize(
    ("events", "options", "expected"),
    [
        # A possible marker is held back, each marker is emitted, and no text is late.
        (
            [delta("a ` b <NOTE>n</NOTE> c"), delta("\n\n")],
            {},
            [["+a ` b"], ["a ` b", "Note(n)", "+c"], []],
        ),
        (
            [delta("a <NOTE>n</NOTE> b"), delta(" <NOTE>m</NOTE> c")],
            {},
            [["+a", "a", "Note(n)", "+b"], ["b", "Note(m)", "+c"], []],
        ),
        (
            part("<NOTE>n</NOTE> ` <NOTE>n</NOTE>"),
            {},
            [["Note(n)", "+`"], ["`", "Note(n)"], []],
        ),
        ([delta("abc"), message("xyz defgh")], {}, [["+abc"], ["xyz defgh"], []]),
        ([*part("a <NO"), message("b")], {}, [["+a"], ["a"], ["<NOb"], []]),
        (
            [delta("a <NOTE>n</NOTE> x"), RETRY, message("a <NOTE>n</NOTE> b", "m2")],
            {},
            [["+a", "a", "Note(n)", "+x"], ["SystemMessage"], ["a", "b"], []],
        ),
        ([delta("a <NO"), message("b <NOTE>n</NOTE> c")], {}, [["+a"], ["b", "Note(n)", "c"], []]),
        # Deltas of the next part continue after the open text of the part before.
        (
            [*part("<NOTE>a"), *part("b</NOTE> c")],
            {},
            [[], [], ["Note(ab)", "+c"], ["c"], []],
        ),
        (
            [*part("a\n```\nx"), *part("y\n```\nz")],
            {},
            [["+a\n```\nx"], ["a"], ["+y\n```\nz"], ["```\nxy\n```\nz"], []],
        ),
        (
            [*part("```\nx  "), *part("  y\n```\n<NOTE>n</NOTE> z")],
            {},
            [["+```\nx"], [], ["+    y\n```", "```\nx    y\n```", "Note(n)", "+z"], ["z"], []],
        ),
        ([*part("a <NO"), *part("b c")], {}, [["+a"], ["a"], ["+<NOb c"], ["<NOb c"], []]),
        ([*part("a `"), *part("b")], {}, [["+a `"], ["a `"], ["+b"], ["b"], []]),
        # A marker of `at_end`, and all text after it in the same delta, waits for the part.
        (part(WAITS), AT_END, [["+a"], ["a", "Done(d)", "Note(n)", "b"], []]),
        # Only what may begin a tag at the start of a line is held back, up to the end of the line.
        (
            [delta("I say <DO"), delta("NE> \n <"), delta("DO not")],
            LINE_START,
            [["+I say <DO"], ["+NE>"], ["+ \n <DO not"], []],
        ),
        ([delta("so\n <D"), delta("ONE"), delta(">x")], LINE_START, [["+so"], [], [], []]),
        ([delta("a\n<DO"), delta("\n")], LINE_START, [["+a"], ["+\n<DO"], []]),
        # What the end of a part has decided is not taken up by the next one.
        (
            [message("a ```\n<DONE>```"), message("b")],
            LINE_START,
            [["a ```\n<DONE>```"], ["b"], []],
        ),
    ],
)
def test_when_text_and_markers_are_shown(
    events: Sequence[Event], options: dict[str, Any], expected: list[list[str]]
) -> None:
    """What is text or a marker for sure is emitted at once, everything else is held back."""
    assert expected == [shown(step) for step in steps(events, **options)]
