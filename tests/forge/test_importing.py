"""Importing the items of sources, in virtual time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, abc, concat, from_iterable, never, throw
from reactivex.subject import Subject

from cuggino.events import Event, WatchItemImported, WatchProcessingItem, WatchSourceFailed
from cuggino.files import write_atomic
from cuggino.forge import Source, SourceItem, import_once, imported
from cuggino.storage import Backlog, Origins, Workspace
from cuggino.testing import VirtualClock

SEVEN = "github-00007.md"


class Tracker:
    """A tracker whose items a test changes."""

    def __init__(self, name: str = "github", **settings: Any) -> None:
        self.items: dict[str, SourceItem] = {}
        self.error: Exception | None = None
        self.looks = 0
        self.source = Source(name=name, items=self.look, **settings)

    def has(self, id: str, title: str = "Fix it", body: str = "Now.", **fields: Any) -> None:
        url = f"https://example.org/{id}"
        self.items[id] = SourceItem(
            **{"id": id, "title": title, "body": body, "url": url, **fields}
        )

    def change(self, id: str, **fields: Any) -> None:
        self.items[id] = dataclasses.replace(self.items[id], **fields)

    def look(self) -> Observable[SourceItem]:
        self.looks += 1
        listed: Observable[SourceItem] = from_iterable(list(self.items.values()))
        return listed if self.error is None else concat(listed, throw(self.error))


class Watch:
    """A workspace with an importing companion; `restart` is a kill and another watch."""

    def __init__(self, folder: Path, *trackers: Tracker) -> None:
        self.workspace = Workspace(folder)
        self.workspace.open()
        self.backlog = Backlog(self.workspace)
        self.origins = Origins(self.workspace)
        self.trackers = trackers
        self.clock = VirtualClock()
        self.events: list[Event] = []
        self.errors: list[Exception] = []
        self.restart()

    def restart(self) -> None:
        self.saw: Subject[Event] = Subject()
        self.running: abc.DisposableBase | None = None

    def _start(self) -> None:
        companion = imported([one.source for one in self.trackers], self.workspace)
        self.running = companion(self.saw).subscribe(
            self.events.append, self.errors.append, scheduler=self.clock
        )

    def kill(self) -> None:
        assert self.running is not None
        self.running.dispose()
        self.running = None

    def go(self, seconds: float = 60) -> list[tuple[Any, ...]]:
        """Let time pass; return what changed."""
        del self.events[:]
        if self.running is None:
            self._start()
        self.clock.advance_to(self.clock.after(seconds))
        assert self.errors == []
        return [told(event) for event in self.events]

    def begin(self, name: str) -> None:
        self.saw.on_next(WatchProcessingItem(filename=name))

    def text(self, name: str = SEVEN) -> str:
        return self.backlog.path(name).read_text()

    def archived(self) -> list[str]:
        return sorted(path.name[37:] for path in self.workspace.archive.iterdir())

    def archive(self, name: str) -> None:
        digest = self.backlog.digest(name)
        assert digest is not None
        assert self.backlog.archive(name, "approved", digest)


def told(event: Event) -> tuple[Any, ...]:
    match event:
        case WatchItemImported():
            return (event.change, event.filename)
        case WatchSourceFailed():
            return ("failed", event.source, event.message, event.retry_in)
        case _:
            return (event,)


@pytest.fixture
def tracker() -> Tracker:
    return Tracker()


@pytest.fixture
def watch(tmp_path: Path, tracker: Tracker) -> Watch:
    return Watch(tmp_path, tracker)


def test_a_new_item(watch: Watch, tracker: Tracker) -> None:
    tracker.has("7", title="Fix\n it", body="---\nafter: x\n---\nNow.", after=("6",))
    tracker.has("6")
    assert watch.go(1) == [("new", SEVEN), ("new", "github-00006.md")]
    assert watch.text() == (
        '---\norigin: "https://example.org/7"\nsource: github\nid: "7"\n'
        'after: ["github-00006.md"]\n---\n# Fix it\n\n---\nafter: x\n---\nNow.\n'
    )
    order = watch.backlog.order(watch.backlog.items())
    assert order.waiting == {SEVEN: ("github-00006.md",)}
    origin = watch.origins.read(SEVEN)
    assert origin is not None
    assert (origin.id, origin.url, origin.writing) == ("7", "https://example.org/7", "")
    assert len(origin.key) == 16
    assert watch.go(600) == []
    assert tracker.looks == 11


def test_an_edit_before_it_has_begun(watch: Watch, tracker: Tracker) -> None:
    tracker.has("7")
    watch.go()
    tracker.change("7", title="Fix that", body="Later.")
    assert watch.go() == [("updated", SEVEN)]
    assert watch.text().endswith("---\n# Fix that\n\nLater.\n")
    assert watch.go() == []


def test_an_edit_after_it_has_begun(watch: Watch, tracker: Tracker) -> None:
    """It keeps its text, also for the next watch; closing it changes nothing either."""
    tracker.has("7")
    watch.go()
    watch.begin(SEVEN)
    before = watch.text()
    tracker.change("7", body="Later.", held="was edited by mallory")
    assert watch.go() == []
    watch.kill()
    watch.restart()
    assert watch.go() == []
    del tracker.items["7"]
    assert watch.go() == []
    assert watch.text() == before


def test_an_edit_by_a_stranger(watch: Watch, tracker: Tracker) -> None:
    """It is held with the text that was trusted, until a trusted person changes that."""
    tracker.has("7")
    watch.go()
    tracker.change("7", body="Obey.", held="was edited by\nmallory")
    assert watch.go() == [("held", SEVEN)]
    assert watch.backlog.order(watch.backlog.items()).held == {SEVEN: "was edited by mallory"}
    assert "Now." in watch.text()
    assert "Obey." not in watch.text()
    assert watch.go() == []
    tracker.change("7", body="Now, please.", held="")
    assert watch.go() == [("released", SEVEN), ("updated", SEVEN)]
    assert watch.backlog.order(watch.backlog.items()).ready == (SEVEN,)
    assert "Now, please." in watch.text()


def test_a_new_item_of_a_stranger(watch: Watch, tracker: Tracker) -> None:
    tracker.has("7", held="was written by mallory")
    assert watch.go() == [("held", SEVEN)]
    assert watch.backlog.held(SEVEN) == "was written by mallory"
    tracker.change("7", held="")
    assert watch.go() == [("released", SEVEN)]
    assert watch.backlog.held(SEVEN) == ""


def test_another_reason_to_hold_stays(watch: Watch, tracker: Tracker) -> None:
    """An update, and the end of the source's own reason, keep a reason that others wrote."""
    tracker.has("7")
    watch.go()
    watch.backlog.hold(SEVEN, "is worked on at host2")
    tracker.change("7", body="Later.")
    assert watch.go() == [("updated", SEVEN)]
    tracker.change("7", held="was edited by mallory")
    watch.go()
    watch.backlog.hold(SEVEN, "is worked on at host2")
    tracker.change("7", held="")
    assert watch.go() == [("released", SEVEN)]
    assert watch.backlog.held(SEVEN) == "is worked on at host2"
    assert "Later." in watch.text()


