"""The exporters of one run: batched, bounded, and gone two seconds after its end."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from cuggino._version import __version__
from cuggino.telemetry.kit import Kit
from cuggino.telemetry.metrics import SessionMetrics
from cuggino.telemetry.settings import TelemetrySettings
from cuggino.telemetry.texts import masking

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.sdk.trace.id_generator import IdGenerator
    from opentelemetry.trace import TracerProvider

END_LIMIT = 1.5
"""Seconds that the last export may take; data not sent by then is lost."""

CLOSE_LIMIT = 0.3
"""Additional seconds for threads to end once their exporters are closed."""


def is_installed() -> bool:
    """Return whether the extra `otel` is installed."""
    try:
        import opentelemetry.exporter.otlp.proto.http
        import opentelemetry.sdk  # noqa: F401
    except ImportError:
        return False
    return True


class Exporters:
    """The destination of one run's spans and metrics, until `close`.

    Spans and metrics are sent on threads of the SDK; a full queue drops spans.
    """

    def __init__(
        self,
        settings: TelemetrySettings,
        *,
        processor: SpanProcessor | None = None,
        reader: MetricReader | None = None,
        env: Mapping[str, str] = os.environ,
    ) -> None:
        self._settings = settings
        self._processor = processor
        self._reader = reader
        self._env = env
        self._closing: list[Callable[[], object]] = []
        """Functions that send the remaining data and end their thread."""
        self._giving_up: list[Callable[[], object]] = []
        """Functions that abort an export that takes too long."""
        self.lost = False
        """True if any data could not be sent."""

    def open(self, run_id: str) -> Kit:
        """Begin to export; the trace has the id of the run."""
        resource = _resource()
        tracers, meters = self._tracers(run_id, resource), self._meters(resource)
        return Kit(
            tracer=tracers.get_tracer("cuggino", __version__),
            metrics=SessionMetrics(meters.get_meter("cuggino", __version__)),
            content=masking(self._env) if self._settings.content else None,
        )

    def close(self) -> None:
        """Send the rest, for at most two seconds in total, and end all threads."""
        threads = [
            threading.Thread(target=_quietly, args=(close,), name="cuggino-telemetry", daemon=True)
            for close in self._closing
        ]
        self._closing.clear()
        for thread in threads:
            thread.start()
        _join(threads, END_LIMIT)
        if any(thread.is_alive() for thread in threads):
            self.lost = True
            for give_up in self._giving_up:
                _quietly(give_up)
            _join(threads, CLOSE_LIMIT)

    def _tracers(self, run_id: str, resource: Resource) -> TracerProvider:
        from opentelemetry.sdk.trace import TracerProvider as Live
        from opentelemetry.trace import NoOpTracerProvider

        if not self._settings.traces:
            return NoOpTracerProvider()
        processor = self._processor or self._span_processor()
        ids = cast("IdGenerator", _RunIds(trace_id_of(run_id))) if run_id else None
        provider = Live(resource=resource, id_generator=ids, shutdown_on_exit=False)
        provider.add_span_processor(processor)
        self._closing.append(provider.shutdown)
        tracers: TracerProvider = provider
        return tracers

    def _meters(self, resource: Resource) -> MeterProvider:
        from opentelemetry.metrics import NoOpMeterProvider
        from opentelemetry.sdk.metrics import MeterProvider as Live

        if not self._settings.metrics:
            return NoOpMeterProvider()
        reader = self._reader or self._metric_reader()
        provider = Live([reader], resource=resource, shutdown_on_exit=False)
        self._closing.append(provider.shutdown)
        meters: MeterProvider = provider
        return meters

    def _span_processor(self) -> SpanProcessor:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        return BatchSpanProcessor(self._noted(OTLPSpanExporter()))

    def _metric_reader(self) -> MetricReader:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

        return PeriodicExportingMetricReader(self._noted(OTLPMetricExporter()))

    def _noted(self, exporter: Any) -> Any:
        """Return the exporter, set up to record failures and to be abandoned at the end."""
        self._giving_up.append(exporter.shutdown)
        export = exporter.export

        def noted(*args: Any, **kwargs: Any) -> Any:
            result = export(*args, **kwargs)
            self.lost = self.lost or result.name != "SUCCESS"
            return result

        exporter.export = noted
        return exporter


def trace_id_of(run_id: str) -> int:
    """Return the trace id of a run: its UUID without the hyphens."""
    try:
        return UUID(run_id).int
    except ValueError:
        return int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:16], "big")


class _RunIds:
    """Random span ids, and one trace id for all processes of a run."""

    def __init__(self, trace: int) -> None:
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

        self._random = RandomIdGenerator()
        self._trace = trace

    def generate_trace_id(self) -> int:
        return self._trace

    def generate_span_id(self) -> int:
        return int(self._random.generate_span_id())

    def is_trace_id_random(self) -> bool:
        """Return whether samplers may use the id; a run's id ends in random bits."""
        return True


def _resource() -> Resource:
    """Return the resource of the environment; the service name defaults to `cuggino`."""
    from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource

    given = Resource.create({SERVICE_VERSION: __version__})
    if str(given.attributes[SERVICE_NAME]).startswith("unknown_service"):
        return given.merge(Resource({SERVICE_NAME: "cuggino"}))
    return given


def _join(threads: list[threading.Thread], limit: float) -> None:
    deadline = time.monotonic() + limit
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))


def _quietly(act: Callable[[], object]) -> None:
    with suppress(Exception):  # telemetry must never fail a run
        act()
