"""Telemetry of real runs, sent to a real receiver of OTLP."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reactivex import from_iterable

from cuggino.events import AgentMessage, ImplementingStart, LoopApproved, SessionEnded
from cuggino.storage import list_journals
from cuggino.telemetry import exporting, with_telemetry
from cuggino.telemetry.operator import LOST, MISSING
from cuggino.testing import no_leaks
from tests.limits import LIMIT
from tests.telemetry.exported import needs_otel
from tests.telemetry.receiver import Receiver, receiving

SCENARIO = """
[[planning]]
cost_usd = 0.25
[[planning.steps]]
run = "echo tuttifrutti"
[[planning.steps]]
write = "$CUGGINO_PLAN_FILE"
text = "# Plan\\n\\n- [ ] one\\n"
[[planning.steps]]
say = "<PLAN_COMPLETE>one task</PLAN_COMPLETE>"
[[implementing]]
cost_usd = 0.5
[[implementing.steps]]
write = "one.txt"
text = "1\\n"
[[implementing.steps]]
say = "<DONE>feat: one</DONE>"
[[reviewing]]
steps = [{ say = "<APPROVED>fine</APPROVED>" }]
"""

EVENTS = (
    ImplementingStart(iteration=1),
    AgentMessage(text="hello"),
    SessionEnded(outcome="completed", cost_usd=0.5),
    LoopApproved(iteration=1),
)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".specs").mkdir(parents=True)
    (folder / ".specs" / "a.md").write_text("one\n")
    (folder / "scenario.toml").write_text(SCENARIO)
    (folder / ".cuggino.json").write_text('{"agent": "scripted:scenario.toml"}')
    return folder


_PATIENT = """
import sys
from cuggino.telemetry import exporting
from cuggino_cli.main import entry

exporting.END_LIMIT = float(sys.argv.pop(1))
entry()
"""


def cuggino(
    project: Path, *args: str, limit: float = exporting.END_LIMIT, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run the command with these variables of OpenTelemetry alone.

    The last export may take `limit` seconds.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    return subprocess.run(
        [sys.executable, "-c", _PATIENT, str(limit), *args],
        cwd=project,
        env={**own, "PYTHONPATH": str(Path.cwd()), **env},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )


def attributes_of(span: Any) -> dict[str, Any]:
    return {
        attribute.key: getattr(attribute.value, attribute.value.WhichOneof("value"))
        for attribute in span.attributes
    }


@pytest.mark.real_agent
@needs_otel
def test_a_run(project: Path, receiver: Receiver) -> None:
    """A run sends its spans and metrics, in a trace with the id of the run."""
    done = cuggino(
        project,
        *("run", "--focus", "one"),
        limit=LIMIT,
        OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url,
        OTEL_EXPORTER_OTLP_HEADERS="x-key=abc",
        OTEL_SERVICE_NAME="night",
    )
    assert (0, "") == (done.returncode, done.stderr)
    spans = receiver.spans
    assert {
        "invoke_workflow cuggino run": 1,
        "planning": 1,
        "implementing": 1,
        "reviewing": 1,
        "invoke_agent scripted": 3,
        "execute_tool Bash": 1,
        "execute_tool Write": 2,
    } == Counter(span.name for span in spans)
    (journal,) = list_journals(project / ".cuggino" / "journal")
    assert {journal.stem.replace("-", "")} == {span.trace_id.hex() for span in spans}
    (root,) = [span for span in spans if not span.parent_span_id]
    known = attributes_of(root)
    assert ("approved", 0.75) == (known["cuggino.run.outcome"], known["cuggino.cost_usd"])
    ids = {span.span_id for span in spans}
    assert all(span.parent_span_id in ids for span in spans if span is not root)
    assert all(
        root.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
        for span in spans
    )
    assert {"night"} == receiver.services
    assert {"abc"} == {headers.get("x-key") for headers in receiver.headers}
    assert {"gen_ai.client.operation.duration", "cuggino.cost"} == receiver.metrics
    assert b"tuttifrutti" not in b"".join(
        body for all_of in receiver.bodies.values() for body in all_of
    )


@pytest.mark.real_agent
@needs_otel
def test_nothing_is_sent_or_loaded_unasked(project: Path, receiver: Receiver) -> None:
    """Without an endpoint or exporter, or with the SDK disabled, it is not loaded, nothing sent."""
    script = (
        "import sys\n"
        "from cuggino_cli.main import main\n"
        "code = main(['run', '--focus', 'one', '--quiet'])\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]\n"
        "sys.exit(code)\n"
    )
    off = {
        "OTEL_SERVICE_NAME": "night",
        "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
        "OTEL_SDK_DISABLED": "true",
    }
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=project,
        env={**os.environ, **off, "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert (0, "") == (done.returncode, done.stderr)
    assert not receiver.arrived.is_set()


@pytest.mark.real_agent
@needs_otel
def test_nobody_receives(project: Path) -> None:
    """A run without a receiver of its telemetry ends as usual, with one warning."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # it does not listen
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        done = cuggino(project, "run", "--focus", "one", OTEL_EXPORTER_OTLP_ENDPOINT=url)
    assert 0 == done.returncode
    assert "[Summary] Approved" in done.stdout
    assert f"cuggino: telemetry: {LOST}\n" == done.stderr


@needs_otel
def test_a_receiver_that_hangs(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a run does not wait for an answer, and no thread is left afterwards."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", str(2 * LIMIT))
    receiver.gate.clear()
    join = exporting._join

    def join_at_the_receiver(threads: list[threading.Thread], limit: float) -> None:
        assert receiver.arrived.wait(LIMIT)
        join(threads, limit)

    monkeypatch.setattr(exporting, "_join", join_at_the_receiver)
    with no_leaks():
        seen: list[object] = []
        problems: list[str] = []
        operator = with_telemetry(on_problem=problems.append)
        from_iterable(EVENTS).pipe(operator).subscribe(seen.append)
        assert (list(EVENTS), [LOST]) == (seen, problems)
        assert not receiver.gate.is_set()
        receiver.gate.set()


@needs_otel
def test_no_thread_is_left_without_a_receiver(monkeypatch: pytest.MonkeyPatch) -> None:
    """An export that would be retried is given up at the end."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv(
            "OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{taken.getsockname()[1]}"
        )
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", str(2 * LIMIT))
        with no_leaks():
            seen: list[object] = []
            problems: list[str] = []
            operator = with_telemetry(on_problem=problems.append)
            from_iterable(EVENTS).pipe(operator).subscribe(seen.append)
            assert (list(EVENTS), [LOST]) == (seen, problems)


@pytest.mark.real_agent
def test_the_extra_is_missing(project: Path) -> None:
    """A run that should be exported and cannot be begins with one warning, and goes on."""
    (project / "opentelemetry").mkdir()
    (project / "opentelemetry" / "__init__.py").touch()
    paths = os.pathsep.join((str(project), str(Path.cwd())))
    done = cuggino(project, "run", "--focus", "one", OTEL_TRACES_EXPORTER="otlp", PYTHONPATH=paths)
    assert (0, f"cuggino: telemetry: {MISSING}\n") == (done.returncode, done.stderr)
    assert "[Summary] Approved" in done.stdout
