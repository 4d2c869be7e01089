"""The transcripts of a run's stages: messages, and tool calls with their results."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from cuggino import events as ev
from cuggino.report.cutting import Cut, cut
from cuggino.report.model import Row, RowKind, Transcript
from cuggino.report.titles import shown_input
from cuggino.storage.journal import Entry, Line

HEAD: Final = 60
"""The first rows of a stage that are kept."""

TAIL: Final = 240
"""The last rows of a stage that are kept."""

PAYLOAD: Final = 4_000
"""The characters that are kept of a tool's input or result."""

MESSAGE: Final = 20_000
"""The characters that are kept of a message."""

MOST_KEPT: Final = 24_000_000
"""The characters that are kept of a whole run."""

_LEAST: Final = 200
_LEAST_ROWS: Final = 4
_LONG_LINE: Final = 16_000
"""The bytes of a line that is not kept unparsed."""


@dataclass(slots=True)
class _Stage:
    head: list[Row] = field(default_factory=list)
    tail: deque[Row] = field(default_factory=deque)
    count: int = 0
    size: int = 0
    waiting: dict[str, int] = field(default_factory=dict)
    """The rows of tool calls without a result, by the id of the call."""
    pending: deque[Line] = field(default_factory=deque)
    """The last lines, which are parsed when they are needed."""

    def find(self, n: int) -> Row | None:
        if n <= len(self.head):
            return self.head[n - 1]
        place = n - (self.count - len(self.tail)) - 1
        return self.tail[place] if 0 <= place < len(self.tail) else None

    def put(self, row: Row) -> None:
        if row.n <= len(self.head):
            self.size -= size_of(self.head[row.n - 1])
            self.head[row.n - 1] = row
        else:
            place = row.n - (self.count - len(self.tail)) - 1
            self.size -= size_of(self.tail[place])
            self.tail[place] = row
        self.size += size_of(row)

    def append(self, row: Row, head: int, tail: int) -> None:
        self.count += 1
        self.size += size_of(row)
        if len(self.head) == self.count - 1 and self.count <= head:
            self.head.append(row)
            return
        self.tail.append(row)
        if len(self.tail) > tail:
            self.size -= size_of(self.tail.popleft())

    def shrink(self, payload: int, head: int, tail: int) -> None:
        """Keep fewer rows, and less text of each."""
        del self.head[head:]
        while len(self.tail) > tail:
            self.tail.popleft()
        self.head = [_fitted(row, payload) for row in self.head]
        self.tail = deque(_fitted(row, payload) for row in self.tail)
        self.size = sum(map(size_of, (*self.head, *self.tail)))


def size_of(row: Row) -> int:
    """Return the size of a row in characters, including overhead."""
    return 300 + row.text.size + (row.output.size if row.output else 0)


def _fitted(row: Row, payload: int) -> Row:
    output = row.output.fit(payload) if row.output else row.output
    return replace(row, text=row.text.fit(payload), output=output)


