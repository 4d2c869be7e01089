"""Scenarios of the coding loop and of the watch, with an agent in memory, in virtual time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, concat, defer, empty, from_iterable, of, operators as ops, throw

from cuggino.agents.base import SpawnOptions
from cuggino.errors import AgentFailed, CugginoError, LoopError, ProcessError
from cuggino.events import (
    AgentReplaced,
    CheckDoesNotDecide,
    CommandStartedEvent,
    Event,
    LoopSpecIssue,
)
from cuggino.loops import LoopService
from cuggino.prompts import Prompts
from cuggino.stages import Commit
from cuggino.testing import AgentRun, Marbles
from tests.loops.coding_loop import CodingLoop, fails
from tests.loops.watching import Watching, audit_run
from tests.vectors import event_of, matches, not_followed, rows, snake

ROWS = [
    row
    for row in rows("cuggino_loop_scenarios")
    if row["id"] not in not_followed("cuggino_loop_scenarios")
]


class RecordingPrompts(Prompts):
    """Keeps the variables that each role was rendered with."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs: list[tuple[str, dict[str, str]]] = []

    def render(self, role: str, variables: Any) -> str:
        self.inputs.append((role, dict(variables)))
        return super().render(role, variables)


class Played(CodingLoop):
    """A case, played to its end."""

    def __init__(self, row: dict[str, Any], folder: Path) -> None:
        (folder / row["options"].get("specsPath", ".specs")).mkdir()
        options: dict[str, Any] = {snake(key): value for key, value in row["options"].items()}
        results = {
            str(options.get(f"{kind}_command")): row.get(f"{kind}_results", ())
            for kind in ("setup", "check")
        }
        super().__init__(
            folder,
            **self._runs(row),
            commands={name: [_ran(result) for result in ran] for name, ran in results.items()},
            commits=[self._committed(result) for result in row.get("commit_results", ())],
        )
        self.repository.base = row.get("head_before")
        self.session_text: str | None = None
        self.rendered = RecordingPrompts()
        self.service = LoopService(replace(self.service.services, prompts=self.rendered))
        stream = self.run(**options).pipe(ops.do_action(self._keep_session))
        self.seen = Marbles().record(stream, until=10_000)

    @property
    def events(self) -> list[Event]:
        return [value for _, kind, value in self.seen if kind == "next"]

    @property
    def error(self) -> Exception | None:
        return next((value for _, kind, value in self.seen if kind == "error"), None)

    def _committed(self, result: Any) -> Observable[Commit]:
        match result:
            case "nothing":
                return empty()
            case {"hash": short}:
                return defer(lambda _: of(Commit(hash=short, message=self.repository.messages[-1])))
            case {"fail": reason}:
                return throw(ProcessError("git", reason))
            case other:
                raise AssertionError(other)

    def _keep_session(self, _event: Event) -> None:
        files = [f for f in self.workspace.wip.glob("*.md") if f.name.count(".") == 1]
        self.session_text = files[0].read_text(encoding="utf-8") if files else self.session_text

    def _runs(self, row: dict[str, Any]) -> dict[str, Any]:
        runs: dict[str, list[Any]] = {"planning": []}
        for agent in row["agents"]:
            said = from_iterable([self._said(emit) for emit in agent["emit"]])
            if "error" in agent:
                said = concat(said, throw(AgentFailed(agent["error"], reason="crash")))
            run = AgentRun(said, plan=agent.get("plan"), review=agent.get("review"))
            runs.setdefault(agent["role"], []).append(run)
        if "marker" in row.get("expected_error", {}).get("message", ""):
            # The agent that replaces a forgetful one is forgetful, too.
            runs[row["agents"][-1]["role"]].append(AgentRun(empty()))
        return runs

    @staticmethod
    def _said(emit: dict[str, Any]) -> Event:
        if "raw" in emit:
            return event_of(emit["raw"])
        text = emit.get("text")
        if text is None:
            text = f"<{emit['marker']}>\n{emit['content']}\n</{emit['marker']}>"
        return event_of({"_tag": "AgentMessage", "text": text})


