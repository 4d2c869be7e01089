"""The operator: events it passes on, the runs and loops that it exports, and its settings."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cuggino.errors import AgentFailed, install_extra
from cuggino.events import ImplementingStart, LoopApproved, RunResumed, RunStarted
from cuggino.storage import Journal, list_journals
from cuggino.telemetry import TelemetrySettings, telemetry_settings, with_telemetry
from cuggino.telemetry.exporting import Exporters, trace_id_of
from cuggino.testing import Marbles, VirtualRuntime, Wait
from tests.telemetry.exported import Exported, needs_otel
from tests.testing.one_task import DONE, HOUR, runs

RUN = "01a20631-c3d4-7a8a-b654-25445c1a1e30"


def drawn() -> Marbles:
    return Marbles(
        I=ImplementingStart(iteration=1),
        z=LoopApproved(iteration=1),
        r=RunResumed(run_id=RUN, stages=3),
    )


def journal_of(folder: Path, *, at: datetime) -> None:
    started = RunStarted(run_id=RUN, kind="deliver", command="cuggino deliver", agent="codex")
    Journal.create(folder, started, at=at).close()


@needs_otel
@pytest.mark.parametrize("diagram", ["-I-z|", "-I-#", "|", "#"])
def test_everything_is_passed_on(diagram: str) -> None:
    """Events, completion and errors come unchanged and at once, from one subscription."""
    marbles = drawn()
    stream = marbles.cold(diagram)
    marbles.check(stream.pipe(Exported().operator()), diagram)


@needs_otel
def test_disposal() -> None:
    """Disposal reaches the source, and is the end of the export: the run was interrupted."""
    marbles, memory = drawn(), Exported()
    stream = marbles.cold("-I-----z|")
    marbles.record(stream.pipe(memory.operator()), dispose_at=3)
    marbles.check_subscriptions(stream, "^--!")
    root, stage = memory.spans
    assert (3.0, "interrupted") == (root.end, root.attributes["cuggino.run.outcome"])
    assert (3.0, "implementing") == (stage.end, stage.name)


@needs_otel
def test_values_that_are_no_events() -> None:
    """A stream of anything else is passed on, and exports nothing."""
    marbles, memory = Marbles(a=1, b="two"), Exported()
    marbles.check(marbles.cold("-a-b|").pipe(memory.operator()), "-a-b|")
    assert [] == memory.spans


@needs_otel
@pytest.mark.parametrize(
    ("diagram", "journal", "name", "has_its_trace"),
    [
        # The trace has the id of the run that has just begun its journal.
        ("-I-z|", "new", "cuggino deliver", True),
        # A run without a journal does not take the id of the one before it.
        ("-I-z|", "old", "cuggino", False),
        ("-I-z|", "broken", "cuggino", False),
        # A resumed run is in the trace of its earlier processes.
        ("-r-I-z|", "old", "cuggino deliver", True),
        ("-r-I-z|", "none", "cuggino", True),
    ],
)
def test_the_run_of_the_journal(
    tmp_path: Path, diagram: str, journal: str, name: str, has_its_trace: bool
) -> None:
    """The run of the events is that of the journal which it has begun, or resumes."""
    marbles, memory = drawn(), Exported()
    if journal == "broken":
        (tmp_path / f"{RUN}.jsonl").write_text("no journal\n")
    elif journal != "none":
        at = marbles.at(0) if journal == "new" else datetime(1969, 12, 31, tzinfo=UTC)
        journal_of(tmp_path, at=at)
    marbles.check(marbles.cold(diagram).pipe(memory.operator(tmp_path)), diagram)
    root = memory.spans[0]
    assert f"invoke_workflow {name}" == root.name
    assert has_its_trace == (RUN.replace("-", "") == root.trace)
    assert (RUN if has_its_trace else None) == root.attributes.get("cuggino.run.id")
    assert ("r" in diagram) == root.attributes["cuggino.run.resumed"]


def test_the_trace_of_an_id_that_is_no_uuid() -> None:
    """Every id has a trace, always the same."""
    assert trace_id_of("my run") == trace_id_of("my run") != trace_id_of("other")
    assert 0 < trace_id_of("my run") < 2**128


@pytest.mark.parametrize(
    ("env", "is_installed", "problems"),
    [
        ({"OTEL_SERVICE_NAME": "x"}, True, []),
        (
            {"OTEL_TRACES_EXPORTER": "otlp"},
            False,
            [
                "the environment asks for OpenTelemetry, which is not installed: nothing is "
                f"exported ({install_extra('otel')})"
            ],
        ),
        (
            {"OTEL_TRACES_EXPORTER": "zipkin"},
            True,
            ["OTEL_TRACES_EXPORTER: use otlp or none, not zipkin"],
        ),
    ],
    ids=["not asked for", "the extra is missing", "not supported"],
)
def test_nothing_is_exported(
    env: dict[str, str], is_installed: bool, problems: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run goes on as it is, and one sentence names what is wrong."""
    monkeypatch.setattr("cuggino.telemetry.operator.is_installed", lambda: is_installed)
    marbles, found = drawn(), list[str]()
    operator = with_telemetry(env=env, on_problem=found.append)
    marbles.check(marbles.cold("-I-z|").pipe(operator), "-I-z|")
    assert problems == found


