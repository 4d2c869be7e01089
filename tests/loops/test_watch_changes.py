"""Changes of the backlog, the audit, failures and companions of a watch, in virtual time."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, concat, empty, just, never, operators as ops, throw, timer

from cuggino import errors, events as ev
from cuggino.errors import AgentFailed, ConfigError, LoopError
from cuggino.events import AgentMessage, Event
from cuggino.storage import list_journals, scan_journal
from cuggino.storage.backlog import Backlog
from cuggino.storage.focus import BIGGEST
from cuggino.storage.moving import digest_of
from tests.loops.slot_watching import SlotWatching
from tests.loops.watching import Outcome, Watching, line

NAME = "001.md"


def edit(backlog: Path) -> None:
    (backlog / NAME).write_text("edited")


def replace(backlog: Path) -> None:
    (backlog / ".new").write_text("replaced")
    (backlog / ".new").rename(backlog / NAME)


def rename(backlog: Path) -> None:
    (backlog / NAME).rename(backlog / "000.md")


def delete(backlog: Path) -> None:
    (backlog / NAME).unlink()


def to_folder(backlog: Path) -> None:
    (backlog / NAME).unlink()
    (backlog / NAME).mkdir()
    (backlog / NAME / "inside").write_text("kept")


TEXTS: dict[Callable[[Path], None], str | None] = {
    edit: "edited",
    replace: "replaced",
    rename: "task",
    delete: None,
    to_folder: "kept",
}
"""What must be found somewhere in the workspace after each deed."""


def everything(watching: Watching) -> list[str]:
    """The texts of all files in the workspace."""
    return [path.read_text() for path in watching.workspace.folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("deed", TEXTS, ids=lambda deed: deed.__name__)
@pytest.mark.parametrize(
    "when", [5, 41, 49, 50, 51, 60, 109, 111, 200], ids=lambda when: f"at {when} s"
)
def test_nothing_is_lost_and_the_watch_goes_on(
    tmp_path: Path, deed: Callable[[Path], None], when: float
) -> None:
    """A changed item loses no text, whether it settles, is processed, failed or is done.

    The item is there at 3 s, taken at 33 s, fails at 50 s, is taken again at 110 s, approved at
    120 s. In every case a second item is completed in the end.
    """
    watching = Watching(
        tmp_path, loops=[(17, "the line was cut"), *[(10, "approved")] * 9], retry_seconds=60
    )
    backlog = watching.workspace.backlog
    watching.write(3, NAME)

    def act() -> None:
        if (backlog / NAME).exists():
            deed(backlog)

    watching.at(when, act, backlog)
    watching.write(300, "999.md", "the last one")
    seen = watching.play(600)
    assert {"next"} == {kind for _, kind, _ in seen}
    completed = [e.filename for _, _, e in seen if e.tag == "WatchItemCompleted"]
    assert "999.md" == completed[-1]
    done_before = when == 200  # approved and archived at 120 s
    expected = "task" if done_before else TEXTS[deed]
    assert expected is None or expected in everything(watching)


def test_the_folder_is_removed_and_made_again(tmp_path: Path) -> None:
    """A backlog folder that goes away is an empty backlog; one that comes back is watched."""
    watching = Watching(tmp_path, loops=[(5, "approved")])
    backlog = watching.workspace.backlog
    watching.at(10, lambda: shutil.rmtree(backlog), backlog)
    watching.at(50, backlog.mkdir, backlog)
    watching.write(60, NAME)
    assert [
        (0, "WatchBacklogWaiting"),
        (90, "WatchProcessingItem", NAME),
        (95, "LoopApproved"),
        (95, "WatchItemCompleted", NAME),
        (95, "WatchBacklogWaiting"),
    ] == watching.story(200)


def test_the_folder_is_removed_while_its_item_is_worked_on(tmp_path: Path) -> None:
    """The run ends, there is nothing to archive, and the watch goes on."""
    watching = Watching(tmp_path, loops=[(50, "approved"), (5, "approved")])
    backlog = watching.workspace.backlog
    watching.write(0, NAME)
    watching.at(10, lambda: shutil.rmtree(backlog), backlog)
    watching.at(70, lambda: backlog.mkdir(exist_ok=True), backlog)
    watching.write(71, "002.md")
    story = watching.story(200)
    assert (50, "LoopApproved") in story
    assert "WatchItemCompleted" in {entry[1] for entry in story if entry[-1] == "002.md"}


# -- the audit agent during idle time, in virtual time


FAILED = LoopError("implementing", "the connection was lost")


def finding(at: float, text: str) -> Observable[Any]:
    said = AgentMessage(text=f"<TO_BE_DISCUSSED>{text}</TO_BE_DISCUSSED>", message_id=text)
    return timer(at).pipe(ops.map(lambda _: said))


def test_findings_are_stored_as_they_come(tmp_path: Path) -> None:
    """A finding is its marker, then a file, then the event that names the file."""
    audit = concat(finding(5, "first"), finding(5, "second"))
    watching = Watching(tmp_path, audits=[audit])
    story = [(entry[0], entry[1]) for entry in watching.story(100)]
    assert (
        "0 BacklogWaiting, 0 AuditStarted, 5 ToBeDiscussed, 5 TbdItemFound, "
        "10 ToBeDiscussed, 10 TbdItemFound, 10 AuditEnded"
    ) == line(story)
    files = sorted(watching.workspace.tbd.iterdir())
    assert ["first", "second"] == [path.read_text() for path in files]


def test_its_processes_are_gone_before_the_work_begins(tmp_path: Path) -> None:
    """The audit is released before its interruption is reported and before the loop starts."""
    order: list[str] = []
    audit = never().pipe(ops.finally_action(lambda: order.append("released")))
    watching = Watching(tmp_path, audits=[audit], loops=[(1, "approved")])
    watching.write(10, "001.md")

    def note(event: Event) -> None:
        order.append(event.tag)

    watching.stream = watching.stream.pipe(ops.do_action(note))
    watching.play(60)
    start = order.index("released")
    assert ["released", "WatchAuditInterrupted", "WatchProcessingItem"] == order[start : start + 3]


def test_a_half_written_finding_is_dropped(tmp_path: Path) -> None:
    """An unclosed finding of an interrupted audit is dropped."""
    half = AgentMessage(text="<TO_BE_DISCUSSED>half", message_id="m")
    audit = concat(timer(5).pipe(ops.map(lambda _: half)), never())
    watching = Watching(tmp_path, audits=[audit])
    watching.write(10, "001.md")
    story = watching.story(60)
    assert "WatchTbdItemFound" not in {tag for _, tag, *_ in story}
    assert [] == list(watching.workspace.tbd.iterdir())


def test_each_idle_period_has_a_new_audit(tmp_path: Path) -> None:
    """A failed audit is reported, and the next idle period starts another one."""
    failing = concat(
        timer(5).pipe(ops.ignore_elements()), throw(AgentFailed("down", reason="connection"))
    )
    watching = Watching(tmp_path, audits=[failing, never()], loops=[(1, "approved")])
    watching.write(10, "001.md")
    tags = [tag for _, tag, *_ in watching.story(100)]
    assert 1 == tags.count("WatchAuditFailed")
    assert 2 == tags.count("WatchAuditStarted")


def test_known_findings_are_in_its_prompt(tmp_path: Path) -> None:
    """The prompt contains open and dismissed findings."""
    watching = Watching(tmp_path, audits=[never()])
    watching.workspace.write_tbd_item("Login has no limit\n\nlong text")
    watching.workspace.memory.write_text("colours are a matter of taste")
    watching.play(10)
    prompt = watching.agent.spawned[0].system_prompt or ""
    assert "- Login has no limit" in prompt
    assert "colours are a matter of taste" in prompt
    assert "long text" not in prompt
    assert "audit" == watching.agent.spawned[0].role


def test_none_while_an_item_only_waits_for_its_next_attempt(tmp_path: Path) -> None:
    """A retry pause is not idle time."""
    watching = Watching(
        tmp_path, audits=[never()], loops=[(5, FAILED), (1, "spec_issue")], retry_seconds=60
    )
    watching.write(0, "001.md")
    tags = [tag for when, tag, *_ in watching.story(64) if when < 65]
    assert "WatchAuditStarted" not in tags


# -- failures that are not caused by an item: a full disk, no login, unreadable files


@pytest.mark.parametrize(
    "cause",
    [
        errors.AgentNotFound("the agent program claude was not found"),
        errors.AgentFailed("no credit is left", reason="billing"),
        errors.ConfigError("the prompt cannot be read"),
        errors.WorkNotCommitted("hook"),
    ],
    ids=lambda cause: type(cause).__name__,
)
def test_a_failure_of_every_item_parks_none(tmp_path: Path, cause: errors.CugginoError) -> None:
    """A failure that every item would meet parks none; all wait with growing pauses."""
    failure = errors.LoopError("planning", cause.message, cause=cause)
    loops: list[tuple[float, Outcome]] = [(0, failure), (0, failure), (1, "approved")]
    watching = Watching(tmp_path, loops=loops, max_attempts=1)
    watching.write(0, "001.md")
    watching.write(0, "002.md")
    assert (
        "0 ProcessingItem 001.md, 0 ItemRetry 001.md, 900 ProcessingItem 001.md, "
        "900 ItemRetry 001.md, 2700 ProcessingItem 001.md, 2701 LoopApproved, "
        "2701 ItemCompleted 001.md, 2701 ProcessingItem 002.md"
    ) == line(watching.story(2702))


def test_a_full_disk_while_agents_work(tmp_path: Path) -> None:
    """A run whose own files cannot be written ends the watch at its first item."""
    full = errors.StorageError("append marker", "no space left")
    watching = Watching(tmp_path, loops=[(5, full)] * 3)
    watching.write(0, "001.md")
    watching.write(0, "002.md")
    seen = watching.play(1000)
    assert [(0, "next"), (5, "error")] == [entry[:2] for entry in seen]
    assert "no space left" == str(seen[-1][2])
    assert ["001.md", "002.md"] == watching.backlog


def test_no_plan_is_an_agents_fault(tmp_path: Path) -> None:
    """A session without a plan file is retried, although its error is a storage error."""
    no_plan = errors.SessionError("commitTempPlan", "a session")
    watching = Watching(tmp_path, loops=[(5, no_plan), (5, "approved")])
    watching.write(0, "001.md")
    assert (65, "WatchProcessingItem", "001.md") in watching.story(100)


def test_unreadable_when_its_run_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An item that is unreadable at its start is retried, and the next one is processed."""
    _forbid_reading(monkeypatch, "001.md")
    watching = Watching(tmp_path, loops=[(1, "approved")], max_attempts=2)
    watching.write(0, "001.md")
    watching.write(0, "002.md")
    assert (
        "0 ProcessingItem 001.md, 0 ItemRetry 001.md, 0 ProcessingItem 002.md, "
        "1 LoopApproved, 1 ItemCompleted 002.md, 60 ProcessingItem 001.md, "
        "60 ItemParked 001.md"
    ) == line(watching.story(65)[:7])