def _ran(result: dict[str, Any]) -> Observable[bytes]:
    lines = of(result["output"].encode())
    return concat(lines, fails(result["exit"])) if result["exit"] else lines


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_scenario(row: dict[str, Any], tmp_path: Path) -> None:
    """A run emits the events, gives the inputs and leaves the files that the case expects."""
    played = Played(row, tmp_path)

    expected = row["expected_events"]
    for event in expected:
        if event["_tag"] == "LoopSpecIssue":
            stored = next(e for e in played.events if isinstance(e, LoopSpecIssue))
            assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.md", stored.filename)
            event["filename"] = stored.filename
    # The original neither announces its commands nor replaces an agent.
    own = CommandStartedEvent | CheckDoesNotDecide | AgentReplaced
    events = [event for event in played.events if not isinstance(event, own)]
    spawned = [one for one in played.agent.spawned if "Another agent worked" not in one.prompt]
    assert [event["_tag"] for event in expected] == [event.tag for event in events]
    assert all(map(matches, expected, events))

    assert_error(row.get("expected_error"), played.error)
    assert_inputs(row, spawned, played.rendered.inputs)
    issues = sorted(played.workspace.spec_issues.glob("*.md"))
    assert row.get("expected_spec_issue_files", []) == [file.read_text() for file in issues]
    if row.get("expected_session_text_at_end") is not None:
        assert row["expected_session_text_at_end"] == played.session_text
    assert row["expected_wip_files_after"] == list(played.workspace.wip.iterdir())


def assert_error(expected: dict[str, Any] | None, error: Exception | None) -> None:
    """Assert that the run failed as the case expects."""
    if expected is None:
        assert error is None
        return
    assert isinstance(error, CugginoError)
    if "message" in expected:
        assert expected["message"] == error.message
    if "phase" in expected:
        assert isinstance(error, LoopError)
        assert expected["phase"] == error.phase
    if "kind" in expected:
        assert expected["kind"] == type(error).__name__
        assert expected["operation"] == getattr(error, "operation", None)


def assert_inputs(
    row: dict[str, Any], spawned: list[SpawnOptions], inputs: list[tuple[str, dict[str, str]]]
) -> None:
    """Assert that each agent received its review, check output and baseline."""
    expected = row["expected_agent_inputs"]
    assert [want["role"] for want in expected] == [options.role for options in spawned]
    for want, (role, told) in zip(expected, inputs, strict=True):
        assert want["role"] == role
        for key, variable in (
            ("code_review", "review"),
            ("check_output", "check"),
            ("initial_commit", "baseline"),
        ):
            if key not in want:
                continue
            if want[key] is not None:
                assert want[key] in told[variable]
            elif variable == "baseline":
                assert "git diff" not in told[variable]
            else:
                assert told[variable] == ""


# -- the scenarios of the watch, in virtual time with real folders


WATCHES = rows("cuggino_watch_scenarios")


def watch(row: dict[str, Any], folder: Path) -> Watching:
    """The case's folders, loops, audits and timeline."""
    watching = Watching(
        folder,
        loops=[(run["duration"], run.get("outcome", run.get("error"))) for run in row["loops"]],
        audits=[audit_run(run) for run in row["audit_runs"]] if row["config"]["audit"] else None,
    )
    folders = {"backlog": watching.workspace.backlog, "spec_issues": watching.workspace.spec_issues}
    for kind, files in row["initial"].items():
        for name, text in files.items():
            (folders[kind] / name).write_text(text)
    for entry in row["timeline"]:
        place = folders[entry["dir"]]
        watching.at(entry["t"], deed(entry, place), place)
    return watching


def deed(entry: dict[str, Any], folder: Path) -> Callable[[], object]:
    """Apply an entry of the timeline to a folder."""
    if entry["op"] != "remove":
        return lambda: (folder / entry["file"]).write_text(entry["content"])
    if entry["file"] == "<ISSUE>":
        return lambda: next(folder.glob("*.md")).unlink()
    return lambda: (folder / entry["file"]).unlink()


@pytest.mark.parametrize("row", WATCHES, ids=[row["id"] for row in WATCHES])
def test_scenario_of_a_watch(row: dict[str, Any], tmp_path: Path) -> None:
    """A case gives its events at their seconds, or is listed with its reason and then differs."""
    watching = watch(row, tmp_path)
    seen = watching.play(row["until"], dispose_at=row.get("interrupt_at"))
    expected = [
        (e["t"], e["event"], *([e["filename"]] if e.get("filename") else []))
        for e in row["expected"]
    ]
    actual = [
        (when, event.tag)
        if isinstance(event, LoopSpecIssue) or getattr(event, "filename", None) is None
        else (when, event.tag, event.filename)
        for when, _, event in seen
    ]
    followed = expected == actual
    for place, names in row.get("expected_files", {}).items():
        assert "backlog" == place
        followed = followed and names == watching.backlog
    if "expected_focus" in row:
        path = row["expected_focus"].removeprefix("@<CWD>/")
        followed = followed and path in watching.loop.options[0].focus
    assert (row["id"] not in not_followed("cuggino_watch_scenarios")) == followed, actual
    assert [] == watching.watched
