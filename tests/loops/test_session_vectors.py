"""Recorded runs of the originals, in virtual time (AUT-030 to AUT-064, REQ-030 to REQ-036)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, defer, just, never
from reactivex.subject import ReplaySubject

from cuggino import events as ev
from cuggino.agents.base import SpawnOptions
from cuggino.errors import AgentFailed, QuotaExceeded
from tests.loops import plan_build_loop
from tests.loops.deliver_loop import DeliverLoop, Statuses, Turn
from tests.vectors import not_followed, rows

FUTURE = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=3)
DELIVERIES = rows("session_runner")
FOLLOWED = [row for row in DELIVERIES if row["id"] not in not_followed("session_runner")]


def turn(session: dict[str, Any], leaves: Statuses | None) -> Turn:
    """A session of the original as our agents tell it."""
    events: list[ev.Event] = []
    error: Exception | None = None
    if "throws" in session:
        error = AgentFailed(session["throws"], reason="crash")
    for raw in session["events"]:
        cost = raw.get("totalCostUsd")
        match raw:
            case {"type": "stream_text", "text": text}:
                events.append(ev.AgentMessage(text=text))
            case {"type": "stream_error", "message": message}:
                events.append(ev.SessionEnded(outcome="failed"))
                error = AgentFailed(message, reason="crash")
            case {"outcome": "completed"}:
                events.append(ev.AgentMessage(text=raw.get("result", "")))
                events.append(ev.SessionEnded(outcome="completed", cost_usd=cost))
            case {"outcome": "execution_error", "messages": messages}:
                events.append(ev.SessionEnded(outcome="failed", cost_usd=cost, num_turns=1))
                error = AgentFailed("\n".join(messages), reason="unknown")
            case {"outcome": "quota_exceeded"}:
                resets = FUTURE if "resetTime" in raw else None
                events.append(ev.SessionEnded(outcome="quota"))
                error = QuotaExceeded(raw.get("message", ""), resets_at=resets)
            case _:
                raise AssertionError(raw)
    return Turn(events, leaves=leaves, error=error)


def delivered(row: dict[str, Any], folder: Path) -> DeliverLoop:
    """The project of the row. What a session has come to is read when it has not failed."""
    after = iter(row["status_after_session"])
    turns: list[Turn] = []
    for session in row["sessions"]:
        failed = "throws" in session or session["events"][-1:][0]["type"] == "stream_error"
        said = None if failed else next(after, None)
        leaves = {item["id"]: item["status"] for item in said} if said else None
        turns.append(turn(session, leaves))
    start: Statuses | None = None
    if row["status_exists"][:1] == [True]:
        first: list[dict[str, str]] = next(iter(row["status_after_session"]), [])
        start = {item["id"]: "pending" for item in first}
    return DeliverLoop(folder, turns, start)


@pytest.mark.parametrize("row", FOLLOWED, ids=lambda row: row["id"])
def test_a_recorded_delivery(row: dict[str, Any], tmp_path: Path) -> None:
    """Sessions, instructions, retries and the end are those of the original."""
    options, expected = row["options"], row["result"]
    pause = options.get("delayBetweenSessions", 3000) / 1000
    project = delivered(row, tmp_path)
    stop: Observable[object] = just("stop") if row["interrupted"] else never()
    story = project.run(
        interrupt=stop,
        session_pause=pause,
        max_sessions=options.get("maxIterations"),
        max_retries=options.get("maxRetries", 3),
        wait_for_quota=options.get("waitForQuota", False),
    )
    assert row["instruction_names"] == story.instructions
    assert len(row["sessions"]) == len(project.agent.spawned)
    end = story.ended
    assert {
        "iterations": end.sessions,
        "deliverablesPassedCount": end.passed,
        "deliverablesTotalCount": end.total,
        "blockedCount": end.blocked,
        "exitReason": end.reason,
        "totalCostUsd": round(end.cost_usd, 6),
        **({"error": end.error} if "error" in expected else {}),
    } == {key: value for key, value in expected.items() if not key.startswith("verified")}
    assert logged(row) == described(story.events)
    waits = [delay / 1000 for delay in row["delays"]]
    begun = story.times(ev.DeliverSessionStarted)
    assert sum(waits) == pytest.approx((begun[-1] - begun[0]) if begun else 0, abs=1e-3)


def logged(row: dict[str, Any]) -> list[str]:
    """Return the logged lines about sessions."""
    last = [log["message"] for log in row["logs"] if not log["message"].startswith("Overall")]
    wanted = ("Session ", "Quota exceeded: ")
    unwanted = ("Session failed after",)
    return [
        line.replace(", duration=<D>", "")
        for line in last
        if line.startswith(wanted) and not line.startswith(unwanted)
    ]


def described(events: list[ev.Event]) -> list[str]:
    """The same of our events."""
    said: list[str] = []
    for event in events:
        match event:
            case ev.DeliverSessionStarted(session=n):
                said.append(f"Session {n} started")
            case ev.DeliverSessionEnded(outcome="error"):
                pass
            case ev.DeliverSessionEnded(session=n, outcome=outcome, message=message):
                if outcome == "quota":
                    said.append(f"Quota exceeded: {message}")
                said.append(f"Session {n}: cost=${event.cost_usd or 0:.4f}")
            case ev.DeliverSessionRetry(attempt=k, max_retries=most):
                said.append(f"Session error ({k}/{most}), starting new session...")
            case _:
                pass
    return said


# -- the runs of the vectors, replayed in virtual time (REQ-030 to REQ-036)


ABOUT_THE_COMMAND_LINE = frozenset({"ll-016", "ll-018", "ll-032"})
"""Rows of the menu, of `--config`, of an agent that is missing: see `tests/cli`."""
ROWS = {row["id"]: row for row in rows("lopen_loop")}
EXITS = {"complete": 0, "interrupted": 0, "max_retries_exceeded": 5, "failed": 1, "blocked": 1}
EXITS["max_iterations"] = -1  # the original has no such limit
"""The original's exit codes."""