@pytest.mark.parametrize("is_listed", [False, True])
def test_a_closed_item(watch: Watch, tracker: Tracker, is_listed: bool) -> None:
    tracker.has("7")
    watch.go()
    if is_listed:
        tracker.change("7", closed=True)
    else:
        del tracker.items["7"]
    assert watch.go() == [("removed", SEVEN)]
    assert watch.archived() == [f"removed-{SEVEN}"]
    assert watch.go() == []
    tracker.has("7")
    assert watch.go() == [("new", SEVEN)]
    assert "Now." in watch.text()


def test_an_item_that_was_closed_at_once(watch: Watch, tracker: Tracker) -> None:
    tracker.has("7", closed=True)
    assert watch.go() == []
    assert watch.backlog.items() == []


def test_a_landed_item_is_never_imported_again(watch: Watch, tracker: Tracker) -> None:
    tracker.has("7")
    watch.go()
    watch.begin(SEVEN)
    watch.archive(SEVEN)
    tracker.change("7", body="Again.")
    assert watch.go() == []
    watch.kill()
    watch.restart()
    assert watch.go() == []


def test_a_parked_item_stays_parked(watch: Watch, tracker: Tracker) -> None:
    tracker.has("7")
    watch.go()
    watch.begin(SEVEN)
    watch.backlog.park(SEVEN, "failed")
    assert watch.go() == []
    del tracker.items["7"]
    assert watch.go() == []
    assert list(watch.backlog.parked()) == [SEVEN]


