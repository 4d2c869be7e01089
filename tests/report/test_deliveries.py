"""Reports on runs of the deliverables loop."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.errors import AgentFailed
from cuggino.report import RunReport, build_report
from cuggino.report.charts import timeline
from cuggino.report.times import Times
from tests.cli.recorded_deliveries import (
    DONE,
    TURNS,
    deliver,
    go_on,
    hanging,
    turn,
)
from tests.loops.deliver_loop import Turn
from tests.report.hostile import hostile_report
from tests.report.journals import STARTED, begin, entries_of
from tests.report.test_page import Page, intruders, rendered
from tests.vectors import each

CRASH = Turn(events=(), error=AgentFailed("it crashed", reason="crash"))


def report_on(folder: Path, *turns: Turn, **given: Any) -> RunReport:
    """Return the report on a run with these sessions."""
    return build_report(deliver(folder, *turns, **given).entries)


def delivery(*said: Any, **options: Any) -> RunReport:
    """Return the report on a run of the loop with these events."""
    first, *rest = entries_of(*said)
    event = STARTED.model_copy(update={"kind": "deliver"})
    return build_report((replace(first, event=event), *rest), **options)


def cells(report: RunReport, section: str) -> list[list[str]]:
    """Return the texts of a section's first table, row by row."""
    text = (
        rendered(report)
        .partition(f'<section class="card" id="{section}">')[2]
        .partition("</section>")[0]
    )
    body = text.partition("<tbody>")[2].partition("</tbody>")[0]
    rows = [row.split("<td") for row in body.split("<tr>")[1:]]
    return [[Page(f"<td{cell}").words.strip() for cell in row[1:]] for row in rows]


def test_sessions_are_bars(tmp_path: Path) -> None:
    """Each session is a bar in the lane of its instruction, with its number and cost."""
    report = report_on(tmp_path, verify=True)
    bars = [stage for stage in report.stages if stage.session is not None]
    assert [
        ("session 1: initializer", "initializer", 5.0, 0.25),
        ("session 2: coding", "coding", 5.0, 0.25),
        ("session 3: coding", "coding", 0.0, None),
        ("session 4: coding", "coding", 5.0, 0.5),
        ("session 5: verify", "verify", 5.0, 0.25),
    ] == [(bar.title, bar.kind, bar.seconds, bar.cost_usd) for bar in bars]
    assert {"other"} == {stage.kind for stage in report.stages if stage.session is None}
    drawn = timeline(report, Times(UTC, report.start, report.end))
    assert drawn is not None
    lanes = ["initializer", "coding", "verify", "notices"]
    assert lanes == [lane.text for lane in drawn.lanes]
    assert any("session 2: coding" in bar.title for bar in drawn.bars)
    assert any("error: it crashed" in bar.title for bar in drawn.bars)


def test_cost_over_time(tmp_path: Path) -> None:
    """The cost line ends at the total reported by the loop."""
    report = report_on(tmp_path, verify=True)
    assert [0.25, 0.5, 1.0, 1.25] == [point.cost_usd for point in report.spent]
    assert report.delivery is not None
    assert report.delivery.ended is not None
    assert report.totals.cost_usd == report.delivery.ended.cost_usd
    assert [("Bash", 2)] == [(use.name, use.calls) for use in report.tools]


def test_deliverables_table(tmp_path: Path) -> None:
    """Each deliverable has a row with its name, status, time and session."""
    assert [
        ["DL-1", "do DL-1", "passed verified", "00:00:10, session 2", ""],
        ["DL-2", "do DL-2", "passed verified", "00:00:15, session 4", ""],
        ["DL-3", "do DL-3", "blocked", "00:00:15, session 4", ""],
    ] == cells(report_on(tmp_path, verify=True), "deliverables")


def test_reopened_deliverable_is_a_finding(tmp_path: Path) -> None:
    """Its earlier statuses are listed, and losing the passed status is a finding."""
    report = report_on(
        tmp_path,
        turn(leaves={"DL-1": "passed", "DL-2": "pending"}),
        turn(leaves={"DL-1": "pending", "DL-2": "pending"}),
        turn(leaves={"DL-1": "passed", "DL-2": "blocked (deprecated)"}),
        start={"DL-1": "pending", "DL-2": "pending"},
    )
    first, second = cells(report, "deliverables")
    assert ["DL-1", "do DL-1", "passed", "00:00:15, session 3"] == first[:4]
    assert "2 changes" in first[4]
    assert "passed 00:00:05, session 1" in first[4]
    assert "pending 00:00:10, session 2" in first[4]
    assert ["DL-2", "do DL-2", "no longer wanted", "it was first seen", ""] == second
    assert [("Not done after all", "do DL-1 (DL-1)")] == [(f.kind, f.text) for f in report.findings]


