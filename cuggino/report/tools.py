"""Which tools the agents called, how often, how long, and how often in vain."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from cuggino.events import ToolCall, ToolResult
from cuggino.report.model import ToolUse
from cuggino.storage.journal import Entry


@dataclass(slots=True)
class _Tally:
    calls: int = 0
    errors: int = 0
    seconds: list[float] = field(default_factory=list)
    answered: int = 0


class Tools:
    """Pairs each call with its result, within a stage, by the id of the call."""

    def __init__(self) -> None:
        self._tallies: dict[str, _Tally] = {}
        self._waiting: dict[tuple[str | None, str], tuple[str, datetime]] = {}

    def add(self, entry: Entry) -> None:
        """Take in an entry of the journal."""
        match entry.event:
            case ToolCall(name=name, id=call):
                self._tallies.setdefault(name, _Tally()).calls += 1
                if call:
                    self._waiting[entry.stage, call] = (name, entry.at)
            case ToolResult(name=call, is_error=is_error):
                known = self._waiting.pop((entry.stage, call), None)
                if known is not None:
                    name, since = known
                    tally = self._tallies[name]
                    tally.answered += 1
                    tally.errors += is_error
                    tally.seconds.append(max(0.0, (entry.at - since).total_seconds()))
            case _:
                pass

    def result(self) -> tuple[ToolUse, ...]:
        """One for each tool, the most called first."""
        uses = [
            ToolUse(
                name=name,
                calls=tally.calls,
                errors=tally.errors,
                unanswered=tally.calls - tally.answered,
                seconds=tuple(sorted(tally.seconds)),
            )
            for name, tally in self._tallies.items()
        ]
        return tuple(sorted(uses, key=lambda use: (-use.calls, use.name)))