def test_an_item_that_a_person_removed(watch: Watch, tracker: Tracker) -> None:
    tracker.has("7")
    tracker.has("8")
    watch.go()
    watch.backlog.remove(SEVEN)
    watch.backlog.path("github-00008.md").unlink()
    tracker.change("7", body="Later.")
    assert watch.go() == []
    assert watch.backlog.items() == []


def test_the_edit_of_a_person_stays(watch: Watch, tracker: Tracker) -> None:
    """Later upstream changes are ignored, with an event each time."""
    tracker.has("7")
    watch.go()
    watch.backlog.path(SEVEN).write_text("# Mine\n")
    assert watch.go() == []
    tracker.change("7", body="Later.")
    assert watch.go() == [("kept", SEVEN)]
    assert watch.go() == []
    tracker.change("7", held="was edited by mallory")
    assert watch.go() == [("held", SEVEN)]
    tracker.change("7", held="")
    assert watch.go() == [("released", SEVEN)]
    assert watch.text() == "# Mine\n"
    del tracker.items["7"]
    assert watch.go() == [("removed", SEVEN)]
    (kept,) = watch.workspace.archive.iterdir()
    assert kept.read_text() == "# Mine\n"


def test_the_origins_are_lost(watch: Watch, tracker: Tracker) -> None:
    """Existing, archived and parked items are not imported again, as in another clone."""
    for id in ("6", "7", "8", "9"):
        tracker.has(id)
    watch.go()
    watch.archive("github-00006.md")
    watch.backlog.park(SEVEN, "failed")
    watch.backlog.path("github-00008.md").write_text("# Mine\n")
    watch.kill()
    for path in watch.workspace.origins.iterdir():
        path.unlink()
    watch.restart()
    assert watch.go() == []
    for id in ("6", "7", "8", "9"):
        tracker.change(id, body="Later.")
    assert watch.go() == [("kept", "github-00008.md"), ("updated", "github-00009.md")]
    assert watch.backlog.items() == ["github-00008.md", "github-00009.md"]


def test_a_source_that_fails(watch: Watch, tracker: Tracker) -> None:
    """Items listed before the failure are imported, none is removed, and retries back off."""
    tracker.has("7")
    watch.go(59)
    del tracker.items["7"]
    tracker.has("8")
    tracker.error = OSError("no route\nto host")
    failures = [("failed", "github", "OSError: no route to host", wait) for wait in (60, 120, 240)]
    assert watch.go(1 + 60 + 120) == [("new", "github-00008.md"), *failures]
    assert watch.backlog.items() == [SEVEN, "github-00008.md"]
    watch.go(3600)
    assert watch.events
    assert [event.retry_in for event in watch.events if isinstance(event, WatchSourceFailed)] == [
        480, *[600] * (len(watch.events) - 1)
    ]  # fmt: skip
    tracker.error = None
    assert watch.go(600) == [("removed", SEVEN)]
    looks = tracker.looks
    watch.go(120)
    assert tracker.looks == looks + 2


def raising() -> Observable[SourceItem]:
    raise ConnectionError


@pytest.mark.parametrize(
    ("listing", "message"),
    [
        (raising, "ConnectionError:"),
        (lambda: from_iterable(["7"]), "TypeError: it has emitted a str, not a SourceItem"),
        (lambda: None, "TypeError: it returns a NoneType, not an Observable"),
        (lambda: from_iterable([SourceItem(id=7, title="x")]), "ValueError: 'id' is not a text"),  # type: ignore[arg-type]
        (
            lambda: from_iterable([SourceItem(id="7", title=" ")]),
            "ValueError: 'title' is missing",
        ),
        (lambda: from_iterable([SourceItem(id="", title="x")]), "ValueError: '' is not an id"),
        (lambda: from_iterable([SourceItem(id="7", title="x", after="6")]), "ValueError: 'after'"),  # type: ignore[arg-type]
    ],
)
def test_a_source_of_nonsense(
    tmp_path: Path, listing: Callable[[], Observable[SourceItem]], message: str
) -> None:
    good = Tracker("good")
    good.has("1")
    bad = Tracker("bad")
    bad.source = Source(name="bad", items=listing)
    watch = Watch(tmp_path, bad, good)
    events = watch.go(1)
    assert ("new", "good-00001.md") in events
    (failed,) = [event for event in events if event[0] == "failed"]
    assert failed[2].startswith(message)


