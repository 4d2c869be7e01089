"""One event of each class, made from the fields that the class declares."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from cuggino.events import Event, event_types

_VALUES: dict[str, Any] = {
    "iteration": 1,
    "max_iterations": 3,
    "max_tasks": 50,
    "exit_code": 2,
    "timestamp": 0.0,
    "status": "rejected",
    "resets_at": datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
    "limit": "five_hour",
    "outcome": "completed",
    "usage": None,
    "cost_usd": None,
    "num_turns": None,
    "duration": None,
    "is_error": False,
    "truncated": False,
    "attempt": 1,
    "max_attempts": 3,
    "retry_in": 60.0,
    "input": {"command": "ls"},
}


def sample(cls: type[Event], **fields: Any) -> Event:
    """An event of the class; fields without a value of their own are their name as text."""
    defaults = {name: _VALUES.get(name, name) for name in cls.model_fields}
    return cls.model_validate({**defaults, **fields})


def all_event_types() -> list[type[Event]]:
    """Every event class of the package itself, sorted by name."""
    types = event_types().values()
    own = [cls for cls in types if cls.__module__.startswith("cuggino.")]
    return sorted(own, key=lambda cls: cls.__name__)
