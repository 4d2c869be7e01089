"""The sentences of the events, on which all views agree."""

from __future__ import annotations

from typing import Any

from cuggino import events as ev
from cuggino.notify import message_for
from cuggino.report import build_report
from cuggino.runs.words import SILENT, words
from cuggino_cli.screen.format import format_event
from cuggino_cli.screen.fragments import Verbosity, paint
from tests.report.journals import entries_of
from tests.screen.samples import all_event_types, sample
from tests.vectors import each


@each("cls", all_event_types())
def test_every_event_has_a_sentence(cls: type[ev.Event]) -> None:
    """Every event has a sentence or is listed as silent."""
    spoken = words(sample(cls))
    assert (spoken is None) == issubclass(cls, SILENT)
    if spoken is not None:
        assert all(line.text for line in spoken.lines)


def test_text_is_as_it_was_written() -> None:
    """The text of an agent stays raw: each view makes it harmless in its own way."""
    spoken = words(ev.WatchItemParked(filename="a.md", reason="<b>\x1b[2J"))
    assert spoken is not None
    assert "Parked: a.md: <b>\x1b[2J" == spoken.text


def test_an_endless_pause() -> None:
    """A delay beyond the range of dates is shown as a very long one."""
    event = ev.AgentRetry(
        reason="server", message="500", attempt=1, max_retries=3, retry_in=float("inf")
    )
    spoken = words(event)
    assert spoken is not None
    assert spoken.text == "server (retry 1 of 3, again in 277777h 46m): 500"


@each(
    "name, title",
    [
        ("1.md", "Watch"),
        ("attempt-2", "Attempts"),
        ("1.md-attempt-2", "Attempts"),
        ("task-1.2", "Hands"),
        ("run-469250b5", "Hands"),
    ],
)
def test_what_lands_in_a_run(name: str, title: str) -> None:
    """Attempts and tasks of a run are no items of a watch; a branch is neither."""
    said = words(ev.WatchLanding(filename=name, commit="c", trunk="t"))
    assert said is not None
    assert title == said.title
    followed = words(ev.WatchFollowed(branch="main", commit="c"))
    assert followed is not None
    assert "Branch" == followed.title


NOTIFIED: list[ev.Event] = [
    sample(ev.WatchSpecIssueWaiting),
    sample(ev.LoopSpecIssue).of_item("a.md"),
    sample(ev.LoopSpecIssue, content="# Which?\n\nA long question.").of_item("a.md"),
    sample(ev.WatchItemRetry, login=True),
    sample(ev.WatchItemCompleted, filename="login"),
    sample(ev.WatchItemCompleted, filename="login", checked=False),
    sample(ev.WatchItemParked, filename="login", reason="no network"),
    sample(ev.WatchItemParked, filename="login", reason="one\ntwo" * 200),
    sample(ev.RateLimited),
    sample(ev.RateLimited, overage=True),
    sample(ev.QuotaWaiting),
    sample(ev.QuotaWaiting, planned=True),
    sample(ev.BudgetWarning),
]


def terminal(event: ev.Event) -> str:
    """Return what the terminal prints of the event, in one line."""
    fragments = format_event(event, verbosity=Verbosity.VERBOSE) or []
    return flat(paint(fragments, color=False))


def flat(text: str) -> str:
    return " ".join(text.split())


@each("cls", all_event_types())
def test_report_and_terminal(cls: type[ev.Event]) -> None:
    """A notice of the report has the sentence of the terminal, behind the same title."""
    event = sample(cls)
    for notice in build_report(entries_of(event)).notices:
        first, *more = notice.text.splitlines()
        printed = terminal(event)
        assert printed.startswith((f"[{notice.kind}] {flat(first)}", flat(first)))
        assert all(flat(line) in printed for line in more)


@each("event", NOTIFIED)
def test_notification_and_terminal(event: Any) -> None:
    """The title of a notification is the first line that the terminal prints, with no more of it.

    A sentence that a title cannot hold is in the body as well, as a whole.
    """
    message = message_for(event)
    assert message is not None
    printed = terminal(event).replace(": # ", ": ")
    _, _, sentence = printed.partition("] ")
    assert sentence.startswith(flat(message.title))
    first = message.body.partition("\n")[0]
    is_whole = message.title == sentence or sentence.startswith(f"{message.title} Saved to:")
    assert is_whole or flat(first).replace(": # ", ": ") in sentence


@each("cls", all_event_types())
def test_each_notification_is_tested(cls: type[ev.Event]) -> None:
    """Every event that is notified has a case above."""
    if message_for(sample(cls)) is not None:
        assert cls in {type(event) for event in NOTIFIED}
