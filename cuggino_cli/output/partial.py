"""Messages while they are being written: which of their lines are complete, and what is left."""

from __future__ import annotations

from dataclasses import dataclass, field

from cuggino.events import AgentMessage, Event, MessageDelta


@dataclass
class _Text:
    """What was written of a message since its last complete part."""

    message_id: str
    given: list[str] = field(default_factory=list)
    """The lines that were given out, each with its newline."""
    line: list[str] = field(default_factory=list)
    """The one that is being written."""


class Partial:
    """The lines of messages as they come, then the rest of each when it is complete.

    Only whole lines are given out, so that several agents can write at once, and other lines stand
    between theirs. In the end the same has been given as of the complete messages alone. What was
    no whole line yet of a message that is taken back is dropped.
    """

    def __init__(self) -> None:
        self._texts: dict[str | None, _Text] = {}
        """One for each agent that writes: by the call of a sub-agent."""

    def read(self, event: Event) -> Event | None:
        """The event that is to be shown in place of this one; None for nothing.

        A delta gives the lines that are complete with it, without the last newline, a message what
        is left of it. Any other event is given as it is.
        """
        match event:
            case MessageDelta():
                return self._lines(event)
            case AgentMessage():
                return self._rest(event)
            case _:
                return event

    def _lines(self, delta: MessageDelta) -> AgentMessage | None:
        text = self._texts.get(delta.parent_tool_use_id)
        if text is None or text.message_id != delta.message_id:
            text = self._texts[delta.parent_tool_use_id] = _Text(delta.message_id)
        head, newline, tail = delta.text.rpartition("\n")
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
            # One of several pieces that were written at once: the others follow.
            after = given[len(part.text) :].lstrip()
            left = written[len(part.text) :].lstrip()
            following = _Text(text.message_id, [after], [left[len(after) :]])
            self._texts[part.parent_tool_use_id] = following
            given = given[: len(part.text)]
        if not given or not part.text.startswith(given):
            return part
        rest = part.text[len(given) :]
        return part.model_copy(update={"text": rest}) if rest else None
