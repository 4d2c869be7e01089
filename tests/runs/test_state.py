"""The current activity of a run, folded from its events."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.operators import StateRef
from cuggino.runs import RunningTool, RunState, Wait, tool_target, with_state
from cuggino.testing import Marbles

START = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)


def after(*events: ev.Event, start: RunState | None = None) -> RunState:
    """Return the activity after events that come a second apart, from second 0 on."""
    activity = start or RunState()
    for second, event in enumerate(events):
        activity = activity.add(event, at=at(second))
    return activity


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def tool(name: str, target: str, since: float, id: str = "") -> RunningTool:
    return RunningTool(name=name, target=target, since=at(since), id=id)


def started(**options: Any) -> ev.RunStarted:
    kind = options.pop("kind", "run")
    return ev.RunStarted(run_id="r1", kind=kind, command="cuggino", agent="claude", options=options)


DEMO: list[ev.Event] = [
    started(max_iterations=3, model="opus", budget=5),
    ev.IterationStart(iteration=1, max_iterations=3),
    ev.PlanningStart(iteration=1),
    ev.SnapshotTaken(stage="planning-1", ref="r", commit="c"),
    ev.SystemMessage(text="Session initialized"),
    ev.AgentMessage(text="I read the specification.", message_id="m"),
    ev.ToolCall(name="Bash", input={"command": "cat .specs/temperature.md"}, id="tool_1"),
    ev.ToolResult(name="tool_1", output="# Temperature"),
    ev.SessionEnded(outcome="completed", cost_usd=0.021, duration=1.5),
    ev.StageCost(phase="planning", cost_usd=0.021, duration=1.5, total_cost=0.021),
    ev.PlanComplete(content="Two tasks"),
    ev.SetupCommandStarted(iteration=1, command="python3 -m compileall -q ."),
    ev.SetupCommandOutput(iteration=1, exit_code=0),
    ev.ImplementingStart(iteration=1),
    ev.CheckCommandStarted(iteration=1, command="python3 -m unittest -q"),
    ev.CheckCommandOutput(iteration=1, exit_code=0),
    ev.ToolCall(name="Write", input={"file_path": "temperature.py", "content": "x"}, id="tool_1"),
    ev.ToolResult(name="tool_1", output="done"),
    ev.SessionEnded(outcome="completed", cost_usd=0.034, duration=2.1),
    ev.Progress(content="Add conversions"),
    ev.CommitPerformed(iteration=1, commit_hash="3d20474", message="Add conversions"),
    ev.ImplementingStart(iteration=1),
    ev.SessionEnded(outcome="completed", cost_usd=0.029, duration=2.3),
    ev.Done(content="Add a command line"),
    ev.ReviewingStart(iteration=1),
    ev.SessionEnded(outcome="completed", cost_usd=0.018, duration=1.5),
    ev.IterationStart(iteration=2, max_iterations=3),
    ev.PlanningStart(iteration=2),
    ev.ImplementingStart(iteration=2),
    ev.ReviewingStart(iteration=2),
    ev.AgentMessage(text="Every point is met.", message_id="m"),
    ev.SessionEnded(outcome="completed", cost_usd=0.012, duration=1.1),
    ev.Approved(content="It matches."),
    ev.LoopApproved(iteration=2),
]


def test_a_run_begins_with_its_options() -> None:
    activity = after(started(max_iterations=3, model="opus", budget=5))
    assert activity.kind == "run"
    assert (activity.agent, activity.model, activity.budget) == ("claude", "opus", 5.0)
    assert (activity.state, activity.max_iterations, activity.began) == ("working", 3, START)


@pytest.mark.parametrize(
    ("count", "role", "iteration", "task", "running", "words"),
    [
        (3, "planning", 1, 0, "", ""),
        (6, "planning", 1, 0, "", "I read the specification."),
        (7, "planning", 1, 0, "Bash", "I read the specification."),
        (8, "planning", 1, 0, "", "I read the specification."),
        (12, "planning", 1, 0, "Setup", "I read the specification."),
        (13, "planning", 1, 0, "", "I read the specification."),
        (14, "implementing", 1, 1, "", ""),
        (15, "implementing", 1, 1, "Check", ""),
        (17, "implementing", 1, 1, "Write", ""),
        (21, "implementing", 1, 2, "", ""),
        (22, "implementing", 1, 2, "", ""),
        (25, "reviewing", 1, 2, "", ""),
        (27, "reviewing", 2, 0, "", ""),
        (29, "implementing", 2, 1, "", ""),
        (31, "reviewing", 2, 1, "", "Every point is met."),
    ],
)
def test_stages_of_the_demo(
    count: int, role: str, iteration: int, task: int, running: str, words: str
) -> None:
    activity = after(*DEMO[:count])
    assert activity.state == "working"
    assert (activity.role, activity.iteration, activity.task) == (role, iteration, task)
    assert (activity.tool.name if activity.tool else "", activity.words) == (running, words)


@pytest.mark.parametrize(
    ("count", "outcome"),
    [(3, ""), (10, ""), (11, "PlanComplete"), (14, ""), (20, "Progress"), (22, ""), (24, "Done")],
)
def test_the_outcome_of_a_stage(count: int, outcome: str) -> None:
    """It is that of its marker, until the next stage begins."""
    assert after(*DEMO[:count]).stage_outcome == outcome


def test_sessions_of_loops_have_outcomes() -> None:
    """Those of the deliver and the plan/build loop end with one."""
    deliver = ev.DeliverSessionEnded(session=1, outcome="execution_error")
    build = ev.PlanBuildSessionEnded(iteration=1, phase="plan", outcome="completed")
    assert (after(deliver).stage_outcome, after(build).stage_outcome) == (
        "execution_error",
        "completed",
    )
    assert (
        after(*DEMO[:14], ev.LoopMaxIterations(iteration=1, max_iterations=1)).stage_outcome
        == "max_iterations"
    )


def test_the_running_command() -> None:
    """It ends with its output, or with the next command or tool call."""
    check = ev.CheckCommandStarted(iteration=1, command="make")
    command = after(check).command
    assert command is not None
    assert (command.name, command.target, command.since) == ("Check", "make", at(0))
    again = after(check, check)
    assert again.command is not None
    assert again.command.since == at(1)
    for end in (ev.CheckCommandOutput(iteration=1), ev.ToolCall(name="Check", id="c")):
        assert after(check, end).command is None


def test_a_run_ends_with_its_outcome_and_keeps_its_totals() -> None:
    activity = after(*DEMO)
    assert (activity.state, activity.outcome) == ("ended", "approved")
    assert activity.cost_usd == pytest.approx(0.114)
    assert activity.elapsed(at(9999)) == len(DEMO) - 1


@pytest.mark.parametrize(
    "event",
    [
        ev.MessageDelta(text="x", message_id="m"),
        ev.PingEvent(timestamp=1.0),
        ev.SystemMessage(text="Session initialized"),
        ev.Thinking(text="..."),
        ev.CommitPerformed(iteration=1, commit_hash="a", message="b"),
        ev.StageCost(phase="planning"),
        ev.StageFinished(outcome={"_tag": "Progress", "content": ""}),
        ev.ToolResult(name="nobody", output=""),
        ev.AgentMessage(text="by a sub-agent", parent_tool_use_id="tool_1"),
        ev.AgentMessage(text=" \n "),
        ev.RateLimited(status="allowed_warning"),
        ev.UnknownEvent(raw={"_tag": "PlanningStart"}),
    ],
    ids=lambda event: type(event).__name__,
)
def test_events_without_effect_on_what_goes_on(event: ev.Event) -> None:
    """Some events change nothing but the time of the last event, and what is counted."""
    before = after(*DEMO[:7])
    then = before.add(event, at=at(100))
    counted = {name: getattr(before, name) for name in ("last", "tally", "stages")}
    assert before == replace(then, **counted)
    assert at(6 if isinstance(event, ev.PingEvent) else 100) == then.last


def test_parallel_tools_end_one_by_one() -> None:
    calls: list[ev.Event] = [ev.ToolCall(name=name, input={}, id=name) for name in ("A", "B", "C")]
    activity = after(ev.PlanningStart(iteration=1), *calls, ev.ToolResult(name="C", output=""))
    assert activity.tools == (tool("A", "", 1, "A"), tool("B", "", 2, "B"))
    assert activity.tool == tool("B", "", 2, "B")
    assert after(ev.SessionEnded(outcome="failed"), start=activity).tools == ()


def test_tools_without_results_are_bounded() -> None:
    calls = [ev.ToolCall(name="Read", input={"file_path": str(n)}, id=str(n)) for n in range(100)]
    activity = after(*calls)
    assert len(activity.tools) == 32
    assert activity.tools[-1].target == "99"


def test_long_texts_are_cut() -> None:
    long = "x" * 5_000_000
    activity = after(
        ev.AgentMessage(text=f"\n\n{long}"),
        ev.ToolCall(name="Bash", input={"command": long}, id="1"),
    )
    assert len(activity.words) == 500
    assert activity.tool is not None
    assert len(activity.tool.target) == 500


def test_a_retry_is_waited_for_until_the_agent_reports_again() -> None:
    retry = ev.AgentRetry(
        reason="overloaded", message="529", attempt=1, max_retries=5, retry_in=8.0
    )
    waiting = after(ev.PlanningStart(iteration=1), retry)
    assert waiting.state == "waiting"
    assert waiting.wait is not None
    assert (waiting.wait.reason, waiting.wait.until) == ("overloaded", at(9))
    assert (waiting.wait.attempt, waiting.wait.max_attempts) == (1, 5)
    for event in (
        ev.SystemMessage(text="started"),
        ev.AgentMessage(text="hello"),
        ev.AgentNudged(idle=1),
    ):
        assert waiting.add(event, at=at(10)).state == "working"


def test_a_usage_limit_is_waited_for_with_its_name() -> None:
    limited = ev.RateLimited(status="rejected", limit="five_hour")
    waiting = after(ev.ImplementingStart(iteration=1), limited, ev.QuotaWaiting(remaining=3600))
    assert waiting.wait is not None
    assert (waiting.wait.reason, waiting.wait.limit) == ("quota", "five_hour")
    assert (waiting.state, waiting.wait.until) == ("waiting", at(3602))
    again = waiting.add(ev.QuotaWaiting(remaining=3540), at=at(62))
    assert again.wait is not None and again.wait.until == at(3602)
    assert again.add(ev.QuotaLifted(waited=3600), at=at(3602)).state == "working"


def used(share: float, seconds: float, *, agent: str = "claude") -> ev.QuotaUsed:
    return ev.QuotaUsed(window="five_hour", used=share, resets_at=at(seconds), agent=agent)


def test_the_last_known_windows() -> None:
    """Each window is as reported last, until it is reset."""
    activity = after(used(0.4, 100), used(0.1, 200, agent="codex"), used(0.6, 100))
    assert (used(0.6, 100), used(0.1, 200, agent="codex")) == activity.windows_at(at(99))
    assert (used(0.1, 200, agent="codex"),) == activity.windows_at(at(100))
    later = activity.add(used(0.2, 300, agent="codex"), at=at(150))
    assert (used(0.2, 300, agent="codex"),) == later.windows


@pytest.mark.parametrize(
    ("before", "other", "expected"),
    [
        (used(0.4, 100), used(0.6, 100), used(0.6, 100)),
        (used(0.6, 100), used(0.4, 100), used(0.6, 100)),
        (used(0.6, 100), used(0.1, 200), used(0.1, 200)),
        (used(0.1, 200), used(0.6, 100), used(0.1, 200)),
    ],
)
def test_windows_of_an_item(
    before: ev.QuotaUsed, other: ev.QuotaUsed, expected: ev.QuotaUsed
) -> None:
    """Of the reports of a watch and of its item, the newer one counts."""
    watch = RunState(kind="watch", item="a.md", windows=(before,))
    assert (expected,) == watch.with_item(after(other)).windows


def test_a_fallback_is_the_agent_at_work() -> None:
    fell = ev.AgentFellBack(
        role="planning", from_agent="claude", to_agent="codex", reason="quota", message=""
    )
    activity = after(started(model="opus"), ev.PlanningStart(iteration=1), fell)
    assert (activity.agent, activity.model) == ("codex", None)


def test_a_killed_run_continues_with_its_earlier_time() -> None:
    killed = after(started(), ev.PlanningStart(iteration=1), ev.ToolCall(name="Bash", id="1"))
    resumed = killed.add(ev.RunContinued(), at=at(1000))
    assert (resumed.tools, resumed.state) == ((), "working")
    assert resumed.elapsed(at(1010)) == 12.0


def test_an_ended_journal_has_its_state() -> None:
    activity = after(started(), ev.RunEnded(state="failed", message="no luck"))
    assert (activity.state, activity.outcome, activity.message) == ("ended", "failed", "no luck")
    assert activity.add(ev.RunContinued(), at=at(9)).state == "working"


# Watches


WATCH: list[ev.Event] = [
    started(kind="watch", budget=20),
    ev.WatchProcessingItem(filename="001-login.md"),
    *DEMO[1:],
    ev.WatchItemCompleted(filename="001-login.md"),
    ev.WatchProcessingItem(filename="002-search.md"),
    ev.IterationStart(iteration=1, max_iterations=3),
    ev.PlanningStart(iteration=1),
    ev.SessionEnded(outcome="failed", cost_usd=0.1),
]


def test_a_watch_knows_its_items() -> None:
    begun = after(*WATCH[:2])
    assert (begun.kind, begun.item, begun.title, begun.state) == (
        "watch",
        "001-login.md",
        "001-login.md",
        "working",
    )
    second = after(*WATCH)
    assert (second.item, second.done, second.parked, second.role) == (
        "002-search.md",
        1,
        0,
        "planning",
    )
    assert (second.iteration, second.task, second.outcome) == (1, 0, "")
    assert second.cost_usd == pytest.approx(0.214)


def test_the_result_of_an_item_does_not_end_its_watch() -> None:
    activity = after(*WATCH[: 1 + len(DEMO)])
    assert activity.outcome == ""
    assert activity.state == "working"


def test_the_error_of_one_item_keeps_the_totals() -> None:
    failed = ev.WatchItemRetry(
        filename="002-search.md", message="boom", attempt=1, max_attempts=3, retry_in=60.0
    )
    waiting = after(*WATCH, failed)
    assert (waiting.item, waiting.role, waiting.state, waiting.done) == ("", "", "waiting", 1)
    assert waiting.wait is not None
    assert (waiting.wait.attempt, waiting.wait.max_attempts) == (2, 3)
    parked = waiting.add(ev.WatchItemParked(filename="002-search.md", reason="boom"), at=at(99))
    assert (parked.parked, parked.done, parked.wait) == (1, 1, None)
    assert parked.cost_usd == pytest.approx(0.214)


def test_an_item_that_resumes_keeps_the_totals_of_the_watch() -> None:
    resumed = ev.RunResumed(run_id="r2", stages=3, cost_usd=7.0, duration=500.0)
    activity = after(*WATCH, ev.WatchProcessingItem(filename="003.md"), resumed)
    assert activity.cost_usd == pytest.approx(0.214)
    assert activity.run_id == "r1"
    assert activity.earlier == 0.0


def test_a_watch_is_idle_between_items() -> None:
    activity = after(
        *WATCH, ev.WatchItemCompleted(filename="002-search.md"), ev.WatchBacklogWaiting()
    )
    assert (activity.state, activity.item, activity.role, activity.done) == ("idle", "", "", 2)
    audited = activity.add(ev.WatchAuditStarted(), at=at(90))
    assert (audited.state, audited.role) == ("working", "audit")
    assert audited.add(ev.WatchAuditEnded(), at=at(91)).state == "idle"


def test_a_spec_issue_waits_for_a_person() -> None:
    issue = ev.LoopSpecIssue(iteration=1, content="Which port?", filename="x.md")
    found = after(*WATCH, issue)
    assert found.calls == ("Answer: Which port?",)
    waiting = found.add(ev.WatchSpecIssueWaiting(), at=at(90))
    assert (waiting.state, waiting.is_blocked) == ("waiting", True)
    resolved = waiting.add(ev.WatchProcessingItem(filename="002-search.md"), at=at(91))
    assert (resolved.state, resolved.calls) == ("working", ())


def test_a_login_waits_for_a_person_until_an_agent_has_worked() -> None:
    login = ev.WatchItemRetry(
        filename="a.md",
        message="run `claude` once",
        attempt=1,
        max_attempts=3,
        retry_in=300.0,
        counted=False,
        login=True,
    )
    waiting = after(*WATCH, login)
    assert waiting.calls == ("Log in: run `claude` once",)
    assert waiting.wait is not None and waiting.wait.reason == "login"
    again = waiting.add(ev.WatchProcessingItem(filename="a.md"), at=at(400))
    assert again.calls == ("Log in: run `claude` once",)
    assert again.add(ev.SessionEnded(outcome="completed"), at=at(401)).calls == ()


def test_the_activity_of_an_item_completes_that_of_its_watch() -> None:
    watch = after(
        started(kind="watch"),
        ev.WatchProcessingItem(filename="a.md"),
        ev.SessionEnded(outcome="completed"),
    )
    item = after(*DEMO[:7])
    joined = watch.with_item(item)
    assert (joined.kind, joined.item, joined.role) == ("watch", "a.md", "planning")
    assert (joined.iteration, joined.tool, joined.agent) == (1, item.tool, "claude")
    assert joined.spent == watch.spent


# The loops of sessions


def test_a_delivery_counts_its_deliverables() -> None:
    states = [("1", "passed"), ("2", "blocked"), ("3", "pending")]
    listed = ev.DeliverablesListed(
        deliverables=tuple(
            ev.DeliverableState.model_validate({"id": id, "description": id, "status": status})
            for id, status in states
        )
    )
    activity = after(
        listed, ev.DeliverSessionStarted(session=2, instruction="coding", model="opus")
    )
    assert (activity.goals_met, activity.goals, activity.iteration) == (1, 3, 2)
    assert (activity.kind, activity.role, activity.model) == ("deliver", "coding", "opus")
    ended = activity.add(ev.DeliverEnded(reason="all_passed"), at=at(5))
    assert (ended.state, ended.outcome) == ("ended", "approved")


def test_a_plan_build_loop_counts_its_jobs() -> None:
    activity = after(
        ev.JobsCounted(open=2, done=3), ev.PlanBuildPhaseStarted(phase="build", iteration=4)
    )
    assert (activity.goals_met, activity.goals) == (3, 5)
    assert (activity.kind, activity.role, activity.iteration) == ("loop", "build", 4)


# Plans and tools


def test_the_task_at_work_has_its_title() -> None:
    activity = replace(after(*DEMO[:22]), tasks=("one", "two"))
    assert activity.task_title == "two"
    assert replace(activity, tasks=("one",)).task_title == ""
    assert replace(activity, task=0).task_title == ""


@pytest.mark.parametrize(
    ("name", "tool_input", "target"),
    [
        ("Bash", {"description": "d", "command": "ls"}, "ls"),
        ("Task", {"prompt": "p"}, "p"),
        ("Bash", {"command": 3}, ""),
        ("Other", {"n": 1, "path": "a"}, "a"),
        ("Other", None, ""),
        ("Other", ["a"], ""),
    ],
)
def test_the_target_of_a_tool(name: str, tool_input: object, target: str) -> None:
    assert tool_target(name, tool_input) == target


# Commands of a person


def test_a_pause_begins_at_the_next_boundary() -> None:
    asked = after(started(), ev.PlanningStart(iteration=1), ev.PauseAsked())
    assert (asked.state, asked.role) == ("pausing", "planning")
    assert asked.add(ev.ContinueAsked(), at=at(9)).state == "working"
    paused = asked.add(ev.RunPaused(), at=at(10))
    assert (paused.state, paused.paused_since) == ("paused", at(10))
    assert paused.paused_since == paused.add(ev.PauseAsked(), at=at(11)).paused_since
    assert paused.add(ev.RunPaused(), at=at(12)).paused_since == at(10)
    assert paused.add(ev.ContinueAsked(), at=at(13)).state == "working"
    assert paused.add(ev.PauseEnded(seconds=3), at=at(13)).paused_since is None


def test_a_watch_waits_for_its_hours() -> None:
    """The wait has its end; a person's pause takes its place, and the hours end it."""
    closed = after(started(), ev.PlanningStart(iteration=1), ev.RunPaused(until=at(90)))
    assert (closed.state, closed.wait, closed.paused_since) == (
        "waiting",
        Wait(reason="hours", until=at(90)),
        None,
    )
    opened = closed.add(ev.PauseEnded(seconds=3), at=at(90))
    assert (opened.state, opened.wait) == ("working", None)
    asked = closed.add(ev.PauseAsked(), at=at(20)).add(ev.PauseEnded(seconds=1), at=at(20))
    assert asked.add(ev.RunPaused(), at=at(20)).state == "paused"


