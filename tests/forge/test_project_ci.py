"""`ProjectCi`: the CI of a branch's pull request or of a commit, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cuggino.config import PullRequestSettings
from cuggino.errors import ConfigError, ForgeRefused, ForgeUnreachable
from cuggino.events import CiDone, Event, WaitingEnded, WaitingStarted, WatchForgeWaiting
from cuggino.forge import ProjectCi
from cuggino.operators import flow
from cuggino.stages import WaitingPlace, waiting
from cuggino.testing import CiRun
from tests.forge.proposed import Proposed
from tests.git_project import isolate_git

BRANCH = "cuggino/7"
Make = Callable[..., Proposed]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Proposed]:
    """Make a project whose forge has such CI."""
    isolate_git(monkeypatch, tmp_path / "home")
    return lambda *ci: Proposed(tmp_path, ci=ci)


def pushed(work: Proposed, *, opened: bool = True) -> str:
    """Check out a branch, push it, open its pull request; return its commit."""
    root = work.project.root
    work.git("checkout", "--quiet", "-b", BRANCH, cwd=root)
    work.git("push", "--quiet", "origin", BRANCH, cwd=root)
    if opened:
        opening = work.forge.open_pull_request(
            branch=BRANCH, target="main", title="Add a page", body=""
        )
        work.play(opening)
    return work.git("rev-parse", "HEAD", cwd=root).strip()


def ci_of(work: Proposed) -> ProjectCi:
    return ProjectCi(work.project.root, PullRequestSettings(), work.forge)


def awaited(work: Proposed, until: CiDone | None = None, seconds: float = 3600.0) -> WaitingEnded:
    *_, ended = events_of(work, until or CiDone(), seconds)
    assert isinstance(ended, WaitingEnded)
    return ended


def events_of(work: Proposed, until: CiDone, seconds: float = 3600.0) -> list[Event]:
    place = WaitingPlace(folder=work.project.root, ci=ci_of(work))
    return work.play(flow(lambda: waiting(until, place)), seconds)


@pytest.mark.parametrize("state", ["passed", "failed"])
def test_the_pull_request_of_the_branch(make: Make, state: Any) -> None:
    """The jobs of the branch's pull request are awaited; the answer names them."""
    work = make(CiRun(state=state, takes=300.0))
    head = pushed(work)
    ended = awaited(work)
    assert isinstance(ended.until, CiDone)
    assert (1, "happened", f"{state} at commit {head[:12]} (test {state})") == (
        ended.until.pull_request,
        ended.outcome,
        ended.answer,
    )
    assert 300 <= ended.waited <= 420


def test_a_commit(make: Make) -> None:
    """A commit is awaited by its hash."""
    work = make(CiRun(takes=60.0))
    head = pushed(work)
    ended = awaited(work, CiDone(commit=head))
    assert f"passed at commit {head[:12]} (test passed)" == ended.answer


def test_without_jobs(make: Make) -> None:
    """A pull request for which no job begins has no CI after three looks."""
    work = make()
    head = pushed(work)
    assert f"commit {head[:12]} has no jobs" == awaited(work).answer


def test_without_a_pull_request(make: Make) -> None:
    """A branch that is not proposed, with a commit that has no job, has no CI."""
    work = make()
    head = pushed(work, opened=False)
    reason = f"{BRANCH} has no open pull request, and commit {head[:12]} no job"
    with pytest.raises(ConfigError, match=reason):
        awaited(work)


def test_a_forge_that_is_down(make: Make) -> None:
    """An outage of the forge is reported and waited for; a refusal ends the wait."""
    work = make(CiRun(takes=60.0))
    pushed(work)
    work.forge.fail("pull_request", ForgeUnreachable("down"), times=7)
    begun, *waits, ended = events_of(work, CiDone(pull_request=1))
    assert isinstance(begun, WaitingStarted)
    assert [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0] == [
        one.retry_in for one in waits if isinstance(one, WatchForgeWaiting)
    ]
    assert isinstance(ended, WaitingEnded)
    assert ("happened", True) == (ended.outcome, ended.answer.startswith("passed"))
    assert ended.waited > 60
    work.forge.fail("pull_request", ForgeRefused("gone", status=404))
    ended = awaited(work, CiDone(pull_request=1))
    assert ("failed", "gone") == (ended.outcome, ended.answer)