@dataclass
class Recorded(plan_build_loop.Builders):
    """Plays the sessions and the verifications of a row, and notes what each finds."""

    row: dict[str, Any] = field(default_factory=dict)
    stop: ReplaySubject[object] = field(default_factory=ReplaySubject)
    prompts: list[str] = field(default_factory=list)
    judged: list[str] = field(default_factory=list)
    done_file: list[bool] = field(default_factory=list)
    jobs: list[dict[str, str]] = field(default_factory=list)

    def turn(self, options: SpawnOptions) -> plan_build_loop.Turn:
        if options.role == "judge":
            self.judged.append("job" if "The job" in options.prompt else "build")
            answer = self.row["verifications"][len(self.judged) - 1]
            if "raise" in answer:
                return plan_build_loop.crash(answer["raise"], reason="unknown")
            return plan_build_loop.says(json.dumps(answer))
        self.done_file.append(self.project.is_done)
        self.jobs.append(self.project.statuses)
        session = self.row["sessions"][len(self.prompts)]
        self.prompts.append(options.prompt)
        leaves = {effect["path"]: effect["content"] for effect in session.get("effects", ())}
        said: list[Any] = [
            ev.AgentMessage(text=text, message_id="m") for text in session.get("chunks", ())
        ]
        if "error" in session:
            error = AgentFailed(session["error"], reason="crash")
            return plan_build_loop.Turn(leaves, said, error)
        if session.get("interrupt"):
            return plan_build_loop.Turn(leaves, stream=defer(self._interrupted))
        return plan_build_loop.Turn(leaves, [*said, ev.SessionEnded(outcome="completed")])

    def _interrupted(self, _: object) -> Observable[Any]:
        self.stop.on_next("stop")
        return never()


