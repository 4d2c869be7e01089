"""The report on a watch with several slots, whose items overlap in time."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from pydantic import JsonValue

from cuggino import events as ev
from cuggino.report import (
    NightReport,
    RunReport,
    build_report,
    commit_diffs,
    load_report,
    render_night,
    report_json,
    slot_of as folder_of,
)
from cuggino.report.charts import slots
from cuggino.report.model import SlotsReport
from cuggino.report.times import Times
from cuggino.report.titles import shown_input
from cuggino.storage import Workspace
from cuggino.storage.journal import Journal, list_journals, read_journal
from tests.git_project import GitProject
from tests.report.browser import PHONE, WIDE, Browser, browser
from tests.report.journals import START, after
from tests.report.slots import (
    AGAIN,
    CART,
    COST,
    END,
    EXPORT,
    INVOICES,
    KEPT,
    LOGIN,
    PDF,
    SEARCH,
    SlotWatch,
    commit,
    slot_folder,
    trunk,
    write_slots,
)
from tests.report.test_page import Page, intruders

__all__ = ["browser"]

ZONE = UTC


def folded(project: Path, *, until: float = END, now: datetime | None = None) -> RunReport:
    """Return the report on the watch's own journal, perhaps cut off at a moment."""
    run_id = write_slots(project, until=until)
    journal = read_journal(Workspace(project).journal / f"{run_id}.jsonl")
    return build_report(journal.entries, running_at=now)


def slots_of(report: RunReport) -> SlotsReport:
    assert report.slots is not None
    return report.slots


def test_items_overlap(tmp_path: Path) -> None:
    """Each item has its own outcome, time, cost and slot, while others overlap it."""
    report = folded(tmp_path)
    items = {one.name: one for one in report.watched}
    assert {
        PDF: ("held", 0, 0, 0),
        LOGIN: ("approved", 1, 0, 1),
        CART: ("approved", 2, 1, 2),
        SEARCH: ("approved", 2, 1, 3),
        INVOICES: ("spec_issue", 1, 0, 1),
        AGAIN: ("approved", 1, 0, 1),
        EXPORT: ("parked", 2, 0, 2),
    } == {name: (one.state, one.attempts, one.returns, one.slot) for name, one in items.items()}
    assert [299, 399 + 195] == [round(items[name].seconds) for name in (LOGIN, CART)]
    assert [2, 4, 4, 1, 2, 4] == [
        pytest.approx((items[name].cost_usd or 0) / COST)
        for name in (LOGIN, CART, SEARCH, INVOICES, AGAIN, EXPORT)
    ]
    assert report.totals.cost_usd == pytest.approx(17 * COST)
    assert report.spent[-1].cost_usd == pytest.approx(17 * COST)
    assert "# PDF or HTML?" == items[INVOICES].reason
    assert items[PDF].reason.endswith("which asks a question")
    assert (trunk(1), "", False) == (items[LOGIN].landed, items[LOGIN].candidate, False)
    assert items[AGAIN].nothing


def test_landings(tmp_path: Path) -> None:
    """Each landing has its candidate and its end; one that sent an item back names the reason."""
    known = slots_of(folded(tmp_path))
    assert (3, 4, 2) == (known.count, known.landed, known.returns)
    assert [
        (LOGIN, "landed", 28),
        (CART, "conflict", 3),
        (SEARCH, "check", 58),
        (CART, "landed", 38),
        (AGAIN, "nothing", 2),
        (SEARCH, "landed", 48),
    ] == [(one.item, one.ending, one.seconds) for one in known.landings]
    conflict, red = known.landings[1:3]
    assert (("app/cart.py",), 1) == (conflict.paths, conflict.returns)
    assert red.output.endswith("1 failed, 41 passed\n")
    assert (commit(CART, 2), trunk(1), trunk(2)) == (
        known.landings[3].candidate,
        known.landings[3].trunk,
        known.landings[3].commit,
    )
    assert [(KEPT, 2, CART)] == [(one.ref, one.slot, one.item) for one in known.kept]
    assert "" == known.delayed


