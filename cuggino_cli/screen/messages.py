"""The agent's messages while they are streamed: by lines, or by chunks as they arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cuggino.events import AgentMessage, Event, MessageDelta
from cuggino_cli.screen.fragments import Fragment
from cuggino_cli.screen.terminal import Lines
from cuggino_cli.screen.text import inert


class _Text:
    """The text of a message since its last complete part."""

    def __init__(
        self, message_id: str, given: Iterable[str] = (), line: Iterable[str] = ()
    ) -> None:
        self.message_id = message_id
        self.given = list(given)
        """The lines already returned, each with its newline."""
        self.line = list(line)
        """The pieces of the unfinished line."""


class Partial:
    """Messages line by line as they arrive, then the rest of each when it is complete.

    Only whole lines are returned, so that lines of several agents can mix, and the unfinished line
    of a retracted message is dropped; or each chunk at once, where only one agent is shown. In
    total the text equals the complete messages.
    """

    def __init__(self) -> None:
        self._texts: dict[str | None, _Text] = {}
        """The unfinished texts by the tool call of their sub-agent."""

    def read(self, event: Event, *, by_line: bool = True) -> Event | None:
        """Return the event to show in place of this one; None shows nothing.

        A delta becomes the lines it completes, without the last newline, or its whole text; a
        message becomes its rest. Any other event is returned unchanged.
        """
        match event:
            case MessageDelta():
                return self._chunk(event, by_line=by_line)
            case AgentMessage():
                return self._rest(event)
            case _:
                return event

    def _chunk(self, delta: MessageDelta, *, by_line: bool) -> AgentMessage | None:
        text = self._texts.get(delta.parent_tool_use_id)
        if text is None or text.message_id != delta.message_id:
            text = self._texts[delta.parent_tool_use_id] = _Text(delta.message_id)
        chunk, newline, tail = delta.text.rpartition("\n") if by_line else (delta.text, "", "")
        if by_line and not newline:
            text.line.append(tail)
            return None
        chunk = "".join([*text.line, chunk])
        text.given.append(chunk + newline)
        text.line = [tail]
        return AgentMessage(
            text=chunk.removesuffix("\r") if by_line else chunk,
            message_id=delta.message_id,
            parent_tool_use_id=delta.parent_tool_use_id,
        )

    def _rest(self, part: AgentMessage) -> AgentMessage | None:
        text = self._texts.pop(part.parent_tool_use_id, None)
        if text is None or text.message_id != part.message_id:
            return part
        given = "".join(text.given)
        written = given + "".join(text.line)
        if len(part.text) < len(written) and written.startswith(part.text):
            # One of several parts that were streamed together: the others follow.
            after = given[len(part.text) :].lstrip()
            left = written[len(part.text) :].lstrip()
            following = _Text(text.message_id, [after], [left[len(after) :]])
            self._texts[part.parent_tool_use_id] = following
            given = given[: len(part.text)]
        if not given or not part.text.startswith(given):
            return part
        rest = part.text[len(given) :]
        return part.model_copy(update={"text": rest}) if rest else None


class Messages:
    """The messages of sessions, written as they arrive (LOP-081).

    No newline is added, and no half line is left. Parts with the same message id are chunks of one
    message; each message begins a line.

    Args:
        mark: returns what precedes a line, the first one of a message or another one.
    """

    def __init__(self, lines: Lines, mark: Callable[[bool], Fragment] | None = None) -> None:
        self._lines = lines
        self._mark = mark
        self._begins = True
        self._is_first = True
        self._kept: list[AgentMessage] = []
        self._message_id: str | None = None
        self._held = ""
        """A carriage return at the end of a chunk, which may be half of a line ending."""

    def keep(self, part: AgentMessage) -> None:
        """Write the message, or a chunk of one, at the end of the session."""
        self._kept.append(part)

    def write(self, part: AgentMessage) -> None:
        """Write the message, or a chunk of one."""
        if part.message_id is None or part.message_id != self._message_id:
            self._end_message()
        self._message_id = part.message_id
        text = self._held + part.text
        self._held = "\r" if text.endswith("\r") else ""
        self._append(text.removesuffix("\r"))

    def end(self) -> None:
        kept, self._kept = self._kept, []
        for part in kept:
            self.write(part)
        self._end_message()

    def _append(self, text: str) -> None:
        if self._mark is None:
            self._lines.append([Fragment("plain", text)])
            return
        for line in inert(text).splitlines(keepends=True):
            if self._begins:
                self._lines.append([self._mark(self._is_first)])
                self._is_first = False
            self._lines.append([Fragment("plain", line)])
            self._begins = line.endswith("\n")

    def _end_message(self) -> None:
        held, self._held, self._message_id = self._held, "", None
        self._append(held)
        self._begins = self._is_first = True
        self._lines.end_line()
