"""`extract_markers`: from an agent's messages to text and markers."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st

from cuggino import events as ev
from cuggino.operators import extract_markers, marker_tags
from tests.vectors import each, event_of, matches, not_followed, rows

TAGS = marker_tags(ev.Note, ev.Done)


def cut(*events: ev.Event, tags: Any = TAGS) -> list[ev.Event]:
    seen: list[ev.Event] = []
    rx.from_iterable(events).pipe(extract_markers(tags)).subscribe(seen.append)
    return seen


def shown(*events: ev.Event) -> list[str]:
    """Markers as `Tag(content)`, texts as they are, other events as their tag."""
    return [
        f"{e.tag}({e.content})"
        if isinstance(e, ev.LlmMarkerEvent)
        else e.text
        if isinstance(e, ev.AgentMessage)
        else e.tag
        for e in cut(*events)
    ]


def message(text: str, message_id: str | None = None) -> ev.AgentMessage:
    return ev.AgentMessage(text=text, message_id=message_id)


class CustomNote(ev.LlmMarkerEvent):
    """A marker of a user's own."""


MARKERS = {
    cls.tag_name(): cls
    for cls in ev.event_types().values()
    if issubclass(cls, ev.LlmMarkerEvent) and cls.__name__ != "CustomNote"
} | {"CUSTOM": CustomNote}
ROWS = rows("markers")


@each("row", ROWS)
def test_recorded_case(row: dict[str, Any]) -> None:
    """Every recorded case is followed, or listed with its reason and then really differs."""
    tags = {tag: (lambda content, cls=MARKERS[tag]: cls(content=content)) for tag in row["tags"]}
    seen = cut(*map(event_of, row["input"]), tags=tags)
    expected = row["expected"]
    for event in expected:
        if event["_tag"] == "CustomNote":  # the case's own class names its text `message`
            event["content"] = event.pop("message")
    followed = len(expected) == len(seen) and all(map(matches, expected, seen))
    assert (row["id"] not in not_followed()) == followed


def test_without_tags_nothing_is_one() -> None:
    """Without tags the text passes unchanged, angle brackets included."""
    whole = message("a <></> <DONE>b</DONE>")
    assert [whole] == cut(whole, tags={})


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
    ],
)
def test_tags_in_markdown_code_are_text(text: str, expected: list[str]) -> None:
    """An agent that quotes a tag in a fence or a code span does not end a run."""
    assert expected == shown(message(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
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
def test_nesting_and_pairing(text: str, expected: list[str]) -> None:
    """The outermost pair wins, the nearest opening tag counts, unpaired tags are text."""
    assert expected == shown(message(text))


def test_parts_of_one_message_are_joined() -> None:
    """A marker may be split anywhere over parts with the same message id."""
    text = "Look: <NOTE>a `</NOTE>` b</NOTE> and <DONE>c</DONE>."
    whole = shown(message(text, "m"))
    assert whole == ["Look:", "Note(a `</NOTE>` b)", "and", "Done(c)", "."]
    for at in range(1, len(text)):
        if text[at - 1] == "`" or "`" in text[at : at + 1]:
            continue  # a code span is read within its part
        parts = shown(message(text[:at], "m"), ev.PingEvent(timestamp=0), message(text[at:], "m"))
        markers = [item for item in parts if item.endswith(")")]
        if not text[:at].count("`") % 2:
            assert markers == ["Note(a `</NOTE>` b)", "Done(c)"]


def test_a_marker_never_spans_two_messages() -> None:
    """An unfinished marker at the end of a message is text, also across messages without ids."""
    assert shown(message("<DONE>a", "1"), message("b</DONE>", "2")) == ["<DONE>a", "b</DONE>"]
    assert shown(message("<DONE>a"), message("b</DONE>")) == ["<DONE>a", "b</DONE>"]


def test_an_unfinished_marker_is_shown_before_what_follows_the_message() -> None:
    """Held text is released by the next event of another kind, by the end and by an error."""
    call = ev.ToolCall(name="Bash")
    assert shown(message("<DONE>a", "1"), call) == ["<DONE>a", "ToolCall"]
    assert shown(message("<DONE>a", "1")) == ["<DONE>a"]
    seen: list[ev.Event] = []
    errors: list[Exception] = []
    rx.concat(rx.of(message("<DONE>a", "1")), rx.throw(RuntimeError())).pipe(
        extract_markers(TAGS)
    ).subscribe(seen.append, errors.append)
    assert [event.text for event in seen if isinstance(event, ev.AgentMessage)] == ["<DONE>a"]
    assert len(errors) == 1


def test_signs_of_life_and_thoughts_do_not_end_a_message() -> None:
    """Pings and thoughts between two parts pass, and the parts are still joined."""
    events = shown(
        message("<DONE>a", "1"),
        ev.PingEvent(timestamp=1),
        ev.Thinking(text="hm"),
        message("</DONE>", "1"),
    )
    assert events == ["PingEvent", "Thinking", "Done(a)"]


def test_a_complete_marker_is_emitted_at_once() -> None:
    """A marker is not held back until its message ends."""
    seen: list[ev.Event] = []
    source = rx.subject.Subject[ev.Event]()
    source.pipe(extract_markers(TAGS)).subscribe(seen.append)
    source.on_next(message("so <DONE>x</DONE>", "1"))
    assert [getattr(e, "text", None) or getattr(e, "content", "") for e in seen] == ["so", "x"]


def test_a_sub_agents_text_holds_no_marker() -> None:
    """A tag in a sub-agent's text passes as text."""
    inner = ev.AgentMessage(text="<DONE>x</DONE>", parent_tool_use_id="t1")
    assert [inner] == cut(inner)


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


def test_other_events_pass_unchanged() -> None:
    """Events that are no agent message are the same objects after the operator."""
    ended = ev.SessionEnded(outcome="completed")
    assert ended is cut(ended)[0]


@given(st.text(alphabet="<>/`~\n aDONE_T", max_size=200))
def test_no_text_is_lost_or_invented(text: str) -> None:
    """Without markers all visible characters of a message come out, in order."""
    pieces = cut(message(text))
    if not any(isinstance(piece, ev.LlmMarkerEvent) for piece in pieces):
        assert [text.strip()] == [p.text for p in pieces if isinstance(p, ev.AgentMessage)] or (
            not text.strip() and not pieces
        )


def test_ten_mebibytes_in_one_message() -> None:
    """The marker at the end of a 10 MiB message is found, and the text before it is whole."""
    text = "x" * (10 * 1024 * 1024)
    first, second = cut(message(text + "<DONE>end</DONE>"))
    assert isinstance(first, ev.AgentMessage)
    assert len(text) == len(first.text)
    assert ev.Done(content="end") == second