def test_slots_are_used_by_one_item_at_a_time(tmp_path: Path) -> None:
    """The attempts in a slot follow each other, with the state in which each left its item."""
    known = slots_of(folded(tmp_path))
    used = {n: [use for use in known.uses if use.slot == n] for n in (1, 2, 3)}
    assert {
        1: [(LOGIN, "queued"), (INVOICES, "spec_issue"), (AGAIN, "queued")],
        2: [(CART, "queued"), (CART, "queued"), (EXPORT, "failed"), (EXPORT, "parked")],
        3: [(SEARCH, "queued"), (SEARCH, "queued")],
    } == {n: [(use.item, use.state) for use in uses] for n, uses in used.items()}
    for uses in used.values():
        assert all(one.end <= other.start for one, other in pairwise(uses))


def test_in_progress(tmp_path: Path) -> None:
    """In a watch at work, several items are; the candidates of others wait, returned ones first."""
    report = folded(tmp_path, until=603, now=after(603))
    known = slots_of(report)
    states = {one.name: one.state for one in report.watched}
    assert {
        LOGIN: "approved",
        CART: "landing",
        SEARCH: "working",
        INVOICES: "spec_issue",
        AGAIN: "queued",
        PDF: "held",
    } == states
    assert (AGAIN,) == known.queue
    assert [(SEARCH, 3, "working")] == [
        (use.item, use.slot, use.state) for use in known.uses if use.end == after(603)
    ]
    assert ("running", after(603)) == (known.landings[-1].ending, known.landings[-1].end)
    delayed = slots_of(folded(tmp_path / "later", until=645, now=after(645)))
    assert "main waits: files of yours are in the way: README.md" == delayed.delayed


def test_killed(tmp_path: Path) -> None:
    """In a killed watch nothing works: a landing that was cut off begins again with the next."""
    report = folded(tmp_path, until=603)
    states = {one.name: one.state for one in report.watched}
    assert ("queued", "interrupted") == (states[CART], states[SEARCH])
    known = slots_of(report)
    assert (CART, AGAIN) == known.queue
    assert "cut off" == known.landings[-1].ending


def test_a_resumed_attempt_is_one(tmp_path: Path) -> None:
    """A killed watch resumes the attempt that it had begun, which counts once."""
    watch = SlotWatch(tmp_path)
    watch.attempt(LOGIN, 1, 1, 50)
    watch.say(10, ev.RunContinued())
    watch.attempt(LOGIN, 1, 11, 60)
    watch.candidate(LOGIN, 1, 61)
    run_id = watch.write(until=61)
    report = build_report(read_journal(Workspace(tmp_path).journal / f"{run_id}.jsonl").entries)
    assert [(1, "queued")] == [(one.attempts, one.state) for one in report.watched]


def test_candidate_of_an_earlier_watch(tmp_path: Path) -> None:
    """A candidate of another watch lands; the page reports that it was worked on earlier."""
    watch = SlotWatch(tmp_path)
    watch.candidate(CART, 2, 1, number=2)
    watch.landing(CART, 2, 30, 0, number=2)
    watch.landed(CART, 30, 0)
    watch.write()
    night = load_report(tmp_path)
    assert isinstance(night, NightReport)
    ((item,),) = (night.items,)
    assert ("approved", 2, 2, 0) == (
        item.item.state,
        item.item.attempts,
        item.item.slot,
        item.item.seconds,
    )
    assert "An earlier watch worked on it." in Page(render_night(night, zone=ZONE)).words


def test_watch_without_slots(tmp_path: Path) -> None:
    """A watch in the project itself has no slots."""
    from tests.report.nights import Item, write_night

    write_night(tmp_path, [Item("001-login.md", "Login page")])
    night = load_report(tmp_path)
    assert isinstance(night, NightReport)
    assert night.watch.slots is None


