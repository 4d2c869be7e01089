"""The pages of a watch with several slots: what each slot does, what lands, and what waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import expect

from cuggino import events as ev
from cuggino.report.wording import web_address
from cuggino.storage import Workspace
from cuggino.storage.journal import Journal, list_journals, origin_of
from cuggino.web.board import Board, BoardReader
from tests.git_project import isolate_git
from tests.limits import LIMIT
from tests.loops.slot_project import SlotProject
from tests.report.hostile import BAD
from tests.report.journals import START, after
from tests.report.slots import (
    AGAIN,
    CART,
    INVOICES,
    LOGIN,
    PDF,
    SEARCH,
    TITLES,
    SlotWatch,
    commit,
    trunk,
    write_backlog,
    write_slots,
)
from tests.web.chromium import Chromium
from tests.web.server import page
from tests.web.test_pages_in_chromium import CONTRAST, EVIL

OPEN = [name for name in TITLES if name != LOGIN]
WIDE, PHONE = 1280, 390


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Callable[[float], Path]]:
    """Return a function that writes a watch with slots, at work up to a moment."""
    with ExitStack() as stack:

        def written(until: float) -> Path:
            project = tmp_path / "shop"
            project.mkdir()
            write_slots(project, until=until)
            write_backlog(project, *OPEN)
            workspace = Workspace(project)
            command = "cuggino watch --slots 3"
            stack.enter_context(workspace.lock(command=command, since=START))
            return project

        yield written


def read(project: Path) -> Board:
    return BoardReader(Workspace(project)).read(now=after(1000))


def journal_of(project: Path, item: str | None) -> Path:
    """Return the latest journal of an item, or that of the watch."""
    for path in list_journals(Workspace(project).journal):
        origin = origin_of(path)
        name = (origin.item or "").partition(" ")[0] if origin else ""
        if name == (item or ""):
            return path
    raise AssertionError(f"{item} has no run")


def append(path: Path, *events: object, at: datetime, stage: str | None = None) -> None:
    """Append events to a journal."""
    journal = Journal.open(path, sync=False)
    for event in events:
        journal.append(event, at=at, stage=stage)  # type: ignore[arg-type]
    journal.close()


def test_slots_at_work(watch: Callable[[float], Path]) -> None:
    """Each slot is shown with its item and the stage of that item's own run."""
    project = watch(505)
    board = read(project)
    assert [(1, "Login page, again"), (2, "Fix the cart total")] == [
        (one.slot, one.title) for one in board.working
    ]
    again, cart = board.working
    assert (journal_of(project, AGAIN).stem, journal_of(project, CART).stem) == (
        again.run_id,
        cart.run_id,
    )
    assert ("implementing", 1) == (again.activity.role, again.activity.iteration)
    assert ("implementing", "The form **comes first**.") == (
        cart.activity.role,
        cart.activity.words,
    )
    assert (1, "conflict") == (cart.activity.returns, cart.activity.return_reason)
    assert board.watch is not None
    assert board.watch.landing is not None
    assert (SEARCH, "make test") == (
        board.watch.landing.item,
        board.watch.landing.tools[0].target,
    )


def test_columns(watch: Callable[[float], Path]) -> None:
    """Candidates have a column of their own; items sent back and held say why."""
    board = read(watch(505))
    cards = {card.name: card for card in board.cards}
    assert {
        AGAIN: ("working", 1, ""),
        CART: ("working", 2, "sent back once: conflict with what has landed"),
        SEARCH: ("landing", 0, "landing now"),
        INVOICES: ("asking", 0, ""),
        PDF: ("backlog", 0, f"after {INVOICES}, which asks a question"),
        "007-export.md": ("backlog", 0, ""),
    } == {name: (card.state, card.slot, card.note) for name, card in cards.items()}
    assert {AGAIN, CART, SEARCH} == {name for name, card in cards.items() if not card.may_move}


def test_nothing_in_a_slot(watch: Callable[[float], Path]) -> None:
    """While all items wait, the watch itself is at work; a failed item shows its next attempt."""
    project = watch(899)
    again = ev.WatchItemRetry(
        filename=SEARCH, message="it crashed", attempt=1, max_attempts=3, retry_in=60
    )
    append(journal_of(project, None), again.of_item(SEARCH), at=after(900), stage="slots")
    board = read(project)
    assert ["Watch"] == [one.title for one in board.working]
    (card,) = [card for card in board.cards if card.name == SEARCH]
    assert ("backlog", f"failed, again at {after(960).astimezone():%H:%M}") == (
        *(card.state, card.note),
    )


