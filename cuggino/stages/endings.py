"""The terminal markers of a stage: which ones count, and the prompt that asks for one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from cuggino.domain import most_cautious
from cuggino.events import (
    AgentMessage,
    Approved,
    ContradictoryMarkers,
    CostUnknown,
    Event,
    LlmMarkerEvent,
    MessageDelta,
    PingEvent,
    SessionEnded,
    Thinking,
    UsageUpdate,
    is_llm_terminal_marker_event,
)
from cuggino.gate import LastWord
from cuggino.operators.markers import LineTags, MarkerTags


def terminal_tags(tags: MarkerTags) -> list[str]:
    """Return the tags that end a stage."""
    return [tag for tag, make in tags.items() if is_llm_terminal_marker_event(make(""))]


def reminder(tags: MarkerTags) -> str:
    """Return the prompt for an agent that ended without a terminal marker."""
    wanted = ", ".join(f"<{tag}>...</{tag}>" for tag in terminal_tags(tags))
    return (
        "You ended without one of the markers of your role, so nobody knows how your work "
        "stands. A marker counts only at the very beginning of a line, outside of code, quotes, "
        f"lists and HTML. Answer now with exactly one of these, and nothing before it: {wanted}."
    )


def endings_of(marker: Event, tags: MarkerTags) -> Iterator[Event]:
    """Yield the terminal marker, and any more cautious ones that start a line of its content."""
    yield marker
    if not isinstance(marker, LlmMarkerEvent) or "<" not in marker.content:
        return
    text = marker.content
    lines, found = LineTags(frozenset(terminal_tags(tags))).feed(text)
    for tag in [*found, *lines.finish()[1]]:
        if not tag.closes and tag.after is None:
            inner = tags[tag.name](text[tag.end :].partition(f"</{tag.name}>")[0].strip())
            if most_cautious([marker, inner]) is inner:
                yield inner


def contradictions(phase: str, endings: Sequence[Event]) -> Iterator[ContradictoryMarkers]:
    """Yield the event that reports different terminal markers of one session."""
    markers = [ending for ending in endings if isinstance(ending, LlmMarkerEvent)]
    if len({type(marker) for marker in markers}) > 1:
        yield ContradictoryMarkers(
            phase=phase,
            counted=most_cautious(markers).tag_name(),
            markers=tuple((marker.tag_name(), marker.content) for marker in markers),
        )


class Statement(NamedTuple):
    """What a session says around its last approval: a fold over its events."""

    is_approved: bool = False
    before: str = ""
    """The text directly before the approval."""
    after: str = ""
    """All text after it."""
    error: str = ""
    exit_code: int | None = None
    is_cut: bool = False

    def add(self, event: Event) -> Statement:
        """Return the statement after the next event of the session."""
        match event:
            case Approved():
                return self._replace(is_approved=True, after="")
            case AgentMessage(parent_tool_use_id=None, text=text) if self.is_approved:
                return self._replace(after=f"{self.after}\n{text}".strip())
            case AgentMessage(parent_tool_use_id=None, text=text):
                return self._replace(before=text)
            case SessionEnded(outcome=outcome):
                ended = self._replace(exit_code=event.exit_code, is_cut=event.truncated)
                return ended if outcome == "completed" else ended.failed(outcome)
            case MessageDelta() | PingEvent() | Thinking() | UsageUpdate() | CostUnknown():
                return self
            case _ if self.is_approved:
                return self
            case _:
                return self._replace(before="")

    def failed(self, error: object) -> Statement:
        """Return the statement after the session has failed."""
        return self._replace(error=str(error)) if self.is_approved else self

    @property
    def has_failed(self) -> bool:
        """True if the session failed after its approval: asking it again changes nothing."""
        return bool(self.error or self.exit_code)

    def last_word(self, approvals: Iterable[Approved]) -> LastWord:
        return LastWord(
            contents=tuple(approval.content for approval in approvals),
            before=self.before,
            after=self.after,
            error=self.error,
            exit_code=self.exit_code,
            is_cut=self.is_cut,
        )