def test_a_run_that_is_told_to_stop_is_stopping_until_it_ends() -> None:
    stopping = after(started(), ev.PlanningStart(iteration=1), ev.StopAsked())
    assert stopping.state == "stopping"
    ended = stopping.add(ev.RunEnded(state="interrupted"), at=at(9))
    assert (ended.state, ended.outcome) == ("ended", "interrupted")
    assert ended.add(ev.RunContinued(), at=at(20)).state == "working"


def test_messages_wait_until_an_agent_has_them() -> None:
    asked = after(ev.SteerAsked(text="use ASCII"), ev.SteerAsked(text="add tests"))
    assert asked.steering == ("use ASCII", "add tests")
    told = asked.add(ev.Steered(text="use ASCII", to="session"), at=at(9))
    assert told.steering == ("add tests",)
    assert told.add(ev.Steered(text="unknown", to="session"), at=at(9)).steering == ("add tests",)
    assert asked.add(ev.Steered(text="use ASCII\nadd tests", to="prompt"), at=at(9)).steering == ()


def test_the_plan_names_the_tasks() -> None:
    plan = ev.PlanWritten(iteration=1, text="## Task 1: one\n## Task 2: two\n")
    activity = after(ev.PlanningStart(iteration=1), plan, ev.ImplementingStart(iteration=1))
    assert (activity.tasks, activity.task_title) == (("one", "two"), "one")
    assert after(ev.IterationStart(iteration=2, max_iterations=3), start=activity).tasks == ()


