"""Streams beside a watch, and claims of its items, in virtual time."""

from __future__ import annotations

from pathlib import Path

from reactivex import Observable, empty, just, operators as ops, throw

from cuggino import events as ev
from cuggino.errors import ConfigError
from cuggino.storage import list_journals, scan_journal
from tests.loops.slot_watching import SlotWatching


def report_landings(events: Observable[ev.Event]) -> Observable[ev.Event]:
    """Report each landing ten seconds later."""

    def reports(event: ev.Event) -> Observable[ev.Event]:
        if not isinstance(event, ev.WatchLanded):
            return empty()
        report = ev.WatchIssueReported(filename=event.filename, url="u", state="landed")
        return just(report).pipe(ops.delay(10))

    return events.pipe(ops.flat_map(reports))


def test_events_are_added_recorded_and_seen(tmp_path: Path) -> None:
    """A companion sees the events of the watch and of others; its own are part of the stream."""
    failed = ev.WatchSourceFailed(source="s", message="down", retry_in=60)
    seen: list[ev.Event] = []
    watch = SlotWatching(
        tmp_path / "p",
        journal=True,
        companions=(
            report_landings,
            lambda events: just(failed),
            lambda events: events.pipe(ops.do_action(seen.append), ops.ignore_elements()),
        ),
    )
    watch.write("1.md")
    story = watch.story(60)
    assert (0, "WatchSourceFailed") == story[0][:2]
    when = {tag: at for at, tag, *_ in story}
    assert when["WatchIssueReported"] == when["WatchLanded"] + 10
    assert {"WatchSourceFailed", "WatchLanded", "WatchIssueReported"} <= {
        type(event).__name__ for event in seen
    }
    (journal,) = list_journals(watch.workspace.journal)
    recorded = [type(entry.event).__name__ for entry in scan_journal(journal).entries]
    assert 1 == recorded.count("WatchIssueReported")
    assert 1 == recorded.count("WatchSourceFailed")


def test_the_first_event_is_seen(tmp_path: Path) -> None:
    """A watch with nothing to do emits one event at once, which its companions see."""
    seen: list[ev.Event] = []
    watch = SlotWatching(
        tmp_path / "p",
        companions=[lambda events: events.pipe(ops.do_action(seen.append), ops.ignore_elements())],
    )
    told = [value for _, _, value in watch.play(60)]
    assert isinstance(told[0], ev.WatchBacklogWaiting)
    assert seen == told


def test_an_error_ends_the_watch(tmp_path: Path) -> None:
    """The error of a companion ends the watch instead of being hidden."""
    watch = SlotWatching(
        tmp_path / "p", companions=[lambda events: throw(ConfigError("no such source"))]
    )
    watch.write("1.md")
    assert isinstance(watch.play(60)[-1][2], ConfigError)


def test_an_item_begins_once_it_is_claimed(tmp_path: Path) -> None:
    """One that another machine has begun is left alone, and others are not."""
    watch = SlotWatching(tmp_path / "p", slots=2)
    asked: list[str] = []

    def claim(name: str) -> Observable[bool]:
        asked.append(name)
        if name == "1.md":
            watch.workspace.backlog.joinpath(name).unlink()
        return just(name != "1.md")

    watch = SlotWatching(tmp_path / "p", slots=2, claim=claim)
    watch.write("1.md")
    watch.write("2.md")
    begun = [item for _, tag, *item in watch.story(60) if tag == "WatchProcessingItem"]
    assert [["2.md"]] == begun
    assert ["1.md", "2.md"] == asked