def test_blocked_deliverable_is_a_finding(tmp_path: Path) -> None:
    """Blocking a deliverable is a finding; setting the same status again is not."""
    found = report_on(tmp_path).findings
    assert [("Blocked", "bad", "do DL-3 (DL-3)")] == [(f.kind, f.tone, f.text) for f in found]
    again = ev.DeliverableStatusChanged(
        deliverable_id="a", description="a", previous="blocked", status="blocked"
    )
    assert () == delivery(again).findings


def test_sessions_table(tmp_path: Path) -> None:
    """Each session has a row with its instruction, cost, outcome and final message."""
    report = report_on(tmp_path, verify=True)
    rows = cells(report, "sessions")
    assert ["1", "initializer", "00:00:00", "5.0 s", "$0.25", "completed", "Planned."] == rows[0]
    assert ["3", "coding", "00:00:10", "0 ms", "–", "failed"] == rows[2][:6]
    assert "it crashed\nin a loop" in rows[2][6]
    assert "1 session failed." in Page(rendered(report)).words


def test_session_of_two_processes(tmp_path: Path) -> None:
    """It is one row with two attempts and two bars, without the time between them."""
    deliver(tmp_path, TURNS[0], hanging(), seconds=7)
    report = build_report(go_on(tmp_path, turn(leaves=DONE, words="All.")).entries)
    second = cells(report, "sessions")[1]
    assert ["completed 2 attempts", "All."] == second[5:]
    bars = [(s.title, s.ending, s.attempt) for s in report.stages if s.name == "coding"]
    assert [("session 2: coding", "repeated", 1), ("session 2: coding", "finished", 2)] == bars
    assert [("interrupted", "interrupted"), ("approved", "all_passed")] == [
        (process.state, process.reason) for process in report.processes
    ]
    assert 12.0 == report.worked
    assert "Nobody worked in the shaded times." in rendered(report)


@pytest.mark.parametrize(
    ("turns", "options", "title", "badge"),
    [
        (TURNS[:4], {}, "2 of 3 deliverables passed", '"badge good">passed<'),
        (TURNS, {"verify": True}, "2 of 3 deliverables passed", '"badge good">verified<'),
        (TURNS[:2], {"max_sessions": 2}, "1 of 3 deliverables passed", ">sessions used up<"),
        (
            (turn(leaves={"a": "blocked"}),),
            {},
            "0 of 1 deliverable passed",
            '"badge warning">all blocked<',
        ),
        ((CRASH,), {"max_retries": 0}, "No deliverables yet", '"badge bad">stalled<'),
        (
            (turn(), turn(verifies=["DL-1"])),
            {"workflow": "sync", "start": DONE, "max_sessions": 2},
            "1 of 3 deliverables verified",
            ">sessions used up<",
        ),
    ],
)
def test_head(
    tmp_path: Path, turns: tuple[Turn, ...], options: dict[str, Any], title: str, badge: str
) -> None:
    """The head shows the progress and the outcome in the terms of this loop."""
    report = report_on(tmp_path, *turns, **options)
    page = rendered(report)
    head = page.partition("<h1>")[2].partition("</h1>")[0]
    assert head.startswith(f"{title} <span")
    assert badge in head
    assert f"<title>{report.run_id if title.startswith('No ') else title} – cuggino</title>" in page
    assert f"cuggino deliver <code>{report.run_id}</code>" in page
    tiles = Page(page.partition("<dl")[2].partition("</dl>")[0]).words
    assert "Sessions" in tiles
    assert not {"Rounds", "Tasks", "Commits"} & set(tiles.split())
    assert 'id="commits"' not in page


