"""The operator that exports the events of a run."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SerialDisposable

from cuggino.errors import StorageError, install_extra
from cuggino.events import Event, RunResumed, RunStarted
from cuggino.storage.journal import Entry, iter_entries, list_journals
from cuggino.telemetry.exporting import Exporters, is_installed
from cuggino.telemetry.runs import RunIdentity, RunSpans
from cuggino.telemetry.settings import AgentIdentity, telemetry_settings

T = TypeVar("T")

MISSING = (
    "the environment asks for OpenTelemetry, which is not installed: nothing is exported "
    f"({install_extra('otel')})"
)

LOST = "not everything was exported: check OTEL_EXPORTER_OTLP_ENDPOINT and its receiver"

AgentOf: TypeAlias = Callable[[str], AgentIdentity]
"""Returns the agent of a role, such as `reviewing`."""

MakeExporters: TypeAlias = "Callable[[], Exporters]"


def with_telemetry(
    *,
    journals: Path | None = None,
    agent_of: AgentOf | None = None,
    env: Mapping[str, str] | None = None,
    on_problem: Callable[[str], None] = warnings.warn,
    exporters: MakeExporters | None = None,
) -> Callable[[Observable[T]], Observable[T]]:
    """Export the events of a run as spans and metrics of OpenTelemetry.

    ::

        source:             -a--b-|
        with_telemetry():   -a--b-|

    Every event is passed on unchanged and at once. The end of the stream and disposal send the
    rest, for at most two seconds. An export failure is never an error of the stream.

    Args:
        journals: the folder of the project's journals, which has the id of the run. The trace gets
            the same id, also when the run is resumed; without the folder it gets another one.
        agent_of: the agent of each role; default: the agent in the journal.
        env: the `OTEL_*` variables that decide whether anything is exported; default: those of this
            process. The exporters themselves always read the latter.
        on_problem: called with a sentence: at once if the environment asks for something missing or
            unsupported, and at the end of a subscription if something could not be sent.
        exporters: makes exporters to use instead of those of the environment.
    """
    make = exporters or _live(os.environ if env is None else env, on_problem)
    if make is None:
        return lambda source: source

    def operator(source: Observable[T]) -> Observable[T]:
        def subscribe(
            observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            export = _Export(make(), journals, agent_of, scheduler, on_problem)
            upstream = SerialDisposable()

            def on_next(event: T) -> None:
                export.add(event)
                observer.on_next(event)

            def on_error(error: Exception) -> None:
                export.end(error)
                observer.on_error(error)

            def on_completed() -> None:
                export.end()
                observer.on_completed()

            def dispose() -> None:
                upstream.dispose()
                export.end(cut_off=True)

            upstream.disposable = source.subscribe(
                on_next, on_error, on_completed, scheduler=scheduler
            )
            return Disposable(dispose)

        return Observable(subscribe)

    return operator


def _live(env: Mapping[str, str], on_problem: Callable[[str], None]) -> MakeExporters | None:
    """Return the factory of the exporters that the environment asks for, or None."""
    settings = telemetry_settings(env)
    if settings.problem:
        on_problem(settings.problem)
    if not settings.is_on:
        return None

    if not is_installed():
        on_problem(MISSING)
        return None
    return lambda: Exporters(settings, env=env)


class _Export:
    """The export of one subscription, timed by the clock of its scheduler."""

    def __init__(
        self,
        exporters: Exporters,
        journals: Path | None,
        agent_of: AgentOf | None,
        scheduler: abc.SchedulerBase | None,
        on_problem: Callable[[str], None],
    ) -> None:
        self._exporters = exporters
        self._journals = journals
        self._agent_of = agent_of
        self._scheduler = scheduler
        self._on_problem = on_problem
        self._begun = self._now()
        self._spans: RunSpans | None = None
        self._ended = False

    def add(self, event: Any) -> None:
        """Add an event; a failure ends the export, not the run."""
        if self._ended or not isinstance(event, Event):
            return
        try:
            if self._spans is None:
                self._spans = self._begin(event)
            self._spans.add(event, self._now())
        except Exception as error:
            self._fail(error)

    def end(self, error: Exception | None = None, *, cut_off: bool = False) -> None:
        """End all spans and send the rest; only the first call counts."""
        if self._ended:
            return
        self._ended = True
        try:
            if self._spans is not None:
                self._spans.end(self._now(), error, cut_off=cut_off)
        except Exception as failure:
            self._on_problem(_sentence(failure))
        self._close()

    def _begin(self, first: Event) -> RunSpans:
        run = _identity(first, self._journals, self._begun)
        kit = self._exporters.open(run.run_id)
        return RunSpans(kit, run, agent_of=self._agent_of, begun=self._begun)

    def _fail(self, error: Exception) -> None:
        self._ended = True
        self._on_problem(_sentence(error))
        self._close()

    def _close(self) -> None:
        self._exporters.close()
        if self._exporters.lost:
            self._on_problem(LOST)

    def _now(self) -> datetime:
        return self._scheduler.now if self._scheduler is not None else datetime.now(UTC)


def _sentence(error: Exception) -> str:
    return f"the export of telemetry has ended: {type(error).__name__}: {error}"


def _identity(first: Event, journals: Path | None, begun: datetime) -> RunIdentity:
    """Identify the run by its first event, or by the journal that it has just begun."""
    if isinstance(first, RunResumed):
        path = None if journals is None else journals / f"{first.run_id}.jsonl"
        started = _first(path)
        known = started.event if started is not None else None
        if not isinstance(known, RunStarted):
            return RunIdentity(run_id=first.run_id, resumed=True)
        return RunIdentity(run_id=first.run_id, kind=known.kind, agent=known.agent, resumed=True)
    started = None
    with suppress(StorageError):
        started = _first(next(iter(list_journals(journals)), None) if journals else None)
    if started is None or not isinstance(started.event, RunStarted) or _before(started.at, begun):
        return RunIdentity()  # without a journal
    return RunIdentity(
        run_id=started.event.run_id, kind=started.event.kind, agent=started.event.agent
    )


def _first(path: Path | None) -> Entry | None:
    if path is None:
        return None
    with suppress(StorageError, OSError), closing(iter_entries(path)) as entries:
        return next(entries, None)
    return None


def _before(one: datetime, other: datetime) -> bool:
    return one < (other if other.tzinfo else other.replace(tzinfo=UTC))