def test_an_item_has_a_title_and_a_position() -> None:
    item = ev.WatchProcessingItem(filename="a.md", title="Login page", position=2, total=5)
    activity = after(started(kind="watch"), item)
    assert (activity.title, activity.position, activity.total) == ("Login page", 2, 5)
    assert activity.queued == 3


# The forecast

FORECAST = ev.Forecast(loop="run", runs=3, duration=60, worst_duration=90)
OF_ITEMS = FORECAST.model_copy(update={"loop": "item", "items": 2})
ITEM = ev.WatchProcessingItem(filename="1.md", title="One", position=1, total=2)
SLOT = ITEM.model_copy(update={"slot": 1})
RESUMED = ev.RunResumed(run_id="r1", stages=1, duration=25)
DONE = ev.WatchItemCompleted(filename="1.md")


@pytest.mark.parametrize(
    ("events", "end"),
    [
        ([started()], None),
        ([started(), FORECAST], 60),
        ([RESUMED, FORECAST], 35),
        ([started(), FORECAST, ev.RunContinued(), FORECAST], 61),
        ([ev.RunResumed(run_id="r1", stages=1, duration=99), FORECAST], 0),
        ([started(), FORECAST, ev.RunEnded(state="approved")], None),
        ([started(), FORECAST, ev.LoopApproved(iteration=1)], None),
        ([started(kind="watch"), OF_ITEMS], None),
        ([started(kind="watch"), OF_ITEMS, ITEM, ev.PlanningStart(iteration=1)], 62),
        ([started(kind="watch"), OF_ITEMS, ITEM, RESUMED], 62),
        ([started(kind="watch"), OF_ITEMS, ITEM, DONE], None),
        ([started(kind="watch"), OF_ITEMS, ITEM, DONE, ITEM], 64),
        ([started(kind="watch", slots=2), OF_ITEMS, SLOT], None),
    ],
)
def test_the_usual_end(events: list[ev.Event], end: float | None) -> None:
    """A run usually ends after the forecast's time, without that of earlier processes."""
    assert (None if end is None else at(end)) == after(*events).usual_end


def test_the_usual_end_of_an_item_in_a_slot() -> None:
    """Each item in a slot has its own."""
    watch = after(started(kind="watch", slots=2), OF_ITEMS, SLOT)
    part = watch.of_item("1.md")
    assert part is not None
    assert at(62) == part.usual_end


def test_the_usual_end_of_an_item_with_its_own_journal() -> None:
    """The journal of the item's run keeps what the watch has forecast."""
    watch = after(started(kind="watch"), OF_ITEMS, ITEM)
    run = after(started(), ev.PlanningStart(iteration=1))
    assert at(62) == watch.with_item(run).usual_end


def test_a_state_is_published() -> None:
    """Each event is in the state before it is passed on, at the time of the scheduler."""
    t = Marbles(a=ev.PlanningStart(iteration=1), b=ev.AgentMessage(text="I read"))
    state = StateRef(RunState())
    seen: list[tuple[str, str]] = []
    state.changes.subscribe(lambda run: seen.append((run.role, run.words)))
    t.check(t.cold("-a-b|").pipe(with_state(state)), "-a-b|")
    assert [("", ""), ("planning", ""), ("planning", "I read")] == seen
    assert t.at(1) == state.value.stage_began