class Transcripts:
    """The transcript of each attempt at a stage, for runs of any length.

    A journal may be far larger than memory: each stage keeps some first and last rows, each text
    its head and tail, and all stages together at most `most` characters.
    """

    def __init__(self, folder: str = "", *, slot: int = 0, most: int = MOST_KEPT) -> None:
        self._folder, self._slot = folder, slot
        self._most = most
        self._stages: dict[int, _Stage] = {}
        self._kept = 0
        self._payload, self._head, self._tail = PAYLOAD, HEAD, TAIL

    def add(self, entry: Entry, place: int) -> int | None:
        """Add an event of the attempt at this place; return the number of its row, if any."""
        stage = self._stages.get(place)
        if stage is None:
            stage = self._stages[place] = _Stage()
        if stage.pending:
            self.settle(place)
        before = stage.size
        changed = self._add(stage, entry)
        self._kept += stage.size - before
        if self._kept > self._most:
            self._shrink()
        return changed

    def add_line(self, line: Line, place: int) -> None:
        """Add an event as a line, which is parsed only if it is among the last ones."""
        stage = self._stages.get(place)
        if stage is None:
            stage = self._stages[place] = _Stage()
        if len(stage.head) == stage.count < self._head or len(line.raw) > _LONG_LINE:
            self.settle(place)
            with suppress(ValueError):  # broken: the journal itself says where
                self.add(line.entry(), place)
            return
        if len(stage.pending) >= 2 * self._tail:
            stage.count += stage.pending.popleft().tag != "ToolResult"
            if stage.tail:
                stage.size -= sum(map(size_of, stage.tail))
                stage.tail.clear()
        stage.pending.append(line)

    def settle(self, place: int | None) -> None:
        """Parse the last lines of a stage."""
        stage = self._stages.get(place) if place is not None else None
        if stage is None or place is None:
            return
        lines, stage.pending = stage.pending, deque()
        for line in lines:
            with suppress(ValueError):
                self.add(line.entry(), place)

    def _add(self, stage: _Stage, entry: Entry) -> int | None:
        match entry.event:
            case ev.ToolCall(name=name, input=value, id=call):
                shown = shown_input(value, folder=self._folder, slot=self._slot, most=self._payload)
                row = Row(
                    n=stage.count + 1,
                    at=entry.at,
                    kind="tool",
                    name=name,
                    what=shown.what,
                    note=shown.note,
                    form=shown.form,
                    text=shown.text,
                )
                stage.append(row, self._head, self._tail)
                if call:
                    stage.waiting[call] = row.n
                return row.n
            case ev.ToolResult(name=call, output=output, is_error=is_error):
                return self._answer(stage, entry, call, cut(output, self._payload), is_error)
            case ev.GuardDenied(tool_use_id=call, reason=reason):
                known = stage.find(stage.waiting.get(call, 0)) if call in stage.waiting else None
                if known is not None:
                    stage.put(replace(known, denied=reason[:2000]))
                return known.n if known else None
            case event:
                said = _said(event)
                if said is None:
                    return None
                kind, text = said
                if not text.strip():
                    return None
                most = MESSAGE if self._payload == PAYLOAD else self._payload
                row = Row(n=stage.count + 1, at=entry.at, kind=kind, text=cut(text.strip(), most))
                stage.append(row, self._head, self._tail)
                return row.n

    def _answer(
        self, stage: _Stage, entry: Entry, call: str, output: Cut, is_error: bool
    ) -> int | None:
        n = stage.waiting.pop(call, None)
        known = stage.find(n) if n is not None else None
        if known is None:
            return None
        seconds = max(0.0, (entry.at - known.at).total_seconds())
        stage.put(replace(known, output=output, is_error=is_error, seconds=seconds))
        return known.n

    def _shrink(self) -> None:
        """Keep half as much: less of all stages, then nothing of the oldest ones."""
        while self._kept > self._most // 2 and self._tail > _LEAST_ROWS:
            self._payload = max(self._payload // 2, _LEAST)
            self._head, self._tail = self._head // 2, max(self._tail // 2, _LEAST_ROWS)
            for stage in self._stages.values():
                stage.shrink(self._payload, self._head, self._tail)
            self._kept = sum(stage.size for stage in self._stages.values())
        for stage in self._stages.values():
            if self._kept <= self._most // 2:
                break
            self._kept -= stage.size
            stage.shrink(_LEAST, 0, 0)

    def of(self, place: int) -> Transcript:
        self.settle(place)
        stage = self._stages.get(place)
        if stage is None:
            return Transcript()
        head, tail = tuple(stage.head), tuple(stage.tail)
        if not head:
            head, tail = tail[:1], tail[1:]
        left_out = stage.count - len(head) - len(tail)
        return Transcript(head=head, left_out=left_out, tail=tail)

    def result(self, count: int) -> tuple[Transcript, ...]:
        """Return the transcripts of the first `count` attempts."""
        return tuple(map(self.of, range(count)))


def _said(event: object) -> tuple[RowKind, str] | None:
    match event:
        case ev.AgentMessage(text=text, parent_tool_use_id=None):
            return "agent", text
        case ev.AgentMessage(text=text):
            return "subagent", text
        case ev.Thinking(text=text):
            return "thinking", text
        case ev.UserMessage(text=text):
            return "user", text
        case ev.Steered(text=text):
            return "steered", text
        case ev.SystemMessage(text=text):
            return "system", text
        case _:
            return None


def fit_rows(transcript: Transcript, most: int) -> Transcript:
    """Return the transcript with at most `most` rows: a quarter from its head."""
    rows = transcript.rows
    if len(rows) <= most:
        return transcript
    front = max(most // 4, 1)
    back = max(most - front, 0)
    head = transcript.head[:front]
    whole = len(rows) + transcript.left_out
    tail = rows[-back:] if back else []
    return Transcript(head=head, left_out=whole - len(head) - len(tail), tail=tail)
