"""`extract_markers`: from what an agent writes to what it declares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from reactivex import Observable, abc

from cuggino.events import (
    AgentMessage,
    Event,
    LlmMarkerEvent,
    MessageDelta,
    PingEvent,
    SessionEnded,
    Thinking,
)
from cuggino.operators.marker_draft import Draft, Piece
from cuggino.operators.marker_pairs import MarkerPair, find_markers, tag_pattern

MarkerTags = Mapping[str, Callable[[str], Event]]
"""The tags that a role may emit, each with the maker of its event from the tag's content."""


def marker_tags(*markers: type[LlmMarkerEvent]) -> MarkerTags:
    """The table of these markers: `marker_tags(Note, Done)` knows `<NOTE>` and `<DONE>`."""

    def maker(cls: type[LlmMarkerEvent]) -> Callable[[str], Event]:
        return lambda content: cls(content=content)

    return {cls.tag_name(): maker(cls) for cls in markers}


def extract_markers(
    tags: MarkerTags, *, at_end: Callable[[Event], bool] = lambda _marker: False
) -> Callable[[Observable[Event]], Observable[Event]]:
    """Cut every `AgentMessage` into text and markers, in reading order (CUG-010 to CUG-015).

    ::

        source:             ----"Look. <NOTE>n</NOTE> On."----|
        extract_markers:    ----("Look." Note(n) "On.")-------|

        source:             -d(Look. <NO)-d(TE>n</NOTE> On.)---"Look. <NOTE>n</NOTE> On."-|
        extract_markers:    -d(Look.)-("Look." Note(n) d(On.))-"On."----------------------|

    Pieces are trimmed and empty ones dropped; other events pass unchanged. Only the tags given
    are recognised. Text inside Markdown fences and code spans is never a tag. The first closing
    tag closes; of several opening tags of one name the nearest to it counts; a different tag
    inside a marker is its content. A marker lives in one message: parts of one message (the same
    `message_id`, one after the other) are joined, and what is unfinished when the message ends is
    text. A sub-agent's text is never searched. The work is linear in the length of a message.

    Of a message that comes in deltas (`MessageDelta`) as well, a marker is emitted as soon as its
    closing tag is complete, and the text before it with it; at the `AgentMessage` follows the rest.
    Texts and markers are the same in the same order as without deltas, however the text is split,
    and none comes later. A marker waits where what follows could still make it text or the content
    of another one, at most for the end of its part: while an earlier tag of another name is open;
    behind backticks without their counterpart, until it comes or the paragraph ends; in a line
    that begins with a fence of backticks, until the line ends. Those that `at_end` accepts wait
    for the end of the part in any case, and all behind them.

    The deltas that come out are those of the text: without markers, cut and trimmed like the
    pieces, with the end of a piece at its `AgentMessage` at the latest. What may be the beginning
    of a marker is held back.

    A message that was taken back (another one begins before its `AgentMessage` has come) keeps
    what was emitted of it; a marker that is said again, word for word, in the message that replaces
    it is not emitted again.
    """

    def operator(source: Observable[Event]) -> Observable[Event]:
        def subscribe(
            observer: abc.ObserverBase[Event], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            reader = _Reader(tags, at_end)

            def on_next(event: Event) -> None:
                for item in reader.read(event):
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

        return Observable(subscribe)

    return operator


class _Reader:
    """Keeps the undecided end of the present message: an opening tag or fence still open."""

    def __init__(self, tags: MarkerTags, at_end: Callable[[Event], bool]) -> None:
        self._tags = tags
        self._pattern = tag_pattern(tags)
        self._at_end = at_end
        self._message: AgentMessage | None = None
        self._held = ""
        self._shown = 0
        """How many characters of that came out as deltas."""
        self._draft: Draft | None = None
        """The part that is being written."""
        self._taken_back: Counter[Piece] = Counter()
        """The markers that were emitted of messages that were taken back, until one is complete."""
        self._is_complete = False
        """The present message has a complete part."""

    def read(self, event: Event) -> list[Event]:
        """What is to be emitted for the event."""
        match event:
            case AgentMessage(parent_tool_use_id=None):
                return self._read_part(event)
            case MessageDelta(parent_tool_use_id=None):
                return self._read_delta(event)
            case PingEvent() | MessageDelta() | Thinking():
                return [event]
            case SessionEnded():
                return [*self.end(), event]
            case _ if self._draft is not None:
                return [event]  # of somebody else, or the part was taken back: that will show
            case _:
                return [*self._end_message(), event]

    def end(self) -> list[Event]:
        """What is left when nothing follows."""
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
                self._tags,
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
        pairs, undecided = find_markers(text, self._pattern)
        # A part without an id is a whole message: nothing can follow that would finish it.
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
        self._held, self._shown = "", 0
        pieces = _cut(text, find_markers(text, self._pattern)[0]) if text else []
        if early is None:
            return self._left(shown, pieces) + self._events(pieces)
        return self._events(_without(pieces, early))

    def _left(self, shown: str, pieces: Sequence[Piece]) -> list[Event]:
        """What is left to be shown of the first piece, whose beginning was shown as held text."""
        shown = shown.strip()
        if not shown or not pieces or self._message is None or self._message.message_id is None:
            return []
        left = pieces[0].text.removeprefix(shown) if not pieces[0].tag else ""
        return [MessageDelta(text=left, message_id=self._message.message_id)] if left else []

    def _take_back(self) -> list[Event]:
        """The part that was being written will not be complete."""
        draft, self._draft = self._draft, None
        if draft is None:
            return []
        told = self._end_message(draft.early)
        self._taken_back.update({piece: n for piece, n in draft.early.items() if piece.tag})
        return told

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


def _cut(text: str, pairs: Iterable[MarkerPair]) -> list[Piece]:
    """The text as pieces, trimmed, without empty ones."""
    pieces: list[Piece] = []
    position = 0
    for pair in pairs:
        pieces.append(Piece("", text[position : pair.start].strip()))
        pieces.append(Piece(pair.tag, text[pair.content_start : pair.content_end].strip()))
        position = pair.end
    pieces.append(Piece("", text[position:].strip()))
    return [piece for piece in pieces if piece.tag or piece.text]


def _without(pieces: Iterable[Piece], early: Counter[Piece]) -> list[Piece]:
    """Those that were not told early."""
    told = Counter(early)
    left: list[Piece] = []
    for piece in pieces:
        if told[piece] > 0:
            told[piece] -= 1
        else:
            left.append(piece)
    return left
