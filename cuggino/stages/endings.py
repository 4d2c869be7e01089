"""The terminal markers of a stage: which ones count, and the prompt that asks for one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cuggino.domain import most_cautious
from cuggino.events import ContradictoryMarkers, Event, LlmMarkerEvent, is_llm_terminal_marker_event
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