def test_last_failure_is_shown(tmp_path: Path) -> None:
    """A loop that ended after too many failures shows the last of them."""
    report = report_on(tmp_path, CRASH, CRASH, max_retries=1)
    assert "it crashed" == report.message
    assert [
        "Stream error: it crashed",
        "Session error (1/1), starting new session...",
        "Stream error: it crashed",
        "Session failed after 1 consecutive errors\nSession stopped: it crashed",
    ] == [notice.text for notice in report.notices]


@each(
    "event, text",
    [
        (ev.DeliverWarning(message="odd"), "odd"),
        (ev.DeliverSessionEnded(session=1, outcome="max_turns"), "turn limit reached"),
        (ev.DeliverSessionEnded(session=1, outcome="budget"), "budget spent"),
        (ev.DeliverSessionEnded(session=1, outcome="completed"), None),
        (ev.DeliverSessionEnded(session=1, outcome="interrupted"), None),
        (ev.DeliverEnded(reason="all_blocked", total=2), "All 2 deliverables are blocked"),
        (ev.DeliverEnded(reason="max_iterations", max_iterations=2), "Max iterations (2) reached"),
        (ev.DeliverEnded(reason="stalled", error="nothing changes"), "nothing changes"),
        (ev.DeliverEnded(reason="all_passed"), None),
        (ev.DeliverEnded(reason="budget_exceeded", error="spent"), None),
    ],
)
def test_notices(event: Any, text: str | None) -> None:
    """Unusual events are notices; others are shown elsewhere."""
    texts = [notice.text for notice in delivery(event).notices]
    assert (text is not None) == bool(texts)
    assert all(text is not None and text in found for found in texts)


def test_wait_for_a_usage_limit() -> None:
    """A wait within a session is a notice with its length."""
    waiting = ev.QuotaWaiting(resets_at=None, remaining=60.0, message="limit")
    stage = "coding#1"
    report = delivery(
        ev.DeliverSessionStarted(session=1, instruction="coding"),
        begin(stage),
        (stage, waiting),
        (stage, ev.QuotaLifted(waited=60.0)),
    )
    (notice,) = report.notices
    assert ("Agent", stage) == (notice.kind, notice.stage)
    assert "Waiting for the usage limit, 1m 0s left: limit\nResuming after 1m 0s" == notice.text
    assert timedelta(seconds=1) == (notice.until or notice.at) - notice.at


def test_open_sessions() -> None:
    """An open session is running, or cut off if the run was killed; the rest is unknown."""
    said = (ev.DeliverSessionStarted(session=1, instruction="sync", model="big"), begin("sync#1"))
    report = delivery(*said)
    assert ["1", "sync big"] == cells(report, "sessions")[0][:2]
    assert "cut off" == cells(report, "sessions")[0][5]
    running = delivery(*said, running_at=report.end + timedelta(seconds=9))
    assert "running" == cells(running, "sessions")[0][5]
    assert "No deliverables yet" in rendered(running)


def test_error_of_the_run_takes_precedence() -> None:
    """An error of the run takes precedence over the loop's own reason."""
    said = ev.DeliverEnded(reason="failed", error="no agent")
    report = delivery(said, ev.RunEnded(state="failed", message="no agent is installed"))
    assert ("failed", "no agent is installed") == (report.state, report.message)
    assert "no agent" == delivery(said, ev.RunEnded(state="failed")).message


def test_other_runs_have_no_deliverables() -> None:
    """Reports of other loops leave these sections out."""
    page = rendered(build_report(entries_of(begin("planning#1"))))
    assert 'id="deliverables"' not in page
    assert 'id="sessions"' not in page


def test_nothing_breaks_out() -> None:
    """Names, descriptions and final messages create no element or attribute."""
    report = hostile_report(kind="deliver")
    assert report.delivery is not None
    assert report.delivery.sessions
    assert report.delivery.deliverables
    assert [] == intruders(rendered(report))


def test_long_tables_are_cut(tmp_path: Path) -> None:
    """With many deliverables and sessions the page shows how many are left out."""
    sessions = [ev.DeliverSessionStarted(session=n, instruction="coding") for n in range(1, 1003)]
    text = rendered(delivery(*sessions))
    assert "602 sessions more are left out here" in text
    statuses = {f"D{n}": "passed" for n in range(1001)}
    text = rendered(report_on(tmp_path, turn(leaves=statuses)))
    assert "601 deliverables more are left out here" in text
