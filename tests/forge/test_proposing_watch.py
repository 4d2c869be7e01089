"""Watches whose items are issues, or land through pull requests; kills at any step."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, operators as ops, throw

from cuggino import events as ev
from cuggino.config import BacklogSource, PullRequestSettings
from cuggino.errors import ConfigError
from cuggino.events import (
    Event,
    WatchIssueAnswered,
    WatchItemCompleted,
    WatchLanded,
    WatchProposed,
    WatchSentBack,
)
from cuggino.forge import pull_requests, redacting
from cuggino.forge.answering import answered
from cuggino.forge.claiming import claim_with, reclaimed
from cuggino.forge.commenting import new_key
from cuggino.forge.desk import Desk, Tracker
from cuggino.forge.reporting import reported
from cuggino.git import Said
from cuggino.loops import Landing, Services, WatchService
from cuggino.operators import Flow
from cuggino.operators.merge_now import merge_now
from cuggino.stages.slots import RemoteBranches
from cuggino.testing import CiRun, InMemoryForge, Seen, VirtualClock
from tests.forge.proposed import GREEN, RED, Proposed
from tests.forge.state import RemoteForge
from tests.git_project import isolate_git
from tests.loops.slot_project import SlotProject
from tests.loops.slot_watching import SlotWatching
from tests.loops.watching import Watching


@pytest.fixture(autouse=True)
def _own_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    isolate_git(monkeypatch, tmp_path / "home")


class ProposingProject(SlotProject):
    """A project with a remote, and a forge that merges what its CI has passed."""

    def __init__(self, place: Path, *, ci: list[CiRun], **config: Any) -> None:
        super().__init__(place, **config)
        self.clock = VirtualClock()
        self.remote = place / "remote.git"
        self.git.git("clone", "--quiet", "--bare", str(self.folder), str(self.remote))
        self.git.git("remote", "add", "origin", str(self.remote))
        self.forge = RemoteForge(self.clock, self.remote, ci=ci)
        self.seen: list[ev.Event] = []

    def landing(self) -> Landing:
        settings = PullRequestSettings(auto_merge=True)
        return pull_requests(self.forge, settings)

    def until(self, is_over: Any) -> list[ev.Event]:
        """Run the watch until an event; return those of this process."""
        seen: list[ev.Event] = []
        failed: list[Exception] = []

        def over() -> bool:
            return bool(failed) or bool(seen and any(map(is_over, seen)))

        stream = self.runtime().watch(landing=self.landing())
        held = stream.subscribe(seen.append, failed.append, scheduler=self.clock)
        self.clock.advance_to(self.clock.after("3h"), unless=over)
        held.dispose()
        if failed:
            raise failed[0]
        self.seen += seen
        return seen

    def of(self, kind: type[ev.Event]) -> list[Any]:
        return [event for event in self.seen if isinstance(event, kind)]


def is_idle(event: ev.Event) -> bool:
    return isinstance(event, ev.WatchBacklogWaiting) and not event.proposals


@pytest.mark.real_agent
def test_three_items_are_merged(tmp_path: Path) -> None:
    """One after another that waits for it; a red job is worked on; the user's branch stays."""
    project = ProposingProject(tmp_path, ci=[RED, GREEN])
    for name in ("one", "two"):
        project.item(name, f"echo {name} >>{name}.txt")
    project.item("last", "cat one.txt >last.txt", "---\nafter: one\n---\n# last\n")
    before = project.git.git("rev-parse", "main").strip()
    project.until(is_idle)
    assert 1 == len(project.of(ev.WatchSentBack))
    assert {"one.md", "two.md", "last.md"} == {
        done.filename for done in project.of(ev.WatchItemCompleted)
    }
    assert 3 == len(project.of(ev.WatchLanded))
    files = project.git.git("ls-tree", "--name-only", "main", cwd=project.remote).split()
    assert {"one.txt", "two.txt", "last.txt"} <= set(files)
    assert before == project.git.git("rev-parse", "main").strip()
    assert 3 == len(project.forge.writes("open_pull_request"))


@pytest.mark.parametrize(
    "end",
    [
        ev.WatchProposed,
        # In virtual time in tests/loops/test_slots_proposals.py; here: with the second command.
        pytest.param(ev.WatchSentBack, marks=pytest.mark.real_agent),
        pytest.param(ev.WatchLanded, marks=pytest.mark.real_agent),
    ],
)
def test_a_watch_that_ends_in_between_goes_on(tmp_path: Path, end: type[ev.Event]) -> None:
    """Nothing is proposed, worked on or merged twice, wherever it ended."""
    project = ProposingProject(tmp_path, ci=[RED, GREEN])
    project.item("one", "echo one >>one.txt")
    project.until(lambda event: isinstance(event, end))
    project.until(is_idle)
    assert 1 == len(project.forge.writes("open_pull_request"))
    assert ["one.md"] == [done.filename for done in project.of(ev.WatchItemCompleted)]
    assert {1} == {back.returns for back in project.of(ev.WatchSentBack)}
    assert 1 == len(project.of(ev.WatchLanded))
    text = project.git.git("show", "main:one.txt", cwd=project.remote)
    assert "one\none\n" == text, "the item was worked on twice: once more after the red job"


