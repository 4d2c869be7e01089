"""Public names of `cuggino.telemetry`; written by `python -m tests.stubs`."""

from cuggino.telemetry.operator import (
    with_telemetry,
)
from cuggino.telemetry.settings import (
    AgentIdentity,
    TelemetrySettings,
    telemetry_settings,
)

__all__ = [
    "AgentIdentity",
    "TelemetrySettings",
    "telemetry_settings",
    "with_telemetry",
]
