"""A watch whose items land through pull requests: real git and agents, a forge in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.config import PullRequestSettings
from cuggino.errors import ConfigError
from cuggino.forge import pull_requests
from cuggino.loops import Landing
from cuggino.testing import CiRun, VirtualClock
from tests.forge.proposed import GREEN, RED
from tests.forge.state import RemoteForge
from tests.git_project import isolate_git
from tests.loops.slot_project import SlotProject


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
