"""The night report: a watch with the runs of its items."""

from __future__ import annotations

import json
from datetime import timezone
from pathlib import Path
from typing import Literal

import pytest

from cuggino import events as ev
from cuggino.report import NightReport, RunReport, build_report, load_report, render_night
from cuggino.runs import Runs
from cuggino.storage import Workspace
from cuggino.storage.journal import Entry
from cuggino_cli.main import main
from tests.report.browser import PHONE, WIDE, Browser, browser
from tests.report.journals import after
from tests.report.nights import Item, name_at, write_night
from tests.report.test_page import Page, intruders

__all__ = ["browser"]

ZONE = timezone.utc  # noqa: UP017
ITEMS = [
    Item("001-login.md", "Login page", cost=0.1, commits=["1111111", "2222222"]),
    Item("002-cart.md", "Fix the cart total", cost=0.2, commits=["3333333"]),
    Item("003-pdf.md", "Invoices in PDF", cost=0.3, state="spec_issue"),
    Item("004-search.md", "Search with filters", cost=0.4, state="stalled"),
]


def night_of(project: Path, run_id: str | None = None) -> NightReport:
    """Return the night report of a project."""
    report = load_report(project, run_id)
    assert isinstance(report, NightReport)
    return report


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty project, which is the current folder."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def night(project: Path) -> NightReport:
    """Return the report on a night with four items and an audit."""
    write_night(project, ITEMS, audit=0.25)
    return night_of(project)


def test_items(night: NightReport) -> None:
    """Each item has its title, outcome, duration, cost and commits."""
    assert [
        ("Login page", "done", 0.3, 2),
        ("Fix the cart total", "done", 0.6, 1),
        ("Invoices in PDF", "spec issue", 0.9, 0),
        ("Search with filters", "parked", 1.2, 0),
    ] == [
        (one.title, one.outcome[0], round(one.cost_usd or 0, 6), len(one.commits))
        for one in night.items
    ]
    assert ["", "", "Which of the two?", "no progress: nothing changes"] == [
        one.item.reason for one in night.items
    ]
    assert all(600 < one.seconds < 900 for one in night.items)
    assert (("done", 2, "good"), ("spec issue", 1, "warning"), ("parked", 1, "bad")) == night.counts


def test_totals_are_those_of_the_journals(project: Path, night: NightReport) -> None:
    """The sums of the page are those over the journals of all items, and the audits."""
    runs = [run for run in Runs(project).all() if not isinstance(run, Exception)]
    digests = [run.digest for run in runs if hasattr(run, "digest")]
    of_items = [digest for digest in digests if digest.started.item is not None]
    assert 4 == len(of_items)
    assert night.cost_usd == pytest.approx(
        sum(digest.totals.cost_usd or 0 for digest in of_items) + 0.25
    )
    (watch,) = (digest for digest in digests if digest.started.kind == "watch")
    assert night.cost_usd == pytest.approx(watch.totals.cost_usd)
    assert night.usage == watch.totals.usage
    assert sum(len(digest.totals.commits) for digest in of_items) == len(night.commits) == 3
    assert night.seconds == pytest.approx(sum(d.totals.duration for d in of_items))
    assert 0.25 == night.audit_cost
    assert 13 == night.agents


def test_page(night: NightReport) -> None:
    """The page names decisions, items and sums, and has the page of each run."""
    page = render_night(night, zone=ZONE)
    assert [] == intruders(page)
    words = Page(page).words
    assert "2 of 4 items done" in words
    assert "$3.25" in words
    for item in ITEMS:
        assert item.title in words
        assert words.count(f"# {item.title}") == 0
    assert 4 == words.count("Plan, iteration 1")
    shown = Page(page)
    ids = [a["id"] for _, a in shown.elements if "id" in a]
    assert len(ids) == len({*ids})
    links = {str(a["href"])[1:] for _, a in shown.elements if str(a.get("href")).startswith("#")}
    assert links <= {*ids}
    assert {"i1", "i4", "r1-s0", "r4-s0"} <= {*ids}
    assert "with this content" not in page.partition('id="i1"')[0]


