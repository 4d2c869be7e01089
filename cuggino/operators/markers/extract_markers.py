"""`extract_markers`: the markers in an agent's text as events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from reactivex import Observable, abc

from cuggino.domain import begins_session
from cuggino.events import (
    AgentMessage,
    Event,
    LlmMarkerEvent,
    MessageDelta,
    PingEvent,
    SessionEnded,
    Thinking,
)
from cuggino.operators.managed import Subscription, managed
from cuggino.operators.markers.reading import Piece, Reading
from cuggino.operators.markers.tags import Chain, FreeTags, LineTags, joined, unrolled

MarkerTags = Mapping[str, Callable[[str], Event]]
"""The tags that a role may emit, each with a function from its content to its event."""


def marker_tags(*markers: type[LlmMarkerEvent]) -> MarkerTags:
    """Return the table of these markers: `marker_tags(Note, Done)` has `<NOTE>` and `<DONE>`."""
    for marker in markers:
        _require_marker(marker)

    def maker(cls: type[LlmMarkerEvent]) -> Callable[[str], Event]:
        return lambda content: cls(content=content)

    return {cls.tag_name(): maker(cls) for cls in markers}


def extract_markers(
    tags: MarkerTags,
    *,
    at_line_start: Collection[str] = (),
    at_end: Callable[[Event], bool] = lambda _marker: False,
) -> Callable[[Observable[Event]], Observable[Event]]:
    """Split every `AgentMessage` into text and markers, in reading order.

    ::

        source:             -m-|            m: "Look. <NOTE>n</NOTE> On."
        extract_markers:    -(lNo)-|        l: "Look.", N: Note("n"), o: "On."

        source:             -d-e-m-|        d, e: m in deltas, cut within the tag
        extract_markers:    -p-(lNq)-o-|    p, q: deltas of l and o

    Pieces are trimmed and empty ones dropped; other events pass unchanged. Only the given tags are
    recognized, and never inside Markdown fences and code spans. A marker ends at the first closing
    tag; of several opening tags of that name, the nearest counts; a different tag inside a marker
    is content. Consecutive parts of one message (the same `message_id`) are joined; an unfinished
    marker at the end of the message is text. The text of a sub-agent is not searched, nor is
    anything after a `SessionEnded` with an error. The work is linear in the length of a message.

    A tag in `at_line_start` counts only where it begins a line of Markdown text, or follows such a
    marker: after at most three spaces, and outside code (indented code too), block quotes and HTML.
    Nor does it count inside another tag (`<thinking>`), or in code that is shown without a fence.
    `cuggino help markers` has all the rules.

    For a message that also arrives in deltas (`MessageDelta`), a marker and the text before it are
    emitted as soon as the closing tag is complete, and the rest with the `AgentMessage`. The pieces
    and their order are the same as without deltas. A marker is delayed, at most to the end of its
    part, while the text that follows could still turn it into text or content: while an earlier tag
    of another name is open; after unmatched backticks, until the paragraph ends; in a line that
    begins with a backtick fence, until the line ends; one of `at_line_start`, and all after it,
    until its paragraph ends, or its part where something before it may quote it. A marker that
    `at_end` accepts, and all after it, wait for the end of the part.

    Deltas come out trimmed and without markers. A possible beginning of a marker is held back.

    A message that is discarded (another one begins before its `AgentMessage`) keeps what was
    emitted of it; a marker repeated verbatim in its replacement is not emitted again. (RxPY's `map`
    and `scan` see one event; a marker may span several.)
    """
    if not isinstance(tags, Mapping):
        raise TypeError(f"extract_markers() needs a table of tags, marker_tags(Done), not {tags!r}")
    if isinstance(at_line_start, str):
        raise TypeError(f"at_line_start needs a collection of tags, not {at_line_start!r}")
    line_names = frozenset(at_line_start).intersection(tags)
    free_names = frozenset(tags) - line_names
    fresh = Reading(FreeTags(free_names), LineTags(line_names, others=free_names))
    rules = _Rules(tags, at_end, fresh)

    def operator(source: Observable[Event]) -> Observable[Event]:
        def subscribe(
            observer: Subscription[Event], scheduler: abc.SchedulerBase | None
        ) -> abc.DisposableBase:
            state = _State(rules.fresh)

            def on_next(event: Event) -> None:
                nonlocal state
                try:
                    state, events = _read(rules, state, event)
                except Exception as error:  # of the function of a tag
                    observer.on_error(error)
                    return
                for item in events:
                    observer.on_next(item)

            @observer.safely
            def end(then: Callable[[], None]) -> None:
                for item in _end(rules, state)[1]:
                    observer.on_next(item)
                then()

            return source.subscribe(
                on_next,
                lambda error: end(lambda: observer.on_error(error)),
                lambda: end(observer.on_completed),
                scheduler=scheduler,
            )

        return managed(subscribe)

    return operator


def _require_marker(marker: object) -> None:
    if not isinstance(marker, type) or not issubclass(marker, LlmMarkerEvent):
        raise TypeError(f"marker_tags() needs classes of markers, such as Done, not {marker!r}")


class _Rules(NamedTuple):
    tags: MarkerTags
    at_end: Callable[[Event], bool]
    fresh: Reading
    """The reading of a message that has not begun."""


class _Draft(NamedTuple):
    """A part that is being written. Deltas are trimmed as the piece will be."""

    message_id: str
    reading: Reading
    seen: int
    """The end of the text that was emitted, if only as white space that waits."""
    unseen: Chain[str] = None
    """The text from there on."""
    shown: int = 0
    """Number of characters that were emitted of the current piece."""
    space: Chain[str] = None
    """White space after them, emitted when more text follows."""
    written: Chain[str] = None
    """The deltas."""
    early: Chain[Piece] = None
    """The pieces emitted before the part is complete."""
    waiting: Chain[Piece] = None
    """The pieces from the first marker on that waits for the end of the part."""


class _State(NamedTuple):
    """The current message."""

    reading: Reading
    """Its complete parts."""
    shown: int = 0
    """Number of characters that were emitted as deltas of what they have left undecided."""
    message: AgentMessage | None = None
    """The last part, or one with the id of the part that is being written."""
    draft: _Draft | None = None
    taken_back: Mapping[Piece, int] = MappingProxyType({})
    """The emitted markers of discarded messages, until a message is complete."""
    is_complete: bool = False
    """The message has a complete part."""
    has_failed: bool = False
    """The session has ended with an error."""


_Step = tuple[_State, list[Event]]
"""The state after an event, and what to emit for it."""


@cache
def _is_read(cls: type[Event]) -> bool:
    """Return whether events of this class are read; a check of each event would be slow."""
    return issubclass(cls, AgentMessage | MessageDelta | SessionEnded | PingEvent | Thinking)


def _read(rules: _Rules, state: _State, event: Event) -> _Step:
    if state.has_failed:
        goes_on = begins_session(event) or _is_success(event)
        return state._replace(has_failed=not goes_on), [event]
    if _is_read(type(event)):
        match event:
            case MessageDelta(parent_tool_use_id=None):
                return _read_delta(rules, state, event)
            case AgentMessage(parent_tool_use_id=None):
                return _read_part(rules, state, event)
            case SessionEnded():
                state, left = _end(rules, state)
                return state._replace(has_failed=not _is_success(event)), [*left, event]
            case MessageDelta() | PingEvent() | Thinking():  # they do not affect a message
                return state, [event]
            case _:
                pass
    if state.draft is not None:
        return state, [event]  # of a sub-agent, or the part was discarded: the next event shows
    state, left = _end_message(rules, state)
    return state, [*left, event]


def _read_delta(rules: _Rules, state: _State, delta: MessageDelta) -> _Step:
    draft, before = state.draft, list[Event]()
    if draft is None or draft.message_id != delta.message_id:
        state, before = _take_back(rules, state)
        if state.message is None or state.message.message_id != delta.message_id:
            state, left = _end_message(rules, state)
            before += left
        state = state._replace(message=AgentMessage(text="", message_id=delta.message_id))
        reading, held = state.reading, state.reading.held
        emitted, unseen = held[: state.shown], (None, held[state.shown :])
        space = (None, emitted[len(emitted.rstrip()) :])
        seen, shown = reading.start + state.shown, len(emitted.strip())
        draft = _Draft(delta.message_id, reading, seen, unseen, shown, space)
    state, events = _write(rules, state, draft, delta.text)
    return state, before + events if before else events


def _write(rules: _Rules, state: _State, draft: _Draft, text: str) -> _Step:
    """Add text; return what can be emitted now, each piece after its last delta."""
    message_id, reading, seen, unseen, shown, space, written, early, waiting = draft
    start = reading.start
    reading, found = reading.feed(text)
    unseen = (unseen, text) if unseen is not None else (None, text)
    events: list[Event] = []

    def see(text: str) -> None:
        nonlocal shown, space
        words = text.rstrip()
        if words:
            new = joined(space) + words if shown else words.lstrip()
            shown += len(new)
            space = (None, text[len(words) :]) if len(text) > len(words) else None
            events.append(MessageDelta(text=new, message_id=message_id))
        elif shown:
            space = (space, text)

    for marker in found:
        if waiting is None:
            see(marker.before[seen - start :])
        if waiting is not None or rules.at_end(_event(rules, marker.piece)):
            for piece in marker.pieces():
                waiting = (waiting, piece)
            continue
        for piece in marker.pieces():
            early = (early, piece)
            state, new = _emit(rules, state, [piece])
            events += new
        start = seen = marker.end
        shown, space, unseen = 0, None, reading.text
    until = int(reading.plain_until)
    if waiting is None and until > seen:
        rest = joined(unseen)
        see(rest[: until - seen])
        unseen = (None, rest[until - seen :]) if until - seen < len(rest) else None
        seen = until
    written = (written, text)
    draft = _Draft(message_id, reading, seen, unseen, shown, space, written, early, waiting)
    before, been, message, _, taken_back, is_complete, has_failed = state
    return _State(before, been, message, draft, taken_back, is_complete, has_failed), events


def _read_part(rules: _Rules, state: _State, part: AgentMessage) -> _Step:
    events: list[Event] = []
    if state.draft is not None and state.draft.message_id != part.message_id:
        state, events = _take_back(rules, state)
    # A part without an id is a whole message: nothing can follow that completes it.
    is_last = part.message_id is None
    if is_last or state.message is None or part.message_id != state.message.message_id:
        state, left = _end_message(rules, state)
        events += left
    draft, seen = state.draft, 0
    if draft is not None and joined(draft.written) == part.text:
        pieces, reading = draft.reading.finish(is_last=is_last)
        pieces = [*unrolled(draft.waiting), *pieces]
        seen = draft.seen if draft.waiting is None else 0
        events += _rest(part, pieces, draft.shown)
    else:
        pieces, reading = state.reading.read_part(part.text, is_last=is_last)
        if draft is None:
            events += _left(state._replace(message=part), pieces)
        else:
            pieces = _without(pieces, draft.early)
    shown = max(0, seen - reading.start)
    state = _State(reading, shown, part, None, state.taken_back, is_complete=True)
    state, new = _emit(rules, state, pieces)
    return state, events + new


def _end(rules: _Rules, state: _State) -> _Step:
    """End the message; what is left of it is text."""
    state, taken_back = _take_back(rules, state)
    state, left = _end_message(rules, state)
    return state, taken_back + left


def _end_message(rules: _Rules, state: _State, draft: _Draft | None = None) -> _Step:
    """End the complete parts, without what the draft of another part has emitted of them."""
    if not state.is_complete:
        return state, []
    pieces = state.reading.end_message()
    before = _left(state, pieces) if draft is None else []
    if draft is not None:
        pieces = _without(pieces, draft.early)
    state = state._replace(reading=rules.fresh, shown=0, taken_back={}, is_complete=False)
    state, events = _emit(rules, state, pieces)
    return state, before + events


def _take_back(rules: _Rules, state: _State) -> _Step:
    """Discard the part that was being written."""
    draft = state.draft
    if draft is None:
        return state, []
    state, left = _end_message(rules, state._replace(draft=None), draft)
    markers = (piece for piece in unrolled(draft.early) if piece.tag)
    return state._replace(taken_back=Counter(state.taken_back) + Counter(markers)), left


def _left(state: _State, pieces: Sequence[Piece]) -> list[Event]:
    """Return the rest of the first piece after what was emitted of the undecided text."""
    if state.message is None:
        return []
    return _rest(state.message, pieces, len(state.reading.held[: state.shown].strip()))


def _rest(part: AgentMessage, pieces: Sequence[Piece], shown: int) -> list[Event]:
    """Return the rest of the first piece of text, if this much of it was emitted as deltas."""
    left = pieces[0].text[shown:] if shown and pieces and not pieces[0].tag else ""
    if not left or part.message_id is None:
        return []
    return [MessageDelta(text=left, message_id=part.message_id)]


def _emit(rules: _Rules, state: _State, pieces: Iterable[Piece]) -> _Step:
    """Return the events of the pieces, and the state without the markers that are not repeated."""
    taken_back, events = state.taken_back, list[Event]()
    for piece in pieces:
        if taken_back and taken_back.get(piece):
            taken_back = Counter(taken_back) - Counter([piece])
        elif piece.tag:
            events.append(_event(rules, piece))
        elif state.message is not None:
            is_whole = piece.text == state.message.text
            whole = state.message
            events.append(whole if is_whole else whole.model_copy(update={"text": piece.text}))
    return state._replace(taken_back=taken_back), events


def _event(rules: _Rules, marker: Piece) -> Event:
    return rules.tags[marker.tag](marker.text)


def _is_success(event: Event) -> bool:
    return isinstance(event, SessionEnded) and event.outcome == "completed"


def _without(pieces: Iterable[Piece], emitted: Chain[Piece]) -> list[Piece]:
    """Return the pieces that were not emitted."""
    counts = Counter(unrolled(emitted))
    left: list[Piece] = []
    for piece in pieces:
        if counts[piece] > 0:
            counts[piece] -= 1
        else:
            left.append(piece)
    return left
