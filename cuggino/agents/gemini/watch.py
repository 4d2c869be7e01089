"""The guard as it shows in a session of the Gemini CLI: that it lives, what it denied, what ran."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from cuggino.agents.gemini.guard import ATTENDED, UNMARKED
from cuggino.agents.guard import NOT_JUDGED, not_live
from cuggino.agents.json_values import Json, dict_or_empty, text_or_none
from cuggino.errors import GuardNotLive
from cuggino.events import GuardDenied
from cuggino.security.hook import LIVE

_SUB_AGENT = "invoke_agent"
_MCP = "mcp_"
_ORDER = "wait_for_previous"
"""An input of all tools, which says when they are run."""
_BLOCKED = "Tool execution blocked: "
"""What the program says for a hook: for that of somebody else only beside a verdict of ours."""


@dataclass(frozen=True, slots=True)
class _Started:
    name: str
    """As Gemini calls it."""
    tool: str
    arguments: str

    @property
    def key(self) -> tuple[str, str]:
        return self.name, self.arguments


class GeminiWatch:
    """The fold over the lines of one guarded session.

    `verdicts` gives what the hook has written since it was last asked. `breach` is set when the
    session must end: the hook did not answer at its start, or a call succeeded without its verdict.
    """

    def __init__(self, verdicts: Callable[[], Iterable[str]]) -> None:
        self._verdicts = verdicts
        self._is_live = False
        self._started: dict[str, _Started] = {}
        self._allowed: list[tuple[str, str]] = []
        self._denied: list[Json] = []
        self.breach: GuardNotLive | None = None

    def begin(self) -> None:
        """The session begins: the hook must have answered."""
        self._read()
        if not self._is_live:
            self._break("the agent's program did not run its hook at the start")

    def call(self, call_id: str, name: str, tool: str, arguments: Any) -> None:
        """A call is told; `name` is Gemini's, `tool` the common one."""
        self._started[call_id] = _Started(name, tool, same_text(arguments))

    def result(self, call_id: str, *, is_error: bool, message: str) -> list[GuardDenied]:
        """A call has ended; what was denied, once for each."""
        self._read()
        started = self._started.pop(call_id, None)
        if started is None:
            return []
        told = self._take(started, message)
        was_allowed = told is None and self._use(started)
        events: list[GuardDenied] = []
        if told is not None:
            events.append(_denial(told, call_id))
        elif is_error and not was_allowed:
            events += _by_itself(started, call_id, message)
        if not is_error and (told is not None or not was_allowed):
            how = "without" if told is None else "in spite of"
            self._break(f"{started.tool} was used {how} its verdict")
        if started.name == _SUB_AGENT:
            events = [*self._rest(call_id), *events]
        return events

    def _rest(self, call_id: str) -> list[GuardDenied]:
        """What a sub-agent was denied: its calls are not told, and have no ids."""
        still = {started.key for started in self._started.values()}
        of_agent = [told for told in self._denied if _key(told) not in still]
        self._denied = [told for told in self._denied if _key(told) in still]
        return [_denial(told, call_id) for told in of_agent]

    def _take(self, started: _Started, message: str) -> Json | None:
        """The verdict that denied this call."""
        mine = [told for told in self._denied if told.get("name") == started.name]
        same = [told for told in mine if _key(told) == started.key]
        # The program may have changed the input a little before it asked.
        for told in same or [t for t in mine if str(t.get("reason")) in message]:
            self._denied.remove(told)
            return told
        return None

    def _use(self, started: _Started) -> bool:
        """Whether a verdict allowed this call; it counts once."""
        mine = [key for key in self._allowed if key[0] == started.name]
        is_marked = not started.name.startswith(_MCP)
        for key in [key for key in mine if key == started.key] or (mine if is_marked else []):
            self._allowed.remove(key)
            return True
        return False

    def _read(self) -> None:
        for line in self._verdicts():
            try:
                told = dict_or_empty(json.loads(line))
            except ValueError:
                continue
            if "canary" in told:
                if told["canary"] == LIVE:
                    self._is_live = True
                else:
                    self._break(str(told["canary"]))
            elif told.get("reason"):
                self._denied.append(told)
            else:
                self._allowed.append(_key(told))

    def _break(self, why: str) -> None:
        self.breach = self.breach or not_live(why)


def _by_itself(started: _Started, call_id: str, message: str) -> list[GuardDenied]:
    """What was denied because the hook has not answered, or not in time."""
    reason = next((why for why in (NOT_JUDGED, UNMARKED, ATTENDED) if why in message), None)
    if reason is None and message.startswith(_BLOCKED):
        reason = message.removeprefix(_BLOCKED)
    if reason is None:
        return []
    return [GuardDenied(tool=started.tool, tool_use_id=call_id, part=started.tool, reason=reason)]


def _denial(told: Json, call_id: str) -> GuardDenied:
    return GuardDenied(
        tool=text_or_none(told.get("tool")) or "unknown",
        tool_use_id=call_id,
        part=text_or_none(told.get("part")) or "",
        reason=text_or_none(told.get("reason")) or "",
    )


def _key(told: Json) -> tuple[str, str]:
    return str(told.get("name")), same_text(told.get("input"))


def same_text(arguments: Any) -> str:
    """Equal, short texts for equal arguments."""
    if isinstance(arguments, dict):
        arguments = {key: value for key, value in arguments.items() if key != _ORDER}
    try:
        text = json.dumps(arguments, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        text = repr(type(arguments))
    return hashlib.sha256(text.encode()).hexdigest()
