"""Messages that come in deltas, and what `extract_markers` makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import Any

from hypothesis import settings, strategies as st
from reactivex import Subject

from cuggino.events import (
    AgentMessage,
    Done,
    Event,
    LlmMarkerEvent,
    MessageDelta,
    Note,
    SystemMessage,
)
from cuggino.operators import extract_markers, marker_tags

TAGS = marker_tags(Note, Done)
MANY = settings().max_examples
"""As many examples as the profile asks for; quick ones can be had by the hundred."""
RETRY = SystemMessage(text="Retrying")
LINES = ("DONE",)
"""The tags that count only where they open a line, in tests of those."""
MARKUP = st.sampled_from(
    [
        *("<DONE>", "</DONE>", "\n<DONE>", "\n<DONE>x</DONE>", "\n   <SPEC_ISSUE>"),
        *("\n    <DONE>", "\n", "\n\n", "\n \n", "\r\n", "\r", " ", "  ", "    ", "\t", "a", "bc"),
        *(
            "ü👍🏽",
            "\u2028",
            "- ",
            "* ",
            "+ ",
            "1. ",
            "2) ",
            "01. ",
            "10. ",
            "-",
            "> ",
            ">",
            "\n> ",
        ),
        *("\n- ", "\n1. ", "\n  ", "\n   ", "# ", "#", "***", "---", "===", "=", "_", "|"),
        *("\n|---|\n", "\u2028", "`", "``", "```", "```py", "\n```\n", "~~~", "~~~~", "\n~~~\n"),
        *("\\", "<!--", "-->", "<!-->", "<div>", "</div>", "<pre>", "</PRE>", "<code>", "</code>"),
        *("<?", "?>", "<!X", "<![CDATA[", "]]>", "<x:y>", "<span ", "<a b='", ' b="', "'", '"'),
        ">",
    ]
)
MARKDOWN_TEXTS = st.lists(MARKUP, max_size=16).map("".join)
QUOTING = st.sampled_from(
    [
        *("\n<thinking>\n", "<thinking>", "</thinking>", "<Vec>", "</Vec>", "<>", "</>", "<Vec/>"),
        *('"' * 3, "'" * 3, 'x = "', "'", "a: |\n", "a: >\n  ", "so::\n\n  ", "return (\n", "\n)"),
        *("<<EOF\n", "\nEOF\n", "<<x", "\nx", "\\begin{v}", "\\end{v}", "{code}", "/*", "*/"),
    ]
)
QUOTED_TEXTS = st.lists(MARKUP | QUOTING, max_size=16).map("".join)
"""Texts with tags and literals that quote."""


def delta(text: str, message_id: str = "m", **fields: Any) -> MessageDelta:
    return MessageDelta(text=text, message_id=message_id, **fields)


def part(text: str, *, message_id: str = "m") -> list[Event]:
    """Return a part of a message, in one delta and then whole."""
    return [delta(text, message_id), message(text, message_id)]


def parts(*texts: str, in_letters: bool) -> list[Event]:
    """Return the parts of one message, each whole, or in deltas of a letter before."""
    events: list[Event] = []
    for text in texts:
        events += [*map(delta, text), message(text)] if in_letters else [message(text)]
    return events


def message(text: str, message_id: str | None = "m", **fields: Any) -> AgentMessage:
    return AgentMessage(text=text, message_id=message_id, **fields)


def steps(events: Sequence[Event], **options: Any) -> list[list[Event]]:
    """Return the events emitted at each source event, and at the end."""
    source: Subject[Event] = Subject()
    seen: list[list[Event]] = []
    source.pipe(extract_markers(TAGS, **options)).subscribe(lambda event: seen[-1].append(event))
    for event in events:
        seen.append([])
        source.on_next(event)
    seen.append([])
    source.on_completed()
    assert not source.observers
    return seen


def flat(steps: Iterable[list[Event]]) -> list[Event]:
    return [*chain.from_iterable(steps)]


def cut(*events: Event, **options: Any) -> list[Event]:
    return flat(steps(events, **options))


def shown(events: Sequence[Event]) -> list[str]:
    """Markers as `Tag(content)`, deltas as `+text`, texts as they are, others as their tag."""
    return [
        f"{e.tag}({e.content})"
        if isinstance(e, LlmMarkerEvent)
        else f"+{e.text}"
        if isinstance(e, MessageDelta)
        else e.text
        if isinstance(e, AgentMessage)
        else e.tag
        for e in events
    ]


def messages_and_markers(events: Sequence[Event]) -> list[Event]:
    return [e for e in events if isinstance(e, AgentMessage | LlmMarkerEvent)]


def split(text: str, places: Sequence[int]) -> list[str]:
    """Return the text in pieces, the places counted modulo its length."""
    ends = sorted({place % (len(text) + 1) for place in places} | {0, len(text)})
    return [text[a:b] for a, b in pairwise(ends)]