def test_one_question_for_a_paused_watch(watch: Callable[[float], Path]) -> None:
    """A watch that stands still is continued as a whole."""
    project = watch(505)
    for item in (AGAIN, CART):
        append(journal_of(project, item), ev.RunPaused(), at=after(506))
        append(
            journal_of(project, None), ev.RunPaused().of_item(item), at=after(506), stage="slots"
        )
    asked = [(one.kind, one.title) for one in read(project).waiting if one.kind == "paused"]
    assert [("paused", "Watch")] == asked


@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_overview_in_a_browser(
    watch: Callable[[float], Path], chromium: Chromium, width: int
) -> None:
    """The overview shows slots, landing and queue, follows them, and fits its window."""
    project = watch(505)
    with page(project) as served:
        tab = chromium.tab()
        tab.set_viewport_size({"width": width, "height": 900})
        tab.goto(served.server.url)
        slots = tab.locator(".slots > section")
        expect(slots).to_have_count(3)
        expect(slots.nth(0)).to_contain_text("Slot 1")
        expect(slots.nth(1)).to_contain_text("The form comes first.")
        expect(slots.nth(1)).to_contain_text("sent back once: conflict with what has landed")
        expect(slots.nth(2)).to_contain_text("Search with filters")
        expect(slots.nth(2)).to_contain_text("make test")
        expect(tab.locator(".column.landing")).to_contain_text("landing now")
        assert width == tab.evaluate("document.documentElement.scrollWidth")
        append(
            journal_of(project, CART),
            ev.AgentMessage(text="Both totals stay."),
            at=after(510),
            stage="implementing#2",
        )
        expect(slots.nth(1)).to_contain_text("Both totals stay.")
        landed = ev.WatchLanded(filename=SEARCH, commit=trunk(2), trunk_was=trunk(1))
        append(journal_of(project, None), landed.of_item(SEARCH), at=after(520), stage="slots")
        expect(slots).to_have_count(2)
        assert [] == chromium.console
        assert [] == chromium.violations(tab)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_on_a_phone(
    watch: Callable[[float], Path], chromium: Chromium, scheme: Literal["light", "dark"]
) -> None:
    """The pages of a watch with slots fit a phone, and can be read by day and by night."""
    project = watch(645)
    run = journal_of(project, None).stem
    with page(project) as served:
        tab = chromium.tab()
        tab.set_viewport_size({"width": PHONE, "height": 844})
        tab.emulate_media(color_scheme=scheme)
        for url in (served.server.url, served.server.app.site.url("p", "shop", "runs", run)):
            tab.goto(url if url.startswith("http") else served.origin + url)
            expect(tab.locator(".slots > section").first).to_be_visible()
            expect(tab.locator(".delayed")).to_contain_text("README.md")
            tab.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")
            assert PHONE == tab.evaluate("document.documentElement.scrollWidth")
            assert [] == tab.evaluate(CONTRAST)


def test_run_pages_in_a_browser(watch: Callable[[float], Path], chromium: Chromium) -> None:
    """The page of the watch leads from a slot, a bar and the table to the runs of items."""
    project = watch(505)
    run = journal_of(project, None).stem
    with page(project) as served:
        tab = chromium.tab(served.server.url)
        tab.goto(served.origin + served.server.app.site.url("p", "shop", "runs", run))
        expect(tab.locator("#head")).to_contain_text("2 of 3 slots at work")
        expect(tab.locator("#now .slots > section")).to_have_count(3)
        expect(tab.locator("#p-landings")).to_contain_text("1 landed, 1 sent back")
        tab.locator("#p-slots svg a").nth(1).focus()
        tab.keyboard.press("Enter")
        assert tab.url.endswith("#i2")
        tab.locator("#i2").get_by_role("link", name="Fix the cart total").click()
        expect(tab.locator("#head")).to_contain_text("slot 2")
        expect(tab.locator("h1")).to_contain_text("Fix the cart total")
        tab.locator("#head").get_by_role("link", name="the watch").click()
        expect(tab.locator("#head")).to_contain_text("2 of 3 slots at work")
        sent = ev.WatchLanded(filename=SEARCH, commit=trunk(2), trunk_was=commit(SEARCH))
        append(journal_of(project, None), sent.of_item(SEARCH), at=after(520), stage="slots")
        expect(tab.locator("#now .slots > section")).to_have_count(2)
        expect(tab.locator("#p-landings")).to_contain_text("2 landed, 1 sent back")
        assert [] == chromium.console
        assert [] == chromium.violations(tab)