def test_page(tmp_path: Path) -> None:
    """The page of a night has its slots and landings, and the reasons of returns."""
    write_slots(tmp_path)
    night = load_report(tmp_path)
    assert isinstance(night, NightReport)
    assert [1, 2, 2, 1, 0, 1, 2] == [
        len({one.item.name: one for one in night.items}[name].runs)
        for name in (LOGIN, CART, SEARCH, INVOICES, PDF, AGAIN, EXPORT)
    ]
    page = render_night(night, zone=ZONE)
    assert [] == intruders(page)
    shown = Page(page)
    assert "4 of 7 items done" in shown.words
    assert "4 landed, 2 sent back" in shown.words
    assert "2 attempts, sent back once" in shown.words
    assert "1 failed, 41 passed" in shown.words
    assert "CONFLICT (content): Merge conflict in app/cart.py" in shown.words
    assert KEPT in shown.words
    assert "It has not begun." in shown.words
    ids = [a["id"] for _, a in shown.elements if "id" in a]
    assert len(ids) == len({*ids})
    links = {str(a["href"])[1:] for _, a in shown.elements if str(a.get("href")).startswith("#")}
    assert links <= {*ids}


def test_json(tmp_path: Path) -> None:
    """The facts of a night with slots are those of its page."""
    write_slots(tmp_path)
    facts = report_json(load_report(tmp_path))
    assert (3, 4, 2, []) == tuple(
        facts["slots"][name] for name in ("slots", "landed", "sent_back", "queue")
    )
    conflict = facts["slots"]["landings"][1]
    assert (CART, "conflict", ["app/cart.py"]) == (
        *(conflict["item"], conflict["ending"], conflict["paths"]),
    )
    items = {one["item"]: one for one in facts["items"]}
    assert (2, 2, 1) == tuple(items[CART][name] for name in ("slot", "attempts", "returns"))
    assert (None, 0) == (items[PDF]["slot"], items[PDF]["attempts"])


@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_in_a_browser(browser: Browser, tmp_path: Path, width: int) -> None:
    """The page fits its window, and a bar of a slot unfolds the runs of its item."""
    write_slots(tmp_path)
    night = load_report(tmp_path)
    assert isinstance(night, NightReport)
    path = tmp_path / "night.html"
    path.write_text(render_night(night, zone=ZONE), encoding="utf-8")
    with browser.show(path, width=width, scheme="light") as shown:
        page = shown.page
        assert width == shown.number("document.documentElement.scrollWidth")
        bars = page.locator("#w-slots svg a")
        assert 9 + 6 == bars.count()
        bars.nth(1).focus()
        page.keyboard.press("Enter")
        page.locator("#i2").wait_for(state="visible")
        page.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")
        assert width == shown.number("document.documentElement.scrollWidth")
        assert [] == shown.console


def test_paths_in_a_slot(tmp_path: Path) -> None:
    """An agent's paths are shown relative to its slot, wherever that is."""
    write_slots(tmp_path)
    night = load_report(tmp_path)
    assert isinstance(night, NightReport)
    run = next(one for item in night.items if item.item.name == SEARCH for one in item.runs)
    assert 3 == run.slot
    calls = [row.what for one in run.transcripts for row in one.rows if row.kind == "tool"]
    assert ["app/form.py"] == calls
    command: dict[str, JsonValue] = {"command": "cat '/a/b c/x' /a/slot-3/x.py && cd /a/slot-3/"}
    assert "cat '/a/b c/x' x.py && cd" == shown_input(command, slot=3).what.strip()


@pytest.mark.real_agent
def test_a_long_watch_fits_on_its_page(tmp_path: Path) -> None:
    """The charts of 1,000 attempts and landings are small; their bars stand for all of them."""
    watch = SlotWatch(tmp_path)
    for number in range(1000):
        at = 100.0 * number
        watch.attempt(LOGIN, number % 16 + 1, at, at + 80, number=1 + number)
        watch.candidate(LOGIN, number % 16 + 1, at + 81)
        watch.landing(LOGIN, at + 82, at + 90, 1, checks=False)
        watch.landed(LOGIN, at + 90, 1, nothing=number % 2 == 0)
    watch.attempts.clear()
    journal = read_journal(Workspace(tmp_path).journal / f"{watch.write(until=1e6)}.jsonl")
    report = build_report(journal.entries)
    assert (16, 1000) == (slots_of(report).count, slots_of(report).landed)
    shape = slots(report, Times(UTC, report.start, report.end), first=1, listed=10)
    assert shape is not None
    assert len(shape.bars) <= 300
    assert 2000 == sum(bar.stands_for for bar in shape.bars)


