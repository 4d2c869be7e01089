"""What an agent says, written as it comes: no newline is added, no half line is left (LOP-081)."""

from __future__ import annotations

from cuggino.events import AgentMessage
from cuggino_cli.output.terminal import Terminal
from cuggino_cli.output.theme import Fragment


class Words:
    """The words of one session after the other, on a terminal.

    Parts with the same message id are chunks of one message; each message begins a line.

    Args:
        stream: each chunk is written when it comes; else all of them at the end of the session.
    """

    def __init__(self, terminal: Terminal, *, stream: bool) -> None:
        self._terminal = terminal
        self._stream = stream
        self._kept: list[AgentMessage] = []
        self._message_id: str | None = None
        self._held = ""
        """A carriage return at the end of a chunk, which may be half of a line's end."""

    def add(self, part: AgentMessage) -> None:
        """A message, or a chunk of one."""
        if self._stream:
            self._write(part)
        else:
            self._kept.append(part)

    def end(self) -> None:
        """The session is over."""
        kept, self._kept = self._kept, []
        for part in kept:
            self._write(part)
        self._end_message()

    def _write(self, part: AgentMessage) -> None:
        if part.message_id is None or part.message_id != self._message_id:
            self._end_message()
        self._message_id = part.message_id
        text = self._held + part.text
        self._held = "\r" if text.endswith("\r") else ""
        self._terminal.go_on([Fragment("plain", text.removesuffix("\r"))])

    def _end_message(self) -> None:
        held, self._held, self._message_id = self._held, "", None
        self._terminal.go_on([Fragment("plain", held)])
        self._terminal.end_line()
