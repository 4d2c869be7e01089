"""The status area and the lines of a watch with several slots."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from pydantic import JsonValue
from reactivex import Subject

from cuggino import events as ev
from cuggino_cli.screen.columns import width
from cuggino_cli.screen.controls import Controls
from cuggino_cli.screen.format import format_event
from cuggino_cli.screen.fragments import Verbosity, paint
from cuggino_cli.screen.printers import RunPrinter
from cuggino_cli.screen.render import with_printer
from cuggino_cli.screen.status import RunStatus

from .live_lines import plain_on

AT = datetime(2026, 11, 23, 7, tzinfo=UTC)
OPTIONS: dict[str, JsonValue] = {"slots": 4, "model": "opus", "budget": 20}
NAMES = ("Login page for everybody", "Search 检索", "Export CSV", "Import")
BEGUN: list[ev.Event] = [
    ev.RunStarted(run_id="r", kind="watch", command="c", agent="claude", options=OPTIONS),
    *(
        ev.WatchProcessingItem(filename=f"{n}.md", title=name, position=n, total=9, slot=n)
        for n, name in enumerate(NAMES, 1)
    ),
]
BASH = ev.ToolCall(name="Bash", input={"command": "pytest -q /p/tests/test_login.py"}, id="t")
WORK: list[ev.Event] = [
    *BEGUN,
    ev.IterationStart(iteration=2, max_iterations=3, item="1.md"),
    ev.ImplementingStart(iteration=2, item="1.md"),
    BASH.of_item("1.md"),
    ev.ReviewingStart(iteration=1, item="2.md"),
    ev.SessionEnded(outcome="completed", cost_usd=1.02, item="2.md"),
    ev.WatchCandidate(filename="3.md", slot=3, commit="c", base="b", attempt=1),
    ev.WatchLanding(filename="3.md", commit="c", trunk="b"),
    ev.CheckCommandStarted(iteration=0, command="make check"),
    ev.QuotaWaiting(remaining=9840, item="4.md"),
    ev.WatchItemCompleted(filename="0.md"),
]


def status_of(*events: ev.Event) -> RunStatus:
    status = RunStatus(project="/p")
    for event in events:
        status = status.add(event, at=AT)
    return status


def rows(*events: ev.Event, columns: int = 80, height: int = 24) -> list[str]:
    """Return the rows 72 seconds after these events."""
    shown = status_of(*events).rows(AT + timedelta(seconds=72), columns=columns, height=height)
    return [paint(row, color=False, bell=False).rstrip() for row in shown]


def test_a_row_per_slot() -> None:
    """Slot, item, stage, model, tool and time, then the landing, then the totals."""
    shown = rows(*WORK, columns=120)
    assert [" ".join(row.split()) for row in shown[:4]] == [
        "1 Login page for everybody 2/3 implement claude opus ▶ Bash pytest -q tests/test_login.py"
        " 1m 12s",
        "2 Search 检索 1 review claude opus … 1m 12s $1.02",
        f"4 Import prepare claude opus ⏳ quota: 2h 42m left, until {at(9840)}",
        "→ Export CSV land ▶ Check make check 1m 12s",
    ]
    assert shown[4].startswith("1m 12s · $1.02 of $20.00 · 1 done, 1 to land, 5 waiting")
    assert len({row.index("▶") for row in shown if "▶" in row}) == 1


def at(seconds: float) -> str:
    return f"{(AT + timedelta(seconds=seconds)).astimezone():%H:%M}"


@pytest.mark.parametrize("columns", [12, 20, 30, 40, 60, 80, 120, 200])
@pytest.mark.parametrize("height", [3, 8, 12, 24, 60])
def test_rows_fit_the_terminal(columns: int, height: int) -> None:
    """No row reaches the last column, and the rows take at most a third of the height."""
    shown = rows(*WORK, columns=columns, height=height)
    assert all(width(row) < columns for row in shown)
    assert 1 <= len(shown) <= max(height // 3, 1)


def test_a_narrow_terminal() -> None:
    """Below 60 columns the target of a tool and the iteration are left out."""
    assert rows(*WORK, columns=40)[:2] == [
        "1 Login pag... implement ▶ Bash  1m 12s",
        "2 Search 检索  review    …       1m 12s",
    ]


def test_a_low_terminal() -> None:
    """Rows that do not fit are counted; the totals stay."""
    shown = rows(*WORK, height=12)
    assert [row.split(" ")[0] for row in shown] == ["1", "2", "and", "1m"]
    assert shown[2] == "and 2 more at work"
    assert rows(*WORK, height=6)[0].startswith("1m 12s")


def test_a_pause_and_a_return() -> None:
    """A pause is the first row; an item that was sent back shows how often."""
    back = ev.WatchSentBack(filename="3.md", reason="conflict", returns=2)
    again = ev.WatchProcessingItem(filename="3.md", title="Export CSV", slot=2)
    shown = rows(*WORK, back, again, ev.PauseAsked(), ev.RunPaused(), height=60)
    assert shown[0].startswith("PAUSED since ")
    assert "2 Export CSV" in shown[2]
    assert "prepare ↩2" in shown[2]


def test_what_waits_for_a_person() -> None:
    """A spec issue of one item, or a branch that cannot follow, is the first row."""
    late = ev.WatchFollowDelayed(branch="main", commit="c", reason="you have changed a.py")
    issue = ev.LoopSpecIssue(iteration=1, content="How?", filename="i.md", item="1.md")
    assert rows(*WORK, late)[0] == "Your branch does not follow yet: you have changed a.py"
    idle = rows(WORK[0], late, ev.WatchBacklogWaiting())
    assert idle[:2] == [rows(*WORK, late)[0], "Waiting for work"]
    assert rows(*WORK, late, issue)[0] == "Waiting for you: Answer: How?"


def test_a_retry_of_all_items() -> None:
    """The pause before the first retry counts down when nothing else works."""
    retry = ev.WatchItemRetry(
        filename="1.md", message="x", attempt=1, max_attempts=3, retry_in=100.0, counted=True
    )
    shown = rows(*BEGUN[:2], retry)
    assert shown[0] == "⏳ Failed · retry 2 of 3 in 28s"
    assert shown[1].startswith("1m 12s")
    assert "2 " in rows(*BEGUN[:3], retry)[0]


def test_the_title() -> None:
    assert status_of(*WORK).title() == "cuggino: 3 at work, $1.02"


def printed(
    *events: ev.Event, verbosity: Verbosity = Verbosity.NORMAL, stamps: bool = False
) -> str:
    stream = io.StringIO()
    controls = Controls(plain_on(stream), verbosity=verbosity)
    source: Subject[ev.Event] = Subject()
    printer = partial(RunPrinter, project="/p")
    output = with_printer(controls, printer, stamps=stamps, clock=lambda: AT)
    source.pipe(output).subscribe()
    for event in events:
        source.on_next(event)
    return stream.getvalue()


def test_lines_name_their_slot() -> None:
    """Each line of an agent has the slot and the item, also further lines of a text."""
    begun = ev.WatchProcessingItem(filename="007-login.md", slot=2)
    text = ev.AgentMessage(text="I look.\nIt is there.", item="007-login.md")
    out = printed(begun, text, BASH.of_item("007-login.md"), ev.WatchItemCompleted(filename="x.md"))
    assert out.splitlines() == [
        "[Watch] Processing: 007-login.md (slot 2)",
        "[2 007-login] I look.",
        "It is there.",
        "[2 007-login] ▶ Bash: pytest -q tests/test_login.py",
        "[Watch] Completed: x.md",
    ]
    stamp = f"{AT.astimezone():%Y-%m-%d %H:%M:%S} "
    stamped = printed(begun, text, stamps=True).splitlines()
    assert stamped[1:] == [f"{stamp}[2 007-login] I look.", f"{stamp}[2 007-login] It is there."]


def test_paths_are_relative_to_the_slot() -> None:
    """The files that an agent touches are those of its slot's folder."""
    begun = ev.WatchProcessingItem(filename="1.md", title="Login", slot=1)
    prepared = ev.WatchSlotPrepared(filename="1.md", slot=1, folder="/slots/1", base="b0")
    call = ev.ToolCall(name="Write", input={"file_path": "/slots/1/a.py"}, id="t", item="1.md")
    assert printed(begun, prepared, call).splitlines()[-1] == "[1 1] ▶ Write: a.py"
    assert "▶ Write a.py " in rows(begun, prepared, call)[0]


