"""The metrics of agent sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuggino.events import Usage

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter
    from opentelemetry.util.types import Attributes

TOKEN_BOUNDARIES = [4.0**power for power in range(14)]
SECONDS_BOUNDARIES = [0.01 * 2**power for power in range(20)]
"""Those of the GenAI conventions, extended to an hour and a half, as agent sessions are long."""


class SessionMetrics:
    """The instruments that each agent session is measured with."""

    def __init__(self, meter: Meter) -> None:
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=TOKEN_BOUNDARIES,
        )
        self._seconds = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="GenAI operation duration.",
            explicit_bucket_boundaries_advisory=SECONDS_BOUNDARIES,
        )
        self._cost = meter.create_counter(
            "cuggino.cost",
            unit="{USD}",
            description="US dollars that agent sessions have cost, as far as they are known.",
        )

    def add(
        self,
        attributes: Attributes,
        *,
        seconds: float,
        error: str,
        cost_usd: float | None,
        cost_estimated: bool,
        usage: Usage | None,
    ) -> None:
        """Measure a session that has ended; `error` is its `error.type`, or ""."""
        known = dict(attributes or {})
        ended = {**known, "error.type": error} if error else known
        self._seconds.record(max(0.0, seconds), ended)
        if cost_usd:
            marked = {**known, "cuggino.cost_estimated": True} if cost_estimated else known
            self._cost.add(max(0.0, cost_usd), marked)
        if usage is not None:
            given = {"input": all_input(usage), "output": usage.output_tokens}
            for kind, count in given.items():
                self._tokens.record(count, {**known, "gen_ai.token.type": kind})


def all_input(usage: Usage) -> int:
    """Return the input tokens including cached ones, as the conventions count them."""
    return usage.input_tokens + usage.cache_read_tokens + usage.cache_creation_tokens
