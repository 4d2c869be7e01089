"""The issues of a repository as a source, with a forge in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reactivex.subject import Subject

from cuggino.config import BacklogSource
from cuggino.errors import ForgeLimited, ForgeRefused
from cuggino.events import Event, WatchForgeWaiting, WatchItemImported, WatchSourceFailed
from cuggino.forge import imported
from cuggino.forge.issue_sources import issue_source
from cuggino.storage import Backlog, Origins, Workspace
from cuggino.testing import InMemoryForge, VirtualClock


class Importing:
    def __init__(self, folder: Path) -> None:
        self.clock = VirtualClock()
        self.forge = InMemoryForge(self.clock)
        self.ada = self.forge.person("ada")
        self.workspace = Workspace(folder)
        self.workspace.open()
        self.backlog = Backlog(self.workspace)
        self.events: list[Event] = []
        settings = BacklogSource(type="github", label="agent", network=True)
        companion = imported([issue_source(self.forge, settings)], self.workspace)
        companion(Subject()).subscribe(self.events.append, scheduler=self.clock)

    def go(self, seconds: float = 60) -> list[Any]:
        del self.events[:]
        self.clock.advance_to(self.clock.after(seconds))
        return [
            (event.change, event.reason) if isinstance(event, WatchItemImported) else event.tag
            for event in self.events
        ]


def test_the_life_of_an_issue(tmp_path: Path) -> None:
    watch = Importing(tmp_path)
    watch.ada.opens(7, "Add a page", "Now.", labels=("agent",))
    watch.ada.opens(8, "Something else")
    assert watch.go() == [("new", "")]
    origin = Origins(watch.workspace).read("github-00007.md")
    assert origin is not None
    assert (origin.number, origin.network) == (7, True)
    watch.ada.edits(7, body="Later.")
    assert watch.go() == [("updated", "")]
    watch.ada.closes(7)
    assert watch.go() == [("removed", "it is closed, or no longer listed")]
    watch.ada.reopens(7)
    assert watch.go() == [("new", "")]


def test_the_text_of_a_stranger(tmp_path: Path) -> None:
    """It counts once a trusted person labels the issue, until the stranger edits it."""
    watch = Importing(tmp_path)
    eve = watch.forge.person("eve", trusted=False)
    eve.opens(7, "Add a page", "Now.", labels=("agent",))
    reason = "was written by eve, whose text does not count"
    assert watch.go() == [("held", reason)]
    watch.ada.labels(7, "agent")
    assert watch.go() == [("released", "")]
    eve.edits(7, body="Obey.")
    assert watch.go() == [("held", "was edited by eve, whose text does not count")]
    assert "Obey" not in watch.backlog.path("github-00007.md").read_text()
    watch.ada.edits(7, body="Now, please.")
    assert watch.go() == [("released", ""), ("updated", "")]


def test_a_limit_is_waited_for(tmp_path: Path) -> None:
    watch = Importing(tmp_path)
    watch.ada.opens(7, "Add a page", labels=("agent",))
    watch.forge.fail("issues", ForgeLimited("slow down"), times=2)
    assert watch.go(600) == ["WatchForgeWaiting", "WatchForgeWaiting", ("new", "")]
    waiting = watch.events[0]
    assert isinstance(waiting, WatchForgeWaiting)
    assert waiting.doing == "list the issues"


def test_a_deleted_repository(tmp_path: Path) -> None:
    """Nothing is removed; it is asked for again."""
    watch = Importing(tmp_path)
    watch.ada.opens(7, "Add a page", labels=("agent",))
    watch.go()
    watch.forge.fail("issues", ForgeRefused("not found", status=404), times=2)
    assert watch.go(200) == ["WatchSourceFailed", "WatchSourceFailed"]
    failed = watch.events[0]
    assert isinstance(failed, WatchSourceFailed)
    assert (failed.message, failed.retry_in) == ("not found", 60)
    assert watch.backlog.items() == ["github-00007.md"]
    assert watch.go(600) == []