def test_tools_of_two_slots_with_the_same_id() -> None:
    """A failed tool call gets the name of its item's call."""
    items = [ev.WatchProcessingItem(filename=f"{n}.md", slot=n) for n in (1, 2)]
    failed = ev.ToolResult(name="t", output="no", is_error=True, item="1.md")
    read = ev.ToolCall(name="Read", input={}, id="t", item="2.md")
    out = printed(*items, BASH.of_item("1.md"), read, failed)
    assert out.splitlines()[-1] == "[1 1] ✗ Bash failed: no"


def test_a_usage_limit_of_all_slots() -> None:
    """All slots wait for the same limit, which is reported once, and so is its end."""
    items = [ev.WatchProcessingItem(filename=f"{n}.md", slot=n) for n in (1, 2)]
    limits = [ev.QuotaWaiting(remaining=60, item=f"{n}.md") for n in (1, 2, 1, 2)]
    lifted = [ev.QuotaLifted(waited=60, item=f"{n}.md") for n in (1, 2)]
    out = printed(*items, *limits, *lifted, limits[1])
    assert out.splitlines()[2:] == [
        "[Agent] Waiting for the usage limit, 1m 0s left",
        "[Agent] Resuming after 1m 0s",
        "[Agent] Waiting for the usage limit, 1m 0s left",
    ]