def test_a_failure_of_the_export() -> None:
    """The run goes on without its export, and one sentence names the failure."""

    class Broken(Exporters):
        def open(self, run_id: str) -> Any:
            raise ValueError("OTEL_BSP_MAX_QUEUE_SIZE must be a positive integer")

    marbles, problems = drawn(), list[str]()
    operator = with_telemetry(
        exporters=lambda: Broken(TelemetrySettings(traces=True)), on_problem=problems.append
    )
    marbles.check(marbles.cold("-I-z|").pipe(operator), "-I-z|")
    assert [
        "the export of telemetry has ended: ValueError: OTEL_BSP_MAX_QUEUE_SIZE must be a "
        "positive integer"
    ] == problems


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


@needs_otel
@pytest.mark.usefixtures("nothing_is_left")
def test_a_watch(tmp_path: Path) -> None:
    """An item is worked on within its span, in the trace of the watch."""
    cousin, memory = VirtualRuntime(tmp_path, runs([Wait("10m"), *DONE])), Exported()
    cousin.at("3h", lambda: cousin.write(".cuggino/backlog/page.md", "A blue page."))
    journals = cousin.runtime.workspace.journal
    watch = cousin.runtime.watch().pipe(memory.operator(journals))
    cousin.play(watch, until="1d")
    begun = 3 * HOUR + 30
    root, item = memory.spans[:2]
    assert ("invoke_workflow cuggino watch", "", 0, 24 * HOUR) == root.times
    assert "interrupted" == root.attributes["cuggino.run.outcome"]
    assert ("item", root.name, begun, begun + 600) == item.times
    assert {"cuggino.item": "page.md", "cuggino.item.outcome": "completed"} == item.attributes
    assert {
        ("planning", "item", begun, begun),
        ("implementing", "item", begun, begun + 600),
        ("reviewing", "item", begun + 600, begun + 600),
    } == {span.times for span in memory.spans if span.parent == "item"}
    watched = list_journals(journals)[-1]
    assert {watched.stem.replace("-", "")} == {span.trace for span in memory.spans}


@needs_otel
@pytest.mark.usefixtures("nothing_is_left")
def test_a_run_that_is_resumed(tmp_path: Path) -> None:
    """Both processes are in one trace, each with its own span of the run."""
    cousin = VirtualRuntime(tmp_path, runs([AgentFailed("key", reason="auth")], DONE))
    journals = cousin.runtime.workspace.journal
    first, second = Exported(), Exported()
    run = cousin.runtime.run(focus="the page").pipe(first.operator(journals))
    assert cousin.play(run).error is not None
    again = cousin.runtime.resume().pipe(second.operator(journals))
    assert cousin.play(again).completed
    before, after = first.spans[0], second.spans[0]
    assert "invoke_workflow cuggino run" == before.name == after.name
    assert ("failed", "approved") == (
        before.attributes["cuggino.run.outcome"],
        after.attributes["cuggino.run.outcome"],
    )
    assert (False, True) == (
        before.attributes["cuggino.run.resumed"],
        after.attributes["cuggino.run.resumed"],
    )
    (journal,) = list_journals(journals)
    assert journal.stem.replace("-", "") == before.trace == after.trace
