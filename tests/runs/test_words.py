"""The sentences of the events."""

from __future__ import annotations

from cuggino import events as ev
from cuggino.runs.words import SILENT, words
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