def test_a_spec_issue_of_a_slot_calls() -> None:
    """It stops one item, so that nothing else would ring the bell."""
    issue = ev.LoopSpecIssue(iteration=1, content="How?", filename="i.md")
    for event, rings in ((issue, False), (issue.of_item("1.md"), True)):
        shown = format_event(event, verbosity=Verbosity.NORMAL)
        assert shown is not None
        assert any(fragment.label == "bell" for fragment in shown) is rings


def test_the_commands_of_a_landing() -> None:
    """They name the item that is being landed, until it has landed."""
    check = ev.CheckCommandStarted(iteration=0, command="make")
    landed = ev.WatchLanded(filename="1.md", commit="m", trunk_was="b")
    out = printed(
        *BEGUN[1:2], ev.WatchLanding(filename="1.md", commit="c", trunk="b"), check, landed
    )
    assert [line for line in out.splitlines() if "→" in line] == ["[→ 1] [Check] Running: make"]
    assert "→" not in printed(*BEGUN[1:2], landed, check)


def test_one_slot_prints_as_before() -> None:
    """Without slots nothing is prefixed, not even a command that names an item."""
    begun = ev.WatchProcessingItem(filename="1.md")
    out = printed(begun, ev.SteerAsked(text="faster", item="1.md"), BASH)
    assert out.splitlines() == [
        "[Watch] Processing: 1.md",
        "[Control] Message: faster",
        "▶ Bash: pytest -q tests/test_login.py",
    ]


