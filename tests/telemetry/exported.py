"""Streams exported to memory, in virtual time."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from reactivex import Observable

from cuggino.telemetry import AgentIdentity, TelemetrySettings, with_telemetry
from cuggino.telemetry.exporting import Exporters
from cuggino.testing import Marbles

needs_otel = pytest.mark.skipif(
    os.environ.get("CI") != "true"
    and (
        find_spec("opentelemetry") is None
        or find_spec("opentelemetry.sdk") is None
        or find_spec("opentelemetry.exporter") is None
    ),
    reason="needs pip install 'cuggino[otel]'",
)
"""CI installs the extra; elsewhere it may be missing."""


class SeenSpan(NamedTuple):
    """A span with its times in seconds and the name of its parent."""

    name: str
    parent: str
    begin: float
    end: float
    attributes: dict[str, Any]
    events: tuple[str, ...]
    trace: str

    @property
    def times(self) -> tuple[str, str, float, float]:
        """Return what the course of a run is compared by."""
        return self.name, self.parent, self.begin, self.end


class Exported:
    """The spans and metrics of one export."""

    def __init__(self, *, content: bool = False) -> None:
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        self._spans = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        settings = TelemetrySettings(traces=True, metrics=True, content=content)
        self._make = lambda: Exporters(
            settings,
            processor=SimpleSpanProcessor(self._spans),
            reader=self._reader,
            env={"MY_API_TOKEN": "tuttifrutti-42"},
        )

    def operator(
        self,
        journals: Path | None = None,
        agent_of: Callable[[str], AgentIdentity] | None = None,
    ) -> Callable[[Observable[Any]], Observable[Any]]:
        """Return the operator that exports to memory."""
        return with_telemetry(journals=journals, agent_of=agent_of, exporters=self._make)

    @property
    def spans(self) -> list[SeenSpan]:
        """The spans, in the order of their beginnings."""
        ended = self._spans.get_finished_spans()
        names = {span.context.span_id: span.name for span in ended if span.context is not None}
        seen = [
            SeenSpan(
                span.name,
                names[span.parent.span_id] if span.parent is not None else "",
                (span.start_time or 0) / 1e9,
                (span.end_time or 0) / 1e9,
                dict(span.attributes or {}),
                tuple(event.name for event in span.events),
                f"{span.context.trace_id:032x}" if span.context is not None else "",
            )
            for span in reversed(ended)
        ]
        return sorted(seen, key=lambda span: span.begin)

    def span(self, name: str) -> SeenSpan:
        """Return the only span of that name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found

    @property
    def metrics(self) -> dict[str, list[tuple[dict[str, Any], float]]]:
        """The attributes and sums of each metric."""
        data = self._reader.get_metrics_data()
        assert data is not None
        return {
            metric.name: [
                (dict(point.attributes or {}), getattr(point, "sum", getattr(point, "value", 0)))
                for point in metric.data.data_points
            ]
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


def exported(diagram: str, events: dict[str, Any], *, content: bool = False) -> Exported:
    """Export the drawn stream, a second for each character."""
    memory = Exported(content=content)
    marbles = Marbles(**events)
    marbles.record(marbles.cold(diagram).pipe(memory.operator()))
    return memory
