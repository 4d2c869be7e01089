"""The audit agent during idle time, in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reactivex import Observable, concat, never, operators as ops, throw, timer

from cuggino.errors import AgentFailed, LoopError
from cuggino.events import AgentMessage, Event
from tests.loops.watching import Watching

FAILED = LoopError("implementing", "the connection was lost")


def finding(at: float, text: str) -> Observable[Any]:
    said = AgentMessage(text=f"<TO_BE_DISCUSSED>{text}</TO_BE_DISCUSSED>", message_id=text)
    return timer(at).pipe(ops.map(lambda _: said))


def test_findings_are_stored_as_they_come(tmp_path: Path) -> None:
    """A finding is its marker, then a file, then the event that names the file."""
    audit = concat(finding(5, "first"), finding(5, "second"))
    watching = Watching(tmp_path, audits=[audit])
    story = [(entry[0], entry[1]) for entry in watching.story(100)]
    assert [
        (0, "WatchBacklogWaiting"),
        (0, "WatchAuditStarted"),
        (5, "ToBeDiscussed"),
        (5, "WatchTbdItemFound"),
        (10, "ToBeDiscussed"),
        (10, "WatchTbdItemFound"),
        (10, "WatchAuditEnded"),
    ] == story
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