def play(row: dict[str, Any], folder: Path) -> tuple[Recorded, plan_build_loop.RecordedBuild]:
    none = dict.fromkeys((*plan_build_loop.PROMPTS, plan_build_loop.SPECIFICATION))
    files = {**none, ".git/HEAD": row["head"] + "\n", **row["files"]}
    project = plan_build_loop.PlanBuildLoop(folder, files=files)
    agent = Recorded(project, row=row)
    project.replace(agent=agent)
    if row.get("interrupt_at") == "start":
        agent.stop.on_next("stop")
    story = project.run(
        interrupt=agent.stop,
        start="build" if row["answer"] == "3" else "plan",
        verify_after_iteration=row["config"].get("verifyAfterIteration", True),
        max_sessions=max(1, len(row["sessions"])),
    )
    return agent, story


def lines(events: Iterable[ev.Event]) -> str:
    """Return the events in the words of the vectors."""
    said: list[str] = []
    for event in events:
        match event:
            case ev.PlanBuildPhaseStarted(phase=phase):
                said.append(f"Mode: {phase.upper()}")
            case ev.PlanBuildIterationEnded(iteration=n):
                said.append(f"Completed iteration {n}")
            case ev.PlanBuildWarning(message=message):
                said.append(message)
            case ev.FileTouched(path=path):
                said.append(path)
            case ev.PlanBuildSessionRetry(attempt=k, max_retries=most):
                said.append(f"Session error ({k}/{most})")
            case ev.BuildVerified(passed=passed, issues=issues):
                said += ["Build verified" if passed else "Build verification failed", *issues]
            case ev.JobVerified(job_id=job, issues=issues):
                said += [job, *issues]
            case ev.JobsCounted(open=still, done=done):
                said.append(f"Jobs: {still} open, {done} done")
            case ev.PlanBuildEnded(reason="complete"):
                said.append("Loop complete! All jobs finished.")
            case ev.PlanBuildEnded(reason="interrupted"):
                said.append("Loop cancelled by user.")
            case ev.PlanBuildEnded(error=error):
                said.append(error)
            case ev.AgentMessage(text=text):
                said.append(text)
            case _:
                pass
    return "\n".join(said)


def check(row: dict[str, Any], folder: Path) -> None:
    agent, story = play(row, folder)
    expected, said = row["expected"], lines(story.events)
    known = {"exit", "contains", "not_contains", "sessions", "iterations", "prompts"}
    known |= {"verify_calls", "done_file_after_1", "files_unchanged", "file_contains"}
    known |= {"job_status", "job_status_after_1", "jobs_after_1", "jobs_seen_by_session_1"}
    known |= {"text", "visible_before_end", "files_created"}
    assert set(expected) <= known, set(expected) - known
    if "exit" in expected:
        assert expected["exit"] == EXITS[story.ended.reason]
    for text in expected.get("contains", ()):
        assert text.removeprefix("Expected file: ") in said, said
    for text in expected.get("not_contains", ()):
        assert text not in said
    if "sessions" in expected:
        assert expected["sessions"] == len(agent.prompts)
    if "iterations" in expected:
        assert expected["iterations"] == len(story.of(ev.PlanBuildIterationEnded))
    if "prompts" in expected:
        assert expected["prompts"] == agent.prompts
    for kind, count in expected.get("verify_calls", {}).items():
        assert count == agent.judged.count(kind), kind
    if "done_file_after_1" in expected:
        assert expected["done_file_after_1"] == agent.done_file[1]
    assert expected.get("job_status", {}).items() <= agent.project.statuses.items()
    if "job_status_after_1" in expected:
        assert expected["job_status_after_1"].items() <= agent.jobs[1].items()
    if "jobs_after_1" in expected:
        assert expected["jobs_after_1"] == list(agent.jobs[1])
    if "text" in expected:
        assert expected["text"] == "".join(event.text for event in story.of(ev.AgentMessage))
    for name in expected.get("files_created", ()):
        assert (folder / name).exists()
    for name in expected.get("files_unchanged", ()):
        assert row["files"][name] == (folder / name).read_text()
    for name, text in expected.get("file_contains", {}).items():
        assert text in (folder / name).read_text()


@pytest.mark.parametrize("row_id", sorted(ROWS.keys() - ABOUT_THE_COMMAND_LINE))
def test_a_recorded_build(row_id: str, tmp_path: Path) -> None:
    """Sessions, verifications, files and the end are those of the row."""
    check(ROWS[row_id], tmp_path)
