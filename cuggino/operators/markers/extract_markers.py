"""`extract_markers`: the markers in an agent's text as events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache

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
from cuggino.operators.markers.draft import Draft, Piece
from cuggino.operators.markers.line_tags import LineTags
from cuggino.operators.markers.open_tags import Tag
from cuggino.operators.markers.pairs import MarkerPair, OpenMarkers, find_markers

MarkerTags = Mapping[str, Callable[[str], Event]]
"""The tags that a role may emit, each with a function from its content to its event."""


def marker_tags(*markers: type[LlmMarkerEvent]) -> MarkerTags:
    """Return the table of these markers: `marker_tags(Note, Done)` has `<NOTE>` and `<DONE>`."""

    def maker(cls: type[LlmMarkerEvent]) -> Callable[[str], Event]:
        return lambda content: cls(content=content)

    return {cls.tag_name(): maker(cls) for cls in markers}


def extract_markers(
    tags: MarkerTags,
    *,
    at_line_start: Collection[str] = (),
    at_end: Callable[[Event], bool] = lambda _marker: False,
) -> Callable[[Observable[Event]], Observable[Event]]:
    """Split every `AgentMessage` into text and markers, in reading order (CUG-010 to CUG-015).

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
    `cuggino help markers` has all the rules.

    For a message that also arrives in deltas (`MessageDelta`), a marker and the text before it are
    emitted as soon as the closing tag is complete, and the rest with the `AgentMessage`. The pieces
    and their order are the same as without deltas. A marker is delayed, at most to the end of its
    part, while the text that follows could still turn it into text or content: while an earlier tag
    of another name is open; after unmatched backticks, until the paragraph ends; in a line that
    begins with a backtick fence, until the line ends; one of `at_line_start`, and all after it,
    until its paragraph ends. A marker that `at_end` accepts, and all after it, wait for the end of
    the part.

    Deltas come out trimmed and without markers. A possible beginning of a marker is held back.

    A message that is discarded (another one begins before its `AgentMessage`) keeps what was
    emitted of it; a marker repeated verbatim in its replacement is not emitted again. (RxPY's `map`
    and `scan` see one event; a marker may span several.)
    """
    line_names = [tag for tag in tags if tag in at_line_start]
    lines = LineTags(line_names) if line_names else None

    def operator(source: Observable[Event]) -> Observable[Event]:
        def subscribe(
            observer: Subscription[Event], scheduler: abc.SchedulerBase | None
        ) -> abc.DisposableBase:
            reader = _Reader(tags, at_end, lines)

            def on_next(event: Event) -> None:
                try:
                    items = reader.read(event)
                except Exception as error:  # of the function of a tag
                    observer.on_error(error)
                    return
                for item in items:
                    observer.on_next(item)

            def end(then: Callable[[], None]) -> None:
                for item in reader.end():
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


@cache
def _is_read(cls: type[Event]) -> bool:
    """Return whether events of this class are read; a check of each event would be slow."""
    return issubclass(cls, AgentMessage | MessageDelta | SessionEnded)


class _Reader:
    """The undecided end of the current message: an opening tag or fence still open."""

    def __init__(
        self, tags: MarkerTags, at_end: Callable[[Event], bool], lines: LineTags | None
    ) -> None:
        self._tags = tags
        self._names = [tag for tag in tags if lines is None or tag not in lines.names]
        """The tags that count anywhere outside code."""
        self._lines = lines.fork() if lines is not None else None
        """Has read the complete parts of the message."""
        self._line_tags: list[Tag] = []
        """The tags that it found in `_held`, as offsets into the message."""
        self._at_end = at_end
        self._message: AgentMessage | None = None
        self._held = ""
        self._shown = 0
        """Number of its characters that were emitted as deltas."""
        self._draft: Draft | None = None
        """The part that is being written."""
        self._taken_back: Counter[Piece] = Counter()
        """The emitted markers of discarded messages, until a message is complete."""
        self._is_complete = False
        """The current message has a complete part."""
        self._has_failed = False
        """The session has ended with an error."""

    def read(self, event: Event) -> list[Event]:
        """Return what to emit for the event."""
        if self._has_failed:
            self._has_failed = not (begins_session(event) or _is_success(event))
            return [event]
        if isinstance(event, PingEvent | Thinking):  # they do not affect a message
            return [event]
        if _is_read(type(event)):
            match event:
                case AgentMessage(parent_tool_use_id=None):
                    return self._read_part(event)
                case MessageDelta(parent_tool_use_id=None):
                    return self._read_delta(event)
                case MessageDelta():
                    return [event]
                case SessionEnded():
                    self._has_failed = not _is_success(event)
                    return [*self.end(), event]
                case _:
                    pass
        if self._draft is not None:
            return [event]  # of a sub-agent, or the part was discarded: the next event shows
        return [*self._end_message(), event]

    def end(self) -> list[Event]:
        """Return the remaining events at the end of the stream."""
        return [*self._take_back(), *self._end_message()]

    def _read_delta(self, delta: MessageDelta) -> list[Event]:
        before: list[Event] = []
        if self._draft is not None and self._draft.message_id != delta.message_id:
            before = self._take_back()
        if self._draft is None:
            if self._message is None or self._message.message_id != delta.message_id:
                before += self._end_message()
            self._message = AgentMessage(text="", message_id=delta.message_id)
            self._draft = Draft(
                delta.message_id,
                OpenMarkers(
                    self._names,
                    self._lines.fork() if self._lines is not None else None,
                    held=self._held,
                    known=self._held_tags(),
                ),
                lambda piece: self._events([piece]),
                lambda marker: self._at_end(self._tags[marker.tag](marker.text)),
                held=self._held,
                shown=self._shown,
            )
        return before + self._draft.write(delta.text)

    def _read_part(self, part: AgentMessage) -> list[Event]:
        before: list[Event] = []
        if self._draft is not None and self._draft.message_id != part.message_id:
            before = self._take_back()
        if part.message_id is None or not self._continues(part):
            before += self._end_message()
        draft, self._draft = self._draft, None
        self._message, self._is_complete = part, True
        text = self._held + part.text
        pairs, undecided = find_markers(text, self._names, self._tags_with(part.text))
        # A part without an id is a whole message: nothing can follow that completes it.
        keep = undecided if part.message_id is not None else len(text)
        shown = self._held[: self._shown]
        self._held, self._shown = text[keep:], 0
        pieces = _cut(text[:keep], [pair for pair in pairs if pair.start < keep])
        if draft is None:
            before += self._left(shown, pieces)
        else:
            pieces = _without(pieces, draft.early)
            if draft.wrote(text):
                self._shown = max(0, draft.seen - keep)
                before += draft.finish(pieces[0]) if pieces else []
        return before + self._events(pieces)

    def _end_message(self, early: Counter[Piece] | None = None) -> list[Event]:
        if self._is_complete:
            self._is_complete = False
            self._taken_back.clear()
        text, shown = self._held, self._held[: self._shown]
        line_tags = self._held_tags()
        self._held, self._shown = "", 0
        if self._lines is not None and self._lines.length:
            self._lines, self._line_tags = self._lines.restarted(), []
        if not text:
            return []
        pieces = _cut(text, find_markers(text, self._names, line_tags)[0])
        if early is None:
            return self._left(shown, pieces) + self._events(pieces)
        return self._events(_without(pieces, early))

    def _tags_with(self, text: str) -> list[Tag]:
        """Read the text after `_held`; return the line tags of both."""
        held = self._held_tags()
        if self._lines is None:
            return held
        base = self._lines.length - len(self._held)
        self._line_tags += [*self._lines.feed(text), *self._lines.finish()]
        return [tag.shifted(-base) for tag in self._line_tags]

    def _held_tags(self) -> list[Tag]:
        """Return the line tags in `_held`, as offsets into it."""
        if self._lines is None or not self._line_tags:
            return []
        base = self._lines.length - len(self._held)
        self._line_tags = [tag for tag in self._line_tags if tag.start >= base]
        return [tag.shifted(-base) for tag in self._line_tags]

    def _left(self, shown: str, pieces: Sequence[Piece]) -> list[Event]:
        """Return the rest of the first piece after the part emitted as a delta."""
        shown = shown.strip()
        if not shown or not pieces or self._message is None or self._message.message_id is None:
            return []
        left = pieces[0].text.removeprefix(shown) if not pieces[0].tag else ""
        return [MessageDelta(text=left, message_id=self._message.message_id)] if left else []

    def _take_back(self) -> list[Event]:
        """Discard the part that was being written."""
        draft, self._draft = self._draft, None
        if draft is None:
            return []
        left = self._end_message(draft.early)
        self._taken_back.update({piece: n for piece, n in draft.early.items() if piece.tag})
        return left

    def _continues(self, part: AgentMessage) -> bool:
        return self._message is not None and part.message_id == self._message.message_id

    def _events(self, pieces: Iterable[Piece]) -> list[Event]:
        found: list[Event] = []
        for piece in pieces:
            if self._taken_back[piece] > 0:
                self._taken_back[piece] -= 1
            elif piece.tag:
                found.append(self._tags[piece.tag](piece.text))
            elif self._message is not None:
                found.append(self._message.model_copy(update={"text": piece.text}))
        return found


def _is_success(event: Event) -> bool:
    return isinstance(event, SessionEnded) and event.outcome == "completed"


def _cut(text: str, pairs: Iterable[MarkerPair]) -> list[Piece]:
    """Split the text into trimmed pieces, without empty ones."""
    pieces: list[Piece] = []
    position = 0
    for pair in pairs:
        pieces.append(Piece("", text[position : pair.start].strip()))
        pieces.append(Piece(pair.tag, text[pair.content_start : pair.content_end].strip()))
        position = pair.end
    pieces.append(Piece("", text[position:].strip()))
    return [piece for piece in pieces if piece.tag or piece.text]


def _without(pieces: Iterable[Piece], early: Counter[Piece]) -> list[Piece]:
    """Return the pieces that were not emitted early."""
    emitted = Counter(early)
    left: list[Piece] = []
    for piece in pieces:
        if emitted[piece] > 0:
            emitted[piece] -= 1
        else:
            left.append(piece)
    return left
