"""The answers of a report in the morning: proof, what was given up, the forecast, the unusual."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.report import (
    RunReport,
    build_report,
    load_report,
    render_night,
    render_report,
    report_json,
)
from cuggino.report.morning import compared, proof_of, unusual
from cuggino.report.night import NightReport
from cuggino.storage import Workspace
from tests.git_project import isolate_git
from tests.report.journals import entries_of
from tests.report.nights import Item, name_at, write_night
from tests.report.slots import LOGIN, write_slots
from tests.report.test_page import Page
from tests.vectors import each

ZONE = timezone.utc  # noqa: UP017
HEADINGS = ["Done", "Waiting for you", "Given up", "Cost", "Unusual"]


def headings(page: str) -> list[str]:
    """Return the headings of a page's sections, without their numbers."""
    found = re.findall(r"<h2>([A-Z][a-z ]+)", page)
    return [one.strip() for one in found]


def approved(*events: ev.Event, checked: bool | None = None) -> RunReport:
    """Return the report of an approved run."""
    end = ev.RunEnded(state="approved", checked=checked)
    return build_report(entries_of(*events, ev.LoopApproved(iteration=1, checked=checked), end))


CHECK = ev.CheckCommandStarted(iteration=1, command="make test", on="commit")
GREEN = ev.CheckCommandOutput(iteration=1, exit_code=0)
RED = ev.CheckCommandOutput(iteration=1, exit_code=1)


@each(
    "events, checked, text, tone",
    [
        ((CHECK, RED, CHECK, GREEN), True, "`make test` passed on a clean checkout", "good"),
        ((CHECK, GREEN), False, "approvals do not depend on it", "warning"),
        ((CHECK, GREEN, CHECK, RED), False, "failed on a clean checkout: only the", "bad"),
        ((), False, "No check: only the reviewer approved it", "warning"),
    ],
)
def test_proof(events: tuple[ev.Event, ...], checked: bool, text: str, tone: str) -> None:
    """An approval names the check behind it, or that there was none."""
    proof = proof_of(approved(*events, checked=checked))
    assert proof is not None
    assert text in proof.text
    assert tone == proof.tone
    told = {"proven": tone == "good", "text": proof.text}
    assert told == report_json(approved(*events, checked=checked))["proof"]


def test_no_proof_without_an_approval() -> None:
    """A run that was not approved proves nothing."""
    report = build_report(entries_of(CHECK, GREEN, ev.RunEnded(state="stalled")))
    assert proof_of(report) is None
    assert report_json(report)["proof"] is None


@each(
    "given, text, tone",
    [
        ({"cost_usd": 2.0, "items": 2}, "2 items usually take $2.00 and 2 m; the c", "neutral"),
        ({"cost_usd": 9.0, "items": 1}, "the cost is 9.0 times the usual", "warning"),
        ({"cost_usd": None, "items": 1}, "1 item usually takes 1 m; it took 5 m", "warning"),
    ],
)
def test_forecast(given: dict[str, Any], text: str, tone: str) -> None:
    """The cost is compared with that of as many items, or the duration without a cost."""
    usual = ev.Forecast(
        loop="item", runs=3, duration=60, worst_duration=90, cost_usd=1.0, worst_cost_usd=3.0
    )
    found = compared(usual, seconds=300, **given)
    assert found is not None
    assert text in found.text
    assert tone == found.tone
    assert compared(None, seconds=1, **given) is None


def test_forecast_in_json() -> None:
    """A script gets the figures of the forecast."""
    usual = ev.Forecast(loop="run", runs=3, duration=60, worst_duration=90, cost_usd=1.0)
    found = report_json(build_report(entries_of(usual, ev.RunEnded(state="stalled"))))
    assert (3, 60, 90, 1.0) == tuple(
        found["forecast"][name] for name in ("runs", "duration", "worst_duration", "cost_usd")
    )
    assert report_json(approved())["forecast"] is None


def test_unusual_events_are_counted() -> None:
    """Equal warnings are one; what is neutral is left out."""
    retry = ev.AgentRetry(attempt=1, max_retries=2, reason="overloaded", message="", retry_in=1)
    report = build_report(entries_of(retry, ev.StopAsked(), retry))
    (one,) = unusual(("", notice) for notice in report.notices)
    assert 2 == one.count


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a question and a parked item."""
    isolate_git(monkeypatch, tmp_path)
    folder = tmp_path / "project"
    workspace = Workspace(folder)
    folder.mkdir()
    workspace.open()
    parked = workspace.parked / "002-cart.md"
    parked.write_text("# Fix the `cart` total\n", encoding="utf-8")
    parked.with_name("002-cart.md.reason.txt").write_text("no progress\n", encoding="utf-8")
    return folder


def test_order_of_a_night(project: Path) -> None:
    """The night answers five questions in order; each item is told once."""
    items = [Item("001-login.md", "Login"), Item("002-cart.md", "Fix the `cart` total", "stalled")]
    write_night(project, items)
    Workspace(project).write_spec_issue("# CSV?", name=name_at(items_start(project), 1) + ".md")
    night = load_report(project)
    assert isinstance(night, NightReport)
    page = render_night(night, zone=ZONE)
    assert HEADINGS == headings(page)[:5]
    assert ["002-cart.md"] == [one.item for one in night.given_up]
    words = Page(page).words
    assert "1 of 2 items done, 1 waiting for you, 1 given up" in words
    assert "cuggino backlog retry 002-cart.md" in words
    assert "cuggino watch" in words
    assert "`" not in words.partition("Timeline")[0]


def items_start(project: Path) -> datetime:
    """Return the start of the night."""
    report = load_report(project)
    assert isinstance(report, NightReport)
    return report.start


def test_what_landed_is_proven_by_its_landing(project: Path) -> None:
    """The check of the landing is the proof of an item that landed, and slots have no timeline."""
    write_slots(project)
    night = load_report(project)
    assert isinstance(night, NightReport)
    (login,) = (item for item in night.done if item.item.name == LOGIN)
    proof = night.proof(login)
    assert proof is not None
    assert ("`make test` passed", "good") == proof[:2]
    page = render_night(night, zone=ZONE)
    assert 'id="w-slots"' in page
    assert 'id="timeline"' not in page


def test_order_of_a_run() -> None:
    """The report of a run answers in the same order."""
    spent = ev.SessionEnded(outcome="completed", cost_usd=0.5)
    changes = ev.RequestChanges(content="Round `once`.")
    retry = ev.AgentRetry(attempt=1, max_retries=2, reason="overloaded", message="", retry_in=1)
    events = (spent, retry, changes, ev.RunEnded(state="max_iterations"))
    report = build_report(entries_of(*events))
    page = render_report(report, zone=ZONE)
    assert ["Done", "Given up", "Cost", "Unusual"] == headings(page)[:4]
    assert 1 == Page(page).words.count("Round once.")