def test_a_look_that_never_ends_imports_nothing(tmp_path: Path) -> None:
    silent = Tracker("silent")
    silent.source = Source(name="silent", items=never)
    good = Tracker("good")
    good.has("1")
    assert Watch(tmp_path, silent, good).go(3600) == [("new", "good-00001.md")]


def test_two_sources_with_the_same_ids(tmp_path: Path) -> None:
    first, second = Tracker("one"), Tracker("two")
    first.has("7")
    second.has("7")
    watch = Watch(tmp_path, first, second)
    assert watch.go() == [("new", "one-00007.md"), ("new", "two-00007.md")]
    del first.items["7"]
    assert watch.go() == [("removed", "one-00007.md")]


def test_what_comes_after_items_that_are_closed(watch: Watch, tracker: Tracker) -> None:
    """Only those that are open, or at work, have to land first."""
    tracker.has("5")
    tracker.has("6")
    tracker.has("7", after=("5", "6", "404"))
    watch.go()
    assert 'after: ["github-00005.md", "github-00006.md"]\n' in watch.text()
    watch.begin("github-00005.md")
    del tracker.items["5"], tracker.items["6"]
    assert watch.go() == [("updated", SEVEN), ("removed", "github-00006.md")]
    assert 'after: ["github-00005.md"]\n' in watch.text()
    watch.archive("github-00005.md")
    assert watch.go() == []
    assert watch.backlog.order(watch.backlog.items()).ready == (SEVEN,)


def test_what_comes_after_an_item_of_a_part(watch: Watch, tracker: Tracker) -> None:
    """While the list is incomplete, an item after one that it lacks is not imported."""
    tracker.has("7", after=("6",))
    tracker.error = TimeoutError("late")
    assert [event[0] for event in watch.go(1)] == ["failed"]
    tracker.error = None
    assert watch.go() == [("new", SEVEN)]


@pytest.mark.real_agent
def test_a_thousand_items(watch: Watch, tracker: Tracker, monkeypatch: Any) -> None:
    """A look at unchanged items writes nothing and reads no file of them again."""
    for number in range(1000):
        tracker.has(str(number))
    assert len(watch.go(1)) == 1000
    calls: list[object] = []
    for name in (
        *("storage.backlog.write_atomic", "storage.backlog.read_regular"),
        *("kept_files.write_atomic", "kept_files.read_model"),
    ):
        monkeypatch.setattr(f"cuggino.{name}", lambda *given, **more: calls.append(given))
    assert watch.go(120) == []
    assert calls == []
    assert tracker.looks == 3


class Killed(BaseException):
    """The end of the process, at any line."""


@pytest.mark.parametrize("change", ["new", "updated", "held", "released", "removed"])
def test_a_kill_at_any_write(tmp_path: Path, monkeypatch: Any, change: str) -> None:
    """The next watch completes any partial change, and nothing is done twice."""
    deadly = 0
    while True:
        tracker = Tracker()
        tracker.has("7", held="was edited by mallory" if change == "released" else "")
        watch = Watch(tmp_path / str(deadly), tracker)
        if change != "new":
            watch.go(59)
        match change:
            case "updated":
                tracker.change("7", body="Later.")
            case "held":
                tracker.change("7", held="was edited by mallory")
            case "released":
                tracker.change("7", held="")
            case "removed":
                tracker.change("7", closed=True)
            case _:
                assert change == "new"
        survived = _killed_at(deadly, watch, monkeypatch)
        watch.restart()
        after = watch.go(120)
        again = [one[0] for one in after]
        assert again in ([], [change])
        assert set(watch.backlog.items()) == (set() if change == "removed" else {SEVEN})
        if change == "removed":
            assert watch.archived() == [f"removed-{SEVEN}"]
        else:
            origin = watch.origins.read(SEVEN)
            assert origin is not None
            assert origin.writing == ""
            assert origin.file == watch.backlog.text_digest(SEVEN)
            assert ("Later." in watch.text()) is (change == "updated")
            assert bool(watch.backlog.held(SEVEN)) is (change == "held")
            assert origin.held == watch.backlog.held(SEVEN)
        if survived:
            assert again == []
            assert deadly > 1
            return
        deadly += 1


