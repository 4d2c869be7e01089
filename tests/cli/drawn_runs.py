"""A test double for a loop of sessions: it emits given events and records how it was called."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import pytest
from reactivex import Observable, concat, from_iterable, throw

from cuggino import Runtime
from cuggino.events import Event

Options = TypeVar("Options")


@dataclass
class DrawnRun(Generic[Options]):
    """A test double for a loop."""

    events: Iterable[Event]
    error: Exception | None = None
    options: list[Options] = field(default_factory=list)
    resumed: list[tuple[str | None, dict[str, Any]]] = field(default_factory=list)
    runtimes: list[Runtime] = field(default_factory=list)

    def stream(self) -> Observable[Any]:
        events: Observable[Any] = from_iterable(self.events)
        return events if self.error is None else concat(events, throw(self.error))

    def put_for(self, run: str, resume: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make every `Runtime` use this loop under these names."""

        def begin(runtime: Runtime, options: Options, *, interrupt: object) -> Observable[Any]:
            self.runtimes.append(runtime)
            self.options.append(options)
            return self.stream()

        def go_on(
            runtime: Runtime, run_id: str | None, *, interrupt: object, **given: Any
        ) -> Observable[Any]:
            self.runtimes.append(runtime)
            self.resumed.append((run_id, given))
            return self.stream()

        monkeypatch.setattr(Runtime, run, begin)
        monkeypatch.setattr(Runtime, resume, go_on)
