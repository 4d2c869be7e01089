"""The kit that makes the spans of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from cuggino.telemetry.metrics import SessionMetrics

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

Attributes: TypeAlias = dict[str, str | bool | int | float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """The maker of spans and session metrics. Times are nanoseconds since the epoch."""

    tracer: Tracer
    metrics: SessionMetrics
    content: Callable[[str], str] | None
    """Masks a text that is exported; None exports none."""

    def start(self, name: str, parent: Span | None, at: int, attributes: Attributes) -> Span:
        """Begin a span; without a parent, it is the run's."""
        from opentelemetry.context import Context
        from opentelemetry.trace import set_span_in_context

        # Never the current context: a run is not part of a trace of the embedding program.
        context = Context() if parent is None else set_span_in_context(parent, Context())
        return self.tracer.start_span(name, context, attributes=attributes, start_time=at)

    def end(self, span: Span, at: int, error: str = "") -> None:
        """End the span; `error` is its `error.type`, or ""."""
        from opentelemetry.trace import Status, StatusCode

        if error:
            span.set_attribute("error.type", error)
            span.set_status(Status(StatusCode.ERROR))
        span.end(at)
