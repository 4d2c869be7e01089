"""The telemetry settings in the standard environment variables of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_WITH_CONTENT = frozenset({"true", "1", "span_only", "span_and_event"})
_PROTOCOL = "http/protobuf"


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    """The signals to export, as the environment asks for."""

    traces: bool = False
    metrics: bool = False
    content: bool = False
    """Export the contents of tool calls and the last message of each agent, too."""
    problem: str = ""
    """The reason why something requested by the environment is not exported, or ""."""

    @property
    def is_on(self) -> bool:
        """Return whether anything is exported."""
        return self.traces or self.metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentIdentity:
    """An agent as named by its spans."""

    name: str
    """A name such as `claude`; of one with arguments, what precedes the colon."""
    model: str | None = None
    """The requested model; None leaves it to the agent."""


def telemetry_settings(env: Mapping[str, str]) -> TelemetrySettings:
    """Read the settings; nothing is exported unless an endpoint or exporter is set."""
    if _word(env, "OTEL_SDK_DISABLED") == "true":
        return TelemetrySettings()
    problems: list[str] = []
    on = {signal: _is_on(env, signal, problems) for signal in ("TRACES", "METRICS")}
    return TelemetrySettings(
        traces=on["TRACES"],
        metrics=on["METRICS"],
        content=_word(env, _CONTENT) in _WITH_CONTENT,
        problem="; ".join(problems),
    )


def _is_on(env: Mapping[str, str], signal: str, problems: list[str]) -> bool:
    """Return whether the signal is exported; if requested but not, add the problem."""
    variable = f"OTEL_{signal}_EXPORTER"
    exporters = {word.strip() for word in _word(env, variable).split(",")} - {""}
    endpoints = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
    if exporters:
        if others := exporters - {"otlp", "none"}:
            problems.append(f"{variable}: use otlp or none, not {', '.join(sorted(others))}")
        if "otlp" not in exporters:
            return False
    elif not any(_word(env, name) for name in endpoints):
        return False
    for name in (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if (protocol := _word(env, name)) and protocol != _PROTOCOL:
            problems.append(f"{name}: use {_PROTOCOL}, not {protocol}")
            return False
        if protocol:
            break
    return True


def _word(env: Mapping[str, str], name: str) -> str:
    return env.get(name, "").strip().lower()
