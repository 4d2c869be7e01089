"""The operator: events it passes on, the run that it exports, and a missing extra."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from reactivex import never

from cuggino.errors import install_extra
from cuggino.events import ImplementingStart, LoopApproved, RunResumed, RunStarted
from cuggino.storage import Journal
from cuggino.telemetry import with_telemetry
from cuggino.telemetry.exporting import Exporters, trace_id_of
from cuggino.telemetry.settings import TelemetrySettings
from cuggino.testing import Marbles
from tests.telemetry.exported import Exported, needs_otel

ON = {"OTEL_TRACES_EXPORTER": "otlp"}
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
    """Disposal reaches the source, and is the end of the export."""
    marbles, memory = drawn(), Exported()
    stream = marbles.cold("-I-----z|")
    marbles.record(stream.pipe(memory.operator()), dispose_at=3)
    marbles.check_subscriptions(stream, "^--!")
    assert ["invoke_workflow cuggino", "implementing"] == [span.name for span in memory.spans]


@needs_otel
def test_values_that_are_no_events() -> None:
    """A stream of anything else is passed on, and exports nothing."""
    marbles, memory = Marbles(a=1, b="two"), Exported()
    marbles.check(marbles.cold("-a-b|").pipe(memory.operator()), "-a-b|")
    assert [] == memory.spans


@needs_otel
def test_the_run_of_the_journal(tmp_path: Path) -> None:
    """The trace has the id of the run that has just begun its journal."""
    marbles, memory = drawn(), Exported()
    journal_of(tmp_path, at=marbles.at(0))
    marbles.record(marbles.cold("-I-z|").pipe(memory.operator(tmp_path)))
    root = memory.spans[0]
    assert ("invoke_workflow cuggino deliver", RUN.replace("-", "")) == (root.name, root.trace)
    assert (RUN, False) == (
        root.attributes["cuggino.run.id"],
        root.attributes["cuggino.run.resumed"],
    )


@needs_otel
def test_an_older_journal_is_of_another_run(tmp_path: Path) -> None:
    """A run without a journal does not take the id of the one before it."""
    marbles, memory = drawn(), Exported()
    journal_of(tmp_path, at=datetime(1969, 12, 31, tzinfo=UTC))
    marbles.record(marbles.cold("-I-z|").pipe(memory.operator(tmp_path)))
    root = memory.spans[0]
    assert "cuggino.run.id" not in root.attributes
    assert RUN.replace("-", "") != root.trace


@needs_otel
@pytest.mark.parametrize("has_journal", [True, False])
def test_a_resumed_run(tmp_path: Path, *, has_journal: bool) -> None:
    """A resumed run is in the trace of its earlier processes."""
    marbles, memory = drawn(), Exported()
    if has_journal:
        journal_of(tmp_path, at=datetime(1969, 12, 31, tzinfo=UTC))
    marbles.record(marbles.cold("-r-I-z|").pipe(memory.operator(tmp_path)))
    root = memory.spans[0]
    assert RUN.replace("-", "") == root.trace
    assert root.attributes["cuggino.run.resumed"]
    assert ("cuggino deliver" if has_journal else "cuggino") == root.attributes[
        "gen_ai.workflow.name"
    ]


@needs_otel
def test_a_journal_that_cannot_be_read(tmp_path: Path) -> None:
    """Then the trace has its own id."""
    (tmp_path / f"{RUN}.jsonl").write_text("no journal\n")
    marbles, memory = drawn(), Exported()
    marbles.check(marbles.cold("-I-z|").pipe(memory.operator(tmp_path)), "-I-z|")
    assert "cuggino.run.id" not in memory.spans[0].attributes


def test_the_trace_of_an_id_that_is_no_uuid() -> None:
    """Every id has a trace, always the same."""
    assert trace_id_of("my run") == trace_id_of("my run") != trace_id_of("other")
    assert 0 < trace_id_of("my run") < 2**128


def test_nothing_without_being_asked() -> None:
    """Without an exporter the stream is subscribed as it is."""
    marbles, problems = drawn(), list[str]()
    stream = marbles.cold("-I-z|")
    operator = with_telemetry(env={"OTEL_SERVICE_NAME": "x"}, on_problem=problems.append)
    marbles.check(stream.pipe(operator), "-I-z|")
    assert [] == problems


def test_the_extra_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run goes on, and one sentence names the extra."""
    monkeypatch.setattr("cuggino.telemetry.operator.is_installed", lambda: False)
    marbles, problems = drawn(), list[str]()
    operator = with_telemetry(env=ON, on_problem=problems.append)
    marbles.check(marbles.cold("-I-z|").pipe(operator), "-I-z|")
    assert [
        "the environment asks for OpenTelemetry, which is not installed: nothing is exported "
        f"({install_extra('otel')})"
    ] == problems


def test_an_exporter_that_is_not_supported() -> None:
    """The run goes on, and one sentence names the variable."""
    problems: list[str] = []
    operator = with_telemetry(env={"OTEL_TRACES_EXPORTER": "zipkin"}, on_problem=problems.append)
    never().pipe(operator).subscribe().dispose()
    assert ["OTEL_TRACES_EXPORTER: use otlp or none, not zipkin"] == problems


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