def test_decisions_come_first(project: Path, night: NightReport) -> None:
    """Open spec issues, parked items and findings precede everything else."""
    assert () == night.decisions
    workspace = Workspace(project)
    workspace.open()
    issue = name_at(after(2000), 1) + ".md"
    workspace.write_spec_issue("# PDF\n\nWhich **of** the two?", name=issue)
    workspace.write_tbd_item("# Tax tables\n\nTwo copies.", name=name_at(after(-9), 2) + ".md")
    (workspace.parked / "004-search.md").write_text("# Search with filters\n", encoding="utf-8")
    (workspace.parked / "004-search.md.reason.txt").write_text("no progress\n", encoding="utf-8")
    decided = night_of(project)
    assert [
        ("spec issue", "PDF", True, f"cuggino issues answer {issue[:8]}"),
        ("parked", "Search with filters", True, "cuggino backlog retry 004-search.md"),
        ("finding", "Tax tables", False, f"cuggino issues show {name_at(after(-9), 2)[:8]}"),
    ] == [(one.kind, one.title, one.is_new, one.command) for one in decided.decisions]
    page = render_night(decided, zone=ZONE)
    assert "2 of 4 items done, 2 waiting for you, 1 given up" in page
    assert page.index('id="decisions"') < page.index('id="items"')
    assert "<strong>of</strong>" in page
    assert "from before this watch" in page


def test_latest_run_stands_for_its_watch(project: Path) -> None:
    """Without an ID the watch of the latest item is reported; with one, the run itself."""
    watch = write_night(project, ITEMS[:2])
    assert watch == night_of(project).watch.run_id
    latest = Runs(project).path_of().stem
    assert latest != watch
    run = load_report(project, latest)
    assert isinstance(run, RunReport)
    assert "Fix the cart total" == run.title


@pytest.mark.parametrize(
    "sentence",
    ["The file `.cuggino/backlog/{}`, with this content:\n\n", "The file `{}`, which says:\n"],
)
def test_titles_come_from_the_heading(project: Path, sentence: str) -> None:
    """The title of an item's run is its heading, not the sentence that names its file."""
    write_night(project, [Item("001-login.md", "Login page", sentence=sentence)])
    run = load_report(project, Runs(project).path_of().stem)
    assert isinstance(run, RunReport)
    assert "Login page" == run.title


def test_runs_of_other_nights_are_left_out(project: Path) -> None:
    """A run of an item of the same name that ended before the watch began is not of it."""
    from tests.report.nights import write_item

    write_item(Workspace(project), ITEMS[0], 77, after(-90_000))
    watch = write_night(project, ITEMS[:1])
    (item,) = night_of(project, watch).items
    assert 1 == len(item.runs)
    assert item.cost_usd == pytest.approx(0.3)


def test_item_without_a_journal(project: Path) -> None:
    """An item whose journal was removed has what the watch recorded of it."""
    watch = write_night(project, ITEMS[:1])
    Runs(project).path_of().unlink()
    night = night_of(project, watch)
    (item,) = night.items
    assert () == item.runs
    assert ("Login page", "done") == (item.title, item.outcome[0])
    assert item.cost_usd == pytest.approx(0.3)
    assert night.cost_usd == pytest.approx(0.3)
    assert "Its journal is not there any more." in render_night(night, zone=ZONE)


def test_empty_watch(project: Path) -> None:
    """A watch without an item has a page, too."""
    write_night(project, [])
    page = render_night(night_of(project), zone=ZONE)
    assert "0 of 0 items done" in page
    assert "The watch began no item." in page


