"""`extract_markers`: from what an agent writes to what it declares."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from reactivex import Observable, abc

from cuggino.events import AgentMessage, Event, LlmMarkerEvent, MessageDelta, PingEvent, Thinking
from cuggino.operators.code_regions import code_regions

MarkerTags = Mapping[str, Callable[[str], Event]]
"""The tags that a role may emit, each with the maker of its event from the tag's content."""


def marker_tags(*markers: type[LlmMarkerEvent]) -> MarkerTags:
    """The table of these markers: `marker_tags(Note, Done)` knows `<NOTE>` and `<DONE>`."""

    def maker(cls: type[LlmMarkerEvent]) -> Callable[[str], Event]:
        return lambda content: cls(content=content)

    return {cls.tag_name(): maker(cls) for cls in markers}


def extract_markers(tags: MarkerTags) -> Callable[[Observable[Event]], Observable[Event]]:
    """Cut every `AgentMessage` into text and markers, in reading order (CUG-010 to CUG-015).

    ::

        source:             ----"Look. <NOTE>n</NOTE> On."----|
        extract_markers:    ----("Look." Note(n) "On.")-------|

    Pieces are trimmed and empty ones dropped; other events pass unchanged. Only the tags given
    are recognised. Text inside Markdown fences and code spans is never a tag. The first closing
    tag closes; of several opening tags of one name the nearest to it counts; a different tag
    inside a marker is its content. A marker lives in one message: parts of one message (the same
    `message_id`, one after the other) are joined, and what is unfinished when the message ends is
    text. A sub-agent's text is never searched. The work is linear in the length of a message.
    """

    def operator(source: Observable[Event]) -> Observable[Event]:
        def subscribe(
            observer: abc.ObserverBase[Event], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            reader = _Reader(tags)

            def on_next(event: Event) -> None:
                if isinstance(event, AgentMessage) and event.parent_tool_use_id is None:
                    found = reader.read(event)
                elif isinstance(event, PingEvent | MessageDelta | Thinking):
                    found = [event]
                else:
                    found = [*reader.end_message(), event]
                for item in found:
                    observer.on_next(item)

            def end(then: Callable[[], None]) -> None:
                for item in reader.end_message():
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

    def __init__(self, tags: MarkerTags) -> None:
        self._tags = tags
        self._pattern = re.compile(f"<(/?)({'|'.join(map(re.escape, tags)) or '(?!)'})>")
        self._message: AgentMessage | None = None
        self._held = ""

    def read(self, part: AgentMessage) -> list[Event]:
        before: list[Event] = []
        if self._message is None or part.message_id is None or not self._continues(part):
            before = self.end_message()
        self._message = part
        text = self._held + part.text
        pairs, undecided = find_markers(text, self._pattern)
        # A part without an id is a whole message: nothing can follow that would finish it.
        keep = undecided if part.message_id is not None else len(text)
        self._held = text[keep:]
        return [*before, *self._cut(text[:keep], [pair for pair in pairs if pair.start < keep])]

    def end_message(self) -> list[Event]:
        text, self._held = self._held, ""
        return self._cut(text, find_markers(text, self._pattern)[0]) if text else []

    def _continues(self, part: AgentMessage) -> bool:
        return self._message is not None and part.message_id == self._message.message_id

    def _cut(self, text: str, pairs: list[MarkerPair]) -> list[Event]:
        found: list[Event] = []
        position = 0
        for pair in pairs:
            found += self._text(text[position : pair.start])
            found.append(self._tags[pair.tag](text[pair.content_start : pair.content_end].strip()))
            position = pair.end
        return found + self._text(text[position:])

    def _text(self, piece: str) -> list[Event]:
        piece = piece.strip()
        if not piece or self._message is None:
            return []
        return [self._message.model_copy(update={"text": piece})]


@dataclass(frozen=True, slots=True)
class MarkerPair:
    """An opening and a closing tag that belong together, as offsets into the text."""

    tag: str
    start: int
    content_start: int
    content_end: int
    end: int


def find_markers(text: str, pattern: re.Pattern[str]) -> tuple[list[MarkerPair], int]:
    """The outermost tag pairs in order, and from where on the text is still undecided.

    Undecided is the text from the first opening tag without a closing one, or from an unclosed
    code fence or a half-written tag at the very end; without any of these it is the text's length.
    """
    opened: dict[str, re.Match[str]] = {}
    candidates: list[MarkerPair] = []
    for tag in _tags_outside_code(text, pattern):
        name = tag.group(2)
        if not tag.group(1):
            opened[name] = tag
        elif name in opened:
            opening = opened.pop(name)
            candidates.append(
                MarkerPair(name, opening.start(), opening.end(), tag.start(), tag.end())
            )
    candidates.sort(key=lambda pair: pair.start)
    pairs: list[MarkerPair] = []
    for pair in candidates:
        if not pairs or pair.start >= pairs[-1].end:
            pairs.append(pair)
    undecided = _open_end(text)
    for opening in opened.values():
        if not any(pair.start < opening.start() < pair.end for pair in pairs):
            undecided = min(undecided, opening.start())
    return pairs, undecided


def _tags_outside_code(text: str, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    matches = pattern.finditer(text)
    tag = next(matches, None)
    if tag is None:
        return
    for start, end, _ in code_regions(text):
        while tag is not None and tag.start() < start:
            yield tag
            tag = next(matches, None)
        while tag is not None and tag.start() < end:
            tag = next(matches, None)
    while tag is not None:
        yield tag
        tag = next(matches, None)


_HALF_TAG = re.compile(r"</?[A-Z_]{0,64}$")


def _open_end(text: str) -> int:
    """Where an unclosed fence or a half-written tag begins; the length of the text without one."""
    half = _HALF_TAG.search(text, max(0, len(text) - 70))
    end = half.start() if half else len(text)
    return min([end, *(region.start for region in code_regions(text) if not region.closed)])
