"""The repetition of tool calls, by which an agent that goes in circles or polls is noticed."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from typing import Any, NamedTuple

LONGEST_CYCLE = 3
"""Maximum number of different calls in a recognized cycle."""


_as_json = json.JSONEncoder(sort_keys=True, default=str).encode
"""Like `json.dumps`, without creating an encoder for each value."""


_SLEEP = re.compile(r"\bsleep\s+(\d+(?:\.\d+)?)([smh]?)\b")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}
_SHORTEST_SLEEP = 10.0
"""Seconds of a sleep that counts: shorter ones wait for a server that was just started."""


class PollingWatch:
    """Counts how often an agent has run the same command with a sleep in it, with any result."""

    def __init__(self) -> None:
        self._commands: Counter[str] = Counter()

    def called(self, given: Any) -> int:
        """Record a call with this input; return how often its command has come, 0 without a sleep.

        The command is the text of the input that has the sleep.
        """
        texts = given.values() if isinstance(given, dict) else ()
        for text in texts:
            if isinstance(text, str) and _slept(text) >= _SHORTEST_SLEEP:
                self._commands[text] += 1
                return self._commands[text]
        return 0


def _slept(command: str) -> float:
    return max((float(n) * _UNITS[unit] for n, unit in _SLEEP.findall(command)), default=0.0)


class _Call(NamedTuple):
    tool: str
    given: int
    """The hash of the input, and of the result once it is known."""


class RepetitionWatch:
    """Counts how often in a row a tool was called with the same input and the same result.

    Two or three calls in turn (a, b, a, b, ...) count too, each turn once. Calls that run at once
    are counted in the order of their results; a call without a result is not counted.
    """

    def __init__(self) -> None:
        self.tool = ""
        """The tool of the latest result."""
        self._running: dict[str, _Call] = {}
        self._without_id: deque[_Call] = deque()
        self._past: deque[_Call] = deque(maxlen=LONGEST_CYCLE)
        self._equal = [0] * LONGEST_CYCLE

    def called(self, tool: str, given: Any, *, id: str = "") -> None:
        call = _Call(tool, hash(_as_json(given)))
        if id:
            self._running[id] = call
        else:
            self._without_id.append(call)

    def answered(self, id: str, result: str) -> int:
        """Record the result of a call; return how often in a row it has come, 1 for the first."""
        call = self._running.pop(id, None)
        if call is None:
            if not self._without_id:
                return 1
            call = self._without_id.popleft()
        done = _Call(call.tool, hash((call.given, result)))
        turns = 1
        for length in range(1, LONGEST_CYCLE + 1):
            is_equal = len(self._past) >= length and self._past[-length] == done
            self._equal[length - 1] = self._equal[length - 1] + 1 if is_equal else 0
            turns = max(turns, self._equal[length - 1] // length + 1)
        self._past.append(done)
        self.tool = call.tool
        return turns