def test_json(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--json` prints the same facts and writes no page."""
    watch = write_night(project, ITEMS, audit=0.25)
    assert 0 == main(["report", "--json"])
    facts = json.loads(capsys.readouterr().out)
    assert (watch, "watch", 3) == (facts["run_id"], facts["kind"], facts["commits"])
    assert facts["cost_usd"] == pytest.approx(3.25)
    assert {"done": 2, "spec issue": 1, "parked": 1} == facts["outcomes"]
    assert ["Login page", "Fix the cart total", "Invoices in PDF", "Search with filters"] == [
        item["title"] for item in facts["items"]
    ]
    run_id = facts["items"][0]["runs"][0]
    assert 0 == main(["report", run_id, "--json"])
    run = json.loads(capsys.readouterr().out)
    assert ("Login page", "001-login.md 0123abcd") == (run["title"], run["item"])
    assert [True, True] == [task["done"] for task in run["plans"][0]["tasks"]]
    assert run["cost_usd"] == pytest.approx(sum(role["cost_usd"] or 0 for role in run["roles"]))
    assert 2 == main(["report", "--json", "-o", "x.html"])
    assert [] == [*project.glob("*.html")]


def watched(*said: object) -> list[tuple[str, str, str]]:
    """Return state and reason of each item of a watch with these events."""
    started = ev.RunStarted(run_id="w", kind="watch", command="cuggino watch")
    pairs = [(None, started), *(one if isinstance(one, tuple) else (None, one) for one in said)]
    entries = [
        Entry(seq=n, at=after(n), stage=stage, event=event)
        for n, (stage, event) in enumerate(pairs, start=1)
    ]
    return [(one.name, one.state, one.reason) for one in build_report(entries).watched]


def test_outcomes_of_items() -> None:
    """The outcome of an item follows its latest event."""
    begun = ev.WatchProcessingItem(filename="a")
    limit = ("item", ev.LoopMaxIterations(iteration=3, max_iterations=3))
    made = ev.WatchCandidate(filename="a", slot=1, commit="c", base="b", attempt=1, approved=False)
    assert [("a", "max_iterations", "")] == watched(begun, limit, made)
    issue = ("item", ev.LoopSpecIssue(iteration=1, content="Which?", filename="x.md"))
    stalled = ("item", ev.LoopStalled(iteration=1, reason="no_progress", message="nothing"))
    retry = ev.WatchItemRetry(filename="a", message="busy", attempt=1, max_attempts=3, retry_in=9)
    assert [("a", "interrupted", "")] == watched(begun, ev.RunEnded(state="interrupted"))
    assert [("a", "max_iterations", "")] == watched(
        begun, limit, ev.WatchItemCompleted(filename="a")
    )
    assert [("a", "spec_issue", "Which?")] == watched(begun, issue)
    assert [("a", "failed", "busy")] == watched(begun, retry)
    assert [("a", "approved", "")] == watched(
        begun, retry, begun, ev.WatchItemCompleted(filename="a")
    )
    for checked, state in ((True, "approved"), (False, "unchecked")):
        approved = ("item", ev.LoopApproved(iteration=1, checked=checked))
        done = ev.WatchItemCompleted(filename="a", checked=checked)
        assert [("a", state, "")] == watched(begun, approved)
        assert [("a", state, "")] == watched(begun, approved, done)
    parked = ev.WatchItemParked(filename="a", reason="nothing")
    assert [("a", "parked", "nothing")] == watched(begun, stalled, parked)
    assert ["edited"] == [one[1] for one in watched(begun, ev.WatchItemRetained(filename="a"))]
    assert ["skipped"] == [
        one[1] for one in watched(ev.WatchItemSkipped(filename="a", reason="a folder"))
    ]


def test_pages_of_an_item(project: Path) -> None:
    """The report links to the issue and the pull request, and to no other kind of address."""
    name, issue = ITEMS[0].name, "https://github.com/o/r/issues/7"
    reported = ev.WatchIssueReported(filename=name, url=issue, state="working")
    landed = ev.WatchLanded(filename=name, commit="c", trunk_was="b", url="javascript:alert()")
    journal = write_night(project, ITEMS[:1], more=[reported, landed])
    (item,) = night_of(project, journal).items
    assert (issue, "javascript:alert()") == (item.item.issue, item.item.pull_request)
    page = render_night(night_of(project, journal), zone=ZONE)
    assert f'href="{issue}"' in page
    assert "javascript:" not in page


def test_cost_of_two_attempts() -> None:
    """The sessions of all attempts at an item count."""
    usage = ev.Usage(input_tokens=5)
    ended = ("item", ev.SessionEnded(outcome="failed", cost_usd=0.5, usage=usage))
    begun = ev.WatchProcessingItem(filename="a")
    retry = ev.WatchItemRetry(filename="a", message="busy", attempt=1, max_attempts=3, retry_in=9)
    started = ev.RunStarted(run_id="w", kind="watch", command="cuggino watch")
    said = [(None, started), (None, begun), ended, (None, retry), (None, begun), ended]
    entries = [
        Entry(seq=n, at=after(n), stage=stage, event=event)
        for n, (stage, event) in enumerate(said, start=1)
    ]
    (item,) = build_report(entries, running_at=after(9)).watched
    assert (2, 1.0, 10) == (
        item.attempts,
        item.cost_usd,
        item.usage.input_tokens if item.usage else 0,
    )
    assert ("working", 6.0) == (item.state, item.seconds)


@pytest.mark.parametrize("width", [WIDE, PHONE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser(
    browser: Browser, project: Path, width: int, scheme: Literal["light", "dark"]
) -> None:
    """The page fits its window, and a link of the table unfolds the run of its item."""
    write_night(project, ITEMS, audit=0.25)
    path = project / "night.html"
    path.write_text(render_night(night_of(project), zone=ZONE), encoding="utf-8")
    with browser.show(path, width=width, scheme=scheme) as shown:
        page = shown.page
        assert width == shown.number("document.documentElement.scrollWidth")
        assert page.locator("#i2").is_hidden()
        page.locator("#items").get_by_role("link", name="Fix the cart total").click()
        page.locator("#i2").wait_for(state="visible")
        assert page.locator("#r2-timeline").is_visible()
        page.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")
        assert width == shown.number("document.documentElement.scrollWidth")
        assert [] == shown.console