@pytest.mark.real_agent
def test_what_is_proposed_says_what_was_done(tmp_path: Path) -> None:
    project = ProposingProject(tmp_path, ci=[GREEN])
    project.item("one", "echo one >>one.txt", "# Fix #7 for @ada\n")
    project.until(is_idle)
    pull = project.forge.pull_now(1)
    assert "### Checks" in pull.body
    assert "`sh check.sh` passed on this branch, merged with `main`" in pull.body
    assert "### Reviews" in pull.body
    assert "@ada" not in pull.body
    assert "#7" not in project.forge.contents.titles[1]


def test_a_remote_is_required(tmp_path: Path) -> None:
    """Known at the start, in one sentence."""
    project = SlotProject(tmp_path, land_on="pr")
    with pytest.raises(
        ConfigError, match='"landOn": "pr" needs a git remote, and there is no origin'
    ):
        project.watch()


def test_the_program_of_the_forge_is_required(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = SlotProject(tmp_path, land_on="pr")
    project.git.git("remote", "add", "origin", "git@github.com:owner/name.git")
    monkeypatch.setattr("shutil.which", lambda _name: None)
    with pytest.raises(ConfigError, match='"landOn": "pr" needs `gh`, which is not installed'):
        project.runtime()._landing()


class Killed(Exception):
    """The end of a process, which nothing handles."""


class Mortal:
    """Ends the process before or after one of its calls to the remote and the forge."""

    def __init__(self, work: Proposed, patch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        self.dies_at: tuple[int, bool] | None = None
        self._patch = patch
        ask = RemoteBranches._ask

        def asking(branches: RemoteBranches, *words: str) -> Flow[Said]:
            at = self._begin()
            said = yield from ask(branches, *words)
            self._end(at)
            return said

        patch.setattr(RemoteBranches, "_ask", asking)
        names = ("find_pull_request", "open_pull_request", "edit_pull_request", "pull_request")
        for name in names:
            patch.setattr(work.forge, name, self._dying(getattr(work.forge, name)))

    def _dying(self, call: Callable[..., Observable[Any]]) -> Callable[..., Observable[Any]]:
        def calling(*args: Any, **more: Any) -> Observable[Any]:
            try:
                at = self._begin()
            except Killed as error:
                return throw(error)
            return call(*args, **more).pipe(ops.do_action(on_completed=lambda: self._end(at)))

        return calling

    def _begin(self) -> int:
        self.calls += 1
        if self.dies_at == (self.calls, False):
            raise Killed
        return self.calls

    def _end(self, at: int) -> None:
        if self.dies_at == (at, True):
            raise Killed


def story(work: Proposed, name: str) -> WatchProposed:
    """Propose, wait for the review, propose again, and wait for the merge."""
    base = work.git("rev-parse", "main", cwd=work.remote)
    candidate = work.candidate(f"{name}.md", {f"{name}.html": "hello\n"}, base=base)
    first = lasting(work, lambda trunk: trunk.land(candidate, title="Add", returns=0))
    assert isinstance(first, WatchProposed)
    ada = work.forge.person("ada")
    ada.reviews(first.number, "Make it better")
    back = lasting(work, lambda trunk: trunk.proposal(first, returns=0))
    assert isinstance(back, WatchSentBack)
    files = {f"{name}.html": "better\n"}
    again = work.candidate(f"{name}.md", files, base=candidate.commit, attempt=2)
    second = lasting(work, lambda trunk: trunk.land(again, title="Add", returns=1))
    assert isinstance(second, WatchProposed)
    assert work.remote_head(f"cuggino/{name}") == second.commit
    ada.merges(second.number)
    landed = lasting(work, lambda trunk: trunk.proposal(second, returns=1))
    assert isinstance(landed, WatchLanded)
    return second


def lasting(work: Proposed, step: Callable[[Any], Observable[Any]]) -> Any:
    """Repeat a step until its process lives to its end; return the last event."""
    while True:
        trunk = work.landing()
        try:
            work.play(trunk.open())
            return work.play(step(trunk))[-1]
        except Killed:
            continue


@pytest.mark.real_agent
def test_kills_around_every_call(work: Proposed, monkeypatch: pytest.MonkeyPatch) -> None:
    """One branch and one pull request come of it, with the latest work, and it is merged."""
    mortal = Mortal(work, monkeypatch)
    story(work, "whole")
    count = mortal.calls
    assert count > 15
    stride = int(os.environ.get("KILL_STRIDE", "13"))
    moments = [(at, after) for at in range(1, count + 1) for after in (False, True)]
    for number, moment in enumerate(moments[::stride]):
        mortal.calls, mortal.dies_at = 0, moment
        name = f"item-{number}"
        proposed = story(work, name)
        assert (moment, f"cuggino/{name}") == (moment, proposed.branch)
        heads = work.git("for-each-ref", f"refs/heads/cuggino/{name}*", cwd=work.remote)
        assert 1 == len(heads.splitlines()), moment
        opened = [call for call in work.forge.writes("open_pull_request") if name in call.text]
        assert 1 == len({call.number for call in opened}), moment
        assert number + 2 == proposed.number, moment
        assert "better" == work.git("show", f"main:{name}.html", cwd=work.remote), moment


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