def project_with_clone(place: Path, folder: Path, *, text: str) -> tuple[GitProject, str]:
    """Return a project and a commit that only its clone in `folder` has: it adds `b.txt`."""
    project = GitProject(place / "project")
    project.write("a.txt", "a\n")
    project.git("add", "a.txt")
    project.git("commit", "-q", "-m", "Begin")
    project.git("clone", "-q", "--shared", ".", str(folder))
    clone = GitProject(folder)
    clone.write("b.txt", text)
    clone.git("add", "b.txt")
    clone.git("commit", "-q", "-m", "Add b")
    return project, clone.git("rev-parse", "HEAD").strip()


def test_commits_in_a_slot(tmp_path: Path) -> None:
    """A commit that only the slot of a run at work has yet is shown, by the project's own git."""
    folder = slot_folder(tmp_path / "project", 2)
    project, made = project_with_clone(tmp_path, folder, text="b\nc\n")
    write_slots(project.root, until=100)
    found = {folder_of(path) for path in list_journals(Workspace(project.root).journal)}
    assert {None, *(slot_folder(project.root, n) for n in (1, 2, 3))} == found
    assert {made: None} == commit_diffs(project.root, [made])
    diff = commit_diffs(project.root, [made], slot=folder)[made]
    assert diff is not None
    assert [("b.txt", 2, 0)] == list(diff.changes)
    named = tmp_path / 'a:b"c' / "slot-1"
    named.parent.mkdir()
    folder.rename(named)
    assert commit_diffs(project.root, [made], slot=named / "src")[made] == diff
    assert {made: None} == commit_diffs(project.root, [made], slot=tmp_path / "gone")


@pytest.mark.parametrize("slots", [None, "../others"])
def test_commits_of_several_hands(tmp_path: Path, slots: str | None) -> None:
    """Commits that have not landed are shown from the clone of the run."""
    folder = tmp_path / ("others" if slots else "project.cuggino-slots") / "slot-1"
    project, made = project_with_clone(tmp_path, folder, text="b\n")
    started = ev.RunStarted(
        run_id="0193b2c1-0000-7000-8000-000000000000",
        kind="run",
        command="cuggino run --hands 2",
        options={"hands": 2, "slot_folder": slots},
    )
    with closing(Journal.create(Workspace(project.root).journal, started, at=START)) as journal:
        done = ev.CommitPerformed(iteration=1, commit_hash=made, message="Add b")
        journal.append(done, at=START)
    run = load_report(project.root)
    assert isinstance(run, RunReport)
    assert [(made, False)] == [(commit.commit_hash, commit.gone) for commit in run.commits]