def test_hostile_texts(tmp_path: Path, chromium: Chromium) -> None:
    """No title, output, path, ref or reason of a watch with slots becomes markup."""
    project = tmp_path / "shop"
    project.mkdir()
    bad = BAD.replace("\ud800", "").replace("\x00", "")
    names = ["1<img src=x>\"'.md", "2 <b>.md", "3.md", "4.md"]
    made = SlotWatch(project)
    first, second, third, fourth = names
    for slot, name in enumerate((first, second, third), start=1):
        begun = ev.WatchProcessingItem(filename=name, title=bad, slot=slot)
        made.say(slot, begun)
    for at, name in ((5.0, first), (6.0, second)):
        queued = ev.WatchCandidate(filename=name, slot=1, commit=bad, base=bad, attempt=1)
        made.say(at, queued)
    made.say(7, ev.WatchLanding(filename=first, commit=bad, trunk=bad))
    back = ev.WatchSentBack(filename=first, reason="check", output=bad, paths=(bad,), returns=1)
    made.say(8, back)
    made.say(9, ev.WatchLanding(filename=second, commit=bad, trunk=bad))
    made.say(9, ev.CheckCommandStarted(iteration=1, command=bad), second, stage="slots")
    made.say(10, ev.WatchItemHeld(filename=fourth, reason=bad))
    made.say(11, ev.WatchWorkKept(ref=bad, slot=1, filename=first, reason=bad))
    made.say(12, ev.WatchSlotsChanged(active=2, slots=3, reason=bad))
    workers = (ev.ClusterWorker(name=bad, places=2, resources={bad: 1.0}, used={bad: 1.0}),)
    hostile_link = "javascript:document.title='owned'"
    made.say(12, ev.WatchWorkers(workers=workers, joined=(bad,), dashboard=hostile_link))
    made.say(12.5, ev.WatchPlaceGone(filename=third, slot=3, worker=bad, reason=bad))
    made.say(12.6, ev.WatchPlaced(filename=third, slot=3, worker=bad))
    made.say(13, ev.WatchFollowDelayed(branch=bad, commit=bad, reason=bad, paths=(bad,)))
    run = made.write()
    workspace = Workspace(project)
    workspace.open()
    for name in names:
        (workspace.backlog / name).write_text(f"# {bad}\n", encoding="utf-8")
    with workspace.lock(command="cuggino watch", since=START), page(project) as served:
        tab = chromium.tab(served.server.url)
        for url in (
            served.server.url,
            served.origin + served.server.app.site.url("p", "shop", "runs", run),
        ):
            tab.goto(url)
            expect(tab.locator(".slots > section")).to_have_count(2)
            expect(tab.locator(".workers tbody tr")).to_have_count(1)
            expect(tab.locator(".workers a")).to_have_count(0)
            assert [] == tab.evaluate(EVIL)
            assert "owned" != tab.title()
            assert [] == chromium.violations(tab)
        expect(tab.locator("#p-slots")).to_contain_text("Kept work")
    assert [] == chromium.console


def write_cluster(project: Path, *, dashboard: str = "http://head:8787/status") -> list[str]:
    """Write a watch on a cluster that lost a worker; return the ids of it and of an attempt."""
    made = SlotWatch(project)
    workers = tuple(
        ev.ClusterWorker(
            name=name, places=4, busy=busy, resources={"claude": 2}, used={"claude": 1}
        )
        for name, busy in (("rack-1", 1), ("rack-2", 0), ("rack-3", 2))
    )
    made.say(1, ev.WatchWorkers(workers=workers, joined=("rack-1",), dashboard=dashboard))
    for slot, name in enumerate((LOGIN, CART), start=1):
        made.say(2, ev.WatchProcessingItem(filename=name, title=TITLES[name], slot=slot))
        made.say(3, ev.WatchPlaced(filename=name, slot=slot, worker=f"rack-{slot}"))
    made.say(4, ev.WatchPlaceGone(filename=CART, slot=2, worker="rack-2", reason="killed"))
    left = ev.WatchWorkers(workers=(workers[0], workers[2]), left=("rack-2",), dashboard=dashboard)
    made.say(5, left)
    made.attempt(LOGIN, 1, 2, 900)
    return [made.write(until=500), made.attempts[0][0].run_id]


