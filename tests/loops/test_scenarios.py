"""The scenarios of the coding loop, with an agent in memory and in virtual time."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, concat, empty, from_iterable, of, operators as ops, throw

from cuggino.agents.base import SpawnOptions
from cuggino.errors import AgentFailed, CugginoError, LoopError, ProcessError, ProcessFailed
from cuggino.events import (
    AgentReplaced,
    CheckDoesNotDecide,
    CommandStartedEvent,
    Event,
    LoopSpecIssue,
)
from cuggino.loops import LoopRunOptions, LoopService, Services
from cuggino.prompts import Prompts
from cuggino.stages import Commit
from cuggino.storage import Workspace
from cuggino.testing import AgentRun, InMemoryAgent, Marbles
from tests.vectors import event_of, matches, not_followed, rows, snake

ROWS = [
    row
    for row in rows("cuggino_loop_scenarios")
    if row["id"] not in not_followed("cuggino_loop_scenarios")
]


class ScriptedRepository:
    """A repository that answers `head` and `commit` by the case."""

    def __init__(self, row: dict[str, Any]) -> None:
        self._head = row.get("head_before")
        self._results = iter(row.get("commit_results", ()))
        self.heads_asked = 0

    def head(self) -> Observable[str | None]:
        self.heads_asked += 1
        return of(self._head)

    def commit(self, message: str, *, exclude: tuple[Path, ...] = ()) -> Observable[Commit]:
        match next(self._results):
            case "nothing":
                return empty()
            case {"hash": short}:
                return of(Commit(hash=short, message=message))
            case {"fail": reason}:
                return throw(ProcessError("git", reason))
            case other:
                raise AssertionError(other)

    def push(self, remote: str, branch: str) -> Observable[Any]:
        raise AssertionError("no case pushes")


class RecordingPrompts(Prompts):
    """Keeps the variables that each role was rendered with."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs: list[tuple[str, dict[str, str]]] = []

    def render(self, role: str, variables: Any) -> str:
        self.inputs.append((role, dict(variables)))
        return super().render(role, variables)


class Played:
    """A case, played to its end."""

    def __init__(self, row: dict[str, Any], folder: Path) -> None:
        (folder / row["options"].get("specsPath", ".specs")).mkdir()
        self.workspace = Workspace(folder)
        self.session_text: str | None = None
        self.prompts = RecordingPrompts()
        self.agent = InMemoryAgent(self._runs(row))
        self._outputs = {
            "setup": iter(row.get("setup_results", ())),
            "check": iter(row.get("check_results", ())),
        }
        options = {snake(key): value for key, value in row["options"].items()}
        self._setup = options.get("setup_command")
        service = LoopService(
            Services(
                agent=self.agent,
                workspace=self.workspace,
                repository=ScriptedRepository(row),
                prompts=self.prompts,
                shell=self._shell,
            )
        )
        self.seen = Marbles().record(
            service.run(LoopRunOptions(cwd=folder, baseline="skip", **options)).pipe(
                ops.do_action(self._keep_session)
            ),
            until=10_000,
        )

    @property
    def events(self) -> list[Event]:
        return [value for _, kind, value in self.seen if kind == "next"]

    @property
    def error(self) -> Exception | None:
        return next((value for _, kind, value in self.seen if kind == "error"), None)

    def _keep_session(self, _event: Event) -> None:
        files = [f for f in self.workspace.wip.glob("*.md") if f.name.count(".") == 1]
        self.session_text = files[0].read_text(encoding="utf-8") if files else self.session_text

    def _shell(self, command: str, cwd: Path) -> Observable[bytes]:
        result = next(self._outputs["setup" if command == self._setup else "check"])
        lines = of(result["output"].encode())
        if result["exit"]:
            return concat(lines, throw(ProcessFailed("sh", result["exit"], "")))
        return lines

    def _runs(self, row: dict[str, Any]) -> Any:
        runs: dict[str, list[AgentRun]] = {}
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
    assert_inputs(row, spawned, played.prompts.inputs)
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