def test_too_large_when_its_run_begins(tmp_path: Path) -> None:
    """An item that no prompt can hold is retried, then parked, and stops no other."""
    watching = Watching(tmp_path, loops=[(1, "approved")], max_attempts=2)
    watching.write(0, "001.md", "x" * (BIGGEST + 1))
    watching.write(0, "002.md")
    assert (
        "0 ProcessingItem 001.md, 0 ItemRetry 001.md, 0 ProcessingItem 002.md, "
        "1 LoopApproved, 1 ItemCompleted 002.md, 60 ProcessingItem 001.md, "
        "60 ItemParked 001.md"
    ) == line(watching.story(65)[:7])


def test_gone_when_its_run_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An item that vanished since the backlog was read is skipped without a failure."""
    watching = Watching(tmp_path, loops=[(1, "approved")])
    monkeypatch.setattr(
        Backlog, "digest", lambda _self, name: (watching.workspace.backlog / name).unlink()
    )
    watching.write(0, "001.md")
    assert [(0, "WatchProcessingItem", "001.md"), (0, "WatchBacklogWaiting")] == watching.story(100)
    assert [] == watching.loop.options


def test_unreadable_when_its_run_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An item that is unreadable after its run stays, and the watch continues."""
    watching = Watching(tmp_path, loops=[(5, "approved")])
    watching.write(0, "001.md")
    watching.at(3, lambda: _forbid_reading(monkeypatch, "001.md"))
    assert (5, "WatchItemRetained", "001.md") in watching.story(20)
    assert ["001.md"] == watching.backlog


