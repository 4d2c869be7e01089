"""The text of cuggino status, and the summary at the end of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cuggino import events as ev
from cuggino.events import (
    HandsEnded,
    HandsStarted,
    LoopApproved,
    LoopMaxIterations,
    LoopSpecIssue,
    RunOutcome,
    RunResult,
    SessionEnded,
    Usage,
    UsageUpdate,
    WatchFollowDelayed,
    WatchItemCompleted,
    WatchItemParked,
    WatchLanded,
    WatchSentBack,
)
from cuggino.runs import ProjectStatus, Question, RunState, status_json
from cuggino.runs.status import Waiting
from cuggino.storage import LockOwner
from cuggino_cli.screen.fragments import paint
from cuggino_cli.screen.overview import status_fragments
from cuggino_cli.screen.status import RunStatus
from cuggino_cli.screen.summary import summary_fragments
from tests.domain.tallies import tally
from tests.runs.test_state import after

AT = datetime(2026, 11, 23, 7, tzinfo=UTC)
ITEM = ev.WatchProcessingItem(filename="1.md", title="The bill", position=2, total=5)
ISSUE = Waiting(kind="spec-issue", name="i.md", title="PDF\x1b[2J?", hint="answer it")


def shown(
    *events: ev.Event,
    waiting: tuple[Waiting, ...] = (),
    issues: Mapping[str, str] | None = None,
    columns: int | None = None,
) -> str:
    """Return the status of a watch after these events, ten seconds later."""
    activity = RunState()
    for event in events:
        activity = activity.add(event, at=AT)
    status = ProjectStatus(
        folder=Path("/shop"),
        at=AT + timedelta(seconds=10),
        owner=LockOwner(pid=7, since=AT, command="cuggino watch"),
        activity=activity,
        waiting=waiting,
        issues=issues or {},
    )
    return paint(status_fragments(status, columns=columns), color=False)


@pytest.mark.parametrize(
    ("events", "waiting", "headline"),
    [
        ((ITEM, ev.PlanningStart(iteration=1)), (), "running"),
        ((ITEM, ev.PlanningStart(iteration=1)), (ISSUE,), "running"),
        ((ITEM, ev.PauseAsked()), (), "pausing after this stage"),
        ((ITEM, ev.PauseAsked(), ev.RunPaused()), (), "paused"),
        ((ITEM, ev.RunPaused(until=datetime(2026, 1, 1, tzinfo=UTC))), (), "waiting"),
        ((ITEM, ev.StopAsked()), (), "stopping after this stage"),
        ((ev.WatchBacklogWaiting(),), (), "waiting for work"),
        ((ev.WatchSpecIssueWaiting(),), (ISSUE,), "waiting for you"),
        ((ev.WatchSpecIssueWaiting(),), (), "resuming shortly"),
    ],
)
def test_headline(
    events: tuple[ev.Event, ...], waiting: tuple[Waiting, ...], headline: str
) -> None:
    """The first line reports the state of the process; a settled issue needs no person."""
    first = shown(*events, waiting=waiting).splitlines()[0]
    assert first.startswith(f"cuggino watch: {headline} (process 7, since ")


def test_item_and_stage() -> None:
    """The item has its place and file, the stage its role and time."""
    text = shown(ITEM, ev.PlanningStart(iteration=1))
    assert "Item       2 of 5: The bill (1.md)" in text
    assert "Stage      planning, for 10s" in text


def test_the_issue_of_an_imported_item() -> None:
    """The page of its issue follows the item, and in a slot its other facts."""
    page = "https://forge/acme/shop/issues/7"
    lines = shown(ITEM, ev.PlanningStart(iteration=1), issues={"1.md": page}).splitlines()
    assert f"  Issue      {page}" == lines[lines.index("  Item       2 of 5: The bill (1.md)") + 1]
    (slot,) = [line for line in shown(*SLOTS, issues={"1.md": page}).splitlines() if page in line]
    assert slot.startswith("  Slot 1     The bill: planning") and slot.endswith(f"make; {page}")


def test_what_waits_is_listed_without_control_characters() -> None:
    """Items that wait for a person come last, and cannot control the terminal."""
    text = shown(ev.WatchSpecIssueWaiting(), waiting=(ISSUE,))
    assert ["Waiting for you", "  spec-issue PDF␛[2J? (answer it)"] == text.splitlines()[-2:]


def test_lines_fit_the_terminal() -> None:
    """No line is wider than the terminal, but for the link of a page."""
    text = shown(ITEM, ev.PlanningStart(iteration=1), waiting=(ISSUE,), columns=30)
    facts = text.splitlines()[1:]
    assert 30 >= max(len(line) for line in facts)


SLOTS: tuple[ev.Event, ...] = (
    ev.RunStarted(run_id="r", kind="watch", command="c", options={"slots": 3}),
    ev.WatchProcessingItem(filename="1.md", title="The bill", position=1, total=9, slot=1),
    ev.WatchProcessingItem(filename="2.md", title="Search", position=2, total=9, slot=2),
    ev.WatchProcessingItem(filename="3.md", title="Export", position=3, total=9, slot=3),
    ev.PlanningStart(iteration=1, item="1.md"),
    ev.ToolCall(name="Bash", input={"command": "make"}, id="t", item="1.md"),
    ev.SessionEnded(outcome="completed", cost_usd=0.5, item="2.md"),
    ev.WatchCandidate(filename="2.md", slot=2, commit="c", base="b", attempt=1),
    ev.WatchLanding(filename="2.md", commit="c", trunk="b"),
    ev.WatchSentBack(filename="3.md", reason="check", returns=2),
    ev.WatchItemHeld(filename="4.md", reason="after 3.md"),
    ev.WatchSlotsChanged(active=2, slots=3, reason="overloaded"),
    ev.WatchFollowDelayed(branch="main", commit="c", reason="you have changed", paths=("x.py",)),
)


def test_an_estimated_cost_of_an_item() -> None:
    """Only what contains an estimate is marked."""
    estimate = ev.SessionEnded(outcome="completed", cost_usd=0.25, cost_estimated=True, item="1.md")
    text = shown(*SLOTS, estimate)
    assert "Search: for 10s; $0.50" in text
    assert "Cost       ~$0.75" in text
    assert "; ~$0.25" in text


def test_the_cost_beside_its_budget() -> None:
    """A budget is shown as money, with the same digits as the cost."""
    began = ev.RunStarted(run_id="r", kind="run", command="c", options={"budget": 0.4})
    assert "Cost       $0.50 of $0.40" in shown(
        began, ev.SessionEnded(outcome="completed", cost_usd=0.5)
    )


def test_the_limits_of_a_resumed_run() -> None:
    """A process that resumes a run has limits of its own; older journals do not name them."""
    options = {"budget": 0.4, "max_tokens": 7}
    began = ev.RunStarted(run_id="r", kind="run", command="c", options={**options})
    paid = ev.SessionEnded(outcome="completed", cost_usd=0.5, usage=ev.Usage(output_tokens=7))
    larger = ev.RunContinued(options={"budget": 5.0, "max_tokens": None})
    assert "Cost       $0.50 of $5.00, 7 tokens" in shown(began, larger, paid)
    assert "Cost       $0.50 of $0.40, 7 of 7 tokens" in shown(began, ev.RunContinued(), paid)


def test_hands() -> None:
    """Each task at work has a row with the name that `--item` takes, below what has landed."""
    lines = shown(
        ev.RunStarted(run_id="r", kind="run", command="c", options={}),
        ev.HandsStarted(iteration=1, hands=2, tasks=3),
        ev.WatchProcessingItem(filename="task-1.1", slot=1),
        ev.WatchProcessingItem(filename="task-1.2", title="task-1.2: the page", slot=2),
        ev.WatchLanded(filename="task-1.1", commit="a", trunk_was="b"),
        ev.ImplementingStart(iteration=1, item="task-1.2"),
    ).splitlines()
    assert "  Tasks      1 of 3 landed" in lines
    assert "  Hand 2     task-1.2: the page: implementing, task 1; for 10s" in lines


def test_attempts_beside_a_hand() -> None:
    """Each has a row, until its task has the work of the chosen one."""
    names = [f"task-1.1-attempt-{n}" for n in (1, 2)]
    begun = [
        ev.RunStarted(run_id="r", kind="run", command="c", options={"hands": 2, "attempts": 2}),
        ev.HandsStarted(iteration=1, hands=1, tasks=3),
        ev.WatchProcessingItem(filename="task-1.1", title="task-1.1: the page", slot=1),
        *(ev.WatchProcessingItem(filename=it, title=it, slot=41 + n) for n, it in enumerate(names)),
        ev.ReviewingStart(iteration=1, item=names[0]),
    ]
    lines = shown(*begun).splitlines()
    assert "  Hand 1     task-1.1: the page: attempts; for 10s" in lines
    assert "  Slot 41    task-1.1-attempt-1: reviewing; for 10s" in lines
    made = [
        ev.WatchCandidate(filename=name, slot=slot, commit="c", base="b", attempt=1)
        for name, slot in ((names[0], 41), ("task-1.1", 1))
    ]
    lost = ev.AttemptLost(filename=names[1], slot=42, why="overtaken", reason="x")
    rest = "\n".join(shown(*begun, made[0], lost, made[1]).splitlines())
    assert "To land    task-1.1: the page: for 10s" in rest
    assert "attempt" not in rest


def test_items_in_slots() -> None:
    """Each slot has a line; so have the queue, items sent back or held, and a branch behind."""
    lines = shown(*SLOTS).splitlines()
    assert lines[1:9] == [
        "  Slots      2 of 3 may be at work",
        "  Slot 1     The bill: planning; for 10s; Bash make",
        "  Landing    Search: for 10s; $0.50",
        "  Sent back  Export: for 10s; sent back twice: check failed after the merge",
        "  Held       4.md: after 3.md",
        "  Branch     does not follow yet: you have changed: x.py",
        "  Time       10s",
        "  Cost       $0.50",
    ]


def test_many_held_items() -> None:
    """Only some of many held items are named."""
    held = [ev.WatchItemHeld(filename=f"{n}.md", reason="after 0.md") for n in range(9)]
    lines = [line.strip() for line in shown(*SLOTS[:2], *held).splitlines()]
    assert [line for line in lines if line.startswith("Held")][-1] == "Held       4.md: after 0.md"
    assert "and 4 more" in lines


HOSTILE = "w\x1b[2J\u202e\n1"


def test_workers_of_a_cluster() -> None:
    """Each worker has its free places and resources, each item its worker; names are inert."""
    workers = (
        ev.ClusterWorker(
            name=HOSTILE, places=4, busy=3, resources={"claude": 2}, used={"claude": 1}
        ),
        *(ev.ClusterWorker(name=f"v{n}", places=1) for n in range(11)),
    )
    seen = ev.WatchWorkers(workers=workers, joined=(HOSTILE,), dashboard="http://h:8787/status")
    lines = shown(
        *SLOTS[:2],
        seen,
        ev.WatchPlaced(filename="1.md", slot=1, worker="w9"),
        ev.WatchPlaceGone(filename="1.md", slot=1, worker="w9", reason="killed"),
        ev.WatchPlaced(filename="1.md", slot=1, worker=HOSTILE),
    ).splitlines()
    assert lines[1:4] == [
        "  Cluster    12 workers, 12 of 15 places free",
        "  Worker     w␛[2J\\u{202e} 1: 1 of 4 places free, claude 1 of 2 used",
        "  Worker     v0: 1 of 1 places free",
    ]
    assert "             and 2 more" in lines
    assert "  Dashboard  http://h:8787/status" in lines
    assert "  Slot 1     The bill: on w␛[2J\\u{202e} 1; w9 was lost; preparing; for 10s" in lines


def test_a_cluster_without_workers() -> None:
    """It is reported as such."""
    assert "  Cluster    no workers" in shown(*SLOTS[:1], ev.WatchWorkers()).splitlines()


def test_pull_requests() -> None:
    """Pull requests are listed with their state and their page."""
    text = shown(
        ev.WatchProposed(
            filename="1.md", number=7, url="https://f/7", branch="b", commit="h", candidate="c"
        ),
        ev.WatchProposal(filename="1.md", number=7, state="blocked", message="it is a draft"),
    )
    (line,) = [line for line in text.splitlines() if "Proposed" in line]
    assert "#7 blocked (it is a draft) https://f/7" in line


def test_usage_windows() -> None:
    """The windows of each agent are on one line, with the resets."""
    reports = (
        ev.QuotaUsed(window=window, used=used, agent=agent, resets_at=resets_at)
        for window, used, agent, resets_at in (
            ("seven_day", 0.4, "claude", None),
            ("five_hour", 0.62, "claude", AT + timedelta(hours=1)),
            ("five_hour", 0.1, "codex", AT + timedelta(hours=1)),
            ("primary", 1.0, "codex", AT),
        )
    )
    lines = [line.split(maxsplit=1) for line in shown(*reports).splitlines() if "Quota" in line]
    resets = f"resets {(AT + timedelta(hours=1)).astimezone():%H:%M}"
    assert [
        ["Quota", f"claude: five_hour 62 % used, {resets}; seven_day 40 % used"],
        ["Quota", f"codex: five_hour 10 % used, {resets}"],
    ] == lines


RESULTS: dict[RunOutcome, RunResult] = {
    "approved": LoopApproved(iteration=1),
    "spec_issue": LoopSpecIssue(iteration=1, content="unclear", filename="x.md"),
    "max_iterations": LoopMaxIterations(iteration=3, max_iterations=3),
}


def ended(outcome: RunOutcome | None) -> RunState:
    """Return a run with this result, or one that was ended from outside."""
    if outcome is None:
        return RunState()
    result = RESULTS.get(outcome)
    return after(result) if result is not None else RunState().ended(outcome)


def summary_lines(summary: RunState, *, hint: str | None = None) -> list[str]:
    text = paint(summary_fragments(summary, duration_s=90, hint=hint), color=False)
    return [line.rstrip() for line in text.split("\n")]


def done(name: str) -> WatchItemCompleted:
    return WatchItemCompleted(filename=f"{name}.md")


def test_approved() -> None:
    """A full summary has outcome, counts, commits, cost, duration and the next step."""
    summary = RunState(
        result=RESULTS["approved"],
        tally=tally(
            rounds=2,
            tasks=3,
            agents=7,
            commits=(("a1b2c3d", "Add a"), ("b2c3d4e", "Add b")),
            cost_usd=1.25,
            cost_estimated=True,
        ),
        failed_commits=("git commit exited with code 1",),
        failed_push="git push exited with code 1",
        gate_changed=("check.sh", "tests/test_a.py"),
    )
    assert summary_lines(summary) == [
        "",
        "[Summary] Approved",
        "  Iterations 2",
        "  Tasks      3",
        "  Agents     7",
        "  Commits    2",
        "             a1b2c3d Add a",
        "             b2c3d4e Add b",
        "             failed: git commit exited with code 1",
        "  Not pushed git push exited with code 1",
        "  Changed    check.sh (check, tests or specs)",
        "             tests/test_a.py (check, tests or specs)",
        "  Cost       ~$1.25",
        "  Duration   1m 30s",
        "  Next       review the commits: git log -p -2",
    ]


def test_unknown_cost_is_not_shown() -> None:
    """An unknown cost is left out; a cost of zero is not."""
    assert not any("Cost" in line for line in summary_lines(RunState()))
    assert "  Cost       $0.00" in summary_lines(RunState(tally=tally(cost_usd=0.0)))


def test_a_partial_cost() -> None:
    """The tokens of a session that was cut off may have no price."""
    known = SessionEnded(outcome="completed", cost_usd=1.0, usage=Usage(input_tokens=9))
    cut = UsageUpdate(usage=Usage(input_tokens=9))
    assert "  Cost       $1.00" in summary_lines(after(known))
    assert "  Cost       at least $1.00" in summary_lines(after(known, cut))


def test_items_of_a_watch() -> None:
    """Backlog items are shown if there are any."""
    assert "  Items      2" in summary_lines(after(*map(done, "ab")))
    assert not any("Items" in line for line in summary_lines(RunState()))


def test_landings_of_slots() -> None:
    """Landed items are listed, not the commits in slots; those sent back are counted."""
    commits = (("a1b2c3d", "In a slot"),)
    told = summary_lines(
        after(
            WatchLanded(filename="001-export.md", commit="f00ba47a", trunk_was="e"),
            done("001-export"),
            start=RunState(kind="watch", tally=tally(rounds=1, commits=commits)),
        )
    )
    assert ["  Items      1", "  Landed     1", "             f00ba47 001-export"] == told[2:5]
    assert not any("a1b2c3d" in line or "Commits" in line for line in told)
    assert "  Landed     0, 1 sent back" in summary_lines(
        after(
            WatchSentBack(filename="a.md", reason="check", returns=1), start=RunState(kind="watch")
        )
    )
    assert not any("Landed" in line for line in summary_lines(after(*map(done, "ab"))))


def test_hands_in_the_summary() -> None:
    """A run with hands lists its commits, and the tasks that were left undone."""
    told = summary_lines(
        after(
            HandsStarted(iteration=1, hands=2, tasks=3),
            WatchLanded(filename="task-1.1", commit="f00ba47a", trunk_was="e"),
            HandsEnded(iteration=1, landed=("task-1.1",), undone={"task-1.2": "no", "b": "x"}),
        )
    )
    assert {"  Undone     task-1.2: no", "             b: x"} < set(told)
    assert not any("Landed" in line for line in told)


@pytest.mark.parametrize("has_landed", [True, False])
def test_attempts(has_landed: bool) -> None:
    """Of a run with several attempts, the commits of those that have lost are not listed."""
    landed = WatchLanded(filename="attempt-2", commit="d4e5f6a", trunk_was="c3d4e5f")
    delayed = WatchFollowDelayed(branch="main", commit="d4e5f6a", reason="a file is in the way")
    before = after(*[landed, delayed] * has_landed, LoopApproved(iteration=1))
    summary = replace(before, kind="run", slots=3, tally=tally(commits=(("a1b2c3d", "Lie"),)))
    shown = summary_lines(summary)
    assert ("  Landed     1" in shown, "  Landed     0" in shown) == (has_landed, not has_landed)
    assert not [line for line in shown if "Lie" in line]
    review = "git log -p -m --first-parent -1 d4e5f6a; then: git merge refs/cuggino/trunk"
    assert (f"  Next       review what has landed: {review}" in shown) == has_landed


def test_what_waits_after_a_watch() -> None:
    """The last facts of a night are the questions and parked items that wait for a person."""
    end = "`cuggino status` lists what waits for you"
    asks = tuple(Question(filename=f"{name}.md", title=name) for name in "ab")
    both = after(
        WatchItemParked(filename="c.md", reason="hard"),
        start=RunState(kind="watch", questions=asks),
    )
    assert "  Parked     1" in summary_lines(both)
    assert f"  Waiting    2 questions, 1 parked: {end}" in summary_lines(both)
    asked = RunState(kind="watch", questions=asks[:1])
    assert f"  Waiting    1 question: {end}" in summary_lines(asked)
    assert not any("Waiting" in line for line in summary_lines(RunState(kind="watch")))


GO_ON = "             `cuggino run --resume` continues where it stopped"


@pytest.mark.parametrize(
    ("expected", "outcome", "hint"),
    [
        (["  Next       review the changes: git status, git diff"], "approved", None),
        (
            [
                "  Next       read .cuggino/spec-issues/x.md",
                "             answer it with `cuggino issues answer`, then run again",
            ],
            "spec_issue",
            None,
        ),
        (
            ["  Next       raise maxIterations, or refine the specs, then run again"],
            "max_iterations",
            None,
        ),
        (["  Next       see the error", f"{'':13}go on by this"], "failed", "go on by this"),
        (["  Next       see the error", GO_ON], "failed", None),
        (["  Next       " + GO_ON.strip()], "interrupted", None),
        (["  Next       go on by this"], "interrupted", "go on by this"),
        ([], None, None),
    ],
)
def test_next_step(expected: list[str], outcome: RunOutcome | None, hint: str | None) -> None:
    """Each outcome has a next step; a hint on resuming replaces the general advice."""
    shown = summary_lines(ended(outcome), hint=hint)
    start = shown.index("  Duration   1m 30s") + 1
    assert expected == shown[start:]


@pytest.mark.parametrize(
    ("expected", "outcome"),
    [
        ("\x1b[1m\x1b[32m[Summary] Approved\x1b[0m", "approved"),
        ("\x1b[1m\x1b[31m[Summary] Stopped at a spec issue\x1b[0m", "spec_issue"),
        ("\x1b[1m\x1b[33m[Summary] Max iterations reached\x1b[0m", "max_iterations"),
        ("\x1b[1;31m[Summary] Failed\x1b[0m", "failed"),
        ("\x1b[33m[Summary] Interrupted\x1b[0m", "interrupted"),
        ("\x1b[1m[Summary] Ended\x1b[0m", None),
    ],
)
def test_outcome_has_its_color(expected: str, outcome: RunOutcome | None) -> None:
    """The outcome has the text and color of its events."""
    summary = ended(outcome)
    assert expected == paint(summary_fragments(summary, duration_s=0), color=True).split("\n")[1]


FORECAST = ev.Forecast(loop="run", runs=3, duration=600, worst_duration=900)
BEGUN: list[ev.Event] = [
    ev.RunStarted(run_id="r1", kind="run", command="c", agent="claude"),
    FORECAST,
    ev.PlanningStart(iteration=1),
    ev.SessionEnded(outcome="completed", cost_usd=0.5),
]


def clock(at: datetime) -> str:
    return f"{at.astimezone():%H:%M}"


def activity_of(*events: ev.Event) -> RunState:
    activity = RunState()
    for event in events:
        activity = activity.add(event, at=AT)
    return activity


def totals(now: datetime, *, columns: int = 140) -> str:
    """Return the last row of the status area."""
    rows = RunStatus(activity=activity_of(*BEGUN), keys=None).rows(now, columns=columns, height=40)
    return paint(rows[-1], color=False).strip()


def status(now: datetime, *events: ev.Event) -> ProjectStatus:
    owner = LockOwner(pid=7, since=AT, command="cuggino run")
    return ProjectStatus(folder=Path("/shop"), at=now, owner=owner, activity=activity_of(*events))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (90, f"usually ends at {clock(AT + timedelta(seconds=600))}"),
        (600, "usually takes 10m 0s"),
        (5000, "usually takes 10m 0s"),
    ],
)
def test_before_and_after_that_time(seconds: float, text: str) -> None:
    """Before its usual end the time is shown, afterwards the usual duration."""
    now = AT + timedelta(seconds=seconds)
    assert f" · {text} · $0.50" in totals(now)
    shown = paint(status_fragments(status(now, *BEGUN), columns=None), color=False)
    assert f", {text}\n" in shown


def test_a_narrow_terminal() -> None:
    """It is the first to be left out; time and cost stay."""
    assert "1m 30s · $0.50" == totals(AT + timedelta(seconds=90), columns=30)


def test_another_day() -> None:
    """The date is shown if the run usually ends on another day."""
    long = FORECAST.model_copy(update={"duration": 3 * 86400.0})
    shown = paint(status_fragments(status(AT, BEGUN[0], long), columns=None), color=False)
    end = (AT + timedelta(days=3)).astimezone()
    assert f"usually ends at {end:%H:%M} on {end:%Y-%m-%d}" in shown


def test_an_item_in_a_slot() -> None:
    """Each item of a watch has its own time."""
    watch = ev.RunStarted(run_id="w", kind="watch", command="c", options={"slots": 2})
    forecast = FORECAST.model_copy(update={"loop": "item"})
    item = ev.WatchProcessingItem(filename="1.md", title="The bill", slot=1)
    shown = paint(status_fragments(status(AT, watch, forecast, item), columns=None), color=False)
    (line,) = [line for line in shown.splitlines() if "The bill" in line]
    assert f"usually ends at {clock(AT + timedelta(seconds=600))}" in line
    (told,) = status_json(status(AT, watch, forecast, item))["run"]["items"]
    assert (AT + timedelta(seconds=600)).isoformat() == told["usual_end"]


def test_as_json() -> None:
    """`--json` has the forecast and the time; null without one."""
    run = status_json(status(AT, *BEGUN))["run"]
    assert ("run", 600.0) == (run["forecast"]["loop"], run["forecast"]["duration"])
    assert (AT + timedelta(seconds=600)).isoformat() == run["usual_end"]
    without = status_json(status(AT, BEGUN[0]))["run"]
    assert (None, None) == (without["forecast"], without["usual_end"])
