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