def _forbid_reading(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """From now on the system refuses to read the file's bytes, as root it never does."""

    def refuse(path: Path) -> str | None:
        if path.name == name:
            raise PermissionError(13, "Permission denied")
        return digest_of(path)

    monkeypatch.setattr("cuggino.storage.backlog.digest_of", refuse)


# -- backlog items that wait for their next attempt, in virtual time


def test_removing_a_paused_item_delays_no_other(tmp_path: Path) -> None:
    """Removing the item that was due first does not delay the next one."""
    watching = Watching(
        tmp_path, loops=[(5, FAILED), (5, FAILED), (1, "approved")], retry_seconds=600
    )
    watching.write(0, "001.md")
    watching.write(0, "002.md")
    backlog = watching.workspace.backlog
    watching.at(300, (backlog / "001.md").unlink, backlog)
    assert (
        "0 ProcessingItem 001.md, 5 ItemRetry 001.md, 5 ProcessingItem 002.md, "
        "10 ItemRetry 002.md, 610 ProcessingItem 002.md, 611 LoopApproved, "
        "611 ItemCompleted 002.md, 611 BacklogWaiting"
    ) == line(watching.story(2000))


def test_no_timer_is_left_when_nothing_is_paused(tmp_path: Path) -> None:
    """After the only paused item is gone its time passes once, and nothing more is due."""
    watching = Watching(tmp_path, loops=[(5, FAILED)], retry_seconds=600)
    watching.write(0, "001.md")
    backlog = watching.workspace.backlog
    watching.at(300, (backlog / "001.md").unlink, backlog)
    assert [(0, "WatchProcessingItem"), (5, "WatchItemRetry"), (330, "WatchBacklogWaiting")] == [
        entry[:2] for entry in watching.story(700)
    ]
    timers = [item for item, _ in watching.t.scheduler._queue.items if not item.is_cancelled()]
    assert [] == timers


# -- streams beside a watch, and claims of its items, in virtual time


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