@pytest.mark.parametrize(
    ("events", "text", "asked", "note"),
    [
        (WORK, "2 be quick", ev.SteerAsked(text="be quick", item="2.md"), "Told slot 2: be quick"),
        (WORK, "2: be quick", ev.SteerAsked(text="be quick", item="2.md"), "Told slot 2: be quick"),
        (WORK, "be quick", None, "Begin with the slot: `1 be quick`"),
        (WORK, "3 be quick", None, "Begin with the slot: `1 3 be quick`"),
        (BEGUN[:2], "be quick", ev.SteerAsked(text="be quick", item="1.md"), "Told: be quick"),
        ([ev.WatchProcessingItem(filename="1.md")], "2 x", ev.SteerAsked(text="2 x"), "Told: 2 x"),
    ],
)
def test_a_message_to_a_slot(
    events: list[ev.Event], text: str, asked: ev.ControlEvent | None, note: str
) -> None:
    """With several items at work, a message begins with the slot; slot 3 is empty here."""
    sent: list[ev.ControlEvent] = []
    shown: list[object] = []
    lines = plain_on(io.StringIO())
    lines.show = shown.append  # type: ignore[method-assign, assignment]
    controls = Controls(lines, verbosity=Verbosity.NORMAL, send=sent.append)
    controls.begin(RunStatus(), AT)
    for event in events:
        controls.add(event, AT)
    controls.steer(text, AT)
    assert sent == ([] if asked is None else [asked])
    (*_, last) = shown
    assert isinstance(last, RunStatus)
    assert last.note == note


def test_workers_in_rows() -> None:
    """A row names the worker of its slot, the totals the free places; names are inert."""
    workers = (ev.ClusterWorker(name="w1", places=4, busy=2), ev.ClusterWorker(name="w2", places=2))
    events = [
        *WORK,
        ev.WatchWorkers(workers=workers, joined=("w1", "w2")),
        ev.WatchPlaced(filename="1.md", slot=1, worker="w\x1b[2J1"),
        ev.WatchPlaced(filename="2.md", slot=2, worker="w2"),
    ]
    first, second, *_, totals = [" ".join(row.split()) for row in rows(*events, columns=120)]
    assert first.startswith("1 Login page for everybody 2/3 implement claude opus w␛[2J1 ▶ Bash")
    assert second.startswith("2 Search 检索 1 review claude opus w2 …")
    assert "5 waiting, 4 of 6 places free" in totals
    assert not any("w2" in row for row in rows(*events, columns=60))
    for columns in (12, 40, 80, 120):
        assert all(width(row) < columns for row in rows(*events, columns=columns))
    none = rows(*WORK, ev.WatchWorkers(left=("w1",)), columns=120)[-1]
    assert "no workers" in none


def test_lines_of_workers() -> None:
    """Workers that come and go are reported, changes of their load only with `--verbose`."""
    one, two = ev.ClusterWorker(name="w1", places=4, busy=1), ev.ClusterWorker(name="w2", places=2)
    many = tuple(f"v{n}" for n in range(10))
    evil = "w\x1b[2J\n[Watch] Landed: x"
    out = printed(
        ev.WatchWorkers(workers=(one, two), joined=("w1", "w2")),
        ev.WatchWorkers(workers=(one, two)),
        ev.WatchWorkers(workers=(one,), left=("w2",)),
        ev.WatchWorkers(left=many),
        ev.WatchPlaced(filename="1.md", slot=1, worker=evil),
        ev.WatchSlotPrepared(filename="1.md", slot=1, folder="/s", base="b0", worker=evil),
        ev.WatchPlaceGone(filename="1.md", slot=1, worker=evil, reason=evil),
    )
    assert out.splitlines() == [
        "[Cluster] Workers: w1, w2; 2 workers, 5 of 6 places free",
        "[Cluster] Workers gone: w2; 1 worker, 3 of 4 places free",
        "[Cluster] Workers gone: v0, v1, v2, v3, v4, v5, v6, v7 and 2 more; no workers",
        "[Watch] Slot 1 is on w␛[2J [Watch] Landed: x, for 1.md",
        "[Watch] Slot 1 of w␛[2J [Watch] Landed: x is ready for 1.md, on b0",
        "[Watch] w␛[2J [Watch] Landed: x is gone (w␛[2J [Watch] Landed: x); slot 1 continues"
        " elsewhere",
    ]
    told = format_event(ev.WatchWorkers(workers=(one,)), verbosity=Verbosity.VERBOSE)
    assert told is not None
    assert "[Cluster] 1 worker, 3 of 4 places free" == told[0].text