def test_attempts_on_workers(tmp_path: Path) -> None:
    """The report names the worker of each attempt and item, and what each worker did."""
    watch = SlotWatch(tmp_path)
    both = tuple(ev.ClusterWorker(name=f"w{n}", places=2) for n in (1, 2))
    watch.say(1, ev.WatchWorkers(workers=both, joined=("w1", "w2")))
    watch.attempt(LOGIN, 1, 2, 300)
    watch.say(2.5, ev.WatchPlaced(filename=LOGIN, slot=1, worker="w1"))
    watch.say(100, ev.WatchPlaceGone(filename=LOGIN, slot=1, worker="w1", reason="killed"))
    watch.say(110, ev.WatchWorkers(workers=both[1:], left=("w1",)))
    watch.say(120, ev.WatchPlaced(filename=LOGIN, slot=1, worker="w2"))
    watch.candidate(LOGIN, 1, 301)
    run_id = watch.write()
    journal = read_journal(Workspace(tmp_path).journal / f"{run_id}.jsonl")
    report = build_report(journal.entries)
    known = report.slots
    assert known is not None
    assert [("w1", 98, True), ("w2", 201, False)] == [
        (use.worker, (use.end - use.start).total_seconds(), use.is_lost) for use in known.uses
    ]
    (login,) = report.watched
    assert ("w2", 1, 299) == (login.worker, login.attempts, login.seconds)
    assert [("w1", 1, False, True), ("w2", 1, True, False)] == [
        (one.name, len(one.uses), one.is_there, one.was_lost) for one in known.on_workers
    ]
    shape = slots(report, Times(ZONE, report.start, report.end), first=1, listed=10)
    assert shape is not None
    assert ["Login page on w1\nworker lost, 1 m 38 s", "Login page on w2\ncandidate, 3 m 21 s"] == [
        bar.title for bar in shape.bars
    ]
    night = load_report(tmp_path)
    assert isinstance(night, NightReport)
    words = " ".join(Page(render_night(night, zone=ZONE)).words.split())
    assert "w1lost11 m 38 s" in words
    assert "w2in the cluster13 m 21 s" in words
    assert "on w2" in words
    run = load_report(tmp_path, watch.attempts[0][0].run_id)
    assert isinstance(run, RunReport)
    assert ("w2", 1) == (run.worker, run.slot)
    assert ", slot 1 on w2" in " ".join(words.split())
    facts = report_json(night)
    assert ["w1", "w2"] == [use["worker"] for use in facts["slots"]["uses"]]
    assert (["w1"], "w2") == (facts["slots"]["lost_workers"], facts["items"][0]["worker"])
    assert ["w2"] == [worker["name"] for worker in facts["slots"]["workers"]]


def test_the_folder_of_a_slot_elsewhere(tmp_path: Path) -> None:
    """The folder of a slot on a worker is not looked for on this machine."""
    watch = SlotWatch(tmp_path)
    watch.attempt(LOGIN, 1, 2, 300)
    (started, _), *_ = watch.attempts
    prepared = ev.WatchSlotPrepared(filename=LOGIN, slot=1, folder="/", base="b", worker="w1")
    watch.write()
    run = Workspace(tmp_path).journal / f"{started.run_id}.jsonl"
    assert slot_folder(tmp_path, 1) == folder_of(run)
    watch.say(4, prepared)
    elsewhere = tmp_path / "elsewhere"
    watch.project = elsewhere
    elsewhere.mkdir()
    watch.write()
    assert folder_of(Workspace(elsewhere).journal / f"{started.run_id}.jsonl") is None


@pytest.mark.parametrize("is_over", [False, True])
def test_pull_requests(tmp_path: Path, is_over: bool) -> None:
    """One that ends while another item lands does not end that landing."""
    watch = SlotWatch(tmp_path)
    watch.attempt(LOGIN, 1, 1, 10)
    watch.candidate(LOGIN, 1, 10)
    watch.landing(LOGIN, 11, 12, 0, checks=False)
    proposed = ev.WatchProposed(
        filename=LOGIN, number=7, url="https://f/7", branch="b", commit="h", candidate="c"
    )
    watch.say(12, proposed)
    watch.say(13, ev.WatchProposal(filename=LOGIN, number=7, state="red", message="test"))
    if is_over:
        watch.attempt(CART, 2, 1, 14)
        watch.candidate(CART, 2, 14)
        watch.landing(CART, 15, 17, 0, checks=False)
        watch.say(16, ev.WatchSentBack(filename=LOGIN, reason="ci", returns=1))
        watch.landed(CART, 17, 0)
    run_id = watch.write(until=17)
    report = build_report(read_journal(Workspace(tmp_path).journal / f"{run_id}.jsonl").entries)
    landings = [(one.item, one.ending) for one in slots_of(report).landings]
    if is_over:
        assert [(LOGIN, "proposed"), (LOGIN, "ci"), (CART, "landed")] == landings
    else:
        (item,) = report.watched
        assert ("proposed", "#7 is red (test)") == (item.state, item.reason)
        assert [(LOGIN, "proposed")] == landings