@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_workers_in_a_browser(tmp_path: Path, chromium: Chromium, width: int) -> None:
    """Workers have their load, free places and items; cards name them, and a lost one."""
    project = tmp_path / "shop"
    project.mkdir()
    run, attempt = write_cluster(project)
    write_backlog(project, LOGIN, CART)
    workspace = Workspace(project)
    with workspace.lock(command="cuggino watch", since=START), page(project) as served:
        tab = chromium.tab()
        tab.set_viewport_size({"width": width, "height": 900})
        for url in (
            served.server.url,
            served.origin + served.server.app.site.url("p", "shop", "runs", run),
        ):
            tab.goto(url)
            table = tab.locator(".workers")
            expect(table).to_contain_text("5 of 8 places free")
            rows = table.locator("tbody tr")
            expect(rows).to_have_count(2)
            assert ["rack-1", "3 of 4 free", "claude 1 of 2 used", "Login page"] == [
                text.strip() for text in rows.nth(0).locator("td").all_inner_texts()
            ]
            expect(rows.nth(1)).to_contain_text("others")
            link = table.get_by_role("link", name="Dask dashboard")
            expect(link).to_have_attribute("href", "http://head:8787/status")
            expect(link).to_have_attribute("rel", "noopener noreferrer")
            slots = tab.locator(".slots > section")
            expect(slots.nth(0)).to_contain_text("Slot 1 on rack-1")
            expect(slots.nth(1)).to_contain_text("rack-2 was lost; the work waits for another")
            assert width == tab.evaluate("document.documentElement.scrollWidth")
            assert [] == chromium.violations(tab)
        begun = ev.WatchPlaced(filename=CART, slot=2, worker="rack-3").of_item(CART)
        append(journal_of(project, None), begun, ev.WatchWorkers(left=("rack-1",)), at=after(6))
        expect(tab.locator(".slots > section").nth(1)).to_contain_text("Slot 2 on rack-3")
        expect(tab.locator("#now .workers")).to_contain_text("The cluster has no workers")
        tab.goto(served.origin + served.server.app.site.url("p", "shop", "runs", attempt))
        expect(tab.locator("#head")).to_contain_text("slot 1 on rack-1 of the watch")
    assert [] == chromium.console
    card = next(card for card in read(project).cards if card.name == LOGIN)
    assert "" == card.worker


@pytest.mark.parametrize(
    ("text", "is_link"),
    [
        ("http://head:8787/status", True),
        ("HTTPS://[::1]:8787/status?a=b", True),
        ("", False),
        ("/user/me/proxy/8787/status", False),
        ("javascript:alert(1)", False),
        ("http://x/\njavascript:alert(1)", False),
        ('http://x/" onclick=alert(1)', False),
        ("http:///x", False),
        ("data:text/html,x", False),
        ("http://x/" + "a" * 3000, False),
    ],
)
def test_addresses_of_dashboards(text: str, is_link: bool) -> None:
    """Only addresses of the web become links."""
    assert (text if is_link else "") == web_address(text)


def test_a_watch_at_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chromium: Chromium
) -> None:
    """A person follows a watch with two slots, and takes one item out of its hands."""
    isolate_git(monkeypatch, tmp_path / "home")
    project = SlotProject(tmp_path, journal=True)
    for name in "123":
        wait = f"until [ -e $WORK/go{name} ]; do sleep 0.05; done"
        project.item(name, f"{wait}\necho {name} >word{name}.txt", f"# Word {name}\n")
    with ThreadPoolExecutor(1) as pool, page(project.folder) as served:
        watch = pool.submit(project.watch)
        try:
            tab = chromium.tab(served.server.url)
            slots = tab.locator(".slots > section")
            expect(slots.filter(has_text="Slot 1")).to_contain_text("implementing")
            expect(slots.filter(has_text="Slot 2")).to_contain_text("implementing")
            slots.filter(has_text="Slot 2").get_by_role("link", name="Word 2").click()
            expect(tab.locator("#head")).to_contain_text("slot 2")
            tab.get_by_role("button", name="Skip item").click()
            expect(tab.locator("main")).to_contain_text("parks it")
            tab.get_by_role("button", name="Skip item").click()
            expect(tab.locator("#head")).to_contain_text("slot 2")
            tab.goto(served.origin + served.server.app.site.url())
            expect(tab.locator(".column.parked")).to_contain_text("Word 2")
            expect(slots.filter(has_text="Slot 2")).to_contain_text("Word 3")
            expect(slots.filter(has_text="Slot 1")).to_contain_text("Word 1")
            for name in "13":
                (project.work / f"go{name}").touch()
            expect(tab.locator(".column.done")).to_contain_text("Word 1")
            expect(tab.locator(".column.done")).to_contain_text("Word 3")
        finally:
            for name in "123":
                (project.work / f"go{name}").touch()
            events = watch.result(LIMIT)
        landed = [event.filename for event in events if isinstance(event, ev.WatchLanded)]
        assert ["1.md", "3.md"] == sorted(landed)
        assert [] == chromium.console
