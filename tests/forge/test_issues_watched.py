"""A watch with slots over imported issues: claims, reports, questions and replies together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reactivex import Observable

from cuggino.config import BacklogSource
from cuggino.events import Event, WatchIssueAnswered, WatchItemCompleted
from cuggino.forge import redacting
from cuggino.forge.answering import answered
from cuggino.forge.claiming import claim_with, reclaimed
from cuggino.forge.commenting import new_key
from cuggino.forge.desk import Desk, Tracker
from cuggino.forge.reporting import reported
from cuggino.loops import Services, WatchService
from cuggino.operators.merge_now import merge_now
from cuggino.testing import InMemoryForge, Seen
from tests.loops.slot_watching import SlotWatching
from tests.loops.watching import Watching


class IssueWatching(SlotWatching):
    """A watch whose items are issues 7, 8 and 9 of a forge in memory."""

    def __init__(self, folder: Path, **options: Any) -> None:
        super().__init__(
            folder,
            companions=[self.companion],
            claim=lambda name: self.claimed(name),
            **options,
        )
        self.forge = InMemoryForge(self.t.clock, latency=0.2)
        self.ada = self.forge.person("ada")
        self.opens()

    def opens(self) -> None:
        """Take a seat at the desk of the workspace."""
        settings = BacklogSource(type="github", label="agent", every=60.0, close_issues=True)
        tracker = Tracker(forge=self.forge, settings=settings)
        specs = self.folder / "specs"
        self.desk = Desk(self.workspace, {"github": tracker}, redact=redacting({}), specs=specs)
        self.claimed = claim_with(self.desk)

    def companion(self, events: Observable[Event]) -> Observable[Event]:
        return merge_now(*(one(self.desk)(events) for one in (reported, answered, reclaimed)))

    def imported(self, *numbers: int) -> None:
        """Import issues."""
        for number in numbers:
            self.ada.opens(number, f"Issue {number}", labels=("agent",))
            name, url = f"github-{number:05}.md", f"{self.forge.url}/issues/{number}"
            self.desk.origins.change(
                name, source="github", id=str(number), number=number, url=url, key=new_key()
            )
            self.write(name)

    def tags(self, seen: list[Seen]) -> list[str]:
        return [type(value).__name__ for _, kind, value in seen if kind == "next"]


def test_a_question_stops_its_item_only_until_a_reply(tmp_path: Path) -> None:
    """Others land meanwhile, the answered item later; each issue has one comment on it."""
    watch = IssueWatching(
        tmp_path / "p",
        attempts={"github-00008.md": [(5.0, "spec_issue"), (5.0, "candidate")]},
        slots=2,
    )
    watch.imported(7, 8, 9)
    said: list[str] = []
    watch.forge.at(250, lambda: said.append(watch.forge.comments_now(8)[0].body))
    watch.forge.at(300, lambda: watch.ada.comments(8, "Option B"))
    watch.at(360, lambda: None, watch.workspace.spec_issues)
    watch.at(361, lambda: None, watch.workspace.spec_issues)
    seen = watch.play(1000)
    assert [] == [value for _, kind, value in seen if kind == "error"]
    assert "**Work on this needs an answer.**" in said[0]
    done = [value.filename for _, _, value in seen if isinstance(value, WatchItemCompleted)]
    assert {"github-00007.md", "github-00009.md"} == set(done[:2])
    assert "github-00008.md" == done[2]
    assert 1 == len([1 for _, _, value in seen if isinstance(value, WatchIssueAnswered)])
    assert "Option B" in (tmp_path / "p/specs/decisions.md").read_text()
    for number in (7, 8, 9):
        mine = [one for one in watch.forge.comments_now(number) if one.is_mine]
        assert 1 == len(mine)
        assert "has landed" in mine[0].body
        assert not watch.forge.issue_now(number).is_open
        assert 1 == len(watch.forge.writes("add_comment", number))


def test_what_another_machine_has_claimed_is_left_to_it(tmp_path: Path) -> None:
    """Its own items are worked on; the item of the other one is held, and free once it lets go."""
    watch = IssueWatching(tmp_path / "p", slots=2)
    watch.imported(7, 8)
    watch.forge.login("other")._comment(7, f"<!-- cuggino:{'1' * 16} -->\nmine", "other")
    other = watch.forge.comments_now(7)[0].id
    watch.forge.at(300, lambda: watch.ada.deletes_comment(7, other))
    watch.at(365, lambda: None, watch.workspace.backlog)
    seen = watch.play(1000)
    done = [(at, value.filename) for at, _, value in seen if isinstance(value, WatchItemCompleted)]
    assert ["github-00008.md", "github-00007.md"] == [name for _, name in done]
    assert done[0][0] < 60 < 300 < done[1][0]


def test_an_outage_delays_what_was_not_claimed(tmp_path: Path) -> None:
    """The watch survives an hour without its forge; then each issue has one comment."""
    watch = IssueWatching(tmp_path / "p", slots=2)
    watch.imported(7, 8)
    watch.forge.outage(5, 3605)
    watch.write("001-mine.md")
    seen = watch.play(8000)
    assert [] == [value for _, kind, value in seen if kind == "error"]
    assert 3 == watch.tags(seen).count("WatchItemCompleted")
    assert "WatchForgeWaiting" in watch.tags(seen)
    for number in (7, 8):
        (comment,) = watch.forge.comments_now(number)
        assert "has landed" in comment.body


class SerialWatching(Watching):
    """A watch of an item at a time, with issue 7."""

    def obey(self, commands: Observable[Any]) -> None:
        self.forge = InMemoryForge(self.t.clock, latency=0.2)
        self.ada = self.forge.person("ada")
        self.ada.opens(7, "Issue 7", labels=("agent",))
        tracker = Tracker(
            forge=self.forge, settings=BacklogSource(type="github", label="agent", every=60.0)
        )
        specs = self.workspace.root / "specs"
        desk = Desk(self.workspace, {"github": tracker}, redact=redacting({}), specs=specs)
        url = f"{self.forge.url}/issues/7"
        desk.origins.change("github-00007.md", source="github", id="7", number=7, url=url)
        services = Services(
            agent=self.agent,
            workspace=self.workspace,
            changes=self.changes,
            control=commands,
        )
        self.stream = WatchService(
            services,
            loop=self.loop,  # type: ignore[arg-type]  # a double of the one method that is used
            companions=[one(desk) for one in (reported, answered, reclaimed)],
            claim=claim_with(desk),
        ).run(self.options)


def test_a_reply_wakes_a_watch_without_slots(tmp_path: Path) -> None:
    """It waits for the answer, and continues with the item."""
    watch = SerialWatching(tmp_path / "p", loops=[(5, "spec_issue"), (5, "approved")])
    watch.workspace.backlog.joinpath("github-00007.md").write_text("# Add a page")
    watch.forge.at(100, lambda: watch.ada.comments(7, "Option B"))
    watch.at(200, lambda: None, watch.workspace.spec_issues)
    seen = watch.t.record(watch.stream, until=1000)
    tags = [type(value).__name__ for _, kind, value in seen if kind == "next"]
    assert tags.index("WatchSpecIssueWaiting") < tags.index("WatchIssueAnswered")
    assert tags.index("WatchIssueAnswered") < tags.index("WatchItemCompleted")
    (mine,) = [one for one in watch.forge.comments_now(7) if one.is_mine]
    assert "has landed" in mine.body
