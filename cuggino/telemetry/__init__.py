"""Export of runs with OpenTelemetry: spans and metrics, by the conventions for generative AI.

    events = runtime.run(focus="add a login page").pipe(runtime.telemetry())

The standard `OTEL_*` variables set the destination. Without an endpoint or exporter among them,
nothing is imported and nothing is sent. Texts, prompts and the contents of tool calls are exported
only on request.
"""

from cuggino._lazy import lazy

NAMES = {
    "operator": "with_telemetry",
    "settings": "AgentIdentity TelemetrySettings telemetry_settings",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
