"""Telemetry settings in the environment."""

from __future__ import annotations

import pytest

from cuggino.telemetry import TelemetrySettings, telemetry_settings

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
BOTH = TelemetrySettings(traces=True, metrics=True)


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, TelemetrySettings()),
        ({"OTEL_SERVICE_NAME": "night"}, TelemetrySettings()),
        ({ENDPOINT: " "}, TelemetrySettings()),
        ({ENDPOINT: "http://localhost:4318"}, BOTH),
        ({ENDPOINT: "http://localhost:4318", "OTEL_SDK_DISABLED": "TRUE"}, TelemetrySettings()),
        (
            {ENDPOINT: "http://localhost:4318", "OTEL_TRACES_EXPORTER": "none"},
            TelemetrySettings(metrics=True),
        ),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://a/b"}, TelemetrySettings(traces=True)),
        ({"OTEL_METRICS_EXPORTER": "otlp"}, TelemetrySettings(metrics=True)),
        (
            {"OTEL_TRACES_EXPORTER": "otlp, console"},
            TelemetrySettings(
                traces=True, problem="OTEL_TRACES_EXPORTER: use otlp or none, not console"
            ),
        ),
        (
            {"OTEL_METRICS_EXPORTER": "prometheus"},
            TelemetrySettings(problem="OTEL_METRICS_EXPORTER: use otlp or none, not prometheus"),
        ),
        (
            {
                ENDPOINT: "http://localhost:4317",
                "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
                "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/protobuf",
            },
            TelemetrySettings(
                metrics=True,
                problem="OTEL_EXPORTER_OTLP_PROTOCOL: use http/protobuf, not grpc",
            ),
        ),
        (
            {
                ENDPOINT: "http://localhost:4318",
                "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
            },
            TelemetrySettings(traces=True, metrics=True, content=True),
        ),
    ],
)
def test_settings(env: dict[str, str], expected: TelemetrySettings) -> None:
    """An endpoint or exporter switches a signal on; unsupported settings are named."""
    assert expected == telemetry_settings(env)
