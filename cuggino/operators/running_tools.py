"""Which tools of an agent run at the moment, read from its events."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, assert_never

from cuggino.events import (
    AgentFellBack,
    AgentNudged,
    AgentReplaced,
    AgentRetry,
    QuotaWaiting,
    SessionEnded,
    ToolCall,
    ToolResult,
)

_SESSION_OVER = (
    *(SessionEnded, AgentRetry, QuotaWaiting),
    *(AgentNudged, AgentReplaced, AgentFellBack),
)
"""After these no tool of before is running: the session ended, or another policy ended it."""


class _Role(Enum):
    CALL = auto()
    RESULT = auto()
    SESSION_OVER = auto()
    OTHER = auto()


_roles: dict[type[Any], _Role] = {}
"""A memory: `isinstance` with a pydantic model is slow, and streams are long."""


def _role(kind: type[Any]) -> _Role:
    role = _roles.get(kind)
    if role is None:
        role = _roles[kind] = _role_by_base(kind)
    return role


def _role_by_base(kind: type[Any]) -> _Role:
    if issubclass(kind, ToolCall):
        return _Role.CALL
    if issubclass(kind, ToolResult):
        return _Role.RESULT
    return _Role.SESSION_OVER if issubclass(kind, _SESSION_OVER) else _Role.OTHER


class RunningTools:
    """A tool runs from its `ToolCall` to the `ToolResult` with its id; several may at once.

    A call without an id runs until a result comes that belongs to no known call. A result that
    nobody waits for changes nothing. The end of a session ends its tools.
    """

    __slots__ = ("_by_id", "_without_id")

    def __init__(self) -> None:
        self._by_id: dict[str, str] = {}
        self._without_id: list[str] = []

    def see(self, event: Any) -> bool:
        """Take note of an event; True if it may have changed what runs."""
        match _role(type(event)):
            case _Role.OTHER:
                return False
            case _Role.CALL:
                self._called(event)
            case _Role.RESULT:
                if self._by_id.pop(event.name, None) is None and self._without_id:
                    self._without_id.pop(0)
            case _Role.SESSION_OVER:
                self.clear()
            case never:
                assert_never(never)
        return True

    def _called(self, call: ToolCall) -> None:
        if call.id:
            self._by_id[call.id] = call.name
        else:
            self._without_id.append(call.name)

    def clear(self) -> None:
        """Nothing runs any more."""
        self._by_id.clear()
        self._without_id.clear()

    def __bool__(self) -> bool:
        return bool(self._by_id or self._without_id)

    @property
    def names(self) -> tuple[str, ...]:
        """The running tools in the order of their calls, those without an id last."""
        return (*self._by_id.values(), *self._without_id)
