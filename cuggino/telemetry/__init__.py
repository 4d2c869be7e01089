"""Export of runs with OpenTelemetry: spans and metrics, by the conventions for generative AI.

    events = runtime.run(focus="add a login page").pipe(runtime.telemetry())

The standard `OTEL_*` variables set the destination. Without an endpoint or exporter among them,
nothing is imported and nothing is sent. Texts, prompts and the contents of tool calls are exported
only on request.
"""

from cuggino.telemetry.operator import with_telemetry
from cuggino.telemetry.settings import AgentIdentity, TelemetrySettings, telemetry_settings

__all__ = [
    "AgentIdentity",
    "TelemetrySettings",
    "telemetry_settings",
    "with_telemetry",
]
