"""Messages line by line while they are streamed."""

from __future__ import annotations

from collections.abc import Iterable

from cuggino.events import AgentMessage, DeliverSessionEnded, Event, MessageDelta


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
                return self._lines(event, by_line=by_line)
            case AgentMessage():
                return self._rest(event)
            case _:
                return event

    def _lines(self, delta: MessageDelta, *, by_line: bool) -> AgentMessage | None:
        text = self._texts.get(delta.parent_tool_use_id)
        if text is None or text.message_id != delta.message_id:
            text = self._texts[delta.parent_tool_use_id] = _Text(delta.message_id)
        head, newline, tail = delta.text.rpartition("\n")
        if not by_line:
            chunk = "".join([*text.line, delta.text])
            text.given.append(chunk)
            text.line = []
            return AgentMessage(
                text=chunk,
                message_id=delta.message_id,
                parent_tool_use_id=delta.parent_tool_use_id,
            )
        if not newline:
            text.line.append(tail)
            return None
        lines = "".join([*text.line, head])
        text.given.append(lines + newline)
        text.line = [tail]
        return AgentMessage(
            text=lines.removesuffix("\r"),
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


class Printed:
    """The messages of a session that were printed, so that its end does not repeat the last."""

    def __init__(self) -> None:
        self._text = ""

    def add(self, message: AgentMessage) -> None:
        """Note a message of the agent itself that is printed."""
        if message.parent_tool_use_id is None:
            self._text += _dense(message.text)

    def read(self, event: Event) -> Event:
        """Return the end of a session without a message that was printed, and others unchanged."""
        if not isinstance(event, DeliverSessionEnded):
            return event
        printed, self._text = self._text, ""
        if event.outcome == "completed" and _dense(event.message) in printed:
            return event.model_copy(update={"message": ""})
        return event


def _dense(text: str) -> str:
    return "".join(text.split())