def _killed_at(deadly: int, watch: Watch, monkeypatch: Any) -> bool:
    """Kill the watch before one of its writes; return whether it had no more to write."""
    writes = 0

    def fatal() -> None:
        nonlocal writes
        writes += 1
        if writes > deadly:
            raise Killed

    def write(*args: Any, **more: Any) -> None:
        fatal()
        write_atomic(*args, **more)

    move = Backlog.archive

    def archive(*args: Any) -> bool:
        fatal()
        moved = move(*args)
        fatal()
        return moved

    with monkeypatch.context() as patch:
        patch.setattr("cuggino.storage.backlog.write_atomic", write)
        patch.setattr("cuggino.kept_files.write_atomic", write)
        patch.setattr(Backlog, "archive", archive)
        try:
            watch.go(60)
        except Killed:
            return False
        finally:
            watch.clock = VirtualClock()
    return True


def test_an_item_that_cannot_be_written(watch: Watch, tracker: Tracker) -> None:
    """The others are imported; it is tried again."""
    tracker.has("7")
    tracker.has("8")
    watch.backlog.path(SEVEN).mkdir()
    events = watch.go(1)
    assert events[0] == ("new", "github-00008.md")
    assert "not a regular file" in events[1][2]
    watch.backlog.path(SEVEN).rmdir()
    assert watch.go() == [("new", SEVEN)]


def test_a_damaged_origin_is_reported(watch: Watch, tracker: Tracker) -> None:
    tracker.has("7")
    watch.go(59)
    watch.origins.file(SEVEN).path.write_text("{")
    (failed,) = watch.go(1)
    assert "github-00007.md.json" in failed[2]
    watch.begin(SEVEN)
    assert isinstance(watch.events[-1], WatchSourceFailed)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("javascript:alert(1)", ""),
        ('https://e.example/"\nheld: x', ""),
        ("https://e.example/" + "x" * 2000, ""),
        ("https://e.example/a?b=c#d", 'origin: "https://e.example/a?b=c#d"\n'),
    ],
)
def test_the_address_of_an_item(watch: Watch, tracker: Tracker, url: str, origin: str) -> None:
    tracker.has("7", url=url)
    watch.go(1)
    assert watch.text().startswith(f"---\n{origin}source: github\n")


def test_hostile_fields(watch: Watch, tracker: Tracker) -> None:
    id = '7"\nheld: "x"\n---\n../../a'
    tracker.has(id, title="# ---\n@all Closes #1 \ud800\0", body="\r\n---\nx\0" * 300_000)
    ((change, name),) = watch.go(1)
    assert change == "new"
    assert name.startswith("github-00007-held-x-a-")
    assert watch.backlog.held(name) == ""
    assert watch.backlog.title(name) == "# --- @ all Closes # 1 ?"
    assert watch.backlog.path(name).stat().st_size < 1_001_000
    assert len(watch.backlog.focus(name)) < 70_000
    assert watch.go() == []


def test_one_look(tmp_path: Path, tracker: Tracker) -> None:
    tracker.has("7")
    workspace = Workspace(tmp_path)
    workspace.open()
    failing = Tracker("failing")
    failing.error = OSError("down")
    seen: list[Event] = []
    import_once([failing.source, tracker.source], workspace).subscribe(
        seen.append, scheduler=(clock := VirtualClock())
    )
    clock.advance_to(clock.at(1))
    assert [told(event)[0] for event in seen] == ["failed", "new"]
    assert (failing.looks, tracker.looks) == (1, 1)
